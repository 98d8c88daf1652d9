/* Spans of a model: its operations as numbers, the possible ends of spans, and a graph that holds
   the tensors of some spans only. */
#include "graph.h"

size_t gt_graph_operations(const gt_graph *graph) {
  return graph->nops;
}

/* Returns the operation, other than c, whose output an operation after c reads; *reader receives
   the reader.  GT_SAMPLES: none. */
static size_t crossing(const gt_graph *graph, size_t c, size_t *reader) {
  for (size_t i = c + 1; i < graph->nops; i++) {
    const size_t inputs[2] = {graph->ops[i].input, graph->ops[i].second};
    *reader = i;
    for (size_t k = 0; k < 2; k++)
      if (inputs[k] != GT_SAMPLES && inputs[k] < c) return inputs[k];
  }
  return GT_SAMPLES;
}

/* True if a span boundary after the operation keeps the bits: it has one reader, or the sum of two
   gradients instead of both gives the same bits.  In bf16 they are always added first
   (graph_run.c). */
static bool sums(const gt_op *op) {
  return op->nreaders < 2 || op->kind->sums_gradients || op->type == GT_BF16;
}

static bool ends(const gt_graph *graph, size_t c) {
  size_t reader;
  return c + 1 == graph->nops || (crossing(graph, c, &reader) == GT_SAMPLES &&
                                  !graph->ops[c].kind->packs && sums(&graph->ops[c]));
}

size_t gt_graph_span_floats(const gt_graph *graph, gt_span span, bool buffers) {
  size_t sum = 0;
  for (size_t i = span.first; i < span.end; i++) {
    const gt_operation op = gt_graph_operation(graph, i);
    sum += buffers ? op.buffers : op.params;
  }
  return sum;
}

gt_operation gt_graph_operation(const gt_graph *graph, size_t i) {
  if (i >= graph->nops) gt_bug("operation %zu of %zu", i, graph->nops);
  const gt_op *op = &graph->ops[i];
  const double macs = op->kind->macs ? (double)op->kind->macs(op) : 0.0;
  const bool apart = op->kind->backward_weight != NULL;
  return (gt_operation){.name = op->name,
                        .params = op->params_floats,
                        .buffers = op->buffers_floats,
                        .output_bytes = op->out * gt_precision_bytes(op->type),
                        .forward = macs,
                        .backward_input = op->input == GT_SAMPLES ? 0.0
                                          : apart                 ? macs
                                                                  : 2.0 * macs,
                        .backward_weight = apart ? macs : 0.0,
                        .ends = ends(graph, i),
                        .samples = op->input == GT_SAMPLES || op->kind->reads_samples,
                        .borrows = op->borrows};
}

/* ---- checks ---- */

/* Returns the operation nearest to c after which a span can end; the model's last one: none. */
static size_t nearest_end(const gt_graph *graph, size_t c) {
  const size_t last = graph->nops - 1;
  for (size_t away = 1; away < last; away++) {
    if (c + away < last && ends(graph, c + away)) return c + away;
    if (away <= c && ends(graph, c - away)) return c - away;
  }
  return last;
}

static gt_status refuse_cut(const gt_graph *graph, size_t c) {
  const size_t near = nearest_end(graph, c);
  const char *const cut = graph->ops[c].name, *at = graph->ops[near].name,
                    *what = near + 1 == graph->nops ? "one span up to" : "a cut behind";
  size_t reader;
  const size_t needs = crossing(graph, c, &reader);
  if (needs != GT_SAMPLES)
    return GT_FAIL(GT_ERR_JOB,
                   "a span of model %s ends after %s, but %s behind it also needs the output of "
                   "%s; expected %s %s",
                   graph->model, cut, graph->ops[reader].name, graph->ops[needs].name, what, at);
  if (graph->ops[c].kind->packs)
    return GT_FAIL(GT_ERR_JOB,
                   "a span of model %s ends after %s, whose output has a varying number of rows; "
                   "expected %s %s",
                   graph->model, cut, what, at);
  return GT_FAIL(GT_ERR_JOB,
                 "a span of model %s ends after %s, which takes the gradients of its two readers "
                 "one by one; expected %s %s",
                 graph->model, cut, what, at);
}

static gt_status check_range(const gt_graph *graph, const gt_span *span, size_t i) {
  if (span->first >= span->end || span->end > graph->nops)
    return GT_FAIL(
        GT_ERR_JOB,
        "span %zu of model %s is operations %zu to %zu; expected one or more of its %zu operations",
        i, graph->model, span->first, span->end, graph->nops);
  return GT_OK;
}

static gt_status check_cuts(const gt_graph *graph, const gt_span *span) {
  if (span->first > 0 && !ends(graph, span->first - 1)) return refuse_cut(graph, span->first - 1);
  return ends(graph, span->end - 1) ? GT_OK : refuse_cut(graph, span->end - 1);
}

/* ---- a graph with the tensors of some spans ---- */

static bool runs(const gt_graph_spec *spec, size_t i) {
  return !spec->runs || spec->runs[i];
}

static gt_status check_chosen(const gt_graph *graph, const gt_graph_spec *spec) {
  for (size_t i = 0; i < spec->nspans; i++) {
    GT_TRY(check_range(graph, &spec->spans[i], i));
    if (runs(spec, i)) GT_TRY(check_cuts(graph, &spec->spans[i]));
    if (i > 0 && spec->spans[i].first < spec->spans[i - 1].end)
      return GT_FAIL(GT_ERR_JOB,
                     "span %zu of model %s begins at %s, in the span before it; expected spans in "
                     "the model's order that do not overlap",
                     i, graph->model, graph->ops[spec->spans[i].first].name);
  }
  return GT_OK;
}

static gt_status check_owners(const gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    if (op->span == GT_NO_SPAN || op->borrows == GT_NO_VIEW) continue;
    const gt_op *owner = &graph->ops[op->borrows];
    if (owner->span == GT_NO_SPAN)
      return GT_FAIL(GT_ERR_JOB,
                     "%s of model %s has the weights of %s, which is in none of the spans that are "
                     "held here; expected its span too",
                     op->name, graph->model, owner->name);
  }
  return GT_OK;
}

static void open_spans(gt_graph *graph, const gt_graph_spec *spec) {
  const gt_span whole = {0, graph->nops};
  graph->nspans = spec->nspans ? spec->nspans : 1;
  graph->spans = GT_NEW_ARRAY(gt_graph_span, graph->nspans);
  for (size_t i = 0; i < graph->nops; i++) graph->ops[i].span = GT_NO_SPAN;
  for (size_t s = 0; s < graph->nspans; s++) {
    const gt_span ops = spec->nspans ? spec->spans[s] : whole;
    graph->spans[s] = (gt_graph_span){.ops = ops, .runs = runs(spec, s)};
    for (size_t i = ops.first; i < ops.end; i++) graph->ops[i].span = s;
  }
}

static size_t floats_in(const gt_tensors *t, size_t first, size_t end) {
  size_t floats = 0;
  for (size_t v = first; v < end; v++) floats += t->views[v].count;
  return floats;
}

/* Keeps the tensors [*first, *end) of an operation, and updates the range; or drops them. */
static void keep(gt_tensors *t, size_t *first, size_t *end, bool kept) {
  const size_t from = *first, count = kept ? *end - *first : 0;
  *first = t->n;
  for (size_t k = 0; k < count; k++) {
    const size_t to = t->n++;
    t->views[to] = t->views[from + k];
    t->inits[to] = t->inits[from + k];
    t->layouts[to] = t->layouts[from + k];
    t->images[to] = t->images[from + k];
    t->numbers[to] = t->numbers[from + k];
    t->views[to].offset = t->floats;
    t->floats += t->views[to].count;
  }
  *end = t->n;
}

static size_t moved(size_t view, size_t was, size_t first, size_t end) {
  return view == GT_NO_VIEW || first == end ? GT_NO_VIEW : view - was + first;
}

static void keep_tensors(gt_graph *graph) {
  gt_tensors *params = &graph->params, *buffers = &graph->buffers;
  const size_t alias_of = graph->alias_of;
  bool alias = false;
  params->n = params->floats = buffers->n = buffers->floats = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    gt_op *op = &graph->ops[i];
    const size_t was = op->params_first, was_end = op->params_end, was_buffer = op->buffers_first;
    const bool kept = op->span != GT_NO_SPAN;
    keep(params, &op->params_first, &op->params_end, kept);
    keep(buffers, &op->buffers_first, &op->buffers_end, kept);
    if (kept && alias_of >= was && alias_of < was_end) {
      alias = true;
      graph->alias_of = alias_of - was + op->params_first;
    }
    op->weight = op->borrows != GT_NO_VIEW
                     ? graph->ops[op->borrows].weight
                     : moved(op->weight, was, op->params_first, op->params_end);
    op->bias = moved(op->bias, was, op->params_first, op->params_end);
    op->buffer = moved(op->buffer, was_buffer, op->buffers_first, op->buffers_end);
  }
  if (!alias) graph->alias.name[0] = '\0';
}

gt_status gt_graph_narrow(gt_graph *graph, const gt_graph_spec *spec) {
  for (size_t i = 0; i < graph->nops; i++) {
    gt_op *op = &graph->ops[i];
    op->params_floats = floats_in(&graph->params, op->params_first, op->params_end);
    op->buffers_floats = floats_in(&graph->buffers, op->buffers_first, op->buffers_end);
  }
  if (spec->nspans == 0 && spec->slots == 0) return GT_OK;
  if (spec->batch_max > 0 && spec->slots == 0) gt_bug("passes of spans need slots");
  GT_TRY(check_chosen(graph, spec));
  open_spans(graph, spec);
  GT_TRY(check_owners(graph));
  if (spec->nspans > 0) keep_tensors(graph);
  return GT_OK;
}

bool gt_graph_runs(const gt_graph *graph, const gt_op *op) {
  return !graph->spans || (op->span != GT_NO_SPAN && graph->spans[op->span].runs);
}

gt_vec gt_graph_written(const gt_graph *graph, const gt_op *op) {
  const gt_view *views = graph->params.views;
  if (op->weight == GT_NO_VIEW) return gt_vec_of(NULL, 0);
  if (op->borrows != GT_NO_VIEW)
    return gt_vec_range(graph->arrays.grads, views[op->weight].offset, views[op->weight].count);
  const size_t first = op->kind->ids ? op->bias : op->weight;
  if (first == GT_NO_VIEW) return gt_vec_of(NULL, 0);
  return gt_vec_range(graph->arrays.grads, views[first].offset,
                      floats_in(&graph->params, first, op->params_end));
}
