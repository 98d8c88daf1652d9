/* The figures of a run, from the results of its regions. */
#include "tests.h"
#include "internal.h"

static void test_figures(void) {
  static const gt_region_result regions[4] = {
      {.workers = 1,
       .steps = 10,
       .wall_s = 10,
       .compute_s = 4,
       .wan_wait_s = 1,
       .local_wait_s = 3,
       .idle_s = 2},
      {.workers = 2, .steps = 40, .wall_s = 8, .compute_s = 6, .wan_wait_s = 2},
      {.workers = 1, .steps = 0, .wall_s = 5, .compute_s = 5},
      {.workers = 0, .steps = 0, .wall_s = 10}, /* it only aggregates */
  };
  gt_figures f = gt_figures_of(16, regions, 4, 640, 1e6, NAN);
  assert_true(f.wall_s == 16 && f.step_s == 0.8 && f.samples_per_s == 40 && f.wan_bytes == 1e6 &&
              isnan(f.cost));
  assert_true(fabs(f.waiting - 0.35 / 3) < 1e-15);
}

TESTS(test_figures)
