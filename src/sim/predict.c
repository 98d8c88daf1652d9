/* Forecasts: a whole run where that is cheap, else parts of it and a straight line through the last two. */
#include <math.h>

#include "internal.h"

#define FIRST_EXCHANGES 8.0 /* of the first part, from which the number of events is known */
#define LARGEST_PART    0.5 /* beyond it the rest is simulated too */

static void take(gt_sim_forecast *f, const gt_sim *sim, double part) {
  size_t n = sim->n;
  *f = (gt_sim_forecast){.part = part, .nregions = n, .regions = GT_NEW_ARRAY(gt_region_result, n), .links = GT_NEW_ARRAY(gt_sim_traffic, n * n)};
  gt_sim_look(sim, &f->totals);
  f->virtual_s = f->totals.virtual_s;
  f->train_s = f->totals.train_s;
  for (size_t a = 0; a < n; a++) {
    gt_sim_region(sim, a, &f->regions[a]);
    for (size_t b = 0; b < n; b++)
      if (a != b) f->links[a * n + b] = gt_sim_traffic_of(sim, a, b);
  }
}

static gt_status simulate(gt_sim_forecast *out, const gt_sim_spec *spec, double part) {
  gt_sim *sim = NULL;
  gt_sim_spec some = *spec;
  some.part = part;
  GT_TRY(gt_sim_run(&sim, &some));
  take(out, sim, part);
  gt_sim_close(sim);
  return GT_OK;
}

void gt_sim_forecast_close(gt_sim_forecast *f) {
  gt_free(f->regions);
  gt_free(f->links);
  *f = (gt_sim_forecast){0};
}

/* ---- the line -------------------------------------------------------------------------------------------------------------------- */

/* y + k (y - x) */
static double beyond(double x, double y, double k) {
  return y + k * (y - x);
}

static int64_t count_beyond(int64_t x, int64_t y, double k) {
  return llround(beyond((double)x, (double)y, k));
}

static void extrapolate_region(gt_region_result *r, const gt_region_result *before, double k) {
  double *const times[] = {&r->compute_s, &r->encode_s, &r->wan_wait_s, &r->local_wait_s, &r->idle_s, &r->wall_s, &r->update_s, &r->wire_s};
  const double old[] = {before->compute_s, before->encode_s, before->wan_wait_s, before->local_wait_s,
                        before->idle_s,    before->wall_s,   before->update_s,   before->wire_s};
  for (size_t i = 0; i < sizeof old / sizeof *old; i++) *times[i] = beyond(old[i], *times[i], k);
  r->steps = count_beyond(before->steps, r->steps, k);
  r->samples = count_beyond(before->samples, r->samples, k);
}

/* `last` becomes the whole run's. */
static void extrapolate(gt_sim_forecast *last, const gt_sim_forecast *before, double error_s) {
  double k = (1 - last->part) / (last->part - before->part);
  gt_sim_totals *t = &last->totals;
  const gt_sim_totals *o = &before->totals;
  for (size_t r = 0; r < last->nregions; r++) extrapolate_region(&last->regions[r], &before->regions[r], k);
  for (size_t i = 0; i < last->nregions * last->nregions; i++) {
    gt_sim_traffic *l = &last->links[i];
    const gt_sim_traffic *b = &before->links[i];
    l->messages = beyond(b->messages, l->messages, k);
    l->bytes_sent = beyond(b->bytes_sent, l->bytes_sent, k);
    l->bytes_other = beyond(b->bytes_other, l->bytes_other, k);
  }
  t->samples = count_beyond(o->samples, t->samples, k);
  t->steps = count_beyond(o->steps, t->steps, k);
  t->messages = count_beyond(o->messages, t->messages, k);
  t->bytes_sent = count_beyond(o->bytes_sent, t->bytes_sent, k);
  t->bytes_other = count_beyond(o->bytes_other, t->bytes_other, k);
  last->train_s = t->train_s = beyond(before->train_s, last->train_s, k);
  last->virtual_s = t->virtual_s = beyond(before->virtual_s, last->virtual_s, k);
  last->error_s = error_s;
}

/* ---- parts ----------------------------------------------------------------------------------------------------------------------- */

/* Share of the training that an interval is; 0: it never ends, or within minutes. */
static double share_of(const gt_sim_spec *spec, double epochs, int64_t steps, int64_t samples) {
  const gt_job *job = spec->job;
  double held = (double)spec->samples[0], batch = (double)job->train.batch;
  double workers = job->sync.local == GT_LOCAL_SYNC ? (double)(job->regions[0].ranks - 1) : 1;
  double all = job->train.until.epochs > 0  ? job->train.until.epochs * held
               : job->train.until.steps > 0 ? (double)job->train.until.steps * batch * workers
                                            : (double)job->train.until.samples;
  double some = epochs > 0 ? epochs * held : steps > 0 ? (double)steps * batch * workers : (double)samples;
  return some / all;
}

/* A part is made of whole intervals between evaluations and checkpoints, where these are short enough, and else of whole periods. */
static double unit_of(const gt_sim_spec *spec) {
  const gt_job_interval *e = &spec->job->train.eval_every, *c = &spec->job->checkpoint.every;
  double eval = spec->test_samples > 0 ? share_of(spec, e->epochs, e->steps, e->samples) : 0,
         checkpoint = share_of(spec, c->epochs, c->steps, c->samples);
  double unit = share_of(spec, 0, spec->job->sync.period, 0), most = LARGEST_PART / 4;
  if (eval > unit && eval <= most) unit = eval;
  if (checkpoint > unit && checkpoint <= most) unit = checkpoint;
  return unit;
}

static double whole(double part, double unit) {
  double n = floor(part / unit + 1e-9);
  return unit * (n < 1 ? 1 : n);
}

/* The longest of three parts, each twice the one before, that stay within max_events together; 1: all of it can be simulated. */
static gt_status longest(const gt_sim_spec *spec, double unit, int64_t max_events, double *part) {
  gt_sim_forecast f;
  double first = fmin(1, fmax(unit, share_of(spec, 0, (int64_t)FIRST_EXCHANGES * spec->job->sync.period, 0)));
  *part = 1;
  if (max_events <= 0 || first >= LARGEST_PART) return GT_OK;
  GT_TRY(simulate(&f, spec, first));
  double all = (double)f.totals.events / first;
  gt_sim_forecast_close(&f);
  if (all <= (double)max_events) return GT_OK;
  *part = fmax(4 * unit, 4 * whole((double)max_events / all / 7, unit));
  if (*part > LARGEST_PART) *part = 1;
  return GT_OK;
}

gt_status gt_sim_predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events) {
  gt_sim_forecast f[3] = {0};
  double part = 1;
  gt_status status = longest(spec, unit_of(spec), max_events, &part);
  if (status != GT_OK || part >= 1) return status == GT_OK ? simulate(out, spec, 1) : status;
  for (size_t i = 0; i < 3 && status == GT_OK; i++) status = simulate(&f[i], spec, part / (double)(4 >> i));
  if (status == GT_OK) {
    double guess = beyond(f[0].virtual_s, f[1].virtual_s, 2), k = (1 - part) / (part / 2);
    extrapolate(&f[2], &f[1], fabs(guess - f[2].virtual_s) * k);
    *out = f[2];
    f[2] = (gt_sim_forecast){0};
  }
  for (size_t i = 0; i < 3; i++) gt_sim_forecast_close(&f[i]);
  return status;
}
