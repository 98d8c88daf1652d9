/* Plans by the simulated bill: billing steps, minimum times, egress that depends on the set; brute
   force over all sets of random small jobs (GEOTRAIN_PLAN_JOBS of each kind, from number
   GEOTRAIN_PLAN_FIRST on); whether `exact` and `gap` are true; the JSON for unknown figures;
   comparison of sets at equal samples. */
#include <jansson.h>

#include "tests.h"
#include "cases.h"
#include "internal.h"

#define BEGIN                                                                                      \
  "name: test\n"                                                                                   \
  "train: {until: {epochs: 1}, batch: 10, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: " \
  "0}}\n"                                                                                          \
  "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n"
#define SMALL "model: {name: dummy, parameters: 7850}\n"
#define STEP_DEVICES                                                                               \
  "[{type: A, count: 2, power: 5, price: 0.10}, {type: B, count: 2, power: 5, price: 0.11}]"
#define STEP_REGION                                                                                \
  ", ranks: auto, ranks_min: 2, samples: 37000, ps_price: 0, devices: " STEP_DEVICES "}\n"
#define ASGD_GA "sync: {local: async, strategy: asgd-ga, period: 8}\n"

typedef struct {
  gt_planner *p;
} plan;

/* Settings that a job file could give only with its own data sets and catalogues. */
typedef struct {
  double sets_most;    /* 0: sets are not enumerated; negative: geotrain's default */
  double min_s;        /* minimum billed time of machines; 0: as given by places */
  size_t test_samples; /* number of test samples of the regions */
  int64_t max_events;  /* per simulation; 0: geotrain's default */
} setting;

/* Finds the sets of all candidates; the caller closes the plan. */
static void open_plan_of(plan *t, const char *job, setting with) {
  const char *path = file_with("job.yaml", job);
  if (gt_planner_open(&t->p, &(gt_planner_options){.job_path = path, .margin = 0.1}) != GT_OK)
    fail_msg("%s\n%s", gt_error_text(), job);
  if (with.sets_most >= 0) t->p->sets_most = with.sets_most;
  if (with.max_events > 0) t->p->max_events = with.max_events;
  for (size_t r = 0; r < t->p->job->nregions; r++)
    t->p->shape.tests[r] = (gt_ps_tests){with.test_samples, r == 0 && with.test_samples > 0, 0};
  for (size_t r = 0; r < t->p->job->nregions && with.min_s > 0; r++)
    t->p->prices.regions[r].min_s = with.min_s;
  for (size_t i = 0; i < t->p->ncandidates; i++)
    if (gt_planner_find(t->p, &t->p->candidates[i]) != GT_OK)
      fail_msg("%s\n%s", gt_error_text(), job);
}

static void open_plan(plan *t, const char *job) {
  open_plan_of(t, job, (setting){.sets_most = -1, .max_events = (int64_t)cases(0, 100000)});
}

static void close_plan(plan *t) {
  gt_planner_close(t->p);
}

static double usd_of(const plan *t) {
  return gt_planner_proposed(&t->p->candidates[0])->at[GT_PLANNER_EXPECTED].cost.usd;
}

/* ---- bills ----------------------------------------------------------------------------------- */

/* 2 A in each region take more than an hour, so two hours are billed; 3 devices take less. */
static void test_billing_steps(void) {
  plan t;
  open_plan(&t, BEGIN SMALL ASGD_GA
            "plan: {billing: 1 h, deadline: 2 h}\nregions:\n  - {name: east" STEP_REGION
            "  - {name: west" STEP_REGION);
  assert_true(t.p->candidates[0].fits);
  assert_float_equal(usd_of(&t), 0.62, 1e-9);
  assert_true(t.p->candidates[0].exact);
  close_plan(&t);
}

static void test_billing_steps_in_a_budget(void) {
  plan t;
  open_plan(&t, BEGIN SMALL ASGD_GA
            "plan: {billing: 1 h, budget: 0.35}\nregions:\n  - {name: east" STEP_REGION);
  if (!t.p->candidates[0].fits) fail_msg("refused: %s", t.p->candidates[0].why);
  assert_float_equal(usd_of(&t), 0.31, 1e-9);
  close_plan(&t);
}

/* Four workers per region send a quarter of the bytes of one, at the same machine cost. */
static void test_egress_depends_on_the_set(void) {
  static const char devices[] = "ranks: auto, samples: 20000, ps_price: 0, devices: [{type: A, "
                                "count: 4, power: 2, price: 0.001}, "
                                "{type: B, count: 1, power: 2, price: 0.10}]}";
  char job[2048];
  snprintf(job, sizeof job,
           BEGIN
           "model: {name: dummy, parameters: 11173962}\nsync: {local: sync, strategy: asgd-ga, "
           "period: 32}\nplan: {deadline: 4 h}\nregions:\n"
           "  - {name: london, place: aws:london, %s\n  - {name: sydney, place: aws:sydney, %s\n",
           devices, devices);
  plan t;
  open_plan(&t, job);
  const int64_t *counts = gt_planner_proposed(&t.p->candidates[0])->counts;
  assert_int_equal(counts[0], 4);
  assert_int_equal(counts[1], 0);
  assert_int_equal(counts[2], 4);
  assert_int_equal(counts[3], 0);
  close_plan(&t);
}

/* ---- random jobs ----------------------------------------------------------------------------- */

typedef struct {
  char text[4096];
  size_t at;
  unsigned seed;
  setting with;
} random_job;

__attribute__((format(printf, 2, 3))) static void put(random_job *job, const char *format, ...) {
  va_list list;
  va_start(list, format);
  job->at += (size_t)vsnprintf(job->text + job->at, sizeof job->text - job->at, format, list);
  va_end(list);
  assert_true(job->at < sizeof job->text);
}

static int pick(random_job *job, int least, int most) {
  return least + rand_r(&job->seed) % (most - least + 1);
}

static const char *pick_of(random_job *job, const char *const *list, int n) {
  return list[pick(job, 0, n - 1)];
}

static void put_place(random_job *job, int r, bool placed) {
  static const char *const places[] = {"aws:london", "aws:sydney", "gcp:mumbai"};
  if (placed) put(job, ", place: %s", places[r]);
}

static void put_devices(random_job *job, const int *counts, int types) {
  put(job, ", devices: [");
  for (int d = 0; d < types; d++)
    put(job, "%s{type: %c, count: %d, power: %d, price: %g}", d ? ", " : "", 'A' + d, counts[d],
        pick(job, 2, 20), 0.01 * pick(job, 1, 50));
  put(job, "]}\n");
}

static void put_region(random_job *job, int r, bool placed) {
  int counts[2] = {pick(job, 1, 3), pick(job, 0, 2)}, all = counts[0] + counts[1],
      least = pick(job, 1, 2);
  put(job, "  - {name: r%d, ranks: auto, ranks_min: %d, samples: %d, ps_price: %g", r,
      least < all ? least : all, pick(job, 200, 2000), 0.01 * pick(job, 0, 10));
  put_place(job, r, placed);
  put_devices(job, counts, 2);
}

/* Up to three regions of up to five devices of two types; billing from 1 s to 10 min; a deadline, a
   budget or neither. */
static void make_job(random_job *job) {
  static const char *const strategies[] = {"asgd-ga", "sma", "asgd", "ama"},
                           *const billing[] = {"1 s", "1 min", "10 min"},
                           *const until[] = {"epochs: 1", "samples: 1500", "steps: 60"},
                           *const local[] = {"sync", "async"};
  int goal = pick(job, 0, 2);
  bool placed = goal == 2 || pick(job, 0, 1); /* a budget needs the price of egress */
  bool large = placed && pick(job, 0, 1);
  put(job,
      "name: random\ntrain: {until: {%s}, batch: 10, optimizer: {name: sgd, lr: 0.02}, eval_every: "
      "{epochs: 0}}\n",
      pick_of(job, until, 3));
  put(job, "model: {name: dummy, parameters: %d}\n", large ? 4000000 : 7850);
  put(job, "wan: {default: {bandwidth: %d Mbit/s, latency: 25 ms}}\n", pick(job, 20, 500));
  put(job, "sync: {local: %s, strategy: %s, period: %d}\n", pick_of(job, local, 2),
      pick_of(job, strategies, 4), pick(job, 1, 16));
  put(job, "plan: {start: %d s, billing: %s", pick(job, 0, 60), pick_of(job, billing, 3));
  if (goal == 1) put(job, ", deadline: %d s", pick(job, 60, 900));
  if (goal == 2)
    put(job, ", budget: %g", large ? 0.02 * pick(job, 1, 100) : 0.001 * pick(job, 1, 150));
  put(job, "}\nregions:\n");
  for (int r = 0, regions = pick(job, 1, 3); r < regions; r++) put_region(job, r, placed);
}

/* sets: number of sets of the regions before this one. */
static void put_wider_region(random_job *job, int r, bool placed, int *sets) {
  int counts[3] = {pick(job, 1, 3), 0, 0}, types = pick(job, 1, 3), all = counts[0];
  if (pick(job, 0, 4) == 0 && r > 0) { /* a region that keeps its ranks */
    put(job,
        "  - {name: r%d, ranks: %d, samples: %d, price: %g, ps_price: %g, compute: {samples_per_s: "
        "%d}",
        r, pick(job, 2, 4), pick(job, 200, 2000), 0.01 * pick(job, 1, 50), 0.01 * pick(job, 0, 10),
        pick(job, 2, 20));
    put_place(job, r, placed);
    put(job, "}\n");
    return;
  }
  *sets *= counts[0] + 1;
  for (int d = 1; d < types; d++) {
    counts[d] = pick(job, 0, 2);
    if (*sets * (counts[d] + 1) > 400) counts[d] = 0;
    *sets *= counts[d] + 1;
    all += counts[d];
  }
  int least = pick(job, 1, all < 3 ? all : 3);
  put(job, "  - {name: r%d, ranks: auto, ranks_min: %d, ", r, least);
  if (pick(job, 0, 2) == 0) put(job, "ranks_max: %d, ", pick(job, least, all));
  put(job, "samples: %d, ps_price: %g", pick(job, 200, 2000), 0.01 * pick(job, 0, 10));
  put_place(job, r, placed);
  put_devices(job, counts, types);
}

/* Three types, fixed regions, ranks_max, billing up to 1 h with a minimum, evaluations, varying
   steps, all strategies, deadline and budget at once. */
static void make_wider_job(random_job *job) {
  static const char *const
      strategies[] = {"asgd-ga", "sma", "asgd", "ama", "ssgd"},
      *const billing[] = {"1 s", "1 min", "10 min", "1 h"},
      *const until[] = {"epochs: 2", "epochs: 1.5", "samples: 1500", "steps: 60"},
      *const local[] = {"sync", "async"}, *const eval[] = {"epochs: 0", "epochs: 1", "steps: 20"};
  int goal = pick(job, 0, 3), sets = 1;
  bool placed = goal >= 2 || pick(job, 0, 1), large = placed && pick(job, 0, 1);
  put(job,
      "name: wider\ntrain: {until: {%s}, batch: %d, optimizer: {name: sgd, lr: 0.02}, eval_every: "
      "{%s}}\n",
      pick_of(job, until, 4), pick(job, 5, 20), pick_of(job, eval, 3));
  put(job, "model: {name: dummy, parameters: %d}\n", large ? 4000000 : 7850);
  put(job, "compute: {variation: %g}\n", pick(job, 0, 4) == 0 ? 0.1 : 0);
  put(job, "wan: {default: {bandwidth: %d Mbit/s, latency: %d ms}}\n", pick(job, 20, 500),
      pick(job, 5, 150));
  put(job, "sync: {local: %s, strategy: %s, period: %d}\n", pick_of(job, local, 2),
      pick_of(job, strategies, 5), pick(job, 1, 16));
  put(job, "plan: {start: %d s, billing: %s", pick(job, 0, 300), pick_of(job, billing, 4));
  if (goal & 1) put(job, ", deadline: %d s", pick(job, 300, 4000));
  if (goal & 2) put(job, ", budget: %g", (large ? 0.03 : 0.006) * pick(job, 1, 150));
  put(job, "}\nregions:\n");
  for (int r = 0, regions = pick(job, 1, 3); r < regions; r++)
    put_wider_region(job, r, placed, &sets);
  job->with.test_samples = pick(job, 0, 1) ? (size_t)pick(job, 100, 2000) : 0;
  job->with.min_s = pick(job, 0, 2) ? 0 : 60 * pick(job, 1, 60);
}

/* ---- brute force ----------------------------------------------------------------------------- */

/* True if the set fits; also computes the quantity to minimise. */
static bool holds(const gt_planner *p, const gt_planner_candidate *c, const gt_planner_set *set) {
  const gt_job *job = p->job;
  const gt_planner_outcome *expected = &set->at[GT_PLANNER_EXPECTED],
                           *high = &set->at[GT_PLANNER_HIGH];
  double time_s = fmax(expected->figures.wall_s, high->figures.wall_s),
         usd = fmax(expected->cost.usd, high->cost.usd);
  if (job->plan.deadline_s > 0 && job->plan.start_s + time_s > job->plan.deadline_s) return false;
  if (job->plan.budget > 0 && usd > job->plan.budget) return false;
  if (job->plan.deadline_s > 0 || job->plan.budget > 0) return true;
  return expected->figures.wall_s <=
         c->everything.at[GT_PLANNER_EXPECTED].figures.wall_s * (1 + GT_PLANNER_TOLERANCE);
}

static double value_of(const gt_planner *p, const gt_planner_set *set) {
  const gt_planner_outcome *expected = &set->at[GT_PLANNER_EXPECTED];
  return p->job->plan.budget > 0 && p->job->plan.deadline_s <= 0 ? expected->figures.wall_s
                                                                 : gt_planner_cost(p, expected);
}

static bool next_counts(const gt_planner *p, int64_t *counts) {
  for (size_t r = 0; r < p->job->nregions; r++)
    for (size_t d = 0; d < p->pools[r].n && !p->pools[r].fixed; d++) {
      int64_t *count = &counts[p->pools[r].first + d];
      if ((*count)++ < p->job->regions[r].devices[d].count) return true;
      *count = 0;
    }
  return false;
}

static bool may_be(const gt_planner *p, const int64_t *counts) {
  for (size_t r = 0; r < p->job->nregions; r++) {
    int64_t sum = gt_planner_ranks(p, r, counts) - 1;
    const gt_job_region *region = &p->job->regions[r];
    if (p->pools[r].fixed) continue;
    if (sum < 1 || sum < region->ranks_min || (region->ranks_max > 0 && sum > region->ranks_max))
      return false;
  }
  return true;
}

/* The least value of all sets that fit; INFINITY: none does. */
static double brute_force(const gt_planner *p, const gt_planner_candidate *c) {
  double best = INFINITY;
  int64_t *at = GT_NEW_ARRAY(int64_t, p->ncounts);
  for (size_t r = 0; r < p->job->nregions; r++)
    if (p->pools[r].fixed) at[p->pools[r].first] = p->job->regions[r].ranks - 1;
  do {
    if (!may_be(p, at)) continue;
    gt_planner_set set = {.counts = GT_NEW_ARRAY(int64_t, p->ncounts)};
    memcpy(set.counts, at, p->ncounts * sizeof *at);
    for (gt_planner_case k = GT_PLANNER_EXPECTED; k <= GT_PLANNER_HIGH; k++)
      must(gt_planner_simulate(p, c, &set, k));
    if (holds(p, c, &set)) best = fmin(best, value_of(p, &set));
    gt_planner_set_close(&set);
  } while (next_counts(p, at));
  gt_free(at);
  return best;
}

typedef struct {
  int jobs, refused, dearer, none, proven, wrong, gaps;
  double worst, sum, gap;
} tally;

/* If `exact`, the plan is the best; and no set is better than `gap` allows. */
static bool is_true(const gt_planner *p, const gt_planner_candidate *c, double best) {
  if (c->exact && !c->fits) return best == INFINITY;
  if (!c->fits) return true;
  if (isnan(c->gap)) return false; /* a set was better than its lower bound */
  return best >= value_of(p, gt_planner_proposed(c)) * (1 - c->gap) * (1 - 1e-6);
}

static void judge_plan(tally *t, const plan *made, double best, int seed, const char *text) {
  const gt_planner_candidate *c = &made->p->candidates[0];
  double over =
      c->fits && best < INFINITY ? value_of(made->p, gt_planner_proposed(c)) / best - 1 : 0;
  bool wrong = !is_true(made->p, c, best);
  t->jobs++;
  t->proven += c->exact;
  t->none += best == INFINITY;
  if (best < INFINITY && !c->fits)
    printf("job %d is refused (%s), a set gives %g\n%s", seed, c->why, best, text);
  if (over > 0.01) printf("job %d is dearer by %.2f %% than %g\n%s", seed, 100 * over, best, text);
  if (wrong)
    printf("job %d: exact %d, gap %g, but the best set gives %g\n%s", seed, c->exact, c->gap, best,
           text);
  t->refused += best < INFINITY && !c->fits;
  t->dearer += over > 0.01;
  t->wrong += wrong;
  t->worst = fmax(t->worst, over);
  t->sum += over;
  if (!c->fits || c->exact || isnan(c->gap)) return;
  t->gaps++;
  t->gap += c->gap;
}

static void print_tally(const char *how, const tally *t) {
  printf("%s: %d jobs: %d refused, %d dearer by more than 1 %%; excess at worst %.3f %%, mean %.4f "
         "%%; %d without a plan, %d proven, mean gap of the "
         "others %.1f %%\n",
         how, t->jobs, t->refused, t->dearer, 100 * t->worst, 100 * t->sum / t->jobs, t->none,
         t->proven, t->gaps ? 100 * t->gap / t->gaps : 0);
}

static void assert_good(const tally *t) {
  assert_int_equal(t->refused, 0);
  assert_int_equal(t->dearer, 0);
  assert_int_equal(t->wrong, 0);
}

/* Both with enumeration, as by default, and without, as for too many sets: from the problem's sets
   to better neighbours. */
static void judge_jobs(void (*make)(random_job *), int most) {
  const char *wanted = getenv("GEOTRAIN_PLAN_JOBS"), *from = getenv("GEOTRAIN_PLAN_FIRST");
  tally all = {0}, climbed = {0};
  int first = from ? atoi(from) : 1;
  for (int seed = first, last = first - 1 + (wanted ? atoi(wanted) : most); seed <= last; seed++) {
    random_job job = {.seed = (unsigned)seed, .with = {.sets_most = -1}};
    plan made;
    make(&job);
    open_plan_of(&made, job.text, job.with);
    double best = brute_force(made.p, &made.p->candidates[0]);
    judge_plan(&all, &made, best, seed, job.text);
    close_plan(&made);
    job.with.sets_most = 0;
    open_plan_of(&made, job.text, job.with);
    judge_plan(&climbed, &made, best, seed, job.text);
    close_plan(&made);
  }
  print_tally("all sets where there are few", &all);
  print_tally("by climbing alone", &climbed);
  assert_good(&all);
  assert_good(&climbed);
}

static void test_brute_force(void) {
  judge_jobs(make_job, (int)cases(15, 2));
}

static void test_brute_force_of_wider_jobs(void) {
  judge_jobs(make_wider_job, (int)cases(15, 4));
}

/* Sets of long runs are compared by forecasts from a smaller part of the run than the plan's
   figures. */
static void test_long_runs(void) {
  const size_t samples = cases(200000, 20000);
  char region[256];
  snprintf(region, sizeof region,
           "ranks: auto, samples: %zu, ps_price: 0.01, devices: [{type: A, count: 2, power: 50, "
           "price: 0.10}, {type: B, count: 2, power: 80, price: 0.17}]}\n",
           samples);
  char job[2048];
  snprintf(job, sizeof job,
           BEGIN SMALL "sync: {local: async, strategy: sma, period: 8}\nplan: {billing: 5 min, "
                       "deadline: 50 min}\nregions:\n"
                       "  - {name: east, %s  - {name: west, %s",
           region, region);
  plan t;
  open_plan_of(&t, job, (setting){.sets_most = -1, .max_events = (int64_t)samples * 4});
  const gt_planner_candidate *c = &t.p->candidates[0];
  assert_true(c->everything.forecast.totals.events > (int64_t)samples / 4);
  tally found = {0};
  judge_plan(&found, &t, brute_force(t.p, c), 0, job);
  assert_good(&found);
  assert_int_equal(found.none, 0);
  close_plan(&t);
}

/* ---- output ---------------------------------------------------------------------------------- */

static json_t *json_of(plan *t) {
  char *text;
  FILE *to = open_text(&text);
  gt_status status = gt_planner_json(to, t->p);
  fclose(to);
  must(status);
  json_t *json = json_loads(text, 0, NULL);
  free(text);
  assert_non_null(json);
  return json;
}

/* The low time of a partly simulated run may be 0; then samples/s is not a number. */
static void test_json_keeps_all_candidates(void) {
  plan t;
  open_plan(&t, BEGIN SMALL ASGD_GA "plan: {strategies: [asgd, asgd-ga, sma], periods: [4, "
                                    "8]}\nregions:\n  - {name: east" STEP_REGION
                                    "  - {name: west" STEP_REGION);
  assert_int_equal(t.p->ncandidates, 5);
  gt_planner_set *set = (gt_planner_set *)gt_planner_proposed(&t.p->candidates[1]);
  set->at[GT_PLANNER_LOW].figures.samples_per_s = NAN;
  set->at[GT_PLANNER_LOW].figures.step_s = INFINITY;
  json_t *json = json_of(&t), *all = json_object_get(json, "candidates");
  assert_int_equal(json_array_size(all), 5);
  json_t *low = json_object_get(json_object_get(json_array_get(all, 1), "plan"), "low");
  assert_true(json_is_null(json_object_get(low, "samples_per_s")));
  assert_true(json_is_real(json_object_get(low, "wall_s")));
  json_decref(json);
  close_plan(&t);
}

/* Returns the choice between float32 and topk, which takes a fraction of the time of an
   exchange. */
static size_t choice_of_codec(const char *factors) {
  char job[2048];
  snprintf(job, sizeof job,
           BEGIN "model: {name: dummy, parameters: 1117396}\n"
                 "sync: {local: sync, strategy: sma, period: 1}\n"
                 "plan: {codecs: [none, topk]%s}\nregions:\n"
                 "  - {name: east, ranks: 2, samples: 300, compute: {samples_per_s: 100}}\n"
                 "  - {name: west, ranks: 2, samples: 300, compute: {samples_per_s: 100}}\n",
           factors);
  plan t;
  open_plan(&t, job);
  assert_int_equal(t.p->ncandidates, 2);
  const gt_planner_candidate *topk = &t.p->candidates[1];
  const gt_figures *exact =
      &gt_planner_proposed(&t.p->candidates[0])->at[GT_PLANNER_EXPECTED].figures;
  assert_true(topk->unproven == !*factors && topk->fits == (*factors != 0));
  assert_true(gt_planner_proposed(topk)->at[GT_PLANNER_EXPECTED].figures.wan_bytes <
              0.2 * exact->wan_bytes);
  must(gt_planner_choose(t.p));
  const size_t choice = t.p->choice;
  assert_int_equal(t.p->fastest, choice == 1 || !*factors);
  json_t *json = json_of(&t),
         *names = json_object_get(json_array_get(json_object_get(json, "candidates"), 1), "codec");
  assert_string_equal(json_string_value(names), "topk");
  json_decref(json);
  close_plan(&t);
  return choice;
}

/* A codec without a factor from a pilot run is shown and not chosen; with one, it competes. */
static void test_codecs(void) {
  assert_int_equal(choice_of_codec(""), 0);
  assert_int_equal(
      choice_of_codec(", samples_factor: [{strategy: sma, codec: topk, factor: 1.25}]"), 1);
  assert_int_equal(choice_of_codec(", samples_factor: [{strategy: sma, codec: topk, factor: 12}]"),
                   0);
}

/* The gap is a share of the quantity that the plan minimises: here the time. */
static void test_gap_with_a_budget(void) {
  char devices[160], job[2048];
  snprintf(devices, sizeof devices,
           "devices: [{type: A, count: %zu, power: 50, price: 1}, {type: B, count: %zu, power: 71, "
           "price: 1.5}]}\n",
           cases(400, 40), cases(300, 30));
  snprintf(job, sizeof job,
           BEGIN SMALL
           "sync: {local: sync, strategy: sma, period: 8}\nplan: {budget: 4}\nregions:\n"
           "  - {name: east, place: aws:london, ps_price: 0, ranks: auto, samples: 90000, %s"
           "  - {name: west, place: aws:sydney, ps_price: 0, ranks: auto, samples: 70000, %s",
           devices, devices);
  plan t;
  open_plan(&t, job);
  json_t *json = json_of(&t), *c = json_array_get(json_object_get(json, "candidates"), 0),
         *gap = json_object_get(c, "gap");
  bool exact = json_is_true(json_object_get(c, "exact"));
  assert_non_null(gap);
  double share = json_real_value(gap);
  if (!json_is_real(gap) || exact || share <= 0 || share >= 1)
    fail_msg("exact %d, gap %g", exact, share);
  json_decref(json);
  close_plan(&t);
}

/* With `local: sync` a step is one batch of every worker: fewer workers make more steps. */
static void test_steps_are_compared_at_equal_samples(void) {
  static const char *const job = "name: steps\nmodel: {name: dummy, parameters: 7850}\n"
                                 "train: {until: {steps: 200}, batch: 10, optimizer: {name: sgd, "
                                 "lr: 0.02}, eval_every: {epochs: 0}}\n"
                                 "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\nsync: "
                                 "{local: sync, strategy: asgd-ga, period: 8}\nregions:\n"
                                 "  - {name: a, ranks: auto, samples: 4000, devices: [{type: A, "
                                 "count: 4, power: 5, price: 0.1}]}\n"
                                 "  - {name: b, ranks: auto, samples: 4000, devices: [{type: A, "
                                 "count: 4, power: 5, price: 0.1}]}\n"
                                 "plan: {deadline: 1 h}\n";
  plan t;
  open_plan(&t, job);
  const gt_planner_candidate *c = &t.p->candidates[0];
  double all = (double)c->everything.at[GT_PLANNER_EXPECTED].samples,
         set = (double)gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED].samples;
  if (fabs(set / all - 1) > 0.01)
    fail_msg("the set trains on %g samples, everything everywhere on %g", set, all);
  close_plan(&t);
}

TESTS(test_billing_steps, test_billing_steps_in_a_budget, test_egress_depends_on_the_set,
      test_brute_force, test_brute_force_of_wider_jobs, test_long_runs,
      test_json_keeps_all_candidates, test_codecs, test_gap_with_a_budget,
      test_steps_are_compared_at_equal_samples)
