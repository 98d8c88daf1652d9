/* A simulated adaptive pipeline over three regions: planned for the actual links, it keeps its
   order; planned for faster links, all regions change it after the same steps to the same one,
   once, and are faster than with the plan; if the number of micro-batches can change, too, they are
   faster still.  Each of several replicas adapts to its own links. */
#include "jobs.h"
#include "tests.h"
#include "cases.h"
#include "geotrain/sim.h"
#include "geotrain/sim_shape.h"

#define REGIONS   4
#define DECISIONS 8

typedef struct {
  int64_t step;
  char choice[64], why[300];
} decision;

/* Decisions of each region, in this test's simulation. */
static decision decisions[REGIONS][DECISIONS];
static size_t ndecisions[REGIONS];

static void decided(const gt_job *job, size_t region, int64_t step, const char *what,
                    const char *choice, const char *why) {
  (void)job;
  assert_string_equal(what, "pipeline.schedule");
  assert_true(ndecisions[region] < DECISIONS);
  decision *d = &decisions[region][ndecisions[region]++];
  d->step = step;
  snprintf(d->choice, sizeof d->choice, "%s", choice);
  snprintf(d->why, sizeof d->why, "%s", why);
}

/* The common settings of the plan and the run. */
typedef struct {
  const char *adapt;
  int micro_batches;
  const char *strategy; /* of two replicas over two regions each; NULL: one over three */
} kind;

/* The link of the second replica has mbit, that of the first the planned rate. */
static gt_job *job_of_replicas(double planned, double mbit, kind k) {
  return job_as(
      "name: law\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 128}\n"
      "data: {path: none.h5}\n"
      "train: {until: {steps: 100}, batch: 48, optimizer: {name: sgd, lr: 0.1}, eval_every: "
      "{epochs: 0}}\n"
      "regions: [{name: a, ranks: 3, samples: 960}, {name: b, ranks: 2}, {name: c, ranks: 3, "
      "samples: 960}, {name: d, ranks: 2}]\n"
      "pipeline: {stages: [{region: a, last: transformer.h.0}, {region: b, last: "
      "transformer.h.2}, {region: a}], copies: [{regions: [c, d]}], micro_batches: %d, "
      "adapt: %s}\nsync: {strategy: %s, period: 4}\n"
      "compute: {step: 4 s}\ncheckpoint: {every: {steps: 30}}\n"
      "wan: {default: {bandwidth: 100 Mbit/s, latency: 15 ms}, links: [{between: [a, b], "
      "bandwidth: %g Mbit/s, latency: 15 ms}, {between: [c, d], bandwidth: %g Mbit/s, latency: 15 "
      "ms}]}\n",
      k.micro_batches, k.adapt, k.strategy, planned, mbit);
}

static gt_job *job_of(double mbit, kind k) {
  return job_as(
      "name: law\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 128}\n"
      "data: {path: none.h5}\n"
      "train: {until: {steps: 100}, batch: 48, optimizer: {name: sgd, lr: 0.1}, eval_every: "
      "{epochs: 0}}\n"
      "regions: [{name: a, ranks: 3, samples: 960}, {name: b, ranks: 3}, {name: c, ranks: 2}]\n"
      "pipeline: {stages: [{region: a, last: transformer.h.0}, {region: b, workers: 2, last: "
      "transformer.h.1}, {region: c, last: transformer.h.2}, {region: a}], micro_batches: %d, "
      "adapt: %s}\n"
      "compute: {step: 4 s}\ncheckpoint: {every: {steps: 30}}\n"
      "wan: {default: {bandwidth: %g Mbit/s, latency: 15 ms}}\n",
      k.micro_batches, k.adapt, mbit);
}

/* Returns the seconds of a run over links of `mbit`, planned for links of `planned`. */
static double run(double planned, double mbit, kind k) {
  gt_job *plan = k.strategy ? job_of_replicas(planned, planned, k) : job_of(planned, k),
         *job = k.strategy ? job_of_replicas(planned, mbit, k) : job_of(mbit, k);
  gt_links *links = NULL;
  gt_sim_shape shape;
  gt_pipe_job **pipes = NULL;
  gt_sim *sim = NULL;
  gt_sim_totals totals;
  memset(ndecisions, 0, sizeof ndecisions);
  must(gt_links_create(&links, job));
  must(gt_sim_shape_of(&shape, plan));
  must(gt_sim_shape_pipes(&pipes, plan, &shape));
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = shape.parameters,
                            .buffers = shape.buffers,
                            .samples = shape.samples,
                            .pipe = pipes[0],
                            .pipes = pipes,
                            .decided = decided};
  must(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, &totals);
  assert_int_equal(totals.samples, gt_job_replicas(job) * 100 * 48);
  gt_sim_close(sim);
  gt_sim_pipes_close(pipes, plan);
  gt_sim_shape_close(&shape);
  gt_links_close(links);
  gt_job_close(plan);
  gt_job_close(job);
  return totals.train_s;
}

static const kind keeps = {"false", 12, NULL}, follows = {"true", 12, NULL};

static void as_planned(void) {
  const double kept = run(20, 20, keeps), followed = run(20, 20, follows);
  for (size_t r = 0; r < REGIONS; r++) assert_int_equal(ndecisions[r], 0);
  if (followed > 1.005 * kept) fail_msg("%.6f s, with the plan %.6f s", followed, kept);
}

static void decide_alike(size_t first, size_t end, size_t n) {
  assert_int_equal(ndecisions[first], n);
  for (size_t r = first + 1; r < end; r++) {
    assert_int_equal(ndecisions[r], n);
    for (size_t i = 0; i < n; i++) {
      assert_int_equal(decisions[r][i].step, decisions[first][i].step);
      assert_string_equal(decisions[r][i].choice, decisions[first][i].choice);
      if (r != first) must_contain(decisions[r][i].why, " has decided so");
    }
  }
}

/* Checks that all regions of one pipeline decide alike. */
static void all_decide_alike(size_t n) {
  decide_alike(0, 3, n);
}

static void slower_than_planned(void) {
  const double kept = run(20, 2.5, keeps), followed = run(20, 2.5, follows);
  all_decide_alike(1);
  must_contain(decisions[0][0].why, "planned were 20.0 Mbit/s and 15.0 ms");
  if (followed > 0.99 * kept) fail_msg("%.6f s, with the plan %.6f s", followed, kept);
  assert_true(!all_cases() || run(20, 2.5, follows) == followed);
}

/* From 4 micro-batches to more, which is better than another order of 4. */
static void more_micro_batches(void) {
  const kind order = {"true", 4, NULL}, number = {"micro_batches", 4, NULL};
  const double ordered = run(20, 2.5, order), followed = run(20, 2.5, number);
  all_decide_alike(1);
  const char *micro_batches = strstr(decisions[0][0].choice, " micro-batches");
  assert_non_null(micro_batches);
  assert_true(micro_batches[-1] != '4' || micro_batches[-2] != ' ');
  if (followed > 0.97 * ordered) fail_msg("%.6f s, with 4 %.6f s", followed, ordered);
  assert_true(!all_cases() || run(20, 2.5, number) == followed);
}

/* The link of the second replica is slower than planned.  The first one's wait for it cannot be
   reduced by another order of its own passes, but a bad number of micro-batches is changed at the
   start, in both.  The second can first take an order that is better over both links, then one for
   the slow link. */
static void one_of_two_replicas(const char *adapt, const char *strategy, int micro_batches) {
  const kind kept = {"false", micro_batches, strategy}, with = {adapt, micro_batches, strategy};
  const double keeps_s = run(20, 2.5, kept), follows_s = run(20, 2.5, with);
  decide_alike(0, 2, strcmp(adapt, "true") == 0 ? 0 : 1);
  assert_in_range(ndecisions[2], 1, 2);
  decide_alike(2, 4, ndecisions[2]);
  must_contain(decisions[2][0].why, "planned were 20.0 Mbit/s and 15.0 ms");
  if (follows_s > 0.99 * keeps_s) fail_msg("%.6f s, with the plan %.6f s", follows_s, keeps_s);
  assert_true(!all_cases() || run(20, 2.5, with) == follows_s);
}

static void replicas(void) {
  static const char *const strategies[] = {"ssgd", "sma", "asgd"};
  for (size_t i = 0; i < 3; i++) {
    if (i != 1 && !all_cases()) continue;
    const kind with = {"true", 12, strategies[i]};
    run(20, 20, with);
    decide_alike(0, REGIONS, 0);
    if (all_cases()) one_of_two_replicas("true", strategies[i], 12);
    one_of_two_replicas("micro_batches", strategies[i], 4);
  }
}

TESTS(as_planned, slower_than_planned, more_micro_batches, replicas)
