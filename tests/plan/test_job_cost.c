/* The cost of a run, against separate sums: regions that share a place, tiers over pools, a region
   without a place, billed time, assumptions. */
#include "geotrain/plan_job.h"
#include "jobs.h"

#define N 5
static const char *const places[N] = {"a:here", "a:here", "a:there", "b:there", NULL};

static void near(double found, double needed) {
  if (!(fabs(found - needed) <= 1e-12 * fabs(needed)))
    fail_msg("%.17g instead of %.17g", found, needed);
}

static gt_job *job_of(const char *catalogue) {
  char text[2048];
  int n = snprintf(text, sizeof text,
                   "name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\ntrain: {until: {steps: 1}, "
                   "optimizer: {lr: 0.1}}\n"
                   "plan: {catalogue: %s, start: 10 s, billing: 60 s}\nregions:\n",
                   file_with("rates.csv", catalogue));
  for (int r = 0; r < N; r++)
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "  - {name: r%d, ranks: %d, price: %d%s%s%s}\n", r, r + 2, r,
                  places[r] ? ", place: '" : "", places[r] ? places[r] : "", places[r] ? "'" : "");
  return job_as("%s", text);
}

/* 1 to 25 GB from region to region. */
static double gb(int from, int to) {
  return from == to ? 0 : N * from + to + 1;
}

static void costs_add_up(void) {
  gt_job *job = job_of(
      "vm_hour,a,*,,,,36,\nvm_hour,b,there,,,,72,\nvm_min_s,b,*,,,,600,assumed\n"
      "egress_gb,a,*,a,*,0,0.5,\negress_gb,a,*,a,*,20,0.25,\negress_gb,a,here,a,here,0,0.125,\n"
      "egress_gb,a,*,*,*,0,2,\negress_gb,b,*,*,*,0,3,\negress_gb,b,*,*,*,1000,1,assumed\n");
  gt_job_prices prices;
  gt_cost_result cost;
  double bytes[N * N], pool = 0;
  must(gt_job_prices_of(&prices, job));
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++) bytes[a * N + b] = 1e9 * gb(a, b);
  gt_plan_job_cost(&cost, job, &prices, 100, bytes, NULL);
  /* 10 s and 100 s are billed as two minutes; at b as ten. */
  const double seconds[N] = {120, 120, 120, 600, 120}, ps[N] = {36, 36, 36, 72, 0};
  double hours = 0;
  for (int r = 0; r < N; r++) {
    near(cost.regions[r].worker_usd, (r + 1) * r * seconds[r] / 3600);
    near(cost.regions[r].ps_usd, ps[r] * seconds[r] / 3600);
    hours += (r + 2) * seconds[r] / 3600;
  }
  near(cost.machine_hours, hours);
  /* Between a's two places: one pool of a, of which 20 GB are in the first tier. */
  pool = gb(0, 2) + gb(1, 2) + gb(2, 0) + gb(2, 1);
  double mean = (20 * 0.5 + (pool - 20) * 0.25) / pool;
  near(cost.regions[0].egress_usd, gb(0, 1) * 0.125 + gb(0, 2) * mean + gb(0, 3) * 2);
  near(cost.regions[1].egress_usd, gb(1, 0) * 0.125 + gb(1, 2) * mean + gb(1, 3) * 2);
  near(cost.regions[2].egress_usd, (gb(2, 0) + gb(2, 1)) * mean + gb(2, 3) * 2);
  near(cost.regions[3].egress_usd, (gb(3, 0) + gb(3, 1) + gb(3, 2)) * 3);
  assert_true(cost.regions[4].egress_usd == 0);
  near(cost.usd, cost.worker_usd + cost.ps_usd + cost.egress_usd);
  assert_int_equal(cost.nmissing, 2);
  assert_string_equal(cost.missing[0], "PS of r4");
  assert_true(cost.assumed); /* b's minimum time */
  gt_plan_job_cost_close(&cost);
  gt_plan_job_cost(&cost, job, &prices, 590, NULL, NULL);
  assert_true(!cost.assumed && cost.egress_usd == 0); /* it no longer applies */
  gt_plan_job_cost_close(&cost);
  gt_plan_job_cost(&cost, job, &prices, 590, bytes, NULL);
  assert_false(cost.assumed); /* b's second tier is not reached, */
  gt_plan_job_cost_close(&cost);
  bytes[3 * N] = 1001e9;
  gt_plan_job_cost(&cost, job, &prices, 590, bytes, NULL);
  assert_true(cost.assumed); /* and now it is */
  gt_plan_job_cost_close(&cost);
  gt_job_prices_close(&prices);
  gt_job_close(job);
}

/* Every message is written to the store and read from it. */
static void a_store_costs_both_ways_and_requests(void) {
  gt_job *job = job_as(
      "name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\ntrain: {until: {steps: 1}, optimizer: "
      "{lr: 0.1}}\nplan: {catalogue: %s, start: 0 s}\nregions:\n"
      "  - {name: r0, ranks: 2, place: 'a:here'}\n  - {name: r1, ranks: 2, place: 'a:there'}\n"
      "wan: {transport: store, store: {url: 'file:///x', place: 'b:there'}}\n",
      file_with("store.csv", "vm_hour,a,here,,,,1,\nvm_hour,a,there,,,,1,\negress_gb,a,*,*,*,0,2,"
                             "\negress_gb,b,*,*,*,0,3,\n"
                             "egress_gb,b,*,b,*,0,0,\nread_request,b,*,,,,0.001,\n"
                             "write_request,b,there,,,,0.01,assumed\n"));
  gt_job_prices prices;
  gt_cost_result cost;
  const double bytes[4] = {0, 1e9, 2e9, 0};
  const gt_region_result requests[2] = {
      {.store = {.reads = 60, .failed_reads = 5, .control_writes = 4}},
      {.store = {.control_reads = 35, .writes = 6}}};
  must(gt_job_prices_of(&prices, job));
  gt_plan_job_cost(&cost, job, &prices, 3600, bytes, requests);
  near(cost.regions[0].egress_usd, 1 * 2 + 2 * 3);
  near(cost.regions[1].egress_usd, 2 * 2 + 1 * 3);
  near(cost.store_usd, 100 * 0.001 + 10 * 0.01);
  near(cost.usd, cost.worker_usd + cost.ps_usd + 15 + 0.2);
  assert_true(cost.assumed && cost.nmissing == 0);
  gt_plan_job_cost_close(&cost);
  gt_plan_job_cost(&cost, job, &prices, 3600, bytes, NULL);
  assert_true(cost.store_usd == 0 && !cost.assumed);
  gt_plan_job_cost_close(&cost);
  gt_job_prices_close(&prices);
  gt_job_close(job);
}

/* A function costs the seconds of its invocations, in the size of memory that holds two objects;
   what it writes once for several regions leaves it once. */
static void a_function_costs_its_seconds(void) {
  gt_job *job = job_as(
      "name: t\nmodel: {name: dummy}\ndata: {path: d.h5, partition: {shares: [1, 1, 0]}}\ntrain: "
      "{until: {steps: 1}, optimizer: {lr: 0.1}}\nplan: {catalogue: %s, start: 0 s}\nregions:\n"
      "  - {name: r0, ranks: 2, place: 'a:here'}\n  - {name: r1, ranks: 2, place: 'a:here'}\n"
      "  - {name: f, ranks: 1, place: 'a:there'}\nsync: {strategy: ssgd, central: f}\n"
      "wan: {transport: store, store: {url: 'file:///x', place: 'a:here', trigger: event}}\n",
      file_with("function.csv",
                "vm_hour,a,here,,,,7,\nvm_hour,a,there,,,,7,\negress_gb,a,*,*,*,0,2,\n"
                "egress_gb,a,here,a,here,0,0,\nread_request,a,*,,,,0.001,\n"
                "write_request,a,*,,,,0.01,\nlist_request,a,*,,,,0.1,\n"
                "function_gb_s,a,*,,,1,0.5,\nfunction_gb_s,a,*,,,2,0.25,\n"
                "function_gb_s,a,*,,,4,0.125,assumed\n"));
  gt_job_prices prices;
  gt_cost_result cost;
  const double bytes[9] = {0, 0, 3e9, 0, 0, 3e9, 5e9, 5e9, 0};
  const gt_region_result regions[3] = {{.store = {.reads = 5}},
                                       {.store = {.reads = 5}},
                                       {.store = {.reads = 8,
                                                  .lists = 8,
                                                  .writes = 5,
                                                  .bytes_in = 6400000000,
                                                  .bytes_shared = 5000000000,
                                                  .function_s = 10}}};
  must(gt_job_prices_of(&prices, job));
  gt_plan_job_cost(&cost, job, &prices, 3600, bytes, regions);
  near(cost.regions[2].ps_usd, 10 * 2 * 0.25); /* objects of 0.8 GB */
  near(cost.regions[0].ps_usd, 7);
  near(cost.regions[2].egress_usd, 2 * (5 + 6)); /* one result out, two contributions in */
  near(cost.store_usd, 18 * 0.001 + 5 * 0.01 + 8 * 0.1);
  near(cost.usd, 4 * 7 + 5 + 22 + cost.store_usd);
  assert_true(!cost.assumed && cost.nmissing == 0);
  gt_plan_job_cost_close(&cost);
  gt_job_prices_close(&prices);
  gt_job_close(job);
}

/* A mesh of three regions, 10 rounds: each writes 10 models, and 10 references to them. */
static void a_message_is_deleted_once(void) {
  gt_job *job = job_as("name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\n"
                       "train: {until: {steps: 1}, optimizer: {lr: 0.1}}\n"
                       "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}, {name: c, ranks: 2}]\n"
                       "wan: {transport: store, store: {url: '%s'}}\n",
                       "file:///none");
  const gt_link_objects passed = {.data = 20, .control = 6};
  const gt_link_function shares = {.shared = 10};
  gt_links *links = NULL;
  must(gt_links_create(&links, job));
  const gt_store_result use = gt_plan_store_use(links, 0, &passed, &passed, &shares, 1);
  assert_int_equal(use.writes + use.control_writes, 10 + 10 + 6);
  assert_int_equal(use.deletes, use.writes + use.control_writes);
  gt_links_close(links);
  gt_job_close(job);
}

TESTS(costs_add_up, a_store_costs_both_ways_and_requests, a_function_costs_its_seconds,
      a_message_is_deleted_once)
