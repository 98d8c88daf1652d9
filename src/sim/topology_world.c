/* A variant of a job in which regions only exchange, with one worker each that computes next to
   nothing.  Its simulation gives the time of a round. */
#include <math.h>
#include <string.h>

#include "topology.h"

#define ROUNDS   16   /* timed together; even, so that bounds of two rounds hold */
#define SPANS    8    /* most spans of ROUNDS that are timed */
#define STEADY   1e-3 /* relative change between spans at which timing ends */
#define BEFORE   4    /* earlier steps: the first rounds start differently */
#define STEP_S   1e-4 /* of a worker; not counted */
#define SAMPLES  ((int64_t)1000)
#define LONG_S   1e9  /* above: no limit */
#define NO_STEPS 1000 /* more than a run makes */

/* ---- the job --------------------------------------------------------------------------------- */

static gt_job_compute compute_of(const gt_job *job, size_t region) {
  const gt_job_compute c = gt_job_compute_of(job, region);
  gt_job_compute of = {.step_s = STEP_S,
                       .speed = 1,
                       .eval_samples_per_s = 1,
                       .update_s = c.update_s,
                       .apply_s = c.apply_s,
                       .encode_s = c.encode_s};
  memcpy(of.codecs, c.codecs, sizeof of.codecs);
  return of;
}

static gt_job_region *regions_of(const gt_job *job) {
  gt_job_region *regions = GT_NEW_ARRAY(gt_job_region, job->nregions);
  for (size_t r = 0; r < job->nregions; r++)
    regions[r] = (gt_job_region){.name = job->regions[r].name,
                                 .ranks = job->regions[r].ranks == 1 ? 1 : 2,
                                 .access_bps = job->regions[r].access_bps,
                                 .store = job->regions[r].store,
                                 .compute = compute_of(job, r)};
  return regions;
}

/* Returns the first strategy that sends, and waits or not: it exchanges at every step. */
static gt_strategy plainest(bool waits) {
  gt_strategy s = 0;
  while (!gt_sync_of(s)->sends || gt_sync_of(s)->waits != waits) s++;
  return s;
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
  job.sync.strategy = plainest(strategy->waits);
  job.sync.period = 1;
  job.sync.codec = from->sync.codec;
  job.sync.weights = GT_WEIGHTS_EQUAL;
  job.wan.noutages = 0;
  job.limits.wan_bytes = 0;
  return job;
}

gt_status gt_topology_world_open(topology_world *world, const gt_job *job, const gt_links *links,
                                 const gt_model_sizes *sizes) {
  const gt_sync_ops *strategy = gt_sync_of(job->sync.strategy);
  *world = (topology_world){
      .job = job_of(job), .rounds = strategy->waits, .step_s = strategy->waits ? STEP_S : 0};
  world->samples = GT_NEW_ARRAY(int64_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) world->samples[r] = SAMPLES;
  gt_status status = GT_OK;
  if (!links)
    status = gt_links_create(&world->links, &world->job);
  else if (job->wan.noutages > 0)
    world->links = gt_links_among(links, NULL, job->nregions);
  world->spec = (gt_sim_spec){.job = &world->job,
                              .links = world->links ? world->links : links,
                              .parameters = sizes->parameters +
                                            (strategy->sends == GT_MSG_STATE ? sizes->buffers : 0),
                              .tensors = sizes->tensors,
                              .ntensors = sizes->ntensors,
                              .samples = world->samples};
  return status;
}

void gt_topology_world_close(topology_world *world) {
  gt_links_close(world->links);
  gt_free(world->samples);
  gt_free(world->job.regions);
}

/* ---- timing ---------------------------------------------------------------------------------- */

/* Times at which the region began each span of rounds. */
typedef struct {
  gt_ns at[SPANS + 1];
  size_t n;
} marks;

typedef struct {
  topology_world *world;
  gt_sim *sim;
  marks *marks; /* nregions */
  size_t spans; /* spans that all regions have ended */
  size_t open;  /* regions that have not ended the next span */
  gt_ns last;   /* the longest time of a region for the last span */
  bool steady;
  gt_ns limit; /* of a span */
} timing;

static bool contributes(const timing *t, size_t region) {
  return t->world->job.regions[region].ranks > 1;
}

static void begin_span(timing *t) {
  t->open = 0;
  for (size_t r = 0; r < t->sim->n; r++)
    t->open += contributes(t, r) && t->marks[r].n < t->spans + 2;
}

static void end_span(timing *t) {
  const gt_ns before = t->last;
  t->last = 0;
  for (size_t r = 0; r < t->sim->n; r++) {
    const gt_ns *at = &t->marks[r].at[t->spans];
    if (contributes(t, r) && at[1] - at[0] > t->last) t->last = at[1] - at[0];
  }
  t->spans++;
  t->steady = t->spans == SPANS ||
              (t->spans > 1 && fabs((double)(t->last - before)) <= STEADY * (double)t->last);
  begin_span(t);
}

/* False: a span of the region took longer than the limit. */
static bool note_round(timing *t, size_t region) {
  const sim_region *r = &t->sim->regions[region];
  marks *m = &t->marks[region];
  const gt_ns now = gt_timeline_now(r->timeline);
  if (!contributes(t, region)) return true;
  if (m->n > 0 && now - m->at[m->n - 1] > t->limit) return false;
  if (m->n > SPANS || r->steps < (int64_t)(BEFORE + m->n * ROUNDS)) return true;
  m->at[m->n++] = now;
  if (m->n == t->spans + 2 && --t->open == 0) end_span(t);
  return true;
}

/* Returns the seconds of a round, when rounds take as long as the previous ones. */
static double time_rounds(timing *t) {
  size_t region;
  begin_span(t);
  while (!t->steady)
    if (gt_sim_over(t->sim) || gt_sim_step(t->sim, &region) != GT_OK || !note_round(t, region))
      return INFINITY;
  return gt_seconds(t->last) / ROUNDS - t->world->step_s;
}

/* Returns the seconds of an exchange: ROUNDS consecutive ones of every region. */
static double time_broadcasts(timing *t) {
  size_t region, open = t->sim->n;
  while (open > 0) {
    if (gt_sim_over(t->sim) || gt_sim_step(t->sim, &region) != GT_OK) return INFINITY;
    const sim_region *r = &t->sim->regions[region];
    const gt_ns now = gt_timeline_now(r->timeline);
    if (t->marks[region].n > 0) continue; /* it has ended */
    if (now > t->limit) return INFINITY;
    if (!r->complete) continue;
    t->marks[region].n = 1;
    if (now > t->last) t->last = now;
    open--;
  }
  return gt_seconds(t->last) / ROUNDS;
}

/* As gt_topology_simulate, without codec or for rounds. */
static double simulate(topology_world *world, gt_topology topology, const size_t *next,
                       double limit_s) {
  gt_routes routes = {.topology = topology};
  timing t = {.world = world,
              .limit = limit_s < LONG_S ? gt_from_seconds(ROUNDS * (limit_s + world->step_s))
                                        : GT_NEVER / 2};
  gt_sim_spec spec = world->spec;
  if (next) {
    routes.next = GT_NEW_ARRAY(size_t, world->job.nregions);
    memcpy(routes.next, next, world->job.nregions * sizeof *next);
  }
  spec.routes = &routes;
  double seconds = INFINITY;
  if (gt_sim_open(&t.sim, &spec) == GT_OK) {
    t.sim->exact = false; /* the parts of the time are not needed */
    t.marks = GT_NEW_ARRAY(marks, t.sim->n);
    seconds = world->rounds ? time_rounds(&t) : time_broadcasts(&t);
    world->events += t.sim->events;
    gt_sim_close(t.sim);
  }
  gt_free(t.marks);
  gt_routes_close(&routes);
  return seconds;
}

/* After its last broadcast a region sends what its codec has left out, once in a run; the
   difference of two simulations has no part of that. */
static double simulate_coded(topology_world *world, gt_topology topology, const size_t *next) {
  const double few_s = ROUNDS * simulate(world, topology, next, INFINITY);
  world->job.train.until.steps = 2 * ROUNDS;
  const double many_s = ROUNDS * simulate(world, topology, next, INFINITY);
  world->job.train.until.steps = ROUNDS;
  return isfinite(few_s) && isfinite(many_s) ? (many_s - few_s) / ROUNDS : INFINITY;
}

double gt_topology_simulate(topology_world *world, gt_topology topology, const size_t *next,
                            double limit_s) {
  if (world->rounds || world->job.sync.codec.name == GT_CODEC_NONE)
    return simulate(world, topology, next, limit_s);
  return simulate_coded(world, topology, next);
}
