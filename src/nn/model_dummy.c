/* A model of any size with almost no computation: a linear classifier, which learns, and parameters
   that are only communicated.  It stands for large models when only the number of bytes matters: on
   emulated links, under the virtual clock, in tests of the planner. */
#include "graph.h"

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  const size_t own = (shape->h * shape->w * shape->c + 1) * shape->classes;
  const int64_t wanted = options->parameters;
  if (wanted != 0 && wanted < (int64_t)own)
    return GT_FAIL(GT_ERR_JOB,
                   "model.parameters is %lld; expected at least the %zu of dummy's "
                   "classifier of %zu x %zu x %zu samples in %zu classes",
                   (long long)wanted, own, shape->h, shape->w, shape->c, shape->classes);
  gt_graph_add_linear(graph, "fc", shape->classes);
  if (wanted > (int64_t)own) gt_graph_add_inert(graph, "inert", (size_t)wanted - own);
  return GT_OK;
}

const gt_model gt_model_dummy = {.name = "dummy",
                                 .source = "none: a linear classifier, and model.parameters in "
                                           "all, the rest of which are only communicated",
                                 .usual = {28, 28, 1, 10, 0},
                                 .sized = true,
                                 .build = build};
