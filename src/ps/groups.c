/* With whom a region makes steps, and with whom it exchanges data: all regions, or of several
   copies of a pipeline those of its copy, and those with the same stages in others.  Strategy and
   exchange count the regions of their group from 0. */
#include "internal.h"

static void open_group(ps_group *g, const gt_ps *ps, const size_t *regions, size_t n) {
  const size_t all = ps->spec.nregions;
  g->n = n ? n : all;
  g->regions = GT_NEW_ARRAY(size_t, g->n);
  g->of = GT_NEW_ARRAY(size_t, all);
  for (size_t r = 0; r < all; r++) g->of[r] = PS_NONE;
  for (size_t i = 0; i < g->n; i++) {
    g->regions[i] = n ? regions[i] : i;
    g->of[g->regions[i]] = i;
  }
  g->self = g->of[ps->spec.self];
  if (g->self == PS_NONE) gt_bug("region %zu is not of its own group", ps->spec.self);
}

static void close_group(ps_group *g) {
  gt_free(g->regions);
  gt_free(g->of);
}

void gt_ps_groups_open(gt_ps *ps) {
  const gt_ps_copies *c = &ps->spec.copies;
  ps->apart = c->ntwins > 0;
  if (ps->apart && (!ps->plane->together || gt_topology_singly(ps->spec.topology)))
    gt_bug("copies of a pipeline need stages, and no region that makes all steps");
  open_group(&ps->mates, ps, c->mates, c->nmates);
  open_group(&ps->twins, ps, c->twins, c->ntwins);
  if (!ps->spec.next) return;
  ps->next = GT_NEW_ARRAY(size_t, ps->twins.n);
  for (size_t i = 0; i < ps->twins.n; i++) {
    ps->next[i] = ps->twins.of[ps->spec.next[ps->twins.regions[i]]];
    if (ps->next[i] == PS_NONE) gt_bug("next to region %zu is none of its group", i);
  }
}

void gt_ps_groups_close(gt_ps *ps) {
  gt_free(ps->next);
  close_group(&ps->mates);
  close_group(&ps->twins);
}

const gt_sync_ops *gt_ps_strategy(const gt_ps *ps) {
  return ps->apart ? ps->spec.copies.strategy : ps->spec.strategy;
}

bool gt_ps_ahead(const gt_ps *ps, size_t peer) {
  return ps->apart && ps->peers[peer].round > ps->round;
}

bool gt_ps_behind(const gt_ps *ps, size_t peer) {
  return ps->apart && ps->peers[peer].round < ps->round;
}
