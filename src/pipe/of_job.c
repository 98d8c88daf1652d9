/* From a job and its model to a pipeline that can be run, planned and predicted. */
#include <stdio.h>
#include <string.h>

#include "of_job.h"

/* ---- counts and places ----------------------------------------------------------------------- */

/* Workers of a region are numbered in the order of its stages. */
static void find_places(gt_pipe_job *p) {
  const gt_job *job = p->job;
  gt_pipe_layout *l = &p->layout;
  size_t *taken = GT_NEW_ARRAY(size_t, job->nregions);
  *l = (gt_pipe_layout){.nregions = job->nregions,
                        .stages = job->pipeline.nstages,
                        .chunks = gt_job_chunks(job),
                        .micros = (size_t)job->pipeline.micro_batches,
                        .micro_samples = (size_t)(job->train.batch / job->pipeline.micro_batches)};
  l->places = GT_NEW_ARRAY(gt_pipe_place, l->stages);
  for (size_t s = 0; s < l->stages; s++) {
    const gt_job_stage *stage = &job->pipeline.stages[s];
    const size_t workers = (size_t)stage->workers;
    l->places[s] = (gt_pipe_place){stage->id, taken[stage->id], workers};
    taken[stage->id] += workers;
  }
  gt_free(taken);
}

static void find_outputs(gt_pipe_job *p) {
  const size_t n = gt_pipe_job_nspans(p);
  p->layout.output_bytes = GT_NEW_ARRAY(size_t, n);
  for (size_t k = 0; k < n; k++)
    p->layout.output_bytes[k] = gt_graph_operation(p->graph, p->spans[k].end - 1).output_bytes;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

/* A region of which compute says nothing. */
static const char *untimed(const gt_job *job) {
  for (size_t r = 0; r < job->nregions; r++) {
    const gt_job_compute c = gt_job_compute_of(job, r);
    if (c.step_s <= 0 && c.samples_per_s <= 0) return job->regions[r].name;
  }
  return "";
}

static gt_status check_kind(const gt_pipe_job *p, gt_pipe_kind kind) {
  const size_t chunks = gt_pipe_chunks(kind);
  if (chunks > 0 && chunks != p->layout.chunks)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: schedule %s is for stages of %zu part%s of the model, and those of "
                   "pipeline.stages have %zu",
                   p->job->name, gt_pipe_names[kind], chunks, chunks == 1 ? "" : "s",
                   p->layout.chunks);
  if (kind != GT_PIPE_AUTO || p->timed) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: pipeline.schedule is auto, and compute says nothing of region %s; add what a "
                 "step takes, as in --set 'compute.step=10 ms', or a profile of `geotrain probe`, "
                 "or choose a schedule such as 1f1b",
                 p->job->name, untimed(p->job));
}

gt_status gt_pipe_job_schedule(gt_pipe_schedule **out, const gt_pipe_job *pipe, gt_pipe_kind kind) {
  const gt_pipe_search search = {.aim = GT_PIPE_PERIOD, .seed = pipe->job->seed};
  gt_pipe_problem problem = pipe->problem;
  *out = NULL;
  GT_TRY(check_kind(pipe, kind));
  /* Memory is compared below, where the keys are known; `auto` needs it for its search. */
  if (kind != GT_PIPE_AUTO) problem.memory = NULL;
  GT_TRY(gt_pipe_make(out, kind, &problem, &search));
  const gt_status status = gt_pipe_job_check_memory(pipe, *out, kind);
  if (status == GT_OK) return GT_OK;
  gt_pipe_schedule_close(*out);
  *out = NULL;
  return status;
}

static gt_status find_schedule(gt_pipe_job *p) {
  gt_pipe_layout *l = &p->layout;
  GT_TRY(gt_pipe_job_schedule(&l->schedule, p, p->job->pipeline.schedule));
  l->slots = GT_NEW_ARRAY(size_t, l->stages);
  for (size_t s = 0; s < l->stages; s++) l->slots[s] = gt_pipe_slots(l->schedule, s);
  return GT_OK;
}

/* ---- traffic --------------------------------------------------------------------------------- */

static size_t wire_bytes(size_t payload) {
  const gt_frame_header head = {.flags = GT_FRAME_ROUTED};
  return gt_message_wire_bytes(&head, payload);
}

/* A micro-batch from the workers of one stage to those of another, each sending to each that has
   samples in common. */
static size_t crossing(const gt_pipe_job *p, const gt_pipe_place *from, const gt_pipe_place *to,
                       size_t sample_bytes) {
  const size_t n = p->layout.micro_samples, one = n / from->workers, other = n / to->workers;
  size_t sum = 0;
  for (size_t at = 0, end; at < n; at = end) {
    const size_t a = (at / one + 1) * one, b = (at / other + 1) * other;
    end = a < b ? a : b;
    sum += wire_bytes((end - at) * sample_bytes);
  }
  return sum;
}

/* Labels go from the server that has the data to the workers of the last span. */
static size_t labels_bytes(const gt_pipe_job *p, size_t from, size_t to) {
  const size_t n = gt_pipe_job_nspans(p), ids = gt_graph_predictions(p->graph) + 1;
  const gt_pipe_place *last = gt_pipe_job_place(p, n - 1);
  const gt_pipe_place server = {.region = p->layout.places[0].region, .workers = 1};
  if (server.region == last->region || from != server.region || to != last->region) return 0;
  return crossing(p, &server, last, sizeof(int32_t) * (gt_graph_of_text(p->graph) ? ids : 1));
}

size_t gt_pipe_job_bytes(const gt_pipe_job *pipe, size_t from, size_t to) {
  size_t sum = labels_bytes(pipe, from, to);
  for (size_t k = 0; k + 1 < gt_pipe_job_nspans(pipe) && from != to; k++) {
    const gt_pipe_place *a = gt_pipe_job_place(pipe, k), *b = gt_pipe_job_place(pipe, k + 1);
    if ((a->region == from && b->region == to) || (a->region == to && b->region == from))
      sum += crossing(pipe, a, b, pipe->layout.output_bytes[k]);
  }
  return sum * pipe->layout.micros;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status find_all(gt_pipe_job *p, const gt_graph_spec *model) {
  gt_graph_spec spec = *model;
  spec.sizes_only = true;
  spec.batch_max = 0;
  GT_TRY(gt_graph_create(&p->graph, &spec));
  find_places(p);
  GT_TRY(gt_pipe_job_find_spans(p));
  find_outputs(p);
  GT_TRY(gt_pipe_job_find_memory(p, model));
  GT_TRY(gt_pipe_job_find_problem(p));
  return find_schedule(p);
}

gt_status gt_pipe_job_open(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model) {
  gt_pipe_job *p = GT_NEW(gt_pipe_job);
  *p = (gt_pipe_job){.job = job};
  *out = NULL;
  if (job->pipeline.nstages == 0) gt_bug("job %s has no pipeline", job->name);
  const gt_status status = find_all(p, model);
  if (status == GT_OK)
    *out = p;
  else
    gt_pipe_job_close(p);
  return status;
}

void gt_pipe_job_close(gt_pipe_job *pipe) {
  if (!pipe) return;
  void *owned[] = {pipe->spans,      pipe->holds,   pipe->sample_s,   pipe->problem_spans,
                   pipe->hops,       pipe->regions, pipe->link_specs, pipe->access_bps,
                   pipe->slots_most, pipe->update_s};
  gt_pipe_layout_close(&pipe->layout);
  gt_graph_close(pipe->graph);
  gt_links_close(pipe->links);
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_free(pipe);
}
