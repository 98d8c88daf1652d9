/* The order in which links are told of: as reports came in differs between runs, so it is that of the regions. */
#include "rooms.h"

#include <string.h>

static size_t region_of(const gt_summary *s, const char *name) {
  size_t i = 0;
  while (i < s->nregions && strcmp(s->regions[i].name, name) != 0) i++;
  return i;
}

typedef struct {
  const gt_link_result *link;
  size_t from, to;
} place;

static bool stands_before(const place *a, const place *b) {
  return a->from != b->from ? a->from < b->from : a->to < b->to;
}

/* By insertion, so that equal ones keep their order; links come as a list a region, already in order within it. */
const gt_link_result **gt_links_ordered(const gt_summary *s) {
  const gt_link_result **links = GT_NEW_ARRAY(const gt_link_result *, s->nlinks);
  place *places = GT_NEW_ARRAY(place, s->nlinks);
  for (size_t i = 0; i < s->nlinks; i++) {
    place p = {&s->links[i], region_of(s, s->links[i].from), region_of(s, s->links[i].to)};
    size_t at = i;
    for (; at > 0 && stands_before(&p, &places[at - 1]); at--) places[at] = places[at - 1];
    places[at] = p;
  }
  for (size_t i = 0; i < s->nlinks; i++) links[i] = places[i].link;
  gt_free(places);
  return links;
}

static bool is_busier(const gt_link_result *a, const gt_link_result *b) {
  bool a_measured = a->bandwidth_bps_measured > 0, b_measured = b->bandwidth_bps_measured > 0;
  if (a_measured != b_measured) return a_measured;
  double a_rate = a_measured ? a->bandwidth_bps_measured : 1, b_rate = b_measured ? b->bandwidth_bps_measured : 1;
  return (double)a->bytes_sent / a_rate > (double)b->bytes_sent / b_rate;
}

void gt_links_busiest(const gt_link_result *const *links, size_t n, const gt_link_result **busiest, size_t most) {
  for (size_t i = 0, kept = 0; i < n; i++) {
    if (kept == most && !is_busier(links[i], busiest[kept - 1])) continue;
    size_t at = kept < most ? kept++ : kept - 1;
    for (; at > 0 && is_busier(links[i], busiest[at - 1]); at--) busiest[at] = busiest[at - 1];
    busiest[at] = links[i];
  }
}
