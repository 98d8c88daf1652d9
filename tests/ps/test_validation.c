/* Validation of checkpoint rounds, over every strategy and plane, with delays at random: all
   regions judge every round alike, also after crashes; the best round is that with the lowest loss;
   with a patience training ends early, and a resume does not continue it. */
#include "cases.h"
#include "world.h"

/* Runs until all are complete, with crashes at random events. */
static world *run(const w_spec *spec, int crashes) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 5, 0);
  world *w = w_open(spec);
  while (crashes-- > 0) {
    w_steps(w, (int64_t)gt_rng_below(&rng, 600));
    int64_t round = w_crash(w);
    for (round++; round < W_ROUNDS; round++) w->judged[round] = (w_judged){0};
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

static void law(w_spec *spec, int crashes) {
  spec->validation = 25;
  spec->test_samples = spec->seed % 2 ? 0 : W_TEST;
  spec->checkpoint_every = (gt_ps_interval){.steps = 2 + (int64_t)(spec->seed % 3)};
  spec->eval_every = (gt_ps_interval){.steps = 3};
  spec->until = (gt_ps_interval){.epochs = 2};
  spec->patience = (int)(spec->seed % 3);
  if (crashes == 0 && spec->seed % 4 == 1) spec->unsound = 2; /* a crash would resume from it */
  world *w = run(spec, crashes);
  settle(w);
  check_best(w);
  if (w_view(w, 0).gave_up)
    check_over(w);
  else
    w_check_epochs(w, 2);
  w_close(w);
}

static void for_all(int crashes, uint64_t seed) {
  static const size_t regions[] = {1, 2, 3, 5};
  const size_t seeds = cases(24, 8);
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int async = 0; async < 2; async++)
      for (size_t k = 0; k < seeds; k++) {
        w_spec spec = w_random(*name, async, regions[k % 4], seed++);
        w_place(&spec);
        if (spec.nregions > 1 && k % 3 == 2) w_aggregate(&spec);
        law(&spec, crashes);
      }
}

static void test_undisturbed(void) {
  for_all(0, 500);
}

static void test_crashes(void) {
  for_all(3, 900);
}

/* A SCORE that cannot be, and any without validation. */
static void test_messages(void) {
  static const double nan_samples[6] = {1, NAN, 1}, half[6] = {1, 1, 0.5}, future[6] = {2, 1, 0},
                      late[6] = {0, 1, 9};
  const struct {
    gt_frame_header head;
    const double *body;
    const char *words;
  } bad[] = {{{.value = 2}, half, "round 2"},
             {{.value = 1, .range = 2}, half, "range 2"},
             {{.value = 1, .message_bytes = 40}, half, "40 bytes"},
             {{.value = 1}, nan_samples, "in the validation of nan samples"},
             {{.value = 1}, half, "right 0.5 times"},
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

TESTS(test_undisturbed, test_crashes, test_messages)
