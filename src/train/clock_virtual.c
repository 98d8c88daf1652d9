/* The virtual clock.  Workers really compute, but their work takes the time given by the job.  The
   loop handles events in the order of their virtual times, whenever they really arrive.  It handles
   an event only once no other region can still send an earlier one. */
#include <math.h>

#include "geotrain/ps_timeline.h"
#include "stages.h"

/* A push that arrived before its virtual time. */
typedef struct {
  bool here;
  gt_push_msg push;
  float *floats; /* gradients or scores */
  const float *buffers;
  gt_ns really_since; /* wall time of its last order */
} virtual_worker;

typedef struct {
  gt_timeline *timeline;
  gt_ns safe; /* all frames with an earlier arrival time are here */
  virtual_worker *workers;
  size_t nworkers;
  bool stop_asked;              /* by a worker's signal */
  gt_ns alive_at, keepalive_at; /* wall time */
} virtual_clock;

/* ---- virtual time ---------------------------------------------------------------------------- */

static void *virtual_open(const gt_server *s) {
  virtual_clock *v = GT_NEW(virtual_clock);
  v->nworkers = (size_t)s->run->roles.region_size - 1;
  v->workers = GT_NEW_ARRAY(virtual_worker, v->nworkers);
  const gt_run *run = s->run;
  const double share =
      run->pipe ? gt_pipe_job_update_share(run->pipe->job, run->roles.region_id) : 1;
  v->timeline = gt_timeline_create(run->job, &run->order, v->nworkers, share);
  return v;
}

static void virtual_close(void *state) {
  virtual_clock *v = state;
  if (!v) return;
  gt_timeline_close(v->timeline);
  gt_free(v->workers);
  gt_free(v);
}

static gt_timeline *timeline_of(const gt_server *s) {
  return ((const virtual_clock *)s->clock_state)->timeline;
}

static gt_ns virtual_now(const gt_server *s) {
  return gt_timeline_now(timeline_of(s));
}

/* The PS does one thing at a time. */
static gt_ns virtual_attended(const gt_server *s, gt_ns at) {
  (void)at;
  return virtual_now(s);
}

/* All regions have one clock. */
static gt_ns virtual_here(const gt_server *s, size_t peer, gt_ns theirs) {
  (void)s, (void)peer;
  return theirs;
}

/* Deadlines of waiting workers are in wall time: keep_alive sends the keepalives. */
static gt_ns virtual_keepalive(const gt_server *s) {
  (void)s;
  return GT_NEVER / 2;
}

static void virtual_ordered(gt_server *s, size_t worker, const gt_ps_order *order) {
  virtual_clock *v = s->clock_state;
  if (order->kind != GT_PS_KEEPALIVE) v->workers[worker].really_since = gt_now();
  gt_timeline_ordered(v->timeline, worker, order);
}

static void virtual_passing(gt_server *s, size_t worker, gt_ns cost) {
  virtual_clock *v = s->clock_state;
  v->workers[worker].really_since = gt_now();
  gt_timeline_passing(v->timeline, worker, cost);
}

static void virtual_worked(gt_server *s, gt_ps_work work, double part) {
  gt_timeline_work(timeline_of(s), work, part);
}

static void virtual_writing(gt_server *s, double bytes) {
  gt_timeline_writing(timeline_of(s), bytes);
}

/* Real CPU seconds would differ between otherwise equal runs. */
static double virtual_cpu_s(void) {
  return 0;
}

/* The wall time of earlier starts is not known: the checkpoint stores virtual time. */
static void virtual_summarise(const gt_server *s, gt_summary *summary) {
  summary->wall_s = gt_seconds(gt_now() - s->begun_wall);
  summary->virtual_s = gt_server_elapsed(s);
}

/* The timeline already has the time of this work. */
static void virtual_computed(gt_ns from, gt_ns cost, double slowdown, void (*progress)(void *ctx),
                             void *ctx) {
  (void)from, (void)cost, (void)slowdown, (void)progress, (void)ctx;
}

/* ---- wall time ------------------------------------------------------------------------------- */

/* True if the worker is at work, or has finished and waits for its virtual time. */
static bool at_work(const virtual_clock *v, size_t worker) {
  return gt_timeline_due(v->timeline, worker) != GT_NEVER;
}

static void on_push(void *ctx, size_t worker, const gt_push_msg *push, float *floats,
                    const float *buffers) {
  virtual_clock *v = ((gt_server *)ctx)->clock_state;
  if (push->signal) v->stop_asked = true;
  if (push->kind == GT_PUSH_SIGNAL) return;
  v->workers[worker].here = true;
  v->workers[worker].push = *push;
  v->workers[worker].floats = floats;
  v->workers[worker].buffers = buffers;
}

/* Deadlines are in wall time: sends keepalives to waiting workers and to other regions. */
static void keep_alive(gt_server *s, gt_ns wall) {
  virtual_clock *v = s->clock_state;
  gt_order_msg order = {.kind = GT_ORDER_KEEPALIVE};
  if (wall >= v->alive_at) {
    v->alive_at = wall + GT_SECOND;
    gt_gateway_alive(s->gateway);
  }
  if (wall < v->keepalive_at) return;
  v->keepalive_at = wall + gt_server_keepalive(s);
  for (size_t w = 0; w < v->nworkers; w++)
    if (v->workers[w].here || !at_work(v, w)) gt_plane_ps_order(s->plane, w, &order, NULL, NULL);
}

static void watch_workers(const gt_server *s, gt_ns wall) {
  const virtual_clock *v = s->clock_state;
  double limit = s->run->job->limits.local_s;
  for (size_t w = 0; w < v->nworkers; w++)
    if ((at_work(v, w) || gt_ps_absent(s->ps, w)) && !v->workers[w].here &&
        gt_seconds(wall - v->workers[w].really_since) >= limit)
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for the work of worker %zu of region %s",
               limit, w, s->run->region);
}

/* One turn of any wait in wall time. */
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

static bool virtual_wait(gt_server *s) {
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  look_around(s, &backoff);
  return true;
}

static void await_push(gt_server *s, size_t worker) {
  virtual_worker *w = &((virtual_clock *)s->clock_state)->workers[worker];
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  while (!w->here) look_around(s, &backoff);
  w->here = false;
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

/* ---- events ---------------------------------------------------------------------------------- */

static gt_event next_event(const gt_server *s) {
  return gt_timeline_next(timeline_of(s), gt_gateway_arrival(s->gateway),
                          gt_gateway_next(s->gateway, NULL), gt_ps_next(s->ps));
}

static void pushed(gt_server *s, size_t worker) {
  virtual_clock *v = s->clock_state;
  virtual_worker *w = &v->workers[worker];
  await_push(s, worker);
  gt_push_msg push = w->push;
  gt_timeline_pushed(v->timeline, worker, &push.compute_ns, &push.wait_ns);
  gt_server_pushed(s, worker, &push, w->floats, w->buffers, gt_timeline_now(v->timeline));
}

static void written(gt_server *s) {
  gt_status result = await_writer(s);
  gt_server_written(s, result, virtual_now(s));
}

static void handle(gt_server *s, const gt_event *e) {
  virtual_clock *v = s->clock_state;
  gt_timeline_begin(v->timeline, e);
  switch (e->kind) {
  case GT_EVENT_FRAME:
    gt_gateway_deliver(s->gateway, gt_timeline_now(v->timeline));
    break;
  case GT_EVENT_LINK:
    gt_gateway_poll(s->gateway, e->at); /* links work in parallel with the PS */
    break;
  case GT_EVENT_PUSH:
    pushed(s, e->worker);
    break;
  case GT_EVENT_WRITTEN:
    written(s);
    break;
  case GT_EVENT_TICK:
    gt_ps_tick(s->ps, gt_timeline_now(v->timeline));
    gt_server_watch_advance(s);
    break;
  }
  gt_server_account(s, gt_timeline_now(v->timeline));
}

/* A stop takes effect only at an event.  Between two events it could have an earlier time than this
   region has promised to the others. */
static void look_after(gt_server *s) {
  virtual_clock *v = s->clock_state;
  if (gt_stop_requested() || v->stop_asked)
    gt_server_stop(s, gt_stop_requested(), gt_timeline_now(v->timeline));
  gt_server_progress(s, gt_timeline_now(v->timeline), false);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void agree(gt_server *s, gt_ns next) {
  virtual_clock *v = s->clock_state;
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  /* While the PS is busy only links can act. */
  gt_ns link = gt_gateway_next(s->gateway, NULL), busy = gt_timeline_now(v->timeline),
        at = gt_timeline_at(v->timeline);
  gt_ns acts = next > busy ? next : busy;
  gt_gateway_propose(s->gateway, link < acts ? (link > at ? link : at) : acts);
  const gt_ns from = gt_now();
  while (!gt_gateway_agreed(s->gateway, &v->safe)) {
    const size_t missing = gt_gateway_missing(s->gateway);
    look_around(s, &backoff);
    /* what another region does between two of its words has limits of its own */
    if (gt_seconds(gt_now() - from) >= s->run->end_limit_s && missing < s->run->job->nregions)
      gt_panic(GT_ERR_LOST,
               "waited %.0f s (2 limits.local + limits.wan_patience) for region %s to say the time "
               "of its next event (--clock virtual)",
               s->run->end_limit_s, s->run->job->regions[missing].name);
  }
}

static void begin(gt_server *s) {
  virtual_clock *v = s->clock_state;
  size_t n = s->run->job->nregions;
  gt_ns *delays = GT_NEW_ARRAY(gt_ns, n * n);
  gt_links_delays(s->run->links, delays);
  gt_gateway_virtual(s->gateway, delays);
  gt_free(delays);
  gt_ps_start(s->ps, 0);
  for (size_t w = 0; w < v->nworkers; w++) v->workers[w].really_since = gt_now();
  for (size_t w = 0; w < v->nworkers; w++) {
    await_push(s, w);
    gt_ps_ready(s->ps, w, 0);
  }
}

/* Sends what is still queued.  Then no other region has to wait for this one. */
static void leave(gt_server *s) {
  virtual_clock *v = s->clock_state;
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

static gt_status virtual_loop(gt_server *s) {
  virtual_clock *v = s->clock_state;
  gt_status status = GT_OK;
  s->watched_at = gt_now();
  begin(s);
  for (bool over = false; !over;) {
    gt_event e = next_event(s);
    if (e.at >= v->safe) {
      agree(s, e.at);
      continue;
    }
    handle(s, &e);
    look_after(s);
    over = gt_server_over(s, gt_timeline_now(v->timeline), &status);
  }
  gt_ps_end(s->ps);
  leave(s);
  gt_server_end_workers(s, status);
  gt_server_progress(s, gt_timeline_now(v->timeline), true);
  return status;
}

const gt_clock_ops gt_clock_virtual = {
    .name = "virtual",
    .open = virtual_open,
    .close = virtual_close,
    .now = virtual_now,
    .attended = virtual_attended,
    .here = virtual_here,
    .keepalive = virtual_keepalive,
    .ordered = virtual_ordered,
    .passing = virtual_passing,
    .worked = virtual_worked,
    .writing = virtual_writing,
    .wait = virtual_wait,
    .loop = virtual_loop,
    .cpu_s = virtual_cpu_s,
    .summarise = virtual_summarise,
    .computed = virtual_computed,
};
