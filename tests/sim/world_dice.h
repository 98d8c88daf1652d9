/* Random jobs whose topology is to be chosen, and the best of all topologies by brute force. */
#pragma once

#include "topology.h"

#define DICE_MOST ((size_t)128) /* regions */

typedef struct {
  size_t n, parameters;
  bool access;          /* most regions have one, as fast as a link */
  const char *strategy; /* NULL: ssgd */
  gt_codec_kind codec;
} dice_spec;

/* Every link has 20 Mbit/s to 1 Gbit/s and 5 to 150 ms, each direction its own. */
gt_job *dice_throw(gt_rng *rng, const dice_spec *spec);

/* The best of the topologies tried so far. */
typedef struct {
  double seconds; /* INFINITY before the first */
  size_t next[DICE_MOST], simulated;
} dice_best;

void dice_try(dice_best *best, topology_world *world, gt_topology topology, const size_t *next);
/* Tries every rooted tree, hubs included; every ring. */
void dice_all_trees(dice_best *best, topology_world *world);
void dice_all_rings(dice_best *best, topology_world *world);
