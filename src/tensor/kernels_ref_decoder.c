/* The operations of a transformer's decoder in plain loops, straight from their definitions: the
   reference for the faster kernels. */
#include <math.h>
#include <string.h>

#include "kernels.h"

#define EPSILON 1e-5

/* ---- layer normalisation ---- */

void gt_ref_layernorm_forward(float *y, float *saved, const float *x, const float *gamma,
                              const float *beta, size_t M, size_t D) {
  for (size_t m = 0; m < M; m++, x += D, y += D) {
    double mean = 0.0, variance = 0.0;
    for (size_t d = 0; d < D; d++) mean += (double)x[d] / (double)D;
    for (size_t d = 0; d < D; d++) variance += pow((double)x[d] - mean, 2) / (double)D;
    const float inverse = (float)(1.0 / sqrt(variance + EPSILON));
    saved[2 * m] = (float)mean;
    saved[2 * m + 1] = inverse;
    for (size_t d = 0; d < D; d++) y[d] = gamma[d] * (x[d] - saved[2 * m]) * inverse + beta[d];
  }
}

void gt_ref_layernorm_backward_input(float *dx, const float *dy, const float *x, const float *gamma,
                                     const float *saved, size_t M, size_t D) {
  for (size_t m = 0; m < M; m++, x += D, dy += D, dx += D) {
    const float mean = saved[2 * m], inverse = saved[2 * m + 1];
    double sum = 0.0, product = 0.0; /* means of gamma dy, and of it times the normalised x */
    for (size_t d = 0; d < D; d++) {
      const float g = gamma[d] * dy[d];
      sum += (double)g / (double)D;
      product += (double)(g * (x[d] - mean) * inverse) / (double)D;
    }
    for (size_t d = 0; d < D; d++)
      dx[d] = inverse * (gamma[d] * dy[d] - (float)sum - (x[d] - mean) * inverse * (float)product);
  }
}

void gt_ref_layernorm_backward_weight(float *dgamma, float *dbeta, const float *dy, const float *x,
                                      const float *saved, size_t M, size_t D) {
  for (size_t d = 0; d < D; d++) {
    double scale = 0.0, shift = 0.0;
    for (size_t m = 0; m < M; m++) {
      scale += (double)(dy[m * D + d] * (x[m * D + d] - saved[2 * m]) * saved[2 * m + 1]);
      shift += (double)dy[m * D + d];
    }
    dgamma[d] = (float)scale;
    dbeta[d] = (float)shift;
  }
}

/* ---- GELU ---- */

#define SLOPE 0.797884561F /* sqrt(2 / pi) */
#define CUBIC 0.044715F

void gt_ref_gelu_forward(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++)
    y[i] = 0.5F * x[i] * (1.0F + tanhf(SLOPE * (x[i] + CUBIC * x[i] * x[i] * x[i])));
}

void gt_ref_gelu_backward(float *dx, const float *dy, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const float v = x[i], t = tanhf(SLOPE * (v + CUBIC * v * v * v));
    const float inner = SLOPE * (1.0F + 3.0F * CUBIC * v * v);
    dx[i] = dy[i] * (0.5F * (1.0F + t) + 0.5F * v * (1.0F - t * t) * inner);
  }
}

/* ---- attention ---- */

/* One head of one sequence.  Rows of q, k and v are `stride` floats apart, those of y `D`. */
typedef struct {
  const float *q, *k, *v;
  size_t T, size, stride, D;
  float scale;
} head;

static head head_of(const float *qkv, const gt_attention_shape *s, size_t n, size_t h) {
  const size_t size = s->D / s->heads;
  const float *q = qkv + n * s->T * 3 * s->D + h * size;
  return (head){.q = q,
                .k = q + s->D,
                .v = q + 2 * s->D,
                .T = s->T,
                .size = size,
                .stride = 3 * s->D,
                .D = s->D,
                .scale = 1.0F / sqrtf((float)size)};
}

static float dot(const float *a, const float *b, size_t n) {
  float sum = 0.0F;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* p[j] for j <= i: the scores of position i. */
static void scores_of(float *p, const head *h, size_t i) {
  for (size_t j = 0; j <= i; j++)
    p[j] = h->scale * dot(h->q + i * h->stride, h->k + j * h->stride, h->size);
}

static void head_forward(float *y, float *lse, const head *h, float *p) {
  for (size_t i = 0; i < h->T; i++) {
    float most = -INFINITY, sum = 0.0F, *out = y + i * h->D;
    scores_of(p, h, i);
    for (size_t j = 0; j <= i; j++) most = fmaxf(most, p[j]);
    for (size_t j = 0; j <= i; j++) sum += expf(p[j] - most);
    lse[i] = most + logf(sum);
    memset(out, 0, h->size * sizeof *out);
    for (size_t j = 0; j <= i; j++)
      for (size_t d = 0; d < h->size; d++)
        out[d] += expf(p[j] - most) / sum * h->v[j * h->stride + d];
  }
}

/* dq is the gradient of q, zero on entry; those of k and v follow as in qkv. */
static void head_backward(float *dq, const float *dy, const float *y, const float *lse,
                          const head *h, float *p) {
  float *dk = dq + h->D, *dv = dq + 2 * h->D;
  for (size_t i = 0; i < h->T; i++) {
    const float *out = dy + i * h->D, delta = dot(out, y + i * h->D, h->size);
    scores_of(p, h, i);
    for (size_t j = 0; j <= i; j++) {
      const size_t at = j * h->stride;
      const float share = expf(p[j] - lse[i]);
      const float ds = share * (dot(out, h->v + at, h->size) - delta) * h->scale;
      for (size_t d = 0; d < h->size; d++) {
        dv[at + d] += share * out[d];
        dk[at + d] += ds * h->q[i * h->stride + d];
        dq[i * h->stride + d] += ds * h->k[at + d];
      }
    }
  }
}

void gt_ref_attention_forward(float *y, float *lse, const float *qkv, const gt_attention_shape *s,
                              size_t N, float *work) {
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < s->heads; h++) {
      const head one = head_of(qkv, s, n, h);
      head_forward(y + n * s->T * s->D + h * one.size, lse + (n * s->heads + h) * s->T, &one, work);
    }
}

void gt_ref_attention_backward(float *dqkv, const float *dy, const float *y, const float *lse,
                               const float *qkv, const gt_attention_shape *s, size_t N,
                               float *work) {
  memset(dqkv, 0, N * s->T * 3 * s->D * sizeof *dqkv);
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < s->heads; h++) {
      const head one = head_of(qkv, s, n, h);
      const size_t at = n * s->T * s->D + h * one.size;
      head_backward(dqkv + n * s->T * 3 * s->D + h * one.size, dy + at, y + at,
                    lse + (n * s->heads + h) * s->T, &one, work);
    }
}

/* ---- loss ---- */

/* One row; sums in double.  dx may be x. */
static double xent(float *dx, const float *x, size_t label, size_t V, double share,
                   size_t *correct) {
  size_t best = 0;
  double sum = 0.0;
  for (size_t v = 1; v < V; v++)
    if (x[v] > x[best]) best = v;
  const float most = x[best], at = x[label];
  for (size_t v = 0; v < V; v++) sum += exp((double)(x[v] - most));
  *correct += best == label && !isnan(sum); /* comparisons with a NaN leave `best` at 0 */
  for (size_t v = 0; dx && v < V; v++) {
    const double softmax = exp((double)(x[v] - most)) / sum;
    dx[v] = (float)(share * (softmax - (v == label ? 1.0 : 0.0)));
  }
  return log(sum) - (double)(at - most);
}

double gt_ref_next_xent(float *dx, const float *x, const int32_t *ids, size_t N, size_t T, size_t V,
                        size_t *correct) {
  double total = 0.0;
  for (size_t n = 0; n < N; n++)
    for (size_t t = 0; t < T; t++) {
      const size_t row = (n * T + t) * V, label = (size_t)ids[n * (T + 1) + t + 1];
      total += xent(dx ? dx + row : NULL, x + row, label, V, 1.0 / (double)(N * T), correct);
    }
  return total;
}
