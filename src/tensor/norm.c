/* Batch normalisation in two passes over memory per direction.  Forward: one for the statistics and
   one for the values (with the residual sum and the ReLU).  Backward: one for the sums and one for
   the gradient.  Per channel, both second passes are affine; their constants are computed between
   the passes. */
#include <math.h>
#include <string.h>

#include "bf16.h"
#include "kernels.h"
#include "loops.h"

/* The scratch: 2C doubles, then 4C floats. */
static double *doubles_of(float *work) {
  return (double *)(void *)work;
}

void gt_norm_forward(void *y, const void *x, const void *add, const float *gamma, const float *beta,
                     float *running_mean, float *running_var, float *saved, const gt_norm_shape *s,
                     float *work) {
  double *sum = doubles_of(work), *squares = sum + s->C;
  float *a = work + 4 * s->C, *b = a + s->C;
  const double M = (double)s->M, unbiased = s->M > 1 ? M / (M - 1) : 1;
  memset(sum, 0, 2 * s->C * sizeof *sum);
  gt_loops()->norm->stats(sum, squares, x, s);
  for (size_t c = 0; c < s->C; c++) {
    /* Sums are relative to the first row. */
    const double beyond = sum[c] / M, mean = (double)gt_load1(x, c, s->type) + beyond;
    const double var = fmax(squares[c] / M - beyond * beyond, 0),
                 inverse = 1 / sqrt(var + (double)s->epsilon);
    saved[c] = (float)mean;
    saved[s->C + c] = (float)inverse;
    running_mean[c] += s->momentum * ((float)mean - running_mean[c]);
    running_var[c] += s->momentum * ((float)(var * unbiased) - running_var[c]);
    a[c] = gamma[c] * saved[s->C + c];
    b[c] = beta[c] - a[c] * saved[c];
  }
  gt_loops()->norm->apply(y, x, add, a, b, s);
}

void gt_norm_infer(void *y, const void *x, const void *add, const float *gamma, const float *beta,
                   const float *running_mean, const float *running_var, const gt_norm_shape *s,
                   float *work) {
  float *a = work, *b = a + s->C;
  for (size_t c = 0; c < s->C; c++) {
    a[c] = gamma[c] / sqrtf(running_var[c] + s->epsilon);
    b[c] = beta[c] - a[c] * running_mean[c];
  }
  gt_loops()->norm->apply(y, x, add, a, b, s);
}

void gt_norm_backward(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy,
                      const void *dy2, const void *y, const void *x, const float *gamma,
                      const float *beta, const float *saved, const gt_norm_shape *s, float *work) {
  double *sum = doubles_of(work), *product = sum + s->C;
  float *a = work + 4 * s->C, *b = a + s->C, *q = b + s->C, *r = q + s->C;
  const float *mean = saved, *inverse = saved + s->C;
  for (size_t c = 0; c < s->C; c++) {
    a[c] = gamma[c] * inverse[c];
    b[c] = beta[c] - a[c] * mean[c];
  }
  gt_norm_gradient g = {.a = a,
                        .b = b,
                        .mean = mean,
                        .dy = dy,
                        .dy2 = dy2,
                        .y = dadd ? y : NULL,
                        .x = x,
                        .relu = s->relu};
  memset(sum, 0, 2 * s->C * sizeof *sum);
  gt_loops()->norm->sums(dadd, sum, product, &g, s);
  for (size_t c = 0; c < s->C; c++) { /* dx = gamma inv (dz - mean(dz) - xhat mean(dz xhat)) */
    const double inv = (double)inverse[c], slope = product[c] * inv * inv / (double)s->M;
    dbeta[c] = (float)sum[c];
    dgamma[c] = (float)(product[c] * inv);
    q[c] = (float)(-(double)a[c] * slope);
    r[c] = (float)(-(double)a[c] * (sum[c] / (double)s->M - (double)mean[c] * slope));
  }
  if (dadd) { /* dadd holds dz */
    g.dy = dadd;
    g.dy2 = NULL;
    g.relu = false;
  }
  gt_loops()->norm->input(dx, &g, q, r, s);
}

void gt_mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C) {
  gt_loops()->norm->mean_forward(y, x, type, N, HW, C);
}

void gt_mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW, size_t C) {
  gt_loops()->norm->mean_backward(dx, dy, type, N, HW, C);
}
