/* SGD with momentum (Polyak 1964), Nesterov's variant and weight decay, as PyTorch writes them: v = m v + (g + d w); w -= lr v. */
#include "optim.h"
#include "simd.h"

static bool uses(const gt_optim_spec *spec, size_t state) {
  return state == 0 && spec->momentum != 0.0;
}

GT_CLONES static void plain(float lr, float decay, size_t n, float *restrict w, const float *restrict g, float *restrict acc) {
  for (size_t i = 0; i < n; i++) {
    const float u = -lr * (g[i] + decay * w[i]);
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

GT_CLONES static void heavy(float lr, float decay, float m, size_t n, float *restrict w, const float *restrict g, float *restrict acc,
                            float *restrict v) {
  for (size_t i = 0; i < n; i++) {
    v[i] = m * v[i] + (g[i] + decay * w[i]);
    const float u = -lr * v[i];
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

GT_CLONES static void nesterov(float lr, float decay, float m, size_t n, float *restrict w, const float *restrict g, float *restrict acc,
                               float *restrict v) {
  for (size_t i = 0; i < n; i++) {
    const float d = g[i] + decay * w[i];
    v[i] = m * v[i] + d;
    const float u = -lr * (d + m * v[i]);
    w[i] += u;
    if (acc) acc[i] += u;
  }
}

static void step(const gt_optim_spec *spec, double lr, int64_t count, size_t n, float *params, const float *grads, float *acc,
                 float *const state[GT_OPTIM_STATES]) {
  (void)count;
  const float decay = (float)spec->weight_decay, momentum = (float)spec->momentum;
  if (!state[0])
    plain((float)lr, decay, n, params, grads, acc);
  else if (spec->nesterov)
    nesterov((float)lr, decay, momentum, n, params, grads, acc, state[0]);
  else
    heavy((float)lr, decay, momentum, n, params, grads, acc, state[0]);
}

const gt_optim_kind gt_optim_sgd = {.name = "sgd", .states = {"momentum"}, .uses = uses, .step = step};
