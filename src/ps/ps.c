/* The PS: made from its spec, driven by events; each event ends by moving on whatever it made possible. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static void open_moved(gt_ps *ps) {
  const gt_vec *buffers = &ps->spec.buffers;
  ps->nmoved = ps->spec.local_async ? ps->spec.nworkers : 1;
  ps->moved = GT_NEW_ARRAY(ps_moved, ps->nmoved);
  for (size_t i = 0; i < ps->nmoved; i++)
    ps->moved[i].add = gt_vec_of(buffers->data && buffers->n ? GT_NEW_ARRAY(float, buffers->n) : NULL, buffers->n);
}

gt_ps *gt_ps_create(const gt_ps_spec *spec) {
  gt_ps *ps = GT_NEW(gt_ps);
  ps->spec = *spec;
  ps->plane = spec->local_async ? &gt_ps_plane_async : &gt_ps_plane_sync;
  ps->workers = GT_NEW_ARRAY(ps_worker, spec->nworkers);
  ps->arrivals = GT_NEW_ARRAY(size_t, spec->nworkers);
  ps->parts.grads = GT_NEW_ARRAY(const float *, spec->nworkers);
  ps->parts.buffers = GT_NEW_ARRAY(const float *, spec->nworkers);
  ps->parts.samples = GT_NEW_ARRAY(int64_t, spec->nworkers);
  open_moved(ps);
  ps->peers = GT_NEW_ARRAY(ps_peer, spec->nregions);
  ps->last_eval = (gt_ps_score){NAN, NAN, NAN};
  ps->timer_at = GT_NEVER;
  ps->round = ps->whole_round = ps->own_written = spec->round;
  /* Two more than may be under way: a replacing model goes beside messages that have all begun to leave. */
  size_t capacity = gt_ps_inflight(spec) + 2;
  for (size_t p = 0; p < spec->nregions; p++) {
    ps->peers[p].capacity = capacity;
    ps->peers[p].written = spec->round;
  }
  ps->pool_capacity = capacity * spec->nregions + 1;
  ps->pool = GT_NEW_ARRAY(gt_payload *, ps->pool_capacity);
  if (spec->nregions > 1 && spec->strategy->sends)
    for (size_t i = 0; i <= capacity; i++) gt_ps_payload(ps, 0)->refs = 1;
  for (size_t i = 0; i < ps->npool; i++) ps->pool[i]->refs = 0;
  gt_ps_budget_open(ps);
  gt_ps_eval_open(ps);
  const gt_exchange_spec way = {.nregions = spec->nregions,
                                .self = spec->self,
                                .weights = spec->weights,
                                .inflight = gt_ps_inflight(spec),
                                .with_memory = spec->params.data != NULL,
                                .topology = spec->topology,
                                .host = gt_ps_exchange_host(ps)};
  ps->exchange = gt_exchange_create(&way);
  gt_sync_env env = {.nregions = spec->nregions,
                     .self = spec->self,
                     .weights = spec->weights,
                     .period = spec->period,
                     .scale = spec->scale,
                     .average = spec->average,
                     .params = spec->params,
                     .buffers = spec->buffers,
                     .optim = spec->optim,
                     .exchange = ps->exchange,
                     .host = gt_ps_sync_host(ps)};
  ps->sync = gt_sync_create(spec->strategy, &env);
  return ps;
}

const gt_ps_spec *gt_ps_made_of(const gt_ps *ps) {
  return &ps->spec;
}

void gt_ps_close(gt_ps *ps) {
  if (!ps) return;
  gt_sync_close(ps->sync);
  gt_exchange_close(ps->exchange);
  for (size_t i = 0; i < ps->npool; i++) {
    gt_free(ps->pool[i]->vec.data);
    gt_free(ps->pool[i]);
  }
  for (size_t p = 0; p < ps->spec.nregions; p++) gt_free(ps->peers[p].messages);
  gt_ps_eval_close(ps);
  gt_ps_budget_close(ps);
  for (size_t i = 0; i < ps->nmoved; i++) gt_free(ps->moved[i].add.data);
  gt_free(ps->moved);
  gt_free(ps->pool);
  gt_free(ps->peers);
  gt_free(ps->parts.grads);
  gt_free(ps->parts.buffers);
  gt_free(ps->parts.samples);
  gt_free(ps->arrivals);
  gt_free(ps->workers);
  gt_free(ps->reissue);
  gt_free(ps->unreturned);
  gt_free(ps);
}

void gt_ps_start(gt_ps *ps, gt_ns now) {
  ps->now = ps->phase_since = ps->round_at = now;
  ps->heartbeat_at = ps->keepalive_at = now;
  ps->steps_at_round = ps->totals.steps;
  ps->samples_at_round = ps->totals.samples;
  ps->held_since = now;
  gt_exchange_start(ps->exchange);
  if (ps->phase != GT_PS_TRAINING) gt_sync_on_drain(ps->sync, now);
  gt_ps_eval_check(ps);
  if (ps->resumed) gt_ps_tell_joined(ps);
  gt_ps_tick(ps, now);
}

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

/* What is not finite is dropped and counted; where nobody can go on without it the run ends. */
static void reject(gt_ps *ps, size_t from) {
  ps->totals.nonfinite++;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_NONFINITE, (double)ps->totals.nonfinite, -1 - (double)from);
  ps->peers[from].rejected = ps->spec.strategy->needs_all;
  if (ps->peers[from].rejected || ps->totals.nonfinite >= ps->spec.nonfinite_limit) ps->want_stop = GT_ERR_LIMIT;
}

static void data_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *payload) {
  ps_peer *p = &ps->peers[from];
  int64_t sequence = (int64_t)head->sequence;
  if (gt_ps_frozen(ps) || p->rejected) return; /* unacknowledged, so its sender's checkpoint has it */
  if (sequence > p->applied_seq) {
    gt_vec body = gt_vec_of((float *)(uintptr_t)payload, (size_t)head->message_bytes / sizeof(float));
    gt_ns clock = gt_ps_clock(ps);
    bool finite = gt_vec_finite(body);
    if (!finite) reject(ps, from);
    if (p->rejected) return;
    p->applied_seq = sequence;
    if (finite) (void)gt_exchange_receive(ps->exchange, from, head, NULL, body);
    ps->totals.update += gt_ps_worked(ps, GT_WORK_APPLY) - clock;
  }
  gt_ps_control(ps, from, GT_MSG_ACK, p->applied_seq, 0);
}

static void round_message(gt_ps *ps, const gt_frame_header *head) {
  int64_t round = (int64_t)head->value;
  gt_status code = (gt_status)head->detail;
  if (round > ps->round)
    gt_ps_round_take(ps, round, code);
  else if (round == ps->round && code != GT_OK && (ps->stop_code == GT_OK || code < ps->stop_code)) {
    ps->stop_code = code; /* of two reasons the more severe, so that all regions end with the same */
    if (ps->whole_round == round) ps->phase = GT_PS_STOPPED;
  }
}

static void pong(gt_ps *ps, size_t from, const gt_frame_header *head) {
  gt_ns rtt = ps->now - (gt_ns)head->value;
  if (ps->peers[from].rtt == 0 || rtt < ps->peers[from].rtt) ps->peers[from].rtt = rtt;
}

gt_status gt_ps_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *payload, gt_ns now) {
  ps->now = now;
  GT_TRY(gt_ps_check(ps, from, head));
  ps_peer *p = &ps->peers[from];
  if (head->kind != GT_MSG_ROUND && (int64_t)head->round > ps->round) gt_ps_round_take(ps, (int64_t)head->round, GT_OK);
  switch ((gt_msg_kind)head->kind) {
  case GT_MSG_UPDATE:
  case GT_MSG_STATE:
    data_message(ps, from, head, payload);
    break;
  case GT_MSG_ACK:
    gt_ps_acknowledged(ps, from, (int64_t)head->value);
    break;
  case GT_MSG_PING:
    p->wan_bytes = (double)head->detail;
    p->samples = (int64_t)head->sequence;
    gt_ps_control(ps, from, GT_MSG_PONG, (int64_t)head->value, (int64_t)gt_ps_budget_ping(ps, from));
    break;
  case GT_MSG_PONG:
    pong(ps, from, head);
    gt_ps_budget_pong(ps, from, head);
    break;
  case GT_MSG_ROUND:
    round_message(ps, head);
    break;
  case GT_MSG_WRITTEN:
    if ((int64_t)head->value > p->written) p->written = (int64_t)head->value;
    if (head->detail != 0) p->unsound = (int64_t)head->value;
    gt_ps_round_whole(ps);
    break;
  case GT_MSG_JOINED:
    p->joined = true;
    p->joined_done = head->sequence != 0;
    p->joined_rounds = (int64_t)head->value;
    p->joined_seq = (int64_t)head->detail;
    break;
  case GT_MSG_DONE:
    p->done = true;
    p->done_steps = (int64_t)head->value;
    p->done_seq = (int64_t)head->detail;
    break;
  default:
    gt_bug("a message of a kind that was to be refused");
  }
  if (ps->want_stop != GT_OK) gt_ps_round_check(ps);
  if (!gt_ps_frozen(ps)) gt_ps_tell_strategy(ps, from);
  gt_ps_pump(ps);
  return GT_OK;
}

/* ---- time ----------------------------------------------------------------------------------------------------------------- */

static void keep_alive(gt_ps *ps) {
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].state == W_WAITING || ps->workers[w].state == W_PENDING) {
      gt_ps_order o = {.kind = GT_PS_KEEPALIVE, .params = gt_vec_of(NULL, 0), .buffers = gt_vec_of(NULL, 0)};
      ps->spec.host.order(ps->spec.host.ctx, w, &o);
    }
}

/* PING: value this PS's clock, detail the bytes it has posted, sequence the samples it has seen. */
void gt_ps_heartbeat(gt_ps *ps, size_t peer) {
  gt_frame_header head = {.kind = GT_MSG_PING,
                          .round = (uint32_t)ps->round,
                          .value = (uint64_t)ps->now,
                          .sequence = (uint64_t)ps->totals.samples,
                          .detail = (uint64_t)gt_ps_committed(ps)};
  if (peer == 0) ps->budget.pings++;
  ps->spec.host.send(ps->spec.host.ctx, peer, &head, NULL, 0, 0);
}

void gt_ps_tick(gt_ps *ps, gt_ns now) {
  ps->now = now;
  if (now >= ps->timer_at) {
    ps->timer_at = GT_NEVER;
    if (!gt_ps_frozen(ps)) gt_sync_on_timer(ps->sync, now);
  }
  if (now >= ps->heartbeat_at) {
    ps->heartbeat_at = now + ps->spec.heartbeat;
    for (size_t p = 0; p < ps->spec.nregions; p++)
      if (p != ps->spec.self) gt_ps_heartbeat(ps, p);
  }
  if (now >= ps->keepalive_at) {
    ps->keepalive_at = now + ps->spec.keepalive;
    keep_alive(ps);
  }
  gt_ps_round_check(ps);
  gt_ps_pump(ps);
}

gt_ns gt_ps_next(const gt_ps *ps) {
  gt_ns at = ps->heartbeat_at < ps->keepalive_at ? ps->heartbeat_at : ps->keepalive_at;
  return ps->timer_at < at ? ps->timer_at : at;
}

/* ---- looks ---------------------------------------------------------------------------------------------------------------- */

static gt_ns held_now(const gt_ps *ps, gt_ns now) {
  gt_ns held = ps->held_total + (ps->held ? now - ps->held_since : 0), sum = 0;
  for (size_t w = 0; w < ps->spec.nworkers && ps->phase == GT_PS_TRAINING; w++)
    if (ps->workers[w].state == W_WAITING || ps->workers[w].state == W_PENDING) sum += held - ps->workers[w].held_mark;
  return sum;
}

void gt_ps_look(const gt_ps *ps, gt_ns now, gt_ps_view *v) {
  const ps_totals *t = &ps->totals;
  *v = (gt_ps_view){.phase = ps->phase,
                    .stop_code = ps->stop_code,
                    .steps = t->steps,
                    .samples = t->samples,
                    .batches = t->batches,
                    .nonfinite = t->nonfinite,
                    .round = ps->round,
                    .whole_round = ps->whole_round,
                    .loss_sum = ps->loss_sum,
                    .loss_samples = ps->loss_samples,
                    .last_eval = ps->last_eval,
                    .last_eval_took = ps->eval.took,
                    .compute = t->compute,
                    .wait = t->wait,
                    .wan_wait = t->wan_wait,
                    .held_now = held_now(ps, now),
                    .drain = t->drain,
                    .idle = t->idle,
                    .update = t->update,
                    .encode = t->encode,
                    .held = ps->held,
                    .evaluating = ps->eval.active || ps->eval.due,
                    .chunks = ps->eval.active ? (int64_t)ps->eval.back : 0,
                    .whole_sound = gt_ps_whole_sound(ps),
                    .done = gt_ps_share_done(ps)};
  if (ps->phase == GT_PS_DRAINING) v->drain += now - ps->phase_since;
  if (ps->phase == GT_PS_FOLLOWING) v->idle += now - ps->phase_since;
}

void gt_ps_loss_reset(gt_ps *ps) {
  ps->loss_sum = 0;
  ps->loss_samples = 0;
}

void gt_ps_look_link(const gt_ps *ps, size_t peer, gt_ps_link *link) {
  const ps_peer *p = &ps->peers[peer];
  *link = (gt_ps_link){.bandwidth_bps = p->rate_s > 0 ? p->rate_bits / p->rate_s : 0,
                       .latency_s = gt_seconds(p->rtt) / 2,
                       .queued = p->queued,
                       .unacknowledged = p->n,
                       .samples = p->samples,
                       .done = p->done};
}

bool gt_ps_absent(const gt_ps *ps, size_t worker) {
  return ps->workers[worker].state == W_ABSENT;
}

bool gt_ps_computing(const gt_ps *ps, size_t worker, gt_ns *since, int64_t *batch) {
  const ps_worker *w = &ps->workers[worker];
  *since = w->since;
  *batch = w->state == W_EVALUATING ? -1 : w->batch;
  return w->state == W_COMPUTING || w->state == W_EVALUATING;
}
