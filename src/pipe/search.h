/* Shared by the files search*.c.  search.c calls search_candidates.c, and both search_worth.c;
   search_of_job.c calls none of them. */
#pragma once

#include "geotrain/pipe_search.h"

/* ---- search_worth.c: values of a pipeline ---------------------------------------------------- */

gt_pipe_found gt_pipe_found_copy(const gt_pipe_found *found);
void gt_pipe_found_close(gt_pipe_found *found);
bool gt_pipe_found_same(const gt_pipe_found *a, const gt_pipe_found *b);
/* True if a job may have this pipeline, apart from memory: no span is empty, stages divide the
   micro-batch, and parts that must share a region do. */
bool gt_pipe_found_allowed(const gt_pipe_search_problem *problem, const gt_pipe_found *found);
/* Writes bound_s.  False: a stage has memory for less than one micro-batch. */
bool gt_pipe_found_bound(const gt_pipe_search_problem *problem, gt_pipe_found *found);
/* Returns the seconds for which `bytes` occupy the link between two regions; _transfer_s: until
   they arrive. */
double gt_pipe_wan_occupied_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes);
double gt_pipe_wan_transfer_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes);
/* Returns the passes of one variant of its schedule: the cost of its simulation. */
double gt_pipe_found_passes(const gt_pipe_found *found);

/* ---- search_candidates.c --------------------------------------------------------------------- */

/* Distinct feasible pipelines, with their bounds. */
typedef struct {
  const gt_pipe_search_problem *problem;
  gt_pipe_found *found; /* owned, with what they point to */
  size_t n, capacity;
  size_t looked;  /* number before the checks */
  double least_s; /* of the bounds */
} gt_pipe_candidates;

/* Finds all candidates of a problem.  The caller closes them (keep 0), then frees `found`. */
void gt_pipe_candidates_find(gt_pipe_candidates *candidates, const gt_pipe_search_problem *problem);
/* Adds *found and takes ownership, or closes it if it is not feasible or already a candidate.
   Returns its bound; INFINITY: not feasible. */
double gt_pipe_candidates_add(gt_pipe_candidates *candidates, gt_pipe_found *found);
/* Closes all but the first n. */
void gt_pipe_candidates_keep(gt_pipe_candidates *candidates, size_t n);
