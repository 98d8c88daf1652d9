/* Simulates a job from its first step to its end; forecasts skip repeating time unless the whole run
   is cheap. */

#include "geotrain/sim_choose.h"
#include "internal.h"

/* ---- the whole run --------------------------------------------------------------------------- */

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

static gt_status find_routes(gt_routes *out, const gt_sim_spec *spec) {
  const gt_model_sizes sizes = {spec->parameters, spec->buffers, spec->tensors, spec->ntensors};
  return gt_routes_of(out, spec->job, spec->links, &sizes);
}

gt_status gt_sim_run(gt_sim **out, const gt_sim_spec *spec) {
  gt_sim_spec with_routes = *spec;
  gt_routes routes = {0};
  if (spec->routes) return run(out, spec);
  GT_TRY(find_routes(&routes, spec));
  with_routes.routes = &routes;
  const gt_status status = run(out, &with_routes);
  gt_routes_close(&routes);
  return status;
}

/* ---- forecasts ------------------------------------------------------------------------------- */

static double part_of(const gt_sim *sim) {
  double all = 0, gone = 0;
  for (size_t r = 0; r < sim->n; r++) {
    gt_ps_view v;
    gt_ps_get_view(sim->regions[r].ps, 0, &v);
    all += (double)v.batches;
    gone += sim->gone_batches ? sim->gone_batches[r] : 0;
  }
  return all > 0 ? 1 - gone / all : 1;
}

static void take(gt_sim_forecast *f, const gt_sim *sim, const sim_stride *seen) {
  size_t n = sim->n;
  *f = (gt_sim_forecast){.part = part_of(sim),
                         .error_s = seen->error_s,
                         .why = seen->why,
                         .nregions = n,
                         .regions = GT_NEW_ARRAY(gt_region_result, n),
                         .links = GT_NEW_ARRAY(gt_sim_traffic, n * n)};
  gt_sim_get_totals(sim, &f->totals);
  f->virtual_s = f->totals.virtual_s;
  f->train_s = f->totals.train_s;
  for (size_t a = 0; a < n; a++) {
    gt_sim_region(sim, a, &f->regions[a]);
    for (size_t b = 0; b < n; b++)
      if (a != b) f->links[a * n + b] = gt_sim_crossed_of(sim, a, b).traffic;
  }
}

void gt_sim_forecast_close(gt_sim_forecast *f) {
  gt_free(f->regions);
  gt_free(f->links);
  *f = (gt_sim_forecast){0};
}

const char *gt_sim_doubt_text(gt_sim_doubt why) {
  static const char *const texts[] = {
      [GT_SIM_KNOWN] = "",
      [GT_SIM_TRACES] =
          "links follow traces that are longer than what could be simulated of them at a stretch",
      [GT_SIM_OUTAGES] = "there are more outages than could be simulated one by one",
      [GT_SIM_EVALUATIONS] = "there are more evaluations than could be simulated one by one",
      [GT_SIM_SAMPLE] = "what could be simulated is few exchanges, and these differ",
  };
  return texts[why];
}

static gt_status predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events) {
  gt_sim *sim = NULL;
  sim_stride seen = {0};
  const bool whole = max_events <= 0 || spec->job->limits.wan_bytes > 0 || spec->pipe;
  int64_t budget = whole ? INT64_MAX : max_events;
  GT_TRY(gt_sim_open(&sim, spec));
  gt_status status = gt_sim_stride(sim, budget, &seen);
  if (status == GT_OK) take(out, sim, &seen);
  gt_sim_close(sim);
  return status;
}

gt_status gt_sim_predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events) {
  gt_sim_spec with_routes = *spec;
  gt_routes routes = {0};
  if (spec->routes) return predict(out, spec, max_events);
  GT_TRY(find_routes(&routes, spec));
  with_routes.routes = &routes;
  const gt_status status = predict(out, &with_routes, max_events);
  gt_routes_close(&routes);
  return status;
}
