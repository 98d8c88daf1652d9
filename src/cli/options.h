/* Common to the commands about a job: one job file, any number of --set KEY=VALUE, and error
   messages for unknown options. */
#pragma once

#include <getopt.h>

#include "geotrain/base.h"

/* The val of --set in a command's options; other options use greater values. */
enum { GT_OPTION_SET = 1 };

typedef struct {
  const char *path;
  const char **sets;
  size_t nsets;
} gt_job_words;

/* Returns the word at which getopt_long stopped, borrowed from argv: it is unknown or lacks its
   value.  For "-set" getopt_long reads single letters and optind still points to the word. */
const char *gt_option_word(int argc, char **argv);
/* Returns GT_ERR_JOB, naming the word; for `-set` the text says that options begin with two
   dashes. */
gt_status gt_option_refused(int argc, char **argv, const char *command);

/* Ends the process by the signal that has requested a stop, as its parent expects; returns if there
   is none. */
void gt_end_by_signal(void);

/* Prints a warning about a job. */
void gt_job_warning(const char *text);

/* Reads argv (argv[0]: the command) with `options`; calls `take` for each option except --set.  The
   words are valid as long as argv; the caller frees words->sets, after errors too.  GT_ERR_JOB
   names an unknown option, one that lacks its value, or the wrong number of job files. */
gt_status gt_job_words_read(gt_job_words *words, int argc, char **argv,
                            const struct option *options,
                            gt_status (*take)(void *ctx, int option, const char *argument),
                            void *ctx);
