/* The tables of src/tensor/kernels_*.c, and the functions that they share. */
#ifndef GEOTRAIN_TENSOR_KERNELS_H
#define GEOTRAIN_TENSOR_KERNELS_H

#include "geotrain/tensor.h"

extern const gt_kernels gt_kernels_ref;  /* plain loops: the reference */
extern const gt_kernels gt_kernels_blas; /* im2col and OpenBLAS */
extern const gt_kernels gt_kernels_auto; /* the fastest by rule: see kernels_auto.c */

/* pooling.c: fast for 2x2 windows that do not overlap; other windows use ref. */
void gt_pool_max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s,
                         size_t N);
void gt_pool_max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s,
                          size_t N);

/* gemm.c: y (m,n) = a b + beta y, with a (m,k) and b (k,n); ta and tb: stored transposed. */
void gt_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, const float *b,
             float beta, float *y);

/* simple.c */
void gt_fast_relu_forward(float *y, const float *x, size_t n);
void gt_fast_relu_backward(float *dx, const float *dy, const float *y, size_t n);
/* each row of y (B,O) = b; zero where b is NULL */
void gt_fast_rows_fill(float *y, const float *b, size_t B, size_t O);
/* sum (O) of the rows of y (B,O) */
void gt_fast_rows_sum(float *sum, const float *y, size_t B, size_t O);

/* kernels_ref_norm.c, kernels_ref_sparse.c: plain loops. */
void gt_ref_norm_forward(void *y, const void *x, const void *add, const float *gamma,
                         const float *beta, float *running_mean, float *running_var, float *saved,
                         const gt_norm_shape *s, float *work);
void gt_ref_norm_infer(void *y, const void *x, const void *add, const float *gamma,
                       const float *beta, const float *running_mean, const float *running_var,
                       const gt_norm_shape *s, float *work);
void gt_ref_norm_backward(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy,
                          const void *dy2, const void *y, const void *x, const float *gamma,
                          const float *beta, const float *saved, const gt_norm_shape *s,
                          float *work);
void gt_ref_mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C);
void gt_ref_mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                          size_t C);
double gt_ref_logistic(float *dx, const float *x, const int32_t *labels, size_t B, size_t *correct);

void gt_ref_embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K);
void gt_ref_embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                               size_t M, size_t K);
void gt_ref_embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K);
void gt_ref_fm_forward(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                       size_t N, size_t F, size_t K);
void gt_ref_fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F,
                              size_t K);
void gt_ref_fm_backward_weight(float *dw, float *db, const float *dy, const int32_t *ids, size_t N,
                               size_t F);

/* kernels_ref_lstm.c */
void gt_ref_lstm_forward(float *h, float *c, float *gates, const float *x, const float *w,
                         const float *b, const gt_lstm_shape *s, float *work);
void gt_ref_lstm_backward(float *dx, float *dw, float *db, const float *dy, float *gates,
                          const float *x, const float *h, const float *c, const float *w,
                          const gt_lstm_shape *s, float *work);

/* kernels_ref_decoder.c, decoder.c */
void gt_ref_layernorm_forward(float *y, float *saved, const float *x, const float *gamma,
                              const float *beta, size_t M, size_t D);
void gt_ref_layernorm_backward_input(float *dx, const float *dy, const float *x, const float *gamma,
                                     const float *saved, size_t M, size_t D);
void gt_ref_layernorm_backward_weight(float *dgamma, float *dbeta, const float *dy, const float *x,
                                      const float *saved, size_t M, size_t D);
void gt_ref_gelu_forward(float *y, const float *x, size_t n);
void gt_ref_gelu_backward(float *dx, const float *dy, const float *x, size_t n);
void gt_ref_attention_forward(float *y, float *lse, const float *qkv, const gt_attention_shape *s,
                              size_t N, float *work);
void gt_ref_attention_backward(float *dqkv, const float *dy, const float *y, const float *lse,
                               const float *qkv, const gt_attention_shape *s, size_t N,
                               float *work);
double gt_ref_next_xent(float *dx, const float *x, const int32_t *ids, size_t N, size_t T, size_t V,
                        size_t *correct);
void gt_layernorm_forward(float *y, float *saved, const float *x, const float *gamma,
                          const float *beta, size_t M, size_t D);
void gt_layernorm_backward_input(float *dx, const float *dy, const float *x, const float *gamma,
                                 const float *saved, size_t M, size_t D);
void gt_layernorm_backward_weight(float *dgamma, float *dbeta, const float *dy, const float *x,
                                  const float *saved, size_t M, size_t D);
void gt_gelu_forward(float *y, const float *x, size_t n);
void gt_gelu_backward(float *dx, const float *dy, const float *x, size_t n);
void gt_attention_forward(float *y, float *lse, const float *qkv, const gt_attention_shape *s,
                          size_t N, float *work);
void gt_attention_backward(float *dqkv, const float *dy, const float *y, const float *lse,
                           const float *qkv, const gt_attention_shape *s, size_t N, float *work);
double gt_next_xent(float *dx, const float *x, const int32_t *ids, size_t N, size_t T, size_t V,
                    size_t *correct);
/* kernels_ref_session.c */
void gt_ref_unit_forward(float *y, float *norms, const float *x, size_t M, size_t K);
void gt_ref_unit_backward(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                          size_t K);
void gt_ref_gru_forward(float *y, float *gates, const float *h, const float *gi, const float *gh,
                        size_t M, size_t H);
void gt_ref_gru_backward(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                         const float *h, size_t M, size_t H);
void gt_ref_attend_forward(float *y, float *gates, float *alpha, const float *q1, const float *h,
                           const float *w, const gt_session_shape *s);
void gt_ref_attend_backward(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                            const float *gates, const float *alpha, const float *h, const float *w,
                            const gt_session_shape *s);

/* session.c */
void gt_unit_forward(float *y, float *norms, const float *x, size_t M, size_t K);
void gt_unit_backward(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                      size_t K);
void gt_gru_forward(float *y, float *gates, const float *h, const float *gi, const float *gh,
                    size_t M, size_t H);
void gt_gru_backward(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                     const float *h, size_t M, size_t H);
void gt_attend_forward(float *y, float *gates, float *alpha, const float *q1, const float *h,
                       const float *w, const gt_session_shape *s);
void gt_attend_backward(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                        const float *gates, const float *alpha, const float *h, const float *w,
                        const gt_session_shape *s);

/* softmax.c: as gt_kernels.softmax_xent, for many classes. */
double gt_softmax_many(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                       size_t *correct);

/* sparse.c */
void gt_embedding_forward(float *y, const float *w, const int32_t *ids, size_t M, size_t K);
void gt_embedding_backward(float *dw, const float *dy, const float *dy2, const int32_t *ids,
                           size_t M, size_t K);
void gt_embedding_clear(float *dw, const int32_t *ids, size_t M, size_t K);
void gt_fm_forward(float *y, const float *v, const float *w, const float *b, const int32_t *ids,
                   size_t N, size_t F, size_t K);
void gt_fm_backward_input(float *dv, const float *dy, const float *v, size_t N, size_t F, size_t K);
void gt_fm_backward_weight(float *dw, float *db, const float *dy, const int32_t *ids, size_t N,
                           size_t F);

/* norm.c */
void gt_norm_forward(void *y, const void *x, const void *add, const float *gamma, const float *beta,
                     float *running_mean, float *running_var, float *saved, const gt_norm_shape *s,
                     float *work);
void gt_norm_infer(void *y, const void *x, const void *add, const float *gamma, const float *beta,
                   const float *running_mean, const float *running_var, const gt_norm_shape *s,
                   float *work);
void gt_norm_backward(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy,
                      const void *dy2, const void *y, const void *x, const float *gamma,
                      const float *beta, const float *saved, const gt_norm_shape *s, float *work);
void gt_mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C);
void gt_mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW, size_t C);

/* lstm.c */
void gt_lstm_forward(float *h, float *c, float *gates, const float *x, const float *w,
                     const float *b, const gt_lstm_shape *s, float *work);
void gt_lstm_backward(float *dx, float *dw, float *db, const float *dy, float *gates,
                      const float *x, const float *h, const float *c, const float *w,
                      const gt_lstm_shape *s, float *work);

/* columns.c: unfolds one image (H,W,C) to columns (P,Q,R,S,C) with elements of `size` bytes; and
   sums float columns back into an image. */
void gt_im2col(void *columns, const void *x, const gt_conv_shape *s, size_t size);
void gt_col2im(float *dx, const float *columns, const gt_conv_shape *s);

extern const gt_kernels gt_kernels_dnn; /* oneDNN wherever possible, else auto */
/* In dnn/prepared.c; in dnn/absent.c it returns NULL. */
const gt_prepared_ops *gt_prepared_dnn(void);
/* Limits oneDNN to a lower instruction set, unless the environment limits it further.  False:
   oneDNN is already in use and keeps using the CPU's best set. */
bool gt_dnn_cap(gt_isa isa);

/* The entries that all tables except ref have in common: each makes one pass over memory, whichever
   library computes the products. */
#define GT_FAST_SLOTS                                                                              \
  .maxpool_forward = gt_pool_max_forward, .maxpool_backward = gt_pool_max_backward,                \
  .relu_forward = gt_fast_relu_forward, .relu_backward = gt_fast_relu_backward,                    \
  .logistic = gt_ref_logistic, .norm_forward = gt_norm_forward, .norm_infer = gt_norm_infer,       \
  .norm_backward = gt_norm_backward, .mean_forward = gt_mean_forward,                              \
  .mean_backward = gt_mean_backward, .embedding_forward = gt_embedding_forward,                    \
  .embedding_backward = gt_embedding_backward, .embedding_clear = gt_embedding_clear,              \
  .fm_forward = gt_fm_forward, .fm_backward_input = gt_fm_backward_input,                          \
  .fm_backward_weight = gt_fm_backward_weight, .lstm_forward = gt_lstm_forward,                    \
  .lstm_backward = gt_lstm_backward, .layernorm_forward = gt_layernorm_forward,                    \
  .layernorm_backward_input = gt_layernorm_backward_input,                                         \
  .layernorm_backward_weight = gt_layernorm_backward_weight, .gelu_forward = gt_gelu_forward,      \
  .gelu_backward = gt_gelu_backward, .attention_forward = gt_attention_forward,                    \
  .attention_backward = gt_attention_backward, .next_xent = gt_next_xent,                          \
  .unit_forward = gt_unit_forward, .unit_backward = gt_unit_backward,                              \
  .gru_forward = gt_gru_forward, .gru_backward = gt_gru_backward,                                  \
  .attend_forward = gt_attend_forward, .attend_backward = gt_attend_backward

#endif
