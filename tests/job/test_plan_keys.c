/* Job keys for plans and simulations: devices in regions, ranks resolved by a plan, a default link,
   candidates and predictions. */
#include <unistd.h>

#include "world.h"
#include "cases.h"
#include "internal.h"
#include "jobs.h"

static const char base[] = "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\ntrain: {until: "
                           "{steps: 5}, optimizer: {lr: 0.1}}\n";

static const char full[] =
    "regions:\n"
    "  - {name: a, ranks: auto, place: aws:london, ps_price: 0, samples: 7680, ranks_min: 1, "
    "ranks_max: 5, access: 1 Gbit/s,\n"
    "     devices: [{type: xeon, count: 4, power: 900 samples/s, price: 2.5}, {type: epyc, count: "
    "0, power: 450}]}\n"
    "  - {name: b, ranks: 3, price: 0.25, place: london, devices: [{type: m5.large, count: 2}]}\n"
    "  - {name: c, ranks: 2}\n"
    "wan:\n"
    "  default: {bandwidth: 50 Mbit/s, latency: 40 ms, jitter: 1 ms, loss: 0.0001, setup: 1, "
    "eager: 4 KiB, window: 14480 B, idle: 1 s}\n"
    "  links: [{from: a, to: b, bandwidth: 100 Mbit/s, latency: 25 ms}]\n"
    "plan:\n"
    "  strategies: [asgd-ga, sma]\n"
    "  periods: [1, 8]\n"
    "  codecs: [none, topk]\n"
    "  samples_factor: [{strategy: sma, period: 8, factor: 1.25}, {strategy: sma, factor: 1.1}, "
    "{strategy: sma, period: 8, codec: topk, factor: 1.5}]\n"
    "  deadline: 2 h\n"
    "  budget: 12.5\n"
    "  billing: 1 min\n"
    "  catalogue: prices\n"
    "  predicted: {strategy: sma, wall: 100 s, wall_low: 90 s, wall_high: 110 s, step: 2 ms, "
    "samples_per_s: 32000,\n"
    "    wan_bytes: 123456789 B, waiting: 0, cost: 0.5, made: 0.1.0 of 2026-11-21}\n";

static gt_job *load(const char *more, const char *const *sets, size_t nsets) {
  return w_job(base, more, sets, nsets);
}

static void devices_are_read(void) {
  gt_job *job = load(full, NULL, 0);
  const gt_job_region *a = &job->regions[0], *b = &job->regions[1], *c = &job->regions[2];
  assert_int_equal(a->ranks, 0);
  assert_int_equal(a->ndevices, 2);
  assert_string_equal(a->devices[0].type, "xeon");
  assert_int_equal(a->devices[0].count, 4);
  assert_true(a->devices[0].power == 900 && a->devices[0].price == 2.5);
  assert_true(a->devices[1].count == 0 && a->devices[1].power == 450 && a->devices[1].price < 0);
  assert_string_equal(a->place, "aws:london");
  assert_true(a->price < 0 && a->ps_price == 0 && a->samples == 7680 && a->ranks_min == 1 &&
              a->ranks_max == 5);
  assert_true(b->devices[0].power == 0 && b->price == 0.25 && b->ps_price < 0 && b->samples == 0);
  assert_true(c->ndevices == 0 && !c->devices && !c->place && c->price < 0 && c->ranks_min == 0 &&
              c->ranks_max == 0);
  gt_job_close(job);
}

static void plan_is_read(void) {
  gt_job *job = load(full, NULL, 0), *plain = load("regions: [{name: a, ranks: 2}]\n", NULL, 0);
  assert_int_equal(job->plan.nstrategies, 2);
  assert_int_equal(job->plan.strategies[1], GT_STRATEGY_SMA);
  assert_true(job->plan.nperiods == 2 && job->plan.periods[1] == 8);
  assert_true(job->plan.ncodecs == 2 && job->plan.codecs[1] == GT_CODEC_TOPK);
  assert_true(job->plan.factors[1].codec == GT_CODEC_NONE &&
              job->plan.factors[2].codec == GT_CODEC_TOPK);
  assert_true(job->plan.nfactors == 3 && job->plan.factors[0].period == 8 &&
              job->plan.factors[0].factor == 1.25 && job->plan.factors[1].period == 0);
  assert_true(job->plan.deadline_s == 7200 && job->plan.budget == 12.5 && job->plan.start_s == 30 &&
              job->plan.billing_s == 60);
  assert_string_equal(job->plan.catalogue, "prices");
  assert_int_equal(job->plan.predicted.strategy, GT_STRATEGY_SMA);
  assert_true(job->plan.predicted.wall_s == 100 && job->plan.predicted.wall_low_s == 90 &&
              job->plan.predicted.wall_high_s == 110);
  assert_true(job->plan.predicted.step_s == 0.002 && job->plan.predicted.samples_per_s == 32000 &&
              job->plan.predicted.wan_bytes == 123456789);
  assert_true(job->plan.predicted.waiting == 0 && job->plan.predicted.cost == 0.5);
  assert_string_equal(job->plan.predicted.made, "0.1.0 of 2026-11-21");
  assert_true(!plain->plan.strategies && !plain->plan.periods && !plain->plan.factors &&
              !plain->plan.catalogue && !plain->plan.predicted.strategy);
  assert_true(plain->plan.deadline_s == 0 && plain->plan.budget == 0 && plain->plan.start_s == 30 &&
              plain->plan.billing_s == 1);
  assert_true(plain->plan.predicted.cost < 0 && plain->plan.predicted.waiting < 0 &&
              plain->plan.predicted.wan_bytes < 0);
  gt_job_close(job);
  gt_job_close(plain);
}

/* The default link applies to every direction without a link of its own. */
static void default_link(void) {
  gt_job *job = load(full, NULL, 0);
  const gt_job_link *ab = link_between(job, 0, 1), *ba = link_between(job, 1, 0),
                    *bc = link_between(job, 1, 2);
  assert_ptr_equal(ab, &job->wan.links[0]);
  assert_ptr_equal(ba, bc);
  assert_true(bc->bandwidth_bps == 50e6 && bc->latency_s == 0.04 && bc->jitter_s == 0.001 &&
              bc->loss == 0.0001 && bc->setup_rtts == 1);
  assert_true(bc->eager_bytes == 4096 && bc->window_bytes == 14480 && bc->idle_s == 1 &&
              !bc->trace);
  gt_job_close(job);
  const char *nothing = "wan.default=null";
  job = load(full, &nothing, 1);
  assert_null(link_between(job, 1, 2));
  gt_job_close(job);
}

static void check_lines(const gt_job *job, const char *const *lines, size_t n) {
  char *text = w_flat(job);
  for (size_t i = 0; i < n; i++) must_contain(text, lines[i]);
  assert_null(strstr(text, "regions.2.price"));
  assert_null(strstr(text, "regions.0.devices.1.price"));
  free(text);
}

static void resolved_reads_back(void) {
  static const char *const lines[] = {
      "\nregions.0.ranks=auto\n",
      "\nregions.0.devices.0.type=xeon\nregions.0.devices.0.count=4\nregions.0.devices.0.power="
      "900\n",
      "\nregions.0.devices.1.type=epyc\nregions.0.devices.1.count=0\nregions.0.devices.1.power="
      "450\n",
      "\nregions.0.ps_price=0\n",
      "\nregions.1.price=0.25\n",
      "\nwan.default.bandwidth=50000000\nwan.default.latency=0.04\n",
      "\nplan.strategies.0=asgd-ga\nplan.strategies.1=sma\nplan.periods.0=1\nplan.periods.1=8\n",
      "\nplan.samples_factor.0.strategy=sma\nplan.samples_factor.0.period=8\nplan.samples_factor.0."
      "factor=1.25\n",
      "\nplan.predicted.waiting=0\n"};
  gt_job *job = load(full, NULL, 0), *again = w_again(job);
  char *first = gt_job_resolved(job);
  must_contain(first, "ranks: auto");
  must_contain(first, "{type: xeon, count: 4, power: 900 samples/s, price: 2.5}");
  assert_true(again->regions[0].ps_price == 0 && again->regions[0].price < 0 &&
              again->regions[0].ranks == 0);
  check_lines(again, lines, COUNT(lines));
  gt_free(first);
  gt_job_close(job);
  gt_job_close(again);
}

/* A resume can change the plan's inputs; --set reaches lists inside lists. */
static void set_and_resume(void) {
  const char *sets[] = {"regions.0.devices.0.count=64",
                        "regions.0.devices.2={type: h100, count: 1}",
                        "regions.0.ranks=9",
                        "plan.budget=3",
                        "plan.predicted.cost=9",
                        "regions.2.devices.0.type=x",
                        "regions.2.devices.0.count=1"};
  gt_job *job = load(full, NULL, 0), *other = load(full, sets, COUNT(sets));
  assert_int_equal(other->regions[0].devices[0].count, 64);
  assert_string_equal(other->regions[0].devices[2].type, "h100");
  assert_string_equal(other->regions[2].devices[0].type, "x");
  w_differ(job, other, true, "");
  w_differ(job, other, false, "regions.0.ranks is 9 there and auto here");
  gt_job_close(job);
  gt_job_close(other);
}

/* Checks that gt_job_check_run refuses the job with this sentence; closes the job. */
static void refused_by_run(gt_job *job, const char *expected) {
  must_fail(gt_job_check_run(job), GT_ERR_JOB, expected);
  gt_job_close(job);
}

/* A run needs ranks as numbers and data; a plan does not. */
static void runs_need_more(void) {
  refused_by_run(load(full, NULL, 0),
                 "regions.0.ranks is auto; `geotrain plan JOB --write OUT.yaml` resolves it");
  static const char *const sets[] = {
      "regions.0.ranks=5", "data=null",
      "regions=[{name: a, ranks: 2, samples: 5}, {name: b, ranks: 2, samples: 6}]",
      "data.partition.by=file", "wan.links=null"};
  gt_job *job = load(full, sets, 1);
  must(gt_job_check_run(job));
  gt_job_close(job);
  char many[4096] = "regions=[{name: r0, ranks: 2}";
  for (int r = 1; r <= GT_MAX_REGIONS; r++)
    snprintf(many + strlen(many), sizeof many - strlen(many), ", {name: r%d, ranks: 2}%s", r,
             r == GT_MAX_REGIONS ? "]" : "");
  const char *const more[] = {many, "wan.links=null", "wan.default={latency: 1 ms}",
                              "data.partition={by: dirichlet, alpha: 1}"};
  refused_by_run(load(full, more, 4),
                 "regions has 65 entries; expected at most 64 to train (`geotrain simulate` and "
                 "`plan` take more)");
  refused_by_run(load(full, sets, 5),
                 "data.path: region a has no data set, only regions.0.samples; expected data.path");
}

/* Values of a profile become those of compute; devices are used only for what these do not give. */
static void powers(void) {
  const char *sets[] = {"regions.0.devices.1.count=3", "regions.0.ranks=7",
                        "regions.0.compute.speed=0.5", "regions.0.compute.samples_per_s=100"};
  gt_job *job = load(full, sets, 3);
  assert_true(gt_job_compute_of(job, 0).samples_per_s == 900 &&
              gt_job_compute_of(job, 0).eval_samples_per_s == 2700);
  assert_true(gt_job_worker_share(job, 0, 3) == 1 && gt_job_worker_share(job, 0, 4) == 0.5 &&
              gt_job_worker_share(job, 0, 99) == 1);
  assert_true(gt_job_device_power(job, 0, 0) == 450 && gt_job_device_power(job, 0, 1) == 225);
  assert_true(gt_job_compute_of(job, 1).samples_per_s == 0 && gt_job_device_power(job, 1, 0) == 0 &&
              gt_job_worker_share(job, 1, 0) == 1);
  gt_job_close(job);
  const char *idle[] = {"regions.0.ranks=5", "regions.0.devices.1={type: epyc, count: 3}",
                        "regions.0.ranks=6"};
  /* a device without a given power matters only if a worker uses it */
  for (size_t n = 2; n <= 3; n++) {
    job = load(full, idle, n);
    assert_true(gt_job_compute_of(job, 0).samples_per_s == (n == 2 ? 900 : 0));
    gt_job_close(job);
  }
  job = load(full, sets, 4);
  assert_true(gt_job_compute_of(job, 0).samples_per_s == 100 &&
              gt_job_worker_share(job, 0, 4) == 1);
  assert_true(gt_job_device_power(job, 0, 0) == 50 && gt_job_device_power(job, 0, 1) == 50);
  gt_job_close(job);
}

/* The time to load many regions grows in proportion to their number. */
static void many_regions(void) {
  size_t n = 65535, used = 0, room = n * 48 + 4096;
  char *text = gt_alloc(room, 1);
  used = (size_t)snprintf(
      text, room, "%swan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\nregions:\n", base);
  for (size_t i = 0; i < n; i++)
    used +=
        (size_t)snprintf(text + used, room - used, "- {name: r%zu, ranks: 11, samples: 7680}\n", i);
  gt_job *job = NULL;
  if (all_cases()) {
    must(gt_job_parse(&job, "many", text));
    assert_int_equal(job->nregions, n);
    assert_int_equal(gt_job_ranks(job), 11 * 65535);
    assert_string_equal(job->regions[n - 1].name, "r65534");
    gt_job_close(job);
  }
  snprintf(text + used, room - used, "- {name: r, ranks: 11, samples: 7680}\n");
  must_say(gt_job_parse(&job, "many", text), GT_ERR_JOB,
           "many: regions has 65536 entries; expected at most 65535");
  gt_free(text);
}

static void refused(const char *set, const char *expected) {
  w_refused(base, full, &set, 1, expected);
}

static void mistakes_in_regions(void) {
  refused("regions.0.devices=[]",
          "--set: regions.0.devices is an empty list; expected 1 or more entries");
  refused("regions.0.devices=4", "--set: regions.0.devices is \"4\"; expected a list of mappings");
  refused("regions.0.devices=[xeon]", "--set: regions.0.devices.0 is \"xeon\"; expected a mapping");
  refused("regions.0.devices=null", "@: regions.0.ranks is auto, without devices to choose from; "
                                    "expected regions.0.devices, or a number of ranks");
  refused("regions.0.devices.0.count=-1",
          "--set: regions.0.devices.0.count is -1; expected 0 or more");
  refused("regions.0.devices.0.count=2e9",
          "--set: regions.0.devices.0.count is \"2e9\"; expected an integer, 0 or more");
  refused("regions.0.devices.0.count=2000000000",
          "--set: regions.0.devices.0.count is 2000000000; expected at most 1e+09");
  refused("regions.0.devices.0.count=null", "@: regions.0.devices.0.count is missing; the job must "
                                            "give it: number of devices of this type");
  refused("regions.0.devices.0.type=null", "@: regions.0.devices.0.type is missing; the job must "
                                           "give it: name of the device type, as in xeon");
  refused(
      "regions.0.devices.0.type=two words",
      "--set: regions.0.devices.0.type is \"two words\"; expected one word without space or comma");
  refused("regions.0.devices.0.power=0",
          "--set: regions.0.devices.0.power is 0; expected more than 0");
  refused("regions.0.devices.0.power=9 tons", "--set: regions.0.devices.0.power is \"9 tons\"; "
                                              "expected a number of samples/s, more than 0");
  refused("regions.0.devices.0.power=samples/s",
          "--set: regions.0.devices.0.power is \"samples/s\"; expected a number of samples/s, more "
          "than 0");
  refused("regions.0.devices.0.price=-2.5",
          "--set: regions.0.devices.0.price is -2.5; expected 0 or more");
  refused("regions.0.devices.0.pirce=1",
          "--set: unknown key regions.0.devices.0.pirce; did you mean regions.0.devices.0.price?");
  refused("regions.0.devices.5.count=1", "--set: regions.0.devices has entries 0 to 2, the last "
                                         "one new; regions.0.devices.5 is none of them");
  refused("regions.0.devices.x.count=1", "--set: regions.0.devices has entries 0 to 2, the last "
                                         "one new; regions.0.devices.x is none of them");
  refused("regions.0.devices.0.type.x=1", "--set: regions.0.devices.0.type is not a mapping in the "
                                          "job file; regions.0.devices.0.type.x cannot be set");
  refused("regions.2.devices.0.power=4", "@: regions.2.devices.0.type is missing; the job must "
                                         "give it: name of the device type, as in xeon");
  refused("regions.2.ranks=Auto",
          "--set: regions.2.ranks is \"Auto\"; expected an integer, 1 or more (or auto)");
  refused("regions.2.ranks=0", "--set: regions.2.ranks is 0; expected 1 or more (or auto)");
  refused("regions.2.ranks=auto", "@: regions.2.ranks is auto, without devices to choose from; "
                                  "expected regions.2.devices, or a number of ranks");
  refused("regions.1.ranks=4", "@: regions.1.ranks is 4, of which 3 are workers, and its devices "
                               "are 2; expected a device for each");
  refused(
      "regions.0.compute.speeds=[1]",
      "@: regions.0.compute.speeds is given and ranks is auto; expected a number of ranks with it");
  refused("regions.0.price=-1", "--set: regions.0.price is -1; expected 0 or more");
  refused("regions.0.ps_price=-0.1", "--set: regions.0.ps_price is -0.1; expected 0 or more");
  refused("regions.0.place=new york",
          "--set: regions.0.place is \"new york\"; expected one word without space or comma");
  refused("regions.0.samples=0", "--set: regions.0.samples is 0; expected 1 or more");
  refused("regions.0.ranks_min=6",
          "@: regions.0.ranks_min is 6 and ranks_max 5; ranks_min must be at most ranks_max");
  refused("regions.0.ranks_max=0", "--set: regions.0.ranks_max is 0; expected 1 or more");
}

static void mistakes_in_plan(void) {
  refused("wan.default.trace=x",
          "--set: unknown key wan.default.trace; did you mean wan.links[].trace?");
  refused("wan.default=100 Mbit/s",
          "--set: wan.default is \"100 Mbit/s\"; expected a mapping of keys");
  refused("wan.default.loss=1", "--set: wan.default.loss is 1; expected 0 or more and less than 1");
  refused("plan.strategies=[asgd, none]",
          "--set: plan.strategies.1 is \"none\"; expected one of ssgd, asgd, asgd-ga, ama, sma");
  refused("plan.strategies=[asgdga]", "--set: plan.strategies.0 is \"asgdga\"; expected one of "
                                      "ssgd, asgd, asgd-ga, ama, sma; did you mean asgd-ga?");
  refused("plan.strategies=sma", "--set: plan.strategies is \"sma\"; expected a list, each one of "
                                 "ssgd, asgd, asgd-ga, ama, sma, in brackets: [sma]");
  refused("plan.strategies=[]",
          "--set: plan.strategies is an empty list; expected 1 or more entries");
  refused("plan.periods=[]", "--set: plan.periods is an empty list; expected 1 or more entries");
  refused("plan.periods=[4, 0]", "--set: plan.periods.1 is 0; expected 1 or more");
  refused("plan.codecs=[topq]",
          "--set: plan.codecs.0 is \"topq\"; expected one of none, bf16, fp16, "
          "int8, e3m0, topk, mask, powersgd, dgc; did you mean topk?");
  refused("plan.periods=[4, 1.5]",
          "--set: plan.periods.1 is \"1.5\"; expected an integer, 1 or more");
  refused("plan.samples_factor.0.strategy=adam",
          "--set: plan.samples_factor.0.strategy is \"adam\"; expected one of ssgd, asgd, asgd-ga, "
          "ama, sma; did you mean ama?");
  refused("plan.samples_factor.0.factor=0",
          "--set: plan.samples_factor.0.factor is 0; expected more than 0");
  refused(
      "plan.samples_factor.1.period=8",
      "@: plan.samples_factor has two entries for strategy sma and the same period; expected one");
  refused("plan.samples_factor=[{strategy: sma}]",
          "@: plan.samples_factor.0.factor is missing; the job must give it: ratio of the samples "
          "that the candidate needs, from pilot runs");
  refused("plan.deadline=0 s",
          "--set: plan.deadline is 0 s; expected a time such as 25 ms, more than 0 s");
  refused("plan.budget=0", "--set: plan.budget is 0; expected more than 0");
  refused("plan.budget=-5", "--set: plan.budget is -5; expected more than 0");
  refused("plan.budget=5 USD", "--set: plan.budget is \"5 USD\"; expected a number, more than 0");
  refused("plan.billing=0 s",
          "--set: plan.billing is 0 s; expected a time such as 25 ms, more than 0 s");
  refused("plan.predicted.cost=-1", "--set: plan.predicted.cost is -1; expected 0 or more");
  refused("plan.predicted.waiting=2",
          "--set: plan.predicted.waiting is 2; expected 0 or more and at most 1");
  refused("plan.prediction.cost=1",
          "--set: unknown key plan.prediction; did you mean plan.predicted?");
}

TESTS(devices_are_read, plan_is_read, default_link, resolved_reads_back, set_and_resume,
      runs_need_more, powers, many_regions, mistakes_in_regions, mistakes_in_plan)
