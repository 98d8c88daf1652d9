/* A gated step over session graphs (Li et al. 2016, as in SR-GNN, Wu et al. 2019, eq. 1 to 5):
   every node is the state of a gated recurrent unit, whose input is the mean of the messages of its
   predecessors, and of its successors.  Rows are packed (session_graph.h).  The backward passes
   both begin with the gradients of the gates, so that each can run alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session_graph.h"

/* Offsets of the parameters from the first, in floats. */
typedef struct {
  size_t w_ih, w_hh, b_ih, b_hh, b_in, b_out, edge_in, edge_in_bias, edge_out, edge_out_bias, end;
} places;

/* a (M,2H): the input of the unit, of predecessors and of successors; gates (M,4H). */
typedef struct {
  gt_session_graph g;
  float *a, *gates;
} memory;

static size_t rows_of(const gt_op *op, size_t n) {
  return n * op->table.fields;
}

static places places_of(size_t H) {
  places t = {.w_hh = 6 * H * H};
  t.b_ih = t.w_hh + 3 * H * H;
  t.b_hh = t.b_ih + 3 * H;
  t.b_in = t.b_hh + 3 * H;
  t.b_out = t.b_in + H;
  t.edge_in = t.b_out + H;
  t.edge_in_bias = t.edge_in + H * H;
  t.edge_out = t.edge_in_bias + H;
  t.edge_out_bias = t.edge_out + H * H;
  t.end = t.edge_out_bias + H;
  return t;
}

static size_t state(const gt_op *op, size_t n) {
  return gt_session_graph_floats(n, op->table.fields) + 6 * rows_of(op, n) * op->table.width;
}

/* Forward: messages, then both products of the unit.  Backward: their gradients, then those of a,
   of a message and of h. */
static size_t work(const gt_op *op, size_t n) {
  return 10 * rows_of(op, n) * op->table.width;
}

static memory memory_of(const gt_op *op, const gt_pass *p, gt_session_graph g) {
  memory m = {.g = g, .a = p->a->state + gt_session_graph_floats(p->n, op->table.fields)};
  m.gates = m.a + 2 * rows_of(op, p->n) * op->table.width;
  return m;
}

static memory kept(const gt_op *op, const gt_pass *p) {
  return memory_of(op, p, gt_session_graph_at(p->a->state, p->n, op->table.fields));
}

/* Adds to row `to` of y (M, stride), of H columns, scale times row `from` of x. */
static void add_row(float *y, size_t to, size_t y_stride, float scale, float *x, size_t from,
                    size_t x_stride, size_t H) {
  gt_vec_axpy(gt_vec_of(y + to * y_stride, H), scale, gt_vec_of(x + from * x_stride, H));
}

/* Sets a to the bias plus the mean of the messages over the edges that end (in) or begin (out) at
   each node. */
static void gather(float *a, float *messages, const float *bias, const gt_session_graph *g, bool in,
                   size_t H) {
  for (size_t j = 0; j < g->M; j++) memcpy(a + 2 * j * H, bias, H * sizeof *a);
  for (size_t e = 0; e < g->E; e++) {
    const uint32_t to = in ? g->to[e] : g->from[e], from = in ? g->from[e] : g->to[e];
    add_row(a, to, 2 * H, in ? g->in[to] : g->out[to], messages, from, H, H);
  }
}

/* Computes the gradient of the messages. */
static void scatter(float *messages, float *da, const gt_session_graph *g, bool in, size_t H) {
  memset(messages, 0, g->M * H * sizeof *messages);
  for (size_t e = 0; e < g->E; e++) {
    const uint32_t to = in ? g->to[e] : g->from[e], from = in ? g->from[e] : g->to[e];
    add_row(messages, from, H, in ? g->in[to] : g->out[to], da, to, 2 * H, H);
  }
}

static void forward(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const memory m =
      memory_of(op, p, gt_session_graph_read(p->a->state, p->samples, p->n, op->table.fields));
  const places t = places_of(H);
  const size_t M = m.g.M;
  if (M == 0) return;
  float *messages = p->work, *gi = messages + M * H, *gh = gi + 3 * M * H;
  p->kernels->linear_forward(messages, p->x, p->w + t.edge_in, p->w + t.edge_in_bias, M, H, H);
  gather(m.a, messages, p->w + t.b_in, &m.g, true, H);
  p->kernels->linear_forward(messages, p->x, p->w + t.edge_out, p->w + t.edge_out_bias, M, H, H);
  gather(m.a + H, messages, p->w + t.b_out, &m.g, false, H);
  p->kernels->linear_forward(gi, m.a, p->w + t.w_ih, p->w + t.b_ih, M, 2 * H, 3 * H);
  p->kernels->linear_forward(gh, p->x, p->w + t.w_hh, p->w + t.b_hh, M, H, 3 * H);
  p->kernels->gru_forward(p->a->y, m.gates, p->x, gi, gh, M, H);
}

/* The values that both backward passes need, in scratch memory. */
typedef struct {
  float *gi, *gh, *a, *messages, *h;
} gradients;

static gradients gradients_of(const gt_op *op, const gt_pass *p, const memory *m) {
  const size_t H = op->table.width, MH = m->g.M * H;
  gradients d = {.gi = p->work};
  d.gh = d.gi + 3 * MH;
  d.a = d.gh + 3 * MH;
  d.messages = d.a + 2 * MH;
  d.h = d.messages + MH;
  p->kernels->gru_backward(d.gi, d.gh, d.h, p->a->dy, m->gates, p->x, m->g.M, H);
  p->kernels->linear_backward_input(d.a, d.gi, p->w + places_of(H).w_ih, m->g.M, 2 * H, 3 * H);
  return d;
}

/* Adds to y (M,H) the gradient dy (M,O) through the weights w (O,H). */
static void add_input_gradient(const gt_pass *p, float *y, const float *dy, const float *w,
                               float *scratch, size_t M, size_t H, size_t O) {
  p->kernels->linear_backward_input(scratch, dy, w, M, H, O);
  gt_vec_axpy(gt_vec_of(y, M * H), 1.0F, gt_vec_of(scratch, M * H));
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const memory m = kept(op, p);
  const size_t M = m.g.M;
  if (M == 0) return;
  const places t = places_of(H);
  const gradients d = gradients_of(op, p, &m);
  float *dx = p->dx;
  memcpy(dx, d.h, M * H * sizeof *dx);
  add_input_gradient(p, dx, d.gh, p->w + t.w_hh, d.messages, M, H, 3 * H);
  scatter(d.messages, d.a, &m.g, true, H);
  add_input_gradient(p, dx, d.messages, p->w + t.edge_in, d.h, M, H, H);
  scatter(d.messages, d.a + H, &m.g, false, H);
  add_input_gradient(p, dx, d.messages, p->w + t.edge_out, d.h, M, H, H);
}

/* Sets b (2H) to the sums of the columns of da, the gradients of both biases. */
static void sum_columns(float *b, float *da, size_t M, size_t H) {
  memset(b, 0, 2 * H * sizeof *b);
  for (size_t j = 0; j < M; j++) add_row(b, 0, 0, 1.0F, da, j, 2 * H, 2 * H);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const memory m = kept(op, p);
  const size_t M = m.g.M;
  const places t = places_of(H);
  if (M == 0) {
    memset(p->dw, 0, t.end * sizeof *p->dw);
    return;
  }
  const gradients d = gradients_of(op, p, &m);
  p->kernels->linear_backward_weight(p->dw + t.w_ih, p->dw + t.b_ih, d.gi, m.a, M, 2 * H, 3 * H);
  p->kernels->linear_backward_weight(p->dw + t.w_hh, p->dw + t.b_hh, d.gh, p->x, M, H, 3 * H);
  sum_columns(p->dw + t.b_in, d.a, M, H);
  scatter(d.messages, d.a, &m.g, true, H);
  p->kernels->linear_backward_weight(p->dw + t.edge_in, p->dw + t.edge_in_bias, d.messages, p->x, M,
                                     H, H);
  scatter(d.messages, d.a + H, &m.g, false, H);
  p->kernels->linear_backward_weight(p->dw + t.edge_out, p->dw + t.edge_out_bias, d.messages, p->x,
                                     M, H, H);
}

/* Assumes that all items of a session are distinct. */
static size_t macs(const gt_op *op) {
  const size_t H = op->table.width;
  return op->table.fields * 11 * H * H;
}

const gt_op_kind gt_op_gated_step = {.name = "gated-step",
                                     .kernel = "gru",
                                     .reads_samples = true,
                                     .packs = true,
                                     .input_reads = GT_READS_INPUT,
                                     .weight_reads = GT_READS_INPUT,
                                     .forward = forward,
                                     .backward_input = backward_input,
                                     .backward_weight = backward_weight,
                                     .state = state,
                                     .work = work,
                                     .macs = macs};

void gt_graph_add_gated_step(gt_graph *graph, const char *name) {
  const gt_table table = graph->ops[graph->from].table;
  const size_t H = table.width;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)H)};
  static const struct {
    const char *part, *what;
    size_t rows, columns; /* in units of H; columns 0: one dimension */
  } all[] = {{"", "w_ih", 3, 2},
             {"", "w_hh", 3, 1},
             {"", "b_ih", 3, 0},
             {"", "b_hh", 3, 0},
             {"", "b_iah", 1, 0},
             {"", "b_oah", 1, 0},
             {".linear_edge_in", "weight", 1, 1},
             {".linear_edge_in", "bias", 1, 0},
             {".linear_edge_out", "weight", 1, 1},
             {".linear_edge_out", "bias", 1, 0}};
  size_t first = GT_NO_VIEW;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char owner[48];
    snprintf(owner, sizeof owner, "%.24s%s", name, all[i].part);
    const size_t at =
        gt_graph_add_param(graph, owner, all[i].what, uniform, GT_LAYOUT_SAME,
                           all[i].columns ? 2 : 1, (size_t[]){all[i].rows * H, all[i].columns * H});
    if (i == 0) first = at;
  }
  gt_op *op = gt_graph_append(graph, &gt_op_gated_step, name);
  op->weight = first;
  op->table = table;
}
