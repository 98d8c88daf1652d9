/* The dynamic programme over operations, devices used of a group, and stages behind.

   Stages are placed from the last one on.  For a node of the order, whose group has D devices,

     table[a][u][k]   the value of the best pipeline of operations a.. in k stages, of which the
                      first ones, with u devices together, are of this group; u = 0: all its stages
                      are of groups that follow, and the hop to them is in the value
     table[a][u][k + 1] = least over e > a and d <= u of stage(a..e-1, d) joined with
                      the hop inside the group at e (none if u = d) and table[e][u - d][k]
     exits[a][k]      least of table[a][u][k] over u > 0: what the nodes before it need

   Values are joined by max of busy times, or by sums of the times for which a micro-batch passes,
   over what is not busier than the limit. */
#include <math.h>

#include "stages.h"

typedef struct {
  const gt_pipe_costs *costs;
  const gt_pipe_stages_problem *problem;
  const gt_pipe_order *order;
  bool passing; /* values are sums of passing times; otherwise maxima of busy times */
  double limit_s;
  size_t n, most;  /* operations, stages */
  size_t useful;   /* devices of a group; more of them can have no stage */
  double *exits;   /* order->n x (n + 1) x (most + 1) */
  double *table;   /* (n + 1) x (devices of the largest group + 1) x (most + 1) */
  double *inside;  /* n + 1: value of the hop inside the node's group, by the cut */
  bool *reached;   /* n + 1: table[a] holds a finite value */
  double *flight;  /* most: micro-batches in flight by stages behind */
  int64_t *shares; /* device counts worth trying, ascending: fewer of them have larger shares */
  size_t nshares;
} search;

/* ---- values ---------------------------------------------------------------------------------- */

static double joined(const search *s, double a, double b) {
  return s->passing ? a + b : fmax(a, b);
}

static double stage_value(const search *s, const gt_pipe_stage *stage) {
  if (stage->busy_s > s->limit_s) return INFINITY;
  return s->passing ? stage->forward_s + stage->input_s : stage->busy_s;
}

static double hop_value(const search *s, size_t from, size_t to, size_t cut) {
  gt_pipe_crossing hop = gt_pipe_costs_hop(s->problem, from, to, cut);
  if (hop.busy_s > s->limit_s) return INFINITY;
  return s->passing ? hop.send_s + hop.back_s : hop.busy_s;
}

/* A stage that may be put in front of table[end], and what it adds. */
typedef struct {
  size_t end;
  double value;
  gt_pipe_memory memory;
  double memory_bytes; /* that there are */
} addition;

/* false: no stage with these devices that ends here or later is within the limit. */
static bool step_of(const search *s, size_t group, size_t a, size_t end, int64_t devices,
                    addition *out) {
  gt_pipe_stage stage = gt_pipe_costs_stage(s->costs, group, a, end, devices);
  *out = (addition){.end = end,
                    .value = stage_value(s, &stage),
                    .memory = gt_pipe_costs_memory(s->costs, a, end, devices),
                    .memory_bytes = s->problem->groups[group].memory_bytes};
  return out->value < INFINITY;
}

static bool fits(const search *s, const addition *step, size_t behind) {
  return step->memory.fixed_bytes + s->flight[behind] * step->memory.flight_bytes <=
         step->memory_bytes;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static size_t devices_of(const search *s, size_t node) {
  size_t count = (size_t)s->problem->groups[s->order->group[node]].count;
  return count < s->useful ? count : s->useful;
}

static double *row(const search *s, size_t devices, size_t a, size_t used) {
  return &s->table[(a * (devices + 1) + used) * (s->most + 1)];
}

static double *exits(const search *s, size_t node, size_t a) {
  return &s->exits[(node * (s->n + 1) + a) * (s->most + 1)];
}

/* Stages that may lie behind a stage that ends before operation `end`: from, to - 1. */
typedef struct {
  size_t from, to;
} range;

static range stages_behind(const search *s, size_t end) {
  if (end == s->n) return (range){0, 1};
  return (range){1, s->n - end + 1 < s->most ? s->n - end + 1 : s->most};
}

/* table[a][0] for a cut between groups: the best of the nodes that may follow. */
static void enter_at(const search *s, size_t node, size_t a, double *entry) {
  const gt_pipe_order *o = s->order;
  for (size_t i = o->first[node]; i < o->first[node + 1]; i++) {
    double hop = hop_value(s, o->group[node], o->group[o->next[i]], a);
    const double *from = exits(s, o->next[i], a);
    for (size_t k = 1; k <= s->most; k++) entry[k] = fmin(entry[k], joined(s, hop, from[k]));
  }
  for (size_t k = 1; k <= s->most; k++) s->reached[a] = s->reached[a] || entry[k] < INFINITY;
}

/* table[..][0]: nothing of this group is used yet. */
static void enter(const search *s, size_t node) {
  size_t devices = devices_of(s, node), group = s->order->group[node];
  for (size_t a = 0; a <= s->n; a++) {
    double *entry = row(s, devices, a, 0);
    for (size_t k = 0; k <= s->most; k++) entry[k] = INFINITY;
    s->reached[a] = a == s->n && s->order->ends[node];
    if (s->reached[a]) entry[0] = 0;
    if (a == 0 || a == s->n) continue;
    s->inside[a] = hop_value(s, group, group, a);
    enter_at(s, node, a, entry);
  }
}

/* Puts a stage in front of one row of the table.  Whether a value is better than before. */
static bool extend(const search *s, const addition *step, double value, const double *from,
                   double *to) {
  range span = stages_behind(s, step->end);
  bool better = false;
  for (size_t k = span.from; k < span.to; k++) {
    double v = s->passing ? value + from[k] : value > from[k] ? value : from[k];
    if (!(v < to[k + 1]) || !fits(s, step, k)) continue;
    to[k + 1] = v;
    better = true;
  }
  return better;
}

/* Puts stages with d devices that begin at operation a in front of what is reached. */
static void place_at(const search *s, size_t node, size_t a, size_t d) {
  size_t devices = devices_of(s, node), group = s->order->group[node];
  for (size_t end = a + 1; end <= s->n; end++) {
    addition step;
    if (!s->reached[end]) continue;
    if (!step_of(s, group, a, end, (int64_t)d, &step)) return;
    for (size_t u = d; u <= devices; u++) {
      double value = u > d ? joined(s, step.value, s->inside[end]) : step.value;
      if (extend(s, &step, value, row(s, devices, end, u - d), row(s, devices, a, u)))
        s->reached[a] = true;
    }
  }
}

static void place(const search *s, size_t node) {
  size_t devices = devices_of(s, node);
  for (size_t a = s->n + 1; a-- > 0;) {
    double *to = row(s, devices, a, 1);
    for (size_t i = 0; i < devices * (s->most + 1); i++) to[i] = INFINITY;
    for (size_t i = 0; i < s->nshares && (size_t)s->shares[i] <= devices; i++)
      place_at(s, node, a, (size_t)s->shares[i]);
  }
}

static void leave(const search *s, size_t node) {
  size_t devices = devices_of(s, node);
  for (size_t a = 0; a <= s->n; a++) {
    double *to = exits(s, node, a);
    for (size_t k = 0; k <= s->most; k++) to[k] = INFINITY;
    for (size_t u = 1; u <= devices; u++) {
      const double *from = row(s, devices, a, u);
      for (size_t k = 1; k <= s->most; k++) to[k] = fmin(to[k], from[k]);
    }
  }
}

/* ---- search ---------------------------------------------------------------------------------- */

static size_t most_stages(const gt_pipe_stages_problem *p) {
  size_t most = p->noperations, devices = 0;
  for (size_t g = 0; g < p->ngroups; g++) devices += (size_t)p->groups[g].count;
  if (devices < most) most = devices;
  return p->stages_max > 0 && p->stages_max < most ? p->stages_max : most;
}

/* The least count for each share of the micro-batch: with more devices and the same share a stage
   is not faster, and its exchange is longer. */
static void list_shares(search *s, int64_t largest) {
  int64_t samples = s->problem->micro_batch, share = 0;
  s->shares = GT_NEW_ARRAY(int64_t, (size_t)largest);
  for (int64_t d = 1; d <= largest && d <= samples; d++) {
    int64_t of_d = (samples + d - 1) / d;
    if (s->nshares == 0 || of_d < share) s->shares[s->nshares++] = d;
    share = of_d;
  }
}

static search open_search(const gt_pipe_costs *costs, const gt_pipe_order *order, bool passing,
                          double limit_s) {
  const gt_pipe_stages_problem *p = costs->problem;
  int64_t largest = 0;
  for (size_t g = 0; g < p->ngroups; g++)
    if (p->groups[g].count > largest) largest = p->groups[g].count;
  search s = {.costs = costs, .problem = p, .order = order, .passing = passing};
  s.limit_s = limit_s;
  s.n = p->noperations;
  s.most = most_stages(p);
  list_shares(&s, largest);
  s.useful = s.most * (size_t)s.shares[s.nshares - 1];
  size_t area = (s.n + 1) * (s.most + 1);
  size_t devices = (size_t)largest < s.useful ? (size_t)largest : s.useful;
  size_t of_exits = area * order->n, of_table = area * (devices + 1);
  s.exits = GT_NEW_ARRAY(double, of_exits);
  s.table = GT_NEW_ARRAY(double, of_table);
  s.inside = GT_NEW_ARRAY(double, s.n + 1);
  s.reached = GT_NEW_ARRAY(bool, s.n + 1);
  s.flight = GT_NEW_ARRAY(double, s.most);
  for (size_t k = 0; k < s.most; k++) s.flight[k] = gt_pipe_costs_flight(p, k);
  return s;
}

static void close_search(search *s) {
  gt_free(s->exits);
  gt_free(s->table);
  gt_free(s->inside);
  gt_free(s->reached);
  gt_free(s->flight);
  gt_free(s->shares);
}

/* Where the pipeline is in the programme: its next stage begins at operation a. */
typedef struct {
  size_t node, a, k; /* k stages are left */
  double value;
} position;

/* Fills the exits of all nodes; the best start of a pipeline. */
static position run(const search *s) {
  size_t least = s->problem->stages_min > 1 ? s->problem->stages_min : 1;
  position best = {.value = INFINITY};
  for (size_t node = 0; node < s->order->n; node++) {
    enter(s, node);
    place(s, node);
    leave(s, node);
    if (!gt_pipe_costs_may_start(s->problem, s->order->group[node])) continue;
    for (size_t k = least; k <= s->most; k++) {
      double value = exits(s, node, 0)[k];
      if (value < best.value) best = (position){node, 0, k, value};
    }
  }
  return best;
}

/* ---- the way back ---------------------------------------------------------------------------- */

static size_t best_used(const search *s, const position *at) {
  size_t devices = devices_of(s, at->node), best = 1;
  for (size_t u = 2; u <= devices; u++)
    if (row(s, devices, at->a, u)[at->k] < row(s, devices, at->a, best)[at->k]) best = u;
  return best;
}

/* The stage in front of which table[a][used][k] found its value. */
static gt_pipe_stage best_stage(const search *s, const position *at, size_t used) {
  size_t devices = devices_of(s, at->node), group = s->order->group[at->node];
  gt_pipe_stage best = {0};
  double least = INFINITY;
  for (size_t i = 0; i < s->nshares && (size_t)s->shares[i] <= used; i++) {
    addition step;
    size_t d = (size_t)s->shares[i], left = used - d;
    for (size_t end = at->a + 1; end <= s->n && step_of(s, group, at->a, end, s->shares[i], &step);
         end++) {
      double value = left > 0 ? joined(s, step.value, s->inside[end]) : step.value;
      value = joined(s, value, row(s, devices, end, left)[at->k - 1]);
      if (!(value < least) || !fits(s, &step, at->k - 1)) continue;
      least = value;
      best =
          (gt_pipe_stage){.group = group, .first = at->a, .last = end - 1, .devices = s->shares[i]};
    }
  }
  return best;
}

static size_t best_next(const search *s, const position *at) {
  const gt_pipe_order *o = s->order;
  size_t best = o->first[at->node];
  double least = INFINITY;
  for (size_t i = o->first[at->node]; i < o->first[at->node + 1]; i++) {
    double value = joined(s, hop_value(s, o->group[at->node], o->group[o->next[i]], at->a),
                          exits(s, o->next[i], at->a)[at->k]);
    if (!(value < least)) continue;
    least = value;
    best = i;
  }
  return o->next[best];
}

/* Tables are kept for one node at a time, and made again here. */
static size_t go_back(const search *s, position at, gt_pipe_stage *stages) {
  size_t n = 0;
  for (;;) {
    enter(s, at.node);
    place(s, at.node);
    for (size_t used = best_used(s, &at); used > 0; used -= (size_t)stages[n++].devices) {
      stages[n] = best_stage(s, &at, used);
      at.a = stages[n].last + 1;
      at.k--;
    }
    if (at.k == 0) return n;
    at.node = best_next(s, &at);
  }
}

double gt_pipe_stages_least(const gt_pipe_costs *costs, const gt_pipe_order *order,
                            double limit_s) {
  search s = open_search(costs, order, false, limit_s);
  position best = run(&s);
  close_search(&s);
  return best.value;
}

size_t gt_pipe_stages_best(const gt_pipe_costs *costs, const gt_pipe_order *order, double limit_s,
                           gt_pipe_stage *stages) {
  search s = open_search(costs, order, true, limit_s);
  position best = run(&s);
  size_t n = best.value < INFINITY ? go_back(&s, best, stages) : 0;
  close_search(&s);
  return n;
}
