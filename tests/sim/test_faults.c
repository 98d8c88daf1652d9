/* Laws of runs with faults: every run ends, every loss has an outcome, and a run repeats to the
   nanosecond; losses cost what they must, and no goodput exceeds the share of time in which regions
   run. */
#include "cases.h"
#include "tests.h"
#include "geotrain/job_faults.h"
#include "geotrain/sim.h"

#define REGIONS 5

typedef struct {
  gt_sim_totals totals;
  gt_fault_result faults;
  gt_region_result regions[REGIONS];
  size_t n;
} outcome;

static gt_job *parse(const char *text) {
  gt_job *job = NULL;
  if (gt_job_parse(&job, "test", text) != GT_OK) fail_msg("%s", gt_error_text());
  return job;
}

static outcome run_job(const gt_job *job) {
  static const int64_t samples[] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  outcome o = {.n = job->nregions};
  assert_int_equal(gt_links_create(&links, job), GT_OK);
  const gt_sim_spec spec = {
      .job = job, .links = links, .parameters = 1000, .buffers = 10, .samples = samples};
  if (gt_sim_run(&sim, &spec) != GT_OK) fail_msg("%s", gt_error_text());
  gt_sim_get_totals(sim, &o.totals);
  o.faults = gt_sim_faults_of(sim);
  for (size_t r = 0; r < o.n && r < REGIONS; r++) gt_sim_region(sim, r, &o.regions[r]);
  gt_sim_close(sim);
  gt_links_close(links);
  return o;
}

/* steps: of each region, of 100 ms; more: further lines of the job. */
static outcome run(size_t n, const char *sync, int steps, const char *more) {
  char text[4096];
  size_t at = (size_t)snprintf(
      text, sizeof text,
      "name: law\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
      "train: {until: {steps: %d}, batch: 10, optimizer: {name: sgd, lr: 0.1}, eval_every: "
      "{epochs: 0}}\nsync: {%s}\ncompute: {step: 100 ms}\nwan: {default: {bandwidth: 100 Mbit/s, "
      "latency: 20 ms}}\n%s\nregions:\n",
      steps, sync, more);
  for (size_t r = 0; r < n; r++)
    at += (size_t)snprintf(text + at, sizeof text - at, "  - {name: %c, ranks: 2, samples: 1000}\n",
                           (char)('a' + r));
  gt_job *job = parse(text);
  const outcome o = run_job(job);
  gt_job_close(job);
  return o;
}

static int64_t outcomes(const gt_fault_result *f) {
  return f->returned + f->resumed + f->again + f->refused + f->away;
}

/* ---- one loss -------------------------------------------------------------------------------- */

#define PATIENCE "limits: {wan_patience: 10 s}\ncheckpoint: {every: {steps: 100}}\n"
#define LOSS     "faults: [{region: b, lost: 45 s, back: 75 s}]\n"

/* One loss: with stop, all regions lose the steps since the round at 40 s, and wait until the
   region is back; with continue, the others continue after the patience. */
static void test_one_loss(void) {
  if (getenv("SEED")) return;
  static const char *const strategies[] = {"ssgd", "sma, period: 8", "asgd", "asgd-ga, period: 8",
                                           "ama, period: 8"};
  for (size_t i = 0; i < 5; i++) {
    char sync[64], stop[96], on[96];
    snprintf(sync, sizeof sync, "strategy: %s", strategies[i]);
    snprintf(stop, sizeof stop, "%s, on_loss: stop", sync);
    snprintf(on, sizeof on, "%s, on_loss: continue", sync);
    const outcome calm = run(3, sync, 1000, PATIENCE), ended = run(3, stop, 1000, PATIENCE LOSS),
                  went_on = run(3, on, 1000, PATIENCE LOSS);
    assert_int_equal(ended.faults.losses, 1);
    assert_int_equal(ended.faults.resumed, 1);
    assert_int_equal(ended.faults.resumes, 1);
    assert_int_equal(went_on.faults.losses, 1);
    assert_int_equal(went_on.faults.returned, 1);
    assert_int_equal(went_on.faults.epochs, 2);
    assert_int_equal(ended.totals.samples, calm.totals.samples);
    assert_int_equal(went_on.totals.samples, calm.totals.samples);
    /* the time until it is back, and the steps since the last round */
    const double lost_s = ended.totals.train_s - calm.totals.train_s,
                 more_s = went_on.totals.train_s - calm.totals.train_s;
    assert_true(lost_s > 30 && lost_s < 30 + 1.3 * 10.2);
    assert_true(more_s > 0 && more_s < lost_s + 10);
    assert_true(fabs(went_on.faults.away_s - 30) < 1e-6);
    assert_true(ended.faults.repeated > went_on.faults.repeated);
    assert_true(fabs(ended.faults.away_s - (30 + 2 * 20)) < 1e-6);
  }
}

/* A region that returns continues from what the group has of it: it repeats the steps since its
   last contribution alone.  b makes a step each 100 ms and contributes at each eighth; it returns
   within a period of the others. */
static void test_position(void) {
  if (getenv("SEED")) return;
#define TWICE                                                                                      \
  "faults: [{region: b, lost: 45 s, back: 75 s}, {region: b, lost: 83 s, back: 90 s}, {region: b," \
  " lost: 98 s, back: 103 s}]\n"
  static const char *const strategies[] = {"ssgd", "sma, period: 8", "sma, period: 8, fragments: 2",
                                           "sma, period: 8, delay: 2"};
  static const int64_t most[] = {2, 8, 5, 8};
  for (size_t i = 0; i < 4; i++) {
    char on[96];
    snprintf(on, sizeof on, "strategy: %s, on_loss: continue", strategies[i]);
    const outcome o = run(3, on, 1000, PATIENCE TWICE);
    assert_int_equal(o.faults.losses, 3);
    assert_int_equal(o.faults.returned, 3);
    assert_int_equal(o.totals.samples, 3 * 1000 * 10);
    printf("%s: %lld steps repeated\n", strategies[i], (long long)o.faults.repeated / 10);
    assert_in_range(o.faults.repeated / 10, 0, 3 * most[i]);
  }
}

/* A run whose region does not return ends; without it, the others continue if they are a
   majority. */
static void test_no_return(void) {
  if (getenv("SEED")) return;
#define GONE "faults: [{region: b, lost: 45 s}]\n"
  outcome o = run(3, "strategy: sma, on_loss: stop", 1000, PATIENCE GONE);
  assert_int_equal(o.totals.code, GT_ERR_LOST);
  assert_true(fabs(o.totals.virtual_s - 55) < 1e-6);
  assert_int_equal(o.faults.away, 1);
  assert_int_equal(o.totals.samples % (3 * 100 * 10), 0); /* those of the last round */
  o = run(3, "strategy: sma, on_loss: continue", 1000, PATIENCE GONE);
  assert_int_equal(o.totals.code, GT_OK);
  assert_int_equal(o.faults.away, 1);
  assert_int_equal(o.faults.epochs, 1);
  o = run(2, "strategy: sma, on_loss: continue", 1000, PATIENCE GONE);
  assert_int_equal(o.totals.code, GT_STOPPED);
  assert_int_equal(o.faults.away, 1);
  o = run(2, "strategy: sma, on_loss: continue, tie: a", 1000, PATIENCE GONE);
  assert_int_equal(o.totals.code, GT_OK);
  assert_int_equal(o.totals.samples, 1000 * 10 + o.regions[1].samples);
}

/* The loss of a coordinator is that of the first region. */
static void test_coordinator(void) {
  if (getenv("SEED")) return;
  const outcome a = run(3, "strategy: sma, on_loss: continue", 600,
                        PATIENCE "faults: [{coordinator: 20 s, for: 15 s}]\n"),
                b = run(3, "strategy: sma, on_loss: continue", 600,
                        PATIENCE "faults: [{region: a, lost: 20 s, back: 35 s}]\n");
  assert_memory_equal(&a.totals, &b.totals, sizeof a.totals);
  assert_memory_equal(&a.faults, &b.faults, sizeof a.faults);
  assert_int_equal(a.faults.returned, 1);
}

/* A cut that heals within the patience delays; a longer one excludes one of the two regions, which
   returns. */
static void test_cuts(void) {
  if (getenv("SEED")) return;
  static const char *const on = "strategy: sma, period: 8, on_loss: continue";
  const outcome calm = run(3, on, 600, PATIENCE),
                brief = run(3, on, 600, PATIENCE "faults: [{link: [a, c], cut: 20 s, for: 9 s}]\n"),
                large =
                    run(3, on, 600, PATIENCE "faults: [{link: [a, c], cut: 20 s, for: 25 s}]\n"),
                ended = run(3, "strategy: sma, period: 8", 600,
                            PATIENCE "faults: [{link: [a, c], cut: 20 s, for: 25 s}]\n"),
                halves =
                    run(2, on, 600, PATIENCE "faults: [{link: [a, b], cut: 20 s, for: 25 s}]\n");
  assert_int_equal(brief.faults.losses, 0);
  assert_int_equal(brief.totals.messages, calm.totals.messages);
  assert_true(fabs(brief.totals.train_s - calm.totals.train_s - 9) < 1);
  assert_int_equal(large.faults.losses, 1);
  assert_int_equal(large.faults.ended, 1);
  assert_int_equal(large.faults.returned, 1);
  assert_int_equal(large.totals.samples, calm.totals.samples);
  assert_int_equal(ended.faults.losses, 0);
  assert_int_equal(ended.faults.resumes, 1);
  /* neither half may continue, and each would take the other in */
  assert_int_equal(halves.faults.ended, 2);
  assert_int_equal(halves.totals.code, GT_OK);
  assert_int_equal(outcomes(&halves.faults), halves.faults.losses);
}

/* Two members that have lost each other both propose the region that returns: it goes with one of
   them, and the other one is excluded. */
static void test_rivals(void) {
  if (getenv("SEED")) return;
  const outcome o =
      run(3, "strategy: ssgd, topology: ring, on_loss: continue", 600,
          "limits: {wan_patience: 8 s}\nfaults: [{link: [b, c], cut: 24 s, for: 21 s}, "
          "{coordinator: 17 s, for: 7 s}]\n");
  assert_int_equal(o.faults.losses, 2);
  assert_int_equal(o.faults.ended, 1);
  assert_int_equal(o.faults.returned, 2);
  assert_int_equal(o.totals.code, GT_OK);
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Appends random faults.  Cuts follow one another, since those of one link may not overlap. */
static void add_faults(char *text, size_t size, gt_rng *rng, size_t n) {
  const size_t entries = 1 + (size_t)gt_rng_below(rng, 4);
  size_t at = (size_t)snprintf(text, size, "faults:\n");
  int whole = 0; /* when the last cut ends */
  for (size_t i = 0; i < entries; i++) {
    const size_t a = (size_t)gt_rng_below(rng, n),
                 b = (a + 1 + (size_t)gt_rng_below(rng, n - 1)) % n;
    const int when = (int)gt_rng_below(rng, 120), length = 1 + (int)gt_rng_below(rng, 60);
    switch (gt_rng_below(rng, 5)) {
    case 0:
      at += (size_t)snprintf(text + at, size - at, "  - {region: %c, lost: %d s, back: %d s}\n",
                             (char)('a' + a), when, when + length);
      break;
    case 1:
      whole = (when > whole ? when : whole) + length;
      at += (size_t)snprintf(text + at, size - at, "  - {link: [%c, %c], cut: %d s, for: %d s}\n",
                             (char)('a' + a), (char)('a' + b), whole - length, length);
      break;
    case 2:
      at += (size_t)snprintf(text + at, size - at, "  - {coordinator: %d s, for: %d s}\n", when,
                             length);
      break;
    case 3:
      at += (size_t)snprintf(text + at, size - at, "  - {region: %c, lost: %d s}\n",
                             (char)('a' + a), when);
      break;
    default:
      at += (size_t)snprintf(text + at, size - at, "  - {mtbf: %d s, mttr: %d s}\n",
                             40 + (int)gt_rng_below(rng, 200), length);
    }
  }
}

static void random_run(uint64_t seed, gt_fault_result *sum) {
  static const char *const strategies[] = {"ssgd", "sma", "asgd", "asgd-ga", "ama"},
                           *const topologies[] = {"mesh", "hub", "tree", "ring"};
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 21, 0);
  const size_t n = 2 + (size_t)gt_rng_below(&rng, REGIONS - 1), strategy = seed % 5;
  const char *topology = topologies[gt_rng_below(&rng, strategy < 2 ? 4 : 3)];
  char sync[160], more[1024], faults[512];
  const bool tie = gt_rng_below(&rng, 2), on = gt_rng_below(&rng, 4) > 0;
  size_t at = (size_t)snprintf(sync, sizeof sync, "strategy: %s, topology: %s, on_loss: %s%s",
                               strategies[strategy], topology, on ? "continue" : "stop",
                               on && tie ? ", tie: b" : "");
  if (strategy == 1 || strategy > 2) snprintf(sync + at, sizeof sync - at, ", period: 4");
  add_faults(faults, sizeof faults, &rng, n);
  snprintf(more, sizeof more,
           "seed: %llu\nlimits: {wan_patience: %d s}\ncheckpoint: {every: {steps: %d}}\n%s",
           (unsigned long long)seed, 2 + (int)gt_rng_below(&rng, 12),
           20 + (int)gt_rng_below(&rng, 200), faults);
  if (getenv("SEED")) printf("%zu regions, %s\n%s", n, sync, more);
  const outcome first = run(n, sync, 600, more), second = run(n, sync, 600, more);
  if (memcmp(&first.totals, &second.totals, sizeof first.totals) != 0 ||
      memcmp(&first.faults, &second.faults, sizeof first.faults) != 0)
    fail_msg("seed %llu does not repeat", (unsigned long long)seed);
  if (outcomes(&first.faults) != first.faults.losses)
    fail_msg("seed %llu: %lld losses, %lld outcomes", (unsigned long long)seed,
             (long long)first.faults.losses, (long long)outcomes(&first.faults));
  if (first.totals.samples > (int64_t)n * 6000 ||
      (first.totals.code == GT_OK && first.faults.away + first.faults.refused == 0 &&
       first.totals.samples != (int64_t)n * 6000))
    fail_msg("seed %llu: %lld samples", (unsigned long long)seed, (long long)first.totals.samples);
  sum->losses += first.faults.losses;
  sum->returned += first.faults.returned;
  sum->resumed += first.faults.resumed;
  sum->again += first.faults.again;
  sum->refused += first.faults.refused;
  sum->away += first.faults.away;
  sum->ended += first.faults.ended;
  sum->resumes += first.faults.resumes;
}

/* With SEED in the environment: only that run. */
static void test_random(void) {
  const char *only = getenv("SEED");
  gt_fault_result sum = {0};
  const size_t runs = cases(3000, 120);
  for (uint64_t seed = only ? strtoull(only, NULL, 10) : 0; seed < runs; seed++) {
    random_run(seed, &sum);
    if (only) return;
  }
  printf(
      "%lld losses: %lld returned, %lld resumed, %lld again, %lld refused, %lld away; %lld ended, "
      "%lld resumes\n",
      (long long)sum.losses, (long long)sum.returned, (long long)sum.resumed, (long long)sum.again,
      (long long)sum.refused, (long long)sum.away, (long long)sum.ended, (long long)sum.resumes);
  assert_true(sum.returned > 0 && sum.resumed > 0 && sum.again > 0 && sum.refused > 0 &&
              sum.away > 0 && sum.ended > 0);
}

/* Without checkpoints a run of 100 s, whose regions are lost every 2 s, does not end. */
static void test_endless(void) {
  if (getenv("SEED")) return;
  static const int64_t samples[] = {1000, 1000};
  gt_job *job =
      parse("name: law\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
            "train: {until: {steps: 1000}, batch: 10, optimizer: {name: sgd, lr: 0.1}}\n"
            "compute: {step: 100 ms}\nregions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\n"
            "wan: {default: {bandwidth: 100 Mbit/s, latency: 20 ms}}\n"
            "faults: [{mtbf: 2 s, mttr: 1 s}]\n");
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  assert_int_equal(gt_links_create(&links, job), GT_OK);
  const gt_sim_spec spec = {.job = job, .links = links, .parameters = 10, .samples = samples};
  assert_int_equal(gt_sim_run(&sim, &spec), GT_ERR_LIMIT);
  must_contain(gt_error_text(), "fallen back to its beginning 100 times in a row");
  gt_links_close(links);
  gt_job_close(job);
}

/* ---- goodput --------------------------------------------------------------------------------- */

/* No run is better than the share of time in which its regions run, and the random process has its
   means. */
static void test_goodput(void) {
  if (getenv("SEED")) return;
  static const char *const syncs[] = {
      "strategy: sma, period: 16, on_loss: continue", "strategy: ssgd, on_loss: continue",
      "strategy: asgd-ga, period: 16, on_loss: continue", "strategy: ssgd"};
  for (size_t i = 0; i < 4; i += cases(1, 3)) {
    const outcome calm = run(5, syncs[i], 40000, PATIENCE),
                  o = run(5, syncs[i], 40000, PATIENCE "faults: [{mtbf: 600 s, mttr: 60 s}]\n");
    const double up = 1 - o.faults.away_s / (5 * o.totals.train_s),
                 goodput = (double)o.totals.samples / o.totals.train_s /
                           ((double)calm.totals.samples / calm.totals.train_s);
    print_message("%-45s goodput %.3f, regions run %.3f of the time\n", syncs[i], goodput, up);
    assert_true(goodput <= up * 1.001 && goodput > 0.2);
    if (i < 3) assert_true(fabs(up - 600.0 / 660) < 0.04);
  }
}

TESTS(test_one_loss, test_position, test_no_return, test_coordinator, test_cuts, test_rivals,
      test_random, test_endless, test_goodput)
