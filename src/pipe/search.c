/* The search for a job's pipeline: of its candidates those with the lowest bounds are simulated,
   and the best are improved. */
#include <math.h>
#include <stdlib.h>

#include "search.h"

#define NEAR_VARIANTS 32.0          /* of each of these, as far as it can be */
#define NEAR_MOST     ((size_t)400) /* simulations to improve one */
/* Passes of all simulations of a kind together, to which the number of variants is fitted. */
#define PASSES_FIRST 1e6
#define PASSES_NEAR  5e6
#define PASSES_LAST  2e6

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
                 "activations, and gets %g; 0 or more are needed",
                 i, o->forward_s, o->input_s, o->weight_s, o->parameter_bytes, o->activation_bytes,
                 o->kept_bytes, o->cut_bytes);
}

static gt_status check_site(const gt_pipe_site *site, size_t s) {
  if (site->workers < 1)
    return GT_FAIL(GT_ERR_JOB, "region %zu has no workers; one or more are needed", s);
  for (size_t w = 0; w < site->workers; w++)
    if (!(site->power[w] > 0 && site->power[w] < INFINITY))
      return GT_FAIL(GT_ERR_JOB,
                     "worker %zu of region %zu has a power of %g; more than 0 is needed", w, s,
                     site->power[w]);
  if (!(site->memory_bytes > 0) || !is_amount(site->local_s) || !is_amount(site->update_s) ||
      !is_amount(site->fixed_s))
    return GT_FAIL(GT_ERR_JOB,
                   "region %zu has %g bytes of memory a worker, and updates take %g and %g s; more "
                   "than 0 bytes, and times of 0 or more, are needed",
                   s, site->memory_bytes, site->local_s, site->update_s);
  return GT_OK;
}

static gt_status check(const gt_pipe_search_problem *p) {
  bool starts = false;
  if (p->npieces < 1 || p->nsites < 1 || p->batch < 1)
    return GT_FAIL(GT_ERR_JOB,
                   "%zu pieces of a model, %zu regions and batches of %zu samples; 1 or more of "
                   "each are needed",
                   p->npieces, p->nsites, p->batch);
  if (p->micros > 0 && p->batch % p->micros != 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%zu micro-batches of a batch of %zu samples; a number that divides it is needed",
        p->micros, p->batch);
  for (size_t i = 0; i < p->npieces; i++) GT_TRY(check_piece(&p->pieces[i].work, i));
  for (size_t s = 0; s < p->nsites; s++) {
    GT_TRY(check_site(&p->sites[s], s));
    starts |= p->sites[s].starts;
  }
  return starts ? GT_OK : GT_FAIL(GT_ERR_JOB, "no region may have the first stage; one is needed");
}

/* ---- the choice ------------------------------------------------------------------------------ */

static int compare(double a, double b) {
  return (a > b) - (a < b);
}

/* Of equal ones, those with fewer stages, then fewer micro-batches, are simpler. */
static int by_shape(const gt_pipe_found *x, const gt_pipe_found *y) {
  const size_t a = x->stages * x->chunks, b = y->stages * y->chunks;
  if (a != b) return a > b ? 1 : -1;
  if (x->micros != y->micros) return x->micros > y->micros ? 1 : -1;
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

/* Variants for which `count` simulations like this one make about so many passes. */
static size_t variants_for(const gt_pipe_found *f, double passes, size_t count) {
  const double fits = passes / (double)count / gt_pipe_found_passes(f);
  return fits < 2 ? 2 : fits > (double)GT_PIPE_VARIANTS ? GT_PIPE_VARIANTS : (size_t)fits;
}

/* Simulates [from, to) and puts the best first. */
static void simulate(gt_pipe_candidates *c, size_t to, double passes) {
  for (size_t i = 0; i < to; i++)
    c->found[i].period_s =
        gt_pipe_search_period(c->problem, &c->found[i], variants_for(&c->found[i], passes, to));
  qsort(c->found, to, sizeof *c->found, by_period);
}

/* They differ in cuts and micro-batches alone. */
static bool are_alike(const gt_pipe_found *a, const gt_pipe_found *b) {
  if (a->stages != b->stages || a->chunks != b->chunks) return false;
  for (size_t s = 0; s < a->stages; s++)
    if (a->places[s].region != b->places[s].region || a->places[s].workers != b->places[s].workers)
      return false;
  return true;
}

/* Keeps the best, of pipelines that are alike just one: these differences are tried later. */
static void keep_different(gt_pipe_candidates *c) {
  size_t kept = 0;
  for (size_t i = 0; i < c->n; i++) {
    bool same = kept == GT_PIPE_FOUND;
    for (size_t k = 0; k < kept && !same; k++) same = are_alike(&c->found[k], &c->found[i]);
    if (same)
      gt_pipe_found_close(&c->found[i]);
    else
      c->found[kept++] = c->found[i];
  }
  c->n = kept;
}

/* Pipelines that improved to the same one are there once. */
static void drop_same(gt_pipe_candidates *c) {
  size_t kept = 0;
  for (size_t i = 0; i < c->n; i++) {
    bool same = c->found[i].period_s == INFINITY;
    for (size_t k = 0; k < kept && !same; k++)
      same = gt_pipe_found_same(&c->found[k], &c->found[i]);
    if (same)
      gt_pipe_found_close(&c->found[i]);
    else
      c->found[kept++] = c->found[i];
  }
  c->n = kept;
}

/* The best by their bounds.  The dynamic programme pairs what lies before a fold with what lies
   behind it in one way only, and other cuts may have a lower bound. */
static void keep_best(gt_pipe_candidates *c) {
  qsort(c->found, c->n, sizeof *c->found, by_bound);
  gt_pipe_candidates_keep(c, GT_PIPE_SIMULATED);
  for (size_t i = 0, n = c->n; i < n; i++) {
    gt_pipe_found f = gt_pipe_found_copy(&c->found[i]);
    if (gt_pipe_near_lower(c->problem, &f))
      gt_pipe_candidates_add(c, &f);
    else
      gt_pipe_found_close(&f);
  }
  qsort(c->found, c->n, sizeof *c->found, by_bound);
  gt_pipe_candidates_keep(c, GT_PIPE_SIMULATED);
}

static size_t choose(gt_pipe_candidates *c) {
  const gt_pipe_search_problem *p = c->problem;
  const double effort = p->effort > 0 ? p->effort : 1;
  keep_best(c);
  size_t simulated = c->n;
  simulate(c, simulated, effort * PASSES_FIRST);
  keep_different(c);
  for (size_t i = 0; i < c->n; i++) {
    gt_pipe_found *f = &c->found[i];
    double fits =
        effort * PASSES_NEAR / (double)GT_PIPE_FOUND / NEAR_VARIANTS / gt_pipe_found_passes(f);
    const size_t budget = fits > (double)NEAR_MOST ? NEAR_MOST : 1 + (size_t)fits;
    simulated += gt_pipe_near_improve(
        p, f, variants_for(f, effort * PASSES_NEAR / (double)GT_PIPE_FOUND, budget), budget);
  }
  drop_same(c);
  simulate(c, c->n, effort * PASSES_LAST);
  return simulated + c->n;
}

/* The pipelines that there would be without limits of memory. */
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
                   "no pipeline fits into the memory of the workers, and without limits there "
                   "would be %zu; more memory, smaller micro-batches or more workers are needed",
                   unlimited);
  return GT_FAIL(
      GT_ERR_JOB,
      "no pipeline has all workers of all regions: each worker of a stage has whole "
      "samples of a micro-batch, of a batch of %zu, the model can be cut into %zu parts, "
      "%sand weights that two operations share are in one region",
      p->batch, p->npieces,
      p->labels_stay ? "the region with the data has the first and the last one, " : "");
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
