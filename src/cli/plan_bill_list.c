/* A list of sets in which each is once. */
#include <string.h>

#include "plan_bill.h"

#define FIRST 64 /* sets that there is room for at first */

/* FNV-1a */
static size_t bucket_of(const bill_list *list, const int64_t *counts) {
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < list->width; i++) hash = (hash ^ (uint64_t)counts[i]) * 1099511628211U;
  return (size_t)(hash ^ hash >> 32) & (list->nbuckets - 1);
}

/* Where the set stands, or would. */
static size_t find(const bill_list *list, const int64_t *counts) {
  size_t at = bucket_of(list, counts), bytes = list->width * sizeof *counts;
  while (list->buckets[at] && memcmp(gt_bill_list_at(list, list->buckets[at] - 1), counts, bytes) != 0) at = (at + 1) & (list->nbuckets - 1);
  return at;
}

static void make_room(bill_list *list, size_t capacity) {
  int64_t *counts = GT_NEW_ARRAY(int64_t, capacity * list->width);
  if (list->n) memcpy(counts, list->counts, list->n * list->width * sizeof *counts);
  gt_free(list->counts);
  gt_free(list->buckets);
  list->counts = counts;
  list->capacity = capacity;
  list->nbuckets = 2 * capacity;
  list->buckets = GT_NEW_ARRAY(uint32_t, list->nbuckets);
  for (size_t i = 0; i < list->n; i++) list->buckets[find(list, gt_bill_list_at(list, i))] = (uint32_t)i + 1;
}

void gt_bill_list_open(bill_list *list, size_t width) {
  *list = (bill_list){.width = width};
  make_room(list, FIRST);
}

void gt_bill_list_close(bill_list *list) {
  gt_free(list->counts);
  gt_free(list->buckets);
  *list = (bill_list){0};
}

bool gt_bill_list_has(const bill_list *list, const int64_t *counts) {
  return list->buckets[find(list, counts)] != 0;
}

bool gt_bill_list_add(bill_list *list, const int64_t *counts) {
  if (gt_bill_list_has(list, counts)) return false;
  if (list->n == list->capacity) make_room(list, 2 * list->capacity);
  memcpy(list->counts + list->n * list->width, counts, list->width * sizeof *counts);
  list->buckets[find(list, counts)] = (uint32_t)++list->n;
  return true;
}
