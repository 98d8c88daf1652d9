/* Private to the measurement of a fleet: the workers as devices, and the times of messages between
   every two of them. */
#ifndef GEOTRAIN_PROBE_FLEET_H
#define GEOTRAIN_PROBE_FLEET_H

#include <sched.h>

#include "geotrain/nn_span.h"
#include "prober.h"

/* In a world of more ranks, one worker per host stands for all of them in the links. */
#define GT_PROBE_ALL_PAIRS 64

/* ---- devices --------------------------------------------------------------------------------- */

/* fleet_cores.c: the cores on which this rank may run, by which it goes in turns.  Ranks of a host
   with `places` in a row have different cores, as far as there are enough.  Local; without the
   right to choose a core nothing happens. */
typedef struct {
  cpu_set_t allowed;
  size_t n, first;
} gt_probe_cores;
void gt_probe_cores_open(gt_probe_cores *cores, size_t place);
void gt_probe_cores_take(const gt_probe_cores *cores, size_t turn);
void gt_probe_cores_close(const gt_probe_cores *cores); /* any of them again */

/* fleet_power.c: times of the reference tasks on this rank, s each: the mean of 12 medians, each of
   the repeats in about 50 ms a task on one of its cores; place: as above.  Without bf16 its task is
   computed in float32, as training would.  Local. */
void gt_probe_reference(double times_s[GT_PROBE_TASKS], size_t place);
extern const char *const gt_probe_tasks[GT_PROBE_TASKS]; /* names */

/* fleet_passes.c: the runs of operations that a pipeline can cut apart; returns their number.
   `spans` (as many) may be NULL.  Local. */
size_t gt_probe_spans(const gt_graph *graph, gt_span *spans);
/* Times the passes of each of the graph's n spans, per sample of the batch, the best of several
   turns within 2 s; the graph has one slot or more, and is prepared for the batch.  Local. */
void gt_probe_passes_of(gt_graph *graph, const gt_span *spans, size_t n,
                        const gt_micro_batch *batch, gt_probe_passes *passes);
/* fleet_operations.c: measures them on all workers at once, with batches of the job; writes
   p->passes, and p->all_passes on rank 0, or p->operations_error.  Collective over the world. */
void gt_probe_operations(gt_probe_state *p);

/* ---- links ----------------------------------------------------------------------------------- */

/* fleet_points.c: the worker that stands for each of n workers of a region in the links: itself, if
   `all`, else the first one on the same host.  `hosts`: boot ids.  Local. */
void gt_probe_points(const char (*hosts)[GT_PROBE_BOOT_ID], size_t n, bool all, size_t *point);
/* Those that stand for themselves meet in pairs, as in a tournament: the number of rounds, and the
   partner of `self` in a round; n: none.  Local. */
size_t gt_probe_point_rounds(const size_t *point, size_t n);
size_t gt_probe_point_partner(const size_t *point, size_t n, size_t round, size_t self);
/* The first of the others for which `first` stands; n: none. */
size_t gt_probe_point_second(const size_t *point, size_t n, size_t first);
/* fleet_inside.c: between the workers of a region, one region after another; writes p->pairs.
   Collective over the world. */
void gt_probe_pairs(gt_probe_state *p);
/* fleet_wan.c: this rank's direction to the peer over the gateway; writes small_s and large_s of
   p->links[peer].  Local; the peer answers. */
void gt_probe_direction(gt_prober *b, size_t peer);

#endif
