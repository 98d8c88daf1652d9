/* Routes: checks of the next hops of a topology, and a search for the fastest ones by latency and
   rate of the links. */
#include <math.h>
#include <string.h>

#include "internal.h"

gt_routes gt_routes_copy(const gt_routes *routes, size_t nregions) {
  gt_routes copy = {.topology = routes->topology};
  if (!routes->next) return copy;
  copy.next = GT_NEW_ARRAY(size_t, nregions);
  memcpy(copy.next, routes->next, nregions * sizeof *copy.next);
  return copy;
}

void gt_routes_close(gt_routes *routes) {
  gt_free(routes->next);
  routes->next = NULL;
}

static bool is_inside(const gt_routes *routes, size_t nregions) {
  for (size_t r = 0; r < nregions; r++)
    if (routes->next[r] >= nregions) return false;
  return true;
}

static bool is_ring(const size_t *next, size_t nregions) {
  size_t steps = 1;
  for (size_t at = next[0]; at != 0 && steps <= nregions; at = next[at]) steps++;
  return steps == nregions;
}

static bool is_tree(const size_t *parent, size_t nregions) {
  size_t roots = 0;
  for (size_t r = 0; r < nregions; r++) {
    size_t at = r, steps = 0;
    while (parent[at] != at && steps++ < nregions) at = parent[at];
    if (parent[at] != at) return false;
    roots += parent[r] == r;
  }
  return roots == 1;
}

bool gt_routes_sound(const gt_routes *routes, size_t nregions) {
  if (routes->topology == GT_TOPOLOGY_MESH || !routes->next)
    return routes->topology == GT_TOPOLOGY_MESH && !routes->next;
  if (!is_inside(routes, nregions)) return false;
  return routes->topology == GT_TOPOLOGY_RING ? is_ring(routes->next, nregions)
                                              : is_tree(routes->next, nregions);
}

/* ---- search ------------------------------------------------------------------------------------
   */

#define EXACT 8 /* with at most this number of regions all rings are compared */

typedef struct {
  const gt_links *links;
  const size_t *regions; /* n, indices in `links`; NULL: the first n */
  size_t n;
  double bits; /* of a message */
} map;

/* Returns the seconds that a message takes in the slower of the two directions. */
static double cost(const map *m, size_t a, size_t b) {
  double most = 0;
  if (m->regions) {
    a = m->regions[a];
    b = m->regions[b];
  }
  for (int back = 0; back < 2; back++) {
    const gt_link_spec *link = &gt_links_from(m->links, back ? b : a)[back ? a : b];
    const double rate = gt_link_goodput(link),
                 seconds = link->latency_s + (rate > 0 ? m->bits / rate : 0);
    most = fmax(most, seconds);
  }
  return most;
}

/* ---- hub ------------------------------------------------------------------------------------- */

/* Returns the region with the least time from its farthest region. */
static size_t best_hub(const map *m) {
  size_t best = 0;
  double least = INFINITY;
  for (size_t h = 0; h < m->n; h++) {
    double farthest = 0;
    for (size_t r = 0; r < m->n; r++)
      if (r != h) farthest = fmax(farthest, cost(m, r, h));
    if (farthest >= least) continue;
    least = farthest;
    best = h;
  }
  return best;
}

/* ---- ring ------------------------------------------------------------------------------------ */

typedef struct {
  const map *m;
  size_t order[EXACT], best[EXACT];
  bool used[EXACT];
  double least, least_sum;
} search;

/* Finds the ring whose slowest link is fastest, because every step waits for that link.  Among
   equals, the ring with the least sum of times. */
static void try_rings(search *s, size_t placed, double slowest, double sum) {
  const map *m = s->m;
  if (slowest > s->least) return;
  if (placed == m->n) {
    const double last = cost(m, s->order[placed - 1], s->order[0]), worst = fmax(slowest, last);
    if (worst > s->least || (worst == s->least && sum + last >= s->least_sum)) return;
    s->least = worst;
    s->least_sum = sum + last;
    for (size_t i = 0; i < placed; i++) s->best[i] = s->order[i];
    return;
  }
  for (size_t r = 1; r < m->n && placed < EXACT; r++) { /* m->n is at most EXACT */
    if (s->used[r]) continue;
    const double seconds = cost(m, s->order[placed - 1], r);
    s->used[r] = true;
    s->order[placed] = r;
    try_rings(s, placed + 1, fmax(slowest, seconds), sum + seconds);
    s->used[r] = false;
  }
}

/* Appends the nearest unused region until all are used. */
static void greedy_ring(const map *m, size_t *next) {
  bool *used = GT_NEW_ARRAY(bool, m->n);
  size_t at = 0;
  for (size_t k = 1; k < m->n; k++) {
    size_t nearest = m->n;
    used[at] = true;
    for (size_t r = 0; r < m->n; r++)
      if (!used[r] && (nearest == m->n || cost(m, at, r) < cost(m, at, nearest))) nearest = r;
    next[at] = nearest;
    at = nearest;
  }
  next[at] = 0;
  gt_free(used);
}

static void make_ring(const map *m, size_t *next) {
  if (m->n > EXACT) {
    greedy_ring(m, next);
    return;
  }
  search s = {.m = m, .least = INFINITY, .least_sum = INFINITY};
  try_rings(&s, 1, 0, 0);
  for (size_t i = 0; i < m->n; i++) next[s.best[i]] = s.best[(i + 1) % m->n];
}

/* ---- all ------------------------------------------------------------------------------------- */

void gt_topology_place(gt_topology topology, const gt_links *links, size_t nregions, size_t bytes,
                       size_t hub, size_t *next) {
  gt_topology_place_among(topology, links, NULL, nregions, bytes, hub, next);
}

void gt_topology_place_among(gt_topology topology, const gt_links *links, const size_t *regions,
                             size_t n, size_t bytes, size_t hub, size_t *next) {
  const map m = {.links = links, .regions = regions, .n = n, .bits = 8 * (double)bytes};
  if (topology == GT_TOPOLOGY_RING)
    make_ring(&m, next);
  else
    for (size_t r = 0; r < n; r++) next[r] = hub < n ? hub : best_hub(&m);
}
