/* After ssgd and sma every region has the same parameters, bit for bit: uneven steps, early ends,
   regions without steps. */
#include "world_run.h"

static void check(const w_spec *spec) {
  world *w = w_run(spec);
  bool sma = strcmp(spec->strategy, "sma") == 0;
  for (size_t i = 1; i < spec->nregions; i++) {
    assert_memory_equal(w->regions[0].params, w->regions[i].params, sizeof w->regions[i].params);
    if (sma)
      assert_memory_equal(w->regions[0].buffers, w->regions[i].buffers,
                          sizeof w->regions[i].buffers);
    else
      assert_int_equal(gt_optim_steps(w->regions[0].optim), gt_optim_steps(w->regions[i].optim));
  }
  w_close(w);
}

static void sizes(const char *strategy) {
  static const size_t regions[] = {1, 2, 3, 5};
  static const int64_t steps[][5] = {{9, 9, 9, 9, 9}, {12, 7, 3, 1, 12}, {0, 8, 5, 0, 2},
                                     {5, 0, 0, 0, 0}, {0, 0, 0, 0, 0},   {1, 11, 10, 9, 8}};
  for (size_t r = 0; r < 4; r++) {
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
      for (int64_t period = 1; period <= 5; period++) {
        w_spec spec = {.strategy = strategy,
                       .nregions = regions[r],
                       .period = period,
                       .scale = 1,
                       .outbox = 1,
                       .optim = w_sgd(0.05, 0.9)};
        spec.seed = 100 * s + (uint64_t)period;
        memcpy(spec.steps, steps[s], sizeof steps[s]);
        check(&spec);
      }
    }
  }
}

static void test_ssgd(void) {
  sizes("ssgd");
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = w_random("ssgd", seed);
    check(&spec);
  }
}

static void test_sma(void) {
  sizes("sma");
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = w_random("sma", seed);
    check(&spec);
  }
}

/* Two regions continue while the third has finished and its link from one of them is very slow: its
   inbox holds all it must, and no more. */
static void test_follower_behind_a_slow_link(void) {
  for (size_t outbox = 1; outbox <= 3; outbox++) {
    w_spec spec = {.strategy = "ssgd",
                   .nregions = 3,
                   .steps = {40, 40, 2},
                   .period = 1,
                   .scale = 1,
                   .outbox = outbox,
                   .window = 2,
                   .seed = outbox};
    world *w = w_open(&spec);
    w_begin(w);
    size_t ahead = 0;
    while (w_step(w)) {
      /* Only the link from 1 to 2 is slow. */
      w_link *slow = &w->links[1][2];
      if (slow->depart != GT_NEVER && slow->depart < w->now + 2000)
        slow->depart += w->links[1][2].flying ? 0 : 400;
      size_t gap = w->links[0][2].applied > slow->applied
                       ? (size_t)(w->links[0][2].applied - slow->applied)
                       : 0;
      ahead = gap > ahead ? gap : ahead;
      assert_true(gap <= w->inflight + 1);
      assert_true(w->events < 100000);
    }
    w_assert_finished(w);
    assert_true(ahead > 1);
    assert_memory_equal(w->regions[0].params, w->regions[2].params, sizeof w->regions[0].params);
    w_close(w);
  }
}

/* A follower is settled when it has the same number of rounds from both peers; a region that is
   held is not settled. */
static void test_settled_says_whether_a_message_waits(void) {
  static const char *const names[] = {"ssgd", "sma"};
  for (size_t s = 0; s < 2; s++) {
    w_spec spec = {.strategy = names[s],
                   .nregions = 3,
                   .steps = {9, 9, 0},
                   .period = 1,
                   .scale = 1,
                   .slow = {1, 10, 1},
                   .seed = 50 + s};
    world *w = w_open(&spec);
    w_begin(w);
    int64_t waits = 0, holds = 0;
    while (w_step(w)) {
      bool equal = w->links[0][2].value == w->links[1][2].value;
      assert_int_equal(gt_exchange_settled(w->regions[2].exchange), equal);
      assert_true(gt_sync_drained(w->regions[2].sync));
      waits += !equal;
      for (size_t i = 0; i < 2; i++) {
        if (w->regions[i].held) assert_false(gt_exchange_settled(w->regions[i].exchange));
        holds += w->regions[i].held;
      }
    }
    assert_true(waits > 0 && holds > 0);
    w_assert_finished(w);
    w_close(w);
  }
}

TESTS(test_ssgd, test_sma, test_follower_behind_a_slow_link,
      test_settled_says_whether_a_message_waits)
