/* Any content of a trace file gives a trace that obeys the laws of traces, or GT_ERR_JOB with a
   text, without leaks.  The first byte selects the format. */
#include "trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const gt_link_trace *trace) {
  double period_s = gt_link_trace_period_s(trace), bits = gt_link_trace_bits(trace, period_s),
         wait_s = gt_trace_wait_s(trace, period_s / 3, 2.5 * bits);
  if (!(period_s > 0.0) || !(bits > 0.0) || !isfinite(bits) || !(wait_s >= 1.999 * period_s) ||
      !(wait_s <= 3.001 * period_s))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char csv[64], plain[64];
  if (size == 0) return 0;
  if (!csv[0]) {
    snprintf(csv, sizeof csv, "/tmp/geotrain-fuzz-%ld.csv", (long)getpid());
    snprintf(plain, sizeof plain, "/tmp/geotrain-fuzz-%ld", (long)getpid());
  }
  const char *path = data[0] % 2 ? csv : plain;
  int64_t alive = gt_alloc_alive();
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data + 1, 1, size - 1, file) != size - 1 || fclose(file) != 0) abort();
  gt_link_trace *trace;
  gt_status status = gt_link_trace_read(&trace, path);
  remove(path);
  if (status == GT_OK)
    check(trace);
  else if (status != GT_ERR_JOB || trace || gt_error_text()[0] == '\0')
    abort();
  gt_link_trace_close(trace);
  if (gt_alloc_alive() != alive) abort();
  return 0;
}
