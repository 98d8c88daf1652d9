/* Limits, waits, evaluations, keepalives: everything happens as often as requested, and invalid
   values are reported. */
#include "world.h"
#include "../strategies.h"

static w_spec two(const char *strategy, bool local_async) {
  w_spec s = {.strategy = strategy,
              .local_async = local_async,
              .nregions = 2,
              .workers = {2, 1},
              .samples = {100, 100},
              .batch = 5,
              .seed = 42};
  s.until.epochs = 2;
  s.link = (gt_link_spec){.bandwidth_bps = 1e7, .latency_s = 0.002};
  s.write_s = 0.01;
  return s;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static int64_t evals_asked(const w_spec *s, const gt_ps_view *v, size_t region) {
  const gt_ps_interval *every = &s->eval_every;
  if (every->epochs > 0)
    return (int64_t)((double)v->batches / (every->epochs * (double)w_per_epoch(s, region)) + 1e-9);
  return every->steps > 0 ? v->steps / every->steps : v->samples / every->samples;
}

/* An evaluation due at the end is left to the final evaluation. */
static void check_evals(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    gt_ps_view v = w_view(w, i);
    int64_t asked = evals_asked(&w->spec, &v, i);
    w_check(w, asked >= 2);
    w_check(w, w->regions[i].evals == asked || w->regions[i].evals == asked - 1);
    /* three chunks: 5 + 5 + 2 of 25 */
    w_check(w, v.last_eval.accuracy == 12.0 / 25.0 && v.last_eval.loss == 1);
    w_check(w, v.last_eval.auc == w_auc(25));
  }
}

static void test_evaluations(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int k = 0; k < 6; k++) {
      w_spec s = two(*name, k % 2);
      s.test_samples = 25;
      s.until.epochs = 4;
      s.eval_every = k < 2   ? (gt_ps_interval){.epochs = 1}
                     : k < 4 ? (gt_ps_interval){.steps = 20}
                             : (gt_ps_interval){.samples = 150};
      world *w = w_finished(&s);
      check_evals(w);
      w_check_epochs(w, 4);
      w_close(w);
    }
}

typedef struct {
  gt_ps_score score;
  int calls;
} asked;

static void keep(void *ctx, const gt_ps_score *score) {
  asked *a = ctx;
  a->score = *score;
  a->calls++;
}

/* A requested evaluation is reported to its requester, and does not affect those of training. */
static void test_evaluation_asked_for(void) {
  w_spec s = two("sma", false);
  s.test_samples = 25;
  world *w = w_finished(&s);
  asked a = {.calls = 0};
  gt_ps_evaluate(w->regions[0].ps, gt_vec_of(w->regions[0].params, W_PARAMS),
                 gt_vec_of(w->regions[0].buffers, W_BUFFERS), keep, &a, w->now);
  for (int i = 0; i < 10000 && a.calls == 0; i++) w_check(w, w_step(w));
  w_check(w, a.calls == 1 && a.score.accuracy == 12.0 / 25.0 && a.score.loss == 1 &&
                 a.score.auc == w_auc(25));
  gt_ps_view v = w_view(w, 0);
  w_check(w, isnan(v.last_eval.loss) && isnan(v.last_eval.accuracy) && isnan(v.last_eval.auc) &&
                 w->regions[0].evals == 0);
  w_close(w);
}

/* An evaluation interrupted by a crash is repeated after the resume. */
static void test_evaluations_over_a_crash(void) {
  for (int64_t event = 100; event < 700; event += 25) {
    w_spec s = two("sma", false);
    s.test_samples = 25;
    s.until.epochs = 4;
    s.options.period = 4;
    s.eval_every.epochs = 1;
    s.checkpoint_every.steps = 1;
    world *w = w_open(&s);
    w_steps(w, event);
    w_crash(w);
    w_run_until(w, GT_PS_COMPLETE);
    for (size_t i = 0; i < w->n; i++)
      w_check(w, w->regions[i].evals >= 3 && w->regions[i].evals <= 5);
    w_close(w);
  }
}

/* ---- waits ----------------------------------------------------------------------------------- */

static double wan_wait_s(const w_spec *spec) {
  world *w = w_finished(spec);
  double wait = gt_seconds(w_view(w, 0).wan_wait);
  w_check(w, w_view(w, 0).wan_wait == w->regions[0].wan_wait); /* the workers' waits add up */
  w_close(w);
  return wait;
}

static void test_hold_time_is_accounted(void) {
  for (int async = 0; async < 2; async++) {
    w_spec slow = two("asgd", async), fast = slow;
    slow.link.bandwidth_bps = 2e4; /* an update needs 35 ms, a batch 2 to 12 */
    fast.link.bandwidth_bps = 1e8;
    fast.outbox = fast.window = 8;
    assert_true(wan_wait_s(&slow) > 0.2);
    assert_true(wan_wait_s(&fast) == 0);
    w_spec none = two("none", async);
    none.link = slow.link;
    assert_true(wan_wait_s(&none) == 0);
  }
}

static void test_keepalives_go_to_who_waits(void) {
  w_spec s = two("ssgd", false);
  s.until = (gt_ps_interval){.steps = 20};
  s.slow[1] = 100; /* region 0 waits up to 1.2 s a step for region 1 */
  s.keepalive = GT_SECOND / 10;
  world *w = w_finished(&s); /* w_check_bounds checks every wait */
  w_check(w, w->regions[0].keepalives > 20);
  w_close(w);
}

/* No release of workers waits for the next heartbeat. */
static void test_no_release_is_late(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int k = 0; k < 20; k++) {
      w_spec s = two(*name, k % 2);
      s.seed += (uint64_t)k;
      s.samples[1] = 20 + 5 * (size_t)k;
      s.heartbeat = s.keepalive = 1000 * GT_SECOND;
      world *w = w_finished(&s);
      w_check(w, w->now < 2 * GT_SECOND);
      w_close(w);
    }
}

/* ---- non-finite values ----------------------------------------------------------------------- */

static void test_gradients_that_are_not_finite(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int async = 0; async < 2; async++) {
      w_spec s = two(*name, async);
      s.bad_every = 8; /* batches 7, 15, 23, 31, 39: five in all */
      s.nonfinite_limit = 6;
      world *w = w_finished(&s);
      gt_ps_view v = w_view(w, 0);
      w_check(w, v.nonfinite == 5 && w->regions[0].nonfinite == 5 && w_view(w, 1).nonfinite == 0);
      w_check(w, v.batches == 40 && v.samples == 200 - 25);
      for (size_t j = 0; j < W_PARAMS; j++)
        w_check(w, isfinite(w->regions[0].params[j]) && isfinite(w->regions[1].params[j]));
      w_close(w);
      s.nonfinite_limit = 3;
      w = w_open(&s);
      w_run_until(w, GT_PS_STOPPED);
      for (size_t i = 0; i < 2; i++) w_check(w, w_view(w, i).stop_code == GT_ERR_LIMIT);
      w_check(w, w->regions[0].nonfinite >= 3 && w->regions[0].nonfinite <= 4);
      w_close(w);
    }
}

static void test_a_message_that_is_not_finite(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int async = 0; async < 2; async++) {
      w_spec s = two(*name, async);
      s.poison = 3;
      s.checkpoint_every.steps = 2; /* a round is often in progress when it comes */
      world *w = w_open(&s);
      bool sends = sync_named(*name)->sends != 0;
      w_run_until(w, w_lockstep(&s) ? GT_PS_STOPPED : GT_PS_COMPLETE);
      w_check(w, w_view(w, 1).nonfinite == sends && w->regions[1].nonfinite_messages == sends &&
                     w->regions[1].nonfinite == 0);
      for (size_t i = 0; i < 2; i++)
        w_check(w, w_view(w, i).stop_code == (w_lockstep(&s) ? GT_ERR_LIMIT : GT_OK));
      for (size_t j = 0; j < W_PARAMS; j++) w_check(w, isfinite(w->regions[1].params[j]));
      w_close(w);
      if (w_lockstep(&s) || !sends) continue;
      s.nonfinite_limit = 1;
      w = w_open(&s);
      w_run_until(w, GT_PS_STOPPED);
      for (size_t i = 0; i < 2; i++) w_check(w, w_view(w, i).stop_code == GT_ERR_LIMIT);
      w_close(w);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Total bytes sent over all restarts, because a resume starts to count from zero. */
static void never_passed(world *w, double before) {
  w_check(w, before + w_sent_bytes(w) <= w->spec.wan_bytes_limit);
}

static double saved_bytes(const world *w) {
  double sum = 0;
  for (size_t i = 0; i < w->n; i++) {
    char prefix[32];
    double own;
    snprintf(prefix, sizeof prefix, "ps/peer/%zu/", i);
    must(gt_state_get(&w->regions[i].copies[w->regions[i].ncopies - 1].state, prefix, "wan_bytes",
                      GT_TYPE_F64, &own, 1));
    sum += own;
  }
  return sum;
}

/* The limit stops a run before it is exceeded, and not long before; a resumed run stays below it,
   too. */
static void test_wan_bytes(void) {
  static const char *const names[] = {"asgd", "ssgd", "asgd-ga", "sma", "ama"};
  for (int k = 0; k < 10; k++) {
    w_spec s = two(names[k / 2], k % 2);
    s.until.epochs = 10;
    s.samples[0] = s.samples[1] = 50;
    s.wan_bytes_limit = 2000;
    world *w = w_open(&s);
    while (!w_all_in(w, GT_PS_STOPPED)) {
      w_check(w, w_step(w) && w->now < 600 * GT_SECOND);
      never_passed(w, 0);
    }
    w_check(w, w_view(w, 0).stop_code == GT_ERR_LIMIT && w_view(w, 1).stop_code == GT_ERR_LIMIT);
    w_check(w, w_sent_bytes(w) > 0.7 * 2000);
    double before = saved_bytes(w);
    w_crash(w);
    while (!w_all_in(w, GT_PS_STOPPED)) { /* the limit is for the whole run */
      w_check(w, w_step(w) && w->now < 600 * GT_SECOND);
      never_passed(w, before);
    }
    w->spec.wan_bytes_limit = 0;
    w_crash(w);
    w_run_until(w, GT_PS_COMPLETE);
    w_check_epochs(w, 10);
    w_close(w);
  }
}

static double needed(const w_spec *spec) {
  world *w = w_finished(spec);
  const double bytes = w_sent_bytes(w);
  w_close(w);
  return bytes;
}

/* Random worlds under random limits: messages in flight count, the drain included; a distant limit
   changes nothing. */
static void test_wan_bytes_at_random(void) {
  int stopped = 0;
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (uint64_t seed = 0; seed < 24; seed++) {
      w_spec s = w_random(*name, seed % 2, 2 + seed % 3, 7000 + seed);
      s.until.epochs = 2;
      const double all = needed(&s);
      s.wan_bytes_limit = seed % 4 ? all * (0.2 + 0.05 * (double)seed) : 4 * all;
      if (all == 0) s.wan_bytes_limit = 1;
      world *w = w_open(&s);
      gt_ns limit = 600 * GT_SECOND;
      while (!w_all_in(w, GT_PS_COMPLETE) && !w_all_in(w, GT_PS_STOPPED)) {
        w_check(w, w_step(w) && w->now < limit);
        w_check(w, w_sent_bytes(w) <= s.wan_bytes_limit);
      }
      stopped += w_all_in(w, GT_PS_STOPPED);
      if (seed % 4 == 0 || all == 0) w_check(w, w_all_in(w, GT_PS_COMPLETE));
      if (w_all_in(w, GT_PS_COMPLETE)) w_check_epochs(w, 2);
      w_close(w);
    }
  assert_true(stopped > 20);
}

/* The float32 message at the end with what a codec has left out counts, too: under a limit that is
   reached near the end nothing is posted without room, and a run resumed without it completes. */
static void test_wan_bytes_of_rests(void) {
  static const char *const names[] = {"asgd", "asgd-ga"};
  int stopped = 0;
  for (uint64_t seed = 0; seed < 48; seed++) {
    w_spec s = w_random(names[seed % 2], false, 2 + seed % 3, 7200 + seed);
    s.codec = w_codec(GT_CODEC_TOPK, 0.5);
    s.until.epochs = 2;
    s.wan_bytes_limit = needed(&s) * (0.9 + 0.004 * (double)seed);
    world *w = w_open(&s);
    while (!w_all_in(w, GT_PS_COMPLETE) && !w_all_in(w, GT_PS_STOPPED)) {
      w_check(w, w_step(w) && w->now < 600 * GT_SECOND);
      never_passed(w, 0);
    }
    if (w_all_in(w, GT_PS_STOPPED)) {
      stopped++;
      w->spec.wan_bytes_limit = 0;
      w_crash(w);
      w_run_until(w, GT_PS_COMPLETE);
    }
    w_check_epochs(w, 2);
    w_close(w);
  }
  assert_true(stopped > 10);
}

/* Messages in flight at a crash are resent when the allowance is known. */
static void test_wan_bytes_over_a_crash(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (uint64_t seed = 0; seed < 24; seed++) {
      w_spec s = w_random(*name, seed % 2, 2 + seed % 3, 7100 + seed);
      s.until.epochs = 2;
      s.wan_bytes_limit = 6 * needed(&s) + 1;
      s.checkpoint_every.steps = 2;
      world *w = w_open(&s);
      w_steps(w, 100 + 30 * (int64_t)seed);
      w_crash(w);
      w_run_until(w, GT_PS_COMPLETE);
      w_check_epochs(w, 2);
      if (w_lockstep(&s)) w_check_identical(w);
      w_close(w);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_no_allocation_in_the_step_loop(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int k = 0; k < 8; k++) {
      w_spec s = two(*name, k % 2);
      s.workers[0] = s.workers[1] = 2;
      s.until.epochs = 10;
      s.options.period = 1 + k / 2;
      s.slow[1] = k / 4 ? 3 : 1;
      s.link.bandwidth_bps = k / 4 ? 1e5 : 1e7;
      world *w = w_open(&s);
      while (w_view(w, 0).batches < 90 || w_view(w, 1).batches < 90) w_check(w, w_step(w));
      int64_t total = gt_alloc_total();
      while (w_view(w, 0).batches < 150 && w_view(w, 1).batches < 150) w_check(w, w_step(w));
      w_check(w, gt_alloc_total() == total);
      w_run_until(w, GT_PS_COMPLETE);
      w_close(w);
    }
}

TESTS(test_evaluations, test_evaluation_asked_for, test_evaluations_over_a_crash,
      test_hold_time_is_accounted, test_keepalives_go_to_who_waits, test_no_release_is_late,
      test_gradients_that_are_not_finite, test_a_message_that_is_not_finite, test_wan_bytes,
      test_wan_bytes_at_random, test_wan_bytes_of_rests, test_wan_bytes_over_a_crash,
      test_no_allocation_in_the_step_loop)
