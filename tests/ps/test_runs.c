/* Every strategy, local plane and number of regions, with uneven workers and data, over slow and
   fast links: runs end, no batch is lost or duplicated; also if
   some regions only aggregate. */
#include "cases.h"
#include "world.h"

static const size_t regions[] = {1, 2, 3, 5};

typedef void w_law(w_spec *spec);

static void for_all(w_law *law) {
  const size_t seeds = cases(18, 9);
  uint64_t seed = 100;
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int async = 0; async < 2; async++)
      for (size_t r = 0; r < 4; r++)
        for (size_t k = 0; k < seeds; k++) {
          w_spec spec = w_random(*name, async, regions[r], seed++);
          w_place(&spec);
          if (spec.nregions > 1 && k % 3 == 2) w_aggregate(&spec);
          law(&spec);
        }
}

static void epochs(w_spec *spec) {
  spec->until.epochs = 1 + (double)(spec->seed % 2);
  spec->eval_every.epochs = 1;
  spec->no_data = spec->seed % 5 == 0;
  world *w = w_finished(spec);
  w_check_epochs(w, (int64_t)spec->until.epochs);
  if (w_lockstep(spec)) w_check_identical(w);
  w_close(w);
}

static void steps(w_spec *spec) {
  spec->until.steps = 1 + (int64_t)(spec->seed % 13);
  spec->eval_every.steps = 3;
  world *w = w_finished(spec);
  w_check_steps(w, spec->until.steps);
  if (w_lockstep(spec)) w_check_identical(w);
  w_close(w);
}

static void samples(w_spec *spec) {
  spec->until.samples = 30 + (int64_t)(spec->seed % 70);
  world *w = w_finished(spec);
  for (size_t i = 0; i < w->n; i++) {
    int64_t n = w_view(w, i).samples;
    w_check(w, spec->workers[i] == 0 ||
                   (n >= spec->until.samples && n < spec->until.samples + (int64_t)spec->batch));
  }
  if (w_lockstep(spec)) w_check_identical(w);
  w_close(w);
}

static void test_until_epochs(void) {
  for_all(epochs);
}

static void test_until_steps(void) {
  for_all(steps);
}

static void test_until_samples(void) {
  for_all(samples);
}

TESTS(test_until_epochs, test_until_steps, test_until_samples)
