/* The real clock: wall time.  The PS handles events of workers, WAN, checkpoint writer, signals and
   timers as they come.  The loop sleeps in between. */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "stages.h"

typedef struct {
  gt_ns *compute; /* of each worker's last batch */
  gt_ns looked_at, keepalive_at;
} real_clock;

static void *real_open(const gt_server *s) {
  real_clock *c = GT_NEW(real_clock);
  c->compute = GT_NEW_ARRAY(gt_ns, (size_t)s->run->roles.region_size - 1);
  return c;
}

static void real_close(void *state) {
  real_clock *c = state;
  if (c) gt_free(c->compute);
  gt_free(c);
}

/* ---- wall time ------------------------------------------------------------------------------- */

static gt_ns real_now(const gt_server *s) {
  (void)s;
  return gt_now();
}

static gt_ns real_attended(const gt_server *s, gt_ns at) {
  (void)s;
  return at;
}

static gt_ns real_here(const gt_server *s, size_t peer, gt_ns theirs) {
  gt_ps_link link;
  gt_ps_get_link(s->ps, peer, &link);
  return link.compared ? (gt_ns)((uint64_t)theirs - (uint64_t)link.ahead) : GT_NEVER;
}

static void real_ordered(gt_server *s, size_t worker, const gt_ps_order *order) {
  (void)s, (void)worker, (void)order;
}

static void real_passing(gt_server *s, size_t worker, gt_ns cost) {
  (void)s, (void)worker, (void)cost;
}

static void real_worked(gt_server *s, gt_ps_work work, double part) {
  (void)s, (void)work, (void)part;
}

static void real_writing(gt_server *s, double bytes) {
  (void)s, (void)bytes;
}

static bool real_wait(gt_server *s) {
  (void)s;
  return false;
}

static double real_cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void real_summarise(const gt_server *s, gt_summary *summary) {
  summary->wall_s = gt_seconds(gt_now() - s->begun_wall) + s->elapsed_s;
  summary->virtual_s = NAN;
}

#define NAP ((gt_ns)2000000) /* short, so that messages progress meanwhile */

/* Sleeps for the rest of the time that the work must take. */
static void real_computed(gt_ns from, gt_ns cost, double slowdown, void (*progress)(void *ctx),
                          void *ctx) {
  if (cost == 0 && slowdown <= 1) return;
  gt_ns until = cost > 0 ? from + cost : from + (gt_ns)((double)(gt_now() - from) * slowdown);
  for (gt_ns left; (left = until - gt_now()) > 0;) {
    progress(ctx);
    gt_sleep(left < NAP ? left : NAP);
  }
}

/* ---- workers --------------------------------------------------------------------------------- */

static void on_push(void *ctx, size_t worker, const gt_push_msg *p, float *floats,
                    const float *buffers) {
  gt_server *s = ctx;
  real_clock *c = s->clock_state;
  gt_ns now = gt_now();
  if (p->kind == GT_PUSH_GRADIENT || p->kind == GT_PUSH_PASS) c->compute[worker] = p->compute_ns;
  if (p->signal) gt_server_stop(s, (int)p->signal, now);
  if (p->kind == GT_PUSH_READY) gt_ps_ready(s->ps, worker, now);
  if (p->kind == GT_PUSH_PASS || p->kind == GT_PUSH_GRADIENT || p->kind == GT_PUSH_EVAL)
    gt_server_pushed(s, worker, p, floats, buffers, now);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Of a worker in a pass: ", where stage 1 runs F of span 1, micro-batch 0"; else nothing. */
static char *in_pass(const gt_server *s, size_t worker, char *text, size_t size) {
  char doing[160];
  text[0] = '\0';
  if (s->stages)
    snprintf(text, size, ", where %s",
             gt_ps_passes_text(gt_ps_passes_of(s->ps), worker, doing, sizeof doing));
  return text;
}

static void watch_workers(const gt_server *s, gt_ns now) {
  double limit = s->run->job->limits.local_s;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) {
    gt_ns since = 0;
    int64_t batch;
    char doing[200];
    bool absent = gt_ps_absent(s->ps, w);
    if (!absent && !gt_server_at_work(s, w, &since, &batch)) continue;
    if (since < s->watched_at) since = s->watched_at;
    if (gt_seconds(now - since) < limit) continue;
    if (absent)
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for worker %zu of region %s to be ready",
               limit, w, s->run->region);
    if (batch < 0)
      gt_panic(GT_ERR_LOST,
               "waited %.0f s (limits.local) for the evaluation by worker %zu of region %s%s",
               limit, w, s->run->region, in_pass(s, w, doing, sizeof doing));
    gt_panic(GT_ERR_LOST,
             "waited %.0f s (limits.local) for the gradient of batch %lld from worker %zu of "
             "region %s%s",
             limit, (long long)batch, w, s->run->region, in_pass(s, w, doing, sizeof doing));
  }
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* The earliest time at which a computing worker may push, a little before its last batch's time has
   passed; GT_NEVER: no worker computes. */
static gt_ns next_push(const gt_server *s) {
  const real_clock *c = s->clock_state;
  gt_ns earliest = GT_NEVER;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) {
    gt_ns since;
    int64_t batch;
    if (!gt_server_at_work(s, w, &since, &batch)) continue;
    gt_ns at = since + c->compute[w] - c->compute[w] / 8;
    if (at < earliest) earliest = at;
  }
  return earliest;
}

/* For planes where a push does not wake the PS.  Sleeps are long until a push is near, then short:
   the worker is idle until its gradient is read. */
static void rest(gt_server *s, gt_backoff *backoff) {
  const gt_ns cap = gt_gateway_urgent(s->gateway) ? GT_BACKOFF_BUSY : GT_BACKOFF_IDLE;
  gt_ns until = gt_gateway_next(s->gateway, NULL), next = gt_ps_next(s->ps), push = next_push(s),
        now = gt_now();
  if (next < until) until = next;
  if (gt_plane_ps_wakes(s->plane)) {
    gt_plane_ps_sleep(s->plane, gt_backoff_next(backoff, cap, until));
    return;
  }
  if (push != GT_NEVER && push > now) {
    if (push < until) until = push;
    gt_backoff_sleep(backoff, cap, until);
    if (until == push && gt_now() >= push) gt_backoff_reset(backoff);
  } else
    gt_backoff_sleep(backoff, push != GT_NEVER ? GT_BACKOFF_BUSY : cap, until);
}

/* Longer than any turn of the loop: this process was suspended, and perhaps the others as well.
   Their deadlines start again. */
#define STOPPED (5 * GT_SECOND)

static void notice_stop(gt_server *s, gt_ns now) {
  real_clock *c = s->clock_state;
  if (now - c->looked_at > STOPPED) s->watched_at = now;
  c->looked_at = now;
}

/* For workers that wait while the PS gives no orders: at the end of a run, and in a pipeline for
   what comes from another stage. */
static void keep_alive(gt_server *s, gt_ns now) {
  const gt_order_msg order = {.kind = GT_ORDER_KEEPALIVE};
  real_clock *c = s->clock_state;
  gt_ns since;
  int64_t batch;
  if (now < c->keepalive_at) return;
  c->keepalive_at = now + gt_server_keepalive(s);
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (!gt_server_at_work(s, w, &since, &batch))
      gt_plane_ps_order(s->plane, w, &order, NULL, NULL);
}

static void look_after(gt_server *s, gt_ns now) {
  if (gt_stop_requested()) gt_server_stop(s, gt_stop_requested(), now);
  if (now >= gt_ps_next(s->ps)) gt_ps_tick(s->ps, now);
  gt_server_watch_advance(s);
  if (s->stages) keep_alive(s, now);
  gt_server_progress(s, now, false);
}

/* Sends what is queued in the gateway (including the last WRITTEN and ROUND frames) before the
   end. */
static void flush(gt_server *s) {
  gt_backoff backoff;
  gt_ns until = gt_now() + gt_from_seconds(s->run->job->limits.local_s);
  gt_backoff_reset(&backoff);
  for (;;) {
    bool large = false;
    gt_ns now = gt_now();
    keep_alive(s, now);
    gt_server_leave_others(s, now);
    if (gt_gateway_poll(s->gateway, now)) continue;
    gt_ns next = gt_gateway_next(s->gateway, &large);
    if ((next == GT_NEVER && !large) || now > until) return;
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, next);
  }
}

/* After a stop, workers may be in the middle of a batch.  Their pushes must be read, or they would
   wait forever. */
static void await_workers(gt_server *s) {
  gt_backoff backoff;
  gt_backoff_reset(&backoff);
  while (next_push(s) != GT_NEVER) {
    bool moved = gt_plane_ps_poll(s->plane, on_push, s);
    gt_ns now = gt_now();
    moved |= gt_gateway_poll(s->gateway, now);
    keep_alive(s, now);
    if (!moved) {
      watch_workers(s, now);
      gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, GT_NEVER);
    }
  }
}

static gt_status real_loop(gt_server *s) {
  real_clock *c = s->clock_state;
  gt_backoff backoff;
  gt_status status = GT_OK;
  gt_backoff_reset(&backoff);
  s->started = s->watched_at = c->looked_at = s->split.since = gt_now();
  gt_gateway_begin(s->gateway, gt_now());
  gt_ps_start(s->ps, gt_now());
  gt_server_begin_without(s, gt_now());
  for (;;) {
    bool moved = gt_plane_ps_poll(s->plane, on_push, s);
    gt_ns now = gt_now();
    moved |= gt_gateway_poll(s->gateway, now);
    gt_server_poll_writer(s, now);
    notice_stop(s, now);
    look_after(s, now);
    gt_server_account(s, now);
    if (gt_server_over(s, now, &status)) break;
    if (moved) {
      gt_backoff_reset(&backoff);
      continue;
    }
    watch_workers(s, now);
    gt_server_watch_regions(s, now);
    rest(s, &backoff);
  }
  gt_ps_end(s->ps);
  await_workers(s);
  /* After a stop the other regions discard data, and the checkpoint contains it.  Sending it over a
     slow link would only delay the end. */
  if (status != GT_OK) gt_gateway_drop_bulk(s->gateway);
  flush(s);
  gt_server_end_workers(s, status);
  gt_server_progress(s, gt_now(), true);
  return status;
}

const gt_clock_ops gt_clock_real = {
    .name = "real",
    .measures = true,
    .open = real_open,
    .close = real_close,
    .now = real_now,
    .attended = real_attended,
    .here = real_here,
    .keepalive = gt_server_keepalive,
    .ordered = real_ordered,
    .passing = real_passing,
    .worked = real_worked,
    .writing = real_writing,
    .wait = real_wait,
    .loop = real_loop,
    .cpu_s = real_cpu_s,
    .summarise = real_summarise,
    .computed = real_computed,
};
