/* A function that adds up (wan.store.trigger event), simulated with the messages of a run, against
   the placement's equations of time and cost (gt_plan_place, gt_plan_cost; Phalak et al., section
   3): four regions with one to three workers, models of 17.8 and 48.9 MB, the function at each of
   the four places, central, and regional with the workers' sum of each region; and random
   placements (GEOTRAIN_FUNCTION_LIST: prints a line for each). */
#include <stdlib.h>

#include "cases.h"
#include "geotrain/plan.h"
#include "geotrain/sim.h"
#include "jobs.h"
#include "tests.h"

#define PLACES 4

/* between a place and the store, in Mbit/s and ms */
typedef struct {
  double up, down, ms;
} reach;

typedef struct {
  size_t bytes, at, each; /* of a model; place of the function; workers of each region */
  bool regional;          /* a region sends the sum of its workers */
  int64_t batches;
  double poll_s, start_s, add_s; /* add: per GB */
  double step_s[PLACES];
  reach to[PLACES]; /* of each region to the store, which is at the function's place */
} placement;

typedef struct {
  double batch_s, function_s, vain, usd;
} outcome;

/* ---- the equations --------------------------------------------------------------------------- */

static const gt_plan_tier tier = {0, 0.09};

static gt_link_spec link_of(double mbit_s, double ms) {
  return (gt_link_spec){.bandwidth_bps = 1e6 * mbit_s, .latency_s = 1e-3 * ms, .back_s = 1e-3 * ms};
}

/* counted: figures of a run instead of those of the equations; NULL: the equations' own. */
static outcome by_equations(const placement *c, const outcome *counted) {
  const size_t each = c->regional ? 1 : c->each, n = each * PLACES, at = c->at;
  const gt_plan_rates rate = {.vm_hour = 0.1,
                              .function_gb_s = 1.6e-5,
                              .storage_gb_month = 0.02,
                              .read = 4e-7,
                              .write = 5e-6,
                              .list = 5e-6,
                              .memory_gb = 2,
                              .add_s_per_gb = c->add_s};
  const gt_plan_rates rates[PLACES] = {rate, rate, rate, rate};
  gt_link_spec up[PLACES * PLACES], down[PLACES * PLACES];
  gt_plan_tariff tariffs[PLACES * PLACES] = {{0}};
  gt_plan_worker workers[3 * PLACES];
  gt_plan_use use;
  double vm_s[3 * PLACES];
  for (size_t r = 0; r < PLACES; r++) {
    up[r * PLACES + at] = link_of(c->to[r].up, c->to[r].ms);
    down[at * PLACES + r] = link_of(c->to[r].down, c->to[r].ms);
    if (r == at) continue;
    tariffs[r * PLACES + at] = tariffs[at * PLACES + r] = (gt_plan_tariff){&tier, 1, 0};
  }
  for (size_t i = 0; i < n; i++) workers[i] = (gt_plan_worker){i / each, 0, c->step_s[i / each]};
  const gt_plan_sites sites = {PLACES, rates, tariffs, up, down};
  const gt_plan_placement p = {&sites, workers,          n,          {at, at}, NULL,
                               0,      (double)c->bytes, c->batches, false};
  outcome o;
  o.batch_s = gt_plan_place(&p, &(gt_plan_pace){c->poll_s, c->start_s}, vm_s, &use).batch_s;
  o.vain = use.failed_reads;
  if (counted) use.function_s = counted->function_s;
  for (size_t i = 0; i < n && counted; i++) vm_s[i] = counted->batch_s;
  o.function_s = use.function_s;
  o.usd = gt_plan_cost(&p, vm_s, &use, NULL, 1).total;
  return o;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Workers of a region share its rates, which are those of as many machines.  The function adds up
   after it has read the last object. */
static gt_job *job_of(const placement *c) {
  char text[4096];
  size_t n = 0;
  const size_t each = c->regional ? 1 : c->each;
  const reach *own = &c->to[c->at];
#define SAY(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
  SAY("name: f\nmodel: {name: dummy, parameters: %zu}\ndata: {path: x.h5, partition: {shares: [1, "
      "1, "
      "1, 1, 0]}}\ntrain: {until: {steps: %d}, batch: 1, optimizer: {lr: 1}, eval_every: {steps: "
      "0}}\nsync: {strategy: ssgd, %s: f}\ncheckpoint: null\nregions:\n",
      c->bytes / sizeof(float), (int)c->batches, c->regional ? "topology: hub, hub" : "central");
  for (size_t r = 0; r < PLACES; r++)
    SAY("- {name: r%zu, ranks: %zu, compute: {step: %.17g s}, store: {upload: %.17g Mbit/s, "
        "download: %.17g Mbit/s, latency: %.17g ms}}\n",
        r, c->each + 1, c->step_s[r], (double)each * c->to[r].up, (double)each * c->to[r].down,
        c->to[r].ms);
  SAY("- {name: f, ranks: 1, compute: {encode: %.17g s}, store: {upload: %.17g Mbit/s, download: "
      "%.17g Mbit/s, latency: %.17g ms}}\n",
      c->add_s * 1e-9 * (double)(c->bytes * each * PLACES), own->up, own->down, own->ms);
  SAY("wan: {transport: store, store: {url: \"s3://b/p\", trigger: event, poll: %.17g s, start: "
      "%.17g s}}\n",
      c->poll_s, c->start_s);
  assert_true(n < sizeof text);
  return job_as("%s", text);
}

/* Requests of a mini-batch: n + 1 writes, n lists, 2 n reads besides those in vain. */
static void take_requests(outcome *o, const placement *c, const gt_sim *sim) {
  const int64_t n = (int64_t)((c->regional ? 1 : c->each) * PLACES);
  int64_t writes = 0, reads = 0, lists = 0;
  for (size_t r = 0; r <= PLACES; r++) {
    gt_region_result result;
    gt_sim_region(sim, r, &result);
    writes += result.store.writes;
    reads += result.store.reads;
    lists += result.store.lists;
    o->vain += (double)result.store.failed_reads / (double)c->batches;
    o->function_s += result.store.function_s / (double)c->batches;
  }
  assert_int_equal(writes, c->batches * (n + 1));
  assert_int_equal(lists, c->batches * n);
  assert_int_equal(reads, c->batches * 2 * n);
}

static outcome run(const placement *c) {
  gt_job *job = job_of(c);
  gt_links *links;
  gt_sim *sim;
  gt_sim_totals totals;
  outcome o = {0};
  const int64_t samples[] = {1000000, 1000000, 1000000, 1000000, 0};
  must(gt_links_create(&links, job));
  const gt_sim_spec spec = {
      .job = job, .links = links, .parameters = c->bytes / sizeof(float), .samples = samples};
  must(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, &totals);
  take_requests(&o, c, sim);
  o.batch_s = totals.train_s / (double)c->batches;
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  return o;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static double apart(double found, double needed) {
  return fabs(found - needed) / needed;
}

/* The phases of looks differ: a region looks from its last message on, a worker of the equations
   from its upload on; and each copy, and a heartbeat, takes a look.  Looks in vain are left out of
   the cost: a region looks all the time, and for messages of every other region. */
static void compare(const placement *c, double most_apart) {
  const outcome by = by_equations(c, NULL), is = run(c), with = by_equations(c, &is);
  double look_s = c->poll_s;
  for (size_t r = 0; r < PLACES; r++) look_s = fmax(look_s, 2e-3 * c->to[r].ms);
  if (getenv("GEOTRAIN_FUNCTION_LIST"))
    print_message(
        "%zu B, function at %zu, %zu workers%s: %.4f s (%.2f %%), T_FaaS %.4f s (%.2f %%), "
        "%.6f USD (%.2f %%), in vain %.0f and %.0f\n",
        c->bytes, c->at, c->each, c->regional ? ", regional" : "", is.batch_s,
        100 * apart(is.batch_s, by.batch_s), is.function_s,
        100 * apart(is.function_s, by.function_s), with.usd, 100 * apart(with.usd, by.usd), is.vain,
        by.vain);
  const double most_s = look_s * (c->regional ? 2 : 1 + (double)c->each);
  if (fabs(is.batch_s - by.batch_s) > most_s)
    fail_msg("a batch takes %.4f s; expected %.4f, and at most %.3f s more or less", is.batch_s,
             by.batch_s, most_s);
  assert_true(apart(is.batch_s, by.batch_s) < most_apart);
  assert_true(apart(is.function_s, by.function_s) < 1e-4);
  assert_true(apart(with.usd, by.usd) < 0.01 + apart(is.batch_s, by.batch_s));
}

static void a_run_has_the_times_and_the_cost_of_the_equations(void) {
  static const reach to[PLACES][PLACES] = {
      {{700, 900, 1}, {150, 180, 38}, {80, 110, 68}, {65, 70, 55}},
      {{140, 190, 38}, {800, 900, 1}, {200, 170, 31}, {60, 80, 93}},
      {{90, 120, 68}, {210, 160, 31}, {650, 800, 1}, {50, 55, 110}},
      {{60, 80, 55}, {70, 75, 93}, {45, 60, 110}, {500, 700, 2}}};
  for (size_t i = 0; i < 48; i++) {
    placement c = {.bytes = i % 2 ? 48900000 : 17800000,
                   .at = i / 2 % PLACES,
                   .each = i / 8 % 3 + 1,
                   .regional = i >= 24,
                   .batches = 100,
                   .poll_s = 0.05,
                   .start_s = 0.1,
                   .add_s = 0.4,
                   .step_s = {2.0, 2.4, 1.9, 2.7}};
    memcpy(c.to, to[c.at], sizeof c.to);
    compare(&c, 0.02);
  }
}

/* Regions that meet in the function look for each other's messages a tenth as often. */
static void looks_are_where_data_comes_from(void) {
  placement c = {.bytes = 4000000, .each = 1, .batches = 8, .poll_s = 0.5, .step_s = {1, 1, 1, 1}};
  gt_links *links;
  for (size_t r = 0; r < PLACES; r++) c.to[r] = (reach){100, 100, 20};
  gt_job *job = job_of(&c);
  must(gt_links_create(&links, job));
  assert_true(fabs(gt_links_from(links, 0)[1].every_s - 5) < 1e-9);
  assert_true(fabs(gt_links_from(links, PLACES)[1].every_s - 0.5) < 1e-9);
  assert_int_equal(gt_links_vain_looks(links, 1, 101, 0), 202 + 3 * 20);
  gt_links_close(links);
  gt_job_close(job);
}

static double between(gt_rng *rng, double least, double most) {
  return least + (most - least) * gt_rng_uniform(rng);
}

static void random_placements(void) {
  for (size_t i = 0; i < cases(10000, 100); i++) {
    gt_rng rng = gt_rng_make(46, GT_RNG_TEST, i, 0);
    placement c = {.bytes = 4 * (size_t)between(&rng, 1e6, 1e7),
                   .at = (size_t)between(&rng, 0, PLACES),
                   .each = (size_t)between(&rng, 1, 4),
                   .regional = gt_rng_uniform(&rng) < 0.3,
                   .batches = 8,
                   .poll_s = between(&rng, 0.01, 0.1),
                   .start_s = between(&rng, 0, 0.5),
                   .add_s = between(&rng, 0, 0.5)};
    for (size_t r = 0; r < PLACES; r++) {
      c.step_s[r] = between(&rng, 1, 5);
      c.to[r] = (reach){between(&rng, 40, 900), between(&rng, 40, 900), between(&rng, 1, 120)};
    }
    c.to[c.at] = (reach){between(&rng, 400, 900), between(&rng, 400, 900), between(&rng, 1, 3)};
    compare(&c, INFINITY);
  }
}

TESTS(a_run_has_the_times_and_the_cost_of_the_equations, looks_are_where_data_comes_from,
      random_placements)
