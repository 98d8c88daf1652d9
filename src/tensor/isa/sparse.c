/* Embeddings and factorization machines, up to eight numbers of a vector at a time.  The sum of the
   inner products of all pairs of a sample's vectors v is (|sum of v|^2 - sum of |v|^2) / 2 (Rendle
   2010, lemma 3.1): F K steps instead of F^2 K. */
#include "geotrain/tensor/vector.h"
#include "loops.h"

enum { WIDE = GT_LANES8 };

GT_INLINE gt_vf8 load(const float *x) {
  return *(const gt_vf8 *)x;
}

GT_INLINE float total(gt_vf8 v) {
#if GT_LANES >= 8
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
#else
  return (v[0] + v[1]) + (v[2] + v[3]);
#endif
}

static void embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K) {
  for (size_t m = 0; m < M; m++) {
    const float *row = w + (size_t)ids[m] * K;
    float *to = y + m * K;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) *(gt_vf8 *)(to + k) = load(row + k);
    for (; k < K; k++) to[k] = row[k];
  }
}

GT_INLINE void scatter(float *dw, const float *dy, const float *dy2, const int32_t *ids, size_t M,
                       size_t K) {
  for (size_t m = 0; m < M; m++) {
    float *row = dw + (size_t)ids[m] * K;
    const float *from = dy + m * K, *from2 = dy2 ? dy2 + m * K : NULL;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) {
      gt_vf8 d = load(from + k);
      if (dy2) d += load(from2 + k);
      *(gt_vf8 *)(row + k) += d;
    }
    for (; k < K; k++) row[k] += dy2 ? from[k] + from2[k] : from[k];
  }
}

static void embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                               size_t M, size_t K) {
  if (dy2)
    scatter(dw, dy, dy2, ids, M, K);
  else
    scatter(dw, dy, NULL, ids, M, K);
}

static void embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K) {
  const gt_vf8 zero = {0};
  for (size_t m = 0; m < M; m++) {
    float *row = dw + (size_t)ids[m] * K;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) *(gt_vf8 *)(row + k) = zero;
    for (; k < K; k++) row[k] = 0.0F;
  }
}

/* Returns twice the sum of the inner products of all pairs of F vectors. */
GT_INLINE float pairs(const float *v, size_t F, size_t K) {
  gt_vf8 wide = {0};
  float rest = 0.0F;
  size_t k = 0;
  for (; k + WIDE <= K; k += WIDE) {
    gt_vf8 sum = {0}, squares = {0};
    for (size_t f = 0; f < F; f++) {
      const gt_vf8 at = load(v + f * K + k);
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

static void fm_forward(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                       size_t N, size_t F, size_t K) {
  for (size_t n = 0; n < N; n++) {
    float sum = b[0];
    for (size_t f = 0; f < F; f++) sum += w[ids[n * F + f]];
    y[n] = sum + 0.5F * pairs(v + n * F * K, F, K);
  }
}

static void fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F,
                              size_t K) {
  for (size_t n = 0; n < N; n++) {
    const float *in = v + n * F * K;
    float *out = dv + n * F * K;
    size_t k = 0;
    for (; k + WIDE <= K; k += WIDE) {
      gt_vf8 sum = {0};
      for (size_t f = 0; f < F; f++) sum += load(in + f * K + k);
      for (size_t f = 0; f < F; f++)
        *(gt_vf8 *)(out + f * K + k) = dy[n] * (sum - load(in + f * K + k));
    }
    for (; k < K; k++) {
      float sum = 0.0F;
      for (size_t f = 0; f < F; f++) sum += in[f * K + k];
      for (size_t f = 0; f < F; f++) out[f * K + k] = dy[n] * (sum - in[f * K + k]);
    }
  }
}

const gt_sparse_loops GT_FOR_ISA(gt_sparse_loops) = {.embedding_forward = embedding_forward,
                                                     .embedding_backward = embedding_backward,
                                                     .embedding_clear = embedding_clear,
                                                     .fm_forward = fm_forward,
                                                     .fm_backward_input = fm_backward_input};
