/* What the commands about a job have in common: one job file, --set KEY=VALUE any number of times, and what an option that is none is told. */
#ifndef GEOTRAIN_CLI_OPTIONS_H
#define GEOTRAIN_CLI_OPTIONS_H

#include <getopt.h>

#include "geotrain/base.h"

/* The val of --set among a command's options; the others are greater. */
enum { GT_OPTION_SET = 1 };

typedef struct {
  const char *path;
  const char **sets;
  size_t nsets;
} gt_job_words;

/* The word that getopt_long stopped at, borrowed from argv: what is unknown, or lacks its value.  Of "-set" it took the letters one by
   one, and stands before the word. */
const char *gt_option_word(int argc, char **argv);
/* GT_ERR_JOB that names it; `-set` is told that options begin with two dashes. */
gt_status gt_option_refused(int argc, char **argv, const char *command);

/* A warning about a job, for people. */
void gt_job_warning(const char *text);

/* Reads argv (argv[0]: the command) by `options`; `take` gets each option but --set.  The words live as long as argv; the caller frees words->sets, after errors too.
   GT_ERR_JOB names what is unknown, lacks its value, or how many job files there were. */
gt_status gt_job_words_read(gt_job_words *words, int argc, char **argv, const struct option *options,
                            gt_status (*take)(void *ctx, int option, const char *argument), void *ctx);

#endif
