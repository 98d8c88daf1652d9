/* Adam (Kingma and Ba 2015, Alg. 1) with L2 decay in the gradient, and AdamW (Loshchilov and Hutter
   2019, Alg. 2) with decoupled decay. */
#include <math.h>

#include "optim.h"

/* rate = lr / (1 - beta1^t), scale = 1 / sqrt(1 - beta2^t): bias correction. */
static void step(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params,
                 const float *grads, float *acc, float *const state[GT_OPTIM_STATES],
                 bool decoupled) {
  const double t = (double)count;
  const gt_adam_constants c = {
      .rate = (float)(lr / (1.0 - pow(spec->beta1, t))),
      .scale = (float)(1.0 / sqrt(1.0 - pow(spec->beta2, t))),
      .beta1 = (float)spec->beta1,
      .beta2 = (float)spec->beta2,
      .epsilon = (float)spec->epsilon,
      .l2 = decoupled ? 0.0f : (float)spec->weight_decay,
      .shrink = decoupled ? (float)(lr * spec->weight_decay) : 0.0f,
  };
  gt_optim_loops_used()->adam(&c, n, params, grads, acc, state[0], state[1]);
}

static void adam(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params,
                 const float *grads, float *acc, float *const state[GT_OPTIM_STATES]) {
  step(spec, lr, count, n, params, grads, acc, state, false);
}

static void adamw(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params,
                  const float *grads, float *acc, float *const state[GT_OPTIM_STATES]) {
  step(spec, lr, count, n, params, grads, acc, state, true);
}

const gt_optim_kind gt_optim_adam = {
    .name = "adam", .states = {"moment1", "moment2"}, .step = adam};
const gt_optim_kind gt_optim_adamw = {
    .name = "adamw", .states = {"moment1", "moment2"}, .step = adamw};
