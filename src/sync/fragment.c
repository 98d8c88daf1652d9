/* Fragments of a model: the largest tensors first, each to the fragment with the fewest floats. */
#include "fragment.h"

static size_t least_of(const gt_fragment *fragments, size_t count) {
  size_t least = 0;
  for (size_t p = 1; p < count; p++)
    if (fragments[p].n < fragments[least].n) least = p;
  return least;
}

/* Returns the largest tensor without a fragment; of equal ones the first. */
static size_t largest_of(const gt_view *tensors, size_t ntensors, const size_t *owner,
                         size_t count) {
  size_t largest = ntensors;
  for (size_t i = 0; i < ntensors; i++)
    if (owner[i] == count && (largest == ntensors || tensors[i].count > tensors[largest].count))
      largest = i;
  return largest;
}

static void add_tensor(gt_fragment *fragment, const gt_view *tensor) {
  gt_view *own = &fragment->tensors[fragment->ntensors];
  *own = *tensor;
  own->offset = fragment->n;
  fragment->from[fragment->ntensors++] = tensor->offset;
  fragment->n += tensor->count;
}

void gt_fragments_open(gt_fragment *fragments, size_t count, const gt_view *tensors,
                       size_t ntensors, size_t n) {
  const gt_view whole = {.name = "model", .count = n, .shape = {n}, .ndims = 1};
  if (!tensors) tensors = &whole, ntensors = 1;
  size_t *owner = GT_NEW_ARRAY(size_t, ntensors);
  for (size_t i = 0; i < ntensors; i++) owner[i] = count;
  for (size_t p = 0; p < count; p++)
    fragments[p] = (gt_fragment){.tensors = GT_NEW_ARRAY(gt_view, ntensors),
                                 .from = GT_NEW_ARRAY(size_t, ntensors)};
  for (size_t i = 0; i < ntensors; i++) {
    const size_t next = largest_of(tensors, ntensors, owner, count);
    owner[next] = least_of(fragments, count);
    fragments[owner[next]].n += tensors[next].count;
  }
  for (size_t p = 0; p < count; p++) fragments[p].n = 0;
  for (size_t i = 0; i < ntensors; i++) add_tensor(&fragments[owner[i]], &tensors[i]);
  gt_free(owner);
}

void gt_fragment_close(gt_fragment *fragment) {
  gt_free(fragment->tensors);
  gt_free(fragment->from);
}

void gt_fragment_gather(const gt_fragment *f, gt_vec own, gt_vec all) {
  for (size_t i = 0; i < f->ntensors; i++)
    gt_vec_copy(gt_vec_range(own, f->tensors[i].offset, f->tensors[i].count),
                gt_vec_range(all, f->from[i], f->tensors[i].count));
}

void gt_fragment_scatter(const gt_fragment *f, gt_vec all, gt_vec own) {
  for (size_t i = 0; i < f->ntensors; i++)
    gt_vec_copy(gt_vec_range(all, f->from[i], f->tensors[i].count),
                gt_vec_range(own, f->tensors[i].offset, f->tensors[i].count));
}
