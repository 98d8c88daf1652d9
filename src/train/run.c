/* One run from MPI_Init to MPI_Finalize. */
#include <stdio.h>

#include "stages.h"

static gt_status serve(gt_run *run, const gt_clock_ops *clock, gt_live_mode live) {
  gt_server s;
  gt_status status = gt_server_open(&s, run, clock, live);
  bool opened = status == GT_OK;
  if (opened) status = clock->loop(&s);
  if (opened && (status == GT_STOPPED || status == GT_ERR_LIMIT)) gt_server_stopped(&s, status);
  gt_server_close(&s);
  return status;
}

/* Open MPI's mpirun returns 1 if it got the signal itself, whatever its ranks return. */
#define LAUNCHERS_CODE " (exit code 75; mpirun returns 1 if the signal was sent to mpirun)"

/* Prints the one error message of a run that could not start or did not end with 0. */
static void say(const gt_run *run, gt_status status) {
  int rank;
  GT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  /* if each rank is a world of its own, only one prints */
  if (status == GT_OK || rank != 0 || !gt_launch_first()) return;
  if (status == GT_STOPPED)
    fprintf(stderr,
            "geotrain: stopped by a signal; a checkpoint was written; continue with --run-dir %s "
            "--resume%s\n",
            run->run_dir, gt_server_stopped_by_launcher() ? LAUNCHERS_CODE : "");
  else
    fprintf(stderr, "geotrain: %s\n", gt_error_text());
}

gt_status gt_train(const gt_train_options *options) {
  const gt_clock_ops *clock = options->setup.virtual_clock ? &gt_clock_virtual : &gt_clock_real;
  gt_run run;
  gt_stop_install();
  gt_net_start(120);
  gt_status status = gt_setup_open(&run, &options->setup);
  if (status == GT_OK && !options->setup.run_dir)
    gt_log_job(GT_LOG_INFO, "the run directory is %s (--run-dir names another)", run.run_dir);
  if (status == GT_OK)
    status = run.roles.is_ps ? serve(&run, clock, options->live)
             : run.pipe      ? gt_stage_worker_run(&run, clock)
                             : gt_worker_run(&run, clock);
  status = gt_job_blame(run.job, status);
  say(&run, status);
  gt_setup_close(&run);
  gt_net_finalize(run.end_limit_s);
  return status;
}
