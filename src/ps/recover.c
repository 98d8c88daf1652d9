/* A change of members: the exchange continues among the members of the new epoch, and the state
   that all members have in common goes to those that lack it. */
#include <string.h>

#include "internal.h"

/* ---- states as bytes ------------------------------------------------------------------------- */

/* An item: its name, type and count; its data follow. */
typedef struct {
  char name[96];
  int64_t type, count;
} item_head;

static size_t item_bytes(const gt_state_item *item) {
  return sizeof(item_head) + item->count * gt_type_size(item->type);
}

/* Returns the state's bytes; in a simulation vectors are zeros. */
static unsigned char *pack(const gt_state *state, size_t *bytes) {
  *bytes = 0;
  for (size_t i = 0; i < state->n; i++) *bytes += item_bytes(&state->items[i]);
  unsigned char *out = gt_alloc(*bytes + 1, 1), *at = out;
  for (size_t i = 0; i < state->n; i++) {
    const gt_state_item *item = &state->items[i];
    item_head head = {.type = (int64_t)item->type, .count = (int64_t)item->count};
    memcpy(head.name, item->name, sizeof head.name);
    memcpy(at, &head, sizeof head);
    if (item->data && item->count)
      memcpy(at + sizeof head, item->data, item->count * gt_type_size(item->type));
    at += item_bytes(item);
  }
  return out;
}

/* Reads bytes that a peer has sent, whose arrays are copied, because their alignment varies. */
static gt_status unpack(const unsigned char *bytes, size_t n, gt_state *state) {
  *state = (gt_state){.owns_data = true};
  while (n > 0) {
    item_head head;
    if (n < sizeof head) return GT_FAIL(GT_ERR_FAULT, "a group state ends within an item");
    memcpy(&head, bytes, sizeof head);
    const bool sound = memchr(head.name, 0, sizeof head.name) && head.type >= GT_TYPE_F32 &&
                       head.type <= GT_TYPE_U8 && head.count >= 0 &&
                       (uint64_t)head.count <= n / gt_type_size((gt_type)head.type);
    const size_t size = sound ? (size_t)head.count * gt_type_size((gt_type)head.type) : SIZE_MAX;
    if (size > n - sizeof head)
      return GT_FAIL(GT_ERR_FAULT, "a group state has an item of %lld values of type %lld",
                     (long long)head.count, (long long)head.type);
    void *data = gt_alloc(size + 1, 1);
    memcpy(data, bytes + sizeof head, size);
    gt_state_add(state, "", head.name, (gt_type)head.type, data, (size_t)head.count);
    bytes += sizeof head + size;
    n -= sizeof head + size;
  }
  return GT_OK;
}

/* ---- sending and taking states --------------------------------------------------------------- */

static void send_state(gt_ps *ps, size_t member, size_t range) {
  ps_epoch *e = &ps->epoch;
  const gt_outbox_gateway *gateway = &ps->spec.host.gateway;
  gt_state state = {0};
  size_t bytes;
  (void)gt_sync_common(ps->sync, range, (gt_state_direction){.to = &state});
  (void)gt_ps_position_state(ps, (gt_state_direction){.to = &state});
  unsigned char *body = pack(&state, &bytes);
  gt_state_close(&state);
  const gt_frame_header head = {.kind = GT_MSG_GROUP,
                                .range = (uint32_t)range,
                                .round = (uint32_t)ps->round,
                                .epoch = (uint16_t)e->number,
                                .value = (uint64_t)e->number,
                                .message_bytes = bytes};
  GT_GROW(e->states, e->nstates, e->states_capacity, 4);
  e->states[e->nstates++] = (ps_group_state){member, ++e->next_cookie, body};
  gateway->send(gateway->ctx, member, &head, body, bytes, e->next_cookie);
}

void gt_ps_send_states(gt_ps *ps, size_t member) {
  ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  for (size_t i = 0; i < ranges; i++) {
    bool *lacks = &e->lacks[member * ranges + i];
    if (*lacks && e->source[i] == ps->spec.self) send_state(ps, member, i);
    *lacks = false;
  }
}

void gt_ps_state_departed(gt_ps *ps, size_t peer, uint64_t cookie) {
  ps_epoch *e = &ps->epoch;
  for (size_t i = 0; i < e->nstates; i++) {
    if (e->states[i].peer != peer || e->states[i].cookie != cookie) continue;
    gt_free(e->states[i].bytes);
    e->states[i] = e->states[--e->nstates];
    return;
  }
}

static bool needs_any(const gt_ps *ps) {
  for (size_t i = 0; i < gt_exchange_ranges(ps->exchange); i++)
    if (ps->epoch.needs[i]) return true;
  return false;
}

static void take_place(gt_ps *ps) {
  const ps_epoch *e = &ps->epoch;
  if (e->late_self && ps->phase == GT_PS_TRAINING) (void)gt_sync_place(ps->sync, true, e->place);
}

gt_status gt_ps_take_state(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body,
                           bool *complete) {
  ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  gt_state state = {0};
  *complete = false;
  if ((int64_t)head->value != e->number || !e->member[from]) return GT_OK;
  if (head->range >= ranges || !e->needs[head->range] || e->source[head->range] != from)
    return GT_FAIL(GT_ERR_FAULT,
                   "a group state is of range %u of region %zu, which was not asked "
                   "for it",
                   head->range, from);
  gt_status status = unpack(body, body ? (size_t)head->message_bytes : 0, &state);
  if (status == GT_OK)
    status = gt_sync_common(ps->sync, head->range, (gt_state_direction){.from = &state});
  if (status == GT_OK) status = gt_ps_position_state(ps, (gt_state_direction){.from = &state});
  gt_state_close(&state);
  if (status != GT_OK) return status;
  e->needs[head->range] = false;
  *complete = !needs_any(ps);
  if (!*complete) return GT_OK;
  take_place(ps);
  if (e->fresh) gt_ps_position_take(ps);
  e->fresh = false;
  return GT_OK;
}

/* ---- the new epoch --------------------------------------------------------------------------- */

/* A member announces its end again. */
static void reset_peer(gt_ps *ps, size_t p, int64_t round) {
  ps_peer *peer = &ps->peers[p];
  peer->done = peer->done_told = peer->joined = peer->late = false;
  peer->dones = peer->joins = 0;
  peer->done_seq = peer->late_ack = 0;
  peer->written = peer->round = round;
}

void gt_ps_forget_states(gt_ps *ps, size_t peer) {
  ps_epoch *e = &ps->epoch;
  for (size_t i = e->nstates; i-- > 0;) {
    if (e->states[i].peer != peer) continue;
    gt_free(e->states[i].bytes);
    e->states[i] = e->states[--e->nstates];
  }
}

static void renew_links(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  const size_t self = ps->spec.self;
  const bool all = !gt_exchange_continues(ps->exchange) || d->late[self] || e->outside;
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    const bool was = e->member[p];
    e->member[p] = d->members[p];
    e->late[p] = d->late[p];
    if (d->members[p]) e->joins[p] = false;
    if (p == self) continue;
    reset_peer(ps, p, d->round);
    if (!d->members[p]) {
      gt_outbox_renew(ps->outbox, p, false);
    } else if (all || d->late[p] || !was) {
      gt_outbox_renew(ps->outbox, p, true);
      gt_outbox_hold(ps->outbox, p, true); /* it can be not connected yet */
      e->since[p] = d->number;
    }
    if (e->ready[p] >= d->number) gt_outbox_hold(ps->outbox, p, false);
  }
}

/* Gives the group of regions its members, next hops and weights; returns the number that trains. */
static size_t place_members(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  const gt_ps_host *host = &ps->spec.host;
  size_t *list = GT_NEW_ARRAY(size_t, ps->spec.nregions), n = 0, trains = 0;
  double all = 0;
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (e->member[r]) list[n++] = r;
  gt_ps_group_close(&ps->replicas);
  gt_ps_group_open(&ps->replicas, ps, list, n);
  gt_free(list);
  for (size_t i = 0; i < n; i++) all += ps->spec.weights[ps->replicas.regions[i]];
  for (size_t i = 0; i < n; i++) {
    const double weight = ps->spec.weights[ps->replicas.regions[i]];
    e->weights[i] = weight / all;
    trains += weight > 0;
  }
  if (ps->next) host->place(host->ctx, ps->replicas.regions, n, ps->next);
  return trains;
}

static void regroup(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  const size_t trains = place_members(ps), n = ps->replicas.n;
  bool *late = GT_NEW_ARRAY(bool, n);
  for (size_t i = 0; i < n; i++) late[i] = d->late[ps->replicas.regions[i]];
  gt_outbox_epoch(ps->outbox, d->number, ps->replicas.self);
  gt_sync_regroup(ps->sync, n, ps->replicas.self, e->weights, trains);
  const gt_exchange_group group = {.nregions = n,
                                   .self = ps->replicas.self,
                                   .weights = e->weights,
                                   .next = ps->next,
                                   .regions = ps->replicas.regions,
                                   .late = late,
                                   .applied = d->applied,
                                   .floor = d->floor,
                                   .again = e->fresh};
  gt_exchange_regroup(ps->exchange, &group);
  gt_free(late);
}

static void note_needs(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  for (size_t i = 0; i < gt_exchange_ranges(ps->exchange); i++) {
    e->source[i] = d->source[i];
    e->needs[i] = gt_exchange_has_state(ps->exchange, i) &&
                  (e->fresh || gt_exchange_progress_of(ps->exchange, i).applied < d->applied[i]);
  }
}

/* A checkpoint round that was not complete is void: the decider opens the next one. */
static void renew_round(gt_ps *ps, int64_t round) {
  ps->round = ps->whole_round = ps->own_written = round;
  gt_outbox_round(ps->outbox, round);
  if (ps->stop_code != GT_OK && ps->want_stop == GT_OK) ps->want_stop = ps->stop_code;
  ps->stop_code = GT_OK;
  ps->want_round = gt_ps_first_member(ps) == ps->spec.self;
}

void gt_ps_enter_epoch(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  const double residual = gt_ps_residual(ps);
  if (gt_exchange_continues(ps->exchange) && !e->fresh) { /* takes what is held: it has a number */
    gt_exchange_pause(ps->exchange, false);
    gt_exchange_start(ps->exchange);
  }
  note_needs(ps, d);
  gt_ps_position_note(ps, d);
  renew_links(ps, d);
  e->number = d->number;
  e->outside = false;
  e->late_self = d->late[ps->spec.self];
  e->place = d->place;
  regroup(ps, d);
  gt_outbox_retry(ps->outbox);
  renew_round(ps, d->round);
  if (!e->fresh) take_place(ps);
  ps->told = 0;
  /* it sends its contributions again, and announces its end after them */
  if (ps->phase == GT_PS_FOLLOWING || ps->phase == GT_PS_COMPLETE) {
    ps->phase = ps->totals.phase = GT_PS_DRAINING;
    ps->phase_since = ps->now;
  }
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_EPOCH, (double)d->number,
                     residual - gt_ps_residual(ps));
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

void gt_ps_epoch_save(gt_ps *ps, gt_state *state) {
  ps_epoch *e = &ps->epoch;
  if (!e->changes) return;
  e->unfit = e->fresh || needs_any(ps) ? GT_PS_UNFIT_ALWAYS : gt_ps_is_unfit(ps);
  gt_state_add(state, "ps/epoch/", "number", GT_TYPE_I64, &e->number, 1);
  gt_state_add(state, "ps/epoch/", "unfit", GT_TYPE_I64, &e->unfit, 1);
  (void)gt_state_flags((gt_state_direction){.to = state}, "ps/epoch/", "members", e->member,
                       ps->spec.nregions);
  (void)gt_ps_position_state(ps, (gt_state_direction){.to = state});
}

/* The exchange of the checkpoint was among the members of its epoch. */
static void load_members(gt_ps *ps, const bool *members) {
  ps_epoch *e = &ps->epoch;
  ps_decision d;
  gt_ps_decision_open(ps, &d);
  d.number = e->number;
  memcpy(d.members, members, ps->spec.nregions * sizeof *members);
  memcpy(e->member, members, ps->spec.nregions * sizeof *members);
  regroup(ps, &d);
  gt_ps_decision_close(&d);
}

gt_status gt_ps_epoch_load(gt_ps *ps, const gt_state *state) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  const bool fresh = e->fresh;
  if (!e->changes) return GT_OK;
  bool *members = GT_NEW_ARRAY(bool, n);
  gt_status status = gt_state_get(state, "ps/epoch/", "number", GT_TYPE_I64, &e->number, 1);
  if (status == GT_OK)
    status =
        gt_state_flags((gt_state_direction){.from = state}, "ps/epoch/", "members", members, n);
  if (status == GT_OK) status = gt_ps_position_state(ps, (gt_state_direction){.from = state});
  if (status == GT_OK && (e->number < 0 || e->number > UINT16_MAX || !members[ps->spec.self]))
    status = GT_FAIL(GT_ERR_CKPT, "the checkpoint is of epoch %lld, with this region as no member",
                     (long long)e->number);
  if (e->promised < e->number) e->promised = e->number;
  e->fresh = false;
  if (status == GT_OK && e->number > 0) load_members(ps, members);
  e->fresh = fresh;
  for (size_t r = 0; r < n; r++)
    if (status == GT_OK && e->outside) e->member[r] = r == ps->spec.self;
  gt_free(members);
  return status;
}
