/* The loops of the instruction set in use. */
#include "loops.h"

#include "geotrain/tensor.h"

extern const gt_codec_loops gt_codec_loops_plain;
#if defined(__x86_64__)
extern const gt_codec_loops gt_codec_loops_avx2, gt_codec_loops_avx512;
static const gt_codec_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_codec_loops_plain,
                                                     [GT_ISA_AVX2] = &gt_codec_loops_avx2,
                                                     [GT_ISA_AVX512] = &gt_codec_loops_avx512};
#else
static const gt_codec_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_codec_loops_plain};
#endif

const gt_codec_loops *gt_codec_loops_used(void) {
  return loops[gt_isa_used()];
}
