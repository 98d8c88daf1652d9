/* The models of src/nn/model_*.c. */
#pragma once

#include "geotrain/nn.h"

/* Checks the width of a layer, an option of a model: GT_ERR_JOB unless it is in `least` (0:
   optional) to 65536. */
gt_status gt_model_check_width(const char *option, int64_t width, int64_t least);

/* model_mlp.c.  Adds linear layers, with ReLU between them, named as in an nn.Sequential `mlp`:
   hidden ones of options->mlp (NULL: of `usual`, n), then one of `outputs`.  GT_ERR_JOB: a
   width. */
gt_status gt_model_add_mlp(gt_graph *graph, const gt_model_options *options, const int64_t *usual,
                           size_t n, size_t outputs);

#define GT_MODEL_DECLARE(constant, name, table) extern const gt_model table;
GT_MODELS(GT_MODEL_DECLARE)
#undef GT_MODEL_DECLARE
