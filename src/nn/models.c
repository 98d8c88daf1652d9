/* Models by number and by name, and the graph spec of a job's model. */
#include <string.h>

#include "models.h"

#define TABLE(constant, name, table) [constant] = &table,
static const gt_model *const models[] = {GT_MODELS(TABLE)};

const gt_model *gt_model_find(const char *name) {
  for (size_t i = 0; gt_model_names[i]; i++)
    if (strcmp(gt_model_names[i], name) == 0) return models[i];
  return NULL;
}

/* ---- the graph spec of a job ----------------------------------------------------------------- */

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
                                     .positions = job->model.positions,
                                     .stem = job->model.stem,
                                     .dropout = job->model.dropout,
                                     .mlp = job->model.mlp,
                                     .nmlp = job->model.nmlp}};
}
