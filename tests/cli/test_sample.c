/* Drawing ids: frequencies match softmax with the temperature, only the most probable ids are
   drawn, and the same seed gives the same ids. */
#include "sample.h"
#include "tests.h"

enum { N = 7, DRAWS = 20000 };

static const float logits[N] = {0.5F, -1, 2, 2, -40, 1, 0};

static void draw(const gt_cli_sampling *sampling, uint64_t seed, size_t *ids, size_t n) {
  gt_cli_candidate scratch[N];
  gt_rng rng = gt_rng_make(seed, GT_RNG_GENERATE, 0, 0);
  for (size_t i = 0; i < n; i++) must(gt_cli_sample(&ids[i], logits, N, sampling, &rng, scratch));
}

/* Computes the probability of each id: softmax over the `top` largest logits. */
static void shares(const gt_cli_sampling *s, double *share) {
  double sum = 0;
  for (size_t i = 0; i < N; i++) {
    size_t before = 0;
    for (size_t k = 0; k < N; k++)
      before += logits[k] > logits[i] || (k < i && logits[k] == logits[i]);
    share[i] = s->top == 0 || before < s->top ? exp((double)logits[i] / s->temperature) : 0;
    sum += share[i];
  }
  for (size_t i = 0; i < N; i++) share[i] /= sum;
}

static void test_shares(void) {
  static size_t ids[DRAWS];
  for (size_t top = 0; top <= N + 1; top++)
    for (int power = -1; power < 2; power++) {
      const gt_cli_sampling s = {ldexp(1, power), top};
      double share[N];
      size_t counts[N] = {0};
      shares(&s, share);
      draw(&s, 3 + top, ids, DRAWS);
      for (size_t i = 0; i < DRAWS; i++) counts[ids[i]]++;
      for (size_t i = 0; i < N; i++) {
        /* five standard deviations of a binomial */
        const double spread = 5 * sqrt(DRAWS * share[i] * (1 - share[i]));
        assert_true(fabs((double)counts[i] - DRAWS * share[i]) <= spread);
        if (share[i] == 0) assert_int_equal(counts[i], 0);
      }
    }
}

static void test_seeds(void) {
  size_t a[100], b[100], c[100];
  const gt_cli_sampling s = {1, 0};
  draw(&s, 1, a, 100);
  draw(&s, 1, b, 100);
  draw(&s, 2, c, 100);
  assert_memory_equal(a, b, sizeof a);
  assert_true(memcmp(a, c, sizeof a) != 0);
}

/* Temperature 0, or only one id: the first of the largest logits. */
static void test_largest(void) {
  const gt_cli_sampling cold = {0, 0}, one = {1, 1};
  size_t ids[50];
  draw(&cold, 1, ids, 50);
  for (size_t i = 0; i < 50; i++) assert_int_equal(ids[i], 2);
  draw(&one, 1, ids, 50);
  for (size_t i = 0; i < 50; i++) assert_int_equal(ids[i], 2);
}

static void test_not_finite(void) {
  const float bad[3] = {1, NAN, 2};
  gt_cli_candidate scratch[3];
  gt_rng rng = gt_rng_make(1, GT_RNG_GENERATE, 0, 0);
  size_t id;
  must_fail(gt_cli_sample(&id, bad, 3, &(gt_cli_sampling){1, 0}, &rng, scratch), GT_ERR_CKPT,
            "the model gives nan as logit of id 1; expected finite");
}

TESTS(test_shares, test_seeds, test_largest, test_not_finite)
