/* The updates of the optimizers, element by element. */
#include <math.h>

#include "geotrain/tensor/vector.h"
#include "optim.h"

/* SGD: optim_sgd.c. */
static void plain(float lr, float decay, size_t n, float *restrict w, const float *restrict g,
                  float *restrict acc) {
  for (size_t i = 0; i < n; i++) {
    const float u = -lr * (g[i] + decay * w[i]);
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

static void heavy(float lr, float decay, float m, size_t n, float *restrict w,
                  const float *restrict g, float *restrict acc, float *restrict v) {
  for (size_t i = 0; i < n; i++) {
    v[i] = m * v[i] + (g[i] + decay * w[i]);
    const float u = -lr * v[i];
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

static void nesterov(float lr, float decay, float m, size_t n, float *restrict w,
                     const float *restrict g, float *restrict acc, float *restrict v) {
  for (size_t i = 0; i < n; i++) {
    const float d = g[i] + decay * w[i];
    v[i] = m * v[i] + d;
    const float u = -lr * (d + m * v[i]);
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

/* Adam and AdamW: optim_adam.c. */
static void adam(const gt_adam_constants *k, size_t n, float *restrict w, const float *restrict g,
                 float *restrict acc, float *restrict m, float *restrict v) {
  const gt_adam_constants c = *k;
  for (size_t i = 0; i < n; i++) {
    const float d = g[i] + c.l2 * w[i];
    m[i] = c.beta1 * m[i] + (1.0f - c.beta1) * d;
    v[i] = c.beta2 * v[i] + (1.0f - c.beta2) * d * d;
    const float u = -c.rate * m[i] / (sqrtf(v[i]) * c.scale + c.epsilon) - c.shrink * w[i];
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

const gt_optim_loops GT_FOR_ISA(gt_optim_loops) = {
    .plain = plain, .heavy = heavy, .nesterov = nesterov, .adam = adam};
