/* The area under the ROC curve from ranks, and the scores of a model of two classes. */
#include <math.h>
#include <string.h>

#include "geotrain/nn.h"

/* Maps a float to an unsigned number with the same order.  Both zeros map to the same number. */
static uint32_t key_of(float score) {
  uint32_t bits;
  score += 0.0F;
  memcpy(&bits, &score, sizeof bits);
  return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

/* Sorts keys that differ only in `bit` and lower bits, in place: keys without the bit are moved to
   the front, then each half is sorted by the next bit. */
static void sort(uint32_t *keys, size_t n, uint32_t bit) {
  while (n > 1 && bit) {
    size_t low = 0, high = n;
    while (low < high) {
      uint32_t key = keys[low];
      if (!(key & bit))
        low++;
      else {
        keys[low] = keys[--high];
        keys[high] = key;
      }
    }
    bit >>= 1;
    sort(keys, low, bit);
    keys += low;
    n -= low;
  }
}

/* The sum over all pairs: 2 if the positive is above the negative, 1 if they are equal. */
static uint64_t pairs_won(const uint32_t *positives, size_t npositives, const uint32_t *negatives,
                          size_t nnegatives) {
  uint64_t won = 0;
  size_t below = 0, upto = 0;
  for (size_t i = 0; i < npositives; i++) {
    while (below < nnegatives && negatives[below] < positives[i]) below++;
    while (upto < nnegatives && negatives[upto] <= positives[i]) upto++;
    won += below + upto;
  }
  return won;
}

double gt_auc(const float *scores, const int32_t *labels, size_t n, uint32_t *scratch) {
  size_t npositives = 0, nnegatives = 0;
  for (size_t i = 0; i < n; i++) {
    if (isnan(scores[i])) return NAN;
    scratch[labels[i] == 1 ? npositives++ : n - ++nnegatives] = key_of(scores[i]);
  }
  if (npositives == 0 || nnegatives == 0) return NAN;
  sort(scratch, npositives, 0x80000000U);
  sort(scratch + npositives, nnegatives, 0x80000000U);
  return (double)pairs_won(scratch, npositives, scratch + npositives, nnegatives) / 2 /
         (double)npositives / (double)nnegatives;
}

void gt_graph_auc_scores(const gt_graph *graph, size_t n, float *scores) {
  const float *logits = gt_graph_scores(graph);
  if (gt_graph_outputs(graph) == 1)
    memcpy(scores, logits, n * sizeof *scores);
  else
    for (size_t i = 0; i < n; i++) scores[i] = logits[2 * i + 1] - logits[2 * i];
}
