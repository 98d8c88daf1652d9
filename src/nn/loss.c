/* The losses of models. */
#include "graph.h"

static void softmax(const gt_graph *graph, float *dx, const float *x, const void *samples,
                    const int32_t *labels, size_t n, gt_metrics *metrics) {
  (void)samples;
  metrics->loss_sum =
      graph->kernels->softmax_xent(dx, x, labels, n, graph->classes, &metrics->correct);
}

static void logistic(const gt_graph *graph, float *dx, const float *x, const void *samples,
                     const int32_t *labels, size_t n, gt_metrics *metrics) {
  (void)samples;
  metrics->loss_sum = graph->kernels->logistic(dx, x, labels, n, &metrics->correct);
}

static void next(const gt_graph *graph, float *dx, const float *x, const void *samples,
                 const int32_t *labels, size_t n, gt_metrics *metrics) {
  const size_t T = graph->predictions;
  (void)labels;
  metrics->loss_sum =
      graph->kernels->next_xent(dx, x, samples, n, T, graph->outputs, &metrics->correct) /
      (double)T;
}

const gt_loss gt_loss_softmax = {.run = softmax};
const gt_loss gt_loss_logistic = {.run = logistic};
const gt_loss gt_loss_next = {.in_place = true, .run = next};
