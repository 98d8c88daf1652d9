/* Laws of all codecs: bounds, error feedback, refusal of malformed payloads, equal bits with every
   instruction set. */
#include "tests.h"

#include "codecs.h"

/* d + r = decay r_before + x, to the rounding of float32, message after message. */
static void feedback_loses_nothing(void) {
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    if (gt_codec_facts_of(kind).residuals != 1) continue;
    gt_codec *codec = opened(&cases[c]);
    unsigned char *payload = payload_of(codec, kind);
    float *r = GT_NEW_ARRAY(float, VALUES), *before = GT_NEW_ARRAY(float, VALUES),
          *d = GT_NEW_ARRAY(float, VALUES), *x = GT_NEW_ARRAY(float, VALUES);
    for (uint64_t round = 0; round < 6; round++) {
      fill(x);
      memcpy(before, r, VALUES * sizeof *r);
      memset(d, 0, VALUES * sizeof *d);
      gt_codec_turn turn = {.round = round, .sender = 1};
      assert_true(encode_alone(codec, kind, &turn, x, r, payload) > 0);
      gt_codec_add(codec, &turn, payload, 1.0F, d);
      for (size_t i = 0; i < VALUES; i++) {
        const double a = (double)cases[c].spec.decay * (double)before[i] + (double)x[i];
        const double size = fabs((double)before[i]) + fabs((double)x[i]) + fabs((double)d[i]);
        if (fabs((double)d[i] + (double)r[i] - a) > 4e-7 * size + 1e-30)
          fail_msg("%s, round %d, value %zu: %g + %g is not %g", cases[c].name, (int)round, i,
                   (double)d[i], (double)r[i], a);
      }
    }
    gt_free(x), gt_free(d), gt_free(before), gt_free(r), gt_free(payload);
    gt_codec_close(codec);
  }
}

/* The residual stays bounded: what is sent over many rounds is what was given. */
static void all_arrives_at_last(void) {
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    if (gt_codec_facts_of(kind).residuals != 1 || cases[c].spec.decay < 1.0F) continue;
    gt_codec *codec = opened(&cases[c]);
    unsigned char *payload = payload_of(codec, kind);
    float *x = filled(), *r = GT_NEW_ARRAY(float, VALUES), *sum = GT_NEW_ARRAY(float, VALUES);
    enum { ROUNDS = 200 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
      gt_codec_turn turn = {.round = round};
      assert_true(encode_alone(codec, kind, &turn, x, r, payload) > 0);
      gt_codec_add(codec, &turn, payload, 1.0F / ROUNDS, sum);
      if (gt_codec_facts_of(kind).steps > 1) gt_codec_agree(codec, &turn, payload, 1.0F);
    }
    double missing = 0.0, all = 0.0;
    for (size_t i = 0; i < VALUES; i++) {
      missing += pow((double)sum[i] - (double)x[i], 2.0);
      all += pow((double)x[i], 2.0);
    }
    if (!(missing < 0.25 * all))
      fail_msg("%s: after %d rounds %.3g of %.3g is missing", cases[c].name, ROUNDS, missing, all);
    gt_free(sum), gt_free(r), gt_free(x), gt_free(payload);
    gt_codec_close(codec);
  }
}

/* True if the codec encodes each chunk separately. */
static bool is_chunked(gt_codec_kind kind) {
  return kind != GT_CODEC_TOPK && kind != GT_CODEC_DGC && kind != GT_CODEC_POWERSGD;
}

/* Parts of at most `most` values, or of one chunk: together they are the range, and of a codec that
   encodes by chunks they have the bits of the whole payload and of its residual. */
static void parts_are_the_whole(void) {
  static const size_t mosts[] = {1, 5000, 9000, 12000, VALUES};
  for (size_t i = 0; i < CASES * 5; i++) {
    const codec_case *c = &cases[i % CASES];
    const size_t most = mosts[i / CASES], residuals = gt_codec_facts_of(c->kind).residuals * VALUES;
    if (gt_codec_facts_of(c->kind).steps > 1) continue;
    gt_codec *codec = opened(c);
    unsigned char *payload = payload_of(codec, c->kind), *whole = payload_of(codec, c->kind);
    float *x = filled(), *r = GT_NEW_ARRAY(float, residuals),
          *of_whole = GT_NEW_ARRAY(float, residuals), *d = GT_NEW_ARRAY(float, VALUES),
          *of_parts = GT_NEW_ARRAY(float, VALUES);
    for (uint64_t round = 0; round < 3; round++) {
      gt_codec_turn turn = {.round = round, .sender = 1};
      size_t bytes = 0, parts = 0, bounds = 0;
      memset(d, 0, VALUES * sizeof *d);
      const size_t all = gt_codec_encode(codec, &turn, x, of_whole, whole);
      gt_codec_add(codec, &turn, whole, 1.0F, d);
      for (turn.first = 0; turn.first < VALUES; turn.first += turn.count, parts++) {
        unsigned char *at = payload + bytes;
        if (!is_chunked(c->kind)) at = payload;
        turn.count = gt_codec_cut(codec, turn.first, most) - turn.first;
        assert_true(turn.count <= (most < GT_CODEC_CHUNK ? GT_CODEC_CHUNK : most));
        memset(of_parts, 0, VALUES * sizeof *of_parts);
        const size_t part = gt_codec_encode(codec, &turn, x, r, at);
        assert_true(part > 0 && part <= gt_codec_bound(codec, &turn));
        must(gt_codec_check(codec, &turn, at, part));
        gt_codec_add(codec, &turn, at, 1.0F, of_parts);
        for (size_t v = 0; v < VALUES; v++) {
          const bool inside = v >= turn.first && v < turn.first + turn.count;
          if (!inside) assert_true(of_parts[v] == 0.0F);
          if (inside && is_chunked(c->kind)) assert_true(of_parts[v] == d[v]);
        }
        bytes += part;
        bounds += gt_codec_bound(codec, &turn);
      }
      assert_int_equal(parts, most == VALUES ? 1
                              : most == 1    ? 8
                              : most == 5000 ? 5
                              : most == 9000 ? 3
                                             : 2);
      if (!is_chunked(c->kind)) continue;
      assert_int_equal(bytes, all);
      assert_int_equal(bounds, gt_codec_bound(codec, &(gt_codec_turn){0}));
      assert_memory_equal(payload, whole, all);
      assert_memory_equal(r, of_whole, residuals * sizeof *r);
    }
    gt_free(of_parts), gt_free(d), gt_free(of_whole), gt_free(r), gt_free(x);
    gt_free(whole), gt_free(payload);
    gt_codec_close(codec);
  }
}

static void nonfinite_is_not_sent(void) {
  static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p121F};
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    const size_t residuals = gt_codec_facts_of(kind).residuals * VALUES;
    gt_codec *codec = opened(&cases[c]);
    unsigned char *payload = payload_of(codec, kind);
    float *x = filled(), *r = GT_NEW_ARRAY(float, residuals),
          *before = GT_NEW_ARRAY(float, residuals);
    gt_codec_turn turn = {.round = 3};
    assert_true(encode_alone(codec, kind, &turn, x, r, payload) > 0);
    memcpy(before, r, residuals * sizeof *r);
    for (size_t i = 0; i < COUNT(bad); i++) {
      fill(x);
      x[gt_rng_below(&rng, VALUES)] = bad[i];
      assert_int_equal(encode_alone(codec, kind, &turn, x, r, payload), 0);
      assert_memory_equal(before, r, residuals * sizeof *r);
    }
    gt_free(before), gt_free(r), gt_free(x), gt_free(payload);
    gt_codec_close(codec);
  }
}

/* The largest scale is one whose product with code -128 is finite, although no codec writes that
   code. */
static void huge_scale_is_refused(void) {
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    const bool picks = kind == GT_CODEC_TOPK && cases[c].spec.bits == 8;
    const size_t positions = picks ? (size_t)ceil(GT_CODEC_CHUNK * cases[c].spec.density) : 0;
    if (kind != GT_CODEC_INT8 && !picks) continue;
    gt_codec *codec = opened(&cases[c]);
    unsigned char *payload = payload_of(codec, kind);
    float *x = filled(), *y = GT_NEW_ARRAY(float, VALUES), scale = 0x1p121F;
    gt_codec_turn turn = {.round = 1};
    const size_t bytes = encode_alone(codec, kind, &turn, x, NULL, payload);
    payload[sizeof scale + (positions * 12 + 7) / 8] = 0x80;
    memcpy(payload, &scale, sizeof scale);
    must_fail(gt_codec_check(codec, &turn, payload, bytes), GT_ERR_FAULT, "malformed");
    scale = nextafterf(scale, 0.0F);
    memcpy(payload, &scale, sizeof scale);
    must(gt_codec_check(codec, &turn, payload, bytes));
    gt_codec_add(codec, &turn, payload, 1.0F, y);
    assert_true(gt_vec_finite(gt_vec_of(y, VALUES)));
    gt_free(y), gt_free(x), gt_free(payload);
    gt_codec_close(codec);
  }
}

/* Truncated, longer, or changed in any byte: refused, or decoded to finite values within the range.
   */
static void malformed_is_refused(void) {
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    gt_codec *codec = opened(&cases[c]);
    const size_t residuals = gt_codec_facts_of(kind).residuals * VALUES;
    unsigned char *payload = payload_of(codec, kind);
    float *x = filled(), *r = GT_NEW_ARRAY(float, residuals), *y = GT_NEW_ARRAY(float, VALUES);
    gt_codec_turn turn = {.round = 11, .sender = 2};
    const size_t bytes = encode_alone(codec, kind, &turn, x, r, payload);
    unsigned char *exact = GT_NEW_ARRAY(unsigned char, bytes + 1);
    memcpy(exact, payload, bytes);
    for (size_t cut = 1; cut < 20 && cut < bytes; cut++)
      assert_int_equal(gt_codec_check(codec, &turn, exact, bytes - cut), GT_ERR_FAULT);
    assert_int_equal(gt_codec_check(codec, &turn, exact, 0), GT_ERR_FAULT);
    assert_int_equal(gt_codec_check(codec, &turn, exact, bytes + 1), GT_ERR_FAULT);
    size_t refused = 0;
    for (size_t i = 0; i < 2000; i++) {
      memcpy(exact, payload, bytes);
      for (size_t j = 0; j <= i % 4; j++)
        exact[gt_rng_below(&rng, bytes)] = i % 3 ? 0xff : (unsigned char)gt_rng_u64(&rng);
      if (gt_codec_check(codec, &turn, exact, bytes) != GT_OK) {
        refused++;
        continue;
      }
      memset(y, 0, VALUES * sizeof *y);
      gt_codec_add(codec, &turn, exact, decode_scale(kind), y);
      assert_true(gt_vec_finite(gt_vec_of(y, VALUES)));
    }
    if (kind != GT_CODEC_INT8 && kind != GT_CODEC_E3M0) assert_true(refused > 0);
    gt_free(exact), gt_free(y), gt_free(r), gt_free(x), gt_free(payload);
    gt_codec_close(codec);
  }
}

typedef struct {
  unsigned char *payload;
  float *r, *d;
  size_t bytes;
} result;

/* Three messages by the set in use. */
static result run(const codec_case *c, const float *x) {
  gt_codec *codec = opened(c);
  result found = {.payload = payload_of(codec, c->kind),
                  .r = GT_NEW_ARRAY(float, gt_codec_facts_of(c->kind).residuals *VALUES),
                  .d = GT_NEW_ARRAY(float, VALUES)};
  gt_codec_turn turn = {.sender = 7};
  for (turn.round = 0; turn.round < 3; turn.round++) {
    found.bytes = gt_codec_encode(codec, &turn, x, found.r, found.payload);
    gt_codec_add(codec, &turn, found.payload, 0.3F, found.d);
  }
  gt_codec_close(codec);
  return found;
}

static void discard(result *found) {
  gt_free(found->payload), gt_free(found->r), gt_free(found->d);
}

/* Payloads, residuals and decoded values, by the best set and by each lower one. */
static void same_bits_everywhere(void) {
  float *x = filled();
  result best[CASES];
  for (int isa = (int)gt_isa_best(); isa >= 0; isa--) {
    must(gt_isa_choose(gt_isa_name((gt_isa)isa)));
    for (size_t c = 0; c < CASES; c++) {
      if (cases[c].kind == GT_CODEC_POWERSGD) continue; /* matrix products of OpenBLAS */
      result found = run(&cases[c], x);
      if (isa == (int)gt_isa_best()) {
        best[c] = found;
        continue;
      }
      assert_int_equal(found.bytes, best[c].bytes);
      assert_memory_equal(found.payload, best[c].payload, found.bytes);
      assert_memory_equal(found.r, best[c].r,
                          gt_codec_facts_of(cases[c].kind).residuals * VALUES * sizeof(float));
      assert_memory_equal(found.d, best[c].d, VALUES * sizeof(float));
      discard(&found);
    }
  }
  must(gt_isa_choose(NULL));
  for (size_t c = 0; c < CASES; c++)
    if (cases[c].kind != GT_CODEC_POWERSGD) discard(&best[c]);
  gt_free(x);
}

/* Payloads that add up: the decoded sum is the sum of the decoded ones. */
static void payloads_add_up(void) {
  enum { REGIONS = 3 };
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    const gt_codec_facts facts = gt_codec_facts_of(kind);
    if (!gt_codec_has(kind, GT_RESUMS)) continue;
    gt_codec *codecs[REGIONS];
    float *x[REGIONS], *r[REGIONS], *payload[REGIONS], *sum = NULL;
    for (size_t m = 0; m < REGIONS; m++) {
      codecs[m] = opened(&cases[c]);
      x[m] = filled(), r[m] = GT_NEW_ARRAY(float, VALUES), payload[m] = GT_NEW_ARRAY(float, VALUES);
    }
    sum = GT_NEW_ARRAY(float, VALUES);
    gt_codec_turn turn = {.round = 4};
    size_t bytes = 0;
    for (turn.step = 0; turn.step < facts.steps; turn.step++) {
      memset(sum, 0, VALUES * sizeof *sum);
      for (uint32_t m = 0; m < REGIONS; m++) {
        turn.sender = m;
        bytes = gt_codec_encode(codecs[m], &turn, x[m], r[m], (unsigned char *)payload[m]);
        assert_int_equal(bytes % sizeof(float), 0);
        gt_vec_axpy(gt_vec_of(sum, bytes / sizeof(float)), 1.0F,
                    gt_vec_of(payload[m], bytes / sizeof(float)));
      }
      if (turn.step + 1 < facts.steps)
        for (size_t m = 0; m < REGIONS; m++)
          gt_codec_agree(codecs[m], &turn, (unsigned char *)sum, 1.0F / REGIONS);
    }
    turn.step = facts.steps - 1;
    float *together = GT_NEW_ARRAY(float, VALUES), *alone = GT_NEW_ARRAY(float, VALUES);
    gt_codec_add(codecs[0], &turn, (unsigned char *)sum, 1.0F / REGIONS, together);
    for (size_t m = 0; m < REGIONS; m++)
      gt_codec_add(codecs[0], &turn, (unsigned char *)payload[m], 1.0F / REGIONS, alone);
    for (size_t i = 0; i < VALUES; i++)
      if (fabs((double)together[i] - (double)alone[i]) > 1e-5)
        fail_msg("%s, value %zu: %g together, %g alone", cases[c].name, i, (double)together[i],
                 (double)alone[i]);
    for (size_t m = 0; m < REGIONS; m++) {
      gt_free(payload[m]), gt_free(r[m]), gt_free(x[m]);
      gt_codec_close(codecs[m]);
    }
    gt_free(alone), gt_free(together), gt_free(sum);
  }
}

static void parameters_are_checked(void) {
  static const codec_case wrong[] = {{"", GT_CODEC_TOPK, {.density = 0.0, .bits = 2}},
                                     {"", GT_CODEC_TOPK, {.density = 1.5, .bits = 2}},
                                     {"", GT_CODEC_TOPK, {.density = 0.1, .bits = 4}},
                                     {"", GT_CODEC_TOPK, {.density = NAN, .bits = 2}},
                                     {"", GT_CODEC_MASK, {.density = 1e-9}},
                                     {"", GT_CODEC_POWERSGD, {.rank = 0}},
                                     {"", GT_CODEC_DGC, {.density = -1.0}},
                                     {"", GT_CODEC_INT8, {.decay = 1.1F}},
                                     {"", GT_CODEC_INT8, {.decay = NAN}}};
  for (size_t i = 0; i < COUNT(wrong); i++) {
    gt_codec *codec = NULL;
    assert_int_equal(gt_codec_open(&codec, wrong[i].kind, &wrong[i].spec, tensors, TENSORS),
                     GT_ERR_JOB);
    assert_null(codec);
  }
}

int main(void) {
  rng = gt_rng_make(44, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, feedback_loses_nothing, all_arrives_at_last, parts_are_the_whole,
                   nonfinite_is_not_sent, huge_scale_is_refused, malformed_is_refused,
                   same_bits_everywhere, payloads_add_up, parameters_are_checked);
}
