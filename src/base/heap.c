/* A binary heap of events, ordered by time. */
#include "geotrain/base_heap.h"

static bool before(const gt_heap_entry *a, const gt_heap_entry *b) {
  return a->at < b->at || (a->at == b->at && a->key < b->key);
}

void gt_heap_push(gt_heap *h, gt_heap_entry entry) {
  GT_GROW(h->at, h->n, h->capacity, 16);
  size_t i = h->n++;
  for (size_t up; i > 0; i = up) {
    up = (i - 1) / 2;
    if (!before(&entry, &h->at[up])) break;
    h->at[i] = h->at[up];
  }
  h->at[i] = entry;
}

gt_heap_entry gt_heap_pop(gt_heap *h) {
  gt_heap_entry first = h->at[0], last = h->at[--h->n];
  size_t i = 0;
  for (size_t down; (down = 2 * i + 1) < h->n; i = down) {
    if (down + 1 < h->n && before(&h->at[down + 1], &h->at[down])) down++;
    if (!before(&h->at[down], &last)) break;
    h->at[i] = h->at[down];
  }
  h->at[i] = last;
  return first;
}

void gt_heap_close(gt_heap *h) {
  gt_free(h->at);
}
