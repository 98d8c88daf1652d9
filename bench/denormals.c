/* Measures the cost of denormal numbers, and shows that a run has none: an optimizer's step on
   parameters whose gradient is now 0, such as rows of ids that do not occur again, or a layer with
   dead ReLUs.  Their momentum shrinks by a factor at each step, and if the CPU keeps denormal
   numbers, it stays denormal for ever.  Both modes run in one process and take turns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "geotrain/nn.h"

/* LeNet-5's; momentum 0.9 takes 800 steps to the least normal number */
enum { N = 61706, STEPS = 2000, EARLY = 200, TURNS = 3 };

static float params[N], grads[N];

/* Sets the mode of gt_isa_choose, which every run has, or the default of a process. */
static void flush(bool on) {
#if defined(__x86_64__)
  const unsigned both = 0x8040U;
  _mm_setcsr(on ? _mm_getcsr() | both : _mm_getcsr() & ~both);
#else
  (void)on;
#endif
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Seconds of the middle one of n steps. */
static double median(double *steps, size_t n) {
  qsort(steps, n, sizeof *steps, ascending);
  return steps[n / 2];
}

/* Number of denormal values in the optimizer's first state, by their bits: a comparison would see
   0. */
static size_t denormals(gt_optim *optim) {
  gt_state state = {0};
  size_t found = 0;
  gt_optim_save(optim, "", &state);
  for (size_t k = 0; k < state.n; k++)
    for (size_t i = 0; state.items[k].type == GT_TYPE_F32 && i < N; i++) {
      uint32_t bits;
      memcpy(&bits, (const float *)state.items[k].data + i, sizeof bits);
      found += (bits & 0x7fffffffU) - 1 < 0x7fffffU;
    }
  gt_state_close(&state);
  return found;
}

typedef struct {
  double early_s, late_s;
  size_t denormals;
} result;

static result measure(gt_optimizer kind, bool flushed) {
  static double took[STEPS];
  const gt_optim_spec spec = {.kind = kind,
                              .schedule = {.lr = 1e-3},
                              .momentum = 0.9,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .epsilon = 1e-8};
  gt_optim *optim;
  if (gt_optim_create(&optim, &spec, N, true) != GT_OK) exit(1);
  flush(flushed);
  for (size_t i = 0; i < N; i++) params[i] = 1.0F, grads[i] = 1e-2F * (float)(1 + i % 7);
  for (size_t t = 0; t < STEPS; t++) {
    const gt_ns from = gt_now();
    gt_optim_step(optim, gt_vec_of(params, N), gt_vec_of(grads, N), gt_vec_of(NULL, N));
    took[t] = gt_seconds(gt_now() - from);
    if (t == 0) memset(grads, 0, sizeof grads);
  }
  const result r = {median(took, EARLY), median(took + STEPS - EARLY, EARLY), denormals(optim)};
  gt_optim_close(optim);
  return r;
}

static void least(result *a, result b) {
  a->early_s = fmin(a->early_s, b.early_s);
  a->late_s = fmin(a->late_s, b.late_s);
  a->denormals = b.denormals;
}

static void show(const char *name, const char *how, const result *r) {
  printf("%-5s %-8s first %d steps %8.2f us  last %d steps %8.2f us  ratio %6.2f  denormal numbers "
         "left %zu\n",
         name, how, EARLY, 1e6 * r->early_s, EARLY, 1e6 * r->late_s, r->late_s / r->early_s,
         r->denormals);
}

int main(void) {
  static const gt_optimizer kinds[] = {GT_OPTIMIZER_SGD, GT_OPTIMIZER_ADAM};
#if !defined(__x86_64__)
  fputs("denormals: on x86-64 only can both ways be taken here\n", stderr);
  return 2;
#endif
  printf("steps of %d parameters without a gradient, instruction set %s; kept: as a process "
         "begins, flushed: as geotrain computes\n",
         (int)N, gt_isa_name(gt_isa_used()));
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    result kept = {INFINITY, INFINITY, 0}, flushed = kept;
    for (int turn = 0; turn < TURNS; turn++) {
      least(&kept, measure(kinds[k], false));
      least(&flushed, measure(kinds[k], true));
    }
    show(gt_optimizer_names[kinds[k]], "kept", &kept);
    show(gt_optimizer_names[kinds[k]], "flushed", &flushed);
    printf("%-5s kept / flushed, last steps: %.1f\n", gt_optimizer_names[kinds[k]],
           kept.late_s / flushed.late_s);
  }
  return 0;
}
