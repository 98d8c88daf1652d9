/* The world: the PS's services for a strategy, over links with random delays. */
#include "world.h"
#include "../strategies.h"

gt_optim_spec w_sgd(double lr, double momentum) {
  return (gt_optim_spec){.kind = GT_OPTIMIZER_SGD,
                         .schedule = {.kind = GT_LR_CONSTANT, .lr = lr, .gamma = 1},
                         .momentum = momentum};
}

gt_optim_spec w_adamw(void) {
  return (gt_optim_spec){.kind = GT_OPTIMIZER_ADAMW,
                         .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.01, .gamma = 1},
                         .weight_decay = 0.01,
                         .beta1 = 0.9,
                         .beta2 = 0.999,
                         .epsilon = 1e-8};
}

/* ---- the loss: sum over j of curvature/2 (w_j - target)^2, other numbers in each region ------ */

float w_curvature(size_t region, size_t j) {
  return 0.5f + 0.25f * (float)((region * 3 + j) % 4);
}

float w_target(size_t region, size_t j) {
  return (float)((int)((region * 5 + j * 2) % 7) - 3);
}

float w_start(size_t j) {
  return 4.0f - 0.7f * (float)j;
}

float w_gradient(size_t region, size_t j, float w) {
  return w_curvature(region, j) * (w - w_target(region, j));
}

/* ---- the host -------------------------------------------------------------------------------- */

gt_ns w_delay(world *w, size_t from, size_t to) {
  double slow = w->spec.slow[from] > w->spec.slow[to] ? w->spec.slow[from] : w->spec.slow[to];
  uint64_t most = gt_rng_below(&w->rng, 5) ? 20 : 200;
  return 1 + (gt_ns)((slow > 0 ? slow : 1) * (double)gt_rng_below(&w->rng, most));
}

static size_t w_waiting(const w_link *link) {
  return link->count - link->flying;
}

void w_arm(world *w, size_t from, size_t to) {
  w_link *link = &w->links[from][to];
  if (link->depart == GT_NEVER && w_waiting(link) && link->flying < w->spec.window * w->unit)
    link->depart = w->now + w_delay(w, from, to);
}

/* Acknowledges the messages of the link up to this one. */
static void w_acked(world *w, size_t from, size_t to, uint64_t sequence) {
  w_link *link = &w->links[from][to];
  link->applied = sequence;
  assert_true(link->applied <= link->received);
  for (size_t m = 0; m < link->flying; m++)
    if (link->queue[m].head.sequence == sequence)
      link->queue[m].acked = w->now + w_delay(w, to, from);
}

static void w_send(void *ctx, size_t peer, const gt_frame_header *head, const void *body,
                   size_t bytes, uint64_t cookie) {
  w_region *r = ctx;
  world *w = r->world;
  assert_true(peer < w->spec.nregions && peer != r->id);
  if (head->kind == GT_MSG_ACK) {
    w_acked(w, peer, r->id, head->value);
    return;
  }
  const bool mesh = w->spec.topology == GT_TOPOLOGY_MESH;
  const bool answer = w->spec.topology == GT_TOPOLOGY_CENTRAL && w->spec.next[r->id] == r->id;
  if (!w->resending) assert_int_equal(head->kind, answer ? GT_MSG_STATE : r->sync->ops->sends);
  assert_true(mesh != ((head->flags & GT_FRAME_ROUTED) != 0));
  assert_false(r->done && mesh && !w->crashed);
  const bool counts = body && !w->resending && peer == (r->id == 0) && bytes >= sizeof r->params;
  for (size_t j = 0; counts && j < W_PARAMS; j++) r->posted[j] += (double)((const float *)body)[j];
  w_link *link = &w->links[r->id][peer];
  link->posted += !w->resending;
  assert_true(link->count < W_QUEUE);
  w_message *m = &link->queue[link->count++];
  assert_true(link->count <= w->inflight + w->crashed);
  *m = (w_message){
      .body = body, .cookie = cookie, .head = *head, .arrive = GT_NEVER, .acked = GT_NEVER};
  m->resent = w->resending;
  m->head.from = (uint16_t)r->id;
  m->head.message_bytes = bytes;
  w_arm(w, r->id, peer);
}

static bool w_drop(void *ctx, size_t peer, uint64_t cookie) {
  w_region *r = ctx;
  w_link *link = &r->world->links[r->id][peer];
  const w_message *newest = &link->queue[link->count - 1];
  if (w_waiting(link) == 0 || newest->cookie != cookie || newest->resent) return false;
  link->count--;
  link->replaced++;
  return true;
}

static void w_hold(void *ctx) {
  w_region *r = ctx;
  assert_true(r->world->spec.nregions > 1); /* a region alone never waits */
  if (!r->held) r->holds++;
  r->held = true;
}

static void w_release(void *ctx) {
  ((w_region *)ctx)->held = false;
}

static void w_timer(void *ctx, size_t id, gt_ns at) {
  (void)ctx, (void)id, (void)at;
  fail_msg("no strategy asks for a timer");
}

static gt_link_view w_link_view(void *ctx, size_t peer) {
  w_region *r = ctx;
  return (gt_link_view){.queued = w_waiting(&r->world->links[r->id][peer])};
}

/* ---- opening and closing --------------------------------------------------------------------- */

gt_sync_env w_env(world *w, w_region *r) {
  gt_sync_env env = w->env;
  env.self = r->id;
  env.weights = w->weights;
  env.params = gt_vec_of(w->spec.no_data ? NULL : r->params, W_PARAMS);
  env.buffers = gt_vec_of(w->spec.no_data ? NULL : r->buffers, W_BUFFERS);
  env.optim = r->optim;
  env.exchange = r->exchange;
  env.host = (gt_sync_host){
      .ctx = r, .hold = w_hold, .release = w_release, .timer = w_timer, .link = w_link_view};
  return env;
}

gt_exchange *w_exchange(world *w, w_region *r) {
  const bool mesh = w->spec.topology == GT_TOPOLOGY_MESH;
  const gt_exchange_spec spec = {.nregions = w->spec.nregions,
                                 .self = r->id,
                                 .weights = w->weights,
                                 .inflight = w->inflight,
                                 .with_memory = !w->spec.no_data,
                                 .topology = w->spec.topology,
                                 .next = mesh ? NULL : w->spec.next,
                                 .workers = w->spec.ranks,
                                 .piece = W_PIECE,
                                 .outbox = r->outbox};
  return gt_exchange_create(&spec);
}

void w_open_outbox(world *w, w_region *r) {
  const gt_outbox_spec outbox = {.nregions = w->spec.nregions,
                                 .self = r->id,
                                 .outbox = w->spec.outbox,
                                 .window = w->spec.window,
                                 .with_memory = !w->spec.no_data,
                                 .gateway = {r, w_send, w_drop}};
  r->outbox = gt_outbox_create(&outbox);
  gt_outbox_open(r->outbox, &(gt_outbox_use){.unit = w->unit, .origin = r->id});
}

void w_create_strategy(world *w, w_region *r) {
  const gt_sync_ops *ops = sync_named(w->spec.strategy);
  assert_non_null(ops);
  assert_int_equal(gt_optim_create(&r->optim, &w->spec.optim, W_PARAMS, !w->spec.no_data), GT_OK);
  r->exchange = w_exchange(w, r);
  gt_sync_env env = w_env(w, r);
  r->sync = gt_sync_create(ops, &env);
}

world *w_open(const w_spec *spec) {
  world *w = GT_NEW(world);
  w->spec = *spec;
  if (w->spec.optim.schedule.gamma <= 0) w->spec.optim = w_sgd(0.05, 0);
  if (!w->spec.workers) w->spec.workers = 1;
  if (!w->spec.window) w->spec.window = 1;
  if (!w->spec.outbox) w->spec.outbox = 2;
  w->rng = gt_rng_make(spec->seed, GT_RNG_TEST, 0, 0);
  w->env = (gt_sync_env){.nregions = spec->nregions,
                         .options = {.period = spec->period,
                                     .scale = spec->scale,
                                     .average = spec->average,
                                     .gradients = spec->gradients,
                                     .halves = spec->halves,
                                     .outer = spec->outer,
                                     .outer_lr = spec->outer_lr,
                                     .outer_momentum = spec->outer_momentum}};
  w->unit = spec->topology == GT_TOPOLOGY_MESH ? 1 : (W_MODEL + W_PIECE - 1) / W_PIECE;
  w->inflight = (w->spec.outbox + w->spec.window) * w->unit;
  double total = 0;
  for (size_t i = 0; i < spec->nregions; i++) total += spec->weights[i];
  for (size_t i = 0; i < spec->nregions; i++) {
    w->weights[i] = total > 0 ? spec->weights[i] / total : 1 / (double)spec->nregions;
    w_region *r = &w->regions[i];
    *r = (w_region){.world = w, .id = i};
    for (size_t j = 0; j < W_PARAMS; j++) r->params[j] = w_start(j);
    w_open_outbox(w, r);
    w_create_strategy(w, r);
    for (size_t k = 0; k < spec->nregions; k++)
      w->links[i][k].depart = w->links[i][k].done_at = GT_NEVER;
  }
  return w;
}

void w_close(world *w) {
  for (size_t i = 0; i < w->spec.nregions; i++) {
    gt_sync_close(w->regions[i].sync);
    gt_exchange_close(w->regions[i].exchange);
    gt_optim_close(w->regions[i].optim);
    gt_outbox_close(w->regions[i].outbox);
  }
  gt_free(w);
}
