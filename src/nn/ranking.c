/* The area under the ROC curve from ranks, and the scores of a model of two classes. */
#include <math.h>
#include <string.h>

#include "geotrain/nn.h"

/* ---- AUC ------------------------------------------------------------------------------------- */

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

/* Returns the sum over all pairs: 2 if the positive is above the negative, 1 if they are equal. */
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

/* ---- ranking metrics ------------------------------------------------------------------------- */

/* Metrics of evaluations, from one number for every sample: the AUC from scores; Recall@20 and
   MRR@20 from the ranks of the labels (as in Gupta et al. 2019, 4.2), which a float holds
   exactly. */

enum { BEST = 20 };

size_t gt_rank(const float *scores, size_t n, size_t label) {
  const float own = scores[label];
  size_t above = 0, none = 0;
  for (size_t k = 0; k < n; k++) none += isnan(scores[k]) ? 1 : 0;
  for (size_t k = 0; k < label; k++) above += scores[k] >= own;
  for (size_t k = label; k < n; k++) above += scores[k] > own;
  return none > 0 ? n + 1 : above + 1;
}

gt_ranks gt_ranks_none(void) {
  return (gt_ranks){NAN, NAN, NAN};
}

static void take_scores(const gt_graph *graph, const int32_t *labels, size_t n, float *numbers) {
  (void)labels;
  gt_graph_auc_scores(graph, n, numbers);
}

static gt_ranks judge_scores(const float *numbers, const int32_t *labels, size_t n,
                             uint32_t *scratch) {
  gt_ranks ranks = gt_ranks_none();
  ranks.auc = gt_auc(numbers, labels, n, scratch);
  return ranks;
}

static void take_ranks(const gt_graph *graph, const int32_t *labels, size_t n, float *numbers) {
  const size_t classes = gt_graph_outputs(graph);
  for (size_t i = 0; i < n; i++)
    numbers[i] = (float)gt_rank(gt_graph_scores(graph) + i * classes, classes, (size_t)labels[i]);
}

static gt_ranks judge_ranks(const float *numbers, const int32_t *labels, size_t n,
                            uint32_t *scratch) {
  (void)labels;
  (void)scratch;
  size_t found = 0;
  double inverse = 0.0;
  for (size_t i = 0; i < n; i++) {
    if (numbers[i] > (float)BEST) continue;
    found++;
    inverse += 1.0 / (double)numbers[i];
  }
  return (gt_ranks){
      .auc = NAN, .recall20 = (double)found / (double)n, .mrr20 = inverse / (double)n};
}

static const gt_ranking two_classes = {take_scores, judge_scores},
                        recommender = {take_ranks, judge_ranks};

const gt_ranking *gt_ranking_of(const char *model, size_t classes) {
  const gt_model *found = gt_model_find(model);
  if (found && found->ranks) return &recommender;
  return classes == 2 ? &two_classes : NULL;
}
