/* EDiT's rule for anomalous contributions (arXiv 2412.07210): with n the norm, and its mean and
   standard deviation so far, z = (n - mean) / std is an outlier above `outlier` max(1, std of z).
   Here an outlier enters the history with the largest norm that is none, so that norms which remain
   larger become the rule after some rounds, and one huge norm does not hide the next. */
#include "guard.h"

#include <math.h>

#define LARGEST 0x1p100 /* a codec's residual and every sum of such values remain finite */
#define NEWEST  0.02    /* least weight of the newest norm in the history */
#define STEADY  0.1     /* least standard deviation, relative to the mean */

static double larger(double a, double b) {
  return a > b ? a : b;
}

static void add_norm(gt_norm_history *g, double norm, double z) {
  const double weight = larger(NEWEST, 1 / (double)(g->judged + 1)), d = norm - g->mean;
  g->mean += weight * d;
  g->variance = (1 - weight) * (g->variance + weight * d * d);
  g->spread += weight * (z * z - g->spread);
  g->judged++;
}

gt_verdict gt_guard_judge(gt_norm_history *g, const gt_guard_options *options, double norm) {
  const double deviation = larger(sqrt(g->variance), STEADY * g->mean),
               limit = options->outlier * larger(1, sqrt(g->spread)),
               z = deviation > 0 ? (norm - g->mean) / deviation : 0;
  if (!(norm < LARGEST)) return GT_GUARD_NONFINITE;
  const bool outlier = options->outlier > 0 && g->judged >= options->warmup && z > limit;
  if (outlier)
    add_norm(g, g->mean + limit * deviation, limit);
  else
    add_norm(g, norm, z);
  return outlier ? GT_GUARD_OUTLIER : GT_GUARD_SOUND;
}

gt_status gt_guard_state(gt_norm_history *g, const char *owner, gt_state_direction direction) {
  const gt_state_field fields[] = {{"judged", GT_TYPE_I64, &g->judged, 1},
                                   {"norm_mean", GT_TYPE_F64, &g->mean, 1},
                                   {"norm_variance", GT_TYPE_F64, &g->variance, 1},
                                   {"norm_spread", GT_TYPE_F64, &g->spread, 1}};
  return GT_STATE_FIELDS(direction, owner, fields);
}
