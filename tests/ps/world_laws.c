/* What holds at the end of every run; worlds made at random. */
#include "world_laws.h"

/* ---- laws ------------------------------------------------------------------------------------ */

/* The last that a region had to say was heard by every other. */
static void w_check_heard(world *w) {
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++)
      w_check(w, w->links[i][k].posted_value == w->links[i][k].applied_value);
}

void w_check_epochs(world *w, int64_t epochs) {
  w_check_heard(w);
  for (size_t i = 0; i < w->n; i++) {
    gt_ps_view v = w_look(w, i);
    int64_t total = epochs * w_per_epoch(&w->spec, i);
    for (int64_t b = 0; b < W_BATCHES; b++) w_check(w, w->regions[i].trained[b] == (b < total));
    w_check(w, v.batches == total);
    w_check(w, v.samples == epochs * (int64_t)w->spec.samples[i]);
  }
}

bool w_lockstep(const w_spec *spec) {
  return strcmp(spec->strategy, "ssgd") == 0 || strcmp(spec->strategy, "sma") == 0;
}

void w_check_identical(world *w) {
  for (size_t i = 1; i < w->n; i++) {
    w_check(w,
            memcmp(w->regions[0].params, w->regions[i].params, sizeof w->regions[0].params) == 0);
    if (strcmp(w->spec.strategy, "sma") == 0 && !w->spec.no_data)
      w_check(w, memcmp(w->regions[0].buffers, w->regions[i].buffers,
                        sizeof w->regions[0].buffers) == 0);
  }
}

void w_place(w_spec *spec) {
  static const gt_topology all[] = {GT_TOPOLOGY_MESH, GT_TOPOLOGY_HUB, GT_TOPOLOGY_TREE,
                                    GT_TOPOLOGY_RING, GT_TOPOLOGY_CENTRAL};
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 7, 0);
  size_t order[W_REGIONS];
  spec->topology = all[gt_rng_below(&rng, w_lockstep(spec) ? 5 : 3)];
  for (size_t i = 0; i < spec->nregions; i++) {
    const size_t at = (size_t)gt_rng_below(&rng, i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (size_t i = 0; i < spec->nregions; i++) {
    size_t next = order[(i + 1) % spec->nregions];
    if (spec->topology == GT_TOPOLOGY_HUB || spec->topology == GT_TOPOLOGY_CENTRAL) next = order[0];
    if (spec->topology == GT_TOPOLOGY_TREE) next = i == 0 ? order[0] : order[gt_rng_below(&rng, i)];
    spec->next[order[i]] = next;
  }
}

w_spec w_random(const char *strategy, bool local_async, size_t nregions, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 1, nregions);
  static const double rates[] = {0, 1e7, 1e6, 1e5};
  w_spec s = {.strategy = strategy,
              .local_async = local_async,
              .nregions = nregions,
              .seed = seed,
              .test_samples = 25,
              .write_s = 0.1};
  s.period = 1 + (int64_t)gt_rng_below(&rng, 5);
  s.outbox = 1 + (size_t)gt_rng_below(&rng, 3);
  s.window = 1 + (size_t)gt_rng_below(&rng, 4);
  s.momentum = gt_rng_below(&rng, 2) ? 0.9 : 0;
  s.by_samples = gt_rng_below(&rng, 2);
  s.batch = 5 + (size_t)gt_rng_below(&rng, 10);
  s.link = (gt_link_spec){.bandwidth_bps = rates[gt_rng_below(&rng, 4)],
                          .latency_s = 0.001 * (double)gt_rng_below(&rng, 40),
                          .jitter_s = 0.001 * (double)gt_rng_below(&rng, 6)};
  for (size_t i = 0; i < nregions; i++) {
    s.workers[i] = 1 + (size_t)gt_rng_below(&rng, W_WORKERS);
    s.samples[i] = 20 + (size_t)gt_rng_below(&rng, 120);
    s.slow[i] = gt_rng_below(&rng, 4) ? 1 : 6;
  }
  return s;
}
