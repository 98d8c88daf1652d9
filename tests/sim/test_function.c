/* A function that adds up (wan.store.trigger event), simulated with the messages of a run, against the
   placement's equations of time and cost (gt_plan_place, gt_plan_cost; Phalak et al., section 3):
   four regions with one to three workers, models of 17.8 and 48.9 MB, the function at each of the
   four places (GEOTRAIN_FUNCTION_LIST: prints a line for each). */
#include <stdlib.h>
#include <string.h>

#include "geotrain/plan.h"
#include "geotrain/sim.h"
#include "jobs.h"
#include "tests.h"

#define PLACES  4
#define BATCHES 100
#define POLL_S  0.05
#define START_S 0.1
#define ADD_S   0.4 /* per GB */

/* Upload, download (Mbit/s) and latency (ms) from a place to a store at another. */
static const struct {
  double up, down, ms;
} reach[PLACES][PLACES] = {{{700, 900, 1}, {140, 190, 38}, {90, 120, 68}, {60, 80, 55}},
                           {{150, 180, 38}, {800, 900, 1}, {210, 160, 31}, {70, 75, 93}},
                           {{80, 110, 68}, {200, 170, 31}, {650, 800, 1}, {45, 60, 110}},
                           {{65, 70, 55}, {60, 80, 93}, {50, 55, 110}, {500, 700, 2}}};
static const double step_s[PLACES] = {2.0, 2.4, 1.9, 2.7};

typedef struct {
  gt_plan_split time;
  gt_plan_use use;
  gt_plan_terms cost;
} outcome;

/* ---- the equations --------------------------------------------------------------------------- */

static void fill_links(gt_link_spec *up, gt_link_spec *down) {
  for (size_t a = 0; a < PLACES; a++)
    for (size_t b = 0; b < PLACES; b++) {
      const double s = 1e-3 * reach[a][b].ms;
      up[a * PLACES + b] =
          (gt_link_spec){.bandwidth_bps = 1e6 * reach[a][b].up, .latency_s = s, .back_s = s};
      down[b * PLACES + a] =
          (gt_link_spec){.bandwidth_bps = 1e6 * reach[a][b].down, .latency_s = s, .back_s = s};
    }
}

static const gt_plan_rates rate = {.vm_hour = 0.1,
                                   .function_gb_s = 1.6e-5,
                                   .storage_gb_month = 0.02,
                                   .read = 4e-7,
                                   .write = 5e-6,
                                   .list = 5e-6,
                                   .memory_gb = 2,
                                   .add_s_per_gb = ADD_S};
static const gt_plan_tier tier = {0, 0.09};

/* counted: times and uses of a run instead of those of the equations; NULL: the equations' own. */
static outcome by_equations(size_t bytes, size_t at, size_t each, const outcome *counted) {
  gt_link_spec up[PLACES * PLACES], down[PLACES * PLACES];
  gt_plan_rates rates[PLACES] = {rate, rate, rate, rate};
  gt_plan_tariff tariffs[PLACES * PLACES] = {{0}};
  gt_plan_worker workers[3 * PLACES];
  double vm_s[3 * PLACES];
  outcome o;
  fill_links(up, down);
  for (size_t i = 0; i < PLACES * PLACES; i++)
    if (i / PLACES != i % PLACES) tariffs[i] = (gt_plan_tariff){&tier, 1, 0};
  for (size_t i = 0; i < each * PLACES; i++)
    workers[i] = (gt_plan_worker){i / each, 0, step_s[i / each]};
  const gt_plan_sites sites = {PLACES, rates, tariffs, up, down};
  const gt_plan_placement p = {&sites, workers,       each * PLACES, {at, at}, NULL,
                               0,      (double)bytes, BATCHES,       false};
  o.time = gt_plan_place(&p, &(gt_plan_pace){POLL_S, START_S}, vm_s, &o.use);
  if (counted) o.use.function_s = counted->use.function_s;
  if (counted) o.use.failed_reads = counted->use.failed_reads;
  for (size_t i = 0; i < each * PLACES && counted; i++) vm_s[i] = counted->time.batch_s;
  o.cost = gt_plan_cost(&p, vm_s, &o.use, NULL, 1);
  return o;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Workers of a region share its rates, which are those of as many machines.  An object is whole with
   its header; the function adds up after the last one. */
static gt_job *job_of(size_t bytes, size_t at, size_t each) {
  char text[4096];
  size_t n = 0;
  const double n_add_s = ADD_S * 1e-9 * (double)(bytes * each * PLACES);
#define SAY(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
  SAY("name: f\nmodel: {name: dummy, parameters: %zu}\ndata: {path: x.h5, partition: {shares: [1, "
      "1, "
      "1, 1, 0]}}\ntrain: {until: {steps: %d}, batch: 1, optimizer: {lr: 1}, eval_every: {steps: "
      "0}}\nsync: {strategy: ssgd, central: f}\ncheckpoint: null\nregions:\n",
      bytes / 4, BATCHES);
  for (size_t r = 0; r < PLACES; r++)
    SAY("- {name: r%zu, ranks: %zu, compute: {step: %.17g s}, store: {upload: %.17g Mbit/s, "
        "download: %.17g Mbit/s, latency: %g ms}}\n",
        r, each + 1, step_s[r], (double)each * reach[r][at].up, (double)each * reach[r][at].down,
        reach[r][at].ms);
  SAY("- {name: f, ranks: 1, compute: {encode: %.17g s}, store: {upload: %g Mbit/s, download: %g "
      "Mbit/s, latency: %g ms}}\n",
      n_add_s, reach[at][at].up, reach[at][at].down, reach[at][at].ms);
  SAY("wan: {transport: store, store: {url: \"s3://b/p\", trigger: event, poll: %g s, start: %g "
      "s}}\n",
      POLL_S, START_S);
  assert_true(n < sizeof text);
  return job_as("%s", text);
}

/* Requests of a mini-batch: n + 1 writes, n lists, 2 n reads besides those in vain. */
static void check_requests(const gt_sim *sim, size_t n, outcome *o) {
  int64_t writes = 0, reads = 0, lists = 0;
  o->use = (gt_plan_use){0};
  for (size_t r = 0; r <= PLACES; r++) {
    gt_region_result result;
    gt_sim_region(sim, r, &result);
    writes += result.store.writes;
    reads += result.store.reads;
    lists += result.store.lists;
    o->use.failed_reads += (double)result.store.failed_reads / BATCHES;
    o->use.function_s += result.store.function_s / BATCHES;
  }
  assert_int_equal(writes, BATCHES * (n + 1));
  assert_int_equal(lists, BATCHES * n);
  assert_int_equal(reads, BATCHES * 2 * n);
}

static outcome run(size_t bytes, size_t at, size_t each) {
  gt_job *job = job_of(bytes, at, each);
  gt_links *links;
  gt_sim *sim;
  gt_sim_totals totals;
  outcome o;
  const int64_t samples[] = {1000000, 1000000, 1000000, 1000000, 0};
  must(gt_links_create(&links, job));
  const gt_sim_spec spec = {
      .job = job, .links = links, .parameters = bytes / 4, .samples = samples};
  must(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, &totals);
  check_requests(sim, each * PLACES, &o);
  o.time = (gt_plan_split){.batch_s = totals.virtual_s / BATCHES};
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  return o;
}

static double apart(double found, double needed) {
  return fabs(found - needed) / needed;
}

/* The phases of looks differ: a region looks from its last message on, a worker of the equations from
   its upload on.  So a batch differs by at most a look or poll.  Looks in vain are left out of the
   cost: a region looks all the time, and for messages of every other region. */
static void a_run_has_the_times_and_the_cost_of_the_equations(void) {
  const size_t sizes[] = {17800000, 48900000};
  for (size_t s = 0; s < 2; s++)
    for (size_t at = 0; at < PLACES; at++)
      for (size_t each = 1; each <= 3; each++) {
        const outcome by = by_equations(sizes[s], at, each, NULL);
        outcome is = run(sizes[s], at, each);
        const double vain = is.use.failed_reads;
        is.use.failed_reads = by.use.failed_reads;
        const outcome with = by_equations(sizes[s], at, each, &is);
        double most_s = POLL_S;
        for (size_t r = 0; r < PLACES; r++) most_s = fmax(most_s, 2e-3 * reach[r][at].ms);
        if (getenv("GEOTRAIN_FUNCTION_LIST"))
          print_message(
              "%zu B, function at %zu, %zu workers: %.4f s (%.2f %%), T_FaaS %.4f s (%.2f "
              "%%), %.6f USD (%.2f %%), in vain %.0f and %.0f\n",
              sizes[s], at, each, is.time.batch_s, 100 * apart(is.time.batch_s, by.time.batch_s),
              is.use.function_s, 100 * apart(is.use.function_s, by.use.function_s), with.cost.total,
              100 * apart(with.cost.total, by.cost.total), vain, by.use.failed_reads);
        assert_true(fabs(is.time.batch_s - by.time.batch_s) <= most_s + 0.01);
        assert_true(apart(is.time.batch_s, by.time.batch_s) < 0.02);
        assert_true(apart(is.use.function_s, by.use.function_s) < 0.002);
        assert_true(apart(with.cost.total, by.cost.total) < 0.01);
        assert_true(vain >= by.use.failed_reads);
      }
}

TESTS(a_run_has_the_times_and_the_cost_of_the_equations)
