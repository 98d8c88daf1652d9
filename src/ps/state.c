/* What the PS saves and loads: totals, batch numbers not returned, sequences, unacknowledged
   messages, and its strategy and optimizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Collects the numbers that are to be given out again and those that workers hold; returns their
   count.  With stages all workers hold the same one. */
static size_t collect_unreturned(gt_ps *ps) {
  size_t need = ps->nreissue + ps->spec.nworkers, n = ps->nreissue;
  if (ps->unreturned_capacity < need) {
    gt_free(ps->unreturned);
    ps->unreturned = GT_NEW_ARRAY(int64_t, need);
    ps->unreturned_capacity = need;
  }
  if (n) memcpy(ps->unreturned, ps->reissue, n * sizeof *ps->reissue);
  const size_t holders = ps->spec.nstages ? 1 : ps->spec.nworkers;
  for (size_t w = 0; w < holders; w++)
    if (ps->workers[w].has_batch) ps->unreturned[n++] = ps->workers[w].batch;
  if (n) qsort(ps->unreturned, n, sizeof *ps->unreturned, ascending);
  return n;
}

/* A body that is sent to several peers is saved once, under its number. */
static void save_body(const gt_ps *ps, ps_message *m, gt_state *state) {
  char name[32];
  m->saved_as = 0;
  while (ps->pool[m->saved_as] != m->payload) m->saved_as++;
  snprintf(name, sizeof name, "%lld", (long long)m->saved_as);
  if (!gt_state_find(state, "ps/message/", name))
    gt_state_add(state, "ps/message/", name, GT_TYPE_F32, m->payload->vec.data, m->payload->vec.n);
}

static void save_peer(gt_ps *ps, size_t peer, gt_state *state) {
  ps_peer *p = &ps->peers[peer];
  char prefix[64], name[64];
  snprintf(prefix, sizeof prefix, "ps/peer/%zu/", peer);
  gt_state_add(state, prefix, "sent_seq", GT_TYPE_I64, &p->sent_seq, 1);
  gt_state_add(state, prefix, "applied_seq", GT_TYPE_I64, &p->applied_seq, 1);
  gt_state_add(state, prefix, "wan_bytes", GT_TYPE_F64, &p->wan_bytes, 1);
  gt_ps_measured_save(p, prefix, state);
  for (size_t i = 0; i < p->n; i++) {
    ps_message *m = &p->messages[i];
    snprintf(name, sizeof name, "unacknowledged/%zu/head", i);
    gt_state_add(state, prefix, name, GT_TYPE_U8, &m->head, gt_header_bytes(&m->head));
    save_body(ps, m, state);
    snprintf(name, sizeof name, "unacknowledged/%zu/message", i);
    gt_state_add(state, prefix, name, GT_TYPE_I64, &m->saved_as, 1);
    snprintf(name, sizeof name, "unacknowledged/%zu/first", i);
    if (m->first > 0) gt_state_add(state, prefix, name, GT_TYPE_I64, &m->first, 1);
  }
}

void gt_ps_save(gt_ps *ps, gt_ns now, gt_state *state) {
  ps->now = now;
  size_t n = collect_unreturned(ps);
  gt_state_add(state, "ps/", "totals", GT_TYPE_I64, &ps->totals, PS_TOTALS);
  gt_state_add(state, "ps/", "unreturned", GT_TYPE_I64, ps->unreturned, n);
  for (size_t p = 0; p < ps->spec.nregions; p++) save_peer(ps, p, state);
  gt_optim_save(ps->spec.optim, "", state);
  gt_sync_save(ps->sync, state);
  if (ps->between) gt_sync_save(ps->between, state);
  gt_ps_norm_save(ps, state);
  gt_ps_adapt_save(ps, state);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* A message that is sent again needs a place beside those that may be under way. */
static void make_room(ps_peer *p) {
  p->capacity++;
}

/* Bodies that have been loaded: the first n pairs. */
typedef struct {
  const gt_state *state;
  size_t n;
  struct {
    const gt_state_item *item;
    gt_payload *payload;
  } * pairs; /* as many as the state has items */
} ps_bodies;

/* The body of a peer's message i: by its number, or, in files without numbers, next to the
   message. */
static gt_status find_body(const gt_state *state, const char *prefix, size_t i,
                           const gt_state_item **body) {
  char name[64], number[32];
  int64_t at;
  snprintf(name, sizeof name, "unacknowledged/%zu/payload", i);
  if ((*body = gt_state_find(state, prefix, name)) != NULL) return GT_OK;
  snprintf(name, sizeof name, "unacknowledged/%zu/message", i);
  GT_TRY(gt_state_get(state, prefix, name, GT_TYPE_I64, &at, 1));
  snprintf(number, sizeof number, "%lld", (long long)at);
  if ((*body = gt_state_find(state, "ps/message/", number)) != NULL) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s%s names ps/message/%s, which is not there", prefix, name, number);
}

/* One payload for all peers to which the body is sent. */
static gt_payload *load_body(gt_ps *ps, ps_bodies *bodies, const gt_state_item *item) {
  for (size_t i = 0; i < bodies->n; i++)
    if (bodies->pairs[i].item == item) return bodies->pairs[i].payload;
  gt_payload *payload = gt_ps_payload(ps, item->count);
  if (payload->vec.data) memcpy(payload->vec.data, item->data, item->count * sizeof(float));
  bodies->pairs[bodies->n].item = item;
  bodies->pairs[bodies->n++].payload = payload;
  return payload;
}

/* A header of 64 bytes, or of 96 with its route. */
static gt_status load_head(const gt_state *state, const char *prefix, const char *name,
                           gt_frame_header *head) {
  const gt_state_item *item = gt_state_find(state, prefix, name);
  *head = (gt_frame_header){0};
  GT_TRY(gt_state_get(state, prefix, name, GT_TYPE_U8, head,
                      item->count == GT_FRAME_HEADER_MAX ? GT_FRAME_HEADER_MAX
                                                         : GT_FRAME_HEADER_BYTES));
  if (item->count != gt_header_bytes(head))
    return GT_FAIL(GT_ERR_CKPT, "%s%s has %zu bytes, and other flags", prefix, name, item->count);
  if (!gt_msg_is_data(head->kind))
    return GT_FAIL(GT_ERR_CKPT, "%s is of kind %u, and needs to be data", prefix, head->kind);
  return GT_OK;
}

/* Message i of a peer: the floats first..first + n of its body. */
static gt_status load_part(const gt_ps *ps, const gt_state *state, const char *prefix, size_t i,
                           const gt_frame_header *head, const gt_state_item *body, size_t *first,
                           size_t *n) {
  char name[64];
  int64_t from = 0;
  const bool routed = (head->flags & GT_FRAME_ROUTED) != 0;
  snprintf(name, sizeof name, "unacknowledged/%zu/first", i);
  if (gt_state_find(state, prefix, name))
    GT_TRY(gt_state_get(state, prefix, name, GT_TYPE_I64, &from, 1));
  *n = routed ? (size_t)head->route.count
              : ps->spec.params.n + (head->kind == GT_MSG_STATE ? ps->spec.buffers.n : 0);
  *first = (size_t)from;
  const bool fits = from >= 0 && *first <= body->count && *n <= body->count - *first &&
                    (routed || *n == body->count);
  if (body->type == GT_TYPE_F32 && fits) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s, of message %zu of %s, does not fit this model", body->name, i,
                 prefix);
}

/* Messages that were not acknowledged are queued again, with their old sequence numbers. */
static gt_status load_messages(gt_ps *ps, size_t peer, ps_bodies *bodies) {
  ps_peer *p = &ps->peers[peer];
  char prefix[64], name[64];
  snprintf(prefix, sizeof prefix, "ps/peer/%zu/", peer);
  for (size_t i = 0;; i++) {
    snprintf(name, sizeof name, "unacknowledged/%zu/head", i);
    if (!gt_state_find(bodies->state, prefix, name)) return GT_OK;
    gt_frame_header head;
    const gt_state_item *body;
    size_t first, n;
    GT_TRY(load_head(bodies->state, prefix, name, &head));
    GT_TRY(find_body(bodies->state, prefix, i, &body));
    GT_TRY(load_part(ps, bodies->state, prefix, i, &head, body, &first, &n));
    make_room(p);
    head.round = (uint32_t)ps->round;
    gt_ps_enqueue(ps, peer, &head, load_body(ps, bodies, body), first, n);
    p->messages[p->n - 1].resent = true;
  }
}

static gt_status load_peer(gt_ps *ps, size_t peer, const gt_state *state) {
  ps_peer *p = &ps->peers[peer];
  char prefix[64];
  snprintf(prefix, sizeof prefix, "ps/peer/%zu/", peer);
  GT_TRY(gt_state_get(state, prefix, "sent_seq", GT_TYPE_I64, &p->sent_seq, 1));
  GT_TRY(gt_state_get(state, prefix, "applied_seq", GT_TYPE_I64, &p->applied_seq, 1));
  p->received_seq = p->applied_seq;
  GT_TRY(gt_ps_measured_load(ps, p, prefix, state));
  return gt_state_get(state, prefix, "wan_bytes", GT_TYPE_F64, &p->wan_bytes, 1);
}

static gt_status load_outboxes(gt_ps *ps, const gt_state *state) {
  ps_bodies bodies = {.state = state};
  bodies.pairs = gt_alloc(state->n + 1, sizeof *bodies.pairs);
  gt_status status = GT_OK;
  for (size_t p = 0; p < ps->spec.nregions && status == GT_OK; p++)
    status = load_messages(ps, p, &bodies);
  gt_free(bodies.pairs);
  return status;
}

/* A longer `until` makes a region that was done train again. */
static void load_phase(gt_ps *ps) {
  ps->phase = GT_PS_TRAINING;
  ps->came_back = ps->totals.phase != GT_PS_TRAINING;
  if (ps->nreissue == 0 && !gt_ps_may_issue(ps)) ps->phase = (gt_ps_phase)ps->totals.phase;
  /* until all have said again that they are done: another may have more to train */
  if (ps->phase == GT_PS_COMPLETE) ps->phase = GT_PS_FOLLOWING;
  ps->came_back = ps->came_back && ps->phase == GT_PS_TRAINING;
  ps->totals.phase = ps->phase;
}

static gt_status load_numbers(gt_ps *ps, const gt_state *state) {
  GT_TRY(gt_state_get(state, "ps/", "totals", GT_TYPE_I64, &ps->totals, PS_TOTALS));
  int64_t next = ps->totals.next_batch, phase = ps->totals.phase;
  if (next < 0 || phase < GT_PS_TRAINING || phase > GT_PS_STOPPED)
    return GT_FAIL(GT_ERR_CKPT, "ps/totals has batch %lld and phase %lld, which cannot be",
                   (long long)next, (long long)phase);
  const gt_state_item *numbers = gt_state_find(state, "ps/", "unreturned");
  if (!numbers || numbers->type != GT_TYPE_I64)
    return GT_FAIL(GT_ERR_CKPT, "ps/unreturned is missing, or no list of numbers");
  gt_free(ps->reissue);
  ps->nreissue = numbers->count;
  ps->reissue = GT_NEW_ARRAY(int64_t, numbers->count + 1);
  if (numbers->count) memcpy(ps->reissue, numbers->data, numbers->count * sizeof *ps->reissue);
  for (size_t i = 0; i < ps->nreissue; i++)
    if (ps->reissue[i] < 0 || ps->reissue[i] >= next)
      return GT_FAIL(GT_ERR_CKPT, "ps/unreturned has batch %lld; below %lld is needed",
                     (long long)ps->reissue[i], (long long)next);
  return GT_OK;
}

gt_status gt_ps_load(gt_ps *ps, gt_ns now, const gt_state *state) {
  ps->now = now;
  GT_TRY(load_numbers(ps, state));
  for (size_t p = 0; p < ps->spec.nregions; p++) GT_TRY(load_peer(ps, p, state));
  gt_ps_budget_load(ps);
  GT_TRY(load_outboxes(ps, state));
  GT_TRY(gt_optim_load(ps->spec.optim, "", state));
  GT_TRY(gt_sync_load(ps->sync, state));
  if (ps->between) GT_TRY(gt_sync_load(ps->between, state));
  GT_TRY(gt_ps_norm_load(ps, state));
  GT_TRY(gt_ps_adapt_load(ps, state));
  load_phase(ps);
  gt_ps_eval_again(ps);
  ps->resumed = true;
  return GT_OK;
}
