/* A hash table of pairs with linear probing. */
#include "pairs.h"

enum { FIRST_SLOTS = 1024 };

/* The slot of the pair: its own, or the empty one where it belongs. */
static size_t slot_of(const gt_pairs *p, uint64_t pair) {
  const uint64_t hash = (pair + 1) * 0x9e3779b97f4a7c15U;
  size_t at = (size_t)(hash ^ hash >> 32) & (p->nslots - 1);
  while (p->keys[at] != 0 && p->keys[at] != pair + 1) at = (at + 1) & (p->nslots - 1);
  return at;
}

const uint32_t *gt_pairs_find(const gt_pairs *p, uint64_t pair) {
  if (p->nslots == 0) return NULL;
  const size_t at = slot_of(p, pair);
  return p->keys[at] != 0 ? &p->values[at] : NULL;
}

static void put(gt_pairs *p, uint64_t pair, uint32_t value) {
  const size_t at = slot_of(p, pair);
  p->keys[at] = pair + 1;
  p->values[at] = value;
}

static void grow(gt_pairs *p) {
  const gt_pairs old = *p;
  p->nslots = old.nslots ? 2 * old.nslots : FIRST_SLOTS;
  p->keys = GT_NEW_ARRAY(uint64_t, p->nslots);
  p->values = GT_NEW_ARRAY(uint32_t, p->nslots);
  for (size_t i = 0; i < old.nslots; i++)
    if (old.keys[i] != 0) put(p, old.keys[i] - 1, old.values[i]);
  gt_free(old.keys);
  gt_free(old.values);
}

void gt_pairs_add(gt_pairs *p, uint64_t pair, uint32_t value) {
  if (2 * (p->n + 1) >= p->nslots) grow(p);
  put(p, pair, value);
  p->n++;
}

void gt_pairs_close(gt_pairs *p) {
  gt_free(p->keys);
  gt_free(p->values);
  *p = (gt_pairs){0};
}
