/* Chooses the topology of an exchange: bounds order the candidates to simulate, and exclude
   others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "topology.h"

/* ---- neighbours of a tree or ring: changes of one edge at a time, as the bound decreases ----- */

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

/* Moves one region at a time as long as the bound decreases. */
static void improve_tree(const topology_map *map, size_t *parent) {
  const size_t n = map->n;
  if (n < 2) return;
  double bound = gt_topology_tree_bound(map, parent);
  size_t left = tries_of(map), since = 0, *before = GT_NEW_ARRAY(size_t, n);
  for (size_t i = 0; since < n * n && left > 0; i = (i + STRIDE) % (n * n), since++, left--)
    if (try_parent(map, parent, before, i / n, i % n, &bound)) since = 0;
  gt_free(before);
}

/* Finds a good tree or ring by its bound: parent n; order n.  start: 2 root, or 2 root + 1: start
   of the search. */
static void near_tree(const topology_map *map, size_t start, size_t *parent) {
  const size_t root = start / 2 % map->n;
  span(map, root, start % 2 == 1, parent);
  improve_tree(map, parent);
}

/* ---- rings ----------------------------------------------------------------------------------- */

static double hop_s(const topology_map *map, size_t a, size_t b) {
  const size_t i = a * map->n + b;
  const double bits = 8 * map->bytes / (double)map->n;
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
static void near_ring(const topology_map *map, size_t *order) {
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

/* Events after which no further candidate of a topology is simulated, with more than TOPOLOGY_EXACT
   regions and with fewer. */
#define EVENTS_NEAR  ((int64_t)3000000)
#define EVENTS_EXACT ((int64_t)20000000)
#define FAR          2  /* times the best: too slow to examine closely */
#define NEAR         16 /* trees or neighbors of a tree that are simulated in a row */
/* The search ends when no candidate can be faster by more than this share: bounds are about as
   exact, and many candidates differ by only a control frame. */
#define SHARE 1e-3

typedef struct {
  topology_world world;
  topology_map map;
  gt_topology_choice *out;
  /* event count after which no further candidate of this topology is simulated */
  int64_t last_event;
} search;

/* ---- one candidate --------------------------------------------------------------------------- */

static void begin(search *s) {
  s->last_event = s->world.events + (s->map.n <= TOPOLOGY_EXACT ? EVENTS_EXACT : EVENTS_NEAR);
}

static bool is_spent(const search *s) {
  return s->world.events > s->last_event;
}

/* Returns the seconds of the best candidate of the topology; INFINITY: none yet. */
static double best_of(const search *s, gt_topology topology) {
  const double seconds = s->out->of[topology].seconds;
  return isnan(seconds) ? INFINITY : seconds;
}

static bool may_be_better(const search *s, gt_topology topology, double bound) {
  return bound < best_of(s, topology) * (1 - SHARE);
}

/* True if a candidate can be simulated; always for the first one. */
static bool may_try(search *s, gt_topology topology) {
  if (!is_spent(s) || isnan(s->out->of[topology].seconds)) return true;
  s->out->exact = false;
  return false;
}

static double best_of_all(const search *s) {
  double least = INFINITY;
  for (gt_topology t = GT_TOPOLOGY_MESH; t < GT_TOPOLOGY_KINDS; t++)
    least = fmin(least, best_of(s, t));
  return least;
}

/* Returns the seconds of a candidate: with many regions, only its bound if it is much slower than
   the best. */
static double seconds_of(search *s, gt_topology topology, const size_t *next, double bound) {
  if (s->out->estimated || (s->map.n > TOPOLOGY_EXACT && bound > FAR * best_of_all(s)))
    return bound;
  return gt_topology_simulate(&s->world, topology, next, best_of(s, topology));
}

/* True if the candidate is the best of its topology so far. */
static bool consider(search *s, gt_topology topology, const size_t *next, double bound) {
  gt_topology_score *score = &s->out->of[topology];
  if (!may_try(s, topology)) return false;
  const double seconds = seconds_of(s, topology, next, bound);
  if (seconds >= best_of(s, topology)) return false;
  gt_routes_close(&score->routes);
  score->routes = gt_routes_copy(&(gt_routes){topology, (size_t *)next}, s->map.n);
  score->seconds = seconds;
  return true;
}

static int by_bound(const void *a, const void *b) {
  const topology_candidate *x = a, *y = b;
  if (x->bound != y->bound) return x->bound < y->bound ? -1 : 1;
  return memcmp(x->at, y->at, sizeof x->at);
}

/* Simulates the candidates that can be better than the best one; unpack: writes `next` of one. */
static void consider_all(search *s, gt_topology topology, topology_list *list,
                         void (*unpack)(const topology_candidate *c, size_t n, size_t *next)) {
  size_t next[TOPOLOGY_EXACT];
  if (list->n > 0) qsort(list->all, list->n, sizeof *list->all, by_bound);
  for (size_t i = 0; i < list->n; i++) {
    const topology_candidate *c = &list->all[i];
    if (!may_be_better(s, topology, c->bound) || !may_try(s, topology)) break;
    unpack(c, s->map.n, next);
    consider(s, topology, next, c->bound);
  }
}

/* ---- mesh and hub ---------------------------------------------------------------------------- */

typedef struct {
  double bound;
  size_t *next;
} proposal;

static int by_promise(const void *a, const void *b) {
  const proposal *x = a, *y = b;
  if (x->bound != y->bound) return x->bound < y->bound ? -1 : 1;
  return (x->next > y->next) - (x->next < y->next); /* rows of one array */
}

/* Considers the most promising `most` of the n proposals, whose `next` are rows of one array. */
static bool consider_best(search *s, gt_topology topology, proposal *all, size_t n, size_t most) {
  bool better = false;
  qsort(all, n, sizeof *all, by_promise);
  for (size_t i = 0; i < n && i < most && may_be_better(s, topology, all[i].bound); i++)
    better |= consider(s, topology, all[i].next, all[i].bound);
  return better;
}

static proposal *proposals(size_t n, size_t *rows, size_t width) {
  proposal *all = GT_NEW_ARRAY(proposal, n);
  for (size_t i = 0; i < n; i++) all[i].next = rows + i * width;
  return all;
}

static void choose_hub(search *s) {
  const size_t n = s->map.n;
  begin(s);
  size_t *rows = GT_NEW_ARRAY(size_t, n * n);
  proposal *hubs = proposals(n, rows, n);
  for (size_t h = 0; h < n; h++) {
    for (size_t r = 0; r < n; r++) hubs[h].next[r] = h;
    hubs[h].bound = gt_topology_tree_bound(&s->map, hubs[h].next);
  }
  consider_best(s, GT_TOPOLOGY_HUB, hubs, n, n);
  gt_free(hubs);
  gt_free(rows);
}

/* ---- tree ------------------------------------------------------------------------------------ */

static bool is_hub(const size_t *parent, size_t n) {
  size_t hub = 0;
  while (parent[hub] != hub) hub++;
  for (size_t r = 0; r < n; r++)
    if (parent[r] != hub) return false;
  return true;
}

/* Makes the best tree that is one move from a hub. */
static void leave_hub(const topology_map *map, size_t *parent) {
  const size_t n = map->n;
  size_t *hub = GT_NEW_ARRAY(size_t, n), *next = GT_NEW_ARRAY(size_t, n);
  double least = INFINITY;
  memcpy(hub, parent, n * sizeof *hub);
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++) {
      memcpy(next, hub, n * sizeof *next);
      if (!gt_topology_move(next, a, b) || is_hub(next, n)) continue;
      const double bound = gt_topology_tree_bound(map, next);
      if (bound >= least) continue;
      least = bound;
      memcpy(parent, next, n * sizeof *next);
    }
  gt_free(hub);
  gt_free(next);
}

/* Improves trees from several roots by their bounds. */
static void plant(search *s) {
  const size_t n = s->map.n,
               roots = n <= 16                   ? n
                       : n <= TOPOLOGY_SIMULATED ? 8
                                                 : 1,
               trees = 2 * roots;
  size_t *rows = GT_NEW_ARRAY(size_t, trees * n);
  proposal *all = proposals(trees, rows, n);
  for (size_t i = 0; i < trees; i++) {
    near_tree(&s->map, i / 2 * n / roots * 2 + i % 2, all[i].next);
    if (!s->out->estimated && is_hub(all[i].next, n)) leave_hub(&s->map, all[i].next);
    all[i].bound = is_hub(all[i].next, n) ? INFINITY : gt_topology_tree_bound(&s->map, all[i].next);
  }
  consider_best(s, GT_TOPOLOGY_TREE, all, trees, NEAR);
  gt_free(all);
  gt_free(rows);
}

/* With too many regions for more: improves the best hub by its bound. */
static void plant_hub(search *s) {
  const size_t n = s->map.n;
  size_t *parent = GT_NEW_ARRAY(size_t, n);
  memcpy(parent, s->out->of[GT_TOPOLOGY_HUB].routes.next, n * sizeof *parent);
  improve_tree(&s->map, parent);
  if (!is_hub(parent, n))
    consider(s, GT_TOPOLOGY_TREE, parent, gt_topology_tree_bound(&s->map, parent));
  gt_free(parent);
}

/* Tries the trees that differ from the best one by the parent of one region. */
static bool try_neighbours(search *s) {
  const size_t n = s->map.n, *best = s->out->of[GT_TOPOLOGY_TREE].routes.next;
  size_t count = 0, *rows = GT_NEW_ARRAY(size_t, n * n * n);
  proposal *all = proposals(n * n, rows, n);
  for (size_t r = 0; r < n; r++)
    for (size_t to = 0; to < n; to++) {
      proposal *p = &all[count];
      memcpy(p->next, best, n * sizeof *best);
      if (!gt_topology_move(p->next, r, to) || is_hub(p->next, n)) continue;
      p->bound = gt_topology_tree_bound(&s->map, p->next);
      count++;
    }
  const bool better = consider_best(s, GT_TOPOLOGY_TREE, all, count, NEAR);
  gt_free(all);
  gt_free(rows);
  return better;
}

static void unpack_tree(const topology_candidate *c, size_t n, size_t *next) {
  for (size_t r = 0; r < n; r++) next[r] = c->at[r];
}

static void choose_tree(search *s) {
  if (s->map.n < 3) return; /* a tree of two is a hub */
  begin(s);
  plant(s);
  if (s->out->estimated) plant_hub(s);
  if (s->map.n <= TOPOLOGY_EXACT) {
    topology_list list = {0};
    gt_topology_grow_trees(&list, &s->map, best_of(s, GT_TOPOLOGY_TREE) * (1 - SHARE));
    consider_all(s, GT_TOPOLOGY_TREE, &list, unpack_tree);
    gt_free(list.all);
    return;
  }
  while (!s->out->estimated && !is_spent(s) && s->out->of[GT_TOPOLOGY_TREE].routes.next &&
         try_neighbours(s))
    continue;
}

/* ---- ring ------------------------------------------------------------------------------------ */

static void next_of_order(const size_t *order, size_t n, size_t *next) {
  for (size_t i = 0; i < n; i++) next[order[i]] = order[(i + 1) % n];
}

static void unpack_ring(const topology_candidate *c, size_t n, size_t *next) {
  for (size_t i = 0; i < n; i++) next[c->at[i]] = c->at[(i + 1) % n];
}

static void choose_ring(search *s) {
  const size_t n = s->map.n;
  size_t *order = GT_NEW_ARRAY(size_t, n), *next = GT_NEW_ARRAY(size_t, n);
  begin(s);
  near_ring(&s->map, order);
  next_of_order(order, n, next);
  consider(s, GT_TOPOLOGY_RING, next, gt_topology_ring_bound(&s->map, order));
  if (n <= TOPOLOGY_EXACT) {
    topology_list list = {0};
    gt_topology_grow_rings(&list, &s->map);
    consider_all(s, GT_TOPOLOGY_RING, &list, unpack_ring);
    gt_free(list.all);
  }
  gt_free(order);
  gt_free(next);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Checks the latencies; a tree of links of unknown latency is found by formulas. */
static gt_status check_links(search *s, const gt_job *job, const gt_links *links) {
  s->out->estimated = job->nregions > TOPOLOGY_SIMULATED;
  for (size_t a = 0; a < job->nregions; a++)
    for (size_t b = 0; b < job->nregions; b++) {
      if (a == b || gt_link_delay_min(&gt_links_from(links, a)[b]) > 0) continue;
      s->out->estimated = true;
      if (job->sync.topology == GT_TOPOLOGY_AUTO)
        return GT_FAIL(
            GT_ERR_JOB,
            "sync.topology is auto, and the link from %s to %s has no latency; to choose "
            "among topologies, every pair of regions needs one above 0 (wan.links, "
            "wan.matrix, wan.default or a profile)",
            job->regions[a].name, job->regions[b].name);
    }
  return GT_OK;
}

/* Takes the hub as tree if it is faster, because a hub is a tree too. */
static void take_hub(gt_topology_choice *out) {
  gt_topology_score *hub = &out->of[GT_TOPOLOGY_HUB], *tree = &out->of[GT_TOPOLOGY_TREE];
  out->best = GT_TOPOLOGY_TREE;
  if (tree->seconds < hub->seconds) return;
  gt_routes_close(&tree->routes);
  *tree = *hub;
  tree->routes.topology = GT_TOPOLOGY_TREE;
  *hub = (gt_topology_score){.routes.topology = GT_TOPOLOGY_HUB, .seconds = NAN};
}

static bool is_candidate(const gt_job *job, gt_topology topology) {
  return !gt_job_unsound_codec(job, job->sync.strategy, job->sync.codec.name, topology);
}

static void choose(search *s, const gt_job *job) {
  gt_topology_choice *out = s->out;
  out->exact = s->map.n <= TOPOLOGY_EXACT && !out->estimated;
  if (is_candidate(job, GT_TOPOLOGY_TREE)) {
    choose_hub(s);
    choose_tree(s);
  }
  if (job->sync.topology == GT_TOPOLOGY_TREE) {
    take_hub(out);
    return;
  }
  if (gt_sync_of(job->sync.strategy)->waits && is_candidate(job, GT_TOPOLOGY_RING)) choose_ring(s);
  begin(s);
  consider(s, GT_TOPOLOGY_MESH, NULL, gt_topology_mesh_bound(&s->map));
  for (gt_topology t = GT_TOPOLOGY_MESH; t < GT_TOPOLOGY_KINDS; t++)
    if (best_of(s, t) < best_of(s, out->best)) out->best = t;
}

/* True if regions exchange, so that a topology can be chosen. */
static bool is_open(const gt_job *job) {
  return job->nregions > 1 && gt_sync_of(job->sync.strategy)->sends;
}

gt_status gt_topology_choose(gt_topology_choice *out, const gt_job *job, const gt_links *links,
                             const gt_model_sizes *sizes) {
  search s = {.out = out};
  *out = (gt_topology_choice){.best = GT_TOPOLOGY_MESH, .exact = true};
  for (gt_topology t = GT_TOPOLOGY_MESH; t < GT_TOPOLOGY_KINDS; t++)
    out->of[t] = (gt_topology_score){.routes.topology = t, .seconds = NAN};
  if (!is_open(job)) return GT_OK;
  gt_status status = gt_topology_world_open(&s.world, job, links, sizes);
  if (status == GT_OK) status = check_links(&s, job, s.world.spec.links);
  if (status == GT_OK) {
    gt_topology_map_open(&s.map, &s.world.spec, s.world.rounds);
    choose(&s, job);
    gt_topology_map_close(&s.map);
  }
  gt_topology_world_close(&s.world);
  return status;
}

/* Writes "hub at oregon". */
static void name_of(const gt_topology_score *score, const gt_job *job, char *text, size_t size) {
  const bool hub = score->routes.topology == GT_TOPOLOGY_HUB && score->routes.next;
  snprintf(text, size, "%s%s%s", gt_topology_names[score->routes.topology], hub ? " at " : "",
           hub ? job->regions[score->routes.next[0]].name : "");
}

void gt_topology_choice_text(const gt_topology_choice *choice, const gt_job *job, char *text,
                             size_t size) {
  const gt_topology_score *best = &choice->of[choice->best];
  char name[128];
  name_of(best, job, name, sizeof name);
  size_t used = (size_t)snprintf(text, size, "%s", name);
  if (!isnan(best->seconds) && used < size)
    used += (size_t)snprintf(text + used, size - used, ", %s%.3g s a round",
                             choice->estimated ? "about " : "", best->seconds);
  for (size_t i = 0, n = 0; i < GT_TOPOLOGY_KINDS; i++) {
    if (i == choice->best || isnan(choice->of[i].seconds) || used >= size) continue;
    name_of(&choice->of[i], job, name, sizeof name);
    used += (size_t)snprintf(text + used, size - used, "%s %s %.3g s", n++ ? "," : ";", name,
                             choice->of[i].seconds);
  }
}

void gt_topology_choice_close(gt_topology_choice *choice) {
  for (size_t i = 0; i < GT_TOPOLOGY_KINDS; i++) gt_routes_close(&choice->of[i].routes);
}

/* ---- the routes of a job --------------------------------------------------------------------- */

/* Finds a tree of the regions at one place in the replicas of a pipeline. */
static gt_status wire_place(const gt_job *job, const gt_links *links, const gt_model_sizes *sizes,
                            size_t first, size_t *next) {
  const size_t n = gt_job_replicas(job);
  size_t *replicas = GT_NEW_ARRAY(size_t, n);
  gt_job part = *job;
  gt_topology_choice choice;
  part.regions = GT_NEW_ARRAY(gt_job_region, n);
  part.nregions = n;
  for (size_t c = 0; c < n; c++) {
    replicas[c] = gt_job_replica(job, first, c);
    part.regions[c] = job->regions[replicas[c]];
  }
  gt_links *among = gt_links_among(links, replicas, n);
  const gt_status status = gt_topology_choose(&choice, &part, among, sizes);
  for (size_t c = 0; c < n && status == GT_OK; c++)
    next[replicas[c]] = replicas[choice.of[choice.best].routes.next[c]];
  gt_topology_choice_close(&choice);
  gt_links_close(among);
  gt_free(part.regions);
  gt_free(replicas);
  return status;
}

/* Finds a tree for each place. */
static gt_status wire_places(gt_routes *out, const gt_job *job, const gt_links *links,
                             const gt_model_sizes *sizes) {
  gt_status status = GT_OK;
  *out = (gt_routes){GT_TOPOLOGY_TREE, GT_NEW_ARRAY(size_t, job->nregions)};
  for (size_t r = 0; r < job->nregions && status == GT_OK; r++)
    if (gt_job_replica_of(job, r) == 0) status = wire_place(job, links, sizes, r, out->next);
  if (status != GT_OK) gt_routes_close(out);
  return status;
}

gt_status gt_routes_of(gt_routes *out, const gt_job *job, const gt_links *links,
                       const gt_model_sizes *sizes) {
  gt_topology_choice choice;
  const bool tree = job->sync.topology == GT_TOPOLOGY_TREE && is_open(job);
  if (tree && gt_job_replicas(job) > 1) return wire_places(out, job, links, sizes);
  if (!tree && job->sync.topology != GT_TOPOLOGY_AUTO) {
    *out = gt_ps_routes_of(job, links, sizes->parameters);
    return GT_OK;
  }
  GT_TRY(gt_topology_choose(&choice, job, links, sizes));
  *out = gt_routes_copy(&choice.of[choice.best].routes, job->nregions);
  gt_topology_choice_close(&choice);
  return GT_OK;
}
