/* The world: the services for its PSs, its events, crashes and resumes. */
#include "world.h"

/* ---- rings ----------------------------------------------------------------------------------- */

static w_frame *at(w_ring *ring, size_t k) {
  return &ring->frames[(ring->head + k) % ring->capacity];
}

static void push(w_ring *ring, const w_frame *frame) {
  if (ring->count == ring->capacity) {
    w_ring more = {.capacity = 2 * ring->capacity + 4, .count = ring->count};
    more.frames = malloc(more.capacity * sizeof *more.frames); /* tests count gt_alloc's */
    assert_non_null(more.frames);
    for (size_t k = 0; k < ring->count; k++) more.frames[k] = *at(ring, k);
    free(ring->frames);
    *ring = more;
  }
  *at(ring, ring->count++) = *frame;
}

static w_frame pop(w_ring *ring) {
  w_frame frame = *at(ring, 0);
  ring->head = (ring->head + 1) % ring->capacity;
  ring->count--;
  return frame;
}

/* ---- views ----------------------------------------------------------------------------------- */

gt_ps_view w_view(const world *w, size_t region) {
  gt_ps_view view;
  gt_ps_get_view(w->regions[region].ps, w->now, &view);
  return view;
}

void w_print(const world *w) {
  static const char *const phases[] = {"training", "draining", "following", "complete", "stopped"};
  const w_spec *s = &w->spec;
  fprintf(stderr,
          "%s %s over %s, seed %llu, %zu regions, %zu copies, period %lld, outbox %zu, window %zu, "
          "clip %g, at %.3f s, %lld events, %lld restarts\n",
          s->strategy ? s->strategy : "", s->local_async ? "async" : "sync",
          gt_topology_names[s->topology], (unsigned long long)s->seed, w->n, s->replicas,
          (long long)s->options.period, s->outbox, s->window, s->clip, gt_seconds(w->now),
          (long long)w->events, (long long)w->restarts);
  for (size_t i = 0; i < w->n; i++) {
    gt_ps_view v = w_view(w, i);
    fprintf(stderr,
            "  region %zu%s: epoch %lld of %zu%s%s%s, %s%s%s, %lld steps, %lld batches, %lld "
            "samples, round %lld whole %lld stop %d\n",
            i, w->regions[i].dead ? " dead" : "", (long long)v.epoch, v.members,
            v.entering ? " entering" : "", v.minority ? " minority" : "", v.out ? " out" : "",
            phases[v.phase], v.held ? " held" : "", v.evaluating ? " evaluating" : "",
            (long long)v.steps, (long long)v.batches, (long long)v.samples, (long long)v.round,
            (long long)v.whole_round, (int)v.stop_code);
  }
}

/* ---- gateway --------------------------------------------------------------------------------- */

gt_ns w_below(world *w, gt_ns n) {
  return (gt_ns)gt_rng_below(&w->rng, (uint64_t)n);
}

/* With random delays: not before earlier messages. */
static gt_ns arrival(world *w, w_link *link, bool data) {
  gt_ns when = w->now + link->delay[data] + w_below(w, link->delay[data]);
  for (size_t d = 0; d <= data; d++)
    if (when < link->last[d]) when = link->last[d];
  return link->last[data] = when;
}

/* Copies the borrowed body. */
static void take_body(w_frame *f) {
  void *to = f->body.floats;
  if (f->borrowed && f->bytes > sizeof f->body) {
    to = f->big = malloc(f->bytes);
    assert_non_null(to);
  }
  if (f->borrowed) memcpy(to, f->borrowed, f->bytes);
  f->borrowed = NULL;
}

static void clear(w_ring *ring) {
  while (ring->count) free(pop(ring).big);
}

void w_clear_queues(w_link *link) {
  clear(&link->control);
  clear(&link->data);
  if (link->leaving) free(link->current.big);
  link->leaving = false;
  link->ngone = 0;
}

void w_clear_link(w_link *link) {
  w_clear_queues(link);
  clear(&link->air[0]);
  clear(&link->air[1]);
}

static void host_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                      size_t bytes, uint64_t cookie) {
  w_region *r = ctx;
  world *w = r->world;
  w_link *link = &w->links[r->id][peer];
  const bool data = gt_msg_is_data(head->kind), bulk = data || head->kind == GT_MSG_GROUP;
  w_frame f = {.head = *head, .borrowed = payload, .bytes = bytes, .cookie = cookie};
  assert_true(peer < w->n && peer != r->id);
  assert_true((cookie != 0) == bulk && (payload || !bytes || w->spec.no_data));
  f.head.from = (uint16_t)r->id;
  f.head.message_bytes = bytes;
  if (data) {
    r->kept.posted_value[peer] = (int64_t)head->value;
    w->bytes += (double)gt_message_wire_bytes(head, bytes);
    if (w->problem->post) w->problem->post(r, peer, &f);
  }
  if (link->down) return;
  if (!bulk) take_body(&f);
  if (bulk || !link->delay[0]) {
    push(bulk ? &link->data : &link->control, &f);
    return;
  }
  f.at = arrival(w, link, false);
  push(&link->air[0], &f);
}

static bool host_drop(void *ctx, size_t peer, uint64_t cookie) {
  w_region *r = ctx;
  w_ring *queue = &r->world->links[r->id][peer].data;
  for (size_t k = 0; k < queue->count; k++) {
    if (at(queue, k)->cookie != cookie) continue;
    for (queue->count--; k < queue->count; k++) *at(queue, k) = *at(queue, k + 1);
    r->world->replaced++;
    return true;
  }
  return false;
}

/* Draws a departure: a model waits for others to leave, so that a newer one can replace it. */
static gt_ns random_departure(world *w) {
  return w->now + 1 + w_below(w, strcmp(w->spec.strategy, "ama") == 0 ? 8 * W_MS : W_MS);
}

/* A message begins to leave: control first, then data. */
static void serve(world *w, size_t from, size_t to) {
  w_link *link = &w->links[from][to];
  if (link->leaving || link->cut || link->control.count + link->data.count == 0) return;
  link->leaving = true;
  link->current = pop(link->control.count ? &link->control : &link->data);
  if (link->delay[1]) {
    link->depart = random_departure(w);
    return;
  }
  gt_link_times t =
      gt_link_step(&link->state, &w->spec.link, NULL, gt_wire_bytes(link->current.bytes), w->now);
  link->depart = t.depart;
  link->arrive = t.arrive;
}

/* A message has left: its payload is no longer borrowed. */
static void depart(world *w, size_t from, size_t to) {
  w_link *link = &w->links[from][to];
  w_frame *f = &link->current;
  take_body(f);
  f->at = link->delay[1] ? arrival(w, link, true) : link->arrive;
  if (f->cookie) {
    link->data_sent += gt_msg_is_data(f->head.kind);
    link->bytes_sent += (double)gt_message_wire_bytes(&f->head, f->bytes);
    if (from == 0 && w->spec.poison && link->data_sent == w->spec.poison) f->body.floats[1] = NAN;
    assert_true(link->ngone < W_GONE);
    gt_ns when = w->now + w_below(w, 4) * W_MS;
    if (link->ngone && link->gone[link->ngone - 1].at > when) when = link->gone[link->ngone - 1].at;
    link->gone[link->ngone].cookie = f->cookie;
    link->gone[link->ngone++].at = when;
  }
  push(&link->air[1], f);
  link->leaving = false;
}

/* ---- local plane ----------------------------------------------------------------------------- */

static void host_order(void *ctx, size_t index, const gt_ps_order *o) {
  w_region *r = ctx;
  w_worker *worker = &r->workers[index];
  assert_true(index < r->nworkers);
  worker->heard = r->world->now;
  if (o->kind == GT_PS_KEEPALIVE) {
    assert_true(worker->work == W_IDLE || worker->work == W_PUSHED);
    r->keepalives++;
    return;
  }
  assert_true(worker->work == W_IDLE && !worker->lent);
  assert_true(o->kind == GT_PS_TRAIN || o->kind == GT_PS_EVAL || o->kind == GT_PS_VALIDATE);
  worker->validates = o->kind == GT_PS_VALIDATE;
  r->orders++;
  worker->ready = r->world->now + r->world->problem->compute_time(r);
  if (o->kind == GT_PS_TRAIN) {
    assert_true(o->first >= 0 && o->first < W_BATCHES && o->params.n == r->nparams);
    worker->batch = o->first;
    r->wan_wait += o->wan_wait;
  } else {
    worker->first = o->first;
    worker->count = o->count;
  }
  r->world->problem->order(r, worker, o);
  worker->work = o->kind == GT_PS_TRAIN ? W_TRAINING : W_SCORING;
}

/* The gradient must not be read any more. */
static void host_taken(void *ctx, size_t index) {
  w_region *r = ctx;
  w_worker *worker = &r->workers[index];
  assert_true(worker->lent && worker->work == W_PUSHED);
  if (r->world->problem->taken) r->world->problem->taken(r, worker);
  worker->lent = false;
  worker->work = W_IDLE;
  for (size_t j = 0; j < P_PARAMS; j++) worker->grads[j] = NAN;
  for (size_t j = 0; j < P_BUFFERS; j++) worker->buffers[j] = NAN;
  r->kept.trained[worker->batch]++;
  r->ever[worker->batch]++;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* Returns a copy that owns the data of the list. */
static gt_state deep_copy(const gt_state *lent) {
  gt_state copy = {.owns_data = true};
  for (size_t i = 0; i < lent->n; i++) {
    const gt_state_item *item = &lent->items[i];
    size_t size = item->count * gt_type_size(item->type);
    void *data = gt_alloc(size ? size : 1, 1);
    if (size && item->data) memcpy(data, item->data, size);
    gt_state_add(&copy, "", item->name, item->type, data, item->count);
  }
  return copy;
}

void w_forget_copy(w_region *r, size_t i) {
  gt_state_close(&r->copies[i].state);
  r->ncopies--;
  memmove(r->copies + i, r->copies + i + 1, (r->ncopies - i) * sizeof r->copies[0]);
}

static void host_work(void *ctx, gt_ps_work work, double part) {
  if (work == GT_WORK_APPLY) ((w_region *)ctx)->applied += part;
}

static void host_checkpoint(void *ctx, int64_t round) {
  w_region *r = ctx;
  world *w = r->world;
  gt_state lent = {0};
  w_check(w, r->writing == 0);
  if (w->problem->checkpoint) w->problem->checkpoint(r, round);
  r->copies = realloc(r->copies, (r->ncopies + 1) * sizeof *r->copies);
  assert_non_null(r->copies);
  w_copy *c = &r->copies[r->ncopies++];
  r->kept.steps = w_view(w, r->id).steps;
  if (round < W_ROUNDS) w->judged[round].steps += r->kept.steps;
  gt_state_add(&lent, "model/", "params", GT_TYPE_F32, r->params, r->nparams);
  gt_state_add(&lent, "model/", "buffers", GT_TYPE_F32, r->buffers, r->nbuffers);
  gt_ps_save(r->ps, &lent);
  *c = (w_copy){.round = round, .state = deep_copy(&lent), .kept = r->kept};
  gt_state_close(&lent);
  if (r->id == 0 && round == w->spec.unsound) gt_ps_round_unsound(r->ps);
  r->writing = round;
  r->rounds++;
  r->written_at = w->now + 1 + (gt_ns)(w->spec.write_s * 1e9 * gt_rng_uniform(&w->rng));
}

w_copy *w_find_copy(w_region *r, int64_t round) {
  for (size_t i = 0; i < r->ncopies; i++)
    if (r->copies[i].round == round && r->copies[i].durable) return &r->copies[i];
  return NULL;
}

/* The round is durable in every region. */
static void host_whole(void *ctx, int64_t round) {
  w_region *r = ctx;
  world *w = r->world;
  r->wholes++;
  w_check(w, w->spec.change || gt_ps_whole_sound(r->ps) == (round != w->spec.unsound));
  for (size_t i = 0; i < w->n && !w_view(w, r->id).minority && !w_view(w, r->id).out; i++)
    w_check(w, !gt_ps_is_member(r->ps, i) || w->regions[i].dead ||
                   w_find_copy(&w->regions[i], round) ||
                   w_view(w, i).epoch > w_view(w, r->id).epoch); /* it has continued since */
  while (r->ncopies && r->copies[0].round < round - 1) w_forget_copy(r, 0);
}

/* All regions judge a round alike, also if a crash makes them repeat it. */
static void judged(w_region *r, size_t round) {
  const gt_ps_view v = w_view(r->world, r->id);
  assert_true(round > 0 && round < W_ROUNDS && (int64_t)round == v.judged);
  w_judged *j = &r->world->judged[round];
  const w_judged own = {v.best_round, j->steps, v.judged_loss, v.best_loss};
  if (j->loss == 0) *j = own;
  w_check(r->world, j->best == own.best && j->best_loss == own.best_loss);
  w_check(r->world, j->loss == own.loss || (isnan(j->loss) && isnan(own.loss)));
  if ((int64_t)round == r->world->spec.unsound) w_check(r->world, isnan(own.loss));
}

static void host_note(void *ctx, gt_ps_note note, double a, double b) {
  w_region *r = ctx;
  if (note == GT_NOTE_JUDGED) judged(r, (size_t)a);
  if (note == GT_NOTE_EVAL) r->evals++;
  if (note == GT_NOTE_NONFINITE && b >= 0) r->nonfinite++;
  if (note == GT_NOTE_NONFINITE && b < 0) r->nonfinite_messages++;
  if (r->world->problem->note) r->world->problem->note(r, note, b);
}

static void host_decided(void *ctx, const char *what, const char *choice, const char *why) {
  w_region *r = ctx;
  assert_true(what && choice && why);
  r->decisions++;
}

/* ---- opening and closing --------------------------------------------------------------------- */

void w_open_ps(w_region *r, int64_t round, bool returns) {
  const w_spec *s = &r->world->spec;
  gt_ps_spec spec = {.nregions = r->world->n,
                     .self = r->id,
                     .nworkers = r->nworkers,
                     .topology = s->topology,
                     .weights = r->world->weights,
                     .outbox = s->outbox,
                     .window = s->window,
                     .eval_every = s->eval_every,
                     .checkpoint_every = s->checkpoint_every,
                     .test_samples = s->test_samples,
                     .validates = s->validation > 0,
                     .validation = r->nworkers > 0 ? s->validation : 0,
                     .patience = s->patience,
                     .nonfinite_limit = s->nonfinite_limit,
                     .wan_bytes_limit = s->wan_bytes_limit,
                     .heartbeat = s->heartbeat,
                     .keepalive = s->keepalive,
                     .round = round,
                     .members = {.change = s->change,
                                 .tie = s->tie,
                                 .incarnation = ++r->incarnation,
                                 .returns = returns,
                                 .promised = r->promised},
                     .host = {.ctx = r,
                              .gateway = {r, host_send, host_drop},
                              .order = host_order,
                              .taken = host_taken,
                              .checkpoint = host_checkpoint,
                              .whole = host_whole,
                              .note = host_note,
                              .decided = host_decided,
                              .work = host_work,
                              .epoch = w_host_epoch,
                              .place = w_host_place,
                              .fault = w_host_fault}};
  r->kept = (w_kept){0};
  r->world->problem->begin(r, &spec);
  spec.options.regroups = s->change;
  if (!s->no_data) {
    spec.params = gt_vec_of(r->params, r->nparams);
    spec.grads = gt_vec_of(r->grads, r->nparams);
    spec.buffers = gt_vec_of(r->buffers, r->nbuffers);
    spec.snapshot = gt_vec_of(r->snapshot, r->nparams);
    spec.snapshot_buffers = gt_vec_of(r->snapshot + r->nparams, r->nbuffers);
  } else {
    spec.params = spec.grads = spec.snapshot = gt_vec_of(NULL, r->nparams);
    spec.buffers = spec.snapshot_buffers = gt_vec_of(NULL, r->nbuffers);
  }
  spec.optim = r->optim;
  r->ps = gt_ps_create(&spec);
}

void w_start_workers(w_region *r) {
  world *w = r->world;
  for (size_t k = 0; k < r->nworkers; k++)
    r->workers[k] = (w_worker){.work = W_STARTING, .ready = w->now + w_below(w, 5 * W_MS)};
}

/* Starts the workers; links are quiet. */
void w_quiet(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    w_region *r = &w->regions[i];
    r->writing = 0;
    r->written_at = GT_NEVER;
    w_start_workers(r);
    for (size_t k = 0; k < w->n; k++) {
      w_link *link = &w->links[i][k];
      w_clear_link(link);
      link->notice = link->heal = GT_NEVER;
      link->data_sent = 0;
      link->bytes_sent = 0;
      link->last[0] = link->last[1] = 0;
      link->state = gt_link_start(w->spec.seed + (uint64_t)w->restarts, i, k, 0);
      link->state.busy_until = link->state.last_arrival = w->now;
    }
  }
}

static world *current;
static void on_bug(const char *text) {
  fprintf(stderr, "%s\n", text);
  w_print(current);
  abort();
}

world *w_open(const w_spec *spec) {
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  current = w;
  gt_on_bug(on_bug);
  w->spec = *spec;
  w->problem = spec->places ? &w_pipe : &w_plain;
  w->rng = gt_rng_make(spec->seed, GT_RNG_TEST, 7, 0);
  w_spec *s = &w->spec;
  if (!s->batch) s->batch = 10;
  if (!s->outbox) s->outbox = 2;
  if (!s->window) s->window = 2;
  if (!s->options.period) s->options.period = 1;
  if (s->options.scale <= 0) s->options.scale = 1;
  if (!s->nonfinite_limit) s->nonfinite_limit = 3;
  if (!s->heartbeat) s->heartbeat = GT_SECOND / 10;
  if (!s->keepalive) s->keepalive = GT_SECOND / 5;
  w->n = s->places ? s->places * s->replicas : s->nregions;
  for (size_t i = 0; i < w->n; i++) {
    w->regions[i].world = w;
    w->regions[i].id = i;
  }
  w->problem->open(w);
  w_quiet(w);
  for (size_t i = 0; i < w->n; i++) w_open_ps(&w->regions[i], 0, false);
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
  return w;
}

void w_drop(w_region *r) {
  gt_ps_close(r->ps);
  gt_optim_close(r->optim);
}

void w_close(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    w_drop(&w->regions[i]);
    while (w->regions[i].ncopies) w_forget_copy(&w->regions[i], 0);
    free(w->regions[i].copies);
    for (size_t k = 0; k < w->n; k++) {
      w_link *link = &w->links[i][k];
      w_clear_link(link);
      free(link->control.frames);
      free(link->data.frames);
      free(link->air[0].frames);
      free(link->air[1].frames);
    }
  }
  if (w->problem->close) w->problem->close(w);
  free(w);
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum {
  E_NONE,
  E_WORKER,
  E_DEPART,
  E_GONE,
  E_OVERTAKE,
  E_ARRIVE,
  E_WRITTEN,
  E_TICK,
  E_NOTICE,
  E_HEAL
} event_kind;
typedef struct {
  event_kind kind;
  gt_ns at;
  size_t a, b;
} event;

static void earlier(event *best, event_kind kind, gt_ns when, size_t a, size_t b) {
  if (when < best->at) *best = (event){kind, when, a, b};
}

static event next(world *w) {
  event best = {.kind = E_NONE, .at = GT_NEVER};
  for (size_t a = 0; a < w->n; a++) {
    w_region *r = &w->regions[a];
    for (size_t b = 0; b < w->n; b++) {
      if (!w->regions[b].dead) earlier(&best, E_NOTICE, w->links[a][b].notice, a, b);
      earlier(&best, E_HEAL, w->links[a][b].heal, a, b);
    }
    bool stopped = r->dead || w_view(w, a).phase == GT_PS_STOPPED;
    for (size_t k = 0; k < r->nworkers && !stopped; k++)
      if (r->workers[k].work != W_IDLE && r->workers[k].work != W_PUSHED)
        earlier(&best, E_WORKER, r->workers[k].ready, a, k);
    earlier(&best, E_WRITTEN, r->written_at, a, 0);
    if (!stopped) earlier(&best, E_TICK, gt_ps_next(r->ps), a, 0);
    for (size_t b = 0; b < w->n; b++) {
      w_link *link = &w->links[a][b];
      if (link->cut) continue;
      if (!r->dead) serve(w, a, b);
      if (link->leaving) earlier(&best, E_DEPART, link->depart, a, b);
      if (link->air[0].count) earlier(&best, E_OVERTAKE, at(&link->air[0], 0)->at, a, b);
      if (link->air[1].count) earlier(&best, E_ARRIVE, at(&link->air[1], 0)->at, a, b);
      if (link->ngone) earlier(&best, E_GONE, link->gone[0].at, a, b);
    }
  }
  return best;
}

static void answer(w_region *r, size_t k) {
  w_worker *worker = &r->workers[k];
  w_work work = worker->work;
  worker->work = W_IDLE;
  worker->heard = r->world->now; /* its deadline begins */
  if (work == W_STARTING) {
    gt_ps_ready(r->ps, k, r->world->now);
  } else if (work == W_SCORING) {
    r->world->problem->evaluate(r, worker);
  } else {
    worker->work = W_PUSHED;
    worker->lent = true;
    r->world->problem->train(r, worker);
  }
}

static void deliver(world *w, size_t a, size_t b, const w_frame *f) {
  const bool has = f->bytes && (!w->spec.no_data || f->head.kind >= GT_MSG_MEMBERS);
  const void *body = !has ? NULL : f->big ? f->big : f->body.floats;
  if (gt_ps_message(w->regions[b].ps, a, &f->head, body, w->now) != GT_OK) {
    w_print(w);
    fail_msg("from %zu to %zu, kind %u: %s", a, b, f->head.kind, gt_error_text());
  }
  free(f->big);
}

static void arrive(world *w, size_t a, size_t b, w_ring *air) {
  const w_frame f = pop(air);
  w_region *r = &w->regions[b];
  const gt_ps_view before = w_view(w, b);
  if (before.phase == GT_PS_STOPPED || r->dead) { /* it has ended */
    free(f.big);
    return;
  }
  if (w->spec.change) {
    deliver(w, a, b, &f);
    return;
  }
  if (f.cookie && (int64_t)f.head.sequence == r->kept.applied[a] + 1 && before.stop_code == GT_OK) {
    w_check(w, (f.head.flags & GT_FRAME_ROUTED) || f.head.range > 0 ||
                   w->spec.options.fragments > 1 ||
                   (int64_t)f.head.value > r->kept.applied_value[a]);
    r->kept.applied[a]++;
    r->kept.applied_value[a] = (int64_t)f.head.value;
    r->kept.samples[a] += (int64_t)f.head.detail;
    if (w->problem->hear) w->problem->hear(r, a, &f);
  } else if (f.cookie && (int64_t)f.head.sequence <= r->kept.applied[a]) {
    w->duplicates++;
  }
  deliver(w, a, b, &f);
  if (w->problem->arrived) w->problem->arrived(r, a, &f, &before);
}

static void gone(world *w, size_t a, size_t b) {
  w_link *link = &w->links[a][b];
  uint64_t cookie = link->gone[0].cookie;
  memmove(link->gone, link->gone + 1, --link->ngone * sizeof link->gone[0]);
  if (w_view(w, a).phase != GT_PS_STOPPED) gt_ps_departed(w->regions[a].ps, b, cookie, w->now);
}

static void written(w_region *r) {
  int64_t round = r->writing;
  r->writing = 0;
  r->written_at = GT_NEVER;
  r->copies[r->ncopies - 1].durable = true;
  gt_ps_written(r->ps, round, r->world->now);
}

bool w_step(world *w) {
  const event e = next(w);
  if (e.kind == E_NONE) return false;
  if (e.at > w->now) w->now = e.at;
  w->events++;
  w_region *r = &w->regions[e.a];
  if (e.kind == E_WORKER) answer(r, e.b);
  if (e.kind == E_DEPART) depart(w, e.a, e.b);
  if (e.kind == E_GONE) gone(w, e.a, e.b);
  if (e.kind == E_OVERTAKE) arrive(w, e.a, e.b, &w->links[e.a][e.b].air[0]);
  if (e.kind == E_ARRIVE) arrive(w, e.a, e.b, &w->links[e.a][e.b].air[1]);
  if (e.kind == E_WRITTEN) written(r);
  if (e.kind == E_TICK) gt_ps_tick(r->ps, w->now);
  if (e.kind == E_NOTICE) w_notice(w, e.a, e.b);
  if (e.kind == E_HEAL) w_heal(w, e.a, e.b);
  w->problem->event(e.kind == E_OVERTAKE || e.kind == E_ARRIVE ? &w->regions[e.b] : r);
  return true;
}

void w_steps(world *w, int64_t events) {
  for (int64_t i = 0; i < events; i++) w_check(w, w_step(w));
}

void w_run_until(world *w, gt_ps_phase phase) {
  gt_ns limit = w->now + 600 * GT_SECOND;
  while (!w_all_in(w, phase)) w_check(w, w_step(w) && w->now < limit);
}

void w_run(world *w) {
  gt_ns limit = w->now + 600 * GT_SECOND;
  while (!w_all_in(w, GT_PS_COMPLETE) && !w_all_in(w, GT_PS_STOPPED))
    w_check(w, w_step(w) && w->now < limit);
}

world *w_finished(const w_spec *spec) {
  world *w = w_open(spec);
  w_run_until(w, GT_PS_COMPLETE);
  return w;
}
