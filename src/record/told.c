/* Which of many links are listed individually, and sums over regions for the others. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
  gt_told_link link;
  gt_link_traffic traffic;
} candidate;

/* The candidates are a heap with the least busy link on top, which is replaced first. */
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

bool gt_is_busier(const gt_link_traffic *a, const gt_link_traffic *b) {
  bool a_measured = a->measured_bps > 0, b_measured = b->measured_bps > 0;
  if (a_measured != b_measured) return a_measured;
  double a_rate = a_measured ? a->measured_bps : 1, b_rate = b_measured ? b->measured_bps : 1;
  return (double)a->bytes_sent / a_rate > (double)b->bytes_sent / b_rate;
}

static int by_place(const void *x, const void *y) {
  const gt_told_link *a = x, *b = y;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return (a->to > b->to) - (a->to < b->to);
}

/* ---- the heap ---- */

static bool makes_room_first(const candidate *a, const candidate *b) {
  if (gt_is_busier(&b->traffic, &a->traffic)) return true;
  return !gt_is_busier(&a->traffic, &b->traffic) && by_place(&a->link, &b->link) > 0;
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

/* ---- links ---- */

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
  if (t->n > 0) qsort(t->links, t->n, sizeof *t->links, by_place);
  *n = t->n;
  return t->links;
}

size_t gt_told_left_out(const gt_told *t) {
  return t->left_out;
}

const gt_region_traffic *gt_told_traffic(const gt_told *t) {
  return t->traffic;
}
