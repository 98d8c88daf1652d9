/* The fit of the transport model recovers a link's parameters, also with an outlier among the
   sizes. */
#include "tests.h"
#include "internal.h"

/* The one-way time of a message of this size over a link that has been silent for a while, as the
   probe would measure it. */
static double one_way(const gt_link_spec *spec, size_t size, double pause_s) {
  gt_link_state state = gt_link_start(1, 0, 1, 0);
  gt_ns ready = gt_link_step(&state, spec, NULL, GT_FRAME_HEADER_BYTES, 0).arrive +
                gt_from_seconds(pause_s),
        arrive = 0;
  size_t left = size == 64 ? 0 : size;
  do {
    const size_t bytes = gt_frame_take(&left, GT_FRAME_HEADER_BYTES, false);
    arrive = gt_link_step(&state, spec, NULL, bytes, ready).arrive;
  } while (left > 0);
  return gt_seconds(arrive - ready);
}

static gt_probe_link measured(const gt_link_spec *made, size_t nsizes) {
  gt_link_spec spec = *made;
  spec.back_s = spec.latency_s;
  gt_probe_link l = {
      .latency_s = spec.latency_s, .bandwidth_bps = 0.95 * spec.bandwidth_bps, .pause_s = 1.1};
  for (size_t i = 0; i < nsizes; i++) l.time_s[i] = one_way(&spec, gt_probe_sizes[i], l.pause_s);
  return l;
}

static void assert_near(double found, double needed, double share) {
  if (fabs(found - needed) > share * needed) fail_msg("found %g, needed %g", found, needed);
}

static void test_plain(void) {
  gt_probe_link l =
      measured(&(gt_link_spec){.bandwidth_bps = 100e6, .latency_s = 0.025}, GT_PROBE_SIZES);
  gt_probe_fit(&l);
  assert_near(l.fit_bandwidth_bps, 100e6, 0.02);
  assert_near(l.fit_latency_s, 0.025, 0.02);
  assert_true(l.setup_rtts == 0 && l.window_bytes == 0 && l.idle_s == 0);
  assert_true(l.fit_error < 0.01);
}

static void test_setup(void) {
  gt_probe_link l = measured(
      &(gt_link_spec){
          .bandwidth_bps = 20e6, .latency_s = 0.1, .setup_rtts = 1, .eager_bytes = 65536},
      GT_PROBE_SIZES - 1);
  gt_probe_fit(&l);
  assert_near(l.fit_bandwidth_bps, 20e6, 0.05);
  assert_near(l.fit_latency_s, 0.1, 0.05);
  assert_near(l.setup_rtts, 1, 0.01);
  assert_true(l.fit_error < 0.02);
}

static void test_window(void) {
  gt_probe_link l = measured(&(gt_link_spec){.bandwidth_bps = 100e6,
                                             .latency_s = 0.05,
                                             .setup_rtts = 1,
                                             .eager_bytes = 65536,
                                             .window_bytes = 14480,
                                             .idle_s = 0.3},
                             GT_PROBE_SIZES);
  gt_probe_fit(&l);
  assert_near(l.fit_bandwidth_bps, 100e6, 0.1);
  assert_near(l.fit_latency_s, 0.05, 0.05);
  assert_true(l.window_bytes > 0 && l.idle_s > 0);
  /* half the window without set-up takes as many round trips: the simpler of the two is equally
     good */
  assert_true(l.fit_error < 0.01);
}

/* A token bucket lets 16 KiB pass at once. */
static void test_outlier(void) {
  gt_probe_link l =
      measured(&(gt_link_spec){.bandwidth_bps = 50e6, .latency_s = 0.0005}, GT_PROBE_SIZES - 1);
  l.time_s[1] /= 3;
  gt_probe_fit(&l);
  assert_near(l.fit_bandwidth_bps, 50e6, 0.06);
  assert_near(l.fit_latency_s, 0.0005, 0.1);
  assert_true(l.fit_error > 0.1); /* the misfit is reported */
}

TESTS(test_plain, test_setup, test_window, test_outlier)
