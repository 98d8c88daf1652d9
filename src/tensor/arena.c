/* Memory planned once: requests first, one block after, so that nothing is allocated in the step loop (DESIGN 2.8). */
#include <string.h>

#include "geotrain/tensor.h"

enum { FLOATS_PER_LINE = 16 }; /* 64 bytes */

struct gt_arena {
  size_t *offsets; /* of each ticket, in floats */
  size_t n, capacity, total;
  float *block;
};

gt_arena *gt_arena_create(void) {
  return GT_NEW(gt_arena);
}

size_t gt_arena_reserve(gt_arena *arena, size_t count) {
  if (arena->block) {
    gt_bug("an arena was asked for %zu floats after it was committed", count);
  }
  if (arena->n == arena->capacity) {
    size_t capacity = arena->capacity ? 2 * arena->capacity : 16;
    size_t *offsets = GT_NEW_ARRAY(size_t, capacity);
    if (arena->n) memcpy(offsets, arena->offsets, arena->n * sizeof *offsets);
    gt_free(arena->offsets);
    arena->offsets = offsets;
    arena->capacity = capacity;
  }
  arena->offsets[arena->n] = arena->total;
  arena->total += (count + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE;
  return arena->n++;
}

void gt_arena_commit(gt_arena *arena) {
  if (!arena->block) arena->block = GT_NEW_ARRAY(float, arena->total ? arena->total : 1);
}

float *gt_arena_at(const gt_arena *arena, size_t ticket) {
  if (!arena->block || ticket >= arena->n) {
    gt_bug("an arena has no place %zu (%zu reserved, %s)", ticket, arena->n, arena->block ? "committed" : "not committed");
  }
  return arena->block + arena->offsets[ticket];
}

size_t gt_arena_bytes(const gt_arena *arena) {
  return arena->total * sizeof(float);
}

void gt_arena_close(gt_arena *arena) {
  if (!arena) return;
  gt_free(arena->block);
  gt_free(arena->offsets);
  gt_free(arena);
}
