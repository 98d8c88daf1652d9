/* The tables of src/tensor/kernels_*.c, and what they borrow from each other. */
#ifndef GEOTRAIN_TENSOR_KERNELS_H
#define GEOTRAIN_TENSOR_KERNELS_H

#include "geotrain/tensor.h"

extern const gt_kernels gt_kernels_ref;  /* plain loops: the judge */
extern const gt_kernels gt_kernels_blas; /* im2col and OpenBLAS */
extern const gt_kernels gt_kernels_auto; /* per operation the fastest: direct convolutions for few channels, else blas */

/* 2x2 windows side by side: pooling_2x2.c; other windows go to ref. */
void gt_pool_max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s, size_t N);
void gt_pool_max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s, size_t N);

/* simple.c: loops that the compiler vectorises for each instruction set. */
void gt_fast_relu_forward(float *y, const float *x, size_t n);
void gt_fast_relu_backward(float *dx, const float *dy, const float *y, size_t n);
void gt_fast_rows_fill(float *y, const float *b, size_t B, size_t O);  /* each row of y (B,O) = b; zero where b is NULL */
void gt_fast_rows_sum(float *sum, const float *y, size_t B, size_t O); /* sum (O) of the rows of y (B,O) */

#endif
