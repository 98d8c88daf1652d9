/* The parts of a mini-batch's time: the causes for which a region's workers were held, and how long
   (docs/time-split.md). */
#include <math.h>

#include "geotrain/ps_state.h"
#include "geotrain/ps_time_split.h"

/* While the region's messages are being sent, held workers wait for the upload; otherwise for the
   download, if a message is arriving. */
static gt_held_by held_by(const gt_ps *ps, const gt_ps_view *v, size_t nregions, size_t self,
                          bool (*receiving)(const void *ctx, size_t peer), const void *ctx) {
  bool arriving = false;
  if (!v->held && v->phase != GT_PS_DRAINING) return GT_HELD_NOT;
  for (size_t p = 0; p < nregions; p++) {
    gt_ps_link link;
    if (p == self) continue;
    gt_ps_get_link(ps, p, &link);
    if (link.queued > 0) return GT_HELD_UPLOAD;
    arriving |= receiving(ctx, p);
  }
  return arriving ? GT_HELD_DOWNLOAD : GT_HELD_NOT;
}

/* A worker that computes while the PS is held does not wait. */
static double waiting_share(const gt_ps *ps, size_t nworkers) {
  size_t waiting = 0;
  gt_ns since;
  int64_t batch;
  for (size_t w = 0; w < nworkers; w++) waiting += !gt_ps_computing(ps, w, &since, &batch);
  return nworkers > 0 ? (double)waiting / (double)nworkers : 0;
}

void gt_time_split_account(gt_time_split *s, const gt_ps *ps, const gt_ps_spec *spec,
                           bool (*receiving)(const void *ctx, size_t peer), const void *ctx,
                           gt_ns now) {
  gt_ps_view v;
  gt_ns span = now - s->since;
  gt_ps_get_view(ps, now, &v);
  const bool training = v.phase == GT_PS_TRAINING || v.phase == GT_PS_DRAINING, before = s->begun;
  s->since = now;
  s->begun = true;
  /* time up to the event that ends training counts, later time does not */
  if (s->over || (!before && !training)) return;
  s->over = !training;
  s->use.training += span;
  if (s->held_by == GT_HELD_UPLOAD) s->use.upload += (gt_ns)(s->held_share * (double)span);
  if (s->held_by == GT_HELD_DOWNLOAD) s->use.download += (gt_ns)(s->held_share * (double)span);
  if (s->over) return;
  s->held_by = held_by(ps, &v, spec->nregions, spec->self, receiving, ctx);
  s->held_share = s->held_by == GT_HELD_NOT ? 0 : waiting_share(ps, spec->nworkers);
}

void gt_time_split_batch(const gt_time_split *s, const gt_ps_view *v, const gt_ps_spec *spec,
                         gt_time_split_parts *parts) {
  const double all = (double)v->parts, each = all > 0 ? (double)spec->nworkers / all : 0;
  parts->train = all > 0 ? gt_seconds(v->compute) / all : 0;
  parts->upload = gt_seconds(s->use.upload) * each;
  parts->download = gt_seconds(s->use.download) * each;
  parts->aggregate =
      fmax(0, gt_seconds(s->use.training) * each - parts->train - parts->upload - parts->download);
}
