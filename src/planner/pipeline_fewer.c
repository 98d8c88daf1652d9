/* Whether a pipeline over fewer regions, or with fewer workers in them, would be faster than the
   one that has all of the job's. */
#include <math.h>
#include <string.h>

#include "pipeline_search.h"

#define GAIN   1.05 /* less is not worth a change of the job */
#define EFFORT 0.2  /* of a search */
#define MOST   32   /* workers; with more of them so many searches take too long */

/* The problem without some regions. */
typedef struct {
  gt_pipe_search_problem problem;
  gt_pipe_site *sites;
  gt_link_spec *links;
  double *up_bps, *down_bps;
  gt_pipe_wan wan;
  size_t *of; /* of each site, its number in the whole problem */
} part;

static double *copy_bps(const double *bps, const size_t *of, size_t n) {
  double *copy = bps ? GT_NEW_ARRAY(double, n) : NULL;
  for (size_t s = 0; s < n && bps; s++) copy[s] = bps[of[s]];
  return copy;
}

static void open_part(part *out, const gt_pipe_search_problem *p, const bool *without) {
  size_t n = 0;
  *out = (part){.problem = *p,
                .sites = GT_NEW_ARRAY(gt_pipe_site, p->nsites),
                .links = GT_NEW_ARRAY(gt_link_spec, p->nsites * p->nsites),
                .of = GT_NEW_ARRAY(size_t, p->nsites)};
  for (size_t s = 0; s < p->nsites; s++)
    if (!without[s]) out->of[n++] = s;
  for (size_t a = 0; a < n; a++) {
    out->sites[a] = p->sites[out->of[a]];
    for (size_t b = 0; b < n; b++)
      out->links[a * n + b] = p->wan->links[out->of[a] * p->nsites + out->of[b]];
  }
  out->up_bps = copy_bps(p->wan->up_bps, out->of, n);
  out->down_bps = copy_bps(p->wan->down_bps, out->of, n);
  out->wan = (gt_pipe_wan){.nregions = n,
                           .links = out->links,
                           .up_bps = out->up_bps,
                           .down_bps = out->down_bps,
                           .seed = p->wan->seed};
  out->problem.sites = out->sites;
  out->problem.nsites = n;
  out->problem.wan = &out->wan;
  out->problem.idle = true;
  out->problem.effort = EFFORT;
}

static void close_part(part *p) {
  gt_free(p->sites);
  gt_free(p->links);
  gt_free(p->up_bps);
  gt_free(p->down_bps);
  gt_free(p->of);
}

/* Workers of each region of the best pipeline without these regions, and its period; INFINITY:
   there is none. */
static double try_without(const gt_pipe_search_problem *p, const bool *without, size_t *workers) {
  part q;
  gt_pipe_search_result result;
  double period_s = INFINITY;
  open_part(&q, p, without);
  memset(workers, 0, p->nsites * sizeof *workers);
  if (gt_pipe_search_run(&result, &q.problem) == GT_OK) {
    const gt_pipe_found *f = &result.found[0];
    period_s = f->period_s;
    for (size_t i = 0; i < f->stages; i++)
      workers[q.of[f->places[i].region]] += f->places[i].workers;
    gt_pipe_search_close(&result);
  }
  close_part(&q);
  return period_s;
}

/* The best so far, and one that is tried. */
typedef struct {
  const gt_pipe_search_problem *problem;
  bool *without; /* regions */
  size_t *workers, *best;
  double best_s;
} fewer;

static bool try_it(fewer *f) {
  const double period_s = try_without(f->problem, f->without, f->workers);
  if (period_s >= f->best_s) return false;
  f->best_s = period_s;
  memcpy(f->best, f->workers, f->problem->nsites * sizeof *f->best);
  return true;
}

/* Leaves out the region without which it is fastest.  false: none is. */
static bool leave_one(fewer *f) {
  const size_t n = f->problem->nsites;
  size_t worst = n;
  for (size_t r = 0; r < n; r++) {
    if (f->without[r]) continue;
    f->without[r] = true;
    if (try_it(f)) worst = r;
    f->without[r] = false;
  }
  if (worst < n) f->without[worst] = true;
  return worst < n;
}

/* Two may only help together: so each region alone. */
static void try_alone(fewer *f) {
  for (size_t r = 0; r < f->problem->nsites; r++) {
    for (size_t i = 0; i < f->problem->nsites; i++) f->without[i] = i != r;
    if (f->problem->sites[r].starts) try_it(f);
  }
}

void gt_planner_find_fewer(gt_planner_search *s, const gt_pipe_search_problem *problem,
                           double period_s) {
  const size_t n = problem->nsites;
  size_t all = 0;
  for (size_t r = 0; r < n; r++) all += problem->sites[r].workers;
  if (all > MOST) return;
  fewer f = {problem, GT_NEW_ARRAY(bool, n), GT_NEW_ARRAY(size_t, n), GT_NEW_ARRAY(size_t, n),
             INFINITY};
  try_it(&f);
  for (size_t left = n; left > 1 && leave_one(&f);) left--;
  try_alone(&f);
  gt_free(f.without);
  gt_free(f.workers);
  s->fewer = f.best;
  s->fewer_per_s = f.best_s * GAIN < period_s ? s->asked->train.batch / f.best_s : 0;
}
