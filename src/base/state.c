/* Named state: lists of named arrays, borrowed for saving and looked up after loading. */
#include "geotrain/base.h"

#include <stdio.h>
#include <string.h>

static const char *type_name(gt_type type) {
  static const char *const names[] = {
      [GT_TYPE_F32] = "f32", [GT_TYPE_F64] = "f64", [GT_TYPE_I64] = "i64", [GT_TYPE_U8] = "u8"};
  return names[type];
}

size_t gt_type_size(gt_type type) {
  static const size_t sizes[] = {[GT_TYPE_F32] = sizeof(float),
                                 [GT_TYPE_F64] = sizeof(double),
                                 [GT_TYPE_I64] = sizeof(int64_t),
                                 [GT_TYPE_U8] = 1};
  return sizes[type];
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the FNV-1a hash of a name in two parts. */
static size_t hash_of(const char *prefix, const char *name) {
  const char *const parts[] = {prefix, name};
  uint64_t hash = UINT64_C(14695981039346656037);
  for (int i = 0; i < 2; i++)
    for (const char *c = parts[i]; *c; c++)
      hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  return (size_t)(hash ^ (hash >> 32));
}

static bool is_called(const gt_state_item *item, const char *prefix, const char *name) {
  const size_t head = strlen(prefix);
  return strncmp(item->name, prefix, head) == 0 && strcmp(item->name + head, name) == 0;
}

/* Returns the slot of the name, or the free slot for it. */
static size_t slot_of(const gt_state *state, const char *prefix, const char *name) {
  size_t at = hash_of(prefix, name) & (state->nslots - 1);
  while (state->slots[at] && !is_called(&state->items[state->slots[at] - 1], prefix, name))
    at = (at + 1) & (state->nslots - 1);
  return at;
}

/* Keeps the table at most half full. */
static void make_slots(gt_state *state) {
  if (2 * (state->n + 1) <= state->nslots) return;
  gt_free(state->slots);
  state->nslots = state->nslots ? 2 * state->nslots : 64;
  state->slots = GT_NEW_ARRAY(uint32_t, state->nslots);
  for (size_t i = 0; i < state->n; i++)
    state->slots[slot_of(state, "", state->items[i].name)] = (uint32_t)i + 1;
}

/* Names come from the program.  A name that is too long or already in the list is a bug: a
   checkpoint would lose state. */
void gt_state_add(gt_state *state, const char *prefix, const char *name, gt_type type, void *data,
                  size_t count) {
  if (strlen(prefix) + strlen(name) >= sizeof(((gt_state_item *)0)->name))
    gt_bug("the name of state item \"%s%s\" is longer than 95 bytes", prefix, name);
  make_slots(state);
  const size_t slot = slot_of(state, prefix, name);
  if (state->slots[slot]) gt_bug("state item \"%s%s\" is added twice", prefix, name);
  GT_GROW(state->items, state->n, state->capacity, 16);
  gt_state_item *item = &state->items[state->n++];
  snprintf(item->name, sizeof item->name, "%s%s", prefix, name);
  item->type = type;
  item->count = count;
  item->data = data;
  state->slots[slot] = (uint32_t)state->n;
}

const gt_state_item *gt_state_find(const gt_state *state, const char *prefix, const char *name) {
  if (state->n == 0) return NULL;
  const uint32_t number = state->slots[slot_of(state, prefix, name)];
  return number ? &state->items[number - 1] : NULL;
}

const gt_state_item *gt_state_changed(const gt_state *here, const gt_state *there) {
  for (const gt_state_item *a = here->items; a < here->items + here->n; a++) {
    const gt_state_item *b = gt_state_find(there, "", a->name);
    if (b && (a->type != b->type || a->count != b->count ||
              (a->count > 0 && memcmp(a->data, b->data, a->count * gt_type_size(a->type)) != 0)))
      return a;
  }
  return NULL;
}

/* ---- lists ----------------------------------------------------------------------------------- */

gt_status gt_state_get(const gt_state *state, const char *prefix, const char *name, gt_type type,
                       void *data, size_t count) {
  const gt_state_item *item = gt_state_find(state, prefix, name);
  if (!item)
    return GT_FAIL(GT_ERR_CKPT, "state \"%s%s\" is not there; expected %zu x %s", prefix, name,
                   count, type_name(type));
  if (item->type != type || item->count != count) {
    return GT_FAIL(GT_ERR_CKPT, "state \"%s%s\" is %zu x %s; expected %zu x %s", prefix, name,
                   item->count, type_name(item->type), count, type_name(type));
  }
  if (count) memcpy(data, item->data, count * gt_type_size(type));
  return GT_OK;
}

gt_status gt_state_fields(gt_state_direction direction, const char *prefix,
                          const gt_state_field *fields, size_t n) {
  for (const gt_state_field *f = fields; f < fields + n; f++)
    if (f->name && direction.to)
      gt_state_add(direction.to, prefix, f->name, f->type, f->data, f->count);
    else if (f->name && f->data)
      GT_TRY(gt_state_get(direction.from, prefix, f->name, f->type, f->data, f->count));
  return GT_OK;
}

gt_status gt_state_flags(gt_state_direction direction, const char *prefix, const char *name,
                         bool *flags, size_t n) {
  if (direction.to) {
    gt_state_add(direction.to, prefix, name, GT_TYPE_U8, flags, n);
    return GT_OK;
  }
  uint8_t *bytes = GT_NEW_ARRAY(uint8_t, n);
  const gt_status status = gt_state_get(direction.from, prefix, name, GT_TYPE_U8, bytes, n);
  for (size_t i = 0; i < n; i++) flags[i] = bytes[i] != 0;
  gt_free(bytes);
  return status;
}

void gt_state_close(gt_state *state) {
  if (!state) return;
  if (state->owns_data) {
    for (size_t i = 0; i < state->n; i++) gt_free(state->items[i].data);
  }
  gt_free(state->items);
  gt_free(state->slots);
  *state = (gt_state){0};
}
