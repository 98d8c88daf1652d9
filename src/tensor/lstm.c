/* LSTM: one product for the inputs of all steps and samples; in each step one product with the
   recurrent weights, which are packed once, then the gates; backward the same in reverse, and one
   product for the gradients of each matrix (Appleyard et al. 2016, for packed sequences). */
#include <string.h>

#include "kernels.h"
#include "loops.h"

/* The samples that begin in step t have no state yet. */
static void begin(float *state, const gt_lstm_shape *s, size_t t) {
  const size_t before = t > 0 ? gt_lstm_rows(s, t - 1) : 0;
  memset(state + (s->first[t] + before) * s->H, 0,
         (gt_lstm_rows(s, t) - before) * s->H * sizeof *state);
}

void gt_lstm_forward(float *h, float *c, float *gates, const float *x, const float *w,
                     const float *b, const gt_lstm_shape *s, float *work) {
  const size_t H = s->H;
  const gt_loop_tables *loops = gt_loops();
  float *bias = work, *panels = bias + 4 * H;
  for (size_t o = 0; o < 4 * H; o++) bias[o] = b[o] + b[4 * H + o];
  gt_fast_rows_fill(gates, bias, s->first[s->T], 4 * H);
  gt_gemm(false, true, s->first[s->T], 4 * H, s->I, x, w, 1.0F, gates);
  loops->panels->pack(panels, w + 4 * H * s->I, H, 4 * H, true);
  for (size_t t = 0; t < s->T; t++) {
    const size_t now = s->first[t], next = s->first[t + 1], rows = next - now;
    const size_t before = t > 0 ? gt_lstm_rows(s, t - 1) : 0;
    begin(h, s, t);
    begin(c, s, t);
    loops->panels->multiply(gates + now * 4 * H, h + now * H, panels, before, H, 4 * H);
    loops->lstm->forward(h + next * H, c + next * H, gates + now * 4 * H, c + now * H, rows, H);
  }
}

/* Through time, from the last step to the first: replaces the gates by the gradients dz. */
static void through_time(float *gates, const float *dy, const float *c, const float *wh,
                         const gt_lstm_shape *s, float *work) {
  const size_t H = s->H, last = gt_lstm_rows(s, s->T - 1);
  const gt_loop_tables *loops = gt_loops();
  float *dh = work, *dc = dh + last * H, *panels = dc + last * H;
  loops->panels->pack(panels, wh, 4 * H, H, false);
  memcpy(dh, dy, last * H * sizeof *dh);
  memset(dc, 0, last * H * sizeof *dc);
  for (size_t t = s->T; t-- > 0;) {
    const size_t now = s->first[t], next = s->first[t + 1], rows = next - now;
    float *dz = gates + now * 4 * H;
    if (rows == 0) return;
    loops->lstm->backward(dz, dc, dh, c + now * H, c + next * H, rows, H);
    memset(dh, 0, rows * H * sizeof *dh);
    if (now > 0) loops->panels->multiply(dh, dz, panels, gt_lstm_rows(s, t - 1), 4 * H, H);
  }
}

void gt_lstm_backward(float *dx, float *dw, float *db, const float *dy, float *gates,
                      const float *x, const float *h, const float *c, const float *w,
                      const gt_lstm_shape *s, float *work) {
  const size_t I = s->I, H = s->H, M = s->first[s->T], at = 4 * H * I;
  through_time(gates, dy, c, w + at, s, work);
  gt_gemm(true, false, 4 * H, I, M, gates, x, 0.0F, dw);
  gt_gemm(true, false, 4 * H, H, M, gates, h, 0.0F, dw + at);
  gt_fast_rows_sum(db, gates, M, 4 * H);
  memcpy(db + 4 * H, db, 4 * H * sizeof *db);
  gt_gemm(false, false, M, I, 4 * H, gates, w, 0.0F, dx);
}
