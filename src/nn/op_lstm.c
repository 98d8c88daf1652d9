/* LSTM over the vectors of a sample's ids; its output is the hidden state after the last id.
   Leading ids 0 of a sample are padding: its sequence begins after them, and a sample of padding
   only has the output 0.  Sequences are packed (see gt_lstm_shape), so padding costs no products.
   Initial values as in PyTorch's LSTM: uniform within 1/sqrt(hidden units). */
#include <math.h>
#include <string.h>

#include "graph.h"

/* The operation's state for the backward pass.  `start` (n): the first step of a sample; `order`:
   the samples in the order of their starts.  x is overwritten by its gradient. */
typedef struct {
  uint32_t *start, *order, *first;
  float *x, *gates, *h, *c;
} memory;

static size_t round_up(size_t n) {
  return (n + 15) / 16 * 16;
}

static size_t numbers(const gt_op *op, size_t n) {
  return round_up(2 * n + op->table.fields + 1);
}

static memory memory_of(const gt_op *op, const gt_pass *p) {
  const size_t steps = p->n * op->table.fields, H = op->out;
  memory m = {.start = (uint32_t *)(void *)p->a->state};
  m.order = m.start + p->n;
  m.first = m.order + p->n;
  m.x = p->a->state + numbers(op, p->n);
  m.gates = m.x + steps * op->table.width;
  m.h = m.gates + steps * 4 * H;
  m.c = m.h + (steps + p->n) * H;
  return m;
}

static size_t state(const gt_op *op, size_t n) {
  const size_t steps = n * op->table.fields, H = op->out;
  return numbers(op, n) + steps * (op->table.width + 4 * H) + 2 * (steps + n) * H;
}

static gt_lstm_shape shape_of(const gt_op *op, const memory *m) {
  return (gt_lstm_shape){
      .T = op->table.fields, .I = op->table.width, .H = op->out, .first = m->first};
}

/* Finds the start of each sample, and the samples that take part in each step. */
static void find_sequences(const gt_op *op, const gt_pass *p, const memory *m) {
  const size_t T = op->table.fields;
  const int32_t *ids = p->samples;
  uint32_t rows = 0;
  for (size_t i = 0; i < p->n; i++) {
    uint32_t t = 0;
    while (t < T && ids[i * T + t] == GT_PADDING) t++;
    m->start[i] = t;
  }
  m->first[0] = 0;
  for (size_t t = 0; t < T; t++) {
    for (size_t i = 0; i < p->n; i++)
      if (m->start[i] == t) m->order[rows++] = (uint32_t)i;
    m->first[t + 1] = m->first[t] + rows;
  }
}

/* Packs samples (n,T,I) to rows. */
static void pack(const gt_lstm_shape *s, const uint32_t *order, float *rows, const float *samples) {
  for (size_t t = 0; t < s->T; t++)
    for (size_t j = 0; j < gt_lstm_rows(s, t); j++, rows += s->I)
      memcpy(rows, samples + (order[j] * s->T + t) * s->I, s->I * sizeof *rows);
}

/* Unpacks rows to samples; zero at padding. */
static void unpack(const gt_lstm_shape *s, const memory *m, float *samples, size_t n) {
  const float *row = m->x;
  for (size_t i = 0; i < n; i++)
    memset(samples + i * s->T * s->I, 0, m->start[i] * s->I * sizeof *samples);
  for (size_t t = 0; t < s->T; t++)
    for (size_t j = 0; j < gt_lstm_rows(s, t); j++, row += s->I)
      memcpy(samples + (m->order[j] * s->T + t) * s->I, row, s->I * sizeof *row);
}

static void forward(const gt_op *op, const gt_pass *p) {
  const memory m = memory_of(op, p);
  const gt_lstm_shape s = shape_of(op, &m);
  float *y = p->a->y;
  find_sequences(op, p, &m);
  memset(y, 0, p->n * s.H * sizeof *y);
  const size_t M = m.first[s.T];
  if (M == 0) return;
  pack(&s, m.order, m.x, p->x);
  p->kernels->lstm_forward(m.h, m.c, m.gates, m.x, p->w, p->b, &s, p->work);
  for (size_t j = 0; j < gt_lstm_rows(&s, s.T - 1); j++)
    memcpy(y + m.order[j] * s.H, m.h + (M + j) * s.H, s.H * sizeof *y);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const memory m = memory_of(op, p);
  const gt_lstm_shape s = shape_of(op, &m);
  const float *from = p->a->dy;
  float *dy = p->work;
  for (size_t j = 0; j < gt_lstm_rows(&s, s.T - 1); j++)
    memcpy(dy + j * s.H, from + m.order[j] * s.H, s.H * sizeof *dy);
  if (m.first[s.T] > 0) {
    p->kernels->lstm_backward(m.x, p->dw, p->db, dy, m.gates, m.x, m.h, m.c, p->w, &s,
                              dy + p->n * s.H);
  } else {
    memset(p->dw, 0, 4 * s.H * (s.I + s.H) * sizeof *p->dw);
    memset(p->db, 0, 8 * s.H * sizeof *p->db);
  }
  unpack(&s, &m, p->dx, p->n);
}

static size_t work(const gt_op *op, size_t n) {
  return n * op->out + gt_lstm_work(n, op->out);
}

static size_t macs(const gt_op *op) {
  return op->table.fields * 4 * op->out * (op->table.width + op->out);
}

const gt_op_kind gt_op_lstm = {.name = "lstm",
                               .kernel = "lstm",
                               .reads_samples = true,
                               .forward = forward,
                               .backward_input = backward_input,
                               .state = state,
                               .work = work,
                               .macs = macs};

void gt_graph_add_lstm(gt_graph *graph, const char *name, size_t H) {
  const gt_table table = graph->ops[graph->from].table;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)H)};
  const size_t weight = gt_graph_add_param(graph, name, "weight_ih_l0", uniform, GT_LAYOUT_SAME, 2,
                                           (size_t[]){4 * H, table.width});
  gt_graph_add_param(graph, name, "weight_hh_l0", uniform, GT_LAYOUT_SAME, 2, (size_t[]){4 * H, H});
  const size_t bias =
      gt_graph_add_param(graph, name, "bias_ih_l0", uniform, GT_LAYOUT_SAME, 1, (size_t[]){4 * H});
  gt_graph_add_param(graph, name, "bias_hh_l0", uniform, GT_LAYOUT_SAME, 1, (size_t[]){4 * H});
  gt_op *op = gt_graph_append(graph, &gt_op_lstm, name);
  op->weight = weight;
  op->bias = bias;
  op->table = table;
  gt_graph_set_extent(graph, (gt_extent){1, 1, H});
}
