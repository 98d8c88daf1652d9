/* Pipelines that differ a little from one that was found: a cut, a worker, the micro-batches. */
#include <math.h>

#include "search.h"

#define RUN_MOST ((size_t)8) /* cuts that are moved together */

typedef struct {
  const gt_pipe_search_problem *problem;
  gt_pipe_found *best;
  size_t variants, budget, used;
} near_search;

/* Takes `tried` in place of the best if it is better; closes it otherwise. */
static bool offer(near_search *n, gt_pipe_found *tried) {
  bool better = false;
  if (n->used < n->budget && gt_pipe_found_allowed(n->problem, tried) &&
      gt_pipe_found_bound(n->problem, tried) && tried->bound_s < n->best->period_s) {
    n->used++;
    tried->period_s = gt_pipe_search_period(n->problem, tried, n->variants);
    better = tried->period_s < n->best->period_s;
  }
  if (!better) {
    gt_pipe_found_close(tried);
    return false;
  }
  gt_pipe_found_close(n->best);
  *n->best = *tried;
  return true;
}

/* ---- what may differ ------------------------------------------------------------------------- */

/* One cut, or several that follow each other, by a piece: what leaves one end of a run of spans
   comes in at the other. */
static bool move_cuts(near_search *n) {
  const size_t cuts = n->best->stages * n->best->chunks - 1;
  bool better = false;
  for (size_t run = 1; run <= cuts && run <= RUN_MOST; run++)
    for (size_t k = 0; k + run <= cuts; k++)
      for (size_t up = 0; up < 2; up++) {
        gt_pipe_found tried = gt_pipe_found_copy(n->best);
        for (size_t i = k; i < k + run; i++) tried.ends[i] += up ? 1 : SIZE_MAX; /* one less */
        better |= offer(n, &tried);
      }
  return better;
}

static void number_workers(gt_pipe_found *f, size_t region) {
  size_t taken = 0;
  for (size_t s = 0; s < f->stages; s++) {
    if (f->places[s].region != region) continue;
    f->places[s].first_worker = taken;
    taken += f->places[s].workers;
  }
}

/* The next stage of the same region; `stages`: there is none. */
static size_t neighbour(const gt_pipe_found *f, size_t stage) {
  size_t t = stage + 1;
  while (t < f->stages && f->places[t].region != f->places[stage].region) t++;
  return t;
}

static bool move_workers(near_search *n) {
  bool better = false;
  for (size_t s = 0; s < n->best->stages; s++) {
    const size_t t = neighbour(n->best, s);
    if (t == n->best->stages) continue;
    const size_t both = n->best->places[s].workers + n->best->places[t].workers;
    for (size_t w = 1; w < both; w++) {
      if (w == n->best->places[s].workers) continue;
      gt_pipe_found tried = gt_pipe_found_copy(n->best);
      tried.places[s].workers = w;
      tried.places[t].workers = both - w;
      number_workers(&tried, tried.places[s].region);
      better |= offer(n, &tried);
    }
  }
  return better;
}

/* The next larger or smaller number that divides the batch; 0: there is none. */
static size_t next_micros(const gt_pipe_search_problem *p, size_t micros, bool up) {
  for (size_t m = up ? micros + 1 : micros - 1; m > 0 && m <= p->batch; m = up ? m + 1 : m - 1)
    if (p->batch % m == 0) return m;
  return 0;
}

static bool move_micros(near_search *n) {
  bool better = false;
  for (size_t up = 0; up < 2 && n->problem->micros == 0; up++) {
    const size_t micros = next_micros(n->problem, n->best->micros, up);
    if (micros == 0) continue;
    gt_pipe_found tried = gt_pipe_found_copy(n->best);
    tried.micros = micros;
    better |= offer(n, &tried);
  }
  return better;
}

/* Takes `tried` in place of *found if its bound is lower; closes it otherwise. */
static bool lowers(const gt_pipe_search_problem *problem, gt_pipe_found *found,
                   gt_pipe_found *tried) {
  if (!gt_pipe_found_allowed(problem, tried) || !gt_pipe_found_bound(problem, tried) ||
      tried->bound_s >= found->bound_s) {
    gt_pipe_found_close(tried);
    return false;
  }
  gt_pipe_found_close(found);
  *found = *tried;
  return true;
}

bool gt_pipe_near_lower(const gt_pipe_search_problem *problem, gt_pipe_found *found) {
  const size_t cuts = found->stages * found->chunks - 1;
  bool other = false;
  for (bool lower = true; lower;) {
    lower = false;
    for (size_t k = 0; k < cuts; k++)
      for (size_t up = 0; up < 2; up++) {
        gt_pipe_found tried = gt_pipe_found_copy(found);
        tried.ends[k] += up ? 1 : SIZE_MAX; /* one less */
        lower |= lowers(problem, found, &tried);
      }
    other |= lower;
  }
  return other;
}

size_t gt_pipe_near_improve(const gt_pipe_search_problem *problem, gt_pipe_found *found,
                            size_t variants, size_t budget) {
  near_search n = {problem, found, variants, budget, 1};
  bool better = true;
  found->period_s = gt_pipe_search_period(problem, found, variants);
  while (better && n.used < budget) {
    better = move_cuts(&n);
    better |= move_workers(&n);
    better |= move_micros(&n);
  }
  return n.used;
}
