/* The list of kernel tables, and what OpenBLAS picked for itself. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels.h"

#include <cblas.h>
#undef I /* complex.h takes the letter that linear layers count inputs by */

static const gt_kernels *const tables[] = {&gt_kernels_auto, &gt_kernels_dnn, &gt_kernels_blas, &gt_kernels_ref};

const gt_kernels *gt_kernels_find(const char *name) {
  /* A rank is one thread: OpenBLAS would start one a core, and spin.  What the user sets stands. */
  if (!getenv("OPENBLAS_NUM_THREADS") && !getenv("OMP_NUM_THREADS") && !getenv("GOTO_NUM_THREADS")) openblas_set_num_threads(1);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (strcmp(tables[i]->name, name) == 0) return tables[i] == &gt_kernels_dnn && !gt_prepared_dnn() ? NULL : tables[i];
  return NULL;
}

const char *gt_kernels_blas_core(void) {
  return openblas_get_corename();
}

/* Vector width in units that compare: 3 AVX-512, 2 AVX2, 1 less. */
static int core_level(const char *core) {
  static const char *const avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};
  for (size_t i = 0; i < sizeof avx512 / sizeof *avx512; i++)
    if (strcasecmp(core, avx512[i]) == 0) return 3;
  for (size_t i = 0; i < sizeof avx2 / sizeof *avx2; i++)
    if (strcasecmp(core, avx2[i]) == 0) return 2;
  return 1;
}

static int cpu_level(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) return 3;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 2;
#endif
  return 1;
}

bool gt_kernels_blas_pinned(void) {
  return getenv("OPENBLAS_CORETYPE") && core_level(gt_kernels_blas_core()) < cpu_level();
}
