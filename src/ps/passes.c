/* The passes of a region's workers: between the PS, the state machine of the region's stages, and
   the headers of what goes to other regions. */
#include "geotrain/ps_passes.h"

/* The step or evaluation that a worker is in. */
typedef struct {
  gt_ps_order order;
  bool begun; /* its first pass has been ordered */
  gt_ns compute, wait;
  int64_t step; /* the number of its next one, for the state machine */
  size_t stage;
} worker_passes;

struct gt_ps_passes {
  gt_ps_passes_spec spec;
  const gt_pipe_layout *layout;
  gt_pipe_region *region;
  worker_passes *workers;
  size_t nworkers;
  gt_pass_times *times;
  gt_ns *held; /* of each worker: filled for gt_pass_times_end */
  gt_ns sent;  /* of the message that is being handled; else GT_NEVER */
  bool ended;
};

/* ---- orders ---------------------------------------------------------------------------------- */

gt_ns gt_ps_pass_time(const gt_pipe_job *job, size_t worker, size_t span, gt_pass_kind kind) {
  const gt_pipe_layout *l = &job->layout;
  const gt_pipe_place *place = &l->places[gt_pipe_stage_of(l->stages, span)];
  return gt_pipe_job_time(job, span, kind, l->micro_samples / place->workers,
                          worker - place->first_worker);
}

static gt_ns now(const gt_ps_passes *g) {
  return g->spec.host.clock(g->spec.host.ctx);
}

static gt_ns held(const gt_ps_passes *g, size_t worker) {
  return g->spec.host.held(g->spec.host.ctx, worker);
}

static void order_pass(void *ctx, size_t worker, const gt_pipe_order *pass) {
  gt_ps_passes *g = ctx;
  worker_passes *w = &g->workers[worker];
  const gt_ps_passes_host *host = &g->spec.host;
  const bool begins = !w->begun;
  w->begun = true;
  gt_pass_times_begins(g->times, worker, pass->kind, g->sent, now(g));
  host->pass(host->ctx, worker, &w->order, pass, begins,
             gt_ps_pass_time(g->spec.job, worker, pass->span, pass->kind));
}

static void end_step(void *ctx, size_t worker) {
  gt_ps_passes *g = ctx;
  gt_pass_times_ends(g->times, worker, now(g));
  g->spec.host.end(g->spec.host.ctx, worker, &g->workers[worker].order);
}

gt_status gt_ps_passes_order(gt_ps_passes *g, size_t worker, const gt_ps_order *order) {
  worker_passes *w = &g->workers[worker];
  if (g->ended) return GT_OK;
  w->order = *order;
  w->begun = false;
  w->compute = w->wait = 0;
  gt_pass_times_ordered(g->times, worker, order->kind == GT_PS_EVAL, held(g, worker), now(g));
  const size_t samples = g->layout->micro_samples;
  const size_t micros =
      order->kind == GT_PS_EVAL ? ((size_t)order->count + samples - 1) / samples : 0;
  return gt_pipe_region_step(g->region, worker, w->step++, micros);
}

gt_status gt_ps_passes_done(gt_ps_passes *g, size_t worker, gt_ns compute, gt_ns wait) {
  worker_passes *w = &g->workers[worker];
  w->compute += compute;
  w->wait += wait;
  gt_pass_times_made(g->times, worker, compute, now(g));
  return g->ended ? GT_OK : gt_pipe_region_done(g->region, worker);
}

gt_status gt_ps_passes_reorder(gt_ps_passes *g, const gt_pipe_schedule *schedule) {
  return gt_pipe_region_reorder(g->region, schedule);
}

void gt_ps_passes_timed(gt_ps_passes *g, size_t worker, gt_ns *compute, gt_ns *wait) {
  gt_pass_times_pushed(g->times, worker, now(g));
  *compute += g->workers[worker].compute;
  *wait += g->workers[worker].wait;
}

void gt_ps_passes_end(gt_ps_passes *g) {
  g->ended = true;
}

/* ---- phases ---------------------------------------------------------------------------------- */

void gt_ps_passes_account(gt_ps_passes *g, bool training) {
  if (training) {
    gt_pass_times_begin(g->times, now(g));
    return;
  }
  for (size_t w = 0; w < g->nworkers; w++) g->held[w] = held(g, w);
  gt_pass_times_end(g->times, g->held, now(g));
}

gt_phase_times gt_ps_passes_phases(const gt_ps_passes *g, size_t worker) {
  return gt_pass_times_of(g->times, worker, held(g, worker), now(g));
}

void gt_ps_passes_had(gt_ps_passes *g, size_t worker, const gt_phase_times *earlier) {
  gt_pass_times_add(g->times, worker, earlier);
}

void gt_ps_passes_means(const gt_ps_passes *g, double phase_s[GT_NPHASES]) {
  gt_phase_times sums = {0};
  for (size_t w = 0; w < g->nworkers; w++) {
    const gt_phase_times of = gt_ps_passes_phases(g, w);
    for (size_t i = 0; i < GT_NPHASES; i++) sums.of[i] += of.of[i];
  }
  for (size_t i = 0; i < GT_NPHASES; i++) phase_s[i] = gt_seconds(sums.of[i]) / (double)g->nworkers;
}

size_t gt_ps_passes_workers(const gt_ps_passes *g) {
  return g->nworkers;
}

/* ---- workers --------------------------------------------------------------------------------- */

size_t gt_ps_passes_stage(const gt_ps_passes *g, size_t worker) {
  return g->workers[worker].stage;
}

char *gt_ps_passes_text(const gt_ps_passes *g, size_t worker, char *text, size_t size) {
  return gt_pipe_region_text(g->region, worker, text, size);
}

size_t gt_ps_passes_share(const gt_ps_passes *g, size_t worker) {
  return g->layout->micro_samples / g->layout->places[g->workers[worker].stage].workers;
}

/* ---- other regions --------------------------------------------------------------------------- */

static void send(void *ctx, size_t region, const gt_pipe_packet *p) {
  const gt_ps_passes *g = ctx;
  const gt_ps_passes_host *host = &g->spec.host;
  const gt_frame_header head = {.kind = p->gradient ? GT_MSG_ACT_GRADIENT : GT_MSG_ACTIVATION,
                                .round = 0,
                                .sequence = (uint64_t)now(g),
                                .value = gt_pipe_region_number(g->region, p->step, p->micro),
                                .detail = p->forward_only,
                                .range = p->span,
                                .flags = GT_FRAME_ROUTED,
                                .route = {.origin = (uint16_t)g->spec.region,
                                          .origin_rank = (uint16_t)(p->from_worker + 1),
                                          .destination = (uint16_t)region,
                                          .destination_rank = (uint16_t)(p->to_worker + 1),
                                          .offset = p->first,
                                          .count = p->count}};
  const uint64_t cookie =
      GT_PASSES_COOKIE | (uint64_t)p->from_worker << 32 | (uint64_t)(uint32_t)p->buffer;
  host->send(host->ctx, region, &head, p, p->bytes == 0 ? 0 : cookie);
}

gt_status gt_ps_passes_departed(gt_ps_passes *g, uint64_t cookie) {
  const uint64_t at = cookie & ~GT_PASSES_COOKIE;
  if (g->ended) return GT_OK;
  return gt_pipe_region_departed(g->region, (size_t)(at >> 32), (size_t)(at & UINT32_MAX));
}

static void land(void *ctx, const gt_pipe_packet *p) {
  const gt_ps_passes *g = ctx;
  if (p->bytes > 0) g->spec.host.land(g->spec.host.ctx, p);
}

/* What the header says of the stages that a span's message goes between. */
static gt_pipe_packet packet_of(const gt_ps_passes *g, const gt_frame_header *head) {
  const size_t spans = g->layout->stages * g->layout->chunks;
  const bool gradient = head->kind == GT_MSG_ACT_GRADIENT;
  const size_t to = head->range, from = gradient ? to + 1 : to - 1;
  gt_pipe_packet p = {.gradient = gradient,
                      .forward_only = head->detail != 0,
                      .span = head->range,
                      .first = (size_t)head->route.offset,
                      .count = (size_t)head->route.count,
                      .bytes = (size_t)head->message_bytes,
                      .from_stage = GT_PIPE_NONE,
                      .to_stage = GT_PIPE_NONE};
  gt_pipe_region_of_number(g->region, head->value, &p.step, &p.micro);
  if (to < spans) p.to_stage = gt_pipe_stage_of(g->layout->stages, to);
  if (from < spans) p.from_stage = gt_pipe_stage_of(g->layout->stages, from);
  p.from_worker = (size_t)head->route.origin_rank - 1;
  p.to_worker = (size_t)head->route.destination_rank - 1;
  return p;
}

gt_status gt_ps_passes_message(gt_ps_passes *g, const gt_frame_header *head, gt_ns sent) {
  if (g->ended) return GT_OK;
  gt_pipe_packet packet = packet_of(g, head);
  g->sent = sent;
  const gt_status status = gt_pipe_region_message(g->region, &packet);
  g->sent = GT_NEVER;
  return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Workers of the region's stages. */
static size_t workers_of(const gt_pipe_layout *l, size_t region) {
  size_t n = 0;
  for (size_t s = 0; s < l->stages; s++)
    if (l->places[s].region == region) n += l->places[s].workers;
  return n;
}

gt_status gt_ps_passes_open(gt_ps_passes **out, const gt_ps_passes_spec *spec) {
  const gt_pipe_layout *l = &spec->job->layout;
  const size_t workers = workers_of(l, spec->region);
  gt_ps_passes *g = GT_NEW(gt_ps_passes);
  g->spec = *spec;
  g->layout = l;
  g->workers = GT_NEW_ARRAY(worker_passes, workers);
  g->nworkers = workers;
  g->times = gt_pass_times_create(workers);
  g->held = GT_NEW_ARRAY(gt_ns, workers);
  g->sent = GT_NEVER;
  for (size_t w = 0; w < workers; w++) g->workers[w].stage = gt_pipe_stage_at(l, spec->region, w);
  const gt_pipe_region_spec region = {
      .layout = l,
      .region = spec->region,
      .forward_micros = (spec->test_samples + l->micro_samples - 1) / l->micro_samples,
      .host = {g, order_pass, send, land, end_step}};
  const gt_status status = gt_pipe_region_create(&g->region, &region);
  if (status != GT_OK) {
    gt_ps_passes_close(g);
    g = NULL;
  }
  *out = g;
  return status;
}

void gt_ps_passes_close(gt_ps_passes *g) {
  if (!g) return;
  gt_pipe_region_close(g->region);
  gt_pass_times_close(g->times);
  gt_free(g->held);
  gt_free(g->workers);
  gt_free(g);
}
