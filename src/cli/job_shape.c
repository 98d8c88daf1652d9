/* What a job trains: floats of its model, samples of its regions. */
#include "job_shape.h"

#include <unistd.h>

#include "geotrain/data.h"
#include "geotrain/nn.h"

static gt_status model_floats(gt_job_shape *out, const gt_job *job, const gt_sample_shape *shape) {
  gt_graph *graph = NULL;
  gt_graph_spec spec = {
      .model = job->model.name,
      .options = {.parameters = job->model.parameters, .embedding = job->model.embedding, .mlp = job->model.mlp, .nmlp = job->model.nmlp},
      .shape = *shape,
      .kernels = gt_kernels_find("ref")};
  GT_TRY(gt_graph_create(&graph, &spec));
  out->parameters = gt_graph_arrays(graph)->params.n;
  out->buffers = gt_graph_arrays(graph)->buffers.n;
  gt_graph_close(graph);
  return GT_OK;
}

/* ---- from a data set ----------------------------------------------------------------------------------------------------------- */

static gt_status part_of(gt_job_shape *out, const gt_job *job, size_t region, gt_dataset *dataset, gt_part_kind kind) {
  gt_partition p = gt_partition_of(job);
  uint32_t *part = NULL;
  size_t n = 0;
  p.kind = kind;
  GT_TRY(gt_partition_part(&p, gt_dataset_labels(dataset, GT_SPLIT_TRAIN), gt_dataset_describe(dataset)->ntrain, region, &part, &n));
  out->samples[region] = (int64_t)n;
  gt_free(part);
  return GT_OK;
}

static gt_status of_own(gt_job_shape *out, const gt_job *job, size_t region, gt_sample_shape *shape) {
  gt_dataset *dataset = NULL;
  GT_TRY(gt_dataset_open(&dataset, job->regions[region].data_path));
  const gt_dataset_info *d = gt_dataset_describe(dataset);
  *shape = (gt_sample_shape){d->h, d->w, d->c, d->classes, d->features};
  out->test_samples = d->ntest;
  gt_status status = part_of(out, job, region, dataset, GT_PART_FILE);
  gt_dataset_close(dataset);
  return status;
}

static gt_status of_common(gt_job_shape *out, const gt_job *job, gt_sample_shape *shape) {
  gt_dataset *dataset = NULL;
  gt_status status = GT_OK;
  GT_TRY(gt_dataset_open(&dataset, job->data.path));
  const gt_dataset_info *d = gt_dataset_describe(dataset);
  *shape = (gt_sample_shape){d->h, d->w, d->c, d->classes, d->features};
  out->test_samples = d->ntest;
  for (size_t r = 0; r < job->nregions && status == GT_OK; r++)
    if (!job->regions[r].data_path) status = part_of(out, job, r, dataset, gt_partition_of(job).kind);
  gt_dataset_close(dataset);
  return status;
}

static gt_status from_data(gt_job_shape *out, const gt_job *job, gt_sample_shape *shape) {
  if (job->data.path) GT_TRY(of_common(out, job, shape));
  for (size_t r = 0; r < job->nregions; r++)
    if (job->regions[r].data_path) GT_TRY(of_own(out, job, r, shape));
  return GT_OK;
}

/* ---- without one ----------------------------------------------------------------------------------------------------------------- */

/* Some region says what it holds, and not every file that the job names is here. */
static bool is_told(const gt_job *job) {
  bool told = false, here = true;
  for (size_t r = 0; r < job->nregions; r++) {
    const char *path = job->regions[r].data_path ? job->regions[r].data_path : job->data.path;
    here = here && path && access(path, R_OK) == 0;
    told = told || job->regions[r].samples > 0;
  }
  return told && !here;
}

static gt_status from_job(gt_job_shape *out, const gt_job *job, gt_sample_shape *shape) {
  const gt_model *model = gt_model_find(job->model.name);
  if (!model) return GT_FAIL(GT_ERR_JOB, "model.name is \"%s\", which this build does not have; `geotrain info` lists models", job->model.name);
  *shape = model->usual;
  out->assumed = true;
  for (size_t r = 0; r < job->nregions; r++) {
    out->samples[r] = job->regions[r].samples;
    if (out->samples[r] <= 0)
      return GT_FAIL(GT_ERR_JOB, "regions.%zu (%s) has no data set that can be read here and no samples; regions[].samples is needed", r,
                     job->regions[r].name);
  }
  return GT_OK;
}

gt_status gt_job_shape_of(gt_job_shape *out, const gt_job *job) {
  gt_sample_shape shape = {0};
  *out = (gt_job_shape){.samples = GT_NEW_ARRAY(int64_t, job->nregions)};
  gt_status status = is_told(job) ? from_job(out, job, &shape) : from_data(out, job, &shape);
  out->sample = shape;
  if (status == GT_OK) status = model_floats(out, job, &shape);
  if (status != GT_OK) gt_job_shape_close(out);
  return status;
}

void gt_job_shape_close(gt_job_shape *shape) {
  gt_free(shape->samples);
  *shape = (gt_job_shape){0};
}
