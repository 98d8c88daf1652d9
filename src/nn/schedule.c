/* Learning rates by step. */
#include <math.h>

#include "geotrain/nn.h"

double gt_lr_at(const gt_lr_schedule *s, int64_t step) {
  if (step < s->warmup_steps) return s->lr * (double)(step + 1) / (double)s->warmup_steps;
  const int64_t since = step - s->warmup_steps;
  switch (s->kind) {
  case GT_LR_STEP: {
    const int64_t drops = s->step_every > 0 ? since / s->step_every : 0;
    return s->lr * pow(s->gamma, (double)drops);
  }
  case GT_LR_COSINE: {
    const int64_t length = s->total_steps - s->warmup_steps;
    if (length <= 0 || since >= length) return s->lr_min;
    const double pi = 3.14159265358979323846;
    return s->lr_min + 0.5 * (s->lr - s->lr_min) * (1.0 + cos(pi * (double)since / (double)length));
  }
  case GT_LR_CONSTANT:
    break;
  }
  return s->lr;
}
