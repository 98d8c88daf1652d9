/* The job of a run: that of the job file, the same on all ranks; a resume takes the job of the run
   directory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static char *job_path(char *buf, size_t size, const char *run_dir) {
  snprintf(buf, size, "%s/job.yaml", run_dir);
  return buf;
}

/* Sends a text of rank 0 to all ranks; the caller frees it.  `text` is NULL on the other ranks. */
static char *broadcast(const gt_run *run, const char *text) {
  int rank, length = text ? (int)strlen(text) : 0;
  MPI_Request request;
  GT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  GT_MPI(MPI_Ibcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
  gt_wait_all(&request, 1, "the job of rank 0", run->start_limit_s, NULL, NULL);
  char *theirs = GT_NEW_ARRAY(char, (size_t)length + 1);
  if (rank == 0 && text) memcpy(theirs, text, (size_t)length);
  GT_MPI(MPI_Ibcast(theirs, length, MPI_CHAR, 0, MPI_COMM_WORLD, &request));
  gt_wait_all(&request, 1, "the job of rank 0", run->start_limit_s, NULL, NULL);
  return theirs;
}

/* A rank whose resolved job differs from that of rank 0 names the first difference. */
static gt_status compare_jobs(gt_run *run) {
  if (!run->resolved) gt_bug("the job was agreed on but not resolved");
  int rank;
  GT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  char *theirs = broadcast(run, rank == 0 ? run->resolved : NULL);
  gt_status status = GT_OK;
  if (strcmp(theirs, run->resolved) != 0) {
    char text[512];
    gt_job_difference(run->resolved, theirs, false, text, sizeof text);
    status = GT_FAIL(GT_ERR_JOB,
                     "rank %d was started with another job (%s) than rank 0: %s; all ranks need "
                     "the same job and --set options",
                     rank, run->options->job_path, text);
  }
  gt_free(theirs);
  return gt_agree(MPI_COMM_WORLD, status, run->start_limit_s);
}

/* Checks the job and derives what depends on it alone. */
static gt_status settle(gt_run *run) {
  const double local_s = run->job->limits.local_s, wan_s = run->job->limits.wan_patience_s;
  GT_TRY(gt_job_check_run(run->job));
  gt_free(run->resolved);
  run->resolved = gt_job_resolved(run->job);
  run->start_limit_s = local_s > wan_s ? local_s : wan_s;
  run->end_limit_s = 2 * local_s + wan_s;
  return GT_OK;
}

/* The contents of a run directory's job.yaml; the caller frees them. */
static char *write_text(const gt_run *run) {
  const size_t size = sizeof GT_JOB_BEGAN + GT_SHA256_HEX + strlen(run->resolved) + 1;
  char *text = GT_NEW_ARRAY(char, size);
  snprintf(text, size, GT_JOB_BEGAN "%s\n%s", run->job->began_sha256, run->resolved);
  return text;
}

/* Rank 0 replaces the named job by that of the run directory, if there is one. */
static gt_status take_job(gt_run *run) {
  const gt_setup_options *o = run->options;
  char path[1200];
  gt_job *job;
  if (access(job_path(path, sizeof path, o->run_dir), F_OK) != 0) return GT_OK;
  GT_TRY(gt_job_load_run(&job, run->job, o->job_path, path, o->sets, o->nsets));
  /* A run directory of an earlier version does not say which file began the run. */
  if (!gt_job_began(job, run->job) && !job->began_sha256[0])
    memcpy(job->began_sha256, run->job->sha256, GT_SHA256_HEX);
  gt_job_close(run->job);
  run->job = job;
  return settle(run);
}

/* Rank 0 reads the run directory, which other hosts may not share, and sends its job to all. */
static gt_status open_resumed(gt_run *run) {
  int rank;
  GT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  GT_TRY(gt_agree(MPI_COMM_WORLD, rank == 0 ? take_job(run) : GT_OK, run->start_limit_s));
  char *mine = rank == 0 ? write_text(run) : NULL, *text = broadcast(run, mine);
  gt_status status = GT_OK;
  gt_job *job;
  if (rank != 0) status = gt_job_parse(&job, "the job of rank 0", text);
  if (rank != 0 && status == GT_OK) {
    gt_job_close(run->job);
    run->job = job;
    status = settle(run);
  }
  gt_free(mine);
  gt_free(text);
  return gt_agree(MPI_COMM_WORLD, status, run->start_limit_s);
}

gt_status gt_setup_open_job(gt_run *run) {
  const gt_setup_options *o = run->options;
  gt_status status = gt_job_load(&run->job, o->job_path, o->sets, o->nsets);
  run->start_limit_s = run->end_limit_s = 120;
  if (status == GT_OK) status = settle(run);
  GT_TRY(gt_agree(MPI_COMM_WORLD, status, run->start_limit_s));
  GT_TRY(compare_jobs(run));
  memcpy(run->job->began_sha256, run->job->sha256, GT_SHA256_HEX);
  return o->resume == GT_RESUME_NO || !o->run_dir ? GT_OK : open_resumed(run);
}

gt_status gt_setup_write_job(const gt_run *run) {
  char path[1200], *text = write_text(run);
  const bool ok = gt_file_replace(job_path(path, sizeof path, run->run_dir), text, strlen(text));
  gt_free(text);
  return ok ? GT_OK : GT_FAIL(GT_ERR_CKPT, "%s cannot be written: %s", path, strerror(errno));
}
