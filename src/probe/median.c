/* The median, which is robust against a few disturbed measurements. */
#include <stdlib.h>

#include "internal.h"

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double gt_probe_median(double *values, size_t n) {
  if (n == 0) return 0;
  qsort(values, n, sizeof *values, by_value);
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
