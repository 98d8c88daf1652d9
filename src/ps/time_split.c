/* The parts of a mini-batch's time: the causes for which a region's workers were held, and how long
   (docs/time-split.md). */
#include <math.h>

#include "geotrain/ps_time_split.h"
#include "internal.h"

/* While the region's messages are being sent, held workers wait for the upload; otherwise for the
   download, if a message is arriving. */
static gt_held_by held_by(const gt_ps *ps, bool (*receiving)(const void *ctx, size_t peer),
                          const void *ctx) {
  if (!ps->held && ps->phase != GT_PS_DRAINING) return GT_HELD_NOT;
  if (gt_outbox_sends(ps->outbox)) return GT_HELD_UPLOAD;
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self && receiving(ctx, p)) return GT_HELD_DOWNLOAD;
  return GT_HELD_NOT;
}

/* A worker that computes while the PS is held does not wait. */
static double waiting_share(const gt_ps *ps) {
  const size_t nworkers = ps->spec.nworkers;
  size_t waiting = 0;
  gt_ns since;
  int64_t batch;
  for (size_t w = 0; w < nworkers; w++) waiting += !gt_ps_computing(ps, w, &since, &batch);
  return nworkers > 0 ? (double)waiting / (double)nworkers : 0;
}

void gt_time_split_account(gt_time_split *s, const gt_ps *ps,
                           bool (*receiving)(const void *ctx, size_t peer), const void *ctx,
                           gt_ns now) {
  const gt_ns span = now - s->since;
  const bool training = ps->phase == GT_PS_TRAINING || ps->phase == GT_PS_DRAINING,
             before = s->begun;
  s->since = now;
  s->begun = true;
  /* time up to the event that ends training counts, later time does not */
  if (s->over || (!before && !training)) return;
  s->over = !training;
  s->use.training += span;
  if (s->held_by == GT_HELD_UPLOAD) s->use.upload += (gt_ns)(s->held_share * (double)span);
  if (s->held_by == GT_HELD_DOWNLOAD) s->use.download += (gt_ns)(s->held_share * (double)span);
  if (s->over) return;
  s->held_by = held_by(ps, receiving, ctx);
  s->held_share = s->held_by == GT_HELD_NOT ? 0 : waiting_share(ps);
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
