/* The name of a rank before the map exists: with its own region if known, else that of its
   block. */
#include "tests.h"
#include "internal.h"

static const gt_region_plan plan[] = {{.name = "eu", .ranks = 2}, {.name = "us", .ranks = 3}};

static void assert_named(int region, const char *host, int number, const gt_region_plan *of,
                         const char *expected) {
  gt_reach_rank rank = {.region = region};
  char name[160];
  snprintf(rank.host, sizeof rank.host, "%s", host);
  gt_reach_name(name, sizeof name, &rank, number, of, of ? 2 : 0);
  assert_string_equal(name, expected);
}

static void test_a_rank_says_its_region(void) {
  assert_named(0, "hostb", 4, plan, "region eu (rank 4 on hostb)");
  assert_named(1, "", 0, plan, "region us (rank 0)");
}

static void test_else_blocks_of_ranks_say_it(void) {
  assert_named(-1, "a", 1, plan, "region eu (rank 1 on a)");
  assert_named(-1, "a", 2, plan, "region us (rank 2 on a)");
  assert_named(-1, "a", 4, plan, "region us (rank 4 on a)");
}

static void test_else_there_is_none(void) {
  assert_named(-1, "a", 5, plan, "rank 5 on a");
  assert_named(2, "a", 1, plan, "rank 1 on a");
  assert_named(1, "a", 1, NULL, "rank 1 on a");
}

TESTS(test_a_rank_says_its_region, test_else_blocks_of_ranks_say_it, test_else_there_is_none)
