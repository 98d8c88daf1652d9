/* Internals of the optimizers in GT_OPTIMIZERS. */
#pragma once

#include "geotrain/nn.h"

#define GT_OPTIM_STATES 2

/* One step over n elements at rate lr, with the gradients times `share`; step counts from 1.  acc
   can be NULL; state holds the arrays in use.  params and acc get exactly the same update: it is
   rounded once, to a float, before it is added to either. */
typedef struct {
  double lr;
  float share;
  int64_t step;
  size_t n;
  float *params;
  const float *grads;
  float *acc;
  float *const *state;
} gt_optim_update;

typedef struct {
  const char *name;
  const char *states[GT_OPTIM_STATES]; /* names of the state arrays; NULL: not used */
  /* True if this spec uses a state array (SGD without momentum has none); NULL: always. */
  bool (*uses)(const gt_optim_spec *spec, size_t state);
  void (*step)(const gt_optim_spec *spec, const gt_optim_update *update);
} gt_optim_kind;

/* Constants of one step of SGD; share: factor of the gradient. */
typedef struct {
  float lr, share, decay, momentum;
} gt_sgd_constants;

/* Constants of one step of Adam: share as for SGD; rate = lr / (1 - beta1^t), scale = 1 / sqrt(1 -
   beta2^t); l2: decay added to the gradient; shrink: decoupled decay. */
typedef struct {
  float share, rate, scale, beta1, beta2, epsilon, l2, shrink;
} gt_adam_constants;

/* The updates, compiled for each instruction set from isa/optim.c without contraction, so that all
   sets give the same bits.  An update is rounded once, and the same number is added to w and acc
   (NULL is allowed). */
typedef struct {
  void (*plain)(const gt_sgd_constants *k, size_t n, float *restrict w, const float *restrict g,
                float *restrict acc);
  void (*heavy)(const gt_sgd_constants *k, size_t n, float *restrict w, const float *restrict g,
                float *restrict acc, float *restrict v);
  void (*nesterov)(const gt_sgd_constants *k, size_t n, float *restrict w, const float *restrict g,
                   float *restrict acc, float *restrict v);
  void (*adam)(const gt_adam_constants *k, size_t n, float *restrict w, const float *restrict g,
               float *restrict acc, float *restrict m, float *restrict v);
  /* Returns the sum of the squares of g, in float64. */
  double (*squares)(size_t n, const float *g);
} gt_optim_loops;
const gt_optim_loops *gt_optim_loops_used(void);

#define GT_OPTIM_DECLARE(constant, name, table) extern const gt_optim_kind table;
GT_OPTIMIZERS(GT_OPTIM_DECLARE)
#undef GT_OPTIM_DECLARE
