/* The members at the end of a run: the lead, the weights of their models in the mean, and the
   region that scores the mean on each test set. */
#include "ending.h"

static void find_tests(gt_ending_group *g, const gt_ps_tests *tests, size_t n) {
  bool *scored = GT_NEW_ARRAY(bool, n);
  for (size_t r = 0; r < n; r++) {
    const size_t first = tests[r].first;
    g->tests[r] = tests[r];
    g->tests[r].scores = g->member[r] && tests[first].scores && !scored[first];
    scored[first] |= g->tests[r].scores;
  }
  gt_free(scored);
}

void gt_ending_group_open(gt_ending_group *g, const gt_server *s) {
  const size_t n = s->run->job->nregions;
  double sum = 0;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  *g = (gt_ending_group){.epoch = (uint16_t)v.epoch,
                         .self = s->run->roles.region_id,
                         .lead = n,
                         .nregions = n,
                         .member = GT_NEW_ARRAY(bool, n),
                         .weights = GT_NEW_ARRAY(double, n),
                         .tests = GT_NEW_ARRAY(gt_ps_tests, n)};
  for (size_t r = 0; r < n; r++) {
    g->member[r] = gt_ps_is_member(s->ps, r);
    if (!g->member[r]) continue;
    if (g->lead == n) g->lead = r;
    g->nmembers++;
    g->weights[r] = s->weights[r];
    sum += s->weights[r];
  }
  /* those of all regions have the sum 1 already, but for rounding */
  for (size_t r = 0; r < n && g->nmembers < n; r++) g->weights[r] /= sum;
  find_tests(g, s->run->tests, n);
}

void gt_ending_group_close(gt_ending_group *g) {
  gt_free(g->member);
  gt_free(g->weights);
  gt_free(g->tests);
}

gt_ps_score gt_ending_score_of(const gt_region_result *r) {
  return (gt_ps_score){.loss = r->test_loss,
                       .accuracy = r->test_accuracy,
                       .auc = r->test_auc,
                       .recall20 = r->test_recall20,
                       .mrr20 = r->test_mrr20,
                       .perplexity = r->test_perplexity};
}

gt_ps_score gt_ending_total(const gt_ending_group *g, const gt_ps_score *scores,
                            gt_region_result *regions) {
  size_t sets = 0;
  for (size_t r = 0; r < g->nregions; r++) sets += g->tests[r].scores;
  for (size_t r = 0; r < g->nregions; r++) {
    const gt_ps_score *score = &scores[r];
    regions[r].mean = (gt_mean_result){0};
    if (sets > 1 && g->tests[r].scores)
      regions[r].mean = (gt_mean_result){.samples = (int64_t)g->tests[r].samples,
                                         .accuracy = score->accuracy,
                                         .loss = score->loss,
                                         .auc = score->auc,
                                         .recall20 = score->recall20,
                                         .mrr20 = score->mrr20,
                                         .perplexity = score->perplexity};
  }
  return gt_ps_scores_total(scores, g->tests, g->nregions);
}
