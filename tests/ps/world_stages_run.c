/* The world of world_stages.h: what serves its PSs, its events, crashes and resumes. */
#include "world_stages.h"

/* ---- what a PS is served with ---------------------------------------------------------------- */

static void s_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                   size_t bytes, uint64_t cookie) {
  s_region *r = ctx;
  s_world *w = r->world;
  s_link *link = &w->links[r->id][peer];
  const bool numbers = head->kind == GT_MSG_STRATEGY && w->spec.clip > 0;
  assert_true(peer < w->n && peer != r->id && cookie == 0 && (payload != NULL) == (bytes > 0));
  assert_true(bytes <= numbers * sizeof link->frames[0].numbers);
  assert_true(link->count < S_RING);
  const gt_ns at = w->now + link->delay + (gt_ns)gt_rng_below(&w->rng, (uint64_t)link->jitter);
  if (at > link->last) link->last = at;
  s_frame *f = &link->frames[(link->head + link->count++) % S_RING];
  *f = (s_frame){.head = *head, .at = link->last};
  f->head.message_bytes = bytes;
  if (bytes > 0) memcpy(f->numbers, payload, bytes);
}

static bool s_replace(void *ctx, size_t peer, uint64_t cookie, const gt_frame_header *head,
                      const void *payload, uint64_t new_cookie) {
  (void)ctx, (void)peer, (void)cookie, (void)head, (void)payload, (void)new_cookie;
  fail_msg("there is no data to replace");
  return false;
}

static gt_ns s_compute_time(s_world *w) {
  const gt_ns slow = gt_rng_below(&w->rng, 8) ? 1 : 20;
  return 1 + slow * (gt_ns)gt_rng_below(&w->rng, (uint64_t)W_MS);
}

/* Batch k is that of step k; where an evaluation is due after k steps, it comes first. */
static void s_train(s_region *r, s_worker *worker, const gt_ps_order *o, size_t index) {
  s_world *w = r->world;
  const int64_t steps = s_look(w, r->id).steps, every = w->spec.eval_every;
  s_check(w, o->first == steps && steps < w->spec.steps);
  s_check(w, o->workers == r->shape.nworkers && o->common);
  if (every && w->spec.test_samples && steps > 0 && steps % every == 0)
    s_check(w, r->evaluated == steps);
  worker->work = S_TRAINING;
  worker->batch = o->first;
  if (!w->spec.no_data)
    s_push(w, r, index, o->first, o->params.data, o->buffers.data, worker->grads, worker->buffers);
}

static void s_order(void *ctx, size_t index, const gt_ps_order *o) {
  s_region *r = ctx;
  s_world *w = r->world;
  s_worker *worker = &r->workers[index];
  if (o->kind == GT_PS_KEEPALIVE) return;
  assert_int_equal(worker->work, S_IDLE);
  worker->ready = w->now + s_compute_time(w);
  if (o->kind == GT_PS_TRAIN) {
    s_train(r, worker, o, index);
    return;
  }
  s_check(w, o->first == 0 && o->count == (int64_t)w->spec.test_samples);
  for (size_t k = 0; k < r->shape.nworkers; k++) /* all begin at the same time */
    s_check(w, r->workers[k].work == (k < index ? S_EVALUATING : S_IDLE));
  worker->work = S_EVALUATING;
  r->evaluated = s_look(w, r->id).steps;
}

static void s_taken(void *ctx, size_t index) {
  s_region *r = ctx;
  assert_int_equal(r->workers[index].work, S_PUSHED);
  r->workers[index].work = S_IDLE;
  for (size_t j = 0; j < S_PARAMS; j++) r->workers[index].grads[j] = NAN;
  for (size_t j = 0; j < S_BUFFERS; j++) r->workers[index].buffers[j] = NAN;
}

static void s_forget(s_region *r, size_t i) {
  gt_state_close(&r->copies[i].state);
  r->ncopies--;
  memmove(r->copies + i, r->copies + i + 1, (r->ncopies - i) * sizeof r->copies[0]);
}

/* Every region's checkpoint of a round is of the same step. */
static void s_checkpoint(void *ctx, int64_t round) {
  s_region *r = ctx;
  s_world *w = r->world;
  gt_state lent = {0};
  const gt_ps_view v = s_look(w, r->id);
  s_check(w, r->writing == 0);
  s_check(w, r->ncopies < S_COPIES);
  s_check(w, round < S_ROUNDS);
  if (w->rounds_at[round] < 0) w->rounds_at[round] = v.steps;
  s_check(w, w->rounds_at[round] == v.steps);
  s_check_region(w, r);
  w->within += v.held;
  gt_state_add(&lent, "model/", "params", GT_TYPE_F32, r->params, S_PARAMS);
  gt_state_add(&lent, "model/", "buffers", GT_TYPE_F32, r->buffers, S_BUFFERS);
  gt_ps_save(r->ps, w->now, &lent);
  r->copies[r->ncopies++] = (s_copy){.round = round, .steps = v.steps, .state = w_deep_copy(&lent)};
  gt_state_close(&lent);
  if (round > w->newest) w->newest = round;
  r->writing = round;
  r->written_at = w->now + 1 + (gt_ns)gt_rng_below(&w->rng, 30 * (uint64_t)W_MS);
}

static void s_whole(void *ctx, int64_t round) {
  s_region *r = ctx;
  while (r->ncopies && r->copies[0].round < round) s_forget(r, 0);
}

static int64_t s_found(const s_region *r, size_t worker) {
  return (int64_t)(worker + r->id) + 1;
}

/* The mean of what the workers of stages that judge have answered; else none. */
void s_check_score(const s_region *r, const gt_ps_score *score) {
  double loss = 0;
  int64_t samples = 0;
  for (size_t k = 0; k < r->shape.nworkers; k++)
    if (r->shape.stages[s_stage_of(&r->shape, k)].judges) {
      loss += (double)(3 * k + 1);
      samples += s_found(r, k);
    }
  assert_true(isnan(score->auc) && score->perplexity == 0);
  if (samples == 0)
    assert_true(isnan(score->loss) && isnan(score->accuracy));
  else
    assert_true(score->loss == loss / (double)samples && score->accuracy == 1);
}

static void s_note(void *ctx, gt_ps_note note, double a, double b) {
  s_region *r = ctx;
  (void)a;
  if (note == GT_NOTE_EVAL) {
    const gt_ps_view v = s_look(r->world, r->id);
    s_check_score(r, &v.last_eval);
    r->evals++;
  }
  if (note != GT_NOTE_NONFINITE) return;
  r->nonfinite++;
  const int64_t batch = s_look(r->world, r->id).steps - 1;
  if (b >= 0)
    assert_true(s_bad(r->world, r->id, (size_t)b, batch));
  else
    assert_true((size_t)(-1 - b) != r->id && (size_t)(-1 - b) < r->world->n);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void s_open_ps(s_world *w, s_region *r, int64_t round) {
  const s_spec *s = &w->spec;
  float *const no = NULL;
  const size_t n = r->shape.nparams, nb = r->shape.nbuffers;
  s_after begin;
  s_begin(r, &begin);
  memcpy(r->params, begin.params, sizeof r->params);
  memcpy(r->buffers, begin.buffers, sizeof r->buffers);
  for (size_t j = 0; j < S_PARAMS; j++) r->grads[j] = NAN;
  r->optim = s_optim(r, !s->no_data);
  const gt_ps_spec spec = {
      .nregions = w->n,
      .self = r->id,
      .nworkers = r->shape.nworkers,
      .strategy = &gt_sync_stages,
      .owners = w->owners,
      .nowners = s->clip > 0 ? w->nowners : 0,
      .stages = r->shape.stages,
      .nstages = r->shape.nstages,
      .topology = GT_TOPOLOGY_MESH,
      .weights = w->weights,
      .options = {.period = 1, .scale = 1},
      .outbox = 2,
      .window = 2,
      .params = gt_vec_of(s->no_data ? no : r->params, n),
      .grads = gt_vec_of(s->no_data ? no : r->grads, n),
      .buffers = gt_vec_of(s->no_data ? no : r->buffers, nb),
      .optim = r->optim,
      .order = {.seed = s->seed, .region = r->id, .n = r->id ? 0 : 100, .batch = s->batch},
      .until = {.steps = s->steps},
      .eval_every = {.steps = s->eval_every},
      .checkpoint_every = {.steps = s->checkpoint_every, .minutes = s->minutes},
      .test_samples = s->test_samples,
      .snapshot = gt_vec_of(s->no_data ? no : r->snapshot, n),
      .snapshot_buffers = gt_vec_of(s->no_data ? no : r->snapshot + n, nb),
      .nonfinite_limit = s->nonfinite_limit,
      .heartbeat = 10 * W_MS,
      .keepalive = 50 * W_MS,
      .round = round,
      .host = {.ctx = r,
               .send = s_send,
               .replace = s_replace,
               .order = s_order,
               .taken = s_taken,
               .checkpoint = s_checkpoint,
               .whole = s_whole,
               .note = s_note}};
  r->ps = gt_ps_create(&spec);
}

/* Workers come up, links are quiet. */
static void s_quiet(s_world *w) {
  for (size_t i = 0; i < w->n; i++) {
    s_region *r = &w->regions[i];
    r->writing = 0;
    r->written_at = GT_NEVER;
    r->evaluated = -1;
    for (size_t k = 0; k < r->shape.nworkers; k++)
      r->workers[k] = (s_worker){
          .work = S_STARTING, .ready = w->now + (gt_ns)gt_rng_below(&w->rng, 5 * (uint64_t)W_MS)};
    for (size_t k = 0; k < w->n; k++) w->links[i][k].head = w->links[i][k].count = 0;
  }
}

static s_world *s_current;
static void s_on_bug(const char *text) {
  fprintf(stderr, "%s\n", text);
  s_print(s_current);
  abort();
}

s_world *s_open(const s_spec *spec) {
  static const gt_ns delays[] = {W_MS / 100, W_MS, 10 * W_MS, 50 * W_MS};
  s_world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  s_current = w;
  gt_on_bug(s_on_bug);
  w->spec = *spec;
  w->n = spec->nregions;
  w->rng = gt_rng_make(spec->seed, GT_RNG_TEST, 3, 0);
  for (size_t i = 0; i < S_ROUNDS; i++) w->rounds_at[i] = -1;
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++) {
      const gt_ns delay = delays[gt_rng_below(&w->rng, 4)];
      w->links[i][k] = (s_link){.delay = delay, .jitter = 1 + delay};
    }
  for (size_t i = 0; i < w->n; i++) {
    w->weights[i] = 1.0 / (double)w->n;
    w->regions[i].world = w;
    w->regions[i].id = i;
  }
  s_shapes(w);
  s_quiet(w);
  s_judge(w);
  for (size_t i = 0; i < w->n; i++) s_open_ps(w, &w->regions[i], 0);
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
  return w;
}

static void s_drop(s_region *r) {
  gt_ps_close(r->ps);
  gt_optim_close(r->optim);
}

void s_close(s_world *w) {
  for (size_t i = 0; i < w->n; i++) {
    s_drop(&w->regions[i]);
    while (w->regions[i].ncopies) s_forget(&w->regions[i], 0);
  }
  free(w);
}

gt_ps_view s_look(const s_world *w, size_t region) {
  gt_ps_view view;
  gt_ps_look(w->regions[region].ps, w->now, &view);
  return view;
}

bool s_all_in(const s_world *w, gt_ps_phase phase) {
  for (size_t i = 0; i < w->n; i++)
    if (s_look(w, i).phase != phase) return false;
  return true;
}

void s_print(const s_world *w) {
  fprintf(stderr, "seed %llu, %zu regions, at %.3f s, %lld events\n",
          (unsigned long long)w->spec.seed, w->n, gt_seconds(w->now), (long long)w->events);
  for (size_t i = 0; i < w->n; i++) {
    const gt_ps_view v = s_look(w, i);
    fprintf(stderr, "  region %zu: phase %d%s%s, %lld steps, round %lld whole %lld stop %d\n", i,
            (int)v.phase, v.held ? " held" : "", v.evaluating ? " evaluating" : "",
            (long long)v.steps, (long long)v.round, (long long)v.whole_round, (int)v.stop_code);
  }
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum { E_NONE, E_WORKER, E_ARRIVE, E_WRITTEN, E_TICK } s_kind;
typedef struct {
  s_kind kind;
  gt_ns at;
  size_t a, b;
} s_event;

static void s_earlier(s_event *best, s_kind kind, gt_ns at, size_t a, size_t b) {
  if (at < best->at) *best = (s_event){kind, at, a, b};
}

static s_event s_next(const s_world *w) {
  s_event best = {.at = GT_NEVER};
  for (size_t a = 0; a < w->n; a++) {
    const s_region *r = &w->regions[a];
    const bool stopped = s_look(w, a).phase == GT_PS_STOPPED;
    for (size_t k = 0; k < r->shape.nworkers && !stopped; k++)
      if (r->workers[k].work != S_IDLE && r->workers[k].work != S_PUSHED)
        s_earlier(&best, E_WORKER, r->workers[k].ready, a, k);
    s_earlier(&best, E_WRITTEN, r->written_at, a, 0);
    if (!stopped) s_earlier(&best, E_TICK, gt_ps_next(r->ps), a, 0);
    for (size_t b = 0; b < w->n; b++) {
      const s_link *link = &w->links[a][b];
      if (link->count) s_earlier(&best, E_ARRIVE, link->frames[link->head].at, a, b);
    }
  }
  return best;
}

static void s_answer(s_world *w, s_region *r, size_t k) {
  s_worker *worker = &r->workers[k];
  const s_work work = worker->work;
  worker->work = S_IDLE;
  if (work == S_STARTING) {
    gt_ps_ready(r->ps, k, w->now);
  } else if (work == S_EVALUATING) {
    const int64_t found = s_found(r, k);
    const bool judges = r->shape.stages[s_stage_of(&r->shape, k)].judges;
    const gt_ps_push push = {.samples = judges ? found : 1000,
                             .correct = found,
                             .loss_sum = judges ? (double)(3 * k + 1) : NAN};
    gt_ps_evaluated(r->ps, k, &push, w->now);
  } else { /* parameters have not changed meanwhile: the gradient is the same again */
    float before[S_PARAMS];
    memcpy(before, worker->grads, sizeof before);
    gt_ps_push push =
        s_push(w, r, k, worker->batch, r->params, r->buffers, worker->grads, worker->buffers);
    if (w->spec.no_data) push.buffers = NULL;
    for (size_t j = 0; j < S_PARAMS && !push.nonfinite && !w->spec.no_data; j++)
      s_check(w, before[j] == worker->grads[j] || isnan(before[j]));
    worker->work = S_PUSHED;
    gt_ps_gradient(r->ps, k, &push, w->spec.no_data ? NULL : worker->grads, w->now);
  }
}

static void s_arrive(s_world *w, size_t a, size_t b) {
  s_link *link = &w->links[a][b];
  const s_frame frame = link->frames[link->head];
  const gt_frame_header head = frame.head;
  const void *payload = head.message_bytes > 0 && !w->spec.no_data ? frame.numbers : NULL;
  link->head = (link->head + 1) % S_RING;
  link->count--;
  const gt_ps_view v = s_look(w, b);
  if (v.phase == GT_PS_STOPPED) return; /* it has gone home */
  w->waited += head.kind == GT_MSG_ROUND && (int64_t)head.value > v.round &&
               (int64_t)head.sequence > v.steps;
  if (gt_ps_message(w->regions[b].ps, a, &head, payload, w->now) != GT_OK) {
    s_print(w);
    fail_msg("from %zu to %zu: %s", a, b, gt_error_text());
  }
}

static void s_written(s_world *w, s_region *r) {
  const int64_t round = r->writing;
  r->writing = 0;
  r->written_at = GT_NEVER;
  r->copies[r->ncopies - 1].durable = true;
  gt_ps_written(r->ps, round, w->now);
}

void s_step(s_world *w) {
  const s_event e = s_next(w);
  s_region *r = &w->regions[e.a];
  s_check(w, e.kind != E_NONE);
  if (e.at > w->now) w->now = e.at;
  w->events++;
  if (e.kind == E_WORKER) s_answer(w, r, e.b);
  if (e.kind == E_ARRIVE) s_arrive(w, e.a, e.b);
  if (e.kind == E_WRITTEN) s_written(w, r);
  if (e.kind == E_TICK) gt_ps_tick(r->ps, w->now);
  if (gt_rng_uniform(&w->rng) < w->spec.rounds)
    gt_ps_last_round(w->regions[gt_rng_below(&w->rng, w->n)].ps, w->now);
}

void s_run_until(s_world *w, gt_ps_phase phase) {
  const gt_ns limit = w->now + 600 * GT_SECOND;
  while (!s_all_in(w, phase) && !s_all_in(w, GT_PS_STOPPED)) {
    s_step(w);
    s_check(w, w->now < limit);
  }
}

/* ---- crash and resume ------------------------------------------------------------------------ */

static s_copy *s_copy_of(s_region *r, int64_t round) {
  for (size_t i = 0; i < r->ncopies; i++)
    if (r->copies[i].round == round && r->copies[i].durable) return &r->copies[i];
  return NULL;
}

static int64_t s_whole_round(s_world *w) {
  int64_t whole = 0;
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->regions[i].ncopies; k++) {
      const int64_t round = w->regions[i].copies[k].round;
      bool all = true;
      for (size_t p = 0; p < w->n; p++) all &= s_copy_of(&w->regions[p], round) != NULL;
      if (all && round > whole) whole = round;
    }
  return whole;
}

static void s_load(s_world *w, s_region *r, int64_t round) {
  while (r->ncopies && r->copies[r->ncopies - 1].round > round) s_forget(r, r->ncopies - 1);
  s_open_ps(w, r, w->newest);
  if (round == 0) return;
  s_copy *c = s_copy_of(r, round);
  assert_non_null(c);
  assert_int_equal(gt_state_get(&c->state, "model/", "params", GT_TYPE_F32, r->params, S_PARAMS),
                   GT_OK);
  assert_int_equal(gt_state_get(&c->state, "model/", "buffers", GT_TYPE_F32, r->buffers, S_BUFFERS),
                   GT_OK);
  if (gt_ps_load(r->ps, w->now, &c->state) != GT_OK) fail_msg("%s", gt_error_text());
  s_check(w, s_look(w, r->id).steps == c->steps);
  s_check_region(w, r);
}

void s_crash(s_world *w) {
  const int64_t round = s_whole_round(w);
  for (size_t i = 0; i < w->n; i++) s_drop(&w->regions[i]);
  s_quiet(w);
  for (size_t i = 0; i < w->n; i++) s_load(w, &w->regions[i], round);
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
}
