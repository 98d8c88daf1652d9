/* The job of a run that has begun: job.yaml of its run directory, beside the job file of this start. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

const char gt_job_on_resume[] =
    "a resume may change train.until, checkpoint, limits, ranks, hosts, speeds, prices, plan, log, "
    "slurm and a pipeline's stages, schedule, micro_batches, memory and adapt only";

bool gt_job_began(const gt_job *run, const gt_job *named) {
  return strcmp(named->sha256, run->began_sha256) == 0 || strcmp(named->sha256, run->sha256) == 0;
}

gt_status gt_job_load_run(gt_job **out, const gt_job *named, const char *named_path,
                          const char *path, const char *const *sets, size_t nsets) {
  gt_job *run = NULL;
  GT_TRY(gt_job_load(&run, path, sets, nsets));
  char *before = gt_job_resolved(run), *now = gt_job_resolved(named), text[640] = "";
  if (!gt_job_began(run, named)) gt_job_changes(now, before, text, sizeof text);
  gt_free(before);
  gt_free(now);
  if (!text[0]) {
    *out = run;
    return GT_OK;
  }
  gt_job_close(run);
  return GT_FAIL(GT_ERR_JOB,
                 "%.120s is not the job of the run (%.120s): %s; give these keys by --set, or name "
                 "%.120s to resume the run as it is",
                 named_path, path, text, path);
}

gt_status gt_job_run_sets(FILE *to, const gt_job *named, const gt_job *run) {
  char *now = gt_job_resolved(named), *before = gt_job_resolved(run), text[512];
  gt_job_difference(now, before, true, text, sizeof text);
  const bool fits = !text[0];
  if (fits && !gt_job_began(run, named)) gt_job_print_sets(to, now, before);
  gt_free(now);
  gt_free(before);
  return fits ? GT_OK : GT_FAIL(GT_ERR_JOB, "%s; %s", text, gt_job_on_resume);
}
