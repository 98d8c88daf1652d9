/* Checkpoint rounds: the first region to reach the interval opens one; a region that sees a later
   round in a frame first takes its own checkpoint; a round is complete when every region has
   reported a durable file.
   With stages every region takes its checkpoint of a round between the same two steps.  A region
   opens one only when it is settled: it has committed every step that it has announced; ROUND has
   their number.
   - A region that receives ROUND makes no more steps: the next one needs the opener, which
     announces it after ROUND on the same link.  At most one step is missing: one that this region
     has announced and the opener has committed.  All others have announced it too, so this region
     will commit it without further help, and the round waits for it.  Otherwise the region takes
     its checkpoint at once, with the state before a step that is announced and not committed.
   - Two regions that open the same round are at the same step.  If one has made more, the other has
     announced that step after its ROUND, which came first.
   Of several replicas of a pipeline each has a step of its own.  A region that gets a round from
   another replica takes it like one that opens it.  Its messages to its replicas after its
   checkpoint are sent when they have taken theirs, and their acknowledgements or ends after theirs
   count when it has taken its own.  So no checkpoint of a round includes anything after another one
   of the round.
   No region waits for a region that has stopped: that one stops at a step that all others have
   committed or can commit, and takes part in none after it. */
#include "internal.h"

static bool interval_over(const gt_ps *ps) {
  const gt_ps_interval *every = &ps->spec.checkpoint_every;
  if (every->steps > 0 && ps->totals.steps - ps->steps_at_round >= every->steps) return true;
  if (every->epochs > 0 && (double)(ps->totals.samples - ps->samples_at_round) >=
                               every->epochs * (double)ps->spec.order.n)
    return true;
  if (every->samples > 0 && ps->totals.samples - ps->samples_at_round >= every->samples)
    return true;
  return every->minutes > 0 && gt_seconds(ps->now - ps->round_at) >= 60 * every->minutes;
}

static void tell_round(gt_ps *ps) {
  gt_outbox_control_all(
      ps->outbox,
      (gt_frame_header){.kind = GT_MSG_ROUND,
                        .sequence = ps->plane->together ? (uint64_t)ps->totals.steps : 0,
                        .value = (uint64_t)ps->round,
                        .detail = (uint64_t)ps->stop_code});
}

static void stop_with(gt_ps *ps, gt_status code) {
  ps->stop_code = code;
  if (code != GT_OK) gt_outbox_stop(ps->outbox);
}

/* With several replicas: holds the messages for peers that have not taken the round. */
static void hold_outboxes(gt_ps *ps) {
  for (size_t p = 0; ps->apart && p < ps->spec.nregions; p++)
    gt_outbox_hold(ps->outbox, p, gt_ps_behind(ps, p));
}

void gt_ps_round_unsound(gt_ps *ps) {
  ps->unsound = ps->round;
}

void gt_ps_round_take(gt_ps *ps, int64_t round, gt_status stop_code) {
  ps->round = round;
  stop_with(ps, stop_code);
  if (!gt_ps_ends_alone(ps)) gt_outbox_round(ps->outbox, round);
  hold_outboxes(ps);
  ps->durable = 0;
  if (stop_code == GT_OK || !ps->spec.validates) { /* else the same models are judged as without */
    ps->steps_at_round = ps->totals.steps;
    ps->samples_at_round = ps->totals.samples;
  }
  ps->round_at = ps->now;
  ps->want_round = false;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_ROUND, (double)round, (double)stop_code);
  if (gt_ps_is_unfit(ps)) gt_ps_round_unsound(ps);
  ps->spec.host.checkpoint(ps->spec.host.ctx, round);
  if (!gt_ps_ends_alone(ps)) tell_round(ps);
  gt_ps_validation_take(ps, round);
}

static bool over_wan_limit(const gt_ps *ps) {
  return ps->spec.wan_bytes_limit > 0 && gt_outbox_wan_bytes(ps->outbox) > ps->spec.wan_bytes_limit;
}

/* Call when the step for which a round waited is committed. */
static void take_deferred(gt_ps *ps) {
  const int64_t round = ps->stages.deferred.round;
  if (ps->stages.deferred.steps >= 0 && ps->totals.steps != ps->stages.deferred.steps)
    gt_bug("round %lld is of step %lld, and step %lld is made", (long long)round,
           (long long)ps->stages.deferred.steps, (long long)ps->totals.steps);
  ps->stages.deferred.round = 0;
  gt_ps_round_take(ps, round, ps->stages.deferred.code);
}

void gt_ps_round_check(gt_ps *ps) {
  if (gt_ps_frozen(ps) || ps->stages.given || ps->epoch.frozen) return;
  if (ps->stages.deferred.round > 0) {
    take_deferred(ps);
    return;
  }
  if (ps->round != ps->whole_round || ps->phase == GT_PS_COMPLETE) return;
  if (ps->want_stop == GT_OK && ps->phase == GT_PS_TRAINING && over_wan_limit(ps))
    ps->want_stop = GT_ERR_LIMIT;
  if (gt_ps_wants_stop(ps))
    gt_ps_round_take(ps, ps->round + 1, ps->want_stop);
  else if (gt_ps_is_judged(ps) &&
           (ps->want_round || (ps->phase == GT_PS_TRAINING && interval_over(ps))))
    gt_ps_round_take(ps, ps->round + 1, GT_OK);
}

/* Returns the more severe one of two reasons to stop, so that all regions end with the same. */
static gt_status graver(gt_status code, gt_status other) {
  return other != GT_OK && (code == GT_OK || other < code) ? other : code;
}

static void defer(gt_ps *ps, int64_t round, gt_status code, int64_t steps) {
  const bool again = ps->stages.deferred.round > 0;
  ps->stages.deferred.code = again ? graver(ps->stages.deferred.code, code) : code;
  ps->stages.deferred.round = round;
  if (!again || steps >= 0) ps->stages.deferred.steps = steps;
}

/* True if the round of another region, after `steps` steps, waits for a step.  A round of another
   replica is taken as if this region had opened it. */
static bool must_wait(const gt_ps *ps, size_t from, int64_t steps) {
  if (ps->stage_group.of[from] == PS_NONE) return ps->stages.given;
  return ps->plane->together && steps > ps->totals.steps;
}

void gt_ps_round_message(gt_ps *ps, size_t from, const gt_frame_header *head) {
  const int64_t round = (int64_t)head->value, steps = (int64_t)head->sequence;
  const gt_status code = (gt_status)head->detail;
  hold_outboxes(ps);
  if (round > ps->round && must_wait(ps, from, steps)) {
    defer(ps, round, code, ps->stage_group.of[from] == PS_NONE ? -1 : steps);
  } else if (round > ps->round) {
    const bool waits = ps->stages.deferred.round == round;
    const gt_status other = waits ? ps->stages.deferred.code : GT_OK;
    ps->stages.deferred.round = 0;
    gt_ps_round_take(ps, round, graver(other, code));
  } else if (round == ps->round && graver(ps->stop_code, code) != ps->stop_code) {
    stop_with(ps, code);
    if (ps->whole_round == round) ps->phase = GT_PS_STOPPED;
  }
}

void gt_ps_round_whole(gt_ps *ps) {
  const bool alone = gt_ps_ends_alone(ps);
  if (ps->whole_round == ps->round || ps->own_written < ps->round) return;
  while (ps->durable < ps->spec.nregions &&
         (alone || !gt_ps_is_other(ps, ps->durable) || ps->peers[ps->durable].written >= ps->round))
    ps->durable++;
  if (ps->durable < ps->spec.nregions) return;
  ps->whole_round = ps->round;
  if (!alone) ps->spec.host.whole(ps->spec.host.ctx, ps->round);
  if (ps->stop_code != GT_OK)
    ps->phase = GT_PS_STOPPED;
  else
    gt_ps_round_check(ps);
}

void gt_ps_round_written(gt_ps *ps, int64_t round) {
  ps->own_written = round;
  if (round != ps->round) return; /* void since a change of members */
  if (!gt_ps_ends_alone(ps))
    gt_outbox_control_all(ps->outbox, (gt_frame_header){.kind = GT_MSG_WRITTEN,
                                                        .value = (uint64_t)round,
                                                        .detail = ps->unsound == round});
  gt_ps_round_whole(ps);
}

void gt_ps_round_alone(gt_ps *ps) {
  if (!gt_ps_is_alone(ps)) return;
  if (ps->want_stop != GT_OK && !gt_ps_frozen(ps) && ps->own_written >= ps->round)
    gt_ps_round_take(ps, ps->round + 1, ps->want_stop);
  gt_ps_round_whole(ps);
}

void gt_ps_stop(gt_ps *ps, gt_status code, gt_ns now) {
  gt_ps_at(ps, now);
  if (ps->want_stop == GT_OK) ps->want_stop = code;
  if (gt_ps_is_alone(ps))
    gt_ps_round_alone(ps);
  else
    gt_ps_round_check(ps);
}

void gt_ps_last_round(gt_ps *ps, gt_ns now) {
  gt_ps_at(ps, now);
  if (gt_ps_frozen(ps) || ps->round != ps->whole_round || !gt_ps_is_judged(ps)) return;
  ps->validation.last = ps->round + 1;
  if (ps->stages.given)
    ps->want_round = true;
  else
    gt_ps_round_take(ps, ps->round + 1, GT_OK);
}
