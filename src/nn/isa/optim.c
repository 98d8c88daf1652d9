/* The updates of the optimizers, element by element. */
#include <math.h>

#include "geotrain/tensor/vector.h"
#include "optim.h"

/* SGD: optim_sgd.c. */
static void plain(const gt_sgd_constants *k, size_t n, float *restrict w, const float *restrict g,
                  float *restrict acc) {
  const gt_sgd_constants c = *k;
  for (size_t i = 0; i < n; i++) {
    const float u = -c.lr * (c.share * g[i] + c.decay * w[i]);
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

static void heavy(const gt_sgd_constants *k, size_t n, float *restrict w, const float *restrict g,
                  float *restrict acc, float *restrict v) {
  const gt_sgd_constants c = *k;
  for (size_t i = 0; i < n; i++) {
    v[i] = c.momentum * v[i] + (c.share * g[i] + c.decay * w[i]);
    const float u = -c.lr * v[i];
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

static void nesterov(const gt_sgd_constants *k, size_t n, float *restrict w,
                     const float *restrict g, float *restrict acc, float *restrict v) {
  const gt_sgd_constants c = *k;
  for (size_t i = 0; i < n; i++) {
    const float d = c.share * g[i] + c.decay * w[i];
    v[i] = c.momentum * v[i] + d;
    const float u = -c.lr * (d + c.momentum * v[i]);
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

/* Adam and AdamW: optim_adam.c. */
static void adam(const gt_adam_constants *k, size_t n, float *restrict w, const float *restrict g,
                 float *restrict acc, float *restrict m, float *restrict v) {
  const gt_adam_constants c = *k;
  for (size_t i = 0; i < n; i++) {
    const float d = c.share * g[i] + c.l2 * w[i];
    m[i] = c.beta1 * m[i] + (1.0f - c.beta1) * d;
    v[i] = c.beta2 * v[i] + (1.0f - c.beta2) * d * d;
    const float u = -c.rate * m[i] / (sqrtf(v[i]) * c.scale + c.epsilon) - c.shrink * w[i];
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

/* Uses the same number of partial sums with every set, so that all give the same bits. */
static double squares(size_t n, const float *g) {
  enum { SUMS = 32 };
  double sums[SUMS] = {0};
  size_t i = 0;
  for (; i + SUMS <= n; i += SUMS)
    for (size_t k = 0; k < SUMS; k++) sums[k] += (double)g[i + k] * (double)g[i + k];
  for (; i < n; i++) sums[i % SUMS] += (double)g[i] * (double)g[i];
  for (size_t half = SUMS / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; k++) sums[k] += sums[k + half];
  return sums[0];
}

const gt_optim_loops GT_FOR_ISA(gt_optim_loops) = {
    .plain = plain, .heavy = heavy, .nesterov = nesterov, .adam = adam, .squares = squares};
