/* The choice among candidates: the proposed one, the cheapest and the fastest, the message if none
   fits, and the time limit for Slurm. */
#include "small.h"
#include "internal.h"

#define MOST 4

/* A candidate: expected time and cost, and whether it fits. */
typedef struct {
  double wall_s, usd;
  bool fits;
} made;

static char *labels[MOST] = {"first", "second", "third", "fourth"};

typedef struct {
  gt_planner p;
  gt_planner_candidate candidates[MOST];
} plan;

static void open_plan(plan *t, const char *more, const made *from, size_t n) {
  *t = (plan){.p = {.candidates = t->candidates, .ncandidates = n, .prices = {.known = true}}};
  t->p.job = small_job(more);
  for (size_t i = 0; i < n; i++) {
    gt_planner_candidate *c = &t->candidates[i];
    *c = (gt_planner_candidate){.label = labels[i], .fits = from[i].fits};
    c->set.at[GT_PLANNER_EXPECTED] =
        (gt_planner_outcome){.figures = {.wall_s = from[i].wall_s}, .cost = {.usd = from[i].usd}};
    c->set.at[GT_PLANNER_HIGH].figures.wall_s = 1.1 * from[i].wall_s;
    if (!from[i].fits) snprintf(c->why, sizeof c->why, "the %s misses", labels[i]);
  }
}

/* Checks the choice, and the cheapest and the fastest of all. */
static void assert_chosen(const char *more, const made *from, size_t n, size_t choice,
                          size_t cheapest, size_t fastest) {
  plan t;
  open_plan(&t, more, from, n);
  must(gt_planner_choose(&t.p));
  assert_int_equal(t.p.choice, choice);
  assert_int_equal(t.p.cheapest, cheapest);
  assert_int_equal(t.p.fastest, fastest);
  gt_job_close(t.p.job);
}

static const made all_fit[] = {{100, 5, true}, {200, 1, true}, {50, 9, true}};

static void test_the_cheapest(void) {
  assert_chosen("", all_fit, 3, 1, 1, 2);
  assert_chosen("plan: {deadline: 1 h}\n", all_fit, 3, 1, 1, 2);
  assert_chosen("plan: {deadline: 1 h, budget: 10}\n", all_fit, 3, 1, 1, 2);
}

static void test_the_fastest_within_a_budget(void) {
  assert_chosen("plan: {budget: 10}\n", all_fit, 3, 2, 1, 2);
}

/* Cheapest and fastest are taken from all candidates, the choice only from those that fit. */
static void test_only_what_holds_is_chosen(void) {
  static const made some[] = {{100, 5, true}, {200, 1, false}, {50, 9, false}, {300, 7, true}};
  assert_chosen("plan: {deadline: 1 h}\n", some, 4, 0, 1, 2);
  assert_chosen("plan: {budget: 10}\n", some, 4, 0, 1, 2);
}

/* Ties are decided by the other figure, then by bytes on the WAN, then by order. */
static void test_equals(void) {
  static const made equal[] = {{100, 5, true}, {90, 5, true}, {90, 5, true}, {90, 6, true}};
  assert_chosen("", equal, 4, 1, 1, 1);
  assert_chosen("plan: {budget: 10}\n", equal, 4, 1, 1, 1);
}

/* With asgd-ga no region waits, so that periods 4 and 8 often cost and take the same. */
static void test_fewer_bytes(void) {
  static const made equal[] = {{90, 5, true}, {90, 5, true}};
  plan t;
  open_plan(&t, "", equal, 2);
  for (size_t i = 0; i < 2; i++)
    t.candidates[i].set.at[GT_PLANNER_EXPECTED].figures.wan_bytes = 2 - (double)i;
  must(gt_planner_choose(&t.p));
  assert_int_equal(t.p.choice, 1);
  assert_int_equal(t.p.cheapest, 1);
  assert_int_equal(t.p.fastest, 1);
  gt_job_close(t.p.job);
}

/* If everything everywhere is proposed, its figures are used. */
static void test_everything_everywhere(void) {
  plan t;
  open_plan(&t, "", all_fit, 3);
  t.candidates[0].whole = true;
  t.candidates[0].everything = (gt_planner_set){0};
  t.candidates[0].everything.at[GT_PLANNER_EXPECTED] =
      (gt_planner_outcome){.figures = {.wall_s = 10}, .cost = {.usd = 0.5}};
  must(gt_planner_choose(&t.p));
  assert_int_equal(t.p.choice, 0);
  assert_int_equal(t.p.fastest, 0);
  gt_job_close(t.p.job);
}

/* Without prices, machine hours are compared. */
static void test_without_prices(void) {
  plan t;
  open_plan(&t, "", all_fit, 3);
  t.p.prices.known = false;
  for (size_t i = 0; i < 3; i++)
    t.candidates[i].set.at[GT_PLANNER_EXPECTED].cost.machine_hours = i == 2 ? 1 : 2;
  must(gt_planner_choose(&t.p));
  assert_int_equal(t.p.choice, 2);
  gt_job_close(t.p.job);
}

static void assert_refused(const char *more, size_t n, const char *says) {
  static const made none[] = {{100, 5, false}, {200, 1, false}, {50, 9, false}};
  plan t;
  open_plan(&t, more, none, n);
  assert_int_equal(gt_planner_choose(&t.p), GT_ERR_JOB);
  if (strcmp(gt_error_text(), says) != 0)
    fail_msg("\"%s\" instead of \"%s\"", gt_error_text(), says);
  gt_job_close(t.p.job);
}

/* The error gives the reason of the closest candidate. */
static void test_none_holds(void) {
  assert_refused("plan: {deadline: 1 s, start: 0 s}\n", 1,
                 "test: first is not feasible: the first misses");
  assert_refused("plan: {deadline: 1 s, start: 0 s}\n", 3,
                 "test: none of 3 candidates is feasible; the fastest one is "
                 "third: the third misses");
  assert_refused("plan: {budget: 1}\n", 3,
                 "test: none of 3 candidates is feasible; the cheapest one is "
                 "second: the second misses");
}

/* Start, the high figure and the time before the signal, in whole billing steps and minutes. */
static void test_the_time_to_ask_for(void) {
  static const made one[] = {{100, 1, true}};
  static const struct {
    const char *more;
    double needed_s;
  } all[] = {
      {"plan: {start: 10 s, billing: 1 s}\nslurm: {signal_before: 60 s}\n", 180}, /* 3 minutes */
      /* a second more */
      {"plan: {start: 11 s, billing: 1 s}\nslurm: {signal_before: 60 s}\n", 240},
      {"plan: {start: 10 s, billing: 1 h}\nslurm: {signal_before: 60 s}\n", 3600}, /* is billed */
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    plan t;
    open_plan(&t, all[i].more, one, 1);
    must(gt_planner_choose(&t.p));
    assert_true(t.p.slurm_s == all[i].needed_s);
    gt_job_close(t.p.job);
  }
}

TESTS(test_the_cheapest, test_the_fastest_within_a_budget, test_only_what_holds_is_chosen,
      test_equals, test_fewer_bytes, test_everything_everywhere, test_without_prices,
      test_none_holds, test_the_time_to_ask_for)
