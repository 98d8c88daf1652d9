/* Forecasts for a set of devices: the job with these devices, simulated, and its cost. */
#include <math.h>

#include "internal.h"

/* ---- the job --------------------------------------------------------------------------------- */

static void speed_up(gt_job_compute *c, double speed) {
  c->samples_per_s *= speed;
  c->eval_samples_per_s *= speed;
  c->step_s /= speed;
  c->local_s /= speed;
  c->pass_s /= speed;
  c->resume_s /= speed;
  c->update_s /= speed;
  c->apply_s /= speed;
  c->encode_s /= speed;
  for (size_t k = 0; k < GT_CODEC_KINDS; k++) {
    c->codecs[k].encode_bps *= speed;
    c->codecs[k].decode_bps *= speed;
  }
}

static void speed_up_store(gt_job_store *store, double speed) {
  store->upload_bps *= speed;
  store->download_bps *= speed;
}

/* Scales all speeds and links except traces, which are measurements. */
static void speed_up_all(gt_job *job, double speed) {
  speed_up(&job->compute, speed);
  for (size_t r = 0; r < job->nregions; r++) {
    gt_job_region *region = &job->regions[r];
    speed_up(&region->compute, speed);
    region->access_bps *= speed;
    speed_up_store(&region->store, speed);
    for (size_t d = 0; d < region->ndevices; d++) region->devices[d].power *= speed;
  }
  for (size_t i = 0; i < job->wan.nlinks; i++) job->wan.links[i].bandwidth_bps *= speed;
  job->wan.fallback.bandwidth_bps *= speed;
  speed_up_store(&job->wan.store.of, speed);
}

int64_t gt_planner_ranks(const gt_planner *p, size_t region, const int64_t *counts) {
  int64_t ranks = 1;
  if (!gt_job_trains(p->job, region)) return ranks;
  for (size_t i = 0; i < p->pools[region].n; i++) ranks += counts[p->pools[region].first + i];
  return ranks;
}

static void take_devices(gt_job *job, const gt_planner *p, const int64_t *counts) {
  for (size_t r = 0; r < job->nregions; r++) {
    const gt_planner_pool *pool = &p->pools[r];
    gt_job_region *region = &job->regions[r];
    if (pool->fixed) continue;
    for (size_t d = 0; d < pool->n; d++) region->devices[d].count = counts[pool->first + d];
    region->ranks = (int)gt_planner_ranks(p, r, counts);
  }
}

/* Returns the factor on steps.  With `local: sync` a step is one batch of every worker; the factor
   makes all regions together train on as many samples as everything everywhere does in the job's
   steps. */
static double more_steps(const gt_planner *p, const gt_planner_candidate *c,
                         const int64_t *counts) {
  double all = 0, set = 0;
  if (p->job->sync.local != GT_LOCAL_SYNC) return 1;
  for (size_t r = 0; r < p->job->nregions; r++) {
    all += (double)gt_planner_ranks(p, r, c->everything.counts) - 1;
    set += (double)gt_planner_ranks(p, r, counts) - 1;
  }
  return all / set;
}

void gt_planner_fit(gt_job *job, const gt_planner *p, const gt_planner_candidate *c,
                    const int64_t *counts) {
  gt_job_interval *until = &job->train.until;
  until->epochs *= c->factor;
  until->steps = (int64_t)ceil((double)until->steps * c->factor * more_steps(p, c, counts) - 1e-9);
  until->samples = (int64_t)ceil((double)until->samples * c->factor - 1e-9);
  take_devices(job, p, counts);
}

/* ---- a simulation ---------------------------------------------------------------------------- */

double gt_planner_cost(const gt_planner *p, const gt_planner_outcome *o) {
  return p->prices.known ? o->cost.usd : o->cost.machine_hours;
}

static void add_traffic(gt_planner_outcome *o, const gt_sim_forecast *f, double *bytes) {
  for (size_t i = 0; i < f->nregions * f->nregions; i++) {
    bytes[i] = f->links[i].bytes_sent + f->links[i].bytes_other;
    o->figures.wan_bytes += f->links[i].bytes_sent;
    o->other_bytes += f->links[i].bytes_other;
  }
}

/* Returns the time, plus or minus its error, because the simulated part may not be
   representative. */
static double wall_of(const gt_sim_forecast *f, gt_planner_case which) {
  if (which == GT_PLANNER_LOW) return fmax(0, f->virtual_s - f->error_s);
  return which == GT_PLANNER_HIGH ? f->virtual_s + f->error_s : f->virtual_s;
}

static gt_planner_outcome outcome_of(const gt_planner *p, const gt_job *job,
                                     const gt_sim_forecast *f, gt_planner_case which) {
  const gt_sim_totals *t = &f->totals;
  gt_planner_outcome o = {
      .known = true, .error_s = f->error_s, .part = f->part, .why = f->why, .train_s = f->train_s};
  o.samples = t->samples;
  o.steps = t->steps;
  o.messages = t->messages;
  double wall_s = wall_of(f, which), *bytes = GT_NEW_ARRAY(double, f->nregions * f->nregions);
  add_traffic(&o, f, bytes);
  gt_plan_job_cost(&o.cost, job, &p->prices, wall_s, bytes, f->regions);
  o.figures = gt_figures_of(wall_s, f->regions, f->nregions, (double)t->samples,
                            o.figures.wan_bytes, p->prices.known ? o.cost.usd : NAN);
  gt_free(bytes);
  return o;
}

static gt_sim_spec spec_of(const gt_planner *p, const gt_planner_candidate *c, const gt_job *job,
                           const gt_links *links) {
  return (gt_sim_spec){.job = job,
                       .links = links,
                       .parameters = p->shape.parameters,
                       .tensors = p->shape.tensors,
                       .ntensors = p->shape.ntensors,
                       .buffers = p->shape.buffers,
                       .samples = p->shape.samples,
                       .held = p->shape.held,
                       .tests = p->shape.tests,
                       .routes = c->chosen ? &c->topology.of[c->topology.best].routes : NULL};
}

static gt_status predict(gt_sim_forecast *out, const gt_planner *p, const gt_planner_candidate *c,
                         const gt_job *job) {
  gt_links *links = NULL;
  GT_TRY(gt_links_create(&links, job));
  const gt_sim_spec spec = spec_of(p, c, job, links);
  const gt_status status = gt_sim_predict(out, &spec, p->max_events);
  gt_links_close(links);
  return status;
}

gt_status gt_planner_simulate(const gt_planner *p, const gt_planner_candidate *c,
                              gt_planner_set *set, gt_planner_case which) {
  gt_planner_outcome *o = &set->at[which];
  const double speeds[GT_PLANNER_CASES] = {1 + p->options.margin, 1, 1 - p->options.margin};
  gt_job *job = NULL;
  gt_sim_forecast forecast = {0};
  if (o->known) return GT_OK;
  GT_TRY(gt_planner_load(&job, p, c, NULL, 0));
  gt_planner_fit(job, p, c, set->counts);
  if (speeds[which] != 1) speed_up_all(job, speeds[which]);
  job->limits.wan_bytes = 0;
  gt_status status = predict(&forecast, p, c, job);
  if (status == GT_OK) *o = outcome_of(p, job, &forecast, which);
  if (status == GT_OK && which == GT_PLANNER_EXPECTED)
    set->forecast = forecast;
  else
    gt_sim_forecast_close(&forecast);
  gt_job_close(job);
  return status;
}

/* ---- with faults ----------------------------------------------------------------------------- */

#define EVENTS_MOST 3e7 /* of a run that is simulated in full */

static void take_faults(gt_planner_faults *f, const gt_planner *p, const gt_job *job,
                        const gt_sim *sim, const gt_sim_totals *undisturbed) {
  double *bytes = gt_sim_link_bytes(sim);
  gt_region_result *regions = GT_NEW_ARRAY(gt_region_result, job->nregions);
  gt_sim_totals t;
  for (size_t r = 0; r < job->nregions; r++) gt_sim_region(sim, r, &regions[r]);
  gt_sim_get_totals(sim, &t);
  f->known = true;
  f->code = t.code;
  f->wall_s = t.virtual_s;
  f->undisturbed_s = undisturbed->virtual_s;
  gt_plan_job_cost(&f->cost, job, &p->prices, t.virtual_s, bytes, regions);
  gt_free(regions);
  gt_free(bytes);
}

gt_status gt_planner_disturb(gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  const gt_planner_set *set = gt_planner_proposed(c);
  gt_planner_faults *f = &p->faults;
  gt_job *job = NULL;
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  gt_sim_totals undisturbed;
  if (p->job->nfaults == 0) return GT_OK;
  if ((double)p->max_events / set->at[GT_PLANNER_EXPECTED].part > EVENTS_MOST) return GT_OK;
  gt_progress_part("faults: ");
  GT_TRY(gt_planner_load(&job, p, c, NULL, 0));
  gt_planner_fit(job, p, c, set->counts);
  gt_status status = gt_links_create(&links, job);
  if (status == GT_OK) {
    const gt_sim_spec spec = spec_of(p, c, job, links);
    status = gt_sim_run_faults(&sim, &f->found, &undisturbed, &spec);
    if (status == GT_ERR_LIMIT) {
      f->endless = true;
      status = GT_OK;
    }
  }
  if (status == GT_OK && sim) take_faults(f, p, job, sim, &undisturbed);
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  return status;
}

void gt_planner_set_close(gt_planner_set *set) {
  gt_sim_forecast_close(&set->forecast);
  gt_free(set->counts);
  for (gt_planner_case k = GT_PLANNER_LOW; k < GT_PLANNER_CASES; k++)
    gt_plan_job_cost_close(&set->at[k].cost);
  *set = (gt_planner_set){0};
}
