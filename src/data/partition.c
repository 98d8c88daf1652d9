/* Divides training samples among regions: at random by shares, by whole labels, or by Dirichlet
   proportions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/data.h"

static double share(const gt_partition *p, size_t region) {
  return p->shares ? p->shares[region] : 1.0;
}

static gt_status check(const gt_partition *p, size_t n, size_t region) {
  double sum = 0;
  if (p->nregions == 0 || region >= p->nregions)
    return GT_FAIL(GT_ERR_FAULT, "region %zu of %zu has no part", region, p->nregions);
  if (n > UINT32_MAX)
    return GT_FAIL(GT_ERR_DATA, "%zu samples are too many to divide; expected at most %u", n,
                   UINT32_MAX);
  for (size_t r = 0; r < p->nregions; r++) {
    double s = share(p, r);
    if (!isfinite(s) || s <= 0)
      return GT_FAIL(GT_ERR_JOB, "data.partition.shares[%zu] is %g; expected a number above 0", r,
                     s);
    sum += s;
  }
  if (!isfinite(sum))
    return GT_FAIL(GT_ERR_JOB, "data.partition.shares add up to %g; expected a finite sum", sum);
  if (p->kind == GT_PART_DIRICHLET && (!isfinite(p->alpha) || p->alpha <= 0))
    return GT_FAIL(GT_ERR_JOB, "data.partition.alpha is %g; expected a number above 0", p->alpha);
  return GT_OK;
}

static void shuffle(uint32_t *items, size_t n, gt_rng *rng) {
  for (size_t i = n; i > 1; i--) {
    size_t j = (size_t)gt_rng_below(rng, i);
    uint32_t t = items[i - 1];
    items[i - 1] = items[j];
    items[j] = t;
  }
}

/* Distributes items[n] in consecutive runs whose sizes follow `weights` (not all 0): a run ends at
   the rounded sum of the weights so far. */
static void deal(uint32_t *owner, const uint32_t *items, size_t n, const double *weights,
                 size_t nregions) {
  double sum = 0, so_far = 0;
  size_t at = 0;
  for (size_t r = 0; r < nregions; r++) sum += weights[r];
  for (size_t r = 0; r < nregions; r++) {
    so_far += weights[r];
    size_t end = r + 1 == nregions ? n : (size_t)((double)n * (so_far / sum) + 0.5);
    for (; at < end && at < n; at++) owner[items[at]] = (uint32_t)r;
  }
}

static gt_status by_shares(const gt_partition *p, size_t n, uint32_t *owner) {
  gt_rng rng = gt_rng_make(p->seed, GT_RNG_PARTITION, GT_PART_SHARES, 0);
  uint32_t *items = GT_NEW_ARRAY(uint32_t, n);
  double *weights = GT_NEW_ARRAY(double, p->nregions);
  for (size_t i = 0; i < n; i++) items[i] = (uint32_t)i;
  for (size_t r = 0; r < p->nregions; r++) weights[r] = share(p, r);
  shuffle(items, n, &rng);
  deal(owner, items, n, weights, p->nregions);
  gt_free(weights);
  gt_free(items);
  return GT_OK;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Samples grouped by label: those of label k are items[start[k]] up to items[start[k + 1]]. */
typedef struct {
  uint32_t *items;
  size_t *start, nlabels;
} groups;

static gt_status group(groups *g, const int32_t *labels, size_t n) {
  *g = (groups){0};
  for (size_t i = 0; i < n; i++) {
    if (labels[i] < 0)
      return GT_FAIL(GT_ERR_DATA, "the label of sample %zu is %d; expected 0 or more", i,
                     (int)labels[i]);
    if ((size_t)labels[i] >= g->nlabels) g->nlabels = (size_t)labels[i] + 1;
  }
  g->items = GT_NEW_ARRAY(uint32_t, n);
  g->start = GT_NEW_ARRAY(size_t, g->nlabels + 2);
  /* Counting sort.  The counts are stored two positions late, so that the starts are correct after
     the items have been placed. */
  for (size_t i = 0; i < n; i++) g->start[labels[i] + 2]++;
  for (size_t k = 2; k < g->nlabels + 2; k++) g->start[k] += g->start[k - 1];
  for (size_t i = 0; i < n; i++) g->items[g->start[labels[i] + 1]++] = (uint32_t)i;
  return GT_OK;
}

static size_t group_size(const groups *g, size_t k) {
  return g->start[k + 1] - g->start[k];
}

static void ungroup(groups *g) {
  gt_free(g->items);
  gt_free(g->start);
}

typedef struct {
  /* samples; position after the shuffle, so that the seed orders labels of equal size */
  size_t size, place;
  uint32_t label;
} ranked_label;

static int by_size(const void *a, const void *b) {
  const ranked_label *x = a, *y = b;
  return x->size != y->size ? (x->size < y->size) - (x->size > y->size)
                            : (x->place > y->place) - (x->place < y->place);
}

static void largest_first(const groups *g, uint32_t *labels, size_t n) {
  ranked_label *sorted = GT_NEW_ARRAY(ranked_label, n);
  for (size_t i = 0; i < n; i++) sorted[i] = (ranked_label){group_size(g, labels[i]), i, labels[i]};
  qsort(sorted, n, sizeof *sorted, by_size);
  for (size_t i = 0; i < n; i++) labels[i] = sorted[i].label;
  gt_free(sorted);
}

/* Writes the labels that occur, largest first, labels of equal size in random order; returns their
   number. */
static size_t rank_labels(const gt_partition *p, const groups *g, uint32_t *ranked) {
  gt_rng rng = gt_rng_make(p->seed, GT_RNG_PARTITION, GT_PART_LABEL, 0);
  size_t n = 0;
  for (size_t k = 0; k < g->nlabels; k++)
    if (group_size(g, k) > 0) ranked[n++] = (uint32_t)k;
  shuffle(ranked, n, &rng);
  largest_first(g, ranked, n);
  return n;
}

/* Returns the region furthest below its share.  If the number of empty regions equals that of the
   remaining labels, only empty regions are considered. */
static size_t neediest(const gt_partition *p, const size_t *have, size_t n, double sum,
                       bool only_empty) {
  size_t best = p->nregions;
  double most = -INFINITY;
  for (size_t r = 0; r < p->nregions; r++) {
    double lacks = (double)n * (share(p, r) / sum) - (double)have[r];
    if ((!only_empty || have[r] == 0) && lacks > most) {
      most = lacks;
      best = r;
    }
  }
  return best;
}

static gt_status by_label(const gt_partition *p, const int32_t *labels, size_t n, uint32_t *owner) {
  groups g;
  double sum = 0;
  GT_TRY(group(&g, labels, n));
  uint32_t *ranked = GT_NEW_ARRAY(uint32_t, g.nlabels);
  size_t *have = GT_NEW_ARRAY(size_t, p->nregions), nranked = rank_labels(p, &g, ranked),
         empty = p->nregions;
  for (size_t r = 0; r < p->nregions; r++) sum += share(p, r);
  for (size_t i = 0; i < nranked && nranked >= p->nregions; i++) {
    size_t k = ranked[i], to = neediest(p, have, n, sum, empty >= nranked - i);
    if (have[to] == 0) empty--;
    have[to] += group_size(&g, k);
    for (size_t j = g.start[k]; j < g.start[k + 1]; j++) owner[g.items[j]] = (uint32_t)to;
  }
  gt_free(have);
  gt_free(ranked);
  ungroup(&g);
  if (nranked < p->nregions)
    return GT_FAIL(GT_ERR_DATA,
                   "the training samples have %zu different labels for %zu regions; partition by "
                   "label needs at least one per region",
                   nranked, p->nregions);
  return GT_OK;
}

/* ---- Dirichlet ------------------------------------------------------------------------------- */

/* Yurochkin et al. 2019 (Bayesian Nonparametric Federated Learning of Neural Networks, section 4):
   for each label, the proportions of the regions are drawn from a Dirichlet distribution.  (Hsu, Qi
   and Brown 2019 draw a client's proportions of the labels instead.)  Its parameters are alpha
   times the shares, scaled to mean 1: equal shares give plain Dirichlet(alpha), unequal shares are
   met on average. */
static void draw_proportions(const gt_partition *p, size_t label, double *weights) {
  gt_rng rng = gt_rng_make(p->seed, GT_RNG_PARTITION, GT_PART_DIRICHLET, label + 1);
  double sum = 0, total = 0;
  for (size_t r = 0; r < p->nregions; r++) sum += share(p, r);
  for (size_t r = 0; r < p->nregions; r++) {
    weights[r] = gt_rng_gamma(&rng, p->alpha * (double)p->nregions * (share(p, r) / sum));
    total += weights[r];
  }
  if (total >= 1e-300 && isfinite(total)) return;
  /* A tiny alpha underflows.  In the limit one region takes the whole label; it is drawn in
     proportion to the shares. */
  double at = gt_rng_uniform(&rng) * sum;
  size_t taker = 0;
  while (taker + 1 < p->nregions && (at -= share(p, taker)) >= 0) taker++;
  for (size_t r = 0; r < p->nregions; r++) weights[r] = r == taker ? 1.0 : 0.0;
}

static gt_status by_dirichlet(const gt_partition *p, const int32_t *labels, size_t n,
                              uint32_t *owner) {
  groups g;
  GT_TRY(group(&g, labels, n));
  gt_rng rng = gt_rng_make(p->seed, GT_RNG_PARTITION, GT_PART_DIRICHLET, 0);
  double *weights = GT_NEW_ARRAY(double, p->nregions);
  for (size_t k = 0; k < g.nlabels; k++) {
    uint32_t *items = g.items + g.start[k];
    shuffle(items, group_size(&g, k), &rng);
    draw_proportions(p, k, weights);
    deal(owner, items, group_size(&g, k), weights, p->nregions);
  }
  gt_free(weights);
  ungroup(&g);
  return GT_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static gt_status assign(const gt_partition *p, const int32_t *labels, size_t n, size_t region,
                        uint32_t *owner) {
  switch (p->kind) {
  case GT_PART_SHARES:
    return by_shares(p, n, owner);
  case GT_PART_LABEL:
    return by_label(p, labels, n, owner);
  case GT_PART_DIRICHLET:
    return by_dirichlet(p, labels, n, owner);
  case GT_PART_FILE:
    /* each region uses all of its own file */
    for (size_t i = 0; i < n; i++) owner[i] = (uint32_t)region;
    return GT_OK;
  }
  return GT_FAIL(GT_ERR_FAULT, "partition kind %d is not known", (int)p->kind);
}

/* Checks all regions, not only the caller's, so that every region gets the same result. */
static gt_status check_none_empty(const gt_partition *p, const size_t *sizes, size_t n) {
  static const char *const hints[] = {[GT_PART_SHARES] = "a larger share",
                                      [GT_PART_LABEL] = "more labels",
                                      [GT_PART_DIRICHLET] =
                                          "another seed or a larger data.partition.alpha",
                                      [GT_PART_FILE] = "a file with samples"};
  for (size_t r = 0; r < p->nregions; r++) {
    char name[80];
    if (sizes[r] > 0) continue;
    snprintf(name, sizeof name, "%zu of %zu", r, p->nregions);
    return GT_FAIL(GT_ERR_DATA, "region %s would get 0 of %zu training samples; expected %s",
                   p->names ? p->names[r] : name, n, hints[p->kind]);
  }
  return GT_OK;
}

gt_status gt_partition_part(const gt_partition *p, const int32_t *labels, size_t nlabels,
                            size_t region, uint32_t **samples, size_t *n) {
  *samples = NULL;
  *n = 0;
  GT_TRY(check(p, nlabels, region));
  uint32_t *owner = GT_NEW_ARRAY(uint32_t, nlabels);
  size_t *sizes = GT_NEW_ARRAY(size_t, p->nregions), at = 0;
  gt_status status = assign(p, labels, nlabels, region, owner);
  for (size_t i = 0; i < nlabels && status == GT_OK; i++) sizes[owner[i]]++;
  /* the owners of other files check these themselves */
  for (size_t r = 0; r < p->nregions && p->kind == GT_PART_FILE && nlabels > 0; r++)
    sizes[r] = nlabels;
  if (status == GT_OK) status = check_none_empty(p, sizes, nlabels);
  if (status == GT_OK) {
    *samples = GT_NEW_ARRAY(uint32_t, sizes[region]);
    *n = sizes[region];
    for (size_t i = 0; i < nlabels; i++)
      if (owner[i] == region) (*samples)[at++] = (uint32_t)i;
  }
  gt_free(sizes);
  gt_free(owner);
  return status;
}
