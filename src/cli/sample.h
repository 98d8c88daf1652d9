/* Draws an id from the logits of a model. */
#pragma once

#include "geotrain/base.h"

typedef struct {
  double temperature; /* divisor of the logits; 0: always the id of the largest logit */
  size_t top;         /* number of largest logits to sample from; 0: all */
} gt_cli_sampling;

typedef struct {
  double logit;
  size_t id;
} gt_cli_candidate;

/* Draws an id below n with its softmax probability; among equal logits the smaller id counts as
   larger.  candidates (n): scratch.  GT_ERR_CKPT: a logit is not finite. */
gt_status gt_cli_sample(size_t *id, const float *logits, size_t n, const gt_cli_sampling *sampling,
                        gt_rng *rng, gt_cli_candidate *candidates);
