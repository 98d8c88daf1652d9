/* DeepFM (Guo, Tang, Ye, Li and He 2017, eq. 1): one logit, for the second of two classes: the sum
   of a factorization machine and of a multilayer perceptron on the same vectors of ids.  The
   defaults are the paper's layers of 400-400-400 and vectors of 10, without its dropout of 0.5. */
#include "graph.h"
#include "models.h"

#define DEVIATION 0.01

static gt_status check(const gt_sample_shape *shape, const gt_model_options *options) {
  if (shape->classes != 2)
    return GT_FAIL(
        GT_ERR_DATA,
        "samples are of %zu classes; model deepfm needs 2, because its one output is the "
        "probability of the second",
        shape->classes);
  return gt_model_check_width("embedding", options->embedding, 0);
}

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  static const int64_t usual[] = {400, 400, 400};
  GT_TRY(check(shape, options));
  graph->loss = &gt_loss_logistic;
  graph->outputs = 1;
  gt_graph_add_embedding(graph, "embedding", options->embedding ? (size_t)options->embedding : 10,
                         DEVIATION);
  const size_t vectors = gt_graph_last(graph);
  gt_graph_add_fm(graph, "fm", "linear");
  const size_t fm = gt_graph_last(graph);
  gt_graph_from(graph, vectors);
  GT_TRY(gt_model_add_mlp(graph, options, usual, sizeof usual / sizeof *usual, 1));
  gt_graph_add_sum(graph, "logit", fm);
  return GT_OK;
}

const gt_model gt_model_deepfm = {
    .name = "deepfm",
    .source = "Guo, Tang, Ye, Li, He 2017: DeepFM: A Factorization-Machine based Neural Network "
              "for CTR Prediction; initial "
              "values, which the "
              "paper does not say: vectors normal, deviation 0.01; weights of the first order and "
              "bias 0, as libFM (Rendle 2012); linear: PyTorch's "
              "default",
    .usual = {1, 1, 10, 2, 5382},
    .embeds = true,
    .layered = true,
    .drops = true,
    .ids = true,
    .build = build,
};
