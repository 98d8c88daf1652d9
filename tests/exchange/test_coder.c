/* Parts of a body: what a region sends in pieces, if one of its numbers is not finite. */
#include <math.h>

#include "tests.h"
#include "coder.h"

enum { MATRIX = 10000, BIAS = 700, BUFFERS = 300, FLOATS = MATRIX + BIAS + BUFFERS, PIECE = 5000 };

static const gt_view tensors[] = {
    {.name = "matrix", .count = MATRIX, .shape = {100, 100}, .ndims = 2},
    {.name = "bias", .offset = MATRIX, .count = BIAS, .shape = {BIAS}, .ndims = 1}};

static gt_coder *opened(void) {
  const gt_exchange_codec codec = {
      .kind = GT_CODEC_INT8, .spec = {.decay = 1}, .tensors = tensors, .ntensors = 2};
  const gt_exchange_spec spec = {.nregions = 2, .with_memory = true, .codec = &codec};
  gt_coder *coder = gt_coder_open(&spec, FLOATS, (gt_coder_use){.feedback = true, .sums = true});
  for (size_t i = 0; i < FLOATS; i++) gt_coder_sent(coder).data[i] = (float)i * 0x1p-10F;
  return coder;
}

/* Encodes all parts of the body; returns their number, and writes how many were sent. */
static size_t encode(gt_coder *coder, bool sum, size_t *sent) {
  unsigned char payload[4 * FLOATS];
  gt_codec_turn turn = {.round = 1};
  size_t parts = 0;
  *sent = 0;
  for (; turn.first < FLOATS; turn.first += turn.count, parts++) {
    turn.count = gt_coder_cut(coder, FLOATS, turn.first, PIECE) - turn.first;
    const size_t bytes = gt_coder_encode(coder, sum, &turn, payload);
    assert_true(bytes <= gt_coder_bound(coder, &turn));
    if (bytes == 0) continue;
    must(gt_coder_check(coder, &turn, payload, bytes));
    assert_true(gt_coder_finite(coder, &turn, payload, bytes));
    const gt_vec got = gt_coder_decode(coder, &turn, payload, bytes),
                 own = gt_vec_range(gt_coder_sent(coder), turn.first, turn.count);
    assert_int_equal(got.n, turn.count);
    for (size_t i = 0; i < got.n; i++)
      assert_true(fabsf(got.data[i] - own.data[i]) <= (turn.first + i < MATRIX ? 0.05F : 0));
    ++*sent;
  }
  return parts;
}

/* Parts begin at 0, 4096 and 8192; the last one has the bias and the buffers, too. */
static void test_parts(void) {
  gt_coder *coder = opened();
  size_t sent;
  assert_int_equal(encode(coder, false, &sent), 3);
  assert_int_equal(sent, 3);
  assert_true(gt_coder_squares(coder) > 0);
  gt_coder_close(coder);
}

/* The receivers would drop the body: no part of it is sent, and nothing is left out. */
static void test_nonfinite(void) {
  gt_coder *coder = opened();
  size_t sent;
  gt_coder_sent(coder).data[9000] = INFINITY;
  assert_int_equal(encode(coder, false, &sent), 3);
  assert_int_equal(sent, 0);
  assert_true(gt_coder_squares(coder) == 0);
  gt_coder_sent(coder).data[9000] = 0;
  encode(coder, false, &sent);
  assert_int_equal(sent, 3);
  gt_coder_close(coder);
}

/* A sum is encoded as it comes, without the parts that follow. */
static void test_nonfinite_sum(void) {
  gt_coder *coder = opened();
  size_t sent;
  gt_coder_sent(coder).data[9000] = NAN;
  assert_int_equal(encode(coder, true, &sent), 3);
  assert_int_equal(sent, 2);
  gt_coder_close(coder);
}

/* What a simulation and the choice of a topology take for the pieces. */
static void test_pieces(void) {
  gt_exchange_codec codec = {
      .kind = GT_CODEC_INT8, .spec = {.decay = 1}, .tensors = tensors, .ntensors = 2};
  const size_t first = 4 + 4096, last = 4 + MATRIX - 8192 + 4 * (BIAS + BUFFERS);
  gt_exchange_pieces p = gt_exchange_pieces_of(&codec, FLOATS, PIECE);
  assert_true(p.pieces == 3 && p.least == first && p.last == last && p.bytes == 2 * first + last);
  p = gt_exchange_pieces_of(&codec, FLOATS, FLOATS);
  assert_true(p.pieces == 1 && p.least == p.last &&
              p.bytes == 3 * 4 + MATRIX + 4 * (BIAS + BUFFERS));
  codec.kind = GT_CODEC_NONE;
  p = gt_exchange_pieces_of(&codec, FLOATS, PIECE);
  assert_true(p.pieces == 3 && p.least == 4 * PIECE && p.last == 4 * (FLOATS - 2 * PIECE) &&
              p.bytes == 4 * FLOATS);
  codec.kind = GT_CODEC_MASK, codec.spec.density = 0.5;
  p = gt_exchange_pieces_of(&codec, FLOATS, PIECE);
  assert_true(p.pieces == 2 && p.bytes == 4 * (MATRIX / 2 + BIAS + BUFFERS));
}

TESTS(test_parts, test_nonfinite, test_nonfinite_sum, test_pieces)
