/* What a plan is made of: the job, its prices, the pools that sets are chosen from, and the candidates. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/ps.h"
#include "geotrain/sync.h"
#include "plan_inside.h"

#define EVENTS     3000000 /* of a simulation, over the number of candidates: all simulations take seconds */
#define EVENTS_MIN 200000
#define SETS_MOST  100000

/* ---- pools -------------------------------------------------------------------------------------------------------------------- */

/* Workers that are described one by one cannot be chosen among. */
static bool is_fixed(const gt_job_region *r) {
  return r->ndevices == 0 || r->nspeeds > 0 || r->nmeasured > 0;
}

static gt_status check_devices(const gt_job *job, size_t region) {
  const gt_job_region *r = &job->regions[region];
  int64_t devices = 0;
  for (size_t d = 0; d < r->ndevices; d++) {
    devices += r->devices[d].count;
    if (r->devices[d].count > 0 && gt_job_device_power(job, region, d) <= 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: regions.%zu.devices.%zu (%s of %s) has no power, and neither compute nor a profile says it; it is needed to plan",
                     job->name, region, d, r->devices[d].type, r->name);
  }
  if (devices == 0)
    return GT_FAIL(GT_ERR_JOB, "%s: regions.%zu (%s) has no device, every count of its devices is 0; one device is needed", job->name, region,
                   r->name);
  if (r->ranks_min > devices)
    return GT_FAIL(GT_ERR_JOB, "%s: regions.%zu.ranks_min is %d and its devices are %" PRId64 "; at most that is needed", job->name, region,
                   r->ranks_min, devices);
  return GT_OK;
}

static gt_status make_pools(planner *p) {
  p->pools = GT_NEW_ARRAY(planner_pool, p->job->nregions);
  for (size_t r = 0; r < p->job->nregions; r++) {
    const gt_job_region *region = &p->job->regions[r];
    bool fixed = is_fixed(region);
    if (!fixed) GT_TRY(check_devices(p->job, r));
    p->pools[r] = (planner_pool){.first = p->ncounts, .n = fixed ? 1 : region->ndevices, .fixed = fixed};
    p->ncounts += p->pools[r].n;
  }
  return GT_OK;
}

/* ---- prices ------------------------------------------------------------------------------------------------------------------- */

static gt_status find_prices(planner *p) {
  GT_TRY(gt_job_prices_of(&p->prices, p->job));
  if (p->job->plan.budget <= 0) return GT_OK;
  if (!p->prices.known)
    return GT_FAIL(GT_ERR_JOB, "%s: plan.budget is %g USD and no price is known; regions[].place, price and ps_price, or devices[].price are needed",
                   p->job->name, p->job->plan.budget);
  if (p->prices.nmissing > 0)
    return GT_FAIL(GT_ERR_JOB, "%s: plan.budget is %g USD and the price of %s is not known; regions[].place, or prices of its own, are needed",
                   p->job->name, p->job->plan.budget, p->prices.missing[0]);
  return GT_OK;
}

/* ---- candidates --------------------------------------------------------------------------------------------------------------- */

/* Its own factor, else that of any period, else 1. */
static double factor_of(const gt_job *job, gt_strategy strategy, int64_t period) {
  double factor = 1;
  for (size_t i = 0; i < job->plan.nfactors; i++) {
    const gt_job_factor *f = &job->plan.factors[i];
    if (f->strategy != strategy) continue;
    if (f->period == period) return f->factor;
    if (f->period == 0) factor = f->factor;
  }
  return factor;
}

static void add_candidate(planner *p, gt_strategy strategy, int64_t period) {
  if (!gt_sync_of(strategy)->periodic) period = 0;
  for (size_t i = 0; i < p->ncandidates; i++)
    if (p->candidates[i].strategy == strategy && p->candidates[i].period == period) return;
  p->candidates[p->ncandidates++] = (planner_candidate){
      .strategy = strategy, .period = period, .factor = factor_of(p->job, strategy, period), .wan_bound = GT_NEW_ARRAY(bool, p->job->nregions)};
}

static gt_status make_candidates(planner *p) {
  const gt_job *job = p->job;
  size_t nstrategies = job->plan.nstrategies ? job->plan.nstrategies : 1, nperiods = job->plan.nperiods ? job->plan.nperiods : 1;
  if (job->plan.nstrategies == 0 && !gt_sync_of(job->sync.strategy)->sends)
    return GT_FAIL(GT_ERR_JOB, "%s: sync.strategy is none, with which regions exchange nothing; plan.strategies, or another strategy, is needed",
                   job->name);
  p->candidates = GT_NEW_ARRAY(planner_candidate, nstrategies * nperiods);
  for (size_t s = 0; s < nstrategies; s++)
    for (size_t k = 0; k < nperiods; k++)
      add_candidate(p, job->plan.nstrategies ? job->plan.strategies[s] : job->sync.strategy,
                    job->plan.nperiods ? job->plan.periods[k] : job->sync.period);
  return GT_OK;
}

char *gt_planner_name(char *buf, size_t size, const planner_candidate *c) {
  if (c->period > 0)
    snprintf(buf, size, "%s %" PRId64, gt_strategy_names[c->strategy], c->period);
  else
    snprintf(buf, size, "%s", gt_strategy_names[c->strategy]);
  return buf;
}

const planner_set *gt_planner_set(const planner_candidate *c) {
  return c->whole ? &c->everything : &c->set;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------ */

gt_status gt_planner_open(planner *p, const planner_options *options) {
  *p = (planner){.options = options, .sets_most = SETS_MOST};
  GT_TRY(gt_job_load_regions(&p->job, options->words.path, options->words.sets, options->words.nsets, options->regions_csv));
  GT_TRY(make_pools(p));
  GT_TRY(gt_cost_check(p->job, "to plan it"));
  GT_TRY(find_prices(p));
  GT_TRY(make_candidates(p));
  p->max_events = EVENTS / (int64_t)p->ncandidates;
  if (p->max_events < EVENTS_MIN) p->max_events = EVENTS_MIN;
  return gt_sim_shape_of(&p->shape, p->job);
}

void gt_planner_close(planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++) {
    gt_planner_set_close(&p->candidates[i].everything);
    gt_planner_set_close(&p->candidates[i].set);
    gt_free(p->candidates[i].wan_bound);
  }
  for (size_t i = 0; i < p->nnotes; i++) gt_free(p->notes[i]);
  gt_free(p->notes);
  gt_free(p->candidates);
  gt_free(p->pools);
  gt_job_prices_close(&p->prices);
  gt_sim_shape_close(&p->shape);
  gt_job_close(p->job);
  *p = (planner){0};
}

void gt_planner_note(planner *p, const char *format, ...) {
  char text[1024];
  char **notes = GT_NEW_ARRAY(char *, p->nnotes + 1);
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (p->nnotes > 0) memcpy(notes, p->notes, p->nnotes * sizeof *notes);
  notes[p->nnotes++] = gt_strdup(text);
  gt_free(p->notes);
  p->notes = notes;
}
