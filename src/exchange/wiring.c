/* By which way regions exchange: a topology, and which region is next to which. */
#include <string.h>

#include "geotrain/exchange.h"

gt_wiring gt_wiring_copy(const gt_wiring *wiring, size_t nregions) {
  gt_wiring copy = {.topology = wiring->topology};
  if (!wiring->next) return copy;
  copy.next = GT_NEW_ARRAY(size_t, nregions);
  memcpy(copy.next, wiring->next, nregions * sizeof *copy.next);
  return copy;
}

void gt_wiring_close(gt_wiring *wiring) {
  gt_free(wiring->next);
  wiring->next = NULL;
}

static bool is_inside(const gt_wiring *wiring, size_t nregions) {
  for (size_t r = 0; r < nregions; r++)
    if (wiring->next[r] >= nregions) return false;
  return true;
}

static bool is_ring(const size_t *next, size_t nregions) {
  size_t steps = 1;
  for (size_t at = next[0]; at != 0 && steps <= nregions; at = next[at]) steps++;
  return steps == nregions;
}

static bool is_tree(const size_t *parent, size_t nregions) {
  size_t roots = 0;
  for (size_t r = 0; r < nregions; r++) {
    size_t at = r, steps = 0;
    while (parent[at] != at && steps++ < nregions) at = parent[at];
    if (parent[at] != at) return false;
    roots += parent[r] == r;
  }
  return roots == 1;
}

bool gt_wiring_sound(const gt_wiring *wiring, size_t nregions) {
  if (wiring->topology == GT_TOPOLOGY_MESH || !wiring->next)
    return wiring->topology == GT_TOPOLOGY_MESH && !wiring->next;
  if (!is_inside(wiring, nregions)) return false;
  return wiring->topology == GT_TOPOLOGY_RING ? is_ring(wiring->next, nregions)
                                              : is_tree(wiring->next, nregions);
}
