/* The end of a region: it sends the accumulated updates, informs the others, and applies their
   messages until all are done. */
#include "internal.h"

static void enter(gt_ps *ps, gt_ps_phase phase) {
  ps->phase = phase;
  ps->phase_since = ps->now;
  ps->totals.phase = phase;
}

/* Sends the message to every other region, with the last data sequence on the link to that
   region. */
static void tell_all(gt_ps *ps, gt_frame_header head) {
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    if (p == ps->spec.self) continue;
    head.detail = (uint64_t)gt_outbox_get_view(ps->outbox, p).sent;
    gt_outbox_control(ps->outbox, p, head, NULL, 0);
  }
}

/* Sends DONE once for every range, at least once. */
static void tell_done(gt_ps *ps) {
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  for (size_t i = 0; i < gt_ps_dones(ps); i++)
    tell_all(
        ps, (gt_frame_header){.kind = GT_MSG_DONE,
                              .range = (uint32_t)i,
                              .sequence = ranges ? (uint64_t)gt_exchange_count(ps->exchange, i) : 0,
                              .value = (uint64_t)ps->totals.steps});
}

/* Sends JOINED once for every range, at least once.  A region that is done sends DONE again after a
   resume; its training can have become longer. */
void gt_ps_tell_joined(gt_ps *ps) {
  bool done = ps->phase == GT_PS_FOLLOWING || ps->phase == GT_PS_COMPLETE;
  const unsigned how = done ? GT_JOINED_DONE : ps->came_back ? GT_JOINED_LATE : GT_JOINED_ACTIVE;
  for (size_t i = 0; i < gt_ps_dones(ps); i++)
    tell_all(ps, (gt_frame_header){.kind = GT_MSG_JOINED,
                                   .range = (uint32_t)i,
                                   .sequence = how,
                                   .value = (uint64_t)gt_exchange_rounds(ps->exchange, i)});
  if (done) tell_done(ps);
}

static void tell(gt_ps *ps, size_t from, gt_peer_event event, const int64_t *counts) {
  const size_t replica = ps->replicas.of[from];
  if (replica == PS_NONE) return;
  gt_sync_on_peer(ps->sync, replica, event);
  gt_exchange_peer(ps->exchange, replica, event, counts);
}

void gt_ps_tell_strategy(gt_ps *ps, size_t from) {
  ps_peer *peer = &ps->peers[from];
  const int64_t taken = gt_outbox_get_view(ps->outbox, from).taken;
  peer->late |= gt_ps_ahead(ps, from);
  if (gt_ps_ahead(ps, from)) return;
  /* JOINED and DONE of a peer that is still done are reported together: in between it would count
     as active. */
  if (peer->joined && taken >= peer->joined_seq && (peer->done || !peer->joined_done)) {
    peer->joined = false;
    tell(ps, from, peer->joined_late ? GT_PEER_REJOINED : GT_PEER_JOINED, peer->joined_counts);
  }
  if (!peer->done || peer->done_told || taken < peer->done_seq) return;
  peer->done_told = true;
  ps->told++;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_PEER_DONE, (double)from, (double)peer->done_steps);
  tell(ps, from, GT_PEER_DONE, peer->done_counts);
}

void gt_ps_drain(gt_ps *ps) {
  gt_sync_on_drain(ps->sync, ps->now);
}

static bool drained(const gt_ps *ps) {
  return gt_sync_drained(ps->sync) && gt_exchange_drained(ps->exchange);
}

static bool training_over(const gt_ps *ps) {
  if (gt_ps_outstanding(ps) || gt_ps_may_issue(ps) || ps->held || ps->eval.active ||
      ps->validation.due)
    return false;
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].state == W_ABSENT) return false;
  return true;
}

static size_t others(const gt_ps *ps) {
  size_t n = 0;
  for (size_t p = 0; p < ps->spec.nregions; p++) n += gt_ps_is_other(ps, p);
  return n;
}

void gt_ps_end_check(gt_ps *ps) {
  if (gt_ps_frozen(ps) || (ps->holders & PS_HOLDER_EPOCH)) return;
  if (ps->phase == GT_PS_TRAINING && training_over(ps)) {
    enter(ps, GT_PS_DRAINING);
    gt_ps_eval_skip(ps);
    gt_ps_drain(ps);
  }
  if (ps->phase != GT_PS_TRAINING) gt_outbox_ack_owed(ps->outbox);
  if (ps->phase == GT_PS_DRAINING && drained(ps) && gt_outbox_unacknowledged(ps->outbox) == 0) {
    ps->totals.drain += ps->now - ps->phase_since;
    enter(ps, GT_PS_FOLLOWING);
    ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_DONE, (double)ps->totals.steps, 0);
    tell_done(ps);
  }
  if (ps->phase == GT_PS_FOLLOWING && ps->told == others(ps) &&
      gt_outbox_unacknowledged(ps->outbox) == 0 && gt_sync_drained(ps->sync) &&
      gt_exchange_settled(ps->exchange)) {
    ps->totals.idle += ps->now - ps->phase_since;
    enter(ps, GT_PS_COMPLETE);
    ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_COMPLETE, (double)ps->totals.steps,
                       gt_ps_residual(ps));
  }
}
