/* Plans the memory of activations and scratch once.  Times: operation i runs forward at i, the
   loss at n, operation i backward at 2n - i.  An output is in use from its forward to its backward
   pass, the model's output to the end; the loss may overwrite it by its gradient.  A gradient is in
   use from the backward pass that writes it to the one that reads it, so that gradients of distant
   layers share memory. */
#include "graph.h"

#define NONE SIZE_MAX

/* Readers and arena tickets of one operation. */
typedef struct {
  size_t readers[2]; /* operations that read the output */
  size_t nreaders;
  size_t y, dy[2], index, state;
} places;

static size_t floats_of(const gt_graph *graph, const gt_op *op) {
  return (graph->batch_max * op->out * gt_precision_bytes(op->type) + sizeof(float) - 1) /
         sizeof(float);
}

static void add_reader(const gt_graph *graph, places *p, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return;
  if (p[of].nreaders == 2) gt_bug("more than two operations read %s", graph->ops[of].name);
  p[of].readers[p[of].nreaders++] = reader;
}

static void find_readers(const gt_graph *graph, places *p) {
  for (size_t i = 0; i < graph->nops; i++) {
    add_reader(graph, p, graph->ops[i].input, i);
    add_reader(graph, p, graph->ops[i].second, i);
  }
  for (size_t i = 0; i < graph->nops; i++)
    if (p[i].nreaders == 2 && !graph->ops[i].kind->adds_gradients)
      gt_bug("two operations read %s, which adds no gradients", graph->ops[i].name);
}

/* Whether the operation writes its output over its input (back: the gradient of its input over the
   gradient of its output). */
static bool in_place(const gt_graph *graph, const places *p, size_t i, bool back) {
  const gt_op *op = &graph->ops[i];
  if (op->input == GT_SAMPLES || p[op->input].nreaders != 1 || op->in_type != op->type)
    return false;
  return op->kind->in_place || (back && op->kind->in_place_back);
}

/* An operation that works in place behind a ReLU must keep the signs of the ReLU's output, which
   mask its gradient. */
static void check_masks(const gt_graph *graph, const places *p, size_t reader) {
  if (graph->ops[reader].kind->keeps_signs) return;
  for (size_t i = reader; in_place(graph, p, i, false);) {
    i = graph->ops[i].input;
    if (graph->ops[i].relu)
      gt_bug("%s works in place and destroys what the gradient of %s is masked by",
             graph->ops[reader].name, graph->ops[i].name);
  }
}

/* The gradient of the samples is not computed.  So backward_input is not called for an operation on
   the samples, and its parameters need backward_weight. */
static void check_gradients(const gt_op *op) {
  if (op->input == GT_SAMPLES && op->weight != GT_NO_VIEW && !op->kind->backward_weight)
    gt_bug("%s reads the samples, and writes its gradients only beside that of what it reads",
           op->name);
}

static void check(const gt_graph *graph, const places *p) {
  for (size_t i = 0; i < graph->nops; i++) {
    check_masks(graph, p, i);
    check_gradients(&graph->ops[i]);
  }
}

static void reserve(gt_graph *graph, places *p) {
  const size_t n = graph->nops;
  size_t scores = n - 1; /* the operation whose output memory holds the model's output */
  while (in_place(graph, p, scores, false)) scores = graph->ops[scores].input;
  for (size_t i = 0; i < n; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t floats = floats_of(graph, op);
    p[i].y = in_place(graph, p, i, false)
                 ? p[op->input].y
                 : gt_arena_reserve_span(graph->arena, floats, i, i == scores ? 2 * n : 2 * n - i);
    p[i].index =
        op->kind->has_index ? gt_arena_reserve(graph->arena, graph->batch_max * op->out) : NONE;
    p[i].state = op->kind->state
                     ? gt_arena_reserve(graph->arena, op->kind->state(op, graph->batch_max))
                     : NONE;
  }
  for (size_t i = n; i-- > 0;) { /* readers come before what they read */
    const size_t parts = p[i].nreaders ? p[i].nreaders : 1;
    for (size_t k = 0; k < parts; k++) {
      const size_t reader = p[i].nreaders ? p[i].readers[k] : n; /* n: the loss */
      if (reader < n && graph->ops[reader].input == i && in_place(graph, p, reader, true)) {
        p[i].dy[k] = p[reader].dy[0];
        continue;
      }
      if (reader == n && graph->loss->in_place) {
        p[i].dy[k] = p[i].y;
        continue;
      }
      /* In use as long as any operation of an in-place chain may use it: at most down to the first
         operation of the chain. */
      size_t last = i;
      while (in_place(graph, p, last, true)) last = graph->ops[last].input;
      p[i].dy[k] = gt_arena_reserve_span(graph->arena, floats_of(graph, &graph->ops[i]),
                                         2 * n - reader, 2 * n - last);
    }
  }
}

/* Where operation `reader` writes the gradient of its input `of`. */
static void *gradient_for(const gt_graph *graph, const places *p, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return NULL;
  const size_t part = p[of].readers[0] == reader ? 0 : 1;
  return gt_arena_at(graph->arena, p[of].dy[part]);
}

static void assign(gt_graph *graph, const places *p) {
  for (size_t i = 0; i < graph->nops; i++) {
    gt_op *op = &graph->ops[i];
    gt_activation *a = &op->slots[0];
    a->y = gt_arena_at(graph->arena, p[i].y);
    a->dy = gt_arena_at(graph->arena, p[i].dy[0]);
    a->dy2 = p[i].nreaders == 2 ? gt_arena_at(graph->arena, p[i].dy[1]) : NULL;
    a->dx = gradient_for(graph, p, op->input, i);
    a->dsecond = gradient_for(graph, p, op->second, i);
    if (p[i].index != NONE) a->index = (uint32_t *)(void *)gt_arena_at(graph->arena, p[i].index);
    if (p[i].state != NONE) a->state = gt_arena_at(graph->arena, p[i].state);
  }
}

void gt_graph_plan(gt_graph *graph) {
  places *p = GT_NEW_ARRAY(places, graph->nops);
  size_t work = 0;
  graph->arena = gt_arena_create();
  find_readers(graph, p);
  check(graph, p);
  reserve(graph, p);
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t needs = op->kind->work ? op->kind->work(op, graph->batch_max) : 0;
    if (needs > work) work = needs;
  }
  const size_t scratch = gt_arena_reserve(graph->arena, work);
  gt_arena_commit(graph->arena);
  assign(graph, p);
  graph->work = gt_arena_at(graph->arena, scratch);
  gt_free(p);
}
