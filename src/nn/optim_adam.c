/* Adam (Kingma and Ba 2015, Alg. 1) with L2 decay in the gradient, and AdamW (Loshchilov and Hutter 2019, Alg. 2) with decay apart. */
#include <math.h>

#include "optim.h"
#include "simd.h"

typedef struct {
  float rate, scale, beta1, beta2, epsilon, l2, shrink;
} constants;

GT_CLONES static void update(const constants *k, size_t n, float *restrict w, const float *restrict g, float *restrict acc, float *restrict m,
                             float *restrict v) {
  const constants c = *k;
  for (size_t i = 0; i < n; i++) {
    const float d = g[i] + c.l2 * w[i];
    m[i] = c.beta1 * m[i] + (1.0f - c.beta1) * d;
    v[i] = c.beta2 * v[i] + (1.0f - c.beta2) * d * d;
    const float u = -c.rate * m[i] / (sqrtf(v[i]) * c.scale + c.epsilon) - c.shrink * w[i];
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

/* rate = lr / (1 - beta1^t), scale = 1 / sqrt(1 - beta2^t): bias correction. */
static void step(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params, const float *grads, float *acc,
                 float *const state[GT_OPTIM_STATES], bool decoupled) {
  const double t = (double)count;
  const constants c = {
      .rate = (float)(lr / (1.0 - pow(spec->beta1, t))),
      .scale = (float)(1.0 / sqrt(1.0 - pow(spec->beta2, t))),
      .beta1 = (float)spec->beta1,
      .beta2 = (float)spec->beta2,
      .epsilon = (float)spec->epsilon,
      .l2 = decoupled ? 0.0f : (float)spec->weight_decay,
      .shrink = decoupled ? (float)(lr * spec->weight_decay) : 0.0f,
  };
  update(&c, n, params, grads, acc, state[0], state[1]);
}

static void adam(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params, const float *grads, float *acc,
                 float *const state[GT_OPTIM_STATES]) {
  step(spec, lr, count, n, params, grads, acc, state, false);
}

static void adamw(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params, const float *grads, float *acc,
                  float *const state[GT_OPTIM_STATES]) {
  step(spec, lr, count, n, params, grads, acc, state, true);
}

const gt_optim_kind gt_optim_adam = {.name = "adam", .states = {"moment1", "moment2"}, .step = adam};
const gt_optim_kind gt_optim_adamw = {.name = "adamw", .states = {"moment1", "moment2"}, .step = adamw};
