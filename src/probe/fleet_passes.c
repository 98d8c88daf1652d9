/* The time of a sample in every operation of a model: forward, backward-input and backward-weight
   apart, as stages of a pipeline run them.  Operations between which a pipeline cannot be cut count
   as one. */
#include <string.h>

#include "fleet.h"

#define TURNS  3 /* at least */
#define SPAN_S 2.0

typedef struct {
  gt_graph *graph;
  const gt_span *spans;
  size_t n;
  const gt_micro_batch *batch;
  gt_probe_passes *passes; /* n */
} bench;

size_t gt_probe_spans(const gt_graph *graph, gt_span *spans) {
  size_t n = 0, first = 0;
  for (size_t i = 0; i < gt_graph_operations(graph); i++) {
    if (!gt_graph_operation(graph, i).ends) continue;
    if (spans) spans[n] = (gt_span){first, i + 1};
    first = i + 1;
    n++;
  }
  return n;
}

/* Bytes of the micro-batch's output of a span; its gradient has as many. */
static size_t output_bytes(const bench *b, size_t span) {
  return b->batch->n * gt_graph_operation(b->graph, b->spans[span].end - 1).output_bytes;
}

static void keep(double *least_s, gt_ns from, size_t samples) {
  const double s = gt_seconds(gt_now() - from) / (double)samples;
  if (*least_s <= 0 || s < *least_s) *least_s = s;
}

static void forward(const bench *b, size_t span) {
  gt_metrics m;
  if (span > 0)
    memcpy(gt_graph_span_input(b->graph, span, 0), gt_graph_span_output(b->graph, span - 1, 0),
           output_bytes(b, span - 1));
  const gt_ns from = gt_now();
  gt_graph_forward(b->graph, span, 0, b->batch, true, &m);
  keep(&b->passes[span].forward_s, from, b->batch->n);
}

static void backward(const bench *b, size_t span) {
  if (span + 1 < b->n)
    memcpy(gt_graph_span_output_gradient(b->graph, span, 0),
           gt_graph_span_input_gradient(b->graph, span + 1, 0), output_bytes(b, span));
  gt_ns from = gt_now();
  gt_graph_backward_input(b->graph, span, 0, b->batch);
  keep(&b->passes[span].input_s, from, b->batch->n);
  from = gt_now();
  gt_graph_backward_weight(b->graph, span, 0, b->batch, true);
  keep(&b->passes[span].weight_s, from, b->batch->n);
}

/* The first turn finds cold caches. */
void gt_probe_passes_of(gt_graph *graph, const gt_span *spans, size_t n,
                        const gt_micro_batch *batch, gt_probe_passes *passes) {
  const bench b = {graph, spans, n, batch, passes};
  const gt_ns end = gt_now() + gt_from_seconds(SPAN_S);
  for (int turn = 0; turn <= TURNS || gt_now() < end; turn++) {
    if (turn <= 1) memset(passes, 0, n * sizeof *passes);
    for (size_t span = 0; span < n; span++) forward(&b, span);
    for (size_t span = n; span-- > 0;) backward(&b, span);
    gt_graph_gradients_end(graph);
  }
}
