/* Plans a simulation with a given number of events: which outages and evaluations are simulated,
   how long slices are, and how often each is repeated. */
#include <math.h>
#include <stdlib.h>

#include "geotrain/ps_skip.h"
#include "geotrain/ps_work_time.h"
#include "stride.h"

/* Share of the training; if more is done when the first slice ends, all is simulated. */
#define WHOLE_SHARE 0.5
#define SLICE_MIN   2 /* least number of exchanges in a slice, if there are many evaluations */
/* At most so many exchanges until messages that an outage delayed have left. */
#define DRAINED 16

/* ---- outages --------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
  gt_ns x = ((const outage_end *)a)->at, y = ((const outage_end *)b)->at;
  return (x > y) - (x < y);
}

void gt_sim_bounds_find(stride *s) {
  const size_t n = s->sim->n;
  size_t room = 0;
  for (size_t i = 0; i < n * n; i++)
    room += 2 * gt_links_from(s->sim->spec.links, i / n)[i % n].noutages;
  s->bounds = GT_NEW_ARRAY(outage_end, room + 1);
  for (size_t i = 0; i < n * n; i++) {
    const gt_link_spec *l = &gt_links_from(s->sim->spec.links, i / n)[i % n];
    if (i / n >= i % n) continue;
    s->traces |= l->trace != NULL;
    for (size_t k = 0; k < l->noutages; k++) {
      double from_s = l->outages[k].from_s, for_s = l->outages[k].for_s;
      s->bounds[s->nbounds++] = (outage_end){gt_from_seconds(from_s), for_s, true};
      s->bounds[s->nbounds++] = (outage_end){gt_from_seconds(from_s + for_s), for_s, false};
    }
  }
  qsort(s->bounds, s->nbounds, sizeof *s->bounds, by_time);
}

gt_ns gt_sim_bound_next(const stride *s) {
  for (size_t i = s->bound; i < s->nbounds; i++)
    if (s->bounds[i].for_s >= s->short_s) return s->bounds[i].at;
  return GT_NEVER;
}

/* The beginning of an outage takes effect when the messages that may be under way have arrived, its
   end when the delayed messages have left; if regions wait for each other, both take effect at
   once. */
int64_t gt_sim_bound_settle(const stride *s, bool begins) {
  int64_t most = 0;
  for (size_t r = 0; r < s->sim->n; r++) {
    const gt_ps_spec *spec = gt_ps_made_of(s->sim->regions[r].ps);
    int64_t n = spec->strategy->waits || !spec->strategy->sends
                    ? 0
                    : (int64_t)(spec->outbox + spec->window);
    if (n > most) most = n;
  }
  return (begins || most < DRAINED ? most : DRAINED) + SETTLE_EVAL;
}

/* ---- how often ------------------------------------------------------------------------------- */

static double evaluations_left(const gt_sim *sim) {
  double n = 0;
  for (size_t r = 0; r < sim->n; r++) n += gt_ps_evaluations_left(sim->regions[r].ps);
  return n;
}

static int longest_first(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Events for the outages that are still to come; if they are too many, only for the longest. */
static double plan_outages(stride *s, double end_s, double most, double events_per_s) {
  double *lengths = GT_NEW_ARRAY(double, s->nbounds + 1), cost = 0;
  size_t n = 0;
  for (size_t i = s->bound; i < s->nbounds; i++)
    if (gt_seconds(s->bounds[i].at) < end_s) lengths[n++] = s->bounds[i].for_s;
  qsort(lengths, n, sizeof *lengths, longest_first);
  for (size_t i = 0; i < n; i++) {
    double one =
        (double)s->slice_events + fmin(s->per_beat * (double)gt_sim_bound_settle(s, i % 2 == 0),
                                       i % 2 == 0 ? lengths[i] * events_per_s : INFINITY);
    if (cost + one > most && s->short_s == 0) s->short_s = lengths[i] * (1 + 1e-9);
    if (s->short_s == 0) cost += one;
  }
  gt_free(lengths);
  return cost;
}

/* Events while the regions evaluate once. */
static double one_evaluation(const stride *s, double events_per_s) {
  const gt_sim *sim = s->sim;
  double most = 0;
  for (size_t r = 0; r < sim->n; r++) {
    const gt_ps_spec *spec = gt_ps_made_of(sim->regions[r].ps);
    if (spec->nworkers == 0) continue;
    gt_job_compute c = gt_job_compute_of(sim->spec.job, r);
    most = fmax(most, gt_seconds(gt_cost_eval(sim->spec.job, &sim->regions[r].order, &c, 0,
                                              (int64_t)gt_sim_tests(sim, r))) /
                          (double)spec->nworkers);
  }
  return most * events_per_s;
}

/* Events for the evaluations that are still to come.  If they are too many for slices of the usual
   length, slices between them are shorter; if that is not enough, whole cycles are skipped. */
static double plan_evaluations(stride *s, double most, double events_per_s) {
  double n = evaluations_left(s->sim),
         each = s->per_beat * SETTLE_EVAL + one_evaluation(s, events_per_s),
         slice = (double)s->slice_events;
  s->cycle_ref = s->ref;
  if (n * (each + slice) > most) slice = fmax(most / n - each, s->per_beat * SLICE_MIN);
  s->cycles =
      n * (each + slice) > most && gt_ps_evaluations_left(s->sim->regions[s->ref].ps) >= CYCLES_MIN;
  if (s->cycles) return 0;
  s->slice_events = (int64_t)slice;
  return n * (each + slice);
}

void gt_sim_plan(stride *s, double events, double time_s, double share) {
  gt_sim *sim = s->sim;
  double done = gt_ps_share_done(sim->regions[s->ref].ps),
         left = events / fmax(share, 1e-12) * (1 - done), rate = events / fmax(time_s, 1e-9);
  double budget = (double)s->budget - (double)sim->events,
         third = fmax(budget, (double)s->budget / 2) / 3;
  s->slices_turn.often = s->slices_turn.carry = 0;
  if (done >= WHOLE_SHARE || left <= budget) return;
  double cost = (s->per_beat * SETTLE + (double)s->slice_events) * (double)sim->n;
  cost +=
      plan_outages(s, gt_seconds(s->at) + time_s * (1 - done) / fmax(share, 1e-12), third, rate);
  cost += plan_evaluations(s, budget, rate);
  s->slices_turn.often =
      s->cycles ? INFINITY : fmax(0.01, left / fmax(0.95 * (budget - cost), third) - 1);
}
