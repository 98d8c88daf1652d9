/* The readout of session graphs (Wu et al. 2019, eq. 6 and 7): the attention of the last item to
   all items of the session, concatenated with the state of the last item; zero for a session
   without items.  Rows are packed (session_graph.h).  The backward passes both begin with the
   gradients of the attention, so that each can run alone. */
#include <math.h>
#include <string.h>

#include "session_graph.h"

/* Offsets of the parameters from the first, in floats. */
typedef struct {
  size_t one, one_bias, two, two_bias, three;
} places;

/* last (N,H): the state of the last item, zero if there is none; gates (M,H); alpha (M). */
typedef struct {
  gt_session_graph g;
  float *last, *gates, *alpha;
} memory;

static places places_of(size_t H) {
  places t = {.one_bias = H * H};
  t.two = t.one_bias + H;
  t.two_bias = t.two + H * H;
  t.three = t.two_bias + H;
  return t;
}

static size_t state(const gt_op *op, size_t n) {
  const size_t H = op->table.width, rows = n * op->table.fields;
  return gt_session_graph_floats(n, op->table.fields) + n * H + rows * H + rows;
}

static size_t work(const gt_op *op, size_t n) {
  const size_t H = op->table.width;
  return 2 * n * H + 2 * n * op->table.fields * H + H;
}

static memory memory_of(const gt_op *op, const gt_pass *p, gt_session_graph g) {
  const size_t H = op->table.width;
  memory m = {.g = g, .last = p->a->state + gt_session_graph_floats(p->n, op->table.fields)};
  m.gates = m.last + p->n * H;
  m.alpha = m.gates + p->n * op->table.fields * H;
  return m;
}

static memory kept(const gt_op *op, const gt_pass *p) {
  return memory_of(op, p, gt_session_graph_at(p->a->state, p->n, op->table.fields));
}

static bool empty(const gt_session_graph *g, size_t i) {
  return g->first[i] == g->first[i + 1];
}

static void copy_last(float *last, const float *h, const gt_session_graph *g, size_t H) {
  memset(last, 0, g->N * H * sizeof *last);
  for (size_t i = 0; i < g->N; i++)
    if (!empty(g, i)) memcpy(last + i * H, h + g->last[i] * H, H * sizeof *last);
}

static void forward(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const memory m = memory_of(op, p,
                             (op->table.clicks ? gt_session_clicks_read : gt_session_graph_read)(
                                 p->a->state, p->samples, p->n, op->table.fields));
  const places t = places_of(H);
  const gt_session_shape s = gt_session_graph_shape(&m.g, H);
  copy_last(m.last, p->x, &m.g, H);
  p->kernels->linear_forward(p->work, m.last, p->w + t.one, p->w + t.one_bias, p->n, H, H);
  if (m.g.M > 0)
    p->kernels->linear_forward(m.gates, p->x, p->w + t.two, p->w + t.two_bias, m.g.M, H, H);
  p->kernels->attend_forward(p->a->y, m.gates, m.alpha, p->work, p->x, p->w + t.three, &s);
}

/* The values that both backward passes need, in scratch memory. */
typedef struct {
  float *q1, *last, *q2, *h, *three;
} gradients;

static gradients gradients_of(const gt_op *op, const gt_pass *p, const memory *m, float *three) {
  const size_t H = op->table.width;
  const gt_session_shape s = gt_session_graph_shape(&m->g, H);
  gradients d = {.q1 = p->work};
  d.last = d.q1 + p->n * H;
  d.q2 = d.last + p->n * H;
  d.h = d.q2 + m->g.M * H;
  d.three = three ? three : d.h + m->g.M * H;
  p->kernels->attend_backward(d.h, d.q1, d.q2, d.three, p->a->dy, m->gates, m->alpha, p->x,
                              p->w + places_of(H).three, &s);
  return d;
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const memory m = kept(op, p);
  if (m.g.M == 0) return;
  const places t = places_of(H);
  const gradients d = gradients_of(op, p, &m, NULL);
  float *dx = p->dx;
  p->kernels->linear_backward_input(dx, d.q2, p->w + t.two, m.g.M, H, H);
  gt_vec_axpy(gt_vec_of(dx, m.g.M * H), 1.0F, gt_vec_of(d.h, m.g.M * H));
  p->kernels->linear_backward_input(d.last, d.q1, p->w + t.one, p->n, H, H);
  for (size_t i = 0; i < p->n; i++)
    if (!empty(&m.g, i))
      gt_vec_axpy(gt_vec_of(dx + m.g.last[i] * H, H), 1.0F, gt_vec_of(d.last + i * H, H));
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  const size_t H = op->table.width;
  const memory m = kept(op, p);
  const places t = places_of(H);
  const gradients d = gradients_of(op, p, &m, p->dw + t.three);
  p->kernels->linear_backward_weight(p->dw + t.one, p->dw + t.one_bias, d.q1, m.last, p->n, H, H);
  if (m.g.M > 0)
    p->kernels->linear_backward_weight(p->dw + t.two, p->dw + t.two_bias, d.q2, p->x, m.g.M, H, H);
  else
    memset(p->dw + t.two, 0, (H * H + H) * sizeof *p->dw);
}

static size_t macs(const gt_op *op) {
  const size_t H = op->table.width;
  return (op->table.fields + 1) * H * H + 2 * op->table.fields * H;
}

const gt_op_kind gt_op_readout = {.name = "readout",
                                  .kernel = "attend",
                                  .reads_samples = true,
                                  .input_reads = GT_READS_INPUT,
                                  .weight_reads = GT_READS_INPUT,
                                  .forward = forward,
                                  .backward_input = backward_input,
                                  .backward_weight = backward_weight,
                                  .state = state,
                                  .work = work,
                                  .macs = macs};

void gt_graph_add_readout(gt_graph *graph, const char *one, const char *two, const char *three) {
  const gt_table table = graph->ops[graph->from].table;
  const size_t H = table.width;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)H)};
  const char *const names[] = {one, two};
  size_t first = GT_NO_VIEW;
  for (size_t i = 0; i < 2; i++) {
    const size_t at =
        gt_graph_add_param(graph, names[i], "weight", uniform, GT_LAYOUT_SAME, 2, (size_t[]){H, H});
    gt_graph_add_param(graph, names[i], "bias", uniform, GT_LAYOUT_SAME, 1, &H);
    if (i == 0) first = at;
  }
  gt_graph_add_param(graph, three, "weight", uniform, GT_LAYOUT_SAME, 2, (size_t[]){1, H});
  gt_op *op = gt_graph_append(graph, &gt_op_readout, "readout");
  op->weight = first;
  op->table = table;
  gt_graph_set_extent(graph, (gt_extent){1, 1, 2 * H});
}
