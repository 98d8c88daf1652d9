/* SGD with momentum (Polyak 1964), Nesterov's variant and weight decay, as PyTorch writes them: v =
   m v + (g + d w); w -= lr v. */
#include "optim.h"

static bool uses(const gt_optim_spec *spec, size_t state) {
  return state == 0 && spec->momentum != 0.0;
}

static void step(const gt_optim_spec *spec, const gt_optim_update *u) {
  const gt_optim_loops *loops = gt_optim_loops_used();
  const gt_sgd_constants c = {.lr = (float)u->lr,
                              .share = u->share,
                              .decay = (float)spec->weight_decay,
                              .momentum = (float)spec->momentum};
  if (!u->state[0])
    loops->plain(&c, u->n, u->params, u->grads, u->acc);
  else
    (spec->nesterov ? loops->nesterov : loops->heavy)(&c, u->n, u->params, u->grads, u->acc,
                                                      u->state[0]);
}

const gt_optim_kind gt_optim_sgd = {
    .name = "sgd", .states = {"momentum"}, .uses = uses, .step = step};
