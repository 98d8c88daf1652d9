/* Internals of the optimizers in GT_OPTIMIZERS. */
#ifndef GEOTRAIN_NN_OPTIM_H
#define GEOTRAIN_NN_OPTIM_H

#include "geotrain/nn.h"

#define GT_OPTIM_STATES 2

typedef struct {
  const char *name;
  const char *states[GT_OPTIM_STATES]; /* names of the state arrays; NULL: not used */
  /* Whether this spec uses a state array (SGD without momentum has none); NULL: always. */
  bool (*uses)(const gt_optim_spec *spec, size_t state);
  /* One step over n elements at rate lr; step counts from 1.  acc may be NULL; state holds the
     arrays in use.  params and acc get exactly the same update: it is rounded once, to a float,
     before it is added to either. */
  void (*step)(const gt_optim_spec *spec, double lr, int64_t step, size_t n, float *params,
               const float *grads, float *acc, float *const state[GT_OPTIM_STATES]);
} gt_optim_kind;

/* Constants of one step of Adam: rate = lr / (1 - beta1^t), scale = 1 / sqrt(1 - beta2^t); l2:
   decay added to the gradient; shrink: decoupled decay. */
typedef struct {
  float rate, scale, beta1, beta2, epsilon, l2, shrink;
} gt_adam_constants;

/* The updates, compiled for each instruction set from isa/optim.c without contraction, so that all
   sets give the same bits.  An update is rounded once, and the same number is added to w and acc,
   which may be NULL. */
typedef struct {
  void (*plain)(float lr, float decay, size_t n, float *restrict w, const float *restrict g,
                float *restrict acc);
  void (*heavy)(float lr, float decay, float m, size_t n, float *restrict w,
                const float *restrict g, float *restrict acc, float *restrict v);
  void (*nesterov)(float lr, float decay, float m, size_t n, float *restrict w,
                   const float *restrict g, float *restrict acc, float *restrict v);
  void (*adam)(const gt_adam_constants *k, size_t n, float *restrict w, const float *restrict g,
               float *restrict acc, float *restrict m, float *restrict v);
} gt_optim_loops;
const gt_optim_loops *gt_optim_loops_used(void);

#define GT_OPTIM_DECLARE(constant, name, table) extern const gt_optim_kind table;
GT_OPTIMIZERS(GT_OPTIM_DECLARE)
#undef GT_OPTIM_DECLARE

#endif
