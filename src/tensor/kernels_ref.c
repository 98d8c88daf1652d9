/* Kernels in plain loops, straight from their definitions: the reference for all faster kernels.
   Losses, normalisation, embeddings, and the products. */
#include <math.h>
#include <string.h>

#include "bf16.h"
#include "kernels.h"

/* ---- normalisation, means and losses, with sums in double ------------------------------------ */

/* Computes mean and variance of channel c. */
static void moments(const void *x, const gt_norm_shape *s, size_t c, double *mean, double *var) {
  double sum = 0.0, squares = 0.0;
  for (size_t m = 0; m < s->M; m++) sum += (double)gt_load1(x, m * s->C + c, s->type);
  *mean = sum / (double)s->M;
  for (size_t m = 0; m < s->M; m++) {
    const double d = (double)gt_load1(x, m * s->C + c, s->type) - *mean;
    squares += d * d;
  }
  *var = squares / (double)s->M;
}

static void channel(void *y, const void *x, const void *add, double a, double mean, double beta,
                    const gt_norm_shape *s, size_t c) {
  for (size_t m = 0; m < s->M; m++) {
    const size_t i = m * s->C + c;
    double v = a * ((double)gt_load1(x, i, s->type) - mean) + beta;
    if (add) v += (double)gt_load1(add, i, s->type);
    gt_store1(y, i, s->type, s->relu && v < 0.0 ? 0.0F : (float)v);
  }
}

void gt_ref_norm_forward(void *y, const void *x, const void *add, const float *gamma,
                         const float *beta, float *running_mean, float *running_var, float *saved,
                         const gt_norm_shape *s, float *work) {
  (void)work;
  for (size_t c = 0; c < s->C; c++) {
    double mean, var;
    moments(x, s, c, &mean, &var);
    const double inverse = 1.0 / sqrt(var + (double)s->epsilon),
                 unbiased = s->M > 1 ? var * (double)s->M / (double)(s->M - 1) : var;
    running_mean[c] += s->momentum * ((float)mean - running_mean[c]);
    running_var[c] += s->momentum * ((float)unbiased - running_var[c]);
    saved[c] = (float)mean;
    saved[s->C + c] = (float)inverse;
    channel(y, x, add, (double)gamma[c] * inverse, mean, (double)beta[c], s, c);
  }
}

void gt_ref_norm_infer(void *y, const void *x, const void *add, const float *gamma,
                       const float *beta, const float *running_mean, const float *running_var,
                       const gt_norm_shape *s, float *work) {
  (void)work;
  for (size_t c = 0; c < s->C; c++)
    channel(y, x, add, (double)gamma[c] / sqrt((double)running_var[c] + (double)s->epsilon),
            (double)running_mean[c], (double)beta[c], s, c);
}

void gt_ref_norm_backward(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy,
                          const void *dy2, const void *y, const void *x, const float *gamma,
                          const float *beta, const float *saved, const gt_norm_shape *s,
                          float *work) {
  (void)beta;
  (void)work;
  void *dz = dadd ? dadd : dx;
  for (size_t c = 0; c < s->C; c++) {
    const double mean = (double)saved[c], inverse = (double)saved[s->C + c], M = (double)s->M;
    double sum = 0.0, product = 0.0;
    for (size_t m = 0; m < s->M; m++) {
      const size_t i = m * s->C + c;
      float d = gt_load1(dy, i, s->type);
      if (dy2) d += gt_load1(dy2, i, s->type);
      if (s->relu && !(gt_load1(y, i, s->type) > 0.0F)) d = 0.0F;
      gt_store1(dz, i, s->type, d);
      sum += (double)d;
      product += (double)d * ((double)gt_load1(x, i, s->type) - mean) * inverse;
    }
    dbeta[c] = (float)sum;
    dgamma[c] = (float)product;
    for (size_t m = 0; m < s->M; m++) {
      const size_t i = m * s->C + c;
      const double hat = ((double)gt_load1(x, i, s->type) - mean) * inverse;
      gt_store1(dx, i, s->type,
                (float)((double)gamma[c] * inverse *
                        ((double)gt_load1(dz, i, s->type) - sum / M - hat * product / M)));
    }
  }
}

void gt_ref_mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW,
                         size_t C) {
  for (size_t n = 0; n < N; n++)
    for (size_t c = 0; c < C; c++) {
      double sum = 0.0;
      for (size_t i = 0; i < HW; i++) sum += (double)gt_load1(x, (n * HW + i) * C + c, type);
      y[n * C + c] = (float)(sum / (double)HW);
    }
}

void gt_ref_mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                          size_t C) {
  for (size_t n = 0; n < N; n++)
    for (size_t i = 0; i < HW; i++)
      for (size_t c = 0; c < C; c++)
        gt_store1(dx, (n * HW + i) * C + c, type, dy[n * C + c] / (float)HW);
}

/* log(1 + e^-|x|) + max(x, 0) - x label: no exponential overflows. */
double gt_ref_logistic(float *dx, const float *x, const int32_t *labels, size_t B,
                       size_t *correct) {
  double total = 0.0;
  for (size_t n = 0; n < B; n++) {
    const double at = (double)x[n], e = exp(-fabs(at)),
                 p = at >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
    const double label = labels[n] ? 1.0 : 0.0;
    total += log1p(e) + fmax(at, 0.0) - at * label;
    *correct += !isnan(at) && (at > 0.0) == (labels[n] != 0);
    if (dx) dx[n] = (float)((p - label) / (double)B);
  }
  return total;
}

/* ---- embeddings and factorization machines --------------------------------------------------- */

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

/* ---- products, pooling, ReLU, softmax -------------------------------------------------------- */

static size_t conv_work(const gt_conv_shape *s, size_t N) {
  (void)s;
  (void)N;
  return 0;
}

/* True if tap (r, t) of output (p, q) lies inside the image; *at is its offset in an image of C
   channels. */
static bool tap(const gt_conv_shape *s, size_t p, size_t q, size_t r, size_t t, size_t *at) {
  size_t i = p * s->stride + r, j = q * s->stride + t;
  if (i < s->pad || j < s->pad || i - s->pad >= s->H || j - s->pad >= s->W) return false;
  *at = ((i - s->pad) * s->W + (j - s->pad)) * s->C;
  return true;
}

static void conv_forward(float *y, const float *x, const float *w, const float *b,
                         const gt_conv_shape *s, size_t N, float *work) {
  (void)work;
  for (size_t n = 0; n < N; n++)
    for (size_t p = 0; p < s->P; p++)
      for (size_t q = 0; q < s->Q; q++) {
        float *out = y + ((n * s->P + p) * s->Q + q) * s->K;
        for (size_t k = 0; k < s->K; k++) out[k] = b ? b[k] : 0.0f;
        for (size_t r = 0; r < s->R; r++)
          for (size_t t = 0; t < s->S; t++) {
            size_t at;
            if (!tap(s, p, q, r, t, &at)) continue;
            const float *in = x + n * s->H * s->W * s->C + at;
            const float *weights = w + (r * s->S + t) * s->C * s->K;
            for (size_t c = 0; c < s->C; c++)
              for (size_t k = 0; k < s->K; k++) out[k] += in[c] * weights[c * s->K + k];
          }
      }
}

static void conv_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                                size_t N, float *work) {
  (void)work;
  memset(dx, 0, N * s->H * s->W * s->C * sizeof *dx);
  for (size_t n = 0; n < N; n++)
    for (size_t p = 0; p < s->P; p++)
      for (size_t q = 0; q < s->Q; q++) {
        const float *out = dy + ((n * s->P + p) * s->Q + q) * s->K;
        for (size_t r = 0; r < s->R; r++)
          for (size_t t = 0; t < s->S; t++) {
            size_t at;
            if (!tap(s, p, q, r, t, &at)) continue;
            float *in = dx + n * s->H * s->W * s->C + at;
            const float *weights = w + (r * s->S + t) * s->C * s->K;
            for (size_t c = 0; c < s->C; c++)
              for (size_t k = 0; k < s->K; k++) in[c] += out[k] * weights[c * s->K + k];
          }
      }
}

static void conv_backward_weight(float *dw, float *db, const float *dy, const float *x,
                                 const gt_conv_shape *s, size_t N, float *work) {
  (void)work;
  memset(dw, 0, s->R * s->S * s->C * s->K * sizeof *dw);
  if (db) memset(db, 0, s->K * sizeof *db);
  for (size_t n = 0; n < N; n++)
    for (size_t p = 0; p < s->P; p++)
      for (size_t q = 0; q < s->Q; q++) {
        const float *out = dy + ((n * s->P + p) * s->Q + q) * s->K;
        for (size_t k = 0; db && k < s->K; k++) db[k] += out[k];
        for (size_t r = 0; r < s->R; r++)
          for (size_t t = 0; t < s->S; t++) {
            size_t at;
            if (!tap(s, p, q, r, t, &at)) continue;
            const float *in = x + n * s->H * s->W * s->C + at;
            float *weights = dw + (r * s->S + t) * s->C * s->K;
            for (size_t c = 0; c < s->C; c++)
              for (size_t k = 0; k < s->K; k++) weights[c * s->K + k] += in[c] * out[k];
          }
      }
}

void gt_ref_maxpool_forward(void *y, uint32_t *index, const void *x, gt_precision type,
                            const gt_conv_shape *s, size_t N) {
  for (size_t o = 0; o < N * s->P * s->Q * s->C; o++) {
    size_t c = o % s->C, q = o / s->C % s->Q, p = o / s->C / s->Q % s->P,
           n = o / s->C / s->Q / s->P;
    float best = 0.0F;
    bool found = false;
    for (size_t r = 0; r < s->R; r++)
      for (size_t t = 0; t < s->S; t++) {
        size_t at;
        if (!tap(s, p, q, r, t, &at)) continue;
        at += n * s->H * s->W * s->C + c;
        const float value = gt_load1(x, at, type);
        /* a NaN is propagated, not lost in a comparison */
        if (found && (isnan(best) || !(value > best || isnan(value)))) continue;
        best = value;
        index[o] = (uint32_t)at;
        found = true;
      }
    gt_store1(y, o, type, best);
  }
}

/* Adds up what the windows over the input element `at` send to it. */
static float pooled(const void *dy, const uint32_t *index, gt_precision type,
                    const gt_conv_shape *s, size_t n, size_t at) {
  float sum = 0.0F;
  for (size_t p = 0; p < s->P; p++)
    for (size_t q = 0; q < s->Q; q++) {
      const size_t o = ((n * s->P + p) * s->Q + q) * s->C + at % s->C;
      if (index[o] == at) sum += gt_load1(dy, o, type);
    }
  return sum;
}

void gt_ref_maxpool_backward(void *dx, const void *dy, const uint32_t *index, gt_precision type,
                             const gt_conv_shape *s, size_t N) {
  const size_t image = s->H * s->W * s->C;
  for (size_t i = 0; i < N * image; i++)
    gt_store1(dx, i, type, pooled(dy, index, type, s, i / image, i));
}

void gt_ref_linear_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                           size_t I, size_t O) {
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++) {
      float sum = b ? b[o] : 0.0f;
      for (size_t i = 0; i < I; i++) sum += x[n * I + i] * w[o * I + i];
      y[n * O + o] = sum;
    }
}

void gt_ref_linear_backward_input(float *dx, const float *dy, const float *w, size_t B, size_t I,
                                  size_t O) {
  memset(dx, 0, B * I * sizeof *dx);
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++)
      for (size_t i = 0; i < I; i++) dx[n * I + i] += dy[n * O + o] * w[o * I + i];
}

void gt_ref_linear_backward_weight(float *dw, float *db, const float *dy, const float *x, size_t B,
                                   size_t I, size_t O) {
  memset(dw, 0, O * I * sizeof *dw);
  if (db) memset(db, 0, O * sizeof *db);
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++) {
      if (db) db[o] += dy[n * O + o];
      for (size_t i = 0; i < I; i++) dw[o * I + i] += dy[n * O + o] * x[n * I + i];
    }
}

/* Written so that a NaN stays a NaN. */
void gt_ref_relu_forward(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void gt_ref_relu_backward(float *dx, const float *dy, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

/* Row by row, shifted by the largest logit so that no exponential overflows; sums in double. */
double gt_ref_softmax_xent(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                           size_t *correct) {
  double total = 0.0;
  for (size_t n = 0; n < B; n++) {
    const float *row = x + n * O;
    const size_t label = (size_t)labels[n];
    size_t best = 0;
    for (size_t o = 1; o < O; o++)
      if (row[o] > row[best]) best = o;
    double sum = 0.0;
    for (size_t o = 0; o < O; o++) {
      const float e = expf(row[o] - row[best]);
      if (dx) dx[n * O + o] = e;
      sum += (double)e;
    }
    total += log(sum) - (double)(row[label] - row[best]);
    *correct += best == label && !isnan(sum); /* comparisons with a NaN leave `best` at 0 */
    if (!dx) continue;
    const float scale = (float)(1.0 / (sum * (double)B));
    for (size_t o = 0; o < O; o++) dx[n * O + o] *= scale;
    dx[n * O + label] -= 1.0f / (float)B;
  }
  return total;
}

static const char *family(const char *operation, const gt_conv_shape *s) {
  (void)operation;
  (void)s;
  return "ref";
}

const gt_kernels gt_kernels_ref = {GT_SLOTS(GT_SLOT_REF) GT_OWN_SLOTS, .name = "ref"};
