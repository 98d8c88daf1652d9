/* The passes of a region's workers: connects the PS, the state machine of the region's stages, and
   the headers of packets to other regions. */
#include "internal.h"

/* The current step or evaluation of a worker. */
typedef struct {
  gt_ps_order order;
  bool runs;  /* it has not ended */
  bool begun; /* its first pass has been ordered */
  gt_ns compute, wait;
  int64_t step; /* number of its next one, for the state machine */
  size_t stage;
} worker_passes;

/* The state machine for steps with micro-batches of one shape. */
typedef struct {
  gt_ps_passes *passes;
  const gt_pipe_job *job;
  gt_pipe_region *region;
  size_t number;
} shape;

struct gt_ps_passes {
  ps_passes_spec spec;
  shape *shapes;
  size_t nshapes;
  const shape *now; /* of new steps */
  worker_passes *workers;
  size_t nworkers;
  gt_pass_times *times;
  gt_ns *held;         /* of each worker: filled for gt_pass_times_end */
  const void *payload; /* of the current message */
  gt_ns sent;          /* likewise; else GT_NEVER */
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
  return g->spec.host->clock(g->spec.host->ctx);
}

static gt_ns held(const gt_ps_passes *g, size_t worker) {
  return g->spec.ps ? gt_ps_held(g->spec.ps, worker) : 0;
}

static void order_pass(void *ctx, size_t worker, const gt_pipe_order *pass) {
  const shape *s = ctx;
  gt_ps_passes *g = s->passes;
  worker_passes *w = &g->workers[worker];
  const gt_ps_host *host = g->spec.host;
  const bool begins = !w->begun;
  w->begun = true;
  gt_pass_times_begins(g->times, worker, pass->kind, g->sent, now(g));
  host->pass(host->ctx, worker, &w->order, pass, begins,
             gt_ps_pass_time(s->job, worker, pass->span, pass->kind));
}

static void end_step(void *ctx, size_t worker) {
  gt_ps_passes *g = ((const shape *)ctx)->passes;
  g->workers[worker].runs = false;
  gt_pass_times_ends(g->times, worker, now(g));
  g->spec.host->end(g->spec.host->ctx, worker, &g->workers[worker].order);
}

/* Fails if other regions have begun the step in another shape than this one. */
static gt_status check_shape(const gt_ps_passes *g) {
  for (size_t i = 0; i < g->nshapes; i++)
    if (&g->shapes[i] != g->now && gt_pipe_region_early(g->shapes[i].region))
      return GT_FAIL(GT_ERR_FAULT,
                     "a step has %zu micro-batches here, and another region has sent some of %zu",
                     g->now->job->layout.micro_batches, g->shapes[i].job->layout.micro_batches);
  return GT_OK;
}

gt_status gt_ps_passes_order(gt_ps_passes *g, size_t worker, const gt_ps_order *order) {
  worker_passes *w = &g->workers[worker];
  if (g->ended) return GT_OK;
  GT_TRY(check_shape(g));
  w->order = *order;
  w->runs = true;
  w->begun = false;
  w->compute = w->wait = 0;
  gt_pass_times_ordered(g->times, worker, order->kind == GT_PS_EVAL, held(g, worker), now(g));
  const size_t samples = g->now->job->layout.micro_samples;
  const size_t micro_batches =
      order->kind == GT_PS_EVAL ? ((size_t)order->count + samples - 1) / samples : 0;
  return gt_pipe_region_step(g->now->region, worker, w->step++, micro_batches);
}

gt_status gt_ps_passes_done(gt_ps_passes *g, size_t worker, gt_ns compute, gt_ns wait) {
  worker_passes *w = &g->workers[worker];
  w->compute += compute;
  w->wait += wait;
  gt_pass_times_done(g->times, worker, compute, now(g));
  return g->ended ? GT_OK : gt_pipe_region_done(g->now->region, worker);
}

/* Lets the next step of all workers have this shape. */
static gt_status follow(const gt_ps_passes *g, const shape *s) {
  for (size_t w = 0; w < g->nworkers; w++)
    if (g->workers[w].runs || g->workers[w].step != g->workers[0].step)
      return GT_FAIL(GT_ERR_FAULT,
                     "a step cannot go over to %zu micro-batches while worker %zu is in one of %zu",
                     s->job->layout.micro_batches, w, g->now->job->layout.micro_batches);
  return gt_pipe_region_skip(s->region, g->workers[0].step);
}

gt_status gt_ps_passes_reorder(gt_ps_passes *g, const gt_pipe_schedule *schedule) {
  const shape *s = &g->shapes[gt_pipe_job_shape_of(g->spec.job, schedule->micro_batches)];
  if (s != g->now) GT_TRY(follow(g, s));
  GT_TRY(gt_pipe_region_reorder(s->region, schedule));
  g->now = s;
  return GT_OK;
}

size_t gt_ps_passes_shape(const gt_ps_passes *g) {
  return g->now->number;
}

void gt_ps_passes_timed(gt_ps_passes *g, size_t worker, gt_ps_push *push) {
  gt_pass_times_pushed(g->times, worker, now(g));
  push->compute += g->workers[worker].compute;
  push->wait += g->workers[worker].wait;
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

/* Writes the means over the region's workers, in seconds. */
static void means(const gt_ps_passes *g, double phase_s[GT_NPHASES]) {
  gt_phase_times sums = {0};
  for (size_t w = 0; w < g->nworkers; w++) {
    const gt_phase_times of = gt_ps_passes_phases(g, w);
    for (size_t i = 0; i < GT_NPHASES; i++) sums.of[i] += of.of[i];
  }
  for (size_t i = 0; i < GT_NPHASES; i++) phase_s[i] = gt_seconds(sums.of[i]) / (double)g->nworkers;
}

double gt_ps_passes_transfer_s(const gt_ps_passes *g) {
  double phase_s[GT_NPHASES];
  means(g, phase_s);
  return phase_s[GT_PHASE_TRANSFER];
}

void gt_ps_passes_result(const gt_ps *ps, gt_region_result *result) {
  if (!ps->passes) return;
  gt_ps_changes_text(ps, result->adapted, sizeof result->adapted);
  means(ps->passes, result->phase_s);
  result->wan_wait_s += result->phase_s[GT_PHASE_TRANSFER];
  result->local_wait_s -= result->phase_s[GT_PHASE_TRANSFER];
}

/* ---- workers --------------------------------------------------------------------------------- */

char *gt_ps_passes_text(const gt_ps_passes *g, size_t worker, char *text, size_t size) {
  return gt_pipe_region_text(g->now->region, worker, text, size);
}

size_t gt_ps_passes_share(const gt_ps_passes *g, size_t worker) {
  const gt_pipe_layout *l = &g->now->job->layout;
  return l->micro_samples / l->places[g->workers[worker].stage].workers;
}

size_t gt_ps_passes_samples(const gt_ps_passes *g, size_t worker) {
  return gt_ps_passes_share(g, worker) * g->now->job->layout.micro_batches;
}

/* ---- other regions --------------------------------------------------------------------------- */

/* In a frame's detail: 1: of an evaluation; then the shape.  In cookies: shape, worker and
   buffer. */
#define SCORE       1
#define SHAPE_SHIFT 48
#define SHAPE_MOST  ((uint64_t)1 << 12)

static void send(void *ctx, size_t region, const gt_pipe_packet *p) {
  const shape *s = ctx;
  const gt_ps_passes *g = s->passes;
  const gt_ps_host *host = g->spec.host;
  const gt_frame_header head = {.kind = p->gradient ? GT_MSG_ACT_GRADIENT : GT_MSG_ACTIVATION,
                                .round = 0,
                                .clock = (uint64_t)now(g),
                                .value = gt_pipe_region_number(s->region, p->step, p->micro),
                                .detail = p->forward_only | (uint64_t)s->number << SCORE,
                                .range = p->span,
                                .flags = GT_FRAME_ROUTED,
                                .route = {.origin = (uint16_t)g->spec.region,
                                          .origin_rank = (uint16_t)(p->from_worker + 1),
                                          .destination = (uint16_t)region,
                                          .destination_rank = (uint16_t)(p->to_worker + 1),
                                          .offset = p->first,
                                          .count = p->count}};
  const uint64_t cookie = PS_PASSES_COOKIE | (uint64_t)s->number << SHAPE_SHIFT |
                          (uint64_t)p->from_worker << 32 | (uint64_t)(uint32_t)p->buffer;
  host->packet(host->ctx, region, &head, p, p->bytes == 0 ? 0 : cookie);
  if (g->spec.ps)
    gt_ps_posted(g->spec.ps, region, &head, (double)gt_message_wire_bytes(&head, p->bytes), now(g));
}

gt_status gt_ps_passes_departed(gt_ps_passes *g, uint64_t cookie) {
  const uint64_t at = cookie & ~PS_PASSES_COOKIE;
  if (g->ended) return GT_OK;
  return gt_pipe_region_departed(g->shapes[at >> SHAPE_SHIFT].region,
                                 (size_t)(at >> 32 & UINT16_MAX), (size_t)(at & UINT32_MAX));
}

static void land(void *ctx, const gt_pipe_packet *p) {
  const shape *s = ctx;
  const gt_ps_host *host = s->passes->spec.host;
  if (p->bytes > 0) host->land(host->ctx, s->number, p, s->passes->payload);
}

/* Returns the packet of a header, with the stages of its span. */
static gt_pipe_packet packet_of(const shape *s, const gt_frame_header *head) {
  const gt_pipe_layout *l = &s->job->layout;
  const size_t spans = l->stages * l->chunks;
  const bool gradient = head->kind == GT_MSG_ACT_GRADIENT;
  const size_t to = head->range, from = gradient ? to + 1 : to - 1;
  gt_pipe_packet p = {.gradient = gradient,
                      .forward_only = head->detail & SCORE,
                      .span = head->range,
                      .first = (size_t)head->route.offset,
                      .count = (size_t)head->route.count,
                      .bytes = (size_t)head->message_bytes,
                      .from_stage = GT_PIPE_NONE,
                      .to_stage = GT_PIPE_NONE};
  gt_pipe_region_of_number(s->region, head->value, &p.step, &p.micro);
  if (to < spans) p.to_stage = gt_pipe_stage_of(l->stages, to);
  if (from < spans) p.from_stage = gt_pipe_stage_of(l->stages, from);
  p.from_worker = (size_t)head->route.origin_rank - 1;
  p.to_worker = (size_t)head->route.destination_rank - 1;
  return p;
}

/* A region that has heard from all others begins the next step, possibly in another agreed shape.
   This region can still lack messages of some. */
static gt_status find_shape(const gt_ps_passes *g, const gt_frame_header *head, const shape **s) {
  const uint64_t number = head->detail >> SCORE;
  if (number >= g->nshapes)
    return GT_FAIL(GT_ERR_FAULT, "it has micro-batches of shape %llu; there are %zu",
                   (unsigned long long)number, g->nshapes);
  *s = &g->shapes[number];
  return *s == g->now ? GT_OK : follow(g, *s);
}

gt_status gt_ps_passes_message(gt_ps_passes *g, const gt_frame_header *head, const void *payload,
                               gt_ns sent) {
  const shape *s;
  if (g->ended) return GT_OK;
  GT_TRY(find_shape(g, head, &s));
  gt_pipe_packet packet = packet_of(s, head);
  g->payload = payload;
  g->sent = sent;
  const gt_status status = gt_pipe_region_message(s->region, &packet);
  g->sent = GT_NEVER;
  return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Returns the workers of the region's stages. */
static size_t workers_of(const gt_pipe_layout *l, size_t region) {
  size_t n = 0;
  for (size_t s = 0; s < l->stages; s++)
    if (l->places[s].region == region) n += l->places[s].workers;
  return n;
}

static size_t more(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Returns the micro-batches of an evaluation. */
static size_t scored(const gt_ps_passes *g, const gt_pipe_job *job) {
  return (g->spec.test_samples + job->layout.micro_samples - 1) / job->layout.micro_samples;
}

static gt_status open_shapes(gt_ps_passes *g) {
  size_t stride = 0;
  g->nshapes = gt_pipe_job_shapes(g->spec.job);
  if (g->nshapes > SHAPE_MOST) gt_bug("micro-batches have %zu shapes", g->nshapes);
  g->shapes = GT_NEW_ARRAY(shape, g->nshapes);
  g->now = g->shapes;
  for (size_t i = 0; i < g->nshapes; i++) {
    const gt_pipe_job *job = gt_pipe_job_shape(g->spec.job, i);
    stride = more(stride, more(job->layout.micro_batches, scored(g, job)));
    g->shapes[i] = (shape){.passes = g, .job = job, .number = i};
  }
  for (size_t i = 0; i < g->nshapes; i++) {
    shape *s = &g->shapes[i];
    const gt_pipe_region_spec region = {.layout = &s->job->layout,
                                        .region = g->spec.region,
                                        .forward_micro_batches = scored(g, s->job),
                                        .stride = stride,
                                        .host = {s, order_pass, send, land, end_step}};
    GT_TRY(gt_pipe_region_create(&s->region, &region));
  }
  return GT_OK;
}

gt_status gt_ps_passes_open(gt_ps_passes **out, const ps_passes_spec *spec) {
  const gt_pipe_layout *l = &spec->job->layout;
  const size_t workers = workers_of(l, spec->region);
  gt_ps_passes *g = GT_NEW(gt_ps_passes);
  g->spec = *spec;
  g->workers = GT_NEW_ARRAY(worker_passes, workers);
  g->nworkers = workers;
  g->times = gt_pass_times_create(workers);
  g->held = GT_NEW_ARRAY(gt_ns, workers);
  g->sent = GT_NEVER;
  for (size_t w = 0; w < workers; w++) g->workers[w].stage = gt_pipe_stage_at(l, spec->region, w);
  const gt_status status = open_shapes(g);
  if (status != GT_OK) {
    gt_ps_passes_close(g);
    g = NULL;
  }
  *out = g;
  return status;
}

void gt_ps_passes_close(gt_ps_passes *g) {
  if (!g) return;
  for (size_t i = 0; i < g->nshapes; i++) gt_pipe_region_close(g->shapes[i].region);
  gt_pass_times_close(g->times);
  gt_free(g->shapes);
  gt_free(g->held);
  gt_free(g->workers);
  gt_free(g);
}

/* ---- called by a PS -------------------------------------------------------------------------- */

static void must(const gt_ps *ps, gt_status status) {
  if (status != GT_OK) ps->spec.host.fault(ps->spec.host.ctx, status);
}

/* The layout is that of a gt_pipe_job, which is valid. */
void gt_ps_passes_begin(gt_ps *ps) {
  const ps_passes_spec spec = {.job = ps->spec.passes,
                               .region = ps->spec.self,
                               .test_samples = ps->spec.test_samples,
                               .host = &ps->spec.host,
                               .ps = ps};
  if (spec.job && gt_ps_passes_open(&ps->passes, &spec) != GT_OK) gt_bug("%s", gt_error_text());
}

gt_ps_passes *gt_ps_passes_of(const gt_ps *ps) {
  return ps->passes;
}

void gt_ps_order_worker(gt_ps *ps, size_t worker, const gt_ps_order *order) {
  if (ps->passes)
    must(ps, gt_ps_passes_order(ps->passes, worker, order));
  else
    ps->spec.host.order(ps->spec.host.ctx, worker, order);
}

void gt_ps_pass_done(gt_ps *ps, size_t worker, gt_ns compute, gt_ns wait) {
  must(ps, gt_ps_passes_done(ps->passes, worker, compute, wait));
}

void gt_ps_packet_left(gt_ps *ps, uint64_t cookie) {
  must(ps, gt_ps_passes_departed(ps->passes, cookie));
}

void gt_ps_reorder(gt_ps *ps) {
  if (ps->passes && ps->adapt) must(ps, gt_ps_passes_reorder(ps->passes, gt_ps_schedule(ps)));
}

void gt_ps_end(gt_ps *ps) {
  if (ps->passes) ps->passes->ended = true;
}
