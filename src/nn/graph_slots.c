/* Plans the memory of passes over spans.  Each span has a piece of memory in each slot, laid out
   once.  With L operations, times in it are: forward 0 to L - 1, the loss L, backward_input L + 1
   to 2 L (the last operation first), backward_weight 2 L + 1 to 3 L, the end of the slot 3 L + 1;
   a fused backward pass has both at the times of backward_input.  What is not in use beyond one
   pass lies in memory that all spans and slots share, because only one pass runs at a time.

   The gradient of an output that backward_weight reads lives until then, so that of the input is
   not written over it unless the backward pass is fused. */
#include "graph.h"

#define NONE SIZE_MAX

/* Memory in use from one time of a span to another. */
typedef struct {
  size_t floats, from, to, ticket;
  bool stays; /* in the slot, even if it is in use in one pass only */
  bool shared;
} piece;

/* Pieces of an operation, by index; of the one before the span, output and gradients only. */
typedef struct {
  size_t y, dy[2], index, state, kept;
} places;

typedef struct {
  gt_graph *graph;
  gt_span ops;
  bool loss;     /* behind the last operation */
  piece *pieces; /* (most_pieces) */
  size_t n;
  places before, *of; /* of: of the model's operations */
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

/* Of an operation: output, two gradients, index, state, kept gradient; three before the span. */
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

/* Whether a span holds the output of `of`, its own or the one before it. */
static places *places_of(plan *p, size_t of) {
  return of < p->ops.first ? &p->before : &p->of[of];
}

static size_t add_output(plan *p, size_t i, size_t from) {
  return add(p, gt_graph_output_floats(p->graph, &p->graph->ops[i]), from);
}

/* ---- what is in use, and when ---- */

static void add_forward(plan *p, size_t i) {
  const gt_op *op = &p->graph->ops[i];
  const size_t batch = p->graph->batch_max, now = time_forward(p, i);
  places *own = &p->of[i];
  own->y =
      gt_graph_in_place(p->graph, i, false) ? places_of(p, op->input)->y : add_output(p, i, now);
  if (op->input != GT_SAMPLES) extend(p, places_of(p, op->input)->y, now);
  if (op->second != GT_SAMPLES) extend(p, places_of(p, op->second)->y, now);
  own->index = op->kind->has_index ? add(p, batch * op->out, now) : NONE;
  own->state = op->kind->state ? add(p, op->kind->state(op, batch), now) : NONE;
}

/* A backward pass reads at this time; what: GT_READS_. */
static void read_back(plan *p, size_t i, unsigned what, size_t now) {
  const gt_op *op = &p->graph->ops[i];
  const places *own = &p->of[i];
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
  return op->input == i && !kept && gt_graph_in_place(p->graph, reader, true);
}

/* The gradients that the readers of an output write. */
static void add_gradients(plan *p, size_t i, places *own) {
  const gt_op *op = &p->graph->ops[i];
  for (size_t k = 0; k < op->nreaders; k++)
    own->dy[k] = over_gradient(p, op->readers[k], i)
                     ? p->of[op->readers[k]].dy[0]
                     : add_output(p, i, time_input(p, op->readers[k]));
}

static void add_backward(plan *p, size_t i) {
  const gt_op *op = &p->graph->ops[i];
  places *own = &p->of[i];
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
  p->before = (places){NONE, {NONE, NONE}, NONE, NONE, NONE};
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

/* ---- where ---- */

/* `base`: times of the passes of earlier spans are below. */
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
static void plan_span(plan *p, gt_graph *graph, gt_graph_span *span, places *of, gt_arena *all,
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

/* Where a piece is, of one slot; NULL: there is no such piece. */
static void *at(const plan *p, size_t k, float *slot, float *shared) {
  if (k == NONE) return NULL;
  const piece *e = &p->pieces[k];
  return e->shared ? shared + gt_arena_offset(p->all, e->ticket)
                   : slot + gt_arena_offset(p->slot, e->ticket);
}

static size_t gradient_for(plan *p, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return NONE;
  return places_of(p, of)->dy[p->graph->ops[of].readers[0] == reader ? 0 : 1];
}

static void assign_op(plan *p, size_t i, size_t s, float *slot, float *shared) {
  const gt_op *op = &p->graph->ops[i];
  const places *own = &p->of[i];
  const size_t x = op->input == GT_SAMPLES ? NONE : places_of(p, op->input)->y,
               second = op->second == GT_SAMPLES ? NONE : places_of(p, op->second)->y;
  void *other = at(p, own->dy[1], slot, shared);
  op->slots[s] = (gt_activation){.x = at(p, x, slot, shared),
                                 .second = at(p, second, slot, shared),
                                 .y = at(p, own->y, slot, shared),
                                 .dy = at(p, own->dy[0], slot, shared),
                                 .dy2 = op->type == GT_BF16 ? NULL : other,
                                 .beside = op->type == GT_BF16 ? other : NULL,
                                 .dx = at(p, gradient_for(p, op->input, i), slot, shared),
                                 .dsecond = at(p, gradient_for(p, op->second, i), slot, shared),
                                 .index = at(p, own->index, slot, shared),
                                 .state = at(p, own->state, slot, shared),
                                 .kept = at(p, own->kept, slot, shared)};
}

static void assign(plan *p, gt_graph_span *span, float *shared) {
  for (size_t s = 0; s < p->graph->slots; s++) {
    float *slot = span->memory + s * span->floats;
    for (size_t i = p->ops.first; i < p->ops.end; i++) assign_op(p, i, s, slot, shared);
    span->slots[s] = (gt_span_ends){.input = at(p, p->before.y, slot, shared),
                                    .dinput = at(p, p->before.dy[0], slot, shared),
                                    .dinput2 = at(p, p->before.dy[1], slot, shared)};
  }
}

/* ---- what all slots share ---- */

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
  return graph->micros * op->kind->ids(op, graph->batch_max);
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
  t->work = gt_arena_reserve(graph->arena, gt_graph_work_floats(graph));
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

/* ---- all ---- */

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
    assign(&plans[s], &graph->spans[s], graph->shared);
  }
}

static void plan_spans(gt_graph *graph, plan *plans, places *of, tickets *t) {
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

void gt_graph_plan_slots(gt_graph *graph) {
  plan *plans = GT_NEW_ARRAY(plan, graph->nspans);
  places *of = GT_NEW_ARRAY(places, graph->nops);
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
