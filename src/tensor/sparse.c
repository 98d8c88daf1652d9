/* Embeddings and factorization machines: functions of gt_kernels on the loops of isa/sparse.c. */
#include "kernels.h"
#include "loops.h"

void gt_embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K) {
  gt_loops()->sparse->embedding_forward(y, w, ids, M, K);
}

void gt_embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                           size_t M, size_t K) {
  gt_loops()->sparse->embedding_backward(dw, dy, dy2, ids, M, K);
}

void gt_embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K) {
  gt_loops()->sparse->embedding_clear(dw, ids, M, K);
}

void gt_fm_forward(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                   size_t N, size_t F, size_t K) {
  gt_loops()->sparse->fm_forward(y, v, w, b, ids, N, F, K);
}

void gt_fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F,
                          size_t K) {
  gt_loops()->sparse->fm_backward_input(dv, dy, v, N, F, K);
}

void gt_fm_backward_weight(float *dw, float *db, const float *dy, const int32_t *ids, size_t N,
                           size_t F) {
  double sum = 0.0;
  for (size_t n = 0; n < N; n++) {
    sum += (double)dy[n];
    for (size_t f = 0; f < F; f++) dw[ids[n * F + f]] += dy[n];
  }
  db[0] = (float)sum;
}
