/* net_peers: groups of ranks that gather, share and agree outside the steps of training.  Layer 2.
   A run has three: all its ranks, the ranks of a region, and the PS ranks, one of each region. */
#pragma once

#include "geotrain/base.h"

typedef struct gt_peers gt_peers;

/* A wait of a group: after limit_s, panic with 5, "waited N s for WHAT". */
typedef struct {
  const char *what;
  double limit_s;
  void (*progress)(void *context); /* called while waiting; NULL: none */
  void *context;
  bool sleeps; /* progress sleeps itself */
} gt_peers_wait;

/* How a group's messages travel. */
typedef struct {
  void (*gather)(gt_peers *peers, const void *own, size_t bytes, void *all,
                 const gt_peers_wait *wait);
  void (*share)(gt_peers *peers, size_t from, void *data, size_t bytes, const gt_peers_wait *wait);
  void (*close)(gt_peers *peers);
} gt_peers_ops;

/* The first member of each implementation. */
struct gt_peers {
  const gt_peers_ops *ops;
  size_t rank, size;
};

/* The functions below are collective over the group.  They wait by sleeping. */

/* Gathers `bytes` bytes from every rank, in the order of ranks, in `all` of every rank. */
void gt_peers_gather(gt_peers *peers, const void *own, size_t bytes, void *all, const char *what,
                     double limit_s);
/* Copies `bytes` bytes at `data` of rank `from` to `data` of every rank. */
void gt_peers_share(gt_peers *peers, size_t from, void *data, size_t bytes, const char *what,
                    double limit_s);
/* Returns when every rank has called it. */
void gt_peers_meet(gt_peers *peers, const gt_peers_wait *wait);
/* Returns the text of rank 0; the caller frees it.  text: on rank 0, NULL: none; elsewhere
   unused. */
char *gt_peers_share_text(gt_peers *peers, const char *text, const char *what, double limit_s);
/* Returns the texts of all ranks, in order; the caller frees each and the array. */
char **gt_peers_gather_texts(gt_peers *peers, const char *text, const char *what, double limit_s);
/* Gives every rank the same status: the worst one (of the lowest rank among equals), with its text
   in gt_error_text.  Call it after local work and before the next exchange, never instead of
   one. */
gt_status gt_agree(gt_peers *peers, gt_status local, double limit_s);
/* Returns all ranks of regions that are MPI jobs of their own, in the order of regions, as a group
   whose messages pass through the PS ranks.  region: of this rank, rank 0 is the PS; servers: the
   PS ranks, NULL on workers; both borrowed.  ranks: of each region.  Local. */
gt_peers *gt_peers_join(gt_peers *region, gt_peers *servers, size_t own, const size_t *ranks,
                        size_t nregions);
/* Frees the group; NULL is allowed. */
void gt_peers_close(gt_peers *peers);
