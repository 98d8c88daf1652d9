/* geotrain plan JOB.yaml: plans ranks, strategy, time and cost of a job before it is submitted. */
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "geotrain/planner.h"
#include "options.h"

#define MARGIN 0.1

typedef struct {
  const char *regions_csv, *write;
  double margin;
  bool json;
} plan_options;

enum { REGIONS_CSV = GT_OPTION_SET + 1, WRITE, JSON, MARGIN_OF };
static const struct option options[] = {{"set", required_argument, NULL, GT_OPTION_SET},
                                        {"regions-csv", required_argument, NULL, REGIONS_CSV},
                                        {"write", required_argument, NULL, WRITE},
                                        {"json", no_argument, NULL, JSON},
                                        {"margin", required_argument, NULL, MARGIN_OF},
                                        {NULL, 0, NULL, 0}};

static gt_status read_margin(double *out, const char *text) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= 0 && x < 1))
    return GT_FAIL(GT_ERR_JOB,
                   "plan: --margin is \"%.80s\"; a share from 0 to below 1 is needed, as in 0.1",
                   text);
  *out = x;
  return GT_OK;
}

static gt_status take(void *ctx, int option, const char *argument) {
  plan_options *o = ctx;
  if (option == MARGIN_OF) return read_margin(&o->margin, argument);
  if (option == REGIONS_CSV) o->regions_csv = argument;
  if (option == WRITE) o->write = argument;
  if (option == JSON) o->json = true;
  return GT_OK;
}

static gt_status show(const gt_planner *p, const plan_options *o) {
  if (o->write) GT_TRY(gt_planner_write(p, o->write));
  if (o->json) return gt_planner_json(stdout, p);
  gt_planner_print(stdout, p);
  return GT_OK;
}

gt_status gt_cmd_plan(int argc, char **argv) {
  plan_options o = {.margin = MARGIN};
  gt_job_words words;
  gt_planner *p = NULL;
  gt_status status = gt_job_words_read(&words, argc, argv, options, take, &o);
  gt_planner_options asked = {.job_path = words.path,
                              .sets = words.sets,
                              .nsets = words.nsets,
                              .regions_csv = o.regions_csv,
                              .margin = o.margin};
  if (status == GT_OK) status = gt_planner_make(&p, &asked);
  if (status == GT_OK) status = show(p, &o);
  gt_planner_close(p);
  gt_free(words.sets);
  return status;
}
