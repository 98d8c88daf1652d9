/* Functions of all kernel tables except ref, on the vector loops of isa/. */
#include <math.h>
#include <string.h>

#include "bf16.h"
#include "kernels.h"
#include "loops.h"

/* ---- max pooling ----------------------------------------------------------------------------- */

/* 2x2 windows that do not overlap have loops of their own. */
static bool serves(const gt_conv_shape *s, gt_precision type) {
  return s->R == 2 && s->S == 2 && s->stride == 2 && s->pad == 0 && type == GT_F32;
}

/* Clears the last row or column of odd images, which no window covers. */
static void clear_edges(float *dx, const gt_conv_shape *s, size_t N) {
  const size_t row = s->W * s->C;
  for (size_t n = 0; n < N; n++) {
    float *image = dx + n * s->H * row;
    for (size_t h = 0; h < 2 * s->P && 2 * s->Q < s->W; h++)
      memset(image + h * row + 2 * s->Q * s->C, 0, (s->W - 2 * s->Q) * s->C * sizeof *dx);
    for (size_t h = 2 * s->P; h < s->H; h++) memset(image + h * row, 0, row * sizeof *dx);
  }
}

void gt_fast_maxpool_forward(void *y, uint32_t *index, const void *x, gt_precision type,
                             const gt_conv_shape *s, size_t N) {
  if (serves(s, type))
    gt_loops()->pooling->max_forward(y, index, x, s, N);
  else
    gt_loops()->pooling->window_forward(y, index, x, type, s, N);
}

void gt_fast_maxpool_backward(void *dx, const void *dy, const uint32_t *index, gt_precision type,
                              const gt_conv_shape *s, size_t N) {
  if (serves(s, type)) {
    gt_loops()->pooling->max_backward(dx, dy, index, s, N);
    clear_edges(dx, s, N);
  } else {
    gt_loops()->pooling->window_backward(dx, dy, index, type, s, N);
  }
}

/* ---- ReLU, and sums over rows ---------------------------------------------------------------- */

void gt_fast_relu_forward(float *y, const float *x, size_t n) {
  gt_loops()->vec->relu_forward(y, x, n);
}

void gt_fast_relu_backward(float *dx, const float *dy, const float *y, size_t n) {
  gt_loops()->vec->relu_backward(dx, dy, y, n);
}

void gt_fast_rows_fill(float *y, const float *b, size_t B, size_t O) {
  if (!b) {
    memset(y, 0, B * O * sizeof *y);
    return;
  }
  for (size_t n = 0; n < B; n++) memcpy(y + n * O, b, O * sizeof *y);
}

void gt_fast_rows_sum(float *sum, const float *y, size_t B, size_t O) {
  gt_loops()->vec->rows_sum(sum, y, B, O);
}

/* ---- softmax and cross-entropy over many classes --------------------------------------------- */

double gt_softmax_many(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                       size_t *correct) {
  const float scale = 1.0F / (float)B;
  double total = 0.0;
  for (size_t n = 0; n < B; n++)
    total += gt_loops()->softmax->xent(dx ? dx + n * O : NULL, x + n * O, (size_t)labels[n], O,
                                       scale, correct);
  return total;
}

/* ---- batch normalisation --------------------------------------------------------------------- */

/* Batch normalisation in two passes over memory per direction.  Forward: one for the statistics and
   one for the values (with the residual sum and the ReLU).  Backward: one for the sums and one for
   the gradient.  Per channel, both second passes are affine; their constants are computed between
   the passes. */

/* Returns the scratch: 2C doubles, then 4C floats. */
static double *doubles_of(float *work) {
  return (double *)(void *)work;
}

void gt_fast_norm_forward(void *y, const void *x, const void *add, const float *gamma,
                          const float *beta, float *running_mean, float *running_var, float *saved,
                          const gt_norm_shape *s, float *work) {
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

void gt_fast_norm_infer(void *y, const void *x, const void *add, const float *gamma,
                        const float *beta, const float *running_mean, const float *running_var,
                        const gt_norm_shape *s, float *work) {
  float *a = work, *b = a + s->C;
  for (size_t c = 0; c < s->C; c++) {
    a[c] = gamma[c] / sqrtf(running_var[c] + s->epsilon);
    b[c] = beta[c] - a[c] * running_mean[c];
  }
  gt_loops()->norm->apply(y, x, add, a, b, s);
}

void gt_fast_norm_backward(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy,
                           const void *dy2, const void *y, const void *x, const float *gamma,
                           const float *beta, const float *saved, const gt_norm_shape *s,
                           float *work) {
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

void gt_fast_mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW,
                          size_t C) {
  gt_loops()->norm->mean_forward(y, x, type, N, HW, C);
}

void gt_fast_mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                           size_t C) {
  gt_loops()->norm->mean_backward(dx, dy, type, N, HW, C);
}

/* ---- embeddings and factorization machines --------------------------------------------------- */

void gt_fast_embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K) {
  gt_loops()->sparse->embedding_forward(y, w, ids, M, K);
}

void gt_fast_embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                                size_t M, size_t K) {
  gt_loops()->sparse->embedding_backward(dw, dy, dy2, ids, M, K);
}

void gt_fast_embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K) {
  gt_loops()->sparse->embedding_clear(dw, ids, M, K);
}

void gt_fast_fm_forward(float *y, const float *v, const float *w, const float *b,
                        const int32_t *ids, size_t N, size_t F, size_t K) {
  gt_loops()->sparse->fm_forward(y, v, w, b, ids, N, F, K);
}

void gt_fast_fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F,
                               size_t K) {
  gt_loops()->sparse->fm_backward_input(dv, dy, v, N, F, K);
}

void gt_fast_fm_backward_weight(float *dw, float *db, const float *dy, const int32_t *ids, size_t N,
                                size_t F) {
  double sum = 0.0;
  for (size_t n = 0; n < N; n++) {
    sum += (double)dy[n];
    for (size_t f = 0; f < F; f++) dw[ids[n * F + f]] += dy[n];
  }
  db[0] = (float)sum;
}

/* ---- LSTM ------------------------------------------------------------------------------------ */

/* LSTM: one product for the inputs of all steps and samples; in each step one product with the
   recurrent weights, which are packed once, then the gates; backward the same in reverse, and one
   product for the gradients of each matrix (Appleyard et al. 2016, for packed sequences). */

/* Clears the state of the samples that begin in step t. */
static void begin(float *state, const gt_lstm_shape *s, size_t t) {
  const size_t before = t > 0 ? gt_lstm_rows(s, t - 1) : 0;
  memset(state + (s->first[t] + before) * s->H, 0,
         (gt_lstm_rows(s, t) - before) * s->H * sizeof *state);
}

void gt_fast_lstm_forward(float *h, float *c, float *gates, const float *x, const float *w,
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

/* Backpropagates through time, from the last step to the first: replaces the gates by the gradients
   dz. */
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

void gt_fast_lstm_backward(float *dx, float *dw, float *db, const float *dy, float *gates,
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

/* ---- decoder --------------------------------------------------------------------------------- */

void gt_fast_layernorm_forward(float *y, float *saved, const float *x, const float *gamma,
                               const float *beta, size_t M, size_t D) {
  gt_loops()->layernorm->forward(y, saved, x, gamma, beta, M, D);
}

void gt_fast_layernorm_backward_input(float *dx, const float *dy, const float *x,
                                      const float *gamma, const float *saved, size_t M, size_t D) {
  gt_loops()->layernorm->backward_input(dx, dy, x, gamma, saved, M, D);
}

void gt_fast_layernorm_backward_weight(float *dgamma, float *dbeta, const float *dy, const float *x,
                                       const float *saved, size_t M, size_t D) {
  gt_loops()->layernorm->backward_weight(dgamma, dbeta, dy, x, saved, M, D);
}

void gt_fast_gelu_forward(float *y, const float *x, size_t n) {
  gt_loops()->gelu->forward(y, x, n);
}

void gt_fast_gelu_backward(float *dx, const float *dy, const float *x, size_t n) {
  gt_loops()->gelu->backward(dx, dy, x, n);
}

/* The row of a position follows that of the previous position; a label is the next id. */
double gt_fast_next_xent(float *dx, const float *x, const int32_t *ids, size_t N, size_t T,
                         size_t V, size_t *correct) {
  const float scale = 1.0F / (float)(N * T);
  double total = 0.0;
  for (size_t n = 0; n < N; n++)
    for (size_t t = 0; t < T; t++) {
      const size_t row = (n * T + t) * V, label = (size_t)ids[n * (T + 1) + t + 1];
      total += gt_loops()->softmax->xent(dx ? dx + row : NULL, x + row, label, V, scale, correct);
    }
  return total;
}

/* ---- attention, head by head ---- */

static size_t rounded(size_t n, size_t block) {
  return (n + block - 1) / block * block;
}

/* Nine matrices of a head's size, rows and columns rounded up; the scores of a block and their
   gradients; two numbers for each position. */
size_t gt_attention_work(const gt_attention_shape *s) {
  const size_t T = rounded(s->T, GT_ATTENTION_BLOCK), size = rounded(s->D / s->heads, 16);
  return 9 * T * size + 2 * GT_ATTENTION_BLOCK * GT_ATTENTION_BLOCK + 2 * T;
}

static gt_attention_head head_of(const gt_attention_shape *s) {
  const size_t size = s->D / s->heads;
  return (gt_attention_head){.T = s->T,
                             .rows = rounded(s->T, GT_ATTENTION_BLOCK),
                             .size = size,
                             .width = rounded(size, 16),
                             .D = s->D,
                             .scale = 1.0F / sqrtf((float)size)};
}

void gt_fast_attention_forward(float *y, float *lse, const float *qkv, const gt_attention_shape *s,
                               size_t N, float *work) {
  const gt_attention_head one = head_of(s);
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < s->heads; h++)
      gt_loops()->attention->forward(y + n * s->T * s->D + h * one.size,
                                     lse + (n * s->heads + h) * s->T,
                                     qkv + n * s->T * 3 * s->D + h * one.size, &one, work);
}

void gt_fast_attention_backward(float *dqkv, const float *dy, const float *y, const float *lse,
                                const float *qkv, const gt_attention_shape *s, size_t N,
                                float *work) {
  const gt_attention_head one = head_of(s);
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < s->heads; h++) {
      const size_t at = n * s->T * s->D + h * one.size, at3 = n * s->T * 3 * s->D + h * one.size;
      gt_loops()->attention->backward(dqkv + at3, dy + at, y + at, lse + (n * s->heads + h) * s->T,
                                      qkv + at3, &one, work);
    }
}

/* ---- session graphs -------------------------------------------------------------------------- */

void gt_fast_unit_forward(float *y, float *norms, const float *x, size_t M, size_t K) {
  gt_loops()->attend->unit_forward(y, norms, x, M, K);
}

void gt_fast_unit_backward(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                           size_t K) {
  gt_loops()->attend->unit_backward(dx, dy, y, norms, M, K);
}

void gt_fast_gru_forward(float *y, float *gates, const float *h, const float *gi, const float *gh,
                         size_t M, size_t H) {
  gt_loops()->gru->forward(y, gates, h, gi, gh, M, H);
}

void gt_fast_gru_backward(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                          const float *h, size_t M, size_t H) {
  gt_loops()->gru->backward(dgi, dgh, dh, dy, gates, h, M, H);
}

void gt_fast_attend_forward(float *y, float *gates, float *alpha, const float *q1, const float *h,
                            const float *w, const gt_session_shape *s) {
  gt_loops()->attend->attend_forward(y, gates, alpha, q1, h, w, s);
}

void gt_fast_attend_backward(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                             const float *gates, const float *alpha, const float *h, const float *w,
                             const gt_session_shape *s) {
  gt_loops()->attend->attend_backward(dh, dq1, dq2, dw, dy, gates, alpha, h, w, s);
}
