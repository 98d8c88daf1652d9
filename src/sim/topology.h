/* Shared by the files that choose a topology.  Each calls only those before it: map, bound, world,
   grow, choose. */
#pragma once

#include "geotrain/sim_choose.h"
#include "internal.h"

/* with up to this number of regions every tree and ring is examined */
#define TOPOLOGY_EXACT ((size_t)8)
/* with up to this number of regions candidates are simulated */
#define TOPOLOGY_SIMULATED ((size_t)64)

/* ---- figures of the links -------------------------------------------------------------------- */

/* n regions; the times of one message of a hub or tree, which has `frames` pieces.  Matrices are n
   x n, row: sender. */
typedef struct {
  size_t n;
  bool rounds;              /* regions wait for each other's messages: all-reduce; else broadcast */
  bool *contributes;        /* n: the region sends messages of its own, and waits for the others */
  size_t members;           /* number of these */
  double bytes, frames;     /* payloads of all pieces, and their number */
  double *first_s, *last_s; /* seconds of the first and last piece on the link and the accesses */
  double *latency_s;        /* lower bound, with set-up */
  double *rate_bps;         /* of link and both accesses; 0: unlimited */
  double *piece_s;          /* n: of the first piece on the region's access */
  double *access_bps;       /* n; 0: unlimited */
} topology_map;

/* spec: of a world, whose job, links, codec and model it reads. */
void gt_topology_map_open(topology_map *map, const gt_sim_spec *spec, bool rounds);
void gt_topology_map_close(topology_map *map);

/* ---- bounds: lower bounds of the seconds of a round ------------------------------------------ */

/* Pieces that pass several links one after another.  first, last: sums over the links; best: from
   the departure of the first piece to the arrival of the last, without latency. */
typedef struct {
  double first, last, best, latency;
} topology_chain;

/* Returns the chain of one link; slowest_s: between two pieces. */
topology_chain gt_topology_link(const topology_map *map, size_t from, size_t to, double slowest_s);
topology_chain gt_topology_join(topology_chain a, topology_chain b);
static inline double gt_topology_time(topology_chain a, topology_chain b) {
  const topology_chain both = gt_topology_join(a, b);
  return both.best + both.latency;
}
/* Returns the links from a child to its parent and back; nchildren: of the parent. */
topology_chain gt_topology_up(const topology_map *map, size_t child, size_t parent,
                              size_t nchildren);
topology_chain gt_topology_down(const topology_map *map, size_t child, size_t parent,
                                size_t nchildren);

double gt_topology_mesh_bound(const topology_map *map);
/* parent: n entries. */
double gt_topology_tree_bound(const topology_map *map, const size_t *parent);
/* order: the n regions in the order of the ring. */
double gt_topology_ring_bound(const topology_map *map, const size_t *order);

/* ---- worlds: a job that only exchanges ------------------------------------------------------- */

typedef struct {
  gt_job job;      /* its arrays that differ from those of the original job are owned */
  gt_links *links; /* owned; NULL: the caller's are used */
  gt_sim_spec spec;
  int64_t *samples;
  bool rounds;
  double step_s;  /* part of a round's time, not counted */
  int64_t events; /* of all simulations so far */
} topology_world;

/* Opens a world.  links: of the job, used unchanged if they have no outages; NULL: it creates
   them. */
gt_status gt_topology_world_open(topology_world *world, const gt_job *job, const gt_links *links,
                                 const gt_model_sizes *sizes);
void gt_topology_world_close(topology_world *world);
/* Returns the seconds of a round with these routes; INFINITY: more than limit_s. */
double gt_topology_simulate(topology_world *world, gt_topology topology, const size_t *next,
                            double limit_s);

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct {
  double bound;
  uint8_t at[TOPOLOGY_EXACT]; /* parents, or the order of a ring */
} topology_candidate;

typedef struct {
  topology_candidate *all;
  size_t n, capacity;
} topology_list;

/* Adds every rooted tree that is not a hub and has a bound below limit_s. */
void gt_topology_grow_trees(topology_list *list, const topology_map *map, double limit_s);
/* Adds every ring. */
void gt_topology_grow_rings(topology_list *list, const topology_map *map);

/* Gives the region another parent, or makes it the root (to: the region itself); false: no change,
   or the result would not be a tree. */
bool gt_topology_move(size_t *parent, size_t region, size_t to);
