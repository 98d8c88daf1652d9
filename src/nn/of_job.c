/* The graph spec of a job's model. */
#include "geotrain/nn.h"

gt_graph_spec gt_graph_spec_of(const gt_job *job) {
  return (gt_graph_spec){.model = gt_model_names[job->model.name],
                         .options = {.parameters = job->model.parameters,
                                     .embedding = job->model.embedding,
                                     .hidden = job->model.hidden,
                                     .scale = job->model.scale,
                                     .layers = job->model.layers,
                                     .width = job->model.width,
                                     .heads = job->model.heads,
                                     .context = job->model.context,
                                     .untied = job->model.untied,
                                     .mlp = job->model.mlp,
                                     .nmlp = job->model.nmlp}};
}
