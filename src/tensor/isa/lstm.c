/* The gates of an LSTM, element by element.  exp and tanh are approximated with a few float32
   operations (the polynomials of Cephes, Moshier 1992), which are rounded one by one, and elements
   that do not fill a register take the same path, so that every set gives the same bits. */
#include <string.h>

#include "geotrain/tensor/vector.h"
#include "loops.h"

GT_INLINE gt_vf choose(gt_vi mask, gt_vf yes, gt_vf no) {
  return (gt_vf)(((gt_vi)yes & mask) | ((gt_vi)no & ~mask));
}

/* The next n of at most GT_LANES elements; the others are 0. */
GT_INLINE gt_vf take(const float *x, size_t n) {
  gt_vf v = {0};
  if (n == GT_LANES) return *(const gt_vf *)x;
  memcpy(&v, x, n * sizeof *x);
  return v;
}

GT_INLINE void put(float *y, gt_vf v, size_t n) {
  if (n == GT_LANES)
    *(gt_vf *)y = v;
  else
    memcpy(y, &v, n * sizeof *y);
}

/* e^x for x in [-87, 88]; values beyond count as the nearer end.  A NaN stays a NaN. */
GT_INLINE gt_vf exponential(gt_vf x) {
  const float round = 12582912.0F; /* 1.5 2^23: a sum with it has no fraction */
  const gt_vf low = (gt_vf){0} - 87.0F, high = (gt_vf){0} + 88.0F;
  x = choose((gt_vi)(x < low), low, choose((gt_vi)(x > high), high, x));
  const gt_vf whole = x * 1.44269504F + round, n = whole - round;
  const gt_vf r = (x - n * 0.693359375F) - n * -2.12194440e-4F; /* n ln 2 in two parts */
  gt_vf p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  return p * (gt_vf)(((gt_vu)whole << 23) + 0x3f800000U); /* times 2^n */
}

GT_INLINE gt_vf sigmoid(gt_vf x) {
  return 1.0F / (1.0F + exponential(-x));
}

/* Odd polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits. */
GT_INLINE gt_vf tangent(gt_vf x) {
  const gt_vi sign = (gt_vi)x & INT32_MIN;
  const gt_vf size = (gt_vf)((gt_vi)x ^ sign), square = x * x;
  gt_vf p = square * -5.70498872745e-3F + 2.06390887954e-2F;
  p = p * square + -5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square + -3.33332819422e-1F;
  const gt_vf small = p * square * x + x, large = 1.0F - 2.0F / (exponential(size + size) + 1.0F);
  return choose((gt_vi)(size < 0.625F), small, (gt_vf)((gt_vi)large | sign));
}

GT_INLINE void units_forward(float *h1, float *c1, float *gates, const float *c0, size_t H,
                             size_t n) {
  const gt_vf i = sigmoid(take(gates, n)), f = sigmoid(take(gates + H, n)),
              g = tangent(take(gates + 2 * H, n)), o = sigmoid(take(gates + 3 * H, n));
  const gt_vf c = f * take(c0, n) + i * g;
  put(gates, i, n);
  put(gates + H, f, n);
  put(gates + 2 * H, g, n);
  put(gates + 3 * H, o, n);
  put(c1, c, n);
  put(h1, o * tangent(c), n);
}

static void forward(float *h1, float *c1, float *gates, const float *c0, size_t rows, size_t H) {
  for (size_t j = 0; j < rows; j++, h1 += H, c1 += H, c0 += H, gates += 4 * H) {
    size_t k = 0;
    for (; k + GT_LANES <= H; k += GT_LANES)
      units_forward(h1 + k, c1 + k, gates + k, c0 + k, H, GT_LANES);
    if (k < H) units_forward(h1 + k, c1 + k, gates + k, c0 + k, H, H - k);
  }
}

GT_INLINE void units_backward(float *gates, float *dc, const float *dh, const float *c0,
                              const float *c1, size_t H, size_t n) {
  const gt_vf i = take(gates, n), f = take(gates + H, n), g = take(gates + 2 * H, n),
              o = take(gates + 3 * H, n);
  const gt_vf out = tangent(take(c1, n)), d1 = take(dh, n);
  const gt_vf d = take(dc, n) + d1 * o * (1.0F - out * out);
  put(gates, d * g * i * (1.0F - i), n);
  put(gates + H, d * take(c0, n) * f * (1.0F - f), n);
  put(gates + 2 * H, d * i * (1.0F - g * g), n);
  put(gates + 3 * H, d1 * out * o * (1.0F - o), n);
  put(dc, d * f, n);
}

static void backward(float *gates, float *dc, const float *dh, const float *c0, const float *c1,
                     size_t rows, size_t H) {
  for (size_t j = 0; j < rows; j++, gates += 4 * H, dc += H, dh += H, c0 += H, c1 += H) {
    size_t k = 0;
    for (; k + GT_LANES <= H; k += GT_LANES)
      units_backward(gates + k, dc + k, dh + k, c0 + k, c1 + k, H, GT_LANES);
    if (k < H) units_backward(gates + k, dc + k, dh + k, c0 + k, c1 + k, H, H - k);
  }
}

const gt_lstm_loops GT_FOR_ISA(gt_lstm_loops) = {.forward = forward, .backward = backward};
