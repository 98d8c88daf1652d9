/* Validation of checkpoint rounds, over every strategy and plane, with delays at random: all
   regions judge every round alike, also after crashes and stops; the best round is that with the
   lowest loss; with a patience training ends early, and a resume does not continue it.  A single
   region that is stopped judges the models of an undisturbed run. */
#include "cases.h"
#include "world.h"

/* Stops region `by`, and with it the run.  Before, if possible, another region has opened a round
   that region `by` has not heard of: it then stops with that same round. */
static void stop(world *w, size_t by) {
  const int64_t events = w->events;
  while (by > 0 && w_view(w, 0).round <= w_view(w, by).round && w->events < events + 300)
    w_steps(w, 1);
  gt_ps_stop(w->regions[by].ps, GT_STOPPED, w->now);
  w_run(w); /* a stop can be too late */
}

/* Runs until all are complete, with crashes or stops at random events. */
static world *run(const w_spec *spec, int crashes, bool stops) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 5, 0);
  world *w = w_open(spec);
  while (crashes-- > 0) {
    w_steps(w, (int64_t)gt_rng_below(&rng, w->n > 1 ? 600 : 100));
    if (stops) stop(w, w->n - 1);
    int64_t newest, whole = w_whole_round(w, &newest);
    for (int64_t round = whole + 1; round < W_ROUNDS; round++) w->judged[round] = (w_judged){0};
    w_crash(w);                        /* the regions can open the next round at once */
    int64_t known = stops ? 0 : whole; /* a judgement that no checkpoint has is lost */
    for (size_t i = 0; stops && i < w->n; i++)
      if (w_view(w, i).judged > known) known = w_view(w, i).judged;
    for (int64_t round = known + 1; round <= whole; round++)
      w->judged[round] = (w_judged){.steps = w->judged[round].steps};
  }
  w_run_until(w, GT_PS_COMPLETE);
  return w;
}

/* Runs on until every round is durable and judged everywhere. */
static void settle(world *w) {
  const gt_ns limit = w->now + 600 * GT_SECOND;
  for (size_t i = 0; i < w->n;) {
    const gt_ps_view v = w_view(w, i);
    if (v.validating || v.round != v.whole_round || v.round != w_view(w, 0).round) {
      w_check(w, w_step(w) && w->now < limit);
      i = 0;
    } else
      i++;
  }
}

static void check_best(world *w) {
  int64_t best = 0;
  for (int64_t round = 1; round < W_ROUNDS; round++) {
    const w_judged *j = &w->judged[round];
    if (j->loss == 0 || isnan(j->loss)) continue;
    if (best == 0 || j->loss < w->judged[best].loss) best = round;
    w_check(w, j->best == best && j->best_loss == w->judged[best].loss);
  }
  for (size_t i = 0; i < w->n; i++) w_check(w, w_view(w, i).best_round == best);
}

/* A round counts against the patience if regions have made steps since the one judged before. */
static bool should_end(const world *w) {
  int64_t since = 0, steps = 0;
  double best = INFINITY;
  for (int64_t round = 1; round < W_ROUNDS; round++) {
    const w_judged *j = &w->judged[round];
    if (j->loss == 0) continue;
    if (j->loss < best && since < w->spec.patience)
      since = 0;
    else if (j->steps > steps)
      since++;
    best = fmin(best, j->loss);
    steps = j->steps;
  }
  return w->spec.patience > 0 && since >= w->spec.patience;
}

/* Training that has ended early is not continued from a later checkpoint, even the best one. */
static void check_over(world *w) {
  int64_t steps[W_REGIONS];
  for (size_t i = 0; i < w->n; i++) {
    w_check(w, w_view(w, i).gave_up);
    steps[i] = w_view(w, i).steps;
  }
  for (int i = 0; i < 2; i++) {
    w_crash_now(w, 0);
    w_run_until(w, GT_PS_COMPLETE);
    settle(w);
  }
  for (size_t i = 0; i < w->n; i++) w_check(w, w_view(w, i).steps == steps[i]);
}

static void law(w_spec *spec, int crashes, bool stops) {
  spec->validation = 25;
  spec->test_samples = spec->seed % 2 ? 0 : W_TEST;
  spec->checkpoint_every = (gt_ps_interval){.steps = 2 + (int64_t)(spec->seed % 3)};
  spec->eval_every = (gt_ps_interval){.steps = 3};
  spec->until = (gt_ps_interval){.epochs = 2};
  spec->patience = (int)(spec->seed % 3);
  if (crashes == 0 && spec->seed % 4 == 1) spec->unsound = 2; /* a crash would resume from it */
  world *w = run(spec, crashes, stops);
  settle(w);
  for (int i = 0; i < 2; i++) { /* the second one is of the same models */
    gt_ps_last_round(w->regions[0].ps, w->now);
    settle(w);
  }
  check_best(w);
  for (size_t i = 0; i < w->n; i++) w_check(w, w_view(w, i).gave_up == should_end(w));
  if (w_view(w, 0).gave_up)
    check_over(w);
  else
    w_check_epochs(w, 2);
  w_close(w);
}

static void for_all(int crashes, bool stops, uint64_t seed) {
  static const size_t regions[] = {1, 2, 3, 5};
  const size_t seeds = cases(24, 8);
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int async = 0; async < 2; async++)
      for (size_t k = 0; k < seeds; k++) {
        w_spec spec = w_random(*name, async, regions[k % 4], seed++);
        w_place(&spec);
        if (spec.nregions > 1 && k % 3 == 2) w_aggregate(&spec);
        law(&spec, crashes, stops);
      }
}

static void test_undisturbed(void) {
  for_all(0, false, 500);
}

static void test_crashes(void) {
  for_all(3, false, 900);
}

static void test_stops(void) {
  for_all(2, true, 1300);
}

/* One region judges the models of an undisturbed run, also one whose evaluation a stop has
   interrupted. */
static void test_same_models(void) {
  const size_t seeds = cases(60, 20);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    w_spec spec = w_random("sma", false, 1, seed);
    spec.validation = 25;
    spec.write_s = 0; /* a round begins when the one before it is durable */
    spec.checkpoint_every =
        seed % 2 ? (gt_ps_interval){.steps = 3} : (gt_ps_interval){.samples = 50};
    spec.until = (gt_ps_interval){.epochs = 2};
    world *whole = run(&spec, 0, false), *w = run(&spec, 1, true);
    int64_t round = 1;
    for (int64_t at = 1; at < W_ROUNDS; at++) {
      const w_judged *j = &whole->judged[at];
      if (j->loss == 0) continue;
      while (round < W_ROUNDS && w->judged[round].loss == 0) round++;
      w_check(w, round < W_ROUNDS && w->judged[round].steps == j->steps);
      w_check(w, w->judged[round++].loss == j->loss);
    }
    w_close(whole);
    w_close(w);
  }
}

/* A SCORE that cannot be, and any without validation. */
static void test_messages(void) {
  static const double nan_samples[6] = {1, NAN, 1}, half[6] = {1, 1, 0.5}, future[6] = {2, 1, 0},
                      late[6] = {0, 1, 9}, minus[6] = {1, 1, 1, -3}, twice[6] = {1, 1, 1, 3, 2},
                      after[6] = {1, 1, 1, 3, 0, 7}, part[6] = {0, 1, 0, 0.5};
  const struct {
    gt_frame_header head;
    const double *body;
    const char *words;
  } bad[] = {{{.value = 2}, half, "round 2"},
             {{.value = 1, .range = 2}, half, "range 2"},
             {{.value = 1, .message_bytes = 40}, half, "40 bytes"},
             {{.value = 1}, nan_samples, "in the validation of nan samples"},
             {{.value = 1}, half, "right 0.5 times"},
             {{.value = 1}, minus, "after -3 steps"},
             {{.value = 1}, twice, "stopped 2"},
             {{.value = 1}, after, "last round 7"},
             {{.value = 1, .range = 1}, part, "after 0.5 steps"},
             {{.value = 1, .range = 1}, future, "the best is 2"},
             {{.value = 1, .range = 1}, late, "9 rounds ago"}};
  for (int with = 0; with < 2; with++) {
    w_spec spec = w_random("sma", false, 2, 1);
    spec.validation = with ? 25 : 0;
    world *w = w_open(&spec);
    for (size_t i = 0; i < COUNT(bad); i++) {
      gt_frame_header head = bad[i].head;
      head.kind = GT_MSG_SCORE;
      if (head.message_bytes == 0) head.message_bytes = GT_SCORE_BYTES;
      must_fail(gt_ps_message(w->regions[1].ps, 0, &head, bad[i].body, w->now), GT_ERR_FAULT,
                with ? bad[i].words : "kind 28");
    }
    w_close(w);
  }
}

TESTS(test_undisturbed, test_crashes, test_stops, test_same_models, test_messages)
