/* links: ps
   After ssgd and sma every region has the same parameters, bit for bit, over every topology: uneven
   steps, early ends, regions without steps.  Over a hub, and over a central region with one worker
   in each, they are those of a mesh. */
#include "cases.h"
#include "internal.h"
#include "ps/world.h"

static const char *const names[] = {"ssgd", "sma"};

static void check(const w_spec *spec) {
  world *w = w_finished(spec);
  w_check_identical(w);
  w_close(w);
}

static void test_sizes(void) {
  static const size_t regions[] = {1, 2, 3, 5};
  static const int64_t steps[][5] = {{9, 9, 9, 9, 9}, {12, 7, 3, 1, 12}, {0, 8, 5, 0, 2},
                                     {5, 0, 0, 0, 0}, {0, 0, 0, 0, 0},   {1, 11, 10, 9, 8}};
  for (size_t k = 0; k < 2; k++)
    for (size_t r = 0; r < 4; r++)
      for (size_t s = 0; s < COUNT(steps); s++)
        for (int64_t period = 1; period <= 5; period++) {
          w_spec spec = w_random_steps(names[k], 100 * s + (uint64_t)period);
          spec.nregions = regions[r];
          for (size_t i = 0; i < 5; i++) {
            spec.steps[i] = steps[s][i];
            spec.workers[i] = 1;
            spec.samples[i] = 100;
            spec.weights[i] = 0;
            spec.lag[i] = 2 * W_MS;
          }
          spec.options.period = period;
          spec.local_async = false;
          spec.outbox = 1;
          spec.optim = w_sgd(0.05, 0.9);
          check(&spec);
        }
}

static void test_random_worlds(void) {
  for (uint64_t seed = 0; seed < cases(2000, 800); seed++) {
    w_spec spec = w_random_steps(names[seed % 2], seed);
    w_place(&spec);
    check(&spec);
  }
}

static void one_worker(w_spec *spec) {
  for (size_t i = 0; i < spec->nregions; i++) spec->workers[i] = 1;
  spec->local_async = false;
}

static void test_the_bits_of_a_mesh(void) {
  static const gt_topology topologies[] = {GT_TOPOLOGY_HUB, GT_TOPOLOGY_CENTRAL};
  for (uint64_t seed = 0; seed < cases(600, 200); seed++) {
    w_spec spec = w_random_steps(names[seed % 2], seed);
    one_worker(&spec);
    world *mesh = w_finished(&spec);
    w_place_over(&spec, topologies[seed / 2 % 2]);
    world *w = w_finished(&spec);
    w_check_same(w, mesh);
    for (size_t i = 0; i < w->n && seed % 2 == 0; i++)
      assert_int_equal(gt_optim_steps(mesh->regions[i].optim), gt_optim_steps(w->regions[i].optim));
    w_close(mesh);
    w_close(w);
  }
}

/* sma's means differ between topologies only by rounding. */
static void test_means_are_those_of_a_mesh(void) {
  for (uint64_t seed = 0; seed < cases(300, 100); seed++) {
    w_spec spec = w_random_steps("sma", seed);
    one_worker(&spec);
    spec.optim = w_sgd(0.05, 0);
    world *mesh = w_finished(&spec);
    w_place(&spec);
    world *w = w_finished(&spec);
    for (size_t i = 0; i < spec.nregions; i++)
      for (size_t j = 0; j < W_PARAMS; j++)
        assert_float_equal(mesh->regions[i].params[j], w->regions[i].params[j], 1e-4);
    w_close(mesh);
    w_close(w);
  }
}

static w_spec three(const char *strategy, uint64_t seed) {
  return (w_spec){.strategy = strategy,
                  .nregions = 3,
                  .workers = {1, 1, 1},
                  .samples = {100, 100, 100},
                  .lag = {2 * W_MS, 2 * W_MS, 2 * W_MS},
                  .seed = seed};
}

/* Two regions continue while the third has finished and its link from one of them is very slow: its
   inbox holds all it must, and no more. */
static void test_follower_behind_a_slow_link(void) {
  for (size_t outbox = 1; outbox <= 3; outbox++) {
    w_spec spec = three("ssgd", outbox);
    spec.steps[0] = spec.steps[1] = 40, spec.steps[2] = 2;
    spec.outbox = outbox;
    world *w = w_open(&spec);
    const int64_t *applied = w->regions[2].kept.applied;
    int64_t ahead = 0;
    w->links[1][2].delay[1] = 100 * W_MS;
    while (!w_all_in(w, GT_PS_COMPLETE)) {
      w_check(w, w_step(w) && w->events < 100000);
      const int64_t gap = applied[0] - applied[1];
      ahead = gap > ahead ? gap : ahead;
      w_check(w, gap <= (int64_t)(outbox + w->spec.window) + 1);
    }
    assert_true(ahead > 1);
    w_check_identical(w);
    w_close(w);
  }
}

/* A follower is settled when it has the same number of rounds from both peers; a region that is
   held is not settled. */
static void test_settled_says_whether_a_message_waits(void) {
  for (size_t s = 0; s < 2; s++) {
    w_spec spec = three(names[s], 50 + s);
    spec.steps[0] = spec.steps[1] = 9;
    spec.lag[1] = 20 * W_MS;
    world *w = w_open(&spec);
    const int64_t *rounds = w->regions[2].kept.applied_value;
    int64_t waits = 0, holds = 0;
    while (w_step(w) && !w_all_in(w, GT_PS_COMPLETE)) {
      const bool equal = rounds[0] == rounds[1], follows = w_view(w, 2).phase == GT_PS_FOLLOWING;
      if (follows) w_check(w, gt_exchange_settled(w->regions[2].ps->exchange) == equal);
      if (follows) w_check(w, gt_sync_drained(w->regions[2].ps->sync));
      waits += follows && !equal;
      for (size_t i = 0; i < 2; i++) {
        if (w_view(w, i).held) w_check(w, !gt_exchange_settled(w->regions[i].ps->exchange));
        holds += w_view(w, i).held;
      }
    }
    assert_true(waits > 0 && holds > 0);
    w_close(w);
  }
}

TESTS(test_sizes, test_random_worlds, test_the_bits_of_a_mesh, test_means_are_those_of_a_mesh,
      test_follower_behind_a_slow_link, test_settled_says_whether_a_message_waits)
