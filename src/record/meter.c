/* The rate of a count that grows in jumps: steps of ten seconds, messages of many megabytes. */
#include <math.h>

#include "geotrain/record.h"

#define SHORTEST (2 * GT_SECOND) /* a window; heartbeats tell the others' samples once a second */

/* A window ends with a jump, so that it holds whole ones; the last two count, for jumps of two regions may come close together. */
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
  /* What does not come when it is due grows less likely: the rate falls until it does. */
  double late = fmax(0, waited - fmax(m->spans[0], m->spans[1]));
  return (m->gains[0] + m->gains[1]) / (span + late);
}
