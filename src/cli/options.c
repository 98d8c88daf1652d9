/* The words of a command about a job. */
#include "options.h"

gt_status gt_job_words_read(gt_job_words *words, int argc, char **argv, const struct option *options,
                            gt_status (*take)(void *ctx, int option, const char *argument), void *ctx) {
  int option;
  *words = (gt_job_words){.sets = GT_NEW_ARRAY(const char *, (size_t)argc + 1)};
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == '?')
      return GT_FAIL(GT_ERR_JOB, "%s: option %s is unknown or lacks its value; see `geotrain help %s`", argv[0], argv[optind - 1], argv[0]);
    if (option == GT_OPTION_SET)
      words->sets[words->nsets++] = optarg;
    else
      GT_TRY(take(ctx, option, optarg));
  }
  if (optind != argc - 1)
    return GT_FAIL(GT_ERR_JOB, "%s: one job file is needed, %d were given; see `geotrain help %s`", argv[0], argc - optind, argv[0]);
  words->path = argv[optind];
  return GT_OK;
}
