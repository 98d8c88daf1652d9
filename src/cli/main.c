/* geotrain: finds the command and turns its status into the exit code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "geotrain/job.h"
#include "geotrain/tensor.h"

/* ---- geotrain help, help COMMAND, help job [KEY] --------------------------------------------- */

static const gt_command *find_command(const char *name) {
  const char *names[32];
  size_t n = 0;
  for (; gt_commands[n].name; n++) {
    if (strcmp(gt_commands[n].name, name) == 0) return &gt_commands[n];
    names[n] = gt_commands[n].name;
  }
  const char *near = gt_nearest(name, names, n);
  GT_FAIL(GT_ERR_JOB, "%.80s is not a command%s%s%s; `geotrain help` lists them", name,
          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  return NULL;
}

static void print_commands(FILE *to) {
  fprintf(to, "geotrain " GT_VERSION
              ": trains a neural network on data that lie in several regions joined by a WAN\n"
              "It computes on CPUs only; GPUs and other accelerators are not used.\n\n"
              "usage: geotrain COMMAND [arguments]\n\n");
  for (const gt_command *c = gt_commands; c->name; c++)
    fprintf(to, "  %-9s %s\n", c->name, c->summary);
  fprintf(to,
          "\nExit codes: 0 done, 1 a fault of geotrain, 2 usage or job file, 3 data, 4 "
          "checkpoint, 5 a peer or link was lost,\n"
          "6 a limit ended the run, 7 probe says NO-GO, 75 stopped by a signal with a "
          "checkpoint written.\n"
          "After SIGTERM, Ctrl-C and SIGHUP, mpirun and srun return codes of their own (1, 129, "
          "137).\n");
}

static gt_status print_help(int argc, char **argv) {
  const bool job = argc > 1 && strcmp(argv[1], "job") == 0;
  if (argc > (job ? 3 : 2))
    return GT_FAIL(GT_ERR_JOB, "help has %d arguments; expected a command, or job and a key",
                   argc - 1);
  if (argc < 2) {
    print_commands(stdout);
  } else if (job && argc == 2) {
    gt_job_help(stdout);
  } else if (job && strcmp(argv[2], "--markdown") == 0) {
    gt_job_help_markdown(stdout);
  } else if (job) {
    return gt_job_help_key(stdout, argv[2]);
  } else {
    const gt_command *command = find_command(argv[1]);
    if (!command) return GT_ERR_JOB;
    printf("%s: %s\n\n%s", command->name, command->summary, command->usage);
  }
  return GT_OK;
}

/* ---- main ------------------------------------------------------------------------------------ */

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

/* Selects the instruction set.  GEOTRAIN_ISA also applies to OpenBLAS, which selects its kernels
   while it is loaded, before main. If it selected a higher set than allowed, the program restarts
   itself with OpenBLAS limited. */
static gt_status choose_isa(char **argv) {
  GT_TRY(gt_isa_choose(getenv("GEOTRAIN_ISA")));
  const char *core = gt_isa_blas_cap(), *given = getenv("OPENBLAS_CORETYPE");
  if (!core) return GT_OK;
  if ((!given || strcmp(given, core) != 0) && setenv("OPENBLAS_CORETYPE", core, 1) == 0)
    (void)execv("/proc/self/exe", argv);
  gt_log(
      GT_LOG_WARN,
      "GEOTRAIN_ISA is %s, and OpenBLAS keeps its core %s: this build of it cannot be held to less",
      gt_isa_name(gt_isa_used()), gt_kernels_blas_core());
  return GT_OK;
}

int main(int argc, char **argv) {
  /* HDF5 locks every file that it opens, and fails on file systems without locks.  Locks are not
     needed: files are replaced atomically, and a run directory has a lock of its own. */
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
  if (argc < 2) {
    print_commands(stderr);
    return GT_ERR_JOB;
  }
  if (is(argv[1], "--version", "-V")) {
    puts("geotrain " GT_VERSION);
    return finish(GT_OK, true);
  }
  if (is(argv[1], "--help", "-h")) return finish(print_help(1, argv + 1), false);
  const gt_command *command = find_command(argv[1]);
  if (!command) return finish(GT_ERR_JOB, false);
  if (argc > 2 && is(argv[argc - 1], "--help", "-h")) {
    char *help[] = {argv[argc - 1], argv[1], NULL};
    return finish(print_help(2, help), false);
  }
  if (choose_isa(argv) != GT_OK) return finish(GT_ERR_JOB, false);
  gt_status (*run)(int argc, char **argv) = command->run ? command->run : print_help;
  return finish(run(argc - 1, argv + 1), command->speaks);
}
