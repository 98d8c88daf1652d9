/* SGD with momentum (Polyak 1964), Nesterov's variant and weight decay, as PyTorch writes them: v =
   m v + (g + d w); w -= lr v. */
#include "optim.h"

static bool uses(const gt_optim_spec *spec, size_t state) {
  return state == 0 && spec->momentum != 0.0;
}

static void step(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params,
                 const float *grads, float *acc, float *const state[GT_OPTIM_STATES]) {
  (void)count;
  const gt_optim_loops *loops = gt_optim_loops_used();
  const float decay = (float)spec->weight_decay, momentum = (float)spec->momentum;
  if (!state[0])
    loops->plain((float)lr, decay, n, params, grads, acc);
  else if (spec->nesterov)
    loops->nesterov((float)lr, decay, momentum, n, params, grads, acc, state[0]);
  else
    loops->heavy((float)lr, decay, momentum, n, params, grads, acc, state[0]);
}

const gt_optim_kind gt_optim_sgd = {
    .name = "sgd", .states = {"momentum"}, .uses = uses, .step = step};
