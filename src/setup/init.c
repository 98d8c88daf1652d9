/* train.init: the parameters from which training starts, of a checkpoint or a final model, or of a
   safetensors file with PyTorch's names. */
#include <stdio.h>
#include <string.h>

#include "geotrain/ckpt_safetensors.h"
#include "internal.h"

/* ---- a checkpoint of the same model ---------------------------------------------------------- */

/* Reads an array of the whole model, of which a region with stages takes its ranges. */
static gt_status take_init(const gt_ckpt_source *from, bool buffers, const gt_part_ranges *part,
                           size_t whole, gt_vec to) {
  const size_t have = gt_ckpt_source_floats(from, buffers);
  if (have != whole)
    return GT_FAIL(GT_ERR_CKPT, "train.init has %zu %s, and the model %zu", have,
                   buffers ? "buffers" : "parameters", whole);
  if (!part) return gt_ckpt_source_get(from, buffers, 0, to.data, to.n);
  for (size_t i = 0; i < part->n; i++) {
    const gt_part_range *r = &part->ranges[i];
    GT_TRY(gt_ckpt_source_get(from, buffers, r->whole, to.data + r->own, r->count));
  }
  return GT_OK;
}

/* Ids and columns must mean the same as in training.  Other classes are allowed. */
static gt_status check_data(const gt_run *run, const gt_state *state) {
  const gt_state_item *names = gt_state_find(state, "data/", "class_names");
  if (gt_setup_check_ids(run, state) != GT_OK)
    return GT_FAIL(GT_ERR_CKPT, "train.init %s: %s, or an import by their schema or vocabulary",
                   run->job->train.init, gt_error_text());
  if (run->roles.is_lead && names && run->class_names &&
      (names->count != run->class_names_bytes ||
       memcmp(names->data, run->class_names, names->count) != 0))
    gt_log(GT_LOG_WARN,
           "train.init %s: its classes have other names, or another order, than those of this job; "
           "its last layer is taken over all the same",
           run->job->train.init);
  return GT_OK;
}

static gt_status read_checkpoint(const gt_run *run) {
  const gt_arrays *a = gt_graph_arrays(run->graph), *whole = gt_graph_arrays(run->model);
  const gt_region_part *part = run->pipe ? &run->pipe->parts[run->roles.region_id] : NULL;
  gt_ckpt_source *from;
  gt_ckpt_info info;
  gt_state state;
  char model[GT_SHA256_HEX];
  const char *path = run->job->train.init;
  gt_status status = gt_ckpt_source_open(&from, path, &info, &state);
  if (status != GT_OK) status = GT_FAIL(status, "train.init %s", gt_error_text());
  gt_graph_hash(run->model, model);
  if (status == GT_OK && strcmp(model, info.model_hash) != 0)
    status =
        GT_FAIL(GT_ERR_CKPT, "train.init %s holds model %s (%.12s), the job needs %s (%.12s)", path,
                info.model, info.model_hash, gt_model_names[run->job->model.name], model);
  if (status == GT_OK && info.mean_of == 0 && gt_job_in_parts(info.job_yaml))
    status = GT_FAIL(GT_ERR_CKPT,
                     "train.init %s holds only the stages of region %s; expected the whole model, "
                     "final.h5 of the pipeline's run",
                     path, info.region);
  if (status == GT_OK) status = check_data(run, &state);
  if (status == GT_OK)
    status = take_init(from, false, part ? &part->params : NULL, whole->params.n, a->params);
  if (status == GT_OK)
    status = take_init(from, true, part ? &part->buffers : NULL, whole->buffers.n, a->buffers);
  gt_ckpt_source_close(from);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

/* True for the tensors of the model's last layer. */
static bool of_last_layer(const gt_graph *model, const char *name) {
  const gt_arrays *a = gt_graph_arrays(model);
  const char *last = a->views[a->nviews - 1].name, *end = strrchr(last, '.');
  return end && strncmp(last, name, (size_t)(end - last) + 1) == 0;
}

static bool same_shape(const gt_view *a, const gt_safetensor *b) {
  return a->ndims == b->ndims &&
         memcmp(a->shape, b->shape, (size_t)b->ndims * sizeof *b->shape) == 0;
}

static const char *shape_of(char text[96], int ndims, const size_t *shape) {
  text[0] = '\0';
  for (int d = 0, at = 0; d < ndims && d < GT_MAX_DIMS; d++)
    at += snprintf(text + at, 96 - (size_t)at, "%s%zu", d ? " x " : "", shape[d]);
  return text;
}

/* Reads tensor i of the graph.  The last layer keeps its random values if the file has other
   classes. */
static gt_status take_tensor(const gt_run *run, const gt_safetensors *from, size_t i) {
  gt_view as;
  char here[96], there[96];
  gt_graph_tensor(run->graph, i, &as, NULL);
  const gt_safetensor *t = gt_safetensors_find(from, as.name);
  if (!t)
    return GT_FAIL(GT_ERR_CKPT,
                   "train.init %s has no tensor %s; expected all tensors of model %s, with "
                   "PyTorch's names",
                   from->path, as.name, gt_model_names[run->job->model.name]);
  if (!same_shape(&as, t)) {
    shape_of(here, as.ndims, as.shape);
    shape_of(there, t->ndims, t->shape);
    if (!of_last_layer(run->model, as.name))
      return GT_FAIL(GT_ERR_CKPT,
                     "train.init %s: %s is %s; expected %s, as in model %s of this job", from->path,
                     as.name, there, here, gt_model_names[run->job->model.name]);
    if (run->roles.is_lead)
      gt_log(GT_LOG_WARN,
             "train.init %s: %s is %s there and %s here, so it begins with random values",
             from->path, as.name, there, here);
    return GT_OK;
  }
  float *values = GT_NEW_ARRAY(float, as.count);
  const gt_status status = gt_safetensors_read(from, t, values);
  if (status == GT_OK) gt_graph_set_tensor(run->graph, i, values);
  gt_free(values);
  return status;
}

/* Refuses a file with layers that the model does not have.  PyTorch's normalisation layers count
   their batches, which has no use here. */
static gt_status check_names(const gt_run *run, const gt_safetensors *from) {
  for (size_t i = 0; i < from->n; i++) {
    const char *name = from->tensors[i].name;
    bool known = strstr(name, ".num_batches_tracked") != NULL;
    for (size_t k = 0; !known && k < gt_graph_tensors(run->model); k++) {
      gt_view as;
      gt_graph_tensor(run->model, k, &as, NULL);
      known = strcmp(as.name, name) == 0;
    }
    if (!known)
      return GT_FAIL(GT_ERR_CKPT,
                     "train.init %s has a tensor %s, and model %s has none of this name",
                     from->path, name, gt_model_names[run->job->model.name]);
  }
  return GT_OK;
}

/* Reads all tensors of the graph but an alias, which has the values of another one. */
static gt_status read_safetensors(const gt_run *run) {
  gt_safetensors from;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  gt_status status = gt_safetensors_open(&from, run->job->train.init);
  if (status != GT_OK) status = GT_FAIL(status, "train.init %s", gt_error_text());
  if (status == GT_OK) status = check_names(run, &from);
  for (size_t i = 0; status == GT_OK && i < a->nviews + a->nbuffer_views; i++)
    status = take_tensor(run, &from, i);
  gt_safetensors_close(&from);
  return status;
}

/* ---- either ---------------------------------------------------------------------------------- */

static gt_status read_init(const gt_run *run) {
  return gt_is_safetensors(run->job->train.init) ? read_safetensors(run) : read_checkpoint(run);
}

gt_status gt_setup_check_init(const char *path) {
  gt_safetensors tensors = {0};
  gt_ckpt_source *from = NULL;
  gt_ckpt_info info = {0};
  gt_state state = {0};
  if (!path) return GT_OK;
  const bool is = gt_is_safetensors(path);
  const gt_status status =
      is ? gt_safetensors_open(&tensors, path) : gt_ckpt_source_open(&from, path, &info, &state);
  gt_safetensors_close(&tensors);
  gt_ckpt_source_close(from);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status == GT_OK ? GT_OK : GT_FAIL(status, "train.init %s", gt_error_text());
}

/* A resumed run does not need its initial parameters. */
gt_status gt_setup_init_params(gt_run *run) {
  int64_t round;
  const char *folder = run->options->run_dir;
  gt_status status = read_init(run);
  if (status == GT_OK || run->options->resume == GT_RESUME_NO || !folder ||
      gt_ckpt_rounds(folder, run->region, &round, 1) == 0)
    return status;
  gt_log(GT_LOG_WARN, "%s; a resume does not read it", gt_error_text());
  run->init_missing = true;
  return GT_OK;
}
