/* Regions with whole models: the workers' computation, the laws at the end of every run, and random
   worlds. */
#include "world.h"
#include "../strategies.h"

#include <float.h>

/* ---- the problem ----------------------------------------------------------------------------- */

static float curvature(size_t region, size_t j) {
  return 0.5f + 0.25f * (float)((region * 3 + j) % 4);
}

static float target(size_t region, int64_t batch, size_t j) {
  return (float)((int)((region * 5 + j * 2) % 7) - 3) +
         0.125f * (float)((batch * 7 + (int64_t)j) % 5);
}

double w_gradient(size_t region, int64_t batch, size_t j, double param) {
  return (double)curvature(region, j) * (param - (double)target(region, batch, j));
}

float w_start(size_t j) {
  return 2.0f - 0.5f * (float)j;
}

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

gt_order w_order_of(const w_spec *spec, size_t region) {
  return (gt_order){
      .seed = spec->seed, .region = region, .n = spec->samples[region], .batch = spec->batch};
}

int64_t w_per_epoch(const w_spec *spec, size_t region) {
  gt_order order = w_order_of(spec, region);
  return gt_order_batches_per_epoch(&order);
}

/* Returns the score of a test sample, independent of the model. */
static float score(int64_t i) {
  return (float)((7 * i) % 11);
}

static const int32_t labels[W_TEST] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0,
                                       1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0};

double w_auc(size_t n) {
  float scores[W_TEST];
  uint32_t scratch[W_TEST];
  for (size_t i = 0; i < n; i++) scores[i] = score((int64_t)i);
  return gt_auc(scores, labels, n, scratch);
}

static gt_ns longer_lag(const w_spec *s, size_t a, size_t b) {
  return s->lag[a] > s->lag[b] ? s->lag[a] : s->lag[b];
}

static void plain_open(world *w) {
  w_spec *s = &w->spec;
  double total = 0, given = 0;
  if (s->optim.schedule.gamma <= 0) s->optim = w_sgd(0.02, s->optim.momentum);
  for (size_t i = 0; i < w->n; i++) given += s->weights[i];
  for (size_t i = 0; i < w->n; i++) {
    w->regions[i].nworkers = s->workers[i];
    w->regions[i].nparams = W_PARAMS;
    w->regions[i].nbuffers = W_BUFFERS;
    w->weights[i] = given > 0       ? s->weights[i]
                    : s->by_samples ? (double)s->samples[i]
                                    : (double)(s->workers[i] > 0);
    total += w->weights[i];
    for (size_t k = 0; k < w->n; k++)
      w->links[i][k].delay[0] = w->links[i][k].delay[1] = longer_lag(s, i, k);
  }
  for (size_t i = 0; i < w->n; i++) w->weights[i] /= total;
}

static const gt_view tensors[] = {
    {.name = "weight", .offset = 0, .count = 16, .shape = {4, 4}, .ndims = 2},
    {.name = "bias", .offset = 16, .count = 2, .shape = {2}, .ndims = 1}};

gt_exchange_codec w_codec(gt_codec_kind kind, double density) {
  return (gt_exchange_codec){
      .kind = kind,
      .spec = {.density = density, .bits = 8, .rank = 1, .decay = 1.0F, .dense = 1, .seed = 3},
      .tensors = tensors,
      .ntensors = 2};
}

static void plain_begin(w_region *r, gt_ps_spec *spec) {
  world *w = r->world;
  const w_spec *s = &w->spec;
  const gt_ps_interval *until = &s->until;
  must(gt_optim_create(&r->optim, &s->optim, W_PARAMS, !s->no_data));
  for (size_t j = 0; j < W_PARAMS; j++) r->params[j] = w_start(j);
  for (size_t j = 0; j < W_BUFFERS; j++) r->buffers[j] = (float)j;
  spec->local_async = s->local_async;
  spec->strategy = s->ops ? s->ops : sync_named(s->strategy);
  spec->next = s->next;
  spec->workers = s->workers;
  spec->piece = s->piece ? s->piece : W_PIECE;
  spec->options = s->options;
  spec->codec = s->codec.kind ? s->codec : w_codec(GT_CODEC_NONE, 1);
  spec->options.lossy = s->codec.kind != GT_CODEC_NONE;
  spec->order = w_order_of(s, r->id);
  spec->until = *until;
  if (until->epochs <= 0 && until->samples == 0 && until->steps == 0)
    spec->until.steps = s->steps[r->id];
  spec->ranking = gt_ranking_of("", 2);
  spec->test_labels = labels;
  spec->eval_chunk = 10;
}

static gt_ns plain_compute_time(w_region *r) {
  world *w = r->world;
  double slow = w->spec.slow[r->id] > 0 ? w->spec.slow[r->id] : 1;
  return 1 + (gt_ns)(slow * (double)(2 * W_MS + (gt_ns)gt_rng_below(&w->rng, 10 * (uint64_t)W_MS)));
}

static void plain_order(w_region *r, w_worker *worker, const gt_ps_order *o) {
  if (o->kind != GT_PS_TRAIN && o->params.n) worker->model = o->params.data;
  if (o->kind != GT_PS_TRAIN || r->world->spec.no_data) return;
  for (size_t j = 0; j < W_PARAMS; j++)
    worker->grads[j] = (float)w_gradient(r->id, o->first, j, (double)o->params.data[j]);
  for (size_t j = 0; j < W_BUFFERS; j++)
    worker->buffers[j] = 0.9f * o->buffers.data[j] + 0.1f * (float)(r->id + j);
}

static void plain_evaluate(w_region *r, w_worker *worker) {
  float scores[W_TEST];
  for (int64_t i = 0; i < worker->count; i++) scores[i] = score(worker->first + i);
  if (!r->world->spec.no_data) assert_ptr_equal(worker->model, r->snapshot);
  gt_ps_push push = {.samples = worker->count,
                     .correct = worker->count / 2,
                     .loss_sum = (double)worker->count,
                     .scores = worker->validates ? NULL : scores};
  /* a loss that shows whose model it is */
  for (size_t j = 0; worker->validates && j < W_PARAMS; j++)
    push.loss_sum += (double)worker->count * fabs((double)worker->model[j] + 0.01 * (double)r->id);
  gt_ps_evaluated(r->ps, (size_t)(worker - r->workers), &push, r->world->now);
}

static void plain_train(w_region *r, w_worker *worker) {
  const w_spec *s = &r->world->spec;
  gt_order order = w_order_of(s, r->id);
  gt_ps_push push = {.samples = (int64_t)gt_order_batch_size(&order, worker->batch),
                     .compute = W_MS,
                     .buffers = s->no_data ? NULL : worker->buffers};
  push.loss_sum = (double)push.samples;
  const bool bad = r->id == 0 && s->bad_every && worker->batch % s->bad_every == s->bad_every - 1;
  if (bad) worker->grads[0] = INFINITY;
  push.nonfinite = !s->no_data && !gt_vec_finite(gt_vec_of(worker->grads, W_PARAMS));
  gt_ps_gradient(r->ps, (size_t)(worker - r->workers), &push, s->no_data ? NULL : worker->grads,
                 r->world->now);
}

/* With a constant rate, and steps of single gradients. */
static void plain_taken(w_region *r, const w_worker *worker) {
  for (size_t j = 0; j < W_PARAMS && !r->world->spec.no_data; j++) {
    const double update = -gt_optim_lr(r->optim) * (double)worker->grads[j];
    r->kept.given[j] += update;
    r->kept.moved[j] += fabs(update);
  }
}

static void plain_post(w_region *r, size_t to, const w_frame *f) {
  const w_spec *s = &r->world->spec;
  const gt_sync_ops *ops = s->ops ? s->ops : sync_named(s->strategy);
  const bool answers = s->topology == GT_TOPOLOGY_CENTRAL && s->next[r->id] == r->id;
  w_check(r->world, f->head.kind == (answers ? GT_MSG_STATE : ops->sends));
  w_check(r->world, !(f->head.flags & GT_FRAME_ROUTED) == (s->topology == GT_TOPOLOGY_MESH));
  if (!f->borrowed || f->bytes != W_PARAMS * sizeof(float) || to != (size_t)(r->id == 0)) return;
  for (size_t j = 0; j < W_PARAMS; j++)
    r->kept.posted[j] += (double)((const float *)f->borrowed)[j];
}

static void plain_event(w_region *r) {
  w_check_bounds(r->world);
}

const w_problem w_plain = {.open = plain_open,
                           .begin = plain_begin,
                           .compute_time = plain_compute_time,
                           .order = plain_order,
                           .train = plain_train,
                           .evaluate = plain_evaluate,
                           .taken = plain_taken,
                           .post = plain_post,
                           .event = plain_event};

/* ---- laws ------------------------------------------------------------------------------------ */

void w_check_heard(world *w) {
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++)
      w_check(w, w->regions[i].kept.posted_value[k] == w->regions[k].kept.applied_value[i]);
}

void w_check_bounds(world *w) {
  const bool replaces = strategy_replaces(sync_named(w->spec.strategy));
  const bool forwards = w->spec.topology != GT_TOPOLOGY_MESH; /* in outboxes of their own */
  const size_t unit = forwards ? (W_MODEL + W_PIECE - 1) / W_PIECE : 1;
  const size_t forwarded = w->spec.outbox > 1 ? w->spec.outbox : 2;
  const size_t outbox = (w->spec.outbox + (forwards ? forwarded : 0)) * unit,
               window = w->spec.window * unit, resent = w->restarts ? outbox + window + 2 : 0;
  for (size_t i = 0; i < w->n; i++) {
    if (w->regions[i].dead) continue;
    for (size_t k = 0; k < w->n; k++) {
      if (i == k) continue;
      gt_ps_link link;
      gt_ps_get_link(w->regions[i].ps, k, &link);
      w_check(w, link.queued <= outbox + replaces * (1 + window) + resent);
      w_check(w, link.unacknowledged <= outbox + window + 2 * replaces + resent);
      w_check(w, link.queued <= link.unacknowledged);
    }
    for (size_t k = 0; k < w->spec.workers[i]; k++) {
      const w_worker *worker = &w->regions[i].workers[k];
      bool waits = worker->work == W_IDLE || worker->work == W_PUSHED;
      if (waits && w_view(w, i).phase != GT_PS_STOPPED)
        w_check(w, w->now - worker->heard <= w->spec.keepalive);
    }
  }
}

static void check_idle(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    if (w->spec.workers[i] > 0) continue;
    gt_ps_view v = w_view(w, i);
    w_check(w, v.steps == 0 && v.samples == 0 && w->regions[i].evals == 0);
    w_check(w, v.drain == 0 && v.compute == 0 && v.wan_wait == 0);
  }
}

void w_check_steps(world *w, int64_t steps) {
  for (size_t i = 0; i < w->n; i++)
    w_check(w, w_view(w, i).steps == (w->spec.workers[i] > 0 ? steps : 0));
  check_idle(w);
}

void w_check_epochs(world *w, int64_t epochs) {
  w_check_heard(w);
  check_idle(w);
  for (size_t i = 0; i < w->n; i++) {
    gt_ps_view v = w_view(w, i);
    int64_t total = epochs * w_per_epoch(&w->spec, i);
    for (int64_t b = 0; b < W_BATCHES; b++)
      w_check(w, w->regions[i].kept.trained[b] == (b < total));
    w_check(w, v.batches == total);
    w_check(w, v.samples == epochs * (int64_t)w->spec.samples[i]);
  }
}

double w_sent_bytes(const world *w) {
  double sum = 0;
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++) sum += w->links[i][k].bytes_sent;
  return sum;
}

bool w_lockstep(const w_spec *spec) {
  return sync_named(spec->strategy)->waits;
}

void w_check_identical(world *w) {
  const w_region *first = &w->regions[0];
  for (size_t i = 1; i < w->n; i++) {
    w_check(w, w_same(first->params, w->regions[i].params, W_PARAMS));
    if (strcmp(w->spec.strategy, "sma") == 0 && !w->spec.no_data)
      w_check(w, w_same(first->buffers, w->regions[i].buffers, W_BUFFERS));
    if (strcmp(w->spec.strategy, "ssgd") == 0)
      w_check(w, gt_optim_steps(first->optim) == gt_optim_steps(w->regions[i].optim));
  }
}

void w_check_same(world *w, const world *other) {
  for (size_t i = 0; i < w->n; i++) {
    const w_region *r = &w->regions[i], *o = &other->regions[i];
    w_check(w, w_same(r->params, o->params, W_PARAMS) && w_same(r->buffers, o->buffers, W_BUFFERS));
  }
}

void w_check_conserved(world *w) {
  for (size_t i = 0; i < w->n; i++)
    for (size_t j = 0; j < W_PARAMS; j++) {
      double expected = (double)w_start(j), size = fabs(expected);
      int64_t updates = 0;
      for (size_t k = 0; k < w->n; k++) {
        const double scale = k == i ? 1 : w->spec.options.scale;
        expected += scale * w->regions[k].kept.given[j];
        size += scale * w->regions[k].kept.moved[j];
        updates += w_view(w, k).steps;
      }
      const double bound = 1.5 * (double)(updates + 1) * (double)FLT_EPSILON * size;
      w_check(w, fabs((double)w->regions[i].params[j] - expected) <= bound);
    }
}

const gt_topology w_topologies[W_TOPOLOGIES] = {GT_TOPOLOGY_MESH, GT_TOPOLOGY_HUB, GT_TOPOLOGY_TREE,
                                                GT_TOPOLOGY_RING, GT_TOPOLOGY_CENTRAL};

void w_place_over(w_spec *spec, gt_topology topology) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 9, 0);
  size_t order[W_REGIONS];
  spec->topology = topology;
  for (size_t i = 0; i < spec->nregions; i++) {
    const size_t at = (size_t)gt_rng_below(&rng, i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (size_t i = 0; i < spec->nregions; i++) {
    size_t next = order[(i + 1) % spec->nregions];
    if (spec->topology == GT_TOPOLOGY_HUB || spec->topology == GT_TOPOLOGY_CENTRAL) next = order[0];
    if (spec->topology == GT_TOPOLOGY_TREE) next = i == 0 ? order[0] : order[gt_rng_below(&rng, i)];
    spec->next[order[i]] = next;
  }
}

void w_place(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 7, 0);
  const size_t known = w_lockstep(spec) ? W_TOPOLOGIES : W_FORWARDING;
  w_place_over(spec, w_topologies[gt_rng_below(&rng, known)]);
}

void w_aggregate(w_spec *spec) {
  const size_t n = spec->nregions, idle = n > 2 ? 1 + spec->seed / 7 % 2 : 1;
  if (spec->seed / 2 % 2) {
    spec->topology = GT_TOPOLOGY_HUB;
    for (size_t i = 0; i < n; i++) spec->next[i] = n - 1;
  }
  if (spec->topology == GT_TOPOLOGY_CENTRAL) spec->topology = GT_TOPOLOGY_HUB;
  for (size_t i = n - idle; i < n; i++) spec->workers[i] = spec->samples[i] = 0;
}

w_spec w_random(const char *strategy, bool local_async, size_t nregions, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 1, nregions);
  static const double rates[] = {0, 1e7, 1e6, 1e5};
  w_spec s = {.strategy = strategy,
              .local_async = local_async,
              .nregions = nregions,
              .seed = seed,
              .test_samples = 25,
              .write_s = 0.1};
  s.options.period = 1 + (int64_t)gt_rng_below(&rng, 5);
  s.outbox = 1 + (size_t)gt_rng_below(&rng, 3);
  s.window = 1 + (size_t)gt_rng_below(&rng, 4);
  s.optim.momentum = gt_rng_below(&rng, 2) ? 0.9 : 0;
  s.by_samples = gt_rng_below(&rng, 2);
  s.batch = 5 + (size_t)gt_rng_below(&rng, 10);
  s.link = (gt_link_spec){.bandwidth_bps = rates[gt_rng_below(&rng, 4)],
                          .latency_s = 0.001 * (double)gt_rng_below(&rng, 40),
                          .jitter_s = 0.001 * (double)gt_rng_below(&rng, 6)};
  for (size_t i = 0; i < nregions; i++) {
    s.workers[i] = 1 + (size_t)gt_rng_below(&rng, W_WORKERS);
    s.samples[i] = 20 + (size_t)gt_rng_below(&rng, 120);
    s.slow[i] = gt_rng_below(&rng, 4) ? 1 : 6;
  }
  return s;
}

w_spec w_random_steps(const char *strategy, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 2, 0);
  w_spec s = {.strategy = strategy,
              .seed = seed,
              .nregions = 1 + (size_t)gt_rng_below(&rng, W_REGIONS),
              .write_s = 0.01,
              .heartbeat = GT_SECOND,
              .keepalive = GT_SECOND};
  const size_t workers = 1 + (size_t)gt_rng_below(&rng, 3);
  const bool weighted = gt_rng_below(&rng, 2), slow = gt_rng_below(&rng, 2);
  for (size_t i = 0; i < s.nregions; i++) {
    s.steps[i] = gt_rng_below(&rng, 6) ? (int64_t)gt_rng_below(&rng, 13) : 0;
    s.weights[i] = weighted ? 0.25 + gt_rng_uniform(&rng) : 0;
    s.workers[i] = workers;
    s.samples[i] = 200;
    s.lag[i] = slow && gt_rng_below(&rng, 3) == 0 ? 40 * W_MS : 2 * W_MS;
  }
  s.local_async = workers > 1;
  s.options.period = 1 + (int64_t)gt_rng_below(&rng, 4);
  s.options.scale = gt_rng_below(&rng, 2) ? 1 : 1 / (double)s.nregions;
  s.outbox = 1 + (size_t)gt_rng_below(&rng, 3);
  s.window = 1 + (size_t)gt_rng_below(&rng, 3);
  s.optim = gt_rng_below(&rng, 2) ? w_sgd(0.05, 0.9) : w_adamw();
  return s;
}
