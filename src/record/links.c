/* Links by region: their order in the output, sums per region, the busiest. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- regions by name ---- */

/* Sorted, to avoid comparing every name for each link: a thousand regions have a million links. */
typedef struct {
  const char *name;
  size_t region;
} entry;

static int by_name(const void *a, const void *b) {
  return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static entry *index_of(const gt_summary *s) {
  entry *names = GT_NEW_ARRAY(entry, s->nregions);
  for (size_t r = 0; r < s->nregions; r++) names[r] = (entry){s->regions[r].name, r};
  if (s->nregions > 0) qsort(names, s->nregions, sizeof *names, by_name);
  return names;
}

/* Returns nregions if there is no region of this name. */
static size_t region_of(const gt_summary *s, const entry *names, const char *name) {
  const entry key = {name, 0},
              *found = s->nregions > 0 ? bsearch(&key, names, s->nregions, sizeof *names, by_name)
                                       : NULL;
  return found ? found->region : s->nregions;
}

/* ---- order: that of the regions, since the order of the reports differs between runs --------- */

typedef struct {
  const gt_link_result *link;
  size_t from, to, at;
} place;

static int compare(size_t a, size_t b) {
  return (a > b) - (a < b);
}

/* Keeps the order of equal entries. */
static int by_place(const void *x, const void *y) {
  const place *a = x, *b = y;
  if (a->from != b->from) return compare(a->from, b->from);
  return a->to != b->to ? compare(a->to, b->to) : compare(a->at, b->at);
}

const gt_link_result **gt_links_ordered(const gt_summary *s) {
  const gt_link_result **links = GT_NEW_ARRAY(const gt_link_result *, s->nlinks);
  place *places = GT_NEW_ARRAY(place, s->nlinks);
  entry *names = index_of(s);
  for (size_t i = 0; i < s->nlinks; i++)
    places[i] = (place){&s->links[i], region_of(s, names, s->links[i].from),
                        region_of(s, names, s->links[i].to), i};
  if (s->nlinks > 0) qsort(places, s->nlinks, sizeof *places, by_place);
  for (size_t i = 0; i < s->nlinks; i++) links[i] = places[i].link;
  gt_free(names);
  gt_free(places);
  return links;
}

/* ---- sums ---- */

static void add_sent(gt_region_traffic *sum, const gt_link_result *l) {
  sum->bytes_sent += l->bytes_sent;
  sum->messages += l->messages;
  sum->bytes_other += l->bytes_other;
  if (l->bandwidth_bps_measured > 0)
    sum->slowest_bps = fmin(sum->slowest_bps, l->bandwidth_bps_measured);
}

gt_region_traffic *gt_links_traffic(const gt_summary *s) {
  gt_region_traffic *sums = GT_NEW_ARRAY(gt_region_traffic, s->nregions);
  if (s->traffic) return memcpy(sums, s->traffic, s->nregions * sizeof *sums);
  entry *names = index_of(s);
  for (size_t r = 0; r < s->nregions; r++) sums[r].slowest_bps = NAN;
  for (size_t i = 0; i < s->nlinks; i++) {
    const gt_link_result *l = &s->links[i];
    size_t from = region_of(s, names, l->from), to = region_of(s, names, l->to);
    if (from < s->nregions) add_sent(&sums[from], l);
    if (to < s->nregions) sums[to].bytes_received += l->bytes_sent;
  }
  gt_free(names);
  return sums;
}

/* ---- the busiest ---- */

static bool is_busier(const gt_link_result *a, const gt_link_result *b) {
  return gt_is_busier(
      &(gt_link_traffic){.bytes_sent = a->bytes_sent, .measured_bps = a->bandwidth_bps_measured},
      &(gt_link_traffic){.bytes_sent = b->bytes_sent, .measured_bps = b->bandwidth_bps_measured});
}

void gt_links_busiest(const gt_link_result *const *links, size_t n, const gt_link_result **busiest,
                      size_t most) {
  for (size_t i = 0, kept = 0; i < n; i++) {
    if (kept == most && !is_busier(links[i], busiest[kept - 1])) continue;
    size_t at = kept < most ? kept++ : kept - 1;
    for (; at > 0 && is_busier(links[i], busiest[at - 1]); at--) busiest[at] = busiest[at - 1];
    busiest[at] = links[i];
  }
}
