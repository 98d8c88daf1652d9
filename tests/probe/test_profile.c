/* A profile made from given measurements: a simulation with it has the pace that the measured
   workers would have together, and its links are read back as they were measured. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "jobs.h"
#include "geotrain/ps_work_time.h"
#include "geotrain/sim.h"
#include "world.h"

#define STEPS   200
#define BATCH   10
#define WORKERS 4

static const char *path;

/* A job of one region with this many workers, which exchanges nothing. */
static gt_job *job_of(const char *local, int workers, const char *profile) {
  return job_as(
      "name: law\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
      "train: {until: {steps: %d}, batch: %d, optimizer: {name: sgd, lr: 0.1}, eval_every: "
      "{epochs: 0}}\n"
      "regions: [{name: a, ranks: %d, samples: 100000}]\nsync: {local: %s, strategy: "
      "none}\nwan: {default: {latency: 1 ms}}\n%s%s\n",
      STEPS, BATCH, workers + 1, local, profile ? "profile: " : "", profile ? profile : "");
}

/* Writes the profile of a region with these measured workers. */
static void write_profile(const gt_probe_rank *workers, int n) {
  gt_probe_options options = {0};
  gt_probe_state p = {.options = &options,
                      .run = {.job = job_of("sync", n, NULL), .roles = {.world_size = n + 1}}};
  p.ranks = GT_NEW_ARRAY(gt_probe_rank, (size_t)n + 1);
  p.all_links = GT_NEW_ARRAY(gt_probe_link, 1);
  p.access_bps = GT_NEW_ARRAY(double, 1);
  snprintf(p.folder_error, sizeof p.folder_error, "none was tried");
  for (int i = 0; i < n; i++) {
    p.ranks[i + 1] = workers[i];
    p.ranks[i + 1].region_rank = i + 1;
  }
  must(gt_probe_profile(&p, path));
  gt_free(p.ranks);
  gt_free(p.all_links);
  gt_free(p.access_bps);
  gt_job_close(p.run.job);
}

static void write_speeds(const double *samples_per_s, int n) {
  gt_probe_rank workers[8] = {{0}};
  for (int i = 0; i < n; i++)
    workers[i] = (gt_probe_rank){.steps = 1000, .samples_per_s = samples_per_s[i]};
  write_profile(workers, n);
}

/* Samples per second of the whole region in a simulated run of STEPS. */
static double simulated(const char *local, int workers) {
  gt_job *job = job_of(local, workers, path);
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  gt_sim_totals t;
  const int64_t samples = 100000;
  must(gt_links_create(&links, job));
  gt_sim_spec spec = {.job = job, .links = links, .parameters = 10, .samples = &samples};
  must(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, &t);
  double rate = (double)t.samples / t.train_s;
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  return rate;
}

static void assert_near(const char *what, double found, double needed, double share) {
  if (!(fabs(found - needed) <= share * needed))
    fail_msg("%s: found %.6g, needed %.6g", what, found, needed);
}

/* With a barrier the slowest worker sets the pace; without one, the sum of all counts. */
static void test_pace_of_a_region(void) {
  static const double cases[][WORKERS] = {{1000, 1000, 1000, 1000},
                                          {1000, 972, 972, 972},
                                          {1000, 980, 700, 655.44},
                                          {50, 400, 390, 410}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    double sum = 0, least = INFINITY;
    for (int w = 0; w < WORKERS; w++) {
      sum += cases[i][w];
      least = fmin(least, cases[i][w]);
    }
    write_speeds(cases[i], WORKERS);
    assert_near("with a barrier", simulated("sync", WORKERS), WORKERS * least, 0.002);
    /* the run waits for the last steps of the slow ones */
    assert_near("without", simulated("async", WORKERS), sum, 0.01);
  }
}

/* With a different number of workers none has its own figure: each is assumed to be as fast as the
   mean. */
static void test_other_number_of_workers(void) {
  write_speeds((const double[]){1000, 980, 700, 655.44}, 4);
  assert_near("of two", simulated("async", 2), 2 * 833.86, 0.01);
}

/* Evaluation also uses the sum of all workers. */
static void test_evaluation(void) {
  write_profile((const gt_probe_rank[]){{.samples_per_s = 1000, .eval_samples_per_s = 3000},
                                        {.samples_per_s = 500, .eval_samples_per_s = 1500}},
                2);
  gt_job *job = job_of("sync", 2, path);
  gt_job_compute c = gt_job_compute_of(job, 0);
  gt_order order = {.batch = BATCH};
  for (size_t w = 0; w < 2; w++)
    assert_near("of 3000 samples", gt_seconds(gt_cost_eval(job, &order, &c, w, 3000)), w ? 2 : 1,
                0.001);
  gt_job_close(job);
}

/* A figure is read back as it was measured. */
static void test_figures(void) {
  static const double rates[] = {1000, 123.456, 0.765432, 999.888};
  write_speeds(rates, 4);
  gt_job *job = job_of("sync", 4, path);
  gt_job_compute c = gt_job_compute_of(job, 0);
  for (size_t w = 0; w < 4; w++)
    assert_near("samples/s", c.samples_per_s * job->regions[0].measured[w], rates[w], 5e-5);
  gt_job_close(job);
}

/* Differences within the measurement errors are ignored: equal workers must not all get the pace of
   the slowest measurement. */
static void test_noise(void) {
  static const double rates[] = {1004, 996, 1002, 998};
  gt_probe_rank workers[WORKERS] = {{0}};
  for (int i = 0; i < WORKERS; i++)
    workers[i] = (gt_probe_rank){.samples_per_s = rates[i], .rate_error = 0.002};
  write_profile(workers, WORKERS);
  assert_near("with a barrier", simulated("sync", WORKERS), WORKERS * 1000, 1e-6);
  workers[1].rate_error = 0.0005;
  write_profile(workers, WORKERS);
  assert_near("a difference that is one", simulated("sync", WORKERS), WORKERS * 996, 1e-4);
}

/* Steps of 10 ms, longer by this noise after a pause; returns the resume time in the profile. */
static double resume_of(const double noise_s[WORKERS]) {
  gt_probe_rank workers[WORKERS] = {{0}};
  for (int i = 0; i < WORKERS; i++) {
    gt_probe_tally warm = {
        .compute_s = 1, .compute_s2 = 0.0101, .wait_s = 0.1, .samples = 1000, .steps = 100};
    gt_probe_tally paused = {
        .compute_s = 0.08 + 8 * noise_s[i], .wait_s = 0.008, .samples = 80, .steps = 8};
    gt_probe_tell(&workers[i], &warm, &paused);
    assert_near("samples/s", workers[i].samples_per_s, 1000, 1e-9);
    assert_near("error of a mean of 100", workers[i].rate_error, 0.1 / sqrt(99), 1e-6);
  }
  write_profile(workers, WORKERS);
  gt_job *job = job_of("sync", WORKERS, path);
  double resume_s = gt_job_compute_of(job, 0).resume_s;
  gt_job_close(job);
  return resume_s;
}

static void test_after_a_pause(void) {
  double none = resume_of((const double[]){200e-6, -200e-6, 100e-6, -100e-6}),
         below = resume_of((const double[]){200e-6, -300e-6, 0, 0});
  if (none > 1e-9 || below > 0)
    fail_msg("nothing but noise, and compute.resume is %g and %g us", 1e6 * none, 1e6 * below);
  assert_near("resume", resume_of((const double[]){500e-6, -100e-6, 300e-6, 100e-6}), 200e-6, 1e-3);
}

/* ---- links ----------------------------------------------------------------------------------- */

#define THREE "[{name: a, ranks: 2}, {name: b, ranks: 2}, {name: c, ranks: 2}]"
#define WAN   "{emulate: true, default: {bandwidth: 1 Gbit/s, latency: 1 ms}}"

static const gt_probe_link fitted = {.latency_s = 0.02,
                                     .bandwidth_bps = 40e6,
                                     .fit_bandwidth_bps = 41e6,
                                     .fit_latency_s = 0.0225,
                                     .setup_rtts = 1.5,
                                     .eager_bytes = 65536,
                                     .window_bytes = 28960,
                                     .idle_s = 0.35,
                                     .profile_bps = 31.25e6};

/* A link is read back as its transport was fitted, at the profile's rate; if nothing was fitted, as
   it was measured. */
static void check_links(const gt_link_spec *from_a) {
  assert_near("rate", from_a[1].bandwidth_bps, 31.25e6, 1e-6);
  assert_near("latency, fitted", from_a[1].latency_s, 0.0225, 1e-6);
  assert_near("set-up", from_a[1].setup_rtts, 1.5, 1e-6);
  assert_near("eager", from_a[1].eager_bytes, 65536, 1e-6);
  assert_near("window", from_a[1].window_bytes, 28960, 1e-6);
  assert_near("idle", from_a[1].idle_s, 0.35, 1e-6);
  assert_near("rate", from_a[2].bandwidth_bps, 5e6, 1e-6);
  assert_near("latency, measured", from_a[2].latency_s, 0.03, 1e-6);
  assert_true(from_a[2].setup_rtts == 0 && from_a[2].window_bytes == 0);
}

static void test_links(void) {
  char wan[256];
  gt_links *links = NULL;
  gt_probe_state *p = w_found(THREE, WAN);
  *w_link(p, 0, 1) = fitted;
  *w_link(p, 0, 2) = (gt_probe_link){.latency_s = 0.03, .bandwidth_bps = 6e6, .profile_bps = 5e6};
  p->access_bps[1] = 77e6;
  must(gt_probe_profile(p, path));
  w_close(p);
  snprintf(wan, sizeof wan, WAN "\nprofile: %s", path);
  gt_job *job = w_job(THREE, wan);
  must(gt_links_create(&links, job));
  check_links(gt_links_from(links, 0));
  assert_near("the other way", gt_links_from(links, 1)[0].bandwidth_bps, 1e9, 1e-6);
  assert_near("access", job->regions[1].access_bps, 77e6, 1e-6);
  assert_true(job->regions[0].access_bps == 0 && job->regions[2].access_bps == 0);
  gt_links_close(links);
  gt_job_close(job);
}

/* A profile is written completely or not at all. */
static void test_no_room(void) {
  gt_probe_state *p = w_found(THREE, WAN);
  must_say(gt_probe_profile(p, "/tmp/geotrain-no-such-folder/profile.yaml"), GT_ERR_CKPT,
           "the profile /tmp/geotrain-no-such-folder/profile.yaml "
           "cannot be written: No such file or directory");
  w_close(p);
}

int main(void) {
  path = in_folder("profile.yaml");
  return RUN_TESTS(NULL, NULL, test_pace_of_a_region, test_other_number_of_workers, test_evaluation,
                   test_figures, test_noise, test_after_a_pause, test_links, test_no_room);
}
