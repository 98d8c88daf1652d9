/* Frames leaving over a link: the choice between queues, and the time in use. */
#include "geotrain/link.h"

static gt_ns later(gt_ns a, gt_ns b) {
  return a > b ? a : b;
}

void gt_wire_add(gt_wire *wire, gt_ns from, gt_ns until) {
  from = later(from, wire->until);
  if (until <= from) return;
  wire->used += until - from;
  wire->until = until;
}

gt_link_times gt_wire_send(gt_wire *wire, const gt_link_spec *spec, gt_access *up,
                           size_t size_bytes, gt_ns ready) {
  const gt_ns from = later(wire->link.busy_until, ready);
  const gt_link_times times = gt_link_step(&wire->link, spec, up, size_bytes, ready);
  gt_wire_add(wire, from, times.depart);
  return times;
}

bool gt_wire_control_first(const gt_wire *wire, gt_ns control, gt_ns other) {
  return control <= later(other, wire->link.busy_until);
}
