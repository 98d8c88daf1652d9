/* The floats of a job's model and the samples of its regions. */
#include "geotrain/sim_shape.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "geotrain/store.h"
#include "internal.h"

/* Computes the floats for samples of this shape. */
static gt_status model_floats(gt_sim_shape *out, const gt_job *job) {
  gt_graph *graph = NULL;
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = out->sample;
  spec.text = out->text;
  spec.labelled = !out->text && !out->assumed;
  spec.kernels = gt_kernels_find("ref");
  spec.sizes_only = true;
  GT_TRY(gt_graph_create(&graph, &spec));
  out->parameters = gt_graph_arrays(graph)->params.n;
  out->buffers = gt_graph_arrays(graph)->buffers.n;
  out->ntensors = gt_graph_arrays(graph)->nviews;
  out->tensors = GT_NEW_ARRAY(gt_view, out->ntensors);
  memcpy(out->tensors, gt_graph_arrays(graph)->views, out->ntensors * sizeof *out->tensors);
  gt_graph_close(graph);
  return gt_ps_check_fragments(job, out->ntensors);
}

/* ---- from a data set ------------------------------------------------------------------------- */

/* Opens every file once. */
static gt_status open_files(const gt_job *job, gt_dataset **opened, gt_dataset_info *infos) {
  for (size_t r = 0; r < job->nregions; r++) {
    if (!gt_job_reads(job, r)) continue;
    const size_t first = gt_data_namesake(job, r);
    if (first == r) GT_TRY(gt_data_open(&opened[r], job, r));
    infos[r] = *gt_dataset_describe(opened[first]);
  }
  return GT_OK;
}

/* Returns the file of a region that was opened: its own, or that of an earlier region. */
static gt_dataset *file_of(const gt_job *job, gt_dataset **opened, size_t region) {
  return opened[region] ? opened[region] : opened[gt_data_namesake(job, region)];
}

/* Numbers the classes of all regions that were opened (infos[].h) by the union of their names. */
static gt_status unite(const gt_job *job, gt_dataset **opened, gt_dataset_info *infos) {
  if (job->data.classes == GT_CLASSES_SAME) return GT_OK;
  gt_class_names *names = GT_NEW_ARRAY(gt_class_names, job->nregions), all = {0};
  for (size_t r = 0; r < job->nregions; r++)
    if (infos[r].h) names[r] = *gt_dataset_class_names(file_of(job, opened, r));
  gt_status status = gt_data_unite(job, names, infos, &all);
  for (size_t r = 0; r < job->nregions && status == GT_OK; r++) {
    if (opened[r]) status = gt_dataset_number_classes(opened[r], &all, "the union");
    if (infos[r].h) infos[r] = *gt_dataset_describe(file_of(job, opened, r));
  }
  gt_free(all.text);
  gt_free(names);
  return status;
}

/* Finds the samples of the regions. */
static gt_status divide(const gt_job *job, gt_dataset **opened, const size_t *files,
                        gt_data_samples *parts, gt_data_samples *held) {
  for (size_t r = 0; r < job->nregions; r++) {
    if (!gt_job_reads(job, r)) continue;
    gt_dataset *dataset = file_of(job, opened, r);
    GT_TRY(gt_data_part(job, files, r, gt_dataset_labels(dataset, GT_SPLIT_TRAIN),
                        gt_dataset_describe(dataset)->ntrain, &parts[r], &held[r]));
  }
  return GT_OK;
}

gt_status gt_sim_data_open(sim_data *d, const gt_job *job) {
  const size_t n = job->nregions;
  size_t *files = GT_NEW_ARRAY(size_t, n);
  *d = (sim_data){.job = job,
                  .opened = GT_NEW_ARRAY(gt_dataset *, n),
                  .infos = GT_NEW_ARRAY(gt_dataset_info, n),
                  .parts = GT_NEW_ARRAY(gt_data_samples, n),
                  .held = GT_NEW_ARRAY(gt_data_samples, n)};
  gt_status status = open_files(job, d->opened, d->infos);
  if (status == GT_OK) status = unite(job, d->opened, d->infos);
  if (status == GT_OK) status = gt_data_files(job, d->infos, files);
  if (status == GT_OK) status = divide(job, d->opened, files, d->parts, d->held);
  gt_free(files);
  return status;
}

gt_dataset *gt_sim_data_of(const sim_data *d, size_t region) {
  return file_of(d->job, d->opened, region);
}

void gt_sim_data_close(sim_data *d) {
  for (size_t r = 0; d->job && r < d->job->nregions; r++) {
    gt_dataset_close(d->opened[r]);
    gt_free(d->parts[r].samples);
    gt_free(d->held[r].samples);
  }
  gt_free(d->opened);
  gt_free(d->infos);
  gt_free(d->parts);
  gt_free(d->held);
  *d = (sim_data){0};
}

/* The samples of all regions are alike. */
static void describe(gt_sim_shape *out, const gt_dataset_info *d) {
  out->sample = (gt_sample_shape){d->h, d->w, d->c, d->classes, d->features};
  out->text = d->text;
}

static gt_status warn(const sim_data *d) {
  for (size_t r = 0; r < d->job->nregions; r++)
    if (d->opened[r]) GT_TRY(gt_dataset_doubts(d->opened[r], gt_log_warning));
  return GT_OK;
}

static gt_status from_data(gt_sim_shape *out, const gt_job *job) {
  sim_data d;
  gt_status status = gt_sim_data_open(&d, job);
  if (status == GT_OK) status = warn(&d);
  if (status == GT_OK) gt_ps_tests_of(job, d.infos, out->tests);
  for (size_t r = 0; r < job->nregions; r++) {
    out->samples[r] = (int64_t)d.parts[r].n;
    out->held[r] = (int64_t)d.held[r].n;
    if (gt_job_reads(job, r)) describe(out, &d.infos[r]);
  }
  gt_sim_data_close(&d);
  return status;
}

/* ---- without one ----------------------------------------------------------------------------- */

static bool can_read(const char *path) {
  char *copy = NULL;
  if (path && gt_store_is_url(path)) path = gt_store_copy(path, &copy) == GT_OK ? copy : NULL;
  const bool can = path && access(path, R_OK) == 0;
  gt_free(copy);
  return can;
}

/* True if this machine can read every file that the job names. */
static bool is_here(const gt_job *job) {
  for (size_t r = 0; r < job->nregions; r++) {
    if (!gt_job_reads(job, r)) continue;
    if (!can_read(gt_data_path(job, r))) return false;
  }
  return true;
}

/* True if a region has `samples` in the job, and a file is missing here. */
static bool is_told(const gt_job *job) {
  bool told = false;
  for (size_t r = 0; r < job->nregions; r++) told = told || job->regions[r].samples > 0;
  return told && !is_here(job);
}

static gt_status find_model(const gt_model **model, const gt_job *job) {
  *model = gt_model_find(gt_model_names[job->model.name]);
  return *model ? GT_OK : gt_model_unknown(gt_model_names[job->model.name]);
}

static gt_status from_job(gt_sim_shape *out, const gt_job *job) {
  const gt_model *model = NULL;
  GT_TRY(find_model(&model, job));
  out->sample = model->usual;
  out->assumed = true;
  for (size_t r = 0; r < job->nregions; r++) {
    out->samples[r] = job->regions[r].samples;
    size_t held = 0;
    if (out->samples[r] > 0) GT_TRY(gt_data_held(job, r, (size_t)out->samples[r], &held));
    out->held[r] = (int64_t)held;
    out->samples[r] -= out->held[r];
    if (out->samples[r] <= 0 && gt_job_reads(job, r))
      return GT_FAIL(GT_ERR_JOB,
                     "regions.%zu (%s) has no data set that can be read here and no samples; "
                     "expected regions[].samples",
                     r, job->regions[r].name);
  }
  return GT_OK;
}

gt_status gt_sim_shape_of(gt_sim_shape *out, const gt_job *job) {
  *out = (gt_sim_shape){.samples = GT_NEW_ARRAY(int64_t, job->nregions),
                        .held = GT_NEW_ARRAY(int64_t, job->nregions),
                        .tests = GT_NEW_ARRAY(gt_ps_tests, job->nregions)};
  gt_status status = is_told(job) ? from_job(out, job) : from_data(out, job);
  if (status == GT_OK) status = model_floats(out, job);
  if (status != GT_OK) gt_sim_shape_close(out);
  return status;
}

/* ---- a check before a run -------------------------------------------------------------------- */

/* The files that could be opened, and the first error. */
typedef struct {
  const gt_job *job;
  const bool *elsewhere; /* per region */
  FILE *to;
  gt_dataset **opened; /* per region */
  gt_dataset_info *infos;
  size_t nopened, naway;
  bool some_here; /* not every region is elsewhere */
  gt_status status;
  char why[GT_ERROR_TEXT_MAX];
} check;

/* True if the region's file is not checked here.  With data.partition.by file, a region elsewhere
   can have another file of the same path. */
static bool is_away(const check *c, size_t r) {
  const bool own = c->job->data.partition.by == GT_PART_FILE;
  if (!c->elsewhere[r]) return false;
  return !can_read(gt_data_path(c->job, r)) ||
         (own && (c->some_here || c->opened[gt_data_namesake(c->job, r)]));
}

/* Opens a region's file, and prints the region's line. */
static void check_region(check *c, size_t r) {
  const char *name = c->job->regions[r].name, *path = gt_data_path(c->job, r);
  if (!gt_job_reads(c->job, r)) {
    fprintf(c->to, "region %s: reads no data\n", name);
    return;
  }
  if (is_away(c, r)) {
    c->naway++;
    fprintf(c->to, "region %s: not checked here: %s\n", name, path ? path : "no data set is named");
    return;
  }
  const size_t same = gt_data_namesake(c->job, r);
  if (c->opened[same]) {
    c->infos[r] = c->infos[same];
    c->nopened++;
    fprintf(c->to, "region %s: reads the same file as region %s\n", name,
            c->job->regions[same].name);
    return;
  }
  gt_status status = gt_data_open(&c->opened[r], c->job, r);
  if (status == GT_OK) status = gt_dataset_doubts(c->opened[r], gt_log_warning);
  if (status != GT_OK) {
    if (c->status == GT_OK) snprintf(c->why, sizeof c->why, "%s", gt_error_text());
    if (c->status == GT_OK) c->status = status;
    fprintf(c->to, "region %s: %s\n", name, gt_error_text());
    return;
  }
  const gt_dataset_info *d = gt_dataset_describe(c->opened[r]);
  c->infos[r] = *d;
  c->nopened++;
  fprintf(c->to, "region %s: %zu training and %zu test samples of %zu x %zu x %zu in %s\n", name,
          d->ntrain, d->ntest, d->h, d->w, d->c, path);
}

/* Treats an unread file like the first one that was read, so that the others are compared. */
static void assume_away(check *c) {
  size_t first = 0;
  while (!c->infos[first].h) first++;
  for (size_t r = 0; r < c->job->nregions; r++)
    if (gt_job_reads(c->job, r) && !c->infos[r].h) c->infos[r] = c->infos[first];
}

/* Returns the largest memory of a worker of the region. */
static double worker_bytes(const gt_pipe_job *pipe, size_t region) {
  size_t most = 0;
  for (size_t w = 0; w < gt_job_workers(pipe->job, region); w++) {
    const size_t bytes = gt_pipe_job_memory(pipe, gt_pipe_stage_at(&pipe->layout, region, w));
    if (bytes > most) most = bytes;
  }
  return (double)most;
}

/* Compares each worker that can run here with this machine's free memory.  Workers are not added
   up: they can have machines of their own. */
static gt_status check_memory(const check *c, const gt_sim_shape *shape, gt_pipe_job **pipes) {
  const gt_job *job = c->job;
  const double free_bytes = gt_memory_free("");
  gt_graph_spec spec = gt_sim_shape_spec(shape, job);
  size_t parameters, bytes;
  char what[256];
  spec.batch_max = pipes ? 0 : (size_t)job->train.batch;
  GT_TRY(gt_graph_size(&spec, &parameters, &bytes));
  for (size_t r = 0; r < job->nregions; r++) {
    if (c->elsewhere[r]) continue;
    snprintf(what, sizeof what, "model %s has %zu parameters, and a worker of region %s",
             spec.model, parameters, job->regions[r].name);
    GT_TRY(gt_memory_check(
        GT_ERR_JOB, what, pipes ? worker_bytes(pipes[gt_job_replica_of(job, r)], r) : (double)bytes,
        free_bytes));
  }
  return GT_OK;
}

/* A job whose ranks are still to be planned has no pipeline yet. */
static gt_status check_model(const check *c, const gt_sim_shape *shape) {
  gt_pipe_job **pipes = NULL;
  const bool piped = c->job->pipeline.nstages > 0;
  if (piped && gt_job_check_ranks(c->job) != GT_OK) return GT_OK;
  GT_TRY(gt_sim_shape_pipes(&pipes, c->job, shape));
  const gt_status status = check_memory(c, shape, pipes);
  gt_sim_pipes_close(pipes, c->job);
  return status;
}

/* Compares the sizes of parts with what the job asks for. */
static gt_status check_parts(const check *c, const size_t *files) {
  const size_t n = c->job->nregions;
  gt_data_samples *parts = GT_NEW_ARRAY(gt_data_samples, n),
                  *held = GT_NEW_ARRAY(gt_data_samples, n);
  const gt_status status = divide(c->job, c->opened, files, parts, held);
  for (size_t r = 0; r < n; r++) gt_free(parts[r].samples), gt_free(held[r].samples);
  gt_free(parts);
  gt_free(held);
  return status;
}

static gt_status check_fit(check *c) {
  const gt_model *model = NULL;
  if (c->nopened == 0) return find_model(&model, c->job);
  gt_sim_shape shape = {0};
  size_t *files = GT_NEW_ARRAY(size_t, c->job->nregions);
  gt_status status = unite(c->job, c->opened, c->infos);
  assume_away(c);
  if (status == GT_OK) status = gt_data_files(c->job, c->infos, files);
  if (status == GT_OK && c->naway == 0) status = check_parts(c, files);
  describe(&shape, &c->infos[gt_data_first(c->job)]);
  if (status == GT_OK) status = model_floats(&shape, c->job);
  if (status == GT_OK) status = check_model(c, &shape);
  gt_free(files);
  gt_sim_shape_close(&shape);
  return status;
}

gt_status gt_sim_shape_check(const gt_job *job, const bool *elsewhere, FILE *to, size_t *naway) {
  check c = {.job = job,
             .elsewhere = elsewhere,
             .to = to,
             .opened = GT_NEW_ARRAY(gt_dataset *, job->nregions),
             .infos = GT_NEW_ARRAY(gt_dataset_info, job->nregions)};
  for (size_t r = 0; r < job->nregions; r++) c.some_here |= !elsewhere[r];
  for (size_t r = 0; r < job->nregions; r++) check_region(&c, r);
  const gt_status status = c.status == GT_OK ? check_fit(&c) : GT_FAIL(c.status, "%s", c.why);
  for (size_t r = 0; r < job->nregions; r++) gt_dataset_close(c.opened[r]);
  gt_free(c.opened);
  gt_free(c.infos);
  *naway = c.naway;
  return status;
}

void gt_sim_shape_close(gt_sim_shape *shape) {
  gt_free(shape->samples);
  gt_free(shape->held);
  gt_free(shape->tests);
  gt_free(shape->tensors);
  *shape = (gt_sim_shape){0};
}

gt_graph_spec gt_sim_shape_spec(const gt_sim_shape *shape, const gt_job *job) {
  gt_graph_spec model = gt_graph_spec_of(job);
  model.shape = shape->sample;
  model.text = shape->text;
  model.kernels = gt_kernels_find(gt_kernels_names[job->train.kernels]);
  model.precision = job->train.precision;
  if (!model.kernels) model.kernels = gt_kernels_find("ref");
  return model;
}

static gt_status open_copy(gt_pipe_job **out, const gt_job *job, const gt_sim_shape *shape,
                           size_t replica) {
  const gt_graph_spec model = gt_sim_shape_spec(shape, job);
  return gt_pipe_job_open(out, job, &model, replica);
}

gt_status gt_sim_shape_pipes(gt_pipe_job ***out, const gt_job *job, const gt_sim_shape *shape) {
  *out = NULL;
  if (job->pipeline.nstages == 0) return GT_OK;
  gt_pipe_job **pipes = GT_NEW_ARRAY(gt_pipe_job *, gt_job_replicas(job));
  for (size_t c = 0; c < gt_job_replicas(job); c++) {
    const gt_status status = open_copy(&pipes[c], job, shape, c);
    if (status == GT_OK) continue;
    gt_sim_pipes_close(pipes, job);
    return status;
  }
  *out = pipes;
  return GT_OK;
}

void gt_sim_pipes_close(gt_pipe_job **pipes, const gt_job *job) {
  for (size_t c = 0; pipes && c < gt_job_replicas(job); c++) gt_pipe_job_close(pipes[c]);
  gt_free(pipes);
}
