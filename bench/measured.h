/* Builds a model's graph as training does: with kernels auto, it first measures the algorithms of
   the products. */
#pragma once

#include <string.h>

#include "geotrain/nn.h"

/* spec->batch_max samples at a time.  The caller closes both; choices stay empty with other
   kernels. */
static inline gt_status measured_graph(gt_graph **out, gt_choices *choices,
                                       const gt_graph_spec *spec) {
  gt_graph_spec wanted = *spec, bare = *spec;
  wanted.batch = bare.batch = spec->batch_max;
  bare.batch_max = 0;
  if (strcmp(spec->kernels->name, "auto") == 0) {
    gt_graph *graph;
    GT_TRY(gt_graph_create(&graph, &bare));
    gt_graph_layers(graph, bare.batch, choices);
    gt_graph_close(graph);
    gt_choices_measure(choices, spec->kernels);
    wanted.choices = choices;
  }
  return gt_graph_create(out, &wanted);
}
