/* The results of a simulation that is over. */
#include "internal.h"

void gt_sim_get_totals(const gt_sim *sim, gt_sim_totals *t) {
  *t = (gt_sim_totals){.virtual_s = gt_seconds(gt_timeline_now(sim->regions[sim->lead].timeline)),
                       .train_s = gt_seconds(sim->complete),
                       .code = sim->code,
                       .events = sim->events};
  for (size_t a = 0; a < sim->n; a++) {
    gt_ps_view v;
    gt_ps_get_view(sim->regions[a].ps, 0, &v);
    t->samples += v.samples;
    t->steps += v.steps;
    for (size_t b = 0; b < sim->n; b++) {
      if (a == b) continue;
      gt_sim_traffic l = gt_sim_traffic_of(sim, a, b);
      t->messages += (int64_t)l.messages;
      t->bytes_sent += (int64_t)l.bytes_sent;
      t->bytes_other += (int64_t)l.bytes_other;
    }
  }
}

const gt_sim_model *gt_sim_model_of(const gt_sim *sim) {
  return &sim->final;
}

void gt_sim_region(const gt_sim *sim, size_t region, gt_region_result *result) {
  *result = sim->regions[region].result;
}

void gt_sim_link(const gt_sim *sim, size_t from, size_t to, gt_link_result *result) {
  const sim_region *r = &sim->regions[from];
  if (r->links)
    *result = r->links[to - (to > from)];
  else
    gt_sim_wire_result(r, to, result);
}

double *gt_sim_link_bytes(const gt_sim *sim) {
  double *bytes = GT_NEW_ARRAY(double, sim->n * sim->n);
  gt_link_result link;
  for (size_t a = 0; a < sim->n; a++)
    for (size_t b = 0; b < sim->n; b++) {
      if (a == b) continue;
      gt_sim_link(sim, a, b, &link);
      bytes[a * sim->n + b] = (double)(link.bytes_sent + link.bytes_other);
    }
  return bytes;
}
