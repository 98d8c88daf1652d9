/* geotrain plan JOB.yaml: how many ranks each region shall have, with which strategy, how long that takes and what it costs: before anything is submitted. */
#include <stdlib.h>

#include "cli.h"
#include "options.h"
#include "plan_inside.h"

#define MARGIN 0.1

enum { REGIONS_CSV = GT_OPTION_SET + 1, WRITE, JSON, MARGIN_OF };
static const struct option options[] = {{"set", required_argument, NULL, GT_OPTION_SET}, {"regions-csv", required_argument, NULL, REGIONS_CSV},
                                        {"write", required_argument, NULL, WRITE},       {"json", no_argument, NULL, JSON},
                                        {"margin", required_argument, NULL, MARGIN_OF},  {NULL, 0, NULL, 0}};

static gt_status read_margin(double *out, const char *text) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= 0 && x < 1))
    return GT_FAIL(GT_ERR_JOB, "plan: --margin is \"%.80s\"; a share from 0 to below 1 is needed, as in 0.1", text);
  *out = x;
  return GT_OK;
}

static gt_status take(void *ctx, int option, const char *argument) {
  planner_options *o = ctx;
  if (option == MARGIN_OF) return read_margin(&o->margin, argument);
  if (option == REGIONS_CSV) o->regions_csv = argument;
  if (option == WRITE) o->write = argument;
  if (option == JSON) o->json = true;
  return GT_OK;
}

static gt_status plan(planner *p, const planner_options *o) {
  GT_TRY(gt_planner_open(p, o));
  for (size_t i = 0; i < p->ncandidates; i++) GT_TRY(gt_planner_find(p, &p->candidates[i]));
  GT_TRY(gt_planner_choose(p));
  if (o->write) GT_TRY(gt_planner_write(p, o->write));
  if (o->json) return gt_planner_json(stdout, p);
  gt_planner_print(stdout, p);
  return GT_OK;
}

gt_status gt_cmd_plan(int argc, char **argv) {
  planner_options o = {.margin = MARGIN};
  planner p = {0};
  gt_status status = gt_job_words_read(&o.words, argc, argv, options, take, &o);
  if (status == GT_OK) status = plan(&p, &o);
  gt_planner_close(&p);
  gt_free(o.words.sets);
  return status;
}
