/* cli: one file per command; the list is in commands.c.  A command returns the status for the exit
   code; main prints gt_error_text. */
#pragma once

#include <stdio.h>

#include "geotrain/base.h"

typedef struct {
  const char *name, *summary;              /* one line */
  gt_status (*run)(int argc, char **argv); /* NULL: help, which reads this list */
  /* prints its own errors (all ranks agree on one message) */
  bool speaks;
  const char *usage; /* printed by `geotrain help NAME` */
} gt_command;

/* Ends with an entry whose name is NULL. */
extern const gt_command gt_commands[];

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
