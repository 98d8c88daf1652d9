/* Private to elastic scheduling: the sets of devices among which a region chooses when each costs more and is faster than the one before. */
#ifndef GEOTRAIN_PLAN_ELASTIC_OPTIONS_H
#define GEOTRAIN_PLAN_ELASTIC_OPTIONS_H

#include "elastic.h"

/* A set of devices, and what it stands for: no plan but those that some option stands for is worth having, and none of these has a lower rate, fewer steps
   or shorter ones than the option's least. */
typedef struct {
  gt_plan_tempo pace, least;
} gt_plan_option;

typedef struct {
  gt_plan_option *options; /* by rate, cheapest first */
  int64_t *counts;         /* ndevices of each */
  size_t n, capacity;
} gt_plan_options;

/* About `most` at most; where there are more, each stands for several.  work: nodes that may be visited for them, about. */
void gt_plan_options_open(gt_plan_options *options, gt_plan_cover *cover, const gt_plan_site *site, size_t most, int64_t work);
void gt_plan_options_close(gt_plan_options *options);

#endif
