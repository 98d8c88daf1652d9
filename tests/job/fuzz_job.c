/* Any bytes as a job file give a job or GT_ERR_JOB with a sentence, without leaks.  The resolved
   text of an accepted job gives the same job. */
#include "geotrain/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gt_status load(gt_job **job, const void *text, size_t size) {
  int file = memfd_create("job.yaml", 0);
  char path[64];
  if (file < 0 || (size > 0 && write(file, text, size) != (ssize_t)size)) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  gt_status status = gt_job_load(job, path, NULL, 0);
  close(file);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t alive = gt_alloc_alive();
  gt_job *job = NULL, *again = NULL;
  gt_status status = load(&job, data, size);
  if (status == GT_OK) {
    char *resolved = gt_job_resolved(job), difference[512];
    size_t length = 0;
    while (resolved[length]) length++;
    if (load(&again, resolved, length) != GT_OK) abort();
    char *twice = gt_job_resolved(again);
    gt_job_difference(resolved, twice, false, difference, sizeof difference);
    if (difference[0] != '\0') abort();
    gt_free(twice);
    gt_free(resolved);
    gt_job_close(again);
    gt_job_close(job);
  } else if (status != GT_ERR_JOB || gt_error_text()[0] == '\0') {
    abort();
  }
  if (gt_alloc_alive() != alive) abort();
  return 0;
}
