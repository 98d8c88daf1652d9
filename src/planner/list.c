/* A list of distinct sets. */
#include <string.h>

#include "bill.h"

#define FIRST 64 /* initial room, in sets */

/* FNV-1a */
static size_t bucket_of(const gt_planner_list *list, const int64_t *counts) {
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < list->width; i++) hash = (hash ^ (uint64_t)counts[i]) * 1099511628211U;
  return (size_t)(hash ^ hash >> 32) & (list->nbuckets - 1);
}

/* The bucket of the set, or the free one where it belongs. */
static size_t find(const gt_planner_list *list, const int64_t *counts) {
  size_t at = bucket_of(list, counts), bytes = list->width * sizeof *counts;
  while (list->buckets[at] &&
         memcmp(gt_planner_list_at(list, list->buckets[at] - 1), counts, bytes) != 0)
    at = (at + 1) & (list->nbuckets - 1);
  return at;
}

/* Doubles the room and rebuilds the buckets. */
static void grow(gt_planner_list *list) {
  list->counts = gt_grown(list->counts, &list->capacity, FIRST, list->width * sizeof *list->counts);
  gt_free(list->buckets);
  list->nbuckets = 2 * list->capacity;
  list->buckets = GT_NEW_ARRAY(uint32_t, list->nbuckets);
  for (size_t i = 0; i < list->n; i++)
    list->buckets[find(list, gt_planner_list_at(list, i))] = (uint32_t)i + 1;
}

void gt_planner_list_open(gt_planner_list *list, size_t width) {
  *list = (gt_planner_list){.width = width};
  grow(list);
}

void gt_planner_list_close(gt_planner_list *list) {
  gt_free(list->counts);
  gt_free(list->buckets);
  *list = (gt_planner_list){0};
}

bool gt_planner_list_has(const gt_planner_list *list, const int64_t *counts) {
  return list->buckets[find(list, counts)] != 0;
}

bool gt_planner_list_add(gt_planner_list *list, const int64_t *counts) {
  if (gt_planner_list_has(list, counts)) return false;
  if (list->n == list->capacity) grow(list);
  memcpy(list->counts + list->n * list->width, counts, list->width * sizeof *counts);
  list->buckets[find(list, counts)] = (uint32_t)++list->n;
  return true;
}
