/* What the files search*.c share.  Each calls only those before it: items, lines, cuts, worth,
   candidates, near, search; search_of_job calls search_fleet, which calls none. */
#ifndef GEOTRAIN_PIPE_SEARCH_INTERNAL_H
#define GEOTRAIN_PIPE_SEARCH_INTERNAL_H

#include "geotrain/pipe_search.h"

/* ---- search_items.c: what stages consist of --------------------------------------------------

   Without folding an item is a piece.  In a folded pipeline an item is a run of pieces from the
   front of the model and one from its back, which are on the same stage: items lie inside each
   other, and the last one is the middle of the model. */

typedef struct {
  const gt_pipe_search_problem *problem;
  size_t chunks, n;
  /* n + 1: cut i has pieces 0..front[i]-1 and back[i].. outside. */
  size_t *front, *back;
  /* n + 1, sums over the items outside cut i: seconds of a sample for all passes, and for F and B;
     bytes of parameters, and of a sample in flight; items with pieces that are `alone`. */
  double *all_s, *pass_s, *parameter_bytes, *held_bytes;
  size_t *alone;
  double *cut_bytes; /* n + 1: of a sample at cut i, one way */
  size_t first;      /* the first stage has at least so many items */
} gt_pipe_items;

/* The piece in front of which the model is folded so that about `share` of the work is before it.
   */
size_t gt_pipe_items_fold(const gt_pipe_search_problem *problem, double share);
/* fold: of chunks 2, the first piece behind the fold, 1 or more.  false: there are too few pieces.
   */
bool gt_pipe_items_open(gt_pipe_items *items, const gt_pipe_search_problem *problem, size_t chunks,
                        size_t fold);
void gt_pipe_items_close(gt_pipe_items *items);

/* ---- search_lines.c: the orders of regions ---------------------------------------------------

   A line is all workers in the order in which the pipeline passes them. */

typedef struct {
  size_t n;              /* workers */
  size_t *site, *number; /* of each: its region, its number there */
  size_t *end;           /* of each: the first worker behind its segment, which is of one region */
  bool *idle;            /* of each: the rest of the segment from it on may stay unused */
} gt_pipe_line;

typedef struct {
  gt_pipe_line *lines;
  size_t n, capacity;
} gt_pipe_lines;

/* All lines that are tried.  chunks 1 and labels_stay: over several regions they end in the region
   in which they begin. */
void gt_pipe_lines_make(gt_pipe_lines *lines, const gt_pipe_search_problem *problem, size_t chunks);
void gt_pipe_lines_close(gt_pipe_lines *lines);

/* Seconds for which `bytes` occupy the link between two regions, and until they arrive. */
double gt_pipe_wan_occupied_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes);
double gt_pipe_wan_transfer_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes);

/* ---- search_cuts.c: the dynamic programme over items and the workers of a line --------------- */

/* Seconds for a micro-batch of the slowest stage or link of the best stages of a line, whose memory
   has room for `flight` micro-batches everywhere; INFINITY: there are none. */
double gt_pipe_cuts_least(const gt_pipe_items *items, const gt_pipe_line *line, size_t micros,
                          size_t flight);
/* Of the stages of a line none of which is slower than limit_s, those with the least pass of a
   micro-batch.  The caller closes *out; false: there are none. */
bool gt_pipe_cuts_find(gt_pipe_found *out, const gt_pipe_items *items, const gt_pipe_line *line,
                       size_t micros, size_t flight, double limit_s);

/* ---- search_worth.c: what a pipeline takes --------------------------------------------------- */

gt_pipe_found gt_pipe_found_copy(const gt_pipe_found *found);
void gt_pipe_found_close(gt_pipe_found *found);
bool gt_pipe_found_same(const gt_pipe_found *a, const gt_pipe_found *b);
/* Whether a job may have it, whatever its memory: no span is empty, stages fit the micro-batch, and
   what must be in one region is. */
bool gt_pipe_found_allowed(const gt_pipe_search_problem *problem, const gt_pipe_found *found);
/* Writes bound_s.  false: not one micro-batch fits into the memory of a stage. */
bool gt_pipe_found_bound(const gt_pipe_search_problem *problem, gt_pipe_found *found);
/* Passes of one variant of its schedule: what its simulation costs. */
double gt_pipe_found_passes(const gt_pipe_found *found);

/* ---- search_candidates.c --------------------------------------------------------------------- */

/* Different pipelines that may be, with their bounds. */
typedef struct {
  const gt_pipe_search_problem *problem;
  gt_pipe_found *found; /* owned, with what they point to */
  size_t n, capacity;
  size_t looked;  /* before they were checked */
  double least_s; /* of the bounds */
} gt_pipe_candidates;

/* All candidates of a problem.  The caller keeps none of them, then frees `found`. */
void gt_pipe_candidates_find(gt_pipe_candidates *candidates, const gt_pipe_search_problem *problem);
/* Adds *found, which is the candidates' then, or closes it: it is none, or is there already. */
void gt_pipe_candidates_add(gt_pipe_candidates *candidates, gt_pipe_found *found);
/* Closes all but the first n. */
void gt_pipe_candidates_keep(gt_pipe_candidates *candidates, size_t n);

/* ---- search_near.c: pipelines that differ a little ------------------------------------------- */

/* Moves one cut after the other as long as that lowers the bound of *found, without simulations.
   Returns whether it is another one now. */
bool gt_pipe_near_lower(const gt_pipe_search_problem *problem, gt_pipe_found *found);

/* Replaces *found by better ones that differ from it in one cut, in a worker that is of the
   neighbouring stage, or in the number of micro-batches, as long as there are any, and `budget`
   simulations are not used up.  variants: of each simulation.  Returns the number of
   simulations. */
size_t gt_pipe_near_improve(const gt_pipe_search_problem *problem, gt_pipe_found *found,
                            size_t variants, size_t budget);

/* ---- search_fleet.c: measured devices -------------------------------------------------------- */

/* Takes powers, memory and times from the fleet of the job's profile, if it has the times of
   operations.  GT_ERR_JOB: it has no device of a worker, or other operations. */
gt_status gt_pipe_search_use_fleet(gt_pipe_job_search *search);

#endif
