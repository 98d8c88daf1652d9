/* The expected results of the PSs of a pipeline, computed independently: beforehand, step by step;
   and for strategies without waiting after every event, from the messages that have arrived. */
#include "world_pipe.h"

/* True if every event is followed: messages are not forwarded. */
static bool is_followed(const w_spec *spec) {
  return p_is_free(spec) && spec->topology == GT_TOPOLOGY_MESH;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Returns the mean of one float of all pushes of a stage's workers. */
static float mean(const float *numbers, const int64_t *samples, size_t n) {
  const float *each[W_DESKS];
  float mean;
  for (size_t i = 0; i < n; i++) each[i] = numbers + i;
  if (n == 1) return numbers[0];
  gt_vec_mean(gt_vec_of(&mean, 1), each, samples, n);
  return mean;
}

static bool has(const gt_ps_range *ranges, size_t n, size_t at) {
  for (size_t i = 0; i < n; i++)
    if (ranges[i].offset <= at && at < ranges[i].offset + ranges[i].count) return true;
  return false;
}

/* Returns the gradient: stages with the same number of workers add their gradients worker by
   worker, others their means. */
static float gradient_of(const p_shape *shape, const p_push *const *all, size_t j) {
  float numbers[W_DESKS], sum = -0.0f; /* -0 + x is x, whatever its sign */
  int64_t samples[W_DESKS];
  size_t n = 0;
  for (const gt_ps_stage *stage = shape->stages; stage < shape->stages + shape->nstages; stage++) {
    if (!has(stage->params, stage->nparams, j)) continue;
    const bool alike = n == stage->workers;
    if (n > 0 && !alike) sum += mean(numbers, samples, n);
    n = stage->workers;
    for (size_t i = 0; i < n; i++) {
      samples[i] = all[stage->first_worker + i]->samples;
      numbers[i] = all[stage->first_worker + i]->grads[j] + (alike ? numbers[i] : -0.0f);
    }
  }
  return n > 0 ? sum + mean(numbers, samples, n) : sum;
}

static float buffer_of(const p_shape *shape, const p_push *const *all, size_t j) {
  const gt_ps_stage *stage = shape->stages;
  float numbers[W_DESKS];
  int64_t samples[W_DESKS];
  while (!has(stage->buffers, stage->nbuffers, j)) stage++;
  for (size_t i = 0; i < stage->workers; i++) {
    samples[i] = all[stage->first_worker + i]->samples;
    numbers[i] = all[stage->first_worker + i]->buffers[j];
  }
  return mean(numbers, samples, stage->workers);
}

/* Returns the norm of a gradient, from the part of each position; 0: steps are not clipped. */
static double norm_of(const world *w, float (*parts)[P_FLOATS]) {
  double squares[P_PLACES][P_TENSORS], sum = 0;
  size_t next[P_PLACES] = {0};
  if (!(w->spec.clip > 0)) return 0;
  for (size_t p = 0; p < w->spec.places; p++) {
    const w_region *r = p_region_at(w, p, 0);
    gt_optim_squares(p_member_of(r)->judge, gt_vec_of(parts[p], r->nparams), squares[p]);
  }
  for (size_t i = 0; i < w->pipe->ntensors; i++) {
    const size_t p = w->pipe->tensors[i];
    sum += squares[p][next[p]++];
  }
  return sqrt(sum);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

typedef struct {
  float model[P_FLOATS]; /* parameters, buffers */
  float gives[P_FLOATS]; /* contribution to the round: a gradient, or a model */
  gt_optim *optim;
} judged;

typedef struct {
  judged of[P_PLACES][P_REPLICAS];
  bool takes_part[P_REPLICAS];
  int64_t next[P_REPLICAS]; /* batch */
} judgement;

static bool averages(const world *w) {
  return w->spec.replicas > 1 && p_between(&w->spec)->sends == GT_MSG_STATE;
}

/* Makes a step of all positions of a replica, clipped by the norm of all. */
static void step(const world *w, judgement *all, size_t replica, float (*grads)[P_FLOATS]) {
  const double norm = norm_of(w, grads);
  w->pipe->cases.clipped += norm > w->spec.clip;
  for (size_t p = 0; p < w->spec.places; p++) {
    const size_t n = w->pipe->shapes[p].nparams;
    gt_optim_step_of(all->of[p][replica].optim, gt_vec_of(all->of[p][replica].model, n),
                     gt_vec_of(grads[p], n), gt_vec_of(NULL, n), norm);
  }
}

/* Computes the pushes of the region's workers for a batch with a model: its gradient, and the
   buffers after it. */
static void compute(const w_region *r, int64_t batch, float *model, float *grads) {
  p_push pushes[W_DESKS];
  const p_push *all[W_DESKS];
  const p_shape *shape = p_shape_of(r);
  for (size_t k = 0; k < r->nworkers; k++) {
    p_push_of(r, k, batch, model, model + r->nparams, &pushes[k]);
    all[k] = &pushes[k];
  }
  for (size_t j = 0; j < r->nparams; j++) grads[j] = gradient_of(shape, all, j);
  for (size_t j = 0; j < r->nbuffers; j++) model[r->nparams + j] = buffer_of(shape, all, j);
}

/* Records the models of a single replica after every step. */
static void record(const world *w, const judgement *all) {
  for (size_t p = 0; w->spec.replicas == 1 && p < w->spec.places; p++)
    memcpy(w->pipe->after[p][all->next[0]], all->of[p][0].model, sizeof all->of[p][0].model);
}

/* Computes the replica's next contribution, from its next steps that are not dropped. */
static void contribute(const world *w, judgement *all, size_t replica) {
  const int64_t most = averages(w) ? w->spec.options.period : 1, end = w->spec.steps[replica];
  float grads[P_PLACES][P_FLOATS] = {0};
  all->takes_part[replica] = false;
  for (int64_t committed = 0; committed < most && all->next[replica] < end;) {
    const int64_t batch = all->next[replica]++;
    if (p_is_dropped(w, replica, batch)) {
      w->pipe->cases.dropped++;
      record(w, all);
      continue;
    }
    for (size_t p = 0; p < w->spec.places; p++)
      compute(p_region_at(w, p, replica), batch, all->of[p][replica].model, grads[p]);
    if (averages(w)) step(w, all, replica, grads);
    all->takes_part[replica] = true;
    committed++;
  }
  for (size_t p = 0; p < w->spec.places; p++)
    memcpy(all->of[p][replica].gives, averages(w) ? all->of[p][replica].model : grads[p],
           sizeof grads[p]);
}

static bool form(const world *w, const judgement *all, size_t place, float *mean, size_t n) {
  double total = 0;
  bool first = true;
  const gt_vec sum = gt_vec_of(mean, n);
  for (size_t c = 0; c < w->spec.replicas; c++)
    if (all->takes_part[c]) total += w->pipe->replica_weights[c];
  for (size_t c = 0; c < w->spec.replicas; c++) {
    if (!all->takes_part[c]) continue;
    const float share = (float)(w->pipe->replica_weights[c] / total);
    const gt_vec x = gt_vec_of((float *)(uintptr_t)all->of[place][c].gives, n);
    if (first)
      gt_vec_set_scaled(sum, share, x);
    else
      gt_vec_axpy(sum, share, x);
    first = false;
  }
  return !first;
}

/* Makes a round; false: no replica has taken part. */
static bool make_round(const world *w, judgement *all) {
  float means[P_PLACES][P_FLOATS] = {0};
  for (size_t c = 0; c < w->spec.replicas; c++) contribute(w, all, c);
  for (size_t p = 0; p < w->spec.places; p++) {
    const p_shape *s = &w->pipe->shapes[p];
    if (!form(w, all, p, means[p], s->nparams + (averages(w) ? s->nbuffers : 0))) return false;
  }
  for (size_t c = 0; c < w->spec.replicas; c++)
    if (!averages(w)) step(w, all, c, means);
  for (size_t p = 0; averages(w) && p < w->spec.places; p++)
    for (size_t c = 0; c < w->spec.replicas; c++)
      memcpy(all->of[p][c].model, means[p], sizeof means[p]);
  record(w, all);
  return true;
}

/* Computes the expected state of all regions at the end. */
static void judge(const world *w, judgement *all) {
  *all = (judgement){0};
  for (size_t i = 0; i < w->n; i++) {
    const w_region *r = &w->regions[i];
    judged *j = &all->of[p_member_of(r)->place][p_member_of(r)->replica];
    j->optim = p_open_optim(r, true);
    p_begin_model(r, j->model, j->model + r->nparams);
  }
  record(w, all);
  while (make_round(w, all)) continue;
  for (size_t p = 0; p < w->spec.places; p++)
    for (size_t c = 0; c < w->spec.replicas; c++) gt_optim_close(all->of[p][c].optim);
}

void p_judge_single(world *w) {
  judgement all;
  if (w->spec.replicas == 1) judge(w, &all);
}

/* True if equal; a tree and a ring add in another order. */
static bool is_same(const world *w, const float *x, const float *must, size_t n) {
  if (w->spec.topology == GT_TOPOLOGY_MESH || w->spec.topology == GT_TOPOLOGY_HUB)
    return w_same(x, must, n);
  for (size_t j = 0; j < n; j++)
    if (fabsf(x[j] - must[j]) > 1e-4f) return false;
  return true;
}

static void check_rounds(world *w) {
  judgement must;
  judge(w, &must);
  for (size_t i = 0; i < w->n; i++) {
    const w_region *r = &w->regions[i];
    const float *model = must.of[p_member_of(r)->place][p_member_of(r)->replica].model;
    w_check(w, is_same(w, r->params, model, r->nparams));
    w_check(w, is_same(w, r->buffers, model + r->nparams, r->nbuffers));
    w_check(w, w_same(r->params, p_region_at(w, p_member_of(r)->place, 0)->params, r->nparams));
  }
}

/* ---- updates --------------------------------------------------------------------------------- */

/* The sum of the gradients of all steps of a region. */
static void sum_up(const w_region *r, float *sum) {
  float grads[P_PARAMS], model[P_FLOATS] = {0};
  memset(sum, 0, P_PARAMS * sizeof *sum);
  for (int64_t b = 0; b < r->world->spec.steps[p_member_of(r)->replica]; b++) {
    if (p_is_dropped(r->world, p_member_of(r)->replica, b)) continue;
    compute(r, b, model, grads);
    for (size_t j = 0; j < r->nparams; j++) sum[j] += grads[j];
  }
}

/* Every update is there once: no sum of them rounds, and gradients do not depend on parameters. */
static void check_updates(world *w) {
  const float lr = 0.125f, share = (float)w->spec.options.scale;
  for (size_t i = 0; i < w->n; i++) {
    const w_region *r = &w->regions[i];
    float must[P_PARAMS], buffers[P_BUFFERS], sum[P_PARAMS];
    p_begin_model(r, must, buffers);
    for (size_t c = 0; c < w->spec.replicas; c++) {
      sum_up(p_region_at(w, p_member_of(r)->place, c), sum);
      for (size_t j = 0; j < r->nparams; j++)
        must[j] -= lr * (c == p_member_of(r)->replica ? 1 : share) * sum[j];
    }
    w_check(w, w_same(r->params, must, r->nparams));
  }
}

/* ---- strategies without waits ---------------------------------------------------------------- */

/* The region has used what has arrived: an update, or a model. */
void p_hear(w_region *r, size_t from, const w_frame *f) {
  world *w = r->world;
  const w_spec *s = &w->spec;
  p_member *m = p_member_of(r);
  if (!is_followed(s)) return;
  for (size_t k = 0; k < r->nworkers; k++)
    w->pipe->cases.meanwhile += r->workers[k].work == W_TRAINING;
  const gt_vec all = gt_vec_of((float *)(uintptr_t)f->body.floats, r->nparams + r->nbuffers);
  const gt_vec params = gt_vec_of(m->must, r->nparams), theirs = gt_vec_range(all, 0, r->nparams);
  if (f->head.kind == GT_MSG_UPDATE) {
    const double rate = s->options.gradients ? -gt_optim_lr(m->judge) : 1;
    gt_vec_axpy(params, (float)(s->options.scale * rate), theirs);
    return;
  }
  const float share = (float)w->pipe->replica_weights[w->pipe->members[from].replica];
  gt_vec_lerp(params, share, theirs);
  for (size_t j = 0; j < r->nbuffers; j++) {
    const float other = all.data[r->nparams + j];
    float *b = &m->must[r->nparams + j];
    *b += share * (other - *b);
    for (w_worker *k = r->workers; k < r->workers + r->nworkers; k++) {
      float *add = &k->add[k->batch % 2][j];
      *add = *add * (1 - share) + share * other;
    }
  }
  for (w_worker *k = r->workers; k < r->workers + r->nworkers; k++)
    k->keep[k->batch % 2] *= 1 - share;
}

/* The step that the region has made, clipped by the norm of its replica's gradient. */
static void make_step(w_region *r) {
  world *w = r->world;
  p_member *m = p_member_of(r);
  const int64_t batch = m->committed;
  float parts[P_PLACES][P_FLOATS], before[P_FLOATS] = {0};
  for (size_t p = 0; p < w->spec.places; p++) {
    const w_region *member = &w->regions[m->stage_group[p]];
    const p_push *all[W_DESKS];
    for (size_t k = 0; k < member->nworkers; k++) all[k] = &member->workers[k].pushed[batch % 2];
    for (size_t j = 0; j < member->nparams; j++)
      parts[p][j] = gradient_of(p_shape_of(member), all, j);
    for (size_t j = 0; member == r && j < r->nbuffers; j++)
      before[j] = buffer_of(p_shape_of(r), all, j);
  }
  gt_optim_step_of(m->judge, gt_vec_of(m->must, r->nparams), gt_vec_of(parts[m->place], r->nparams),
                   gt_vec_of(NULL, r->nparams), norm_of(w, parts));
  const w_worker *k = &r->workers[0]; /* all were ordered at the same time */
  for (size_t j = 0; j < r->nbuffers; j++)
    m->must[r->nparams + j] = before[j] * k->keep[batch % 2] + k->add[batch % 2][j];
}

void p_follow(w_region *r) {
  world *w = r->world;
  p_member *m = p_member_of(r);
  const gt_ps_view v = w_view(w, r->id);
  if (!is_followed(&w->spec)) return;
  w_check(w, v.steps <= m->committed + 1);
  if (v.steps > m->committed && v.nonfinite == m->bad) make_step(r);
  m->committed = v.steps;
  m->bad = v.nonfinite;
  w_check(w, w_same(r->params, m->must, r->nparams));
  for (size_t j = 0; j < r->nbuffers; j++)
    w_check(w, fabsf(r->buffers[j] - m->must[r->nparams + j]) < 1e-4f);
  /* rounding does not add up */
  memcpy(m->must + r->nparams, r->buffers, r->nbuffers * sizeof(float));
}

/* ---- counts, the end ------------------------------------------------------------------------- */

double p_loss(const w_region *r) {
  double sum = 0;
  for (int64_t b = 0; b < w_view(r->world, r->id).steps; b++)
    for (size_t k = 0; k < r->nworkers && !p_is_dropped(r->world, p_member_of(r)->replica, b); k++)
      if (p_stage_of(r, k)->judges) sum += p_loss_of(r, k, b);
  return sum;
}

void p_check_region(const w_region *r) {
  const world *w = r->world;
  const p_member *m = p_member_of(r);
  const gt_ps_view v = w_view(w, r->id);
  int64_t nonfinite = 0, samples = 0;
  for (int64_t b = 0; b < v.steps; b++) {
    const bool bad = p_is_dropped(w, m->replica, b);
    nonfinite += bad;
    for (size_t k = 0; k < r->nworkers && !bad; k++)
      if (p_stage_of(r, k)->counts) samples += p_samples_of(r, k, b);
  }
  w_check(w, v.batches == v.steps && v.nonfinite == nonfinite && v.samples == samples);
  if (w->spec.no_data || w->spec.replicas > 1) return;
  w_check(w, w_same(r->params, w->pipe->after[m->place][v.steps], r->nparams));
  w_check(w, w_same(r->buffers, w->pipe->after[m->place][v.steps] + r->nparams, r->nbuffers));
}

void p_check_end(world *w) {
  w_check(w, w_all_in(w, GT_PS_COMPLETE));
  for (size_t i = 0; i < w->n; i++) {
    w_check(w, w_view(w, i).steps == w->spec.steps[p_replica_of(&w->regions[i])]);
    p_check_region(&w->regions[i]);
  }
  if (w->spec.replicas == 1) return;
  if (!p_is_free(&w->spec))
    check_rounds(w);
  else if (p_is_exact(&w->spec) && w->spec.clip <= 0)
    check_updates(w);
}
