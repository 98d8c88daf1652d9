/* Average linkage, shared by both levels of grouping. */
#ifndef GEOTRAIN_PIPE_GROUPS_LINKAGE_H
#define GEOTRAIN_PIPE_GROUPS_LINKAGE_H

#include <stddef.h>

/* Two clusters become one.  A cluster is named by its lowest member: a < b. */
typedef struct {
  size_t a, b;
  double height; /* mean distance between their members */
} gt_pipe_merge;

/* UPGMA over n points by the nearest-neighbour chain: O(n^2) time.  distance (n x n, symmetric, of
   any sign, INFINITY allowed) is overwritten.  Writes n - 1 merges, each after those of its parts,
   whose heights are not above its own.  Local; never fails. */
void gt_pipe_linkage(double *distance, size_t n, gt_pipe_merge *merges);

/* Writes to label (n) the clusters that finite merges of at most `height` form, numbered from 0 in
   order of their lowest members; returns their number. */
size_t gt_pipe_linkage_cut(const gt_pipe_merge *merges, size_t n, double height, size_t *label);

#endif
