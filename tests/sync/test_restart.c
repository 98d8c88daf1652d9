/* The saved state of strategies is sufficient: a restart at any event of a run changes nothing; a
   crash at any event changes no bit of ssgd and sma, and loses or duplicates no update of the
   others. */
#include "cases.h"
#include "world_run.h"

#include <math.h>

static const w_spec specs[] = {
    {.nregions = 3,
     .steps = {8, 5, 0},
     .period = 3,
     .scale = 1,
     .outbox = 1,
     .window = 2,
     .slow = {1, 20, 1},
     .seed = 21},
    {.nregions = 2,
     .steps = {6, 9},
     .period = 2,
     .scale = 0.5,
     .outbox = 1,
     .weights = {2, 1},
     .drain_late = true,
     .seed = 22},
    {.nregions = 4,
     .steps = {3, 7, 7, 6},
     .period = 1,
     .scale = 1,
     .outbox = 2,
     .slow = {1, 1, 30, 1},
     .seed = 23},
    {.nregions = 1, .steps = {7}, .period = 2, .scale = 1, .seed = 24},
};

static world *disturbed(const w_spec *spec, int64_t event, bool crash) {
  world *w = w_open(spec);
  w_begin(w);
  while (w->events < event) assert_true(w_step(w));
  w_restart(w, crash);
  w_run_on(w);
  return w;
}

static void assert_same_models(const world *a, const world *b) {
  for (size_t i = 0; i < a->spec.nregions; i++) {
    assert_memory_equal(a->regions[i].params, b->regions[i].params, sizeof a->regions[i].params);
    assert_memory_equal(a->regions[i].buffers, b->regions[i].buffers, sizeof a->regions[i].buffers);
  }
}

static void test_restart_at_every_event(void) {
  int64_t worlds = 0;
  for (const char *const *name = gt_strategy_names; *name; name++) {
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
      for (size_t variant = 0; variant < 4; variant++) {
        w_spec spec = specs[s];
        spec.strategy = *name;
        spec.workers = variant == 2 ? 2 : 1;
        spec.no_data = variant == 1;
        spec.gradients = spec.halves = variant == 3;
        spec.optim = w_sgd(0.05, 0.9);
        world *quiet = w_run(&spec);
        for (int64_t event = worlds++ % stride(8); event <= quiet->events; event += stride(8)) {
          world *w = disturbed(&spec, event, false);
          assert_same_models(quiet, w);
          assert_int_equal(quiet->events, w->events);
          assert_int_equal(quiet->now, w->now);
          w_close(w);
        }
        w_close(quiet);
      }
    }
  }
}

static void test_crash_at_every_event_of_a_synchronous_run(void) {
  static const char *const names[] = {"ssgd", "sma"};
  int64_t duplicates = 0;
  for (size_t n = 0; n < 2; n++) {
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
      w_spec spec = specs[s];
      spec.strategy = names[n];
      spec.optim = s % 2 ? w_adamw() : w_sgd(0.05, 0.9);
      world *quiet = w_run(&spec);
      for (int64_t event = 0; event <= quiet->events; event++) {
        world *w = disturbed(&spec, event, true);
        assert_same_models(quiet, w);
        for (size_t i = 0; i < spec.nregions; i++) {
          for (size_t k = 0; k < spec.nregions; k++) {
            assert_int_equal(w->links[i][k].delivered, quiet->links[i][k].delivered);
            duplicates += w->links[i][k].duplicates;
          }
        }
        w_close(w);
      }
      w_close(quiet);
    }
  }
  assert_true(duplicates > 0); /* the case did occur */
}

static void test_crash_at_every_event_of_an_asynchronous_run(void) {
  static const char *const names[] = {"asgd", "asgd-ga", "ama"};
  for (size_t n = 0; n < 3; n++) {
    for (size_t s = 0; s < 2 * sizeof specs / sizeof specs[0]; s++) {
      w_spec spec = specs[s / 2];
      spec.strategy = names[n];
      spec.gradients = spec.halves = s % 2;
      spec.optim = w_sgd(0.02, 0);
      world *quiet = w_run(&spec);
      for (int64_t event = (int64_t)n % stride(3); event <= quiet->events; event += stride(3)) {
        world *w = disturbed(&spec, event, true);
        for (size_t i = 0; n < 2 && i < spec.nregions; i++) {
          for (size_t j = 0; j < W_PARAMS; j++) {
            double expected = (double)w_start(j);
            for (size_t k = 0; k < spec.nregions; k++)
              expected += (k == i ? 1 : spec.scale) * w->regions[k].sent[j];
            assert_float_equal(w->regions[i].params[j], expected, 2e-5);
          }
          for (size_t k = 0; k < spec.nregions; k++) {
            if (k != i) assert_int_equal(w->links[i][k].samples, spec.steps[i] * W_SAMPLES);
          }
        }
        w_close(w);
      }
      w_close(quiet);
    }
  }
}

TESTS(test_restart_at_every_event, test_crash_at_every_event_of_a_synchronous_run,
      test_crash_at_every_event_of_an_asynchronous_run)
