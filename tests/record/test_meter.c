/* Rates of counts that grow in jumps: the rate stays near the mean for any interval between jumps,
   and falls when none comes. */
#include "tests.h"
#include "geotrain/record.h"

#define LOOK (GT_SECOND / 5)

/* Watches a count that one or two regions increase by 64 every `step_s` seconds, the second region
   `later_s` after the first; returns the minimum and maximum rate from the third step on. */
static void watch(double step_s, double later_s, double *least, double *most) {
  gt_meter m = {0};
  *least = INFINITY;
  *most = 0;
  for (gt_ns now = 0; gt_seconds(now) < 20 * step_s + 20; now += LOOK) {
    double t = gt_seconds(now), total = 64 * floor(t / step_s);
    if (later_s > 0) total += 64 * fmax(0, floor((t - later_s) / step_s));
    double rate = gt_meter_rate(&m, now + 77 * GT_SECOND, total);
    if (t < 3 * step_s + 6) continue;
    *least = fmin(*least, rate);
    *most = fmax(*most, rate);
  }
}

static void one_region(void) {
  static const double steps[] = {0.01, 0.3, 0.9, 1.7, 2.5, 10, 60};
  for (size_t i = 0; i < COUNT(steps); i++) {
    double least, most, right = 64 / steps[i];
    watch(steps[i], 0, &least, &most);
    if (!(least > 0.8 * right && most < 1.25 * right))
      fail_msg("steps of %g s: %g to %g samples/s are shown of %g", steps[i], least, most, right);
  }
}

static void two_regions(void) {
  static const double later[] = {0.5, 1.5, 3, 5, 8, 9.5};
  for (size_t i = 0; i < COUNT(later); i++) {
    double least, most, right = 2 * 64 / 10.0;
    watch(10, later[i], &least, &most);
    if (!(least > 0.7 * right && most < 1.35 * right))
      fail_msg("%g s apart: %g to %g samples/s are shown of %g", later[i], least, most, right);
  }
}

static void a_stall(void) {
  gt_meter m = {0};
  assert_true(isnan(gt_meter_rate(&m, 0, 5)));
  assert_true(isnan(gt_meter_rate(&m, GT_SECOND, 6)));
  for (int i = 1; i <= 20; i++) gt_meter_rate(&m, i * GT_SECOND, 5 + 10 * i);
  double before = gt_meter_rate(&m, 20 * GT_SECOND, 205),
         after = gt_meter_rate(&m, 120 * GT_SECOND, 205);
  assert_true(fabs(before - 10) < 1e-9);
  assert_true(after > 0 && after < 0.5);
}

TESTS(one_region, two_regions, a_stall)
