/* A simulation: handles the events of all regions in the order of time, until all have ended.
   Regions affect each other only by messages, which take time, so the order of events of different
   regions at the same time does not matter. */
#include <math.h>

#include "geotrain/ps_of_job.h"
#include "geotrain/ps_work_time.h"
#include "internal.h"

#define EXACT_REGIONS ((size_t)64)
#define FILLED_BPS    2000.0 /* signs of life take about 1 kbit/s of a direction */
/* Virtual time; after so long with nothing but signs of life, the simulation is stuck. */
#define STUCK        (1000000 * GT_SECOND)
#define LOOKED_EVERY 65536 /* events */

static gt_status check_pipe(const gt_sim_spec *spec) {
  const gt_job *job = spec->job;
  if ((spec->pipe != NULL) != (job->pipeline.nstages > 0) ||
      (!spec->pipes && gt_job_copies(job) > 1))
    gt_bug("a simulation of %zu stages %s them", job->pipeline.nstages,
           spec->pipe ? "was given" : "lacks");
  if (!spec->pipe) return GT_OK;
  return gt_ps_check_stages(job, spec->samples);
}

static gt_status check(const gt_sim_spec *spec) {
  const gt_job *job = spec->job;
  GT_TRY(gt_cost_check(job, "to simulate it"));
  GT_TRY(gt_ps_check_way(job));
  GT_TRY(check_pipe(spec));
  for (size_t a = 0; a < job->nregions; a++) {
    const gt_link_spec *links = gt_links_from(spec->links, a);
    for (size_t b = 0; b < job->nregions; b++)
      if (a != b && gt_link_delay_min(&links[b]) <= 0)
        return GT_FAIL(
            GT_ERR_JOB,
            "wan.links: the link from %s to %s has no latency; to simulate them every pair of "
            "regions needs one above 0 (wan.links, wan.default)",
            job->regions[a].name, job->regions[b].name);
  }
  return GT_OK;
}

static gt_status open_regions(gt_sim *sim) {
  for (size_t i = 0; i < sim->n; i++) GT_TRY(gt_sim_region_open(&sim->regions[i], sim, i));
  return GT_OK;
}

/* The slowest link of the job.  Signs of life have priority, and a link of about 1 kbit/s carries
   nothing else. */
static double slowest_bps(const gt_job *job) {
  double least = job->wan.fallback.bandwidth_bps > 0 ? job->wan.fallback.bandwidth_bps : INFINITY;
  for (size_t i = 0; i < job->wan.nlinks; i++)
    if (job->wan.links[i].bandwidth_bps > 0) least = fmin(least, job->wan.links[i].bandwidth_bps);
  return least;
}

static gt_status stuck(const gt_sim *sim) {
  const double least = slowest_bps(sim->spec.job), at = gt_seconds(sim->moved + sim->gone);
  if (least < FILLED_BPS)
    return GT_FAIL(GT_ERR_LIMIT,
                   "at %.0f s of simulated time nothing moves any more: the slowest link has %g "
                   "bit/s, which signs of life alone fill; expected %g bit/s or more",
                   at, least, FILLED_BPS);
  return GT_FAIL(GT_ERR_LIMIT,
                 "at %.0f s of simulated time nothing moves any more; is there an outage without "
                 "end, or a link without bandwidth?",
                 at);
}

static void tell_progress(const gt_sim *sim) {
  gt_progress_tell("%.3g s of the run, %.3g events", gt_seconds(sim->moved + sim->gone),
                   (double)sim->events);
}

gt_status gt_sim_step(gt_sim *sim, size_t *region) {
  size_t first = gt_sim_agenda_first(&sim->agenda);
  if (sim->agenda.at[first] > sim->moved + STUCK) return stuck(sim);
  gt_sim_region_step(&sim->regions[first]);
  if (++sim->events % LOOKED_EVERY == 0) tell_progress(sim);
  *region = first;
  return GT_OK;
}

gt_status gt_sim_open(gt_sim **out, const gt_sim_spec *spec) {
  GT_TRY(check(spec));
  gt_sim *sim = GT_NEW(gt_sim);
  sim->spec = *spec;
  sim->n = spec->job->nregions;
  sim->exact = sim->n <= EXACT_REGIONS;
  sim->spare = sim->spare_route = SIM_NONE;
  sim->code = GT_OK;
  sim->weights = gt_ps_weights_of(spec->job, spec->samples);
  sim->wiring = gt_wiring_copy(spec->wiring, sim->n);
  sim->spec.wiring = &sim->wiring;
  sim->workers = gt_ps_workers_of(spec->job);
  sim->regions = GT_NEW_ARRAY(sim_region, sim->n);
  gt_sim_agenda_open(&sim->agenda, sim->n);
  gt_status status = open_regions(sim);
  if (status != GT_OK) {
    gt_sim_close(sim);
    return status;
  }
  for (size_t i = 0; i < sim->n; i++) gt_sim_region_start(&sim->regions[i]);
  *out = sim;
  return GT_OK;
}

void gt_sim_close(gt_sim *sim) {
  if (!sim) return;
  for (size_t i = 0; i < sim->n; i++) gt_sim_region_close(&sim->regions[i]);
  gt_sim_agenda_close(&sim->agenda);
  gt_free(sim->regions);
  gt_free(sim->weights);
  gt_wiring_close(&sim->wiring);
  gt_free(sim->workers);
  gt_free(sim->messages);
  gt_free(sim->routes);
  gt_free(sim->crossed);
  gt_free(sim->gone_batches);
  gt_free(sim);
}

/* ---- results --------------------------------------------------------------------------------- */

void gt_sim_look(const gt_sim *sim, gt_sim_totals *t) {
  *t = (gt_sim_totals){.virtual_s = gt_seconds(gt_sim_now(&sim->regions[0])),
                       .train_s = gt_seconds(sim->complete),
                       .code = sim->code,
                       .events = sim->events};
  for (size_t a = 0; a < sim->n; a++) {
    gt_ps_view v;
    gt_ps_look(sim->regions[a].ps, 0, &v);
    t->samples += v.samples;
    t->steps += v.steps;
    for (size_t b = 0; b < sim->n; b++) {
      if (a == b) continue;
      gt_sim_traffic l = gt_sim_crossed_of(sim, a, b).traffic;
      t->messages += (int64_t)l.messages;
      t->bytes_sent += (int64_t)l.bytes_sent;
      t->bytes_other += (int64_t)l.bytes_other;
    }
  }
}

void gt_sim_region(const gt_sim *sim, size_t region, gt_region_result *result) {
  *result = sim->regions[region].result;
}

void gt_sim_link(const gt_sim *sim, size_t from, size_t to, gt_link_result *result) {
  const sim_region *r = &sim->regions[from];
  if (r->links)
    *result = r->links[to - (to > from)];
  else
    gt_sim_wire_result(r, to, result);
}
