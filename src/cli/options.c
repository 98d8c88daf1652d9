/* The command line of a command about a job. */
#include "options.h"

#include <signal.h>
#include <stdio.h>

void gt_end_by_signal(void) {
  const int number = gt_stop_requested();
  if (number == 0) return;
  fflush(stdout);
  signal(number, SIG_DFL);
  raise(number);
}

void gt_job_warning(const char *text) {
  fprintf(stderr, "geotrain: warning: %s\n", text);
}

const char *gt_option_word(int argc, char **argv) {
  const char *at = optind < argc ? argv[optind] : "";
  return optopt > ' ' && at[0] == '-' && at[1] == optopt ? at : argv[optind - 1];
}

gt_status gt_option_refused(int argc, char **argv, const char *command) {
  const char *word = gt_option_word(argc, argv);
  if (word[0] == '-' && word[1] != '-')
    return GT_FAIL(GT_ERR_JOB,
                   "%s: option %s is unknown; options begin with two dashes, as in --%s; see "
                   "`geotrain help %s`",
                   command, word, word + 1, command);
  return GT_FAIL(GT_ERR_JOB, "%s: option %s is unknown or lacks its value; see `geotrain help %s`",
                 command, word, command);
}

gt_status gt_job_words_read(gt_job_words *words, int argc, char **argv,
                            const struct option *options,
                            gt_status (*take)(void *ctx, int option, const char *argument),
                            void *ctx) {
  int option;
  *words = (gt_job_words){.sets = GT_NEW_ARRAY(const char *, (size_t)argc + 1)};
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == '?') return gt_option_refused(argc, argv, argv[0]);
    if (option == GT_OPTION_SET)
      words->sets[words->nsets++] = optarg;
    else
      GT_TRY(take(ctx, option, optarg));
  }
  if (optind != argc - 1)
    return GT_FAIL(GT_ERR_JOB, "%s: expected one job file, found %d; see `geotrain help %s`",
                   argv[0], argc - optind, argv[0]);
  words->path = argv[optind];
  return GT_OK;
}
