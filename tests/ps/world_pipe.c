/* Regions that hold the stages of a pipeline, or of one of several replicas of it: their stages,
   and their workers' pushes. */
#include "world_pipe.h"
#include "../strategies.h"

p_member *p_member_of(const w_region *r) {
  return &r->world->pipe->members[r->id];
}

const p_shape *p_shape_of(const w_region *r) {
  return &r->world->pipe->shapes[p_member_of(r)->place];
}

const p_cases *p_cases_of(const world *w) {
  return &w->pipe->cases;
}

size_t p_replica_of(const w_region *r) {
  return p_member_of(r)->replica;
}

int64_t p_steps_at(const world *w, size_t replica, int64_t round) {
  return w->pipe->steps_at[replica][round];
}

const w_region *p_region_at(const world *w, size_t place, size_t replica) {
  return &w->regions[place * w->spec.replicas + replica];
}

const gt_sync_ops *p_between(const w_spec *spec) {
  return sync_named(spec->strategy);
}

bool p_is_free(const w_spec *spec) {
  return spec->replicas > 1 && !p_between(spec)->waits;
}

bool p_is_exact(const w_spec *spec) {
  return p_is_free(spec) && p_between(spec)->sends == GT_MSG_UPDATE;
}

/* ---- pushes of workers ----------------------------------------------------------------------- */

/* Returns a number in [0, n) that depends on all arguments. */
static uint64_t draw(const w_region *r, size_t worker, int64_t batch, uint64_t what, uint64_t n) {
  gt_rng rng = gt_rng_make(r->world->spec.seed * W_PLACES + r->id, GT_RNG_TEST,
                           (uint64_t)batch * W_DESKS + worker, what);
  return gt_rng_below(&rng, n);
}

static float draw_float(const w_region *r, size_t worker, int64_t batch, uint64_t what) {
  return (float)draw(r, worker, batch, what, 20001) / 10000 - 1;
}

const gt_ps_stage *p_stage_of(const w_region *r, size_t worker) {
  const gt_ps_stage *stage = p_shape_of(r)->stages;
  while (worker - stage->first_worker >= stage->workers) stage++;
  return stage;
}

/* True if the worker's gradient is non-finite. */
static bool is_bad(const w_region *r, size_t worker, int64_t batch) {
  const int64_t every = r->world->spec.bad_every;
  return every && draw(r, worker, batch, 1000, (uint64_t)every) == 0;
}

bool p_any_bad(const w_region *r, int64_t batch) {
  for (size_t k = 0; k < r->nworkers; k++)
    if (is_bad(r, k, batch)) return true;
  return false;
}

bool p_is_dropped(const world *w, size_t replica, int64_t batch) {
  for (size_t p = 0; p < w->spec.places; p++)
    if (p_any_bad(p_region_at(w, p, replica), batch)) return true;
  return false;
}

static float gradient(const w_region *r, size_t worker, int64_t batch, size_t j, float param) {
  if (p_is_exact(&r->world->spec)) return (float)draw(r, worker, batch, j, 2049) / 1024 - 1;
  return 0.1f * param + draw_float(r, worker, batch, j);
}

/* Returns the samples: those of the same worker of a stage with as many workers. */
int64_t p_samples_of(const w_region *r, size_t worker, int64_t batch) {
  const size_t index = worker - p_stage_of(r, worker)->first_worker;
  return (int64_t)draw(r, index, batch, 900, 5) + (index == 0);
}

double p_loss_of(const w_region *r, size_t worker, int64_t batch) {
  return (double)draw_float(r, worker, batch, 901);
}

void p_push_of(const w_region *r, size_t worker, int64_t batch, const float *params,
               const float *buffers, p_push *to) {
  const gt_ps_stage *stage = p_stage_of(r, worker);
  for (size_t j = 0; j < P_PARAMS; j++) to->grads[j] = NAN;
  for (size_t j = 0; j < P_BUFFERS; j++) to->buffers[j] = NAN;
  for (const gt_ps_range *x = stage->params; x < stage->params + stage->nparams; x++)
    for (size_t j = x->offset; j < x->offset + x->count; j++)
      to->grads[j] = gradient(r, worker, batch, j, params[j]);
  for (const gt_ps_range *x = stage->buffers; x < stage->buffers + stage->nbuffers; x++)
    for (size_t j = x->offset; j < x->offset + x->count; j++)
      to->buffers[j] = 0.9f * buffers[j] + draw_float(r, worker, batch, 500 + j);
  to->samples = p_samples_of(r, worker, batch);
  if (is_bad(r, worker, batch)) to->grads[stage->params[0].offset] = INFINITY;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Divides [0, n) into `parts` parts, the last of which ends with n. */
static gt_ps_range cut(size_t n, size_t parts, size_t k) {
  return (gt_ps_range){n * k / parts, n * (k + 1) / parts - n * k / parts};
}

/* Stage k has every stages-th piece, so that ranges of stages alternate. */
static void set_ranges(p_shape *s, size_t k) {
  gt_ps_stage *stage = &s->stages[k];
  const size_t pieces = 2 * s->nstages;
  for (size_t i = k; i < pieces; i += s->nstages)
    s->params[k][stage->nparams++] = cut(s->nparams, pieces, i);
  s->buffers[k][0] = cut(s->nbuffers, s->nstages, k);
  stage->nbuffers = s->buffers[k][0].count > 0;
  stage->params = s->params[k];
  stage->buffers = s->buffers[k];
}

/* Gives stage k floats of the stage before, too: the end of its first range and the begin of its
   own, in one. */
static void tie(p_shape *s, size_t k, gt_rng *rng) {
  gt_ps_range *own = &s->params[k][0];
  const size_t back = 1 + (size_t)gt_rng_below(rng, s->params[k - 1][0].count);
  own->offset -= back;
  own->count += back;
}

static void draw_shape(world *w, p_shape *s) {
  const bool single = w->spec.replicas == 1;
  const size_t most = single ? 3 : p_is_exact(&w->spec) ? 1 : 2; /* a mean of several rounds */
  s->nstages = 1 + (size_t)gt_rng_below(&w->rng, single ? P_STAGES : 2);
  s->nparams = 12 + (size_t)gt_rng_below(&w->rng, P_PARAMS - 11);
  s->nbuffers = (size_t)gt_rng_below(&w->rng, P_BUFFERS + 1);
  for (size_t k = 0; k < s->nstages; k++) {
    s->stages[k].first_worker = s->nworkers;
    s->nworkers += s->stages[k].workers = 1 + (size_t)gt_rng_below(&w->rng, most);
    set_ranges(s, k);
  }
  for (size_t k = s->nstages; k-- > 1;)
    if (gt_rng_below(&w->rng, 2)) tie(s, k, &w->rng);
  s->ntensors = 1 + s->nparams % P_TENSORS;
  for (size_t t = 0; t < s->ntensors; t++) {
    const gt_ps_range tensor = cut(s->nparams, s->ntensors, t);
    s->tensors[t] = (gt_view){.offset = tensor.offset, .count = tensor.count};
  }
}

/* The first tensors of all places, then the second ones in the other order, as in a folded
   pipeline. */
static void order_tensors(world *w) {
  struct pipeline *pipe = w->pipe;
  const size_t places = w->spec.places;
  for (size_t t = 0; t < P_TENSORS; t++)
    for (size_t i = 0; i < places; i++) {
      const size_t p = t % 2 ? places - 1 - i : i;
      if (t >= pipe->shapes[p].ntensors) continue;
      for (size_t c = 0; c < w->spec.replicas; c++)
        pipe->owners[c][pipe->ntensors] = p * w->spec.replicas + c;
      pipe->tensors[pipe->ntensors++] = p;
    }
}

/* The hub is in the last replica; a tree is a chain with replica 0 at its root. */
static size_t next_of(const w_spec *s, size_t region) {
  const size_t last = s->replicas - 1, replica = region % s->replicas;
  const size_t next = s->topology == GT_TOPOLOGY_HUB    ? last
                      : s->topology == GT_TOPOLOGY_RING ? (replica + 1) % s->replicas
                      : replica > 0                     ? replica - 1
                                                        : 0;
  return region - replica + next;
}

gt_optim *p_open_optim(const w_region *r, bool with_memory) {
  gt_optim *optim;
  const p_shape *shape = p_shape_of(r);
  gt_optim_spec sgd = {
      .kind = GT_OPTIMIZER_SGD,
      .schedule = {.kind = GT_LR_COSINE, .lr = 0.1, .lr_min = 0.01, .total_steps = P_STEPS},
      .momentum = 0.9,
      .weight_decay = 0.01,
      .clip = r->world->spec.clip,
      .tensors = shape->tensors,
      .ntensors = shape->ntensors};
  if (p_is_free(&r->world->spec)) { /* steps need no state, and do not round */
    sgd.schedule = (gt_lr_schedule){.kind = GT_LR_CONSTANT, .lr = 0.125};
    sgd.momentum = sgd.weight_decay = 0;
  }
  must(gt_optim_create(&optim, &sgd, shape->nparams, with_memory));
  return optim;
}

void p_begin_model(const w_region *r, float *params, float *buffers) {
  for (size_t j = 0; j < r->nparams; j++)
    params[j] = 1 - 0.125f * (float)(j + p_member_of(r)->place);
  for (size_t j = 0; j < r->nbuffers; j++) buffers[j] = (float)j;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static int64_t found(const w_region *r, size_t worker) {
  return (int64_t)(worker + r->id) + 1;
}

void p_check_score(const w_region *r, const gt_ps_score *score) {
  double loss = 0;
  int64_t samples = 0;
  for (size_t k = 0; k < r->nworkers; k++)
    if (p_stage_of(r, k)->judges) {
      loss += (double)(3 * k + 1);
      samples += found(r, k);
    }
  assert_true(isnan(score->auc) && score->perplexity == 0);
  if (samples == 0)
    assert_true(isnan(score->loss) && isnan(score->accuracy));
  else
    assert_true(score->loss == loss / (double)samples && score->accuracy == 1);
}

/* ---- the problem ----------------------------------------------------------------------------- */

static void open_region(w_region *r) {
  const w_spec *s = &r->world->spec;
  p_member *m = p_member_of(r);
  m->replica = r->id % s->replicas;
  m->place = r->id / s->replicas;
  r->nworkers = p_shape_of(r)->nworkers;
  r->nparams = p_shape_of(r)->nparams;
  r->nbuffers = p_shape_of(r)->nbuffers;
  for (size_t p = 0; p < s->places; p++) m->stage_group[p] = p * s->replicas + m->replica;
  for (size_t c = 0; c < s->replicas; c++) m->replicas[c] = m->place * s->replicas + c;
  for (size_t k = 0; k < r->world->n; k++) m->next[k] = next_of(s, k);
  m->judge = p_open_optim(r, true);
  p_begin_model(r, m->must, m->must + r->nparams);
}

static void pipe_open(world *w) {
  static const gt_ns delays[] = {W_MS / 100, W_MS, 10 * W_MS, 50 * W_MS};
  w_spec *s = &w->spec;
  struct pipeline *pipe = w->pipe = calloc(1, sizeof *w->pipe);
  assert_non_null(pipe);
  s->write_s = 0.03;
  s->heartbeat = 10 * W_MS;
  s->keepalive = 50 * W_MS;
  memset(pipe->steps_at, -1, sizeof pipe->steps_at);
  for (size_t c = 0; c < s->replicas; c++)
    pipe->replica_weights[c] = (double)(2 * (c + 1)) / (double)(s->replicas * (s->replicas + 1));
  for (size_t p = 0; p < s->places; p++) draw_shape(w, &pipe->shapes[p]);
  p_shape *last = &pipe->shapes[gt_rng_below(&w->rng, s->places)];
  pipe->shapes[0].stages[0].counts = true;
  last->stages[last->nstages - 1].judges = true;
  order_tensors(w);
  for (size_t i = 0; i < w->n; i++) {
    w->weights[i] = 1.0 / (double)w->n;
    open_region(&w->regions[i]);
    for (size_t k = 0; k < w->n; k++)
      for (size_t d = 0; d < 2; d++)
        w->links[i][k].delay[d] = delays[gt_rng_below(&w->rng, s->replicas > 1 ? 3 : 4)];
  }
  p_judge_single(w);
}

static void pipe_close(world *w) {
  for (size_t i = 0; i < w->n; i++) gt_optim_close(w->pipe->members[i].judge);
  free(w->pipe);
}

static void pipe_begin(w_region *r, gt_ps_spec *spec) {
  const w_spec *s = &r->world->spec;
  struct pipeline *pipe = r->world->pipe;
  p_member *m = p_member_of(r);
  m->evaluated = -1;
  p_begin_model(r, r->params, r->buffers);
  for (size_t j = 0; j < P_PARAMS; j++) r->grads[j] = NAN;
  r->optim = p_open_optim(r, !s->no_data);
  spec->strategy = &gt_ps_lockstep;
  spec->owners = pipe->owners[m->replica];
  spec->nowners = s->clip > 0 ? pipe->ntensors : 0;
  spec->stages = p_shape_of(r)->stages;
  spec->nstages = p_shape_of(r)->nstages;
  spec->next = s->topology == GT_TOPOLOGY_MESH ? NULL : m->next;
  spec->piece = 7;
  spec->options = (gt_sync_options){.period = 1, .scale = 1};
  spec->order = (gt_order){.seed = s->seed, .region = r->id, .n = m->place ? 0 : 100, .batch = 10};
  spec->until.steps = s->steps[m->replica];
  if (s->replicas == 1) return;
  spec->groups = (gt_ps_groups){.stage_group = m->stage_group,
                                .nstage_group = s->places,
                                .replicas = m->replicas,
                                .nreplicas = s->replicas,
                                .weights = pipe->replica_weights,
                                .strategy = p_between(s),
                                .options = s->options};
}

static gt_ns pipe_compute_time(w_region *r) {
  gt_rng *rng = &r->world->rng;
  const gt_ns slow = r->world->spec.replicas > 1 ? 2 : gt_rng_below(rng, 8) ? 1 : 20;
  return 1 + slow * (gt_ns)gt_rng_below(rng, (uint64_t)W_MS);
}

/* Batch k is that of step k; if an evaluation is due after k steps, it comes first, and all begin
   it at the same time. */
static void pipe_order(w_region *r, w_worker *worker, const gt_ps_order *o) {
  world *w = r->world;
  p_member *m = p_member_of(r);
  const gt_ps_view v = w_view(w, r->id);
  const int64_t every = w->spec.eval_every.steps;
  if (o->kind == GT_PS_EVAL) {
    w_check(w, o->first == 0 && o->count == (int64_t)w->spec.test_samples);
    for (w_worker *k = r->workers; k < r->workers + r->nworkers; k++)
      w_check(w, k->work == (k < worker ? W_SCORING : W_IDLE));
    m->evaluated = v.steps;
    return;
  }
  w_check(w, !v.held && o->first == v.steps && v.steps < w->spec.steps[m->replica]);
  w_check(w, o->workers == r->nworkers && o->common);
  if (every && w->spec.test_samples && v.steps > 0 && v.steps % every == 0)
    w_check(w, m->evaluated == v.steps);
  worker->keep[o->first % 2] = 1;
  memset(worker->add[o->first % 2], 0, sizeof worker->add[0]);
  worker->params_lent = o->params;
  worker->buffers_lent = o->buffers;
  if (w->spec.no_data) return;
  memcpy(worker->then, o->params.data, r->nparams * sizeof(float));
  memcpy(worker->then + r->nparams, o->buffers.data, r->nbuffers * sizeof(float));
}

/* The worker's view of the model has not changed since the order. */
static void pipe_train(w_region *r, w_worker *worker) {
  world *w = r->world;
  const size_t k = (size_t)(worker - r->workers);
  p_push *own = &worker->pushed[worker->batch % 2];
  gt_ps_push push_of = {.samples = p_samples_of(r, k, worker->batch),
                        .loss_sum = p_loss_of(r, k, worker->batch),
                        .nonfinite = is_bad(r, k, worker->batch)};
  if (!w->spec.no_data) {
    w_check(w, w_same(worker->then, worker->params_lent.data, r->nparams));
    w_check(w, w_same(worker->then + r->nparams, worker->buffers_lent.data, r->nbuffers));
    p_push_of(r, k, worker->batch, worker->then, worker->then + r->nparams, own);
    memcpy(worker->grads, own->grads, sizeof own->grads);
    memcpy(worker->buffers, own->buffers, sizeof own->buffers);
    push_of.buffers = worker->buffers;
  }
  gt_ps_gradient(r->ps, k, &push_of, w->spec.no_data ? NULL : worker->grads, w->now);
}

static void pipe_evaluate(w_region *r, w_worker *worker) {
  const size_t k = (size_t)(worker - r->workers);
  const bool judges = p_stage_of(r, k)->judges;
  const gt_ps_push push = {.samples = judges ? found(r, k) : 1000,
                           .correct = found(r, k),
                           .loss_sum = judges ? (double)(3 * k + 1) : NAN};
  gt_ps_evaluated(r->ps, k, &push, r->world->now);
}

static void pipe_note(w_region *r, gt_ps_note note, double b) {
  const world *w = r->world;
  const gt_ps_view v = w_view(w, r->id);
  if (note == GT_NOTE_EVAL) p_check_score(r, &v.last_eval);
  if (note != GT_NOTE_NONFINITE) return;
  if (b >= 0) {
    w_check(w, is_bad(r, (size_t)b, v.steps - 1));
    return;
  }
  const w_region *other = &w->regions[(size_t)(-1 - b)];
  w_check(w, other != r && p_replica_of(other) == p_replica_of(r) && p_any_bad(other, v.steps - 1));
}

/* All regions of a replica save after the same step. */
static void pipe_checkpoint(w_region *r, int64_t round) {
  world *w = r->world;
  const gt_ps_view v = w_view(w, r->id);
  w_check(w, round < P_ROUNDS);
  int64_t *steps = &w->pipe->steps_at[p_replica_of(r)][round];
  if (*steps < 0) *steps = v.steps;
  w_check(w, *steps == v.steps);
  p_check_region(r);
  w->pipe->cases.held += v.held;
}

static void pipe_arrived(w_region *r, size_t from, const w_frame *f, const gt_ps_view *before) {
  const world *w = r->world;
  p_cases *cases = &w->pipe->cases;
  cases->late += f->head.kind == GT_MSG_ACK && (int64_t)f->head.round > before->round;
  if (f->head.kind == GT_MSG_ROUND && (int64_t)f->head.value > w_view(w, r->id).round)
    cases->waited[p_replica_of(&w->regions[from]) != p_replica_of(r)]++;
}

static void pipe_resumed(w_region *r, int64_t round, int64_t newest) {
  p_member *m = p_member_of(r);
  const gt_ps_view v = w_view(r->world, r->id);
  int64_t *steps_at = r->world->pipe->steps_at[m->replica];
  for (int64_t k = newest + 1; k < P_ROUNDS; k++) steps_at[k] = -1;
  m->committed = v.steps;
  m->bad = v.nonfinite;
  memcpy(m->must, r->params, r->nparams * sizeof(float));
  memcpy(m->must + r->nparams, r->buffers, r->nbuffers * sizeof(float));
  if (round > 0) p_check_region(r);
}

static void pipe_event(w_region *r) {
  world *w = r->world;
  p_follow(r);
  if (gt_rng_uniform(&w->rng) < w->spec.rounds)
    gt_ps_last_round(w->regions[gt_rng_below(&w->rng, w->n)].ps, w->now);
}

const w_problem w_pipe = {.open = pipe_open,
                          .close = pipe_close,
                          .begin = pipe_begin,
                          .compute_time = pipe_compute_time,
                          .order = pipe_order,
                          .train = pipe_train,
                          .evaluate = pipe_evaluate,
                          .note = pipe_note,
                          .checkpoint = pipe_checkpoint,
                          .hear = p_hear,
                          .arrived = pipe_arrived,
                          .resumed = pipe_resumed,
                          .event = pipe_event};
