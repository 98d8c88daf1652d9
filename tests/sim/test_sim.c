/* Laws of a simulation: the traffic of each strategy; the duration of a run without special
   events; forecasts that agree with the whole; and an error for a simulation in which nothing
   progresses. */
#include "jobs.h"
#include "tests.h"
#include "geotrain/sim.h"

#define PARAMETERS 1000
#define BUFFERS    10

static gt_job *job_of(const char *strategy, int period, int steps, const char *more) {
  return job_as(
      "name: law\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
      "train: {until: {steps: %d}, batch: 10, optimizer: {name: sgd, lr: 0.1}, eval_every: "
      "{epochs: 0}}\n"
      "regions:\n  - {name: a, ranks: 2, samples: 1000}\n  - {name: b, ranks: 3, samples: "
      "1000}\n  - {name: c, ranks: 2, samples: 1000}\n"
      "sync: {strategy: %s, period: %d}\ncompute: {step: 10 ms}\nwan: {default: {bandwidth: "
      "100 Mbit/s, latency: 20 ms}%s}\n",
      steps, strategy, period, more);
}

typedef struct {
  gt_job *job;
  gt_links *links;
  gt_sim_spec spec;
} fixture;

static const int64_t samples[] = {1000, 1000, 1000};

static void open_spec(fixture *f) {
  must(gt_links_create(&f->links, f->job));
  f->spec = (gt_sim_spec){.job = f->job,
                          .links = f->links,
                          .parameters = PARAMETERS,
                          .buffers = BUFFERS,
                          .samples = samples};
}

static fixture open_fixture(const char *strategy, int period, int steps, const char *more) {
  fixture f = {.job = job_of(strategy, period, steps, more)};
  open_spec(&f);
  return f;
}

static void close_fixture(fixture *f) {
  gt_links_close(f->links);
  gt_job_close(f->job);
}

/* Every update is sent once to every other region, and so is every model; accumulated updates are
   sent at the end, too. */
static void test_what_is_sent(void) {
  static const struct {
    const char *strategy;
    int period, steps, each;
    size_t floats;
  } cases[] = {{"none", 1, 20, 0, 0},
               {"ssgd", 1, 20, 20, PARAMETERS},
               {"asgd", 1, 20, 20, PARAMETERS},
               {"asgd-ga", 8, 20, 3, PARAMETERS},
               {"sma", 8, 24, 3, PARAMETERS + BUFFERS},
               {"sma", 8, 25, 4, PARAMETERS + BUFFERS}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    fixture f = open_fixture(cases[i].strategy, cases[i].period, cases[i].steps, "");
    gt_sim *sim = NULL;
    gt_sim_totals t;
    must(gt_sim_run(&sim, &f.spec));
    gt_sim_get_totals(sim, &t);
    assert_int_equal(t.messages, 6 * cases[i].each);
    assert_int_equal(t.bytes_sent,
                     6 * cases[i].each * (int64_t)gt_wire_bytes(cases[i].floats * sizeof(float)));
    assert_int_equal(t.steps, 3 * cases[i].steps);
    /* Region b has two workers, which run in step. */
    assert_int_equal(t.samples, 4 * 10 * cases[i].steps);
    gt_sim_close(sim);
    close_fixture(&f);
  }
}

/* messages: those sent by each region. */
static gt_sim_totals totals_of(const char *sync, int period, int steps, double messages[3]) {
  fixture f = open_fixture(sync, period, steps, "");
  gt_sim_forecast x;
  must(gt_sim_predict(&x, &f.spec, 0));
  for (size_t a = 0; a < 3; a++) {
    messages[a] = 0;
    for (size_t b = 0; b < 3; b++)
      if (a != b) messages[a] += x.links[3 * a + b].messages;
  }
  gt_sim_totals t = x.totals;
  gt_sim_forecast_close(&x);
  close_fixture(&f);
  return t;
}

/* A period of passes: workers that run at their own pace make one step each in a pass, so region b,
   which has two, sends half as often.  Workers in step make a pass at every step. */
static void test_passes(void) {
  static const char *const strategies[] = {"asgd-ga", "sma", "ama"};
  for (size_t i = 0; i < 3; i++) {
    char by_steps[64], by_passes[96];
    double by_step[3], by_pass[3];
    for (int sync = 0; sync < 2; sync++) {
      const char *local = sync ? "sync" : "async";
      snprintf(by_steps, sizeof by_steps, "%s, local: %s", strategies[i], local);
      snprintf(by_passes, sizeof by_passes, "%s, period_unit: pass", by_steps);
      gt_sim_totals s = totals_of(by_steps, 4, 48, by_step),
                    p = totals_of(by_passes, 4, 48, by_pass);
      for (size_t r = 0; r < 3; r++) {
        assert_true(by_step[r] == 2 * 12);
        assert_true(by_pass[r] == (!sync && r == 1 ? 2 * 6 : 2 * 12));
      }
      assert_true(sync ? s.events == p.events && s.virtual_s == p.virtual_s
                       : p.bytes_sent < s.bytes_sent);
    }
  }
}

/* The kind of message makes no difference to a simulation. */
static void test_gradients_are_as_large(void) {
  double messages[3];
  gt_sim_totals u = totals_of("asgd-ga", 4, 30, messages),
                g = totals_of("asgd-ga, exchange: gradient", 4, 30, messages);
  assert_true(u.events == g.events && u.bytes_sent == g.bytes_sent && u.virtual_s == g.virtual_s);
}

/* Without exchanges, a region's time is that of its steps; with ssgd each step waits for a message
   and a latency. */
static void test_time_of_simple_runs(void) {
  const double message_s = 8.0 * (double)gt_wire_bytes(PARAMETERS * sizeof(float)) / 100e6;
  const struct {
    const char *strategy;
    double step_s;
  } cases[] = {{"none", 0.010}, {"ssgd", 0.010 + message_s + 0.020}};
  for (size_t i = 0; i < 2; i++) {
    fixture f = open_fixture(cases[i].strategy, 1, 50, "");
    gt_sim *sim = NULL;
    gt_region_result r;
    must(gt_sim_run(&sim, &f.spec));
    for (size_t region = 0; region < 3; region++) {
      gt_sim_region(sim, region, &r);
      assert_true(fabs(r.compute_s - 0.5) < 1e-9);
      assert_true(fabs(r.compute_s + r.wan_wait_s + r.local_wait_s - 50 * cases[i].step_s) <
                  0.05 * cases[i].step_s * 50);
    }
    gt_sim_close(sim);
    close_fixture(&f);
  }
}

/* The 8 steps after a wait of 5 ms take longer: with sma all of the second and third period, with
   shorter exchanges none. */
static void test_resumed(void) {
  static const struct {
    const char *strategy, *links;
    double compute_s;
  } cases[] = {{"none", "", 0.240},
               {"sma", "", 0.240 + 16 * 0.002},
               {"sma",
                ", links: [{between: [a, b], latency: 1 ms}, {between: [a, c], latency: 1 ms}, "
                "{between: [b, c], latency: 1 ms}]",
                0.240}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    fixture f = open_fixture(cases[i].strategy, 8, 24, cases[i].links);
    gt_sim *sim = NULL;
    gt_region_result r;
    f.job->compute.resume_s = 0.002;
    must(gt_sim_run(&sim, &f.spec));
    for (size_t region = 0; region < 3; region++) {
      gt_sim_region(sim, region, &r);
      assert_true(fabs(r.compute_s - cases[i].compute_s) < 1e-9);
    }
    gt_sim_close(sim);
    close_fixture(&f);
  }
}

/* A forecast of a part agrees with the whole within its stated error, at most 0.5 %, with steps
   that vary by 10 %; its traffic within one message per link. */
static void test_forecasts(void) {
  static const char *const strategies[] = {"none", "ssgd", "asgd", "asgd-ga", "ama", "sma"};
  for (size_t i = 0; i < COUNT(strategies); i++) {
    fixture f = open_fixture(strategies[i], 8, 8000, "");
    f.job->compute_variation = 0.1;
    gt_sim_forecast whole, part;
    must(gt_sim_predict(&whole, &f.spec, 0));
    assert_true(whole.part == 1 && whole.error_s == 0);
    must(gt_sim_predict(&part, &f.spec, whole.totals.events / 5));
    assert_true(part.part < 0.2);
    double apart = fabs(part.virtual_s - whole.virtual_s);
    print_message("%-8s %.1f s, forecast from %.1f %% of it: %.4f s apart, error said %.4f s\n",
                  strategies[i], whole.virtual_s, 100 * part.part, apart, part.error_s);
    assert_true(apart <= 0.005 * whole.virtual_s &&
                apart <= 0.001 * whole.virtual_s + part.error_s);
    for (size_t l = 0; l < 9; l++)
      assert_true(fabs(part.links[l].messages - whole.links[l].messages) <= 1.5);
    assert_true(llabs(part.totals.samples - whole.totals.samples) <= 40);
    gt_sim_forecast_close(&part);
    gt_sim_forecast_close(&whole);
    close_fixture(&f);
  }
}

/* Of two regions, because a million seconds of their heartbeats are simulated. */
static void test_stuck(void) {
  gt_sim *sim = NULL;
  fixture f = {0};
  must(gt_job_parse(&f.job, "test",
                    "name: stuck\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                    "train: {until: {steps: 100}, batch: 10, optimizer: {name: sgd, lr: 0.1}}\n"
                    "regions: [{name: a, ranks: 2, samples: 1000}, {name: b, ranks: 2, samples: "
                    "1000}]\nsync: {strategy: sma, period: 8}\ncompute: {step: 10 ms}\n"
                    "wan: {default: {bandwidth: 100 Mbit/s, latency: 20 ms}, "
                    "outages: [{between: [a, b], from: 0 s, for: 1e8 s}]}\n"));
  open_spec(&f);
  must_fail(
      gt_sim_run(&sim, &f.spec), GT_ERR_LIMIT,
      "nothing moves any more (for 1000000 s); is there an outage without end, a link without "
      "bandwidth, or a step, message or outage that takes longer?");
  close_fixture(&f);
}

/* At the end the mean is sent once from the lead to each other region that scores it, also if the
   lead scores it itself, and a score is returned; in a forecast as in the whole. */
static void test_who_scores_the_mean(void) {
  static const gt_ps_tests cases[][3] = {{{100, true, 0}, {100, false, 0}, {100, false, 0}},
                                         {{100, true, 0}, {50, true, 1}, {100, false, 0}},
                                         {{0, false, 0}, {50, true, 1}, {3000, true, 2}},
                                         {{100, true, 0}, {0, false, 1}, {0, false, 1}}};
  const double model = (double)gt_wire_bytes((PARAMETERS + BUFFERS) * sizeof(float)),
               score = (double)gt_wire_bytes(sizeof(gt_ps_score));
  for (size_t i = 0; i < COUNT(cases); i++) {
    fixture f = open_fixture("asgd-ga", 8, 24, "");
    gt_sim *sim = NULL;
    gt_sim_forecast plain, x;
    must(gt_sim_predict(&plain, &f.spec, 0));
    f.spec.tests = cases[i];
    must(gt_sim_predict(&x, &f.spec, 0));
    must(gt_sim_run(&sim, &f.spec));
    for (size_t r = 1; r < 3; r++) {
      gt_link_result link;
      int64_t models = 0;
      gt_sim_link(sim, 0, r, &link);
      for (size_t k = 0; k < GT_RESULT_KINDS; k++)
        if (strcmp(link.kinds[k].kind, "model") == 0) models += link.kinds[k].messages;
      assert_int_equal(models, cases[i][r].scores);
      /* The rest of the difference is heartbeats, of 64 bytes, and digits of the results. */
      const double there = x.links[r].bytes_other - plain.links[r].bytes_other,
                   back = x.links[3 * r].bytes_other - plain.links[3 * r].bytes_other,
                   scored = cases[i][r].scores;
      assert_true(fabs(there - scored * model) <= 4 * 64);
      assert_true(fmod(fabs(there - scored * model), 64) == 0);
      assert_true(fabs(back - scored * score) <= 8 * 64 + 40);
    }
    assert_true(x.totals.bytes_sent == plain.totals.bytes_sent);
    gt_sim_close(sim);
    gt_sim_forecast_close(&x);
    gt_sim_forecast_close(&plain);
    close_fixture(&f);
  }
}

static void test_refused(void) {
  gt_sim *sim = NULL;
  fixture f = open_fixture("sma", 8, 100, "");
  f.job->compute.step_s = 0;
  must_fail(gt_sim_run(&sim, &f.spec), GT_ERR_JOB, "region a");
  close_fixture(&f);
}

TESTS(test_what_is_sent, test_passes, test_gradients_are_as_large, test_time_of_simple_runs,
      test_resumed, test_forecasts, test_stuck, test_who_scores_the_mean, test_refused)
