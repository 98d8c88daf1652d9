/* The clicks of sessions (NISER+): the state of the clicked node, plus the vector of the click's
   position in the session.  Rows are packed: in, one for each node (session_graph.h); out, one for
   each click. */
#include <math.h>
#include <string.h>

#include "session_graph.h"

/* Of each click: its node and its position. */
typedef struct {
  uint32_t *n, *node, *position;
} clicks;

static size_t state(const gt_op *op, size_t n) {
  return gt_session_graph_floats(n, op->table.fields) + 1 + 2 * n * op->table.fields;
}

static clicks kept(const gt_op *op, const gt_pass *p) {
  const size_t T = op->table.fields;
  uint32_t *at = (uint32_t *)(void *)(p->a->state + gt_session_graph_floats(p->n, T));
  return (clicks){at, at + 1, at + 1 + p->n * T};
}

static void read_clicks(const gt_op *op, const gt_pass *p, clicks *c) {
  const size_t T = op->table.fields;
  const int32_t *ids = p->samples;
  const gt_session_graph g = gt_session_graph_read(p->a->state, ids, p->n, T);
  *c->n = 0;
  for (size_t i = 0; i < p->n; i++) {
    uint32_t position = 0;
    for (size_t t = i * T; t < (i + 1) * T; t++) {
      if (ids[t] == GT_PADDING) continue;
      uint32_t node = g.first[i];
      while (g.items[node] != ids[t]) node++;
      c->node[*c->n] = node;
      c->position[(*c->n)++] = position++;
    }
  }
}

static void forward(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const float *x = p->x;
  float *y = p->a->y;
  clicks c = kept(op, p);
  read_clicks(op, p, &c);
  for (size_t i = 0; i < *c.n; i++)
    for (size_t k = 0; k < H; k++)
      y[i * H + k] = x[c.node[i] * H + k] + p->w[c.position[i] * H + k];
}

/* Sets row to[i] of x to the sum of those rows i of dy. */
static void add_rows(float *x, size_t rows, const float *dy, const uint32_t *to, size_t n,
                     size_t H) {
  memset(x, 0, rows * H * sizeof *x);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < H; k++) x[to[i] * H + k] += dy[i * H + k];
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const clicks c = kept(op, p);
  const gt_session_graph g = gt_session_graph_at(p->a->state, p->n, op->table.fields);
  add_rows(p->dx, g.M, p->a->dy, c.node, *c.n, op->table.width);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  const clicks c = kept(op, p);
  add_rows(p->dw, op->table.fields, p->a->dy, c.position, *c.n, op->table.width);
}

const gt_op_kind gt_op_clicks = {.name = "clicks",
                                 .reads_samples = true,
                                 .packs = true,
                                 .forward = forward,
                                 .backward_input = backward_input,
                                 .backward_weight = backward_weight,
                                 .state = state};

void gt_graph_add_clicks(gt_graph *graph, const char *name) {
  gt_table table = graph->ops[graph->from].table;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)table.width)};
  const size_t at = gt_graph_add_param(graph, name, "weight", uniform, GT_LAYOUT_SAME, 2,
                                       (size_t[]){table.fields, table.width});
  gt_op *op = gt_graph_append(graph, &gt_op_clicks, name);
  table.clicks = true;
  op->weight = at;
  op->table = table;
}
