/* The queue of messages for a link: a ring that doubles when full. */
#include "internal.h"

#define FIRST_CAPACITY 8

static void grow(gt_out_queue *q) {
  size_t capacity = q->capacity ? 2 * q->capacity : FIRST_CAPACITY;
  gt_out_message *at = GT_NEW_ARRAY(gt_out_message, capacity);
  for (size_t i = 0; i < q->n; i++) at[i] = *gt_queue_at(q, i);
  gt_free(q->at);
  q->at = at;
  q->capacity = capacity;
  q->first = 0;
}

gt_out_message *gt_queue_at(const gt_out_queue *q, size_t i) {
  return &q->at[(q->first + i) % q->capacity];
}

gt_out_message *gt_queue_push(gt_out_queue *q) {
  if (q->n == q->capacity) grow(q);
  return gt_queue_at(q, q->n++);
}

void gt_queue_pop(gt_out_queue *q) {
  gt_free(gt_queue_at(q, 0)->owned);
  q->first = (q->first + 1) % q->capacity;
  q->n--;
}

void gt_queue_remove(gt_out_queue *q, size_t i) {
  gt_free(gt_queue_at(q, i)->owned);
  for (q->n--; i < q->n; i++) *gt_queue_at(q, i) = *gt_queue_at(q, i + 1);
}

void gt_queue_close(gt_out_queue *q) {
  while (q->n) gt_queue_pop(q);
  gt_free(q->at);
  *q = (gt_out_queue){0};
}
