/* Rows of unit length, and the attention of a session to its items: products and sums over a
   row. */
#include "functions_vector.h"
#include "loops.h"

GT_INLINE float lanes_sum(gt_vf v) {
  float sum = 0.0F;
  for (int i = 0; i < GT_LANES; i++) sum += v[i];
  return sum;
}

GT_INLINE float dot(const float *a, const float *b, size_t n) {
  gt_vf sum = {0};
  size_t k = 0;
  for (; k + GT_LANES <= n; k += GT_LANES) sum += *(const gt_vf *)(a + k) * *(const gt_vf *)(b + k);
  if (k < n) sum += gt_take(a + k, n - k) * gt_take(b + k, n - k);
  return lanes_sum(sum);
}

static void unit_forward(float *y, float *norms, const float *x, size_t M, size_t K) {
  for (size_t j = 0; j < M; j++, y += K, x += K) {
    const float length = __builtin_sqrtf(dot(x, x, K));
    norms[j] = length < GT_UNIT_LEAST ? GT_UNIT_LEAST : length;
    const float scale = 1.0F / norms[j];
    for (size_t k = 0; k < K; k++) y[k] = x[k] * scale;
  }
}

static void unit_backward(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                          size_t K) {
  for (size_t j = 0; j < M; j++, dx += K, dy += K, y += K) {
    const float along = dot(dy, y, K), scale = 1.0F / norms[j];
    for (size_t k = 0; k < K; k++) dx[k] = (dy[k] - along * y[k]) * scale;
  }
}

/* Replaces gates (H), q2, by sigmoid(q1 + q2); returns their product with w. */
GT_INLINE float gate(float *gates, const float *q1, const float *w, size_t H) {
  gt_vf sum = {0};
  size_t k = 0;
  for (; k + GT_LANES <= H; k += GT_LANES) {
    const gt_vf g = gt_sigmoid(*(const gt_vf *)(q1 + k) + *(const gt_vf *)(gates + k));
    *(gt_vf *)(gates + k) = g;
    sum += g * *(const gt_vf *)(w + k);
  }
  if (k < H) {
    const gt_vf g = gt_sigmoid(gt_take(q1 + k, H - k) + gt_take(gates + k, H - k));
    gt_put(gates + k, g, H - k);
    sum += g * gt_take(w + k, H - k);
  }
  return lanes_sum(sum);
}

static void attend_forward(float *y, float *gates, float *alpha, const float *q1, const float *h,
                           const float *w, const gt_session_shape *s) {
  const size_t H = s->H;
  for (size_t i = 0; i < s->N; i++, y += 2 * H, q1 += H) {
    for (size_t k = 0; k < 2 * H; k++) y[k] = 0.0F;
    for (size_t j = s->first[i]; j < s->first[i + 1]; j++) {
      alpha[j] = s->count[j] * gate(gates + j * H, q1, w, H);
      for (size_t k = 0; k < H; k++) y[k] += alpha[j] * h[j * H + k];
    }
    if (s->first[i] == s->first[i + 1]) continue;
    for (size_t k = 0; k < H; k++) y[H + k] = h[s->last[i] * H + k];
  }
}

/* Adds d to dh, and to dq2 weight times the slope of the gates; accumulates dq1 and dw. */
GT_INLINE void row_back(float *dh, float *dq1, float *dq2, float *dw, const float *da,
                        const float *g, const float *w, float alpha, float weight, size_t H) {
  for (size_t k = 0; k < H; k++) {
    const float slope = weight * w[k] * g[k] * (1.0F - g[k]);
    dh[k] = alpha * da[k];
    dq2[k] = slope;
    dq1[k] += slope;
    dw[k] += weight * g[k];
  }
}

static void attend_backward(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                            const float *gates, const float *alpha, const float *h, const float *w,
                            const gt_session_shape *s) {
  const size_t H = s->H;
  for (size_t k = 0; k < H; k++) dw[k] = 0.0F;
  for (size_t i = 0; i < s->N; i++, dy += 2 * H, dq1 += H) {
    for (size_t k = 0; k < H; k++) dq1[k] = 0.0F;
    for (size_t j = s->first[i]; j < s->first[i + 1]; j++)
      row_back(dh + j * H, dq1, dq2 + j * H, dw, dy, gates + j * H, w, alpha[j],
               s->count[j] * dot(dy, h + j * H, H), H);
    if (s->first[i] == s->first[i + 1]) continue;
    for (size_t k = 0; k < H; k++) dh[s->last[i] * H + k] += dy[H + k];
  }
}

const gt_attend_loops GT_FOR_ISA(gt_attend_loops) = {.unit_forward = unit_forward,
                                                     .unit_backward = unit_backward,
                                                     .attend_forward = attend_forward,
                                                     .attend_backward = attend_backward};
