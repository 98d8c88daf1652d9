/* Kernels in plain loops: the reference for all faster kernels. */
#include <math.h>
#include <string.h>

#include "kernels.h"

static size_t conv_work(const gt_conv_shape *s, size_t N) {
  (void)s;
  (void)N;
  return 0;
}

/* Whether tap (r, t) of output (p, q) lies inside the image; *at is its offset in an image of C
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

static void maxpool_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s,
                            size_t N) {
  for (size_t o = 0; o < N * s->P * s->Q * s->C; o++) {
    size_t c = o % s->C, q = o / s->C % s->Q, p = o / s->C / s->Q % s->P,
           n = o / s->C / s->Q / s->P;
    bool found = false;
    for (size_t r = 0; r < s->R; r++)
      for (size_t t = 0; t < s->S; t++) {
        size_t at;
        if (!tap(s, p, q, r, t, &at)) continue;
        at += n * s->H * s->W * s->C + c;
        /* a NaN is passed on, not lost in a comparison */
        if (found && !(x[at] > y[o]) && !isnan(x[at])) continue;
        if (found && isnan(y[o])) continue;
        y[o] = x[at];
        index[o] = (uint32_t)at;
        found = true;
      }
  }
}

static void maxpool_backward(float *dx, const float *dy, const uint32_t *index,
                             const gt_conv_shape *s, size_t N) {
  memset(dx, 0, N * s->H * s->W * s->C * sizeof *dx);
  for (size_t o = 0; o < N * s->P * s->Q * s->C; o++) dx[index[o]] += dy[o];
}

static void linear_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                           size_t I, size_t O) {
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++) {
      float sum = b ? b[o] : 0.0f;
      for (size_t i = 0; i < I; i++) sum += x[n * I + i] * w[o * I + i];
      y[n * O + o] = sum;
    }
}

static void linear_backward_input(float *dx, const float *dy, const float *w, size_t B, size_t I,
                                  size_t O) {
  memset(dx, 0, B * I * sizeof *dx);
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++)
      for (size_t i = 0; i < I; i++) dx[n * I + i] += dy[n * O + o] * w[o * I + i];
}

static void linear_backward_weight(float *dw, float *db, const float *dy, const float *x, size_t B,
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
static void relu_forward(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

static void relu_backward(float *dx, const float *dy, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

/* Row by row, shifted by the largest logit so that no exponential overflows; sums in double. */
static double softmax_xent(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
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

const gt_kernels gt_kernels_ref = {
    .name = "ref",
    .conv_work = conv_work,
    .conv_forward = conv_forward,
    .conv_backward_input = conv_backward_input,
    .conv_backward_weight = conv_backward_weight,
    .maxpool_forward = maxpool_forward,
    .maxpool_backward = maxpool_backward,
    .linear_forward = linear_forward,
    .linear_backward_input = linear_backward_input,
    .linear_backward_weight = linear_backward_weight,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .softmax_xent = softmax_xent,
    .logistic = gt_ref_logistic,
    .norm_forward = gt_ref_norm_forward,
    .norm_infer = gt_ref_norm_infer,
    .norm_backward = gt_ref_norm_backward,
    .mean_forward = gt_ref_mean_forward,
    .mean_backward = gt_ref_mean_backward,
    .embedding_forward = gt_ref_embedding_forward,
    .embedding_backward = gt_ref_embedding_backward,
    .embedding_clear = gt_ref_embedding_clear,
    .fm_forward = gt_ref_fm_forward,
    .fm_backward_input = gt_ref_fm_backward_input,
    .fm_backward_weight = gt_ref_fm_backward_weight,
    .lstm_forward = gt_ref_lstm_forward,
    .lstm_backward = gt_ref_lstm_backward,
    .layernorm_forward = gt_ref_layernorm_forward,
    .layernorm_backward_input = gt_ref_layernorm_backward_input,
    .layernorm_backward_weight = gt_ref_layernorm_backward_weight,
    .gelu_forward = gt_ref_gelu_forward,
    .gelu_backward = gt_ref_gelu_backward,
    .attention_forward = gt_ref_attention_forward,
    .attention_backward = gt_ref_attention_backward,
    .next_xent = gt_ref_next_xent,
    .unit_forward = gt_ref_unit_forward,
    .unit_backward = gt_ref_unit_backward,
    .gru_forward = gt_ref_gru_forward,
    .gru_backward = gt_ref_gru_backward,
    .attend_forward = gt_ref_attend_forward,
    .attend_backward = gt_ref_attend_backward,
    .family = family,
};
