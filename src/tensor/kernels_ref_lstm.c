/* An LSTM in plain loops, straight from its definition, sample by sample: the reference for the
   faster kernel. */
#include <math.h>
#include <string.h>

#include "kernels.h"

static float sigmoid(float z) {
  return 1.0F / (1.0F + expf(-z));
}

/* One step of one sample. */
static void step(float *h1, float *c1, float *gates, const float *x, const float *h0,
                 const float *c0, const float *w, const float *b, const gt_lstm_shape *s) {
  const size_t I = s->I, H = s->H;
  const float *wx = w, *wh = w + 4 * H * I;
  for (size_t o = 0; o < 4 * H; o++) {
    float z = b[o] + b[4 * H + o];
    for (size_t k = 0; k < I; k++) z += x[k] * wx[o * I + k];
    for (size_t k = 0; k < H; k++) z += h0[k] * wh[o * H + k];
    gates[o] = o / H == 2 ? tanhf(z) : sigmoid(z);
  }
  for (size_t k = 0; k < H; k++) {
    c1[k] = gates[H + k] * c0[k] + gates[k] * gates[2 * H + k];
    h1[k] = gates[3 * H + k] * tanhf(c1[k]);
  }
}

void gt_ref_lstm_forward(float *h, float *c, float *gates, const float *x, const float *w,
                         const float *b, const gt_lstm_shape *s, float *work) {
  const size_t H = s->H, M = s->first[s->T];
  (void)work;
  memset(h, 0, (M + gt_lstm_rows(s, s->T - 1)) * H * sizeof *h);
  memset(c, 0, (M + gt_lstm_rows(s, s->T - 1)) * H * sizeof *c);
  for (size_t t = 0; t < s->T; t++)
    for (size_t j = 0; j < gt_lstm_rows(s, t); j++) {
      const size_t now = s->first[t] + j, next = s->first[t + 1] + j;
      step(h + next * H, c + next * H, gates + now * 4 * H, x + now * s->I, h + now * H,
           c + now * H, w, b, s);
    }
}

/* Replaces the gates by the gradient of what they are the sigmoid and the tanh of; dc by the
   gradient of the cells before the step. */
static void step_back(float *gates, float *dc, const float *dh, const float *c0, const float *c1,
                      size_t H) {
  for (size_t k = 0; k < H; k++) {
    float *i = gates + k, *f = i + H, *g = f + H, *o = g + H;
    const float out = tanhf(c1[k]), d = dc[k] + dh[k] * *o * (1.0F - out * out);
    const float di = d * *g * *i * (1.0F - *i), df = d * c0[k] * *f * (1.0F - *f),
                dg = d * *i * (1.0F - *g * *g), dout = dh[k] * out * *o * (1.0F - *o);
    dc[k] = d * *f;
    *i = di, *f = df, *g = dg, *o = dout;
  }
}

/* dw += the gradient from one row; dx and dh are written.  dx may be x. */
static void products_back(float *dx, float *dh, float *dw, float *db, const float *dz,
                          const float *x, const float *h0, const float *w, const gt_lstm_shape *s) {
  const size_t I = s->I, H = s->H;
  const float *wx = w, *wh = w + 4 * H * I;
  float *dwx = dw, *dwh = dw + 4 * H * I;
  for (size_t o = 0; o < 4 * H; o++) {
    db[o] += dz[o];
    db[4 * H + o] += dz[o];
    for (size_t k = 0; k < I; k++) dwx[o * I + k] += dz[o] * x[k];
    for (size_t k = 0; k < H; k++) dwh[o * H + k] += dz[o] * h0[k];
  }
  memset(dx, 0, I * sizeof *dx);
  memset(dh, 0, H * sizeof *dh);
  for (size_t o = 0; o < 4 * H; o++) {
    for (size_t k = 0; k < I; k++) dx[k] += dz[o] * wx[o * I + k];
    for (size_t k = 0; k < H; k++) dh[k] += dz[o] * wh[o * H + k];
  }
}

void gt_ref_lstm_backward(float *dx, float *dw, float *db, const float *dy, float *gates,
                          const float *x, const float *h, const float *c, const float *w,
                          const gt_lstm_shape *s, float *work) {
  const size_t H = s->H;
  float *dh = work, *dc = dh + H;
  memset(dw, 0, 4 * H * (s->I + H) * sizeof *dw);
  memset(db, 0, 8 * H * sizeof *db);
  for (size_t j = 0; j < gt_lstm_rows(s, s->T - 1); j++) {
    memcpy(dh, dy + j * H, H * sizeof *dh);
    memset(dc, 0, H * sizeof *dc);
    for (size_t t = s->T; t-- > 0 && j < gt_lstm_rows(s, t);) {
      const size_t now = s->first[t] + j, next = s->first[t + 1] + j;
      float *dz = gates + now * 4 * H;
      step_back(dz, dc, dh, c + now * H, c + next * H, H);
      products_back(dx + now * s->I, dh, dw, db, dz, x + now * s->I, h + now * H, w, s);
    }
  }
}
