/* The world of world_copies.h: its problem, and what serves its PSs. */
#include "world_copies.h"

/* ---- the problem ----------------------------------------------------------------------------- */

static uint64_t c_draw(const c_world *w, size_t region, int64_t batch, uint64_t what, uint64_t n) {
  gt_rng rng = gt_rng_make(w->spec.seed * C_REGIONS + region, GT_RNG_TEST, (uint64_t)batch, what);
  return gt_rng_below(&rng, n);
}

static float c_float(const c_world *w, size_t region, int64_t batch, uint64_t what) {
  return (float)c_draw(w, region, batch, what, 20001) / 10000 - 1;
}

static bool c_bad(const c_world *w, size_t region, int64_t batch) {
  return w->spec.bad_every && c_draw(w, region, batch, 1000, (uint64_t)w->spec.bad_every) == 0;
}

bool c_dropped(const c_world *w, size_t copy, int64_t batch) {
  for (size_t p = 0; p < w->spec.places; p++)
    if (c_bad(w, p * w->spec.copies + copy, batch)) return true;
  return false;
}

bool c_free(const c_spec *spec) {
  return !gt_sync_of(spec->strategy)->waits;
}

bool c_followed(const c_spec *spec) {
  return c_free(spec) && spec->topology == GT_TOPOLOGY_MESH;
}

/* What is sent is added to: numbers of which sums do not round. */
static bool c_exact(const c_spec *spec) {
  return gt_sync_of(spec->strategy)->sends == GT_MSG_UPDATE && c_free(spec);
}

static float c_grad(const c_world *w, size_t region, int64_t batch, size_t j, float param) {
  if (c_exact(&w->spec)) return (float)c_draw(w, region, batch, j, 2049) / 1024 - 1;
  return 0.1f * param + c_float(w, region, batch, j);
}

gt_ps_push c_push(const c_world *w, const c_region *r, int64_t batch, const float *params,
                  const float *buffers, float *grads, float *after) {
  for (size_t j = 0; j < C_PARAMS; j++) grads[j] = c_grad(w, r->id, batch, j, params[j]);
  for (size_t j = 0; j < C_BUFFERS; j++)
    after[j] = 0.9f * buffers[j] + c_float(w, r->id, batch, 500 + j);
  gt_ps_push push = {.samples = 10, .buffers = after, .nonfinite = c_bad(w, r->id, batch)};
  if (push.nonfinite) grads[0] = INFINITY;
  return push;
}

void c_begin(const c_region *r, float *params, float *buffers) {
  for (size_t j = 0; j < C_PARAMS; j++) params[j] = 1 - 0.125f * (float)(j + r->place);
  for (size_t j = 0; j < C_BUFFERS; j++) buffers[j] = (float)j;
}

static const gt_view c_tensors[C_TENSORS] = {{.offset = 0, .count = 3},
                                             {.offset = 3, .count = C_PARAMS - 3}};

/* Without momentum where nobody waits, so that steps need no state. */
gt_optim *c_optim(const c_world *w) {
  gt_optim *optim;
  const bool is_free = c_free(&w->spec);
  const gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD,
                             .schedule = {.kind = GT_LR_CONSTANT, .lr = is_free ? 0.125 : 0.1},
                             .momentum = is_free ? 0 : 0.9,
                             .clip = w->spec.clip,
                             .tensors = c_tensors,
                             .ntensors = C_TENSORS};
  assert_int_equal(gt_optim_create(&optim, &sgd, C_PARAMS, true), GT_OK);
  return optim;
}

/* The first tensors of all places, then the second ones in the other order, as in a folded
   pipeline. */
static size_t c_owner(const c_spec *s, size_t i) {
  return i < s->places ? i : 2 * s->places - 1 - i;
}

double c_norm(const c_world *w, const gt_optim *optim, const float *const *parts) {
  const c_spec *s = &w->spec;
  double squares[C_PLACES][C_TENSORS], sum = 0;
  if (!(s->clip > 0)) return 0;
  for (size_t p = 0; p < s->places; p++)
    gt_optim_squares(optim, gt_vec_of((float *)(uintptr_t)parts[p], C_PARAMS), squares[p]);
  for (size_t i = 0; i < C_TENSORS * s->places; i++) sum += squares[c_owner(s, i)][i / s->places];
  return sqrt(sum);
}

bool c_same(const void *x, const void *y, size_t bytes) {
  return memcmp(x, y, bytes) == 0;
}

/* ---- what a PS is served with ---------------------------------------------------------------- */

static void c_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                   size_t bytes, uint64_t cookie) {
  c_region *r = ctx;
  c_world *w = r->world;
  const bool data = gt_msg_is_data(head->kind);
  c_link *link = &w->links[r->id][peer][data];
  assert_true(peer < w->n && peer != r->id && bytes <= C_FLOATS * sizeof(float));
  assert_true(link->count < C_RING);
  const gt_ns begins = link->free > w->now && data ? link->free : w->now;
  c_frame f = {
      .head = *head, .bytes = bytes, .cookie = cookie, .begins = begins, .departs = GT_NEVER};
  f.head.message_bytes = bytes;
  f.at = begins + link->delay + (gt_ns)gt_rng_below(&w->rng, (uint64_t)link->delay);
  if (payload) memcpy(f.body, payload, bytes);
  w->bytes += data ? (double)gt_message_wire_bytes(head, bytes) : 0;
  if (data) {
    /* a model waits for others to leave, so that a newer one replaces it */
    const gt_ns most = w->spec.strategy == GT_STRATEGY_AMA ? 8 * W_MS : W_MS;
    f.departs = link->free = begins + 1 + (gt_ns)gt_rng_below(&w->rng, (uint64_t)most);
    f.at += f.departs - begins;
  }
  /* data is not ahead of what was sent before it */
  const c_link *control = &w->links[r->id][peer][0];
  if (f.at < control->last) f.at = control->last;
  if (f.at < link->last) f.at = link->last;
  link->last = f.at;
  link->frames[(link->head + link->count++) % C_RING] = f;
}

/* A model that has not begun to leave. */
static bool c_replace(void *ctx, size_t peer, uint64_t cookie, const gt_frame_header *head,
                      const void *payload, uint64_t new_cookie) {
  c_region *r = ctx;
  c_world *w = r->world;
  c_link *link = &w->links[r->id][peer][1];
  for (size_t i = 0; i < link->count; i++) {
    c_frame *f = &link->frames[(link->head + i) % C_RING];
    if (f->cookie != cookie) continue;
    if (f->departs == GT_NEVER || f->begins <= w->now) return false;
    const uint64_t bytes = f->head.message_bytes;
    f->head = *head;
    f->head.message_bytes = bytes;
    f->cookie = new_cookie;
    memcpy(f->body, payload, f->bytes);
    w->replaced++;
    return true;
  }
  return false;
}

static void c_order(void *ctx, size_t index, const gt_ps_order *o) {
  c_region *r = ctx;
  c_world *w = r->world;
  if (o->kind == GT_PS_KEEPALIVE) return;
  assert_true(index == 0 && r->work == C_IDLE);
  r->ready = w->now + 1 + (gt_ns)gt_rng_below(&w->rng, 2 * (uint64_t)W_MS);
  r->work = o->kind == GT_PS_TRAIN ? C_TRAINING : C_EVALUATING;
  r->batch = o->first;
  r->lent_params = o->params.data;
  r->lent_buffers = o->buffers.data;
  memcpy(r->lent, r->lent_params, C_PARAMS * sizeof(float));
  memcpy(r->lent + C_PARAMS, r->lent_buffers, C_BUFFERS * sizeof(float));
  if (o->kind == GT_PS_TRAIN) {
    r->train = o->first;
    r->keep[r->train % 2] = 1;
    memset(r->add[r->train % 2], 0, sizeof r->add[0]);
  }
  c_check(w,
          o->kind != GT_PS_TRAIN || (!c_look(w, r->id).held && o->first == c_look(w, r->id).steps));
}

static void c_taken(void *ctx, size_t index) {
  c_region *r = ctx;
  assert_true(index == 0 && r->work == C_PUSHED);
  r->work = C_IDLE;
}

void c_forget(c_region *r, size_t i) {
  gt_state_close(&r->saves[i].state);
  r->nsaves--;
  memmove(r->saves + i, r->saves + i + 1, (r->nsaves - i) * sizeof r->saves[0]);
}

/* All regions of a copy save after the same step. */
static void c_checkpoint(void *ctx, int64_t round) {
  c_region *r = ctx;
  c_world *w = r->world;
  gt_state lent = {0};
  const gt_ps_view v = c_look(w, r->id);
  int64_t *steps = &w->rounds_at[r->copy][round];
  c_check(w, r->writing == 0 && r->nsaves < C_SAVES && round < C_ROUNDS);
  if (*steps < 0) *steps = v.steps;
  c_check(w, *steps == v.steps);
  w->held += v.held;
  gt_state_add(&lent, "model/", "params", GT_TYPE_F32, r->params, C_PARAMS);
  gt_state_add(&lent, "model/", "buffers", GT_TYPE_F32, r->buffers, C_BUFFERS);
  gt_ps_save(r->ps, w->now, &lent);
  r->saves[r->nsaves] = (c_save){.round = round, .state = w_deep_copy(&lent)};
  memcpy(r->saves[r->nsaves++].seen, r->seen, sizeof r->seen);
  gt_state_close(&lent);
  if (round > w->newest) w->newest = round;
  r->writing = round;
  r->written_at = w->now + 1 + (gt_ns)gt_rng_below(&w->rng, 10 * (uint64_t)W_MS);
}

static void c_whole(void *ctx, int64_t round) {
  c_region *r = ctx;
  while (r->nsaves && r->saves[0].round < round) c_forget(r, 0);
}

static void c_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)ctx, (void)note, (void)a, (void)b;
}

/* ---- open and close -------------------------------------------------------------------------- */

void c_open_ps(c_world *w, c_region *r) {
  const c_spec *s = &w->spec;
  c_begin(r, r->params, r->buffers);
  r->optim = c_optim(w);
  r->judge = c_optim(w);
  const gt_ps_spec spec = {.nregions = w->n,
                           .self = r->id,
                           .nworkers = 1,
                           .strategy = &gt_sync_stages,
                           .stages = &r->stage,
                           .nstages = 1,
                           .copies = {.mates = r->mates,
                                      .nmates = s->places,
                                      .twins = r->twins,
                                      .ntwins = s->copies,
                                      .weights = w->weights,
                                      .strategy = gt_sync_of(s->strategy),
                                      .options = {.period = s->period,
                                                  .scale = s->means ? 1 / (double)s->copies : 1,
                                                  .gradients = s->gradients}},
                           .owners = w->owners[r->copy],
                           .nowners = s->clip > 0 ? C_TENSORS * s->places : 0,
                           .topology = s->topology,
                           .next = s->topology == GT_TOPOLOGY_MESH ? NULL : r->next,
                           .piece = 3,
                           .wan_bytes_limit = s->wan_limit,
                           .options = {.period = 1, .scale = 1},
                           .outbox = 2,
                           .window = 2,
                           .params = gt_vec_of(r->params, C_PARAMS),
                           .grads = gt_vec_of(r->grads, C_PARAMS),
                           .buffers = gt_vec_of(r->buffers, C_BUFFERS),
                           .optim = r->optim,
                           .order = {.seed = s->seed, .region = r->id, .n = 100, .batch = 10},
                           .until = {.steps = s->steps[r->copy]},
                           .eval_every = {.steps = s->eval_every},
                           .checkpoint_every = {.steps = s->checkpoint_every},
                           .test_samples = s->eval_every ? 10 : 0,
                           .snapshot = gt_vec_of(r->snapshot, C_PARAMS),
                           .snapshot_buffers = gt_vec_of(r->snapshot + C_PARAMS, C_BUFFERS),
                           .nonfinite_limit = 1000,
                           .heartbeat = 10 * W_MS,
                           .keepalive = 50 * W_MS,
                           .round = w->newest,
                           .host = {.ctx = r,
                                    .send = c_send,
                                    .replace = c_replace,
                                    .order = c_order,
                                    .taken = c_taken,
                                    .checkpoint = c_checkpoint,
                                    .whole = c_whole,
                                    .note = c_note}};
  r->ps = gt_ps_create(&spec);
}

void c_quiet(c_world *w) {
  for (size_t i = 0; i < w->n; i++) {
    c_region *r = &w->regions[i];
    r->writing = 0;
    r->written_at = GT_NEVER;
    r->work = C_STARTING;
    r->ready = w->now + (gt_ns)gt_rng_below(&w->rng, 5 * (uint64_t)W_MS);
    for (size_t k = 0; k < w->n; k++)
      for (size_t d = 0; d < 2; d++) w->links[i][k][d] = (c_link){.delay = w->links[i][k][d].delay};
  }
}

/* The hub is in the last copy; a tree is a chain with copy 0 at its root. */
static size_t c_next(const c_spec *s, size_t place, size_t copy) {
  const size_t last = s->copies - 1;
  const size_t next = s->topology == GT_TOPOLOGY_HUB    ? last
                      : s->topology == GT_TOPOLOGY_RING ? (copy + 1) % s->copies
                      : copy > 0                        ? copy - 1
                                                        : 0;
  return place * s->copies + next;
}

static void c_place(c_world *w, size_t i) {
  const size_t copies = w->spec.copies;
  c_region *r = &w->regions[i];
  r->world = w;
  r->id = i;
  r->copy = i % copies;
  r->place = i / copies;
  r->params_range = (gt_ps_range){0, C_PARAMS};
  r->buffers_range = (gt_ps_range){0, C_BUFFERS};
  r->stage = (gt_ps_stage){.workers = 1,
                           .params = &r->params_range,
                           .nparams = 1,
                           .buffers = &r->buffers_range,
                           .nbuffers = 1,
                           .counts = r->place == 0,
                           .judges = r->place == 0};
  for (size_t p = 0; p < w->spec.places; p++) r->mates[p] = p * copies + r->copy;
  for (size_t c = 0; c < copies; c++) r->twins[c] = r->place * copies + c;
  for (size_t k = 0; k < w->n; k++) r->next[k] = c_next(&w->spec, k / copies, k % copies);
}

static c_world *c_current;
static void c_on_bug(const char *text) {
  fprintf(stderr, "%s\n", text);
  c_print(c_current);
  abort();
}

c_world *c_open(const c_spec *spec) {
  static const gt_ns delays[] = {W_MS / 100, W_MS, 10 * W_MS};
  c_world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  c_current = w;
  gt_on_bug(c_on_bug);
  w->spec = *spec;
  w->n = spec->copies * spec->places;
  w->rng = gt_rng_make(spec->seed, GT_RNG_TEST, 3, 0);
  memset(w->rounds_at, -1, sizeof w->rounds_at);
  for (size_t c = 0; c < spec->copies; c++)
    w->weights[c] = (double)(2 * (c + 1)) / (double)(spec->copies * (spec->copies + 1));
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++)
      for (size_t d = 0; d < 2; d++) w->links[i][k][d].delay = delays[gt_rng_below(&w->rng, 3)];
  for (size_t i = 0; i < w->n; i++) c_place(w, i);
  for (size_t c = 0; c < spec->copies; c++)
    for (size_t i = 0; i < C_TENSORS * spec->places; i++)
      w->owners[c][i] = c_owner(spec, i) * spec->copies + c;
  c_quiet(w);
  for (size_t i = 0; i < w->n; i++) c_open_ps(w, &w->regions[i]);
  for (size_t i = 0; i < w->n; i++)
    c_begin(&w->regions[i], w->regions[i].must, w->regions[i].must + C_PARAMS);
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
  return w;
}

void c_drop(c_region *r) {
  gt_ps_close(r->ps);
  gt_optim_close(r->optim);
  gt_optim_close(r->judge);
}

void c_close(c_world *w) {
  for (size_t i = 0; i < w->n; i++) {
    c_drop(&w->regions[i]);
    while (w->regions[i].nsaves) c_forget(&w->regions[i], 0);
  }
  free(w);
}

gt_ps_view c_look(const c_world *w, size_t region) {
  gt_ps_view view;
  gt_ps_look(w->regions[region].ps, w->now, &view);
  return view;
}

bool c_all_in(const c_world *w, gt_ps_phase phase) {
  for (size_t i = 0; i < w->n; i++)
    if (c_look(w, i).phase != phase) return false;
  return true;
}

void c_print(const c_world *w) {
  fprintf(stderr, "seed %llu, %zu copies of %zu regions, %s over a %s, clip %g, at %.3f s\n",
          (unsigned long long)w->spec.seed, w->spec.copies, w->spec.places,
          gt_strategy_names[w->spec.strategy], gt_topology_names[w->spec.topology], w->spec.clip,
          gt_seconds(w->now));
  for (size_t i = 0; i < w->n; i++) {
    const gt_ps_view v = c_look(w, i);
    fprintf(stderr,
            "  region %zu, copy %zu: phase %d%s, %lld steps, round %lld whole %lld stop %d\n", i,
            w->regions[i].copy, (int)v.phase, v.held ? " held" : "", (long long)v.steps,
            (long long)v.round, (long long)v.whole_round, (int)v.stop_code);
  }
}
