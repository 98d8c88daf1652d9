/* The rate of a count that grows in jumps, such as steps of ten seconds or messages of many
   megabytes. */
#include <math.h>

#include "geotrain/record.h"

/* minimum window; other regions' samples arrive once a second with heartbeats */
#define SHORTEST (2 * GT_SECOND)

/* Closes a window at a jump, so that it contains whole jumps.  The last two windows count, because
   jumps of two regions can be close together. */
static void close_window(gt_meter *m, gt_ns now, double total) {
  m->spans[1] = m->spans[0];
  m->gains[1] = m->gains[0];
  m->spans[0] = gt_seconds(now - m->at);
  m->gains[0] = total - m->seen;
  m->at = now;
  m->seen = total;
}

double gt_meter_rate(gt_meter *m, gt_ns now, double total) {
  if (!m->begun) *m = (gt_meter){.begun = true, .at = now, .seen = total, .last = total};
  if (now - m->at >= SHORTEST && total > m->last) close_window(m, now, total);
  m->last = total;
  double waited = gt_seconds(now - m->at), span = m->spans[0] + m->spans[1];
  if (span <= 0) return NAN;
  /* the rate falls while the next jump is late */
  double late = fmax(0, waited - fmax(m->spans[0], m->spans[1]));
  return (m->gains[0] + m->gains[1]) / (span + late);
}
