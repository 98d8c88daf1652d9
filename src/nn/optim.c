/* The list of optimizers, and what all of them share: state arrays, the step count, the schedule. */
#include "optim.h"

#include <string.h>

static const gt_optim_kind *const kinds[] = {&gt_optim_sgd, &gt_optim_adam, &gt_optim_adamw};
enum { NKINDS = sizeof kinds / sizeof *kinds };

const char *const *gt_optim_names(void) {
  static const char *const names[NKINDS + 1] = {"sgd", "adam", "adamw"};
  return names;
}

extern const gt_optim_loops gt_optim_loops_plain;
#if defined(__x86_64__)
extern const gt_optim_loops gt_optim_loops_avx2, gt_optim_loops_avx512;
static const gt_optim_loops *const loops[GT_ISAS] = {
    [GT_ISA_PLAIN] = &gt_optim_loops_plain, [GT_ISA_AVX2] = &gt_optim_loops_avx2, [GT_ISA_AVX512] = &gt_optim_loops_avx512};
#else
static const gt_optim_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_optim_loops_plain};
#endif

const gt_optim_loops *gt_optim_loops_used(void) {
  return loops[gt_isa_used()];
}

struct gt_optim {
  const gt_optim_kind *kind;
  gt_optim_spec spec;
  size_t n;
  int64_t steps;
  float *state[GT_OPTIM_STATES];
};

static bool uses(const gt_optim *optim, size_t i) {
  const gt_optim_kind *kind = optim->kind;
  return kind->states[i] && (!kind->uses || kind->uses(&optim->spec, i));
}

gt_status gt_optim_create(gt_optim **out, const gt_optim_spec *spec, size_t n, bool with_memory) {
  const gt_optim_kind *kind = NULL;
  for (size_t i = 0; i < NKINDS; i++)
    if (strcmp(kinds[i]->name, spec->name) == 0) kind = kinds[i];
  if (!kind) {
    const char *near = gt_nearest(spec->name, gt_optim_names(), NKINDS);
    return GT_FAIL(GT_ERR_JOB, "train.optimizer.name is \"%s\"; \"%s\" is needed%s", spec->name, near ? near : "sgd",
                   near ? "" : ", or adam, or adamw");
  }
  if (spec->nesterov && !(spec->momentum > 0.0))
    return GT_FAIL(GT_ERR_JOB, "train.optimizer.nesterov is true with momentum %g; a momentum above 0 is needed", spec->momentum);
  gt_optim *optim = GT_NEW(gt_optim);
  optim->kind = kind;
  optim->spec = *spec;
  optim->spec.name = kind->name;
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

/* Whether every state array that the kind needs is there: not in a simulation. */
static bool has_memory(const gt_optim *optim) {
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (uses(optim, i) && !optim->state[i]) return false;
  return true;
}

void gt_optim_step(gt_optim *optim, gt_vec params, gt_vec grads, gt_vec acc) {
  if (params.n != optim->n || grads.n != optim->n || (acc.data && acc.n != optim->n)) {
    gt_bug("an optimizer of %zu parameters was given %zu with %zu gradients and %zu sums", optim->n, params.n, grads.n, acc.n);
  }
  const double lr = gt_optim_lr(optim);
  optim->steps++;
  if (params.data && grads.data && has_memory(optim))
    optim->kind->step(&optim->spec, lr, optim->steps, optim->n, params.data, grads.data, acc.data, optim->state);
}

int64_t gt_optim_steps(const gt_optim *optim) {
  return optim->steps;
}

double gt_optim_lr(const gt_optim *optim) {
  return gt_lr_at(&optim->spec.schedule, optim->steps);
}

void gt_optim_save(gt_optim *optim, gt_state *state) {
  gt_state_add(state, "optim/", "steps", GT_TYPE_I64, &optim->steps, 1);
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (uses(optim, i)) gt_state_add(state, "optim/", optim->kind->states[i], GT_TYPE_F32, optim->state[i], optim->n);
}

gt_status gt_optim_load(gt_optim *optim, const gt_state *state) {
  int64_t steps = 0;
  GT_TRY(gt_state_get(state, "optim/", "steps", GT_TYPE_I64, &steps, 1));
  if (steps < 0) return GT_FAIL(GT_ERR_CKPT, "optim/steps is %lld; 0 or more is needed", (long long)steps);
  for (size_t i = 0; i < GT_OPTIM_STATES; i++)
    if (optim->state[i]) GT_TRY(gt_state_get(state, "optim/", optim->kind->states[i], GT_TYPE_F32, optim->state[i], optim->n));
  optim->steps = steps;
  return GT_OK;
}
