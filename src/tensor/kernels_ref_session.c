/* Rows of unit length, the gates of a gated recurrent unit, and the attention of a session to its
   items, in plain loops straight from their definitions: the reference for the faster kernels. */
#include <math.h>
#include <string.h>

#include "kernels.h"

static float sigmoid(float z) {
  return 1.0F / (1.0F + expf(-z));
}

static float dot(const float *a, const float *b, size_t n) {
  float sum = 0.0F;
  for (size_t k = 0; k < n; k++) sum += a[k] * b[k];
  return sum;
}

void gt_ref_unit_forward(float *y, float *norms, const float *x, size_t M, size_t K) {
  for (size_t j = 0; j < M; j++) {
    norms[j] = fmaxf(sqrtf(dot(x + j * K, x + j * K, K)), GT_UNIT_LEAST);
    for (size_t k = 0; k < K; k++) y[j * K + k] = x[j * K + k] / norms[j];
  }
}

void gt_ref_unit_backward(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                          size_t K) {
  for (size_t j = 0; j < M; j++) {
    const float along = dot(dy + j * K, y + j * K, K);
    for (size_t k = 0; k < K; k++)
      dx[j * K + k] = (dy[j * K + k] - along * y[j * K + k]) / norms[j];
  }
}

void gt_ref_gru_forward(float *y, float *gates, const float *h, const float *gi, const float *gh,
                        size_t M, size_t H) {
  for (size_t j = 0; j < M; j++)
    for (size_t k = 0; k < H; k++) {
      const float *in = gi + j * 3 * H + k, *own = gh + j * 3 * H + k;
      float *g = gates + j * 4 * H + k;
      g[0] = sigmoid(in[0] + own[0]);
      g[H] = sigmoid(in[H] + own[H]);
      g[2 * H] = tanhf(in[2 * H] + g[0] * own[2 * H]);
      g[3 * H] = own[2 * H];
      y[j * H + k] = g[2 * H] + g[H] * (h[j * H + k] - g[2 * H]);
    }
}

void gt_ref_gru_backward(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                         const float *h, size_t M, size_t H) {
  for (size_t j = 0; j < M; j++)
    for (size_t k = 0; k < H; k++) {
      const float *g = gates + j * 4 * H + k, r = g[0], z = g[H], n = g[2 * H], d = dy[j * H + k];
      float *in = dgi + j * 3 * H + k, *own = dgh + j * 3 * H + k;
      in[2 * H] = d * (1.0F - z) * (1.0F - n * n);
      in[H] = own[H] = d * (h[j * H + k] - n) * z * (1.0F - z);
      in[0] = own[0] = in[2 * H] * g[3 * H] * r * (1.0F - r);
      own[2 * H] = in[2 * H] * r;
      dh[j * H + k] = d * z;
    }
}

void gt_ref_attend_forward(float *y, float *gates, float *alpha, const float *q1, const float *h,
                           const float *w, const gt_session_shape *s) {
  const size_t H = s->H;
  memset(y, 0, s->N * 2 * H * sizeof *y);
  for (size_t i = 0; i < s->N; i++)
    for (size_t j = s->first[i]; j < s->first[i + 1]; j++) {
      for (size_t k = 0; k < H; k++) gates[j * H + k] = sigmoid(q1[i * H + k] + gates[j * H + k]);
      alpha[j] = s->count[j] * dot(w, gates + j * H, H);
      for (size_t k = 0; k < H; k++) {
        y[i * 2 * H + k] += alpha[j] * h[j * H + k];
        y[i * 2 * H + H + k] = h[s->last[i] * H + k];
      }
    }
}

void gt_ref_attend_backward(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                            const float *gates, const float *alpha, const float *h, const float *w,
                            const gt_session_shape *s) {
  const size_t H = s->H;
  memset(dw, 0, H * sizeof *dw);
  memset(dq1, 0, s->N * H * sizeof *dq1);
  for (size_t i = 0; i < s->N; i++)
    for (size_t j = s->first[i]; j < s->first[i + 1]; j++) {
      const float *da = dy + i * 2 * H, *g = gates + j * H,
                  weight = s->count[j] * dot(da, h + j * H, H);
      for (size_t k = 0; k < H; k++) {
        dh[j * H + k] = alpha[j] * da[k] + (s->last[i] == j ? da[H + k] : 0.0F);
        dq2[j * H + k] = weight * w[k] * g[k] * (1.0F - g[k]);
        dq1[i * H + k] += dq2[j * H + k];
        dw[k] += weight * g[k];
      }
    }
}
