/* Good trees and rings for any number of regions: a first one, then changes of one edge at a time
   as long as the bound decreases. */
#include <math.h>
#include <string.h>

#include "topology.h"

/* The most steps of bounds for one tree or ring; a bound takes about n^2 steps, or n for more
   regions than are simulated. */
#define STEPS      ((size_t)10000000)
#define STRIDE     ((size_t)7919) /* between tried changes, so that all regions have their turn */
#define LEAST_GAIN 1e-9

static size_t tries_of(const topology_map *map) {
  return STEPS / (map->n > TOPOLOGY_SIMULATED ? map->n : map->n * map->n);
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* Returns the seconds of a message there and back on one link. */
static double edge_s(const topology_map *map, size_t child, size_t parent) {
  return gt_topology_time(gt_topology_up(map, child, parent, 1),
                          gt_topology_down(map, child, parent, 1));
}

/* Finds a spanning tree of least cost (Prim 1957), or the tree of shortest paths (Dijkstra
   1959). */
static void span(const topology_map *map, size_t root, bool shortest, size_t *parent) {
  const size_t n = map->n;
  double *reach = GT_NEW_ARRAY(double, n), *path = GT_NEW_ARRAY(double, n);
  bool *in = GT_NEW_ARRAY(bool, n);
  for (size_t r = 0; r < n; r++) reach[r] = r == root ? 0 : INFINITY;
  parent[root] = root;
  for (size_t k = 0; k < n; k++) {
    size_t least = n;
    for (size_t r = 0; r < n; r++)
      if (!in[r] && (least == n || reach[r] < reach[least])) least = r;
    in[least] = true;
    if (least != root) path[least] = path[parent[least]] + edge_s(map, least, parent[least]);
    for (size_t r = 0; r < n; r++) {
      const double to = in[r] ? INFINITY : (shortest ? path[least] : 0) + edge_s(map, r, least);
      if (to >= reach[r]) continue;
      reach[r] = to;
      parent[r] = least;
    }
  }
  gt_free(reach);
  gt_free(path);
  gt_free(in);
}

static bool is_below(const size_t *parent, size_t region, size_t above) {
  for (; region != above; region = parent[region])
    if (parent[region] == region) return false;
  return true;
}

/* Makes `root` the root, with the same edges. */
static void hang_from(size_t *parent, size_t root) {
  size_t at = root, above = root;
  for (;;) {
    const size_t next = parent[at];
    parent[at] = above;
    if (next == at) return;
    above = at;
    at = next;
  }
}

bool gt_topology_move(size_t *parent, size_t region, size_t to) {
  if (to == parent[region] || (to != region && is_below(parent, to, region))) return false;
  if (to == region)
    hang_from(parent, region);
  else
    parent[region] = to;
  return true;
}

/* Tries another parent for the region. */
static bool try_parent(const topology_map *map, size_t *parent, size_t *before, size_t region,
                       size_t to, double *bound) {
  const size_t size = map->n * sizeof *parent;
  memcpy(before, parent, size);
  if (!gt_topology_move(parent, region, to)) return false;
  const double found = gt_topology_tree_bound(map, parent);
  if (found < *bound * (1 - LEAST_GAIN)) {
    *bound = found;
    return true;
  }
  memcpy(parent, before, size);
  return false;
}

void gt_topology_improve_tree(const topology_map *map, size_t *parent) {
  const size_t n = map->n;
  double bound = gt_topology_tree_bound(map, parent);
  size_t left = tries_of(map), since = 0, *before = GT_NEW_ARRAY(size_t, n);
  for (size_t i = 0; since < n * n && left > 0; i = (i + STRIDE) % (n * n), since++, left--)
    if (try_parent(map, parent, before, i / n, i % n, &bound)) since = 0;
  gt_free(before);
}

void gt_topology_near_tree(const topology_map *map, size_t start, size_t *parent) {
  const size_t root = start / 2 % map->n;
  span(map, root, start % 2 == 1, parent);
  gt_topology_improve_tree(map, parent);
}

/* ---- rings ----------------------------------------------------------------------------------- */

static double hop_s(const topology_map *map, size_t a, size_t b) {
  const size_t i = a * map->n + b;
  const double bits = 8 * sizeof(float) * map->floats / (double)map->n;
  return map->latency_s[i] + (map->rate_bps[i] > 0 ? bits / map->rate_bps[i] : 0);
}

/* Orders the regions: always the nearest of the rest. */
static void walk(const topology_map *map, size_t *order) {
  const size_t n = map->n;
  for (size_t r = 0; r < n; r++) order[r] = r;
  for (size_t k = 1; k + 1 < n; k++) {
    size_t nearest = k;
    for (size_t i = k; i < n; i++)
      if (hop_s(map, order[k - 1], order[i]) < hop_s(map, order[k - 1], order[nearest]))
        nearest = i;
    const size_t taken = order[nearest];
    order[nearest] = order[k];
    order[k] = taken;
  }
}

static void reverse(size_t *order, size_t from, size_t to) {
  for (; from < to; from++, to--) {
    const size_t r = order[from];
    order[from] = order[to];
    order[to] = r;
  }
}

/* Separates two edges of the ring and joins the ends the other way round (2-opt, Croes 1958). */
void gt_topology_near_ring(const topology_map *map, size_t *order) {
  const size_t n = map->n;
  walk(map, order);
  double bound = gt_topology_ring_bound(map, order);
  size_t left = tries_of(map), since = 0;
  for (size_t i = 0; since < n * n && left > 0; i = (i + STRIDE) % (n * n), since++, left--) {
    const size_t from = i / n, to = i % n;
    if (to <= from) continue;
    reverse(order, from, to);
    const double found = gt_topology_ring_bound(map, order);
    if (found < bound * (1 - LEAST_GAIN)) {
      bound = found;
      since = 0;
    } else {
      reverse(order, from, to);
    }
  }
}
