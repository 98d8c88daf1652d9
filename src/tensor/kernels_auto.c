/* Two tables.  `auto` uses the fastest built-in kernel by rule: direct convolution for few
   channels; oneDNN, if the build has it, for other convolutions and for linear layers with at least
   32 inputs and outputs; blas for all else.  `dnn` uses oneDNN wherever possible. */
#include <string.h>

#include "direct.h"
#include "kernels.h"

static size_t conv_work(const gt_conv_shape *s, size_t N) {
  return gt_direct_serves(s) ? gt_direct_work(s) : gt_kernels_blas.conv_work(s, N);
}

static void conv_forward(float *y, const float *x, const float *w, const float *b,
                         const gt_conv_shape *s, size_t N, float *work) {
  (gt_direct_serves(s) ? gt_direct_forward : gt_kernels_blas.conv_forward)(y, x, w, b, s, N, work);
}

static void conv_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                                size_t N, float *work) {
  (gt_direct_serves(s) ? gt_direct_backward_input
                       : gt_kernels_blas.conv_backward_input)(dx, dy, w, s, N, work);
}

static void conv_backward_weight(float *dw, float *db, const float *dy, const float *x,
                                 const gt_conv_shape *s, size_t N, float *work) {
  (gt_direct_serves(s) ? gt_direct_backward_weight
                       : gt_kernels_blas.conv_backward_weight)(dw, db, dy, x, s, N, work);
}

static const char *family(const char *operation, const gt_conv_shape *s) {
  if (s && strcmp(operation, "conv") == 0 && gt_direct_serves(s)) return "direct";
  return gt_kernels_blas.family(operation, s);
}

/* On CPUs other than x86-64, oneDNN 2 computes in float32 with plain loops or with slower products
   than OpenBLAS's. */
#if defined(__x86_64__)
enum { DNN_IS_FAST = true };
#else
enum { DNN_IS_FAST = false };
#endif

static bool prepares_conv(const gt_conv_spec *spec) {
  return spec->precision == GT_BF16 || (DNN_IS_FAST && !gt_direct_serves(&spec->shape));
}

static bool prepares_linear(size_t I, size_t O, gt_precision precision) {
  (void)precision;
  return DNN_IS_FAST && I >= 32 && O >= 32;
}

/* The tables differ in the layers that oneDNN prepares. */
const gt_kernels gt_kernels_auto = {GT_SLOTS(GT_SLOT_FAST) GT_OWN_SLOTS, .name = "auto",
                                    .prepared = gt_prepared_dnn, .prepares_conv = prepares_conv,
                                    .prepares_linear = prepares_linear};

static bool always_conv(const gt_conv_spec *spec) {
  (void)spec;
  return true;
}

static bool always_linear(size_t I, size_t O, gt_precision precision) {
  (void)I;
  (void)O;
  (void)precision;
  return true;
}

const gt_kernels gt_kernels_dnn = {GT_SLOTS(GT_SLOT_FAST) GT_OWN_SLOTS, .name = "dnn",
                                   .prepared = gt_prepared_dnn, .prepares_conv = always_conv,
                                   .prepares_linear = always_linear};
