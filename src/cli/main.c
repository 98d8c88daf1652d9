/* geotrain: finds the command and turns its status into the exit code. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

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

int main(int argc, char **argv) {
  if (argc < 2) {
    gt_print_commands(stderr);
    return GT_ERR_JOB;
  }
  if (is(argv[1], "--version", "-V")) {
    puts("geotrain " GT_VERSION);
    return finish(GT_OK, true);
  }
  if (is(argv[1], "--help", "-h")) return finish(gt_cmd_help(1, argv + 1), false);
  const gt_command *command = gt_command_find(argv[1]);
  if (!command) return finish(GT_ERR_JOB, false);
  if (argc == 3 && is(argv[2], "--help", "-h")) {
    char *help[] = {argv[2], argv[1], NULL};
    return finish(gt_cmd_help(2, help), false);
  }
  return finish(command->run(argc - 1, argv + 1), command->speaks);
}
