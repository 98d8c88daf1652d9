/* Passes over spans and slots: with any division into spans, any graphs that hold them, any slots
   and any order of the passes, gradients, running statistics and losses of a step of micro-batches
   have the bits of one graph that processes the micro-batches one after the other. */
#include "world_passes.h"

enum { SLOTS = 4, STEPS = 3 };

static gt_rng rng;

/* ---- a pipeline in one process --------------------------------------------------------------- */

/* Spans of a pipeline, each in one of some graphs, which may hold several. */
typedef struct {
  gt_graph *graphs[SPANS];
  size_t ngraphs, nspans, slots;
  gt_span spans[SPANS];
  size_t graph[SPANS], index[SPANS]; /* of each span */
  bool fused;
  float *lent[SPANS];
  void *outputs[SPANS][W_MICROS], *gradients[SPANS][W_MICROS]; /* of a span's output */
  gt_metrics metrics[W_MICROS];
} pipeline;

static size_t find_spans(const w_bench *b, const gt_graph *whole, gt_span *spans) {
  size_t n = 0, at = 0;
  for (; b->cuts[n]; at = spans[n++].end)
    spans[n] = (gt_span){at, w_operation(whole, b->cuts[n]) + 1};
  spans[n++] = (gt_span){at, gt_graph_operations(whole)};
  return n;
}

/* True if the span borrows a weight, whose owner must then be held, too: in these models the first
   operation. */
static bool borrows(const gt_graph *whole, const gt_span *span) {
  for (size_t i = span->first; i < span->end; i++)
    if (gt_graph_operation(whole, i).borrows != SIZE_MAX) return true;
  return false;
}

static void open_graph(pipeline *p, size_t g, const gt_graph *whole, gt_graph_spec spec) {
  gt_span held[SPANS];
  bool runs[SPANS];
  size_t n = 0;
  bool owner = false;
  for (size_t s = 0; s < p->nspans; s++)
    owner = owner || (p->graph[s] == g && borrows(whole, &p->spans[s]));
  for (size_t s = 0; s < p->nspans; s++) {
    if (p->graph[s] != g && !(s == 0 && owner)) continue;
    held[n] = p->graph[s] != g && gt_rng_below(&rng, 2) ? (gt_span){0, 1} : p->spans[s];
    runs[n] = p->graph[s] == g;
    if (runs[n]) p->index[s] = n;
    n++;
  }
  spec.spans = held, spec.runs = runs, spec.nspans = n;
  p->graphs[g] = w_graph(&spec);
  for (size_t k = 1; k <= spec.batch_max; k++) gt_graph_prepare(p->graphs[g], k);
}

/* graph: of each of the n spans. */
static void open_pipeline(pipeline *p, const gt_graph *whole, const gt_graph_spec *spec,
                          const gt_span *spans, size_t n, const size_t *graph) {
  *p = (pipeline){.nspans = n, .slots = spec->slots, .fused = spec->fused};
  for (size_t s = 0; s < n; s++) {
    p->spans[s] = spans[s];
    p->graph[s] = graph[s];
    if (graph[s] + 1 > p->ngraphs) p->ngraphs = graph[s] + 1;
    const size_t bytes = gt_graph_operation(whole, spans[s].end - 1).output_bytes * spec->batch_max;
    for (size_t j = 0; j < W_MICROS; j++) {
      p->outputs[s][j] = gt_alloc(bytes, 1);
      p->gradients[s][j] = gt_alloc(bytes, 1);
    }
  }
  for (size_t g = 0; g < p->ngraphs; g++) open_graph(p, g, whole, *spec);
}

/* Lends gradients in memory of the caller, with any values. */
static void lend(pipeline *p) {
  for (size_t g = 0; g < p->ngraphs; g++) {
    const size_t n = gt_graph_arrays(p->graphs[g])->grads.n;
    p->lent[g] = GT_NEW_ARRAY(float, n);
    for (size_t i = 0; i < n; i++) p->lent[g][i] = NAN;
    gt_graph_adopt(p->graphs[g], NULL, p->lent[g], NULL);
  }
}

static void close_pipeline(pipeline *p) {
  for (size_t g = 0; g < p->ngraphs; g++) {
    gt_graph_close(p->graphs[g]);
    gt_free(p->lent[g]);
  }
  for (size_t s = 0; s < p->nspans; s++)
    for (size_t j = 0; j < W_MICROS; j++) {
      gt_free(p->outputs[s][j]);
      gt_free(p->gradients[s][j]);
    }
}

/* ---- a step in any order --------------------------------------------------------------------- */

typedef enum { F, B, W, BW, KINDS } kind;
typedef struct {
  kind kind;
  size_t span, micro;
} pass;

/* The progress of each span: the next micro-batch of F and of W, whether B is done; the slot of
   each micro-batch. */
typedef struct {
  size_t next[SPANS][KINDS];
  bool done[SPANS][W_MICROS];
  size_t slot[SPANS][W_MICROS];
  bool taken[SPANS][SLOTS];
} progress;

static size_t bytes_of(const pipeline *p, size_t span, const gt_micro_batch *micro) {
  return gt_graph_operation(p->graphs[0], p->spans[span].end - 1).output_bytes * micro->n;
}

/* Overwrites memory that no pass needs any more, or yet. */
static void spoil(pipeline *p, const pass *x, size_t slot) {
  gt_graph *graph = p->graphs[p->graph[x->span]];
  const gt_graph_span *span = &graph->spans[p->index[x->span]];
  memset(graph->shared, 0xff, graph->shared_floats * sizeof(float));
  if (x->kind == F) memset(span->memory + slot * span->floats, 0xff, span->floats * sizeof(float));
}

static size_t free_slot(const pipeline *p, const progress *at, size_t span) {
  size_t all[SLOTS], n = 0;
  for (size_t k = 0; k < p->slots; k++)
    if (!at->taken[span][k]) all[n++] = k;
  return n ? all[gt_rng_below(&rng, n)] : SIZE_MAX;
}

/* Lists the passes that can run. */
static size_t possible(const pipeline *p, const progress *at, size_t m, pass *all) {
  size_t n = 0;
  for (size_t s = 0; s < p->nspans; s++) {
    const size_t f = at->next[s][F], w = at->next[s][W];
    if (f < m && (s == 0 || at->next[s - 1][F] > f) && free_slot(p, at, s) != SIZE_MAX)
      all[n++] = (pass){F, s, f};
    for (size_t j = w; j < f; j++) {
      if (at->done[s][j] || (s + 1 < p->nspans && !at->done[s + 1][j])) continue;
      if (!p->fused) all[n++] = (pass){B, s, j};
      if (j == w) all[n++] = (pass){BW, s, j};
    }
    if (w < m && at->done[s][w]) all[n++] = (pass){W, s, w};
  }
  return n;
}

static void run_forward(pipeline *p, const pass *x, gt_graph *graph, size_t slot,
                        const gt_micro_batch *micro) {
  const size_t span = p->index[x->span];
  gt_metrics metrics = {.loss_sum = 5};
  if (x->span > 0)
    memcpy(gt_graph_span_input(graph, span, slot), p->outputs[x->span - 1][x->micro],
           bytes_of(p, x->span - 1, micro));
  gt_graph_forward(graph, span, slot, micro, true, &metrics);
  if (x->span + 1 == p->nspans) {
    p->metrics[x->micro] = metrics;
    return;
  }
  assert_true(metrics.loss_sum == 0 && metrics.samples == 0);
  memcpy(p->outputs[x->span][x->micro], gt_graph_span_output(graph, span, slot),
         bytes_of(p, x->span, micro));
}

static void run_backward(pipeline *p, const pass *x, gt_graph *graph, size_t slot,
                         const gt_micro_batch *micro) {
  const size_t span = p->index[x->span];
  void *to = gt_graph_span_output_gradient(graph, span, slot);
  assert_true((to == NULL) == (x->span + 1 == p->nspans));
  if (to) memcpy(to, p->gradients[x->span][x->micro], bytes_of(p, x->span, micro));
  if (x->kind == B)
    gt_graph_backward_input(graph, span, slot, micro);
  else
    gt_graph_backward(graph, span, slot, micro, x->micro == 0);
  if (x->span > 0)
    memcpy(p->gradients[x->span - 1][x->micro], gt_graph_span_input_gradient(graph, span, slot),
           bytes_of(p, x->span - 1, micro));
}

static void run_pass(pipeline *p, progress *at, const pass *x, const gt_micro_batch *micro) {
  gt_graph *graph = p->graphs[p->graph[x->span]];
  size_t *slot = &at->slot[x->span][x->micro];
  if (x->kind == F) *slot = free_slot(p, at, x->span);
  spoil(p, x, *slot);
  if (x->kind == F)
    run_forward(p, x, graph, *slot, micro);
  else if (x->kind == W)
    gt_graph_backward_weight(graph, p->index[x->span], *slot, micro, x->micro == 0);
  else
    run_backward(p, x, graph, *slot, micro);
  at->taken[x->span][*slot] = x->kind == F || x->kind == B;
  if (x->kind == F) at->next[x->span][F]++;
  if (x->kind == B || x->kind == BW) at->done[x->span][x->micro] = true;
  if (x->kind == W || x->kind == BW) at->next[x->span][W]++;
}

static void run_step(pipeline *p, const w_micros *d) {
  static pass all[SPANS * (W_MICROS + 2) * 2];
  progress at = {0};
  size_t n;
  const int64_t allocated = gt_alloc_total();
  while ((n = possible(p, &at, d->m, all)) > 0) {
    const pass *x = &all[gt_rng_below(&rng, n)];
    run_pass(p, &at, x, &d->micro_batches[x->micro]);
  }
  for (size_t s = 0; s < p->nspans; s++) assert_int_equal(at.next[s][W], d->m);
  for (size_t g = 0; g < p->ngraphs; g++) gt_graph_gradients_end(p->graphs[g]);
  assert_int_equal(gt_alloc_total(), allocated);
}

/* ---- results --------------------------------------------------------------------------------- */

static const gt_view *view_of(const gt_view *views, size_t n, const char *name) {
  for (size_t v = 0; v < n; v++)
    if (strcmp(views[v].name, name) == 0) return &views[v];
  return NULL;
}

/* True if the operation of the tensor runs in this graph, which holds some spans of the whole
   model. */
static bool runs_here(const gt_graph *graph, const char *tensor) {
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    for (size_t v = op->params_first; v < op->params_end; v++)
      if (strcmp(graph->params.views[v].name, tensor) == 0) return gt_graph_runs(graph, op);
  }
  return false;
}

/* Gathers the model's gradients: each tensor's from the graph that runs its operation, plus that of
   a borrower in another graph, which holds the tensor without running its owner.  Graphs of
   borrowers come last. */
static void gather(const pipeline *p, const gt_arrays *whole, float *out) {
  for (int borrowed = 0; borrowed < 2; borrowed++)
    for (size_t g = 0; g < p->ngraphs; g++) {
      const gt_arrays *a = gt_graph_arrays(p->graphs[g]);
      for (size_t v = 0; v < a->nviews; v++) {
        const gt_view *from = &a->views[v], *to = view_of(whole->views, whole->nviews, from->name);
        const bool runs = runs_here(p->graphs[g], from->name);
        const bool table = strcmp(from->name, "transformer.wte.weight") == 0 ||
                           strcmp(from->name, "embedding.weight") == 0;
        assert_int_equal(from->count, to->count);
        for (size_t i = 0; i < from->count; i++) {
          const float value = a->grads.data[from->offset + i];
          if (runs && !borrowed) out[to->offset + i] = value;
          if (!runs && table && borrowed) out[to->offset + i] += value;
        }
      }
    }
}

/* Copies the whole model's values, of params or buffers, to each graph. */
static void scatter(const pipeline *p, const gt_arrays *whole) {
  for (size_t g = 0; g < p->ngraphs; g++) {
    const gt_arrays *a = gt_graph_arrays(p->graphs[g]);
    for (size_t v = 0; v < a->nviews; v++) {
      const gt_view *to = &a->views[v], *from = view_of(whole->views, whole->nviews, to->name);
      memcpy(a->params.data + to->offset, whole->params.data + from->offset,
             to->count * sizeof(float));
    }
  }
}

static void check_buffers(const pipeline *p, const gt_arrays *whole) {
  for (size_t g = 0; g < p->ngraphs; g++) {
    const gt_arrays *a = gt_graph_arrays(p->graphs[g]);
    for (size_t v = 0; v < a->nbuffer_views; v++) {
      const gt_view *is = &a->buffer_views[v],
                    *right = view_of(whole->buffer_views, whole->nbuffer_views, is->name);
      assert_memory_equal(a->buffers.data + is->offset, whole->buffers.data + right->offset,
                          is->count * sizeof(float));
    }
  }
}

static void check_bits(const float *found, const float *right, const gt_arrays *a,
                       const char *what) {
  for (size_t v = 0; v < a->nviews; v++) {
    const size_t at = a->views[v].offset;
    if (memcmp(found + at, right + at, a->views[v].count * sizeof(float)) == 0) continue;
    for (size_t i = 0; i < a->views[v].count; i++)
      if (memcmp(found + at + i, right + at + i, sizeof(float)) != 0)
        fail_msg("%s: %s[%zu] is %.9g, right is %.9g", what, a->views[v].name, i,
                 (double)found[at + i], (double)right[at + i]);
  }
}

/* ---- the laws -------------------------------------------------------------------------------- */

enum { WHOLE, APART, FOLDED, FUSED, SEVERAL, LENT, VARIANTS };
static const char *const names[VARIANTS] = {"one span",           "a graph a span",
                                            "two graphs, folded", "fused backward",
                                            "one graph",          "lent gradients"};

static void open_variant(pipeline *p, int variant, const gt_graph *whole, gt_graph_spec spec,
                         const gt_span *spans, size_t n) {
  const gt_span all = {0, gt_graph_operations(whole)};
  size_t graph[SPANS] = {0};
  for (size_t s = 0; s < n; s++)
    graph[s] = variant == FOLDED                        ? s > 0 && s + 1 < n
               : variant == WHOLE || variant == SEVERAL ? 0
                                                        : s;
  spec.slots = variant == WHOLE ? 3 : 1 + gt_rng_below(&rng, SLOTS);
  spec.micro_batches =
      gt_rng_below(&rng, 2) ? W_MICROS : 2; /* with more, w_pass_tables are cleared as a whole */
  spec.fused = variant == FUSED;
  open_pipeline(p, whole, &spec, variant == WHOLE ? &all : spans, variant == WHOLE ? 1 : n, graph);
  if (variant == LENT) lend(p);
}

static void check_laws(const w_bench *b, const char *table, gt_precision precision) {
  gt_graph_spec spec = w_spec_of(b, table, precision);
  spec.slots = 1, spec.micro_batches = W_MICROS;
  gt_graph *judge = w_graph(&spec);
  const gt_arrays *whole = gt_graph_arrays(judge);
  gt_span spans[SPANS];
  const size_t n = find_spans(b, judge, spans);
  gt_metrics right[W_MICROS];
  float *grads = GT_NEW_ARRAY(float, whole->grads.n);
  w_micros d = w_open_data(b);
  pipeline p[VARIANTS];
  const int first = b->large ? FUSED : WHOLE, steps = b->large ? 2 : STEPS;
  gt_graph_init(judge, 5);
  for (int v = first; v < VARIANTS; v++) {
    open_variant(&p[v], v, judge, spec, spans, n);
    for (size_t g = 0; g < p[v].ngraphs; g++) gt_graph_init(p[v].graphs[g], 5);
  }
  for (int step = 0; step < steps; step++) {
    w_draw(b, &rng, &d, 1 + gt_rng_below(&rng, W_MICROS), gt_graph_least(judge));
    w_judge_step(judge, &d, right);
    for (int v = first; v < VARIANTS; v++) {
      run_step(&p[v], &d);
      gather(&p[v], whole, grads);
      check_bits(grads, whole->grads.data, whole, names[v]);
      check_buffers(&p[v], whole);
      for (size_t j = 0; j < d.m; j++) {
        assert_true(p[v].metrics[j].loss_sum == right[j].loss_sum);
        assert_int_equal(p[v].metrics[j].correct, right[j].correct);
        assert_int_equal(p[v].metrics[j].samples, d.micro_batches[j].n);
      }
    }
    gt_vec_axpy(whole->params, -0.1F, whole->grads);
    for (int v = first; v < VARIANTS; v++) scatter(&p[v], whole);
  }
  for (int v = first; v < VARIANTS; v++) close_pipeline(&p[v]);
  w_close_data(&d);
  gt_free(grads);
  gt_graph_close(judge);
}

static void same_bits_in_any_order(void) {
  for (size_t t = 0; t < COUNT(w_pass_tables); t++)
    for (size_t b = 0; b < W_BENCHES; b++)
      for (size_t again = 0; again < cases(3, 1); again++) {
        if (!gt_kernels_find(w_pass_tables[t]) || (w_benches[b].large && (again > 0 || t != 1)))
          continue;
        check_laws(&w_benches[b], w_pass_tables[t], GT_F32);
      }
}

static void in_bf16(void) {
  const char *why;
  if (!gt_kernels_bf16(&why)) skip();
  for (size_t b = 0; b < W_BENCHES; b++)
    if (strcmp(w_benches[b].model, "gpt") == 0 || strcmp(w_benches[b].model, "resnet18") == 0)
      check_laws(&w_benches[b], "auto", GT_BF16);
}

int main(void) {
  rng = gt_rng_make(11, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, same_bits_in_any_order, in_bf16);
}
