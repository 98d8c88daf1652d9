/* Memory planned once: all requests first, then one block, so that the step loop does not allocate.
   Requests whose times do not overlap can share memory: the largest is placed first, each at the
   lowest offset that is free for its whole life (Pisarchyk and Lee 2020, greedy by size). */
#include <stdlib.h>

#include "geotrain/tensor.h"

enum { FLOATS_PER_LINE = 16 }; /* 64 bytes */

typedef struct {
  size_t offset, size; /* in floats */
  size_t from, to;
} span;

struct gt_arena {
  span *spans;
  size_t n, capacity, total;
  bool planned, lent;
  float *block;
};

gt_arena *gt_arena_create(void) {
  return GT_NEW(gt_arena);
}

size_t gt_arena_reserve_span(gt_arena *arena, size_t count, size_t from, size_t to) {
  if (arena->planned) {
    gt_bug("an arena was asked for %zu floats after it was planned", count);
  }
  GT_GROW(arena->spans, arena->n, arena->capacity, 16);
  size_t size = (count + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE;
  arena->spans[arena->n] = (span){.size = size, .from = from, .to = to};
  return arena->n++;
}

size_t gt_arena_reserve(gt_arena *arena, size_t count) {
  return gt_arena_reserve_span(arena, count, 0, SIZE_MAX);
}

static int larger_first(const void *a, const void *b) {
  const span *x = *(span *const *)a, *y = *(span *const *)b;
  if (x->size != y->size) return x->size < y->size ? 1 : -1;
  return x < y ? -1 : 1;
}

static int lower_first(const void *a, const void *b) {
  const span *x = *(span *const *)a, *y = *(span *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Returns the lowest gap between the placed requests that are in use at the same time as s.  `busy`
   has room for nplaced pointers. */
static size_t place(span *const *placed, size_t nplaced, const span *s, const span **busy) {
  size_t n = 0, at = 0;
  for (size_t i = 0; i < nplaced; i++)
    if (placed[i]->from <= s->to && s->from <= placed[i]->to) busy[n++] = placed[i];
  qsort(busy, n, sizeof *busy, lower_first);
  for (size_t i = 0; i < n; i++) {
    if (busy[i]->offset >= at + s->size) break;
    if (busy[i]->offset + busy[i]->size > at) at = busy[i]->offset + busy[i]->size;
  }
  return at;
}

void gt_arena_plan(gt_arena *arena) {
  if (arena->planned) return;
  arena->planned = true;
  span **order = GT_NEW_ARRAY(span *, arena->n + 1);
  const span **busy = GT_NEW_ARRAY(const span *, arena->n + 1);
  for (size_t i = 0; i < arena->n; i++) order[i] = &arena->spans[i];
  qsort(order, arena->n, sizeof *order, larger_first);
  for (size_t i = 0; i < arena->n; i++) {
    order[i]->offset = place(order, i, order[i], busy);
    if (order[i]->offset + order[i]->size > arena->total)
      arena->total = order[i]->offset + order[i]->size;
  }
  gt_free(busy);
  gt_free(order);
}

void gt_arena_commit(gt_arena *arena) {
  gt_arena_plan(arena);
  if (!arena->block) arena->block = GT_NEW_ARRAY(float, arena->total ? arena->total : 1);
}

void gt_arena_commit_at(gt_arena *arena, float *block) {
  gt_arena_plan(arena);
  if (arena->block) gt_bug("an arena that has its block was given another");
  arena->lent = true;
  arena->block = block;
}

size_t gt_arena_offset(const gt_arena *arena, size_t ticket) {
  if (!arena->planned || ticket >= arena->n)
    gt_bug("an arena has no place %zu (%zu reserved, %s)", ticket, arena->n,
           arena->planned ? "planned" : "not planned");
  return arena->spans[ticket].offset;
}

float *gt_arena_at(const gt_arena *arena, size_t ticket) {
  if (!arena->block || ticket >= arena->n) {
    gt_bug("an arena has no place %zu (%zu reserved, %s)", ticket, arena->n,
           arena->block ? "committed" : "not committed");
  }
  return arena->block + arena->spans[ticket].offset;
}

size_t gt_arena_bytes(const gt_arena *arena) {
  return arena->total * sizeof(float);
}

void gt_arena_close(gt_arena *arena) {
  if (!arena) return;
  if (!arena->lent) gt_free(arena->block);
  gt_free(arena->spans);
  gt_free(arena);
}
