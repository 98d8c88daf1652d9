/* Advances the world from event to event, and restarts it. */
#include "world_run.h"

static void w_give(world *w, w_region *r, w_worker *worker) {
  for (size_t j = 0; j < W_PARAMS; j++) {
    double update = -gt_optim_lr(r->optim) * (double)worker->grads[j];
    r->sent[j] += update;
    r->moved[j] += update < 0 ? -update : update;
  }
  for (size_t j = 0; j < W_BUFFERS; j++)
    r->buffers[j] += 0.1f * ((float)(r->id + j) - r->buffers[j]);
  worker->work = W_IDLE;
  r->given++;
  gt_sync_on_gradient(r->sync, w->now, gt_vec_of(w->spec.no_data ? NULL : worker->grads, W_PARAMS),
                      W_SAMPLES);
}

/* Copies the current parameters for a worker's computation. */
static void w_snapshot(w_region *r, w_worker *worker) {
  for (size_t j = 0; j < W_PARAMS; j++) worker->grads[j] = w_gradient(r->id, j, r->params[j]);
}

/* The actions of a region between events: gives pending gradients, starts workers, drains,
   announces that it has finished. */
static void w_pump(world *w, w_region *r) {
  for (size_t i = 0; i < w->spec.workers; i++) {
    w_worker *worker = &r->workers[i];
    if (worker->work == W_PENDING && !r->held) w_give(w, r, worker);
    /* A single worker starts on the parameters of the last step; of several, one can start while
       others wait. */
    if (worker->work == W_IDLE && (!r->held || w->spec.workers > 1) &&
        r->assigned < w->spec.steps[r->id]) {
      r->assigned++;
      worker->work = W_COMPUTING;
      worker->ready = w->now + 1 + (gt_ns)gt_rng_below(&w->rng, 40);
      w_snapshot(r, worker);
    }
  }
  if (!r->draining && r->given == w->spec.steps[r->id] && !(w->spec.drain_late && r->held)) {
    r->draining = true;
    gt_sync_on_drain(r->sync, w->now);
  }
  if (r->draining && !r->done && gt_sync_drained(r->sync) && gt_exchange_drained(r->exchange)) {
    r->done = true;
    for (size_t k = 0; k < w->spec.nregions; k++) {
      if (k != r->id) w->links[r->id][k].done_at = w->now + w_delay(w, r->id, k);
    }
  }
}

static void w_pump_all(world *w) {
  for (size_t i = 0; i < w->spec.nregions; i++) w_pump(w, &w->regions[i]);
}

void w_begin(world *w) {
  for (size_t i = 0; i < w->spec.nregions; i++) gt_exchange_start(w->regions[i].exchange);
  w_pump_all(w);
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum { W_NOTHING, W_COMPUTED, W_DEPARTS, W_ARRIVES, W_ACKED, W_DONE } w_kind;

typedef struct {
  w_kind kind;
  gt_ns at;
  size_t a, b, m;
} w_event;

static void w_earlier(w_event *best, w_kind kind, gt_ns at, size_t a, size_t b, size_t m) {
  if (at < best->at) *best = (w_event){kind, at, a, b, m};
}

static w_event w_next(const world *w) {
  w_event best = {.kind = W_NOTHING, .at = GT_NEVER};
  for (size_t a = 0; a < w->spec.nregions; a++) {
    for (size_t i = 0; i < w->spec.workers; i++) {
      const w_worker *worker = &w->regions[a].workers[i];
      if (worker->work == W_COMPUTING) w_earlier(&best, W_COMPUTED, worker->ready, a, 0, i);
    }
    for (size_t b = 0; b < w->spec.nregions; b++) {
      const w_link *link = &w->links[a][b];
      w_earlier(&best, W_DEPARTS, link->depart, a, b, 0);
      for (size_t m = 0; m < link->flying; m++) {
        if (!link->queue[m].here) w_earlier(&best, W_ARRIVES, link->queue[m].arrive, a, b, m);
      }
      if (link->flying && link->queue[0].acked != GT_NEVER)
        w_earlier(&best, W_ACKED, link->queue[0].acked, a, b, 0);
      /* DONE overtakes data; the PS holds it until everything before it has been received. */
      if (link->applied == (uint64_t)gt_outbox_get_view(w->regions[a].outbox, b).sent)
        w_earlier(&best, W_DONE, link->done_at, a, b, 0);
    }
  }
  return best;
}

static void w_tell(w_region *r, size_t peer, gt_peer_event event) {
  gt_sync_on_peer(r->sync, peer, event);
  const gt_exchange *other = r->world->regions[peer].exchange;
  const int64_t count =
      event == GT_PEER_DONE && gt_exchange_ranges(other) ? gt_exchange_count(other, 0) : 0;
  gt_exchange_peer(r->exchange, peer, event, &count);
}

static void w_arrive(world *w, size_t a, size_t b, size_t m) {
  w_link *link = &w->links[a][b];
  w_message *message = &link->queue[m];
  message->here = true;
  if (message->head.sequence <= link->applied) {
    message->acked = w->now + w_delay(w, b, a);
    link->duplicates++;
    return;
  }
  assert_int_equal(message->head.sequence, link->received + 1);
  assert_true((message->head.flags & GT_FRAME_ROUTED) || message->head.value > link->value);
  assert_int_equal(message->head.from, a);
  link->value = message->head.value;
  link->received++;
  link->delivered++;
  link->samples += (int64_t)message->head.detail;
  const w_message got = *message; /* the queue can move */
  gt_outbox_received(w->regions[b].outbox, a, (int64_t)got.head.sequence);
  if (gt_exchange_receive(w->regions[b].exchange, a, &got.head, got.body) == GT_RECEIPT_TAKEN)
    gt_outbox_ack(w->regions[b].outbox, a, 1);
}

static void w_ack(world *w, size_t a, size_t b) {
  w_link *link = &w->links[a][b];
  const uint64_t sequence = link->queue[0].head.sequence;
  link->count--;
  link->flying--;
  memmove(link->queue, link->queue + 1, link->count * sizeof link->queue[0]);
  w_arm(w, a, b);
  assert_true(gt_outbox_acknowledged(w->regions[a].outbox, b, (int64_t)sequence));
}

static void w_depart(world *w, size_t a, size_t b) {
  w_link *link = &w->links[a][b];
  w_message *message = &link->queue[link->flying++];
  gt_ns arrive = w->now + w_delay(w, a, b);
  link->depart = GT_NEVER;
  message->arrive = link->last_arrival =
      arrive > link->last_arrival ? arrive : link->last_arrival + 1;
  w_arm(w, a, b);
  gt_outbox_departed(w->regions[a].outbox, b, message->cookie);
  gt_exchange_room(w->regions[a].exchange, b);
}

bool w_step(world *w) {
  w_event e = w_next(w);
  if (e.kind == W_NOTHING) return false;
  if (e.at > w->now) w->now = e.at;
  w->events++;
  w_link *link = &w->links[e.a][e.b];
  switch (e.kind) {
  case W_COMPUTED:
    w->regions[e.a].workers[e.m].work = W_PENDING;
    break;
  case W_DEPARTS:
    w_depart(w, e.a, e.b);
    break;
  case W_ARRIVES:
    w_arrive(w, e.a, e.b, e.m);
    break;
  case W_ACKED:
    w_ack(w, e.a, e.b);
    break;
  case W_DONE:
    link->done_at = GT_NEVER;
    link->done_here = true;
    w_tell(&w->regions[e.b], e.a, GT_PEER_DONE);
    break;
  case W_NOTHING:
    break;
  }
  w_pump_all(w);
  return true;
}

void w_assert_finished(const world *w) {
  for (size_t i = 0; i < w->spec.nregions; i++) {
    const w_region *r = &w->regions[i];
    if (r->given != w->spec.steps[i] || !r->done || r->held || !gt_exchange_settled(r->exchange)) {
      fail_msg("%s seed %llu: region %zu of %zu stands after %lld of %lld steps (done %d, held %d, "
               "settled %d)",
               w->spec.strategy, (unsigned long long)w->spec.seed, i, w->spec.nregions,
               (long long)r->given, (long long)w->spec.steps[i], r->done, r->held,
               gt_exchange_settled(r->exchange));
    }
    assert_int_equal(gt_outbox_unacknowledged(r->outbox), 0);
    for (size_t k = 0; k < w->spec.nregions; k++) {
      if (k != i) assert_true(w->links[i][k].done_here && w->links[i][k].count == 0);
    }
  }
}

void w_run_on(world *w) {
  while (w_step(w)) assert_true(w->events < 1000000);
  w_assert_finished(w);
}

world *w_run(const w_spec *spec) {
  world *w = w_open(spec);
  w_begin(w);
  w_run_on(w);
  return w;
}

w_spec w_random(const char *strategy, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 1, 0);
  w_spec spec = {.strategy = strategy,
                 .seed = seed,
                 .nregions = 1 + (size_t)gt_rng_below(&rng, 5),
                 .period = 1 + (int64_t)gt_rng_below(&rng, 4)};
  bool weighted = gt_rng_below(&rng, 2), slow = gt_rng_below(&rng, 2);
  for (size_t i = 0; i < spec.nregions; i++) {
    spec.steps[i] = gt_rng_below(&rng, 6) ? (int64_t)gt_rng_below(&rng, 13) : 0;
    spec.weights[i] = weighted ? 0.25 + gt_rng_uniform(&rng) : 0;
    spec.slow[i] = slow && gt_rng_below(&rng, 3) == 0 ? 20 : 1;
  }
  spec.scale = gt_rng_below(&rng, 2) ? 1 : 1 / (double)spec.nregions;
  spec.outbox = 1 + (size_t)gt_rng_below(&rng, 3);
  spec.window = 1 + (size_t)gt_rng_below(&rng, 3);
  spec.workers = 1 + (size_t)gt_rng_below(&rng, W_WORKERS);
  spec.drain_late = gt_rng_below(&rng, 2);
  spec.optim = gt_rng_below(&rng, 2) ? w_sgd(0.05, 0.9) : w_adamw();
  return spec;
}

/* ---- restart --------------------------------------------------------------------------------- */

/* Copies everything that a region's strategy and optimizer save. */
static gt_state w_saved(w_region *r) {
  gt_state lent = {0}, copy = {.owns_data = true};
  gt_sync_state(r->sync, (gt_state_direction){.to = &lent});
  gt_optim_save(r->optim, "", &lent);
  gt_outbox_save(r->outbox, &lent);
  for (size_t i = 0; i < lent.n; i++) {
    const gt_state_item *item = &lent.items[i];
    size_t size = item->count * gt_type_size(item->type);
    void *data = gt_alloc(size ? size : 1, 1);
    if (size && item->data) memcpy(data, item->data, size);
    gt_state_add(&copy, "", item->name, item->type, data, item->count);
  }
  gt_state_close(&lent);
  return copy;
}

static size_t w_whole(const void *ctx, const gt_frame_header *head) {
  (void)ctx;
  return (head->kind == GT_MSG_STATE ? W_MODEL : W_PARAMS) * sizeof(float);
}

/* Drops everything in flight from the region; its outbox resends what it has saved. */
static void w_send_again(world *w, w_region *r, const gt_state *state) {
  for (size_t b = 0; b < w->spec.nregions; b++) w->links[r->id][b].count = 0;
  gt_outbox_close(r->outbox);
  w_open_outbox(w, r);
  w->resending = true;
  assert_int_equal(gt_outbox_load(r->outbox, state, 0, w_whole, NULL), GT_OK);
  w->resending = false;
}

/* Replaces a region's strategy and optimizer by new ones that load the saved state; on_start must
   request the same hold. */
static void w_restart_region(world *w, w_region *r, bool crash) {
  gt_state state = w_saved(r);
  bool held = r->held;
  gt_sync_close(r->sync);
  gt_exchange_close(r->exchange);
  gt_optim_close(r->optim);
  if (crash) w_send_again(w, r, &state);
  w_create_strategy(w, r);
  assert_int_equal(gt_sync_state(r->sync, (gt_state_direction){.from = &state}), GT_OK);
  assert_int_equal(gt_optim_load(r->optim, "", &state), GT_OK);
  gt_state_close(&state);
  r->held = false;
  gt_exchange_start(r->exchange);
  if (r->draining) gt_sync_on_drain(r->sync, w->now);
  /* another region's update that found no space is lost, and is sent again */
  assert_true(r->held == held || (crash && !r->held));
}

/* After a resume every region announces it, and regions that had finished announce that again.  No
   training is extended here, so no round is the first of a region. */
static void w_rejoin(world *w) {
  for (size_t a = 0; a < w->spec.nregions; a++)
    for (size_t b = 0; b < w->spec.nregions; b++) {
      if (a == b) continue;
      w_tell(&w->regions[b], a, GT_PEER_JOINED);
      if (w->links[a][b].done_here) w_tell(&w->regions[b], a, GT_PEER_DONE);
    }
}

void w_restart(world *w, bool crash) {
  w->crashed |= crash;
  for (size_t a = 0; crash && a < w->spec.nregions; a++) {
    for (size_t b = 0; b < w->spec.nregions; b++) {
      w_link *link = &w->links[a][b];
      link->flying = 0;
      link->received = link->applied;
      link->depart = GT_NEVER;
      if (a != b && w->regions[a].done) link->done_at = w->now + w_delay(w, a, b);
    }
    for (size_t i = 0; i < w->spec.workers; i++) {
      if (w->regions[a].workers[i].work == W_COMPUTING)
        w_snapshot(&w->regions[a], &w->regions[a].workers[i]);
    }
  }
  for (size_t a = 0; a < w->spec.nregions; a++) w_restart_region(w, &w->regions[a], crash);
  w_rejoin(w);
  w_pump_all(w);
}
