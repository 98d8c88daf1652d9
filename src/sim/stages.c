/* The stages of a pipeline in a simulated region: passes take their times, packets go on the wires,
   and nothing has contents. */
#include "geotrain/ps_of_job.h"
#include "internal.h"

size_t gt_sim_stages_floats(const gt_pipe_job *pipe, size_t region, bool buffers) {
  const gt_pipe_layout *l = &pipe->layout;
  size_t sum = 0;
  for (size_t k = 0; k < l->stages * l->chunks; k++)
    if (l->places[gt_pipe_stage_of(l->stages, k)].region == region)
      sum += gt_graph_span_floats(pipe->graph, pipe->spans[k], buffers);
  return sum;
}

/* ---- host of the passes ---------------------------------------------------------------------- */

static void order_pass(void *ctx, size_t worker, const gt_ps_order *order,
                       const gt_pipe_order *pass, bool begins, gt_ns cost) {
  sim_region *r = ctx;
  (void)order, (void)pass, (void)begins;
  r->passing[worker] = true;
  gt_timeline_passing(r->timeline, worker, cost);
}

static void order_end(void *ctx, size_t worker, const gt_ps_order *order) {
  sim_region *r = ctx;
  (void)order;
  r->passing[worker] = false;
  gt_timeline_passing(r->timeline, worker, 0);
}

static void send(void *ctx, size_t region, const gt_frame_header *head,
                 const gt_pipe_packet *packet, uint64_t cookie) {
  sim_region *r = ctx;
  const gt_ns now = gt_timeline_now(r->timeline);
  gt_sim_send(r, region, head, packet->bytes, cookie, now);
  gt_ps_posted(r->ps, region, head, (double)gt_message_wire_bytes(head, packet->bytes), now);
}

void gt_sim_stages_message(sim_region *r, const gt_frame_header *head) {
  if (gt_ps_passes_message(r->passes, head, (gt_ns)head->sequence) != GT_OK)
    gt_bug("in a simulation: %s", gt_error_text());
  gt_ps_landed(r->ps, head->from, head, gt_timeline_now(r->timeline));
}

static void land(void *ctx, size_t shape, const gt_pipe_packet *packet) {
  (void)ctx, (void)shape, (void)packet;
}

static gt_ns host_clock(void *ctx) {
  return gt_timeline_now(((sim_region *)ctx)->timeline);
}

static gt_ns host_held(void *ctx, size_t worker) {
  return gt_ps_held(((sim_region *)ctx)->ps, worker);
}

/* ---- open and close -------------------------------------------------------------------------- */

gt_status gt_sim_stages_open(sim_region *r) {
  const gt_sim_spec *spec = &r->sim->spec;
  const gt_ps_passes_spec passes = {
      .job = r->pipe,
      .region = r->id,
      .test_samples = gt_sim_tests(r->sim, r->id),
      .host = {r, order_pass, order_end, send, land, host_clock, host_held}};
  r->passing = GT_NEW_ARRAY(bool, gt_job_workers(spec->job, r->id));
  r->stages = GT_NEW_ARRAY(gt_ps_stage, r->pipe->layout.stages);
  r->copies = gt_ps_copies_of(spec->job, r->id, spec->samples);
  return gt_ps_passes_open(&r->passes, &passes);
}

void gt_sim_stages_close(sim_region *r) {
  gt_ps_passes_close(r->passes);
  gt_ps_copies_close(&r->copies);
  gt_free(r->stages);
  gt_free(r->passing);
}

/* ---- for the PS ------------------------------------------------------------------------------ */

/* Vectors have no data, so stages need no ranges of them. */
void gt_sim_stages_spec(sim_region *r, gt_ps_spec *spec) {
  const gt_pipe_layout *l = &r->pipe->layout;
  const size_t judge = gt_pipe_stage_of(l->stages, l->stages * l->chunks - 1);
  size_t n = 0;
  for (size_t s = 0; s < l->stages; s++)
    if (l->places[s].region == r->id)
      r->stages[n++] = (gt_ps_stage){.first_worker = l->places[s].first_worker,
                                     .workers = l->places[s].workers,
                                     .counts = s == 0,
                                     .judges = s == judge};
  gt_ps_set_stages(spec, r->stages, n, &r->order);
  spec->micros = l->micros;
  spec->owners = r->pipe->owners;
  spec->nowners = r->sim->spec.job->train.clip > 0 ? r->pipe->nowners : 0;
  spec->copies = r->copies;
  spec->adapts = r->sim->spec.job->pipeline.adapt != GT_ADAPT_NOTHING ? r->pipe : NULL;
}

void gt_sim_stages_result(sim_region *r) {
  gt_region_result *result = &r->result;
  gt_ps_changes_text(r->ps, result->adapted, sizeof result->adapted);
  gt_ps_passes_means(r->passes, result->phase_s);
  result->wan_wait_s += result->phase_s[GT_PHASE_TRANSFER];
  result->local_wait_s -= result->phase_s[GT_PHASE_TRANSFER];
}

bool gt_sim_stages_pass(sim_region *r, size_t worker, gt_ps_push *push) {
  if (r->passing[worker]) {
    if (gt_ps_passes_done(r->passes, worker, push->compute, push->wait) != GT_OK)
      gt_bug("in a simulation: %s", gt_error_text());
    return true;
  }
  gt_ps_passes_timed(r->passes, worker, &push->compute, &push->wait);
  if (r->orders[worker].kind == GT_PS_TRAIN)
    push->samples = (int64_t)gt_ps_passes_samples(r->passes, worker);
  return false;
}
