/* geotrain train JOB.yaml: reads the options and trains. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "geotrain/net.h"
#include "geotrain/train.h"
#include "options.h"

enum { RUN_DIR = GT_OPTION_SET + 1, RESUME, RESUME_ROUND, CLOCK, PROGRESS, REGION, VERBOSE };

const struct option gt_options_train[] = {{"run-dir", required_argument, NULL, RUN_DIR},
                                          {"set", required_argument, NULL, GT_OPTION_SET},
                                          {"resume", optional_argument, NULL, RESUME},
                                          {"clock", required_argument, NULL, CLOCK},
                                          {"progress", required_argument, NULL, PROGRESS},
                                          {"resume-round", required_argument, NULL, RESUME_ROUND},
                                          {"region", required_argument, NULL, REGION},
                                          {"verbose", no_argument, NULL, VERBOSE},
                                          {NULL, 0, NULL, 0}};

static gt_status read_resume(gt_train_options *o, const char *argument) {
  o->setup.resume = GT_RESUME_YES;
  if (!argument) return GT_OK;
  if (strcmp(argument, "auto") == 0)
    o->setup.resume = GT_RESUME_AUTO;
  else
    o->setup.run_dir = argument;
  return GT_OK;
}

/* --resume-round implies a resume. */
static gt_status read_round(gt_train_options *o, const char *argument) {
  char *end;
  errno = 0;
  long long round = strtoll(argument, &end, 10);
  if (!isdigit((unsigned char)*argument) || *end || errno != 0 || round < 1)
    return GT_FAIL(GT_ERR_JOB,
                   "--resume-round is \"%s\"; expected the number of a round, 1 or more", argument);
  o->setup.resume_round = round;
  return GT_OK;
}

static gt_status read_clock(gt_train_options *o, const char *argument) {
  o->setup.virtual_clock = strcmp(argument, "virtual") == 0;
  if (o->setup.virtual_clock || strcmp(argument, "real") == 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "--clock is \"%s\"; expected one of real, virtual", argument);
}

static gt_status read_progress(gt_train_options *o, const char *argument) {
  static const char *const names[] = {"auto", "line", "log", "none"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(argument, names[i]) == 0) {
      o->live = (gt_live_mode)i;
      return GT_OK;
    }
  return GT_FAIL(GT_ERR_JOB, "--progress is \"%s\"; expected one of auto, line, log, none",
                 argument);
}

static gt_status take(void *ctx, int option, const char *argument) {
  gt_train_options *o = ctx;
  if (option == RESUME) return read_resume(o, argument);
  if (option == RESUME_ROUND) return read_round(o, argument);
  if (option == CLOCK) return read_clock(o, argument);
  if (option == PROGRESS) return read_progress(o, argument);
  if (option == VERBOSE)
    gt_log_threshold(GT_LOG_DEBUG);
  else if (option == REGION)
    o->setup.region = argument;
  else
    o->setup.run_dir = argument;
  return GT_OK;
}

static gt_status read_options(gt_train_options *o, gt_job_words *words, int argc, char **argv) {
  GT_TRY(gt_job_words_read(words, argc, argv, gt_options_train, take, o));
  o->setup.job_path = words->path;
  o->setup.trains = true;
  o->setup.sets = words->sets;
  o->setup.nsets = words->nsets;
  if (o->setup.resume_round > 0) o->setup.resume = GT_RESUME_YES;
  if (o->setup.resume == GT_RESUME_YES && !o->setup.run_dir)
    return GT_FAIL(GT_ERR_JOB,
                   "train: --resume needs to know which run: --resume=DIR or --run-dir DIR");
  return GT_OK;
}

gt_status gt_cmd_train(int argc, char **argv) {
  gt_job_words words;
  gt_train_options o = {0};
  gt_status status = read_options(&o, &words, argc, argv);
  if (status == GT_OK) status = gt_launch_check();
  if (status == GT_OK)
    status = gt_train(&o);
  else if (gt_launch_first())
    gt_log(GT_LOG_ERROR, "%s", gt_error_text());
  gt_free(words.sets);
  return status;
}
