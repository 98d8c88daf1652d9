/* cli: one file a command; the list is in main.c.  A command returns the exit code's status; main prints gt_error_text. */
#ifndef GEOTRAIN_CLI_H
#define GEOTRAIN_CLI_H

#include "geotrain/base.h"

/* argv[0] is the command's name.  Options are read with getopt_long. */
gt_status gt_cmd_train(int argc, char **argv); /* cmd_train.c */
gt_status gt_cmd_data(int argc, char **argv);  /* cmd_data.c */
gt_status gt_cmd_eval(int argc, char **argv);  /* cmd_eval.c */
gt_status gt_cmd_help(int argc, char **argv);  /* cmd_help.c */
gt_status gt_cmd_info(int argc, char **argv);  /* cmd_info.c: build, kernels, CPU, models, strategies */

#endif
