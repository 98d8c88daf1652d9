/* pipe: groups of devices that are close to each other, and in these, of devices with equal speed.
   Layer 5.  Computes with numbers only, without MPI or files.  All functions are local.  The two
   levels are those of SpanTrain, whose abstract gives no method; average linkage is UPGMA (Sokal
   and Michener, 1958); distances and thresholds are geotrain's. docs/fleets.md. */
#pragma once

#include "geotrain/base.h"

/* ---- figures of a profile -----------------------------------------------------------------------

   Sizes of the two messages whose times are measured for every pair of devices. */
#define GT_PIPE_SMALL_BYTES 64
#define GT_PIPE_LARGE_BYTES (4 << 20)

/* One direction between two devices.  Both INFINITY: no connection. */
typedef struct {
  double small_s, large_s; /* of a message of GT_PIPE_SMALL_BYTES, of GT_PIPE_LARGE_BYTES */
} gt_pipe_link;

/* Returns the seconds from sending to arrival: small_s + bytes (large_s - small_s) /
   GT_PIPE_LARGE_BYTES. */
double gt_pipe_transfer_s(gt_pipe_link link, double bytes);
/* Returns the power of a device from the times of n reference tasks: sum of weights / sum of weight
   x time, in tasks per second.  The device on which the weighted mean time is 1 s has power 1. */
double gt_pipe_power(const double *times_s, const double *weights, size_t n);

/* ---- grouping -------------------------------------------------------------------------------- */

/* All borrowed. */
typedef struct {
  size_t n;                   /* devices */
  const gt_pipe_link *links;  /* [from * n + to]; the diagonal is ignored */
  const double *power;        /* n, in any unit, > 0 */
  const double *memory_bytes; /* n */
} gt_pipe_fleet;

/* Owned by the caller: gt_pipe_grouping_close. */
typedef struct {
  size_t nregions, ngroups;
  size_t *region;          /* n: level 1, numbered in order of their first devices */
  size_t *group;           /* n: level 2, numbered region by region, there by first devices */
  size_t *region_of_group; /* ngroups */
  double theta_s;          /* the cut of level 1; INFINITY: none */
} gt_pipe_grouping;

/* A message size between those whose time is mainly latency and those whose time is mainly
   bandwidth. */
#define GT_PIPE_USUAL_BYTES (64 << 10)
/* Level 1 is cut at a ratio of merge heights of at least GT_PIPE_APART, level 2 at a mean ratio of
   powers above GT_PIPE_ALIKE. */
#define GT_PIPE_APART 2.0
#define GT_PIPE_ALIKE 1.25

/* Groups a fleet.
   Level 1: average linkage with distance log max(c_ij(bytes), c_ji(bytes)), so that exp(height) is
   the geometric mean of the times between two clusters.  theta_s > 0: clusters whose mean is above
   theta_s stay separate.  theta_s 0: the cut is in the middle of the largest gap (of equal ones the
   lowest) between successive heights, if their ratio is at least GT_PIPE_APART; otherwise all
   devices are one region.  Devices without a connection are never in one region, and infinite
   heights form no gap.
   Level 2, in each region: the same with distance |log(p_i / p_j)|, cut above log GT_PIPE_ALIKE.
   Of equal distances, the one to the lower device number is taken.
   bytes: the size of messages for the comparison; 0: GT_PIPE_USUAL_BYTES.
   O(n^2) time and memory.  GT_ERR_JOB: one sentence names an invalid number and its devices (from
   0); *out is then empty. */
gt_status gt_pipe_grouping_make(gt_pipe_grouping *out, const gt_pipe_fleet *fleet, double theta_s,
                                double bytes);
void gt_pipe_grouping_close(gt_pipe_grouping *grouping);

/* ---- groups of equal devices ----------------------------------------------------------------- */

/* A level-2 group; its devices count as equal. */
typedef struct {
  size_t region;       /* level 1 */
  int64_t count;       /* devices */
  double power;        /* of one device; power p takes 1/p of the time of power 1 */
  double memory_bytes; /* of one device; INFINITY: no limit */
} gt_pipe_group;

/* Writes the groups (ngroups) and the links between them (ngroups x ngroups, [from * ngroups +
   to]); each number is that of the worst member or pair of members.  The diagonal has the link
   within the group; for a group of one device, the link between it and its region; for a region of
   one device, zeros. */
void gt_pipe_grouping_groups(const gt_pipe_grouping *grouping, const gt_pipe_fleet *fleet,
                             gt_pipe_group *groups, gt_pipe_link *between);
