/* NISER (Gupta et al. 2019): predicts the item that a session will click next.  The graph of the
   session goes through a gated step; attention and the last item give the session's vector, and a
   linear layer halves its length; its cosine with every item, times sigma, is the item's score.
   All vectors have length 1.  NISER+ adds dropout, on the items' vectors, and positions of
   clicks. */
#include "graph.h"
#include "models.h"
#include "session_graph.h"

enum { WIDTH = 100 };
#define SIGMA 16.0

static gt_status check(const gt_sample_shape *shape, const gt_model_options *options) {
  const size_t length = shape->h * shape->w * shape->c;
  GT_TRY(gt_model_check_width("hidden", options->hidden, 0));
  if (shape->features != shape->classes + 1)
    return GT_FAIL(GT_ERR_DATA,
                   "samples are of %zu ids and %zu classes; model niser needs one id more than "
                   "classes, as `geotrain data import sessions` writes them: padding and the items",
                   shape->features, shape->classes);
  if (length > GT_SESSION_MOST)
    return GT_FAIL(GT_ERR_DATA,
                   "samples are sessions of %zu items; model niser takes at most %d (--length of "
                   "`geotrain data import sessions`)",
                   length, GT_SESSION_MOST);
  if (options->scale < 0)
    return GT_FAIL(GT_ERR_JOB, "model.scale is %g; expected a number above 0", options->scale);
  return GT_OK;
}

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  const size_t width = options->hidden ? (size_t)options->hidden : WIDTH;
  GT_TRY(check(shape, options));
  gt_graph_add_nodes(graph, "embedding", width);
  const size_t table = gt_graph_last(graph);
  gt_graph_add_dropout(graph, "embedding.dropout", options->dropout);
  gt_graph_add_gated_step(graph, "gnn");
  if (options->positions) gt_graph_add_clicks(graph, "position");
  gt_graph_add_readout(graph, "linear_one", "linear_two", "linear_three");
  gt_graph_add_linear_within(graph, "linear_transform", width, width);
  gt_graph_add_unit(graph, "session");
  gt_graph_add_cosine(graph, "scores", table, (float)(options->scale > 0 ? options->scale : SIGMA));
  return GT_OK;
}

const gt_model gt_model_niser = {
    .name = "niser",
    .source =
        "Gupta, Garg, Malhotra, Vig, Shroff 2019: NISER: Normalized Item and Session "
        "Representations to Handle Popularity Bias, on the graphs of Wu et al. 2019 (SR-GNN), "
        "positions as an option; initial values: SR-GNN's, uniform in 1/sqrt(width)",
    .usual = {1, 1, 20, 43097, 43098},
    .recurrent = true,
    .scaled = true,
    .drops = true,
    .ids = true,
    .ranks = true,
    .build = build,
};
