/* A PS in a probe: sends orders to its workers, and updates parameters with what they push. */
#include "geotrain/sync.h"
#include "compute.h"

#define TRAFFIC 8 /* steps of the region per message */
#define PAUSE   ((gt_ns)50000000)

typedef struct {
  int64_t steps;
  bool done;
  gt_ns heard, pushed, due; /* due: time of a delayed order; 0: none is delayed */
} served;

typedef struct {
  gt_run *run;
  gt_probe_material *material;
  double update_s;
  int64_t updates;
  gt_plane_ps *plane;
  gt_probe_traffic *traffic; /* NULL: the job sends nothing */
  int64_t pushes;
  served *workers;
  gt_ns since;
  size_t ended;
} server;

static bool enough(const server *s) {
  double passed_s = gt_seconds(gt_now() - s->since);
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (!gt_probe_enough(s->workers[w].steps, passed_s)) return false;
  return true;
}

static void update(server *s, const float *grads, const float *buffers, bool counts) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_ns from = gt_now();
  gt_vec_copy(a->buffers, gt_vec_of((float *)(uintptr_t)buffers, a->buffers.n));
  gt_optim_step(s->material->optim, a->params, gt_vec_of((float *)(uintptr_t)grads, a->grads.n),
                s->material->message);
  if (!counts) return;
  s->update_s += gt_seconds(gt_now() - from);
  s->updates++;
}

static void give(const server *s, size_t w, gt_order_kind kind) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  served *of = &s->workers[w];
  gt_order_msg order = {.kind = kind,
                        .with_params = kind == GT_ORDER_TRAIN || kind == GT_ORDER_EVAL,
                        .batch = of->steps};
  if (of->due) order.wan_wait_ns = gt_now() - of->pushed;
  of->due = 0;
  gt_plane_ps_order(s->plane, w, &order, a->params.data, a->buffers.data);
}

static void exchange(server *s, gt_probe_phase at) {
  const gt_job *job = s->run->job;
  int64_t each =
      job->sync.local == GT_LOCAL_SYNC ? TRAFFIC * (int64_t)gt_plane_ps_workers(s->plane) : TRAFFIC;
  if (++s->pushes % each == 0 && at != GT_PROBE_PAUSED && s->traffic)
    gt_probe_traffic_send(s->traffic, gt_graph_arrays(s->run->graph)->grads);
}

static void on_push(void *ctx, size_t w, const gt_push_msg *push, float *grads,
                    const float *buffers) {
  server *s = ctx;
  served *of = &s->workers[w];
  if (push->kind == GT_PUSH_SIGNAL) return;
  of->heard = gt_now();
  if (push->kind == GT_PUSH_GRADIENT) {
    of->pushed = gt_now();
    if (!push->nonfinite) update(s, grads, buffers, gt_probe_phase_of(of->steps) == GT_PROBE_WARM);
    exchange(s, gt_probe_phase_of(of->steps++));
    gt_plane_ps_taken(s->plane, w);
  }
  if (push->kind == GT_PUSH_EVAL) {
    s->ended++;
    of->done = true;
    give(s, w, GT_ORDER_END);
  } else if (push->kind == GT_PUSH_GRADIENT && enough(s))
    give(s, w, GT_ORDER_EVAL);
  else if (gt_probe_pause_before(of->steps))
    of->due = of->pushed + PAUSE;
  else
    give(s, w, GT_ORDER_TRAIN);
}

/* Sends the orders that are due.  Returns when the next is due; GT_NEVER: none is delayed. */
static gt_ns end_pauses(const server *s) {
  gt_ns next = GT_NEVER, now = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) {
    gt_ns due = s->workers[w].due;
    if (due && due <= now)
      give(s, w, GT_ORDER_TRAIN);
    else if (due && due < next)
      next = due;
  }
  return next;
}

static void watch(const server *s) {
  double limit = s->run->job->limits.local_s;
  gt_ns now = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (!s->workers[w].done && gt_seconds(now - s->workers[w].heard) >= limit)
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for a step of worker %zu of region %s",
               limit, w, s->run->region);
}

/* Sleeps as the loop of a run does. */
static void rest(const server *s, gt_backoff *backoff, gt_ns until) {
  bool large = false;
  gt_ns next = s->traffic ? gt_probe_traffic_next(s->traffic, &large) : GT_NEVER;
  bool idle = !large && gt_plane_ps_wakes(s->plane);
  gt_plane_ps_sleep(s->plane, gt_backoff_next(backoff, idle ? GT_BACKOFF_IDLE : GT_BACKOFF_BUSY,
                                              next < until ? next : until));
}

void gt_probe_serve(gt_probe_state *p, gt_probe_material *m) {
  gt_run *run = &p->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  server s = {
      .run = run,
      .material = m,
      .plane = gt_plane_ps_create(
          run->roles.region, &(gt_plane_size){.nparams = a->params.n, .nbuffers = a->buffers.n})};
  gt_backoff backoff = {0};
  s.workers = GT_NEW_ARRAY(served, gt_plane_ps_workers(s.plane));
  if (run->job->nregions > 1 && gt_sync_of(run->job->sync.strategy)->sends)
    s.traffic = gt_probe_traffic_open(run, a->params);
  s.since = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s.plane); w++) s.workers[w].heard = s.since;
  while (s.ended < gt_plane_ps_workers(s.plane)) {
    bool moved = gt_plane_ps_poll(s.plane, on_push, &s);
    if (s.traffic) moved |= gt_probe_traffic_poll(s.traffic);
    gt_ns next = end_pauses(&s);
    if (moved)
      gt_backoff_reset(&backoff);
    else {
      watch(&s);
      rest(&s, &backoff, next);
    }
  }
  if (s.traffic) gt_probe_traffic_close(s.traffic, run, p->limit_s);
  if (s.updates > 0) p->own.update_s = s.update_s / (double)s.updates;
  gt_plane_ps_close(s.plane, run->end_limit_s);
  gt_free(s.workers);
}
