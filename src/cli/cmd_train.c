/* geotrain train JOB.yaml: reads its options and trains. */
#include <getopt.h>
#include <string.h>

#include "cli.h"
#include "geotrain/net.h"
#include "geotrain/train.h"

enum { RUN_DIR = 1, SET, RESUME, CLOCK, PROGRESS };

static const struct option options[] = {{"run-dir", required_argument, NULL, RUN_DIR},   {"set", required_argument, NULL, SET},
                                        {"resume", optional_argument, NULL, RESUME},     {"clock", required_argument, NULL, CLOCK},
                                        {"progress", required_argument, NULL, PROGRESS}, {NULL, 0, NULL, 0}};

static gt_status read_resume(gt_train_options *o, const char *argument) {
  o->resume = GT_RESUME_YES;
  if (!argument) return GT_OK;
  if (strcmp(argument, "auto") == 0)
    o->resume = GT_RESUME_AUTO;
  else
    o->run_dir = argument;
  return GT_OK;
}

static gt_status read_clock(gt_train_options *o, const char *argument) {
  o->virtual_clock = strcmp(argument, "virtual") == 0;
  if (o->virtual_clock || strcmp(argument, "real") == 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "--clock is \"%s\"; one of real, virtual is needed", argument);
}

static gt_status read_progress(gt_train_options *o, const char *argument) {
  static const char *const names[] = {"auto", "line", "log", "none"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(argument, names[i]) == 0) {
      o->live = (gt_live_mode)i;
      return GT_OK;
    }
  return GT_FAIL(GT_ERR_JOB, "--progress is \"%s\"; one of auto, line, log, none is needed", argument);
}

static gt_status read_options(gt_train_options *o, int argc, char **argv, const char **sets) {
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) switch (option) {
    case RUN_DIR:
      o->run_dir = optarg;
      break;
    case SET:
      sets[o->nsets++] = optarg;
      break;
    case RESUME:
      GT_TRY(read_resume(o, optarg));
      break;
    case CLOCK:
      GT_TRY(read_clock(o, optarg));
      break;
    case PROGRESS:
      GT_TRY(read_progress(o, optarg));
      break;
    default:
      return GT_FAIL(GT_ERR_JOB, "train: option %s is unknown or lacks its value; see `geotrain help train`", argv[optind - 1]);
    }
  if (optind != argc - 1) return GT_FAIL(GT_ERR_JOB, "train: one job file is needed, %d were given; see `geotrain help train`", argc - optind);
  if (o->resume == GT_RESUME_YES && !o->run_dir) return GT_FAIL(GT_ERR_JOB, "train: --resume needs to know which run: --resume=DIR or --run-dir DIR");
  o->job_path = argv[optind];
  return GT_OK;
}

gt_status gt_cmd_train(int argc, char **argv) {
  const char **sets = GT_NEW_ARRAY(const char *, (size_t)argc + 1);
  gt_train_options o = {.sets = sets};
  gt_status status = read_options(&o, argc, argv, sets);
  if (status == GT_OK) status = gt_launch_check();
  if (status == GT_OK)
    status = gt_train(&o);
  else if (gt_launch_first())
    gt_log(GT_LOG_ERROR, "%s", gt_error_text());
  gt_free(sets);
  return status;
}
