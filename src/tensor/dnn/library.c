/* The oneDNN library: its version, and the instruction set that it is limited to. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "dnn.h"

const char *gt_kernels_dnn_version(void) {
  static char text[32];
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
  return text;
}

/* oneDNN reads its own environment variable at its first use.  A lower limit set by the user is
   kept. */
bool gt_dnn_cap(gt_isa isa) {
  static const char *const lower[] = {"SSE41", "AVX", "AVX2"};
  const char *user = getenv("ONEDNN_MAX_CPU_ISA");
  if (!user) user = getenv("DNNL_MAX_CPU_ISA");
  const size_t caps = isa == GT_ISA_PLAIN ? 1 : sizeof lower / sizeof *lower;
  for (size_t i = 0; user && i < caps; i++)
    if (strcasecmp(user, lower[i]) == 0) return true;
  return dnnl_set_max_cpu_isa(isa == GT_ISA_PLAIN ? dnnl_cpu_isa_sse41 : dnnl_cpu_isa_avx2) ==
         dnnl_success;
}
