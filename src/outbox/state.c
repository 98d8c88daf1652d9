/* Saves and loads sequences, measurements and unacknowledged messages. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Bodies are saved as float32, encoded ones as bytes. */
#define FLOATS(bytes) ((bytes) / sizeof(float))

static void prefix_of(size_t peer, char text[64]) {
  snprintf(text, 64, "ps/peer/%zu/", peer);
}

static void name_of(size_t i, const char *what, char text[64]) {
  snprintf(text, 64, "unacknowledged/%zu/%s", i, what);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* A body with several receivers is saved once, under its number. */
static void save_body(const gt_outbox *o, outbox_message *m, gt_state *state) {
  char name[32];
  m->saved.body = 0;
  while (o->pool[m->saved.body] != m->payload) m->saved.body++;
  snprintf(name, sizeof name, "%lld", (long long)m->saved.body);
  if (gt_state_find(state, "ps/message/", name)) return;
  if (m->head.codec)
    gt_state_add(state, "ps/message/", name, GT_TYPE_U8, m->payload->data, m->payload->bytes);
  else
    gt_state_add(state, "ps/message/", name, GT_TYPE_F32, m->payload->data,
                 FLOATS(m->payload->bytes));
}

static void save_peer(gt_outbox *o, size_t peer, gt_state *state) {
  outbox_peer *p = &o->peers[peer];
  char prefix[64], name[64];
  prefix_of(peer, prefix);
  gt_state_add(state, prefix, "sent_seq", GT_TYPE_I64, &p->sent, 1);
  gt_state_add(state, prefix, "applied_seq", GT_TYPE_I64, &p->taken, 1);
  gt_state_add(state, prefix, "wan_bytes", GT_TYPE_F64, &p->wan_bytes, 1);
  gt_state_add(state, prefix, "measured", GT_TYPE_F64, &p->measured, OUTBOX_MEASURED);
  for (size_t i = 0; i < p->n; i++) {
    outbox_message *m = &p->messages[i];
    name_of(i, "head", name);
    gt_state_add(state, prefix, name, GT_TYPE_U8, &m->head, gt_header_bytes(&m->head));
    save_body(o, m, state);
    name_of(i, "message", name);
    gt_state_add(state, prefix, name, GT_TYPE_I64, &m->saved.body, 1);
    m->saved.first = (int64_t)FLOATS(m->first);
    name_of(i, "first", name);
    if (m->first > 0) gt_state_add(state, prefix, name, GT_TYPE_I64, &m->saved.first, 1);
  }
}

void gt_outbox_save(gt_outbox *o, gt_state *state) {
  for (size_t p = 0; p < o->spec.nregions; p++) save_peer(o, p, state);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* The loaded bodies: the first n pairs. */
typedef struct {
  const gt_state *state;
  size_t (*size)(const void *ctx, const gt_frame_header *head);
  const void *ctx;
  size_t n;
  struct {
    const gt_state_item *item;
    gt_payload *payload;
  } * pairs; /* as many as the state has items */
} loaded;

/* Finds the body of a peer's message i: by its number or, in files without numbers, next to the
   message. */
static gt_status find_body(const gt_state *state, const char *prefix, size_t i,
                           const gt_state_item **body) {
  char name[64], number[32];
  int64_t at;
  name_of(i, "payload", name);
  if ((*body = gt_state_find(state, prefix, name)) != NULL) return GT_OK;
  name_of(i, "message", name);
  GT_TRY(gt_state_get(state, prefix, name, GT_TYPE_I64, &at, 1));
  snprintf(number, sizeof number, "%lld", (long long)at);
  if ((*body = gt_state_find(state, "ps/message/", number)) != NULL) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s%s names ps/message/%s, which is not there", prefix, name, number);
}

/* Returns one payload for all receivers of the body. */
static gt_payload *load_body(gt_outbox *o, loaded *all, const gt_state_item *item) {
  for (size_t i = 0; i < all->n; i++)
    if (all->pairs[i].item == item) return all->pairs[i].payload;
  const size_t each = item->type == GT_TYPE_U8 ? 1 : sizeof(float);
  gt_payload *payload = gt_outbox_body(o, item->count * each);
  if (payload->data) memcpy(payload->data, item->data, payload->bytes);
  all->pairs[all->n].item = item;
  all->pairs[all->n++].payload = payload;
  return payload;
}

/* Loads a header of 64 bytes, or of 96 with its route. */
static gt_status load_head(const gt_state *state, const char *prefix, size_t i,
                           gt_frame_header *head) {
  char name[64];
  name_of(i, "head", name);
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

/* Loads message i of a peer: `bytes` bytes of its body from `first` on. */
static gt_status load_part(const loaded *all, const char *prefix, size_t i,
                           const gt_frame_header *head, const gt_state_item *body, size_t *first,
                           size_t *bytes) {
  char name[64];
  int64_t from = 0;
  const bool routed = (head->flags & GT_FRAME_ROUTED) != 0;
  gt_frame_header sent = *head;
  sent.message_bytes = body->count * sizeof(float);
  *first = 0;
  *bytes = body->count;
  if (head->codec && body->type == GT_TYPE_U8) return GT_OK;
  name_of(i, "first", name);
  if (gt_state_find(all->state, prefix, name))
    GT_TRY(gt_state_get(all->state, prefix, name, GT_TYPE_I64, &from, 1));
  const size_t n = routed ? (size_t)head->route.count : FLOATS(all->size(all->ctx, &sent));
  const bool fits = from >= 0 && (uint64_t)from <= body->count && n <= body->count - (size_t)from &&
                    (routed || n == body->count);
  *first = (size_t)from * sizeof(float);
  *bytes = n * sizeof(float);
  if (body->type == GT_TYPE_F32 && fits) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s, of message %zu of %s, does not fit this model", body->name, i,
                 prefix);
}

/* Queues unacknowledged messages again, with their old sequence numbers; each has a place in
   addition to those that can be in flight. */
static gt_status load_messages(gt_outbox *o, size_t peer, loaded *all) {
  outbox_peer *p = &o->peers[peer];
  char prefix[64], name[64];
  prefix_of(peer, prefix);
  for (size_t i = 0;; i++) {
    gt_frame_header head;
    const gt_state_item *body;
    size_t first, bytes;
    name_of(i, "head", name);
    if (!gt_state_find(all->state, prefix, name)) return GT_OK;
    GT_TRY(load_head(all->state, prefix, i, &head));
    GT_TRY(find_body(all->state, prefix, i, &body));
    GT_TRY(load_part(all, prefix, i, &head, body, &first, &bytes));
    p->capacity++;
    head.round = (uint32_t)o->round;
    gt_outbox_enqueue(o, peer, &head, load_body(o, all, body), first, bytes);
    p->messages[p->n - 1].resent = true;
  }
}

static gt_status load_peer(gt_outbox *o, size_t peer, const gt_state *state) {
  outbox_peer *p = &o->peers[peer];
  char prefix[64];
  prefix_of(peer, prefix);
  GT_TRY(gt_state_get(state, prefix, "sent_seq", GT_TYPE_I64, &p->sent, 1));
  GT_TRY(gt_state_get(state, prefix, "applied_seq", GT_TYPE_I64, &p->taken, 1));
  p->received = p->taken;
  GT_TRY(gt_links_load(o, p, prefix, state));
  return gt_state_get(state, prefix, "wan_bytes", GT_TYPE_F64, &p->wan_bytes, 1);
}

gt_status gt_outbox_load(gt_outbox *o, const gt_state *state, double left,
                         size_t (*size)(const void *ctx, const gt_frame_header *head),
                         const void *ctx) {
  loaded all = {.state = state, .size = size, .ctx = ctx};
  gt_status status = GT_OK;
  for (size_t p = 0; p < o->spec.nregions; p++) GT_TRY(load_peer(o, p, state));
  gt_account_load(o, left);
  all.pairs = gt_alloc(state->n + 1, sizeof *all.pairs);
  for (size_t p = 0; p < o->spec.nregions && status == GT_OK; p++)
    status = load_messages(o, p, &all);
  gt_free(all.pairs);
  return status;
}
