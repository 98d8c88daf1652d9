/* topk, mask, dgc, powersgd: what is sent, against plain rules in float64. */
#include "tests.h"

#include "codecs.h"

static int by_size(const void *a, const void *b) {
  const double x = fabs((double)*(const float *)a), y = fabs((double)*(const float *)b);
  return x < y ? 1 : x > y ? -1 : 0;
}

/* topk: each chunk keeps its ceil(n / 64) largest; 8 bits decode them to half a level. */
static void topk_keeps_the_largest(void) {
  codec_case c = {"", GT_CODEC_TOPK, {.decay = 1.0F, .density = 1.0 / 64, .bits = 8}};
  gt_codec *codec = opened(&c);
  unsigned char *payload = payload_of(codec, c.kind);
  float *x = filled(), *d = GT_NEW_ARRAY(float, VALUES);
  const gt_codec_turn turn = {.round = 1};
  const size_t bytes = gt_codec_encode(codec, &turn, x, NULL, payload);
  /* 5000: 64 + 15; 9001: 2 x 64 + 13; 4608: 64 + 8; 12 bits and a byte each; 4 bytes a tensor */
  assert_int_equal(bytes, (96 + 64) + (23 + 15) + 4 + 2 * (96 + 64) + (20 + 13) + 4 + (96 + 64) +
                              (12 + 8) + 4 + 700 * 4);
  gt_codec_add(codec, &turn, payload, 1.0F, d);
  for (size_t t = 0; t < TENSORS; t++) {
    if (tensors[t].count < GT_CODEC_DENSE) continue;
    const size_t first = tensors[t].offset - tensors[0].offset;
    for (size_t start = 0; start < tensors[t].count; start += GT_CODEC_CHUNK) {
      const size_t n =
          tensors[t].count - start < GT_CODEC_CHUNK ? tensors[t].count - start : GT_CODEC_CHUNK;
      float *sorted = GT_NEW_ARRAY(float, n);
      memcpy(sorted, x + first + start, n * sizeof *sorted);
      qsort(sorted, n, sizeof *sorted, by_size);
      const double least = fabs((double)sorted[(n + 63) / 64 - 1]);
      size_t sent = 0;
      for (size_t i = first + start; i < first + start + n; i++) {
        sent += d[i] != 0.0F;
        assert_true(fabs((double)x[i]) > least || fabs((double)x[i]) == least || d[i] == 0.0F);
        if (fabs((double)x[i]) > least)
          assert_true(fabs((double)d[i] - (double)x[i]) < 6.0 / 127.0);
      }
      assert_int_equal(sent, (n + 63) / 64);
      gt_free(sorted);
    }
  }
  gt_free(d), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

/* All kinds of chunks, also with many equal magnitudes, and thresholds far from the last ones. */
static void topk_of_odd_chunks(void) {
  static const gt_view one = {.name = "v", .count = 3 * 4096, .shape = {3 * 4096}, .ndims = 1};
  const gt_codec_spec spec = {.decay = 1.0F, .density = 0.01, .bits = 8};
  gt_codec *codec;
  must(gt_codec_open(&codec, GT_CODEC_TOPK, &spec, &one, 1));
  unsigned char *payload = payload_of(codec, GT_CODEC_TOPK);
  float *x = GT_NEW_ARRAY(float, one.count), *d = GT_NEW_ARRAY(float, one.count);
  for (int kind = 0; kind < 40; kind++) {
    for (size_t i = 0; i < one.count; i++) {
      const int exponent = kind % 8 == 7 ? (int)(i / 4096) * 40 - 60 : 0;
      x[i] = (float)ldexp(gt_rng_normal(&rng), exponent);
      if (kind % 8 == 0) x[i] = 1.0F;
      if (kind % 8 == 1) x[i] = 0.0F;
      if (kind % 8 == 2) x[i] = i % 4096 < 20 ? x[i] : 0.0F;
      if (kind % 8 == 3) x[i] = (float)(int)(2.0F * x[i]);
      if (kind % 8 == 4) x[i] = i % 2 ? -1.0F : 1.0F;
    }
    const gt_codec_turn turn = {.round = 1};
    const size_t bytes = gt_codec_encode(codec, &turn, x, NULL, payload);
    must(gt_codec_check(codec, &turn, payload, bytes));
    memset(d, 0, one.count * sizeof *d);
    gt_codec_add(codec, &turn, payload, 1.0F, d);
    for (size_t start = 0; start < one.count; start += 4096) {
      float least = INFINITY, left = 0.0F;
      for (size_t i = start; i < start + 4096; i++)
        if (d[i] != 0.0F)
          least = fminf(least, fabsf(x[i]));
        else if (fabsf(x[i]) > 0.01F) /* smaller ones may be sent as 0 */
          left = fmaxf(left, fabsf(x[i]));
      if (kind % 8 != 7) assert_true(left <= least);
    }
  }
  gt_free(d), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

/* 2 bits: the error is smaller than that of SparseLoCo's four intervals of 6 deviations. */
static void topk_classes(void) {
  codec_case c = {"", GT_CODEC_TOPK, {.decay = 1.0F, .density = 1.0 / 64, .bits = 2}};
  gt_codec *codec = opened(&c);
  unsigned char *payload = payload_of(codec, c.kind);
  float *x = filled(), *d = GT_NEW_ARRAY(float, VALUES);
  const gt_codec_turn turn = {.round = 1};
  assert_true(gt_codec_encode(codec, &turn, x, NULL, payload) > 0);
  gt_codec_add(codec, &turn, payload, 1.0F, d);
  double mean = 0.0, squares = 0.0, error = 0.0, theirs = 0.0, sums[4] = {0};
  size_t n = 0, counts[4] = {0};
  for (size_t i = 0; i < 5000; i++) {
    if (d[i] == 0.0F) continue;
    n++, mean += (double)x[i], squares += (double)x[i] * (double)x[i];
    error += pow((double)d[i] - (double)x[i], 2.0);
    assert_true(d[i] * x[i] > 0.0F);
  }
  mean /= (double)n;
  const double scale = 6.0 / 4.0 * sqrt(squares / (double)n - mean * mean);
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < 5000; i++) {
      if (d[i] == 0.0F) continue;
      const long k = lround(((double)x[i] - mean) / scale + 2.0);
      const long code = k < 0 ? 0 : k > 3 ? 3 : k;
      if (pass == 0)
        sums[code] += (double)x[i], counts[code]++;
      else
        theirs += pow((double)x[i] - sums[code] / (double)counts[code], 2.0);
    }
  if (!(error < 0.6 * theirs)) fail_msg("squared error %g, SparseLoCo's %g", error, theirs);
  gt_free(d), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

/* mask: every position comes up equally often, and is sent exactly. */
static void mask_is_fair(void) {
  enum { ROUNDS = 6400 };
  codec_case c = {"", GT_CODEC_MASK, {.decay = 1.0F, .density = 1.0 / 64}};
  gt_codec *codec = opened(&c);
  unsigned char *payload = payload_of(codec, c.kind);
  float *x = GT_NEW_ARRAY(float, VALUES), *hits = GT_NEW_ARRAY(float, VALUES);
  for (size_t i = 0; i < VALUES; i++) x[i] = 1.0F;
  gt_codec_turn turn = {.sender = 1};
  for (turn.round = 0; turn.round < ROUNDS; turn.round++) {
    turn.sender = 1;
    (void)gt_codec_encode(codec, &turn, x, NULL, payload);
    turn.sender = 2; /* all senders draw alike */
    gt_codec_add(codec, &turn, payload, 1.0F, hits);
  }
  double z2 = 0.0;
  for (size_t i = 0; i < 4096; i++) {
    const double z = ((double)hits[i] - ROUNDS / 64.0) / sqrt(ROUNDS / 64.0);
    if (fabs(z) > 6.0) fail_msg("position %zu: %g times of %d", i, (double)hits[i], ROUNDS / 64);
    z2 += z * z;
  }
  assert_true(fabs(z2 / 4096.0 - 1.0) < 0.15);
  gt_free(hits), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

/* dgc: a trace of u, v and the sent values against the equations in float64. */
static void dgc_follows_its_equations(void) {
  codec_case c = {"", GT_CODEC_DGC, {.decay = 0.9F, .density = 0.02}};
  gt_codec *codec = opened(&c);
  unsigned char *payload = payload_of(codec, c.kind);
  float *x = GT_NEW_ARRAY(float, VALUES), *d = GT_NEW_ARRAY(float, VALUES),
        *r = GT_NEW_ARRAY(float, 2 * VALUES);
  double *u = GT_NEW_ARRAY(double, VALUES), *v = GT_NEW_ARRAY(double, VALUES);
  size_t sent = 0;
  for (uint64_t round = 0; round < 30; round++) {
    fill(x);
    const gt_codec_turn turn = {.round = round};
    const size_t bytes = gt_codec_encode(codec, &turn, x, r, payload);
    must(gt_codec_check(codec, &turn, payload, bytes));
    memset(d, 0, VALUES * sizeof *d);
    gt_codec_add(codec, &turn, payload, 1.0F, d);
    double least = INFINITY, left = 0.0;
    for (size_t i = 0; i < VALUES; i++) {
      u[i] = 0.9F * u[i] + (double)x[i], v[i] += u[i];
      if (i >= 14001 && i < 14701) { /* the bias is dense */
        assert_true(fabs((double)d[i] - u[i]) < 1e-5 * (1.0 + fabs(u[i])));
        assert_true(r[i] == d[i] && r[VALUES + i] == 0.0F);
        continue;
      }
      if (d[i] != 0.0F) {
        sent++;
        assert_true(fabs((double)d[i] - v[i]) < 1e-5 * (1.0 + fabs(v[i])));
        if (i < 5000) least = fmin(least, fabs(v[i]));
        u[i] = v[i] = 0.0;
      } else if (i < 4096) {
        left = fmax(left, fabs(v[i]));
      }
      assert_true(fabs((double)r[i] - u[i]) < 1e-4 && fabs((double)r[VALUES + i] - v[i]) < 1e-4);
    }
    assert_true(left < 4.0 * least);
  }
  const double density = (double)sent / 30.0 / (VALUES - 700);
  assert_true(density > 0.012 && density < 0.03);
  gt_free(v), gt_free(u), gt_free(r), gt_free(d), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

/* dgc: what a simulation takes for the messages, during the warm-up and after it. */
static void dgc_has_the_expected_bytes(void) {
  codec_case c = {"", GT_CODEC_DGC, {.decay = 0.9F, .density = 0.01, .warmup = 10}};
  gt_codec *codec = opened(&c);
  unsigned char *payload = payload_of(codec, c.kind);
  float *x = GT_NEW_ARRAY(float, VALUES), *r = GT_NEW_ARRAY(float, 2 * VALUES);
  double bytes[2] = {0}, expected[2] = {0};
  for (uint64_t round = 0; round < 40; round++) {
    fill(x);
    const gt_codec_turn turn = {.round = round};
    bytes[round >= 10] += (double)gt_codec_encode(codec, &turn, x, r, payload) - 4 * 700;
    expected[round >= 10] += (double)gt_codec_expected(codec, &turn) - 4 * 700;
  }
  for (size_t i = 0; i < 2; i++)
    if (!(fabs(bytes[i] / expected[i] - 1) < 0.15))
      fail_msg("%g bytes; expected %g", bytes[i], expected[i]);
  gt_free(r), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

/* powersgd is exact for a sum of matrices of its rank, and takes it whole. */
static void powersgd_of_low_rank(void) {
  codec_case c = {"", GT_CODEC_POWERSGD, {.decay = 1.0F, .rank = 2}};
  gt_codec *codec = opened(&c);
  unsigned char *payload = payload_of(codec, c.kind);
  float *x = filled(), *r = GT_NEW_ARRAY(float, VALUES), *d = GT_NEW_ARRAY(float, VALUES);
  float a[2][50], b[2][100];
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 50; i++) a[k][i] = (float)gt_rng_normal(&rng);
    for (int j = 0; j < 100; j++) b[k][j] = (float)gt_rng_normal(&rng);
  }
  for (int i = 0; i < 50; i++)
    for (int j = 0; j < 100; j++) x[i * 100 + j] = a[0][i] * b[0][j] + a[1][i] * b[1][j];
  gt_codec_turn turn = {.round = 0};
  const size_t bytes = encode_alone(codec, c.kind, &turn, x, r, payload);
  /* Q of the matrix and of the convolution (144, 32); vector and bias are dense */
  assert_int_equal(bytes, (100 * 2 + 9001 + 700 + 32 * 2) * 4);
  gt_codec_add(codec, &turn, payload, 1.0F, d);
  for (int i = 0; i < 5000; i++) assert_true(fabs((double)d[i] - (double)x[i]) < 1e-4);
  gt_free(d), gt_free(r), gt_free(x), gt_free(payload);
  gt_codec_close(codec);
}

int main(void) {
  rng = gt_rng_make(46, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, topk_keeps_the_largest, topk_of_odd_chunks, topk_classes,
                   mask_is_fair, dgc_follows_its_equations, dgc_has_the_expected_bytes,
                   powersgd_of_low_rank);
}
