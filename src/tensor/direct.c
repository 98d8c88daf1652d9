/* Direct convolution for few channels, where a GEMM's blocks are mostly empty: which shapes it takes, and how operands are laid out for it. */
#include <string.h>

#include "direct.h"

static size_t round_up(size_t n, size_t to) {
  return (n + to - 1) / to * to;
}

gt_direct gt_direct_of(const gt_conv_shape *s) {
  const size_t lanes = s->K <= 8 ? 8 : 16, width = s->W + 2 * s->pad;
  return (gt_direct){
      .R = s->R,
      .L = s->S * s->C,
      .K = s->K,
      .P = s->P,
      .Q = s->Q,
      .Kp = round_up(s->K, lanes),
      .Lp = round_up(s->S * s->C, 16),
      .lanes = lanes,
      .row = width * s->C,
      .step = s->stride * s->C,
      .stride = s->stride,
      .image = (s->H + 2 * s->pad) * width * s->C,
      .out = s->P * s->Q * s->K,
  };
}

const float *gt_direct_pad(float *to, const float *x, const gt_conv_shape *s) {
  if (s->pad == 0) return x;
  const size_t border = s->pad * s->C, inner = s->W * s->C, row = inner + 2 * border;
  memset(to, 0, s->pad * row * sizeof *to);
  for (size_t h = 0; h < s->H; h++) {
    float *line = to + (h + s->pad) * row;
    memset(line, 0, border * sizeof *to);
    memcpy(line + border, x + h * inner, inner * sizeof *to);
    memset(line + border + inner, 0, border * sizeof *to);
  }
  memset(to + (s->H + s->pad) * row, 0, s->pad * row * sizeof *to);
  return to;
}

GT_CLONES void gt_direct_pack(float *to, const float *from, size_t rows, size_t n, size_t np) {
  size_t i = 0;
  if (np == 8 && n < 8) { /* a whole vector is read as long as rows follow that make up for it; what is the next row's is masked */
    gt_m8 keep = {0};
    for (size_t l = 0; l < n; l++) keep[l] = -1;
    for (; (rows - i) * n >= 8; i++) *(gt_m8 *)(to + i * 8) = *(const gt_m8 *)(from + i * n) & keep;
  }
  for (; i < rows; i++) {
    memcpy(to + i * np, from + i * n, n * sizeof *to);
    memset(to + i * np + n, 0, (np - n) * sizeof *to);
  }
}

/* Channels up to 16, or whole vectors of them but not so many that a GEMM is better; the window must fit the first cache with its weights. */
bool gt_direct_serves(const gt_conv_shape *s) {
  const bool few = s->K <= 16 || (s->K <= 32 && s->K % 16 == 0);
  return few && s->C <= 32 && s->R * s->S * s->C <= 800;
}

size_t gt_direct_work(const gt_conv_shape *s) {
  const gt_direct g = gt_direct_of(s);
  const size_t weights = g.R * g.L * g.Kp + g.Kp, transposed = g.R * g.K * g.Lp;
  return weights + transposed + g.P * g.Q * g.Kp + g.image + 16;
}
