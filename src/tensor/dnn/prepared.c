/* The table of oneDNN's prepared kernels, and the availability of bf16. */
#include "dnn.h"

bool gt_kernels_bf16(const char **why) {
  (void)gt_isa_used(); /* limits oneDNN to the set before the query */
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa(),
                   needs = dnnl_cpu_isa_avx512_core_bf16;
    *why = "GEOTRAIN_ISA or DNNL_MAX_CPU_ISA keeps oneDNN from this CPU's bf16 arithmetic";
    return (has & needs) == needs;
  }
#endif
  *why = "this CPU has no bf16 arithmetic";
  return false;
}

static const gt_prepared_ops ops = {
    .create = gt_dnn_context_create,
    .close = gt_dnn_context_close,
    .bytes = gt_dnn_context_bytes,
    .conv_create = gt_dnn_conv_create,
    .conv_close = gt_dnn_conv_close,
    .conv_prepare = gt_dnn_conv_prepare,
    .conv_forward = gt_dnn_conv_forward,
    .conv_backward_input = gt_dnn_conv_backward_input,
    .conv_backward_weight = gt_dnn_conv_backward_weight,
    .conv_rule = gt_dnn_conv_rule,
    .conv_can = gt_dnn_conv_can,
    .linear_create = gt_dnn_linear_create,
    .linear_close = gt_dnn_linear_close,
    .linear_prepare = gt_dnn_linear_prepare,
    .linear_forward = gt_dnn_linear_forward,
    .linear_backward_input = gt_dnn_linear_backward_input,
    .linear_backward_weight = gt_dnn_linear_backward_weight,
};

const gt_prepared_ops *gt_prepared_dnn(void) {
  return &ops;
}
