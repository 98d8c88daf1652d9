/* `geotrain help`, `geotrain help COMMAND`, `geotrain help job [KEY]`. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "geotrain/job.h"

const gt_command *gt_command_find(const char *name) {
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

void gt_print_commands(FILE *to) {
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

gt_status gt_cmd_help(int argc, char **argv) {
  const bool job = argc > 1 && strcmp(argv[1], "job") == 0;
  if (argc > (job ? 3 : 2))
    return GT_FAIL(GT_ERR_JOB, "help has %d arguments; expected a command, or job and a key",
                   argc - 1);
  if (argc < 2) {
    gt_print_commands(stdout);
  } else if (job && argc == 2) {
    gt_job_help(stdout);
  } else if (job && strcmp(argv[2], "--markdown") == 0) {
    gt_job_help_markdown(stdout);
  } else if (job) {
    return gt_job_help_key(stdout, argv[2]);
  } else {
    const gt_command *command = gt_command_find(argv[1]);
    if (!command) return GT_ERR_JOB;
    printf("%s: %s\n\n%s", command->name, command->summary, command->usage);
  }
  return GT_OK;
}
