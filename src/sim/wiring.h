/* What the files that choose a way share.  Each calls only those before it: map, bound, world,
   grow, near, choose. */
#ifndef GEOTRAIN_SIM_WIRING_H
#define GEOTRAIN_SIM_WIRING_H

#include "geotrain/sim_choose.h"
#include "internal.h"

#define WIRING_EXACT     ((size_t)8)  /* up to so many regions every tree and ring is looked at */
#define WIRING_SIMULATED ((size_t)64) /* up to so many regions ways are simulated */

/* ---- what is known of the links -------------------------------------------------------------- */

/* n regions; the times of one message of a hub or tree, which is `frames` pieces.  Matrices are
   n x n, row: sender. */
typedef struct {
  size_t n;
  bool rounds;       /* regions wait for each other's messages: all-reduce; else broadcast */
  bool *contributes; /* n: the region has something to send, and waits for the others */
  size_t members;    /* number of these */
  double floats, frames;
  double *first_s, *last_s; /* seconds that link and accesses need for that piece */
  double *latency_s;        /* at least, set-up included */
  double *rate_bps;         /* of link and both accesses; 0: unlimited */
  double *piece_s;          /* n: of the first piece on the region's access */
  double *access_bps;       /* n; 0: unlimited */
} wiring_map;

void gt_wiring_map_open(wiring_map *map, const gt_job *job, const gt_links *links, bool rounds,
                        size_t floats);
void gt_wiring_map_close(wiring_map *map);

/* ---- bounds: seconds of a round that a way cannot go below ----------------------------------- */

/* Pieces that pass several links one behind the other.  first, last: sums over the links; best:
   from the departure of the first piece to the arrival of the last, without latency. */
typedef struct {
  double first, last, best, latency;
} wiring_chain;

/* The chain of one link; slowest_s: between two pieces. */
wiring_chain gt_wiring_link(const wiring_map *map, size_t from, size_t to, double slowest_s);
wiring_chain gt_wiring_join(wiring_chain a, wiring_chain b);
static inline double gt_wiring_time(wiring_chain a, wiring_chain b) {
  const wiring_chain both = gt_wiring_join(a, b);
  return both.best + both.latency;
}
/* The links from a child to its parent and back; nchildren: of the parent. */
wiring_chain gt_wiring_up(const wiring_map *map, size_t child, size_t parent, size_t nchildren);
wiring_chain gt_wiring_down(const wiring_map *map, size_t child, size_t parent, size_t nchildren);

double gt_wiring_mesh_bound(const wiring_map *map);
/* parent: n. */
double gt_wiring_tree_bound(const wiring_map *map, const size_t *parent);
/* order: the n regions in the order of the ring. */
double gt_wiring_ring_bound(const wiring_map *map, const size_t *order);

/* ---- worlds: a job that only exchanges ------------------------------------------------------- */

typedef struct {
  gt_job job;      /* arrays that differ from those of the job it is made from are owned */
  gt_links *links; /* owned; NULL: the caller's are used */
  gt_sim_spec spec;
  int64_t *samples;
  bool rounds;
  double step_s;  /* of a round's time, not counted */
  int64_t events; /* of all simulations so far */
} wiring_world;

/* links: of the job, without outages used as they are; NULL: they are made. */
gt_status gt_wiring_world_open(wiring_world *world, const gt_job *job, const gt_links *links,
                               size_t parameters, size_t buffers);
void gt_wiring_world_close(wiring_world *world);
/* Seconds of a round by this way; INFINITY: more than limit_s. */
double gt_wiring_simulate(wiring_world *world, gt_topology topology, const size_t *next,
                          double limit_s);

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct {
  double bound;
  uint8_t at[WIRING_EXACT]; /* parents, or the order of a ring */
} wiring_candidate;

typedef struct {
  wiring_candidate *all;
  size_t n, capacity;
} wiring_list;

/* Adds every rooted tree that is no hub and whose bound is below limit_s. */
void gt_wiring_grow_trees(wiring_list *list, const wiring_map *map, double limit_s);
/* Adds every ring. */
void gt_wiring_grow_rings(wiring_list *list, const wiring_map *map);

/* A good tree or ring by its bound: parent n; order n.  start: 2 root, or 2 root + 1: where the
   search begins. */
void gt_wiring_near_tree(const wiring_map *map, size_t start, size_t *parent);
/* Moves one region at a time as long as that lowers the bound. */
void gt_wiring_improve_tree(const wiring_map *map, size_t *parent);
/* The region gets another parent, or, with to the region itself, becomes the root; false: nothing
   changes, or it would be no tree. */
bool gt_wiring_move(size_t *parent, size_t region, size_t to);
void gt_wiring_near_ring(const wiring_map *map, size_t *order);

#endif
