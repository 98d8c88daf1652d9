/* Time of a training step (forward, backward, SGD with momentum) of a model on one thread: prints one line "median_ms min_ms" over ROUNDS.
   Usage: step [MODEL [BATCH [ROUNDS [KERNELS]]]]; what the peer does is in step.py. */
#include <stdio.h>
#include <stdlib.h>

#include "geotrain/nn.h"

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  const char *model = argc > 1 ? argv[1] : "lenet5", *kernels_name = argc > 4 ? argv[4] : "auto";
  const size_t batch = argc > 2 ? (size_t)atol(argv[2]) : 64, rounds = argc > 3 ? (size_t)atol(argv[3]) : 200;
  const gt_sample_shape shape = {28, 28, 1, 10, 0};
  const gt_optim_spec spec = {.name = "sgd", .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.01}, .momentum = 0.9};
  const gt_kernels *kernels = gt_kernels_find(kernels_name);
  gt_graph *graph;
  gt_optim *optim;
  if (batch == 0 || rounds == 0 || !kernels ||
      gt_graph_create(&graph, &(gt_graph_spec){.model = model, .shape = shape, .batch_max = batch, .kernels = kernels}) != GT_OK) {
    fprintf(stderr, "usage: step [MODEL [BATCH [ROUNDS [auto|blas|ref]]]]  (%s)\n", gt_error_text());
    return 2;
  }
  const gt_arrays *arrays = gt_graph_arrays(graph);
  if (gt_optim_create(&optim, &spec, arrays->params.n, true) != GT_OK) return 1;
  gt_graph_init(graph, 1);
  float *x = GT_NEW_ARRAY(float, batch *shape.h *shape.w *shape.c);
  int32_t *labels = GT_NEW_ARRAY(int32_t, batch);
  double *times_ms = GT_NEW_ARRAY(double, rounds);
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < batch * shape.h * shape.w * shape.c; i++) x[i] = (float)gt_rng_normal(&rng);
  for (size_t i = 0; i < batch; i++) labels[i] = (int32_t)gt_rng_below(&rng, shape.classes);
  gt_metrics metrics;
  for (size_t i = 0; i < rounds + 10; i++) {
    const gt_ns start = gt_now();
    gt_graph_step(graph, x, labels, batch, true, &metrics);
    gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
    if (i >= 10) times_ms[i - 10] = gt_seconds(gt_now() - start) * 1e3;
  }
  qsort(times_ms, rounds, sizeof *times_ms, by_value);
  printf("%.4f %.4f\n", times_ms[rounds / 2], times_ms[0]);
  fprintf(stderr, "%s, OpenBLAS core %s, loss %.4f\n", gt_graph_kernels(graph), gt_kernels_blas_core(), metrics.loss_sum / (double)batch);
  gt_free(times_ms);
  gt_free(labels);
  gt_free(x);
  gt_optim_close(optim);
  gt_graph_close(graph);
  return 0;
}
