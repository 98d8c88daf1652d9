/* LSTM: kernels blas and auto against ref, over random packed sequences; and its sigmoid and tanh
   against float64.  ref itself is tested in tests/nn (finite differences in float64). */
#include "numbers.h"

static const char *const fast[] = {"blas", "auto"};
enum { NFAST = 2, MOST = 12 };

/* Sums of products in another order, through at most MOST steps. */
static void same(const float *found, const float *right, size_t n, size_t terms, const char *what) {
  const double tolerance = 2e-5 * sqrt((double)terms + 1.0);
  for (size_t i = 0; i < n; i++)
    near(found[i], right[i], tolerance * (1.0 + fabs((double)right[i])), what, i);
}

/* Returns samples that begin in random steps, in the order of their start. */
static gt_lstm_shape random_shape(size_t round, uint32_t first[MOST + 1]) {
  gt_lstm_shape s = {.T = between(1, MOST), .I = between(1, 40), .H = between(1, 70)};
  const size_t samples = between(1, 20);
  size_t begins[MOST] = {0}, rows = 0;
  for (size_t i = 0; i < samples; i++) begins[round % 4 == 0 ? 0 : between(0, s.T - 1)]++;
  first[0] = 0;
  for (size_t t = 0; t < s.T; t++) {
    rows += begins[t];
    first[t + 1] = first[t] + (uint32_t)rows;
  }
  s.first = first;
  return s;
}

static float *scaled(size_t n, double scale) {
  float *x = numbers(n);
  for (size_t i = 0; i < n; i++) x[i] *= (float)scale;
  return x;
}

static void fast_is_ref(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 120; round++) {
    uint32_t first[MOST + 1];
    const gt_lstm_shape s = random_shape(round, first);
    const size_t M = first[s.T], R = gt_lstm_rows(&s, s.T - 1), H = s.H, nw = 4 * H * (s.I + H),
                 nh = (M + R) * H, nx = M * s.I, nwork = gt_lstm_work(R, H);
    float *x = numbers(nx), *dy = numbers(R * H), *b = numbers(8 * H),
          *w = scaled(nw, 1.0 / sqrt((double)(s.I + H)));
    float *h[2], *c[2], *gates[2], *dx[2], *dw[2], *db[2], *work = numbers(nwork);
    for (size_t i = 0; i < 2; i++) {
      h[i] = numbers(nh), c[i] = numbers(nh), gates[i] = numbers(4 * M * H), dx[i] = numbers(nx),
      dw[i] = numbers(nw), db[i] = numbers(8 * H);
    }
    for (size_t k = 0; k < NFAST; k++) {
      const gt_kernels *kernels = gt_kernels_find(fast[k]);
      ref->lstm_forward(h[0], c[0], gates[0], x, w, b, &s, work);
      kernels->lstm_forward(h[1], c[1], gates[1], x, w, b, &s, work);
      same(h[1], h[0], nh, s.I + H, "h");
      same(c[1], c[0], nh, s.I + H, "c");
      same(gates[1], gates[0], 4 * M * H, s.I + H, "gates");
      /* ref over x, the other elsewhere: both are allowed */
      memcpy(dx[0], x, nx * sizeof *x);
      ref->lstm_backward(dx[0], dw[0], db[0], dy, gates[0], dx[0], h[0], c[0], w, &s, work);
      if (round % 2) memcpy(dx[1], x, nx * sizeof *x);
      kernels->lstm_backward(dx[1], dw[1], db[1], dy, gates[1], round % 2 ? dx[1] : x, h[1], c[1],
                             w, &s, work);
      same(gates[1], gates[0], 4 * M * H, 5 * H, "dz");
      same(dx[1], dx[0], nx, 5 * H, "dx");
      same(dw[1], dw[0], nw, 5 * H + M, "dw");
      same(db[1], db[0], 8 * H, 5 * H + M, "db");
      assert_memory_equal(db[1], db[1] + 4 * H, 4 * H * sizeof(float));
    }
    for (size_t i = 0; i < 2; i++) {
      release(h[i], nh), release(c[i], nh), release(gates[i], 4 * M * H), release(dx[i], nx),
          release(dw[i], nw), release(db[i], 8 * H);
    }
    release(x, nx), release(dy, R * H), release(b, 8 * H), release(w, nw), release(work, nwork);
  }
}

/* With one input of weight 1 and no other, the gates are functions of the input. */
static void gates_of(const gt_kernels *kernels, float *gates, const float *x, size_t n) {
  enum { H = 3 };
  const uint32_t first[2] = {0, (uint32_t)n};
  const gt_lstm_shape s = {.T = 1, .I = 1, .H = H, .first = first};
  float w[4 * H * (1 + H)] = {0}, b[8 * H] = {0};
  for (size_t o = 0; o < 4 * H; o++) w[o] = 1.0F;
  float *h = numbers(2 * n * H), *c = numbers(2 * n * H), *work = numbers(gt_lstm_work(n, H));
  kernels->lstm_forward(h, c, gates, x, w, b, &s, work);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < H; k++) { /* each unit, at any position in a register */
      const float *g = gates + i * 4 * H + k;
      assert_true(g[0] == gates[i * 4 * H] || isnan(g[0]));
      near(h[(n + i) * H + k], g[3 * H] * tanhf(c[(n + i) * H + k]), 2e-7, "h", i);
      near(c[(n + i) * H + k], g[0] * g[2 * H], 1e-7, "c", i);
    }
  release(h, 2 * n * H), release(c, 2 * n * H), release(work, gt_lstm_work(n, H));
}

static void sigmoid_and_tanh(void) {
  enum { N = 4001, H = 3 };
  float *x = numbers(N), *gates = numbers((size_t)N * 4 * H);
  for (size_t i = 0; i < N; i++) /* from -40 to 40, denser near 0 */
    x[i] = (float)(40.0 * pow(((double)i - N / 2) / (N / 2), 3));
  for (size_t k = 0; k < NFAST; k++) {
    gates_of(gt_kernels_find(fast[k]), gates, x, N);
    for (size_t i = 0; i < N; i++) {
      const double z = (double)x[i], sigmoid = 1.0 / (1.0 + exp(-z));
      near(gates[i * 4 * H], (float)sigmoid, 4e-7 * sigmoid, "sigmoid", i);
      near(gates[i * 4 * H + 2 * H], (float)tanh(z), 3e-7 * fabs(tanh(z)), "tanh", i);
    }
  }
  release(x, N), release(gates, (size_t)N * 4 * H);
}

static void ends_of_the_range(void) {
  enum { N = 7, H = 3 };
  const float x[N] = {-INFINITY, -1e30F, -100.0F, 100.0F, 1e30F, INFINITY, 0.0F};
  const float sigmoid[N] = {0, 0, 0, 1, 1, 1, 0.5F}, tangent[N] = {-1, -1, -1, 1, 1, 1, 0};
  float gates[N * 4 * H];
  for (size_t k = 0; k < NFAST; k++) {
    gates_of(gt_kernels_find(fast[k]), gates, x, N);
    for (size_t i = 0; i < N; i++) {
      near(gates[i * 4 * H], sigmoid[i], 1e-37, "sigmoid", i);
      near(gates[i * 4 * H + 2 * H], tangent[i], 0, "tanh", i);
    }
  }
}

/* A NaN reaches the output of its sample, and no other. */
static void no_number_stays_none(void) {
  enum { H = 5 };
  const uint32_t first[3] = {0, 2, 4};
  const gt_lstm_shape s = {.T = 2, .I = 1, .H = H, .first = first};
  for (size_t k = 0; k <= NFAST; k++) {
    const gt_kernels *kernels = gt_kernels_find(k < NFAST ? fast[k] : "ref");
    float x[4] = {1, NAN, 1, 1}, w[4 * H * (1 + H)], b[8 * H] = {0}, h[6 * H], c[6 * H],
          gates[16 * H], work[8 * H + 4 * H * (H + 32)];
    for (size_t i = 0; i < 4 * H * (1 + H); i++) w[i] = 0.25F;
    kernels->lstm_forward(h, c, gates, x, w, b, &s, work);
    for (size_t i = 0; i < H; i++) assert_true(isfinite(h[4 * H + i]) && isnan(h[5 * H + i]));
  }
}

int main(void) {
  rng = gt_rng_make(31, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, fast_is_ref, sigmoid_and_tanh, ends_of_the_range,
                   no_number_stays_none);
}
