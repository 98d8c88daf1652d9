/* The traffic of each wire, counted by kind. */
#include "internal.h"

#include <stdio.h>

static const uint8_t kinds[SIM_KINDS] = {
    GT_MSG_UPDATE,       GT_MSG_STATE,   GT_MSG_ACK,     GT_MSG_PING,  GT_MSG_PONG,
    GT_MSG_ROUND,        GT_MSG_WRITTEN, GT_MSG_DONE,    GT_MSG_ADAPT, GT_MSG_BYE,
    GT_MSG_STRATEGY,     GT_MSG_REPORT,  GT_MSG_MODEL,   GT_MSG_HELLO, GT_MSG_ACTIVATION,
    GT_MSG_ACT_GRADIENT, GT_MSG_JOINED,  GT_MSG_MEMBERS, GT_MSG_GROUP, GT_MSG_SCORE};

static size_t index_of(unsigned kind) {
  size_t i = 0;
  while (kinds[i] != kind) i++;
  return i;
}

/* True for kinds with messages of several sizes. */
static bool is_counted(unsigned kind) {
  return gt_msg_is_traffic(kind) || kind == GT_MSG_STRATEGY || kind == GT_MSG_MODEL ||
         kind == GT_MSG_REPORT || kind == GT_MSG_MEMBERS || kind == GT_MSG_GROUP;
}

/* Returns the index in the wire's traffic.  Members do not change in a pipeline. */
static size_t traffic_of(unsigned kind) {
  if (kind == GT_MSG_ACTIVATION || kind == GT_MSG_MEMBERS) return 1;
  if (kind == GT_MSG_ACT_GRADIENT || kind == GT_MSG_GROUP) return 2;
  if (kind == GT_MSG_MODEL) return 4; /* of a pipeline: in pieces */
  if (kind == GT_MSG_REPORT) return 5;
  return kind == GT_MSG_STRATEGY ? 3 : 0;
}

void gt_sim_count(sim_wire *wire, unsigned kind, size_t bytes, size_t header_bytes, bool whole) {
  wire->messages[index_of(kind)]++;
  if (!is_counted(kind)) return;
  const size_t plain = gt_wire_bytes(bytes),
               frames = whole ? 1 : (plain - bytes) / GT_FRAME_HEADER_BYTES;
  wire->traffic[traffic_of(kind)].payload += bytes;
  wire->traffic[traffic_of(kind)].wire += bytes + frames * header_bytes;
}

static size_t payload_bytes(unsigned kind) {
  return kind == GT_MSG_HELLO ? GT_HELLO_BYTES : kind == GT_MSG_SCORE ? GT_SCORE_BYTES : 0;
}

/* Returns the traffic of a kind, without its name. */
static gt_kind_result kind_result(const sim_wire *wire, size_t kind_index) {
  const unsigned kind = kinds[kind_index];
  const size_t payload = payload_bytes(kind);
  const int64_t n = wire->messages[kind_index];
  gt_kind_result k = {
      .messages = n, .payload = n * (int64_t)payload, .wire = n * (int64_t)gt_wire_bytes(payload)};
  if (is_counted(kind) && n > 0) {
    k.payload = (int64_t)wire->traffic[traffic_of(kind)].payload;
    k.wire = (int64_t)wire->traffic[traffic_of(kind)].wire;
  }
  return k;
}

gt_sim_traffic gt_sim_traffic_of(const gt_sim *sim, size_t from, size_t to) {
  gt_sim_traffic sum = {0};
  for (size_t i = 0; i < SIM_KINDS; i++) {
    const gt_kind_result k = kind_result(&sim->regions[from].wires[to], i);
    if (gt_msg_is_traffic(kinds[i])) {
      sum.messages += (double)k.messages;
      sum.bytes_sent += (double)k.wire;
    } else
      sum.bytes_other += (double)k.wire;
  }
  return sum;
}

void gt_sim_written(const sim_wire *wire, gt_link_objects *sum) {
  for (size_t i = 0; i < SIM_KINDS; i++) {
    const bool data = gt_msg_is_data(kinds[i]);
    *(data ? &sum->data : &sum->control) += wire->messages[i];
    if (data && wire->messages[i] > 0)
      sum->data_bytes += (int64_t)wire->traffic[traffic_of(kinds[i])].wire;
  }
}

void gt_sim_wire_result(const sim_region *r, size_t peer, gt_link_result *l) {
  const gt_sim *sim = r->sim;
  const sim_wire *w = &r->wires[peer];
  gt_ps_link seen;
  size_t used = 0;
  gt_ps_get_link(r->ps, peer, &seen);
  *l = (gt_link_result){.bandwidth_bps_measured = seen.bandwidth_bps,
                        .latency_s_measured = seen.latency_s,
                        .staleness_s = seen.staleness_s,
                        .staleness_s_longest = seen.staleness_s_longest};
  snprintf(l->from, sizeof l->from, "%s", sim->spec.job->regions[r->id].name);
  snprintf(l->to, sizeof l->to, "%s", sim->spec.job->regions[peer].name);
  for (size_t i = 0; i < SIM_KINDS; i++) {
    gt_kind_result k = kind_result(w, i);
    if (k.messages > 0) {
      snprintf(k.kind, sizeof k.kind, "%s", gt_record_kind_name(kinds[i]));
      l->kinds[used++] = k;
    }
    if (gt_msg_is_traffic(kinds[i])) {
      l->bytes_sent += k.wire;
      l->messages += k.messages;
      l->payload_bytes += k.payload;
    } else
      l->bytes_other += k.wire;
  }
  if (w->wire.used > 0)
    l->bandwidth_bps_measured =
        8 * (double)(l->bytes_sent + l->bytes_other) / gt_seconds(w->wire.used);
}
