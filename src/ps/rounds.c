/* Checkpoint rounds: the first region to reach the interval opens one; a region that sees a later
   round in a frame first takes its own checkpoint; a round is whole when every region has said that
   its file is durable. */
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

void gt_ps_round_take(gt_ps *ps, int64_t round, gt_status stop_code) {
  ps->round = round;
  ps->durable = 0;
  ps->steps_at_round = ps->totals.steps;
  ps->samples_at_round = ps->totals.samples;
  ps->round_at = ps->now;
  ps->stop_code = stop_code;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_ROUND, (double)round, (double)stop_code);
  ps->spec.host.checkpoint(ps->spec.host.ctx, round);
  gt_ps_control_all(ps, GT_MSG_ROUND, round, stop_code);
}

static bool over_wan_limit(const gt_ps *ps) {
  return ps->spec.wan_bytes_limit > 0 && gt_ps_wan_bytes(ps) > ps->spec.wan_bytes_limit;
}

void gt_ps_round_check(gt_ps *ps) {
  if (gt_ps_frozen(ps) || ps->round != ps->whole_round || ps->phase == GT_PS_COMPLETE) return;
  if (ps->want_stop == GT_OK && ps->phase == GT_PS_TRAINING && over_wan_limit(ps))
    ps->want_stop = GT_ERR_LIMIT;
  if (ps->want_stop != GT_OK)
    gt_ps_round_take(ps, ps->round + 1, ps->want_stop);
  else if (ps->phase == GT_PS_TRAINING && interval_over(ps))
    gt_ps_round_take(ps, ps->round + 1, GT_OK);
}

void gt_ps_round_whole(gt_ps *ps) {
  if (ps->whole_round == ps->round || ps->own_written < ps->round) return;
  while (ps->durable < ps->spec.nregions &&
         (ps->durable == ps->spec.self || ps->peers[ps->durable].written >= ps->round))
    ps->durable++;
  if (ps->durable < ps->spec.nregions) return;
  ps->whole_round = ps->round;
  ps->spec.host.whole(ps->spec.host.ctx, ps->round);
  if (ps->stop_code != GT_OK)
    ps->phase = GT_PS_STOPPED;
  else
    gt_ps_round_check(ps);
}

void gt_ps_round_unsound(gt_ps *ps) {
  ps->unsound = ps->round;
}

void gt_ps_round_written(gt_ps *ps, int64_t round) {
  ps->own_written = round;
  gt_ps_control_all(ps, GT_MSG_WRITTEN, round, ps->unsound == round);
  gt_ps_round_whole(ps);
}

void gt_ps_stop(gt_ps *ps, gt_status code, gt_ns now) {
  ps->now = now;
  if (ps->want_stop == GT_OK) ps->want_stop = code;
  gt_ps_round_check(ps);
}

void gt_ps_last_round(gt_ps *ps, gt_ns now) {
  ps->now = now;
  if (!gt_ps_frozen(ps) && ps->round == ps->whole_round) gt_ps_round_take(ps, ps->round + 1, GT_OK);
}
