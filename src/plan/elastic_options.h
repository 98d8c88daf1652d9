/* Private to elastic scheduling: the sets of devices from which a region chooses, each more
   expensive and faster than the one before. */
#ifndef GEOTRAIN_PLAN_ELASTIC_OPTIONS_H
#define GEOTRAIN_PLAN_ELASTIC_OPTIONS_H

#include "elastic.h"

/* A set of devices, and the sets that it represents.  Every useful plan uses sets that some option
   represents.  None of these has a lower rate, fewer steps or shorter steps than the option's
   least. */
typedef struct {
  gt_plan_tempo pace, least;
} gt_plan_option;

typedef struct {
  gt_plan_option *options; /* by rate, ascending */
  int64_t *counts;         /* ndevices for each option */
  size_t n, capacity;
} gt_plan_options;

/* About `most` options at most; if there are more sets, each option represents several. work:
   approximate limit on the nodes visited. */
void gt_plan_options_open(gt_plan_options *options, gt_plan_cover *cover, const gt_plan_site *site,
                          size_t most, int64_t work);
void gt_plan_options_close(gt_plan_options *options);

#endif
