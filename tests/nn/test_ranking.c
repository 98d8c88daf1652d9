/* Ranks of labels, with ties and NaN; Recall@20 and MRR@20 against their definitions; and the
   metrics of each model. */
#include "tests.h"
#include "geotrain/nn.h"

static void ranks(void) {
  const float scores[] = {3, 1, 3, -2, 3, 7};
  const size_t right[] = {2, 5, 3, 6, 4, 1};
  for (size_t i = 0; i < 6; i++) assert_int_equal(gt_rank(scores, 6, i), right[i]);
  const float odd[] = {-INFINITY, 0, INFINITY}, none[] = {1, NAN, 0};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(gt_rank(odd, 3, i), 3 - i);
    assert_int_equal(gt_rank(none, 3, i), 4); /* never among the best */
  }
  assert_int_equal(gt_rank(scores, 1, 0), 1);
}

/* Every label has one rank, and the ranks are 1 to n. */
static void ranks_are_an_order(void) {
  enum { N = 300 };
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  float scores[N];
  bool seen[N + 1] = {false};
  for (size_t i = 0; i < N; i++) scores[i] = (float)gt_rng_below(&rng, 40);
  for (size_t i = 0; i < N; i++) {
    const size_t rank = gt_rank(scores, N, i);
    assert_true(rank >= 1 && rank <= N && !seen[rank]);
    seen[rank] = true;
  }
}

/* A recommender's scores of random sessions. */
static void recall_and_mrr(void) {
  enum { N = 64, T = 4, V = 90 };
  gt_graph *graph = NULL;
  gt_metrics metrics;
  int32_t ids[N * T], labels[N];
  float numbers[N];
  gt_rng rng = gt_rng_make(4, GT_RNG_TEST, 0, 0);
  const gt_graph_spec spec = {.model = "niser",
                              .options = {.hidden = 8},
                              .shape = {1, 1, T, V, V + 1},
                              .batch_max = N,
                              .kernels = gt_kernels_find("auto")};
  must(gt_graph_create(&graph, &spec));
  gt_graph_init(graph, 1);
  for (size_t i = 0; i < N * T; i++) ids[i] = 1 + (int32_t)gt_rng_below(&rng, V);
  for (size_t i = 0; i < N; i++) labels[i] = (int32_t)gt_rng_below(&rng, V);
  gt_graph_step(graph, ids, labels, N, false, &metrics);
  const gt_ranking *ranking = gt_ranking_of("niser", V);
  ranking->take(graph, labels, N, numbers);
  const gt_ranks found = ranking->judge(numbers, labels, N, NULL);
  double hits = 0, inverse = 0, first = 0;
  for (size_t i = 0; i < N; i++) {
    const float *scores = gt_graph_scores(graph) + i * V;
    size_t above = 0;
    for (size_t k = 0; k < V; k++) above += scores[k] > scores[labels[i]];
    hits += above < 20;
    inverse += above < 20 ? 1.0 / (double)(above + 1) : 0.0;
    first += above == 0;
  }
  assert_true(hits > 0 && hits < N);
  assert_true(found.recall20 == hits / N && fabs(found.mrr20 - inverse / N) < 1e-12);
  assert_true(isnan(found.auc) && (double)metrics.correct == first);
  gt_graph_close(graph);
}

static void which_models(void) {
  assert_null(gt_ranking_of("lenet5", 10));
  assert_non_null(gt_ranking_of("deepfm", 2));
  assert_ptr_equal(gt_ranking_of("lstm", 2), gt_ranking_of("deepfm", 2));
  assert_ptr_not_equal(gt_ranking_of("niser", 2), gt_ranking_of("deepfm", 2));
  const gt_ranks none = gt_ranks_none();
  assert_true(isnan(none.auc) && isnan(none.recall20) && isnan(none.mrr20));
}

TESTS(ranks, ranks_are_an_order, recall_and_mrr, which_models)
