/* timeout: 300 */
/* sync.topology auto: the way that is chosen takes least of all, in simulation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world_dice.h"

#define SHARE 1e-3 /* by which the choice may take more than the best */

static void assert_least(const char *what, uint64_t seed, double found, double least) {
  if (!(found <= least * (1 + SHARE)))
    fail_msg("seed %llu: %s takes %.9f s, the best one %.9f s", (unsigned long long)seed, what,
             found, least);
}

static void check_all(uint64_t seed, const dice_spec *d) {
  gt_rng rng = gt_rng_make(seed, 0, d->n, 7);
  gt_job *job = dice_throw(&rng, d);
  gt_wiring_choice c;
  wiring_world w;
  dice_best trees = {.seconds = INFINITY}, rings = trees, mesh = trees;
  assert_int_equal(gt_wiring_choose(&c, job, d->parameters, 0), GT_OK);
  assert_int_equal(gt_wiring_world_open(&w, job, d->parameters, 0), GT_OK);
  dice_try(&mesh, &w, GT_TOPOLOGY_MESH, NULL);
  dice_all_trees(&trees, &w);
  if (w.rounds) dice_all_rings(&rings, &w);
  assert_true(c.exact && !c.estimated);
  assert_least("mesh", seed, c.of[GT_TOPOLOGY_MESH].seconds, mesh.seconds);
  const double tree =
      fmin(c.of[GT_TOPOLOGY_HUB].seconds, d->n > 2 ? c.of[GT_TOPOLOGY_TREE].seconds : INFINITY);
  assert_least("hub or tree", seed, tree, trees.seconds);
  if (w.rounds) assert_least("ring", seed, c.of[GT_TOPOLOGY_RING].seconds, rings.seconds);
  assert_least("auto", seed, c.of[c.best].seconds,
               fmin(mesh.seconds, fmin(trees.seconds, rings.seconds)));
  gt_wiring_world_close(&w);
  gt_wiring_choice_close(&c);
  gt_job_close(job);
}

static void check_sizes(bool access, const char *strategy) {
  static const size_t parameters[] = {61706, 700000, 3000000};
  for (uint64_t seed = 0; seed < 60; seed++)
    check_all(seed, &(dice_spec){.n = 2 + seed % 3,
                                 .parameters = parameters[seed % 3],
                                 .access = access,
                                 .strategy = strategy});
}

static void test_least_of_all(void **state) {
  (void)state;
  check_sizes(false, "ssgd");
}

static void test_least_of_all_with_access(void **state) {
  (void)state;
  check_sizes(true, "ssgd");
}

static void test_least_of_all_broadcasts(void **state) {
  (void)state;
  check_sizes(true, "asgd");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_least_of_all),
                                     cmocka_unit_test(test_least_of_all_with_access),
                                     cmocka_unit_test(test_least_of_all_broadcasts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
