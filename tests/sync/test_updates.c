/* asgd and asgd-ga neither lose nor duplicate an update: a region ends at its start plus all
   updates, the remote ones times the scale. */
#include "world_run.h"

#include <float.h>
#include <math.h>

/* Computes the sum in float64 beside the run.  Each of the N updates of all regions is rounded when
   made, when accumulated and when added, each time by half an epsilon of at most M = |start| + the
   sum of all moves. */
static void assert_conserved(const world *w) {
  for (size_t i = 0; i < w->spec.nregions; i++) {
    for (size_t j = 0; j < W_PARAMS; j++) {
      double expected = (double)w_start(j), size = fabs(expected);
      int64_t updates = 0;
      for (size_t k = 0; k < w->spec.nregions; k++) {
        double scale = k == i ? 1 : w->spec.scale;
        expected += scale * w->regions[k].sent[j];
        size += scale * w->regions[k].moved[j];
        updates += w->spec.steps[k];
      }
      double bound = 1.5 * (double)(updates + 1) * (double)FLT_EPSILON * size;
      assert_true(fabs((double)w->regions[i].params[j] - expected) <= bound);
    }
  }
}

/* Checks that with `average` every region ends at its start plus everything posted. */
static void assert_averaged(const world *w) {
  for (size_t i = 0; i < w->spec.nregions; i++) {
    for (size_t j = 0; j < W_PARAMS; j++) {
      double expected = (double)w_start(j), size = fabs(expected);
      int64_t updates = 0;
      for (size_t k = 0; k < w->spec.nregions; k++) {
        expected += w->regions[k].posted[j];
        size += 3 * w->regions[k].moved[j]; /* made, partly subtracted, added elsewhere */
        updates += w->spec.steps[k];
      }
      assert_true(fabs((double)w->regions[i].params[j] - expected) <=
                  3 * (double)(updates + 1) * (double)FLT_EPSILON * size);
    }
  }
}

static void test_average(void) {
  for (uint64_t seed = 0; seed < 600; seed++) {
    w_spec spec = w_random(seed % 2 ? "asgd" : "asgd-ga", seed);
    if (spec.nregions == 1) continue;
    spec.scale = 1;
    spec.average = true;
    spec.optim = w_sgd(0.02, 0);
    world *w = w_run(&spec);
    assert_averaged(w);
    w_close(w);
  }
}

/* While all train, an update is scaled by its region's weight; after the others have finished, it
   counts in full. */
static void test_shares_of_an_average(void) {
  w_spec spec = {.strategy = "asgd-ga",
                 .nregions = 2,
                 .steps = {40, 400},
                 .weights = {1, 3},
                 .period = 4,
                 .scale = 1,
                 .average = true,
                 .seed = 3};
  spec.optim = w_sgd(0.02, 0);
  world *w = w_open(&spec);
  const w_region *longer = &w->regions[1];
  double posted[W_PARAMS] = {0}, sent[W_PARAMS] = {0};
  w_begin(w);
  while (w_step(w)) {
    for (size_t j = 0; j < W_PARAMS && longer->given == 4; j++)
      assert_float_equal((float)longer->posted[j], (float)(0.75 * longer->sent[j]), 1e-5);
    for (size_t j = 0; j < W_PARAMS && longer->given == 200; j++)
      posted[j] = longer->posted[j], sent[j] = longer->sent[j];
  }
  w_assert_finished(w);
  for (size_t j = 0; j < W_PARAMS; j++) {
    assert_float_equal((float)w->regions[0].posted[j], (float)(0.25 * w->regions[0].sent[j]), 1e-5);
    assert_float_equal((float)(longer->posted[j] - posted[j]), (float)(longer->sent[j] - sent[j]),
                       1e-5);
  }
  w_close(w);
}

/* With plain SGD at one rate this holds for gradients, too. */
static void conserve(const char *strategy) {
  for (uint64_t seed = 0; seed < 600; seed++) {
    w_spec spec = w_random(strategy, seed / 2);
    spec.gradients = seed % 2;
    spec.optim = w_sgd(0.02, 0);
    world *w = w_run(&spec);
    assert_conserved(w);
    w_close(w);
  }
}

static void test_asgd(void) {
  conserve("asgd");
}

static void test_asgd_ga(void) {
  conserve("asgd-ga");
}

/* A link far too slow for the traffic: workers wait, queues stay bounded (the world asserts it),
   and every update arrives once. */
static void test_slow_links_and_an_outbox_of_one(void) {
  static const char *const names[] = {"asgd", "asgd-ga"};
  for (size_t s = 0; s < 2; s++) {
    w_spec spec = {.strategy = names[s],
                   .nregions = 3,
                   .steps = {50, 31, 50},
                   .period = 3,
                   .scale = 1,
                   .outbox = 1,
                   .window = 1,
                   .slow = {1, 50, 1}};
    spec.workers = 2;
    spec.optim = w_sgd(0.002, 0);
    spec.seed = 77 + s;
    world *w = w_run(&spec);
    assert_conserved(w);
    for (size_t i = 0; i < 3; i++) assert_true(w->regions[i].holds > 0);
    w_close(w);
  }
}

/* Other regions see a held worker's update before the next gradient is taken: without hold the
   accumulated steps would exceed the period. */
static void test_an_update_is_at_most_a_period(void) {
  w_spec spec = {.strategy = "asgd-ga",
                 .nregions = 2,
                 .steps = {20, 20},
                 .period = 4,
                 .scale = 1,
                 .outbox = 1,
                 .slow = {30, 1},
                 .seed = 4};
  world *w = w_open(&spec);
  w_begin(w);
  while (w_step(w)) {
    for (size_t i = 0; i < 2; i++) {
      const w_link *link = &w->links[i][1 - i];
      for (size_t m = 0; m < link->count; m++)
        assert_int_equal(link->queue[m].head.detail, 4 * W_SAMPLES);
    }
  }
  w_assert_finished(w);
  w_close(w);
}

/* A run that has drained and is extended by a resume accumulates whole periods again. */
static void test_a_longer_run_accumulates_again(void) {
  const w_spec spec = {.strategy = "asgd-ga", .nregions = 2, .period = 3, .scale = 1, .outbox = 4};
  float grads[W_PARAMS] = {1};
  world *w = w_open(&spec);
  gt_sync *sync = w->regions[0].sync;
  gt_sync_on_gradient(sync, 0, gt_vec_of(grads, W_PARAMS), W_SAMPLES);
  gt_sync_on_drain(sync, 0);
  assert_int_equal(w->links[0][1].posted, 1);
  for (int64_t step = 1; step <= 6; step++) {
    gt_sync_on_gradient(sync, 0, gt_vec_of(grads, W_PARAMS), W_SAMPLES);
    assert_int_equal(w->links[0][1].posted, 1 + step / 3);
  }
  w_close(w);
}

TESTS(test_asgd, test_asgd_ga, test_average, test_shares_of_an_average,
      test_slow_links_and_an_outbox_of_one, test_an_update_is_at_most_a_period,
      test_a_longer_run_accumulates_again)
