/* The PS rank's loop: events of workers, WAN, checkpoint writer, signals and time go to the PS; between them it sleeps. */
#include <math.h>

#include "internal.h"

/* ---- workers --------------------------------------------------------------------------------------------------------------- */

static void on_push(void *ctx, size_t worker, const gt_push_msg *p, float *floats, const float *buffers) {
  gt_server *s = ctx;
  gt_ns now = gt_now();
  gt_ps_push push = {.samples = p->samples,
                     .correct = p->correct,
                     .loss_sum = p->loss_sum,
                     .compute = p->compute_ns,
                     .scores = p->kind == GT_PUSH_EVAL ? floats : NULL,
                     .wait = p->wait_ns,
                     .buffers = buffers,
                     .nonfinite = p->nonfinite != 0};
  if (p->kind == GT_PUSH_GRADIENT) s->compute[worker] = p->compute_ns;
  if (p->signal) gt_ps_stop(s->ps, GT_STOPPED, now);
  switch ((gt_push_kind)p->kind) {
  case GT_PUSH_READY:
    gt_ps_ready(s->ps, worker, now);
    break;
  case GT_PUSH_GRADIENT:
    gt_server_learnt(s, &push);
    gt_ps_gradient(s->ps, worker, &push, floats, now);
    break;
  case GT_PUSH_EVAL:
    gt_ps_evaluated(s->ps, worker, &push, now);
    break;
  case GT_PUSH_SIGNAL:
    break;
  }
}

/* ---- deadlines ------------------------------------------------------------------------------------------------------------- */

static void watch_workers(const gt_server *s, gt_ns now) {
  double limit = s->run->job->limits.local_s;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) {
    gt_ns since = 0;
    int64_t batch;
    bool absent = gt_ps_absent(s->ps, w);
    if (!absent && !gt_ps_computing(s->ps, w, &since, &batch)) continue;
    if (since < s->watched_at) since = s->watched_at;
    if (gt_seconds(now - since) < limit) continue;
    if (absent) gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for worker %zu of region %s to be ready", limit, w, s->run->region);
    if (batch < 0) gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for the evaluation by worker %zu of region %s", limit, w, s->run->region);
    gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for the gradient of batch %lld from worker %zu of region %s", limit, (long long)batch, w,
             s->run->region);
  }
}

void gt_server_watch_regions(const gt_server *s, gt_ns now) {
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    gt_ns heard = gt_gateway_heard(s->gateway, p);
    if (heard < s->watched_at) heard = s->watched_at;
    if (gt_seconds(now - heard) >= s->patience_s[p])
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.wan_patience) for any sign of the PS of region %s", s->patience_s[p],
               s->run->job->regions[p].name);
  }
}

/* ---- notes ----------------------------------------------------------------------------------------------------------------- */

/* worker 0 and up: its gradient; -1 - p: a message of region p. */
static gt_status nonfinite(gt_server *s, double t, int64_t step, int64_t count, int64_t worker) {
  const gt_job *job = s->run->job;
  if (worker >= 0) {
    gt_log(GT_LOG_WARN, "step %lld: the gradient of worker %lld is not finite and was dropped (%lld so far, limits.nonfinite %d)", (long long)step,
           (long long)worker, (long long)count, job->limits.nonfinite);
    return gt_record_line(s->record, t, "nonfinite", "step", 'i', step, "count", 'i', count, "worker", 'i', worker, NULL);
  }
  const char *from = job->regions[-1 - worker].name,
             *end = gt_sync_of(job->sync.strategy)->needs_all ? "; the run ends, for no region can go on without it" : "";
  gt_log(GT_LOG_WARN, "step %lld: a message of region %s is not finite and was dropped (%lld so far, limits.nonfinite %d)%s", (long long)step, from,
         (long long)count, job->limits.nonfinite, end);
  return gt_record_line(s->record, t, "nonfinite", "step", 'i', step, "count", 'i', count, "region", 's', from, NULL);
}

/* How many gradients in a row were not finite. */
static void count_in_row(gt_server *s, int64_t batches) {
  s->bad_gradients++;
  if (batches - s->bad_gradients != s->good_gradients) s->bad_in_row = 0;
  s->good_gradients = batches - s->bad_gradients;
  s->bad_in_row++;
}

void gt_server_note(void *server, gt_ps_note note, double a, double b) {
  gt_server *s = server;
  gt_ps_view v;
  gt_ps_look(s->ps, gt_server_now(s), &v);
  double t = gt_server_elapsed(s);
  int64_t ia = (int64_t)a, ib = (int64_t)b;
  char text[128];
  gt_status status = GT_OK;
  switch (note) {
  case GT_NOTE_EVAL:
    status =
        gt_record_line(s->record, t, "eval", "step", 'i', ia, "samples", 'i', ib, "seconds", 'f', gt_seconds(v.last_eval_took), "loss", 'f',
                       v.last_eval.loss, "accuracy", 'f', v.last_eval.accuracy, isnan(v.last_eval.auc) ? NULL : "auc", 'f', v.last_eval.auc, NULL);
    break;
  case GT_NOTE_NONFINITE:
    if (ib >= 0) count_in_row(s, v.batches);
    status = nonfinite(s, t, v.steps, ia, ib);
    break;
  case GT_NOTE_DONE:
    status = gt_record_line(s->record, t, "done", "step", 'i', v.steps, "samples", 'i', v.samples, NULL);
    break;
  case GT_NOTE_PEER_DONE:
    status = gt_record_line(s->record, t, "peer_done", "region", 's', s->run->job->regions[ia].name, "steps", 'i', ib, NULL);
    break;
  case GT_NOTE_ROUND:
    status = gt_record_line(s->record, t, "checkpoint", "round", 'i', ia, "step", 'i', v.steps, "stop", 'i', ib, NULL);
    break;
  case GT_NOTE_COMPLETE:
    status = gt_record_line(s->record, t, "complete", "step", 'i', v.steps, NULL);
    if (status == GT_OK && gt_trend_collapsed(&s->trend, s->run->data.classes, text, sizeof text))
      status = gt_record_line(s->record, t, "warning", "step", 'i', v.steps, "text", 's', text, NULL);
    break;
  }
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

/* ---- the loop --------------------------------------------------------------------------------------------------------------- */

/* The earliest that a computing worker may push, a little before its last batch's time is over; GT_NEVER: nobody computes. */
static gt_ns next_push(const gt_server *s) {
  gt_ns earliest = GT_NEVER;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) {
    gt_ns since;
    int64_t batch;
    if (!gt_ps_computing(s->ps, w, &since, &batch)) continue;
    gt_ns at = since + s->compute[w] - s->compute[w] / 8;
    if (at < earliest) earliest = at;
  }
  return earliest;
}

/* Where a push does not end a sleep: until one is near there is no hurry; then the sleeps are short, for the worker idles while its gradient lies there. */
static void rest(gt_server *s, gt_backoff *backoff) {
  bool large = false;
  gt_ns until = gt_gateway_next(s->gateway, &large), next = gt_ps_next(s->ps), push = next_push(s), now = gt_now();
  if (next < until) until = next;
  if (gt_plane_ps_wakes(s->plane)) {
    gt_plane_ps_sleep(s->plane, gt_backoff_next(backoff, large ? GT_BACKOFF_BUSY : GT_BACKOFF_IDLE, until));
    return;
  }
  if (push != GT_NEVER && push > now) {
    if (push < until) until = push;
    gt_backoff_sleep(backoff, large ? GT_BACKOFF_BUSY : GT_BACKOFF_IDLE, until);
    if (until == push && gt_now() >= push) gt_backoff_reset(backoff);
  } else
    gt_backoff_sleep(backoff, large || push != GT_NEVER ? GT_BACKOFF_BUSY : GT_BACKOFF_IDLE, until);
}

/* Longer than a turn of the loop ever takes: this process was stopped, and the others perhaps with it.  They get their time again. */
#define STOPPED (5 * GT_SECOND)

static void notice_stop(gt_server *s, gt_ns now) {
  if (now - s->looked_at > STOPPED) s->watched_at = now;
  s->looked_at = now;
}

static void look_after(gt_server *s, gt_ns now) {
  if (gt_stop_requested() && !s->stop_told) {
    s->stop_told = true;
    gt_ps_stop(s->ps, GT_STOPPED, now);
  }
  if (now >= gt_ps_next(s->ps)) gt_ps_tick(s->ps, now);
  gt_server_progress(s, now, false);
}

gt_status gt_server_end(gt_server *s, gt_ns now, bool *ended) {
  gt_ps_view v;
  gt_ps_look(s->ps, now, &v);
  *ended = v.phase == GT_PS_STOPPED;
  if (*ended) return v.stop_code;
  if (v.phase == GT_PS_COMPLETE) *ended = gt_final_step(s->final, now);
  return GT_OK;
}

/* The PS is no longer asked for anything: workers that wait for their last order hear that it is there. */
static void keep_alive(gt_server *s, gt_ns now) {
  const gt_order_msg order = {.kind = GT_ORDER_KEEPALIVE};
  gt_ns since;
  int64_t batch;
  if (now < s->keepalive_at) return;
  s->keepalive_at = now + gt_ps_made_of(s->ps)->keepalive;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (!gt_ps_computing(s->ps, w, &since, &batch)) gt_plane_ps_order(s->plane, w, &order, NULL, NULL);
}

/* What is under way on the gateway (the last WRITTEN and ROUND frames among it) leaves before the end. */
static void flush(gt_server *s) {
  gt_backoff backoff;
  gt_ns until = gt_now() + gt_from_seconds(s->run->job->limits.local_s);
  gt_backoff_reset(&backoff);
  for (;;) {
    bool large = false;
    gt_ns now = gt_now();
    keep_alive(s, now);
    if (gt_gateway_poll(s->gateway, now)) continue;
    gt_ns next = gt_gateway_next(s->gateway, &large);
    if ((next == GT_NEVER && !large) || now > until) return;
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, next);
  }
}

/* A stop finds workers in the middle of a batch: what they push must be taken, or they would wait for it in vain. */
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

void gt_server_end_workers(gt_server *s, gt_status status) {
  gt_order_msg end = {.kind = GT_ORDER_END, .status = status};
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) gt_plane_ps_order(s->plane, w, &end, NULL, NULL);
}

gt_status gt_server_loop(gt_server *s) {
  gt_backoff backoff;
  bool ended = false;
  gt_status status = GT_OK;
  gt_backoff_reset(&backoff);
  s->started = s->watched_at = s->looked_at = s->split.since = gt_now();
  gt_gateway_begin(s->gateway, gt_now());
  gt_ps_start(s->ps, gt_now());
  while (!ended) {
    bool moved = gt_plane_ps_poll(s->plane, on_push, s);
    gt_ns now = gt_now();
    moved |= gt_gateway_poll(s->gateway, now);
    gt_server_poll_writer(s, now);
    notice_stop(s, now);
    look_after(s, now);
    gt_server_account(s, now);
    status = gt_server_end(s, now, &ended);
    if (ended) break;
    if (moved) {
      gt_backoff_reset(&backoff);
      continue;
    }
    watch_workers(s, now);
    gt_server_watch_regions(s, now);
    rest(s, &backoff);
  }
  await_workers(s);
  /* After a stop the others drop data, and the checkpoint has it: over a slow link it would keep everybody waiting. */
  if (status != GT_OK) gt_gateway_drop_bulk(s->gateway);
  flush(s);
  gt_server_end_workers(s, status);
  gt_server_progress(s, gt_now(), true);
  return status;
}
