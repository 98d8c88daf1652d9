/* The link model: one direction of a WAN link as a pure step, first come, first served. */
#include "geotrain/link.h"

gt_link_state gt_link_start(uint64_t seed, size_t from, size_t to, gt_ns origin) {
  return (gt_link_state){.origin = origin, .rng = gt_rng_make(seed, GT_RNG_JITTER, from, to)};
}

static gt_ns later(gt_ns a, gt_ns b) {
  return a > b ? a : b;
}

static gt_ns transmission(const gt_link_spec *spec, size_t size_bytes) {
  return spec->bandwidth_bps > 0.0 ? gt_from_seconds(8.0 * (double)size_bytes / spec->bandwidth_bps) : 0;
}

/* A normal jitter can be more negative than the latency; nothing arrives before it was sent. */
static gt_ns flight(gt_link_state *state, const gt_link_spec *spec) {
  double delay_s = spec->latency_s;
  if (spec->jitter_s > 0.0) delay_s += spec->jitter_s * gt_rng_normal(&state->rng);
  return delay_s > 0.0 ? gt_from_seconds(delay_s) : 0;
}

gt_link_times gt_link_step(gt_link_state *state, const gt_link_spec *spec, gt_access *up, size_t size_bytes, gt_ns ready) {
  (void)up;
  gt_link_times times;
  times.depart = later(ready, state->busy_until) + transmission(spec, size_bytes);
  times.arrive = later(state->last_arrival, times.depart + flight(state, spec));
  state->busy_until = times.depart;
  state->last_arrival = times.arrive;
  return times;
}
