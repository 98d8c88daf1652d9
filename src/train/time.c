/* The server's clock, and how its time is spent. */
#include "internal.h"

gt_ns gt_server_now(const gt_server *s) {
  return s->clock->now(s);
}

double gt_server_elapsed(const gt_server *s) {
  return s->elapsed_s + gt_seconds(gt_server_now(s) - s->started);
}

double gt_server_wire_bytes(const gt_server *s, size_t peer) {
  const gt_ledger_row *rows = gt_gateway_ledger(s->gateway, peer);
  double sum = 0;
  for (size_t k = 0; k < GT_LEDGER_KINDS; k++) sum += (double)rows[k].wire_bytes;
  return sum;
}

static bool receiving(const void *gateway, size_t peer) {
  return gt_gateway_receiving(gateway, peer);
}

void gt_server_account(gt_server *s, gt_ns now) {
  gt_time_split_account(&s->split, s->ps, gt_ps_made_of(s->ps), receiving, s->gateway, now);
}
