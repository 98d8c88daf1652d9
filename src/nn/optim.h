/* The optimizers from inside: one file each, listed in optim.c. */
#ifndef GEOTRAIN_NN_OPTIM_H
#define GEOTRAIN_NN_OPTIM_H

#include "geotrain/nn.h"

#define GT_OPTIM_STATES 2

typedef struct {
  const char *name;
  const char *states[GT_OPTIM_STATES]; /* names of the state arrays; NULL: fewer */
  /* Whether this spec uses a state array (SGD without momentum has none); NULL: always. */
  bool (*uses)(const gt_optim_spec *spec, size_t state);
  /* One step over n elements at rate lr; step counts from 1.  acc may be NULL; state holds what `uses`.  params and acc get the very same update:
     it is rounded once, to a float, before it is added to either. */
  void (*step)(const gt_optim_spec *spec, double lr, int64_t step, size_t n, float *params, const float *grads, float *acc,
               float *const state[GT_OPTIM_STATES]);
} gt_optim_kind;

extern const gt_optim_kind gt_optim_sgd, gt_optim_adam, gt_optim_adamw;

#endif
