/* The steps of a worker in a probe alternate between two kinds: first steps in direct succession
   while messages cross the WAN, as with asgd-ga; then steps without messages and with a pause
   before every GT_RESUME_STEPS of them, as with a strategy that waits for its exchange.  Local, and
   without MPI. */
#include "geotrain/ps_timeline.h"
#include "compute.h"

#define WARM_UP    3
#define STEPS      10
#define SPAN_S     8.0
#define SLOW_S     30.0 /* after this time fewer steps are enough */
#define SLOW_STEPS 2
#define STEADY     ((int64_t)64)
#define TURN       (STEADY + 4 * GT_RESUME_STEPS)

gt_probe_phase gt_probe_phase_of(int64_t step) {
  int64_t at = step % TURN;
  if (at >= STEADY) return GT_PROBE_PAUSED;
  return at < (step < TURN ? WARM_UP : GT_RESUME_STEPS) ? GT_PROBE_COLD : GT_PROBE_WARM;
}

bool gt_probe_pause_before(int64_t step) {
  return gt_probe_phase_of(step) == GT_PROBE_PAUSED && step % GT_RESUME_STEPS == 0;
}

bool gt_probe_enough(int64_t steps, double passed_s) {
  int64_t least = passed_s > SLOW_S ? WARM_UP + SLOW_STEPS : WARM_UP + STEPS;
  return passed_s >= SPAN_S && steps >= least && (steps < STEADY || steps >= TURN);
}
