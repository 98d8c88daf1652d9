/* Regions that hold the stages of one pipeline: the parameters after every step are those of a
   computation without PSs, to the bit, whatever the delays; a step that is not finite in one region
   is dropped in all; gradients are clipped by the norm of all; every region's checkpoint of a round
   is of the same step, whoever opens it and whenever; a stop or a crash changes nothing of the
   result; an evaluation is one pass of all. */
#include "cases.h"
#include "world_stages.h"

static int64_t within, waited, stops, crashes, dropped, clipped;

static s_spec random_spec(uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 5, 0);
  s_spec s = {.seed = seed, .batch = 10, .nonfinite_limit = 1000};
  s.nregions = 2 + (size_t)gt_rng_below(&rng, 3);
  s.steps = 2 + (int64_t)gt_rng_below(&rng, 15);
  s.eval_every = (int64_t)gt_rng_below(&rng, 5);
  s.test_samples = (size_t)gt_rng_below(&rng, 3) * 20;
  s.checkpoint_every = (int64_t)gt_rng_below(&rng, 6);
  if (s.checkpoint_every == 0) s.minutes = 0.0005;
  s.bad_every = gt_rng_below(&rng, 2) ? 40 : 0;
  s.rounds = gt_rng_below(&rng, 2) ? 0.05 : 0;
  s.no_data = gt_rng_below(&rng, 16) == 0;
  s.clip = gt_rng_below(&rng, 2) ? 1.5 : 0;
  return s;
}

static void finish(s_world *w) {
  within += w->within;
  waited += w->waited;
  clipped += w->clipped;
  for (size_t i = 0; i < w->n; i++) dropped += w->regions[i].nonfinite;
  s_close(w);
}

static void check_end(const s_world *w) {
  s_check(w, s_all_in(w, GT_PS_COMPLETE));
  for (size_t i = 0; i < w->n; i++) {
    s_check(w, s_look(w, i).steps == w->spec.steps);
    s_check_region(w, &w->regions[i]);
  }
}

/* ---- undisturbed ----------------------------------------------------------------------------- */

static void test_bits(void **state) {
  (void)state;
  const size_t n = cases(600, 100);
  for (uint64_t seed = 0; seed < n; seed++) {
    s_spec s = random_spec(seed);
    s.nregions = 1 + (size_t)(seed % S_REGIONS);
    s_world *w = s_open(&s);
    s_run_until(w, GT_PS_COMPLETE);
    check_end(w);
    for (size_t i = 0; i < w->n; i++) {
      const s_after *must = &w->after[i][s.steps];
      const gt_ps_view v = s_look(w, i);
      s_check(w, v.loss_sum == must->loss_sum);
      s_check(w, w->regions[i].nonfinite == must->nonfinite);
      s_check(w, v.done == 1 && gt_ps_steps_left(w->regions[i].ps) == 0);
    }
    finish(w);
  }
  assert_true(dropped > 0 && clipped > (int64_t)n);
}

/* After every so many steps in every region, never after the last; a region without a stage that
   judges takes part. */
static void test_evaluations(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 100; seed++) {
    s_spec s = random_spec(1000 + seed);
    s.eval_every = 1 + (int64_t)(seed % 4);
    s.test_samples = 30;
    s_world *w = s_open(&s);
    s_run_until(w, GT_PS_COMPLETE);
    check_end(w);
    for (size_t i = 0; i < w->n; i++)
      s_check(w, w->regions[i].evals == (s.steps - 1) / s.eval_every);
    finish(w);
  }
}

static void scored(void *ctx, const gt_ps_score *score) {
  s_region *r = ctx;
  r->scored = true;
  s_check_score(r, score);
}

static bool all_scored(const s_world *w) {
  for (size_t i = 0; i < w->n; i++)
    if (!w->regions[i].scored) return false;
  return true;
}

/* Opens a round as the lead does at the end, and waits until it is whole. */
static void last_round(s_world *w) {
  while (s_look(w, 0).whole_round < s_look(w, 0).round) s_step(w);
  gt_ps_last_round(w->regions[0].ps, w->now);
  const int64_t last = s_look(w, 0).round;
  for (size_t i = 0; i < w->n; i++)
    while (s_look(w, i).whole_round < last) s_step(w);
  s_check(w, w->rounds_at[last] == w->spec.steps);
}

/* At the end of a run: a pass of the pipeline, then the last round.  Likewise if the run ends once
   more after it has been lost, even before all workers have come up. */
static void test_the_end(void **state) {
  (void)state;
  int64_t early = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    s_spec s = random_spec(2000 + seed);
    s.test_samples = 30;
    s.no_data = false;
    s.rounds = 0;
    s_world *w = s_open(&s);
    s_run_until(w, GT_PS_COMPLETE);
    if (seed % 2) {
      last_round(w);
      s_crash(w);
      s_run_until(w, GT_PS_COMPLETE);
    }
    for (size_t i = 0; i < w->n; i++) {
      s_region *r = &w->regions[i];
      early += gt_ps_absent(r->ps, 0);
      gt_ps_evaluate(r->ps, gt_vec_of(r->params, r->shape.nparams),
                     gt_vec_of(r->buffers, r->shape.nbuffers), scored, r, w->now);
    }
    while (!all_scored(w)) s_step(w);
    last_round(w);
    check_end(w);
    finish(w);
  }
  assert_true(early > 0);
}

/* ---- not finite ------------------------------------------------------------------------------ */

/* All regions drop the same steps, and end the run together, with the same code. */
static void test_limit(void **state) {
  (void)state;
  int64_t ended = 0;
  const size_t n = cases(300, 50);
  for (uint64_t seed = 0; seed < n; seed++) {
    s_spec s = random_spec(3000 + seed);
    s.bad_every = 10;
    s.nonfinite_limit = 1 + (int)(seed % 3);
    s_world *w = s_open(&s);
    s_run_until(w, GT_PS_COMPLETE);
    const gt_ps_view first = s_look(w, 0);
    for (size_t i = 0; i < w->n; i++) {
      const gt_ps_view v = s_look(w, i);
      s_check(w, v.steps == first.steps && v.nonfinite == first.nonfinite);
      s_check(w, v.phase == first.phase && v.stop_code == first.stop_code);
      s_check_region(w, &w->regions[i]);
    }
    if (first.steps < s.steps) /* else it may have come to its end first */
      s_check(w, first.stop_code == GT_ERR_LIMIT && first.nonfinite >= s.nonfinite_limit);
    ended += first.phase == GT_PS_STOPPED;
    finish(w);
  }
  assert_true(ended > (int64_t)n / 3);
}

/* ---- rounds, stops, crashes ------------------------------------------------------------------ */

/* A region that is settled stops at once; in the middle of a step, when it is made, or with another
   region. */
static void ask(s_world *w, size_t region, gt_status code) {
  const gt_ps_view before = s_look(w, region);
  gt_ps_stop(w->regions[region].ps, code, w->now);
  const gt_ps_view after = s_look(w, region);
  if (before.stop_code == GT_OK && before.round == before.whole_round &&
      before.phase != GT_PS_COMPLETE)
    s_check(w, (after.stop_code != GT_OK) == !before.held);
}

/* Some regions are asked to stop, at times for different reasons, and all end with the gravest that
   was in time; what they have saved is of the same step.  Or the run comes to its end first. */
static void stop(s_world *w, gt_rng *rng) {
  const size_t n = 1 + (size_t)gt_rng_below(rng, w->n);
  for (size_t i = 0; i < n; i++) {
    const gt_status code = gt_rng_below(rng, 4) ? GT_STOPPED : GT_ERR_LIMIT;
    ask(w, (size_t)gt_rng_below(rng, w->n), code);
    for (uint64_t k = gt_rng_below(rng, 10); k > 0 && !s_all_in(w, GT_PS_STOPPED); k--) s_step(w);
  }
  s_run_until(w, GT_PS_COMPLETE);
  if (s_all_in(w, GT_PS_COMPLETE)) return;
  const gt_ps_view first = s_look(w, 0);
  for (size_t i = 0; i < w->n; i++) {
    const gt_ps_view v = s_look(w, i);
    s_check(w, v.stop_code == first.stop_code && v.round == first.round);
    s_check(w, v.whole_round == v.round && v.steps == first.steps);
    s_check(w, w->rounds_at[v.round] == v.steps);
  }
  stops++;
}

static void test_interruptions(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < cases(3000, 400); seed++) {
    const s_spec s = random_spec(10000 + seed);
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 6, 0);
    s_world *w = s_open(&s);
    for (uint64_t left = 1 + gt_rng_below(&rng, 3); left > 0; left--) {
      for (uint64_t k = gt_rng_below(&rng, 400); k > 0 && !s_all_in(w, GT_PS_COMPLETE); k--)
        s_step(w);
      if (s_all_in(w, GT_PS_COMPLETE)) break;
      if (gt_rng_below(&rng, 2) && s_look(w, 0).phase == GT_PS_TRAINING)
        stop(w, &rng);
      else
        crashes++;
      s_crash(w);
    }
    s_run_until(w, GT_PS_COMPLETE);
    check_end(w);
    finish(w);
  }
  assert_true(stops > 100 && crashes > 100);
  assert_true(within > 100 && waited > 100); /* both cases were there */
}

/* ---- messages -------------------------------------------------------------------------------- */

static void refused(s_world *w, const gt_frame_header *head, const char *words) {
  static const float body[S_PARAMS];
  const gt_ps_view before = s_look(w, 1);
  assert_int_equal(gt_ps_message(w->regions[1].ps, 0, head, body, w->now), GT_ERR_FAULT);
  if (!strstr(gt_error_text(), words))
    fail_msg("\"%s\" does not say \"%s\"", gt_error_text(), words);
  const gt_ps_view after = s_look(w, 1);
  assert_true(after.round == before.round && after.steps == before.steps);
}

/* Squares of tensors that cannot come, from a region that has some. */
static void test_squares_refused(void **state) {
  (void)state;
  s_spec s = {.nregions = 2, .batch = 10, .steps = 8, .nonfinite_limit = 1, .seed = 4, .clip = 0.5};
  s_world *w = s_open(&s);
  while (s_look(w, 1).steps < 3 || s_look(w, 1).held) s_step(w);
  const uint64_t next = (uint64_t)s_look(w, 1).steps + 1, all = w->regions[0].shape.ntensors;
  static const char squares[] = "the squares of";
  const struct {
    gt_frame_header head;
    const char *words;
  } bad[] = {
      {{.kind = GT_MSG_STRATEGY, .value = next}, squares}, /* told, and no squares before it */
      {{.kind = GT_MSG_STRATEGY, .value = next, .message_bytes = 8 * all + 8}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = next, .message_bytes = 4}, "4 bytes; 0 are needed"},
      {{.kind = GT_MSG_STRATEGY, .value = next, .message_bytes = 8 * all, .range = 1}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = next - 1, .message_bytes = 8 * all}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = next + 1, .message_bytes = 8 * all}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = UINT64_MAX, .message_bytes = 8 * all}, squares},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refused(w, &bad[i].head, bad[i].words);
  s_run_until(w, GT_PS_COMPLETE);
  check_end(w);
  s_close(w);
}

/* What cannot come from a region of a pipeline. */
static void test_refused(void **state) {
  (void)state;
  s_spec s = {.nregions = 2, .batch = 10, .steps = 8, .nonfinite_limit = 1, .seed = 4};
  s_world *w = s_open(&s);
  while (s_look(w, 1).steps < 3 || s_look(w, 1).held) s_step(w);
  const uint64_t steps = (uint64_t)s_look(w, 1).steps;
  static const char mark[] = "mark";
  const struct {
    gt_frame_header head;
    const char *words;
  } bad[] = {
      {{.kind = GT_MSG_UPDATE, .sequence = 1, .message_bytes = S_PARAMS * sizeof(float)}, "kind 1"},
      {{.kind = GT_MSG_STATE, .sequence = 1, .message_bytes = S_PARAMS * sizeof(float)}, "kind 2"},
      {{.kind = GT_MSG_STRATEGY, .value = steps}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = steps + 3}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = steps + 1, .detail = 2}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = UINT64_MAX}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = steps + 1, .message_bytes = 8}, "squares of 1 tensors"},
      {{.kind = GT_MSG_ROUND, .value = 1, .sequence = steps - 1}, "steps of the pipeline"},
      {{.kind = GT_MSG_ROUND, .value = 1, .sequence = steps + 1}, "steps of the pipeline"},
      {{.kind = GT_MSG_ROUND, .value = 1, .sequence = UINT64_MAX}, "steps of the pipeline"},
      {{.kind = GT_MSG_DONE, .value = steps + 1}, "steps of the pipeline"},
      {{.kind = GT_MSG_DONE, .value = steps - 1}, "steps of the pipeline"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refused(w, &bad[i].head, bad[i].words);
  /* a later round in a header opens none: ROUND comes, and says of which step it is */
  const gt_frame_header later = {.kind = GT_MSG_PING, .round = 1};
  assert_int_equal(gt_ps_message(w->regions[1].ps, 0, &later, NULL, w->now), GT_OK);
  assert_int_equal(s_look(w, 1).round, 0);
  s_run_until(w, GT_PS_COMPLETE);
  check_end(w);
  s_close(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits),
      cmocka_unit_test(test_evaluations),
      cmocka_unit_test(test_the_end),
      cmocka_unit_test(test_limit),
      cmocka_unit_test(test_interruptions),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_squares_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
