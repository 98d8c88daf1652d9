/* A region's virtual time: the events that are due, and the next of them. */
#include "geotrain/ps_timeline.h"
#include "geotrain/ps_work_time.h"

/* The times of one worker. */
typedef struct {
  gt_ns due;             /* of its push; GT_NEVER: it has nothing to do */
  gt_ns ordered, pushed; /* time of its order, of its last push */
  gt_ns cost;
  int cold; /* steps that still take longer, after a wait */
} timeline_worker;

struct gt_timeline {
  const gt_job *job;
  gt_order order;
  gt_job_compute cost;
  gt_ns at;         /* of the current event */
  gt_ns busy;       /* end of the PS's current work */
  gt_ns written_at; /* time at which the checkpoint in progress is durable */
  timeline_worker *workers;
  size_t nworkers;
};

gt_timeline *gt_timeline_create(const gt_job *job, const gt_order *order, size_t nworkers,
                                double update_share) {
  gt_timeline *t = GT_NEW(gt_timeline);
  t->job = job;
  t->order = *order;
  t->cost = gt_job_compute_of(job, (size_t)order->region);
  t->cost.update_s *= update_share;
  t->nworkers = nworkers;
  t->workers = GT_NEW_ARRAY(timeline_worker, nworkers);
  for (size_t w = 0; w < nworkers; w++) t->workers[w].due = GT_NEVER;
  t->written_at = GT_NEVER;
  return t;
}

void gt_timeline_close(gt_timeline *t) {
  if (!t) return;
  gt_free(t->workers);
  gt_free(t);
}

gt_ns gt_timeline_now(const gt_timeline *t) {
  return t->busy;
}

gt_ns gt_timeline_at(const gt_timeline *t) {
  return t->at;
}

void gt_timeline_restart(gt_timeline *t, gt_ns at) {
  t->at = t->busy = at;
  t->written_at = GT_NEVER;
  for (size_t w = 0; w < t->nworkers; w++)
    t->workers[w] = (timeline_worker){.due = GT_NEVER, .pushed = at};
}

/* ---- work ------------------------------------------------------------------------------------ */

static double at_rate(double bytes, double bps) {
  return bps > 0 ? 8 * bytes / bps : 0;
}

static double seconds_of(const gt_timeline *t, gt_ps_work work, double part) {
  const gt_job_compute *c = &t->cost;
  const gt_job_codec_cost *codec = &c->codecs[t->job->sync.codec.name];
  switch (work) {
  case GT_WORK_UPDATE:
    return part * c->update_s;
  case GT_WORK_APPLY:
    return part * c->apply_s;
  case GT_WORK_COPY:
    return part * c->encode_s;
  case GT_WORK_ENCODE:
    return at_rate(part, codec->encode_bps);
  case GT_WORK_DECODE:
    return at_rate(part, codec->decode_bps);
  }
  return 0;
}

void gt_timeline_work(gt_timeline *t, gt_ps_work work, double part) {
  t->busy += gt_from_seconds(seconds_of(t, work, part));
}

void gt_timeline_writing(gt_timeline *t, double bytes) {
  t->written_at = t->busy + gt_from_seconds(at_rate(bytes, t->cost.checkpoint_bps));
}

/* Returns the additional time of the worker's next step. */
static gt_ns resumed(const gt_timeline *t, timeline_worker *w) {
  if (w->ordered - w->pushed >= GT_RESUME_WAIT) w->cold = GT_RESUME_STEPS;
  if (w->cold == 0 || t->job->compute_emulate) return 0;
  w->cold--;
  return gt_from_seconds(t->cost.resume_s);
}

void gt_timeline_ordered(gt_timeline *t, size_t worker, const gt_ps_order *order) {
  timeline_worker *w = &t->workers[worker];
  if (order->kind == GT_PS_KEEPALIVE) return;
  w->ordered = t->busy + gt_from_seconds(t->cost.local_s);
  if (order->kind == GT_PS_TRAIN)
    w->cost = gt_cost_step(t->job, &t->order, &t->cost, worker, order->first) + resumed(t, w);
  else
    w->cost = gt_cost_eval(t->job, &t->order, &t->cost, worker, order->count);
  w->due = w->ordered + w->cost;
}

void gt_timeline_passing(gt_timeline *t, size_t worker, gt_ns cost) {
  timeline_worker *w = &t->workers[worker];
  w->ordered = t->busy + gt_from_seconds(t->cost.local_s);
  w->cost = cost;
  w->due = w->ordered + cost;
}

gt_ns gt_timeline_due(const gt_timeline *t, size_t worker) {
  return t->workers[worker].due;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void earlier(gt_event *e, gt_ns at, gt_event_kind kind, size_t worker) {
  if (at < e->at) *e = (gt_event){at, kind, worker};
}

gt_event gt_timeline_next(const gt_timeline *t, gt_ns frame, gt_ns link, gt_ns tick) {
  gt_event e = {GT_NEVER, GT_EVENT_TICK, 0};
  earlier(&e, frame, GT_EVENT_FRAME, 0);
  earlier(&e, link, GT_EVENT_LINK, 0);
  for (size_t w = 0; w < t->nworkers; w++) earlier(&e, t->workers[w].due, GT_EVENT_PUSH, w);
  earlier(&e, t->written_at, GT_EVENT_WRITTEN, 0);
  earlier(&e, tick, GT_EVENT_TICK, 0);
  /* no event is in the past: an idle link sends a message now */
  if (e.at < t->at) e.at = t->at;
  return e;
}

void gt_timeline_begin(gt_timeline *t, const gt_event *e) {
  t->at = e->at;
  if (t->busy < e->at) t->busy = e->at;
  if (e->kind == GT_EVENT_WRITTEN) t->written_at = GT_NEVER;
}

void gt_timeline_pushed(gt_timeline *t, size_t worker, gt_ns *compute, gt_ns *wait) {
  timeline_worker *w = &t->workers[worker];
  *compute = w->cost;
  *wait = w->ordered - w->pushed;
  w->pushed = w->due;
  w->due = GT_NEVER;
}

void gt_timeline_forward(gt_timeline *t, gt_ns at) {
  if (t->at < at) t->at = at;
}
