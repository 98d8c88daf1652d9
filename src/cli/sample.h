/* Draws an id from the logits of a model. */
#ifndef GEOTRAIN_CLI_SAMPLE_H
#define GEOTRAIN_CLI_SAMPLE_H

#include "geotrain/base.h"

typedef struct {
  double temperature; /* logits are divided by it; 0: always the id of the largest */
  size_t top;         /* only the ids of so many largest logits; 0: all */
} gt_cli_sampling;

typedef struct {
  double logit;
  size_t id;
} gt_cli_candidate;

/* An id below n with the probability that softmax gives it; of equal logits that of the smaller id
   counts as larger.  candidates (n): scratch.  GT_ERR_CKPT: a logit is not finite. */
gt_status gt_cli_sample(size_t *id, const float *logits, size_t n, const gt_cli_sampling *sampling,
                        gt_rng *rng, gt_cli_candidate *candidates);

#endif
