/* What the modules of exchange share: collectives, and what a topology makes of them. */
#ifndef GEOTRAIN_EXCHANGE_INTERNAL_H
#define GEOTRAIN_EXCHANGE_INTERNAL_H

#include "geotrain/exchange.h"

/* What an exchange knows of each of its collectives. */
typedef struct gt_collective {
  gt_exchange *x;
  gt_collective_spec spec;
  size_t id, n; /* its number, in order of opening; floats of what every region gets */
  gt_allreduce *allreduce;
  gt_broadcast *broadcast; /* one of the two */
  struct gt_collective *next;
} gt_collective;

struct gt_exchange {
  gt_exchange_spec spec;
  const struct gt_topology_ops *topology;
  gt_collective *first, *last;
  size_t ncollectives;
  size_t *others; /* every region but this one, ascending; nregions - 1 */
};

/* The collective takes its place as the exchange's last. */
void gt_exchange_add(gt_exchange *x, gt_collective *c, const gt_collective_spec *spec, size_t n);
/* Every other region's outbox takes one more message; true when there is no other region. */
bool gt_exchange_all_room(const gt_exchange *x);

/* ---- all-reduce: what every topology has in common (allreduce.c) ---------------------------------- */

struct gt_allreduce {
  gt_collective base;
  gt_vec a, b;
  /* The last round that this region has a contribution to; has posted it; has applied. */
  int64_t own, posted, applied;
  int64_t samples; /* behind the contribution that is next to be posted */
  int64_t over;    /* 1: this region makes no more steps */
  int64_t floor;   /* after a resume: the newest round that anyone had applied */
  size_t unheard;  /* regions that have not told theirs */
  bool rejoins;    /* it was done before the resume and may make steps again */
  bool *done;      /* nregions: the region sends no more */
  gt_vec mean;
  float share; /* of the own contribution in it; 0: there was none */
};

typedef struct {
  size_t size; /* of the topology's own struct, whose first member is gt_allreduce; zeroed */
  void (*open)(gt_allreduce *r);
  void (*close)(gt_allreduce *r);
  /* The own contribution can be posted now; posts it. */
  bool (*can_post)(const gt_allreduce *r);
  void (*post)(gt_allreduce *r);
  /* Forms the mean of round applied + 1 if all that belongs to it is here. */
  bool (*form)(gt_allreduce *r);
  void (*message)(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body);
  /* What was found of who takes part in the next round may be otherwise now. */
  void (*again)(gt_allreduce *r);
  bool (*empty)(const gt_allreduce *r); /* nothing that was received waits */
  void (*save)(gt_allreduce *r, gt_state *state);
  gt_status (*load)(gt_allreduce *r, const gt_state *state);
} gt_allreduce_ops;

/* ---- broadcast -------------------------------------------------------------------------------------- */

struct gt_broadcast {
  gt_collective base;
  bool replace;
  gt_payload *filling; /* between begin and post */
};

typedef struct {
  bool (*room)(const gt_broadcast *b);
  void (*post)(gt_broadcast *b, gt_payload *payload, const gt_frame_header *head);
  void (*message)(gt_broadcast *b, size_t from, const gt_frame_header *head, gt_vec body);
} gt_broadcast_ops;

/* ---- topologies ---------------------------------------------------------------------------------------- */

typedef struct gt_topology_ops {
  const char *name;
  const gt_allreduce_ops *allreduce;
  const gt_broadcast_ops *broadcast;
} gt_topology_ops;

const gt_topology_ops *gt_topology_of(gt_topology topology);

#endif
