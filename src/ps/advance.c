/* Detects if all regions stand still.  A region's heartbeats have a number that changes while its
   workers or its disk work or its bytes travel.  While no region's number changes, nothing can end
   a wait. */
#include "internal.h"

static void moved(gt_ps *ps) {
  ps->advance.beats = 0;
  for (size_t p = 0; p < ps->spec.nregions; p++) ps->peers[p].still_pings = 0;
}

void gt_ps_advance_beat(gt_ps *ps) {
  const gt_ps_host *host = &ps->spec.host;
  const uint64_t seen = host->advance ? host->advance(host->ctx) : 0;
  ps->advance.beats++;
  if (seen == ps->advance.seen) return;
  ps->advance.seen = seen;
  ps->advance.number++;
  moved(ps);
}

void gt_ps_advance_ping(gt_ps *ps, size_t from, uint32_t number) {
  ps_peer *peer = &ps->peers[from];
  peer->still_pings++;
  if (number == peer->advance) return;
  peer->advance = number;
  moved(ps);
}

gt_ns gt_ps_still(const gt_ps *ps) {
  int64_t beats = ps->advance.beats;
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (gt_ps_is_other(ps, p) && ps->peers[p].still_pings < beats) beats = ps->peers[p].still_pings;
  return ps->spec.nregions > 1 && ps->spec.host.advance ? beats * ps->spec.heartbeat : 0;
}

/* Returns the first region for which `lacks` is true; nregions: none. */
static size_t first_that(const gt_ps *ps, bool (*lacks)(const gt_ps *ps, size_t peer)) {
  size_t p = 0;
  while (p < ps->spec.nregions && (!gt_ps_is_other(ps, p) || !lacks(ps, p))) p++;
  return p;
}

static bool lacks_round(const gt_ps *ps, size_t peer) {
  return ps->peers[peer].written < ps->round;
}

static bool lacks_ack(const gt_ps *ps, size_t peer) {
  return gt_outbox_get_view(ps->outbox, peer).unacknowledged > 0;
}

static bool lacks_done(const gt_ps *ps, size_t peer) {
  return !ps->peers[peer].done;
}

static bool lacks_messages(const gt_ps *ps, size_t peer) {
  return ps->peers[peer].done &&
         gt_outbox_get_view(ps->outbox, peer).taken < ps->peers[peer].done_seq;
}

gt_ps_wait gt_ps_waits_for(const gt_ps *ps) {
  const size_t none = ps->spec.nregions;
  size_t peer;
  if (ps->round > ps->whole_round && (peer = first_that(ps, lacks_round)) < none)
    return (gt_ps_wait){GT_WAIT_ROUND, peer, ps->peers[peer].written, ps->round};
  if (gt_outbox_unacknowledged(ps->outbox) > 0 && (peer = first_that(ps, lacks_ack)) < none)
    return (gt_ps_wait){GT_WAIT_ACK, peer, 0,
                        (int64_t)gt_outbox_get_view(ps->outbox, peer).unacknowledged};
  if (ps->phase == GT_PS_FOLLOWING && (peer = first_that(ps, lacks_messages)) < none)
    return (gt_ps_wait){GT_WAIT_MESSAGES, peer, gt_outbox_get_view(ps->outbox, peer).taken,
                        ps->peers[peer].done_seq};
  if (ps->phase == GT_PS_FOLLOWING && (peer = first_that(ps, lacks_done)) < none)
    return (gt_ps_wait){GT_WAIT_DONE, peer, 0, 0};
  return (gt_ps_wait){GT_WAIT_EXCHANGE, none, 0, 0};
}
