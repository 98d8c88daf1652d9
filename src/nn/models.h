/* The models of src/nn/model_*.c. */
#ifndef GEOTRAIN_NN_MODELS_H
#define GEOTRAIN_NN_MODELS_H

#include "geotrain/nn.h"

#define GT_MODEL_DECLARE(constant, name, table) extern const gt_model table;
GT_MODELS(GT_MODEL_DECLARE)
#undef GT_MODEL_DECLARE

#endif
