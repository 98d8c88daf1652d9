/* Normalisation, means and losses in plain loops with sums in double: the reference for the faster
   kernels. */
#include <math.h>
#include <string.h>

#include "bf16.h"
#include "kernels.h"

/* Mean and variance of channel c. */
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
