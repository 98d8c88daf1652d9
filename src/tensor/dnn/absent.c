/* Stubs for a build without oneDNN. */
#include "kernels.h"

const char *gt_kernels_dnn_version(void) {
  return NULL;
}

bool gt_kernels_bf16(const char **why) {
  *why = "this build has no oneDNN";
  return false;
}

const gt_prepared_ops *gt_prepared_dnn(void) {
  return NULL;
}

bool gt_dnn_cap(gt_isa isa) {
  (void)isa;
  return true;
}
