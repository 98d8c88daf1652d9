/* Random numbers: the same key always gives the same numbers; different keys give different ones;
   the distributions have the right moments. */
#include "geotrain/base.h"
#include "tests.h"

#define DRAWS 200000

/* Checkpoints and records depend on these: a change of the generator changes every run. */
static void the_sequence_is_pinned(void) {
  gt_rng plain = {.key = 1234567};
  /* SplitMix64 with seed 1234567, published test values */
  assert_true(gt_rng_u64(&plain) == UINT64_C(6457827717110365317));
  assert_true(gt_rng_u64(&plain) == UINT64_C(3203168211198807973));
  assert_true(gt_rng_u64(&plain) == UINT64_C(9817491932198370423));
}

static void a_state_that_is_copied_goes_on_alike(void) {
  gt_rng a = gt_rng_make(1, GT_RNG_TEST, 2, 3);
  for (int i = 0; i < 5; i++) gt_rng_normal(&a);
  gt_rng b = {.key = a.key, .counter = a.counter};
  for (int i = 0; i < 100; i++) assert_true(gt_rng_u64(&a) == gt_rng_u64(&b));
}

static void every_part_of_the_key_counts(void) {
  gt_rng r[] = {gt_rng_make(1, GT_RNG_TEST, 2, 3),  gt_rng_make(2, GT_RNG_TEST, 2, 3),
                gt_rng_make(1, GT_RNG_INIT, 2, 3),  gt_rng_make(1, GT_RNG_TEST, 3, 2),
                gt_rng_make(1, GT_RNG_TEST, 2, 4),  gt_rng_make(0, GT_RNG_TEST, 0, 0),
                gt_rng_make(0, GT_RNG_ORDER, 0, 0), gt_rng_make(1, GT_RNG_TEST, 0, 0)};
  enum { N = COUNT(r) };
  uint64_t first[N];
  for (int i = 0; i < N; i++) first[i] = gt_rng_u64(&r[i]);
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) assert_true(first[i] != first[j]);
  }
}

static void near(double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance)) fail_msg("%g is not within %g of %g", got, tolerance, want);
}

/* Tolerances: five standard errors of 200,000 draws. */
static void uniform_fills_the_unit_interval(void) {
  gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 0, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < DRAWS; i++) {
    double u = gt_rng_uniform(&rng);
    assert_true(u >= 0.0 && u < 1.0);
    sum += u;
    squares += u * u;
  }
  near(sum / DRAWS, 0.5, 0.0033);
  near(squares / DRAWS, 1.0 / 3.0, 0.0034);
}

static void normal_has_its_moments(void) {
  gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 1, 0);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (int i = 0; i < DRAWS; i++) {
    double z = gt_rng_normal(&rng);
    m1 += z, m2 += z * z, m3 += z * z * z, m4 += z * z * z * z;
  }
  near(m1 / DRAWS, 0, 0.0112);
  near(m2 / DRAWS, 1, 0.0159);
  near(m3 / DRAWS, 0, 0.0434);
  near(m4 / DRAWS, 3, 0.11);
}

static void gamma_has_its_moments(void) {
  const double shapes[] = {0.1, 0.5, 1.0, 7.0};
  for (size_t s = 0; s < 4; s++) {
    gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 2, s);
    double k = shapes[s], sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
      double g = gt_rng_gamma(&rng, k);
      assert_true(g >= 0 && isfinite(g));
      sum += g;
      squares += (g - k) * (g - k);
    }
    near(sum / DRAWS, k, 5 * sqrt(k / DRAWS));
    near(squares / DRAWS, k, 5 * sqrt((6 * k + 2 * k * k) / DRAWS));
  }
}

static void below_is_uniform_and_stays_below(void) {
  gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 3, 0);
  int count[6] = {0};
  for (int i = 0; i < DRAWS; i++) count[gt_rng_below(&rng, 6)]++;
  for (int i = 0; i < 6; i++) near(count[i], DRAWS / 6.0, 5 * sqrt(DRAWS * 5.0 / 36.0));
  assert_true(gt_rng_below(&rng, 1) == 0);
  /* For n = 3/4 of 2^64, a plain modulo would put half of all draws into the lowest third of the
     range. */
  uint64_t n = UINT64_C(3) << 62;
  int low = 0;
  for (int i = 0; i < DRAWS; i++) {
    uint64_t x = gt_rng_below(&rng, n);
    assert_true(x < n);
    low += x < n / 3;
  }
  near(low, DRAWS / 3.0, 5 * sqrt(DRAWS * 2.0 / 9.0));
}

TESTS(the_sequence_is_pinned, a_state_that_is_copied_goes_on_alike, every_part_of_the_key_counts,
      uniform_fills_the_unit_interval, normal_has_its_moments, gamma_has_its_moments,
      below_is_uniform_and_stays_below)
