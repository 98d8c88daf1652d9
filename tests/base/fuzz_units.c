/* Fuzzes quantities and names with arbitrary text: it is accepted or rejected, without a crash, and
   never as a negative or non-finite number. */
#include "geotrain/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static gt_status (*const parsers[])(const char *, double *) = {gt_parse_rate_bps, gt_parse_time_s,
                                                                 gt_parse_size_bytes};
  static char *(*const formats[])(char *, size_t, double) = {gt_format_rate, gt_format_time,
                                                             gt_format_size};
  static const char *const names[] = {"period", "strategy", "asgd-ga", "lr", ""};
  char *text = gt_alloc(size + 1, 1);
  memcpy(text, data, size);
  for (size_t i = 0; i < 3; i++) {
    double value = -1;
    char printed[16];
    gt_status status = parsers[i](text, &value);
    if (status == GT_OK && !(value >= 0 && isfinite(value))) abort();
    if (status != GT_OK && (value != -1 || gt_error_text()[0] == '\0')) abort();
    if (status == GT_OK && strlen(formats[i](printed, sizeof printed, value)) >= sizeof printed)
      abort();
  }
  gt_nearest(text, names, sizeof names / sizeof *names);
  gt_free(text);
  return 0;
}
