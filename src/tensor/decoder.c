/* The operations of a transformer's decoder: functions of gt_kernels on the loops of isa/, and the
   scratch of attention. */
#include <math.h>

#include "kernels.h"
#include "loops.h"

void gt_layernorm_forward(float *y, float *saved, const float *x, const float *gamma,
                          const float *beta, size_t M, size_t D) {
  gt_loops()->layernorm->forward(y, saved, x, gamma, beta, M, D);
}

void gt_layernorm_backward_input(float *dx, const float *dy, const float *x, const float *gamma,
                                 const float *saved, size_t M, size_t D) {
  gt_loops()->layernorm->backward_input(dx, dy, x, gamma, saved, M, D);
}

void gt_layernorm_backward_weight(float *dgamma, float *dbeta, const float *dy, const float *x,
                                  const float *saved, size_t M, size_t D) {
  gt_loops()->layernorm->backward_weight(dgamma, dbeta, dy, x, saved, M, D);
}

void gt_gelu_forward(float *y, const float *x, size_t n) {
  gt_loops()->gelu->forward(y, x, n);
}

void gt_gelu_backward(float *dx, const float *dy, const float *x, size_t n) {
  gt_loops()->gelu->backward(dx, dy, x, n);
}

/* The row of a position follows that of the position before; a label is the next id. */
double gt_next_xent(float *dx, const float *x, const int32_t *ids, size_t N, size_t T, size_t V,
                    size_t *correct) {
  const float scale = 1.0F / (float)(N * T);
  double total = 0.0;
  for (size_t n = 0; n < N; n++)
    for (size_t t = 0; t < T; t++) {
      const size_t row = (n * T + t) * V, label = (size_t)ids[n * (T + 1) + t + 1];
      total += gt_loops()->softmax->xent(dx ? dx + row : NULL, x + row, label, V, scale, correct);
    }
  return total;
}

/* ---- attention, head by head ---- */

static size_t rounded(size_t n, size_t block) {
  return (n + block - 1) / block * block;
}

/* Nine matrices of a head's size, rows and columns rounded up; the scores of a block and their
   gradients; two numbers for each position. */
size_t gt_attention_work(const gt_attention_shape *s) {
  const size_t T = rounded(s->T, GT_ATTENTION_BLOCK), size = rounded(s->D / s->heads, 16);
  return 9 * T * size + 2 * GT_ATTENTION_BLOCK * GT_ATTENTION_BLOCK + 2 * T;
}

static gt_attention_head head_of(const gt_attention_shape *s) {
  const size_t size = s->D / s->heads;
  return (gt_attention_head){.T = s->T,
                             .rows = rounded(s->T, GT_ATTENTION_BLOCK),
                             .size = size,
                             .width = rounded(size, 16),
                             .D = s->D,
                             .scale = 1.0F / sqrtf((float)size)};
}

void gt_attention_forward(float *y, float *lse, const float *qkv, const gt_attention_shape *s,
                          size_t N, float *work) {
  const gt_attention_head one = head_of(s);
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < s->heads; h++)
      gt_loops()->attention->forward(y + n * s->T * s->D + h * one.size,
                                     lse + (n * s->heads + h) * s->T,
                                     qkv + n * s->T * 3 * s->D + h * one.size, &one, work);
}

void gt_attention_backward(float *dqkv, const float *dy, const float *y, const float *lse,
                           const float *qkv, const gt_attention_shape *s, size_t N, float *work) {
  const gt_attention_head one = head_of(s);
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < s->heads; h++) {
      const size_t at = n * s->T * s->D + h * one.size, at3 = n * s->T * 3 * s->D + h * one.size;
      gt_loops()->attention->backward(dqkv + at3, dy + at, y + at, lse + (n * s->heads + h) * s->T,
                                      qkv + at3, &one, work);
    }
}
