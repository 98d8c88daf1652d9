/* ResNet-18, forward in float64, from the paper's figures and the definition of
   batch normalisation; independent of src. */
#pragma once

#include <string.h>

#include "ref64.h"

/* Data of a pass besides activations: the position of the next parameters and statistics.  train:
   the pass updates the statistics in `running`. */
typedef struct {
  const double *w;
  double *running;
  int train;
  size_t n;
  double corner; /* smallest distance of a value to the kink of a ReLU */
} r64_walk;

static inline void r64_relu_near(double *x, size_t n, r64_walk *walk) {
  for (size_t i = 0; i < n; i++) walk->corner = fmin(walk->corner, fabs(x[i]));
  r64_relu(x, n);
}

/* Computes y (n,p,q,k) from x (n,e): a square window without bias.  The inner loop is over outputs,
   for speed. */
static inline r64_extent r64_conv_plain(double *y, const double *x, r64_walk *walk, r64_extent e,
                                        size_t k, size_t window, size_t stride) {
  const size_t pad = window / 2, p = (e.h + 2 * pad - window) / stride + 1,
               q = (e.w + 2 * pad - window) / stride + 1;
  memset(y, 0, walk->n * p * q * k * sizeof *y);
  for (size_t at = 0; at < walk->n * p * q; at++, y += k)
    for (size_t rs = 0; rs < window * window; rs++) {
      const size_t iy = at / q % p * stride + rs / window, ix = at % q * stride + rs % window;
      if (iy < pad || ix < pad || iy - pad >= e.h || ix - pad >= e.w) continue;
      const double *from = x + ((at / q / p * e.h + iy - pad) * e.w + ix - pad) * e.c,
                   *w = walk->w + rs * e.c * k;
      for (size_t c = 0; c < e.c; c++, w += k)
        for (size_t o = 0; o < k; o++) y[o] += from[c] * w[o];
    }
  walk->w += window * window * e.c * k;
  return (r64_extent){p, q, k};
}

static inline void r64_norm(double *x, r64_walk *walk, r64_extent e) {
  const size_t rows = walk->n * e.h * e.w, C = e.c;
  const double *gamma = walk->w, *beta = gamma + C;
  double *mean = walk->running, *var = mean + C;
  for (size_t c = 0; c < C; c++) {
    double m = mean[c], v = var[c];
    if (walk->train) {
      m = v = 0.0;
      for (size_t i = 0; i < rows; i++) m += x[i * C + c] / (double)rows;
      for (size_t i = 0; i < rows; i++) v += (x[i * C + c] - m) * (x[i * C + c] - m) / (double)rows;
      mean[c] = 0.9 * mean[c] + 0.1 * m;
      var[c] = 0.9 * var[c] + 0.1 * v * (double)rows / (double)(rows - 1);
    }
    for (size_t i = 0; i < rows; i++)
      x[i * C + c] = gamma[c] * (x[i * C + c] - m) / sqrt(v + 1e-5) + beta[c];
  }
  walk->w += 2 * C;
  walk->running += 2 * C;
}

/* Pools 3x3 windows with stride 2 and padding 1.  The distance to a kink is that of the two largest
   values of a window, unless both are 0. */
static inline r64_extent r64_stem_pool(double *y, const double *x, r64_walk *walk, r64_extent e) {
  const size_t p = (e.h - 1) / 2 + 1, q = (e.w - 1) / 2 + 1;
  for (size_t at = 0; at < walk->n * p * q * e.c; at++) {
    double best = -INFINITY, second = -INFINITY;
    for (size_t rs = 0; rs < 9; rs++) {
      const size_t iy = at / e.c / q % p * 2 + rs / 3, ix = at / e.c % q * 2 + rs % 3;
      if (iy < 1 || ix < 1 || iy > e.h || ix > e.w) continue;
      const double v = x[((at / e.c / q / p * e.h + iy - 1) * e.w + ix - 1) * e.c + at % e.c];
      second = fmax(second, fmin(v, best));
      best = fmax(v, best);
    }
    y[at] = best;
    if (best > 0.0) walk->corner = fmin(walk->corner, best - second);
  }
  return (r64_extent){p, q, e.c};
}

/* Returns the mean loss; parameters and statistics in the order of the model's operations.  large:
   the stem for large images.  corner, unless NULL, receives the smallest distance of a value to the
   kink of a ReLU or of a maximum. */
static inline double r64_resnet18(const double *params, double *running, int train, const double *x,
                                  const int32_t *labels, size_t n, r64_extent e, int large,
                                  size_t classes, double *corner) {
  const size_t most = n * e.h * e.w * 64;
  double *a = malloc(most * sizeof *a), *b = malloc(most * sizeof *b),
         *beside = malloc(most * sizeof *beside), *scores = malloc(n * classes * sizeof *scores);
  r64_walk walk = {params, running, train, n, INFINITY};
  e = r64_conv_plain(a, x, &walk, e, 64, large ? 7 : 3, large ? 2 : 1);
  r64_norm(a, &walk, e);
  r64_relu_near(a, n * e.h * e.w * e.c, &walk);
  if (large) {
    e = r64_stem_pool(b, a, &walk, e);
    memcpy(a, b, n * e.h * e.w * e.c * sizeof *a);
  }
  for (size_t block = 0; block < 8; block++) {
    const size_t k = (size_t)64 << block / 2, stride = block > 0 && block % 2 == 0 ? 2 : 1;
    const r64_extent in = e;
    e = r64_conv_plain(b, a, &walk, in, k, 3, stride);
    r64_norm(b, &walk, e);
    const size_t size = n * e.h * e.w * e.c;
    r64_relu_near(b, size, &walk);
    if (stride == 1) {
      memcpy(beside, a, size * sizeof *a);
      r64_conv_plain(a, b, &walk, e, k, 3, 1);
    } else { /* in the order of the parameters: the second convolution, then the shortcut */
      double *second = malloc(size * sizeof *second);
      r64_conv_plain(second, b, &walk, e, k, 3, 1);
      r64_conv_plain(beside, a, &walk, in, k, 1, stride);
      r64_norm(beside, &walk, e);
      memcpy(a, second, size * sizeof *a);
      free(second);
    }
    r64_norm(a, &walk, e);
    for (size_t i = 0; i < size; i++) a[i] += beside[i];
    r64_relu_near(a, size, &walk);
  }
  memset(b, 0, n * e.c * sizeof *b);
  for (size_t i = 0; i < n * e.h * e.w; i++)
    for (size_t c = 0; c < e.c; c++)
      b[i / (e.h * e.w) * e.c + c] += a[i * e.c + c] / (double)(e.h * e.w);
  r64_linear(scores, b, walk.w, walk.w + classes * e.c, n, e.c, classes);
  const double loss = r64_loss(scores, labels, n, classes);
  if (corner) *corner = walk.corner;
  free(a), free(b), free(beside), free(scores);
  return loss;
}
