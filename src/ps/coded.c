/* The time and bytes of the codec. */
#include <stdio.h>

#include "internal.h"

/* Messages before the codec is judged. */
#define ENOUGH 4

void gt_ps_coding(void *ctx) {
  gt_ps *ps = ctx;
  ps->coding_from = gt_ps_clock(ps);
}

void gt_ps_coded_message(void *ctx, gt_coding direction, size_t raw, size_t wire) {
  gt_ps *ps = ctx;
  gt_ps_coded *c = &ps->coded[direction];
  const gt_ps_work work = direction == GT_ENCODED ? GT_WORK_ENCODE : GT_WORK_DECODE;
  c->messages += raw > 0;
  c->raw_bytes += (int64_t)raw;
  c->wire_bytes += (int64_t)wire;
  c->took += gt_ps_worked(ps, work, (double)raw) - ps->coding_from;
}

gt_status gt_ps_coded_state(gt_ps *ps, gt_state_direction direction) {
  const size_t figures = sizeof(gt_ps_coded) / sizeof(int64_t);
  const gt_state_field field = {"coded", GT_TYPE_I64, ps->coded, GT_CODINGS * figures};
  const bool older = direction.from && !gt_state_find(direction.from, "ps/", "coded");
  if (ps->spec.codec.kind == GT_CODEC_NONE || older) return GT_OK;
  return gt_state_fields(direction, "ps/", &field, 1);
}

void gt_ps_coded_result(const gt_ps *ps, gt_region_result *result) {
  const gt_ps_coded *in = &ps->coded[GT_ENCODED], *out = &ps->coded[GT_DECODED];
  if (ps->spec.codec.kind == GT_CODEC_NONE) return;
  result->codec = (gt_codec_result){.raw_bytes = in->raw_bytes,
                                    .wire_bytes = in->wire_bytes,
                                    .encode_s = gt_seconds(in->took),
                                    .decoded_bytes = out->raw_bytes,
                                    .decode_s = gt_seconds(out->took)};
  snprintf(result->codec.name, sizeof result->codec.name, "%s",
           gt_codec_names[ps->spec.codec.kind]);
}

bool gt_ps_coded_slow(const gt_ps *ps, double bps, char *text, size_t size) {
  const gt_ps_coded *c = &ps->coded[GT_ENCODED];
  const double saved = 8 * (double)(c->raw_bytes - c->wire_bytes) / bps, took = gt_seconds(c->took),
               messages = (double)c->messages;
  if (c->messages < ENOUGH) return false;
  if (took <= saved) return false;
  char each[32], less[32], rate[32];
  snprintf(text, size,
           "sync.codec %s takes %s to encode a message, and saves %s on the slowest link (%s): "
           "without it the run may be faster",
           gt_codec_names[ps->spec.codec.kind], gt_format_time(each, sizeof each, took / messages),
           gt_format_time(less, sizeof less, saved / messages),
           gt_format_rate(rate, sizeof rate, bps));
  return true;
}
