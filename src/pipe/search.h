/* What the files search*.c share.  search.c calls search_candidates.c, and both search_worth.c;
   search_of_job.c calls none of
   them. */
#ifndef GEOTRAIN_PIPE_SEARCH_INTERNAL_H
#define GEOTRAIN_PIPE_SEARCH_INTERNAL_H

#include "geotrain/pipe_search.h"

/* ---- search_worth.c: what a pipeline takes --------------------------------------------------- */

gt_pipe_found gt_pipe_found_copy(const gt_pipe_found *found);
void gt_pipe_found_close(gt_pipe_found *found);
bool gt_pipe_found_same(const gt_pipe_found *a, const gt_pipe_found *b);
/* Whether a job may have it, whatever its memory: no span is empty, stages fit the micro-batch, and
   what must be in one region is. */
bool gt_pipe_found_allowed(const gt_pipe_search_problem *problem, const gt_pipe_found *found);
/* Writes bound_s.  false: not one micro-batch fits into the memory of a stage. */
bool gt_pipe_found_bound(const gt_pipe_search_problem *problem, gt_pipe_found *found);
/* Seconds for which `bytes` occupy the link between two regions, and until they arrive. */
double gt_pipe_wan_occupied_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes);
double gt_pipe_wan_transfer_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes);
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
/* Adds *found, which is the candidates' then, or closes it: it is none, or is there already.
   Returns its bound; INFINITY: it is none. */
double gt_pipe_candidates_add(gt_pipe_candidates *candidates, gt_pipe_found *found);
/* Closes all but the first n. */
void gt_pipe_candidates_keep(gt_pipe_candidates *candidates, size_t n);

#endif
