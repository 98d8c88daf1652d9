/* Selects the updates of the instruction set in use. */
#include "optim.h"

extern const gt_optim_loops gt_optim_loops_plain;
#if defined(__x86_64__)
extern const gt_optim_loops gt_optim_loops_avx2, gt_optim_loops_avx512;
static const gt_optim_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_optim_loops_plain,
                                                     [GT_ISA_AVX2] = &gt_optim_loops_avx2,
                                                     [GT_ISA_AVX512] = &gt_optim_loops_avx512};
#else
static const gt_optim_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_optim_loops_plain};
#endif

const gt_optim_loops *gt_optim_loops_used(void) {
  return loops[gt_isa_used()];
}
