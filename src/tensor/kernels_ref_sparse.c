/* Embeddings and factorization machines in plain loops, straight from their definitions: the
   reference for the faster kernels. */
#include <string.h>

#include "kernels.h"

void gt_ref_embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K) {
  for (size_t m = 0; m < M; m++)
    for (size_t k = 0; k < K; k++) y[m * K + k] = w[(size_t)ids[m] * K + k];
}

void gt_ref_embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                               size_t M, size_t K) {
  for (size_t m = 0; m < M; m++)
    for (size_t k = 0; k < K; k++)
      dw[(size_t)ids[m] * K + k] += dy[m * K + k] + (dy2 ? dy2[m * K + k] : 0.0F);
}

void gt_ref_embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K) {
  for (size_t m = 0; m < M; m++) memset(dw + (size_t)ids[m] * K, 0, K * sizeof *dw);
}

/* Pair by pair. */
void gt_ref_fm_forward(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                       size_t N, size_t F, size_t K) {
  for (size_t n = 0; n < N; n++) {
    const float *vectors = v + n * F * K;
    double sum = (double)b[0];
    for (size_t f = 0; f < F; f++) sum += (double)w[ids[n * F + f]];
    for (size_t f = 0; f < F; f++)
      for (size_t g = f + 1; g < F; g++)
        for (size_t k = 0; k < K; k++)
          sum += (double)vectors[f * K + k] * (double)vectors[g * K + k];
    y[n] = (float)sum;
  }
}

void gt_ref_fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F,
                              size_t K) {
  for (size_t n = 0; n < N; n++)
    for (size_t f = 0; f < F; f++)
      for (size_t k = 0; k < K; k++) {
        double others = 0.0;
        for (size_t g = 0; g < F; g++)
          if (g != f) others += (double)v[(n * F + g) * K + k];
        dv[(n * F + f) * K + k] = (float)((double)dy[n] * others);
      }
}

void gt_ref_fm_backward_weight(float *dw, float *db, const float *dy, const int32_t *ids, size_t N,
                               size_t F) {
  double sum = 0.0;
  for (size_t n = 0; n < N; n++) {
    sum += (double)dy[n];
    for (size_t f = 0; f < F; f++) dw[ids[n * F + f]] += dy[n];
  }
  db[0] = (float)sum;
}
