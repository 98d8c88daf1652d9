/* Vectors by id and factorization machines, eight numbers of a vector at a time.  The inner products of all pairs of a sample's vectors are half of |their sum|^2
   less the sum of their squares (Rendle 2010, lemma 3.1): F K steps, not F^2 K. */
#include <string.h>

#include "kernels.h"
#include "simd.h"

enum { WIDE = 8 };

GT_INLINE gt_v8 load(const float *x) {
  return *(const gt_v8 *)x;
}

GT_INLINE float total(gt_v8 v) {
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

GT_CLONES void gt_embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K) {
  for (size_t m = 0; m < M; m++) {
    const float *row = w + (size_t)ids[m] * K;
    float *to = y + m * K;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) *(gt_v8 *)(to + k) = load(row + k);
    for (; k < K; k++) to[k] = row[k];
  }
}

GT_INLINE void scatter(float *dw, const float *dy, const float *dy2, const int32_t *ids, size_t M, size_t K) {
  for (size_t m = 0; m < M; m++) {
    float *row = dw + (size_t)ids[m] * K;
    const float *from = dy + m * K, *from2 = dy2 ? dy2 + m * K : NULL;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) {
      gt_v8 d = load(from + k);
      if (dy2) d += load(from2 + k);
      *(gt_v8 *)(row + k) += d;
    }
    for (; k < K; k++) row[k] += dy2 ? from[k] + from2[k] : from[k];
  }
}

GT_CLONES void gt_embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids, size_t M, size_t K) {
  if (dy2)
    scatter(dw, dy, dy2, ids, M, K);
  else
    scatter(dw, dy, NULL, ids, M, K);
}

GT_CLONES void gt_embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K) {
  const gt_v8 zero = {0};
  for (size_t m = 0; m < M; m++) {
    float *row = dw + (size_t)ids[m] * K;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) *(gt_v8 *)(row + k) = zero;
    for (; k < K; k++) row[k] = 0.0F;
  }
}

/* Twice the inner products of all pairs of F vectors. */
GT_INLINE float pairs(const float *v, size_t F, size_t K) {
  gt_v8 wide = {0};
  float rest = 0.0F;
  size_t k = 0;
  for (; k + WIDE <= K; k += WIDE) {
    gt_v8 sum = {0}, squares = {0};
    for (size_t f = 0; f < F; f++) {
      const gt_v8 at = load(v + f * K + k);
      sum += at;
      squares += at * at;
    }
    wide += sum * sum - squares;
  }
  for (; k < K; k++) {
    float sum = 0.0F, squares = 0.0F;
    for (size_t f = 0; f < F; f++) {
      const float at = v[f * K + k];
      sum += at;
      squares += at * at;
    }
    rest += sum * sum - squares;
  }
  return total(wide) + rest;
}

GT_CLONES void gt_fm_forward(float *y, const float *v, const float *w, const float *b, const int32_t *ids, size_t N, size_t F, size_t K) {
  for (size_t n = 0; n < N; n++) {
    float sum = b[0];
    for (size_t f = 0; f < F; f++) sum += w[ids[n * F + f]];
    y[n] = sum + 0.5F * pairs(v + n * F * K, F, K);
  }
}

GT_CLONES void gt_fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F, size_t K) {
  for (size_t n = 0; n < N; n++) {
    const float *in = v + n * F * K;
    float *out = dv + n * F * K;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) {
      gt_v8 sum = {0};
      for (size_t f = 0; f < F; f++) sum += load(in + f * K + k);
      for (size_t f = 0; f < F; f++) *(gt_v8 *)(out + f * K + k) = dy[n] * (sum - load(in + f * K + k));
    }
    for (; k < K; k++) {
      float sum = 0.0F;
      for (size_t f = 0; f < F; f++) sum += in[f * K + k];
      for (size_t f = 0; f < F; f++) out[f * K + k] = dy[n] * (sum - in[f * K + k]);
    }
  }
}

void gt_fm_backward_weight(float *dw, float *db, const float *dy, const int32_t *ids, size_t N, size_t F) {
  double sum = 0.0;
  for (size_t n = 0; n < N; n++) {
    sum += (double)dy[n];
    for (size_t f = 0; f < F; f++) dw[ids[n * F + f]] += dy[n];
  }
  db[0] = (float)sum;
}
