/* Lower bounds of a round's time.  Regions repeat rounds: region a begins the next one when it has
   the mean, and the mean needs the contribution of every region b.  So two rounds take at least the
   time from a to b and back to a, for every a and b. */
#include <math.h>

#include "topology.h"

#define PAIRS ((size_t)64) /* most regions for a bound of every pair, else only a with itself */

/* ---- chains ---------------------------------------------------------------------------------- */

topology_chain gt_topology_link(const topology_map *map, size_t from, size_t to, double slowest_s) {
  const size_t i = from * map->n + to;
  return (topology_chain){.first = map->first_s[i],
                          .last = map->last_s[i],
                          .best = (map->frames - 1) * slowest_s + map->last_s[i],
                          .latency = map->latency_s[i]};
}

topology_chain gt_topology_join(topology_chain a, topology_chain b) {
  return (topology_chain){.first = a.first + b.first,
                          .last = a.last + b.last,
                          .best = fmax(a.best + b.last, a.first + b.best),
                          .latency = a.latency + b.latency};
}

/* The parent's access receives a piece of every child, and sends one to every child. */
topology_chain gt_topology_up(const topology_map *map, size_t child, size_t parent,
                              size_t nchildren) {
  return gt_topology_link(
      map, child, parent,
      fmax(map->first_s[child * map->n + parent], (double)nchildren * map->piece_s[parent]));
}

topology_chain gt_topology_down(const topology_map *map, size_t child, size_t parent,
                                size_t nchildren) {
  return gt_topology_link(
      map, parent, child,
      fmax(map->first_s[parent * map->n + child], (double)nchildren * map->piece_s[parent]));
}

static double access_s(const topology_map *map, size_t region, double messages) {
  const double bytes = map->bytes + GT_FRAME_HEADER_BYTES * map->frames;
  return map->access_bps[region] > 0 ? messages * 8 * bytes / map->access_bps[region] : 0;
}

static double link_s(const topology_map *map, size_t from, size_t to, double messages) {
  const double bytes = map->bytes + GT_FRAME_HEADER_BYTES * map->frames,
               rate_bps = map->rate_bps[from * map->n + to];
  return rate_bps > 0 ? messages * 8 * bytes / rate_bps : 0;
}

/* ---- mesh ------------------------------------------------------------------------------------ */

static double mesh_region(const topology_map *map, size_t a) {
  double worst = 0, least = INFINITY;
  for (size_t b = 0; b < map->n; b++) {
    if (a == b) continue;
    const double there = link_s(map, a, b, 1) + map->latency_s[a * map->n + b],
                 back = link_s(map, b, a, 1) + map->latency_s[b * map->n + a];
    worst = fmax(worst, map->rounds ? (there + back) / 2 : link_s(map, a, b, 1));
    least = fmin(least, map->latency_s[a * map->n + b]);
  }
  if (!map->rounds) least = 0;
  return fmax(worst, access_s(map, a, (double)map->n - 1) + least);
}

double gt_topology_mesh_bound(const topology_map *map) {
  double worst = 0;
  for (size_t a = 0; a < map->n && map->n > 1; a++) worst = fmax(worst, mesh_region(map, a));
  return worst;
}

/* ---- trees ----------------------------------------------------------------------------------- */

typedef struct {
  const topology_map *map;
  const size_t *parent;
  size_t *order;             /* n: parents before their children */
  size_t *first, *beside;    /* n: the first child, the next one of the same parent; n: none */
  size_t *nchildren;         /* n */
  topology_chain *up, *down; /* n: to the root and from it */
} tree;

static void hang_children(tree *t, size_t *root) {
  const size_t n = t->map->n;
  for (size_t r = 0; r < n; r++) t->first[r] = n;
  for (size_t r = n; r-- > 0;) {
    const size_t above = t->parent[r];
    if (above == r) *root = r;
    if (above == r) continue;
    t->beside[r] = t->first[above];
    t->first[above] = r;
    t->nchildren[above]++;
  }
}

static void tree_open(tree *t, const topology_map *map, const size_t *parent) {
  const size_t n = map->n;
  size_t root = 0, placed = 0;
  *t = (tree){.map = map,
              .parent = parent,
              .order = GT_NEW_ARRAY(size_t, n),
              .first = GT_NEW_ARRAY(size_t, n),
              .beside = GT_NEW_ARRAY(size_t, n),
              .nchildren = GT_NEW_ARRAY(size_t, n),
              .up = GT_NEW_ARRAY(topology_chain, n),
              .down = GT_NEW_ARRAY(topology_chain, n)};
  hang_children(t, &root);
  t->order[placed++] = root;
  for (size_t i = 0; i < placed; i++) {
    const size_t at = t->order[i];
    for (size_t r = t->first[at]; r < n; r = t->beside[r]) {
      t->order[placed++] = r;
      t->up[r] = gt_topology_join(gt_topology_up(map, r, at, t->nchildren[at]), t->up[at]);
      t->down[r] = gt_topology_join(t->down[at], gt_topology_down(map, r, at, t->nchildren[at]));
    }
  }
}

static void tree_close(tree *t) {
  gt_free(t->order);
  gt_free(t->first);
  gt_free(t->beside);
  gt_free(t->nchildren);
  gt_free(t->up);
  gt_free(t->down);
}

static double edge_s(const topology_map *map, const double *piece_s, size_t from, size_t to) {
  const size_t i = from * map->n + to;
  return piece_s[i] + map->latency_s[i];
}

/* back[r]: seconds from the end of a round in r until it can begin to send up the next one, of
   which every region below must send a piece. */
static void find_back(const tree *t, double *back) {
  const topology_map *map = t->map;
  for (size_t i = map->n; i-- > 1;) {
    const size_t r = t->order[i], above = t->parent[r];
    const double both_s =
        edge_s(map, map->last_s, above, r) + back[r] + edge_s(map, map->first_s, r, above);
    back[above] = fmax(back[above], both_s);
  }
}

/* Returns the load of an inner region's access: the sum goes up, and, when a piece of it has come
   back as the mean, the mean goes to each child.  The last piece of the mean leads to the next
   round, in any order of the children. */
static double load_of(const tree *t, size_t region, double back) {
  const topology_map *map = t->map;
  const double children = (double)t->nchildren[region];
  if (t->nchildren[region] == 0 || map->access_bps[region] <= 0) return 0;
  const topology_chain *up = &t->up[region], *down = &t->down[region];
  const double wait_s = up->first + up->latency + down->first + down->latency,
               message_s = t->parent[region] == region ? 0 : access_s(map, region, 1);
  return children * access_s(map, region, 1) + fmax(wait_s, message_s) + back -
         children * map->piece_s[region];
}

static double rounds_bound(const tree *t) {
  const topology_map *map = t->map;
  double worst = 0, *back = GT_NEW_ARRAY(double, map->n);
  find_back(t, back);
  for (size_t a = 0; a < map->n; a++) {
    worst = fmax(worst, load_of(t, a, back[a]));
    if (!map->contributes[a]) continue;
    for (size_t b = map->n > PAIRS ? a : 0; b <= a; b++)
      if (map->contributes[b])
        worst = fmax(
            worst,
            (gt_topology_time(t->up[a], t->down[b]) + gt_topology_time(t->up[b], t->down[a])) / 2);
  }
  gt_free(back);
  return worst;
}

/* Every link passes the messages of all regions behind it, and so do the accesses. */
static double broadcast_bound(const tree *t) {
  const topology_map *map = t->map;
  const double all = (double)map->members;
  double worst = 0, *below = GT_NEW_ARRAY(double, map->n), *in = GT_NEW_ARRAY(double, map->n),
         *out = GT_NEW_ARRAY(double, map->n);
  for (size_t i = map->n; i-- > 0;) {
    const size_t r = t->order[i], above = t->parent[r];
    below[r] += map->contributes[r];
    if (above == r) continue;
    below[above] += below[r];
    worst =
        fmax(worst, fmax(link_s(map, r, above, below[r]), link_s(map, above, r, all - below[r])));
    out[r] += below[r], in[above] += below[r];
    in[r] += all - below[r], out[above] += all - below[r];
  }
  for (size_t r = 0; r < map->n; r++) worst = fmax(worst, access_s(map, r, fmax(in[r], out[r])));
  gt_free(below);
  gt_free(in);
  gt_free(out);
  return worst;
}

double gt_topology_tree_bound(const topology_map *map, const size_t *parent) {
  tree t;
  tree_open(&t, map, parent);
  const double bound = map->rounds ? rounds_bound(&t) : broadcast_bound(&t);
  tree_close(&t);
  return bound;
}

/* ---- ring ------------------------------------------------------------------------------------ */

/* 2 (n - 1) steps; each takes as long as the slowest link does, and as long as the mean of all
   takes with its latency, because a chunk goes round. */
double gt_topology_ring_bound(const topology_map *map, const size_t *order) {
  const double n = (double)map->n;
  double slowest = 0, sum = 0;
  for (size_t i = 0; i < map->n; i++) {
    const size_t from = order[i], to = order[(i + 1) % map->n];
    const double chunk_s = link_s(map, from, to, 1 / n);
    slowest = fmax(slowest, chunk_s);
    sum += chunk_s + map->latency_s[from * map->n + to];
  }
  return 2 * (n - 1) * fmax(slowest, sum / n);
}
