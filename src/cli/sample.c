/* Sampling with a temperature from the most probable ids. */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

static int by_logit(const void *a, const void *b) {
  const gt_cli_candidate *x = a, *y = b;
  if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
  return x->id < y->id ? -1 : 1;
}

static gt_status sort(const float *logits, size_t n, gt_cli_candidate *candidates) {
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(logits[i]))
      return GT_FAIL(GT_ERR_CKPT, "the model gives %g as logit of id %zu; expected finite numbers",
                     (double)logits[i], i);
    candidates[i] = (gt_cli_candidate){(double)logits[i], i};
  }
  qsort(candidates, n, sizeof *candidates, by_logit);
  return GT_OK;
}

gt_status gt_cli_sample(size_t *id, const float *logits, size_t n, const gt_cli_sampling *sampling,
                        gt_rng *rng, gt_cli_candidate *candidates) {
  const size_t top = sampling->top > 0 && sampling->top < n ? sampling->top : n;
  double sum = 0;
  GT_TRY(sort(logits, n, candidates));
  const double largest = candidates[0].logit;
  *id = candidates[0].id;
  if (!(sampling->temperature > 0)) return GT_OK;
  for (size_t i = 0; i < top; i++)
    sum += exp((candidates[i].logit - largest) / sampling->temperature);
  double left = gt_rng_uniform(rng) * sum;
  for (size_t i = 0; i < top; i++) {
    left -= exp((candidates[i].logit - largest) / sampling->temperature);
    if (left >= 0) continue;
    *id = candidates[i].id;
    return GT_OK;
  }
  return GT_OK; /* reached only by rounding */
}
