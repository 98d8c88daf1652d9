/* geotrain probe JOB.yaml: reads its options and probes. */
#include <getopt.h>

#include "cli.h"
#include "geotrain/net.h"
#include "geotrain/train.h"

enum { RUN_DIR = 1, SET, OUT, SUSTAINED, LINK_LIMIT };

static const struct option options[] = {{"run-dir", required_argument, NULL, RUN_DIR},
                                        {"set", required_argument, NULL, SET},
                                        {"out", required_argument, NULL, OUT},
                                        {"sustained", no_argument, NULL, SUSTAINED},
                                        {"link-limit", required_argument, NULL, LINK_LIMIT},
                                        {NULL, 0, NULL, 0}};

static gt_status read_limit(gt_probe_options *o, const char *text) {
  GT_TRY(gt_parse_time_s(text, &o->link_limit_s));
  return o->link_limit_s > 0 ? GT_OK : GT_FAIL(GT_ERR_JOB, "probe: --link-limit is %s; more than 0 s is needed", text);
}

static gt_status read_options(gt_probe_options *o, int argc, char **argv, const char **sets) {
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) switch (option) {
    case RUN_DIR:
      o->run_dir = optarg;
      break;
    case SET:
      sets[o->nsets++] = optarg;
      break;
    case OUT:
      o->out = optarg;
      break;
    case SUSTAINED:
      o->sustained = true;
      break;
    case LINK_LIMIT:
      GT_TRY(read_limit(o, optarg));
      break;
    default:
      return GT_FAIL(GT_ERR_JOB, "probe: option %s is unknown or lacks its value; see `geotrain help probe`", argv[optind - 1]);
    }
  if (optind != argc - 1) return GT_FAIL(GT_ERR_JOB, "probe: one job file is needed, %d were given; see `geotrain help probe`", argc - optind);
  o->job_path = argv[optind];
  return GT_OK;
}

gt_status gt_cmd_probe(int argc, char **argv) {
  const char **sets = GT_NEW_ARRAY(const char *, (size_t)argc + 1);
  gt_probe_options o = {.sets = sets};
  gt_status status = read_options(&o, argc, argv, sets);
  if (status == GT_OK) status = gt_launch_check();
  if (status == GT_OK)
    status = gt_probe(&o);
  else if (gt_launch_first())
    gt_log(GT_LOG_ERROR, "%s", gt_error_text());
  gt_free(sets);
  return status;
}
