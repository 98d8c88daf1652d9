/* Regions of one rank: which of them train, keys that such a region must not have, and warnings. */
#include "world.h"
#include "geotrain/job_prices.h"

static const char base[] =
    "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\ntrain: {until: {steps: 5}, optimizer: "
    "{lr: 0.1}}\nregions: [{name: a, ranks: 3}, {name: hub, ranks: 1}, {name: b, ranks: 2}]\n"
    "sync: {topology: hub, hub: hub}\n";

static char told[1024];

static void tell(const char *text) {
  snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", text);
}

static gt_job *job_with(const char *set) {
  return w_job(base, NULL, &set, set ? 1 : 0);
}

static void refused(const char *set, const char *expected) {
  w_refused(base, NULL, &set, 1, expected);
}

static void which_train(void) {
  gt_job *job = job_with(NULL);
  assert_true(gt_job_trains(job, 0) && !gt_job_trains(job, 1) && gt_job_trains(job, 2));
  assert_int_equal(gt_job_training(job), 2);
  assert_true(gt_job_workers(job, 0) == 2 && gt_job_workers(job, 1) == 0 &&
              gt_job_workers(job, 2) == 1);
  assert_int_equal(gt_job_ranks(job), 6);
  must(gt_job_check_run(job));
  gt_job_close(job);
  job = job_with("regions.0={name: a, ranks: auto, devices: [{type: x, count: 2}]}");
  assert_true(gt_job_trains(job, 0) && gt_job_workers(job, 0) == 0);
  gt_job_close(job);
}

/* Data sets are required only for regions that train. */
static void no_data(void) {
  const char *sets[] = {"data.path=null", "regions.0.data.path=a.h5", "regions.2.data.path=b.h5",
                        "data.partition.by=file"};
  gt_job *job = w_job(base, NULL, sets, 4);
  must(gt_job_check_run(job));
  gt_job_close(job);
  job = job_with("data.partition.shares=[2, 0, 1]");
  gt_job_close(job);
}

static void what_does_not_fit(void) {
  refused("regions.1.data.path=h.h5",
          "@: regions.1.data.path is given and ranks is 1: without workers the region only "
          "aggregates; expected no data.path, or 2 ranks or more");
  refused(
      "regions.1.samples=10",
      "@: regions.1.samples is given and ranks is 1: without workers the region only aggregates; "
      "expected no samples, or 2 ranks or more");
  refused(
      "regions.1.devices=[{type: x, count: 2}]",
      "@: regions.1.devices is given and ranks is 1: without workers the region only aggregates; "
      "expected no devices, or 2 ranks or more");
  refused("regions.1.ranks_min=1",
          "@: regions.1.ranks_min is given and ranks is 1: without workers the region only "
          "aggregates; expected no ranks_min, or 2 ranks or more");
  refused("regions.1.ranks_max=1",
          "@: regions.1.ranks_max is given and ranks is 1: without workers the region only "
          "aggregates; expected no ranks_max, or 2 ranks or more");
  refused("regions.1.compute.speeds=[1]",
          "@: regions.1.compute.speeds is given and ranks is 1: without workers the region only "
          "aggregates; expected no compute.speeds, or 2 ranks or more");
  refused("data.partition.shares=[2, 3, 1]",
          "@: data.partition.shares.1 is 3, and region hub (ranks 1) only aggregates; expected 0");
  refused("data.partition.shares=[2, 0, 0]",
          "@: data.partition.shares.2 is 0, and region b trains; expected a number above 0");
  refused(
      "regions=[{name: hub, ranks: 1}]",
      "@: regions[].ranks is 1 in every region, so that none trains; expected one with 2 or more");
  refused("sync={strategy: none}", "@: sync.strategy is none, and region hub (ranks 1) only "
                                   "aggregates; expected a strategy that exchanges something");
  refused("sync={strategy: ssgd, central: a}",
          "@: sync.central is \"a\", and region hub (ranks 1) only aggregates; with sync.central, "
          "every other region must have 2 ranks or more");
}

/* A gradient is applied at the receiver's rate, which follows its own steps. */
static void gradients_need_a_constant_rate(void) {
  const char *sets[] = {"sync.exchange=gradient", "train.schedule={name: cosine}"};
  gt_job_close(job_with("sync.exchange=gradient"));
  w_refused(base, NULL, sets, 2,
            "@: sync.exchange is gradient, and region hub (ranks 1) "
            "only aggregates: it makes no steps by which its learning rate changes; "
            "expected sync.exchange update, or train.schedule constant without warm-up");
}

static void warned(const char *set, const char *expected) {
  gt_job *job = job_with(set);
  told[0] = '\0';
  gt_job_warn(job, tell);
  gt_job_warn_region(job, 1, 0, tell);
  gt_job_close(job);
  assert_string_equal(told, expected);
}

static void where_it_only_costs(void) {
  warned(NULL, "");
  warned("sync={topology: tree}", "");
  warned("sync={topology: hub}", "");
  warned("sync={topology: mesh}",
         "region hub has no workers and only aggregates (ranks 1), and with sync.topology mesh it "
         "adds traffic and saves none; sync.topology hub with sync.hub hub, or tree, uses it\n");
  warned("sync={strategy: sma, topology: ring}",
         "region hub has no workers and only aggregates (ranks 1), and with sync.topology ring it "
         "adds traffic and saves none; sync.topology hub with sync.hub hub, or tree, uses it\n");
  warned("sync.hub=a", "region hub has no workers and only aggregates (ranks 1), and with "
                       "sync.topology hub and sync.hub a it adds traffic and saves none; "
                       "sync.topology hub with sync.hub hub, or tree, uses it\n");
}

/* It has no workers, so their price is not required. */
static void only_its_server_has_a_price(void) {
  const char *sets[] = {"regions.0.price=1", "regions.0.ps_price=0.5", "regions.1.ps_price=0.25",
                        "regions.2.price=1", "regions.2.ps_price=0.5"};
  gt_job *job = w_job(base, NULL, sets, 5);
  gt_job_prices prices;
  must(gt_job_prices_of(&prices, job));
  assert_true(prices.known && prices.regions[1].ps.usd == 0.25);
  for (size_t i = 0; i < prices.nmissing; i++) assert_null(strstr(prices.missing[i], "workers"));
  gt_job_prices_close(&prices);
  gt_job_close(job);
}

TESTS(which_train, no_data, what_does_not_fit, gradients_need_a_constant_rate, where_it_only_costs,
      only_its_server_has_a_price)
