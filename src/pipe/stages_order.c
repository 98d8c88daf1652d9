/* The orders of groups that are tried. */
#include <math.h>

#include "stages.h"

static void open_order(gt_pipe_order *order, size_t nodes, size_t edges) {
  *order = (gt_pipe_order){.group = GT_NEW_ARRAY(size_t, nodes),
                           .ends = GT_NEW_ARRAY(bool, nodes),
                           .first = GT_NEW_ARRAY(size_t, nodes + 1),
                           .next = GT_NEW_ARRAY(size_t, edges + 1)};
}

void gt_pipe_order_close(gt_pipe_order *order) {
  gt_free(order->group);
  gt_free(order->ends);
  gt_free(order->first);
  gt_free(order->next);
  *order = (gt_pipe_order){0};
}

static void add_node(gt_pipe_order *order, size_t group, bool ends) {
  order->group[order->n] = group;
  order->ends[order->n++] = ends;
  order->first[order->n] = order->first[order->n - 1];
}

static void add_edge(gt_pipe_order *order, size_t next) {
  order->next[order->first[order->n]++] = next;
}

/* ---- all orders ------------------------------------------------------------------------------ */

static bool holds(size_t set, size_t group) {
  return ((set >> group) & 1) == 1;
}

/* Whether `group` may come before the groups of `set`, of which `next` comes first: it stays in the
   region of `next`, or none of its own region is behind. */
static bool may_precede(const gt_pipe_stages_problem *p, size_t set, size_t group, size_t next) {
  size_t region = p->groups[group].region;
  if (p->groups[next].region == region) return true;
  for (size_t g = 0; g < p->ngroups; g++)
    if (holds(set, g) && p->groups[g].region == region) return false;
  return true;
}

void gt_pipe_order_all(gt_pipe_order *order, const gt_pipe_stages_problem *problem) {
  size_t n = problem->ngroups, sets = (size_t)1 << n;
  open_order(order, sets * n, sets * n * n);
  size_t *node = GT_NEW_ARRAY(size_t, sets * n); /* of a set and its first group */
  for (size_t set = 1; set < sets; set++)
    for (size_t g = 0; g < n; g++) {
      if (!holds(set, g)) continue;
      size_t behind = set & ~((size_t)1 << g);
      node[set * n + g] = order->n;
      add_node(order, g, behind == 0);
      for (size_t next = 0; next < n; next++)
        if (holds(behind, next) && may_precede(problem, behind, g, next))
          add_edge(order, node[behind * n + next]);
    }
  gt_free(node);
}

/* ---- nearest neighbours ---------------------------------------------------------------------- */

/* Seconds for a micro-batch's mean cut in the slower direction. */
static double distance(const gt_pipe_stages_problem *p, double bytes, size_t a, size_t b) {
  return fmax(gt_pipe_transfer_s(p->between[a * p->ngroups + b], bytes),
              gt_pipe_transfer_s(p->between[b * p->ngroups + a], bytes));
}

static double mean_cut_bytes(const gt_pipe_stages_problem *p) {
  double bytes = 0;
  for (size_t i = 1; i < p->noperations; i++) bytes += p->operations[i].cut_bytes;
  return (double)p->micro_batch * bytes / (double)p->noperations;
}

/* The nearest group to `at` that is not used, of its region if there is one. */
static size_t nearest(const gt_pipe_stages_problem *p, double bytes, const bool *used, size_t at) {
  size_t best = p->ngroups, region = p->groups[at].region;
  bool best_own = false;
  for (size_t g = 0; g < p->ngroups; g++) {
    bool own = p->groups[g].region == region;
    if (used[g] || (best_own && !own)) continue;
    if (best == p->ngroups || (own && !best_own) ||
        distance(p, bytes, at, g) < distance(p, bytes, at, best))
      best = g;
    best_own = best_own || own;
  }
  return best;
}

void gt_pipe_order_near(gt_pipe_order *order, const gt_pipe_stages_problem *problem, size_t last) {
  size_t n = problem->ngroups;
  bool *used = GT_NEW_ARRAY(bool, n);
  double bytes = mean_cut_bytes(problem);
  open_order(order, n, n * n);
  for (size_t at = last; at < n; at = nearest(problem, bytes, used, at)) {
    used[at] = true;
    add_node(order, at, true);
    for (size_t next = 0; next + 1 < order->n; next++) add_edge(order, next);
  }
  gt_free(used);
}
