/* The list of kernel tables, and the core type that OpenBLAS selected.  `auto` uses the fastest
   built-in kernel by rule: direct convolution for few channels; oneDNN, if the build has it, for
   other convolutions and for linear layers with at least 32 inputs and outputs; blas for all else.
   `dnn` uses oneDNN wherever possible. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "direct.h"
#include "kernels.h"

#include <cblas.h>
#undef I /* complex.h defines I, here the number of inputs of a linear layer */

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

gt_precision gt_kernels_precision(const gt_kernels *kernels, gt_precision asked, const char **why) {
  *why = "kernels other than auto and dnn compute in f32";
  if (!kernels || asked != GT_BF16) return GT_F32;
  return kernels->prepared && gt_kernels_bf16(why) ? GT_BF16 : GT_F32;
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

/* A CPU that is newer than OpenBLAS: 0.3.21 takes an Emerald Rapids Xeon for a Prescott. */
static const char *unknown_cpu(void) {
  const gt_isa isa = gt_isa_used();
  if (isa == GT_ISA_PLAIN || core_isa(gt_kernels_blas_core()) != GT_ISA_PLAIN) return NULL;
  if (getenv("OPENBLAS_CORETYPE") || !strstr(openblas_get_config(), "DYNAMIC_ARCH")) return NULL;
  return isa == GT_ISA_AVX512 ? "SkylakeX" : "Haswell";
}

void gt_isa_fit_blas(char **argv) {
  const char *cap = gt_isa_blas_cap(), *core = cap ? cap : unknown_cpu(),
             *given = getenv("OPENBLAS_CORETYPE");
  if (!core || (given && strcmp(given, core) == 0)) return;
  if (setenv("OPENBLAS_CORETYPE", core, 1) == 0) (void)execv("/proc/self/exe", argv);
}
