/* The layers of the models that compute products, with the batches at which they are measured. */
#ifndef GEOTRAIN_BENCH_LAYERS_H
#define GEOTRAIN_BENCH_LAYERS_H

#include "geotrain/tensor.h"

/* A linear layer has s.H 0, I and O in C and K. */
typedef struct {
  const char *name;
  size_t batch;
  bool bias, first; /* first: the gradient of its input is not needed */
  gt_conv_shape s;
} layer;

static const layer layers[] = {
    {"lenet5 conv1",
     64,
     true,
     true,
     {.H = 28, .W = 28, .C = 1, .K = 6, .R = 5, .stride = 1, .pad = 2}},
    {"lenet5 conv2",
     64,
     true,
     false,
     {.H = 14, .W = 14, .C = 6, .K = 16, .R = 5, .stride = 1, .pad = 0}},
    {"lenet5 fc1", 64, true, false, {.C = 400, .K = 120}},
    {"lenet5 fc2", 64, true, false, {.C = 120, .K = 84}},
    {"lenet5 fc3", 64, true, false, {.C = 84, .K = 10}},
    {"resnet18 conv1",
     32,
     false,
     true,
     {.H = 32, .W = 32, .C = 3, .K = 64, .R = 3, .stride = 1, .pad = 1}},
    {"resnet18 layer1 (4)",
     32,
     false,
     false,
     {.H = 32, .W = 32, .C = 64, .K = 64, .R = 3, .stride = 1, .pad = 1}},
    {"resnet18 layer2.0.conv1",
     32,
     false,
     false,
     {.H = 32, .W = 32, .C = 64, .K = 128, .R = 3, .stride = 2, .pad = 1}},
    {"resnet18 layer2.0.downsample",
     32,
     false,
     false,
     {.H = 32, .W = 32, .C = 64, .K = 128, .R = 1, .stride = 2, .pad = 0}},
    {"resnet18 layer2 (3)",
     32,
     false,
     false,
     {.H = 16, .W = 16, .C = 128, .K = 128, .R = 3, .stride = 1, .pad = 1}},
    {"resnet18 layer3.0.conv1",
     32,
     false,
     false,
     {.H = 16, .W = 16, .C = 128, .K = 256, .R = 3, .stride = 2, .pad = 1}},
    {"resnet18 layer3.0.downsample",
     32,
     false,
     false,
     {.H = 16, .W = 16, .C = 128, .K = 256, .R = 1, .stride = 2, .pad = 0}},
    {"resnet18 layer3 (3)",
     32,
     false,
     false,
     {.H = 8, .W = 8, .C = 256, .K = 256, .R = 3, .stride = 1, .pad = 1}},
    {"resnet18 layer4.0.conv1",
     32,
     false,
     false,
     {.H = 8, .W = 8, .C = 256, .K = 512, .R = 3, .stride = 2, .pad = 1}},
    {"resnet18 layer4.0.downsample",
     32,
     false,
     false,
     {.H = 8, .W = 8, .C = 256, .K = 512, .R = 1, .stride = 2, .pad = 0}},
    {"resnet18 layer4 (3)",
     32,
     false,
     false,
     {.H = 4, .W = 4, .C = 512, .K = 512, .R = 3, .stride = 1, .pad = 1}},
    {"resnet18 fc", 32, true, false, {.C = 512, .K = 10}},
    {"deepfm mlp.0", 512, true, false, {.C = 100, .K = 400}},
    {"deepfm mlp.2, mlp.4", 512, true, false, {.C = 400, .K = 400}},
    {"deepfm mlp.6", 512, true, false, {.C = 400, .K = 1}},
};

#endif
