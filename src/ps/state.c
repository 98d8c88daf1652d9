/* What the PS saves and loads: totals, batch numbers not returned, sequences, unacknowledged messages, and its strategy and optimizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Collects the numbers that are to be given out again and those that workers hold; returns their
   count. */
static size_t collect_unreturned(gt_ps *ps) {
  size_t need = ps->nreissue + ps->spec.nworkers, n = ps->nreissue;
  if (ps->unreturned_capacity < need) {
    gt_free(ps->unreturned);
    ps->unreturned = GT_NEW_ARRAY(int64_t, need);
    ps->unreturned_capacity = need;
  }
  if (n) memcpy(ps->unreturned, ps->reissue, n * sizeof *ps->reissue);
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].has_batch) ps->unreturned[n++] = ps->workers[w].batch;
  qsort(ps->unreturned, n, sizeof *ps->unreturned, ascending);
  return n;
}

/* A body that is sent to several peers is saved once, under its number. */
static void save_body(const gt_ps *ps, ps_message *m, gt_state *state) {
  char name[32];
  m->saved_as = 0;
  while (ps->pool[m->saved_as] != m->payload) m->saved_as++;
  snprintf(name, sizeof name, "%lld", (long long)m->saved_as);
  if (!gt_state_find(state, "ps/message/", name)) gt_state_add(state, "ps/message/", name, GT_TYPE_F32, m->payload->vec.data, m->payload->vec.n);
}

static void save_peer(gt_ps *ps, size_t peer, gt_state *state) {
  ps_peer *p = &ps->peers[peer];
  char prefix[64], name[64];
  snprintf(prefix, sizeof prefix, "ps/peer/%zu/", peer);
  gt_state_add(state, prefix, "sent_seq", GT_TYPE_I64, &p->sent_seq, 1);
  gt_state_add(state, prefix, "applied_seq", GT_TYPE_I64, &p->applied_seq, 1);
  gt_state_add(state, prefix, "wan_bytes", GT_TYPE_F64, &p->wan_bytes, 1);
  for (size_t i = 0; i < p->n; i++) {
    ps_message *m = &p->messages[i];
    snprintf(name, sizeof name, "unacknowledged/%zu/head", i);
    gt_state_add(state, prefix, name, GT_TYPE_U8, &m->head, sizeof m->head);
    save_body(ps, m, state);
    snprintf(name, sizeof name, "unacknowledged/%zu/message", i);
    gt_state_add(state, prefix, name, GT_TYPE_I64, &m->saved_as, 1);
  }
}

void gt_ps_save(gt_ps *ps, gt_ns now, gt_state *state) {
  ps->now = now;
  size_t n = collect_unreturned(ps);
  gt_state_add(state, "ps/", "totals", GT_TYPE_I64, &ps->totals, PS_TOTALS);
  gt_state_add(state, "ps/", "unreturned", GT_TYPE_I64, ps->unreturned, n);
  for (size_t p = 0; p < ps->spec.nregions; p++) save_peer(ps, p, state);
  gt_optim_save(ps->spec.optim, state);
  gt_sync_save(ps->sync, state);
}

/* ---- loading ------------------------------------------------------------------------------------------------------------- */

/* A message that is sent again needs a place beside those that may be under way. */
static void make_room(gt_ps *ps, ps_peer *p) {
  size_t pool = ps->pool_capacity;
  p->capacity++;
  ps->pool_capacity++;
  gt_payload **payloads = GT_NEW_ARRAY(gt_payload *, ps->pool_capacity);
  memcpy(payloads, ps->pool, pool * sizeof(gt_payload *));
  gt_free(ps->pool);
  ps->pool = payloads;
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
static gt_status find_body(const gt_state *state, const char *prefix, size_t i, const gt_state_item **body) {
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
    GT_TRY(gt_state_get(bodies->state, prefix, name, GT_TYPE_U8, &head, sizeof head));
    GT_TRY(find_body(bodies->state, prefix, i, &body));
    size_t full = ps->spec.params.n + ps->spec.buffers.n;
    size_t need = head.kind == GT_MSG_STATE ? full : ps->spec.params.n;
    if (!gt_msg_is_data(head.kind)) return GT_FAIL(GT_ERR_CKPT, "%s is of kind %u, and needs to be data", prefix, head.kind);
    if (body->type != GT_TYPE_F32 || body->count != need)
      return GT_FAIL(GT_ERR_CKPT, "%s, of message %zu of %s, does not fit this model", body->name, i, prefix);
    make_room(ps, p);
    head.round = (uint32_t)ps->round;
    gt_ps_enqueue(ps, peer, &head, load_body(ps, bodies, body));
    p->messages[p->n - 1].resent = true;
  }
}

static gt_status load_peer(gt_ps *ps, size_t peer, const gt_state *state) {
  ps_peer *p = &ps->peers[peer];
  char prefix[64];
  snprintf(prefix, sizeof prefix, "ps/peer/%zu/", peer);
  GT_TRY(gt_state_get(state, prefix, "sent_seq", GT_TYPE_I64, &p->sent_seq, 1));
  GT_TRY(gt_state_get(state, prefix, "applied_seq", GT_TYPE_I64, &p->applied_seq, 1));
  return gt_state_get(state, prefix, "wan_bytes", GT_TYPE_F64, &p->wan_bytes, 1);
}

static gt_status load_outboxes(gt_ps *ps, const gt_state *state) {
  ps_bodies bodies = {.state = state};
  bodies.pairs = gt_alloc(state->n + 1, sizeof *bodies.pairs);
  gt_status status = GT_OK;
  for (size_t p = 0; p < ps->spec.nregions && status == GT_OK; p++) status = load_messages(ps, p, &bodies);
  gt_free(bodies.pairs);
  return status;
}

/* A longer `until` makes a region that was done train again. */
static void load_phase(gt_ps *ps) {
  ps->phase = GT_PS_TRAINING;
  if (ps->nreissue == 0 && !gt_ps_may_issue(ps)) ps->phase = (gt_ps_phase)ps->totals.phase;
  if (ps->phase == GT_PS_COMPLETE) ps->phase = GT_PS_FOLLOWING; /* until all have said again that they are done: another may have more to train */
  ps->totals.phase = ps->phase;
}

static gt_status load_numbers(gt_ps *ps, const gt_state *state) {
  GT_TRY(gt_state_get(state, "ps/", "totals", GT_TYPE_I64, &ps->totals, PS_TOTALS));
  int64_t next = ps->totals.next_batch, phase = ps->totals.phase;
  if (next < 0 || phase < GT_PS_TRAINING || phase > GT_PS_STOPPED)
    return GT_FAIL(GT_ERR_CKPT, "ps/totals has batch %lld and phase %lld, which cannot be", (long long)next, (long long)phase);
  const gt_state_item *numbers = gt_state_find(state, "ps/", "unreturned");
  if (!numbers || numbers->type != GT_TYPE_I64) return GT_FAIL(GT_ERR_CKPT, "ps/unreturned is missing, or no list of numbers");
  gt_free(ps->reissue);
  ps->nreissue = numbers->count;
  ps->reissue = GT_NEW_ARRAY(int64_t, numbers->count + 1);
  if (numbers->count) memcpy(ps->reissue, numbers->data, numbers->count * sizeof *ps->reissue);
  for (size_t i = 0; i < ps->nreissue; i++)
    if (ps->reissue[i] < 0 || ps->reissue[i] >= next)
      return GT_FAIL(GT_ERR_CKPT, "ps/unreturned has batch %lld; below %lld is needed", (long long)ps->reissue[i], (long long)next);
  return GT_OK;
}

gt_status gt_ps_load(gt_ps *ps, gt_ns now, const gt_state *state) {
  ps->now = now;
  GT_TRY(load_numbers(ps, state));
  for (size_t p = 0; p < ps->spec.nregions; p++) GT_TRY(load_peer(ps, p, state));
  gt_ps_budget_load(ps);
  GT_TRY(load_outboxes(ps, state));
  GT_TRY(gt_optim_load(ps->spec.optim, state));
  GT_TRY(gt_sync_load(ps->sync, state));
  load_phase(ps);
  ps->resumed = true;
  return GT_OK;
}
