/* From a job file to a job: read, override, check, fill in, type, check across keys. */
#include <string.h>

#include "internal.h"

/* Defaults, types, what one key cannot say alone; *job is replaced when all is well. */
static gt_status make_job(gt_job **job, job_node *root, const char *path) {
  gt_job *made = NULL;
  GT_TRY(gt_job_defaults(root, path));
  GT_TRY(gt_job_typed(&made, root));
  gt_status status = gt_job_check(made, root, path);
  gt_job_close(status == GT_OK ? *job : made);
  if (status == GT_OK) *job = made;
  return status;
}

/* The files that a job names are merged into its tree, by a job that is in order without them. */
static gt_status merge_files(gt_job **job, job_node *root, const char *path) {
  if ((*job)->wan.matrix) {
    GT_TRY(gt_job_matrix(root, *job, path));
    GT_TRY(make_job(job, root, path));
  }
  if ((*job)->profile) {
    GT_TRY(gt_job_profile(root, *job, path));
    GT_TRY(make_job(job, root, path));
  }
  return GT_OK;
}

static gt_status load_tree(gt_job **out, job_node *root, const char *path, const char *const *sets, size_t nsets) {
  gt_job *job = NULL;
  gt_job_prune(root);
  bool empty = gt_job_node_null(root);
  for (size_t i = 0; i < nsets && !empty; i++) {
    GT_TRY(gt_job_set(root, sets[i]));
    gt_job_prune(root); /* "sync=null" takes the whole map out, and the next may set a key in it */
  }
  GT_TRY(gt_job_values(root, path));
  GT_TRY(make_job(&job, root, path));
  gt_status status = merge_files(&job, root, path);
  if (status == GT_OK)
    *out = job;
  else
    gt_job_close(job);
  return status;
}

static gt_status load_text(gt_job **out, const char *source, const char *text, size_t size, const char *const *sets, size_t nsets) {
  job_node *root = NULL;
  gt_status status = gt_job_yaml_parse(&root, source, text, size);
  if (status == GT_OK) status = load_tree(out, root, source, sets, nsets);
  gt_job_node_close(root);
  return status;
}

gt_status gt_job_load(gt_job **out, const char *path, const char *const *sets, size_t nsets) {
  char *text = NULL;
  size_t size = 0;
  GT_TRY(gt_job_read_file(path, "a job file", &text, &size));
  gt_status status = load_text(out, path, text, size, sets, nsets);
  gt_free(text);
  return status;
}

gt_status gt_job_parse(gt_job **out, const char *source, const char *text) {
  return load_text(out, source, text, strlen(text), NULL, 0);
}

int gt_job_ranks(const gt_job *job) {
  int ranks = 0;
  for (size_t i = 0; i < job->nregions; i++) ranks += job->regions[i].ranks;
  return ranks;
}

const gt_job_link *gt_job_link_between(const gt_job *job, size_t a, size_t b) {
  for (size_t i = 0; i < job->wan.nlinks; i++) {
    const gt_job_link *link = &job->wan.links[i];
    if ((link->ia == a && link->ib == b) || (!link->from && link->ia == b && link->ib == a)) return link;
  }
  return NULL;
}

static double said(double own, double general) {
  return own > 0 ? own : general;
}

gt_job_compute gt_job_compute_of(const gt_job *job, size_t region) {
  const gt_job_compute *own = &job->regions[region].compute, *all = &job->compute;
  gt_job_compute c = {.speed = said(own->speed, said(all->speed, 1)),
                      .eval_samples_per_s = said(own->eval_samples_per_s, all->eval_samples_per_s),
                      .local_s = said(own->local_s, all->local_s),
                      .update_s = said(own->update_s, all->update_s),
                      .apply_s = said(own->apply_s, all->apply_s),
                      .encode_s = said(own->encode_s, all->encode_s),
                      .checkpoint_bps = said(own->checkpoint_bps, all->checkpoint_bps)};
  const gt_job_compute *speed = own->samples_per_s > 0 || own->step_s > 0 ? own : all; /* one of the two, never a mixture */
  c.samples_per_s = speed->samples_per_s;
  c.step_s = speed->step_s;
  double rate = c.step_s > 0 ? (double)job->train.batch / c.step_s : c.samples_per_s;
  c.eval_samples_per_s = said(c.eval_samples_per_s, 3 * rate);
  return c;
}
