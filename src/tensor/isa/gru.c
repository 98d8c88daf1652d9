/* The gates of a gated recurrent unit (Cho et al. 2014, with the reset gate behind the product, as
   in cuDNN and PyTorch), element by element.  The same bits with every set. */
#include "functions_vector.h"
#include "loops.h"

/* Rows of gi and gh: r, z, n; rows of gates: r, z, n, and the part of gh that r multiplies. */
GT_INLINE void units_forward(float *y, float *gates, const float *h, const float *gi,
                             const float *gh, size_t H, size_t count) {
  const gt_vf r = gt_sigmoid(gt_take(gi, count) + gt_take(gh, count)),
              z = gt_sigmoid(gt_take(gi + H, count) + gt_take(gh + H, count)),
              m = gt_take(gh + 2 * H, count);
  const gt_vf n = gt_tangent(gt_take(gi + 2 * H, count) + r * m);
  gt_put(gates, r, count);
  gt_put(gates + H, z, count);
  gt_put(gates + 2 * H, n, count);
  gt_put(gates + 3 * H, m, count);
  gt_put(y, n + z * (gt_take(h, count) - n), count);
}

static void forward(float *y, float *gates, const float *h, const float *gi, const float *gh,
                    size_t M, size_t H) {
  for (size_t j = 0; j < M; j++, y += H, gates += 4 * H, h += H, gi += 3 * H, gh += 3 * H) {
    size_t k = 0;
    for (; k + GT_LANES <= H; k += GT_LANES)
      units_forward(y + k, gates + k, h + k, gi + k, gh + k, H, GT_LANES);
    if (k < H) units_forward(y + k, gates + k, h + k, gi + k, gh + k, H, H - k);
  }
}

GT_INLINE void units_backward(float *dgi, float *dgh, float *dh, const float *dy,
                              const float *gates, const float *h, size_t H, size_t count) {
  const gt_vf r = gt_take(gates, count), z = gt_take(gates + H, count),
              n = gt_take(gates + 2 * H, count), m = gt_take(gates + 3 * H, count),
              d = gt_take(dy, count);
  const gt_vf dn = d * (1.0F - z) * (1.0F - n * n),
              dz = d * (gt_take(h, count) - n) * z * (1.0F - z), dr = dn * m * r * (1.0F - r);
  gt_put(dgi, dr, count);
  gt_put(dgi + H, dz, count);
  gt_put(dgi + 2 * H, dn, count);
  gt_put(dgh, dr, count);
  gt_put(dgh + H, dz, count);
  gt_put(dgh + 2 * H, dn * r, count);
  gt_put(dh, d * z, count);
}

static void backward(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                     const float *h, size_t M, size_t H) {
  for (size_t j = 0; j < M; j++) {
    size_t k = 0;
    for (; k + GT_LANES <= H; k += GT_LANES)
      units_backward(dgi + k, dgh + k, dh + k, dy + k, gates + k, h + k, H, GT_LANES);
    if (k < H) units_backward(dgi + k, dgh + k, dh + k, dy + k, gates + k, h + k, H, H - k);
    dgi += 3 * H, dgh += 3 * H, dh += H, dy += H, gates += 4 * H, h += H;
  }
}

const gt_gru_loops GT_FOR_ISA(gt_gru_loops) = {.forward = forward, .backward = backward};
