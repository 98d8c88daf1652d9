/* Element-wise operations, means, optimizers, normalisation and the gates of LSTM and GRU give the
   same bits with every instruction set and compiler: regions with different CPUs must get the same
   mean. */
#include "tests.h"
#include "geotrain/nn.h"

/* Odd, so that every loop has a remainder; more than one block of gt_vec_mean. */
enum { N = 1237, VECTORS = 5, STEPS = 3 };

typedef struct {
  float y[N];
  gt_bf16 half[N];
  char hash[GT_SHA256_HEX];
} numbers;

/* Products of these values need rounding; some values are near the smallest float. */
static void fill(float *x, uint64_t key) {
  gt_rng rng = gt_rng_make(key, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < N; i++)
    x[i] = (float)((gt_rng_uniform(&rng) - 0.5) * (i % 50 == 0 ? 1e-37 : 3));
}

/* Adds `bytes` of data to the digest. */
static void add(numbers *n, const void *data, size_t bytes) {
  char both[2 * GT_SHA256_HEX] = {0};
  memcpy(both, n->hash, sizeof n->hash);
  gt_sha256_hex(data, bytes, both + sizeof n->hash);
  gt_sha256_hex(both, sizeof both, n->hash);
}

static void vectors(numbers *n) {
  static float x[VECTORS][N];
  const float *all[VECTORS];
  const int64_t samples[VECTORS] = {7, 1, 64, 33, 12};
  const gt_vec y = gt_vec_of(n->y, N), a = gt_vec_of(x[0], N), b = gt_vec_of(x[1], N);
  for (size_t v = 0; v < VECTORS; v++) {
    fill(x[v], v);
    all[v] = x[v];
  }
  fill(n->y, 99);
  gt_vec_scale(y, 0.7F);
  gt_vec_axpy(y, -1.3F, a);
  add(n, n->y, sizeof n->y);
  gt_vec_lerp(y, 0.37F, b);
  add(n, n->y, sizeof n->y);
  gt_vec_set_scaled(y, 1.7F, a);
  add(n, n->y, sizeof n->y);
  gt_vec_mean(y, all, samples, VECTORS);
  add(n, n->y, sizeof n->y);
  gt_to_bf16(n->half, n->y, N);
  gt_from_bf16(n->y, n->half, N);
  add(n, n->y, sizeof n->y);
}

static void optimizer(numbers *n, const gt_optim_spec *spec) {
  static float w[N], g[N], acc[N];
  gt_optim *optim;
  must(gt_optim_create(&optim, spec, N, true));
  fill(w, 1);
  memset(acc, 0, sizeof acc);
  for (uint64_t t = 0; t < STEPS; t++) {
    fill(g, 10 + t);
    gt_optim_step(optim, gt_vec_of(w, N), gt_vec_of(g, N), gt_vec_of(acc, N));
  }
  gt_optim_close(optim);
  add(n, w, sizeof w);
  add(n, acc, sizeof acc);
}

static void compute(numbers *n) {
  static const gt_optim_spec specs[] = {
      {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}, .weight_decay = 0.1},
      {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}, .momentum = 0.9, .weight_decay = 0.1},
      {.kind = GT_OPTIMIZER_SGD,
       .schedule = {.lr = 0.05},
       .momentum = 0.9,
       .weight_decay = 0.1,
       .nesterov = true},
      {.kind = GT_OPTIMIZER_ADAM,
       .schedule = {.lr = 0.01},
       .beta1 = 0.5,
       .beta2 = 0.75,
       .epsilon = 1e-3,
       .weight_decay = 0.1},
      {.kind = GT_OPTIMIZER_ADAMW,
       .schedule = {.lr = 0.01},
       .beta1 = 0.5,
       .beta2 = 0.75,
       .epsilon = 1e-3,
       .weight_decay = 0.3},
      {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}, .clip = 2},
  };
  vectors(n);
  for (size_t i = 0; i < COUNT(specs); i++) optimizer(n, &specs[i]);
}

/* Checks the hash of what `add_all` adds to the digest, with every instruction set. */
static void check_sets(void (*add_all)(numbers *n), const char *hash) {
  static numbers n;
  for (int isa = 0; isa <= (int)gt_isa_best(); isa++) {
    must(gt_isa_choose(gt_isa_name((gt_isa)isa)));
    assert_int_equal(gt_isa_used(), isa);
    memset(&n, 0, sizeof n);
    add_all(&n);
    print_message("%s: %s\n", gt_isa_name((gt_isa)isa), n.hash);
    assert_string_equal(n.hash, hash);
  }
}

static void every_set_gives_these_bits(void) {
  check_sets(compute, "a007dee28fc44d112736f9fdf7fad8d5a1c8c6986ba48b20802674f6570543c4");
}

/* ROWS is not a multiple of the rows summed in float32; values are far from 0; the channels leave a
   remainder with every set. */
enum { ROWS = 150, CHANNELS = 7 + 32 + 64, SIZE = ROWS * CHANNELS };

typedef struct {
  _Alignas(64) float work[8 * CHANNELS]; /* also holds doubles */
  float x[SIZE], plus[SIZE], dy[SIZE], y[SIZE], dx[SIZE], dplus[SIZE];
  float gamma[CHANNELS], beta[CHANNELS], running[2][CHANNELS], saved[2 * CHANNELS],
      gradients[2][CHANNELS];
} norm_arrays;

static void spread(float *x, size_t n, uint64_t key, double around, double wide) {
  gt_rng rng = gt_rng_make(key, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < n; i++) x[i] = (float)(around + wide * (gt_rng_uniform(&rng) - 0.5));
}

/* Converts to the type of the case in place: bf16 numbers use the lower half. */
static void narrow(float *x, gt_precision type) {
  static gt_bf16 half[SIZE];
  if (type == GT_F32) return;
  gt_to_bf16(half, x, SIZE);
  memcpy(x, half, sizeof half);
}

static void normalise(numbers *n, gt_precision type, bool residual, bool relu) {
  static norm_arrays a;
  const gt_kernels *kernels = gt_kernels_find("auto");
  const gt_norm_shape s = {
      .M = ROWS, .C = CHANNELS, .type = type, .relu = relu, .epsilon = 1e-5F, .momentum = 0.1F};
  const void *plus = residual ? a.plus : NULL;
  spread(a.x, SIZE, 1, 40, 3), spread(a.plus, SIZE, 2, 0, 1), spread(a.dy, SIZE, 3, 0, 1);
  narrow(a.x, type), narrow(a.plus, type), narrow(a.dy, type);
  spread(a.gamma, CHANNELS, 4, 1, 1), spread(a.beta, CHANNELS, 5, 0, 1);
  spread(a.running[0], CHANNELS, 6, 40, 1), spread(a.running[1], CHANNELS, 7, 1, 1);
  kernels->norm_forward(a.y, a.x, plus, a.gamma, a.beta, a.running[0], a.running[1], a.saved, &s,
                        a.work);
  kernels->norm_backward(a.dx, residual ? a.dplus : NULL, a.gradients[0], a.gradients[1], a.dy,
                         NULL, a.y, a.x, a.gamma, a.beta, a.saved, &s, a.work);
  add(n, a.y, SIZE * gt_precision_bytes(type));
  add(n, a.dx, SIZE * gt_precision_bytes(type));
  add(n, a.running, sizeof a.running);
  add(n, a.saved, sizeof a.saved);
  add(n, a.gradients, sizeof a.gradients);
  kernels->norm_infer(a.y, a.x, plus, a.gamma, a.beta, a.running[0], a.running[1], &s, a.work);
  add(n, a.y, SIZE * gt_precision_bytes(type));
}

static void normalisation(numbers *n) {
  for (int kind = 0; kind < 8; kind++)
    normalise(n, kind & 1 ? GT_BF16 : GT_F32, kind & 2, kind & 4);
}

static void normalisation_gives_these_bits(void) {
  check_sets(normalisation, "ed5300e26c1edccba4ce55c38fe883e8708006ac6750e78526556de69a5e179b");
}

/* Gates, cells and gradients through several steps.  Each product has one term that is not 0, so it
   does not depend on the order of its sum. */
enum { STEPS_LSTM = 4, SAMPLES = 3, UNITS = 37, ROWS_LSTM = STEPS_LSTM * SAMPLES };

static void gates_of_lstm(numbers *n) {
  static float x[ROWS_LSTM], w[4 * UNITS * (1 + UNITS)], b[8 * UNITS], dy[SAMPLES * UNITS],
      h[(ROWS_LSTM + SAMPLES) * UNITS], c[(ROWS_LSTM + SAMPLES) * UNITS],
      gates[ROWS_LSTM * 4 * UNITS], dx[ROWS_LSTM], dw[4 * UNITS * (1 + UNITS)], db[8 * UNITS],
      work[2 * (SAMPLES + 2) * UNITS + 4 * UNITS * (UNITS + 32)];
  const uint32_t first[STEPS_LSTM + 1] = {0, 3, 6, 9, 12};
  const gt_lstm_shape s = {.T = STEPS_LSTM, .I = 1, .H = UNITS, .first = first};
  const gt_kernels *kernels = gt_kernels_find("auto");
  spread(x, ROWS_LSTM, 8, 0, 6), spread(w, (size_t)4 * UNITS, 9, 0, 6);
  spread(dy, (size_t)SAMPLES * UNITS, 10, 0, 2);
  kernels->lstm_forward(h, c, gates, x, w, b, &s, work);
  add(n, gates, sizeof gates);
  add(n, h, sizeof h);
  add(n, c, sizeof c);
  kernels->lstm_backward(dx, dw, db, dy, gates, x, h, c, w, &s, work);
  add(n, gates, sizeof gates);
}

static void gates_give_these_bits(void) {
  check_sets(gates_of_lstm, "c1ca3bcc5ba76cd86ec23f9bd27b056e37e9e1e812fe201780d6f28b876636b5");
}

/* Rows that leave a remainder with every set; GELU at both ends of its range. */
enum { ROWS_LAYER = 5, WIDTH = 37, SIZE_LAYER = ROWS_LAYER * WIDTH };

static void decoder(numbers *n) {
  static float x[SIZE_LAYER], y[SIZE_LAYER], dy[SIZE_LAYER], dx[SIZE_LAYER], gamma[WIDTH],
      beta[WIDTH], saved[2 * ROWS_LAYER], gradients[2][WIDTH];
  size_t correct = 0;
  const int32_t ids[ROWS_LAYER + 1] = {0, 3, 36, 5, 0, 17};
  const gt_kernels *kernels = gt_kernels_find("auto");
  spread(x, SIZE_LAYER, 1, 3, 9), spread(dy, SIZE_LAYER, 2, 0, 1);
  spread(gamma, WIDTH, 3, 1, 1), spread(beta, WIDTH, 4, 0, 1);
  kernels->layernorm_forward(y, saved, x, gamma, beta, ROWS_LAYER, WIDTH);
  kernels->layernorm_backward_weight(gradients[0], gradients[1], dy, x, saved, ROWS_LAYER, WIDTH);
  kernels->layernorm_backward_input(dx, dy, x, gamma, saved, ROWS_LAYER, WIDTH);
  add(n, y, sizeof y);
  add(n, saved, sizeof saved);
  add(n, gradients, sizeof gradients);
  add(n, dx, sizeof dx);
  kernels->gelu_forward(y, x, SIZE_LAYER);
  kernels->gelu_backward(dx, dy, x, SIZE_LAYER);
  add(n, y, sizeof y);
  add(n, dx, sizeof dx);
  kernels->next_xent(dx, x, ids, 1, ROWS_LAYER, WIDTH, &correct);
  add(n, dx, sizeof dx);
}

static void decoder_gives_these_bits(void) {
  check_sets(decoder, "a2f0be1e70d09860252d36debd5baf4b8a24f06fbebf64782c0688463f4f1aa9");
}

/* The gates of a gated recurrent unit and their gradients. */
static void recurrent_unit(numbers *n) {
  enum { ROWS_GRU = 5, H = 37, SIZE_GRU = ROWS_GRU * H };
  static float h[SIZE_GRU], gi[3 * SIZE_GRU], gh[3 * SIZE_GRU], dy[SIZE_GRU], y[SIZE_GRU],
      gates[4 * SIZE_GRU], dgi[3 * SIZE_GRU], dgh[3 * SIZE_GRU], dh[SIZE_GRU];
  const gt_kernels *kernels = gt_kernels_find("auto");
  spread(h, SIZE_GRU, 11, 0, 2), spread(gi, (size_t)3 * SIZE_GRU, 12, 0, 6),
      spread(gh, (size_t)3 * SIZE_GRU, 13, 0, 6);
  spread(dy, SIZE_GRU, 14, 0, 2);
  kernels->gru_forward(y, gates, h, gi, gh, ROWS_GRU, H);
  add(n, y, sizeof y);
  add(n, gates, sizeof gates);
  kernels->gru_backward(dgi, dgh, dh, dy, gates, h, ROWS_GRU, H);
  add(n, dgi, sizeof dgi);
  add(n, dgh, sizeof dgh);
  add(n, dh, sizeof dh);
}

static void recurrent_unit_gives_these_bits(void) {
  check_sets(recurrent_unit, "73685d527716d88e71f1ef9e9fff57107135c102e132355f38ce92bf06ba6980");
}

static void names(void) {
  must_say(gt_isa_choose("avx51"), GT_ERR_JOB,
           "GEOTRAIN_ISA is \"avx51\"; expected one of plain, avx2, avx512; did you mean avx512?");
  for (int isa = (int)gt_isa_best() + 1; isa < GT_ISAS; isa++) {
    must_fail(gt_isa_choose(gt_isa_name((gt_isa)isa)), GT_ERR_JOB, "but this CPU supports at most");
  }
  must(gt_isa_choose(""));
  assert_int_equal(gt_isa_used(), gt_isa_best());
}

TESTS(every_set_gives_these_bits, normalisation_gives_these_bits, gates_give_these_bits,
      decoder_gives_these_bits, recurrent_unit_gives_these_bits, names)
