/* From a job file to a job: read, override, check, add defaults, convert, check across keys. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Adds defaults, converts, and checks across keys; *job is replaced on success. */
static gt_status make_job(gt_job **job, job_node *root, const char *path) {
  GT_TRY(gt_job_defaults(root, path));
  gt_job *made = gt_job_typed(root);
  gt_status status = gt_job_check(made, root, path);
  gt_job_close(status == GT_OK ? *job : made);
  if (status == GT_OK) *job = made;
  return status;
}

static gt_status merge_profile(gt_job **job, job_node *root, const char *path) {
  char *fleet = NULL;
  GT_TRY(gt_job_profile(root, *job, path, &fleet));
  const gt_status status = make_job(job, root, path);
  if (status == GT_OK)
    (*job)->fleet = fleet;
  else
    gt_free(fleet);
  return status;
}

/* Merges the files that a job names into its tree.  The job must be valid without them. */
static gt_status merge_files(gt_job **job, job_node *root, const char *path) {
  if ((*job)->wan.matrix) {
    GT_TRY(gt_job_matrix(root, *job, path));
    GT_TRY(make_job(job, root, path));
  }
  return (*job)->profile ? merge_profile(job, root, path) : GT_OK;
}

/* Input in addition to the job file. */
typedef struct {
  const char *const *sets;
  size_t nsets;
  const char *regions; /* CSV file, or NULL */
} extras;

static gt_status load_tree(gt_job **out, job_node *root, const char *path, const extras *more) {
  gt_job *job = NULL;
  GT_TRY(gt_job_prune(root, path, true));
  bool empty = gt_job_node_null(root);
  if (more->regions && root->kind == NODE_MAP) GT_TRY(gt_job_regions(root, more->regions));
  for (size_t i = 0; i < more->nsets && !empty; i++) {
    GT_TRY(gt_job_set(root, more->sets[i]));
    GT_TRY(gt_job_prune(
        root, path,
        true)); /* "sync=null" removes the whole map; a later --set may set a key in it */
  }
  GT_TRY(gt_job_values(root, path));
  GT_TRY(gt_job_check_owners(root, path));
  GT_TRY(make_job(&job, root, path));
  gt_status status = merge_files(&job, root, path);
  if (status == GT_OK)
    *out = job;
  else
    gt_job_close(job);
  return status;
}

static gt_status load_text(gt_job **out, const char *source, const char *text, size_t size,
                           const extras *more) {
  job_node *root = NULL;
  gt_status status = gt_job_yaml_parse(&root, source, text, size);
  if (status == GT_OK) status = load_tree(out, root, source, more);
  gt_job_node_close(root);
  if (status != GT_OK) return status;
  (*out)->source = gt_strdup(source);
  gt_sha256_hex(text, size, (*out)->sha256);
  if (sscanf(text, GT_JOB_BEGAN "%64[0-9a-f]", (*out)->began_sha256) != 1)
    (*out)->began_sha256[0] = '\0';
  return GT_OK;
}

gt_status gt_job_load_regions(gt_job **out, const char *path, const char *const *sets, size_t nsets,
                              const char *regions_csv) {
  char *text = NULL;
  size_t size = 0;
  const extras more = {sets, nsets, regions_csv};
  GT_TRY(gt_job_read_file(path, "a job file", &text, &size));
  gt_status status = load_text(out, path, text, size, &more);
  gt_free(text);
  return status;
}

gt_status gt_job_load(gt_job **out, const char *path, const char *const *sets, size_t nsets) {
  return gt_job_load_regions(out, path, sets, nsets, NULL);
}

gt_status gt_job_parse(gt_job **out, const char *source, const char *text) {
  const extras none = {0};
  return load_text(out, source, text, strlen(text), &none);
}

int gt_job_ranks(const gt_job *job) {
  int ranks = 0;
  for (size_t i = 0; i < job->nregions; i++) ranks += job->regions[i].ranks;
  return ranks;
}

static gt_status check_ranks(const gt_job *job) {
  for (size_t i = 0; i < job->nregions; i++)
    if (job->regions[i].ranks == 0)
      return GT_FAIL(GT_ERR_JOB,
                     "regions.%zu.ranks is auto; `geotrain plan JOB --write OUT.yaml` resolves it",
                     i);
  if (job->pipeline.search)
    return GT_FAIL(GT_ERR_JOB, "pipeline.stages is auto; `geotrain plan JOB --write OUT.yaml` "
                               "finds the stages");
  return GT_OK;
}

static gt_status check_run(const gt_job *job) {
  GT_TRY(check_ranks(job));
  for (size_t i = 0; i < job->nregions; i++) {
    const gt_job_region *r = &job->regions[i];
    if (gt_job_reads(job, i) && !r->data_path &&
        (!job->data.path || job->data.partition.by == GT_PART_FILE))
      return GT_FAIL(GT_ERR_JOB,
                     "data.path: region %s has no data set, only regions.%zu.samples; %s is needed",
                     r->name, i, job->data.path ? "its own data.path" : "data.path");
  }
  return GT_OK;
}

gt_status gt_job_check_ranks(const gt_job *job) {
  return gt_job_blame(job, check_ranks(job));
}

gt_status gt_job_check_run(const gt_job *job) {
  return gt_job_blame(job, check_run(job));
}

bool gt_job_in_parts(const char *yaml) {
  gt_job *job = NULL;
  const gt_status status = gt_job_parse(&job, "job.yaml", yaml);
  const bool parts =
      status == GT_OK && job->pipeline.nstages > 0 && job->nregions > gt_job_copies(job);
  gt_job_close(job);
  return parts;
}
