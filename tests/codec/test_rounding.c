/* bf16, fp16, int8, e3m0: the stated error of each value, and no bias where rounding is at random.
   */
#include "tests.h"

#include "codecs.h"

/* The largest magnitude of the chunk of value i. */
static double scale_at(const float *x, size_t i) {
  size_t t = 0;
  while (i >= tensors[t].offset - tensors[0].offset + tensors[t].count) t++;
  const size_t first = tensors[t].offset - tensors[0].offset, within = i - first;
  const size_t start = first + within / GT_CODEC_CHUNK * GT_CODEC_CHUNK;
  double most = 0.0;
  for (size_t j = start; j < start + GT_CODEC_CHUNK && j < first + tensors[t].count; j++)
    most = fmax(most, fabs((double)x[j]));
  return most;
}

static double allowed(const codec_case *c, const float *x, size_t i) {
  const double size = fabs((double)x[i]), scale = scale_at(x, i);
  if (c->kind == GT_CODEC_BF16) return size * 0x1p-8;
  if (c->kind == GT_CODEC_FP16) return fmax(size * 0x1p-11, 0x1p-25);
  if (c->kind == GT_CODEC_INT8) return scale / 127.0 * (c->spec.stochastic ? 1.0 : 0.5);
  return c->spec.stochastic ? fmax(size, scale / 64.0) : fmax(size / 3.0, scale / 128.0);
}

static void errors_are_bounded(void) {
  for (size_t c = 0; c < CASES && cases[c].kind <= GT_CODEC_E3M0; c++) {
    gt_codec *codec = opened(&cases[c]);
    unsigned char *payload = payload_of(codec, cases[c].kind);
    float *x = filled(), *d = GT_NEW_ARRAY(float, VALUES);
    const gt_codec_turn turn = {.round = 1};
    assert_true(gt_codec_encode(codec, &turn, x, NULL, payload) > 0);
    gt_codec_add(codec, &turn, payload, 1.0F, d);
    for (size_t i = 0; i < VALUES; i++)
      if (fabs((double)d[i] - (double)x[i]) > allowed(&cases[c], x, i) * (1.0 + 1e-5))
        fail_msg("%s, value %zu: %.9g decoded as %.9g, allowed error %.3g", cases[c].name, i,
                 (double)x[i], (double)d[i], allowed(&cases[c], x, i));
    gt_free(d), gt_free(x), gt_free(payload);
    gt_codec_close(codec);
  }
}

/* The mean over many rounds is the value: its standard error is at most scale / (2 sqrt(rounds)).
   */
static void random_rounding_has_no_bias(void) {
  for (size_t c = 0; c < CASES; c++) {
    if (!cases[c].spec.stochastic) continue;
    enum { ROUNDS = 400 };
    gt_codec *codec = opened(&cases[c]);
    unsigned char *payload = payload_of(codec, cases[c].kind);
    float *x = filled(), *d = GT_NEW_ARRAY(float, VALUES);
    gt_codec_turn turn = {.sender = 3};
    for (turn.round = 0; turn.round < ROUNDS; turn.round++) {
      assert_true(gt_codec_encode(codec, &turn, x, NULL, payload) > 0);
      gt_codec_add(codec, &turn, payload, 1.0F / ROUNDS, d);
    }
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < VALUES; i++) {
      const double z =
          ((double)d[i] - (double)x[i]) / (allowed(&cases[c], x, i) / 2.0) * sqrt((double)ROUNDS);
      if (fabs(z) > 6.0) fail_msg("%s, value %zu: %g deviations", cases[c].name, i, z);
      sum += z, squares += z * z;
    }
    assert_true(fabs(sum / VALUES) < 5.0 / sqrt((double)VALUES));
    assert_true(squares / VALUES < 1.5);
    gt_free(d), gt_free(x), gt_free(payload);
    gt_codec_close(codec);
  }
}

/* Two senders, two rounds and two chunks have different random numbers. */
static void random_numbers_differ(void) {
  const codec_case *c = &cases[3];
  assert_true(c->spec.stochastic);
  gt_codec *codec = opened(c);
  const size_t bytes = gt_codec_bound(codec, &(gt_codec_turn){0});
  unsigned char *payloads[3];
  float *x = filled();
  for (size_t i = 1; i < 4096; i++) x[i] = 0.5F;
  for (uint32_t i = 0; i < 3; i++) {
    const gt_codec_turn turn = {.round = i == 2, .sender = i == 1};
    payloads[i] = payload_of(codec, c->kind);
    assert_int_equal(gt_codec_encode(codec, &turn, x, NULL, payloads[i]), bytes);
  }
  assert_memory_not_equal(payloads[0], payloads[1], bytes);
  assert_memory_not_equal(payloads[0], payloads[2], bytes);
  for (int i = 0; i < 3; i++) gt_free(payloads[i]);
  gt_free(x);
  gt_codec_close(codec);
}

int main(void) {
  rng = gt_rng_make(45, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, errors_are_bounded, random_rounding_has_no_bias,
                   random_numbers_differ);
}
