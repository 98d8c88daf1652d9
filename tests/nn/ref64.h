/* The reference for tests/nn: operations and LeNet-5 forward in float64, in plain loops written
   from the papers' definitions, independent of src. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  size_t h, w, c;
} r64_extent;

/* Computes y (n,p,q,k) from x (n,h,w,c) and weights (r,s,c,k), square window. */
static inline r64_extent r64_conv(double *y, const double *x, const double *w, const double *b,
                                  size_t n, r64_extent e, size_t k, size_t window, size_t stride,
                                  size_t pad) {
  const size_t p = (e.h + 2 * pad - window) / stride + 1, q = (e.w + 2 * pad - window) / stride + 1;
  for (size_t i = 0; i < n; i++)
    for (size_t oy = 0; oy < p; oy++)
      for (size_t ox = 0; ox < q; ox++)
        for (size_t o = 0; o < k; o++) {
          double sum = b[o];
          for (size_t r = 0; r < window; r++)
            for (size_t s = 0; s < window; s++) {
              const long iy = (long)(oy * stride + r) - (long)pad,
                         ix = (long)(ox * stride + s) - (long)pad;
              if (iy < 0 || ix < 0 || iy >= (long)e.h || ix >= (long)e.w) continue;
              for (size_t c = 0; c < e.c; c++)
                sum += x[((i * e.h + (size_t)iy) * e.w + (size_t)ix) * e.c + c] *
                       w[((r * window + s) * e.c + c) * k + o];
            }
          y[((i * p + oy) * q + ox) * k + o] = sum;
        }
  return (r64_extent){p, q, k};
}

static inline r64_extent r64_pool(double *y, const double *x, size_t n, r64_extent e, size_t window,
                                  size_t stride) {
  const size_t p = (e.h - window) / stride + 1, q = (e.w - window) / stride + 1;
  for (size_t i = 0; i < n; i++)
    for (size_t oy = 0; oy < p; oy++)
      for (size_t ox = 0; ox < q; ox++)
        for (size_t c = 0; c < e.c; c++) {
          double largest = -INFINITY;
          for (size_t r = 0; r < window; r++)
            for (size_t s = 0; s < window; s++) {
              const double v = x[((i * e.h + oy * stride + r) * e.w + ox * stride + s) * e.c + c];
              largest = fmax(largest, v);
            }
          y[((i * p + oy) * q + ox) * e.c + c] = largest;
        }
  return (r64_extent){p, q, e.c};
}

static inline void r64_linear(double *y, const double *x, const double *w, const double *b,
                              size_t n, size_t in, size_t out) {
  for (size_t i = 0; i < n; i++)
    for (size_t o = 0; o < out; o++) {
      double sum = b[o];
      for (size_t k = 0; k < in; k++) sum += x[i * in + k] * w[o * in + k];
      y[i * out + o] = sum;
    }
}

static inline void r64_relu(double *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = fmax(x[i], 0.0);
}

/* Returns the mean over n of -log softmax. */
static inline double r64_loss(const double *x, const int32_t *labels, size_t n, size_t classes) {
  double total = 0.0;
  for (size_t i = 0; i < n; i++) {
    double sum = 0.0;
    for (size_t o = 0; o < classes; o++) sum += exp(x[i * classes + o]);
    total += log(sum) - x[i * classes + (size_t)labels[i]];
  }
  return total / (double)n;
}

static inline double r64_sigmoid(double x) {
  return 1.0 / (1.0 + exp(-x));
}

/* Computes h (H), the last hidden state of an LSTM over the vectors x (T,E) of one sample, from
   vector `start` on; w: weights (4H,E) and (4H,H), then two biases (4H), with the gates in the
   order i, f, g, o (Hochreiter and Schmidhuber 1997; Gers et al. 2000).  scratch (6H). */
static inline void r64_lstm(double *h, const double *x, const double *w, size_t start, size_t T,
                            size_t E, size_t H, double *scratch) {
  double *z = scratch, *c = z + 4 * H;
  const double *wh = w + 4 * H * E, *bx = wh + 4 * H * H, *bh = bx + 4 * H;
  for (size_t k = 0; k < H; k++) h[k] = c[k] = 0.0;
  for (size_t t = start; t < T; t++) {
    for (size_t o = 0; o < 4 * H; o++) {
      z[o] = bx[o] + bh[o];
      for (size_t k = 0; k < E; k++) z[o] += w[o * E + k] * x[t * E + k];
      for (size_t k = 0; k < H; k++) z[o] += wh[o * H + k] * h[k];
    }
    for (size_t k = 0; k < H; k++) {
      c[k] = r64_sigmoid(z[H + k]) * c[k] + r64_sigmoid(z[k]) * tanh(z[2 * H + k]);
      h[k] = r64_sigmoid(z[3 * H + k]) * tanh(c[k]);
    }
  }
}

/* Layer normalisation (Ba et al. 2016) of n rows of x (n,D). */
static inline void r64_layernorm(double *y, const double *x, const double *w, const double *b,
                                 size_t n, size_t D) {
  for (size_t i = 0; i < n; i++, x += D, y += D) {
    double mean = 0.0, variance = 0.0;
    for (size_t d = 0; d < D; d++) mean += x[d];
    mean /= (double)D;
    for (size_t d = 0; d < D; d++) variance += (x[d] - mean) * (x[d] - mean);
    variance /= (double)D;
    for (size_t d = 0; d < D; d++) y[d] = (x[d] - mean) / sqrt(variance + 1e-5) * w[d] + b[d];
  }
}

/* GELU's tanh form (Hendrycks and Gimpel 2016), in place. */
static inline void r64_gelu(double *x, size_t n) {
  const double slope = sqrt(2.0 / 3.14159265358979323846);
  for (size_t i = 0; i < n; i++)
    x[i] *= 0.5 * (1.0 + tanh(slope * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
}

/* Causal attention of one sequence: y (T,D) from queries, keys and values x (T,3D); p (T). */
static inline void r64_attention(double *y, const double *x, size_t T, size_t D, size_t heads,
                                 double *p) {
  const size_t size = D / heads;
  for (size_t h = 0; h < heads; h++)
    for (size_t i = 0; i < T; i++) {
      const double *q = x + i * 3 * D + h * size;
      double sum = 0.0;
      for (size_t j = 0; j <= i; j++) {
        double score = 0.0;
        for (size_t d = 0; d < size; d++) score += q[d] * x[j * 3 * D + D + h * size + d];
        sum += p[j] = exp(score / sqrt((double)size));
      }
      for (size_t d = 0; d < size; d++) {
        double out = 0.0;
        for (size_t j = 0; j <= i; j++) out += p[j] / sum * x[j * 3 * D + 2 * D + h * size + d];
        y[i * D + h * size + d] = out;
      }
    }
}

/* Returns LeNet-5's mean loss; params in the order conv1.weight, conv1.bias, ..., fc3.bias.  ReLU
   before pooling, as in the papers. */
static inline double r64_lenet(const double *params, const double *x, const int32_t *labels,
                               size_t n, r64_extent e, size_t classes) {
  const size_t most = n * e.h * e.w * 16 + n * 400;
  double *a = malloc(most * sizeof *a), *b = malloc(most * sizeof *b);
  const double *w = params;
  const size_t c = e.c;
  e = r64_conv(a, x, w, w + 25 * c * 6, n, e, 6, 5, 1, 2), w += 25 * c * 6 + 6;
  r64_relu(a, n * e.h * e.w * e.c);
  e = r64_pool(b, a, n, e, 2, 2);
  e = r64_conv(a, b, w, w + 2400, n, e, 16, 5, 1, 0), w += 2416;
  r64_relu(a, n * e.h * e.w * e.c);
  e = r64_pool(b, a, n, e, 2, 2);
  const size_t in = e.h * e.w * e.c;
  r64_linear(a, b, w, w + 120 * in, n, in, 120), w += 120 * in + 120;
  r64_relu(a, n * 120);
  r64_linear(b, a, w, w + 84 * 120, n, 120, 84), w += 84 * 120 + 84;
  r64_relu(b, n * 84);
  r64_linear(a, b, w, w + classes * 84, n, 84, classes);
  const double loss = r64_loss(a, labels, n, classes);
  free(a);
  free(b);
  return loss;
}
