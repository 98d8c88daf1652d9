/* The server's clock. */
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
