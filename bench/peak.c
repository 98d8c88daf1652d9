/* The peak of float32 multiply-adds of one core, at the instruction set in use. */
#include "peak.h"

#include "geotrain/tensor.h"
#include "peak_chains.h"

enum { ROUNDS = 1 << 22 };

extern const peak_chains peak_chains_plain;
#if defined(__x86_64__)
extern const peak_chains peak_chains_avx2, peak_chains_avx512;
static const peak_chains *const sets[GT_ISAS] = {[GT_ISA_PLAIN] = &peak_chains_plain,
                                                 [GT_ISA_AVX2] = &peak_chains_avx2,
                                                 [GT_ISA_AVX512] = &peak_chains_avx512};
#else
static const peak_chains *const sets[GT_ISAS] = {[GT_ISA_PLAIN] = &peak_chains_plain};
#endif

double peak_gflops(void) {
  static double best;
  static volatile float sink;
  const peak_chains *chains = sets[gt_isa_used()];
  if (best > 0) return best;
  for (int turn = 0; turn < 5; turn++) {
    const gt_ns from = gt_now();
    sink = chains->run(ROUNDS);
    const double rate =
        2.0 * chains->lanes * PEAK_CHAINS * (double)ROUNDS / gt_seconds(gt_now() - from) * 1e-9;
    if (rate > best) best = rate;
  }
  (void)sink;
  return best;
}
