/* A run with few events: a few exchanges are simulated (a slice) and then repeated without
   simulation, as often as the budget of events requires, and so on along the whole run.  What
   happens once or seldom is always simulated: nothing is skipped across it, and slices begin only
   when the regions have settled after it.
   If there are too many evaluations for that, whole cycles from one evaluation to the next are
   skipped in the same way. */
#include <math.h>

#include "geotrain/ps_skip.h"
#include "stride.h"

#define SLICES      200.0 /* in the whole run */
#define FEW_REGIONS 16    /* with more, the end of a single region is not waited for */
#define PART_CYCLE  1.6   /* cycles simulated for each cycle that is repeated */
#define LATE        8     /* times the budget of events: see hurry */
#define CERTAIN     0.045 /* share of the time; a larger error needs a reason */

/* Steps of ref from one exchange to the next. */
static int64_t beat_of(const stride *s) {
  return gt_sim_period(s->sim, s->ref);
}

/* How often the time between the marks may be repeated before a chunk of a test set ends that is
   under way, unless chunks are so many that they come evenly. */
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

/* If ref is held, the message that it waits for may be under way for long: skipped time must not
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

/* How often the time between the marks may be repeated before something that must be simulated. */
static double allowed(const stride *s, const sim_mark *from, const sim_mark *to, bool evaluations) {
  const gt_ns bound = gt_sim_bound_next(s);
  double n =
      bound == GT_NEVER ? INFINITY : floor((double)(bound - to->at) / (double)(to->at - from->at));
  if (evaluations) n = fmin(n, fmin(until_chunk(s, from, to), until_message(s, from, to)));
  for (size_t r = 0; r < s->sim->n; r++)
    if (s->sim->n <= FEW_REGIONS || r == s->ref)
      n = fmin(n,
               gt_ps_repeats(s->sim->regions[r].ps, &from->views[r], &to->views[r], evaluations));
  return fmax(0, n);
}

/* Seconds per batch of ref, up to now. */
static double mean_pace(const stride *s, const sim_mark *to) {
  return gt_seconds(to->at) / fmax(1, (double)to->views[s->ref].batches);
}

static double work_between(const stride *s, const sim_mark *from, const sim_mark *to) {
  return (double)(to->views[s->ref].batches - from->views[s->ref].batches);
}

/* grain_s: possible error because a stretch is a whole number of exchanges, or evaluations, of ref
   but not of the other regions. */
static void left_out(stride *s, double time_s, double n, double grain_s) {
  s->gone_s += n * time_s;
  s->grain_s = fmax(s->grain_s, n * grain_s);
}

/* ---- beats ----------------------------------------------------------------------------------- */

/* The region whose training is done least. */
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
  gt_sim_spread_forget(&s->slices);
}

/* Every region has made so many exchanges since, or so many events have passed (a region may be
   held). */
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

/* Far more events than planned: from now on outages are not waited for, and evaluations are skipped
   by cycles. */
static void hurry(stride *s) {
  if (s->hurry || s->sim->events < LATE * s->budget || s->slices_turn.often == 0) return;
  s->hurry = true;
  s->short_s = INFINITY;
  s->cycles = gt_ps_evaluations_left(s->sim->regions[s->ref].ps) >= CYCLES_MIN;
  s->cycle_ref = s->ref;
  s->slices_turn.often = s->cycles ? INFINITY : fmax(4, 4 * s->slices_turn.often);
}

/* Ref made no exchange in the slice, and the slice was short: delayed messages may have come in one
   burst. */
static bool is_burst(const stride *s, double time_s, int64_t steps) {
  return steps < beat_of(s) && time_s < s->beat_s;
}

/* The slice is over: plans, if that is not done yet, and repeats the slice. */
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
    gt_sim_plan(s, (double)(s->to.events - s->settle_events), gt_seconds(s->at - s->settle_at),
                gt_ps_share_done(ref->ps) - s->settle_done);
  if (s->slices_turn.often == 0 || time_s <= 0) return;
  double n = fmin(gt_sim_turns_next(&s->slices_turn, s->traces, time_s),
                  allowed(s, &s->from, &s->to, true));
  n = n >= 1 && isfinite(n) && !is_burst(s, time_s, steps) ? n : 0;
  gt_sim_spread_add(&s->slices, time_s, work_between(s, &s->from, &s->to), n, mean_pace(s, &s->to));
  if (n > 0) {
    left_out(s, time_s, n, steps >= beat_of(s) ? time_s / beats : 0);
    gt_sim_skip(s->sim, &s->from, &s->to, (int64_t)n, 0, &s->stretch);
    s->at += (gt_ns)n * (s->to.at - s->from.at);
  }
}

/* If regions wait for each other, the evaluations of each take time of all.  The number of
   evaluations in n cycles is known, and the simulated cycle may have had fewer or more: returns the
   time of the difference. */
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

/* cost: events that one cycle takes. */
static void plan_cycles(stride *s, double cost) {
  double left = gt_ps_evaluations_left(s->sim->regions[s->cycle_ref].ps),
         budget = (double)s->budget;
  s->cycles_turn.often =
      fmax(0, PART_CYCLE * left * cost / fmax(budget - (double)s->sim->events, budget / 3) - 1);
}

/* The cycle is over; returns how often it was repeated. */
static double leave_out_cycle(stride *s) {
  const sim_mark *from = &s->cycle_from, *to = &s->cycle_to;
  gt_sim_mark_take(&s->cycle_to, s->sim, s->at);
  gt_sim_mark_align(&s->cycle_to, from, s->sim, s->cycle_ref);
  double time_s = gt_seconds(to->at - from->at), work = work_between(s, from, to);
  if (time_s <= 0) return 0;
  if (s->cycles_turn.often < 0) plan_cycles(s, (double)(to->events - from->events));
  double n =
      fmin(gt_sim_turns_next(&s->cycles_turn, s->traces, time_s), allowed(s, from, to, false));
  gt_sim_spread_add(&s->of_cycles, time_s, work, n, mean_pace(s, to));
  if (n < 1) return 0;
  gt_ns before = s->sim->gone;
  left_out(s, time_s, n, time_s / fmax(1, work));
  gt_sim_skip(s->sim, from, to, (int64_t)n, of_other_evaluations(s, n), NULL);
  s->at += s->sim->gone - before;
  return n;
}

/* An evaluation of cycle_ref has ended.  After skipped cycles, the time to the next evaluation is
   no whole cycle. */
static void evaluated(stride *s) {
  if (!s->cycle_from.views) {
    gt_sim_mark_open(&s->cycle_from, s->sim);
    gt_sim_mark_open(&s->cycle_to, s->sim);
  }
  if (s->struck > 0 || count_training(s->sim) < s->ntraining) s->cycle_open = false;
  double n = s->cycle_open ? leave_out_cycle(s) : 0;
  settle(s, SETTLE_EVAL);
  s->cycle_open = n < 1;
  if (s->cycle_open) gt_sim_mark_take(&s->cycle_from, s->sim, s->at);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Evaluations and outages are so frequent that no slice was without them. */
static void plan_without_slice(stride *s) {
  s->per_beat = fmax(s->per_beat, 1);
  gt_sim_plan(s, (double)s->sim->events, gt_seconds(s->at),
              gt_ps_share_done(s->sim->regions[s->ref].ps));
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

/* The regions first settle after an event since the last beat; otherwise a slice begins or ends. */
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

/* Ref has completed an exchange, or makes none for a long time. */
static void beat(stride *s) {
  gt_sim *sim = s->sim;
  size_t training = count_training(sim);
  if (training == 0) {
    s->slices_turn.often = 0;
    return;
  }
  if (s->per_beat == 0) s->per_beat = (double)(sim->events - s->beat_events);
  hurry(s);
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

static void strike(stride *s) {
  const outage_end *end = &s->bounds[s->bound++];
  int64_t beats = gt_sim_bound_settle(s, end->begins);
  if (end->for_s >= s->short_s && beats > s->struck) s->struck = beats;
}

static void watch(stride *s, size_t region) {
  const sim_region *r = &s->sim->regions[region];
  s->at = gt_timeline_at(r->timeline) + s->sim->gone;
  while (s->bound < s->nbounds && s->bounds[s->bound].at <= s->at) strike(s);
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
  gt_sim_stretch_open(&s->stretch, sim);
  gt_sim_bounds_find(s);
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

/* The error may include one checkpoint, which may be under way at the end of the run or not. */
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

static gt_sim_doubt reason(const stride *s) {
  if (s->traces) return GT_SIM_TRACES;
  if (s->short_s > 0) return GT_SIM_OUTAGES;
  return s->cycles || s->hurry ? GT_SIM_EVALUATIONS : GT_SIM_SAMPLE;
}

static void judge(const stride *s, sim_stride *out) {
  double all_s = gt_seconds(gt_sim_now(&s->sim->regions[0]));
  if (s->gone_s <= 0) return;
  out->error_s =
      3 * sqrt(gt_sim_spread_variance_s2(&s->slices) + gt_sim_spread_variance_s2(&s->of_cycles)) +
      0.75 * s->grain_s + 0.0015 * s->gone_s + longest_checkpoint(s->sim);
  if (out->error_s > CERTAIN * all_s) out->why = reason(s);
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
