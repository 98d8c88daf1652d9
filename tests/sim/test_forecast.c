/* Forecasts of long runs against whole simulations: random jobs with outages, traces, evaluations
   and checkpoints (GEOTRAIN_FORECAST_JOBS of them, 12 by default; GEOTRAIN_FORECAST_FROM: number
   of the first one; GEOTRAIN_FORECAST_LIST: prints a line for each); and single tests of rare
   events. */
#include <unistd.h>

#include "jobs.h"
#include "tests.h"
#include "cases.h"
#include "geotrain/sim.h"

#define REGIONS    4
#define EVENTS_MIN 50000 /* a quarter of the smallest budget of a simulation in a plan */

/* ---- a job ----------------------------------------------------------------------------------- */

typedef struct {
  char text[16384];
  const char *trace;
  size_t at;
  int64_t samples[REGIONS];
  size_t parameters, test_samples;
  double events; /* of the whole simulation, divided by those of the forecast */
} plot;

typedef struct {
  gt_job *job;
  gt_links *links;
  gt_ps_tests tests[REGIONS];
  gt_sim_spec spec;
} fixture;

__attribute__((format(printf, 2, 3))) static void say(plot *p, const char *format, ...) {
  va_list list;
  va_start(list, format);
  p->at += (size_t)vsnprintf(p->text + p->at, sizeof p->text - p->at, format, list);
  va_end(list);
  assert_true(p->at < sizeof p->text);
}

static void open_fixture(fixture *f, const plot *p) {
  *f = (fixture){0};
  f->job = job_as("%s", p->text);
  must(gt_links_create(&f->links, f->job));
  for (size_t r = 0; r < f->job->nregions; r++)
    f->tests[r] = (gt_ps_tests){p->test_samples, r == 0 && p->test_samples > 0, 0};
  f->spec = (gt_sim_spec){.job = f->job,
                          .links = f->links,
                          .parameters = p->parameters,
                          .buffers = 10,
                          .samples = p->samples,
                          .tests = f->tests};
}

static void close_fixture(fixture *f) {
  gt_links_close(f->links);
  gt_job_close(f->job);
}

/* ---- random jobs ----------------------------------------------------------------------------- */

static double between(gt_rng *rng, double least, double most) {
  return least + (most - least) * gt_rng_uniform(rng);
}

/* Log-uniform: between 1 and 10 as often as between 10 and 100. */
static double magnitude(gt_rng *rng, double least, double most) {
  return least * pow(most / least, gt_rng_uniform(rng));
}

static bool chance(gt_rng *rng, double share) {
  return gt_rng_uniform(rng) < share;
}

/* Writes lines at regular times, for `period_s`; on some nothing passes. */
static void write_trace(plot *p, gt_rng *rng, double bps, double period_s) {
  size_t n = 2 + gt_rng_below(rng, 60);
  p->trace = in_folder("trace.csv");
  FILE *to = fopen(p->trace, "w");
  assert_non_null(to);
  for (size_t i = 0; i < n; i++)
    fprintf(to, "%.6f,%.0f,\n", period_s * (double)i / (double)n,
            chance(rng, 0.05) && i > 0 ? 0 : bps * between(rng, 0.3, 1.7));
  fprintf(to, "%.6f,0,\n", period_s);
  fclose(to);
}

typedef enum { IN_STEPS, IN_EPOCHS, IN_SAMPLES, IN_MINUTES } unit;

/* Writes an interval of so many steps of one worker each; half of them in steps, half in epochs or
   in the key's third unit. */
static void say_interval(plot *p, gt_rng *rng, int batch, double each, unit third, double step_s) {
  unit in = chance(rng, 0.5) ? IN_STEPS : chance(rng, 0.5) ? IN_EPOCHS : third;
  each = fmax(1, each);
  if (in == IN_STEPS) say(p, "{steps: %.0f}", each);
  if (in == IN_EPOCHS) say(p, "{epochs: %.6g}", each * batch / (double)p->samples[0]);
  if (in == IN_SAMPLES) say(p, "{samples: %.0f}", each * batch);
  if (in == IN_MINUTES) say(p, "{minutes: %.6g}", each * step_s / 60);
}

static void make_regions(plot *p, gt_rng *rng, size_t n) {
  say(p, "regions:\n");
  for (size_t r = 0; r < n; r++) {
    p->samples[r] = (int64_t)magnitude(rng, 500, 5000);
    say(p, "  - {name: r%zu, ranks: %d, compute: {speed: %.3f}}\n", r,
        2 + (int)gt_rng_below(rng, 4), chance(rng, 0.5) ? 1 : between(rng, 0.5, 1));
  }
}

static void make_wan(plot *p, gt_rng *rng, size_t n, double bps, double run_s) {
  double latency_s = magnitude(rng, 1e-3, 0.15);
  bool trace = chance(rng, 0.35) && n > 1;
  say(p,
      "wan:\n  outbox: %d\n  default: {bandwidth: %.0f bit/s, latency: %.6f s, jitter: %.6f s}\n",
      1 + (int)gt_rng_below(rng, 4), bps, latency_s,
      chance(rng, 0.5) ? 0 : latency_s * between(rng, 0.01, 0.3));
  if (trace) {
    write_trace(p, rng, bps, fmax(0.01, run_s * magnitude(rng, 1e-4, 2)));
    say(p, "  links: [{between: [r0, r1], trace: %s, latency: %.6f s}]\n", p->trace, latency_s);
  }
  if (n < 2 || chance(rng, 0.4)) return;
  double at = 0;
  size_t outages = 1 + (chance(rng, 0.8) ? gt_rng_below(rng, 4) : gt_rng_below(rng, 30));
  say(p, "  outages:\n");
  for (size_t i = 0; i < outages; i++) {
    double for_s = run_s * magnitude(rng, 1e-4, 0.1) / (double)outages,
           from = at + between(rng, 0, 2 * run_s / (double)outages);
    size_t a = gt_rng_below(rng, n), b = (a + 1 + gt_rng_below(rng, n - 1)) % n;
    say(p, "    - {between: [r%zu, r%zu], from: %.6f s, for: %.6f s}\n", a, b, from, for_s);
    at = from + for_s;
  }
}

/* Makes the job with number `seed`. */
static void make(plot *p, uint64_t seed) {
  static const char *const strategies[] = {"none", "ssgd", "asgd", "asgd-ga", "ama", "sma"};
  gt_rng rng = gt_rng_make(seed, GT_RNG_COMPUTE, 1, 2);
  size_t n = 1 + gt_rng_below(&rng, REGIONS);
  int batch = 10 << gt_rng_below(&rng, 4), period = 1 << gt_rng_below(&rng, 5);
  double step_s = magnitude(&rng, 5e-3, 0.5), steps = magnitude(&rng, 20000, 200000), evals = 0;
  bool async = chance(&rng, 0.5);
  const char *strategy = strategies[gt_rng_below(&rng, 6)];
  *p = (plot){.parameters = (size_t)magnitude(&rng, 1e3, 1e7), .events = magnitude(&rng, 4, 40)};
  say(p,
      "name: random\nmodel: {name: lenet5}\ndata: {path: none.h5}\nsync: {strategy: %s, local: %s, "
      "period: %d}\n",
      strategy, async ? "async" : "sync", period);
  make_regions(p, &rng, n);
  if (chance(&rng, 0.6)) {
    evals = magnitude(&rng, 2, 200);
    p->test_samples = (size_t)(magnitude(&rng, 0.5, 50) / evals * 0.02 * steps * batch * 3) + 1;
    if (p->test_samples > 200000) p->test_samples = 200000;
  }
  say(p, "train:\n  batch: %d\n  optimizer: {name: sgd, lr: 0.1}\n  until: ", batch);
  say_interval(p, &rng, batch, steps, IN_SAMPLES, step_s);
  say(p, "\n  eval_every: ");
  if (evals > 0)
    say_interval(p, &rng, batch, steps / evals, IN_EPOCHS, step_s);
  else
    say(p, "{epochs: 0}");
  say(p,
      "\ncompute: {step: %.6f s, variation: %g, update: %.6f s, apply: %.6f s, encode: %.6f s, "
      "checkpoint: %.0f bit/s}\n",
      step_s, chance(&rng, 0.4) ? 0 : between(&rng, 0.02, 0.2), step_s * between(&rng, 0, 0.03),
      step_s * between(&rng, 0, 0.03), step_s * between(&rng, 0, 0.03),
      32.0 * (double)p->parameters / (step_s * magnitude(&rng, 1, 300)));
  if (chance(&rng, 0.5)) {
    say(p, "checkpoint: {every: ");
    say_interval(p, &rng, batch, steps / magnitude(&rng, 1, 100), IN_MINUTES, step_s);
    say(p, "}\n");
  }
  double message_s = step_s * (double)period * magnitude(&rng, 0.05, 3),
         run_s = steps * fmax(step_s, message_s / (double)period);
  make_wan(p, &rng, n, 32.0 * (double)p->parameters / message_s, run_s);
}

/* ---- results --------------------------------------------------------------------------------- */

typedef struct {
  double time, cost, bytes; /* relative errors */
  double width;             /* high minus low, relative to the time of the whole */
  bool inside, why;
} finding;

/* Ranks at 0.1 USD an hour, traffic at 0.09 USD a GB. */
static double cost_of(const fixture *f, const gt_sim_forecast *x) {
  int ranks = 0;
  for (size_t r = 0; r < f->job->nregions; r++) ranks += f->job->regions[r].ranks;
  return ranks * 0.1 * x->virtual_s / 3600 +
         0.09e-9 * (double)(x->totals.bytes_sent + x->totals.bytes_other);
}

static double apart(double x, double whole) {
  return whole > 0 ? fabs(x - whole) / whole : 0;
}

static finding compare(const fixture *f, const gt_sim_forecast *whole, const gt_sim_forecast *x) {
  return (finding){.time = apart(x->virtual_s, whole->virtual_s),
                   .cost = apart(cost_of(f, x), cost_of(f, whole)),
                   .bytes = apart((double)(x->totals.bytes_sent + x->totals.bytes_other),
                                  (double)(whole->totals.bytes_sent + whole->totals.bytes_other)),
                   .width = 2 * x->error_s / whole->virtual_s,
                   .inside = fabs(x->virtual_s - whole->virtual_s) <=
                             x->error_s + 1e-9 * whole->virtual_s,
                   .why = x->why != GT_SIM_KNOWN};
}

static finding try_job(uint64_t seed, bool list) {
  plot p;
  fixture f;
  gt_sim_forecast whole, x;
  make(&p, seed);
  open_fixture(&f, &p);
  if (gt_sim_predict(&whole, &f.spec, 0) != GT_OK) fail_msg("%s\n%s", gt_error_text(), p.text);
  int64_t most = (int64_t)fmax(EVENTS_MIN, (double)whole.totals.events / p.events);
  must(gt_sim_predict(&x, &f.spec, most));
  finding found = compare(&f, &whole, &x);
  if (list)
    print_message("%4d %-7s %s %zu  %10.1f s %8lld events, %8lld of %8lld: time %6.3f %% bytes "
                  "%6.3f %% width %6.2f %%%s%s\n",
                  (int)seed, gt_strategy_names[f.job->sync.strategy],
                  gt_local_names[f.job->sync.local], f.job->nregions, whole.virtual_s,
                  (long long)whole.totals.events, (long long)x.totals.events, (long long)most,
                  100 * found.time, 100 * found.bytes, 100 * found.width,
                  found.inside ? "" : "  OUTSIDE", found.why ? "  reason" : "");
  gt_sim_forecast_close(&whole);
  gt_sim_forecast_close(&x);
  close_fixture(&f);
  return found;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the value below which this share of them lies. */
static double quantile(double *values, size_t n, double share) {
  qsort(values, n, sizeof *values, by_size);
  return values[(size_t)(share * (double)(n - 1) + 0.5)];
}

static size_t number(const char *name, size_t otherwise) {
  const char *text = getenv(name);
  return text ? (size_t)strtoul(text, NULL, 10) : otherwise;
}

static void show(const char *what, double *values, size_t n) {
  double median = quantile(values, n, 0.5), most = quantile(values, n, 0.95);
  print_message("%-6s %.3f %% (median), %.3f %% (95 of 100), %.3f %% (worst)\n", what, 100 * median,
                100 * most, 100 * values[n - 1]);
}

static void test_random_jobs(void) {
  size_t n = number("GEOTRAIN_FORECAST_JOBS", cases(12, 2)),
         from = number("GEOTRAIN_FORECAST_FROM", 1), outside = 0, wide = 0, why = 0;
  bool list = getenv("GEOTRAIN_FORECAST_LIST") != NULL;
  double *v[4];
  for (size_t k = 0; k < 4; k++) v[k] = GT_NEW_ARRAY(double, n);
  for (size_t i = 0; i < n; i++) {
    finding found = try_job(from + i, list);
    v[0][i] = found.time, v[1][i] = found.cost, v[2][i] = found.bytes, v[3][i] = found.width;
    outside += !found.inside;
    wide += found.width > 0.1 && !found.why;
    why += found.why;
  }
  show("time", v[0], n);
  show("cost", v[1], n);
  show("bytes", v[2], n);
  show("width", v[3], n);
  print_message(
      "%zu of %zu jobs outside, %zu wider than 10 %% without a reason, %zu with a reason\n",
      outside, n, wide, why);
  assert_true(quantile(v[0], n, 0.5) < 0.01 && quantile(v[1], n, 0.5) < 0.01 &&
              quantile(v[2], n, 0.5) < 0.01);
  assert_true(n < 20 || (quantile(v[0], n, 0.95) < 0.05 && quantile(v[1], n, 0.95) < 0.05 &&
                         quantile(v[2], n, 0.95) < 0.05));
  assert_true(wide == 0);
  assert_true((double)outside <= fmax(1, 0.05 * (double)n));
  for (size_t k = 0; k < 4; k++) gt_free(v[k]);
}

/* ---- rare events ----------------------------------------------------------------------------- */

#define WITHOUT_S 1727262 /* of the whole simulation */

/* 20 days.  An outage of 30 minutes costs at most 30 minutes and a few rounds, at any time. */
static void test_one_outage(void) {
  static const double from_s[] = {1000, 20000, 100000, 870000, 1500000};
  for (size_t i = 0; i < 1 + COUNT(from_s); i++) {
    plot p = {.samples = {20000, 20000}, .parameters = 61706};
    fixture f;
    gt_sim_forecast x;
    say(&p, "name: once\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: {batch: 64, "
            "optimizer: {name: sgd, lr: 0.1}, until: {steps: 1740000}, "
            "eval_every: {epochs: 0}}\nregions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\nsync: "
            "{strategy: sma, period: 8}\ncompute: {step: 0.9855 s}\n"
            "wan:\n  default: {bandwidth: 100 Mbit/s, latency: 50 ms}\n");
    if (i > 0)
      say(&p, "  outages: [{between: [a, b], from: %.0f s, for: 30 min}]\n", from_s[i - 1]);
    open_fixture(&f, &p);
    must(gt_sim_predict(&x, &f.spec, 200000));
    print_message("outage at %7.0f s: %.0f s, error said %.0f s\n", i > 0 ? from_s[i - 1] : NAN,
                  x.virtual_s, x.error_s);
    assert_true(x.error_s < 0.01 * x.virtual_s);
    assert_true(fabs(x.virtual_s - (i > 0 ? WITHOUT_S + 1800 : WITHOUT_S)) < x.error_s);
    gt_sim_forecast_close(&x);
    close_fixture(&f);
  }
}

/* Simulates the job in whole, and forecasts it with a part of the events.  held: of each region. */
static void predict_twice(gt_sim_forecast *whole, gt_sim_forecast *x, const plot *p,
                          const int64_t *held, int64_t part) {
  fixture f;
  open_fixture(&f, p);
  f.spec.held = held;
  must(gt_sim_predict(whole, &f.spec, 0));
  must(gt_sim_predict(x, &f.spec, whole->totals.events / part));
  close_fixture(&f);
}

/* What is left to send waits for the end of an outage in which the training ends. */
static void test_outage_at_the_end(void) {
  static const char *const outages[] = {"from: 1300 s, for: 600 s", "from: 1000 s, for: 20000 s"};
  for (size_t i = 0; i < 2; i++) {
    plot p = {.samples = {12000, 12000}, .parameters = 20000};
    gt_sim_forecast whole, x;
    say(&p,
        "name: late\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: {batch: 32, "
        "optimizer: {name: sgd, lr: 0.1}, until: {epochs: 400}, eval_every: {epochs: 0}}\n"
        "regions: [{name: a, ranks: 3}, {name: b, ranks: 3}]\nsync: {strategy: ama, local: "
        "async, period: 8}\ncompute: {step: 20 ms}\nwan: {default: {bandwidth: 50 Mbit/s, "
        "latency: 25 ms}, outages: [{between: [a, b], %s}]}\n",
        outages[i]);
    predict_twice(&whole, &x, &p, NULL, 12);
    print_message("outage %s: %.1f s, forecast %.1f s, error said %.1f s\n", outages[i],
                  whole.virtual_s, x.virtual_s, x.error_s);
    assert_true(fabs(x.virtual_s - whole.virtual_s) <= x.error_s + 1e-9 * whole.virtual_s);
    assert_true(apart((double)x.totals.bytes_sent, (double)whole.totals.bytes_sent) < 0.01);
    gt_sim_forecast_close(&whole);
    gt_sim_forecast_close(&x);
  }
}

/* Evaluations every fifth of the run take a sixth of its time. */
static void test_few_evaluations(void) {
  static const char *const every[] = {"{epochs: 4}", "{steps: 4000}"};
  for (size_t i = 0; i < 2; i++) {
    plot p = {.samples = {20000, 20000}, .parameters = 61706, .test_samples = 200000};
    gt_sim_forecast whole, x;
    say(&p,
        "name: fifth\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: {batch: 20, optimizer: "
        "{name: sgd, lr: 0.1}, until: {epochs: 20}, "
        "eval_every: "
        "%s}\nregions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\nsync: {strategy: asgd-ga, "
        "period: 8}\n"
        "compute: {step: 0.045 s, eval_samples_per_s: 5000}\nwan: {default: {bandwidth: 100 "
        "Mbit/s, latency: 25 ms}}\n",
        every[i]);
    predict_twice(&whole, &x, &p, NULL, 12);
    print_message("eval_every %-16s %.1f s, forecast %.1f s, error said %.1f s\n", every[i],
                  whole.virtual_s, x.virtual_s, x.error_s);
    assert_true(fabs(x.virtual_s - whole.virtual_s) <= fmin(x.error_s, 0.005 * whole.virtual_s));
    gt_sim_forecast_close(&whole);
    gt_sim_forecast_close(&x);
  }
}

/* Validations follow checkpoints, and take a third of the run's time. */
static void test_validations(void) {
  static const int64_t held[] = {20000, 20000};
  plot p = {.samples = {20000, 20000}, .parameters = 61706};
  gt_sim_forecast whole, x;
  say(&p, "name: validated\nmodel: {name: lenet5}\ndata: {path: none.h5, validation: 0.5}\ntrain: "
          "{batch: 20, optimizer: {name: sgd, lr: 0.1}, until: {epochs: 100}, eval_every: {epochs: "
          "0}}\nregions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\nsync: {strategy: sma, period: "
          "8}\ncheckpoint: {every: {epochs: 1}}\ncompute: {step: 0.045 s, eval_samples_per_s: "
          "900}\nwan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n");
  predict_twice(&whole, &x, &p, held, 12);
  print_message("validations: %.1f s, forecast %.1f s, error said %.1f s\n", whole.virtual_s,
                x.virtual_s, x.error_s);
  assert_true(fabs(x.virtual_s - whole.virtual_s) <= fmin(x.error_s, 0.03 * whole.virtual_s));
  gt_sim_forecast_close(&whole);
  gt_sim_forecast_close(&x);
}

/* Without variation, a run repeats itself: its forecast has the same steps, samples and messages,
   and the same time. */
static void test_without_variation(void) {
  static const char *const strategies[] = {"none", "ssgd", "asgd", "asgd-ga", "ama", "sma"};
  for (size_t i = 0; i < 6; i++) {
    plot p = {.samples = {2000, 2000, 2000}, .parameters = 61706};
    gt_sim_forecast whole, x;
    say(&p,
        "name: even\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: {batch: 20, optimizer: "
        "{name: sgd, lr: 0.1}, until: {epochs: 400}, eval_every: {epochs: 0}}\n"
        "regions: [{name: a, ranks: 3}, {name: b, ranks: 3}, {name: c, ranks: 3}]\n"
        "sync: {strategy: %s, local: sync, period: %d}\ncompute: {step: 0.045 s}\n"
        "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n",
        strategies[i], i < 3 ? 1 : 8);
    predict_twice(&whole, &x, &p, NULL, 5);
    print_message("even %-8s %.9f s, forecast %.9f s from %.1f %% of it\n", strategies[i],
                  whole.virtual_s, x.virtual_s, 100 * x.part);
    assert_true(x.part < 0.2);
    assert_true(fabs(x.virtual_s - whole.virtual_s) <= 1e-8 * whole.virtual_s);
    assert_true(x.totals.steps == whole.totals.steps && x.totals.samples == whole.totals.samples);
    assert_true(x.totals.messages == whole.totals.messages);
    assert_true(x.totals.bytes_sent == whole.totals.bytes_sent);
    gt_sim_forecast_close(&whole);
    gt_sim_forecast_close(&x);
  }
}

/* A period of passes is longer in a region with more workers.  With a barrier, all regions make the
   same number of exchanges in the skipped time; without, each sends at its own pace. */
static void test_passes(void) {
  static const char *const strategies[] = {"sma", "asgd-ga", "ama"};
  for (size_t i = 0; i < 3; i++) {
    plot p = {.samples = {60000, 20000}, .parameters = 61706};
    gt_sim_forecast whole, x;
    say(&p,
        "name: passes\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: {batch: 20, optimizer: "
        "{name: sgd, lr: 0.1}, until: {epochs: 20}, eval_every: {epochs: 0}}\n"
        "regions: [{name: a, ranks: 4}, {name: b, ranks: 2}]\n"
        "sync: {strategy: %s, local: async, period: 8, period_unit: pass}\n"
        "compute: {step: 0.045 s, variation: 0.05}\n"
        "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n",
        strategies[i]);
    predict_twice(&whole, &x, &p, NULL, 12);
    print_message("passes of %-8s %.1f s, forecast %.1f s, error said %.1f s; %lld messages, "
                  "forecast %lld\n",
                  strategies[i], whole.virtual_s, x.virtual_s, x.error_s,
                  (long long)whole.totals.messages, (long long)x.totals.messages);
    assert_true(x.totals.events < whole.totals.events / 2);
    assert_true(fabs(x.virtual_s - whole.virtual_s) <= 0.01 * whole.virtual_s);
    for (size_t k = 1; k <= 2; k++) { /* from a to b, and back */
      const double sent = whole.links[k].messages;
      assert_true(fabs(x.links[k].messages - sent) <= 0.01 * sent);
    }
    gt_sim_forecast_close(&whole);
    gt_sim_forecast_close(&x);
  }
}

TESTS(test_one_outage, test_outage_at_the_end, test_few_evaluations, test_validations,
      test_without_variation, test_passes, test_random_jobs)
