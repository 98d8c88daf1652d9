/* From a job file to a job: read, override, check, fill in, type, check across keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define FILE_MAX ((size_t)1 << 20)

static gt_status read_file(const char *path, char **text, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return GT_FAIL(GT_ERR_JOB, "%s: cannot be opened: %s", path, strerror(errno));
  char *buffer = gt_alloc(FILE_MAX + 1, 1);
  errno = 0;
  size_t n = fread(buffer, 1, FILE_MAX + 1, file);
  int error = ferror(file) ? errno : 0;
  fclose(file);
  if (!error && n <= FILE_MAX) {
    *text = buffer;
    *size = n;
    return GT_OK;
  }
  gt_free(buffer);
  if (error) return GT_FAIL(GT_ERR_JOB, "%s: cannot be read: %s", path, strerror(error));
  return GT_FAIL(GT_ERR_JOB, "%s: is longer than 1 MiB; a job file is needed", path);
}

static gt_status load_tree(gt_job **out, job_node *root, const char *path, const char *const *sets, size_t nsets) {
  gt_job_prune(root);
  bool empty = gt_job_node_null(root);
  for (size_t i = 0; i < nsets && !empty; i++) {
    GT_TRY(gt_job_set(root, sets[i]));
    gt_job_prune(root); /* "sync=null" takes the whole map out, and the next may set a key in it */
  }
  GT_TRY(gt_job_values(root, path));
  GT_TRY(gt_job_defaults(root, path));
  gt_job *job = NULL;
  GT_TRY(gt_job_typed(&job, root));
  gt_status status = gt_job_check(job, root, path);
  if (status == GT_OK)
    *out = job;
  else
    gt_job_close(job);
  return status;
}

gt_status gt_job_load(gt_job **out, const char *path, const char *const *sets, size_t nsets) {
  char *text = NULL;
  size_t size = 0;
  job_node *root = NULL;
  GT_TRY(read_file(path, &text, &size));
  gt_status status = gt_job_yaml_parse(&root, path, text, size);
  gt_free(text);
  if (status == GT_OK) status = load_tree(out, root, path, sets, nsets);
  gt_job_node_close(root);
  return status;
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
