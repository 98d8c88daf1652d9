/* Payloads from anywhere: refused, or decoded to finite values within the range.  The first byte
   selects the codec; the second one: bytes instead of a whole payload, or changes of three bytes
   each (a place and a value) to one that the codec wrote. */
#include "codecs.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gt_codec *codecs[CASES];
static unsigned char *written[CASES];
static size_t lengths[CASES];
static float *y;

static void open_all(void) {
  y = GT_NEW_ARRAY(float, VALUES);
  for (size_t c = 0; c < CASES; c++) {
    const gt_codec_kind kind = cases[c].kind;
    float *x = filled(), *r = GT_NEW_ARRAY(float, VALUES *gt_codec_facts_of(kind).residuals);
    gt_codec_turn turn = {.round = 1};
    codecs[c] = opened(&cases[c]);
    written[c] = payload_of(codecs[c], kind);
    lengths[c] = encode_alone(codecs[c], kind, &turn, x, r, written[c]);
    gt_free(x), gt_free(r);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!y) open_all();
  if (size < 2) return 0;
  const size_t c = data[0] % CASES, length = data[1] % 2 ? size - 2 : lengths[c];
  unsigned char *payload = malloc(length ? length : 1); /* the sanitizer guards its end */
  if (!payload) return 0;
  memcpy(payload, data[1] % 2 ? data + 2 : written[c], length);
  if (data[1] % 2 == 0)
    for (size_t i = 2; i + 3 <= size; i += 3)
      payload[(size_t)(data[i] << 8 | data[i + 1]) % length] = data[i + 2];
  const gt_codec_turn turn = {.round = 1, .step = gt_codec_facts_of(cases[c].kind).steps - 1};
  if (gt_codec_check(codecs[c], &turn, payload, length) == GT_OK) {
    memset(y, 0, VALUES * sizeof *y);
    gt_codec_add(codecs[c], &turn, payload, decode_scale(cases[c].kind), y);
    if (cases[c].kind != GT_CODEC_POWERSGD && !gt_vec_finite(gt_vec_of(y, VALUES)))
      gt_bug("%s: a payload has a value that is not finite", cases[c].name);
  }
  free(payload);
  return 0;
}
