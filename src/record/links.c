/* Links by region: links to list one by one, sums over regions, the order in the output, the
   busiest. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- those that are listed ---- */

typedef struct {
  gt_told_link link;
  gt_link_traffic traffic;
} candidate;

/* The candidates are a heap with the least busy link, which is replaced first, on top. */
struct gt_told {
  size_t nregions, most, n, left_out;
  candidate *heap;
  gt_told_link *links;
  gt_region_traffic *traffic;
};

gt_told *gt_told_create(size_t nregions) {
  gt_told *t = GT_NEW(gt_told);
  t->nregions = nregions;
  t->most = nregions <= GT_TOLD_REGIONS ? nregions * nregions : GT_TOLD_LINKS;
  t->heap = GT_NEW_ARRAY(candidate, t->most);
  t->links = GT_NEW_ARRAY(gt_told_link, t->most);
  t->traffic = GT_NEW_ARRAY(gt_region_traffic, nregions);
  for (size_t r = 0; r < nregions; r++) t->traffic[r].slowest_bps = NAN;
  return t;
}

void gt_told_close(gt_told *t) {
  if (!t) return;
  gt_free(t->heap);
  gt_free(t->links);
  gt_free(t->traffic);
  gt_free(t);
}

/* True if a's traffic takes longer at the measured rate.  Links without a measured rate come last,
   by bytes. */
static bool takes_longer(const gt_link_traffic *a, const gt_link_traffic *b) {
  bool a_measured = a->measured_bps > 0, b_measured = b->measured_bps > 0;
  if (a_measured != b_measured) return a_measured;
  double a_rate = a_measured ? a->measured_bps : 1, b_rate = b_measured ? b->measured_bps : 1;
  return (double)a->bytes_sent / a_rate > (double)b->bytes_sent / b_rate;
}

static int by_link(const void *x, const void *y) {
  const gt_told_link *a = x, *b = y;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return (a->to > b->to) - (a->to < b->to);
}

/* ---- the heap ---- */

static bool makes_room_first(const candidate *a, const candidate *b) {
  if (takes_longer(&b->traffic, &a->traffic)) return true;
  return !takes_longer(&a->traffic, &b->traffic) && by_link(&a->link, &b->link) > 0;
}

static void swap(candidate *a, candidate *b) {
  candidate c = *a;
  *a = *b;
  *b = c;
}

static void sift_up(candidate *heap, size_t at) {
  for (; at > 0 && makes_room_first(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
    swap(&heap[at], &heap[(at - 1) / 2]);
}

static void sift_down(candidate *heap, size_t n) {
  for (size_t at = 0, child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && makes_room_first(&heap[child + 1], &heap[child])) child++;
    if (!makes_room_first(&heap[child], &heap[at])) return;
    swap(&heap[child], &heap[at]);
  }
}

static void keep(gt_told *t, const candidate *c) {
  if (t->n < t->most) {
    t->heap[t->n] = *c;
    sift_up(t->heap, t->n++);
    return;
  }
  t->left_out++;
  if (!makes_room_first(&t->heap[0], c)) return;
  t->heap[0] = *c;
  sift_down(t->heap, t->n);
}

static void add_to_sums(gt_told *t, size_t from, size_t to, const gt_link_traffic *l) {
  gt_region_traffic *sum = &t->traffic[from];
  sum->messages += l->messages;
  sum->bytes_sent += l->bytes_sent;
  sum->bytes_other += l->bytes_other;
  if (l->measured_bps > 0) sum->slowest_bps = fmin(sum->slowest_bps, l->measured_bps);
  t->traffic[to].bytes_received += l->bytes_sent;
}

void gt_told_add(gt_told *t, size_t from, size_t to, const gt_link_traffic *l) {
  const candidate c = {{from, to}, *l};
  add_to_sums(t, from, to, l);
  if (t->nregions > GT_TOLD_REGIONS && l->messages == 0)
    t->left_out++;
  else
    keep(t, &c);
}

const gt_told_link *gt_told_links(gt_told *t, size_t *n) {
  for (size_t i = 0; i < t->n; i++) t->links[i] = t->heap[i].link;
  if (t->n > 0) qsort(t->links, t->n, sizeof *t->links, by_link);
  *n = t->n;
  return t->links;
}

size_t gt_told_left_out(const gt_told *t) {
  return t->left_out;
}

const gt_region_traffic *gt_told_traffic(const gt_told *t) {
  return t->traffic;
}

/* ---- regions by name ---- */

/* Sorted, because a thousand regions have a million links, and each is looked up by name. */
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

/* Returns the region of this name, or nregions. */
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
  return takes_longer(
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
