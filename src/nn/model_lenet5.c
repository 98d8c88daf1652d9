/* LeNet-5 (LeCun et al. 1998) with ReLU and max pooling, for images of any size that leaves at
   least one pixel; 28x28 is padded to the paper's 32x32.  ReLU follows the pooling: values and
   gradients are the same in either order, and it has a quarter of the numbers to process.  fc1
   reads rows in (H,W,C) order. */
#include "graph.h"

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  (void)options;
  GT_TRY(gt_graph_add_conv2d(graph, "conv1", 6, 5, 1, 2));
  GT_TRY(gt_graph_add_maxpool(graph, "pool1", 2, 2, 0));
  gt_graph_add_relu(graph, "relu1");
  GT_TRY(gt_graph_add_conv2d(graph, "conv2", 16, 5, 1, 0));
  GT_TRY(gt_graph_add_maxpool(graph, "pool2", 2, 2, 0));
  gt_graph_add_relu(graph, "relu2");
  gt_graph_add_linear(graph, "fc1", 120);
  gt_graph_add_relu(graph, "relu3");
  gt_graph_add_linear(graph, "fc2", 84);
  gt_graph_add_relu(graph, "relu4");
  gt_graph_add_linear(graph, "fc3", shape->classes);
  return GT_OK;
}

const gt_model gt_model_lenet5 = {
    .name = "lenet5",
    .source = "LeCun, Bottou, Bengio, Haffner 1998: Gradient-Based Learning Applied to Document "
              "Recognition; ReLU and max pooling; "
              "initial values as PyTorch's defaults (Kaiming uniform, a = sqrt(5): He et al. 2015)",
    .usual = {28, 28, 1, 10, 0},
    .build = build,
};
