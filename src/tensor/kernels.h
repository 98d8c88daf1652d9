/* The tables of src/tensor/kernels_*.c, and the functions that they share. */
#pragma once

#include "geotrain/tensor.h"

extern const gt_kernels gt_kernels_ref;  /* plain loops: the reference */
extern const gt_kernels gt_kernels_blas; /* im2col and OpenBLAS */
extern const gt_kernels gt_kernels_auto; /* the fastest by rule: see kernels.c */

/* kernels_fast.c: each row of y (B,O) = b; zero where b is NULL */
void gt_fast_rows_fill(float *y, const float *b, size_t B, size_t O);
/* Sets sum (O) to the sum of the rows of y (B,O). */
void gt_fast_rows_sum(float *sum, const float *y, size_t B, size_t O);

/* kernels_fast.c: does gt_kernels.softmax_xent for many classes. */
double gt_softmax_many(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                       size_t *correct);

/* columns.c: unfolds one image (H,W,C) to columns (P,Q,R,S,C) with elements of `size` bytes; and
   sums float columns back into an image. */
void gt_im2col(void *columns, const void *x, const gt_conv_shape *s, size_t size);
void gt_col2im(float *dx, const float *columns, const gt_conv_shape *s);

extern const gt_kernels gt_kernels_dnn; /* oneDNN wherever possible, else auto */
/* Returns the table; in dnn/prepared.c, or NULL in dnn/absent.c. */
const gt_prepared_ops *gt_prepared_dnn(void);
/* Limits oneDNN to a lower instruction set, unless the environment limits it further.  False:
   oneDNN is already in use and keeps using the CPU's best set. */
bool gt_dnn_cap(gt_isa isa);

/* The slots of gt_kernels, X(slot, function of ref, function of the other tables): each makes one
   pass over memory, whichever library computes the products; those of linear layers are
   OpenBLAS's.  kernels_ref*.c, kernels_fast.c, kernels_blas.c. */
#define GT_SLOTS(X)                                                                                \
  X(maxpool_forward, gt_ref_maxpool_forward, gt_fast_maxpool_forward)                              \
  X(maxpool_backward, gt_ref_maxpool_backward, gt_fast_maxpool_backward)                           \
  X(linear_forward, gt_ref_linear_forward, gt_blas_linear_forward)                                 \
  X(linear_backward_input, gt_ref_linear_backward_input, gt_blas_linear_backward_input)            \
  X(linear_backward_weight, gt_ref_linear_backward_weight, gt_blas_linear_backward_weight)         \
  X(softmax_xent, gt_ref_softmax_xent, gt_blas_softmax_xent)                                       \
  X(relu_forward, gt_ref_relu_forward, gt_fast_relu_forward)                                       \
  X(relu_backward, gt_ref_relu_backward, gt_fast_relu_backward)                                    \
  X(logistic, gt_ref_logistic, gt_ref_logistic)                                                    \
  X(norm_forward, gt_ref_norm_forward, gt_fast_norm_forward)                                       \
  X(norm_infer, gt_ref_norm_infer, gt_fast_norm_infer)                                             \
  X(norm_backward, gt_ref_norm_backward, gt_fast_norm_backward)                                    \
  X(mean_forward, gt_ref_mean_forward, gt_fast_mean_forward)                                       \
  X(mean_backward, gt_ref_mean_backward, gt_fast_mean_backward)                                    \
  X(embedding_forward, gt_ref_embedding_forward, gt_fast_embedding_forward)                        \
  X(embedding_backward, gt_ref_embedding_backward, gt_fast_embedding_backward)                     \
  X(embedding_clear, gt_ref_embedding_clear, gt_fast_embedding_clear)                              \
  X(fm_forward, gt_ref_fm_forward, gt_fast_fm_forward)                                             \
  X(fm_backward_input, gt_ref_fm_backward_input, gt_fast_fm_backward_input)                        \
  X(fm_backward_weight, gt_ref_fm_backward_weight, gt_fast_fm_backward_weight)                     \
  X(lstm_forward, gt_ref_lstm_forward, gt_fast_lstm_forward)                                       \
  X(lstm_backward, gt_ref_lstm_backward, gt_fast_lstm_backward)                                    \
  X(layernorm_forward, gt_ref_layernorm_forward, gt_fast_layernorm_forward)                        \
  X(layernorm_backward_input, gt_ref_layernorm_backward_input, gt_fast_layernorm_backward_input)   \
  X(layernorm_backward_weight, gt_ref_layernorm_backward_weight,                                   \
    gt_fast_layernorm_backward_weight)                                                             \
  X(gelu_forward, gt_ref_gelu_forward, gt_fast_gelu_forward)                                       \
  X(gelu_backward, gt_ref_gelu_backward, gt_fast_gelu_backward)                                    \
  X(attention_forward, gt_ref_attention_forward, gt_fast_attention_forward)                        \
  X(attention_backward, gt_ref_attention_backward, gt_fast_attention_backward)                     \
  X(next_xent, gt_ref_next_xent, gt_fast_next_xent)                                                \
  X(unit_forward, gt_ref_unit_forward, gt_fast_unit_forward)                                       \
  X(unit_backward, gt_ref_unit_backward, gt_fast_unit_backward)                                    \
  X(gru_forward, gt_ref_gru_forward, gt_fast_gru_forward)                                          \
  X(gru_backward, gt_ref_gru_backward, gt_fast_gru_backward)                                       \
  X(attend_forward, gt_ref_attend_forward, gt_fast_attend_forward)                                 \
  X(attend_backward, gt_ref_attend_backward, gt_fast_attend_backward)

#define GT_SLOT_DECLARE(slot, ref, fast)                                                           \
  extern __typeof__(*((const gt_kernels *)NULL)->slot) ref, fast;
GT_SLOTS(GT_SLOT_DECLARE)

#define GT_SLOT_REF(slot, ref, fast)  .slot = ref,
#define GT_SLOT_FAST(slot, ref, fast) .slot = fast,
/* Each table has static functions of these names. */
#define GT_OWN_SLOTS                                                                               \
  .conv_work = conv_work, .conv_forward = conv_forward,                                            \
  .conv_backward_input = conv_backward_input, .conv_backward_weight = conv_backward_weight,        \
  .family = family

/* The other slots: those of GT_OWN_SLOTS, name, prepared, prepares_conv, prepares_linear. */
#define GT_SLOT_COUNT(slot, ref, fast) +1
_Static_assert(sizeof(gt_kernels) == (9 GT_SLOTS(GT_SLOT_COUNT)) * sizeof(void (*)(void)),
               "a slot of gt_kernels is in no list");
