/* Plans the memory of activations and scratch once.  Times: operation i runs forward at i, the
   loss at n, operation i backward at 2n - i.  An output is in use from its forward to its backward
   pass, the model's output to the end; the loss may overwrite it by its gradient.  A gradient is in
   use from the backward pass that writes it to the one that reads it, so that gradients of distant
   layers share memory.  For slots see graph_slots.c. */
#include "graph.h"

#define NONE SIZE_MAX

/* Arena tickets of one operation. */
typedef struct {
  size_t y, dy[2], index, state;
} places;

/* An operation that works in place behind a ReLU must keep the signs of the ReLU's output, which
   mask its gradient. */
static void check_masks(const gt_graph *graph, size_t reader) {
  if (graph->ops[reader].kind->keeps_signs) return;
  for (size_t i = reader; gt_graph_in_place(graph, i, false);) {
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

static void check(const gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) {
    check_masks(graph, i);
    check_gradients(&graph->ops[i]);
  }
}

/* An operation with both keeps no ids in a fused step: the other reader of its table writes all
   rows. */
static size_t state_floats(const gt_op *op, size_t n) {
  return op->kind->state ? op->kind->state(op, n) : op->kind->ids(op, n);
}

static void reserve_outputs(gt_graph *graph, places *p) {
  const size_t n = graph->nops;
  size_t scores = n - 1; /* the operation whose output memory holds the model's output */
  while (gt_graph_in_place(graph, scores, false)) scores = graph->ops[scores].input;
  for (size_t i = 0; i < n; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t floats = gt_graph_output_floats(graph, op);
    p[i].y = gt_graph_in_place(graph, i, false)
                 ? p[op->input].y
                 : gt_arena_reserve_span(graph->arena, floats, i, i == scores ? 2 * n : 2 * n - i);
    p[i].index =
        op->kind->has_index ? gt_arena_reserve(graph->arena, graph->batch_max * op->out) : NONE;
    p[i].state = op->kind->state || op->kind->ids
                     ? gt_arena_reserve(graph->arena, state_floats(op, graph->batch_max))
                     : NONE;
  }
}

static void reserve_gradients(gt_graph *graph, places *p) {
  const size_t n = graph->nops;
  for (size_t i = n; i-- > 0;) { /* readers come before what they read */
    const gt_op *op = &graph->ops[i];
    const size_t parts = op->nreaders ? op->nreaders : 1;
    for (size_t k = 0; k < parts; k++) {
      const size_t reader = op->nreaders ? op->readers[k] : n; /* n: the loss */
      if (reader < n && graph->ops[reader].input == i && gt_graph_in_place(graph, reader, true)) {
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
      while (gt_graph_in_place(graph, last, true)) last = graph->ops[last].input;
      p[i].dy[k] = gt_arena_reserve_span(graph->arena, gt_graph_output_floats(graph, op),
                                         2 * n - reader, 2 * n - last);
    }
  }
}

/* Where operation `reader` writes the gradient of its input `of`. */
static void *gradient_for(const gt_graph *graph, const places *p, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return NULL;
  const size_t part = graph->ops[of].readers[0] == reader ? 0 : 1;
  return gt_arena_at(graph->arena, p[of].dy[part]);
}

static const void *output_of(const gt_graph *graph, const places *p, size_t of) {
  return of == GT_SAMPLES ? NULL : gt_arena_at(graph->arena, p[of].y);
}

static void assign(gt_graph *graph, const places *p) {
  for (size_t i = 0; i < graph->nops; i++) {
    gt_op *op = &graph->ops[i];
    gt_activation *a = &op->slots[0];
    a->x = output_of(graph, p, op->input);
    a->second = output_of(graph, p, op->second);
    a->y = gt_arena_at(graph->arena, p[i].y);
    a->dy = gt_arena_at(graph->arena, p[i].dy[0]);
    a->dy2 = op->nreaders == 2 ? gt_arena_at(graph->arena, p[i].dy[1]) : NULL;
    a->dx = gradient_for(graph, p, op->input, i);
    a->dsecond = gradient_for(graph, p, op->second, i);
    if (p[i].index != NONE) a->index = (uint32_t *)(void *)gt_arena_at(graph->arena, p[i].index);
    if (p[i].state != NONE) a->state = gt_arena_at(graph->arena, p[i].state);
    if (op->kind->ids && !op->kind->state)
      op->nonzero = (gt_rows){.ids = (int32_t *)(void *)a->state,
                              .capacity = op->kind->ids(op, graph->batch_max)};
  }
}

static void plan_step(gt_graph *graph) {
  places *p = GT_NEW_ARRAY(places, graph->nops);
  reserve_outputs(graph, p);
  reserve_gradients(graph, p);
  const size_t scratch = gt_arena_reserve(graph->arena, gt_graph_work_floats(graph));
  gt_arena_plan(graph->arena);
  if (!graph->sizes_only) {
    gt_arena_commit(graph->arena);
    assign(graph, p);
    graph->work = gt_arena_at(graph->arena, scratch);
  }
  gt_free(p);
}

void gt_graph_plan(gt_graph *graph) {
  const size_t slots = graph->slots ? graph->slots : 1;
  gt_graph_link(graph);
  check(graph);
  graph->arena = gt_arena_create();
  graph->activations = GT_NEW_ARRAY(gt_activation, graph->nops * slots);
  for (size_t i = 0; i < graph->nops; i++) graph->ops[i].slots = graph->activations + i * slots;
  if (graph->slots)
    gt_graph_plan_slots(graph);
  else
    plan_step(graph);
}
