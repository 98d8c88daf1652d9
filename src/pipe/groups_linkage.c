/* Average linkage (UPGMA; Sokal, Michener 1958) by the nearest-neighbour chain (Benzecri 1982;
   Murtagh 1983): each link of the chain leads to the nearest cluster, distances along it fall, and
   two that are nearest to each other are merged at once. */
#include "groups_linkage.h"

#include <math.h>

#include "geotrain/base.h"

typedef struct {
  double *distance;
  size_t n;
  size_t *size; /* of the cluster with this lowest member; 0: it is part of another */
} clusters;

/* The cluster nearest to `at`: of equally near ones `before` (n: none), so that the chain ends;
   otherwise the lowest. */
static size_t nearest(const clusters *c, size_t at, size_t before) {
  const double *distance = &c->distance[at * c->n];
  size_t best = before;
  for (size_t i = 0; i < c->n; i++)
    if (c->size[i] > 0 && i != at && (best == c->n || distance[i] < distance[best])) best = i;
  return best;
}

/* The mean of x and y with weights nx and ny; never below the lower one, because heights must not
   fall. */
static double mean(double x, size_t nx, double y, size_t ny) {
  double all = (double)(nx + ny);
  if (x == y) return x;
  return x < y ? x + (y - x) * ((double)ny / all) : y + (x - y) * ((double)nx / all);
}

/* Lance and Williams' update for the average. */
static gt_pipe_merge merge(clusters *c, size_t x, size_t y) {
  size_t n = c->n, a = x < y ? x : y, b = x < y ? y : x;
  gt_pipe_merge made = {a, b, c->distance[a * n + b]};
  for (size_t i = 0; i < n; i++) {
    if (c->size[i] == 0 || i == a || i == b) continue;
    double d = mean(c->distance[a * n + i], c->size[a], c->distance[b * n + i], c->size[b]);
    c->distance[a * n + i] = c->distance[i * n + a] = d;
  }
  c->size[a] += c->size[b];
  c->size[b] = 0;
  return made;
}

void gt_pipe_linkage(double *distance, size_t n, gt_pipe_merge *merges) {
  clusters c = {distance, n, GT_NEW_ARRAY(size_t, n)};
  size_t *chain = GT_NEW_ARRAY(size_t, n), length = 0;
  for (size_t i = 0; i < n; i++) c.size[i] = 1;
  for (size_t made = 0; made + 1 < n;) {
    if (length == 0) chain[length++] = 0; /* member 0 is always the lowest of its cluster */
    size_t at = chain[length - 1], before = length > 1 ? chain[length - 2] : n;
    size_t near = nearest(&c, at, before);
    if (near == before) {
      merges[made++] = merge(&c, before, at);
      length -= 2;
    } else
      chain[length++] = near;
  }
  gt_free(chain);
  gt_free(c.size);
}

size_t gt_pipe_linkage_cut(const gt_pipe_merge *merges, size_t n, double height, size_t *label) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) label[i] = i;
  for (size_t i = 0; i + 1 < n; i++)
    if (merges[i].height <= height && merges[i].height < INFINITY) label[merges[i].b] = merges[i].a;
  /* label[i] is a lower member of the cluster, which has its number already, or i itself */
  for (size_t i = 0; i < n; i++) label[i] = label[i] == i ? count++ : label[label[i]];
  return count;
}
