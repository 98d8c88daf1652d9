/* The vectorised loops of this part, compiled once for each instruction set from the files of isa/,
   each of which fills one table.  gt_loops() returns the tables of the set in use. */
#pragma once

#include "direct.h"
#include "geotrain/tensor.h"
#include "winograd.h"

/* Element-wise; the same bits with every set (compiled without contraction). */
typedef struct {
  void (*scale)(float *restrict y, float a, size_t n);                               /* y = a y */
  void (*axpy)(float *restrict y, float a, const float *restrict x, size_t n);       /* y += a x */
  void (*set_scaled)(float *restrict y, float a, const float *restrict x, size_t n); /* y = a x */
  /* y += a (x - y) */
  void (*lerp)(float *restrict y, float a, const float *restrict x, size_t n);
  /* y[i] = hash(key, i) < below ? 0 : a x[i]; y can be x */
  void (*drop)(float *y, float a, const float *x, const uint32_t key[2], uint32_t below, size_t n);
  void (*add)(float *restrict y, const float *restrict x, size_t n); /* y += x */
  /* y = a x + b z */
  void (*pair)(float *restrict y, float a, const float *restrict x, float b,
               const float *restrict z, size_t n);
  bool (*finite)(const float *x, size_t n);
  void (*to_bf16)(gt_bf16 *y, const float *x, size_t n);
  void (*from_bf16)(float *y, const gt_bf16 *x, size_t n);
  void (*relu_forward)(float *y, const float *x, size_t n);                    /* y may be x */
  void (*relu_backward)(float *dx, const float *dy, const float *y, size_t n); /* dx may be dy */
  void (*rows_sum)(float *restrict sum, const float *restrict y, size_t B, size_t O);
} gt_vec_loops;

/* Max pooling, with the contracts of gt_kernels: 2x2 windows that do not overlap, in float32; and
   windows of any size. */
typedef struct {
  void (*max_forward)(float *y, uint32_t *index, const float *x, const gt_conv_shape *s, size_t N);
  void (*max_backward)(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s,
                       size_t N);
  void (*window_forward)(void *y, uint32_t *index, const void *x, gt_precision type,
                         const gt_conv_shape *s, size_t N);
  void (*window_backward)(void *dx, const void *dy, const uint32_t *index, gt_precision type,
                          const gt_conv_shape *s, size_t N);
} gt_pooling_loops;

/* One image of a direct convolution; operands in the layout of direct.h. */
typedef struct {
  /* Copies rows of n floats to rows of np >= n, padded with zeros. */
  void (*pack)(float *to, const float *from, size_t rows, size_t n, size_t np);
  /* y has room for `room` floats, including those of later images. */
  void (*image)(float *y, size_t room, const float *x, const float *w, const float *b,
                const gt_direct *g);
} gt_direct_forward_loops;

typedef struct {
  /* dx: a padded image followed by 16 spare floats, zero on entry; wt (R, K, Lp). */
  void (*image)(float *dx, const float *dy, const float *wt, const gt_direct *g);
} gt_direct_input_loops;

typedef struct {
  /* dw (R, L, Kp) += the gradient from one image */
  void (*image)(float *dw, const float *dy, const float *x, const gt_direct *g);
  /* db (Kp) += the sum of dy over the pixels */
  void (*bias)(float *db, const float *dy, size_t pixels, size_t Kp);
} gt_direct_weight_loops;

typedef struct {
  /* dx (H,W,C) = the sum of one image's columns (P,Q,R,S,C), each added at its origin */
  void (*fold)(float *dx, const float *columns, const gt_conv_shape *s);
} gt_columns_loops;

/* Inputs of the gradient of a normalisation.  With a ReLU, the gradient passes where the ReLU's
   output y is above 0.  Without a residual (y NULL) the output is computed as a x + b instead of
   being read. dy2 can be NULL. */
typedef struct {
  const float *a, *b, *mean;
  const void *dy, *dy2, *y, *x;
  bool relu;
} gt_norm_gradient;

/* Batch normalisation over rows (M,C) of n->type: see norm.c.  The same bits with every set. */
typedef struct {
  /* On x minus its first row, per channel: sum += x, squares += x^2. */
  void (*stats)(double *sum, double *squares, const void *x, const gt_norm_shape *n);
  /* y = a x + b [+ add] [ReLU] */
  void (*apply)(void *y, const void *x, const void *add, const float *a, const float *b,
                const gt_norm_shape *n);
  /* sum += dz, product += dz (x - mean); also writes dz unless it is NULL */
  void (*sums)(void *dz, double *sum, double *product, const gt_norm_gradient *g,
               const gt_norm_shape *n);
  /* dx = a dz + q x + r */
  void (*input)(void *dx, const gt_norm_gradient *g, const float *q, const float *r,
                const gt_norm_shape *n);
  void (*mean_forward)(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C);
  void (*mean_backward)(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                        size_t C);
} gt_norm_loops;

/* Embeddings and factorization machines; same contracts as in gt_kernels. */
typedef struct {
  void (*embedding_forward)(float *y, const float *w, const int32_t *ids, size_t M, size_t K);
  void (*embedding_backward)(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                             size_t M, size_t K);
  void (*embedding_clear)(float *dw, const int32_t *ids, size_t M, size_t K);
  void (*fm_forward)(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                     size_t N, size_t F, size_t K);
  void (*fm_backward_input)(float *dv, const float *dy, const float *v, size_t N, size_t F,
                            size_t K);
} gt_sparse_loops;

/* The gates of an LSTM in one step of `rows` samples: see gt_kernels.  The same bits with every
   set. */
typedef struct {
  /* gates (rows,4H): sums replaced by gates; c1, h1 (rows,H) from the cells c0 before the step. */
  void (*forward)(float *h1, float *c1, float *gates, const float *c0, size_t rows, size_t H);
  /* gates: replaced by gradients of the sums.  dh (rows,H): the gradient of h1; dc: that of c1
     without the part through h1, overwritten by that of c0. */
  void (*backward)(float *gates, float *dc, const float *dh, const float *c0, const float *c1,
                   size_t rows, size_t H);
} gt_lstm_loops;

/* Layer normalisation and GELU; same contracts as in gt_kernels.  The same bits with every set. */
typedef struct {
  void (*forward)(float *y, float *saved, const float *x, const float *gamma, const float *beta,
                  size_t M, size_t D);
  void (*backward_input)(float *dx, const float *dy, const float *x, const float *gamma,
                         const float *saved, size_t M, size_t D);
  void (*backward_weight)(float *dgamma, float *dbeta, const float *dy, const float *x,
                          const float *saved, size_t M, size_t D);
} gt_layernorm_loops;

typedef struct {
  void (*forward)(float *y, const float *x, size_t n);
  void (*backward)(float *dx, const float *dy, const float *x, size_t n);
} gt_gelu_loops;

/* A row of logits, for both cross-entropies: the loss; dx = scale (softmax - onehot) or NULL. */
typedef struct {
  double (*xent)(float *dx, const float *x, size_t label, size_t n, float scale, size_t *correct);
} gt_softmax_loops;

/* Queries and keys of a block of attention. */
enum { GT_ATTENTION_BLOCK = 64 };

/* One head of one sequence: T positions (rows: rounded up to whole blocks) of `size` numbers
   (width: rounded up to a multiple of 16), in rows of D numbers. */
typedef struct {
  size_t T, rows, size, width, D;
  float scale;
} gt_attention_head;

/* See gt_kernels; all arguments at the head's first number.  work: gt_attention_work. */
typedef struct {
  void (*forward)(float *y, float *lse, const float *qkv, const gt_attention_head *h, float *work);
  void (*backward)(float *dqkv, const float *dy, const float *y, const float *lse, const float *qkv,
                   const gt_attention_head *h, float *work);
} gt_attention_loops;

/* The gates of M rows of a gated recurrent unit: see gt_kernels.  The same bits with every set. */
typedef struct {
  void (*forward)(float *y, float *gates, const float *h, const float *gi, const float *gh,
                  size_t M, size_t H);
  void (*backward)(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                   const float *h, size_t M, size_t H);
} gt_gru_loops;

/* Rows of unit length and attention; same contracts as in gt_kernels. */
typedef struct {
  void (*unit_forward)(float *y, float *norms, const float *x, size_t M, size_t K);
  void (*unit_backward)(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                        size_t K);
  void (*attend_forward)(float *y, float *gates, float *alpha, const float *q1, const float *h,
                         const float *w, const gt_session_shape *s);
  void (*attend_backward)(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                          const float *gates, const float *alpha, const float *h, const float *w,
                          const gt_session_shape *s);
} gt_attend_loops;

/* Products with a matrix (K,N) that is packed once, for few rows at a time. */
typedef struct {
  /* panels: K (N + 31) floats, or fewer; transposed: w is (N,K). */
  void (*pack)(float *panels, const float *w, size_t K, size_t N, bool transposed);
  /* y (rows,N) += a (rows,K) times the packed matrix */
  void (*multiply)(float *y, const float *a, const float *panels, size_t rows, size_t K, size_t N);
} gt_panels_loops;

/* The transforms of Winograd's convolution, for `count` tiles from tile `first` on:
   isa/winograd.c. */
typedef struct {
  void (*input)(void *v, const void *x, gt_precision type, const gt_tiles *g, size_t first,
                size_t count);
  void (*output)(void *y, const float *m, const float *b, gt_precision type, const gt_tiles *g,
                 size_t first, size_t count);
  void (*gradient)(void *z, const void *dy, gt_precision type, const gt_tiles *g, size_t first,
                   size_t count);
  void (*weights)(float *u, const float *w, size_t n, bool turned);
  void (*weight_gradient)(float *dw, const float *u, size_t n);
} gt_winograd_loops;

/* The tables gt_NAME_loops of a set: X(NAME, isa). */
#define GT_LOOPS(X, isa)                                                                           \
  X(vec, isa)                                                                                      \
  X(pooling, isa)                                                                                  \
  X(direct_forward, isa)                                                                           \
  X(direct_input, isa)                                                                             \
  X(direct_weight, isa)                                                                            \
  X(columns, isa)                                                                                  \
  X(winograd, isa)                                                                                 \
  X(norm, isa)                                                                                     \
  X(sparse, isa)                                                                                   \
  X(lstm, isa)                                                                                     \
  X(panels, isa)                                                                                   \
  X(layernorm, isa)                                                                                \
  X(gelu, isa)                                                                                     \
  X(softmax, isa)                                                                                  \
  X(attention, isa)                                                                                \
  X(gru, isa)                                                                                      \
  X(attend, isa)

#define GT_LOOPS_FIELD(name, isa) const gt_##name##_loops *name;
typedef struct {
  GT_LOOPS(GT_LOOPS_FIELD, )
} gt_loop_tables;
#undef GT_LOOPS_FIELD

/* Returns the tables of the set in use. */
const gt_loop_tables *gt_loops(void);
