/* fragment: a part of a model that has rounds of its own: a list of whole tensors. */
#pragma once

#include "geotrain/tensor.h"

typedef struct {
  gt_view *tensors;   /* ntensors, in the model's order; their offsets are in the fragment */
  size_t *from;       /* ntensors: their offsets in the model */
  size_t ntensors, n; /* n: floats of all */
} gt_fragment;

/* Divides the tensors into `count` fragments, as equal as whole tensors allow; every region gets
   the same fragments.  tensors NULL: one fragment of n floats.  Writes fragments[count], which the
   caller closes. */
void gt_fragments_open(gt_fragment *fragments, size_t count, const gt_view *tensors,
                       size_t ntensors, size_t n);
void gt_fragment_close(gt_fragment *fragment);
/* Copy the fragment's tensors of the model `all` to `own` (n floats), and back. */
void gt_fragment_gather(const gt_fragment *f, gt_vec own, gt_vec all);
void gt_fragment_scatter(const gt_fragment *f, gt_vec all, gt_vec own);
