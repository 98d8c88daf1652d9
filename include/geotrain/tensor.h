/* tensor: vectors, the three flat arrays with named views, arena, kernel tables.  Layer 1.
   Everything is local.  Arrays are row-major, activations NHWC.
   Shape letters: N images; H, W input height and width; C input channels; K output channels; R, S kernel height and width;
   P, Q output height and width; B rows of a batch; I, O inputs and outputs of a linear layer. */
#ifndef GEOTRAIN_TENSOR_H
#define GEOTRAIN_TENSOR_H

#include "geotrain/base.h"
#include "geotrain/base_families.h"

/* gt_precision is what heavy operations compute in; parameters, gradients and sums are float32 in any case. */

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

/* What vector code is compiled for (x86-64-v4, x86-64-v3, the compiler's default, which has NEON on
   aarch64); higher is faster.  Element-wise operations, means, optimizers and normalisation give the
   same bits at every set; products, convolutions and other reductions do not. */
typedef enum { GT_ISA_PLAIN, GT_ISA_AVX2, GT_ISA_AVX512, GT_ISAS } gt_isa;

const char *gt_isa_name(gt_isa isa); /* "plain", "avx2", "avx512" */
/* The highest that this build and this CPU have. */
gt_isa gt_isa_best(void);
/* The one in use: the best, or what the environment's GEOTRAIN_ISA lowers it to. */
gt_isa gt_isa_used(void);
/* Uses the named set from now on (NULL or "": the best) and holds oneDNN to it; denormal numbers
   count as 0 from now on, in this thread and those that it starts.  Before threads, and before
   oneDNN's first use.  GT_ERR_JOB: no such set, or more than this CPU has. */
gt_status gt_isa_choose(const char *name);
/* The core that OpenBLAS must be given (OPENBLAS_CORETYPE, before it is loaded) to stay within the
   set in use; NULL: it does. */
const char *gt_isa_blas_cap(void);

/* ---- vectors --------------------------------------------------------------------------------------------------- */

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
/* The part [offset, offset+count) of v; of NULL data, NULL. */
gt_vec gt_vec_range(gt_vec v, size_t offset, size_t count);

/* Element by element.  Lengths must agree (else a broken invariant ends the process).  Distinct vectors do not overlap. */
void gt_vec_zero(gt_vec y);
void gt_vec_copy(gt_vec y, gt_vec x);                /* y = x */
void gt_vec_scale(gt_vec y, float a);                /* y = a y */
void gt_vec_axpy(gt_vec y, float a, gt_vec x);       /* y += a x */
void gt_vec_set_scaled(gt_vec y, float a, gt_vec x); /* y = a x */
void gt_vec_lerp(gt_vec y, float a, gt_vec x);       /* y += a (x - y) */
bool gt_vec_finite(gt_vec x);                        /* every element is finite; true for NULL data */
/* y = (sum over i < n of samples[i] x[i]) / (sum of samples): the n vectors x[i] of y.n floats are added in a fixed tree (level by level, i gets i + 2^level,
   i a multiple of 2^(level+1)), and the sum is scaled once.  Any range of y has the bits that the whole has.  A NULL among x: nothing is done. */
void gt_vec_mean(gt_vec y, const float *const *x, const int64_t *samples, size_t n);

/* ---- bf16 ------------------------------------------------------------------------------------------------------- */

/* The upper half of a float32; rounded to nearest, ties to even; a NaN stays one. */
typedef uint16_t gt_bf16;
void gt_to_bf16(gt_bf16 *y, const float *x, size_t n);
void gt_from_bf16(float *y, const gt_bf16 *x, size_t n);
static inline size_t gt_precision_bytes(gt_precision precision) {
  return precision == GT_BF16 ? sizeof(gt_bf16) : sizeof(float);
}

/* ---- flat arrays ------------------------------------------------------------------------------------------------ */

#define GT_MAX_DIMS 4

/* A named tensor inside a flat array. */
typedef struct {
  char name[64];
  size_t offset, count; /* in floats */
  size_t shape[GT_MAX_DIMS];
  int ndims;
} gt_view;

/* The parameters, gradients and buffers of a model.  Tensors are packed without gaps, so that a model on the wire is exactly
   4 bytes a parameter; each array starts on a 64-byte boundary.  `views` name params (and grads); `buffer_views` name buffers. */
typedef struct {
  gt_vec params, grads, buffers;
  const gt_view *views, *buffer_views;
  size_t nviews, nbuffer_views;
} gt_arrays;

/* ---- arena ------------------------------------------------------------------------------------------------------ */

/* Memory planned once: sizes are asked for first, then one block is allocated, then every request has its place. */
typedef struct gt_arena gt_arena;
gt_arena *gt_arena_create(void);
/* Asks for count floats for good; returns a ticket.  Not after gt_arena_commit. */
size_t gt_arena_reserve(gt_arena *arena, size_t count);
/* Likewise, from moment `from` to moment `to` (both in use) of a schedule: what is never in use together may share a place. */
size_t gt_arena_reserve_span(gt_arena *arena, size_t count, size_t from, size_t to);
void gt_arena_commit(gt_arena *arena);
/* The 64-byte aligned place of a ticket; owned by the arena. */
float *gt_arena_at(const gt_arena *arena, size_t ticket);
size_t gt_arena_bytes(const gt_arena *arena);
void gt_arena_close(gt_arena *arena);

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* One convolution's or pooling's geometry; square or not, zero padding. */
typedef struct {
  size_t H, W, C, K, R, S, P, Q;
  size_t stride, pad;
} gt_conv_shape;

/* Kernels that a library (oneDNN) prepares for given shapes and batch sizes.  A context is one graph's: an engine, and scratch that its operations take turns in.
   Weights and their gradients are float32 and lie as in gt_kernels.  `prepare` makes ready for batches of N; the others do so themselves for an N that is new. */
typedef struct gt_prepared_context gt_prepared_context;
typedef struct gt_prepared_conv gt_prepared_conv;
typedef struct gt_prepared_linear gt_prepared_linear;

/* A convolution: activations of the types in and out, arithmetic in `precision` (float32 where there is a bias). */
typedef struct {
  gt_conv_shape shape;
  bool bias, needs_input_gradient;
  gt_precision in, out, precision;
} gt_conv_spec;

/* A layer's three products, and the ways one can be computed: as the table's rule says; the direct
   convolution; Winograd's (windows of 3 x 3); columns and OpenBLAS's product (linear: the product alone); oneDNN's convolution or
   product; columns and oneDNN's product; for the gradient of the input, oneDNN's forward convolution
   with the weights turned round. */
typedef enum { GT_PASS_FORWARD, GT_PASS_INPUT, GT_PASS_WEIGHT, GT_PASSES } gt_pass_id;
typedef enum {
  GT_WAY_RULE,
  GT_WAY_DIRECT,
  GT_WAY_WINOGRAD,
  GT_WAY_BLAS,
  GT_WAY_DNN,
  GT_WAY_DNN_GEMM,
  GT_WAY_DNN_TURNED,
  GT_WAY_DNN_WINOGRAD,
  GT_WAYS
} gt_way;
const char *gt_way_name(gt_way way);       /* "rule", "direct", "winograd", "blas", "dnn", "dnn-gemm", "dnn-turned", "dnn-winograd" */
const char *gt_pass_name(gt_pass_id pass); /* "forward", "input", "weight" */

typedef struct gt_prepared_ops {
  gt_prepared_context *(*create)(void);
  void (*close)(gt_prepared_context *context);
  size_t (*bytes)(const gt_prepared_context *context); /* of its scratch */

  /* ways (GT_PASSES) of oneDNN's, or GT_WAY_RULE; a pass that goes another way is not prepared. */
  gt_prepared_conv *(*conv_create)(gt_prepared_context *context, const gt_conv_spec *spec, const gt_way *ways);
  void (*conv_close)(gt_prepared_conv *conv);
  void (*conv_prepare)(gt_prepared_conv *conv, size_t N);
  void (*conv_forward)(gt_prepared_conv *conv, void *y, const void *x, const float *w, const float *b, size_t N);
  void (*conv_backward_input)(gt_prepared_conv *conv, void *dx, const void *dy, const float *w, size_t N);
  void (*conv_backward_weight)(gt_prepared_conv *conv, float *dw, float *db, const void *dy, const void *x, size_t N);
  /* The way that a pass of a batch of N goes by the rule; and whether it can go a way at all. */
  gt_way (*conv_rule)(const gt_conv_spec *spec, size_t N, gt_pass_id pass);
  bool (*conv_can)(const gt_conv_spec *spec, size_t N, gt_pass_id pass, gt_way way);

  /* A linear layer; activations in float32, products in `precision`. */
  gt_prepared_linear *(*linear_create)(gt_prepared_context *context, size_t I, size_t O, gt_precision precision);
  void (*linear_close)(gt_prepared_linear *linear);
  void (*linear_prepare)(gt_prepared_linear *linear, size_t B);
  void (*linear_forward)(gt_prepared_linear *linear, float *y, const float *x, const float *w, const float *b, size_t B);
  void (*linear_backward_input)(gt_prepared_linear *linear, float *dx, const float *dy, const float *w, size_t B);
  void (*linear_backward_weight)(gt_prepared_linear *linear, float *dw, float *db, const float *dy, const float *x, size_t B);
} gt_prepared_ops;

/* Batch normalisation of rows x (M,C), M = N H W: y = gamma (x - mean) / sqrt(variance + epsilon) + beta [+ add] [then ReLU].  Values of x, y and their gradients
   are of `type`; sums are float32 and more. */
typedef struct {
  size_t M, C;
  gt_precision type;
  bool relu;
  float epsilon, momentum;
} gt_norm_shape;

/* A table of kernels; `ref` is plain loops and judges every other.  All pointers are borrowed; outputs do not overlap inputs unless said.
   Weights: convolution (R,S,C,K) flattened to (R*S*C, K); linear (O,I).  `work` is scratch of the size that the matching
   *_work function returns, in floats.  Gradients of weights are written, not accumulated, but for rows of ids.  Nothing allocates, nothing fails. */
typedef struct gt_kernels {
  const char *name;
  size_t (*conv_work)(const gt_conv_shape *s, size_t N);
  /* y (N,P,Q,K) = x (N,H,W,C) * w + b */
  void (*conv_forward)(float *y, const float *x, const float *w, const float *b, const gt_conv_shape *s, size_t N, float *work);
  /* dx (N,H,W,C) from dy (N,P,Q,K) */
  void (*conv_backward_input)(float *dx, const float *dy, const float *w, const gt_conv_shape *s, size_t N, float *work);
  /* dw (R,S,C,K), db (K) or NULL */
  void (*conv_backward_weight)(float *dw, float *db, const float *dy, const float *x, const gt_conv_shape *s, size_t N, float *work);
  /* y (N,P,Q,C); index (N,P,Q,C) receives the offset in x of each maximum; the first of equals wins */
  void (*maxpool_forward)(float *y, uint32_t *index, const float *x, const gt_conv_shape *s, size_t N);
  void (*maxpool_backward)(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s, size_t N);
  void (*avgpool_forward)(float *y, const float *x, const gt_conv_shape *s, size_t N);
  void (*avgpool_backward)(float *dx, const float *dy, const gt_conv_shape *s, size_t N);
  /* y (B,O) = x (B,I) w^T + b */
  void (*linear_forward)(float *y, const float *x, const float *w, const float *b, size_t B, size_t I, size_t O);
  void (*linear_backward_input)(float *dx, const float *dy, const float *w, size_t B, size_t I, size_t O);
  void (*linear_backward_weight)(float *dw, float *db, const float *dy, const float *x, size_t B, size_t I, size_t O);
  void (*relu_forward)(float *y, const float *x, size_t n);                    /* y may be x */
  void (*relu_backward)(float *dx, const float *dy, const float *y, size_t n); /* dx may be dy */
  /* Softmax and cross-entropy of logits x (B,O): writes dx = (softmax - onehot) / B unless NULL, returns the sum of losses, adds the
     number of rows whose largest logit is the label to *correct; a row without a loss (one with a NaN, or infinite at the top) is not among them. */
  double (*softmax_xent)(float *dx, const float *x, const int32_t *labels, size_t B, size_t O, size_t *correct);
  /* Likewise of one logit a row for the second of two classes: dx (B) = (sigmoid(x) - label) / B. */
  double (*logistic)(float *dx, const float *x, const int32_t *labels, size_t B, size_t *correct);
  /* Forward with the batch's mean and (biased) variance, which go on in running_mean and running_var (C) as r += momentum (b - r), the variance there unbiased
     (Ioffe and Szegedy 2015; PyTorch's convention); saved (2,C) keeps mean and 1/sqrt(variance + epsilon) for the backward pass.  `add` (M,C) may be NULL. */
  void (*norm_forward)(void *y, const void *x, const void *add, const float *gamma, const float *beta, float *running_mean, float *running_var,
                       float *saved, const gt_norm_shape *s, float *work);
  /* Forward with running_mean and running_var. */
  void (*norm_infer)(void *y, const void *x, const void *add, const float *gamma, const float *beta, const float *running_mean,
                     const float *running_var, const gt_norm_shape *s, float *work);
  /* dx from dy [+ dy2]; y is what came out.  dadd (M,C), where `add` was given: its gradient; else NULL.  dx may be dy. */
  void (*norm_backward)(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy, const void *dy2, const void *y, const void *x,
                        const float *gamma, const float *beta, const float *saved, const gt_norm_shape *s, float *work);
  /* The mean over H x W of x (N,H,W,C), of `type`, to y (N,C) in float32; and back. */
  void (*mean_forward)(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C);
  void (*mean_backward)(void *dx, const float *dy, gt_precision type, size_t N, size_t HW, size_t C);
  /* Tables of vectors by id: w (V,K), ids (M) below V.  y (M,K): w's row of each id. */
  void (*embedding_forward)(float *y, const float *w, const int32_t *ids, size_t M, size_t K);
  /* Adds dy + dy2 (M,K) to dw's rows of the ids, as often as an id comes; dy2 may be NULL.  Other rows are not touched. */
  void (*embedding_backward)(float *dw, const float *dy, const float *dy2, const int32_t *ids, size_t M, size_t K);
  /* dw's rows of the ids = 0. */
  void (*embedding_clear)(float *dw, const int32_t *ids, size_t M, size_t K);
  /* A factorization machine (Rendle 2010) of samples that have F ids each: y (N) = b + the sum of w (V) of a sample's ids + the sum of the inner products of all
     pairs of their vectors, v (N,F,K). */
  void (*fm_forward)(float *y, const float *v, const float *w, const float *b, const int32_t *ids, size_t N, size_t F, size_t K);
  /* dv (N,F,K) */
  void (*fm_backward_input)(float *dv, const float *dy, const float *v, size_t N, size_t F, size_t K);
  /* Adds to dw as embedding_backward does; db is written. */
  void (*fm_backward_weight)(float *dw, float *db, const float *dy, const int32_t *ids, size_t N, size_t F);
  /* The family of loops behind an operation ("conv", "maxpool", "avgpool", "linear", "relu", "norm", "mean", "embedding", "fm"; s: its shape or NULL): "ref", "blas",
     "direct", "fused", "sparse". */
  const char *(*family)(const char *operation, const gt_conv_shape *s);
  /* Kernels that are prepared, or NULL, and by rule what they serve. */
  const gt_prepared_ops *(*prepared)(void);
  bool (*prepares_conv)(const gt_conv_spec *spec);
  bool (*prepares_linear)(size_t I, size_t O, gt_precision precision);
} gt_kernels;

/* ---- layers with products ------------------------------------------------------------------------------------------ */

/* A convolution or a linear layer.  Linear: conv.shape has I and O in C and K, and no window. */
typedef struct {
  bool linear;
  gt_conv_spec conv;
} gt_layer_spec;

/* Whether this build can compute a pass of the layer that way. */
bool gt_way_can(const gt_layer_spec *spec, size_t N, gt_pass_id pass, gt_way way);

/* A layer whose passes are computed as a table's rule says, or in ways that were chosen; in float32
   activations and weights lie alike in all of them, so passes mix freely. */
typedef struct gt_layer gt_layer;
/* ways: NULL, or one for each pass (GT_WAY_RULE: as by rule).  *context: of the graph, made where it
   is needed; it outlives its layers.  The caller closes the layer. */
gt_layer *gt_layer_create(const gt_kernels *kernels, gt_prepared_context **context, const gt_layer_spec *spec, const gt_way *ways);
void gt_layer_close(gt_layer *layer);
/* Type of what comes out; floats of scratch; makes ready for batches of N. */
gt_precision gt_layer_type(const gt_layer *layer);
size_t gt_layer_work(const gt_layer *layer, size_t N);
void gt_layer_prepare(gt_layer *layer, size_t N);
/* As the slots of gt_kernels.  b and db may be NULL. */
void gt_layer_forward(gt_layer *layer, void *y, const void *x, const float *w, const float *b, size_t N, float *work);
void gt_layer_backward_input(gt_layer *layer, void *dx, const void *dy, const float *w, size_t N, float *work);
void gt_layer_backward_weight(gt_layer *layer, float *dw, float *db, const void *dy, const void *x, size_t N, float *work);
/* How a pass of a batch of N is computed: the way (GT_WAY_RULE: plain loops), and its name. */
gt_way gt_layer_way(const gt_layer *layer, size_t N, gt_pass_id pass);
const char *gt_layer_family(const gt_layer *layer, size_t N, gt_pass_id pass);

/* ---- choices ------------------------------------------------------------------------------------------------------ */

/* What was chosen for a layer at a batch: ways, and the seconds that each took (0: not measured). */
typedef struct {
  gt_layer_spec layer;
  size_t batch;
  gt_way ways[GT_PASSES];
  double seconds[GT_PASSES][GT_WAYS];
} gt_choice;

/* The choices of one machine, as gt_machine_key names it: they hold for no other. */
typedef struct {
  char machine[256];
  gt_choice *items;
  size_t n, capacity;
  double seconds; /* that measuring took; 0: it was not measured here */
} gt_choices;

/* CPU, instruction set, OpenBLAS's core and version, oneDNN's version. */
void gt_machine_key(char *text, size_t size);
/* A choice for the layer, by rule so far; the one that is there where there is one.  Borrowed until the next is added. */
gt_choice *gt_choices_add(gt_choices *choices, const gt_layer_spec *layer, size_t batch);
/* NULL: nothing was chosen for it. */
const gt_choice *gt_choices_find(const gt_choices *choices, const gt_layer_spec *layer, size_t batch);
/* Times the ways of every layer, and keeps the fastest where it beats the rule of `kernels` ("auto")
   for sure.  Takes at most 2 s, or eight times as long as the rule's products of every layer, if that
   is longer; what is not measured by then stays with the rule.  Local. */
void gt_choices_measure(gt_choices *choices, const gt_kernels *kernels);
/* As text: a line `machine ...`, then a line a layer; docs/choices.md.  The caller frees it with gt_free. */
char *gt_choices_text(const gt_choices *choices);
/* Adds those of `text` that are this machine's; *found: there were some.  GT_ERR_JOB names `source`, the line and what is needed there. */
gt_status gt_choices_parse(gt_choices *choices, const char *source, const char *text, bool *found);
void gt_choices_close(gt_choices *choices);

/* Scratch of norm_*, in floats. */
static inline size_t gt_norm_work(size_t C) {
  return 8 * C;
}

/* "ref", "blas", "dnn" (oneDNN wherever it can), or "auto" (per operation the fastest built in); NULL for an unknown name, and for "dnn" in a build without it.  OpenBLAS is set to one thread unless the environment says otherwise. */
const gt_kernels *gt_kernels_find(const char *name);
/* The core OpenBLAS picked ("SkylakeX") and whether an environment variable pinned it to less than the CPU has (a warning is due). */
const char *gt_kernels_blas_core(void);
bool gt_kernels_blas_pinned(void);
/* oneDNN's version ("2.6.3"), or NULL: not in this build. */
const char *gt_kernels_dnn_version(void);
/* Whether this build and this CPU compute in bf16; if not, *why says what is missing. */
bool gt_kernels_bf16(const char **why);

#endif
