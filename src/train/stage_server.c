/* A PS rank's part in a pipeline: the state machine of its region's stages (pipe_region.h) gets
   what workers and other regions report, and its orders and packets go to the local plane and the
   gateway.  The bytes of activations stay in the workers' areas: the gateway sends from there, and
   what arrives is copied there. */
#include "stages.h"

#include <string.h>

/* The step or evaluation that a worker is in. */
typedef struct {
  gt_ps_order order; /* its vectors are borrowed until the worker has answered */
  bool begun;        /* its first pass has been ordered */
  bool busy;         /* makes a pass */
  gt_ns since;       /* wall time of the last order of a pass */
  gt_ns compute, wait;
} stage_work;

struct gt_server_stages {
  gt_server *server;
  const gt_pipe_layout *layout;
  gt_pipe_region *region;
  stage_work *work;     /* of each worker */
  size_t *stages;       /* likewise */
  gt_stage_area *areas; /* likewise */
  int64_t *steps;       /* likewise: the number of its next step, for the state machine */
  const void *arrived;  /* payload of the message that is being handled */
  bool ended;
};

static void must(gt_status status) {
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Bytes per sample of what a pass reads, and of what it writes. */
static size_t input_bytes(const gt_pipe_layout *l, const gt_pipe_order *o) {
  return o->kind == GT_PASS_F ? l->output_bytes[o->span - 1] : l->output_bytes[o->span];
}

static size_t output_bytes(const gt_pipe_layout *l, const gt_pipe_order *o) {
  return o->kind == GT_PASS_F ? l->output_bytes[o->span] : l->output_bytes[o->span - 1];
}

static void name_input(const gt_server_stages *g, size_t worker, const gt_pipe_order *o,
                       gt_pass_msg *pass) {
  if (o->npieces > GT_PASS_PIECES)
    gt_bug("a pass has %zu pieces; %d is the most", o->npieces, GT_PASS_PIECES);
  pass->npieces = (uint32_t)o->npieces;
  for (size_t i = 0; i < o->npieces; i++) {
    const gt_pipe_piece *piece = &o->pieces[i];
    const size_t from = piece->landed ? worker : piece->worker, each = input_bytes(g->layout, o),
                 *at = piece->landed ? g->areas[from].landing : g->areas[from].out;
    pass->pieces[i] = (gt_pass_piece){.from = at[piece->buffer] + piece->at * each,
                                      .to = piece->first * each,
                                      .bytes = piece->count * each,
                                      .worker = (uint32_t)from};
  }
}

static size_t share_of(const gt_server_stages *g, size_t worker) {
  return g->layout->micro_samples / g->layout->places[g->stages[worker]].workers;
}

static void order_pass(void *ctx, size_t worker, const gt_pipe_order *o) {
  gt_server_stages *g = ctx;
  stage_work *w = &g->work[worker];
  const bool scores = w->order.kind == GT_PS_EVAL, begins = !w->begun;
  gt_order_msg order = {.kind = GT_ORDER_PASS,
                        .with_params = begins && w->order.params.data != NULL,
                        .batch = w->order.first,
                        .count = w->order.count,
                        .step = w->order.step,
                        .common = w->order.common,
                        .pass = {.kind = o->kind,
                                 .chunk = (uint32_t)o->chunk,
                                 .span = o->span,
                                 .micro = o->micro,
                                 .slot = (uint32_t)o->slot,
                                 .flags = (begins ? GT_STAGE_BEGIN : 0) |
                                          (o->first ? GT_STAGE_WEIGHT : 0) |
                                          (scores ? GT_STAGE_SCORE : 0)}};
  name_input(g, worker, o, &order.pass);
  if (o->out != GT_PIPE_NONE) {
    order.pass.out = g->areas[worker].out[o->out];
    order.pass.out_bytes = share_of(g, worker) * output_bytes(g->layout, o);
  }
  w->begun = w->busy = true;
  w->since = gt_now();
  gt_plane_ps_order(g->server->plane, worker, &order, w->order.params.data, w->order.buffers.data);
  g->server->clock->passing(g->server, worker,
                            gt_stage_pass_time(g->server->run, worker, o->span, o->kind));
}

/* All passes of the step are made: the worker gives its gradient or its scores. */
static void end_step(void *ctx, size_t worker) {
  gt_server_stages *g = ctx;
  stage_work *w = &g->work[worker];
  const gt_order_msg order = {.kind = w->order.kind == GT_PS_EVAL ? GT_ORDER_EVAL : GT_ORDER_TRAIN,
                              .batch = w->order.first,
                              .count = w->order.count,
                              .step = w->order.step};
  w->since = gt_now();
  w->busy = true;
  gt_plane_ps_order(g->server->plane, worker, &order, NULL, NULL);
  g->server->clock->passing(g->server, worker, 0);
}

void gt_server_stages_order(gt_server_stages *g, size_t worker, const gt_ps_order *order) {
  stage_work *w = &g->work[worker];
  if (g->ended) return;
  *w = (stage_work){.order = *order, .since = gt_now()};
  const size_t samples = g->layout->micro_samples;
  const size_t micros =
      order->kind == GT_PS_EVAL ? ((size_t)order->count + samples - 1) / samples : 0;
  must(gt_pipe_region_step(g->region, worker, g->steps[worker]++, micros));
}

void gt_server_stages_done(gt_server_stages *g, size_t worker, const gt_push_msg *push) {
  stage_work *w = &g->work[worker];
  w->busy = false;
  w->compute += push->compute_ns;
  w->wait += push->wait_ns;
  if (!g->ended) must(gt_pipe_region_done(g->region, worker));
}

void gt_server_stages_timed(const gt_server_stages *g, size_t worker, gt_push_msg *push) {
  stage_work *w = &g->work[worker];
  w->busy = false;
  push->compute_ns += w->compute;
  push->wait_ns += w->wait;
}

bool gt_server_stages_busy(const gt_server_stages *g, size_t worker, gt_ns *since) {
  *since = g->work[worker].since;
  return g->work[worker].busy;
}

char *gt_server_stages_text(const gt_server_stages *g, size_t worker, char *text, size_t size) {
  return gt_pipe_region_text(g->region, worker, text, size);
}

void gt_server_stages_end(gt_server_stages *g) {
  if (g) g->ended = true;
}

/* ---- other regions --------------------------------------------------------------------------- */

static uint64_t cookie_of(size_t worker, size_t buffer) {
  return GT_STAGES_COOKIE | (uint64_t)worker << 32 | (uint64_t)buffer;
}

static void send(void *ctx, size_t region, const gt_pipe_packet *p) {
  gt_server_stages *g = ctx;
  gt_server *s = g->server;
  const gt_frame_header head = {.kind = p->gradient ? GT_MSG_ACT_GRADIENT : GT_MSG_ACTIVATION,
                                .round = 0,
                                .value = gt_pipe_region_number(g->region, p->step, p->micro),
                                .detail = p->forward_only,
                                .range = p->span,
                                .flags = GT_FRAME_ROUTED,
                                .route = {.origin = (uint16_t)s->run->roles.region_id,
                                          .origin_rank = (uint16_t)(p->from_worker + 1),
                                          .destination = (uint16_t)region,
                                          .destination_rank = (uint16_t)(p->to_worker + 1),
                                          .offset = p->first,
                                          .count = p->count}};
  const bool empty = p->bytes == 0;
  const uint8_t *payload = NULL;
  if (!empty) {
    const size_t each = p->bytes / p->count;
    payload = gt_plane_ps_area(s->plane, p->from_worker) + g->areas[p->from_worker].out[p->buffer] +
              p->at * each;
  }
  gt_gateway_send(s->gateway, region, &head, payload, p->bytes,
                  empty ? 0 : cookie_of(p->from_worker, p->buffer), gt_server_now(s));
  gt_ps_posted(s->ps, (double)gt_message_wire_bytes(&head, p->bytes));
}

void gt_server_stages_departed(gt_server_stages *g, uint64_t cookie) {
  const uint64_t at = cookie & ~GT_STAGES_COOKIE;
  if (!g->ended)
    must(gt_pipe_region_departed(g->region, (size_t)(at >> 32), (size_t)(at & UINT32_MAX)));
}

static void land(void *ctx, const gt_pipe_packet *p) {
  const gt_server_stages *g = ctx;
  if (p->bytes == 0) return;
  memcpy(gt_plane_ps_area(g->server->plane, p->to_worker) +
             g->areas[p->to_worker].landing[p->buffer] + p->at * (p->bytes / p->count),
         g->arrived, p->bytes);
}

/* What the header says of the stages that a span's message goes between. */
static gt_pipe_packet packet_of(const gt_server_stages *g, const gt_frame_header *head) {
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

void gt_server_stages_message(gt_server_stages *g, const gt_frame_header *head,
                              const void *payload) {
  if (g->ended) return;
  gt_pipe_packet packet = packet_of(g, head);
  g->arrived = payload;
  const gt_status status = gt_pipe_region_message(g->region, &packet);
  g->arrived = NULL;
  if (status != GT_OK)
    gt_panic(GT_ERR_FAULT, "a message of region %s: %s",
             g->server->run->job->regions[head->from].name, gt_error_text());
}

/* ---- open and close -------------------------------------------------------------------------- */

gt_server_stages *gt_server_stages_open(gt_server *s) {
  const gt_run *run = s->run;
  const size_t workers = (size_t)run->roles.region_size - 1;
  gt_server_stages *g = GT_NEW(gt_server_stages);
  g->server = s;
  g->layout = run->pipe->layout;
  g->work = GT_NEW_ARRAY(stage_work, workers);
  g->stages = GT_NEW_ARRAY(size_t, workers);
  g->areas = GT_NEW_ARRAY(gt_stage_area, workers);
  g->steps = GT_NEW_ARRAY(int64_t, workers);
  for (size_t w = 0; w < workers; w++) {
    g->stages[w] = gt_setup_stage_of(run->pipe, run->roles.region_id, w);
    g->areas[w] = gt_stage_area_of(g->layout, g->stages[w]);
  }
  const size_t samples = g->layout->micro_samples;
  const gt_pipe_region_spec spec = {.layout = g->layout,
                                    .region = run->roles.region_id,
                                    .forward_micros = (run->pipe->ntest + samples - 1) / samples,
                                    .host = {g, order_pass, send, land, end_step}};
  must(gt_pipe_region_create(&g->region, &spec));
  return g;
}

void gt_server_stages_close(gt_server_stages *g) {
  if (!g) return;
  gt_pipe_region_close(g->region);
  for (size_t w = 0; w < gt_plane_ps_workers(g->server->plane); w++)
    gt_stage_area_close(&g->areas[w]);
  gt_free(g->areas);
  gt_free(g->stages);
  gt_free(g->steps);
  gt_free(g->work);
  gt_free(g);
}
