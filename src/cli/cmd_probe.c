/* geotrain probe JOB.yaml: reads the options and runs the probe. */
#include "cli.h"
#include "geotrain/net.h"
#include "geotrain/probe.h"
#include "options.h"

enum { RUN_DIR = GT_OPTION_SET + 1, OUT, SUSTAINED, LINK_LIMIT, FLEET, REGION };

const struct option gt_options_probe[] = {{"run-dir", required_argument, NULL, RUN_DIR},
                                          {"set", required_argument, NULL, GT_OPTION_SET},
                                          {"out", required_argument, NULL, OUT},
                                          {"sustained", no_argument, NULL, SUSTAINED},
                                          {"link-limit", required_argument, NULL, LINK_LIMIT},
                                          {"fleet", no_argument, NULL, FLEET},
                                          {"region", required_argument, NULL, REGION},
                                          {NULL, 0, NULL, 0}};

static gt_status read_limit(gt_probe_options *o, const char *text) {
  GT_TRY(gt_parse_time_s(text, &o->link_limit_s));
  return o->link_limit_s > 0
             ? GT_OK
             : GT_FAIL(GT_ERR_JOB, "probe: --link-limit is %s; expected more than 0 s", text);
}

static gt_status take(void *ctx, int option, const char *argument) {
  gt_probe_options *o = ctx;
  if (option == LINK_LIMIT) return read_limit(o, argument);
  if (option == RUN_DIR) o->run_dir = argument;
  if (option == OUT) o->out = argument;
  if (option == SUSTAINED) o->sustained = true;
  if (option == FLEET) o->fleet = true;
  if (option == REGION) o->region = argument;
  return GT_OK;
}

gt_status gt_cmd_probe(int argc, char **argv) {
  gt_job_words words;
  gt_probe_options o = {0};
  gt_status status = gt_job_words_read(&words, argc, argv, gt_options_probe, take, &o);
  o.job_path = words.path;
  o.sets = words.sets;
  o.nsets = words.nsets;
  if (status == GT_OK && o.out) status = gt_output_may_replace(o.out, o.job_path, NULL, NULL);
  if (status == GT_OK) status = gt_launch_check();
  if (status == GT_OK)
    status = gt_probe(&o);
  else if (gt_launch_first())
    gt_log(GT_LOG_ERROR, "%s", gt_error_text());
  gt_free(words.sets);
  return status;
}
