/* The check of a width, an option of several models. */
#include "models.h"

/* Larger widths are typing errors.  Products of widths within the limit do not overflow. */
#define WIDTH_MAX 65536

gt_status gt_model_check_width(const char *option, int64_t width, int64_t least) {
  if (width >= least && width <= WIDTH_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "model.%s is %lld; 1 to %d is needed", option, (long long)width,
                 WIDTH_MAX);
}
