/* Rebuilds the model of a checkpoint: the model's name, the shape of its samples, then its
   parameters and buffers. */
#include "checkpoint_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "geotrain/ckpt.h"
#include "geotrain/job.h"

gt_status gt_cli_checkpoint_shape(const char *path, const gt_ckpt_info *info,
                                  gt_sample_shape *shape) {
  for (int i = 0; i < 4; i++)
    if (info->shape[i] < 1)
      return GT_FAIL(GT_ERR_CKPT, "%s: its sample shape has %lld; expected 1 or more", path,
                     (long long)info->shape[i]);
  if (info->features < 0 || info->features > INT32_MAX)
    return GT_FAIL(GT_ERR_CKPT, "%s: its samples are ids below %lld; expected 0 (images) to %d",
                   path, (long long)info->features, INT32_MAX);
  *shape = (gt_sample_shape){(size_t)info->shape[0], (size_t)info->shape[1], (size_t)info->shape[2],
                             (size_t)info->shape[3], (size_t)info->features};
  return GT_OK;
}

static bool is_list(const gt_state_item *item, size_t n) {
  return item && item->type == GT_TYPE_F32 && item->count == n;
}

gt_status gt_cli_checkpoint_norm(const char *path, const gt_state *state, size_t channels,
                                 bool *said, const float **mean, const float **std) {
  const gt_state_item *means = gt_state_find(state, "", "data/mean"),
                      *stds = gt_state_find(state, "", "data/std");
  *said = means || stds;
  if (!*said) return GT_OK;
  if (!is_list(means, channels) || !is_list(stds, channels))
    return GT_FAIL(GT_ERR_CKPT,
                   "%s: its data/mean and data/std are not %zu float32 each, one a channel", path,
                   channels);
  *mean = means->data;
  *std = stds->data;
  for (size_t c = 0; c < channels; c++)
    if (!isfinite((*mean)[c]) || !isfinite((*std)[c]) || (*std)[c] <= 0)
      return GT_FAIL(GT_ERR_CKPT,
                     "%s: its data/mean is %g and data/std %g of channel %zu; both must be finite, "
                     "and data/std above 0",
                     path, (double)(*mean)[c], (double)(*std)[c], c);
  return GT_OK;
}

gt_status gt_cli_model_class_names(const gt_cli_model *m, gt_class_names *names) {
  const gt_state_item *item = gt_state_find(&m->state, "data/", "class_names");
  const size_t n = m->shape.classes;
  *names = (gt_class_names){0};
  if (!item) return GT_OK;
  const char *at = item->data, *end = at + (item->type == GT_TYPE_U8 ? item->count : 0), *stop;
  for (; at < end && (stop = memchr(at, '\0', (size_t)(end - at))); at = stop + 1)
    gt_class_names_add(names, at);
  if (names->n == n && at == end) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s: its data/class_names has %zu names; expected %zu, one a class",
                 m->path, names->n, n);
}

/* Copies parameters and buffers from the state. */
static gt_status load(const gt_graph *graph, const char *path, const gt_state *state) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  gt_status status =
      gt_state_get(state, "", "model/params", GT_TYPE_F32, arrays->params.data, arrays->params.n);
  if (status == GT_OK && arrays->buffers.n > 0)
    status = gt_state_get(state, "", "model/buffers", GT_TYPE_F32, arrays->buffers.data,
                          arrays->buffers.n);
  return status == GT_OK ? GT_OK : GT_FAIL(status, "%s: %s", path, gt_error_text());
}

/* Creates the graph with the options of the job that trained the model. */
static gt_status create_with_options(gt_graph **graph, gt_graph_spec *spec, const char *path,
                                     const gt_ckpt_info *info) {
  gt_job *job = NULL;
  char source[1200];
  snprintf(source, sizeof source, "%s, job.yaml in it", path);
  if (gt_job_parse(&job, source, info->job_yaml) != GT_OK)
    return GT_FAIL(GT_ERR_CKPT, "%s", gt_error_text());
  spec->options = gt_graph_spec_of(job).options;
  gt_status status = gt_graph_create(graph, spec);
  gt_job_close(job);
  return status;
}

gt_status gt_cli_checkpoint_whole(const char *path, const gt_ckpt_info *info) {
  if (info->mean_of > 0 || !gt_job_in_parts(info->job_yaml)) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "%s holds only the stages of region %s, a part of model %s; expected the whole "
                 "model, final.h5, which the pipeline's run writes at its end",
                 path, info->region, info->model);
}

gt_status gt_cli_checkpoint_graph(gt_graph **out, const char *path, const gt_ckpt_info *info,
                                  size_t params, gt_graph_spec *spec) {
  const gt_model *model = gt_model_find(info->model);
  if (!model)
    return GT_FAIL(GT_ERR_CKPT, "%s: its model '%s' is not one of this program's", path,
                   info->model);
  GT_TRY(gt_cli_checkpoint_whole(path, info));
  spec->model = info->model;
  spec->options = (gt_model_options){.parameters = model->sized ? (int64_t)params : 0};
  spec->kernels = gt_kernels_find("auto");
  const bool optional = model->embeds || model->layered || model->recurrent || model->decodes ||
                        model->stemmed || model->drops;
  return optional ? create_with_options(out, spec, path, info) : gt_graph_create(out, spec);
}

gt_status gt_cli_checkpoint_hash(const gt_graph *graph, const char *path,
                                 const gt_ckpt_info *info) {
  char hash[GT_SHA256_HEX];
  gt_graph_hash(graph, hash);
  if (strcmp(hash, info->model_hash) == 0) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "%s: its model %s has hash %.12s, this program's has %.12s; expected the version "
                 "that wrote it",
                 path, info->model, info->model_hash, hash);
}

gt_status gt_cli_checkpoint_model(gt_graph **out, const char *path, const gt_ckpt_info *info,
                                  const gt_state *state, const gt_sample_shape *shape,
                                  size_t batch_max) {
  gt_graph *graph;
  const gt_state_item *params = gt_state_find(state, "", "model/params");
  gt_graph_spec spec = {.shape = *shape, .batch_max = batch_max};
  GT_TRY(gt_cli_checkpoint_graph(&graph, path, info, params ? params->count : 0, &spec));
  gt_status status = gt_cli_checkpoint_hash(graph, path, info);
  if (status == GT_OK) status = load(graph, path, state);
  if (status == GT_OK)
    *out = graph;
  else
    gt_graph_close(graph);
  return status;
}

/* ---- the file of a model --------------------------------------------------------------------- */

static bool is_folder(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static gt_status absent(const char *run_dir, const char *region, const char *path) {
  char there[1024];
  gt_ckpt_list(there, sizeof there, run_dir);
  return GT_FAIL(GT_ERR_CKPT, "%s does not exist: a run writes it at its end%s; %s holds %s", path,
                 region ? ", where regions keep models of their own (strategy none)"
                        : " (strategy none: one a region, to be named)",
                 run_dir, there);
}

gt_status gt_cli_run_model(char *path, size_t size, const char *named, const char *region) {
  if (!region && !is_folder(named)) {
    snprintf(path, size, "%s", named);
    return GT_OK;
  }
  if (!is_folder(named))
    return GT_FAIL(GT_ERR_JOB,
                   "%s is not a run directory; a REGION (%s) applies to run directories only",
                   named, region);
  gt_ckpt_final_model_path(path, size, named, region);
  return access(path, F_OK) == 0 ? GT_OK : absent(named, region, path);
}

gt_status gt_cli_model_open(gt_cli_model *out, const char *named, const char *region) {
  gt_cli_model *m = out;
  *m = (gt_cli_model){0};
  GT_TRY(gt_cli_run_model(m->path, sizeof m->path, named, region));
  GT_TRY(gt_ckpt_read(m->path, &m->info, &m->state));
  GT_TRY(gt_cli_checkpoint_shape(m->path, &m->info, &m->shape));
  return gt_cli_checkpoint_model(&m->graph, m->path, &m->info, &m->state, &m->shape, 0);
}

void gt_cli_model_close(gt_cli_model *model) {
  gt_graph_close(model->graph);
  gt_state_close(&model->state);
  gt_ckpt_info_close(&model->info);
}

gt_status gt_cli_model_graph(void *model, gt_graph **out) {
  const gt_cli_model *m = model;
  const gt_arrays *a = gt_graph_arrays(m->graph);
  GT_TRY(gt_cli_checkpoint_model(out, m->path, &m->info, &m->state, &m->shape, m->batch));
  gt_graph_adopt(*out, a->params.data, NULL, a->buffers.data);
  return GT_OK;
}
