/* Prices of a job: its own before the catalogue's, mean over devices, tariffs and their pools,
   missing prices, errors. */
#include "geotrain/job_prices.h"
#include "jobs.h"
#include "world.h"

#include <unistd.h>

/* NULL: one of the regions has no place. */
static const gt_job_tariff *tariff_between(const gt_job_prices *p, size_t from, size_t to) {
  const gt_job_region_prices *a = &p->regions[from], *b = &p->regions[to];
  return a->has_place && b->has_place ? &p->tariffs[a->site * p->nsites + b->site] : NULL;
}

static const char rates[] = "vm_hour,a,*,,,,0.5,assumed\n"
                            "vm_hour,a,here,,,,0.25,\n"
                            "vm_hour,b,there,,,,1,\n"
                            "vm_min_s,a,*,,,,60,assumed\n"
                            "egress_gb,a,*,*,*,0,0.09,\n"
                            "egress_gb,a,*,*,*,100,0.08,assumed\n"
                            "egress_gb,a,*,a,*,0,0.02,\n"
                            "egress_gb,b,*,a,*,0,0.11,\n";

/* Regions as YAML lines, and the text of a catalogue (NULL: no catalogue). */
static gt_job *job_of(const char *regions, const char *catalogue) {
  char named[640] = "";
  if (catalogue)
    snprintf(named, sizeof named, "plan: {catalogue: %s}\n", file_with("rates.csv", catalogue));
  return job_as("name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\ntrain: {until: {steps: 1}, "
                "optimizer: {lr: 0.1}}\nregions:\n%s%s",
                regions, named);
}

static void is(gt_job_price price, double usd, bool assumed) {
  if (price.usd != usd || price.assumed != assumed)
    fail_msg("%.17g (assumed %d) instead of %.17g (assumed %d)", price.usd, price.assumed, usd,
             assumed);
}

static gt_job_prices prices_of(const gt_job *job) {
  gt_job_prices p;
  must(gt_job_prices_of(&p, job));
  return p;
}

static void what_the_job_says_goes_before_the_catalogue(void) {
  gt_job *job = job_of("  - {name: eu, ranks: 3, place: 'a:here'}\n"
                       "  - {name: us, ranks: 3, place: 'b:there', price: 2, ps_price: 0}\n"
                       "  - {name: ap, ranks: 4, place: 'a:here', price: 3, devices: [{type: x, "
                       "count: 1, price: 6}, {type: y, count: 4}]}\n",
                       rates);
  gt_job_prices p = prices_of(job);
  assert_true(p.known);
  assert_int_equal(p.nmissing, 0);
  is(gt_job_worker_price(job, &p, 0, 2), 0.25, false);
  is(p.regions[0].ps, 0.25, false);
  is(gt_job_worker_price(job, &p, 1, 2), 2, false);
  is(p.regions[1].ps, 0, false);
  is(gt_job_worker_price(job, &p, 2, 1), 6, false);
  is(gt_job_worker_price(job, &p, 2, 3), 4, false); /* x, y, y */
  is(p.regions[2].devices[1], 3, false);
  assert_true(p.regions[0].min_s == 60 && p.regions[0].assumed && p.regions[1].min_s == 0);
  gt_job_prices_close(&p);
  gt_job_close(job);
}

static void tariffs_are_by_place(void) {
  gt_job *job = job_of("  - {name: eu, ranks: 2, place: 'a:here'}\n"
                       "  - {name: us, ranks: 2, place: 'b:there'}\n"
                       "  - {name: ap, ranks: 2, place: 'a:there'}\n"
                       "  - {name: uk, ranks: 2, place: 'a:here'}\n",
                       rates);
  gt_job_prices p = prices_of(job);
  assert_int_equal(p.nsites, 3);
  assert_int_equal(p.npools, 5);
  const gt_job_tariff *out = tariff_between(&p, 0, 1), *in = tariff_between(&p, 0, 2),
                      *back = tariff_between(&p, 1, 0), *stays = tariff_between(&p, 0, 3);
  assert_true(out->n == 2 && out->rates[0].value == 0.09 && out->rates[1].from_gb == 100 &&
              out->rates[1].assumed);
  assert_true(in->n == 1 && in->rates->value == 0.02 && back->rates->value == 0.11 &&
              stays->rates->value == 0.02);
  assert_true(out == tariff_between(&p, 3, 1)); /* the same places */
  assert_true(out->pool != in->pool && out->pool != back->pool && stays->pool == 4 &&
              in->pool == tariff_between(&p, 2, 0)->pool);
  is(gt_job_worker_price(job, &p, 2, 1), 0.5, true);
  gt_job_prices_close(&p);
  gt_job_close(job);
}

static void what_is_not_known_is_missing(void) {
  gt_job *job = job_of("  - {name: eu, ranks: 3, price: 1}\n"
                       "  - {name: us, ranks: 3, ps_price: 1, devices: [{type: x, count: 1, price: "
                       "6}, {type: y, count: 4}]}\n",
                       NULL);
  static const char *const needed[] = {"PS of eu", "egress of eu", "workers of us", "egress of us"};
  gt_job_prices p = prices_of(job);
  assert_true(p.known && !p.catalogue);
  assert_int_equal(p.nmissing, 4);
  for (size_t i = 0; i < 4; i++) assert_string_equal(p.missing[i], needed[i]);
  assert_true(gt_job_worker_price(job, &p, 1, 1).usd == 6 &&
              gt_job_worker_price(job, &p, 1, 2).usd < 0 && p.regions[0].ps.usd < 0);
  assert_null(tariff_between(&p, 0, 1));
  gt_job_prices_close(&p);
  gt_job_close(job);
  job = job_of("  - {name: eu, ranks: 3}\n", NULL);
  p = prices_of(job);
  assert_true(!p.known && p.nmissing == 0);
  gt_job_prices_close(&p);
  gt_job_close(job);
}

static void a_catalogue_that_lacks_something_is_refused(void) {
  static const struct {
    const char *regions, *catalogue, *needed;
  } wrong[] = {
      {"  - {name: eu, ranks: 2, place: 'a:her'}\n", rates,
       "regions.0.place names the place \"her\""},
      {"  - {name: eu, ranks: 2, place: here}\n", rates,
       "regions.0.place is \"here\"; expected CLOUD:PLACE"},
      {"  - {name: eu, ranks: 2, place: 'b:here'}\n", rates, "has no vm_hour of b at here"},
      {"  - {name: eu, ranks: 2, place: 'a:here'}\n  - {name: us, ranks: 2, place: 'b:there'}\n",
       "vm_hour,a,here,,,,1,\nvm_hour,b,there,,,,1,\n",
       "has no egress_gb of a at here to b at there"},
      {"  - {name: eu, ranks: 2, place: 'a:here'}\n", "vm_hour,a,here,,,,-1,\n",
       "value of vm_hour is \"-1\""},
      {"  - {name: eu, ranks: 2, price: 1}\n", "vm_hour,a,here,,,,-1,\n",
       "value of vm_hour is \"-1\""},
  };
  for (size_t i = 0; i < COUNT(wrong); i++) {
    gt_job *job = job_of(wrong[i].regions, wrong[i].catalogue);
    gt_job_prices p;
    must_fail(gt_job_prices_of(&p, job), GT_ERR_JOB, wrong[i].needed);
    gt_job_close(job);
  }
}

/* The test program is one folder below the main program, so the rates are one folder up, as in an
   installation. */
static void the_default_is_here_or_beside_the_program(void) {
  char before[1024], path[1200];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(in_folder("")), 0);
  assert_int_equal(system("mkdir -p jobs/prices"), 0);
  gt_catalogue_default(path, sizeof path);
  assert_string_equal(path, "jobs/prices");
  assert_int_equal(system("rm -r jobs"), 0);
  gt_catalogue_default(path, sizeof path);
  must_contain(path, "/share/geotrain/prices");
  assert_int_equal(chdir(before), 0);
}

TESTS(what_the_job_says_goes_before_the_catalogue, tariffs_are_by_place,
      what_is_not_known_is_missing, a_catalogue_that_lacks_something_is_refused,
      the_default_is_here_or_beside_the_program)
