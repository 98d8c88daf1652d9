/* The plan's prediction, as stored in a run's job. */
#include <math.h>

#include "internal.h"

static double above_0(double value) {
  return value > 0 ? value : NAN;
}

static double from_0(double value) {
  return value >= 0 ? value : NAN;
}

/* A plan covers only regions that exchange data. */
static const char *predicted_strategy(const gt_job *job) {
  const gt_strategy strategy = job->plan.predicted.strategy;
  return strategy == GT_STRATEGY_NONE ? NULL : gt_strategy_names[strategy];
}

bool gt_train_planned(gt_plan_result *out, const gt_job *job, const gt_figures *measured) {
  *out = (gt_plan_result){
      .strategy = predicted_strategy(job),
      .made = job->plan.predicted.made,
      .predicted = {above_0(job->plan.predicted.wall_s), above_0(job->plan.predicted.step_s),
                    above_0(job->plan.predicted.samples_per_s),
                    from_0(job->plan.predicted.wan_bytes), from_0(job->plan.predicted.waiting),
                    from_0(job->plan.predicted.cost)},
      .measured = *measured,
      .low_s = above_0(job->plan.predicted.wall_low_s),
      .high_s = above_0(job->plan.predicted.wall_high_s)};
  const gt_figures *p = &out->predicted;
  return out->strategy || isfinite(p->wall_s) || isfinite(p->step_s) ||
         isfinite(p->samples_per_s) || isfinite(p->wan_bytes) || isfinite(p->waiting) ||
         isfinite(p->cost) || isfinite(out->low_s) || isfinite(out->high_s);
}
