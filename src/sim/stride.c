/* A run with few events: simulates a few exchanges (a slice), then repeats the slice without
   simulation, as often as the budget of events requires, and so on along the whole run.  Rare
   events are always simulated: nothing is skipped across one, and slices begin only after the
   regions have settled.  If evaluations are too many for that, whole cycles from one evaluation to
   the next are skipped in the same way. */
#include <math.h>
#include <stdlib.h>

#include "geotrain/ps_skip.h"
#include "geotrain/ps_work_time.h"
#include "internal.h"

#define SETTLE      8     /* exchanges of every region after the start and a region's end */
#define SETTLE_EVAL 4     /* likewise after an evaluation */
#define CYCLES_MIN  12.0  /* fewer evaluations are always simulated one by one */
#define SLICES      200.0 /* in the whole run */
#define FEW_REGIONS 16    /* with more, slices do not wait for the end of a single region */
#define PART_CYCLE  1.6   /* cycles simulated for each cycle that is repeated */
#define CERTAIN     0.045 /* share of the time; a larger error needs a reason */
/* share of the training done at the end of the first slice above which all is simulated */
#define WHOLE_SHARE 0.5
#define SLICE_MIN   2  /* exchanges in a slice with many evaluations */
#define DRAINED     16 /* exchanges until the messages that an outage delayed are sent, at most */
#define GOLDEN      0.6180339887498949
#define SILVER      0.4142135623730951

/* The beginning or the end of an outage. */
typedef struct {
  gt_ns at;
  double for_s;
  bool begins;
} outage_end;

/* The possible error of repeated stretches. */
typedef struct {
  double time_s, work; /* of the previous stretch; time 0: none */
  double var_s2;       /* of the skipped time, for stretches with a previous one */
  double alone_s2;     /* squared skipped times, for stretches without a previous one */
  double relative2;    /* sum of squared relative differences, over `pairs` */
  size_t pairs;
} spread;

/* The number of repetitions of a stretch; below 0: not known yet; 0: never. */
typedef struct {
  double often, carry, phase;
  double sum_s, n; /* time and number of stretches so far */
} turns;

typedef struct {
  gt_sim *sim;
  int64_t budget;
  outage_end *bounds; /* nbounds, ascending */
  size_t nbounds, bound;
  double short_s; /* slices do not wait for shorter outages */
  size_t ref;     /* the region that is expected to end last */
  gt_ns at;       /* time of the last event */
  /* a beat: an exchange of ref */
  int64_t beat_steps, beat_events;
  double per_beat; /* events */
  double beat_s;   /* 0: not known yet */
  size_t ntraining;
  /* Since the last beat an outage began or ended, which takes effect within this number of beats;
     0: none. */
  int64_t struck;
  bool turned;         /* since the last beat an evaluation began or ended */
  bool settling, open; /* open: a slice has begun */
  int64_t settle_events, settle_beats, *settle_steps;
  double settle_done; /* share of ref's training done when all had settled */
  gt_ns settle_at;
  sim_mark from, to;
  sim_stretch stretch;
  int64_t slice_events;
  turns slices_turn;
  bool traces, cycles; /* cycles: whole cycles between evaluations are skipped too */
  /* cycles */
  bool *evaluating; /* nregions */
  size_t cycle_ref; /* the region whose evaluations delimit cycles */
  bool cycle_open;
  sim_mark cycle_from, cycle_to;
  turns cycles_turn;
  /* the possible error */
  spread slices, of_cycles;
  double gone_s;
  double grain_s; /* a stretch has a whole number of exchanges or evaluations of ref only */
} stride;

/* ---- repetition, and its error --------------------------------------------------------------- */

/* Adds n repetitions of a stretch of this time and work.  pace_s: seconds per unit of work, the
   mean of the run.  Stretches are compared by their work in equal times, because a stretch without
   progress has no work. */
static void spread_add(spread *x, double time_s, double work, double n, double pace_s) {
  if (x->time_s > 0) {
    double d = work - x->work * time_s / x->time_s, off_s = d * pace_s;
    x->pairs++;
    x->relative2 += d * d > work * work ? 0.5 : work > 0 ? d * d / (work * work) / 2 : 0;
    x->var_s2 += n * n * off_s * off_s / 2;
  } else
    x->alone_s2 += n * n * time_s * time_s;
  x->time_s = time_s;
  x->work = work;
}

static double spread_variance_s2(const spread *x) {
  return x->var_s2 + (x->pairs > 0 ? x->alone_s2 * x->relative2 / (double)x->pairs : 0);
}

/* Returns the number of repetitions of the next stretch: a whole number, `often` on average;
   INFINITY: as often as possible.  If links change (traces), the same time is skipped after every
   stretch: otherwise a pause within a stretch would count more than a pause between stretches.  The
   skipped times vary, so that stretches do not always meet the same part of a trace. */
static double turns_next(turns *t, bool links_change, double time_s) {
  if (!isfinite(t->often)) return t->often;
  if (!links_change) {
    t->carry += t->often;
    double n = floor(t->carry);
    t->carry -= n;
    return n;
  }
  t->sum_s += time_s;
  t->n++;
  t->phase = fmod(t->phase + GOLDEN, 1);
  t->carry = fmod(t->carry + SILVER, 1);
  return floor(t->often * (0.5 + t->phase) * t->sum_s / t->n / time_s + t->carry);
}

/* ---- outages --------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
  gt_ns x = ((const outage_end *)a)->at, y = ((const outage_end *)b)->at;
  return (x > y) - (x < y);
}

static void find_bounds(stride *s) {
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

/* Returns the next beginning or end of an outage that slices wait for. */
static gt_ns next_bound(const stride *s) {
  for (size_t i = s->bound; i < s->nbounds; i++)
    if (s->bounds[i].for_s >= s->short_s) return s->bounds[i].at;
  return GT_NEVER;
}

/* Returns the beats until a bound takes effect.  The beginning of an outage takes effect when the
   messages in flight have arrived, its end when the delayed messages are sent; if regions wait for
   each other, both take effect at once. */
static int64_t bound_settle(const stride *s, bool begins) {
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

/* ---- number of repetitions ------------------------------------------------------------------- */

static int longest_first(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Returns the events for the remaining outages; if they are too many, only for the longest. */
static double plan_outages(stride *s, double end_s, double most, double events_per_s) {
  double *lengths = GT_NEW_ARRAY(double, s->nbounds + 1), cost = 0;
  size_t n = 0;
  for (size_t i = s->bound; i < s->nbounds; i++)
    if (gt_seconds(s->bounds[i].at) < end_s) lengths[n++] = s->bounds[i].for_s;
  qsort(lengths, n, sizeof *lengths, longest_first);
  for (size_t i = 0; i < n; i++) {
    double one = (double)s->slice_events + fmin(s->per_beat * (double)bound_settle(s, i % 2 == 0),
                                                i % 2 == 0 ? lengths[i] * events_per_s : INFINITY);
    if (cost + one > most && s->short_s == 0) s->short_s = lengths[i] * (1 + 1e-9);
    if (s->short_s == 0) cost += one;
  }
  gt_free(lengths);
  return cost;
}

/* Returns the events of one evaluation of the regions. */
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

/* Returns the events for the remaining evaluations.  If they are too many for slices of the usual
   length, slices between them are shorter; if that is not enough, whole cycles are skipped. */
static double plan_evaluations(stride *s, double most, double events_per_s) {
  double n = 0, each = s->per_beat * SETTLE_EVAL + one_evaluation(s, events_per_s),
         slice = (double)s->slice_events;
  for (size_t r = 0; r < s->sim->n; r++) n += gt_ps_evaluations_left(s->sim->regions[r].ps);
  s->cycle_ref = s->ref;
  if (n * (each + slice) > most) slice = fmax(most / n - each, s->per_beat * SLICE_MIN);
  s->cycles =
      n * (each + slice) > most && gt_ps_evaluations_left(s->sim->regions[s->ref].ps) >= CYCLES_MIN;
  if (s->cycles) return 0;
  s->slice_events = (int64_t)slice;
  return n * (each + slice);
}

/* Plans the number of repetitions and the length of slices, and the outages and evaluations that
   slices wait for.  events, time_s, share: of the simulated training: the first slice, or all so
   far if there was none. */
static void plan(stride *s, double events, double time_s, double share) {
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

/* ---- limits ---------------------------------------------------------------------------------- */

/* Returns the steps of ref from one exchange to the next. */
static int64_t beat_of(const stride *s) {
  return gt_sim_period(s->sim, s->ref);
}

/* Returns the number of repetitions of the time between the marks until a chunk of a test set in
   progress ends, unless chunks are so many that they end evenly. */
static double until_chunk(const stride *s, const sim_mark *from, const sim_mark *to) {
  gt_ns first = GT_NEVER;
  for (size_t r = 0; r < s->sim->n; r++) {
    const sim_region *region = &s->sim->regions[r];
    if (!region->evaluating || gt_ps_chunks_repeat(region->ps, &from->views[r], &to->views[r]))
      continue;
    for (size_t w = 0; w < gt_job_workers(s->sim->spec.job, r); w++) {
      gt_ns due = gt_timeline_due(region->timeline, w);
      if (region->orders[w].kind == GT_PS_EVAL && due < first) first = due;
    }
  }
  return first == GT_NEVER
             ? INFINITY
             : floor((double)(first + s->sim->gone - to->at) / (double)(to->at - from->at));
}

/* If ref is held, the message that it waits for can be in flight for long: skipped time must not
   delay it. */
static double until_message(const stride *s, const sim_mark *from, const sim_mark *to) {
  const size_t n = s->sim->n;
  const gt_ns span = to->at - from->at, now = to->at - s->sim->gone;
  gt_ns first = GT_NEVER;
  if (to->views[s->ref].steps - from->views[s->ref].steps >= beat_of(s)) return INFINITY;
  for (size_t i = 0; i < n * n; i++) {
    gt_ns until = i / n == i % n ? 0 : s->sim->regions[i / n].wires[i % n].wire.link.busy_until;
    if (until > now + span / 2 && until < first) first = until;
  }
  return first == GT_NEVER ? INFINITY : floor((double)(first - now) / (double)span);
}

/* Returns the number of repetitions of the time between the marks before an event that must be
   simulated. */
static double allowed(const stride *s, const sim_mark *from, const sim_mark *to, bool evaluations) {
  const gt_ns bound = next_bound(s);
  double n =
      bound == GT_NEVER ? INFINITY : floor((double)(bound - to->at) / (double)(to->at - from->at));
  if (evaluations) n = fmin(n, fmin(until_chunk(s, from, to), until_message(s, from, to)));
  for (size_t r = 0; r < s->sim->n; r++)
    if (s->sim->n <= FEW_REGIONS || r == s->ref)
      n = fmin(n,
               gt_ps_repeats(s->sim->regions[r].ps, &from->views[r], &to->views[r], evaluations));
  return fmax(0, n);
}

/* Returns the seconds per batch of ref, up to now. */
static double mean_pace(const stride *s, const sim_mark *to) {
  return gt_seconds(to->at) / fmax(1, (double)to->views[s->ref].batches);
}

static double work_between(const stride *s, const sim_mark *from, const sim_mark *to) {
  return (double)(to->views[s->ref].batches - from->views[s->ref].batches);
}

/* ---- beats ----------------------------------------------------------------------------------- */

/* Returns the region with the smallest share of its training done. */
static size_t last_region(const gt_sim *sim) {
  size_t last = 0;
  double least = INFINITY;
  for (size_t r = 0; r < sim->n; r++) {
    double done = sim->regions[r].training ? gt_ps_share_done(sim->regions[r].ps) : INFINITY;
    if (done < least) least = done, last = r;
  }
  return last;
}

static void settle(stride *s, int64_t beats) {
  s->settling = true;
  s->open = false;
  s->settle_events = s->sim->events;
  s->settle_beats = beats;
  for (size_t r = 0; r < s->sim->n; r++) s->settle_steps[r] = s->sim->regions[r].steps;
  s->ref = last_region(s->sim);
  s->slices.time_s = 0;
}

/* True if every region has made this number of exchanges since, or this number of events has passed
   (a region can be held). */
static bool settled(const stride *s) {
  const gt_sim *sim = s->sim;
  if ((double)(sim->events - s->settle_events) >= 2 * (double)s->settle_beats * s->per_beat)
    return true;
  for (size_t r = 0; r < sim->n; r++)
    if (sim->regions[r].training &&
        sim->regions[r].steps - s->settle_steps[r] < s->settle_beats * gt_sim_period(sim, r))
      return false;
  return true;
}

static size_t count_training(const gt_sim *sim) {
  size_t n = 0;
  for (size_t r = 0; r < sim->n; r++) n += sim->regions[r].training;
  return n;
}

/* True if ref made no exchange in the slice, and the slice was short: delayed messages can have
   come in one burst. */
static bool is_burst(const stride *s, double time_s, int64_t steps) {
  return steps < beat_of(s) && time_s < s->beat_s;
}

/* Ends the slice: plans, the first time, and repeats the slice. */
static void leave_out(stride *s) {
  const sim_region *ref = &s->sim->regions[s->ref];
  gt_sim_mark_take(&s->to, s->sim, s->at);
  gt_sim_mark_align(&s->to, &s->from, s->sim, s->ref);
  double beats = fmax(1, (double)(ref->steps - s->from.views[s->ref].steps) / (double)beat_of(s)),
         time_s = gt_seconds(s->to.at - s->from.at);
  int64_t steps = ref->steps - s->from.views[s->ref].steps;
  if (steps >= beat_of(s)) s->beat_s = time_s / beats;
  if (steps >= beat_of(s)) s->per_beat = (double)(s->to.events - s->from.events) / beats;
  if (s->slices_turn.often < 0)
    plan(s, (double)(s->to.events - s->settle_events), gt_seconds(s->at - s->settle_at),
         gt_ps_share_done(ref->ps) - s->settle_done);
  if (s->slices_turn.often == 0 || time_s <= 0) return;
  double n =
      fmin(turns_next(&s->slices_turn, s->traces, time_s), allowed(s, &s->from, &s->to, true));
  n = n >= 1 && isfinite(n) && !is_burst(s, time_s, steps) ? n : 0;
  spread_add(&s->slices, time_s, work_between(s, &s->from, &s->to), n, mean_pace(s, &s->to));
  if (n > 0) {
    s->gone_s += n * time_s;
    if (steps >= beat_of(s)) s->grain_s = fmax(s->grain_s, n * time_s / beats);
    gt_sim_skip(s->sim, &s->from, &s->to, (int64_t)n, 0, &s->stretch);
    s->at += (gt_ns)n * (s->to.at - s->from.at);
  }
}

/* Returns the time of evaluations that the simulated cycle had too few or too many of: if regions
   wait for each other, the evaluations of each take time of all, and the number of evaluations in n
   cycles is known. */
static gt_ns of_other_evaluations(const stride *s, double n) {
  double time_s = 0;
  for (size_t r = 0; r < s->sim->n; r++) {
    const gt_ps *ps = s->sim->regions[r].ps;
    const gt_ps_view *from = &s->cycle_from.views[r], *to = &s->cycle_to.views[r];
    double now = gt_ps_evaluations_at(ps, from, to, 0),
           had = now - gt_ps_evaluations_at(ps, from, to, -1);
    if (gt_ps_made_of(ps)->strategy->waits && s->sim->regions[r].training)
      time_s +=
          (gt_ps_evaluations_at(ps, from, to, n) - now - n * had) * gt_seconds(to->last_eval_took);
  }
  double least_s = -0.5 * n * gt_seconds(s->cycle_to.at - s->cycle_from.at);
  return gt_from_seconds(fmax(time_s, least_s));
}

/* cost: events of one cycle. */
static void plan_cycles(stride *s, double cost) {
  double left = gt_ps_evaluations_left(s->sim->regions[s->cycle_ref].ps),
         budget = (double)s->budget;
  s->cycles_turn.often =
      fmax(0, PART_CYCLE * left * cost / fmax(budget - (double)s->sim->events, budget / 3) - 1);
}

/* Ends the cycle; returns the number of its repetitions. */
static double leave_out_cycle(stride *s) {
  const sim_mark *from = &s->cycle_from, *to = &s->cycle_to;
  gt_sim_mark_take(&s->cycle_to, s->sim, s->at);
  gt_sim_mark_align(&s->cycle_to, from, s->sim, s->cycle_ref);
  double time_s = gt_seconds(to->at - from->at), work = work_between(s, from, to);
  if (time_s <= 0) return 0;
  if (s->cycles_turn.often < 0) plan_cycles(s, (double)(to->events - from->events));
  double n = fmin(turns_next(&s->cycles_turn, s->traces, time_s), allowed(s, from, to, false));
  spread_add(&s->of_cycles, time_s, work, n, mean_pace(s, to));
  if (n < 1) return 0;
  gt_ns before = s->sim->gone;
  s->gone_s += n * time_s;
  s->grain_s = fmax(s->grain_s, n * time_s / fmax(1, work));
  gt_sim_skip(s->sim, from, to, (int64_t)n, of_other_evaluations(s, n), NULL);
  s->at += s->sim->gone - before;
  return n;
}

/* Call when an evaluation of cycle_ref has ended.  After skipped cycles, the time to the next
   evaluation is no whole cycle. */
static void evaluated(stride *s) {
  if (s->struck > 0 || count_training(s->sim) < s->ntraining) s->cycle_open = false;
  double n = s->cycle_open ? leave_out_cycle(s) : 0;
  settle(s, SETTLE_EVAL);
  s->cycle_open = n < 1;
  if (s->cycle_open) gt_sim_mark_take(&s->cycle_from, s->sim, s->at);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Plans when evaluations and outages are so frequent that no slice was without them. */
static void plan_without_slice(stride *s) {
  s->per_beat = fmax(s->per_beat, 1);
  plan(s, (double)s->sim->events, gt_seconds(s->at), gt_ps_share_done(s->sim->regions[s->ref].ps));
}

static void begin_slice(stride *s) {
  if (s->settling) {
    s->ref = last_region(s->sim);
    s->settle_done = gt_ps_share_done(s->sim->regions[s->ref].ps);
    s->settle_at = s->at;
    s->settle_events = s->sim->events;
    gt_sim_stretch_begin(&s->stretch, s->sim);
  }
  gt_sim_mark_take(&s->from, s->sim, s->at);
  s->settling = false;
  s->open = true;
}

/* Lets the regions settle after an event since the last beat; otherwise begins or ends a slice. */
static void go_on(stride *s, bool ended) {
  if (ended && s->sim->n <= FEW_REGIONS)
    settle(s, SETTLE);
  else if (s->struck > 0)
    settle(s, s->struck);
  else if (s->turned)
    settle(s, SETTLE_EVAL);
  else if (s->settling && settled(s))
    begin_slice(s);
  else if (s->open && s->sim->events - s->from.events >= s->slice_events) {
    leave_out(s);
    begin_slice(s);
  }
  if (ended || s->struck > 0) s->cycle_open = false;
}

/* Call when ref has completed an exchange, or makes none for a long time. */
static void beat(stride *s) {
  gt_sim *sim = s->sim;
  size_t training = count_training(sim);
  if (training == 0) {
    s->slices_turn.often = 0;
    return;
  }
  if (s->per_beat == 0) s->per_beat = (double)(sim->events - s->beat_events);
  go_on(s, training < s->ntraining);
  if (s->slices_turn.often < 0 && sim->events > s->budget / 4) plan_without_slice(s);
  if (s->cycles && !sim->regions[s->cycle_ref].training) s->cycle_ref = last_region(sim);
  if (!sim->regions[s->ref].training) s->ref = last_region(sim);
  s->ntraining = training;
  s->struck = 0;
  s->turned = false;
  s->beat_events = sim->events;
  s->beat_steps = sim->regions[s->ref].steps;
}

static bool is_beat(const stride *s, size_t region) {
  const sim_region *ref = &s->sim->regions[s->ref];
  if (region == s->ref && (!ref->training || ref->steps - s->beat_steps >= beat_of(s))) return true;
  return (double)(s->sim->events - s->beat_events) >
         fmax(4 * s->per_beat, (double)(16 * s->sim->n * s->sim->n));
}

static void watch(stride *s, size_t region) {
  const sim_region *r = &s->sim->regions[region];
  s->at = gt_timeline_at(r->timeline) + s->sim->gone;
  for (; s->bound < s->nbounds && s->bounds[s->bound].at <= s->at; s->bound++) {
    const outage_end *end = &s->bounds[s->bound];
    int64_t beats = bound_settle(s, end->begins);
    if (end->for_s >= s->short_s && beats > s->struck) s->struck = beats;
  }
  if (r->evaluating != s->evaluating[region]) {
    s->evaluating[region] = r->evaluating;
    s->turned = true;
    if (s->cycles && region == s->cycle_ref && !r->evaluating && r->training) evaluated(s);
  }
  if (is_beat(s, region)) beat(s);
}

static void open_stride(stride *s, gt_sim *sim, int64_t budget) {
  *s = (stride){.sim = sim,
                .budget = budget,
                .slices_turn = {.often = -1},
                .cycles_turn = {.often = -1},
                .ntraining = sim->n,
                .settle_steps = GT_NEW_ARRAY(int64_t, sim->n),
                .evaluating = GT_NEW_ARRAY(bool, sim->n)};
  s->slice_events = (int64_t)((double)budget / SLICES);
  gt_sim_mark_open(&s->from, sim);
  gt_sim_mark_open(&s->to, sim);
  gt_sim_mark_open(&s->cycle_from, sim);
  gt_sim_mark_open(&s->cycle_to, sim);
  gt_sim_stretch_open(&s->stretch, sim);
  find_bounds(s);
  settle(s, SETTLE);
}

static void close_stride(stride *s) {
  gt_free(s->bounds);
  gt_free(s->settle_steps);
  gt_free(s->evaluating);
  gt_sim_mark_close(&s->from);
  gt_sim_mark_close(&s->to);
  gt_sim_stretch_close(&s->stretch);
  gt_sim_mark_close(&s->cycle_from);
  gt_sim_mark_close(&s->cycle_to);
}

/* The error can include one checkpoint, which is in progress at the end of the run or not. */
static double longest_checkpoint(const gt_sim *sim) {
  const gt_job *job = sim->spec.job;
  const gt_job_interval *every = &job->checkpoint.every;
  double most = 0;
  if (every->epochs <= 0 && every->steps <= 0 && every->minutes <= 0) return 0;
  for (size_t r = 0; r < sim->n; r++) {
    double bps = gt_job_compute_of(job, r).checkpoint_bps;
    if (bps > 0)
      most = fmax(most,
                  8 * (double)((sim->spec.parameters + sim->spec.buffers) * sizeof(float)) / bps);
  }
  return most;
}

static void judge(const stride *s, sim_stride *out) {
  double all_s = gt_seconds(gt_sim_now(&s->sim->regions[0]));
  if (s->gone_s <= 0) return;
  out->error_s = 3 * sqrt(spread_variance_s2(&s->slices) + spread_variance_s2(&s->of_cycles)) +
                 0.75 * s->grain_s + 0.0015 * s->gone_s + longest_checkpoint(s->sim);
  if (out->error_s > CERTAIN * all_s)
    out->why = s->traces        ? GT_SIM_TRACES
               : s->short_s > 0 ? GT_SIM_OUTAGES
               : s->cycles      ? GT_SIM_EVALUATIONS
                                : GT_SIM_SAMPLE;
}

static gt_status whole(gt_sim *sim) {
  size_t region;
  while (!gt_sim_over(sim)) GT_TRY(gt_sim_step(sim, &region));
  return GT_OK;
}

gt_status gt_sim_stride(gt_sim *sim, int64_t budget, sim_stride *out) {
  stride s;
  size_t region;
  gt_status status = GT_OK;
  *out = (sim_stride){0};
  if (budget == INT64_MAX) return whole(sim);
  open_stride(&s, sim, budget);
  while (status == GT_OK && !gt_sim_over(sim) && s.slices_turn.often != 0) {
    status = gt_sim_step(sim, &region);
    if (status == GT_OK) watch(&s, region);
  }
  if (status == GT_OK) status = whole(sim);
  if (status == GT_OK) judge(&s, out);
  close_stride(&s);
  return status;
}
