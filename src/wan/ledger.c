/* The ledger: every byte that has left, by peer and kind; and what the gateway keeps over a checkpoint. */
#include "inside.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(gt_ledger_row) == 4 * sizeof(int64_t), "a row of the ledger is saved as four integers");

void gt_ledger_count(gt_sender *s, const gt_frame_header *head, bool last) {
  gt_ledger_row *row = &s->ledger[head->kind % GT_LEDGER_KINDS];
  row->messages += last;
  row->frames++;
  row->payload_bytes += head->frame_bytes;
  row->wire_bytes += (int64_t)head->frame_bytes + GT_FRAME_HEADER_BYTES;
}

const gt_ledger_row *gt_gateway_ledger(const gt_gateway *gateway, size_t peer) {
  return gateway->senders[peer].ledger;
}

double gt_gateway_emulation_s(const gt_gateway *gateway) {
  return gt_seconds(gateway->emulation_cpu);
}

static void prefix_of(char *buf, size_t size, size_t peer) {
  snprintf(buf, size, "wan/%zu/", peer);
}

void gt_gateway_save(gt_gateway *gateway, gt_ns now, gt_state *state) {
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer == gateway->self) continue;
    gt_sender *s = &gateway->senders[peer];
    s->saved[0] = s->link.busy_until - now;
    s->saved[1] = s->link.last_arrival - now;
    memcpy(&s->saved[2], &s->link.rng.key, sizeof s->saved[2]);
    memcpy(&s->saved[3], &s->link.rng.counter, sizeof s->saved[3]);
    char prefix[32];
    prefix_of(prefix, sizeof prefix, peer);
    gt_state_add(state, prefix, "link", GT_TYPE_I64, s->saved, 4);
    gt_state_add(state, prefix, "ledger", GT_TYPE_I64, s->ledger, 4 * GT_LEDGER_KINDS);
  }
}

gt_status gt_gateway_load(gt_gateway *gateway, gt_ns now, const gt_state *state) {
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer == gateway->self) continue;
    gt_sender *s = &gateway->senders[peer];
    char prefix[32];
    prefix_of(prefix, sizeof prefix, peer);
    GT_TRY(gt_state_get(state, prefix, "link", GT_TYPE_I64, s->saved, 4));
    GT_TRY(gt_state_get(state, prefix, "ledger", GT_TYPE_I64, s->ledger, 4 * GT_LEDGER_KINDS));
    s->link.busy_until = now + s->saved[0];
    s->link.last_arrival = now + s->saved[1];
    memcpy(&s->link.rng.key, &s->saved[2], sizeof s->saved[2]);
    memcpy(&s->link.rng.counter, &s->saved[3], sizeof s->saved[3]);
  }
  return GT_OK;
}
