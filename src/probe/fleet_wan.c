/* Messages from one region to another as a pipeline sends them: one after the other, so that no
   silence makes a connection start slowly. */
#include <math.h>

#include "fleet.h"

#define PINGS    12
#define MESSAGES 3
#define LONG_S   2.0 /* a message that would take longer is cut */

/* The bytes of the large message, less over a slow link. */
static size_t large_bytes(const gt_probe_link *l) {
  const double most = l->bandwidth_bps * LONG_S / 8;
  if (l->bandwidth_bps <= 0 || most >= GT_PIPE_LARGE_BYTES) return GT_PIPE_LARGE_BYTES;
  return most < GT_PIPE_USUAL_BYTES ? GT_PIPE_USUAL_BYTES : (size_t)most;
}

void gt_probe_direction(gt_prober *b, size_t peer) {
  gt_probe_link *l = &b->p->links[peer];
  const size_t bytes = large_bytes(l);
  double times[PINGS];
  for (size_t i = 0; i < PINGS; i++) times[i] = gt_prober_ping(b, peer);
  const double answer_s = gt_probe_median(times, PINGS) / 2;
  for (size_t i = 0; i < PINGS; i++) times[i] = gt_prober_message(b, peer, GT_PIPE_SMALL_BYTES);
  l->small_s = fmax(gt_probe_median(times, PINGS) - answer_s, answer_s);
  (void)gt_prober_message(b, peer, bytes); /* opens the window */
  for (size_t i = 0; i < MESSAGES; i++) times[i] = gt_prober_message(b, peer, bytes);
  const double carried_s = gt_probe_median(times, MESSAGES) - answer_s - l->small_s;
  l->large_s = l->small_s + fmax(carried_s, 0) * GT_PIPE_LARGE_BYTES / (double)bytes;
}
