/* A multilayer perceptron with ReLU, for tables and images: the baseline for tables of Gorishniy,
   Rubachev, Khrulkov and Babenko 2021 (eq. 1): dropout follows each ReLU. */
#include <stdio.h>

#include "graph.h"
#include "models.h"

gt_status gt_model_add_mlp(gt_graph *graph, const gt_model_options *options, const int64_t *usual,
                           size_t n, size_t outputs) {
  const int64_t *mlp = options->mlp ? options->mlp : usual;
  const size_t layers = options->mlp ? options->nmlp : n;
  char name[48];
  for (size_t i = 0; i < layers; i++) {
    snprintf(name, sizeof name, "mlp.%zu", i);
    GT_TRY(gt_model_check_width(name, mlp[i], 1));
    snprintf(name, sizeof name, "mlp.%zu", 2 * i);
    gt_graph_add_linear(graph, name, (size_t)mlp[i]);
    snprintf(name, sizeof name, "mlp.%zu", 2 * i + 1);
    gt_graph_add_relu(graph, name);
    gt_graph_add_dropout(graph, "mlp.dropout", options->dropout);
  }
  snprintf(name, sizeof name, "mlp.%zu", 2 * layers);
  gt_graph_add_linear(graph, name, outputs);
  return GT_OK;
}

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  static const int64_t usual[] = {256, 256};
  return gt_model_add_mlp(graph, options, usual, sizeof usual / sizeof *usual, shape->classes);
}

const gt_model gt_model_mlp = {
    .name = "mlp",
    .source = "Gorishniy, Rubachev, Khrulkov, Babenko 2021: Revisiting Deep Learning Models for "
              "Tabular Data, its MLP; initial values: PyTorch's default",
    .usual = {1, 1, 20, 2, 0},
    .layered = true,
    .drops = true,
    .build = build,
};
