/* The peak of float32 multiply-adds of one core. */
#include "peak.h"

#include "geotrain/base.h"

#if defined(__x86_64__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

typedef float lanes __attribute__((vector_size(64)));
enum { ROUNDS = 1 << 22, CHAINS = 12 };

/* Written out: a loop over an array of chains would live in memory. */
CLONES static float chains(long rounds) {
  const lanes x = {0.999F, 0.998F}, y = {1e-3F, 1e-4F};
  /* All different: equal chains would be one to the compiler. */
  lanes a = y, b = y * 2, c = y * 3, d = y * 4, e = y * 5, f = y * 6, g = y * 7, h = y * 8, i = y * 9, j = y * 10, k = y * 11, l = y * 12;
  for (long n = 0; n < rounds; n++) {
    a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y, f = f * x + y;
    g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y, k = k * x + y, l = l * x + y;
  }
  const lanes sum = a + b + c + d + e + f + g + h + i + j + k + l;
  return sum[0] + sum[1];
}

double peak_gflops(void) {
  static double best;
  static volatile float sink;
  for (int turn = 0; best == 0 || turn < 5; turn++) {
    if (turn == 0 && best > 0) return best;
    const gt_ns from = gt_now();
    sink = chains(ROUNDS);
    const double rate = 2.0 * 16 * CHAINS * (double)ROUNDS / gt_seconds(gt_now() - from) * 1e-9;
    if (rate > best) best = rate;
  }
  (void)sink;
  return best;
}
