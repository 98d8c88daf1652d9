/* What evaluations compute from one number for every sample: the AUC from scores; Recall@20 and
   MRR@20 from the ranks of the labels (as in Gupta et al. 2019, 4.2), which a float holds exactly.
   */
#include <math.h>

#include "geotrain/nn.h"

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
