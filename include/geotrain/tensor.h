/* tensor: vectors, the three flat arrays with named views, arena, kernel tables.  Layer 1.
   Everything is local.  Arrays are row-major, activations NHWC. Shape letters: N images; H, W input
   height and width; C input channels; K output channels; R, S kernel height and width; P, Q output
   height and width; B rows of a batch; I, O inputs and outputs of a linear layer. */
#pragma once

#include "geotrain/base.h"
#include "geotrain/base_families.h"

/* gt_precision: the type in which convolutions and linear layers compute.  Parameters, gradients
   and sums are always float32. */

/* ---- instruction sets ------------------------------------------------------------------------ */

/* The instruction sets that vector code is compiled for (x86-64-v4, x86-64-v3, the compiler's
   default, which has NEON on aarch64).  Higher is faster.  Element-wise operations, means,
   optimizers, normalisation, GELU and the gates of an LSTM give the same bits with every set;
   products, convolutions, attention and other reductions do not. */
typedef enum { GT_ISA_PLAIN, GT_ISA_AVX2, GT_ISA_AVX512, GT_ISAS } gt_isa;

const char *gt_isa_name(gt_isa isa); /* "plain", "avx2", "avx512" */
/* Returns the highest set that this build and this CPU support. */
gt_isa gt_isa_best(void);
/* Returns the set in use: the best one, or a lower one given by the environment variable
   GEOTRAIN_ISA. */
gt_isa gt_isa_used(void);
/* Selects the named set (NULL or "": the best one) and limits oneDNN to it.  Denormal numbers are
   then flushed to 0 in this thread and in the threads that it starts.  Call it before threads start
   and before oneDNN's first use.  GT_ERR_JOB: the set is unknown or not supported by this CPU. */
gt_status gt_isa_choose(const char *name);
/* Returns the OPENBLAS_CORETYPE (set before OpenBLAS is loaded) that keeps OpenBLAS within the set
   in use; NULL: no limit is needed. */
const char *gt_isa_blas_cap(void);
/* Restarts the program (exec) with another OPENBLAS_CORETYPE, if the kernels that OpenBLAS has
   selected while it was loaded exceed the set in use, or if OpenBLAS does not know this CPU and has
   selected its slowest ones.  Call it after gt_isa_choose and before MPI_Init.  Returns if nothing
   has to change, or nothing can. */
void gt_isa_fit_blas(char **argv);

/* ---- vectors --------------------------------------------------------------------------------- */

typedef enum { GT_SPACE_HOST } gt_space;

/* A borrowed view of n floats.  data NULL is legal: operations on it do nothing (simulation). */
typedef struct {
  float *data;
  size_t n;
  gt_space space;
} gt_vec;

static inline gt_vec gt_vec_of(float *data, size_t n) {
  return (gt_vec){data, n, GT_SPACE_HOST};
}
/* Returns the part [offset, offset+count) of v; its data is NULL if v's is. */
gt_vec gt_vec_range(gt_vec v, size_t offset, size_t count);

/* Compute element-wise operations.  Lengths must be equal (otherwise gt_bug).  Distinct vectors
   must not overlap. */
void gt_vec_zero(gt_vec y);
void gt_vec_copy(gt_vec y, gt_vec x);                /* y = x */
void gt_vec_scale(gt_vec y, float a);                /* y = a y */
void gt_vec_axpy(gt_vec y, float a, gt_vec x);       /* y += a x */
void gt_vec_set_scaled(gt_vec y, float a, gt_vec x); /* y = a x */
void gt_vec_lerp(gt_vec y, float a, gt_vec x);       /* y += a (x - y) */
/* Sets y[i] to 0 with probability p, and otherwise to x[i] / (1 - p) (Srivastava et al. 2014).  The
   key and i decide, the same with every instruction set.  0 <= p < 1; y can be x. */
void gt_vec_drop(gt_vec y, gt_vec x, double p, uint64_t key);
/* True if every element is finite; true for NULL data */
bool gt_vec_finite(gt_vec x);
/* Sets y = (sum over i < n of samples[i] x[i]) / (sum of samples).  The n vectors x[i] of y.n
   floats are added in a fixed tree: at level l, i gets i + 2^l, for i a multiple of 2^(l+1).  The
   sum is scaled once.  Any range of y can be computed alone with the same bits.  Does nothing if
   any x[i] is NULL. */
void gt_vec_mean(gt_vec y, const float *const *x, const int64_t *samples, size_t n);

/* ---- matrices -------------------------------------------------------------------------------- */

/* Computes y (m,n) = a b + beta y, with a (m,k) and b (k,n), by OpenBLAS; ta and tb: stored
   transposed. */
void gt_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, const float *b,
             float beta, float *y);

/* ---- bf16 ------------------------------------------------------------------------------------ */

/* The upper half of a float32, rounded to nearest, ties to even; a NaN stays a NaN. */
typedef uint16_t gt_bf16;
void gt_to_bf16(gt_bf16 *y, const float *x, size_t n);
void gt_from_bf16(float *y, const gt_bf16 *x, size_t n);
static inline size_t gt_precision_bytes(gt_precision precision) {
  return precision == GT_BF16 ? sizeof(gt_bf16) : sizeof(float);
}

/* ---- flat arrays ----------------------------------------------------------------------------- */

#define GT_MAX_DIMS 4

/* A named tensor inside a flat array. */
typedef struct {
  char name[64];
  size_t offset, count; /* in floats */
  size_t shape[GT_MAX_DIMS];
  int ndims;
} gt_view;

/* The parameters, gradients and buffers of a model.  Tensors are packed without gaps, so that a
   model on the wire has exactly 4 bytes per parameter; each array starts on a 64-byte boundary.
   `views` name params (and grads); `buffer_views` name buffers. */
typedef struct {
  gt_vec params, grads, buffers;
  const gt_view *views, *buffer_views;
  size_t nviews, nbuffer_views;
} gt_arrays;

/* ---- arena ----------------------------------------------------------------------------------- */

/* Memory planned once: register all requests first; then one block is allocated, and each request
   has an offset in it. */
typedef struct gt_arena gt_arena;
gt_arena *gt_arena_create(void);
/* Requests `count` floats for the arena's whole life.  Returns a ticket.  Not after gt_arena_plan
   or gt_arena_commit. */
size_t gt_arena_reserve(gt_arena *arena, size_t count);
/* Requests `count` floats for times `from` to `to` of a schedule, both included.  Requests whose
   times do not overlap can share memory. */
size_t gt_arena_reserve_span(gt_arena *arena, size_t count, size_t from, size_t to);
/* Assigns each request its offset, without allocating. */
void gt_arena_plan(gt_arena *arena);
/* Returns the offset of a ticket in the block, in floats: a multiple of 16. */
size_t gt_arena_offset(const gt_arena *arena, size_t ticket);
/* Plans and allocates the block, zeroed. */
void gt_arena_commit(gt_arena *arena);
/* Plans and uses the given block, borrowed, 64-byte aligned, of at least gt_arena_bytes. */
void gt_arena_commit_at(gt_arena *arena, float *block);
/* Returns the address of a ticket, 64-byte aligned; owned by the arena. */
float *gt_arena_at(const gt_arena *arena, size_t ticket);
/* Returns the bytes of the block, as planned. */
size_t gt_arena_bytes(const gt_arena *arena);
void gt_arena_close(gt_arena *arena);

/* ---- kernels --------------------------------------------------------------------------------- */

/* One convolution's or pooling's geometry; square or not, zero padding. */
typedef struct {
  size_t H, W, C, K, R, S, P, Q;
  size_t stride, pad;
} gt_conv_shape;

/* Kernels that a library (oneDNN) prepares for given shapes and batch sizes.  A context belongs to
   one graph: an engine, and scratch shared by the graph's operations.  Weights and their gradients
   are float32, in the layout of gt_kernels.  `prepare` prepares for batches of N; the other
   functions prepare implicitly when N is new. */
typedef struct gt_prepared_context gt_prepared_context;
typedef struct gt_prepared_conv gt_prepared_conv;
typedef struct gt_prepared_linear gt_prepared_linear;

/* A convolution: the types of its input and output activations, and the precision of its arithmetic
   (float32 if there is a bias). */
typedef struct {
  gt_conv_shape shape;
  bool bias, needs_input_gradient;
  gt_precision in, out, precision;
} gt_conv_spec;

/* The three products of a layer. */
typedef enum { GT_PASS_FORWARD, GT_PASS_INPUT, GT_PASS_WEIGHT, GT_PASSES } gt_pass_id;
/* Methods to compute a product. */
typedef enum {
  GT_ALGORITHM_RULE,         /* by the table's rule */
  GT_ALGORITHM_DIRECT,       /* direct convolution */
  GT_ALGORITHM_WINOGRAD,     /* Winograd's convolution (3 x 3 windows) */
  GT_ALGORITHM_BLAS,         /* im2col (not for linear layers) and an OpenBLAS product */
  GT_ALGORITHM_DNN,          /* oneDNN's convolution or product */
  GT_ALGORITHM_DNN_GEMM,     /* im2col and a oneDNN product */
  GT_ALGORITHM_DNN_TURNED,   /* input gradient: oneDNN's forward convolution, weights rotated by 180
                               degrees */
  GT_ALGORITHM_DNN_WINOGRAD, /* Winograd's convolution with oneDNN products */
  GT_ALGORITHMS
} gt_algorithm;
/* Returns "rule", "direct", "winograd", "blas", "dnn", "dnn-gemm", "dnn-turned", "dnn-winograd" */
const char *gt_algorithm_name(gt_algorithm algorithm);
const char *gt_pass_name(gt_pass_id pass); /* "forward", "input", "weight" */

typedef struct gt_prepared_ops {
  gt_prepared_context *(*create)(void);
  void (*close)(gt_prepared_context *context);
  size_t (*bytes)(const gt_prepared_context *context); /* scratch in bytes */

  /* algorithms (GT_PASSES): for each pass one of oneDNN's methods, or GT_ALGORITHM_RULE.  A pass
     with any other method is not prepared. */
  gt_prepared_conv *(*conv_create)(gt_prepared_context *context, const gt_conv_spec *spec,
                                   const gt_algorithm *algorithms);
  void (*conv_close)(gt_prepared_conv *conv);
  void (*conv_prepare)(gt_prepared_conv *conv, size_t N);
  void (*conv_forward)(gt_prepared_conv *conv, void *y, const void *x, const float *w,
                       const float *b, size_t N);
  void (*conv_backward_input)(gt_prepared_conv *conv, void *dx, const void *dy, const float *w,
                              size_t N);
  void (*conv_backward_weight)(gt_prepared_conv *conv, float *dw, float *db, const void *dy,
                               const void *x, size_t N);
  /* conv_rule: returns the method that the rule selects for a pass with batches of N.  conv_can:
     true if a method can compute the pass. */
  gt_algorithm (*conv_rule)(const gt_conv_spec *spec, size_t N, gt_pass_id pass);
  bool (*conv_can)(const gt_conv_spec *spec, size_t N, gt_pass_id pass, gt_algorithm algorithm);

  /* A linear layer; activations in float32, products in `precision`. */
  gt_prepared_linear *(*linear_create)(gt_prepared_context *context, size_t I, size_t O, bool bias,
                                       gt_precision precision);
  void (*linear_close)(gt_prepared_linear *linear);
  void (*linear_prepare)(gt_prepared_linear *linear, size_t B);
  void (*linear_forward)(gt_prepared_linear *linear, float *y, const float *x, const float *w,
                         const float *b, size_t B);
  void (*linear_backward_input)(gt_prepared_linear *linear, float *dx, const float *dy,
                                const float *w, size_t B);
  void (*linear_backward_weight)(gt_prepared_linear *linear, float *dw, float *db, const float *dy,
                                 const float *x, size_t B);
} gt_prepared_ops;

/* Batch normalisation of rows x (M,C), M = N H W: y = gamma (x - mean) / sqrt(variance + epsilon) +
   beta [+ add] [then ReLU].  Values of x, y and their gradients are of `type`; sums are float32 or
   double. */
typedef struct {
  size_t M, C;
  gt_precision type;
  bool relu;
  float epsilon, momentum;
} gt_norm_shape;

/* Packed sequences, which end together at step T.  Step t has one row for each sample that has
   begun, in the order of their starts, so the number of rows per step never falls.  Sample j of
   step t is row first[t] + j.  M = first[T] rows in total, at least 1.  I inputs, H hidden
   units. */
typedef struct {
  size_t T, I, H;
  const uint32_t *first; /* (T+1) */
} gt_lstm_shape;

/* Causal attention: sequences of T positions, D numbers each, split into `heads` of equal size. */
typedef struct {
  size_t T, D, heads;
} gt_attention_shape;

/* Returns the number of samples of step t. */
static inline size_t gt_lstm_rows(const gt_lstm_shape *s, size_t t) {
  return s->first[t + 1] - s->first[t];
}

/* The packed graphs of N sessions: session i has the nodes first[i] to first[i+1], possibly none; M
   = first[N] in all.  A node is an item, which occurs count[node] times; last[i]: the node of the
   last item.  H: the length of a node's state. */
typedef struct {
  size_t N, H;
  const uint32_t *first, *last; /* (N+1), (N) */
  const float *count;           /* (M) */
} gt_session_shape;

/* The smallest divisor of gt_kernels.unit_forward. */
#define GT_UNIT_LEAST 1e-12F

/* A table of kernels; `ref` has plain loops and is the reference for all others.  All pointers are
   borrowed; outputs must not overlap inputs unless stated.  Weights: convolution (R,S,C,K)
   flattened to (R*S*C, K); linear (O,I).  `work` is scratch of the size that the matching *_work
   function returns, in floats.  Gradients of weights are overwritten, not accumulated, except those
   of rows of ids.  No function allocates or fails. */
typedef struct gt_kernels {
  const char *name;
  size_t (*conv_work)(const gt_conv_shape *s, size_t N);
  /* y (N,P,Q,K) = x (N,H,W,C) * w + b */
  void (*conv_forward)(float *y, const float *x, const float *w, const float *b,
                       const gt_conv_shape *s, size_t N, float *work);
  /* dx (N,H,W,C) from dy (N,P,Q,K) */
  void (*conv_backward_input)(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                              size_t N, float *work);
  /* dw (R,S,C,K), db (K) or NULL */
  void (*conv_backward_weight)(float *dw, float *db, const float *dy, const float *x,
                               const gt_conv_shape *s, size_t N, float *work);
  /* y (N,P,Q,C), of the same type as x; index (N,P,Q,C) receives the offset in x of each maximum;
     among equals, the first.  Padding is never a maximum. */
  void (*maxpool_forward)(void *y, uint32_t *index, const void *x, gt_precision type,
                          const gt_conv_shape *s, size_t N);
  /* dx is summed in float32, in the order of the windows. */
  void (*maxpool_backward)(void *dx, const void *dy, const uint32_t *index, gt_precision type,
                           const gt_conv_shape *s, size_t N);
  /* y (B,O) = x (B,I) w^T + b */
  void (*linear_forward)(float *y, const float *x, const float *w, const float *b, size_t B,
                         size_t I, size_t O);
  void (*linear_backward_input)(float *dx, const float *dy, const float *w, size_t B, size_t I,
                                size_t O);
  void (*linear_backward_weight)(float *dw, float *db, const float *dy, const float *x, size_t B,
                                 size_t I, size_t O);
  void (*relu_forward)(float *y, const float *x, size_t n);                    /* y may be x */
  void (*relu_backward)(float *dx, const float *dy, const float *y, size_t n); /* dx may be dy */
  /* Softmax and cross-entropy of logits x (B,O): writes dx = (softmax - onehot) / B unless NULL,
     returns the sum of losses, and adds the number of rows whose largest logit is the label to
     *correct.  Rows whose loss is NaN (a NaN logit, or an infinite largest one) do not count as
     correct. */
  double (*softmax_xent)(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                         size_t *correct);
  /* As softmax_xent, for one logit per row, that of the second of two classes: dx (B) = (sigmoid(x)
     - label) / B. */
  double (*logistic)(float *dx, const float *x, const int32_t *labels, size_t B, size_t *correct);
  /* Forward with the mean and (biased) variance of the batch.  Both update the running values
     running_mean and running_var (C) as r += momentum (b - r), where the variance b is the unbiased
     one (Ioffe and Szegedy 2015; PyTorch's convention).  saved (2,C) receives mean and
     1/sqrt(variance + epsilon) for the backward pass.  `add` (M,C) may be NULL. */
  void (*norm_forward)(void *y, const void *x, const void *add, const float *gamma,
                       const float *beta, float *running_mean, float *running_var, float *saved,
                       const gt_norm_shape *s, float *work);
  /* Forward with running_mean and running_var. */
  void (*norm_infer)(void *y, const void *x, const void *add, const float *gamma, const float *beta,
                     const float *running_mean, const float *running_var, const gt_norm_shape *s,
                     float *work);
  /* dx from dy [+ dy2]; y is the output of the forward pass.  dadd (M,C) receives the gradient of
     `add`; NULL if there was no `add`.  dx may be dy. */
  void (*norm_backward)(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy,
                        const void *dy2, const void *y, const void *x, const float *gamma,
                        const float *beta, const float *saved, const gt_norm_shape *s, float *work);
  /* The mean over H x W of x (N,H,W,C), of `type`, to y (N,C) in float32; and its backward pass. */
  void (*mean_forward)(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C);
  void (*mean_backward)(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                        size_t C);
  /* Embedding tables: w (V,K), ids (M) in 0..V-1.  y (M,K): the rows of w that the ids select. */
  void (*embedding_forward)(float *y, const float *w, const int32_t *ids, size_t M, size_t K);
  /* Adds each row of dy + dy2 (M,K) to the row of dw of its id; repeated ids accumulate.  dy2 may
     be NULL.  Other rows are not changed. */
  void (*embedding_backward)(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                             size_t M, size_t K);
  /* Sets the rows of dw of these ids to 0. */
  void (*embedding_clear)(float *dw, const int32_t *ids, size_t M, size_t K);
  /* A factorization machine (Rendle 2010) of samples with F ids each: y (N) = b + the sum of w (V)
     over the ids of a sample + the sum of the inner products of all pairs of their vectors, v
     (N,F,K). */
  void (*fm_forward)(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                     size_t N, size_t F, size_t K);
  /* dv (N,F,K) */
  void (*fm_backward_input)(float *dv, const float *dy, const float *v, size_t N, size_t F,
                            size_t K);
  /* Adds to dw as embedding_backward does; overwrites db. */
  void (*fm_backward_weight)(float *dw, float *db, const float *dy, const int32_t *ids, size_t N,
                             size_t F);
  /* An LSTM (Hochreiter and Schmidhuber 1997, forget gates of Gers et al. 2000) with PyTorch's four
     blocks of gates: i, f, o = sigmoid and g = tanh of wx x + bx + wh h' + bh; c = f c' + i g;
     h = o tanh(c); h', c' are those of the sample's step before, or 0.  w: wx (4H,I), then wh
     (4H,H); b: bx (4H), then bh (4H).  x (M,I).  h, c (M + R, H), R the samples of the last step:
     the state before each step, and behind the last row the one after the last step.  gates
     (M,4H).  `work`: gt_lstm_work. */
  void (*lstm_forward)(float *h, float *c, float *gates, const float *x, const float *w,
                       const float *b, const gt_lstm_shape *s, float *work);
  /* dy (R,H): the gradient of h after the last step.  dx (M,I) and x can be the same array; gates
     are overwritten. */
  void (*lstm_backward)(float *dx, float *dw, float *db, const float *dy, float *gates,
                        const float *x, const float *h, const float *c, const float *w,
                        const gt_lstm_shape *s, float *work);
  /* Layer normalisation (Ba, Kiros and Hinton 2016) of the rows of x (M,D): y = gamma (x - mean) /
     sqrt(variance + 1e-5) + beta, with the biased variance.  saved (M,2) receives the mean of each
     row and 1/sqrt(variance + 1e-5). */
  void (*layernorm_forward)(float *y, float *saved, const float *x, const float *gamma,
                            const float *beta, size_t M, size_t D);
  /* dx may be dy */
  void (*layernorm_backward_input)(float *dx, const float *dy, const float *x, const float *gamma,
                                   const float *saved, size_t M, size_t D);
  void (*layernorm_backward_weight)(float *dgamma, float *dbeta, const float *dy, const float *x,
                                    const float *saved, size_t M, size_t D);
  /* GELU (Hendrycks and Gimpel 2016) in its tanh form: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715
     x^3))) */
  void (*gelu_forward)(float *y, const float *x, size_t n);
  void (*gelu_backward)(float *dx, const float *dy, const float *x, size_t n); /* dx may be dy */
  /* Causal attention (Vaswani et al. 2017): qkv (N,T,3D) holds a query, a key and a value for each
     position, D numbers each, heads one after the other.  For each head, y_i = the sum over j <= i
     of softmax_j(q_i k_j / sqrt(D / heads)) v_j; y (N,T,D).  lse (N,heads,T) receives the logarithm
     of the sum of exponentials.  The T x T matrix of scores is never stored; the backward pass
     recomputes it.  `work`: gt_attention_work. */
  void (*attention_forward)(float *y, float *lse, const float *qkv, const gt_attention_shape *s,
                            size_t N, float *work);
  void (*attention_backward)(float *dqkv, const float *dy, const float *y, const float *lse,
                             const float *qkv, const gt_attention_shape *s, size_t N, float *work);
  /* Softmax and cross-entropy of the logits x (N,T,V) of the next id: ids (N,T+1), and the label of
     position t is id t + 1.  dx = (softmax - onehot) / (N T) unless NULL; dx may be x.  Returns the
     sum of the N T losses, and counts correct predictions as softmax_xent does. */
  double (*next_xent)(float *dx, const float *x, const int32_t *ids, size_t N, size_t T, size_t V,
                      size_t *correct);
  /* Scales rows to unit length: y = x / norms; norms (M): the lengths of the rows of x (M,K), at
     least GT_UNIT_LEAST. */
  void (*unit_forward)(float *y, float *norms, const float *x, size_t M, size_t K);
  /* dx and dy can be the same array. */
  void (*unit_backward)(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                        size_t K);
  /* The gates of a gated recurrent unit (Cho et al. 2014) in M rows, as in PyTorch: r, z =
     sigmoid(gi + gh), n = tanh(gi + r gh), y = n + z (h - n).  gi, gh (M,3H): the products of the
     input and of the state h (M,H), blocks r, z, n.  gates (M,4H): kept for the backward pass. */
  void (*gru_forward)(float *y, float *gates, const float *h, const float *gi, const float *gh,
                      size_t M, size_t H);
  /* dh: without the part through gh. */
  void (*gru_backward)(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                       const float *h, size_t M, size_t H);
  /* The attention of a session to its items (Wu et al. 2019, eq. 6): y (N,2H) = the sum of alpha h
     over its nodes, then the state h of the last one; zero if it has none.  alpha = count w .
     sigmoid(q1 of the session + q2 of the node); q1 (N,H), h (M,H), w (H).  gates (M,H): q2,
     overwritten by the sigmoids; alpha (M).  Both are kept for the backward pass. */
  void (*attend_forward)(float *y, float *gates, float *alpha, const float *q1, const float *h,
                         const float *w, const gt_session_shape *s);
  /* dh (M,H): without the parts through q1 and q2. */
  void (*attend_backward)(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                          const float *gates, const float *alpha, const float *h, const float *w,
                          const gt_session_shape *s);
  /* The family of loops behind an operation ("conv", "maxpool", "linear", "relu",
     "norm", "mean", "embedding", "fm", "lstm", "layernorm", "gelu", "attention", "unit", "gru",
     "attend"; s: its shape or NULL): "ref", "blas", "direct", "fused", "sparse", "blocks". */
  const char *(*family)(const char *operation, const gt_conv_shape *s);
  /* The prepared kernels (NULL: none), and the layers that use them by rule. */
  const gt_prepared_ops *(*prepared)(void);
  bool (*prepares_conv)(const gt_conv_spec *spec);
  bool (*prepares_linear)(size_t I, size_t O, gt_precision precision);
} gt_kernels;

/* ---- layers with products -------------------------------------------------------------------- */

/* A convolution or a linear layer.  A linear layer has I and O in conv.shape.C and .K, and a 1 x 1
   window. */
typedef struct {
  bool linear;
  gt_conv_spec conv;
} gt_layer_spec;

/* True if this build can compute a pass of the layer with this method. */
bool gt_algorithm_can(const gt_layer_spec *spec, size_t N, gt_pass_id pass, gt_algorithm algorithm);

/* A layer whose passes are computed by a table's rule or with chosen methods.  In float32 all
   methods use the same layouts of activations and weights, so each pass can use a different one. */
typedef struct gt_layer gt_layer;
/* Creates a layer.  algorithms: NULL, or one for each pass (GT_ALGORITHM_RULE: by rule).  *context
   belongs to the graph; it is created when first needed, and must outlive its layers.  The caller
   closes the layer. */
gt_layer *gt_layer_create(const gt_kernels *kernels, gt_prepared_context **context,
                          const gt_layer_spec *spec, const gt_algorithm *algorithms);
void gt_layer_close(gt_layer *layer);
/* Return the type of the output, and scratch in floats; prepare for batches of N. */
gt_precision gt_layer_type(const gt_layer *layer);
size_t gt_layer_work(const gt_layer *layer, size_t N);
void gt_layer_prepare(gt_layer *layer, size_t N);
/* Compute the passes; same contracts as in gt_kernels.  b and db are NULL if the layer has no bias
   (conv.bias), and only then: a prepared layer with a bias reads b, and a prepared convolution
   writes db. */
void gt_layer_forward(gt_layer *layer, void *y, const void *x, const float *w, const float *b,
                      size_t N, float *work);
void gt_layer_backward_input(gt_layer *layer, void *dx, const void *dy, const float *w, size_t N,
                             float *work);
void gt_layer_backward_weight(gt_layer *layer, float *dw, float *db, const void *dy, const void *x,
                              size_t N, float *work);
/* Returns the method that computes a pass of a batch of N (GT_ALGORITHM_RULE: plain loops), and its
   name. */
gt_algorithm gt_layer_algorithm(const gt_layer *layer, size_t N, gt_pass_id pass);
const char *gt_layer_family(const gt_layer *layer, size_t N, gt_pass_id pass);

/* ---- choices --------------------------------------------------------------------------------- */

/* The methods chosen for a layer at a batch size, and the time of each in seconds (0: not
   measured). */
typedef struct {
  gt_layer_spec layer;
  size_t batch;
  gt_algorithm algorithms[GT_PASSES];
  double seconds[GT_PASSES][GT_ALGORITHMS];
} gt_choice;

/* The choices for one machine, identified by gt_machine_key.  They are not valid on others. */
typedef struct {
  char machine[256];
  gt_choice *items;
  size_t n, capacity;
  double seconds; /* duration of the measurement; 0: not measured here */
} gt_choices;

/* Writes the machine's key: CPU, instruction set, OpenBLAS's core and version, oneDNN's version. */
void gt_machine_key(char *text, size_t size);
/* Returns the choice for the layer, borrowed until the next gt_choices_add.  If the layer has none,
   adds one with all passes by rule. */
gt_choice *gt_choices_add(gt_choices *choices, const gt_layer_spec *layer, size_t batch);
/* Returns the choice for a layer; NULL: none. */
const gt_choice *gt_choices_find(const gt_choices *choices, const gt_layer_spec *layer,
                                 size_t batch);
/* Times every method for every layer and keeps the fastest if it is clearly faster than the rule of
   `kernels` ("auto").  Takes at most 2 s or eight times the products of all layers by the rule,
   whichever is longer.  Layers not measured by then keep the rule.  Local. */
void gt_choices_measure(gt_choices *choices, const gt_kernels *kernels);
/* Returns the choices as text: a line `machine ...`, then one line per layer (docs/choices.md).
   The caller frees it with gt_free. */
char *gt_choices_text(const gt_choices *choices);
/* Adds the choices in `text` that are for this machine; *found: true if `text` has a section for
   it.  GT_ERR_JOB: the error text names `source`, the line and what was expected there. */
gt_status gt_choices_parse(gt_choices *choices, const char *source, const char *text, bool *found);
void gt_choices_close(gt_choices *choices);

/* Returns the scratch of norm_*, in floats. */
static inline size_t gt_norm_work(size_t C) {
  return 8 * C;
}

/* Returns the scratch of lstm_* for at most N samples, in floats. */
static inline size_t gt_lstm_work(size_t N, size_t H) {
  return 2 * (N + 2) * H + 4 * H * (H + 32);
}

/* Returns the scratch of attention_*, in floats. */
size_t gt_attention_work(const gt_attention_shape *s);

/* Returns the table "ref", "blas", "dnn" (oneDNN wherever possible) or "auto" (the fastest built-in
   kernel for each operation); NULL for an unknown name, and for "dnn" in a build without oneDNN.
   Sets OpenBLAS to one thread unless the environment says otherwise. */
const gt_kernels *gt_kernels_find(const char *name);
/* Returns the core type that OpenBLAS selected ("SkylakeX").  gt_kernels_blas_pinned: true if an
   environment variable limits this core to less than the set in use; the caller should then
   warn. */
const char *gt_kernels_blas_core(void);
bool gt_kernels_blas_pinned(void);
/* Returns oneDNN's version ("2.6.3"), or NULL: not in this build. */
const char *gt_kernels_dnn_version(void);
/* True if this build and this CPU compute in bf16; if not, *why says what is missing. */
bool gt_kernels_bf16(const char **why);
/* Returns the precision in which these kernels compute if this one is asked for; if it is another,
   *why says what is missing.  kernels NULL: GT_F32. */
gt_precision gt_kernels_precision(const gt_kernels *kernels, gt_precision asked, const char **why);
