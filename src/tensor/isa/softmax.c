/* Softmax and cross-entropy of one row of logits.  Sums of up to CHUNK values are in float32, with
   sixteen parts; those of chunks in double.  The same bits with every set. */
#include <math.h>

#include "functions_vector.h"
#include "loops.h"

enum { CHUNK = 4096 };

/* Returns the largest value; NaN are skipped. */
static float largest_of(const float *x, size_t n) {
  gt_vf most = (gt_vf){0} + x[0];
  size_t i = 0;
  for (; i + GT_LANES <= n; i += GT_LANES) {
    const gt_vf v = *(const gt_vf *)(x + i);
    most = gt_choose((gt_vi)(v > most), v, most);
  }
  float best = x[0];
  for (size_t k = 0; k < GT_LANES; k++) best = most[k] > best ? most[k] : best;
  for (; i < n; i++) best = x[i] > best ? x[i] : best;
  return best;
}

/* Returns the sum of e^(x - shift), which is written to y unless it is NULL. */
GT_INLINE float exponentials(float *y, const float *x, float shift, size_t n) {
  gt_sum16 sum = {0};
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t v = 0; v < GT_IN16; v++) {
      const gt_vf e = gt_exponential(*(const gt_vf *)(x + i + v * GT_LANES) - shift);
      if (y) *(gt_vf *)(y + i + v * GT_LANES) = e;
      sum.lanes[v] += e;
    }
  float total = gt_sum16_total(&sum);
  for (; i < n; i++) {
    const gt_vf e = gt_exponential(gt_take(x + i, 1) - shift);
    if (y) y[i] = e[0];
    total += e[0];
  }
  return total;
}

/* True if the label is the first of the largest. */
static bool is_best(const float *x, size_t label, float best) {
  if (!(x[label] == best)) return false;
  for (size_t i = 0; i < label; i++)
    if (x[i] == best) return false;
  return true;
}

static double xent(float *dx, const float *x, size_t label, size_t n, float scale,
                   size_t *correct) {
  const float best = largest_of(x, n), beyond = x[label] - best;
  const bool found = is_best(x, label, best);
  double sum = 0.0;
  for (size_t i = 0; i < n; i += CHUNK) {
    const size_t count = n - i < CHUNK ? n - i : CHUNK;
    sum += (double)(dx ? exponentials(dx + i, x + i, best, count)
                       : exponentials(NULL, x + i, best, count));
  }
  *correct += found && !isnan(sum);
  if (dx) {
    const float each = (float)((double)scale / sum);
    for (size_t i = 0; i < n; i++) dx[i] *= each;
    dx[label] -= scale;
  }
  return log(sum) - (double)beyond;
}

const gt_softmax_loops GT_FOR_ISA(gt_softmax_loops) = {.xent = xent};
