/* The world moves, crashes and comes back. */
#include "world_run.h"
#include "../strategies.h"

/* ---- opening and closing --------------------------------------------------------------------- */

static void w_open_ps(world *w, w_region *r, int64_t round) {
  const w_spec *s = &w->spec;
  gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD,
                       .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.02, .gamma = 1},
                       .momentum = s->momentum};
  assert_int_equal(gt_optim_create(&r->optim, &sgd, W_PARAMS, !s->no_data), GT_OK);
  gt_ps_spec spec = {.nregions = w->n,
                     .self = r->id,
                     .nworkers = s->workers[r->id],
                     .local_async = s->local_async,
                     .strategy = s->ops ? s->ops : sync_named(s->strategy),
                     .topology = s->topology,
                     .next = s->next,
                     .workers = s->workers,
                     .piece = W_PIECE,
                     .weights = w->weights,
                     .options = {.period = s->period, .scale = 1},
                     .outbox = s->outbox,
                     .window = s->window,
                     .params = gt_vec_of(s->no_data ? NULL : r->params, W_PARAMS),
                     .grads = gt_vec_of(s->no_data ? NULL : r->grads, W_PARAMS),
                     .buffers = gt_vec_of(s->no_data ? NULL : r->buffers, W_BUFFERS),
                     .optim = r->optim,
                     .order = w_order_of(s, r->id),
                     .until = s->until,
                     .eval_every = s->eval_every,
                     .checkpoint_every = s->checkpoint_every,
                     .test_samples = s->test_samples,
                     .ranking = gt_ranking_of("", 2),
                     .test_labels = w_labels(),
                     .snapshot = gt_vec_of(s->no_data ? NULL : r->snapshot, W_PARAMS),
                     .snapshot_buffers =
                         gt_vec_of(s->no_data ? NULL : r->snapshot + W_PARAMS, W_BUFFERS),
                     .eval_chunk = 10,
                     .nonfinite_limit = s->nonfinite_limit,
                     .wan_bytes_limit = s->wan_bytes_limit,
                     .heartbeat = s->heartbeat,
                     .keepalive = s->keepalive,
                     .round = round,
                     .host = {.ctx = r,
                              .send = w_send,
                              .replace = w_replace,
                              .order = w_order,
                              .taken = w_taken,
                              .checkpoint = w_checkpoint,
                              .whole = w_whole,
                              .note = w_note,
                              .decided = w_decided}};
  r->ps = gt_ps_create(&spec);
}

static void w_fresh(world *w, w_region *r) {
  for (size_t j = 0; j < W_PARAMS; j++) r->params[j] = 2.0f - 0.5f * (float)j;
  for (size_t j = 0; j < W_BUFFERS; j++) r->buffers[j] = (float)r->id;
  memset(r->trained, 0, sizeof r->trained);
  (void)w;
}

/* Workers come up, links are quiet. */
static void w_quiet(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    w_region *r = &w->regions[i];
    r->writing = 0;
    r->written_at = GT_NEVER;
    for (size_t k = 0; k < w->spec.workers[i]; k++)
      r->workers[k] = (w_worker){
          .work = W_STARTING, .ready = w->now + (gt_ns)gt_rng_below(&w->rng, 5 * (uint64_t)W_MS)};
    for (size_t k = 0; k < w->n; k++) {
      w_link *link = &w->links[i][k];
      memset(link, 0, sizeof *link);
      link->state = gt_link_start(w->spec.seed + (uint64_t)w->restarts, i, k, 0);
      link->state.busy_until = link->state.last_arrival = w->now;
    }
  }
}

static world *w_current;
static void w_on_bug(const char *text) {
  fprintf(stderr, "%s\n", text);
  w_print(w_current);
  abort();
}

world *w_open(const w_spec *spec) {
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  w_current = w;
  gt_on_bug(w_on_bug);
  w->spec = *spec;
  w_spec *s = &w->spec;
  if (!s->batch) s->batch = 10;
  if (!s->outbox) s->outbox = 2;
  if (!s->window) s->window = 2;
  if (!s->period) s->period = 1;
  if (!s->nonfinite_limit) s->nonfinite_limit = 3;
  if (!s->heartbeat) s->heartbeat = GT_SECOND / 10;
  if (!s->keepalive) s->keepalive = GT_SECOND / 5;
  w->n = s->nregions;
  w->rng = gt_rng_make(s->seed, GT_RNG_TEST, 7, 0);
  double total = 0;
  for (size_t i = 0; i < w->n; i++)
    total += w->weights[i] = s->by_samples ? (double)s->samples[i] : s->workers[i] > 0;
  for (size_t i = 0; i < w->n; i++) w->weights[i] /= total;
  w_quiet(w);
  for (size_t i = 0; i < w->n; i++) {
    w_region *r = &w->regions[i];
    r->world = w;
    r->id = i;
    w_fresh(w, r);
    w_open_ps(w, r, 0);
  }
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
  return w;
}

static void w_drop(w_region *r) {
  gt_ps_close(r->ps);
  gt_optim_close(r->optim);
}

void w_close(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    w_drop(&w->regions[i]);
    while (w->regions[i].ncopies) w_forget_copy(&w->regions[i], 0);
  }
  free(w);
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum { E_NONE, E_WORKER, E_DEPART, E_GONE, E_ARRIVE, E_WRITTEN, E_TICK } w_kind;
typedef struct {
  w_kind kind;
  gt_ns at;
  size_t a, b;
} w_event;

static void w_earlier(w_event *best, w_kind kind, gt_ns at, size_t a, size_t b) {
  if (at < best->at) *best = (w_event){kind, at, a, b};
}

static w_event w_next(world *w) {
  w_event best = {.kind = E_NONE, .at = GT_NEVER};
  for (size_t a = 0; a < w->n; a++) {
    w_region *r = &w->regions[a];
    bool stopped = w_look(w, a).phase == GT_PS_STOPPED;
    for (size_t k = 0; k < w->spec.workers[a] && !stopped; k++)
      if (r->workers[k].work != W_IDLE && r->workers[k].work != W_PUSHED)
        w_earlier(&best, E_WORKER, r->workers[k].ready, a, k);
    w_earlier(&best, E_WRITTEN, r->written_at, a, 0);
    if (!stopped) w_earlier(&best, E_TICK, gt_ps_next(r->ps), a, 0);
    for (size_t b = 0; b < w->n; b++) {
      w_link *link = &w->links[a][b];
      w_serve(w, a, b);
      if (link->leaving) w_earlier(&best, E_DEPART, link->depart, a, b);
      if (link->air.count) w_earlier(&best, E_ARRIVE, w_at(&link->air, 0)->at, a, b);
      if (link->ngone) w_earlier(&best, E_GONE, link->gone[0].at, a, b);
    }
  }
  return best;
}

static void w_answer(world *w, w_region *r, size_t k) {
  w_worker *worker = &r->workers[k];
  w_work work = worker->work;
  worker->work = W_IDLE;
  worker->heard = w->now; /* its patience begins */
  if (work == W_STARTING) {
    gt_ps_ready(r->ps, k, w->now);
  } else if (work == W_EVALUATING) {
    float scores[W_TEST];
    for (int64_t i = 0; i < worker->count; i++) scores[i] = w_score(worker->first + i);
    if (!w->spec.no_data) assert_ptr_equal(worker->model, r->snapshot);
    gt_ps_push push = {.samples = worker->count,
                       .correct = worker->count / 2,
                       .loss_sum = (double)worker->count,
                       .scores = scores};
    gt_ps_evaluated(r->ps, k, &push, w->now);
  } else {
    gt_order order = w_order_of(&w->spec, r->id);
    gt_ps_push push = {.samples = (int64_t)gt_order_batch_size(&order, worker->batch),
                       .compute = W_MS};
    push.loss_sum = (double)push.samples;
    push.nonfinite = r->id == 0 && w->spec.bad_every &&
                     worker->batch % w->spec.bad_every == w->spec.bad_every - 1;
    if (push.nonfinite) worker->grads[0] = INFINITY;
    worker->work = W_PUSHED;
    worker->lent = true;
    gt_ps_gradient(r->ps, k, &push, w->spec.no_data ? NULL : worker->grads, w->now);
  }
}

static void w_arrive(world *w, size_t a, size_t b) {
  w_frame f = w_pop(&w->links[a][b].air);
  if (w_look(w, b).phase == GT_PS_STOPPED) return; /* it has gone home */
  w_link *link = &w->links[a][b];
  if (f.cookie && (int64_t)f.head.sequence == link->applied + 1 &&
      w_look(w, b).stop_code == GT_OK) {
    link->applied++;
    link->applied_value = (int64_t)f.head.value;
  }
  if (gt_ps_message(w->regions[b].ps, a, &f.head, f.bytes && !w->spec.no_data ? f.body : NULL,
                    w->now) != GT_OK) {
    w_print(w);
    fail_msg("%s", gt_error_text());
  }
}

static void w_gone(world *w, size_t a, size_t b) {
  w_link *link = &w->links[a][b];
  uint64_t cookie = link->gone[0].cookie;
  memmove(link->gone, link->gone + 1, --link->ngone * sizeof link->gone[0]);
  if (w_look(w, a).phase != GT_PS_STOPPED) gt_ps_departed(w->regions[a].ps, b, cookie, w->now);
}

static void w_written(world *w, w_region *r) {
  int64_t round = r->writing;
  r->writing = 0;
  r->written_at = GT_NEVER;
  r->copies[r->ncopies - 1].durable = true;
  gt_ps_written(r->ps, round, w->now);
}

void w_check_bounds(world *w) {
  bool replaces = strcmp(w->spec.strategy, "ama") == 0;
  const bool forwards = w->spec.topology != GT_TOPOLOGY_MESH; /* in outboxes of their own */
  const size_t unit = forwards ? (W_MODEL + W_PIECE - 1) / W_PIECE : 1;
  const size_t forwarded = w->spec.outbox > 1 ? w->spec.outbox : 2;
  const size_t outbox = (w->spec.outbox + (forwards ? forwarded : 0)) * unit,
               window = w->spec.window * unit, resent = w->restarts ? outbox + window + 2 : 0;
  for (size_t i = 0; i < w->n; i++) {
    for (size_t k = 0; k < w->n; k++) {
      if (i == k) continue;
      gt_ps_link link;
      gt_ps_look_link(w->regions[i].ps, k, &link);
      w_check(w, link.queued <= outbox + replaces * (1 + window) + resent);
      w_check(w, link.unacknowledged <= outbox + window + 2 * replaces + resent);
      w_check(w, link.queued <= link.unacknowledged);
    }
    for (size_t k = 0; k < w->spec.workers[i]; k++) {
      const w_worker *worker = &w->regions[i].workers[k];
      bool waits = worker->work == W_IDLE || worker->work == W_PUSHED;
      if (waits && w_look(w, i).phase != GT_PS_STOPPED)
        w_check(w, w->now - worker->heard <= w->spec.keepalive);
    }
  }
}

bool w_step(world *w) {
  w_event e = w_next(w);
  if (e.kind == E_NONE) return false;
  if (e.at > w->now) w->now = e.at;
  w->events++;
  w_region *r = &w->regions[e.a];
  switch (e.kind) {
  case E_WORKER:
    w_answer(w, r, e.b);
    break;
  case E_DEPART:
    w_depart(w, e.a, e.b);
    break;
  case E_GONE:
    w_gone(w, e.a, e.b);
    break;
  case E_ARRIVE:
    w_arrive(w, e.a, e.b);
    break;
  case E_WRITTEN:
    w_written(w, r);
    break;
  case E_TICK:
    gt_ps_tick(r->ps, w->now);
    break;
  case E_NONE:
    break;
  }
  w_check_bounds(w);
  return true;
}

void w_run_until(world *w, gt_ps_phase phase) {
  gt_ns limit = w->now + 600 * GT_SECOND;
  while (!w_all_in(w, phase)) w_check(w, w_step(w) && w->now < limit);
}

/* ---- crash and resume ------------------------------------------------------------------------ */

w_copy *w_find_copy(w_region *r, int64_t round) {
  for (size_t i = 0; i < r->ncopies; i++)
    if (r->copies[i].round == round && r->copies[i].durable) return &r->copies[i];
  return NULL;
}

int64_t w_whole_round(world *w, int64_t *newest) {
  int64_t whole = 0;
  *newest = 0;
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->regions[i].ncopies; k++) {
      int64_t round = w->regions[i].copies[k].round;
      bool all = true;
      if (w->regions[i].copies[k].durable && round > *newest) *newest = round;
      for (size_t p = 0; p < w->n; p++) all &= w_find_copy(&w->regions[p], round) != NULL;
      if (all && round > whole) whole = round;
    }
  return whole;
}

static void w_load(world *w, w_region *r, int64_t round, int64_t newest) {
  while (r->ncopies &&
         (r->copies[r->ncopies - 1].round > round || !r->copies[r->ncopies - 1].durable))
    w_forget_copy(r, r->ncopies - 1);
  w_fresh(w, r);
  w_open_ps(w, r, newest);
  if (round == 0) return;
  w_copy *c = w_find_copy(r, round);
  assert_non_null(c);
  memcpy(r->trained, c->trained, sizeof r->trained);
  for (size_t i = 0; i < w->n; i++) {
    w->links[i][r->id].applied = c->applied[i];
    w->links[i][r->id].applied_value = c->applied_value[i];
    w->links[r->id][i].posted_value = c->posted_value[i];
  }
  assert_int_equal(gt_state_get(&c->state, "model/", "params", GT_TYPE_F32, r->params, W_PARAMS),
                   GT_OK);
  assert_int_equal(gt_state_get(&c->state, "model/", "buffers", GT_TYPE_F32, r->buffers, W_BUFFERS),
                   GT_OK);
  if (gt_ps_load(r->ps, w->now, &c->state) != GT_OK) {
    w_print(w);
    fail_msg("%s", gt_error_text());
  }
}

int64_t w_crash(world *w) {
  int64_t newest, round = w_whole_round(w, &newest);
  w->restarts++;
  for (size_t i = 0; i < w->n; i++) w_drop(&w->regions[i]);
  w_quiet(w);
  for (size_t i = 0; i < w->n; i++) w_load(w, &w->regions[i], round, newest);
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
  return round;
}
