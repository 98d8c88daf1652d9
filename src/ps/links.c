/* What is measured of the links: rates from acknowledgements, round trips from heartbeats; over the
   whole run, and of late. */
#include <math.h>
#include <string.h>

#include "internal.h"

#define WINDOW_S 30.0

/* How much what was measured until `at` still counts. */
static double keep(const gt_ps *ps, gt_ns at) {
  return exp(-gt_seconds(ps->now - at) / WINDOW_S);
}

/* The time of a message from posting to acknowledgement is size / rate, plus a round trip if it was
   alone.  If it was behind another, the time counts from that one's acknowledgement. */
static gt_ns time_of(const gt_ps *ps, const ps_peer *p, const ps_message *m, double rtt_ns) {
  if (m->behind) return ps->now - (p->last_ack > m->posted ? p->last_ack : m->posted);
  return ps->now - m->posted - (gt_ns)rtt_ns;
}

void gt_ps_measure_rate(gt_ps *ps, ps_peer *p, const ps_message *m) {
  ps_measured *of = &p->measured;
  if (of->rtt_ns == 0) return;
  const double bits = 8.0 * (double)gt_message_wire_bytes(&m->head, m->bytes);
  const gt_ns took = time_of(ps, p, m, of->rtt_ns), late = time_of(ps, p, m, of->late_rtt_ns);
  if (took > 0) {
    of->bits += bits;
    of->seconds += gt_seconds(took);
  }
  if (late <= 0) return;
  of->late_bits = keep(ps, p->rate_at) * of->late_bits + bits;
  of->late_seconds = keep(ps, p->rate_at) * of->late_seconds + gt_seconds(late);
  p->rate_at = ps->now;
}

/* Clocks of hosts are only compared here: an answer is taken to have been given in the middle of its
   round trip (Mills, RFC 5905).  The quickest answer says most, for as long as clocks keep
   together. */
#define COMPARED_FOR (60 * GT_SECOND)

void gt_ps_measure_clock(gt_ps *ps, ps_peer *p, gt_ns rtt, gt_ns theirs) {
  if (p->compared_at != 0 && rtt > p->compared_rtt && ps->now - p->compared_at < COMPARED_FOR)
    return;
  p->ahead = (gt_ns)((uint64_t)theirs - (uint64_t)(ps->now - rtt / 2));
  p->compared_rtt = rtt;
  p->compared_at = ps->now;
}

/* A round trip may have waited for a frame that was leaving, so that the shorter ones say more: a
   shorter one counts at once, a longer one bit by bit. */
void gt_ps_measure_rtt(gt_ps *ps, ps_peer *p, gt_ns rtt) {
  ps_measured *of = &p->measured;
  const double is = (double)rtt, old = keep(ps, p->rtt_at);
  if (of->rtt_ns == 0 || is < of->rtt_ns) of->rtt_ns = is;
  of->late_rtt_ns =
      is < of->late_rtt_ns || of->late_rtt_ns == 0 ? is : old * of->late_rtt_ns + (1 - old) * is;
  p->rtt_at = ps->now;
}

void gt_ps_look_link(const gt_ps *ps, size_t peer, gt_ps_link *link) {
  const ps_peer *p = &ps->peers[peer];
  const ps_measured *of = &p->measured;
  *link = (gt_ps_link){.bandwidth_bps = of->seconds > 0 ? of->bits / of->seconds : 0,
                       .latency_s = gt_seconds((gt_ns)of->rtt_ns) / 2,
                       .queued = p->queued,
                       .unacknowledged = p->n,
                       .samples = p->samples,
                       .done = p->done,
                       .ahead = p->ahead,
                       .compared = p->compared_at != 0};
}

gt_link_view gt_ps_link_view(void *ctx, size_t peer) {
  const ps_peer *p = &((gt_ps *)ctx)->peers[peer];
  const ps_measured *of = &p->measured;
  return (gt_link_view){.queued = p->queued,
                        .rate_bps = of->late_seconds > 0 ? of->late_bits / of->late_seconds : 0,
                        .latency_s = of->late_rtt_ns / 2e9};
}

void gt_ps_measured_save(ps_peer *p, const char *prefix, gt_state *state) {
  gt_state_add(state, prefix, "measured", GT_TYPE_F64, &p->measured, PS_MEASURED);
}

/* Older checkpoints do not have it. */
gt_status gt_ps_measured_load(gt_ps *ps, ps_peer *p, const char *prefix, const gt_state *state) {
  double found[PS_MEASURED];
  p->rate_at = p->rtt_at = ps->now;
  if (!gt_state_find(state, prefix, "measured")) return GT_OK;
  GT_TRY(gt_state_get(state, prefix, "measured", GT_TYPE_F64, found, PS_MEASURED));
  for (size_t i = 0; i < PS_MEASURED; i++)
    if (!(found[i] >= 0 && found[i] < 1e300))
      return GT_FAIL(GT_ERR_CKPT, "%smeasured has %g; 0 or more is needed", prefix, found[i]);
  memcpy(&p->measured, found, sizeof found);
  return GT_OK;
}
