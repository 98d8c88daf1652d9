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

/* Names come from the program.  A name that is too long or already in the list is a bug: a
   checkpoint would lose state. */
void gt_state_add(gt_state *state, const char *prefix, const char *name, gt_type type, void *data,
                  size_t count) {
  if (strlen(prefix) + strlen(name) >= sizeof(((gt_state_item *)0)->name))
    gt_bug("the name of state item \"%s%s\" is longer than 95 bytes", prefix, name);
  if (gt_state_find(state, prefix, name))
    gt_bug("state item \"%s%s\" is added twice", prefix, name);
  GT_GROW(state->items, state->n, state->capacity, 16);
  gt_state_item *item = &state->items[state->n++];
  snprintf(item->name, sizeof item->name, "%s%s", prefix, name);
  item->type = type;
  item->count = count;
  item->data = data;
}

const gt_state_item *gt_state_find(const gt_state *state, const char *prefix, const char *name) {
  size_t head = strlen(prefix);
  for (size_t i = 0; i < state->n; i++) {
    const gt_state_item *item = &state->items[i];
    if (strncmp(item->name, prefix, head) == 0 && strcmp(item->name + head, name) == 0) return item;
  }
  return NULL;
}

gt_status gt_state_get(const gt_state *state, const char *prefix, const char *name, gt_type type,
                       void *data, size_t count) {
  const gt_state_item *item = gt_state_find(state, prefix, name);
  if (!item)
    return GT_FAIL(GT_ERR_CKPT, "state \"%s%s\" is not there; %zu x %s is needed", prefix, name,
                   count, type_name(type));
  if (item->type != type || item->count != count) {
    return GT_FAIL(GT_ERR_CKPT, "state \"%s%s\" is %zu x %s; %zu x %s is needed", prefix, name,
                   item->count, type_name(item->type), count, type_name(type));
  }
  if (count) memcpy(data, item->data, count * gt_type_size(type));
  return GT_OK;
}

void gt_state_close(gt_state *state) {
  if (!state) return;
  if (state->owns_data) {
    for (size_t i = 0; i < state->n; i++) gt_free(state->items[i].data);
  }
  gt_free(state->items);
  *state = (gt_state){0};
}
