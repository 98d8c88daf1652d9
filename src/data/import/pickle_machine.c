/* Lists lie in one pool of values: a list that grows behind others moves to the end, with twice its
   room. */
#include "pickle_machine.h"

#include <string.h>

#define NOT_SET INT32_MIN /* in the memo; no value is that low */

/* ---- bytes ----------------------------------------------------------------------------------- */

static gt_status fill(gt_pickle_reader *r) {
  const int64_t got = gt_bytes_read(r->file, r->buffer, GT_PICKLE_BUFFER);
  if (got < 0) return GT_ERR_DATA;
  r->used = 0;
  r->have = (size_t)got;
  return got < GT_PICKLE_BUFFER ? gt_bytes_whole(r->file) : GT_OK;
}

gt_status gt_pickle_take(gt_pickle_reader *r, uint8_t *byte) {
  if (r->used == r->have) GT_TRY(fill(r));
  if (r->have == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: ends after %llu bytes, within its pickle; a whole file is needed",
                   gt_bytes_path(r->file), (unsigned long long)r->at);
  *byte = r->buffer[r->used++];
  r->at++;
  return GT_OK;
}

gt_status gt_pickle_expect_end(gt_pickle_reader *r) {
  if (r->used == r->have) GT_TRY(fill(r));
  if (r->have == 0) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: goes on after its pickle, which ends at byte %llu; one pickle is "
                 "needed",
                 gt_bytes_path(r->file), (unsigned long long)r->at);
}

/* A number of n <= 8 bytes, the lowest first. */
gt_status gt_pickle_take_number(gt_pickle_reader *r, size_t n, uint64_t *out) {
  uint8_t byte = 0;
  *out = 0;
  for (size_t i = 0; i < n; i++) {
    GT_TRY(gt_pickle_take(r, &byte));
    *out |= (uint64_t)byte << (8 * i);
  }
  return GT_OK;
}

gt_status gt_pickle_damaged(const gt_pickle_reader *r, const char *why) {
  return GT_FAIL(GT_ERR_DATA, "%s: opcode %s at byte %llu %s; the pickle is damaged",
                 gt_bytes_path(r->file), r->opcode, (unsigned long long)r->opcode_at, why);
}

gt_status gt_pickle_too_large(const gt_pickle_reader *r) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the number at byte %llu is negative or above 2147483647; whole numbers from "
                 "0 to 2147483647 are needed",
                 gt_bytes_path(r->file), (unsigned long long)r->opcode_at);
}

/* The rest of the line, without its newline. */
gt_status gt_pickle_take_line(gt_pickle_reader *r, char text[GT_PICKLE_DIGITS]) {
  uint8_t byte = 0;
  for (size_t n = 0;; n++) {
    GT_TRY(gt_pickle_take(r, &byte));
    if (n == GT_PICKLE_DIGITS - 1)
      return gt_pickle_damaged(r, "has no number of up to 22 digits and a newline");
    text[n] = byte == '\n' ? 0 : (char)byte;
    if (byte == '\n') return GT_OK;
  }
}

/* ---- stack, lists and memo ------------------------------------------------------------------- */

/* The number of values above the last mark. */
size_t gt_pickle_above_mark(const gt_pickle_reader *r) {
  return r->nstack - (r->nmarks ? r->marks[r->nmarks - 1] : 0);
}

static gt_status push(gt_pickle_reader *r, int32_t value) {
  if (r->nstack == GT_PICKLE_VALUES_MAX) return gt_pickle_damaged(r, "is one of too many values");
  GT_GROW(r->stack, r->nstack, r->stack_capacity, 1024);
  r->stack[r->nstack++] = value;
  return GT_OK;
}

gt_status gt_pickle_push_number(gt_pickle_reader *r, int64_t value) {
  return value < 0 || value > INT32_MAX ? gt_pickle_too_large(r) : push(r, (int32_t)value);
}

gt_status gt_pickle_push_mark(gt_pickle_reader *r) {
  if (r->nmarks == GT_PICKLE_DEPTH_MAX)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: at byte %llu lists are nested more than %d deep; at most so "
                   "deep ones are read",
                   gt_bytes_path(r->file), (unsigned long long)r->opcode_at, GT_PICKLE_DEPTH_MAX);
  r->marks[r->nmarks++] = r->nstack;
  return GT_OK;
}

gt_status gt_pickle_pop_mark(gt_pickle_reader *r, size_t *height) {
  if (r->nmarks == 0) return gt_pickle_damaged(r, "finds no mark");
  *height = r->marks[--r->nmarks];
  return GT_OK;
}

static gt_status grow_pool(gt_pickle_reader *r, size_t count) {
  gt_pickle *p = r->made;
  if (count > GT_PICKLE_VALUES_MAX - p->npool)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: needs memory for more than %zu values up to byte %llu; at most so "
                   "many are read",
                   gt_bytes_path(r->file), GT_PICKLE_VALUES_MAX, (unsigned long long)r->at);
  while (p->pool_capacity < p->npool + count)
    p->pool = gt_grown(p->pool, &p->pool_capacity, 1024, sizeof *p->pool);
  p->npool += count;
  return GT_OK;
}

/* Makes room for `count` more values: at the end of the pool, unless the list has room. */
static gt_status reserve(gt_pickle_reader *r, gt_pickle_place *l, size_t count) {
  gt_pickle *p = r->made;
  if (l->capacity - l->n >= count) return GT_OK;
  if (l->start + l->capacity != p->npool) {
    const size_t from = l->start, capacity = 2 * (size_t)l->n;
    l->start = (uint32_t)p->npool;
    GT_TRY(grow_pool(r, capacity));
    memcpy(p->pool + l->start, p->pool + from, l->n * sizeof *p->pool);
    l->capacity = (uint32_t)capacity;
  }
  const size_t more = l->n + count > l->capacity ? l->n + count - l->capacity : 0;
  GT_TRY(grow_pool(r, more));
  l->capacity += (uint32_t)more;
  return GT_OK;
}

/* Moves the values of the stack from `height` on to the end of a list. */
static gt_status move(gt_pickle_reader *r, gt_pickle_place *l, size_t height) {
  const size_t count = r->nstack - height;
  if (count == 0) return GT_OK;
  GT_TRY(reserve(r, l, count));
  memcpy(r->made->pool + l->start + l->n, r->stack + height, count * sizeof *r->stack);
  l->n += (uint32_t)count;
  r->nstack = height;
  return GT_OK;
}

/* Replaces the values of the stack from `height` on by a list of them. */
gt_status gt_pickle_make(gt_pickle_reader *r, bool tuple, size_t height) {
  gt_pickle *p = r->made;
  if (p->nlists == GT_PICKLE_LISTS_MAX)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: has more than %zu lists up to byte %llu; at most so many are "
                   "read",
                   gt_bytes_path(r->file), GT_PICKLE_LISTS_MAX, (unsigned long long)r->at);
  GT_GROW(p->lists, p->nlists, p->lists_capacity, 1024);
  gt_pickle_place *l = &p->lists[p->nlists++];
  *l = (gt_pickle_place){.start = (uint32_t)p->npool, .tuple = tuple, .offset = r->opcode_at};
  GT_TRY(move(r, l, height));
  return push(r, -(int32_t)p->nlists);
}

/* Adds the values of the stack from `height` on to the list below them. */
gt_status gt_pickle_extend(gt_pickle_reader *r, size_t height) {
  const size_t fence = r->nstack - gt_pickle_above_mark(r);
  if (height <= fence || r->stack[height - 1] >= 0) return gt_pickle_damaged(r, "finds no list");
  gt_pickle_place *l = &r->made->lists[-1 - r->stack[height - 1]];
  return l->tuple ? gt_pickle_damaged(r, "finds a tuple in place of a list") : move(r, l, height);
}

gt_status gt_pickle_remember(gt_pickle_reader *r, uint64_t where) {
  if (gt_pickle_above_mark(r) == 0) return gt_pickle_damaged(r, "finds no value");
  if (where >= GT_PICKLE_LISTS_MAX) return gt_pickle_damaged(r, "has too high a number");
  while (r->nmemo <= where) {
    GT_GROW(r->memo, r->nmemo, r->memo_capacity, 1024);
    r->memo[r->nmemo++] = NOT_SET;
  }
  r->memo[where] = r->stack[r->nstack - 1];
  return GT_OK;
}

gt_status gt_pickle_recall(gt_pickle_reader *r, uint64_t where) {
  if (where >= r->nmemo || r->memo[where] == NOT_SET)
    return gt_pickle_damaged(r, "asks for a value that was not stored");
  return push(r, r->memo[where]);
}
