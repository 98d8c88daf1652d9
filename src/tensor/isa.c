/* The instruction set in use: the highest that this build and this CPU support, or a lower one
   given by GEOTRAIN_ISA.  The libraries are limited to the same set. */
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "kernels.h"
#include "loops.h"

static const char *const names[GT_ISAS] = {
    [GT_ISA_PLAIN] = "plain", [GT_ISA_AVX2] = "avx2", [GT_ISA_AVX512] = "avx512"};

#define DECLARE(name, isa) extern const gt_##name##_loops gt_##name##_loops_##isa;
#define TABLE(name, isa)   .name = &gt_##name##_loops_##isa,

GT_LOOPS(DECLARE, plain)
#if defined(__x86_64__)
GT_LOOPS(DECLARE, avx2)
GT_LOOPS(DECLARE, avx512)
static const gt_loop_tables tables[GT_ISAS] = {[GT_ISA_PLAIN] = {GT_LOOPS(TABLE, plain)},
                                               [GT_ISA_AVX2] = {GT_LOOPS(TABLE, avx2)},
                                               [GT_ISA_AVX512] = {GT_LOOPS(TABLE, avx512)}};
#else
static const gt_loop_tables tables[GT_ISAS] = {[GT_ISA_PLAIN] = {GT_LOOPS(TABLE, plain)}};
#endif

/* Set once, before threads start. */
static struct {
  const gt_loop_tables *tables;
  gt_isa isa;
} chosen;

const char *gt_isa_name(gt_isa isa) {
  return names[isa];
}

/* Checks the features of x86-64-v3 and -v4, the levels that the loops are compiled for. */
gt_isa gt_isa_best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v3 && v4 ? GT_ISA_AVX512 : v3 ? GT_ISA_AVX2 : GT_ISA_PLAIN;
#else
  return GT_ISA_PLAIN;
#endif
}

static gt_status find(const char *name, gt_isa *isa) {
  for (*isa = 0; *isa < GT_ISAS; ++*isa)
    if (strcmp(names[*isa], name) == 0) return GT_OK;
  const char *near = gt_nearest(name, names, GT_ISAS);
  return GT_FAIL(GT_ERR_JOB, "GEOTRAIN_ISA is \"%s\"; expected one of plain, avx2, avx512%s%s%s",
                 name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Flushes denormal inputs and results to 0.  If a gradient stays 0, momentum decays to denormal
   numbers and stays there, and many CPUs need a hundred cycles for each. */
static void flush_denormals(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040U); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | (UINT64_C(1) << 24)));
#endif
}

gt_status gt_isa_choose(const char *name) {
  gt_isa best = gt_isa_best(), isa = best;
  if (name && *name) GT_TRY(find(name, &isa));
  if (isa > best)
    return GT_FAIL(
        GT_ERR_JOB,
        "GEOTRAIN_ISA is %s, but this CPU supports at most %s; choose that or a lower one", name,
        names[best]);
  flush_denormals();
  chosen.isa = isa;
  chosen.tables = &tables[isa];
  if (isa < best && !gt_dnn_cap(isa))
    gt_log(GT_LOG_WARN,
           "GEOTRAIN_ISA is %s, but oneDNN is already in use and keeps this CPU's best set",
           names[isa]);
  return GT_OK;
}

gt_isa gt_isa_used(void) {
  if (!chosen.tables && gt_isa_choose(getenv("GEOTRAIN_ISA")) != GT_OK)
    gt_bug("%s", gt_error_text());
  return chosen.isa;
}

const gt_loop_tables *gt_loops(void) {
  if (!chosen.tables) (void)gt_isa_used();
  return chosen.tables;
}
