/* The stages of the world's regions, what their workers push, and what the PSs must come to. */
#include "world_stages.h"

/* ---- the problem ----------------------------------------------------------------------------- */

/* A number in [0, n) that depends on all of these. */
static uint64_t s_draw(const s_world *w, size_t region, size_t worker, int64_t batch, uint64_t what,
                       uint64_t n) {
  gt_rng rng = gt_rng_make(w->spec.seed * 8 + region, GT_RNG_TEST,
                           (uint64_t)batch * S_WORKERS + worker, what);
  return gt_rng_below(&rng, n);
}

static float s_float(const s_world *w, size_t region, size_t worker, int64_t batch, uint64_t what) {
  return (float)s_draw(w, region, worker, batch, what, 20001) / 10000 - 1;
}

size_t s_stage_of(const s_shape *shape, size_t worker) {
  size_t k = 0;
  while (worker - shape->stages[k].first_worker >= shape->stages[k].workers) k++;
  return k;
}

bool s_bad(const s_world *w, size_t region, size_t worker, int64_t batch) {
  return w->spec.bad_every &&
         s_draw(w, region, worker, batch, 1000, (uint64_t)w->spec.bad_every) == 0;
}

gt_ps_push s_push(const s_world *w, const s_region *r, size_t worker, int64_t batch,
                  const float *params, const float *buffers, float *grads, float *after) {
  const gt_ps_stage *stage = &r->shape.stages[s_stage_of(&r->shape, worker)];
  const bool first = worker == stage->first_worker;
  for (size_t j = 0; j < S_PARAMS; j++) grads[j] = NAN;
  for (size_t j = 0; j < S_BUFFERS; j++) after[j] = NAN;
  for (size_t i = 0; i < stage->nparams; i++)
    for (size_t j = stage->params[i].offset; j < stage->params[i].offset + stage->params[i].count;
         j++)
      grads[j] = 0.1f * params[j] + s_float(w, r->id, worker, batch, j);
  for (size_t i = 0; i < stage->nbuffers; i++)
    for (size_t j = stage->buffers[i].offset;
         j < stage->buffers[i].offset + stage->buffers[i].count; j++)
      after[j] = 0.9f * buffers[j] + s_float(w, r->id, worker, batch, 500 + j);
  /* that of the same worker of a stage with as many */
  const size_t index = worker - stage->first_worker;
  gt_ps_push push = {.samples = (int64_t)s_draw(w, r->id, index, batch, 900, 5) + first,
                     .loss_sum = (double)s_float(w, r->id, worker, batch, 901),
                     .buffers = after,
                     .nonfinite = s_bad(w, r->id, worker, batch)};
  if (push.nonfinite) grads[stage->params[0].offset] = INFINITY;
  return push;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Cuts [0, n) into `parts` parts, the last of which ends with n. */
static size_t s_cut(size_t n, size_t parts, size_t k) {
  return n * k / parts;
}

/* Stage k has every stages-th piece, so that ranges of stages alternate. */
static void s_ranges(s_shape *s, size_t k) {
  gt_ps_stage *stage = &s->stages[k];
  const size_t pieces = 2 * s->nstages;
  for (size_t i = k; i < pieces; i += s->nstages) {
    const size_t from = s_cut(s->nparams, pieces, i), to = s_cut(s->nparams, pieces, i + 1);
    s->params[k][stage->nparams++] = (gt_ps_range){from, to - from};
  }
  const size_t from = s_cut(s->nbuffers, s->nstages, k), to = s_cut(s->nbuffers, s->nstages, k + 1);
  if (to > from) s->buffers[k][stage->nbuffers++] = (gt_ps_range){from, to - from};
  stage->params = s->params[k];
  stage->buffers = s->buffers[k];
}

/* Stage k has floats of the stage before, too: the end of its first range and the begin of its own,
   in one. */
static void s_tie(s_shape *s, size_t k, gt_rng *rng) {
  gt_ps_range *own = &s->params[k][0];
  const size_t back = 1 + (size_t)gt_rng_below(rng, s->params[k - 1][0].count);
  own->offset -= back;
  own->count += back;
}

static void s_shape_of(s_world *w, s_region *r) {
  s_shape *s = &r->shape;
  s->nstages = 1 + (size_t)gt_rng_below(&w->rng, S_STAGES);
  s->nparams = 12 + (size_t)gt_rng_below(&w->rng, S_PARAMS - 11);
  s->nbuffers = (size_t)gt_rng_below(&w->rng, S_BUFFERS + 1);
  for (size_t k = 0; k < s->nstages; k++) {
    s->stages[k].first_worker = s->nworkers;
    s->nworkers += s->stages[k].workers = 1 + (size_t)gt_rng_below(&w->rng, 3);
    s_ranges(s, k);
  }
  for (size_t k = s->nstages; k-- > 1;)
    if (gt_rng_below(&w->rng, 2)) s_tie(s, k, &w->rng);
  s->ntensors = 1 + s->nparams % S_TENSORS;
  for (size_t t = 0; t < s->ntensors; t++) {
    const size_t from = s_cut(s->nparams, s->ntensors, t);
    s->tensors[t] =
        (gt_view){.offset = from, .count = s_cut(s->nparams, s->ntensors, t + 1) - from};
  }
}

/* The regions' tensors alternate in the model. */
static void s_owners(s_world *w) {
  for (size_t t = 0; t < S_TENSORS; t++)
    for (size_t i = 0; i < w->n; i++)
      if (t < w->regions[i].shape.ntensors) w->owners[w->nowners++] = i;
}

void s_shapes(s_world *w) {
  for (size_t i = 0; i < w->n; i++) s_shape_of(w, &w->regions[i]);
  s_shape *last = &w->regions[gt_rng_below(&w->rng, w->n)].shape;
  w->regions[0].shape.stages[0].counts = true;
  last->stages[last->nstages - 1].judges = true;
  s_owners(w);
}

/* ---- what must be ---------------------------------------------------------------------------- */

gt_optim *s_optim(const s_region *r, bool with_memory) {
  gt_optim *optim;
  const gt_optim_spec sgd = {
      .kind = GT_OPTIMIZER_SGD,
      .schedule = {.kind = GT_LR_COSINE, .lr = 0.1, .lr_min = 0.01, .total_steps = S_STEPS},
      .momentum = 0.9,
      .weight_decay = 0.01,
      .clip = r->world->spec.clip,
      .tensors = r->shape.tensors,
      .ntensors = r->shape.ntensors};
  assert_int_equal(gt_optim_create(&optim, &sgd, r->shape.nparams, with_memory), GT_OK);
  return optim;
}

void s_begin(const s_region *r, s_after *a) {
  *a = (s_after){0};
  for (size_t j = 0; j < S_PARAMS; j++) a->params[j] = 1 - 0.1f * (float)(j + r->id);
  for (size_t j = 0; j < S_BUFFERS; j++) a->buffers[j] = (float)j;
}

/* What the workers of a region have pushed for a step. */
typedef struct {
  float grads[S_WORKERS][S_PARAMS], buffers[S_WORKERS][S_BUFFERS];
  int64_t samples[S_WORKERS];
} s_pushed;

/* Of the numbers of a stage's workers. */
static float s_mean(const float *numbers, const int64_t *samples, size_t n) {
  const float *each[S_WORKERS];
  float mean;
  for (size_t i = 0; i < n; i++) each[i] = numbers + i;
  if (n == 1) return numbers[0];
  gt_vec_mean(gt_vec_of(&mean, 1), each, samples, n);
  return mean;
}

static bool s_has(const gt_ps_range *ranges, size_t n, size_t at) {
  for (size_t i = 0; i < n; i++)
    if (ranges[i].offset <= at && at < ranges[i].offset + ranges[i].count) return true;
  return false;
}

/* Stages with as many workers add their gradients worker by worker, others their means. */
static float s_gradient(const s_shape *shape, const s_pushed *all, size_t j) {
  float numbers[S_WORKERS], sum = -0.0f; /* -0 + x is x, whatever its sign */
  const int64_t *samples = NULL;
  size_t n = 0;
  for (size_t k = 0; k < shape->nstages; k++) {
    const gt_ps_stage *stage = &shape->stages[k];
    if (!s_has(stage->params, stage->nparams, j)) continue;
    const bool alike = n == stage->workers;
    if (n > 0 && !alike) sum += s_mean(numbers, samples, n);
    n = stage->workers;
    samples = all->samples + stage->first_worker;
    for (size_t i = 0; i < n; i++)
      numbers[i] = all->grads[stage->first_worker + i][j] + (alike ? numbers[i] : -0.0f);
  }
  return n > 0 ? sum + s_mean(numbers, samples, n) : sum;
}

static float s_buffer(const s_shape *shape, const s_pushed *all, size_t j) {
  size_t k = 0;
  while (!s_has(shape->stages[k].buffers, shape->stages[k].nbuffers, j)) k++;
  const gt_ps_stage *stage = &shape->stages[k];
  float numbers[S_WORKERS];
  for (size_t i = 0; i < stage->workers; i++) numbers[i] = all->buffers[stage->first_worker + i][j];
  return s_mean(numbers, all->samples + stage->first_worker, stage->workers);
}

/* The region's part of a step: its gradient and its buffers. */
static void s_region_step(const s_world *w, const s_region *r, int64_t batch, const s_after *now,
                          s_after *then, float *grads) {
  static s_pushed all;
  const s_shape *shape = &r->shape;
  for (size_t i = 0; i < shape->nworkers; i++) {
    const gt_ps_stage *stage = &shape->stages[s_stage_of(shape, i)];
    const gt_ps_push push =
        s_push(w, r, i, batch, now->params, now->buffers, all.grads[i], all.buffers[i]);
    all.samples[i] = push.samples;
    if (stage->counts) then->samples += push.samples;
    if (stage->judges) then->loss_sum += push.loss_sum;
  }
  for (size_t j = 0; j < shape->nparams; j++) grads[j] = s_gradient(shape, &all, j);
  for (size_t j = 0; j < shape->nbuffers; j++) then->buffers[j] = s_buffer(shape, &all, j);
}

static bool s_dropped(const s_world *w, int64_t batch) {
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->regions[i].shape.nworkers; k++)
      if (s_bad(w, i, k, batch)) return true;
  return false;
}

/* Of the gradients of all regions: of their tensors in the order of the model. */
static double s_norm(const s_world *w, gt_optim *const *optims, float grads[][S_PARAMS]) {
  double squares[S_REGIONS][S_TENSORS], sum = 0;
  size_t next[S_REGIONS] = {0};
  for (size_t i = 0; i < w->n; i++)
    gt_optim_squares(optims[i], gt_vec_of(grads[i], w->regions[i].shape.nparams), squares[i]);
  for (size_t t = 0; t < w->nowners; t++) sum += squares[w->owners[t]][next[w->owners[t]]++];
  return sqrt(sum);
}

static void s_judge_step(s_world *w, gt_optim *const *optims, int64_t batch) {
  static float grads[S_REGIONS][S_PARAMS];
  for (size_t i = 0; i < w->n; i++)
    s_region_step(w, &w->regions[i], batch, &w->after[i][batch], &w->after[i][batch + 1], grads[i]);
  const double norm = s_norm(w, optims, grads);
  w->clipped += w->spec.clip > 0 && norm > w->spec.clip;
  for (size_t i = 0; i < w->n; i++) {
    const size_t n = w->regions[i].shape.nparams;
    gt_optim_step_of(optims[i], gt_vec_of(w->after[i][batch + 1].params, n), gt_vec_of(grads[i], n),
                     gt_vec_of(NULL, n), norm);
  }
}

void s_judge(s_world *w) {
  gt_optim *optims[S_REGIONS];
  for (size_t i = 0; i < w->n; i++) {
    optims[i] = s_optim(&w->regions[i], true);
    s_begin(&w->regions[i], &w->after[i][0]);
  }
  for (int64_t batch = 0; batch < w->spec.steps; batch++) {
    const bool dropped = s_dropped(w, batch);
    for (size_t i = 0; i < w->n; i++) {
      w->after[i][batch + 1] = w->after[i][batch];
      w->after[i][batch + 1].nonfinite += dropped;
    }
    if (!dropped) s_judge_step(w, optims, batch);
  }
  for (size_t i = 0; i < w->n; i++) gt_optim_close(optims[i]);
}

void s_check_region(const s_world *w, const s_region *r) {
  const gt_ps_view v = s_look(w, r->id);
  const s_after *must = &w->after[r->id][v.steps];
  s_check(w, v.batches == v.steps && v.nonfinite == must->nonfinite);
  s_check(w, v.samples == must->samples);
  if (w->spec.no_data) return;
  s_check(w, memcmp(r->params, must->params, r->shape.nparams * sizeof(float)) == 0);
  s_check(w, memcmp(r->buffers, must->buffers, r->shape.nbuffers * sizeof(float)) == 0);
}
