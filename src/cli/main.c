/* geotrain: finds the command and turns its status into the exit code. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include "cli.h"
#include "geotrain/tensor.h"

static bool is(const char *text, const char *a, const char *b) {
  return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static int finish(gt_status status, bool said) {
  if (status != GT_OK && !said) fprintf(stderr, "geotrain: %s\n", gt_error_text());
  if (fflush(stdout) != 0 && status == GT_OK) {
    perror("geotrain: standard output");
    status = GT_ERR_FAULT;
  }
  return (int)status;
}

/* Selects the instruction set, which also applies to OpenBLAS. */
static gt_status choose_isa(char **argv) {
  GT_TRY(gt_isa_choose(getenv("GEOTRAIN_ISA")));
  gt_isa_fit_blas(argv);
  if (gt_isa_blas_cap())
    gt_log(GT_LOG_WARN,
           "GEOTRAIN_ISA is %s, and OpenBLAS keeps its core %s: this build of it cannot be held to "
           "less",
           gt_isa_name(gt_isa_used()), gt_kernels_blas_core());
  return GT_OK;
}

/* UCX, which MPICH loads, takes SIGHUP for its debugger, so a closed terminal would end no command.
   Under nohup it stays ignored. */
static void free_hangup(void) {
  struct sigaction now;
  if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
    (void)signal(SIGHUP, SIG_DFL);
}

int main(int argc, char **argv) {
  free_hangup();
  /* HDF5 locks every file that it opens, and fails on file systems without locks.  Locks are not
     needed: files are replaced atomically, and a run directory has a lock of its own. */
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
  /* At the exit HDF5 would close again a file that a full disk kept it from closing, and crash. */
  H5dont_atexit();
  if (argc < 2) {
    gt_commands_print(stderr);
    return GT_ERR_JOB;
  }
  if (is(argv[1], "--version", "-V")) {
    puts("geotrain " GT_VERSION);
    gt_print_build();
    return finish(GT_OK, true);
  }
  if (is(argv[1], "--help", "-h")) return finish(gt_cmd_help(1, argv + 1), false);
  const gt_command *command = gt_command_find(argv[1]);
  if (!command) return finish(GT_ERR_JOB, false);
  if (argc > 2 && is(argv[argc - 1], "--help", "-h")) {
    char *help[] = {argv[argc - 1], argv[1], NULL};
    return finish(gt_cmd_help(2, help), false);
  }
  if (choose_isa(argv) != GT_OK) return finish(GT_ERR_JOB, false);
  gt_status (*run)(int argc, char **argv) = command->run ? command->run : gt_cmd_help;
  return finish(run(argc - 1, argv + 1), command->speaks);
}
