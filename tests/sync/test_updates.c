/* links: ps
   asgd and asgd-ga neither lose nor duplicate an update: a region ends at its start plus all
   updates, the remote ones times the scale. */
#include <float.h>

#include "cases.h"
#include "internal.h"
#include "ps/world.h"

/* With plain SGD at one rate this holds for gradients, too, and over every topology. */
static void conserve(const char *strategy) {
  for (uint64_t seed = 0; seed < cases(1200, 600); seed++) {
    w_spec spec = w_random_steps(strategy, seed / 2);
    spec.options.gradients = seed % 2;
    spec.optim = w_sgd(0.02, 0);
    if (seed / 2 % 2) w_place(&spec);
    world *w = w_finished(&spec);
    w_check_conserved(w);
    w_close(w);
  }
}

static void test_asgd(void) {
  conserve("asgd");
}

static void test_asgd_ga(void) {
  conserve("asgd-ga");
}

/* ---- average --------------------------------------------------------------------------------- */

/* Checks that every region ends at its start plus everything posted. */
static void check_averaged(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    for (size_t j = 0; j < W_PARAMS; j++) {
      double expected = (double)w_start(j), size = fabs(expected);
      int64_t updates = 0;
      for (size_t k = 0; k < w->n; k++) {
        expected += w->regions[k].kept.posted[j];
        size += 3 * w->regions[k].kept.moved[j]; /* made, partly subtracted, added elsewhere */
        updates += w->spec.steps[k];
      }
      w_check(w, fabs((double)w->regions[i].params[j] - expected) <=
                     3 * (double)(updates + 1) * (double)FLT_EPSILON * size);
    }
  }
}

static void test_average(void) {
  for (uint64_t seed = 0; seed < 600; seed++) {
    w_spec spec = w_random_steps(seed % 2 ? "asgd" : "asgd-ga", seed);
    if (spec.nregions == 1) continue;
    spec.options.scale = 1;
    spec.options.average = true;
    spec.optim = w_sgd(0.02, 0);
    world *w = w_finished(&spec);
    check_averaged(w);
    w_close(w);
  }
}

static w_spec some(const char *strategy, size_t nregions, int64_t period) {
  w_spec spec = {.strategy = strategy,
                 .nregions = nregions,
                 .options.period = period,
                 .optim = w_sgd(0.02, 0),
                 .seed = 3};
  for (size_t i = 0; i < nregions; i++) {
    spec.workers[i] = 1;
    spec.samples[i] = 100;
    spec.lag[i] = 2 * W_MS;
  }
  return spec;
}

/* While all train, an update is scaled by its region's weight; after the others have finished, it
   counts in full. */
static void test_shares_of_an_average(void) {
  w_spec spec = some("asgd-ga", 2, 4);
  spec.steps[0] = 40, spec.steps[1] = 200;
  spec.weights[0] = 1, spec.weights[1] = 3;
  spec.options.average = true;
  world *w = w_open(&spec);
  const w_kept *shorter = &w->regions[0].kept, *longer = &w->regions[1].kept;
  w_kept then = {.steps = 0};
  while (!w_all_in(w, GT_PS_COMPLETE)) {
    w_check(w, w_step(w));
    for (size_t j = 0; j < W_PARAMS && w_view(w, 1).steps == 4; j++)
      assert_float_equal((float)longer->posted[j], (float)(0.75 * longer->given[j]), 1e-5);
    if (w_view(w, 1).steps == 100) then = *longer;
  }
  for (size_t j = 0; j < W_PARAMS; j++) {
    assert_float_equal((float)shorter->posted[j], (float)(0.25 * shorter->given[j]), 1e-5);
    assert_float_equal((float)(longer->posted[j] - then.posted[j]),
                       (float)(longer->given[j] - then.given[j]), 1e-5);
  }
  w_close(w);
}

/* ---- outboxes, periods ----------------------------------------------------------------------- */

/* A link far too slow for the traffic: workers wait, queues stay bounded (w_check_bounds), and
   every update arrives once. */
static void test_slow_links_and_an_outbox_of_one(void) {
  static const char *const names[] = {"asgd", "asgd-ga"};
  for (size_t s = 0; s < 2; s++) {
    w_spec spec = some(names[s], 3, 3);
    spec.outbox = spec.window = 1;
    spec.lag[1] = 100 * W_MS;
    spec.local_async = true;
    for (size_t i = 0; i < 3; i++) {
      spec.workers[i] = 2;
      spec.steps[i] = i == 1 ? 31 : 50;
    }
    spec.optim = w_sgd(0.002, 0);
    world *w = w_finished(&spec);
    w_check_conserved(w);
    for (size_t i = 0; i < 3; i++) assert_true(w_view(w, i).wan_wait > 0);
    w_close(w);
  }
}

/* Other regions see a held worker's update before the next gradient is taken: without hold the
   accumulated steps would exceed the period. */
static void test_an_update_is_at_most_a_period(void) {
  w_spec spec = some("asgd-ga", 2, 4);
  spec.steps[0] = spec.steps[1] = 20;
  spec.outbox = spec.window = 1;
  spec.lag[0] = 60 * W_MS;
  world *w = w_open(&spec);
  while (!w_all_in(w, GT_PS_COMPLETE)) {
    w_check(w, w_step(w));
    for (size_t i = 0; i < 2; i++) {
      const w_kept *r = &w->regions[i].kept;
      w_check(w, r->samples[1 - i] == r->applied[1 - i] * 4 * (int64_t)w->spec.batch);
    }
  }
  assert_true(w_view(w, 0).wan_wait > 0);
  w_close(w);
}

/* A run that has drained and is extended by a resume accumulates whole periods again. */
static void test_a_longer_run_accumulates_again(void) {
  w_spec spec = some("asgd-ga", 2, 3);
  spec.steps[0] = 1;
  world *w = w_finished(&spec);
  const w_kept *there = &w->regions[1].kept;
  assert_int_equal(there->applied[0], 1);
  w->spec.steps[0] = 7;
  w_crash_now(w, 0);
  w_run_until(w, GT_PS_COMPLETE);
  assert_int_equal(there->applied[0], 1 + 6 / 3);
  w_close(w);
}

/* ---- members --------------------------------------------------------------------------------- */

/* Reads what the strategy has not sent: the accumulated updates, and the residual. */
static void read_unsent(const w_region *r, float *sum, float *residual) {
  gt_state own = {0};
  must(gt_sync_state(r->ps->sync, (gt_state_direction){.to = &own}));
  must(gt_state_get(&own, "sync/", "sum", GT_TYPE_F32, sum, W_PARAMS));
  must(gt_state_get(&own, "sync/broadcast/", "residual", GT_TYPE_F32, residual, W_PARAMS));
  gt_state_close(&own);
}

/* A member that lacks the model gets it without the updates that it still gets as messages, and
   drops its own ones. */
static void test_a_model_without_unsent_updates(void) {
  w_spec spec = some("asgd-ga", 2, 3);
  spec.steps[0] = spec.steps[1] = 8;
  spec.codec = w_codec(GT_CODEC_TOPK, 0.25);
  world *w = w_open(&spec);
  float model[W_PARAMS], sum[W_PARAMS], residual[W_PARAMS];
  double sums = 0, residuals = 0;
  while (sums == 0 || residuals == 0) {
    const w_region *r = &w->regions[0];
    gt_state common = {0};
    w_check(w, w_step(w) && !w_all_in(w, GT_PS_COMPLETE));
    read_unsent(r, sum, residual);
    must(gt_sync_common(r->ps->sync, 0, (gt_state_direction){.to = &common}));
    must(gt_state_get(&common, "model/", "params", GT_TYPE_F32, model, W_PARAMS));
    gt_state_close(&common);
    sums = residuals = 0;
    for (size_t j = 0; j < W_PARAMS; j++) {
      const double expected = (double)r->params[j] - (double)sum[j] - (double)residual[j];
      w_check(w, fabs((double)model[j] - expected) < 1e-5);
      sums += fabs((double)sum[j]);
      residuals += fabs((double)residual[j]);
    }
  }
  gt_state common = {0};
  must(gt_sync_common(w->regions[1].ps->sync, 0, (gt_state_direction){.to = &common}));
  must(gt_sync_common(w->regions[0].ps->sync, 0, (gt_state_direction){.from = &common}));
  gt_state_close(&common);
  read_unsent(&w->regions[0], sum, residual);
  for (size_t j = 0; j < W_PARAMS; j++) w_check(w, sum[j] == 0 && residual[j] == 0);
  w_close(w);
}

TESTS(test_asgd, test_asgd_ga, test_average, test_shares_of_an_average,
      test_slow_links_and_an_outbox_of_one, test_an_update_is_at_most_a_period,
      test_a_longer_run_accumulates_again, test_a_model_without_unsent_updates)
