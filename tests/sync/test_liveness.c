/* No deadlock under any interleaving, and the expected number of messages: 500 random worlds per
   strategy. */
#include "cases.h"
#include "world_run.h"
#include "../strategies.h"

static int64_t predicted(const w_spec *spec, int64_t steps) {
  if (!strategy_has(spec->strategy, GT_SENDS)) return 0;
  if (!strategy_has(spec->strategy, GT_HAS_PERIOD)) return steps;
  return steps / spec->period + (steps % spec->period != 0);
}

static void assert_counts(const world *w) {
  const w_spec *spec = &w->spec;
  const gt_sync_ops *ops = sync_named(spec->strategy);
  const bool replaces = strategy_replaces(ops), sends = ops->sends != 0;
  for (size_t i = 0; i < spec->nregions; i++) {
    for (size_t k = 0; k < spec->nregions; k++) {
      if (i == k) continue;
      const w_link *link = &w->links[i][k];
      assert_int_equal(link->posted, predicted(spec, spec->steps[i]));
      assert_int_equal(link->delivered + link->replaced, link->posted);
      assert_int_equal(link->duplicates, 0);
      if (!replaces) assert_int_equal(link->replaced, 0);
      if (!link->replaced) assert_int_equal(link->samples, sends ? spec->steps[i] * W_SAMPLES : 0);
    }
  }
}

static void test_random_worlds(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    for (uint64_t seed = 0; seed < cases(500, 150); seed++) {
      w_spec spec = w_random(*name, 1000 + seed);
      world *w = w_run(&spec);
      assert_counts(w);
      w_close(w);
    }
  }
}

/* A simulation has no data: the same messages at the same times. */
static void test_without_data(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    for (uint64_t seed = 0; seed < cases(100, 40); seed++) {
      w_spec spec = w_random(*name, seed);
      world *real = w_run(&spec);
      spec.no_data = true;
      world *empty = w_run(&spec);
      assert_counts(empty);
      assert_int_equal(real->events, empty->events);
      assert_int_equal(real->now, empty->now);
      for (size_t i = 0; i < spec.nregions; i++) {
        assert_int_equal(real->regions[i].holds, empty->regions[i].holds);
        for (size_t k = 0; k < spec.nregions; k++)
          assert_int_equal(real->links[i][k].posted, empty->links[i][k].posted);
      }
      w_close(real);
      w_close(empty);
    }
  }
}

TESTS(test_random_worlds, test_without_data)
