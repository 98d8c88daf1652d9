/* LSTM, decoder and session graphs in plain loops, straight from their definitions: the reference
   for the faster kernels. */
#include <math.h>
#include <string.h>

#include "kernels.h"

/* ---- LSTM, sample by sample ------------------------------------------------------------------ */

static float sigmoid(float z) {
  return 1.0F / (1.0F + expf(-z));
}

/* Computes one step of one sample. */
static void step(float *h1, float *c1, float *gates, const float *x, const float *h0,
                 const float *c0, const float *w, const float *b, const gt_lstm_shape *s) {
  const size_t I = s->I, H = s->H;
  const float *wx = w, *wh = w + 4 * H * I;
  for (size_t o = 0; o < 4 * H; o++) {
    float z = b[o] + b[4 * H + o];
    for (size_t k = 0; k < I; k++) z += x[k] * wx[o * I + k];
    for (size_t k = 0; k < H; k++) z += h0[k] * wh[o * H + k];
    gates[o] = o / H == 2 ? tanhf(z) : sigmoid(z);
  }
  for (size_t k = 0; k < H; k++) {
    c1[k] = gates[H + k] * c0[k] + gates[k] * gates[2 * H + k];
    h1[k] = gates[3 * H + k] * tanhf(c1[k]);
  }
}

void gt_ref_lstm_forward(float *h, float *c, float *gates, const float *x, const float *w,
                         const float *b, const gt_lstm_shape *s, float *work) {
  const size_t H = s->H, M = s->first[s->T];
  (void)work;
  memset(h, 0, (M + gt_lstm_rows(s, s->T - 1)) * H * sizeof *h);
  memset(c, 0, (M + gt_lstm_rows(s, s->T - 1)) * H * sizeof *c);
  for (size_t t = 0; t < s->T; t++)
    for (size_t j = 0; j < gt_lstm_rows(s, t); j++) {
      const size_t now = s->first[t] + j, next = s->first[t + 1] + j;
      step(h + next * H, c + next * H, gates + now * 4 * H, x + now * s->I, h + now * H,
           c + now * H, w, b, s);
    }
}

/* Replaces the gates by the gradients of their preactivations, and dc by the gradient of the cells
   before the step. */
static void step_back(float *gates, float *dc, const float *dh, const float *c0, const float *c1,
                      size_t H) {
  for (size_t k = 0; k < H; k++) {
    float *i = gates + k, *f = i + H, *g = f + H, *o = g + H;
    const float out = tanhf(c1[k]), d = dc[k] + dh[k] * *o * (1.0F - out * out);
    const float di = d * *g * *i * (1.0F - *i), df = d * c0[k] * *f * (1.0F - *f),
                dg = d * *i * (1.0F - *g * *g), dout = dh[k] * out * *o * (1.0F - *o);
    dc[k] = d * *f;
    *i = di, *f = df, *g = dg, *o = dout;
  }
}

/* Adds the gradient from one row to dw; writes dx and dh.  dx and x can be the same array. */
static void products_back(float *dx, float *dh, float *dw, float *db, const float *dz,
                          const float *x, const float *h0, const float *w, const gt_lstm_shape *s) {
  const size_t I = s->I, H = s->H;
  const float *wx = w, *wh = w + 4 * H * I;
  float *dwx = dw, *dwh = dw + 4 * H * I;
  for (size_t o = 0; o < 4 * H; o++) {
    db[o] += dz[o];
    db[4 * H + o] += dz[o];
    for (size_t k = 0; k < I; k++) dwx[o * I + k] += dz[o] * x[k];
    for (size_t k = 0; k < H; k++) dwh[o * H + k] += dz[o] * h0[k];
  }
  memset(dx, 0, I * sizeof *dx);
  memset(dh, 0, H * sizeof *dh);
  for (size_t o = 0; o < 4 * H; o++) {
    for (size_t k = 0; k < I; k++) dx[k] += dz[o] * wx[o * I + k];
    for (size_t k = 0; k < H; k++) dh[k] += dz[o] * wh[o * H + k];
  }
}

void gt_ref_lstm_backward(float *dx, float *dw, float *db, const float *dy, float *gates,
                          const float *x, const float *h, const float *c, const float *w,
                          const gt_lstm_shape *s, float *work) {
  const size_t H = s->H;
  float *dh = work, *dc = dh + H;
  memset(dw, 0, 4 * H * (s->I + H) * sizeof *dw);
  memset(db, 0, 8 * H * sizeof *db);
  for (size_t j = 0; j < gt_lstm_rows(s, s->T - 1); j++) {
    memcpy(dh, dy + j * H, H * sizeof *dh);
    memset(dc, 0, H * sizeof *dc);
    for (size_t t = s->T; t-- > 0 && j < gt_lstm_rows(s, t);) {
      const size_t now = s->first[t] + j, next = s->first[t + 1] + j;
      float *dz = gates + now * 4 * H;
      step_back(dz, dc, dh, c + now * H, c + next * H, H);
      products_back(dx + now * s->I, dh, dw, db, dz, x + now * s->I, h + now * H, w, s);
    }
  }
}

/* ---- decoder --------------------------------------------------------------------------------- */

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
    double sum = 0.0, product = 0.0; /* means of gamma dy, and of gamma dy times the normalised x */
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

/* Computes p[j] for j <= i: the scores of position i. */
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

/* Computes the gradients of a head.  dq is the gradient of q, zero on entry; those of k and v
   follow as in qkv. */
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

/* Computes one row; sums in double.  dx and x can be the same array. */
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

/* ---- session graphs: rows of unit length, gates, attention to items -------------------------- */

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
