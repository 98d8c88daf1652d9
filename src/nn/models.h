/* The models of src/nn/model_*.c; a new one is a file, a line here and a line in models.c. */
#ifndef GEOTRAIN_NN_MODELS_H
#define GEOTRAIN_NN_MODELS_H

#include "geotrain/nn.h"

extern const gt_model gt_model_lenet5, gt_model_resnet18, gt_model_deepfm, gt_model_dummy;

#endif
