/* Plans the memory of a graph once: for steps, or for slots.  Both plans need the readers of each
   output, the operations in place, and the sizes of outputs and scratch. */
#include "graph.h"

/* ---- readers and sizes ----------------------------------------------------------------------- */

static void add_reader(gt_graph *graph, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return;
  gt_op *op = &graph->ops[of];
  if (op->nreaders == 2) gt_bug("more than two operations read %s", op->name);
  op->readers[op->nreaders++] = reader;
}

void gt_graph_link(gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) graph->ops[i].nreaders = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    add_reader(graph, graph->ops[i].input, i);
    add_reader(graph, graph->ops[i].second, i);
  }
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].nreaders == 2 && !graph->ops[i].kind->adds_gradients)
      gt_bug("two operations read %s, which adds no gradients", graph->ops[i].name);
}

/* True if the operation writes its output over its input (back: the gradient of its input over the
   gradient of its output). */
static bool in_place(const gt_graph *graph, size_t i, bool back) {
  const gt_op *op = &graph->ops[i];
  if (op->input == GT_SAMPLES || graph->ops[op->input].nreaders != 1 || op->in_type != op->type)
    return false;
  return op->kind->in_place || (back && op->kind->in_place_back);
}

static size_t output_floats(const gt_graph *graph, const gt_op *op) {
  return (graph->batch_max * op->out * gt_precision_bytes(op->type) + sizeof(float) - 1) /
         sizeof(float);
}

/* Returns the floats of scratch shared by the operations with passes here. */
static size_t work_floats(const gt_graph *graph) {
  size_t work = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t needs =
        op->kind->work && gt_graph_runs(graph, op) ? op->kind->work(op, graph->batch_max) : 0;
    if (needs > work) work = needs;
  }
  return work;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Plans the memory of passes over spans.  Each span has a block of memory in each slot, with one
   layout.  With L operations, its times are: forward 0 to L - 1, the loss L, backward_input L + 1
   to 2 L (the last operation first), backward_weight 2 L + 1 to 3 L, the end of the slot 3 L + 1; a
   fused backward pass has both at the times of backward_input.  Memory used within one pass only is
   shared by all spans and slots, because one pass runs at a time.  A gradient of an output that
   backward_weight reads lives until then, so the gradient of the input does not overwrite it unless
   the backward pass is fused. */

#define NONE SIZE_MAX

/* Memory in use from one time of a span to another. */
typedef struct {
  size_t floats, from, to, ticket;
  bool stays; /* in the slot, even if it is in use in one pass only */
  bool shared;
} piece;

/* Indices of an operation's pieces; of the one before the span, output and gradients only. */
typedef struct {
  size_t y, dy[2], index, state, kept;
} slot_places;

typedef struct {
  gt_graph *graph;
  gt_span ops;
  bool loss;     /* the loss follows the last operation */
  piece *pieces; /* (most_pieces) */
  size_t n;
  slot_places before, *of; /* of: of the model's operations */
  gt_arena *slot, *all;
} plan;

static size_t length(const plan *p) {
  return p->ops.end - p->ops.first;
}

static size_t time_forward(const plan *p, size_t i) {
  return i - p->ops.first;
}

static size_t time_input(const plan *p, size_t i) {
  return length(p) + p->ops.end - i;
}

static size_t time_weight(const plan *p, size_t i) {
  return time_input(p, i) + (p->graph->fused ? 0 : length(p));
}

static size_t time_end(const plan *p) {
  return 3 * length(p) + 1;
}

/* Returns the largest number of pieces: per operation output, two gradients, index, state, kept
   gradient; three before the span. */
static size_t most_pieces(const plan *p) {
  return 6 * length(p) + 3;
}

static size_t pass_at(const plan *p, size_t time) {
  return time <= length(p) ? 0 : (time - 1) / length(p);
}

static size_t add(plan *p, size_t floats, size_t from) {
  p->pieces[p->n] = (piece){.floats = floats, .from = from, .to = from};
  return p->n++;
}

static void extend(plan *p, size_t at, size_t to) {
  if (to > p->pieces[at].to) p->pieces[at].to = to;
}

/* Returns the pieces of operation `of`: in the span, or of the operation before it. */
static slot_places *places_of(plan *p, size_t of) {
  return of < p->ops.first ? &p->before : &p->of[of];
}

static size_t add_output(plan *p, size_t i, size_t from) {
  return add(p, output_floats(p->graph, &p->graph->ops[i]), from);
}

static void add_forward(plan *p, size_t i) {
  const gt_op *op = &p->graph->ops[i];
  const size_t batch = p->graph->batch_max, now = time_forward(p, i);
  slot_places *own = &p->of[i];
  own->y = in_place(p->graph, i, false) ? places_of(p, op->input)->y : add_output(p, i, now);
  if (op->input != GT_SAMPLES) extend(p, places_of(p, op->input)->y, now);
  if (op->second != GT_SAMPLES) extend(p, places_of(p, op->second)->y, now);
  own->index = op->kind->has_index ? add(p, batch * op->out, now) : NONE;
  own->state = op->kind->state ? add(p, op->kind->state(op, batch), now) : NONE;
}

/* Extends the pieces that a backward pass reads at this time; what: GT_READS_. */
static void read_back(plan *p, size_t i, unsigned what, size_t now) {
  const gt_op *op = &p->graph->ops[i];
  const slot_places *own = &p->of[i];
  if ((what & GT_READS_INPUT) && op->input != GT_SAMPLES)
    extend(p, places_of(p, op->input)->y, now);
  if (what & GT_READS_OUTPUT) extend(p, own->y, now);
  if (own->index != NONE) extend(p, own->index, now);
  if (own->state != NONE) extend(p, own->state, now);
  for (size_t k = 0; k < 2; k++)
    if (own->dy[k] != NONE) extend(p, own->dy[k], now);
}

static bool over_gradient(const plan *p, size_t reader, size_t i) {
  const gt_op *op = &p->graph->ops[reader];
  const bool kept = op->kind->backward_weight && !op->kind->no_gradient && !p->graph->fused;
  return op->input == i && !kept && in_place(p->graph, reader, true);
}

/* Adds the gradients that the readers of an output write. */
static void add_gradients(plan *p, size_t i, slot_places *own) {
  const gt_op *op = &p->graph->ops[i];
  for (size_t k = 0; k < op->nreaders; k++)
    own->dy[k] = over_gradient(p, op->readers[k], i)
                     ? p->of[op->readers[k]].dy[0]
                     : add_output(p, i, time_input(p, op->readers[k]));
}

static void add_backward(plan *p, size_t i) {
  const gt_op *op = &p->graph->ops[i];
  slot_places *own = &p->of[i];
  own->dy[0] = own->dy[1] = own->kept = NONE;
  if (i + 1 < p->ops.end)
    add_gradients(p, i, own);
  else if (p->loss && p->graph->loss->in_place)
    own->dy[0] = own->y;
  else
    own->dy[0] = add_output(p, i, length(p));
  if (op->input != GT_SAMPLES) read_back(p, i, op->kind->input_reads, time_input(p, i));
  if (op->kind->backward_weight) {
    read_back(p, i, op->kind->weight_reads, time_weight(p, i));
  } else if (op->weight != GT_NO_VIEW) {
    own->kept = add(p, gt_graph_written(p->graph, op).n, time_input(p, i));
    extend(p, own->kept, time_weight(p, i));
  }
}

static void find_pieces(plan *p) {
  const size_t first = p->ops.first, last = p->ops.end - 1;
  p->before = (slot_places){NONE, {NONE, NONE}, NONE, NONE, NONE};
  if (first > 0) {
    p->before.y = add_output(p, first - 1, 0);
    p->pieces[p->before.y].stays = true;
  }
  for (size_t i = first; i <= last; i++) add_forward(p, i);
  /* The output is read between the passes. */
  extend(p, p->of[last].y, length(p));
  extend(p, p->of[last].y, length(p) + 1);
  for (size_t i = last + 1; i-- > first;) add_backward(p, i);
  if (!p->loss) p->pieces[p->of[last].dy[0]].stays = true;
  if (first == 0) return;
  add_gradients(p, first - 1, &p->before);
  p->pieces[p->before.dy[0]].stays = true;
  extend(p, p->before.dy[0], time_end(p));
  if (p->before.dy[1] != NONE) extend(p, p->before.dy[1], 2 * length(p));
}

/* Reserves the pieces.  `base`: times of the passes of earlier spans are below it. */
static void reserve(plan *p, size_t base) {
  for (size_t k = 0; k < p->n; k++) {
    piece *e = &p->pieces[k];
    e->shared = !e->stays && pass_at(p, e->from) == pass_at(p, e->to);
    e->ticket = e->shared ? gt_arena_reserve_span(p->all, e->floats, base + e->from, base + e->to)
                          : gt_arena_reserve_span(p->slot, e->floats, e->from, e->to);
  }
}

static size_t floats_of(const gt_arena *arena) {
  return gt_arena_bytes(arena) / sizeof(float);
}

/* Plans the pieces of one span; p->pieces, p->slot and p->all keep the result. */
static void plan_span(plan *p, gt_graph *graph, gt_graph_span *span, slot_places *of, gt_arena *all,
                      size_t base) {
  *p = (plan){.graph = graph,
              .ops = span->ops,
              .loss = span->ops.end == graph->nops,
              .of = of,
              .slot = gt_arena_create(),
              .all = all};
  p->pieces = GT_NEW_ARRAY(piece, most_pieces(p));
  find_pieces(p);
  reserve(p, base);
  gt_arena_plan(p->slot);
  span->floats = floats_of(p->slot);
}

/* Returns the address of a piece in one slot; NULL: no such piece. */
static void *at(const plan *p, size_t k, float *slot, float *shared) {
  if (k == NONE) return NULL;
  const piece *e = &p->pieces[k];
  return e->shared ? shared + gt_arena_offset(p->all, e->ticket)
                   : slot + gt_arena_offset(p->slot, e->ticket);
}

static size_t slot_gradient_for(plan *p, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return NONE;
  return places_of(p, of)->dy[p->graph->ops[of].readers[0] == reader ? 0 : 1];
}

static void assign_op(plan *p, size_t i, size_t s, float *slot, float *shared) {
  const gt_op *op = &p->graph->ops[i];
  const slot_places *own = &p->of[i];
  const size_t x = op->input == GT_SAMPLES ? NONE : places_of(p, op->input)->y,
               second = op->second == GT_SAMPLES ? NONE : places_of(p, op->second)->y;
  void *other = at(p, own->dy[1], slot, shared);
  op->slots[s] =
      (gt_activation){.x = at(p, x, slot, shared),
                      .second = at(p, second, slot, shared),
                      .y = at(p, own->y, slot, shared),
                      .dy = at(p, own->dy[0], slot, shared),
                      .dy2 = op->type == GT_BF16 ? NULL : other,
                      .beside = op->type == GT_BF16 ? other : NULL,
                      .dx = at(p, slot_gradient_for(p, op->input, i), slot, shared),
                      .dsecond = at(p, slot_gradient_for(p, op->second, i), slot, shared),
                      .index = at(p, own->index, slot, shared),
                      .state = at(p, own->state, slot, shared),
                      .kept = at(p, own->kept, slot, shared)};
}

static void assign_slot(plan *p, gt_graph_span *span, float *shared) {
  for (size_t s = 0; s < p->graph->slots; s++) {
    float *slot = span->memory + s * span->floats;
    for (size_t i = p->ops.first; i < p->ops.end; i++) assign_op(p, i, s, slot, shared);
    span->slots[s] = (gt_span_ends){.input = at(p, p->before.y, slot, shared),
                                    .dinput = at(p, p->before.dy[0], slot, shared),
                                    .dinput2 = at(p, p->before.dy[1], slot, shared)};
  }
}

/* Tickets of the memory of a graph. */
typedef struct {
  size_t shared, work, added, *ids, *apart, *spans;
} tickets;

static bool lent_here(const gt_graph *graph, size_t owner) {
  if (!gt_graph_runs(graph, &graph->ops[owner])) return false;
  for (size_t i = owner + 1; i < graph->nops; i++)
    if (graph->ops[i].borrows == owner && gt_graph_runs(graph, &graph->ops[i])) return true;
  return false;
}

static size_t ids_of(const gt_graph *graph, const gt_op *op) {
  if (!op->kind->ids || !gt_graph_runs(graph, op)) return 0;
  return graph->micro_batches * op->kind->ids(op, graph->batch_max);
}

static void reserve_shared(gt_graph *graph, tickets *t, const gt_arena *all) {
  size_t added = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t floats =
        gt_graph_runs(graph, op) && op->kind->backward_weight && !op->kind->no_gradient
            ? gt_graph_written(graph, op).n
            : 0;
    if (floats > added) added = floats;
    t->ids[i] = gt_arena_reserve(graph->arena, ids_of(graph, op));
    t->apart[i] = lent_here(graph, i)
                      ? gt_arena_reserve(graph->arena, graph->params.views[op->weight].count)
                      : NONE;
  }
  graph->shared_floats = floats_of(all);
  t->shared = gt_arena_reserve(graph->arena, graph->shared_floats);
  t->work = gt_arena_reserve(graph->arena, work_floats(graph));
  t->added = gt_arena_reserve(graph->arena, added);
}

static void assign_shared(gt_graph *graph, const tickets *t) {
  graph->shared = gt_arena_at(graph->arena, t->shared);
  graph->work = gt_arena_at(graph->arena, t->work);
  graph->added = gt_arena_at(graph->arena, t->added);
  for (size_t i = 0; i < graph->nops; i++) {
    gt_op *op = &graph->ops[i];
    if (t->apart[i] != NONE) op->apart = gt_arena_at(graph->arena, t->apart[i]);
    if (op->kind->ids)
      op->nonzero = (gt_rows){.ids = (int32_t *)(void *)gt_arena_at(graph->arena, t->ids[i]),
                              .capacity = ids_of(graph, op)};
  }
}

static void allocate(gt_graph *graph, plan *plans, const tickets *t) {
  if (graph->sizes_only) return;
  if (graph->memory)
    gt_arena_commit_at(graph->arena, graph->memory);
  else
    gt_arena_commit(graph->arena);
  assign_shared(graph, t);
  for (size_t s = 0; s < graph->nspans; s++) {
    if (!graph->spans[s].runs) continue;
    graph->spans[s].memory = gt_arena_at(graph->arena, t->spans[s]);
    assign_slot(&plans[s], &graph->spans[s], graph->shared);
  }
}

static void plan_spans(gt_graph *graph, plan *plans, slot_places *of, tickets *t) {
  gt_arena *all = gt_arena_create();
  size_t base = 0;
  for (size_t s = 0; s < graph->nspans; s++) {
    gt_graph_span *span = &graph->spans[s];
    span->slots = graph->ends + s * graph->slots;
    if (!span->runs) continue;
    plan_span(&plans[s], graph, span, of, all, base);
    base += time_end(&plans[s]) + 1;
    t->spans[s] = gt_arena_reserve(graph->arena, graph->slots * span->floats);
  }
  gt_arena_plan(all);
  reserve_shared(graph, t, all);
  gt_arena_plan(graph->arena);
  allocate(graph, plans, t);
  gt_arena_close(all);
}

static void plan_slots(gt_graph *graph) {
  plan *plans = GT_NEW_ARRAY(plan, graph->nspans);
  slot_places *of = GT_NEW_ARRAY(slot_places, graph->nops);
  tickets t = {.ids = GT_NEW_ARRAY(size_t, graph->nops),
               .apart = GT_NEW_ARRAY(size_t, graph->nops),
               .spans = GT_NEW_ARRAY(size_t, graph->nspans)};
  graph->ends = GT_NEW_ARRAY(gt_span_ends, graph->nspans * graph->slots);
  plan_spans(graph, plans, of, &t);
  for (size_t s = 0; s < graph->nspans; s++) {
    gt_arena_close(plans[s].slot);
    gt_free(plans[s].pieces);
  }
  gt_free(t.spans);
  gt_free(t.apart);
  gt_free(t.ids);
  gt_free(of);
  gt_free(plans);
}

gt_memory_plan gt_graph_memory(const gt_graph *graph) {
  const gt_arrays *a = &graph->arrays;
  gt_memory_plan bytes = {.arrays = (2 * a->params.n + a->buffers.n) * sizeof(float)};
  for (size_t s = 0; s < graph->nspans; s++) bytes.slot += gt_graph_span_bytes(graph, s);
  if (graph->arena) bytes.shared = gt_arena_bytes(graph->arena) - graph->slots * bytes.slot;
  return bytes;
}

size_t gt_graph_span_bytes(const gt_graph *graph, size_t span) {
  if (span >= graph->nspans) gt_bug("span %zu of %zu", span, graph->nspans);
  return graph->spans[span].floats * sizeof(float);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Plans the memory of activations and scratch once.  Times: operation i runs forward at i, the loss
   at n, operation i backward at 2n - i.  An output is in use from its forward to its backward pass,
   the model's output to the end; the loss can overwrite it by its gradient.  A gradient is in use
   from the backward pass that writes it to the one that reads it, so gradients of distant layers
   share memory. */

/* Arena tickets of one operation. */
typedef struct {
  size_t y, dy[2], index, state;
} places;

/* Checks that an operation in place after a ReLU keeps the signs of the ReLU's output, which mask
   its gradient. */
static void check_masks(const gt_graph *graph, size_t reader) {
  if (graph->ops[reader].kind->keeps_signs) return;
  for (size_t i = reader; in_place(graph, i, false);) {
    i = graph->ops[i].input;
    if (graph->ops[i].relu)
      gt_bug("%s works in place and overwrites the mask of the gradient of %s",
             graph->ops[reader].name, graph->ops[i].name);
  }
}

/* Checks an operation on the samples.  The gradient of the samples is not computed, so
   backward_input is not called, and its parameters need backward_weight. */
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

/* Returns the floats of the state.  An operation with state and ids keeps no ids in a fused step:
   the other reader of its table writes all rows. */
static size_t state_floats(const gt_op *op, size_t n) {
  return op->kind->state ? op->kind->state(op, n) : op->kind->ids(op, n);
}

static void reserve_outputs(gt_graph *graph, places *p) {
  const size_t n = graph->nops;
  size_t scores = n - 1; /* the operation whose output memory holds the model's output */
  while (in_place(graph, scores, false)) scores = graph->ops[scores].input;
  for (size_t i = 0; i < n; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t floats = output_floats(graph, op);
    p[i].y = in_place(graph, i, false)
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
  for (size_t i = n; i-- > 0;) { /* readers come before the operations that they read */
    const gt_op *op = &graph->ops[i];
    const size_t parts = op->nreaders ? op->nreaders : 1;
    for (size_t k = 0; k < parts; k++) {
      const size_t reader = op->nreaders ? op->readers[k] : n; /* n: the loss */
      if (reader < n && graph->ops[reader].input == i && in_place(graph, reader, true)) {
        p[i].dy[k] = p[reader].dy[0];
        continue;
      }
      if (reader == n && graph->loss->in_place) {
        p[i].dy[k] = p[i].y;
        continue;
      }
      /* In use as long as any operation of an in-place chain can use it: at most down to the first
         operation of the chain. */
      size_t last = i;
      while (in_place(graph, last, true)) last = graph->ops[last].input;
      p[i].dy[k] = gt_arena_reserve_span(graph->arena, output_floats(graph, op), 2 * n - reader,
                                         2 * n - last);
    }
  }
}

/* Returns the address to which operation `reader` writes the gradient of its input `of`. */
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
  const size_t scratch = gt_arena_reserve(graph->arena, work_floats(graph));
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
    plan_slots(graph);
  else
    plan_step(graph);
}
