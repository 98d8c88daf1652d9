/* geotrain plan JOB.yaml: how many ranks each region shall have, with which strategy, how long that takes and what it costs: before anything is submitted. */
#include <getopt.h>
#include <stdlib.h>

#include "cli.h"
#include "plan_inside.h"

#define MARGIN 0.1

enum { SET = 1, REGIONS_CSV, WRITE, JSON, MARGIN_OF };
static const struct option options[] = {{"set", required_argument, NULL, SET},          {"regions-csv", required_argument, NULL, REGIONS_CSV},
                                        {"write", required_argument, NULL, WRITE},      {"json", no_argument, NULL, JSON},
                                        {"margin", required_argument, NULL, MARGIN_OF}, {NULL, 0, NULL, 0}};

static gt_status read_margin(double *out, const char *text) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= 0 && x < 1))
    return GT_FAIL(GT_ERR_JOB, "plan: --margin is \"%.80s\"; a share from 0 to below 1 is needed, as in 0.1", text);
  *out = x;
  return GT_OK;
}

static gt_status read_options(planner_options *o, int argc, char **argv) {
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) switch (option) {
    case SET:
      o->sets[o->nsets++] = optarg;
      break;
    case REGIONS_CSV:
      o->regions_csv = optarg;
      break;
    case WRITE:
      o->write = optarg;
      break;
    case JSON:
      o->json = true;
      break;
    case MARGIN_OF:
      GT_TRY(read_margin(&o->margin, optarg));
      break;
    default:
      return GT_FAIL(GT_ERR_JOB, "plan: option %s is unknown or lacks its value; see `geotrain help plan`", argv[optind - 1]);
    }
  if (optind != argc - 1) return GT_FAIL(GT_ERR_JOB, "plan: one job file is needed, %d were given; see `geotrain help plan`", argc - optind);
  o->job_path = argv[optind];
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
  planner_options o = {.sets = GT_NEW_ARRAY(const char *, (size_t)argc + 1), .margin = MARGIN};
  planner p = {0};
  gt_status status = read_options(&o, argc, argv);
  if (status == GT_OK) status = plan(&p, &o);
  gt_planner_close(&p);
  gt_free(o.sets);
  return status;
}
