/* The PS rank's loop under the virtual clock.  Workers really compute, and what they compute takes the time that the job says; the loop handles
   events in the order of their virtual times, whenever they really come, and none before it is sure that no earlier one can come from another region. */
#include "geotrain/ps_timeline.h"
#include "internal.h"

/* What a worker pushed ahead of its time. */
typedef struct {
  bool here;
  gt_push_msg push;
  float *floats; /* gradients or scores */
  const float *buffers;
  gt_ns really_since; /* wall time of its order */
} virtual_worker;

struct gt_virtual {
  gt_timeline *timeline;
  gt_ns safe; /* every frame that arrives before is here */
  virtual_worker *workers;
  size_t nworkers;
  bool stop_asked;              /* by a worker */
  gt_ns alive_at, keepalive_at; /* wall time */
};

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

void gt_virtual_open(gt_server *s) {
  gt_virtual *v = GT_NEW(gt_virtual);
  v->nworkers = (size_t)s->run->roles.region_size - 1;
  v->workers = GT_NEW_ARRAY(virtual_worker, v->nworkers);
  v->timeline = gt_timeline_create(s->run->job, &s->run->order, v->nworkers);
  s->virtual_clock = v;
}

void gt_virtual_close(gt_virtual *v) {
  if (!v) return;
  gt_timeline_close(v->timeline);
  gt_free(v->workers);
  gt_free(v);
}

gt_ns gt_virtual_now(const gt_virtual *v) {
  return gt_timeline_now(v->timeline);
}

void gt_virtual_work(gt_virtual *v, gt_ps_work work) {
  gt_timeline_work(v->timeline, work);
}

void gt_virtual_writing(gt_virtual *v, double bytes) {
  gt_timeline_writing(v->timeline, bytes);
}

void gt_virtual_ordered(gt_server *s, size_t worker, const gt_ps_order *order) {
  gt_virtual *v = s->virtual_clock;
  if (order->kind != GT_PS_KEEPALIVE) v->workers[worker].really_since = gt_now();
  gt_timeline_ordered(v->timeline, worker, order);
}

/* Its work is under way, or lies here before its time. */
static bool at_work(const gt_virtual *v, size_t worker) {
  return gt_timeline_due(v->timeline, worker) != GT_NEVER;
}

/* ---- what really happens -------------------------------------------------------------------------------------------------------- */

static void on_push(void *ctx, size_t worker, const gt_push_msg *push, float *floats, const float *buffers) {
  gt_virtual *v = ((gt_server *)ctx)->virtual_clock;
  if (push->signal) v->stop_asked = true;
  if (push->kind == GT_PUSH_SIGNAL) return;
  v->workers[worker].here = true;
  v->workers[worker].push = *push;
  v->workers[worker].floats = floats;
  v->workers[worker].buffers = buffers;
}

/* Deadlines are wall time: workers that wait hear of the PS, other regions of this one. */
static void keep_alive(gt_server *s, gt_ns wall) {
  gt_virtual *v = s->virtual_clock;
  gt_order_msg order = {.kind = GT_ORDER_KEEPALIVE};
  double limit = s->run->job->limits.local_s;
  if (wall >= v->alive_at) {
    v->alive_at = wall + GT_SECOND;
    gt_gateway_alive(s->gateway);
  }
  if (wall < v->keepalive_at) return;
  v->keepalive_at = wall + gt_from_seconds(limit / 4 < 5 ? limit / 4 : 5);
  for (size_t w = 0; w < v->nworkers; w++)
    if (v->workers[w].here || !at_work(v, w)) gt_plane_ps_order(s->plane, w, &order, NULL, NULL);
}

static void watch_workers(const gt_server *s, gt_ns wall) {
  const gt_virtual *v = s->virtual_clock;
  double limit = s->run->job->limits.local_s;
  for (size_t w = 0; w < v->nworkers; w++)
    if ((at_work(v, w) || gt_ps_absent(s->ps, w)) && !v->workers[w].here && gt_seconds(wall - v->workers[w].really_since) >= limit)
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for the work of worker %zu of region %s", limit, w, s->run->region);
}

/* One turn of any real wait. */
static void look_around(gt_server *s, gt_backoff *backoff) {
  bool moved = gt_gateway_take(s->gateway);
  moved |= gt_plane_ps_poll(s->plane, on_push, s);
  if (moved) {
    gt_backoff_reset(backoff);
    return;
  }
  gt_ns wall = gt_now();
  keep_alive(s, wall);
  watch_workers(s, wall);
  gt_server_watch_regions(s, wall);
  gt_backoff_sleep(backoff, GT_BACKOFF_IDLE, GT_NEVER);
}

void gt_virtual_look_around(gt_server *s) {
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  if (s->virtual_clock) look_around(s, &backoff);
}

static void await_push(gt_server *s, size_t worker) {
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  while (!s->virtual_clock->workers[worker].here) look_around(s, &backoff);
  s->virtual_clock->workers[worker].here = false;
}

static gt_status await_writer(gt_server *s) {
  gt_backoff backoff;
  gt_status result = GT_OK;
  gt_backoff_reset(&backoff);
  while (gt_ckpt_poll(s->writer, &result) != GT_CKPT_DONE) {
    look_around(s, &backoff);
    gt_server_watch_writer(s, gt_now(), true);
  }
  return result;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------------- */

static gt_event next_event(const gt_server *s) {
  return gt_timeline_next(s->virtual_clock->timeline, gt_gateway_arrival(s->gateway), gt_gateway_next(s->gateway, NULL), gt_ps_next(s->ps));
}

static void pushed(gt_server *s, size_t worker) {
  gt_virtual *v = s->virtual_clock;
  virtual_worker *w = &v->workers[worker];
  await_push(s, worker);
  gt_push_msg p = w->push;
  gt_ps_push push = {.samples = p.samples,
                     .correct = p.correct,
                     .loss_sum = p.loss_sum,
                     .scores = p.kind == GT_PUSH_EVAL ? w->floats : NULL,
                     .buffers = w->buffers,
                     .nonfinite = p.nonfinite != 0};
  gt_timeline_pushed(v->timeline, worker, &push.compute, &push.wait);
  if (p.kind == GT_PUSH_EVAL)
    gt_ps_evaluated(s->ps, worker, &push, gt_timeline_now(v->timeline));
  else {
    gt_server_learnt(s, &push);
    gt_ps_gradient(s->ps, worker, &push, w->floats, gt_timeline_now(v->timeline));
  }
}

static void written(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  gt_status result = await_writer(s);
  int64_t round = s->written_round;
  s->written_round = 0;
  if (result != GT_OK) gt_panic(result, "%s; the previous checkpoint is whole", gt_error_text());
  gt_ps_written(s->ps, round, gt_timeline_now(v->timeline));
}

static void handle(gt_server *s, const gt_event *e) {
  gt_virtual *v = s->virtual_clock;
  gt_timeline_begin(v->timeline, e);
  switch (e->kind) {
  case GT_EVENT_FRAME:
    gt_gateway_deliver(s->gateway, gt_timeline_now(v->timeline));
    break;
  case GT_EVENT_LINK:
    gt_gateway_poll(s->gateway, e->at); /* a link works while the PS does */
    break;
  case GT_EVENT_PUSH:
    pushed(s, e->worker);
    break;
  case GT_EVENT_WRITTEN:
    written(s);
    break;
  case GT_EVENT_TICK:
    gt_ps_tick(s->ps, gt_timeline_now(v->timeline));
    break;
  }
  gt_server_account(s, gt_timeline_now(v->timeline));
}

/* The stop is one more thing that happens at an event: between two, it could come before what other regions were promised. */
static void look_after(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  if ((gt_stop_requested() || v->stop_asked) && !s->stop_told) {
    s->stop_told = true;
    gt_ps_stop(s->ps, GT_STOPPED, gt_timeline_now(v->timeline));
  }
  gt_server_progress(s, gt_timeline_now(v->timeline), false);
}

/* ---- the loop -------------------------------------------------------------------------------------------------------------------- */

static void agree(gt_server *s, gt_ns next) {
  gt_virtual *v = s->virtual_clock;
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  /* While the PS is at work nothing but the links acts. */
  gt_ns link = gt_gateway_next(s->gateway, NULL), busy = gt_timeline_now(v->timeline), at = gt_timeline_at(v->timeline);
  gt_ns acts = next > busy ? next : busy;
  gt_gateway_propose(s->gateway, link < acts ? (link > at ? link : at) : acts);
  while (!gt_gateway_agreed(s->gateway, &v->safe)) look_around(s, &backoff);
}

static void begin(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  size_t n = s->run->job->nregions;
  gt_ns *delays = GT_NEW_ARRAY(gt_ns, n * n);
  if (gt_links_delays(s->run->links, s->run->job, delays) != GT_OK) gt_bug("links were checked before the run began");
  gt_gateway_virtual(s->gateway, delays);
  gt_free(delays);
  gt_ps_start(s->ps, 0);
  for (size_t w = 0; w < v->nworkers; w++) v->workers[w].really_since = gt_now();
  for (size_t w = 0; w < v->nworkers; w++) {
    await_push(s, w);
    gt_ps_ready(s->ps, w, 0);
  }
}

/* What is queued still leaves; then the others need not ask this region any more. */
static void leave(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  for (size_t w = 0; w < v->nworkers; w++)
    while (at_work(v, w) && !v->workers[w].here) look_around(s, &backoff);
  for (gt_ns at; (at = gt_gateway_next(s->gateway, NULL)) != GT_NEVER;) {
    gt_timeline_forward(v->timeline, at);
    gt_gateway_poll(s->gateway, gt_timeline_at(v->timeline));
  }
  gt_gateway_propose(s->gateway, GT_NEVER);
}

gt_status gt_virtual_loop(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  bool ended = false;
  gt_status status = GT_OK;
  s->watched_at = gt_now();
  begin(s);
  while (!ended) {
    gt_event e = next_event(s);
    if (e.at >= v->safe) {
      agree(s, e.at);
      continue;
    }
    handle(s, &e);
    look_after(s);
    status = gt_server_end(s, gt_timeline_now(v->timeline), &ended);
  }
  leave(s);
  gt_server_end_workers(s, status);
  gt_server_progress(s, gt_timeline_now(v->timeline), true);
  return status;
}
