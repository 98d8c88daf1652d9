/* The time of a sample in every operation of the model: forward, backward-input and backward-weight
   apart, as stages of a pipeline run them.  Operations between which a pipeline cannot be cut count
   as one. */
#include <math.h>
#include <string.h>

#include "fleet.h"
#include "geotrain/nn_span.h"

#define TURNS  3 /* at least */
#define SPAN_S 2.0

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

typedef struct {
  gt_probe_state *p;
  gt_graph *graph;
  gt_span *spans;
  size_t n; /* spans */
  gt_loader *loader;
  float *x;
  int32_t *y;
  gt_micro_batch batch;
} bench;

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status load(bench *b) {
  const gt_run *run = &b->p->run;
  const size_t n = run->batch;
  b->x = GT_NEW_ARRAY(float, n * run->data.h * run->data.w * run->data.c);
  b->y = GT_NEW_ARRAY(int32_t, n);
  GT_TRY(gt_setup_loader(run, n, &b->loader));
  gt_loader_range(b->loader, 0, n, b->x, b->y);
  b->batch = (gt_micro_batch){b->x, b->y, n};
  return GT_OK;
}

static gt_status open_bench(bench *b, gt_probe_state *p) {
  const gt_run *run = &p->run;
  gt_graph_spec spec = gt_setup_graph_spec(run);
  *b = (bench){.p = p, .n = gt_probe_spans(run->graph, NULL)};
  b->spans = GT_NEW_ARRAY(gt_span, b->n);
  gt_probe_spans(run->graph, b->spans);
  if (run->roles.is_ps) return GT_OK;
  spec.batch_max = run->batch;
  spec.slots = 1;
  spec.spans = b->spans;
  spec.nspans = b->n;
  spec.micros = 1;
  GT_TRY(gt_graph_create(&b->graph, &spec));
  gt_graph_init(b->graph, run->job->seed);
  gt_graph_prepare(b->graph, run->batch);
  return load(b);
}

static void close_bench(bench *b) {
  gt_graph_close(b->graph);
  gt_loader_close(b->loader);
  gt_free(b->spans);
  gt_free(b->x);
  gt_free(b->y);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Bytes of the micro-batch's output of a span; its gradient has as many. */
static size_t output_bytes(const bench *b, size_t span) {
  return b->batch.n * gt_graph_operation(b->graph, b->spans[span].end - 1).output_bytes;
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
  gt_graph_forward(b->graph, span, 0, &b->batch, true, &m);
  keep(&b->p->passes[span].forward_s, from, b->batch.n);
}

static void backward(const bench *b, size_t span) {
  if (span + 1 < b->n)
    memcpy(gt_graph_span_output_gradient(b->graph, span, 0),
           gt_graph_span_input_gradient(b->graph, span + 1, 0), output_bytes(b, span));
  gt_ns from = gt_now();
  gt_graph_backward_input(b->graph, span, 0, &b->batch);
  keep(&b->p->passes[span].input_s, from, b->batch.n);
  from = gt_now();
  gt_graph_backward_weight(b->graph, span, 0, &b->batch, true);
  keep(&b->p->passes[span].weight_s, from, b->batch.n);
}

/* The first turn finds cold caches. */
static void measure(const bench *b) {
  const gt_ns end = gt_now() + gt_from_seconds(SPAN_S);
  for (int turn = 0; turn <= TURNS || gt_now() < end; turn++) {
    if (turn == 1) memset(b->p->passes, 0, b->n * sizeof *b->p->passes);
    for (size_t span = 0; span < b->n; span++) forward(b, span);
    for (size_t span = b->n; span-- > 0;) backward(b, span);
    gt_graph_gradients_end(b->graph);
  }
}

/* ---- all ranks ------------------------------------------------------------------------------- */

static void gather(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  const int bytes = (int)(p->noperations * sizeof *p->passes);
  MPI_Request request;
  if (roles->world_rank == 0)
    p->all_passes = GT_NEW_ARRAY(gt_probe_passes, (size_t)roles->world_size * p->noperations);
  GT_MPI(MPI_Igather(p->passes, bytes, MPI_BYTE, p->all_passes, bytes, MPI_BYTE, 0, roles->world,
                     &request));
  gt_wait_all(&request, 1, "the operations' times of all workers", p->limit_s, NULL, NULL);
}

void gt_probe_operations(gt_probe_state *p) {
  bench b;
  const gt_status status = gt_agree(p->run.roles.world, open_bench(&b, p), p->limit_s);
  if (status == GT_OK) {
    p->noperations = b.n;
    p->passes = GT_NEW_ARRAY(gt_probe_passes, b.n);
    gt_probe_meet(p, "the other ranks before the operations");
    if (!p->run.roles.is_ps) measure(&b);
    gt_probe_meet(p, "the operations of other workers");
    gather(p);
  } else {
    snprintf(p->operations_error, sizeof p->operations_error, "%s", gt_error_text());
  }
  close_bench(&b);
}
