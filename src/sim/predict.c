/* Simulates a job from its first step to its end.  The figures of a long run are those of short
   ones: when the regions have settled, the time of a run, its bytes, waits and steps are a + b x,
   x: the share of the training.  In a run of share x, evaluations and traces take x times their
   time too.  Shares of x, 4 x, 16 x, ... are simulated until their slopes agree; the last and the
   third last give a and b.  One more run prices the outages. */
#include <math.h>
#include <string.h>

#include "geotrain/sim_choose.h"
#include "internal.h"

#define PILOT           16     /* part of the budget that shows whether it covers the whole run */
#define FIRST_EXCHANGES 64.0   /* of the first region, in the shortest run */
#define LEAST_EXCHANGES 2.0    /* in it, whatever the budget */
#define LONGEST         0.5    /* share of the training */
#define LONGER          4.0    /* times the run before */
#define LEAST_ERROR     0.005  /* share of the time that is always uncertain */
#define EXACT           0.0065 /* share of the time; runs become longer until it is smaller */
#define EVALUATIONS     12.0   /* in a short run, or all if there are fewer */
#define OUTAGES         0.25   /* share of the time of the run that prices outages, at most */
#define CERTAIN         0.045  /* share of the time; a larger error needs a reason */

/* ---- the whole run --------------------------------------------------------------------------- */

static gt_status run(gt_sim **out, const gt_sim_spec *spec) {
  gt_sim *sim = NULL;
  size_t region;
  GT_TRY(gt_sim_open(&sim, spec));
  gt_status status = GT_OK;
  while (status == GT_OK && !gt_sim_over(sim)) status = gt_sim_advance(sim, &region);
  if (status == GT_OK)
    *out = sim;
  else
    gt_sim_close(sim);
  return status;
}

static gt_status find_routes(gt_routes *out, const gt_sim_spec *spec) {
  const gt_model_sizes sizes = {spec->parameters, spec->buffers, spec->tensors, spec->ntensors};
  return gt_routes_of(out, spec->job, spec->links, &sizes);
}

gt_status gt_sim_run(gt_sim **out, const gt_sim_spec *spec) {
  gt_sim_spec with_routes = *spec;
  gt_routes routes = {0};
  if (spec->routes) return run(out, spec);
  GT_TRY(find_routes(&routes, spec));
  with_routes.routes = &routes;
  const gt_status status = run(out, &with_routes);
  gt_routes_close(&routes);
  return status;
}

static gt_status run_undisturbed(gt_sim_totals *totals, const gt_sim_spec *of) {
  gt_job job = *of->job;
  gt_sim_spec spec = *of;
  gt_sim *sim = NULL;
  job.nfaults = 0;
  spec.job = &job;
  spec.arithmetic = NULL;
  GT_TRY(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, totals);
  gt_sim_close(sim);
  return GT_OK;
}

gt_status gt_sim_run_faults(gt_sim **out, gt_fault_result *faults, gt_sim_totals *undisturbed,
                            const gt_sim_spec *spec) {
  gt_sim_totals t;
  GT_TRY(run_undisturbed(undisturbed, spec));
  GT_TRY(gt_sim_run(out, spec));
  gt_sim_get_totals(*out, &t);
  const double samples =
      t.train_s > 0 ? (double)undisturbed->samples * t.train_s / undisturbed->train_s : 0;
  *faults = gt_sim_faults_of(*out);
  faults->goodput = samples > 0 ? (double)t.samples / samples : 0;
  faults->not_trained = (int64_t)samples - t.samples;
  return GT_OK;
}

/* ---- forecasts ------------------------------------------------------------------------------- */

static void take(gt_sim_forecast *f, const gt_sim *sim) {
  size_t n = sim->n;
  *f = (gt_sim_forecast){.part = 1,
                         .nregions = n,
                         .regions = GT_NEW_ARRAY(gt_region_result, n),
                         .links = GT_NEW_ARRAY(gt_sim_traffic, n * n)};
  gt_sim_get_totals(sim, &f->totals);
  f->virtual_s = f->totals.virtual_s;
  f->train_s = f->totals.train_s;
  for (size_t a = 0; a < n; a++) {
    gt_sim_region(sim, a, &f->regions[a]);
    for (size_t b = 0; b < n; b++)
      if (a != b) f->links[a * n + b] = gt_sim_traffic_of(sim, a, b);
  }
}

void gt_sim_forecast_close(gt_sim_forecast *f) {
  gt_free(f->regions);
  gt_free(f->links);
  *f = (gt_sim_forecast){0};
}

const char *gt_sim_doubt_text(gt_sim_doubt why) {
  static const char *const texts[] = {
      [GT_SIM_KNOWN] = "",
      [GT_SIM_TRACES] = "links follow traces, and the simulated parts of the run differ",
      [GT_SIM_OUTAGES] = "links have outages, and the simulated parts of the run differ",
      [GT_SIM_EVALUATIONS] = "regions evaluate, and the simulated parts of the run differ",
      [GT_SIM_SAMPLE] = "the simulated parts of the run are short or differ",
  };
  return texts[why];
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* to += n x (more - from) */
static void add_s(double *to, double from, double more, double n) {
  *to = fmax(0, *to + n * (more - from));
}

static void add_count(int64_t *to, int64_t from, int64_t more, double n) {
  *to += llround(n * (double)(more - from));
}

#define S(field)     add_s(&to->field, from->field, more->field, n)
#define COUNT(field) add_count(&to->field, from->field, more->field, n)

static void add_region(gt_region_result *to, const gt_region_result *from,
                       const gt_region_result *more, double n) {
  COUNT(steps), COUNT(samples), COUNT(missed);
  S(compute_s), S(encode_s), S(wan_wait_s), S(local_wait_s), S(idle_s), S(wall_s);
  S(update_s), S(wire_s), S(codec.encode_s), S(codec.decode_s);
  COUNT(store.writes), COUNT(store.reads), COUNT(store.failed_reads), COUNT(store.deletes);
  COUNT(store.lists), S(store.function_s), S(store.gb_s), COUNT(store.bytes_shared);
  COUNT(store.bytes_in), COUNT(store.bytes_out), COUNT(store.control_writes);
  COUNT(store.control_reads);
  COUNT(codec.raw_bytes), COUNT(codec.wire_bytes), COUNT(codec.decoded_bytes);
}

static void add_link(gt_sim_traffic *to, const gt_sim_traffic *from, const gt_sim_traffic *more,
                     double n) {
  S(messages), S(bytes_sent), S(bytes_other);
}

static void add(gt_sim_forecast *to, const gt_sim_forecast *from, const gt_sim_forecast *more,
                double n) {
  S(virtual_s), S(train_s), S(totals.virtual_s), S(totals.train_s);
  COUNT(totals.samples), COUNT(totals.steps), COUNT(totals.messages);
  COUNT(totals.bytes_sent), COUNT(totals.bytes_other);
  for (size_t r = 0; r < to->nregions; r++)
    add_region(&to->regions[r], &from->regions[r], &more->regions[r], n);
  for (size_t i = 0; i < to->nregions * to->nregions; i++)
    add_link(&to->links[i], &from->links[i], &more->links[i], n);
}

/* ---- short runs ------------------------------------------------------------------------------ */

typedef struct {
  const gt_sim *sim;    /* of the whole run, which was not simulated to its end */
  int64_t left, events; /* of the budget; simulated */
  double run_s;         /* time of the whole run, as known so far */
  /* of the first region that trains */
  const gt_order *order;
  double unit;     /* a batch in the unit of train.until */
  double round;    /* batches of its workers from one exchange to the next */
  double exchange; /* these, as a share of the training */
  double first;    /* the shortest share */
  bool outages;
  double error_s;
  gt_sim_doubt why;
} steady;

static double length_of(const gt_job_interval *x) {
  return x->epochs > 0 ? x->epochs : x->steps > 0 ? (double)x->steps : (double)x->samples;
}

/* Rounds up, so that an interval in steps or samples does not occur more often than before. */
static void scale(gt_job_interval *x, double by) {
  x->epochs *= by;
  x->steps = (int64_t)ceil((double)x->steps * by - 1e-6);
  x->samples = (int64_t)ceil((double)x->samples * by - 1e-6);
}

/* Returns an interval of a region in batches. */
static double in_batches(const gt_job *job, const gt_order *order, const gt_job_interval *x) {
  const double workers = (double)gt_job_workers(job, (size_t)order->region);
  if (x->epochs > 0) return x->epochs * (double)gt_order_batches_per_epoch(order);
  if (x->steps > 0) return (double)x->steps * (job->sync.local == GT_LOCAL_SYNC ? workers : 1);
  return (double)x->samples / (double)order->batch;
}

/* Returns the number of evaluations while the region trains. */
static double evaluations_of(const gt_sim *sim, const gt_job *job, size_t region) {
  const gt_order *order = &sim->regions[region].order;
  const double each = in_batches(job, order, &job->train.eval_every);
  return each > 0 ? fmax(0, ceil(in_batches(job, order, &job->train.until) / each - 1e-9) - 1) : 0;
}

/* Returns the evaluations of the whole run for each of a short one, which has EVALUATIONS, or this
   share of all if they are more. */
static double each_of(const steady *s, double share) {
  double most = 0;
  for (size_t r = 0; r < s->sim->n; r++)
    most = fmax(most, evaluations_of(s->sim, s->sim->spec.job, r));
  return fmax(1, fmin(1 / share, most / EVALUATIONS));
}

/* Makes the job a model of the whole: its training and its evaluations take this share of their
   time.  Validations are as long as in the whole, because fewer checkpoints cause them.  regions,
   held: nregions, written. */
static void shorten(gt_job *job, gt_job_region *regions, int64_t *held, const steady *s,
                    double share) {
  const gt_job *whole = s->sim->spec.job;
  const double each = each_of(s, share);
  *job = *whole;
  scale(&job->train.until, share);
  scale(&job->train.eval_every, share * each);
  memcpy(regions, whole->regions, job->nregions * sizeof *regions);
  job->regions = regions;
  for (size_t r = 0; r < job->nregions; r++) {
    const double some = evaluations_of(s->sim, job, r),
                 times = some > 0 ? evaluations_of(s->sim, whole, r) / some : each;
    regions[r].compute.eval_samples_per_s =
        gt_job_compute_of(whole, r).eval_samples_per_s / share / times;
    held[r] = llround((double)gt_sim_held(s->sim, r) / share / times);
  }
}

/* Simulates this share of the training, with outages of `outages` times their length (0: none). */
static gt_status run_short(steady *s, gt_sim_forecast *out, double share, double outages) {
  gt_job job;
  gt_job_region *regions = GT_NEW_ARRAY(gt_job_region, s->sim->n);
  int64_t *held = GT_NEW_ARRAY(int64_t, s->sim->n);
  gt_links *links =
      gt_links_shorter(s->sim->spec.links, s->sim->spec.job, s->run_s, share, outages);
  gt_sim_spec spec = s->sim->spec;
  gt_sim *sim = NULL;
  shorten(&job, regions, held, s, share);
  spec.job = &job;
  spec.held = held;
  spec.links = links;
  const gt_status status = run(&sim, &spec);
  if (status == GT_OK) {
    take(out, sim);
    out->part = share;
    s->left -= out->totals.events;
    s->events += out->totals.events;
  }
  gt_sim_close(sim);
  gt_links_close(links);
  gt_free(held);
  gt_free(regions);
  return status;
}

static double least_common(double a, double b) {
  double x = a, y = b;
  while (y > 0) {
    const double rest = fmod(x, y);
    x = y;
    y = rest;
  }
  return a / x * b;
}

/* Returns the share, made longer such that the rest of the training has whole exchanges and, if
   possible, whole epochs. */
static double whole_share(const steady *s, double share) {
  const gt_job_interval *until = &s->sim->spec.job->train.until;
  const double epoch = (double)gt_order_batches_per_epoch(s->order),
               all = length_of(until) / s->unit,
               units[] = {s->round, until->epochs > 0 ? epoch : s->round,
                          least_common(epoch, s->round)};
  double each = s->round;
  for (size_t i = 1; i < 3; i++)
    if (units[i] <= share * all / 4) each = units[i];
  return 1 - floor((1 - share) * all / each) * each / all;
}

/* ---- a forecast ------------------------------------------------------------------------------ */

/* The error can include one checkpoint, which is in progress at the end of the run or not. */
static double longest_checkpoint(const gt_sim_spec *spec) {
  const gt_job_interval *every = &spec->job->checkpoint.every;
  double most = 0;
  if (every->epochs <= 0 && every->steps <= 0 && every->minutes <= 0) return 0;
  for (size_t r = 0; r < spec->job->nregions; r++) {
    double bps = gt_job_compute_of(spec->job, r).checkpoint_bps;
    if (bps > 0)
      most = fmax(most, 8 * (double)((spec->parameters + spec->buffers) * sizeof(float)) / bps);
  }
  return most;
}

static double slope(const gt_sim_forecast *a, const gt_sim_forecast *b) {
  return (b->virtual_s - a->virtual_s) / (b->part - a->part);
}

/* Simulates longer and longer runs until they agree or the budget of events is used; at: the last
   three. */
static gt_status lengthen(steady *s, gt_sim_forecast *at) {
  double share = s->first;
  for (size_t n = 0;; n++) {
    gt_sim_forecast_close(&at[0]);
    at[0] = at[1], at[1] = at[2], at[2] = (gt_sim_forecast){0};
    GT_TRY(run_short(s, &at[2], whole_share(s, share), 0));
    const double more = fmin(fmin(LONGER, LONGEST / at[2].part),
                             (double)s->left / (double)at[2].totals.events / (s->outages ? 2 : 1));
    if (n > 0) s->run_s = at[2].virtual_s + (1 - at[2].part) * slope(&at[1], &at[2]);
    if (n > 1) {
      const double apart = fabs(slope(&at[0], &at[1]) - slope(&at[1], &at[2]));
      s->error_s = 2 * (1 - at[2].part) * apart + LEAST_ERROR * s->run_s;
      if (s->error_s < EXACT * s->run_s || more < LONGER / 2) return GT_OK;
    }
    share *= n > 1 ? more : LONGER;
  }
}

/* Adds the outages, priced by a run like `without`, in which they are shorter if need be. */
static gt_status add_outages(steady *s, gt_sim_forecast *f, const gt_sim_forecast *without) {
  const gt_job *job = s->sim->spec.job;
  gt_sim_forecast with = {0};
  double down_s = 0;
  for (size_t i = 0; i < job->wan.noutages; i++)
    if (job->wan.outages[i].from_s < s->run_s) down_s += job->wan.outages[i].for_s;
  if (down_s <= 0) return GT_OK;
  const double share = fmin(1, OUTAGES * without->virtual_s / down_s);
  GT_TRY(run_short(s, &with, without->part, share));
  f->error_s +=
      (1 / share - 1) * fmax(s->exchange * s->run_s, fabs(with.virtual_s - without->virtual_s) / 4);
  add(f, without, &with, 1 / share);
  gt_sim_forecast_close(&with);
  return GT_OK;
}

/* Takes out what the last evaluations, which are slower in short runs if there are fewer of them,
   have added to the end, with the heartbeats of that time. */
static void correct_end(const steady *s, gt_sim_forecast *f, const gt_sim_forecast *at) {
  const double run_s = at[2].virtual_s - at[0].virtual_s,
               end_s = run_s - at[2].train_s + at[0].train_s,
               more_s = end_s / (at[2].part - at[0].part) * (1 - 1 / each_of(s, at[2].part));
  f->virtual_s -= more_s;
  f->totals.virtual_s = f->virtual_s;
  for (size_t r = 0; r < f->nregions; r++) f->regions[r].wall_s -= more_s;
  for (size_t i = 0; i < f->nregions * f->nregions; i++) {
    const double other = more_s / run_s * (at[2].links[i].bytes_other - at[0].links[i].bytes_other);
    f->links[i].bytes_other -= other;
    f->totals.bytes_other -= llround(other);
  }
}

/* Returns the mean share of the training done. */
static double done_of(const gt_sim *sim) {
  double sum = 0;
  size_t n = 0;
  for (size_t r = 0; r < sim->n; r++)
    if (gt_job_trains(sim->spec.job, r)) sum += gt_ps_share_done(sim->regions[r].ps), n++;
  return sum / (double)n;
}

static gt_status extrapolate(steady *s, gt_sim_forecast *out, gt_sim_forecast *at) {
  const size_t n = s->sim->n;
  GT_TRY(lengthen(s, at));
  const double times = (1 - at[2].part) / (at[2].part - at[0].part);
  *out = at[2];
  out->regions = GT_NEW_ARRAY(gt_region_result, n);
  out->links = GT_NEW_ARRAY(gt_sim_traffic, n * n);
  memcpy(out->regions, at[2].regions, n * sizeof *out->regions);
  memcpy(out->links, at[2].links, n * n * sizeof *out->links);
  add(out, &at[0], &at[2], times);
  correct_end(s, out, at);
  out->error_s =
      s->error_s + times * s->exchange * s->run_s / 4 + longest_checkpoint(&s->sim->spec);
  GT_TRY(add_outages(s, out, &at[2]));
  out->totals.events = s->events;
  if (out->error_s > CERTAIN * out->virtual_s) out->why = s->why;
  return GT_OK;
}

/* Simulates to the end, unless the whole run turns out to have more than `most` events. */
static gt_status run_within(gt_sim *sim, int64_t most) {
  size_t region;
  while (!gt_sim_over(sim)) {
    GT_TRY(gt_sim_step(sim, &region));
    if (sim->events == most / PILOT && (double)sim->events > (double)most * done_of(sim))
      return GT_OK;
  }
  return GT_OK;
}

static void open_steady(steady *s, const gt_sim *sim, int64_t max_events) {
  const gt_job *job = sim->spec.job;
  size_t r = 0;
  while (!gt_job_trains(job, r)) r++;
  const gt_order *order = &sim->regions[r].order;
  const double all = in_batches(job, order, &job->train.until),
               workers = (double)gt_job_workers(job, r), done = fmax(done_of(sim), 1e-9);
  *s = (steady){.sim = sim,
                .left = max_events - sim->events,
                .events = sim->events,
                .run_s = gt_seconds(gt_timeline_at(sim->regions[r].timeline)) / done,
                .order = order,
                .unit = length_of(&job->train.until) / all,
                .round = workers * (double)gt_sim_period(sim, r),
                .outages = job->wan.noutages > 0,
                .why = job->wan.noutages > 0                   ? GT_SIM_OUTAGES
                       : length_of(&job->train.eval_every) > 0 ? GT_SIM_EVALUATIONS
                                                               : GT_SIM_SAMPLE};
  s->exchange = s->round / all;
  /* the first three runs and that with outages use most of the budget, or less */
  const double runs = LONGER * LONGER * (s->outages ? 2.5 : 1.5),
               most = (double)s->left / (double)sim->events * done / runs;
  s->first = fmax(LEAST_EXCHANGES * s->exchange, fmin(FIRST_EXCHANGES * s->exchange, most));
  for (size_t i = 0; i < job->wan.nlinks; i++)
    if (job->wan.links[i].trace) s->why = GT_SIM_TRACES;
}

/* True if the training ends while a link is down: what is left to send then waits for it, which
   short runs with short outages do not show. */
static bool ends_in_outage(const steady *s, const gt_sim_forecast *f) {
  const gt_job *job = s->sim->spec.job;
  for (size_t i = 0; i < job->wan.noutages; i++) {
    const double from_s = job->wan.outages[i].from_s, to_s = from_s + job->wan.outages[i].for_s;
    if (from_s < fmax(s->run_s, f->virtual_s) && s->run_s < to_s) return true;
  }
  return false;
}

static gt_status predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events) {
  gt_sim *sim = NULL;
  gt_sim_forecast at[3] = {0};
  steady s;
  const bool whole = max_events <= 0 || spec->job->limits.wan_bytes > 0 || spec->pipe;
  *out = (gt_sim_forecast){0};
  GT_TRY(gt_sim_open(&sim, spec));
  gt_status status = run_within(sim, whole ? INT64_MAX : max_events);
  if (status == GT_OK && !gt_sim_over(sim)) {
    open_steady(&s, sim, max_events);
    if (s.first * LONGER * LONGER > LONGEST) status = run_within(sim, INT64_MAX);
  }
  if (status == GT_OK && !gt_sim_over(sim)) {
    status = extrapolate(&s, out, at);
    if (status == GT_OK && ends_in_outage(&s, out)) status = run_within(sim, INT64_MAX);
  }
  if (status == GT_OK && gt_sim_over(sim)) {
    gt_sim_forecast_close(out);
    take(out, sim);
  }
  if (status != GT_OK) gt_sim_forecast_close(out);
  for (size_t i = 0; i < 3; i++) gt_sim_forecast_close(&at[i]);
  gt_sim_close(sim);
  return status;
}

gt_status gt_sim_predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events) {
  gt_job undisturbed = *spec->job;
  gt_sim_spec with_routes = *spec;
  gt_routes routes = {0};
  undisturbed.nfaults = 0;
  with_routes.job = &undisturbed;
  if (spec->routes) return predict(out, &with_routes, max_events);
  GT_TRY(find_routes(&routes, spec));
  with_routes.routes = &routes;
  const gt_status status = predict(out, &with_routes, max_events);
  gt_routes_close(&routes);
  return status;
}
