/* The ledger counts every byte that has left, by peer and kind.  Also: the gateway's state in a
   checkpoint. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(gt_link_state) % sizeof(int64_t) == 0, "a link's state is saved as integers");
_Static_assert(sizeof(gt_ledger_row) == 4 * sizeof(int64_t),
               "a row of the ledger is saved as four integers");

void gt_ledger_count(gt_sender *s, const gt_frame_header *head, bool last) {
  gt_ledger_row *row = &s->ledger[head->kind % GT_LEDGER_KINDS];
  row->messages += last;
  row->frames++;
  row->payload_bytes += head->frame_bytes;
  row->wire_bytes += (int64_t)head->frame_bytes + (int64_t)gt_header_bytes(head);
}

double gt_gateway_wire_s(const gt_gateway *gateway, size_t peer) {
  return gt_seconds(gateway->senders[peer].wire.used);
}

const gt_ledger_row *gt_gateway_ledger(const gt_gateway *gateway, size_t peer) {
  return gateway->senders[peer].ledger;
}

gt_link_objects gt_gateway_read(const gt_gateway *gateway) {
  return gateway->read;
}

const gt_link_function *gt_gateway_function(const gt_gateway *gateway) {
  return &gateway->function;
}

double gt_gateway_emulation_s(const gt_gateway *gateway) {
  return gt_seconds(gateway->emulation_cpu);
}

static gt_status access_fields(gt_gateway *gateway, gt_state_direction direction) {
  const gt_state_field field = {"access", GT_TYPE_I64, gateway->saved_access, 2};
  return gt_state_fields(direction, "wan/", &field, 1);
}

static gt_status peer_fields(gt_gateway *gateway, size_t peer, gt_state_direction direction) {
  gt_sender *s = &gateway->senders[peer];
  const gt_state_field fields[] = {{"link", GT_TYPE_I64, s->saved, GT_LINK_WORDS},
                                   {"wire", GT_TYPE_I64, &s->saved_wire, 1},
                                   {"ledger", GT_TYPE_I64, s->ledger, 4 * GT_LEDGER_KINDS}};
  char prefix[32];
  snprintf(prefix, sizeof prefix, "wan/%zu/", peer);
  return GT_STATE_FIELDS(direction, prefix, fields);
}

/* Times are saved relative to now, because the next run has its own clock. */
static void save_link(gt_sender *s, gt_ns now) {
  gt_link_state link = s->wire.link;
  gt_link_shift(&link, -now);
  memcpy(s->saved, &link, sizeof link);
  s->saved_wire = s->wire.used;
}

void gt_gateway_save(gt_gateway *gateway, gt_ns now, gt_state *state) {
  gateway->saved_access[0] = gateway->up.busy_until - now;
  gateway->saved_access[1] = gateway->landing.access.busy_until - now;
  const gt_state_direction direction = {.to = state};
  (void)access_fields(gateway, direction);
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer == gateway->self) continue;
    save_link(&gateway->senders[peer], now);
    (void)peer_fields(gateway, peer, direction);
  }
}

static void load_link(gt_sender *s, gt_ns now) {
  memcpy(&s->wire.link, s->saved, sizeof s->wire.link);
  gt_link_shift(&s->wire.link, now);
  s->link_loaded = true;
  s->wire.used = s->saved_wire;
  s->wire.until = s->wire.link.busy_until;
}

gt_status gt_gateway_load(gt_gateway *gateway, gt_ns now, const gt_state *state) {
  const gt_state_direction direction = {.from = state};
  GT_TRY(access_fields(gateway, direction));
  gateway->up.busy_until = now + gateway->saved_access[0];
  gateway->landing.access.busy_until = now + gateway->saved_access[1];
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer == gateway->self) continue;
    GT_TRY(peer_fields(gateway, peer, direction));
    load_link(&gateway->senders[peer], now);
  }
  return GT_OK;
}
