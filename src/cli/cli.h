/* cli: one file per command; the list is in commands.c.  A command returns the status for the exit
   code; main prints gt_error_text. */
#pragma once

#include <getopt.h>
#include <stdio.h>

#include "geotrain/base.h"

typedef struct {
  const char *name, *summary;              /* one line */
  gt_status (*run)(int argc, char **argv); /* NULL: gt_cmd_help, which reads this list */
  /* prints its own errors (all ranks agree on one message) */
  bool speaks;
  const struct option *const *options; /* tables that it reads with getopt_long, then NULL */
  const char *usage; /* printed by `geotrain help NAME`: the synopsis, an empty line, the text */
} gt_command;

/* Ends with an entry whose name is NULL. */
extern const gt_command gt_commands[];
extern const struct option *const gt_options_data[]; /* a table of each action, then NULL */
extern const struct option gt_options_train[], gt_options_probe[], gt_options_fleet[],
    gt_options_watch[], gt_options_report[], gt_options_simulate[], gt_options_plan[],
    gt_options_placement[], gt_options_cert[], gt_options_eval[], gt_options_predict[],
    gt_options_export[], gt_options_generate[], gt_options_info[], gt_options_selftest[];

/* cmd_help.c: finds a command; NULL: none, and gt_error_text names the nearest.  Prints the list of
   commands. */
const gt_command *gt_command_find(const char *name);
void gt_commands_print(FILE *to);
/* cmd_info.c: prints commit, options and libraries of this build. */
void gt_print_build(void);

/* argv[0] is the command's name.  Options are read with getopt_long. */
gt_status gt_cmd_train(int argc, char **argv);     /* cmd_train.c */
gt_status gt_cmd_probe(int argc, char **argv);     /* cmd_probe.c */
gt_status gt_cmd_fleet(int argc, char **argv);     /* cmd_fleet.c */
gt_status gt_cmd_watch(int argc, char **argv);     /* cmd_watch.c */
gt_status gt_cmd_report(int argc, char **argv);    /* cmd_report.c */
gt_status gt_cmd_simulate(int argc, char **argv);  /* cmd_simulate.c */
gt_status gt_cmd_plan(int argc, char **argv);      /* cmd_plan.c */
gt_status gt_cmd_placement(int argc, char **argv); /* cmd_placement.c */
gt_status gt_cmd_data(int argc, char **argv);      /* cmd_data.c */
gt_status gt_cmd_cert(int argc, char **argv);      /* cmd_cert.c */
gt_status gt_cmd_eval(int argc, char **argv);      /* cmd_eval.c */
gt_status gt_cmd_export(int argc, char **argv);    /* cmd_export.c */
gt_status gt_cmd_predict(int argc, char **argv);   /* cmd_predict.c */
gt_status gt_cmd_generate(int argc, char **argv);  /* cmd_generate.c */
/* cmd_info.c: build, kernels, CPU, models, strategies */
gt_status gt_cmd_info(int argc, char **argv);
gt_status gt_cmd_selftest(int argc, char **argv); /* cmd_selftest.c */
gt_status gt_cmd_help(int argc, char **argv);     /* cmd_help.c */
