/* Writes the job of a run to its run directory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

gt_status gt_train_write_job(const gt_run *run) {
  char path[1200], temporary[1300];
  snprintf(path, sizeof path, "%s/job.yaml", run->run_dir);
  snprintf(temporary, sizeof temporary, "%s.tmp-%s-%ld", path, run->region, (long)getpid());
  FILE *f = fopen(temporary, "w");
  bool ok = f && fputs(run->resolved, f) >= 0;
  if (f && fclose(f) != 0) ok = false;
  if (ok && rename(temporary, path) == 0) return GT_OK;
  gt_status status = GT_FAIL(GT_ERR_CKPT, "%s cannot be written: %s", path, strerror(errno));
  unlink(temporary);
  return status;
}
