/* The PS rank's loop under the virtual clock (DESIGN 2.6).  Workers really compute, and what they compute takes the time that the job says; the loop handles
   events in the order of their virtual times, whenever they really come, and none before it is sure that no earlier one can come from another region. */
#include "impl.h"

/* One worker, as far as its time goes. */
typedef struct {
  gt_ns due;             /* of its push; GT_NEVER: it has nothing to do */
  gt_ns ordered, pushed; /* when its order was given, when it last pushed */
  gt_ns cost;
  bool here; /* what it pushed, ahead of its time */
  gt_push_msg push;
  float *grads;
  const float *buffers;
  gt_ns really_since; /* wall time of its order */
} virtual_worker;

struct gt_virtual {
  gt_job_compute cost;
  gt_ns at;         /* of the event that is handled */
  gt_ns busy;       /* the PS is at work until then */
  gt_ns safe;       /* every frame that arrives before is here */
  gt_ns written_at; /* the checkpoint under way is durable */
  virtual_worker *workers;
  size_t nworkers;
  bool stop_asked;              /* by a worker */
  gt_ns alive_at, keepalive_at; /* wall time */
};

/* At equal times in this order; workers by number. */
typedef enum { EVENT_FRAME, EVENT_LINK, EVENT_PUSH, EVENT_WRITTEN, EVENT_TICK } event_kind;
typedef struct {
  gt_ns at;
  event_kind kind;
  size_t worker;
} event;

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

void gt_virtual_open(gt_server *s) {
  gt_virtual *v = GT_NEW(gt_virtual);
  v->cost = gt_job_compute_of(s->run->job, s->run->roles.region_id);
  v->nworkers = (size_t)s->run->roles.region_size - 1;
  v->workers = GT_NEW_ARRAY(virtual_worker, v->nworkers);
  for (size_t w = 0; w < v->nworkers; w++) v->workers[w].due = GT_NEVER;
  v->written_at = GT_NEVER;
  s->virtual_clock = v;
}

void gt_virtual_close(gt_virtual *v) {
  if (!v) return;
  gt_free(v->workers);
  gt_free(v);
}

/* ---- what takes time ---------------------------------------------------------------------------------------------------------- */

gt_ns gt_virtual_now(const gt_virtual *v) {
  return v->busy;
}

void gt_virtual_work(gt_virtual *v, gt_ps_work work) {
  double seconds = work == GT_WORK_UPDATE ? v->cost.update_s : work == GT_WORK_APPLY ? v->cost.apply_s : v->cost.encode_s;
  v->busy += gt_from_seconds(seconds);
}

void gt_virtual_writing(gt_virtual *v, double bytes) {
  double seconds = v->cost.checkpoint_bps > 0 ? 8 * bytes / v->cost.checkpoint_bps : 0;
  v->written_at = v->busy + gt_from_seconds(seconds);
}

void gt_virtual_ordered(gt_server *s, size_t worker, const gt_ps_order *order) {
  gt_virtual *v = s->virtual_clock;
  virtual_worker *w = &v->workers[worker];
  if (order->kind == GT_PS_KEEPALIVE) return;
  w->cost = order->kind == GT_PS_TRAIN ? gt_cost_step(s->run, &v->cost, worker, order->first) : gt_cost_eval(s->run, &v->cost, worker, order->count);
  w->ordered = v->busy + gt_from_seconds(v->cost.local_s);
  w->due = w->ordered + w->cost;
  w->really_since = gt_now();
}

/* ---- what really happens -------------------------------------------------------------------------------------------------------- */

static void on_push(void *ctx, size_t worker, const gt_push_msg *push, float *grads, const float *buffers) {
  gt_virtual *v = ((gt_server *)ctx)->virtual_clock;
  if (push->signal) v->stop_asked = true;
  if (push->kind == GT_PUSH_SIGNAL) return;
  v->workers[worker].here = true;
  v->workers[worker].push = *push;
  v->workers[worker].grads = grads;
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
    if (v->workers[w].here || v->workers[w].due == GT_NEVER) gt_plane_ps_order(s->plane, w, &order, NULL, NULL);
}

static void watch_workers(const gt_server *s, gt_ns wall) {
  const gt_virtual *v = s->virtual_clock;
  double limit = s->run->job->limits.local_s;
  for (size_t w = 0; w < v->nworkers; w++)
    if (v->workers[w].due != GT_NEVER && !v->workers[w].here && gt_seconds(wall - v->workers[w].really_since) >= limit)
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
  while (gt_ckpt_poll(s->writer, &result) != GT_CKPT_DONE) look_around(s, &backoff);
  return result;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------------- */

static void earlier(event *e, gt_ns at, event_kind kind, size_t worker) {
  if (at < e->at) *e = (event){at, kind, worker};
}

/* No event is in the past: a message for a link that is idle leaves now. */
static event next_event(const gt_server *s) {
  const gt_virtual *v = s->virtual_clock;
  event e = {GT_NEVER, EVENT_TICK, 0};
  earlier(&e, gt_gateway_arrival(s->gateway), EVENT_FRAME, 0);
  earlier(&e, gt_gateway_next(s->gateway, NULL), EVENT_LINK, 0);
  for (size_t w = 0; w < v->nworkers; w++) earlier(&e, v->workers[w].due, EVENT_PUSH, w);
  earlier(&e, v->written_at, EVENT_WRITTEN, 0);
  earlier(&e, gt_ps_next(s->ps), EVENT_TICK, 0);
  if (e.at < v->at) e.at = v->at;
  return e;
}

static void pushed(gt_server *s, size_t worker) {
  gt_virtual *v = s->virtual_clock;
  virtual_worker *w = &v->workers[worker];
  await_push(s, worker);
  gt_push_msg p = w->push;
  gt_ps_push push = {.samples = p.samples,
                     .correct = p.correct,
                     .loss_sum = p.loss_sum,
                     .auc = p.auc,
                     .compute = w->cost,
                     .wait = w->ordered - w->pushed,
                     .buffers = w->buffers,
                     .nonfinite = p.nonfinite != 0};
  w->pushed = w->due;
  w->due = GT_NEVER;
  if (p.kind == GT_PUSH_EVAL)
    gt_ps_evaluated(s->ps, &push, v->busy);
  else
    gt_ps_gradient(s->ps, worker, &push, w->grads, v->busy);
}

static void written(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  gt_status result = await_writer(s);
  int64_t round = s->written_round;
  v->written_at = GT_NEVER;
  s->written_round = 0;
  if (result != GT_OK) gt_panic(result, "%s; the previous checkpoint is whole", gt_error_text());
  gt_ps_written(s->ps, round, v->busy);
}

static void handle(gt_server *s, const event *e) {
  gt_virtual *v = s->virtual_clock;
  v->at = e->at;
  if (v->busy < e->at) v->busy = e->at;
  switch (e->kind) {
  case EVENT_FRAME:
    gt_gateway_deliver(s->gateway, v->busy);
    break;
  case EVENT_LINK:
    gt_gateway_poll(s->gateway, e->at); /* a link works while the PS does */
    break;
  case EVENT_PUSH:
    pushed(s, e->worker);
    break;
  case EVENT_WRITTEN:
    written(s);
    break;
  case EVENT_TICK:
    gt_ps_tick(s->ps, v->busy);
    break;
  }
  gt_server_account(s, v->busy);
}

/* The stop is one more thing that happens at an event: between two, it could come before what other regions were promised. */
static void look_after(gt_server *s) {
  gt_virtual *v = s->virtual_clock;
  if ((gt_stop_requested() || v->stop_asked) && !s->stop_told) {
    s->stop_told = true;
    gt_ps_stop(s->ps, GT_STOPPED, v->busy);
  }
  gt_server_progress(s, v->busy, false);
}

/* ---- the loop -------------------------------------------------------------------------------------------------------------------- */

static void agree(gt_server *s, gt_ns next) {
  gt_virtual *v = s->virtual_clock;
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  /* While the PS is at work nothing but the links acts. */
  gt_ns link = gt_gateway_next(s->gateway, NULL), acts = next > v->busy ? next : v->busy;
  gt_gateway_propose(s->gateway, link < acts ? (link > v->at ? link : v->at) : acts);
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
    while (v->workers[w].due != GT_NEVER && !v->workers[w].here) look_around(s, &backoff);
  for (gt_ns at; (at = gt_gateway_next(s->gateway, NULL)) != GT_NEVER;) {
    if (v->at < at) v->at = at;
    gt_gateway_poll(s->gateway, v->at);
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
    event e = next_event(s);
    if (e.at >= v->safe) {
      agree(s, e.at);
      continue;
    }
    handle(s, &e);
    look_after(s);
    status = gt_server_end(s, v->busy, &ended);
  }
  leave(s);
  gt_server_end_workers(s, status);
  gt_server_progress(s, v->busy, true);
  return status;
}
