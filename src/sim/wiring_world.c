/* A job made from another one, in which regions only exchange: one worker each, which computes next
   to nothing.  It is simulated to find what a round takes. */
#include <math.h>
#include <string.h>

#include "wiring.h"

#define ROUNDS   16   /* that are timed; even, so that bounds of two rounds hold */
#define BEFORE   4    /* steps before them: the first begin as no later ones do */
#define STEP_S   1e-4 /* of a worker; not counted */
#define SAMPLES  ((int64_t)1000)
#define LONG_S   1e9  /* above: no limit */
#define NO_STEPS 1000 /* more than are ever made */

/* ---- the job --------------------------------------------------------------------------------- */

static gt_job_compute compute_of(const gt_job *job, size_t region) {
  const gt_job_compute c = gt_job_compute_of(job, region);
  return (gt_job_compute){.step_s = STEP_S,
                          .speed = 1,
                          .eval_samples_per_s = 1,
                          .update_s = c.update_s,
                          .apply_s = c.apply_s,
                          .encode_s = c.encode_s};
}

static gt_job_region *regions_of(const gt_job *job) {
  gt_job_region *regions = GT_NEW_ARRAY(gt_job_region, job->nregions);
  for (size_t r = 0; r < job->nregions; r++)
    regions[r] = (gt_job_region){.name = job->regions[r].name,
                                 .ranks = job->regions[r].ranks == 1 ? 1 : 2,
                                 .access_bps = job->regions[r].access_bps,
                                 .compute = compute_of(job, r)};
  return regions;
}

static gt_job job_of(const gt_job *from) {
  const gt_sync_ops *strategy = gt_sync_of(from->sync.strategy);
  gt_job job = {.name = from->name,
                .seed = from->seed,
                .regions = regions_of(from),
                .nregions = from->nregions,
                .wan = from->wan,
                .limits = from->limits};
  job.train.until.steps = strategy->waits ? NO_STEPS : ROUNDS;
  job.train.batch = 1;
  job.train.optimizer.name = GT_OPTIMIZER_SGD;
  job.train.optimizer.lr = 1;
  job.sync.strategy = strategy->waits ? GT_STRATEGY_SSGD : GT_STRATEGY_ASGD;
  job.sync.period = 1;
  job.sync.weights = GT_WEIGHTS_EQUAL;
  job.wan.noutages = 0;
  job.limits.wan_bytes = 0;
  return job;
}

gt_status gt_wiring_world_open(wiring_world *world, const gt_job *job, const gt_links *links,
                               size_t parameters, size_t buffers) {
  const gt_sync_ops *strategy = gt_sync_of(job->sync.strategy);
  *world = (wiring_world){
      .job = job_of(job), .rounds = strategy->waits, .step_s = strategy->waits ? STEP_S : 0};
  world->samples = GT_NEW_ARRAY(int64_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) world->samples[r] = SAMPLES;
  gt_status status = GT_OK;
  if (!links || job->wan.noutages > 0) status = gt_links_create(&world->links, &world->job);
  world->spec =
      (gt_sim_spec){.job = &world->job,
                    .links = world->links ? world->links : links,
                    .parameters = parameters + (strategy->sends == GT_MSG_STATE ? buffers : 0),
                    .samples = world->samples};
  return status;
}

void gt_wiring_world_close(wiring_world *world) {
  gt_links_close(world->links);
  gt_free(world->samples);
  gt_free(world->job.regions);
}

/* ---- timing ---------------------------------------------------------------------------------- */

/* A region's rounds. */
typedef struct {
  gt_ns from, to; /* when the first of them began, and the last ended; 0: not yet */
} span;

typedef struct {
  wiring_world *world;
  gt_sim *sim;
  span *spans; /* nregions */
  size_t open; /* regions whose rounds have not ended */
  gt_ns limit; /* of all rounds */
} timing;

static bool contributes(const timing *t, size_t region) {
  return t->world->job.regions[region].ranks > 1;
}

/* Returns whether the region has just ended, or cannot stay within the limit. */
static bool rounds_over(timing *t, size_t region) {
  const sim_region *r = &t->sim->regions[region];
  span *s = &t->spans[region];
  const gt_ns now = gt_sim_now(r);
  if (!contributes(t, region) || s->to > 0) return false;
  if (s->from == 0 && r->steps >= BEFORE) s->from = now;
  if (r->steps < BEFORE + ROUNDS) return s->from > 0 && now - s->from > t->limit;
  s->to = now;
  t->open--;
  return true;
}

static bool broadcasts_over(timing *t, size_t region) {
  const sim_region *r = &t->sim->regions[region];
  span *s = &t->spans[region];
  if (s->to > 0) return false;
  if (!r->complete) return gt_sim_now(r) > t->limit;
  s->to = gt_sim_now(r);
  t->open--;
  return true;
}

static double seconds_of(const timing *t) {
  gt_ns longest = 0;
  for (size_t r = 0; r < t->sim->n; r++)
    if (t->spans[r].to - t->spans[r].from > longest) longest = t->spans[r].to - t->spans[r].from;
  return longest > t->limit ? INFINITY : gt_seconds(longest) / ROUNDS - t->world->step_s;
}

static double run(timing *t) {
  bool (*over)(timing * t, size_t region) = t->world->rounds ? rounds_over : broadcasts_over;
  size_t region;
  for (size_t r = 0; r < t->sim->n; r++) t->open += !t->world->rounds || contributes(t, r);
  while (t->open > 0) {
    const size_t open = t->open;
    if (gt_sim_over(t->sim) || gt_sim_step(t->sim, &region) != GT_OK) return INFINITY;
    if (over(t, region) && t->open == open) return INFINITY;
  }
  return seconds_of(t);
}

double gt_wiring_simulate(wiring_world *world, gt_topology topology, const size_t *next,
                          double limit_s) {
  gt_wiring wiring = {.topology = topology};
  timing t = {.world = world,
              .limit = limit_s < LONG_S ? gt_from_seconds(ROUNDS * (limit_s + world->step_s))
                                        : GT_NEVER / 2};
  gt_sim_spec spec = world->spec;
  if (next) {
    wiring.next = GT_NEW_ARRAY(size_t, world->job.nregions);
    memcpy(wiring.next, next, world->job.nregions * sizeof *next);
  }
  spec.wiring = &wiring;
  double seconds = INFINITY;
  if (gt_sim_open(&t.sim, &spec) == GT_OK) {
    t.sim->exact = false; /* nobody asks where the time goes */
    t.spans = GT_NEW_ARRAY(span, t.sim->n);
    seconds = run(&t);
    world->events += t.sim->events;
    gt_sim_close(t.sim);
  }
  gt_free(t.spans);
  gt_wiring_close(&wiring);
  return seconds;
}
