/* All ranks of a run whose regions are MPI jobs of their own: messages pass inside a region to its
   PS, between the PS ranks, and from the PS to the region's ranks. */
#include <string.h>

#include "geotrain/net_peers.h"

typedef struct {
  gt_peers peers;
  gt_peers *region, *servers; /* borrowed; servers: NULL on workers */
  size_t own, nregions, most; /* most: ranks of the largest region */
  size_t *first;              /* nregions + 1: the first rank of each region */
} group;

/* Gathers from every region the values of its ranks.  All regions send as many bytes as the
   largest. */
static void gather_regions(group *g, const uint8_t *own, size_t bytes, uint8_t *all,
                           const gt_peers_wait *wait) {
  uint8_t *padded = gt_alloc(g->nregions * g->most, bytes);
  g->servers->ops->gather(g->servers, own, g->most * bytes, padded, wait);
  for (size_t r = 0; r < g->nregions; r++)
    memcpy(all + g->first[r] * bytes, padded + r * g->most * bytes,
           (g->first[r + 1] - g->first[r]) * bytes);
  /* of a region that returns, the servers' group gathers what it said at the start of the run */
  memcpy(all + g->first[g->own] * bytes, own, (g->first[g->own + 1] - g->first[g->own]) * bytes);
  gt_free(padded);
}

static void gather(gt_peers *peers, const void *own, size_t bytes, void *all,
                   const gt_peers_wait *wait) {
  group *g = (group *)peers;
  uint8_t *here = gt_alloc(g->most, bytes);
  g->region->ops->gather(g->region, own, bytes, here, wait);
  if (g->servers) gather_regions(g, here, bytes, all, wait);
  g->region->ops->share(g->region, 0, all, peers->size * bytes, wait);
  gt_free(here);
}

static void share(gt_peers *peers, size_t from, void *data, size_t bytes,
                  const gt_peers_wait *wait) {
  group *g = (group *)peers;
  size_t region = 0;
  while (from >= g->first[region + 1]) region++;
  if (region == g->own && from > g->first[region])
    g->region->ops->share(g->region, from - g->first[region], data, bytes, wait);
  if (g->servers) g->servers->ops->share(g->servers, region, data, bytes, wait);
  /* a region that returns has from the servers' group what it said at the start of the run */
  g->region->ops->share(g->region, 0, data, bytes, wait);
}

static void close_group(gt_peers *peers) {
  group *g = (group *)peers;
  gt_free(g->first);
  gt_free(g);
}

static const gt_peers_ops through_servers = {gather, share, close_group};

gt_peers *gt_peers_join(gt_peers *region, gt_peers *servers, size_t own, const size_t *ranks,
                        size_t nregions) {
  group *g = GT_NEW(group);
  g->first = GT_NEW_ARRAY(size_t, nregions + 1);
  for (size_t r = 0; r < nregions; r++) {
    g->first[r + 1] = g->first[r] + ranks[r];
    if (ranks[r] > g->most) g->most = ranks[r];
  }
  g->peers = (gt_peers){&through_servers, g->first[own] + region->rank, g->first[nregions]};
  g->region = region;
  g->servers = servers;
  g->own = own;
  g->nregions = nregions;
  return &g->peers;
}
