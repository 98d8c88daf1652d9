/* The gates of an LSTM, element by element.  Operations are rounded one by one, and elements that do
   not fill a register take the same path, so that every set gives the same bits. */
#include "elementary.h"
#include "loops.h"

GT_INLINE void units_forward(float *h1, float *c1, float *gates, const float *c0, size_t H,
                             size_t n) {
  const gt_vf i = gt_v_sigmoid(gt_v_take(gates, n)), f = gt_v_sigmoid(gt_v_take(gates + H, n)),
              g = gt_v_tangent(gt_v_take(gates + 2 * H, n)),
              o = gt_v_sigmoid(gt_v_take(gates + 3 * H, n));
  const gt_vf c = f * gt_v_take(c0, n) + i * g;
  gt_v_put(gates, i, n);
  gt_v_put(gates + H, f, n);
  gt_v_put(gates + 2 * H, g, n);
  gt_v_put(gates + 3 * H, o, n);
  gt_v_put(c1, c, n);
  gt_v_put(h1, o * gt_v_tangent(c), n);
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
  const gt_vf i = gt_v_take(gates, n), f = gt_v_take(gates + H, n), g = gt_v_take(gates + 2 * H, n),
              o = gt_v_take(gates + 3 * H, n);
  const gt_vf out = gt_v_tangent(gt_v_take(c1, n)), d1 = gt_v_take(dh, n);
  const gt_vf d = gt_v_take(dc, n) + d1 * o * (1.0F - out * out);
  gt_v_put(gates, d * g * i * (1.0F - i), n);
  gt_v_put(gates + H, d * gt_v_take(c0, n) * f * (1.0F - f), n);
  gt_v_put(gates + 2 * H, d * i * (1.0F - g * g), n);
  gt_v_put(gates + 3 * H, d1 * out * o * (1.0F - o), n);
  gt_v_put(dc, d * f, n);
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
