/* What a search for a pipeline has found, as text and as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline_search.h"

#define MB 1e-6

/* ---- the section of the job ------------------------------------------------------------------ */

static void print_stage(FILE *to, const gt_job_stage *stage) {
  fprintf(to, "    - {region: %s, workers: %d", stage->region, stage->workers);
  for (size_t i = 0; i < stage->nlast; i++)
    fprintf(to, "%s%s", i > 0 ? ", " : stage->nlast > 1 ? ", last: [" : ", last: ", stage->last[i]);
  fprintf(to, stage->nlast > 1 ? "]}\n" : "}\n");
}

/* With a unit if it reads back to the same number. */
static void print_memory(FILE *to, double bytes) {
  char text[32];
  double back = 0;
  gt_format_size(text, sizeof text, bytes);
  if (gt_parse_size_bytes(text, &back) != GT_OK || back != bytes)
    snprintf(text, sizeof text, "%.0f B", bytes);
  fprintf(to, "  memory: %s\n", text);
}

static void print_section(FILE *to, const gt_job *job) {
  fprintf(to, "pipeline:\n  stages:\n");
  for (size_t i = 0; i < job->pipeline.nstages; i++) print_stage(to, &job->pipeline.stages[i]);
  fprintf(to, "  micro_batches: %d\n  schedule: %s\n", job->pipeline.micro_batches,
          gt_pipe_names[job->pipeline.schedule]);
  if (job->pipeline.labels != GT_LABELS_KEEP)
    fprintf(to, "  labels: %s\n", gt_labels_names[job->pipeline.labels]);
  if (job->pipeline.memory_bytes > 0) print_memory(to, job->pipeline.memory_bytes);
  fprintf(to, "\n");
}

/* ---- data parallelism ------------------------------------------------------------------------ */

static const char *label_of(char text[96], const gt_planner_way *way) {
  if (way->period > 0)
    snprintf(text, 96, "data parallel, %s, period %lld", way->strategy, (long long)way->period);
  else
    snprintf(text, 96, "data parallel, %s", way->strategy);
  return text;
}

/* compute.step is the time of train.batch samples. */
static void print_step(FILE *to, const gt_planner_search *s, const char *of, size_t region,
                       double step_s) {
  char time[32], index[24] = "";
  if (step_s <= 0) return;
  if (*of) snprintf(index, sizeof index, "%zu.", region);
  fprintf(to, " --set '%s%scompute.step=%s'", of, index,
          gt_format_time(time, sizeof time, step_s * s->batch / s->asked->train.batch));
}

/* What makes the job train in this way. */
static void print_sets(FILE *to, const gt_planner_search *s, const gt_planner_way *way) {
  fprintf(to, "--set pipeline=null --set sync.strategy=%s --set train.batch=%d", way->strategy,
          s->batch);
  if (way->period > 0) fprintf(to, " --set sync.period=%lld", (long long)way->period);
  print_step(to, s, "", 0, s->asked->compute.step_s);
  for (size_t r = 0; r < s->asked->nregions; r++)
    print_step(to, s, "regions.", r, s->asked->regions[r].compute.step_s);
}

static void print_verdict(FILE *to, const gt_planner_search *s) {
  const gt_planner_way *way = gt_planner_faster_way(s);
  const double rate = gt_planner_pipeline_rate(s->pipeline);
  char label[96];
  if (!way) {
    fprintf(to, "the pipeline is the fastest of these\n\n");
    return;
  }
  fprintf(to, "%s, is faster than the pipeline: %.2f times its rate; to take it:\n    ",
          label_of(label, way), way->samples_per_s / rate);
  print_sets(to, s, way);
  fprintf(to, "\n\n");
}

static void print_ways(FILE *to, const gt_planner_search *s) {
  char label[96];
  if (s->nways == 0) return;
  fprintf(to, "%-34s %11s %12s\n", "way", "samples/s", "MB a batch");
  fprintf(to, "%-34s %11.4g %12.4g\n", "the pipeline", gt_planner_pipeline_rate(s->pipeline),
          MB * gt_planner_pipeline_step_bytes(s->pipeline));
  for (size_t i = 0; i < s->nways; i++) {
    const gt_planner_way *way = &s->ways[i];
    if (way->possible)
      fprintf(to, "%-34s %11.4g %12.4g\n", label_of(label, way), way->samples_per_s,
              MB * way->batch_bytes);
    else
      fprintf(to, "%-34s not possible: %s\n", label_of(label, way), way->why);
  }
  fprintf(to,
          "data parallel: a worker has the whole model and batches of %d; MB: on all links, of %d "
          "samples\n",
          s->batch, s->asked->train.batch);
  print_verdict(to, s);
}

/* The job has its regions and ranks, so this is not done. */
static void print_fewer(FILE *to, const gt_planner_search *s) {
  const char *and = "";
  if (s->fewer_per_s <= 0) return;
  fprintf(to, "with fewer workers a pipeline would be faster: %.4g samples/s with ",
          s->fewer_per_s);
  for (size_t r = 0; r < s->asked->nregions; r++) {
    if (s->fewer[r] == 0) continue;
    fprintf(to, "%s%zu in %s", and, s->fewer[r], s->asked->regions[r].name);
    and = ", ";
  }
  fprintf(to, "; change the job's regions for it\n\n");
}

void gt_planner_search_print(FILE *to, const gt_planner_search *search, size_t columns) {
  fprintf(to, "%s: of %zu pipelines %zu may be, %zu simulations; the best one:\n\n",
          search->asked->name, search->looked, search->fitting, search->simulated);
  print_section(to, search->job);
  if (search->by_fleet)
    fprintf(to,
            "found with the times and powers of the profile's fleet; what follows takes those of "
            "compute\n\n");
  print_fewer(to, search);
  print_ways(to, search);
  gt_planner_pipeline_print(to, search->pipeline, columns);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *way_object(const gt_planner_way *way) {
  return json_pack("{s:s,s:o,s:b,s:o,s:o,s:o}", "strategy", way->strategy, "period",
                   way->period > 0 ? json_integer(way->period) : json_null(), "possible",
                   (int)way->possible, "why", way->possible ? json_null() : json_string(way->why),
                   "samples_per_s", way->possible ? json_real(way->samples_per_s) : json_null(),
                   "batch_bytes", way->possible ? json_real(way->batch_bytes) : json_null());
}

static json_t *stage_object(const gt_job_stage *stage) {
  json_t *last = json_array();
  for (size_t i = 0; i < stage->nlast; i++)
    json_array_append_new(last, json_string(stage->last[i]));
  return json_pack("{s:s,s:i,s:o}", "region", stage->region, "workers", stage->workers, "last",
                   last);
}

static json_t *fewer_object(const gt_planner_search *s) {
  json_t *workers = json_object();
  for (size_t r = 0; r < s->asked->nregions; r++)
    json_object_set_new(workers, s->asked->regions[r].name, json_integer((json_int_t)s->fewer[r]));
  return json_pack("{s:f,s:o}", "samples_per_s", s->fewer_per_s, "workers", workers);
}

json_t *gt_planner_search_object(const gt_planner_search *s) {
  const gt_planner_way *faster = gt_planner_faster_way(s);
  json_t *ways = json_array(), *stages = json_array();
  for (size_t i = 0; i < s->nways; i++) json_array_append_new(ways, way_object(&s->ways[i]));
  for (size_t i = 0; i < s->job->pipeline.nstages; i++)
    json_array_append_new(stages, stage_object(&s->job->pipeline.stages[i]));
  return json_pack("{s:I,s:I,s:I,s:o,s:i,s:s,s:o,s:o,s:i,s:o}", "pipelines", (json_int_t)s->looked,
                   "fitting", (json_int_t)s->fitting, "simulated", (json_int_t)s->simulated,
                   "stages", stages, "micro_batches", s->job->pipeline.micro_batches, "schedule",
                   gt_pipe_names[s->job->pipeline.schedule], "fewer",
                   s->fewer_per_s > 0 ? fewer_object(s) : json_null(), "data_parallel", ways,
                   "data_parallel_batch", s->batch, "faster",
                   faster ? json_string(faster->strategy) : json_null());
}

gt_status gt_planner_search_json(FILE *to, const gt_planner_search *search) {
  json_t *root = gt_planner_pipeline_object(search->pipeline);
  if (root) json_object_set_new(root, "search", gt_planner_search_object(search));
  return gt_planner_pipeline_dump(to, root, search->asked->name);
}
