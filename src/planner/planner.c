/* Makes a plan: the job, its prices, the pools from which sets are chosen, the candidates, a set
   for each, and the choice. */
#include <inttypes.h>
#include <stdio.h>

#include "geotrain/ps_work_time.h"
#include "internal.h"

/* per simulation, divided by the number of candidates: all simulations together take seconds */
#define EVENTS     3000000
#define EVENTS_MIN 200000
#define SETS_MOST  100000

/* ---- pools ----------------------------------------------------------------------------------- */

/* Workers with individual descriptions cannot be selected from. */
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
                     "%s: regions.%zu.devices.%zu (%s of %s) has no power, and neither compute nor "
                     "a profile says it; `geotrain plan` requires it",
                     job->name, region, d, r->devices[d].type, r->name);
  }
  if (devices == 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: regions.%zu (%s) has no device, every count of its devices is 0; expected one device",
        job->name, region, r->name);
  if (r->ranks_min > devices)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.ranks_min is %d and its devices are %" PRId64
                   "; ranks_min must be at most their number",
                   job->name, region, r->ranks_min, devices);
  return GT_OK;
}

static gt_status make_pools(gt_planner *p) {
  p->pools = GT_NEW_ARRAY(gt_planner_pool, p->job->nregions);
  for (size_t r = 0; r < p->job->nregions; r++) {
    const gt_job_region *region = &p->job->regions[r];
    bool fixed = is_fixed(region);
    if (!fixed) GT_TRY(check_devices(p->job, r));
    p->pools[r] =
        (gt_planner_pool){.first = p->ncounts, .n = fixed ? 1 : region->ndevices, .fixed = fixed};
    p->ncounts += p->pools[r].n;
  }
  return GT_OK;
}

/* ---- prices ---------------------------------------------------------------------------------- */

static gt_status find_prices(gt_planner *p) {
  GT_TRY(gt_job_prices_of(&p->prices, p->job));
  if (p->job->plan.budget <= 0) return GT_OK;
  if (!p->prices.known)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: plan.budget is %g USD and no price is known; expected regions[].place, "
                   "price and ps_price, or devices[].price",
                   p->job->name, p->job->plan.budget);
  if (p->prices.nmissing > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: plan.budget is %g USD and the price of %s is not known; expected "
                   "regions[].place, or prices of its own",
                   p->job->name, p->job->plan.budget, p->prices.missing[0]);
  return GT_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status open_parts(gt_planner *p) {
  const gt_planner_options *o = &p->options;
  GT_TRY(gt_job_load_regions(&p->job, o->job_path, o->sets, o->nsets, o->regions_csv));
  GT_TRY(make_pools(p));
  GT_TRY(gt_cost_check(p->job, "to plan it"));
  GT_TRY(find_prices(p));
  GT_TRY(gt_planner_list_candidates(p, gt_planner_axes));
  p->max_events = EVENTS / (int64_t)p->ncandidates;
  if (p->max_events < EVENTS_MIN) p->max_events = EVENTS_MIN;
  GT_TRY(gt_sim_shape_of(&p->shape, p->job));
  return gt_planner_open_candidates(p);
}

gt_status gt_planner_open(gt_planner **out, const gt_planner_options *options) {
  gt_planner *p = GT_NEW(gt_planner);
  *p = (gt_planner){.options = *options, .sets_most = SETS_MOST};
  *out = NULL;
  gt_status status = open_parts(p);
  if (status == GT_OK)
    *out = p;
  else
    gt_planner_close(p);
  return status;
}

static gt_status plan(gt_planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++) {
    gt_progress_part("candidate %zu of %zu (%s): ", i + 1, p->ncandidates, p->candidates[i].label);
    GT_TRY(gt_planner_find(p, &p->candidates[i]));
  }
  GT_TRY(gt_planner_choose(p));
  gt_planner_add_notes(p);
  return GT_OK;
}

gt_status gt_planner_make(gt_planner **out, const gt_planner_options *options) {
  GT_TRY(gt_planner_open(out, options));
  gt_status status = plan(*out);
  if (status == GT_OK) return GT_OK;
  gt_planner_close(*out);
  *out = NULL;
  return status;
}

static void close_texts(char **texts, size_t n) {
  for (size_t i = 0; i < n; i++) gt_free(texts[i]);
  gt_free(texts);
}

static void close_candidate(gt_planner_candidate *c) {
  gt_planner_set_close(&c->everything);
  gt_planner_set_close(&c->set);
  gt_wiring_choice_close(&c->topology);
  gt_free(c->wan_bound);
  close_texts(c->overrides, c->noverrides);
  gt_free(c->label);
}

void gt_planner_close(gt_planner *p) {
  if (!p) return;
  for (size_t i = 0; i < p->ncandidates; i++) close_candidate(&p->candidates[i]);
  close_texts(p->notes, p->nnotes);
  gt_free(p->candidates);
  gt_free(p->pools);
  gt_job_prices_close(&p->prices);
  gt_sim_shape_close(&p->shape);
  gt_job_close(p->job);
  gt_free(p);
}
