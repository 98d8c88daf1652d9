/* Control messages, and measurements of the links, of the whole run and recent: rates from
   acknowledgements, round trips from heartbeats. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* ---- control --------------------------------------------------------------------------------- */

void gt_outbox_control(gt_outbox *o, size_t peer, gt_frame_header head, const void *body,
                       size_t bytes) {
  if (o->peers[peer].absent && head.kind != GT_MSG_MEMBERS) return;
  if (o->peers[peer].owed) {
    o->peers[peer].owed = false;
    gt_outbox_send_ack(o, peer);
  }
  head.round = (uint32_t)o->round;
  head.epoch = (uint16_t)o->epoch;
  o->spec.gateway.send(o->spec.gateway.ctx, peer, &head, body, bytes, 0);
}

void gt_outbox_send_ack(gt_outbox *o, size_t peer) {
  const outbox_peer *p = &o->peers[peer];
  gt_outbox_control(o, peer, (gt_frame_header){.kind = GT_MSG_ACK, .value = (uint64_t)p->taken},
                    NULL, 0);
}

void gt_outbox_control_all(gt_outbox *o, gt_frame_header head) {
  for (size_t p = 0; p < o->spec.nregions; p++)
    if (p != o->spec.self) gt_outbox_control(o, p, head, NULL, 0);
}

/* ---- measurements ---------------------------------------------------------------------------- */

#define WINDOW_S 30.0

/* Returns the weight of measurements until `at`. */
static double keep(const gt_outbox *o, gt_ns at) {
  return exp(-gt_seconds(o->now - at) / WINDOW_S);
}

/* The time of a message from posting to acknowledgement is size / rate, plus a round trip if it was
   alone.  If it was behind another, the time counts from that one's acknowledgement. */
static gt_ns time_of(const gt_outbox *o, const outbox_peer *p, const outbox_message *m,
                     double rtt_ns) {
  if (m->behind) return o->now - (p->last_ack > m->posted ? p->last_ack : m->posted);
  return o->now - m->posted - (gt_ns)rtt_ns;
}

void gt_links_measure_rate(gt_outbox *o, outbox_peer *p, const outbox_message *m) {
  outbox_measured *of = &p->measured;
  if (of->rtt_ns == 0) return;
  const double bits = 8.0 * (double)gt_message_wire_bytes(&m->head, m->bytes);
  const gt_ns took = time_of(o, p, m, of->rtt_ns), late = time_of(o, p, m, of->late_rtt_ns);
  if (took > 0) {
    of->bits += bits;
    of->seconds += gt_seconds(took);
  }
  if (late <= 0) return;
  const double old = keep(o, p->rate_at);
  of->late_bits = old * of->late_bits + bits;
  of->late_seconds = old * of->late_seconds + gt_seconds(late);
  p->rate_at = o->now;
}

void gt_links_measure_wait(const gt_outbox *o, outbox_peer *p, const outbox_message *m) {
  const gt_ns wait = o->now - m->posted;
  if (m->resent) return;
  p->waits.n++;
  p->waits.sum += wait;
  if (wait > p->waits.longest) p->waits.longest = wait;
}

/* Compares the clocks of hosts: the peer is assumed to have answered in the middle of the round
   trip (Mills, RFC 5905).  The quickest recent answer is the most exact one; clocks drift, so it is
   replaced after a time. */
#define COMPARED_FOR (60 * GT_SECOND)

static void compare_clocks(gt_outbox *o, outbox_peer *p, gt_ns rtt, gt_ns theirs) {
  if (p->compared_at != 0 && rtt > p->compared_rtt && o->now - p->compared_at < COMPARED_FOR)
    return;
  p->ahead = (gt_ns)((uint64_t)theirs - (uint64_t)(o->now - rtt / 2));
  p->compared_rtt = rtt;
  p->compared_at = o->now;
}

/* A round trip includes waiting behind a frame.  So a shorter one counts at once, a longer one
   gradually. */
void gt_links_measure_answer(gt_outbox *o, outbox_peer *p, gt_ns sent, gt_ns theirs) {
  outbox_measured *of = &p->measured;
  const double is = (double)(o->now - sent), old = keep(o, p->rtt_at);
  if (of->rtt_ns == 0 || is < of->rtt_ns) of->rtt_ns = is;
  of->late_rtt_ns =
      is < of->late_rtt_ns || of->late_rtt_ns == 0 ? is : old * of->late_rtt_ns + (1 - old) * is;
  p->rtt_at = o->now;
  compare_clocks(o, p, o->now - sent, theirs);
}

static double rate(double bits, double seconds) {
  return seconds > 0 ? bits / seconds : 0;
}

/* An acknowledgement takes half a round trip. */
static double staleness(const outbox_peer *p, gt_ns wait) {
  return p->waits.n > 0 ? fmax(0, gt_seconds(wait) - p->measured.rtt_ns / 2e9) : 0;
}

gt_outbox_view gt_outbox_get_view(const gt_outbox *o, size_t peer) {
  const outbox_peer *p = &o->peers[peer];
  const outbox_measured *of = &p->measured;
  return (gt_outbox_view){.queued = p->queued,
                          .unacknowledged = p->n,
                          .most = p->capacity,
                          .sent = p->sent,
                          .taken = p->taken,
                          .received = p->received,
                          .bandwidth_bps = rate(of->bits, of->seconds),
                          .latency_s = gt_seconds((gt_ns)of->rtt_ns) / 2,
                          .staleness_s =
                              staleness(p, p->waits.n > 0 ? p->waits.sum / p->waits.n : 0),
                          .staleness_s_longest = staleness(p, p->waits.longest),
                          .late_bps = rate(of->late_bits, of->late_seconds),
                          .late_latency_s = of->late_rtt_ns / 2e9,
                          .ahead = p->ahead,
                          .compared = p->compared_at != 0};
}

gt_status gt_links_load(gt_outbox *o, outbox_peer *p, const char *prefix, const gt_state *state) {
  double found[OUTBOX_MEASURED];
  p->rate_at = p->rtt_at = o->now;
  if (!gt_state_find(state, prefix, "measured")) return GT_OK;
  GT_TRY(gt_state_get(state, prefix, "measured", GT_TYPE_F64, found, OUTBOX_MEASURED));
  for (size_t i = 0; i < OUTBOX_MEASURED; i++)
    if (!(found[i] >= 0 && found[i] < 1e300))
      return GT_FAIL(GT_ERR_CKPT, "%smeasured has %g; expected 0 or more", prefix, found[i]);
  memcpy(&p->measured, found, sizeof found);
  return GT_OK;
}
