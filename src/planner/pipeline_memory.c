/* What the parameter servers of a pipeline's regions need. */
#include "geotrain/ps_memory.h"
#include "pipeline.h"

#define MB 1e-6

static gt_ps_need need_of(const gt_planner_pipeline *p, size_t region) {
  const gt_ps_setting how = {.modelled = p->job->wan.emulate,
                             .apart = p->job->regions[region].nhosts > 1,
                             .wiring = &p->wiring};
  return gt_ps_need_of(p->pipe, region, &how);
}

/* With several copies also what they exchange, and what the lead holds at the end. */
static void print_server(FILE *to, const gt_planner_pipeline *p, size_t region) {
  const gt_ps_need n = need_of(p, region);
  fprintf(to, "%-12.12s %9.4g %9.4g %9.4g %9.4g", p->job->regions[region].name,
          MB * (double)n.arrays, MB * (double)n.optimizer, MB * (double)n.workers,
          MB * (double)n.frames);
  if (p->ncopies > 1) fprintf(to, " %9.4g", MB * (double)n.exchange);
  fprintf(to, " %10.4g", MB * (double)n.checkpoint);
  if (p->ncopies > 1) fprintf(to, " %9.4g", MB * (double)n.ending);
  fprintf(to, " %9.4g\n", MB * (double)n.all);
}

void gt_planner_pipeline_print_servers(FILE *to, const gt_planner_pipeline *p) {
  const bool several = p->ncopies > 1;
  fprintf(to, "%-12s %9s %9s %9s %9s%s %10s%s %9s\n", "server of", "arrays", "optimizer",
          "workers'", "frames", several ? "  exchange" : "", "checkpoint",
          several ? "    ending" : "", "all");
  for (size_t r = 0; r < p->job->nregions; r++)
    if (gt_job_copy_of(p->job, r) == p->pipe->copy) print_server(to, p, r);
  fprintf(to, "MB of a parameter server; workers': its workers' memory that it reads and writes, "
              "counted there, too");
  if (several)
    fprintf(to, ";\nexchange: what the strategy keeps, what is sent to other copies, and what has "
                "come and waits;\nending: what the lead gets of the models at the end, when there "
                "is no checkpoint");
  fprintf(to, "\n\n");
}

json_t *gt_planner_pipeline_servers(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_copy_of(p->job, r) != p->pipe->copy) continue;
    const gt_ps_need n = need_of(p, r);
    json_array_append_new(
        out, json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "region", p->job->regions[r].name,
                       "arrays_bytes", (json_int_t)n.arrays, "optimizer_bytes",
                       (json_int_t)n.optimizer, "workers_bytes", (json_int_t)n.workers,
                       "frames_bytes", (json_int_t)n.frames, "exchange_bytes",
                       (json_int_t)n.exchange, "checkpoint_bytes", (json_int_t)n.checkpoint,
                       "ending_bytes", (json_int_t)n.ending, "memory_bytes", (json_int_t)n.all));
  }
  return out;
}
