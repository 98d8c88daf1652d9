/* base_heap: a binary heap of events, ordered by time.  Layer 0.  Local. */
#pragma once

#include "geotrain/base.h"

/* a and b: free for the caller. */
typedef struct {
  gt_ns at;
  uint64_t key;
  uint32_t a, b;
} gt_heap_entry;

/* Ordered by (at, key), smallest first.  Initialise it to zero. */
typedef struct {
  gt_heap_entry *at;
  size_t n, capacity;
} gt_heap;

void gt_heap_push(gt_heap *heap, gt_heap_entry entry);
/* Removes and returns the smallest entry.  The heap must not be empty. */
gt_heap_entry gt_heap_pop(gt_heap *heap);
void gt_heap_close(gt_heap *heap);
