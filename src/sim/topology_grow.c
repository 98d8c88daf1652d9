/* Every rooted tree and every ring of up to 8 regions, with a bound for each.  Trees grow from the
   root: the first region without children gets some of the remaining regions as its children.  So
   each tree occurs once, and one whose paths take too long does not grow further. */
#include <math.h>

#include "topology.h"

/* n is at most TOPOLOGY_EXACT. */
static void add(topology_list *list, double bound, const size_t *at, size_t n) {
  GT_GROW(list->all, list->n, list->capacity, 1024);
  topology_candidate *c = &list->all[list->n++];
  c->bound = bound;
  for (size_t i = 0; i < n && i < TOPOLOGY_EXACT; i++) c->at[i] = (uint8_t)at[i];
}

/* ---- trees ----------------------------------------------------------------------------------- */

typedef struct {
  topology_list *list;
  const topology_map *map;
  double limit_s;
  size_t parent[TOPOLOGY_EXACT];
  size_t queue[TOPOLOGY_EXACT], queued; /* regions with a parent, in the order of growing */
  unsigned left;                        /* bits of the other regions */
  topology_chain up[TOPOLOGY_EXACT], down[TOPOLOGY_EXACT];
} growth;

static void grow(growth *g, size_t at);

/* True if the child's round trip to the root is short enough. */
static bool attach(growth *g, size_t child, size_t parent, size_t nchildren) {
  const topology_map *map = g->map;
  g->parent[child] = parent;
  g->up[child] = gt_topology_join(gt_topology_up(map, child, parent, nchildren), g->up[parent]);
  g->down[child] =
      gt_topology_join(g->down[parent], gt_topology_down(map, child, parent, nchildren));
  g->queue[g->queued++] = child;
  return !map->rounds || !map->contributes[child] ||
         gt_topology_time(g->up[child], g->down[child]) < g->limit_s;
}

static bool attach_all(growth *g, unsigned children, size_t parent) {
  const size_t n = (size_t)__builtin_popcount(children);
  for (size_t r = 0; r < g->map->n; r++)
    if (children >> r & 1 && !attach(g, r, parent, n)) return false;
  return true;
}

static void take_children(growth *g, unsigned children, size_t at) {
  const size_t queued = g->queued;
  g->left &= ~children;
  if (attach_all(g, children, g->queue[at])) grow(g, at + 1);
  g->queued = queued;
  g->left |= children;
}

static void grow(growth *g, size_t at) {
  if (g->left == 0) {
    if (g->queue[0] == g->parent[g->queue[g->queued - 1]]) return; /* a hub */
    const double bound = gt_topology_tree_bound(g->map, g->parent);
    if (bound < g->limit_s) add(g->list, bound, g->parent, g->map->n);
    return;
  }
  if (at == g->queued) return;
  const unsigned left = g->left;
  for (unsigned children = left;; children = (children - 1) & left) {
    take_children(g, children, at);
    if (children == 0) return;
  }
}

void gt_topology_grow_trees(topology_list *list, const topology_map *map, double limit_s) {
  for (size_t root = 0; root < map->n; root++) {
    growth g = {.list = list, .map = map, .limit_s = limit_s, .queued = 1};
    g.parent[root] = g.queue[0] = root;
    g.left = ((1U << map->n) - 1) & ~(1U << root);
    grow(&g, 0);
  }
}

/* ---- rings ----------------------------------------------------------------------------------- */

typedef struct {
  topology_list *list;
  const topology_map *map;
  size_t order[TOPOLOGY_EXACT];
} turns;

static void swap(size_t *a, size_t *b) {
  const size_t c = *a;
  *a = *b;
  *b = c;
}

static void permute(turns *t, size_t placed) {
  const size_t n = t->map->n;
  if (placed == n) {
    add(t->list, gt_topology_ring_bound(t->map, t->order), t->order, n);
    return;
  }
  for (size_t i = placed; i < n; i++) {
    swap(&t->order[placed], &t->order[i]);
    permute(t, placed + 1);
    swap(&t->order[placed], &t->order[i]);
  }
}

void gt_topology_grow_rings(topology_list *list, const topology_map *map) {
  turns t = {.list = list, .map = map};
  for (size_t r = 0; r < map->n; r++) t.order[r] = r;
  permute(&t, 1);
}
