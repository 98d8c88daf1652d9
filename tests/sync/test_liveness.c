/* links: ps
   No deadlock under any interleaving, and the expected number of messages: 500 random worlds per
   strategy. */
#include "cases.h"
#include "ps/world.h"
#include "strategies.h"

static int64_t predicted(const w_spec *spec, int64_t steps) {
  const int64_t period = spec->options.period;
  if (!strategy_has(spec->strategy, GT_SENDS)) return 0;
  if (!strategy_has(spec->strategy, GT_HAS_PERIOD)) return steps;
  return steps / period + (steps % period != 0);
}

#define MANY 16 /* places, in which no model is replaced */

static void check_counts(world *w) {
  const w_spec *spec = &w->spec;
  const gt_sync_ops *ops = sync_named(spec->strategy);
  const bool replaces = strategy_replaces(ops) && spec->outbox < MANY;
  w_check(w, w->duplicates == 0);
  for (size_t i = 0; i < w->n; i++) {
    for (size_t k = 0; k < w->n; k++) {
      if (i == k) continue;
      const w_link *link = &w->links[i][k];
      const w_kept *there = &w->regions[k].kept;
      const int64_t expected = predicted(spec, spec->steps[i]),
                    samples = ops->sends ? spec->steps[i] * (int64_t)spec->batch : 0;
      const bool all = link->data_sent == expected && there->samples[i] == samples;
      w_check(w, all || (replaces && link->data_sent < expected));
      w_check(w, there->applied[i] == link->data_sent);
    }
  }
}

static void test_random_worlds(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    for (uint64_t seed = 0; seed < cases(500, 150); seed++) {
      w_spec spec = w_random_steps(*name, 1000 + seed);
      if (seed % 2 && strategy_replaces(sync_named(*name))) spec.outbox = MANY;
      world *w = w_finished(&spec);
      check_counts(w);
      w_check_heard(w);
      w_close(w);
    }
  }
}

/* A simulation has no data: the same messages at the same times. */
static void test_without_data(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    for (uint64_t seed = 0; seed < cases(100, 40); seed++) {
      w_spec spec = w_random_steps(*name, seed);
      world *real = w_finished(&spec);
      spec.no_data = true;
      world *empty = w_finished(&spec);
      check_counts(empty);
      assert_int_equal(real->events, empty->events);
      assert_int_equal(real->now, empty->now);
      for (size_t i = 0; i < spec.nregions; i++)
        assert_int_equal(w_view(real, i).wan_wait, w_view(empty, i).wan_wait);
      w_close(real);
      w_close(empty);
    }
  }
}

TESTS(test_random_worlds, test_without_data)
