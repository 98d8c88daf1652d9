/* The view of a PS from outside: its figures and its phase. */
#include "internal.h"

gt_ns gt_ps_held_total(const gt_ps *ps) {
  return ps->held_total + (ps->held ? ps->now - ps->held_since : 0);
}

bool gt_ps_outstanding(const gt_ps *ps) {
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].has_batch) return true;
  return false;
}

bool gt_ps_whole_sound(const gt_ps *ps) {
  if (ps->unsound == ps->whole_round) return false;
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (ps->peers[p].unsound == ps->whole_round) return false;
  return true;
}

gt_ns gt_ps_held_now(const gt_ps *ps, gt_ns now) {
  gt_ns held = ps->held_total + (ps->held ? now - ps->held_since : 0), sum = 0;
  for (size_t w = 0; w < ps->spec.nworkers && ps->phase == GT_PS_TRAINING; w++)
    if (ps->workers[w].state == W_WAITING || ps->workers[w].state == W_PENDING)
      sum += held - ps->workers[w].held_mark;
  return sum;
}

double gt_ps_residual(const gt_ps *ps) {
  return gt_exchange_residual(ps->exchange);
}

void gt_ps_get_view(const gt_ps *ps, gt_ns now, gt_ps_view *v) {
  const ps_totals *t = &ps->totals;
  *v = (gt_ps_view){.phase = ps->phase,
                    .stop_code = ps->stop_code,
                    .steps = t->steps,
                    .samples = t->samples,
                    .batches = t->batches,
                    .parts = t->batches * (ps->plane->whole ? (int64_t)ps->spec.nworkers : 1),
                    .nonfinite = t->nonfinite,
                    .excluded = ps->sync->excluded,
                    .missed = ps->sync->missed,
                    .round = ps->round,
                    .whole_round = ps->whole_round,
                    .loss_sum = ps->loss_sum,
                    .loss_samples = ps->loss_samples,
                    .last_eval = ps->last_eval,
                    .last_eval_took = ps->eval.took,
                    .compute = t->compute,
                    .wait = t->wait,
                    .wan_wait = t->wan_wait,
                    .drain = t->drain,
                    .idle = t->idle,
                    .update = t->update,
                    .encode = t->encode,
                    .held = ps->held,
                    .evaluating = ps->eval.active || ps->eval.due || ps->validation.due,
                    .validating = !gt_ps_is_judged(ps),
                    .judged = ps->validation.judged,
                    .best_round = ps->validation.best,
                    .last_round = ps->validation.last,
                    .best_loss = ps->validation.best_loss,
                    .judged_loss = ps->validation.loss,
                    .judged_accuracy = ps->validation.accuracy,
                    .gave_up = gt_ps_gave_up(ps),
                    .done = gt_ps_share_done(ps),
                    .epoch = ps->epoch.number,
                    .members = ps->replicas.n,
                    .entering = ps->epoch.frozen || (ps->holders & PS_HOLDER_EPOCH) != 0,
                    .outside = ps->epoch.outside,
                    .moved_samples = ps->moved_samples,
                    .unfit = gt_ps_is_unfit(ps),
                    .minority = ps->epoch.minority,
                    .out = ps->epoch.out};
  if (ps->phase == GT_PS_DRAINING) v->drain += now - ps->phase_since;
  if (ps->phase == GT_PS_FOLLOWING) v->idle += now - ps->phase_since;
}

void gt_ps_get_link(const gt_ps *ps, size_t peer, gt_ps_link *link) {
  const gt_outbox_view v = gt_outbox_get_view(ps->outbox, peer);
  *link = (gt_ps_link){.bandwidth_bps = v.bandwidth_bps,
                       .latency_s = v.latency_s,
                       .staleness_s = v.staleness_s,
                       .staleness_s_longest = v.staleness_s_longest,
                       .queued = v.queued,
                       .unacknowledged = v.unacknowledged,
                       .samples = ps->peers[peer].samples,
                       .done = ps->peers[peer].done,
                       .ahead = v.ahead,
                       .compared = v.compared};
}

bool gt_ps_is_member(const gt_ps *ps, size_t region) {
  return ps->epoch.member[region];
}

void gt_ps_loss_reset(gt_ps *ps) {
  ps->loss_sum = 0;
  ps->loss_samples = 0;
}

gt_ns gt_ps_held(const gt_ps *ps, size_t worker) {
  return gt_ps_held_total(ps) - ps->workers[worker].held_mark;
}

bool gt_ps_absent(const gt_ps *ps, size_t worker) {
  return ps->workers[worker].state == W_ABSENT;
}

bool gt_ps_computing(const gt_ps *ps, size_t worker, gt_ns *since, int64_t *batch) {
  const ps_worker *w = &ps->workers[worker];
  *since = w->since;
  *batch = w->state == W_EVALUATING ? -1 : w->batch;
  return w->state == W_COMPUTING || w->state == W_EVALUATING;
}
