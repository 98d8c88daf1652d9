/* The models of src/nn/model_*.c. */
#pragma once

#include "geotrain/nn.h"

/* Checks the width of a layer, an option of a model: GT_ERR_JOB unless it is in `least` (0:
   optional) to 65536. */
gt_status gt_model_check_width(const char *option, int64_t width, int64_t least);

#define GT_MODEL_DECLARE(constant, name, table) extern const gt_model table;
GT_MODELS(GT_MODEL_DECLARE)
#undef GT_MODEL_DECLARE
