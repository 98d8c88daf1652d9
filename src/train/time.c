/* The server's clock, and what its time goes to. */
#include "impl.h"

gt_ns gt_server_now(const gt_server *s) {
  return s->virtual_clock ? gt_virtual_now(s->virtual_clock) : gt_now();
}

double gt_server_elapsed(const gt_server *s) {
  return s->elapsed_s + gt_seconds(gt_server_now(s) - s->started);
}

double gt_server_wire_bytes(const gt_server *s, size_t peer) {
  const gt_ledger_row *rows = gt_gateway_ledger(s->gateway, peer);
  double sum = 0;
  for (size_t k = 0; k < GT_LEDGER_KINDS; k++) sum += (double)rows[k].wire_bytes;
  return sum;
}

/* While own messages are leaving, workers that are held wait for the upload; else for what is arriving, if anything is. */
static gt_held_by held_by(const gt_server *s, const gt_ps_view *v) {
  bool arriving = false;
  if (!v->held && v->phase != GT_PS_DRAINING) return GT_HELD_NOT;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    gt_ps_link link;
    if (p == s->run->roles.region_id) continue;
    gt_ps_look_link(s->ps, p, &link);
    if (link.queued > 0) return GT_HELD_UPLOAD;
    arriving |= gt_gateway_receiving(s->gateway, p);
  }
  return arriving ? GT_HELD_DOWNLOAD : GT_HELD_NOT;
}

/* A worker that computes while the PS is held does not wait. */
static double waiting_share(const gt_server *s) {
  size_t n = gt_plane_ps_workers(s->plane), waiting = 0;
  gt_ns since;
  int64_t batch;
  for (size_t w = 0; w < n; w++) waiting += !gt_ps_computing(s->ps, w, &since, &batch);
  return (double)waiting / (double)n;
}

void gt_server_account(gt_server *s, gt_ns now) {
  gt_ps_view v;
  gt_ns span = now - s->accounted_at;
  gt_ps_look(s->ps, now, &v);
  s->accounted_at = now;
  if (v.phase != GT_PS_TRAINING && v.phase != GT_PS_DRAINING) return;
  s->split.training += span;
  if (s->held_by == GT_HELD_UPLOAD) s->split.upload += (gt_ns)(s->held_share * (double)span);
  if (s->held_by == GT_HELD_DOWNLOAD) s->split.download += (gt_ns)(s->held_share * (double)span);
  s->held_by = held_by(s, &v);
  s->held_share = s->held_by == GT_HELD_NOT ? 0 : waiting_share(s);
}
