/* The time of a round of ssgd and its bytes over each topology, on equal links, beside what the
   equations say: bandwidth B, latency L, a model of m bytes on the wire, frames of f, k workers in
   each region. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geotrain/sim.h"

#define PARAMETERS ((size_t)11200000) /* 45 MB */
#define STEPS      4
#define RATE_BPS   100e6
#define LATENCY_S  0.050
#define MOST       16

/* way: a key of sync. */
static gt_job *job_of(size_t n, const char *way, size_t workers, const char *strategy) {
  char text[4096];
  int at = snprintf(text, sizeof text,
                    "name: law\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                    "train: {until: {steps: %d}, batch: 10, optimizer: {name: sgd, lr: 0.1}, "
                    "eval_every: {epochs: 0}}\n"
                    "sync: {strategy: %s, period: 1, %s}\ncompute: {step: 10 ms}\n"
                    "wan: {default: {bandwidth: 100 Mbit/s, latency: 50 ms}}\nregions:\n",
                    STEPS, strategy, way);
  for (size_t r = 0; r < n; r++)
    at += snprintf(text + at, sizeof text - (size_t)at,
                   "  - {name: r%zu, ranks: %zu, samples: 1000}\n", r, workers + 1);
  gt_job *job = NULL;
  assert_int_equal(gt_job_parse(&job, "test", text), GT_OK);
  return job;
}

typedef struct {
  double round_s;
  int64_t payload, messages; /* of all links; data */
  int64_t most;              /* payload of one link, a round */
} found;

/* region: whose rounds are timed. */
static found simulate_with(size_t n, const char *way, size_t workers, const char *strategy,
                           size_t buffers, size_t region) {
  int64_t samples[MOST];
  gt_job *job = job_of(n, way, workers, strategy);
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  gt_region_result r;
  gt_link_result *result = GT_NEW_ARRAY(gt_link_result, n);
  found f = {0};
  for (size_t i = 0; i < n; i++) samples[i] = 1000;
  assert_int_equal(gt_links_create(&links, job), GT_OK);
  const gt_sim_spec spec = {
      .job = job, .links = links, .parameters = PARAMETERS, .buffers = buffers, .samples = samples};
  assert_int_equal(gt_sim_run(&sim, &spec), GT_OK);
  gt_sim_region(sim, region, &r);
  f.round_s = (r.wan_wait_s + r.local_wait_s) / (STEPS - 1); /* after the last step nobody waits */
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      if (i == k) continue;
      gt_sim_link(sim, i, k, result);
      f.payload += result->payload_bytes;
      f.messages += result->messages;
      if (result->payload_bytes / STEPS > f.most) f.most = result->payload_bytes / STEPS;
    }
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  gt_free(result);
  return f;
}

static found simulate(size_t n, const char *topology) {
  char way[64];
  snprintf(way, sizeof way, "topology: %s", topology);
  return simulate_with(n, way, 1, "ssgd", 0, 0);
}

static void assert_near(const char *what, size_t n, double is, double expected) {
  if (fabs(is - expected) > 0.01 * expected)
    fail_msg("%s, %zu regions: %.4f s; %.4f s within 1 %% is needed", what, n, is, expected);
}

static const size_t sizes[] = {2, 3, 5, 8, 16};
static const double m = (double)PARAMETERS * sizeof(float);
static const double frame_s = 8 * (double)GT_FRAME_PAYLOAD_MAX / RATE_BPS;

static void test_mesh(void **state) {
  (void)state;
  for (size_t i = 0; i < 5; i++) {
    const size_t n = sizes[i];
    found f = simulate(n, "mesh");
    assert_near("mesh", n, f.round_s, 8 * m / RATE_BPS + LATENCY_S);
    assert_int_equal(f.most, (int64_t)m);
    assert_int_equal(f.payload, (int64_t)(n * (n - 1)) * STEPS * (int64_t)m);
  }
}

static void test_hub(void **state) {
  (void)state;
  for (size_t i = 0; i < 5; i++) {
    const size_t n = sizes[i];
    found f = simulate(n, "hub");
    assert_near("hub", n, f.round_s, 8 * m / RATE_BPS + 2 * LATENCY_S + frame_s);
    assert_int_equal(f.most, (int64_t)m);
    assert_int_equal(f.payload, 2 * (int64_t)(n - 1) * STEPS * (int64_t)m);
  }
}

static void test_ring(void **state) {
  (void)state;
  for (size_t i = 0; i < 5; i++) {
    const size_t n = sizes[i];
    found f = simulate(n, "ring");
    assert_near("ring", n, f.round_s,
                2 * (double)(n - 1) * (8 * m / (double)n / RATE_BPS + LATENCY_S));
    /* Every link carries the model twice, less two chunks. */
    assert_int_equal(f.payload, 2 * (int64_t)(n - 1) * STEPS * (int64_t)m);
    assert_true(fabs((double)f.most - (2 * m - 2 * m / (double)n)) < 4 * sizeof(float) * (double)n);
  }
}

/* Every worker's gradient, then the model for every worker, one after the other. */
static void test_central(void **state) {
  (void)state;
  for (size_t i = 0; i < 5; i++)
    for (size_t k = 1; k <= 3; k++) {
      const size_t n = sizes[i];
      found f = simulate_with(n, "central: r0", k, "ssgd", 0, n - 1);
      const double way_s = (double)k * 8 * m / RATE_BPS + LATENCY_S;
      assert_near("central", n, f.round_s, 2 * way_s);
      assert_int_equal(f.most, (int64_t)k * (int64_t)m);
      assert_int_equal(f.payload, 2 * (int64_t)((n - 1) * k) * STEPS * (int64_t)m);
      assert_int_equal(f.messages, 2 * (int64_t)((n - 1) * k) * STEPS);
    }
}

/* Models go with their buffers, gradients without. */
static void test_central_with_buffers(void **state) {
  (void)state;
  const size_t b = 9600;
  found f = simulate_with(3, "central: r1", 2, "ssgd", b, 0);
  assert_int_equal(f.payload, 2 * 2 * 2 * STEPS * (int64_t)m);
  f = simulate_with(3, "central: r1", 2, "sma", b, 0);
  assert_int_equal(f.payload, 2 * 2 * 2 * STEPS * (int64_t)(m + (double)b * sizeof(float)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mesh), cmocka_unit_test(test_hub),
                                     cmocka_unit_test(test_ring), cmocka_unit_test(test_central),
                                     cmocka_unit_test(test_central_with_buffers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
