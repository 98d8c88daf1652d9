/* Simulates a job from its first step to its end. */
#include "geotrain/sim_choose.h"
#include "internal.h"

static gt_status run(gt_sim **out, const gt_sim_spec *spec) {
  gt_sim *sim = NULL;
  size_t region;
  GT_TRY(gt_sim_open(&sim, spec));
  gt_status status = GT_OK;
  while (status == GT_OK && !gt_sim_over(sim)) status = gt_sim_step(sim, &region);
  if (status == GT_OK)
    *out = sim;
  else
    gt_sim_close(sim);
  return status;
}

gt_status gt_sim_run(gt_sim **out, const gt_sim_spec *spec) {
  gt_sim_spec with_routes = *spec;
  gt_routes routes = {0};
  if (spec->routes) return run(out, spec);
  GT_TRY(gt_routes_of(&routes, spec->job, spec->links, spec->parameters, spec->buffers));
  with_routes.routes = &routes;
  const gt_status status = run(out, &with_routes);
  gt_routes_close(&routes);
  return status;
}
