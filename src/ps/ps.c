/* The PS: created from its spec, driven by events; each event ends by doing all work that has
   become possible.  Callbacks of the exchange and the strategy.

   A region makes steps with its stage group and exchanges data with its replicas.  Both are all
   regions, or with several pipelines those of its own, and those with the same stages in others.
   Strategy and exchange count the regions of their group from 0. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* ---- room ------------------------------------------------------------------------------------ */

/* Call when the outbox to the region can have room for messages of the exchange. */
static void room_at(gt_ps *ps, size_t region) {
  const size_t member = ps->replicas.of[region];
  if (!ps->epoch.frozen && member != PS_NONE && gt_outbox_has_room(ps->outbox, region))
    gt_exchange_room(ps->exchange, member);
}

static void retry(gt_ps *ps) {
  gt_outbox_retry(ps->outbox);
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self) room_at(ps, p);
}

static void departed(gt_ps *ps, size_t peer, uint64_t cookie) {
  if (gt_outbox_departed(ps->outbox, peer, cookie)) room_at(ps, peer);
}

static void acknowledged(gt_ps *ps, size_t peer, int64_t sequence, bool late) {
  if (gt_outbox_acknowledged(ps->outbox, peer, sequence, late)) room_at(ps, peer);
}

/* ---- events of an exchange ------------------------------------------------------------------- */

/* Returns the share of n floats in the work for a whole body of this kind. */
static double part_of(const gt_ps *ps, unsigned kind, size_t n) {
  const size_t whole = ps->spec.params.n + (kind == GT_MSG_STATE ? ps->spec.buffers.n : 0);
  return (double)n / (double)whole;
}

static void filling(void *ctx) {
  gt_ps *ps = ctx;
  ps->encode_from = gt_ps_clock(ps);
}

static void filled(void *ctx, gt_msg_kind kind, size_t floats) {
  gt_ps *ps = ctx;
  ps->totals.encode += gt_ps_worked(ps, GT_WORK_COPY, part_of(ps, kind, floats)) - ps->encode_from;
  ps->encode_from = gt_ps_clock(ps); /* for the next piece of the same body */
}

/* Drops and counts a non-finite message; if no region can continue without it, ends the run. */
static void count_nonfinite(gt_ps *ps, size_t from) {
  ps->totals.nonfinite++;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_NONFINITE, (double)ps->totals.nonfinite,
                     -1 - (double)from);
  ps->peers[from].rejected = ps->between->needs_all;
  if (ps->peers[from].rejected || ps->totals.nonfinite >= ps->spec.nonfinite_limit)
    ps->want_stop = GT_ERR_LIMIT;
}

static void nonfinite(void *ctx, size_t member) {
  gt_ps *ps = ctx;
  count_nonfinite(ps, ps->replicas.regions[member]);
}

static gt_exchange_events exchange_events(gt_ps *ps) {
  return (gt_exchange_events){.ctx = ps,
                              .filling = filling,
                              .filled = filled,
                              .coding = gt_ps_coding,
                              .coded = gt_ps_coded_message,
                              .nonfinite = nonfinite};
}

/* ---- the host of a strategy ------------------------------------------------------------------ */

static void host_hold(void *ctx) {
  gt_ps_hold(ctx, PS_HOLDER_SYNC, true);
}

static void host_release(void *ctx) {
  gt_ps_hold(ctx, PS_HOLDER_SYNC, false);
}

static gt_link_view host_link(void *ctx, size_t member) {
  const gt_ps *ps = ctx;
  const gt_outbox_view v = gt_outbox_get_view(ps->outbox, ps->replicas.regions[member]);
  return (gt_link_view){.queued = v.queued, .rate_bps = v.late_bps, .latency_s = v.late_latency_s};
}

static void host_timer(void *ctx, size_t id, gt_ns at) {
  gt_ps *ps = ctx;
  if (id >= GT_SYNC_TIMERS) gt_bug("timer %zu; there are %d", id, GT_SYNC_TIMERS);
  ps->timer_at[id] = at;
}

static void host_decided(void *ctx, const char *what, const char *choice, const char *why) {
  const gt_ps_host *host = &((const gt_ps *)ctx)->spec.host;
  if (host->decided) host->decided(host->ctx, what, choice, why);
}

static void host_excluded(void *ctx, int64_t count, double norm) {
  const gt_ps_host *host = &((const gt_ps *)ctx)->spec.host;
  host->note(host->ctx, GT_NOTE_EXCLUDED, (double)count, norm);
}

static gt_sync_host sync_host(gt_ps *ps) {
  const bool clips = ps->agree.of_means;
  return (gt_sync_host){.ctx = ps,
                        .hold = host_hold,
                        .release = host_release,
                        .timer = host_timer,
                        .decided = host_decided,
                        .excluded = host_excluded,
                        .link = host_link,
                        .moved = gt_ps_buffers_moved,
                        .tell_squares = clips ? gt_ps_agree_mean : NULL,
                        .norm = clips ? gt_ps_agree_norm : NULL};
}

/* ---- open and close -------------------------------------------------------------------------- */

static void open_groups(gt_ps *ps) {
  const gt_ps_groups *c = &ps->spec.groups;
  ps->apart = c->nreplicas > 0;
  if (ps->apart && (!ps->plane->together || gt_topology_per_worker(ps->spec.topology)))
    gt_bug("copies of a pipeline need stages, and no region that makes all steps");
  gt_ps_group_open(&ps->stage_group, ps, c->stage_group, c->nstage_group);
  gt_ps_group_open(&ps->replicas, ps, c->replicas, c->nreplicas);
  ps->between = ps->apart ? c->strategy : ps->spec.strategy;
  if (!ps->spec.next) return;
  ps->next = GT_NEW_ARRAY(size_t, ps->replicas.n);
  for (size_t i = 0; i < ps->replicas.n; i++) {
    ps->next[i] = ps->replicas.of[ps->spec.next[ps->replicas.regions[i]]];
    if (ps->next[i] == PS_NONE) gt_bug("next to region %zu is none of its group", i);
  }
}

static void close_groups(gt_ps *ps) {
  gt_free(ps->next);
  gt_ps_group_close(&ps->stage_group);
  gt_ps_group_close(&ps->replicas);
}

static void open_outbox(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const gt_outbox_spec outbox = {.nregions = spec->nregions,
                                 .self = spec->self,
                                 .outbox = spec->outbox,
                                 .window = spec->window,
                                 .with_memory = spec->params.data != NULL,
                                 .carries = spec->objects,
                                 .limit = ps->apart ? 0 : spec->wan_bytes_limit,
                                 .samples = &ps->totals.samples,
                                 .number = &ps->advance.number,
                                 .gateway = spec->host.gateway};
  ps->outbox = gt_outbox_create(&outbox);
  gt_outbox_round(ps->outbox, spec->round);
}

/* Call when the collectives are open. */
static void use_outbox(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const bool whole =
      spec->nregions > 1 && ps->between->sends && gt_exchange_unit(ps->exchange) == 1;
  const gt_outbox_use use = {.unit = gt_exchange_unit(ps->exchange),
                             .body = whole ? gt_exchange_body_max(ps->exchange) : 0,
                             .origin = ps->replicas.self};
  gt_outbox_open(ps->outbox, &use);
}

static void open_peers(gt_ps *ps) {
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    ps->peers[p].done_counts = GT_NEW_ARRAY(int64_t, gt_ps_dones(ps));
    ps->peers[p].joined_counts = GT_NEW_ARRAY(int64_t, gt_ps_dones(ps));
    ps->peers[p].written = ps->peers[p].round = ps->spec.round;
  }
}

static void open_exchange(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const gt_exchange_spec exchange_spec = {
      .nregions = ps->replicas.n,
      .self = ps->replicas.self,
      .weights = ps->apart ? spec->groups.weights : spec->weights,
      .inflight = spec->outbox + spec->window,
      .with_memory = spec->params.data != NULL,
      .topology = spec->topology,
      .next = ps->next,
      .workers = spec->workers,
      .piece = spec->piece ? spec->piece : GT_FRAME_PAYLOAD_MAX / sizeof(float),
      .codec = &ps->spec.codec,
      .outbox = ps->outbox,
      .regions = ps->replicas.regions,
      .events = exchange_events(ps)};
  ps->exchange = gt_exchange_create(&exchange_spec);
}

static void open_strategy(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const gt_sync_env env = {.nregions = ps->replicas.n,
                           .self = ps->replicas.self,
                           .weights = ps->apart ? spec->groups.weights : spec->weights,
                           .per_worker = ps->per_worker,
                           .options = ps->apart ? spec->groups.options : spec->options,
                           .params = spec->params,
                           .buffers = spec->buffers,
                           .tensors = spec->codec.tensors,
                           .ntensors = spec->codec.ntensors,
                           .optim = spec->optim,
                           .exchange = ps->exchange,
                           .host = sync_host(ps)};
  ps->sync = gt_sync_create(ps->between, &env);
}

gt_ps *gt_ps_create(const gt_ps_spec *spec) {
  gt_ps *ps = GT_NEW(gt_ps);
  ps->spec = *spec;
  ps->plane = gt_ps_plane_of(spec);
  open_groups(ps);
  ps->workers = GT_NEW_ARRAY(ps_worker, spec->nworkers);
  ps->arrivals = GT_NEW_ARRAY(size_t, spec->nworkers);
  ps->parts.grads = GT_NEW_ARRAY(const float *, spec->nworkers);
  ps->parts.buffers = GT_NEW_ARRAY(const float *, spec->nworkers);
  ps->parts.samples = GT_NEW_ARRAY(int64_t, spec->nworkers);
  gt_ps_buffers_open(ps);
  if (ps->plane->open) ps->plane->open(ps);
  ps->peers = GT_NEW_ARRAY(ps_peer, spec->nregions);
  ps->last_eval = gt_ps_no_score;
  for (size_t i = 0; i < GT_SYNC_TIMERS; i++) ps->timer_at[i] = GT_NEVER;
  ps->round = ps->whole_round = ps->own_written = spec->round;
  open_outbox(ps);
  gt_ps_eval_open(ps);
  gt_ps_validation_open(ps);
  ps->per_worker =
      gt_topology_per_worker(spec->topology) && spec->strategy->on_part && !spec->local_async;
  open_exchange(ps);
  open_strategy(ps);
  use_outbox(ps);
  open_peers(ps);
  gt_ps_epoch_open(ps);
  return ps;
}

const gt_ps_spec *gt_ps_made_of(const gt_ps *ps) {
  return &ps->spec;
}

void gt_ps_close(gt_ps *ps) {
  if (!ps) return;
  gt_ps_epoch_close(ps);
  gt_sync_close(ps->sync);
  gt_exchange_close(ps->exchange);
  gt_outbox_close(ps->outbox);
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    gt_free(ps->peers[p].done_counts);
    gt_free(ps->peers[p].joined_counts);
  }
  gt_ps_eval_close(ps);
  gt_ps_validation_close(ps);
  if (ps->plane->close) ps->plane->close(ps);
  gt_ps_buffers_close(ps);
  close_groups(ps);
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

/* Handles messages of regions that took a round before this one, after this one has taken it. */
static bool catch_up(gt_ps *ps) {
  bool moved = false;
  for (size_t p = 0; ps->apart && p < ps->spec.nregions; p++) {
    ps_peer *peer = &ps->peers[p];
    if (!peer->late || gt_ps_ahead(ps, p)) continue;
    const int64_t ack = peer->late_ack;
    peer->late = false;
    peer->late_ack = 0;
    if (ack > 0) acknowledged(ps, p, ack, false);
    if (!gt_ps_frozen(ps)) gt_ps_tell_strategy(ps, p);
    moved = true;
  }
  return moved;
}

/* Ends every event. */
static void pump(gt_ps *ps) {
  do
    if (!gt_ps_frozen(ps)) {
      gt_ps_eval_validate(ps);
      gt_ps_eval_give(ps);
      ps->plane->pump(ps);
    }
  while (catch_up(ps));
  gt_ps_members_pump(ps);
  gt_ps_end_check(ps);
  if (gt_ps_wants_stop(ps)) gt_ps_round_check(ps);
  if (ps->passes)
    gt_ps_passes_account(ps->passes, ps->phase == GT_PS_TRAINING || ps->phase == GT_PS_DRAINING);
}

void gt_ps_start(gt_ps *ps, gt_ns now) {
  gt_ps_at(ps, now);
  ps->phase_since = ps->round_at = now;
  ps->heartbeat_at = ps->keepalive_at = now;
  ps->held_since = now;
  if (ps->epoch.frozen)
    gt_ps_hold(ps, PS_HOLDER_EPOCH, true);
  else
    gt_exchange_start(ps->exchange);
  if (ps->phase != GT_PS_TRAINING) gt_ps_drain(ps);
  gt_ps_eval_check(ps);
  if (ps->resumed && !ps->epoch.outside) {
    gt_ps_agree_again(ps);
    gt_ps_tell_joined(ps);
  }
  gt_ps_validation_start(ps);
  gt_ps_tick(ps, now);
}

/* ---- workers and sent messages --------------------------------------------------------------- */

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
  if (cookie >= PS_GROUP_COOKIE) {
    gt_ps_state_departed(ps, peer, cookie);
    return;
  }
  gt_ps_at(ps, now);
  departed(ps, peer, cookie);
  pump(ps);
}

void gt_ps_written(gt_ps *ps, int64_t round, gt_ns now) {
  gt_ps_at(ps, now);
  gt_ps_round_written(ps, round);
  pump(ps);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns false if the message is refused. */
static bool receive(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body,
                    gt_receipt *receipt) {
  const gt_ns clock = gt_ps_clock(ps);
  *receipt = gt_exchange_receive(ps->exchange, ps->replicas.of[from], head, body);
  if (*receipt == GT_RECEIPT_NONFINITE) count_nonfinite(ps, from);
  if (ps->peers[from].rejected) return false;
  gt_outbox_received(ps->outbox, from, (int64_t)head->sequence);
  const bool routed = (head->flags & GT_FRAME_ROUTED) != 0;
  const size_t floats = (size_t)(routed ? head->route.count : head->message_bytes / sizeof(float));
  const double part = head->codec && !routed ? 1 : part_of(ps, head->kind, floats);
  ps->totals.update += gt_ps_worked(ps, GT_WORK_APPLY, part) - clock;
  return true;
}

static void data_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body) {
  gt_receipt receipt = GT_RECEIPT_TAKEN;
  /* without an acknowledgement the sender's checkpoint has it */
  if (gt_ps_frozen(ps) || ps->peers[from].rejected) return;
  const bool is_new = (int64_t)head->sequence > gt_outbox_get_view(ps->outbox, from).received;
  gt_outbox_pause(ps->outbox, from, true);
  const bool taken = !is_new || receive(ps, from, head, body, &receipt);
  if (taken && receipt != GT_RECEIPT_HELD) gt_outbox_ack(ps->outbox, from, is_new);
  gt_outbox_pause(ps->outbox, from, false);
}

static void ping(gt_ps *ps, size_t from, const gt_frame_header *head) {
  ps_peer *p = &ps->peers[from];
  gt_ps_advance_ping(ps, from, head->range);
  p->samples = (int64_t)head->samples;
  if (gt_outbox_ping(ps->outbox, from, head)) retry(ps);
  gt_outbox_answer(ps->outbox, from, head);
}

static void pong(gt_ps *ps, size_t from, const gt_frame_header *head) {
  if (gt_outbox_pong(ps->outbox, from, head)) retry(ps);
}

static void pipeline_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                             const void *payload) {
  const gt_ns clock = gt_ps_clock(ps);
  if (gt_ps_frozen(ps)) return;
  if (!gt_ps_agree_has_numbers(head))
    gt_outbox_reported(ps->outbox, from, (double)head->posted_bytes);
  ps->plane->message(ps, from, head, payload);
  ps->totals.update += gt_ps_clock(ps) - clock;
}

/* The state before the own checkpoint must not know of messages that the peer has taken after its
   own. */
/* carried: by data (gt_outbox_spec). */
static void ack(gt_ps *ps, size_t from, int64_t sequence, bool carried) {
  if (!gt_ps_ahead(ps, from)) {
    acknowledged(ps, from, sequence, carried);
    return;
  }
  ps->peers[from].late = true;
  ps->peers[from].late_ack = sequence;
}

static void round_message(gt_ps *ps, size_t from, const gt_frame_header *head) {
  ps_peer *p = &ps->peers[from];
  const bool waited = gt_ps_behind(ps, from);
  if ((int64_t)head->value > p->round) p->round = (int64_t)head->value;
  gt_ps_round_message(ps, from, head);
  if (waited && !gt_ps_frozen(ps)) retry(ps);
}

static gt_status activation(gt_ps *ps, size_t from, const gt_frame_header *head,
                            const void *payload, gt_ns now) {
  const gt_ps_host *host = &ps->spec.host;
  const gt_ns queued = (gt_ns)head->clock,
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
  if (head->kind == GT_MSG_MEMBERS || head->kind == GT_MSG_GROUP) {
    GT_TRY(gt_ps_members_message(ps, from, head, payload));
    pump(ps);
    return GT_OK;
  }
  if (!gt_ps_epoch_takes(ps, from, head)) {
    if (head->kind == GT_MSG_PING) gt_ps_members_refuse(ps, from);
    return GT_OK;
  }
  GT_TRY(gt_ps_check(ps, from, head, payload));
  ps_peer *p = &ps->peers[from];
  if (head->kind != GT_MSG_ROUND && (int64_t)head->round > ps->round && !ps->plane->together &&
      ps->epoch.promised <= ps->epoch.number)
    gt_ps_round_take(ps, (int64_t)head->round, GT_OK);
  switch ((gt_msg_kind)head->kind) {
  case GT_MSG_UPDATE:
  case GT_MSG_STATE:
    if (head->acknowledged > 0) ack(ps, from, (int64_t)head->acknowledged, true);
    data_message(ps, from, head, payload);
    break;
  case GT_MSG_ACK:
    ack(ps, from, (int64_t)head->value, false);
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
  case GT_MSG_SCORE:
    gt_ps_validation_message(ps, from, head, payload);
    break;
  case GT_MSG_JOINED:
    p->joined = ++p->joins >= gt_ps_dones(ps);
    p->joined_done = head->sequence == GT_JOINED_DONE;
    p->joined_late = head->sequence == GT_JOINED_LATE;
    p->joined_counts[head->range] = (int64_t)head->value;
    p->joined_seq = (int64_t)head->detail;
    break;
  case GT_MSG_STRATEGY:
  case GT_MSG_ADAPT:
    pipeline_message(ps, from, head, payload);
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
    if (!gt_ps_frozen(ps) && !ps->epoch.frozen) gt_sync_on_timer(ps->sync, ps->now, i);
  }
}

void gt_ps_lost(gt_ps *ps, size_t region, gt_ns now) {
  gt_ps_at(ps, now);
  gt_ps_forget_states(ps, region);
  gt_outbox_lost(ps->outbox, region);
  gt_ps_members_lost(ps, region);
  pump(ps);
}

void gt_ps_tick(gt_ps *ps, gt_ns now) {
  gt_ps_at(ps, now);
  ring_timers(ps);
  if (now >= ps->heartbeat_at) {
    ps->heartbeat_at = now + ps->spec.heartbeat;
    gt_ps_advance_beat(ps);
    gt_ps_members_tick(ps);
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
