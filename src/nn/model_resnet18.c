/* ResNet-18 (He, Zhang, Ren and Sun 2016, table 1): a stem of 64 channels, four stages of two basic
   blocks, the mean, a linear layer.  The stem for small images is a 3x3 convolution (section 4.2);
   the large one is a 7x7 convolution with stride 2 and 3x3 pooling with stride 2.  11,173,962 and
   11,181,642 parameters for 10 classes of colour images.  A block that changes the shape has a 1x1
   convolution in its shortcut (option B).  Tensors are named as in torchvision. */
#include <stdio.h>

#include "graph.h"

enum { STAGES = 4, BLOCKS = 2, WIDTH = 64, LARGE = 64 /* pixels of a side */ };

/* Writes "layer2.0.conv1". */
static const char *name_of(char name[48], int stage, int block, const char *part) {
  snprintf(name, 48, "layer%d.%d.%s", stage + 1, block, part);
  return name;
}

static gt_status add_block(gt_graph *graph, int stage, int block) {
  char name[48];
  const size_t K = (size_t)WIDTH << stage, stride = stage > 0 && block == 0 ? 2 : 1;
  const size_t input = gt_graph_last(graph);
  size_t beside = input;
  GT_TRY(gt_graph_add_conv2d_plain(graph, name_of(name, stage, block, "conv1"), K, 3, stride, 1));
  gt_graph_add_norm(graph, name_of(name, stage, block, "bn1"), GT_SAMPLES, true);
  GT_TRY(gt_graph_add_conv2d_plain(graph, name_of(name, stage, block, "conv2"), K, 3, 1, 1));
  const size_t main = gt_graph_last(graph);
  if (stride != 1) {
    gt_graph_from(graph, input);
    GT_TRY(gt_graph_add_conv2d_plain(graph, name_of(name, stage, block, "downsample.0"), K, 1,
                                     stride, 0));
    gt_graph_add_norm(graph, name_of(name, stage, block, "downsample.1"), GT_SAMPLES, false);
    beside = gt_graph_last(graph);
    gt_graph_from(graph, main);
  }
  gt_graph_add_norm(graph, name_of(name, stage, block, "bn2"), beside, true);
  return GT_OK;
}

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  const bool large = options->stem == GT_STEM_AUTO ? shape->h >= LARGE && shape->w >= LARGE
                                                   : options->stem == GT_STEM_LARGE;
  GT_TRY(gt_graph_add_conv2d_plain(graph, "conv1", WIDTH, large ? 7 : 3, large ? 2 : 1,
                                   large ? 3 : 1));
  gt_graph_add_norm(graph, "bn1", GT_SAMPLES, true);
  if (large) GT_TRY(gt_graph_add_maxpool(graph, "maxpool", 3, 2, 1));
  for (int stage = 0; stage < STAGES; stage++)
    for (int block = 0; block < BLOCKS; block++) GT_TRY(add_block(graph, stage, block));
  gt_graph_add_mean(graph, "avgpool");
  gt_graph_add_linear(graph, "fc", shape->classes);
  return GT_OK;
}

const gt_model gt_model_resnet18 = {
    .name = "resnet18",
    .source = "He, Zhang, Ren, Sun 2016: Deep Residual Learning for Image Recognition, with the "
              "stem for CIFAR (3x3, no pooling), or from 64 x 64 pixels on that for ImageNet; "
              "initial values as torchvision's (convolutions normal, fan out: He et al. 2015; "
              "linear: PyTorch's default)",
    .usual = {32, 32, 3, 10, 0},
    .stemmed = true,
    .build = build,
};
