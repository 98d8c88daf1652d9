/* The operations of a decoder: kernels blas and auto against ref, over random shapes; GELU against
   float64; the ends of the range.  ref itself is tested in tests/nn (finite differences in
   float64). */
#include "cases.h"
#include "numbers.h"

static const char *const fast[] = {"blas", "auto"};
enum { NFAST = 2 };

static void same(const float *found, const float *right, size_t n, double tolerance,
                 const char *what) {
  for (size_t i = 0; i < n; i++)
    near(found[i], right[i], tolerance * (1.0 + fabs((double)right[i])), what, i);
}

/* ---- layer normalisation ---- */

static void layernorm_case(const gt_kernels *kernels, size_t M, size_t D, float around) {
  const gt_kernels *ref = gt_kernels_find("ref");
  const size_t n = M * D;
  float *x = numbers(n), *dy = numbers(n), *gamma = numbers(D), *beta = numbers(D), *y[2],
        *saved[2], *dx[2], *dgamma[2], *dbeta[2];
  for (size_t i = 0; i < n; i++) x[i] += around;
  for (size_t i = 0; i < 2; i++) {
    const gt_kernels *k = i ? kernels : ref;
    y[i] = numbers(n), saved[i] = numbers(2 * M), dx[i] = numbers(n), dgamma[i] = numbers(D),
    dbeta[i] = numbers(D);
    k->layernorm_forward(y[i], saved[i], x, gamma, beta, M, D);
    k->layernorm_backward_weight(dgamma[i], dbeta[i], dy, x, saved[i], M, D);
    if (i) memcpy(dx[i], dy, n * sizeof *dy); /* dx and dy can be the same array */
    k->layernorm_backward_input(dx[i], i ? dx[i] : dy, x, gamma, saved[i], M, D);
  }
  /* A row of nearly equal numbers has a large inverse, which amplifies roundings. */
  double size = 1.0;
  for (size_t m = 0; m < M; m++) size = fmax(size, (double)saved[0][2 * m + 1]);
  const double tolerance = 4e-6 * size * size * (1.0 + (double)around);
  same(y[1], y[0], n, tolerance, "y");
  same(dx[1], dx[0], n, tolerance, "dx");
  same(dgamma[1], dgamma[0], D, tolerance * sqrt((double)M), "dgamma");
  same(dbeta[1], dbeta[0], D, 1e-6 * sqrt((double)M), "dbeta");
  for (size_t i = 0; i < 2; i++)
    release(y[i], n), release(saved[i], 2 * M), release(dx[i], n), release(dgamma[i], D),
        release(dbeta[i], D);
  release(x, n), release(dy, n), release(gamma, D), release(beta, D);
}

static void layernorm(void) {
  for (size_t k = 0; k < NFAST; k++)
    for (size_t round = 0; round < 60; round++)
      layernorm_case(gt_kernels_find(fast[k]), between(1, 40), between(8, 100),
                     round % 3 == 0 ? 20.0F : 0.0F);
}

/* ---- GELU ---- */

static void gelu(void) {
  enum { N = 4001 };
  const double slope = sqrt(2.0 / 3.14159265358979323846);
  const gt_kernels *ref = gt_kernels_find("ref");
  float *x = numbers(N), *y = numbers(N), *dx = numbers(N), *right = numbers(N), *dy = numbers(N);
  for (size_t i = 0; i < N; i++) /* from -40 to 40, denser near 0 */
    x[i] = (float)(40.0 * pow((double)i / 2000.0 - 1.0, 3));
  ref->gelu_backward(right, dy, x, N);
  for (size_t k = 0; k <= NFAST; k++) {
    const gt_kernels *kernels = k < NFAST ? gt_kernels_find(fast[k]) : ref;
    kernels->gelu_forward(y, x, N);
    memcpy(dx, dy, N * sizeof *dy);
    kernels->gelu_backward(dx, dx, x, N);
    for (size_t i = 0; i < N; i++) {
      const double v = (double)x[i], u = slope * (v + 0.044715 * v * v * v);
      near(y[i], (float)(0.5 * v * (1.0 + tanh(u))), 4e-7 * (1.0 + fabs(v)), "y", i);
      near(dx[i], right[i], 2e-6 * (1.0 + fabs((double)dy[i])), "dx", i);
    }
  }
  release(x, N), release(y, N), release(dx, N), release(right, N), release(dy, N);
}

static void gelu_at_the_ends(void) {
  enum { N = 6 };
  const float x[N] = {-1e6F, -30.0F, 0.0F, 30.0F, 1e6F, NAN}, dy[N] = {1, 1, 1, 1, 1, 1};
  for (size_t k = 0; k < NFAST; k++) {
    const gt_kernels *kernels = gt_kernels_find(fast[k]);
    float y[N], dx[N];
    kernels->gelu_forward(y, x, N);
    kernels->gelu_backward(dx, dy, x, N);
    for (size_t i = 0; i < 5; i++) {
      near(y[i], x[i] > 0 ? x[i] : 0.0F, 1e-30, "y", i);
      near(dx[i], x[i] > 0 ? 1.0F : x[i] < 0 ? 0.0F : 0.5F, 1e-30, "dx", i);
    }
    assert_true(isnan(y[5]) && isnan(dx[5]));
  }
}

/* ---- attention ---- */

static void attention_case(const gt_kernels *kernels, const gt_attention_shape *s, size_t N,
                           float sharp) {
  const gt_kernels *ref = gt_kernels_find("ref");
  const size_t n = N * s->T * s->D, nlse = N * s->heads * s->T, nwork = gt_attention_work(s);
  float *qkv = numbers(3 * n), *dy = numbers(n), *work = numbers(nwork), *y[2], *lse[2], *dqkv[2];
  for (size_t i = 0; i < 3 * n; i++)
    if (i / s->D % 3 == 0) qkv[i] *= sharp; /* queries */
  for (size_t i = 0; i < 2; i++) {
    const gt_kernels *k = i ? kernels : ref;
    y[i] = numbers(n), lse[i] = numbers(nlse), dqkv[i] = numbers(3 * n);
    k->attention_forward(y[i], lse[i], qkv, s, N, work);
    k->attention_backward(dqkv[i], dy, y[i], lse[i], qkv, s, N, work);
  }
  const double tolerance = 1e-5 * (1.0 + (double)sharp) * sqrt((double)(s->T + s->D));
  same(y[1], y[0], n, tolerance, "y");
  same(lse[1], lse[0], nlse, 1e-5, "lse");
  same(dqkv[1], dqkv[0], 3 * n, tolerance, "dqkv");
  for (size_t i = 0; i < 2; i++) release(y[i], n), release(lse[i], nlse), release(dqkv[i], 3 * n);
  release(qkv, 3 * n), release(dy, n), release(work, nwork);
}

static void attention(void) {
  static const size_t lengths[] = {1, 2, 63, 64, 65, 127, 128, 129, 200};
  enum { NLENGTHS = COUNT(lengths) };
  for (size_t k = 0; k < NFAST; k++)
    for (size_t round = 0; round < cases(54, 27); round++) {
      gt_attention_shape s = {.T = lengths[round % NLENGTHS], .heads = between(1, 4)};
      s.D = s.heads * (round < 9 ? 64 : round < 18 ? 16 * between(1, 3) : between(1, 40));
      attention_case(gt_kernels_find(fast[k]), &s, between(1, 2), round % 2 ? 1.0F : 12.0F);
    }
}

/* Large scores overflow no exponential; a NaN reaches later positions only. */
static void attention_at_the_ends(void) {
  enum { T = 70, D = 3, BAD = 66 };
  const gt_attention_shape s = {.T = T, .D = D, .heads = 1};
  float qkv[T * 3 * D], y[T * D], lse[T], *work = numbers(gt_attention_work(&s));
  for (size_t k = 0; k <= NFAST; k++) {
    const gt_kernels *kernels = gt_kernels_find(k < NFAST ? fast[k] : "ref");
    for (size_t t = 0; t < T; t++)
      for (size_t d = 0; d < 3 * D; d++) /* each position sees itself most of all */
        qkv[t * 3 * D + d] = d < 2 * D ? 30.0F * (float)t : (float)t;
    kernels->attention_forward(y, lse, qkv, &s, 1, work);
    for (size_t t = 0; t < T; t++)
      for (size_t d = 0; d < D; d++) near(y[t * D + d], (float)t, 1e-4, "y", t);
    qkv[BAD * 3 * D + D] = NAN;
    kernels->attention_forward(y, lse, qkv, &s, 1, work);
    for (size_t i = 0; i < (size_t)T * D; i++) assert_int_equal(isnan(y[i]) != 0, i >= BAD * D);
  }
  release(work, gt_attention_work(&s));
}

/* ---- loss ---- */

static void next_ids(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 60; round++) {
    const size_t N = between(1, 3), T = between(1, 9),
                 V = round == 0 ? 9001 : between(1, round % 4 ? 70 : 600), n = N * T * V;
    float *x = numbers(n), *dx[2] = {numbers(n), numbers(n)}, *copy = numbers(n);
    int32_t ids[3 * 10];
    for (size_t i = 0; i < N * (T + 1); i++) ids[i] = (int32_t)gt_rng_below(&rng, V);
    for (size_t i = 0; i < n; i++) x[i] = roundf(4 * x[i]); /* equal logits occur */
    for (size_t k = 0; k < NFAST; k++) {
      const gt_kernels *kernels = gt_kernels_find(fast[k]);
      size_t correct[3] = {0};
      const double right = ref->next_xent(dx[0], x, ids, N, T, V, &correct[0]);
      const double found = kernels->next_xent(dx[1], x, ids, N, T, V, &correct[1]);
      assert_true(fabs(found - right) <= 1e-6 * (right + (double)(N * T)));
      assert_int_equal(correct[1], correct[0]);
      for (size_t i = 0; i < n; i++) near(dx[1][i], dx[0][i], 2e-6 / (double)(N * T), "dx", i);
      assert_true(kernels->next_xent(NULL, x, ids, N, T, V, &correct[2]) == found);
      memcpy(copy, x, n * sizeof *x); /* dx and x can be the same array */
      kernels->next_xent(copy, copy, ids, N, T, V, &correct[2]);
      assert_memory_equal(copy, dx[1], n * sizeof *x);
      memcpy(copy, x, n * sizeof *x);
      ref->next_xent(copy, copy, ids, N, T, V, &correct[2]);
      assert_memory_equal(copy, dx[0], n * sizeof *x);
      assert_int_equal(correct[2], 2 * correct[0] + correct[0]);
    }
    release(x, n), release(dx[0], n), release(dx[1], n), release(copy, n);
  }
}

/* The first of equal logits is the prediction; a NaN is none. */
static void predictions(void) {
  const float x[4 * 3] = {1, 1, 0, 1, 1, 0, NAN, 0, 0, INFINITY, 0, 0};
  const int32_t ids[5] = {0, 0, 1, 0, 0};
  for (size_t k = 0; k <= NFAST; k++) {
    size_t correct = 0;
    assert_true(isnan(
        gt_kernels_find(k < NFAST ? fast[k] : "ref")->next_xent(NULL, x, ids, 1, 4, 3, &correct)));
    assert_int_equal(correct, 1);
  }
}

int main(void) {
  rng = gt_rng_make(37, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, layernorm, gelu, gelu_at_the_ends, attention, attention_at_the_ends,
                   next_ids, predictions);
}
