/* Rows of unit length, gates of a gated recurrent unit, attention, softmax over many classes:
   kernels blas and auto against ref, at every instruction set.  ref itself is tested in tests/nn
   (finite differences in float64). */
#include "numbers.h"

static const char *const fast[] = {"blas", "auto"};
enum { NFAST = 2, SESSIONS = 9 };

static void same(const float *found, const float *right, size_t n, size_t terms, const char *what) {
  const double tolerance = 1e-6 * sqrt((double)terms + 1.0);
  for (size_t i = 0; i < n; i++)
    near(found[i], right[i], tolerance * (1.0 + fabs((double)right[i])), what, i);
}

/* Calls `check` with ref and each fast table at each set. */
static void at_every_set(void (*check)(const gt_kernels *ref, const gt_kernels *other)) {
  for (int isa = 0; isa <= (int)gt_isa_best(); isa++) {
    must(gt_isa_choose(gt_isa_name((gt_isa)isa)));
    for (size_t k = 0; k < NFAST; k++)
      for (int round = 0; round < 30; round++)
        check(gt_kernels_find("ref"), gt_kernels_find(fast[k]));
  }
}

static void check_unit(const gt_kernels *ref, const gt_kernels *other) {
  const size_t M = between(1, 9), K = between(1, 70), n = M * K;
  float *x = numbers(n), *dy = numbers(n), *y[2], *dx[2], *norms[2];
  for (size_t k = 0; k < K; k++) x[k] = 0.0F; /* a row of zero length */
  for (size_t i = 0; i < 2; i++) {
    const gt_kernels *kernels = i ? other : ref;
    y[i] = numbers(n), dx[i] = numbers(n), norms[i] = numbers(M);
    kernels->unit_forward(y[i], norms[i], x, M, K);
    if (i) memcpy(dx[i], dy, n * sizeof *dy); /* in place */
    kernels->unit_backward(dx[i], i ? dx[i] : dy, y[i], norms[i], M, K);
  }
  same(y[1], y[0], n, K, "unit");
  same(norms[1], norms[0], M, K, "norm");
  same(dx[1] + K, dx[0] + K, n - K, K, "gradient of unit");
  assert_true(norms[0][0] == GT_UNIT_LEAST && y[1][0] == 0.0F);
  for (size_t j = 1; j < M; j++) {
    double length = 0.0, along = 0.0;
    for (size_t k = 0; k < K; k++) {
      length += (double)y[1][j * K + k] * (double)y[1][j * K + k];
      along += (double)dx[1][j * K + k] * (double)x[j * K + k];
    }
    assert_true(fabs(length - 1.0) < 1e-5 && fabs(along) < 1e-4);
  }
  for (size_t i = 0; i < 2; i++) release(y[i], n), release(dx[i], n), release(norms[i], M);
  release(x, n), release(dy, n);
}

static void check_gru(const gt_kernels *ref, const gt_kernels *other) {
  const size_t M = between(1, 9), H = between(1, 70), n = M * H;
  float *h = numbers(n), *gi = numbers(3 * n), *gh = numbers(3 * n), *dy = numbers(n), *y[2],
        *gates[2], *dgi[2], *dgh[2], *dh[2];
  for (size_t i = 0; i < 2; i++) {
    const gt_kernels *kernels = i ? other : ref;
    y[i] = numbers(n), gates[i] = numbers(4 * n), dh[i] = numbers(n);
    dgi[i] = numbers(3 * n), dgh[i] = numbers(3 * n);
    kernels->gru_forward(y[i], gates[i], h, gi, gh, M, H);
    kernels->gru_backward(dgi[i], dgh[i], dh[i], dy, gates[i], h, M, H);
  }
  same(y[1], y[0], n, 4, "state");
  same(gates[1], gates[0], 4 * n, 4, "gates");
  same(dgi[1], dgi[0], 3 * n, 4, "gradient of gi");
  same(dgh[1], dgh[0], 3 * n, 4, "gradient of gh");
  same(dh[1], dh[0], n, 4, "gradient of h");
  for (size_t i = 0; i < 2; i++)
    release(y[i], n), release(gates[i], 4 * n), release(dgi[i], 3 * n), release(dgh[i], 3 * n),
        release(dh[i], n);
  release(h, n), release(gi, 3 * n), release(gh, 3 * n), release(dy, n);
}

/* Sessions of 0 to 5 nodes. */
static gt_session_shape random_sessions(uint32_t first[SESSIONS + 1], uint32_t last[SESSIONS],
                                        float count[5 * SESSIONS]) {
  const gt_session_shape s = {
      .N = between(1, SESSIONS), .H = between(1, 70), .first = first, .last = last, .count = count};
  first[0] = 0;
  for (size_t i = 0; i < s.N; i++) {
    const size_t nodes = between(0, 5);
    first[i + 1] = first[i] + (uint32_t)nodes;
    last[i] = nodes ? first[i] + (uint32_t)between(0, nodes - 1) : 12345;
  }
  for (size_t j = 0; j < first[s.N]; j++) count[j] = (float)between(1, 3);
  return s;
}

static void check_attend(const gt_kernels *ref, const gt_kernels *other) {
  uint32_t first[SESSIONS + 1], last[SESSIONS];
  float count[5 * SESSIONS];
  const gt_session_shape s = random_sessions(first, last, count);
  const size_t M = first[s.N], H = s.H, n = M * H, m = s.N * H;
  float *h = numbers(n), *q1 = numbers(m), *q2 = numbers(n), *w = numbers(H), *dy = numbers(2 * m),
        *y[2], *gates[2], *alpha[2], *dh[2], *dq1[2], *dq2[2], *dw[2];
  for (size_t i = 0; i < 2; i++) {
    const gt_kernels *kernels = i ? other : ref;
    y[i] = numbers(2 * m), gates[i] = numbers(n), alpha[i] = numbers(M), dh[i] = numbers(n);
    dq1[i] = numbers(m), dq2[i] = numbers(n), dw[i] = numbers(H);
    memcpy(gates[i], q2, n * sizeof *q2);
    kernels->attend_forward(y[i], gates[i], alpha[i], q1, h, w, &s);
    kernels->attend_backward(dh[i], dq1[i], dq2[i], dw[i], dy, gates[i], alpha[i], h, w, &s);
  }
  same(y[1], y[0], 2 * m, 9 * H, "attention");
  same(gates[1], gates[0], n, 2, "gates of attention");
  same(alpha[1], alpha[0], M, 9 * H, "alpha");
  same(dh[1], dh[0], n, 9 * H, "gradient of h");
  same(dq1[1], dq1[0], m, 90 * H, "gradient of q1");
  same(dq2[1], dq2[0], n, 9 * H, "gradient of q2");
  same(dw[1], dw[0], H, 900 * H, "gradient of w");
  for (size_t i = 0; i < s.N; i++)
    if (first[i] == first[i + 1])
      for (size_t k = 0; k < 2 * H; k++) assert_true(y[1][i * 2 * H + k] == 0.0F);
  for (size_t i = 0; i < 2; i++)
    release(y[i], 2 * m), release(gates[i], n), release(alpha[i], M), release(dh[i], n),
        release(dq1[i], m), release(dq2[i], n), release(dw[i], H);
  release(h, n), release(q1, m), release(q2, n), release(w, H), release(dy, 2 * m);
}

static void check_softmax(const gt_kernels *ref, const gt_kernels *other) {
  const size_t B = between(1, 4), O = between(250, 5000), n = B * O;
  float *x = numbers(n), *dx[2];
  int32_t labels[4];
  double loss[2];
  size_t correct[2] = {0, 0};
  for (size_t i = 0; i < n; i++) x[i] *= 10.0F;
  for (size_t i = 0; i < B; i++) labels[i] = (int32_t)between(0, O - 1);
  x[(size_t)labels[0]] = 100.0F; /* a row that is correct by a wide margin */
  for (size_t i = 0; i < 2; i++) {
    dx[i] = numbers(n);
    loss[i] = (i ? other : ref)->softmax_xent(dx[i], x, labels, B, O, &correct[i]);
    size_t again = 0;
    assert_true((i ? other : ref)->softmax_xent(NULL, x, labels, B, O, &again) == loss[i]);
    assert_int_equal(again, correct[i]);
  }
  same(dx[1], dx[0], n, 1, "gradient of softmax");
  assert_true(fabs(loss[1] - loss[0]) <= 1e-6 * fabs(loss[0]));
  assert_int_equal(correct[1], correct[0]);
  for (size_t i = 0; i < 2; i++) release(dx[i], n);
  release(x, n);
}

static void units(void) {
  at_every_set(check_unit);
}

static void gates(void) {
  at_every_set(check_gru);
}

static void attention(void) {
  at_every_set(check_attend);
}

static void softmax(void) {
  at_every_set(check_softmax);
}

/* Among equal logits the first is the largest; NaN and infinity make a row incorrect. */
static void ties_and_no_numbers(void) {
  enum { O = 300 };
  static float x[O];
  for (size_t k = 0; k <= NFAST; k++) {
    const gt_kernels *kernels = gt_kernels_find(k < NFAST ? fast[k] : "ref");
    size_t correct = 0;
    memset(x, 0, sizeof x);
    x[17] = x[200] = 3.0F;
    kernels->softmax_xent(NULL, x, (const int32_t[]){17}, 1, O, &correct);
    kernels->softmax_xent(NULL, x, (const int32_t[]){200}, 1, O, &correct);
    assert_int_equal(correct, 1);
    const float none[] = {NAN, INFINITY};
    for (size_t i = 0; i < 2; i++)
      for (size_t at = 0; at < O; at += 299) {
        memset(x, 0, sizeof x);
        x[at] = none[i];
        assert_true(
            isnan(kernels->softmax_xent(NULL, x, (const int32_t[]){(int32_t)at}, 1, O, &correct)));
      }
    assert_int_equal(correct, 1);
  }
}

int main(void) {
  rng = gt_rng_make(37, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, units, gates, attention, softmax, ties_and_no_numbers);
}
