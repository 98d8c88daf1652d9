/* Plans judged by the simulated bill: billing steps, minimum times, egress that depends on the set; brute force over all sets of random small jobs
   (GEOTRAIN_PLAN_JOBS of them, 25 if it is not set); what is called exact; what the JSON says
   where a figure is not known; sets compared at equal samples. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plan_inside.h"

#define BEGIN                                                                                                                                        \
  "name: test\n"                                                                                                                                     \
  "train: {until: {epochs: 1}, batch: 10, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 0}}\n"                                              \
  "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n"
#define SMALL        "model: {name: dummy, parameters: 7850}\n"
#define STEP_DEVICES "[{type: A, count: 2, power: 5, price: 0.10}, {type: B, count: 2, power: 5, price: 0.11}]"
#define STEP_REGION  ", ranks: auto, ranks_min: 2, samples: 37000, ps_price: 0, devices: " STEP_DEVICES "}\n"
#define ASGD_GA      "sync: {local: async, strategy: asgd-ga, period: 8}\n"

typedef struct {
  char path[64];
  planner_options options;
  planner p;
} plan;

/* Finds the sets of all candidates; the caller closes it. */
static void open_plan_of(plan *t, const char *job, double sets_most) {
  *t = (plan){.path = "/tmp/geotrain-plan-XXXXXX", .options = {.margin = 0.1}};
  int fd = mkstemp(t->path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, job, strlen(job)), strlen(job));
  close(fd);
  t->options.words.path = t->path;
  if (gt_planner_open(&t->p, &t->options) != GT_OK) fail_msg("%s\n%s", gt_error_text(), job);
  if (sets_most >= 0) t->p.sets_most = sets_most;
  for (size_t i = 0; i < t->p.ncandidates; i++)
    if (gt_planner_find(&t->p, &t->p.candidates[i]) != GT_OK) fail_msg("%s\n%s", gt_error_text(), job);
}

static void open_plan(plan *t, const char *job) {
  open_plan_of(t, job, -1);
}

static void close_plan(plan *t) {
  gt_planner_close(&t->p);
  unlink(t->path);
}

static double usd_of(const plan *t) {
  return gt_planner_set(&t->p.candidates[0])->at[PLANNER_EXPECTED].cost.usd;
}

/* ---- bills ------------------------------------------------------------------------------------------------------------------------ */

/* 2 A in each region take more than an hour and are paid for two; 3 devices take less. */
static void test_billing_steps(void **state) {
  (void)state;
  plan t;
  open_plan(&t, BEGIN SMALL ASGD_GA "plan: {billing: 1 h, deadline: 2 h}\nregions:\n  - {name: east" STEP_REGION "  - {name: west" STEP_REGION);
  assert_true(t.p.candidates[0].fits);
  assert_float_equal(usd_of(&t), 0.62, 1e-9);
  assert_true(t.p.candidates[0].exact);
  close_plan(&t);
}

static void test_billing_steps_in_a_budget(void **state) {
  (void)state;
  plan t;
  open_plan(&t, BEGIN SMALL ASGD_GA "plan: {billing: 1 h, budget: 0.35}\nregions:\n  - {name: east" STEP_REGION);
  if (!t.p.candidates[0].fits) fail_msg("refused: %s", t.p.candidates[0].why);
  assert_float_equal(usd_of(&t), 0.31, 1e-9);
  close_plan(&t);
}

/* Four workers a region exchange a quarter of what one sends, and cost as much. */
static void test_egress_depends_on_the_set(void **state) {
  (void)state;
  static const char devices[] = "ranks: auto, samples: 20000, ps_price: 0, devices: [{type: A, count: 4, power: 2, price: 0.001}, "
                                "{type: B, count: 1, power: 2, price: 0.10}]}";
  char job[2048];
  snprintf(job, sizeof job,
           BEGIN "model: {name: dummy, parameters: 11173962}\nsync: {local: sync, strategy: asgd-ga, period: 32}\nplan: {deadline: 4 h}\nregions:\n"
                 "  - {name: london, place: aws:london, %s\n  - {name: sydney, place: aws:sydney, %s\n",
           devices, devices);
  plan t;
  open_plan(&t, job);
  const int64_t *counts = gt_planner_set(&t.p.candidates[0])->counts;
  assert_int_equal(counts[0], 4);
  assert_int_equal(counts[1], 0);
  assert_int_equal(counts[2], 4);
  assert_int_equal(counts[3], 0);
  close_plan(&t);
}

/* ---- brute force ------------------------------------------------------------------------------------------------------------------ */

static int pick(unsigned *seed, int least, int most) {
  return least + rand_r(seed) % (most - least + 1);
}

static int write_region(char *to, size_t size, unsigned *seed, int r, bool placed) {
  static const char *const places[] = {"aws:london", "aws:sydney", "gcp:mumbai"};
  char place[40] = "";
  if (placed) snprintf(place, sizeof place, ", place: %s", places[r]);
  int a = pick(seed, 1, 3), b = pick(seed, 0, 2), least = pick(seed, 1, 2);
  return snprintf(
      to, size,
      "  - {name: r%d, ranks: auto, ranks_min: %d, samples: %d, ps_price: %g%s, devices: [{type: A, count: %d, power: %d, price: %g}, {type: "
      "B, count: %d, power: %d, price: %g}]}\n",
      r, least < a + b ? least : a + b, pick(seed, 200, 2000), 0.01 * pick(seed, 0, 10), place, a, pick(seed, 2, 20), 0.01 * pick(seed, 1, 50), b,
      pick(seed, 2, 20), 0.01 * pick(seed, 1, 50));
}

static void random_job(char *to, size_t size, unsigned seed) {
  static const char *const strategies[] = {"asgd-ga", "sma", "asgd", "ama"}, *const billing[] = {"1 s", "1 min", "10 min"},
                           *const until[] = {"epochs: 1", "samples: 1500", "steps: 60"};
  int goal = pick(&seed, 0, 2);
  bool placed = goal == 2 || pick(&seed, 0, 1); /* a budget needs the price of egress */
  bool large = placed && pick(&seed, 0, 1);
  int at = snprintf(to, size, "name: random\ntrain: {until: {%s}, batch: 10, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 0}}\n",
                    until[pick(&seed, 0, 2)]);
  at += snprintf(to + at, size - (size_t)at, "model: {name: dummy, parameters: %d}\nwan: {default: {bandwidth: %d Mbit/s, latency: 25 ms}}\n",
                 large ? 4000000 : 7850, pick(&seed, 20, 500));
  at += snprintf(to + at, size - (size_t)at, "sync: {local: %s, strategy: %s, period: %d}\n", pick(&seed, 0, 1) ? "sync" : "async",
                 strategies[pick(&seed, 0, 3)], pick(&seed, 1, 16));
  at += snprintf(to + at, size - (size_t)at, "plan: {start: %d s, billing: %s", pick(&seed, 0, 60), billing[pick(&seed, 0, 2)]);
  if (goal == 1) at += snprintf(to + at, size - (size_t)at, ", deadline: %d s", pick(&seed, 60, 900));
  if (goal == 2) at += snprintf(to + at, size - (size_t)at, ", budget: %g", large ? 0.02 * pick(&seed, 1, 100) : 0.001 * pick(&seed, 1, 150));
  at += snprintf(to + at, size - (size_t)at, "}\nregions:\n");
  int regions = pick(&seed, 1, 3);
  for (int r = 0; r < regions; r++) at += write_region(to + at, size - (size_t)at, &seed, r, placed);
}

/* Whether the set holds what the job asks for, and the value that it wants little of. */
static bool holds(const planner *p, const planner_candidate *c, const planner_set *set) {
  const gt_job *job = p->job;
  const planner_outcome *expected = &set->at[PLANNER_EXPECTED], *high = &set->at[PLANNER_HIGH];
  double time_s = fmax(expected->figures.wall_s, high->figures.wall_s), usd = fmax(expected->cost.usd, high->cost.usd);
  if (job->plan.deadline_s > 0) return job->plan.start_s + time_s <= job->plan.deadline_s;
  if (job->plan.budget > 0) return usd <= job->plan.budget;
  return expected->figures.wall_s <= c->everything.at[PLANNER_EXPECTED].figures.wall_s * (1 + PLANNER_TOLERANCE);
}

static double value_of(const planner *p, const planner_set *set) {
  const planner_outcome *expected = &set->at[PLANNER_EXPECTED];
  return p->job->plan.budget > 0 ? expected->figures.wall_s : gt_planner_cost(p, expected);
}

static bool next_counts(const planner *p, int64_t *counts) {
  for (size_t r = 0, i = 0; r < p->job->nregions; r++)
    for (size_t d = 0; d < p->job->regions[r].ndevices; d++, i++) {
      if (counts[i]++ < p->job->regions[r].devices[d].count) return true;
      counts[i] = 0;
    }
  return false;
}

static bool enough(const planner *p, const int64_t *counts) {
  for (size_t r = 0, i = 0; r < p->job->nregions; r++) {
    int64_t sum = 0;
    for (size_t d = 0; d < p->job->regions[r].ndevices; d++) sum += counts[i++];
    if (sum < 1 || sum < p->job->regions[r].ranks_min) return false;
  }
  return true;
}

/* The least value of all sets that hold; INFINITY: none does. */
static double brute_force(const planner *p, const planner_candidate *c) {
  double best = INFINITY;
  int64_t *at = GT_NEW_ARRAY(int64_t, p->ncounts);
  while (next_counts(p, at)) {
    if (!enough(p, at)) continue;
    planner_set set = {.counts = GT_NEW_ARRAY(int64_t, p->ncounts)};
    memcpy(set.counts, at, p->ncounts * sizeof *at);
    for (planner_case k = PLANNER_EXPECTED; k <= PLANNER_HIGH; k++) assert_int_equal(gt_planner_simulate(p, c, &set, k), GT_OK);
    if (holds(p, c, &set)) best = fmin(best, value_of(p, &set));
    gt_planner_set_close(&set);
  }
  gt_free(at);
  return best;
}

typedef struct {
  int jobs, refused, dearer, none, proven;
  double worst, sum;
} tally;

static void judge_job(tally *t, int seed, double sets_most) {
  char job[4096];
  plan made;
  random_job(job, sizeof job, (unsigned)seed);
  open_plan_of(&made, job, sets_most);
  const planner_candidate *c = &made.p.candidates[0];
  double best = brute_force(&made.p, c), over = c->fits && best < INFINITY ? value_of(&made.p, gt_planner_set(c)) / best - 1 : 0;
  t->jobs++;
  t->proven += c->exact;
  t->none += best == INFINITY;
  if (best < INFINITY && !c->fits) printf("job %d is refused (%s), a set gives %g\n%s", seed, c->why, best, job);
  if (over > 0.01) printf("job %d is dearer by %.2f %% than %g\n%s", seed, 100 * over, best, job);
  t->refused += best < INFINITY && !c->fits;
  t->dearer += over > 0.01;
  t->worst = fmax(t->worst, over);
  t->sum += over;
  close_plan(&made);
}

static tally judge_jobs(int most, double sets_most) {
  const char *wanted = getenv("GEOTRAIN_PLAN_JOBS");
  tally t = {0};
  for (int seed = 1, last = wanted ? atoi(wanted) : most; seed <= last; seed++) judge_job(&t, seed, sets_most);
  printf("%d jobs: %d refused, %d dearer by more than 1 %%; excess at worst %.3f %%, mean %.4f %%; %d without a plan, %d proven\n", t.jobs, t.refused,
         t.dearer, 100 * t.worst, 100 * t.sum / t.jobs, t.none, t.proven);
  return t;
}

static void test_brute_force(void **state) {
  (void)state;
  tally t = judge_jobs(25, -1);
  assert_int_equal(t.refused, 0);
  assert_int_equal(t.dearer, 0);
}

/* As where there are too many sets to go through: from the problem's sets to better ones beside them. */
static void test_brute_force_of_a_climb(void **state) {
  (void)state;
  tally t = judge_jobs(25, 0);
  assert_int_equal(t.proven, 0);
  assert_int_equal(t.refused, 0);
  assert_true(t.dearer * 50 <= t.jobs);
}

/* ---- what is told ----------------------------------------------------------------------------------------------------------------- */

static json_t *json_of(plan *t) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  gt_status status = gt_planner_json(to, &t->p);
  fclose(to);
  if (status != GT_OK) fail_msg("%s", gt_error_text());
  json_t *json = json_loads(text, 0, NULL);
  free(text);
  assert_non_null(json);
  return json;
}

/* The low figure of a run of which only a part was simulated may be 0, and then samples/s is no number. */
static void test_json_keeps_all_candidates(void **state) {
  (void)state;
  plan t;
  open_plan(&t, BEGIN SMALL ASGD_GA "plan: {strategies: [asgd, asgd-ga, sma], periods: [4, 8]}\nregions:\n  - {name: east" STEP_REGION
                                    "  - {name: west" STEP_REGION);
  assert_int_equal(t.p.ncandidates, 5);
  planner_set *set = (planner_set *)gt_planner_set(&t.p.candidates[1]);
  set->at[PLANNER_LOW].figures.samples_per_s = NAN;
  set->at[PLANNER_LOW].figures.step_s = INFINITY;
  json_t *json = json_of(&t), *all = json_object_get(json, "candidates");
  assert_int_equal(json_array_size(all), 5);
  json_t *low = json_object_get(json_object_get(json_array_get(all, 1), "plan"), "low");
  assert_true(json_is_null(json_object_get(low, "samples_per_s")));
  assert_true(json_is_real(json_object_get(low, "wall_s")));
  json_decref(json);
  close_plan(&t);
}

/* What a gap is a share of is what the plan was chosen by, or it is not known. */
static void test_gap_with_a_budget(void **state) {
  (void)state;
  static const char *const regions = "\nregions:\n  - {name: east, place: aws:london, ps_price: 0, ranks: auto, samples: 90000, devices: [{type: A, "
                                     "count: 400, power: 50, price: 1}, {type: B, "
                                     "count: 300, power: 71, price: 1.5}]}\n  - {name: west, place: aws:sydney, ps_price: 0, ranks: auto, samples: "
                                     "70000, devices: [{type: A, count: 400, "
                                     "power: 50, price: 1}, {type: B, count: 300, power: 71, price: 1.5}]}\n";
  char job[2048];
  snprintf(job, sizeof job, BEGIN SMALL "sync: {local: sync, strategy: sma, period: 8}\nplan: {budget: 4}%s", regions);
  plan t;
  open_plan(&t, job);
  json_t *json = json_of(&t), *c = json_array_get(json_object_get(json, "candidates"), 0), *gap = json_object_get(c, "gap");
  bool exact = json_is_true(json_object_get(c, "exact"));
  assert_non_null(gap);
  if (exact ? json_real_value(gap) != 0 : !json_is_null(gap)) fail_msg("exact %d, gap %g", exact, json_real_value(gap));
  json_decref(json);
  close_plan(&t);
}

/* With `local: sync` a step is a batch of every worker: fewer workers make more steps. */
static void test_steps_are_compared_at_equal_samples(void **state) {
  (void)state;
  static const char *const job =
      "name: steps\nmodel: {name: dummy, parameters: 7850}\n"
      "train: {until: {steps: 200}, batch: 10, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 0}}\n"
      "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\nsync: {local: sync, strategy: asgd-ga, period: 8}\nregions:\n"
      "  - {name: a, ranks: auto, samples: 4000, devices: [{type: A, count: 4, power: 5, price: 0.1}]}\n"
      "  - {name: b, ranks: auto, samples: 4000, devices: [{type: A, count: 4, power: 5, price: 0.1}]}\n"
      "plan: {deadline: 1 h}\n";
  plan t;
  open_plan(&t, job);
  const planner_candidate *c = &t.p.candidates[0];
  double all = (double)c->everything.at[PLANNER_EXPECTED].samples, set = (double)gt_planner_set(c)->at[PLANNER_EXPECTED].samples;
  if (fabs(set / all - 1) > 0.01) fail_msg("the set trains on %g samples, everything everywhere on %g", set, all);
  close_plan(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_billing_steps),
      cmocka_unit_test(test_billing_steps_in_a_budget),
      cmocka_unit_test(test_egress_depends_on_the_set),
      cmocka_unit_test(test_brute_force),
      cmocka_unit_test(test_brute_force_of_a_climb),
      cmocka_unit_test(test_json_keeps_all_candidates),
      cmocka_unit_test(test_gap_with_a_budget),
      cmocka_unit_test(test_steps_are_compared_at_equal_samples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
