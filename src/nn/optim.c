/* Shared by all optimizers: state arrays, the step count, the schedule, clipping. */
#include "optim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TABLE(constant, name, table) [constant] = &table,
static const gt_optim_kind *const kinds[] = {GT_OPTIMIZERS(TABLE)};

#define PARTS 6 /* step, share and end of the previous and of the current segment */

struct gt_optim {
  const gt_optim_kind *kind;
  gt_optim_spec spec;
  size_t n;
  int64_t steps;
  int64_t renewed; /* the step at which it was renewed, 0: never */
  bool told;       /* the next step is clipped by `norm` */
  double norm;
  float *state[GT_OPTIM_STATES];
  double parts[PARTS]; /* segments of the schedule, as saved */
};

static bool spec_uses(const gt_optim_spec *spec, size_t i) {
  const gt_optim_kind *kind = kinds[spec->kind];
  return kind->states[i] && (!kind->uses || kind->uses(spec, i));
}

static bool uses(const gt_optim *optim, size_t i) {
  return optim->n > 0 && spec_uses(&optim->spec, i);
}

size_t gt_optim_arrays(const gt_optim_spec *spec) {
  size_t n = 0;
  for (size_t i = 0; i < GT_OPTIM_STATES; i++) n += spec_uses(spec, i);
  return n;
}

gt_status gt_optim_create(gt_optim **out, const gt_optim_spec *spec, size_t n, bool with_memory) {
  if (spec->nesterov && !(spec->momentum > 0.0))
    return GT_FAIL(GT_ERR_JOB,
                   "train.optimizer.nesterov is true with momentum %g; expected a momentum above 0",
                   spec->momentum);
  gt_optim *optim = GT_NEW(gt_optim);
  optim->kind = kinds[spec->kind];
  optim->spec = *spec;
  optim->n = n;
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (with_memory && uses(optim, i)) optim->state[i] = GT_NEW_ARRAY(float, n);
  *out = optim;
  return GT_OK;
}

void gt_optim_close(gt_optim *optim) {
  if (!optim) return;
  for (size_t i = 0; i < GT_OPTIM_STATES; i++) gt_free(optim->state[i]);
  gt_free(optim);
}

/* True if all state arrays of this kind are allocated (not in a simulation). */
static bool has_memory(const gt_optim *optim) {
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (uses(optim, i) && !optim->state[i]) return false;
  return true;
}

size_t gt_optim_tensors(const gt_optim *optim) {
  return optim->spec.ntensors ? optim->spec.ntensors : 1;
}

/* Returns the sum of squares of one tensor of the gradient. */
static double squares_of(const gt_optim *optim, const float *grads, size_t i) {
  const gt_optim_spec *spec = &optim->spec;
  const gt_view whole = {.count = optim->n}, *of = spec->ntensors ? &spec->tensors[i] : &whole;
  return gt_optim_loops_used()->squares(of->count, grads + of->offset);
}

void gt_optim_squares(const gt_optim *optim, gt_vec grads, double *squares) {
  for (size_t i = 0; grads.data && i < gt_optim_tensors(optim); i++)
    squares[i] = squares_of(optim, grads.data, i);
}

/* Returns the Euclidean norm of the gradient; 0 if it is not needed. */
static double norm_of(const gt_optim *optim, gt_vec grads) {
  double sum = 0;
  if (!(optim->spec.clip > 0) || !grads.data) return 0;
  for (size_t i = 0; i < gt_optim_tensors(optim); i++) sum += squares_of(optim, grads.data, i);
  return sqrt(sum);
}

static float share_of(const gt_optim_spec *spec, double norm) {
  return spec->clip > 0 && isfinite(norm) && norm > spec->clip ? (float)(spec->clip / norm) : 1;
}

void gt_optim_norm(gt_optim *optim, double norm) {
  optim->told = true;
  optim->norm = norm;
}

float gt_optim_step(gt_optim *optim, gt_vec params, gt_vec grads, gt_vec acc) {
  const double norm = optim->told ? optim->norm : norm_of(optim, grads);
  optim->told = false;
  return gt_optim_step_of(optim, params, grads, acc, norm);
}

float gt_optim_step_of(gt_optim *optim, gt_vec params, gt_vec grads, gt_vec acc, double norm) {
  if (params.n != optim->n || grads.n != optim->n || (acc.data && acc.n != optim->n)) {
    gt_bug("an optimizer of %zu parameters was given %zu with %zu gradients and %zu sums", optim->n,
           params.n, grads.n, acc.n);
  }
  const double lr = gt_optim_lr(optim);
  optim->steps++;
  if (!params.data || !grads.data || !has_memory(optim)) return 1;
  const gt_optim_update update = {.lr = lr,
                                  .share = share_of(&optim->spec, norm),
                                  .step = optim->steps - optim->renewed,
                                  .n = optim->n,
                                  .params = params.data,
                                  .grads = grads.data,
                                  .acc = acc.data,
                                  .state = optim->state};
  optim->kind->step(&optim->spec, &update);
  return update.share;
}

void gt_optim_renew(gt_optim *optim) {
  optim->renewed = optim->steps;
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (optim->state[i]) memset(optim->state[i], 0, optim->n * sizeof *optim->state[i]);
}

void gt_optim_count(gt_optim *optim) {
  optim->steps++;
}

int64_t gt_optim_steps(const gt_optim *optim) {
  return optim->steps;
}

double gt_optim_lr(const gt_optim *optim) {
  return gt_lr_at(&optim->spec.schedule, optim->steps);
}

gt_lr_schedule *gt_optim_schedule(gt_optim *optim) {
  return &optim->spec.schedule;
}

/* Saves the schedule if gt_lr_spread has changed it; otherwise the job determines it. */
static void save_schedule(gt_optim *optim, const char *prefix, gt_state *state) {
  const gt_lr_part *parts[] = {&optim->spec.schedule.before, &optim->spec.schedule.now};
  if (parts[1]->end == 0) return;
  for (size_t i = 0; i < 2; i++) {
    optim->parts[3 * i] = (double)parts[i]->step;
    optim->parts[3 * i + 1] = parts[i]->share;
    optim->parts[3 * i + 2] = (double)parts[i]->end;
  }
  gt_state_add(state, prefix, "schedule", GT_TYPE_F64, optim->parts, PARTS);
}

static gt_status load_schedule(gt_optim *optim, const char *prefix, const gt_state *state) {
  gt_lr_part parts[2];
  double v[PARTS];
  if (!gt_state_find(state, prefix, "schedule")) return GT_OK;
  GT_TRY(gt_state_get(state, prefix, "schedule", GT_TYPE_F64, v, PARTS));
  for (size_t i = 0; i < 2; i++) {
    const double *p = &v[3 * i];
    if (!(p[0] >= 0 && p[1] >= 0 && p[1] <= 1 && p[2] > 0 && p[2] < 0x1p53 && p[0] < 0x1p53))
      return GT_FAIL(GT_ERR_CKPT,
                     "%sschedule is invalid: from step %g, with a share of %g, to step %g", prefix,
                     p[0], p[1], p[2]);
    parts[i] = (gt_lr_part){.step = (int64_t)p[0], .share = p[1], .end = (int64_t)p[2]};
  }
  optim->spec.schedule.before = parts[0];
  optim->spec.schedule.now = parts[1];
  return GT_OK;
}

/* Saves or loads the step of the last renewal, if there was one. */
static gt_status renewal_of(gt_optim *optim, const char *prefix, gt_state_direction direction) {
  const gt_state_field renewed = {"renewed", GT_TYPE_I64, &optim->renewed, 1};
  if (direction.from) optim->renewed = 0;
  if (direction.from ? !gt_state_find(direction.from, prefix, "renewed") : optim->renewed == 0)
    return GT_OK;
  return gt_state_fields(direction, prefix, &renewed, 1);
}

/* Saves or loads the step count and the arrays. */
static gt_status fields_of(gt_optim *optim, const char *prefix, gt_state_direction direction) {
  gt_state_field fields[GT_OPTIM_STATES + 1] = {{"steps", GT_TYPE_I64, &optim->steps, 1}};
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (uses(optim, i))
      fields[i + 1] =
          (gt_state_field){optim->kind->states[i], GT_TYPE_F32, optim->state[i], optim->n};
  GT_TRY(renewal_of(optim, prefix, direction));
  return GT_STATE_FIELDS(direction, prefix, fields);
}

void gt_optim_save(gt_optim *optim, const char *owner, gt_state *state) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%soptim/", owner);
  (void)fields_of(optim, prefix, (gt_state_direction){.to = state});
  save_schedule(optim, prefix, state);
}

gt_status gt_optim_load(gt_optim *optim, const char *owner, const gt_state *state) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%soptim/", owner);
  GT_TRY(fields_of(optim, prefix, (gt_state_direction){.from = state}));
  if (optim->steps < 0 || optim->renewed < 0 || optim->renewed > optim->steps)
    return GT_FAIL(GT_ERR_CKPT, "%ssteps is %lld, renewed at %lld; expected 0 or more, and less",
                   prefix, (long long)optim->steps, (long long)optim->renewed);
  return load_schedule(optim, prefix, state);
}
