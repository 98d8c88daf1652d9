/* The limits of a set: deadline, budget and bytes by the high figure, the factor by which it
   exceeds them, and the text that names the exceeded one. */
#include "small.h"
#include "internal.h"

/* Expected figures, and high ones larger by a factor. */
static gt_planner_set set_of(double wall_s, double usd, double bytes, double high) {
  gt_planner_set set = {0};
  for (gt_planner_case k = GT_PLANNER_EXPECTED; k <= GT_PLANNER_HIGH; k++) {
    const double times = k == GT_PLANNER_HIGH ? high : 1;
    gt_planner_outcome *o = &set.at[k];
    *o = (gt_planner_outcome){.known = true,
                              .figures = {.wall_s = times * wall_s, .wan_bytes = times * bytes},
                              .cost = {.usd = times * usd}};
  }
  return set;
}

/* over: the factor; says: "" if the set fits, else a part of the text. */
static void assert_limits(const char *more, gt_planner_set set, double over, const char *says) {
  char why[256];
  gt_planner p = {.job = small_job(more)};
  near(gt_planner_over(&p, &set), over);
  const bool fits = gt_planner_fits(&p, &set, false, why, sizeof why);
  assert_int_equal(fits, says[0] == '\0');
  assert_int_equal(fits, over <= 1);
  must_contain(why, says);
  assert_true(!fits || !why[0]);
  gt_job_close(p.job);
}

static void test_what_is_asked_for(void) {
  static const struct {
    const char *more;
    bool asked, limited;
    double allowed_s;
  } all[] = {
      {"", false, false, INFINITY},
      {"plan: {deadline: 100 s, start: 10 s}\n", true, true, 90},
      {"plan: {budget: 2}\n", true, true, INFINITY},
      {"limits: {wan_bytes: 1 GB}\n", false, true, INFINITY},
      /* this limit was written into the job by an earlier plan */
      {"limits: {wan_bytes: 1 GB}\nplan: {predicted: {strategy: sma}}\n", false, false, INFINITY},
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    gt_planner p = {.job = small_job(all[i].more)};
    assert_int_equal(gt_planner_asked(&p), all[i].asked);
    assert_int_equal(gt_planner_limited(&p), all[i].limited);
    assert_true(gt_planner_allowed(p.job) == all[i].allowed_s);
    gt_job_close(p.job);
  }
}

static void test_a_deadline(void) {
  static const char *const job = "plan: {deadline: 100 s, start: 10 s}\n";
  assert_limits(job, set_of(60, 1, 1, 1.5), 1, "");
  assert_limits(job, set_of(60, 1, 1, 1.8), 1.2,
                "plan.deadline is 100 s; the best set takes up to 118.0 s, including the start");
  /* The high figure is at least the expected one. */
  assert_limits(job, set_of(99, 1, 1, 0.5), 1.1, "takes up to 109.0 s");
}

/* No run is short enough if the start alone exceeds the deadline. */
static void test_a_deadline_before_the_first_step(void) {
  assert_limits("plan: {deadline: 100 s, start: 110 s}\n", set_of(5, 1, 1, 2), 21,
                "including the start");
}

static void test_a_budget(void) {
  assert_limits("plan: {budget: 2}\n", set_of(60, 1, 1, 2), 1, "");
  assert_limits("plan: {budget: 2}\n", set_of(60, 1.5, 1, 2), 1.5,
                "plan.budget is 2 USD; the best set costs up to 3 USD");
}

static void test_bytes(void) {
  assert_limits("limits: {wan_bytes: 1 GB}\n", set_of(60, 1, 1e9, 1), 1, "");
  assert_limits("limits: {wan_bytes: 1 GB}\n", set_of(60, 1, 1e9, 1.5), 1.5,
                "limits.wan_bytes is 1000000000 B; 1.5e+09 B cross the WAN");
  assert_limits("limits: {wan_bytes: 1 GB}\nplan: {predicted: {strategy: sma}}\n",
                set_of(60, 1, 1e9, 1.5), 0, "");
}

/* The largest factor counts; the text names the first of deadline, budget and bytes. */
static void test_all_at_once(void) {
  static const char *const job =
      "plan: {deadline: 100 s, start: 0 s, budget: 2}\nlimits: {wan_bytes: 1 GB}\n";
  assert_limits(job, set_of(50, 1, 2e9, 1.5), 3, "limits.wan_bytes");
  assert_limits(job, set_of(50, 2, 2e9, 1.5), 3, "plan.budget");
  assert_limits(job, set_of(80, 2, 2e9, 1.5), 3, "plan.deadline");
}

static void test_who_misses(void) {
  char why[256];
  gt_planner p = {.job = small_job("plan: {budget: 2}\n")};
  const gt_planner_set set = set_of(60, 3, 1, 1);
  assert_false(gt_planner_fits(&p, &set, true, why, sizeof why));
  must_contain(why, "everything everywhere costs up to 3 USD");
  gt_job_close(p.job);
}

TESTS(test_what_is_asked_for, test_a_deadline, test_a_deadline_before_the_first_step, test_a_budget,
      test_bytes, test_all_at_once, test_who_misses)
