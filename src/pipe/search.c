/* The search for a job's pipeline: simulates the candidates with the lowest bounds, and improves
   the best ones. */
#include "search.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define NEAR_VARIANTS 32.0          /* of each neighbor, at most */
#define NEAR_MOST     ((size_t)400) /* simulations for improving one pipeline */
/* Passes of all simulations of a kind, which determine the number of variants. */
#define PASSES_FIRST 1e6
#define PASSES_NEAR  5e6
#define PASSES_LAST  2e6

/* ---- pipelines that differ a little ---------------------------------------------------------- */

typedef struct {
  const gt_pipe_search_problem *problem;
  gt_pipe_found *best;
  size_t variants; /* of each simulation; 0: compares bounds without simulations */
  size_t budget, used;
} near_search;

/* Replaces the best by `tried` if this is better; otherwise closes it. */
static bool offer(near_search *n, gt_pipe_found *tried) {
  const double most_s = n->variants > 0 ? n->best->period_s : n->best->bound_s;
  bool better = gt_pipe_found_allowed(n->problem, tried) &&
                gt_pipe_found_bound(n->problem, tried) && tried->bound_s < most_s;
  if (better && n->variants > 0) {
    n->used++;
    tried->period_s = gt_pipe_search_period(n->problem, tried, n->variants);
    better = tried->period_s < most_s;
  }
  gt_pipe_found_close(better ? n->best : tried);
  if (better) *n->best = *tried;
  return better;
}

/* Moves each cut by one piece. */
static bool move_cuts(near_search *n) {
  const size_t cuts = n->best->stages * n->best->chunks - 1;
  bool better = false;
  for (size_t k = 0; k < cuts; k++)
    for (size_t up = 0; up < 2 && n->used < n->budget; up++) {
      gt_pipe_found tried = gt_pipe_found_copy(n->best);
      tried.ends[k] += up ? 1 : SIZE_MAX; /* one less */
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

/* Tries all other divisions of workers between a stage and the next one of its region. */
static bool move_workers(near_search *n) {
  bool better = false;
  for (size_t s = 0; s < n->best->stages; s++) {
    const size_t region = n->best->places[s].region;
    size_t t = s + 1;
    while (t < n->best->stages && n->best->places[t].region != region) t++;
    if (t == n->best->stages) continue;
    const size_t both = n->best->places[s].workers + n->best->places[t].workers;
    for (size_t w = 1; w < both && n->used < n->budget; w++) {
      if (w == n->best->places[s].workers) continue;
      gt_pipe_found tried = gt_pipe_found_copy(n->best);
      tried.places[s].workers = w;
      tried.places[t].workers = both - w;
      number_workers(&tried, region);
      better |= offer(n, &tried);
    }
  }
  return better;
}

/* Returns the next larger or smaller number that divides the batch, or 0. */
static size_t next_micro_batches(const gt_pipe_search_problem *p, size_t micro_batches, bool up) {
  for (size_t m = up ? micro_batches + 1 : micro_batches - 1; m > 0 && m <= p->batch;
       m = up ? m + 1 : m - 1)
    if (p->batch % m == 0) return m;
  return 0;
}

static bool move_micro_batches(near_search *n) {
  bool better = false;
  for (size_t up = 0; up < 2 && n->problem->micro_batches == 0 && n->used < n->budget; up++) {
    const size_t micro_batches = next_micro_batches(n->problem, n->best->micro_batches, up);
    if (micro_batches == 0) continue;
    gt_pipe_found tried = gt_pipe_found_copy(n->best);
    tried.micro_batches = micro_batches;
    better |= offer(n, &tried);
  }
  return better;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_amount(double x) {
  return x >= 0 && x < INFINITY;
}

static gt_status check_piece(const gt_pipe_operation *o, size_t i) {
  if (is_amount(o->forward_s) && is_amount(o->input_s) && is_amount(o->weight_s) &&
      is_amount(o->parameter_bytes) && is_amount(o->activation_bytes) && is_amount(o->kept_bytes) &&
      is_amount(o->cut_bytes))
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "piece %zu takes %g, %g and %g s, has %g bytes of parameters, %g and %g of "
                 "activations, and gets %g; expected 0 or more",
                 i, o->forward_s, o->input_s, o->weight_s, o->parameter_bytes, o->activation_bytes,
                 o->kept_bytes, o->cut_bytes);
}

static gt_status check_site(const gt_pipe_site *site, size_t s) {
  for (size_t w = 0; w < site->workers; w++)
    if (!(site->power[w] > 0 && site->power[w] < INFINITY))
      return GT_FAIL(GT_ERR_JOB, "worker %zu of region %zu has a power of %g; expected more than 0",
                     w, s, site->power[w]);
  if (!(site->memory_bytes > 0) || !is_amount(site->local_s) || !is_amount(site->update_s) ||
      !is_amount(site->fixed_s))
    return GT_FAIL(GT_ERR_JOB,
                   "region %zu has %g bytes of memory per worker, and updates take %g and %g s; "
                   "expected more than 0 bytes, and times of 0 or more",
                   s, site->memory_bytes, site->local_s, site->update_s);
  return GT_OK;
}

static gt_status check(const gt_pipe_search_problem *p) {
  bool starts = false;
  if (p->npieces < 1 || p->nsites < 1 || p->batch < 1)
    return GT_FAIL(
        GT_ERR_JOB,
        "%zu pieces of a model, %zu regions and batches of %zu samples; expected 1 or more of each",
        p->npieces, p->nsites, p->batch);
  if (p->micro_batches > 0 && p->batch % p->micro_batches != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%zu micro-batches of a batch of %zu samples; expected a number that divides it",
                   p->micro_batches, p->batch);
  for (size_t i = 0; i < p->npieces; i++) GT_TRY(check_piece(&p->pieces[i].work, i));
  for (size_t s = 0; s < p->nsites; s++) {
    GT_TRY(check_site(&p->sites[s], s));
    starts |= p->sites[s].starts && p->sites[s].workers > 0;
  }
  return starts ? GT_OK : GT_FAIL(GT_ERR_JOB, "no region may have the first stage; expected one");
}

/* ---- the choice ------------------------------------------------------------------------------ */

static int compare(double a, double b) {
  return (a > b) - (a < b);
}

/* Orders equal pipelines by simplicity: fewer stages, then fewer micro-batches. */
static int by_shape(const gt_pipe_found *x, const gt_pipe_found *y) {
  const size_t a = x->stages * x->chunks, b = y->stages * y->chunks;
  if (a != b) return a > b ? 1 : -1;
  if (x->micro_batches != y->micro_batches) return x->micro_batches > y->micro_batches ? 1 : -1;
  for (size_t k = 0; k < a; k++)
    if (x->ends[k] != y->ends[k]) return x->ends[k] > y->ends[k] ? 1 : -1;
  for (size_t s = 0; s < x->stages; s++)
    if (x->places[s].region != y->places[s].region)
      return x->places[s].region > y->places[s].region ? 1 : -1;
  return 0;
}

static int by_bound(const void *a, const void *b) {
  const gt_pipe_found *x = a, *y = b;
  const int order = compare(x->bound_s, y->bound_s);
  return order ? order : by_shape(x, y);
}

static int by_period(const void *a, const void *b) {
  const gt_pipe_found *x = a, *y = b;
  const int order = compare(x->period_s, y->period_s);
  return order ? order : by_shape(x, y);
}

/* Returns the variants with which `count` simulations like this one have about this number of
   passes. */
static size_t variants_for(const gt_pipe_found *f, double passes, size_t count) {
  const double fits = passes / (double)count / gt_pipe_found_passes(f);
  return fits < 2 ? 2 : fits > (double)GT_PIPE_VARIANTS ? GT_PIPE_VARIANTS : (size_t)fits;
}

/* Simulates candidates before `to` and sorts the best first. */
static void simulate(gt_pipe_candidates *c, size_t to, double passes) {
  for (size_t i = 0; i < to; i++)
    c->found[i].period_s =
        gt_pipe_search_period(c->problem, &c->found[i], variants_for(&c->found[i], passes, to));
  qsort(c->found, to, sizeof *c->found, by_period);
}

/* True if they differ only in cuts and micro-batches. */
static bool are_alike(const gt_pipe_found *a, const gt_pipe_found *b) {
  if (a->stages != b->stages || a->chunks != b->chunks) return false;
  for (size_t s = 0; s < a->stages; s++)
    if (a->places[s].region != b->places[s].region || a->places[s].workers != b->places[s].workers)
      return false;
  return true;
}

/* Keeps the best candidates that take at most this time; of alike ones only the best. */
static void keep_unlike(gt_pipe_candidates *c, double most_s,
                        bool (*alike)(const gt_pipe_found *, const gt_pipe_found *)) {
  size_t kept = 0;
  for (size_t i = 0; i < c->n; i++) {
    bool drop = kept == GT_PIPE_FOUND || c->found[i].period_s > most_s;
    for (size_t k = 0; k < kept && !drop; k++) drop = alike(&c->found[k], &c->found[i]);
    if (drop)
      gt_pipe_found_close(&c->found[i]);
    else
      c->found[kept++] = c->found[i];
  }
  c->n = kept;
}

/* Keeps the candidates with the best bounds, after moves of their cuts that lower these: the
   dynamic program pairs the parts before and after a fold in only one way. */
static void keep_best(gt_pipe_candidates *c) {
  qsort(c->found, c->n, sizeof *c->found, by_bound);
  gt_pipe_candidates_keep(c, GT_PIPE_SIMULATED);
  for (size_t i = 0, n = c->n; i < n; i++) {
    gt_pipe_found f = gt_pipe_found_copy(&c->found[i]);
    near_search near = {.problem = c->problem, .best = &f, .budget = SIZE_MAX};
    bool lower = false;
    while (move_cuts(&near)) lower = true;
    if (lower)
      gt_pipe_candidates_add(c, &f);
    else
      gt_pipe_found_close(&f);
  }
  qsort(c->found, c->n, sizeof *c->found, by_bound);
  gt_pipe_candidates_keep(c, GT_PIPE_SIMULATED);
}

/* Improves a pipeline while other cuts, workers or micro-batches shorten its period, within about
   this number of simulated passes.  Returns the number of simulations. */
static size_t improve(const gt_pipe_search_problem *problem, gt_pipe_found *found, double passes) {
  const double fits = passes / NEAR_VARIANTS / gt_pipe_found_passes(found);
  const size_t budget = fits > (double)NEAR_MOST ? NEAR_MOST : 1 + (size_t)fits;
  near_search near = {problem, found, variants_for(found, passes, budget), budget, 1};
  found->period_s = gt_pipe_search_period(problem, found, near.variants);
  for (bool better = true; better && near.used < budget;) {
    better = move_cuts(&near);
    better |= move_workers(&near);
    better |= move_micro_batches(&near);
  }
  return near.used;
}

static size_t choose(gt_pipe_candidates *c) {
  const gt_pipe_search_problem *p = c->problem;
  const double effort = p->effort > 0 ? p->effort : 1;
  keep_best(c);
  size_t simulated = c->n;
  simulate(c, simulated, effort * PASSES_FIRST);
  keep_unlike(c, INFINITY, are_alike); /* other differences are tried below */
  for (size_t i = 0; i < c->n; i++)
    simulated += improve(p, &c->found[i], effort * PASSES_NEAR / (double)GT_PIPE_FOUND);
  keep_unlike(c, DBL_MAX, gt_pipe_found_same); /* improvements may have made two equal */
  simulate(c, c->n, effort * PASSES_LAST);
  return simulated + c->n;
}

/* Returns the number of pipelines without limits of memory. */
static size_t looked_unlimited(const gt_pipe_search_problem *problem) {
  gt_pipe_search_problem unlimited = *problem;
  gt_pipe_site *sites = GT_NEW_ARRAY(gt_pipe_site, problem->nsites);
  for (size_t s = 0; s < problem->nsites; s++) {
    sites[s] = problem->sites[s];
    sites[s].memory_bytes = INFINITY;
  }
  unlimited.sites = sites;
  gt_pipe_candidates c;
  gt_pipe_candidates_find(&c, &unlimited);
  const size_t fitting = c.n;
  gt_pipe_candidates_keep(&c, 0);
  gt_free(c.found);
  gt_free(sites);
  return fitting;
}

static gt_status none(const gt_pipe_search_problem *p) {
  const size_t unlimited = looked_unlimited(p);
  if (unlimited > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "no pipeline fits into the memory of the workers; without limits, %zu are "
                   "feasible; use more memory, smaller micro-batches or more workers",
                   unlimited);
  return GT_FAIL(GT_ERR_JOB,
                 "no pipeline can use all workers of all regions: with a batch of %zu, each worker "
                 "of a stage must get whole samples of a micro-batch, the model can be cut into "
                 "%zu parts, %sand weights that two operations share must be in one region",
                 p->batch, p->npieces,
                 p->labels_stay ? "the region with the data must have the first and the last one, "
                                : "");
}

gt_status gt_pipe_search_run(gt_pipe_search_result *out, const gt_pipe_search_problem *problem) {
  gt_pipe_candidates c;
  *out = (gt_pipe_search_result){0};
  GT_TRY(check(problem));
  gt_pipe_candidates_find(&c, problem);
  const size_t fitting = c.n, simulated = c.n > 0 ? choose(&c) : 0;
  *out = (gt_pipe_search_result){c.found, c.n, c.looked, fitting, simulated};
  if (c.n > 0) return GT_OK;
  gt_pipe_search_close(out);
  return none(problem);
}

void gt_pipe_search_close(gt_pipe_search_result *result) {
  for (size_t i = 0; i < result->n; i++) gt_pipe_found_close(&result->found[i]);
  gt_free(result->found);
  *result = (gt_pipe_search_result){0};
}
