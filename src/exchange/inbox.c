/* Received messages that wait for messages of other regions: a queue per peer. */
#include "inbox.h"

#include <stdio.h>

void gt_inbox_open(gt_inbox *inbox, size_t nregions, size_t expected, size_t n, bool with_memory,
                   bool pieces) {
  *inbox = (gt_inbox){.nregions = nregions,
                      .n = n,
                      .with_memory = with_memory && n > 0,
                      .pieces = pieces,
                      .spare_capacity = nregions * expected};
  inbox->queues = GT_NEW_ARRAY(gt_inbox_queue, nregions);
  for (size_t i = 0; i < nregions; i++)
    inbox->queues[i] =
        (gt_inbox_queue){.ring = GT_NEW_ARRAY(gt_inbox_slot, expected), .capacity = expected};
  inbox->spare = GT_NEW_ARRAY(float *, inbox->spare_capacity);
}

void gt_inbox_close(gt_inbox *inbox) {
  for (size_t i = 0; inbox->queues && i < inbox->nregions; i++) {
    while (inbox->queues[i].count) gt_inbox_pop(inbox, i);
    gt_free(inbox->queues[i].ring);
  }
  while (inbox->nspare) gt_free(inbox->spare[--inbox->nspare]);
  gt_free(inbox->spare);
  gt_free(inbox->queues);
  *inbox = (gt_inbox){0};
}

/* Returns the slot k places after the oldest one; k must be less than the capacity. */
static gt_inbox_slot *slot_at(const gt_inbox_queue *queue, int64_t k) {
  size_t at = queue->head + (size_t)k;
  return &queue->ring[at < queue->capacity ? at : at - queue->capacity];
}

/* Grows the queue from c to 2 c + 1 slots, and `spare` by as many entries. */
static void grow(gt_inbox *inbox, gt_inbox_queue *queue) {
  const size_t capacity = 2 * queue->capacity + 1;
  gt_inbox_slot *ring = GT_NEW_ARRAY(gt_inbox_slot, capacity);
  for (int64_t k = 0; k < queue->count; k++) ring[k] = *slot_at(queue, k);
  gt_free(queue->ring);
  inbox->spare_capacity += capacity - queue->capacity;
  *queue = (gt_inbox_queue){.ring = ring, .capacity = capacity, .count = queue->count};
  float **spare = GT_NEW_ARRAY(float *, inbox->spare_capacity);
  for (size_t i = 0; i < inbox->nspare; i++) spare[i] = inbox->spare[i];
  gt_free(inbox->spare);
  inbox->spare = spare;
}

static gt_inbox_slot *add_slot(gt_inbox *inbox, size_t peer) {
  gt_inbox_queue *queue = &inbox->queues[peer];
  if ((size_t)queue->count == queue->capacity) grow(inbox, queue);
  gt_inbox_slot *slot = slot_at(queue, queue->count++);
  inbox->total++;
  float *data = NULL;
  if (inbox->with_memory)
    data = inbox->nspare ? inbox->spare[--inbox->nspare] : GT_NEW_ARRAY(float, inbox->n);
  slot->vec = gt_vec_of(data, inbox->n);
  return slot;
}

void gt_inbox_push(gt_inbox *inbox, size_t peer, int64_t value, double weight, gt_vec payload) {
  gt_inbox_slot *slot = add_slot(inbox, peer);
  slot->value = value;
  slot->weight = weight;
  slot->floats = (int64_t)payload.n;
  slot->vec.n = payload.n;
  gt_vec_copy(slot->vec, payload);
}

const gt_inbox_slot *gt_inbox_front(const gt_inbox *inbox, size_t peer) {
  return inbox->queues[peer].count ? slot_at(&inbox->queues[peer], 0) : NULL;
}

const gt_inbox_slot *gt_inbox_back(const gt_inbox *inbox, size_t peer) {
  const gt_inbox_queue *queue = &inbox->queues[peer];
  return queue->count ? slot_at(queue, queue->count - 1) : NULL;
}

void gt_inbox_pop(gt_inbox *inbox, size_t peer) {
  gt_inbox_queue *queue = &inbox->queues[peer];
  gt_inbox_slot *slot = slot_at(queue, 0);
  if (slot->vec.data) inbox->spare[inbox->nspare++] = slot->vec.data;
  slot->vec.data = NULL;
  queue->head = (queue->head + 1) % queue->capacity;
  queue->count--;
  inbox->total--;
}

int64_t gt_inbox_count(const gt_inbox *inbox, size_t peer) {
  return inbox->queues[peer].count;
}

bool gt_inbox_empty(const gt_inbox *inbox) {
  return inbox->total == 0;
}

/* Saves or loads a message.  A slot to load is new. */
static gt_status message_state(const gt_inbox *inbox, gt_inbox_slot *slot, const char *prefix,
                               gt_state_direction direction) {
  const gt_state_field pieces[] = {{"weight", GT_TYPE_F64, &slot->weight, 1},
                                   {"floats", GT_TYPE_I64, &slot->floats, 1}};
  const gt_state_field value = {"value", GT_TYPE_I64, &slot->value, 1};
  if (direction.from) slot->floats = (int64_t)inbox->n;
  GT_TRY(gt_state_fields(direction, prefix, &value, 1));
  if (inbox->pieces) GT_TRY(GT_STATE_FIELDS(direction, prefix, pieces));
  if (slot->floats < 0 || (uint64_t)slot->floats > inbox->n)
    return GT_FAIL(GT_ERR_CKPT, "state \"%sfloats\" is %lld; expected 0 to %zu", prefix,
                   (long long)slot->floats, inbox->n);
  slot->vec.n = (size_t)slot->floats;
  const gt_state_field data = {"data", GT_TYPE_F32, slot->vec.data, slot->vec.n};
  return slot->vec.n ? gt_state_fields(direction, prefix, &data, 1) : GT_OK;
}

gt_status gt_inbox_state(gt_inbox *inbox, const char *owner, gt_state_direction direction) {
  char prefix[64];
  for (size_t peer = 0; peer < inbox->nregions; peer++) {
    gt_inbox_queue *queue = &inbox->queues[peer];
    int64_t count = queue->count;
    const gt_state_field field = {"count", GT_TYPE_I64, direction.to ? &queue->count : &count, 1};
    while (direction.from && queue->count) gt_inbox_pop(inbox, peer);
    snprintf(prefix, sizeof prefix, "%sinbox/%zu/", owner, peer);
    GT_TRY(gt_state_fields(direction, prefix, &field, 1));
    if (count < 0)
      return GT_FAIL(GT_ERR_CKPT, "state \"%scount\" is %lld; expected 0 or more", prefix,
                     (long long)count);
    for (int64_t k = 0; k < count; k++) {
      snprintf(prefix, sizeof prefix, "%sinbox/%zu/%lld/", owner, peer, (long long)k);
      GT_TRY(message_state(inbox, direction.from ? add_slot(inbox, peer) : slot_at(queue, k),
                           prefix, direction));
    }
  }
  return GT_OK;
}
