/* Learning rates by step. */
#include <math.h>

#include "geotrain/nn.h"

/* Returns the segment of the cosine that contains the step; it starts after the warm-up and the
   constant steps. */
static gt_lr_part part_of(const gt_lr_schedule *s, int64_t step) {
  gt_lr_part part = s->now.end > 0 && step >= s->now.step ? s->now : s->before;
  if (part.end == 0) part = (gt_lr_part){.end = s->total_steps};
  const int64_t first = s->warmup_steps + s->constant_steps;
  if (part.step < first) part.step = first;
  return part;
}

double gt_lr_at(const gt_lr_schedule *s, int64_t step) {
  if (step < s->warmup_steps) return s->lr * (double)(step + 1) / (double)s->warmup_steps;
  const int64_t since = step - s->warmup_steps;
  switch (s->kind) {
  case GT_LR_STEP: {
    const int64_t drops = s->step_every > 0 ? since / s->step_every : 0;
    return s->lr * pow(s->gamma, (double)drops);
  }
  case GT_LR_COSINE: {
    const gt_lr_part part = part_of(s, step);
    if (step < part.step) return s->lr;
    if (step >= part.end) return s->lr_min;
    const double pi = 3.14159265358979323846;
    const double angle = pi * part.share + pi * (1 - part.share) * (double)(step - part.step) /
                                               (double)(part.end - part.step);
    return s->lr_min + 0.5 * (s->lr - s->lr_min) * (1.0 + cos(angle));
  }
  case GT_LR_CONSTANT:
    break;
  }
  return s->lr;
}

double gt_lr_share(const gt_lr_schedule *s, int64_t step) {
  const gt_lr_part part = part_of(s, step);
  if (step >= part.end) return 1;
  if (step <= part.step) return part.share;
  return part.share +
         (1 - part.share) * (double)(step - part.step) / (double)(part.end - part.step);
}

void gt_lr_spread(gt_lr_schedule *s, const gt_lr_part *part) {
  if (s->kind != GT_LR_COSINE) return;
  s->before = s->now.end > 0 ? s->now : (gt_lr_part){.end = s->total_steps};
  s->now = *part;
}
