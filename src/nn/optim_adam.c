/* Adam (Kingma and Ba 2015, Alg. 1) with L2 decay in the gradient, and AdamW (Loshchilov and Hutter
   2019, Alg. 2) with decoupled decay. */
#include <math.h>

#include "optim.h"

/* rate = lr / (1 - beta1^t), scale = 1 / sqrt(1 - beta2^t): bias correction. */
static void step(const gt_optim_spec *spec, const gt_optim_update *u, bool decoupled) {
  const double t = (double)u->step;
  const gt_adam_constants c = {
      .share = u->share,
      .rate = (float)(u->lr / (1.0 - pow(spec->beta1, t))),
      .scale = (float)(1.0 / sqrt(1.0 - pow(spec->beta2, t))),
      .beta1 = (float)spec->beta1,
      .beta2 = (float)spec->beta2,
      .epsilon = (float)spec->epsilon,
      .l2 = decoupled ? 0.0f : (float)spec->weight_decay,
      .shrink = decoupled ? (float)(u->lr * spec->weight_decay) : 0.0f,
  };
  gt_optim_loops_used()->adam(&c, u->n, u->params, u->grads, u->acc, u->state[0], u->state[1]);
}

static void adam(const gt_optim_spec *spec, const gt_optim_update *update) {
  step(spec, update, false);
}

static void adamw(const gt_optim_spec *spec, const gt_optim_update *update) {
  step(spec, update, true);
}

const gt_optim_kind gt_optim_adam = {
    .name = "adam", .states = {"moment1", "moment2"}, .step = adam};
const gt_optim_kind gt_optim_adamw = {
    .name = "adamw", .states = {"moment1", "moment2"}, .step = adamw};
