/* The list of kernel tables, and the core type that OpenBLAS selected. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels.h"

#include <cblas.h>
#undef I /* complex.h defines I, here the number of inputs of a linear layer */

#define TABLE(constant, name, table) [constant] = &table,
static const gt_kernels *const tables[] = {GT_KERNEL_TABLES(TABLE)};

const gt_kernels *gt_kernels_find(const char *name) {
  (void)gt_isa_used(); /* limits oneDNN to the set before its first use */
  /* A rank has one thread; OpenBLAS would start one per core, and these would spin.  The user's
     settings take precedence. */
  if (!getenv("OPENBLAS_NUM_THREADS") && !getenv("OMP_NUM_THREADS") && !getenv("GOTO_NUM_THREADS"))
    openblas_set_num_threads(1);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (strcmp(tables[i]->name, name) == 0)
      return tables[i] == &gt_kernels_dnn && !gt_prepared_dnn() ? NULL : tables[i];
  return NULL;
}

const char *gt_kernels_blas_core(void) {
  return openblas_get_corename();
}

/* Returns the instruction set of an OpenBLAS core type. */
static gt_isa core_isa(const char *core) {
  static const char *const avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};
  for (size_t i = 0; i < sizeof avx512 / sizeof *avx512; i++)
    if (strcasecmp(core, avx512[i]) == 0) return GT_ISA_AVX512;
  for (size_t i = 0; i < sizeof avx2 / sizeof *avx2; i++)
    if (strcasecmp(core, avx2[i]) == 0) return GT_ISA_AVX2;
  return GT_ISA_PLAIN;
}

bool gt_kernels_blas_pinned(void) {
  return getenv("OPENBLAS_CORETYPE") && core_isa(gt_kernels_blas_core()) < gt_isa_used();
}

const char *gt_isa_blas_cap(void) {
  const gt_isa isa = gt_isa_used();
  if (core_isa(gt_kernels_blas_core()) <= isa) return NULL;
  return isa == GT_ISA_AVX2 ? "Haswell" : "Prescott"; /* SSE3: the lowest in OpenBLAS */
}
