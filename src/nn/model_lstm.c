/* A classifier of sequences of ids, such as the words of a text: their vectors, an LSTM (Hochreiter
   and Schmidhuber 1997), dropout, and a linear layer from its last hidden state to the classes.  Id
   0 is padding, in front of the sequence. */
#include "graph.h"
#include "models.h"

static gt_status build(gt_graph *graph, const gt_sample_shape *shape,
                       const gt_model_options *options) {
  GT_TRY(gt_model_check_width("embedding", options->embedding, 0));
  GT_TRY(gt_model_check_width("hidden", options->hidden, 0));
  gt_graph_add_embedding_padded(graph, "embedding",
                                options->embedding ? (size_t)options->embedding : 128, 1.0);
  gt_graph_add_lstm(graph, "lstm", options->hidden ? (size_t)options->hidden : 128);
  gt_graph_add_dropout(graph, "dropout", options->dropout);
  gt_graph_add_linear(graph, "fc", shape->classes);
  return GT_OK;
}

const gt_model gt_model_lstm = {
    .name = "lstm",
    .source = "Hochreiter, Schmidhuber 1997: Long Short-Term Memory, with the forget gates of "
              "Gers, Schmidhuber, Cummins 2000; one layer, and a linear one on its last state; "
              "initial values: PyTorch's defaults (vectors normal, that of the padding 0)",
    .usual = {1, 1, 200, 2, 20002},
    .embeds = true,
    .recurrent = true,
    .drops = true,
    .ids = true,
    .build = build,
};
