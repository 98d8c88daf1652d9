/* The PS: created from its spec, driven by events; each event ends by doing whatever it has made
   possible. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static void open_outbox(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const gt_outbox_spec outbox = {.nregions = spec->nregions,
                                 .self = spec->self,
                                 .outbox = spec->outbox,
                                 .window = spec->window,
                                 .with_memory = spec->params.data != NULL,
                                 .limit = ps->apart ? 0 : spec->wan_bytes_limit,
                                 .samples = &ps->totals.samples,
                                 .number = &ps->advance.number,
                                 .gateway = spec->host.gateway};
  ps->outbox = gt_outbox_create(&outbox);
  gt_outbox_round(ps->outbox, spec->round);
}

/* The collectives are open. */
static void use_outbox(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const bool whole =
      spec->nregions > 1 && gt_ps_strategy(ps)->sends && gt_exchange_unit(ps->exchange) == 1;
  ps->at_once = GT_NEW_ARRAY(double, ps->twins.n);
  ps->forwards = GT_NEW_ARRAY(bool, ps->twins.n);
  for (size_t i = 0; i < ps->twins.n; i++) {
    ps->at_once[i] = (double)gt_exchange_at_once(ps->exchange, i);
    ps->forwards[i] = gt_exchange_forwards(ps->exchange, i);
  }
  const gt_outbox_use use = {.unit = gt_exchange_unit(ps->exchange),
                             .body = whole ? (spec->params.n + spec->buffers.n) * sizeof(float) : 0,
                             .origin = ps->twins.self,
                             .at_once = ps->at_once,
                             .forwards = ps->forwards};
  gt_outbox_open(ps->outbox, &use);
}

static void open_peers(gt_ps *ps) {
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    ps->peers[p].done_counts = GT_NEW_ARRAY(int64_t, gt_ps_dones(ps));
    ps->peers[p].written = ps->peers[p].round = ps->spec.round;
  }
}

static void open_exchange(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const gt_exchange_spec way = {.nregions = ps->twins.n,
                                .self = ps->twins.self,
                                .weights = ps->apart ? spec->copies.weights : spec->weights,
                                .inflight = spec->outbox + spec->window,
                                .with_memory = spec->params.data != NULL,
                                .topology = spec->topology,
                                .next = ps->next,
                                .workers = spec->workers,
                                .piece = spec->piece ? spec->piece
                                                     : GT_FRAME_PAYLOAD_MAX / sizeof(float),
                                .outbox = ps->outbox,
                                .regions = ps->twins.regions,
                                .events = gt_ps_exchange_events(ps)};
  ps->exchange = gt_exchange_create(&way);
}

static void open_strategy(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const gt_sync_env env = {.nregions = ps->twins.n,
                           .self = ps->twins.self,
                           .weights = ps->apart ? spec->copies.weights : spec->weights,
                           .singly = ps->singly,
                           .options = ps->apart ? spec->copies.options : spec->options,
                           .params = spec->params,
                           .buffers = spec->buffers,
                           .optim = spec->optim,
                           .exchange = ps->exchange,
                           .host = gt_ps_sync_host(ps)};
  ps->sync = gt_sync_create(gt_ps_strategy(ps), &env);
}

gt_ps *gt_ps_create(const gt_ps_spec *spec) {
  gt_ps *ps = GT_NEW(gt_ps);
  ps->spec = *spec;
  ps->plane = gt_ps_plane_of(spec);
  gt_ps_groups_open(ps);
  ps->workers = GT_NEW_ARRAY(ps_worker, spec->nworkers);
  ps->arrivals = GT_NEW_ARRAY(size_t, spec->nworkers);
  ps->parts.grads = GT_NEW_ARRAY(const float *, spec->nworkers);
  ps->parts.buffers = GT_NEW_ARRAY(const float *, spec->nworkers);
  ps->parts.samples = GT_NEW_ARRAY(int64_t, spec->nworkers);
  gt_ps_buffers_open(ps);
  if (ps->plane->open) ps->plane->open(ps);
  ps->peers = GT_NEW_ARRAY(ps_peer, spec->nregions);
  ps->last_eval = (gt_ps_score){NAN, NAN, NAN, NAN, NAN, 0};
  for (size_t i = 0; i < GT_SYNC_TIMERS; i++) ps->timer_at[i] = GT_NEVER;
  ps->round = ps->whole_round = ps->own_written = spec->round;
  open_outbox(ps);
  gt_ps_eval_open(ps);
  ps->singly = gt_topology_singly(spec->topology) && spec->strategy->on_part && !spec->local_async;
  open_exchange(ps);
  open_strategy(ps);
  use_outbox(ps);
  open_peers(ps);
  return ps;
}

const gt_ps_spec *gt_ps_made_of(const gt_ps *ps) {
  return &ps->spec;
}

void gt_ps_close(gt_ps *ps) {
  if (!ps) return;
  gt_sync_close(ps->sync);
  gt_exchange_close(ps->exchange);
  gt_outbox_close(ps->outbox);
  for (size_t p = 0; p < ps->spec.nregions; p++) gt_free(ps->peers[p].done_counts);
  gt_ps_eval_close(ps);
  if (ps->plane->close) ps->plane->close(ps);
  gt_ps_buffers_close(ps);
  gt_ps_groups_close(ps);
  gt_free(ps->at_once);
  gt_free(ps->forwards);
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

/* What came from regions that had taken a round before this one did, once it has taken it, too. */
static bool catch_up(gt_ps *ps) {
  bool moved = false;
  for (size_t p = 0; ps->apart && p < ps->spec.nregions; p++) {
    ps_peer *peer = &ps->peers[p];
    if (!peer->late || gt_ps_ahead(ps, p)) continue;
    const int64_t ack = peer->late_ack;
    peer->late = false;
    peer->late_ack = 0;
    if (ack > 0) gt_ps_acknowledged(ps, p, ack);
    if (!gt_ps_frozen(ps)) gt_ps_tell_strategy(ps, p);
    moved = true;
  }
  return moved;
}

/* What every event ends with. */
static void pump(gt_ps *ps) {
  do
    if (!gt_ps_frozen(ps)) {
      gt_ps_eval_give(ps);
      ps->plane->pump(ps);
    }
  while (catch_up(ps));
  gt_ps_end_check(ps);
  if (gt_ps_wants_stop(ps)) gt_ps_round_check(ps);
  if (ps->passes)
    gt_ps_passes_account(ps->passes, ps->phase == GT_PS_TRAINING || ps->phase == GT_PS_DRAINING);
}

void gt_ps_start(gt_ps *ps, gt_ns now) {
  gt_ps_at(ps, now);
  ps->phase_since = ps->round_at = now;
  ps->heartbeat_at = ps->keepalive_at = now;
  ps->steps_at_round = ps->totals.steps;
  ps->samples_at_round = ps->totals.samples;
  ps->held_since = now;
  gt_exchange_start(ps->exchange);
  if (ps->phase != GT_PS_TRAINING) gt_ps_drain(ps);
  gt_ps_eval_check(ps);
  if (ps->resumed) {
    gt_ps_agree_again(ps);
    gt_ps_tell_joined(ps);
  }
  gt_ps_tick(ps, now);
}

/* ---- workers and what was sent --------------------------------------------------------------- */

void gt_ps_ready(gt_ps *ps, size_t worker, gt_ns now) {
  gt_ps_at(ps, now);
  gt_ps_worker_waits(ps, worker);
  pump(ps);
}

void gt_ps_gradient(gt_ps *ps, size_t worker, const gt_ps_push *pushed, float *grads, gt_ns now) {
  gt_ps_push push = *pushed;
  gt_ps_at(ps, now);
  if (ps->passes) gt_ps_passes_timed(ps->passes, worker, &push);
  gt_ps_take_gradient(ps, worker, &push, grads);
  pump(ps);
}

void gt_ps_evaluated(gt_ps *ps, size_t worker, const gt_ps_push *pushed, gt_ns now) {
  gt_ps_push push = *pushed;
  gt_ps_at(ps, now);
  if (ps->passes) gt_ps_passes_timed(ps->passes, worker, &push);
  gt_ps_worker_waits(ps, worker);
  gt_ps_eval_take(ps, worker, &push);
  pump(ps);
}

void gt_ps_departed(gt_ps *ps, size_t peer, uint64_t cookie, gt_ns now) {
  if (cookie >= PS_PASSES_COOKIE) {
    gt_ps_packet_left(ps, cookie);
    return;
  }
  gt_ps_at(ps, now);
  gt_ps_outbox_departed(ps, peer, cookie);
  pump(ps);
}

void gt_ps_written(gt_ps *ps, int64_t round, gt_ns now) {
  gt_ps_at(ps, now);
  gt_ps_round_written(ps, round);
  pump(ps);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void data_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body) {
  const int64_t sequence = (int64_t)head->sequence;
  const ps_peer *p = &ps->peers[from];
  gt_receipt receipt = GT_RECEIPT_TAKEN;
  /* unacknowledged, so its sender's checkpoint has it */
  if (gt_ps_frozen(ps) || p->rejected) return;
  const bool is_new = sequence > gt_outbox_look(ps->outbox, from).received;
  if (is_new) {
    const gt_ns clock = gt_ps_clock(ps);
    receipt = gt_exchange_receive(ps->exchange, ps->twins.of[from], head, body);
    if (receipt == GT_RECEIPT_NONFINITE) gt_ps_count_nonfinite(ps, from);
    if (p->rejected) return;
    gt_outbox_received(ps->outbox, from, sequence);
    const size_t floats = (size_t)head->message_bytes / sizeof(float);
    ps->totals.update +=
        gt_ps_worked(ps, GT_WORK_APPLY, gt_ps_part(ps, head->kind, floats)) - clock;
  }
  if (receipt != GT_RECEIPT_HELD) gt_outbox_ack(ps->outbox, from, is_new);
}

static void ping(gt_ps *ps, size_t from, const gt_frame_header *head) {
  ps_peer *p = &ps->peers[from];
  gt_ps_advance_ping(ps, from, head->range);
  p->samples = (int64_t)head->sequence;
  if (gt_outbox_ping(ps->outbox, from, head, p->done)) gt_ps_outbox_retry(ps);
  gt_outbox_answer(ps->outbox, from, head);
}

static void pong(gt_ps *ps, size_t from, const gt_frame_header *head) {
  if (gt_outbox_pong(ps->outbox, from, head)) gt_ps_outbox_retry(ps);
}

static void strategy_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                             const void *payload) {
  const gt_ns clock = gt_ps_clock(ps);
  if (gt_ps_frozen(ps)) return;
  if (!gt_ps_agree_has_numbers(head)) gt_outbox_reported(ps->outbox, from, (double)head->sequence);
  ps->plane->message(ps, from, head, payload);
  ps->totals.update += gt_ps_clock(ps) - clock;
}

/* The state before the own checkpoint does not know of what the peer has taken after its own. */
static void ack(gt_ps *ps, size_t from, int64_t sequence) {
  if (!gt_ps_ahead(ps, from)) {
    gt_ps_acknowledged(ps, from, sequence);
    return;
  }
  ps->peers[from].late = true;
  ps->peers[from].late_ack = sequence;
}

static void round_message(gt_ps *ps, size_t from, const gt_frame_header *head) {
  ps_peer *p = &ps->peers[from];
  const bool waited = gt_ps_behind(ps, from);
  if ((int64_t)head->value > p->round) p->round = (int64_t)head->value;
  gt_ps_hold_outboxes(ps);
  gt_ps_round_message(ps, from, head);
  if (waited && !gt_ps_frozen(ps)) gt_ps_outbox_retry(ps);
}

static gt_status activation(gt_ps *ps, size_t from, const gt_frame_header *head,
                            const void *payload, gt_ns now) {
  const gt_ps_host *host = &ps->spec.host;
  const gt_ns queued = (gt_ns)head->sequence,
              sent = host->here ? host->here(host->ctx, from, queued) : queued;
  GT_TRY(gt_ps_passes_message(ps->passes, head, payload, sent));
  gt_ps_landed(ps, from, head, now);
  return GT_OK;
}

gt_status gt_ps_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *payload,
                        gt_ns now) {
  if (ps->passes && gt_msg_is_activation(head->kind))
    return activation(ps, from, head, payload, now);
  gt_ps_at(ps, now);
  GT_TRY(gt_ps_check(ps, from, head));
  ps_peer *p = &ps->peers[from];
  if (head->kind != GT_MSG_ROUND && (int64_t)head->round > ps->round && !ps->plane->together)
    gt_ps_round_take(ps, (int64_t)head->round, GT_OK);
  switch ((gt_msg_kind)head->kind) {
  case GT_MSG_UPDATE:
  case GT_MSG_STATE:
    data_message(ps, from, head, payload);
    break;
  case GT_MSG_ACK:
    ack(ps, from, (int64_t)head->value);
    break;
  case GT_MSG_PING:
    ping(ps, from, head);
    break;
  case GT_MSG_PONG:
    pong(ps, from, head);
    break;
  case GT_MSG_ROUND:
    round_message(ps, from, head);
    break;
  case GT_MSG_WRITTEN:
    if ((int64_t)head->value > p->written) p->written = (int64_t)head->value;
    if (head->detail != 0) p->unsound = (int64_t)head->value;
    gt_ps_round_whole(ps);
    break;
  case GT_MSG_JOINED:
    p->joined = true;
    p->joined_done = head->sequence == GT_JOINED_DONE;
    p->joined_late = head->sequence == GT_JOINED_LATE;
    p->joined_rounds = (int64_t)head->value;
    p->joined_seq = (int64_t)head->detail;
    break;
  case GT_MSG_STRATEGY:
    strategy_message(ps, from, head, payload);
    break;
  case GT_MSG_DONE:
    p->done_counts[head->range] = (int64_t)head->sequence;
    p->done = ++p->dones >= gt_ps_dones(ps);
    p->done_steps = (int64_t)head->value;
    p->done_seq = (int64_t)head->detail;
    break;
  default:
    gt_bug("a message of a kind that was to be refused");
  }
  if (gt_ps_wants_stop(ps)) gt_ps_round_check(ps);
  if (!gt_ps_frozen(ps)) gt_ps_tell_strategy(ps, from);
  pump(ps);
  return GT_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void keep_alive(gt_ps *ps) {
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].state == W_WAITING || ps->workers[w].state == W_PENDING) {
      gt_ps_order o = {
          .kind = GT_PS_KEEPALIVE, .params = gt_vec_of(NULL, 0), .buffers = gt_vec_of(NULL, 0)};
      ps->spec.host.order(ps->spec.host.ctx, w, &o);
    }
}

static void ring_timers(gt_ps *ps) {
  for (size_t i = 0; i < GT_SYNC_TIMERS; i++) {
    if (ps->now < ps->timer_at[i]) continue;
    ps->timer_at[i] = GT_NEVER;
    if (!gt_ps_frozen(ps)) gt_sync_on_timer(ps->sync, ps->now, i);
  }
}

void gt_ps_tick(gt_ps *ps, gt_ns now) {
  gt_ps_at(ps, now);
  ring_timers(ps);
  if (now >= ps->heartbeat_at) {
    ps->heartbeat_at = now + ps->spec.heartbeat;
    gt_ps_advance_beat(ps);
    for (size_t p = 0; p < ps->spec.nregions; p++)
      if (p != ps->spec.self) gt_outbox_beat(ps->outbox, p);
  }
  if (now >= ps->keepalive_at) {
    ps->keepalive_at = now + ps->spec.keepalive;
    keep_alive(ps);
  }
  gt_ps_round_check(ps);
  pump(ps);
}

gt_ns gt_ps_next(const gt_ps *ps) {
  gt_ns at = ps->heartbeat_at < ps->keepalive_at ? ps->heartbeat_at : ps->keepalive_at;
  for (size_t i = 0; i < GT_SYNC_TIMERS; i++)
    if (ps->timer_at[i] < at) at = ps->timer_at[i];
  return at;
}
