/* The checkpoints of a region in a run with faults. */
#include <string.h>

#include "internal.h"

#define COPIES (sizeof((sim_region *)0)->copies / sizeof(sim_copy))

/* Returns the state with copies of its arrays; vectors without contents have none here either. */
static gt_state deep_copy(const gt_state *lent) {
  gt_state copy = {.owns_data = true};
  for (size_t i = 0; i < lent->n; i++) {
    const gt_state_item *item = &lent->items[i];
    const size_t size = item->count * gt_type_size(item->type);
    void *data = item->data && size ? gt_alloc(size, 1) : NULL;
    if (data) memcpy(data, item->data, size);
    gt_state_add(&copy, "", item->name, item->type, data, item->count);
  }
  return copy;
}

static void remove_at(sim_region *r, size_t i) {
  gt_state_close(&r->copies[i].state);
  for (; i + 1 < COPIES; i++) r->copies[i] = r->copies[i + 1];
  r->copies[COPIES - 1] = (sim_copy){0};
}

void gt_sim_copy_void(sim_region *r, int64_t newest) {
  for (size_t i = COPIES; i-- > 0;)
    if (r->copies[i].round > newest || (r->copies[i].round > 0 && !r->copies[i].durable))
      remove_at(r, i);
}

void gt_sim_copy_model(const sim_region *r, gt_state_direction direction) {
  const gt_state_field fields[] = {{"params", GT_TYPE_F32, r->model.data, r->model.n},
                                   {"buffers", GT_TYPE_F32, r->statistics.data, r->statistics.n}};
  if (!r->model.data) return;
  if (GT_STATE_FIELDS(direction, "model/", fields) != GT_OK)
    gt_bug("in a simulation: %s", gt_error_text());
}

void gt_sim_copy_take(sim_region *r, int64_t round, bool unfit) {
  gt_state lent = {0};
  size_t i = 0;
  gt_sim_copy_void(r, INT64_MAX);
  if (r->copies[COPIES - 1].round > 0) remove_at(r, 0);
  while (r->copies[i].round > 0) i++;
  gt_sim_copy_model(r, (gt_state_direction){.to = &lent});
  gt_ps_save(r->ps, &lent);
  r->copies[i] = (sim_copy){.round = round, .unfit = unfit, .state = deep_copy(&lent)};
  gt_state_close(&lent);
}

void gt_sim_copy_written(sim_region *r) {
  for (size_t i = 0; i < COPIES; i++) r->copies[i].durable = r->copies[i].round > 0;
}

const sim_copy *gt_sim_copy_newest(const sim_region *r) {
  for (size_t i = COPIES; i-- > 0;)
    if (r->copies[i].durable) return &r->copies[i];
  return NULL;
}

const sim_copy *gt_sim_copy_of(const sim_region *r, int64_t round) {
  for (size_t i = 0; i < COPIES; i++)
    if (r->copies[i].durable && r->copies[i].round == round && !r->copies[i].unfit)
      return &r->copies[i];
  return NULL;
}

void gt_sim_copies_close(sim_region *r) {
  while (r->copies[0].round > 0) remove_at(r, 0);
}
