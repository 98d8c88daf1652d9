/* Groups of devices in two levels: regions by times of messages, and in them groups of equal
   power. */
#include "geotrain/pipe_groups.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-12 /* of two logarithms, relative to the thresholds */

/* ---- average linkage ------------------------------------------------------------------------- */

/* UPGMA (Sokal, Michener 1958) by the nearest-neighbor chain (Benzecri 1982; Murtagh 1983): each
   link of the chain leads to the nearest cluster, distances along it decrease, and two clusters
   that are nearest to each other are merged at once. */

/* A merge of two clusters.  A cluster is named by its lowest member: a < b. */
typedef struct {
  size_t a, b;
  double height; /* mean distance between their members */
} linked;

typedef struct {
  double *distance;
  size_t n;
  size_t *size; /* of the cluster with this lowest member; 0: merged into another one */
} clusters;

/* Returns the cluster nearest to `at`.  Among equally near ones this is `before` (n: none), so that
   the chain ends, otherwise the lowest. */
static size_t nearest(const clusters *c, size_t at, size_t before) {
  const double *distance = &c->distance[at * c->n];
  size_t best = before;
  for (size_t i = 0; i < c->n; i++)
    if (c->size[i] > 0 && i != at && (best == c->n || distance[i] < distance[best])) best = i;
  return best;
}

/* Returns the mean of x and y with weights nx and ny, at least the lower one, because heights must
   not decrease. */
static double mean(double x, size_t nx, double y, size_t ny) {
  double all = (double)(nx + ny);
  if (x == y) return x;
  return x < y ? x + (y - x) * ((double)ny / all) : y + (x - y) * ((double)nx / all);
}

/* Merges two clusters with Lance and Williams' update for the average. */
static linked join(clusters *c, size_t x, size_t y) {
  size_t n = c->n, a = x < y ? x : y, b = x < y ? y : x;
  linked made = {a, b, c->distance[a * n + b]};
  for (size_t i = 0; i < n; i++) {
    if (c->size[i] == 0 || i == a || i == b) continue;
    double d = mean(c->distance[a * n + i], c->size[a], c->distance[b * n + i], c->size[b]);
    c->distance[a * n + i] = c->distance[i * n + a] = d;
  }
  c->size[a] += c->size[b];
  c->size[b] = 0;
  return made;
}

/* Links n points in O(n^2) time.  Overwrites distance (n x n, symmetric, of any sign, INFINITY
   allowed).  Writes n - 1 merges, each after those of its parts, whose heights are at most its
   own. */
static void link_all(double *distance, size_t n, linked *merges) {
  clusters c = {distance, n, GT_NEW_ARRAY(size_t, n)};
  size_t *chain = GT_NEW_ARRAY(size_t, n), length = 0;
  for (size_t i = 0; i < n; i++) c.size[i] = 1;
  for (size_t made = 0; made + 1 < n;) {
    if (length == 0) chain[length++] = 0; /* member 0 is always the lowest of its cluster */
    size_t at = chain[length - 1], before = length > 1 ? chain[length - 2] : n;
    size_t near = nearest(&c, at, before);
    if (near == before) {
      merges[made++] = join(&c, before, at);
      length -= 2;
    } else
      chain[length++] = near;
  }
  gt_free(chain);
  gt_free(c.size);
}

/* Writes to label (n) the clusters of finite merges of at most `height`, numbered from 0 in order
   of their lowest members.  Returns their number. */
static size_t cut_at(const linked *merges, size_t n, double height, size_t *label) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) label[i] = i;
  for (size_t i = 0; i + 1 < n; i++)
    if (merges[i].height <= height && merges[i].height < INFINITY) label[merges[i].b] = merges[i].a;
  /* label[i] is a lower member of the cluster, which already has its number, or i itself */
  for (size_t i = 0; i < n; i++) label[i] = label[i] == i ? count++ : label[label[i]];
  return count;
}

/* ---- figures of a profile -------------------------------------------------------------------- */

double gt_pipe_transfer_s(gt_pipe_link link, double bytes) {
  if (!(link.large_s < INFINITY)) return INFINITY;
  return link.small_s + bytes * ((link.large_s - link.small_s) / GT_PIPE_LARGE_BYTES);
}

double gt_pipe_power(const double *times_s, const double *weights, size_t n) {
  double all = 0, time_s = 0;
  for (size_t i = 0; i < n; i++) {
    all += weights[i];
    time_s += weights[i] * times_s[i];
  }
  return all / time_s;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static gt_status check_pair(const gt_pipe_fleet *fleet, size_t from, size_t to) {
  gt_pipe_link t = fleet->links[from * fleet->n + to];
  if (!(t.small_s > 0))
    return GT_FAIL(
        GT_ERR_JOB,
        "a message of %d bytes from device %zu to device %zu takes %g s; expected more than 0",
        GT_PIPE_SMALL_BYTES, from, to, t.small_s);
  if (!(t.large_s >= t.small_s))
    return GT_FAIL(GT_ERR_JOB,
                   "from device %zu to device %zu a message of %d bytes takes %g s and one of %d "
                   "bytes %g s; the larger one cannot be faster",
                   from, to, GT_PIPE_SMALL_BYTES, t.small_s, GT_PIPE_LARGE_BYTES, t.large_s);
  return GT_OK;
}

static gt_status check(const gt_pipe_fleet *fleet, double theta_s, double bytes) {
  if (fleet->n == 0) return GT_FAIL(GT_ERR_JOB, "no device; expected at least one");
  if (!(theta_s >= 0)) return GT_FAIL(GT_ERR_JOB, "theta is %g s; expected 0 or more", theta_s);
  if (!(bytes >= 0 && bytes < INFINITY))
    return GT_FAIL(GT_ERR_JOB, "messages have %g bytes; expected 0 or more", bytes);
  for (size_t i = 0; i < fleet->n; i++) {
    if (!(fleet->power[i] > 0 && fleet->power[i] < INFINITY))
      return GT_FAIL(GT_ERR_JOB, "device %zu has a power of %g; expected more than 0", i,
                     fleet->power[i]);
    for (size_t j = 0; j < fleet->n; j++)
      if (i != j) GT_TRY(check_pair(fleet, i, j));
  }
  return GT_OK;
}

/* ---- level 1 --------------------------------------------------------------------------------- */

static void measure_links(double *distance, const gt_pipe_fleet *fleet, double bytes) {
  size_t n = fleet->n;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) {
      double there_s = gt_pipe_transfer_s(fleet->links[i * n + j], bytes),
             back_s = gt_pipe_transfer_s(fleet->links[j * n + i], bytes);
      distance[i * n + j] = distance[j * n + i] = log(fmax(there_s, back_s));
    }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the middle of the largest gap between finite heights, or DBL_MAX if no gap is large
   enough. */
static double largest_gap(const linked *merges, size_t n) {
  double *height = GT_NEW_ARRAY(double, n), gap = log(GT_PIPE_APART) * (1 - ROUNDING);
  double cut = DBL_MAX;
  size_t finite = 0;
  for (size_t i = 0; i + 1 < n; i++)
    if (merges[i].height < INFINITY) height[finite++] = merges[i].height;
  qsort(height, finite, sizeof *height, ascending);
  for (size_t i = 1; i < finite; i++) {
    double between = height[i] - height[i - 1];
    if (between < gap || (between == gap && cut < DBL_MAX)) continue;
    gap = between;
    cut = height[i - 1] + between / 2;
  }
  gt_free(height);
  return cut;
}

static void find_regions(gt_pipe_grouping *out, const gt_pipe_fleet *fleet, double theta_s,
                         double bytes, double *distance, linked *merges) {
  measure_links(distance, fleet, bytes);
  link_all(distance, fleet->n, merges);
  double cut = theta_s > 0 ? log(theta_s) : largest_gap(merges, fleet->n);
  out->theta_s = cut < DBL_MAX ? exp(cut) : INFINITY;
  out->nregions = cut_at(merges, fleet->n, cut, out->region);
}

/* ---- level 2 --------------------------------------------------------------------------------- */

/* Finds the groups of one region, numbered from out->ngroups on. room: 2 n. */
static void find_groups(gt_pipe_grouping *out, const gt_pipe_fleet *fleet, size_t region,
                        double *distance, linked *merges, size_t *room) {
  size_t *member = room, *label = room + fleet->n, n = 0;
  for (size_t i = 0; i < fleet->n; i++)
    if (out->region[i] == region) member[n++] = i;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      distance[i * n + j] = fabs(log(fleet->power[member[i]]) - log(fleet->power[member[j]]));
  link_all(distance, n, merges);
  size_t found = cut_at(merges, n, log(GT_PIPE_ALIKE) * (1 + ROUNDING), label);
  for (size_t i = 0; i < n; i++) out->group[member[i]] = out->ngroups + label[i];
  for (size_t g = 0; g < found; g++) out->region_of_group[out->ngroups + g] = region;
  out->ngroups += found;
}

gt_status gt_pipe_grouping_make(gt_pipe_grouping *out, const gt_pipe_fleet *fleet, double theta_s,
                                double bytes) {
  size_t n = fleet->n;
  *out = (gt_pipe_grouping){0};
  GT_TRY(check(fleet, theta_s, bytes));
  out->region = GT_NEW_ARRAY(size_t, n);
  out->group = GT_NEW_ARRAY(size_t, n);
  out->region_of_group = GT_NEW_ARRAY(size_t, n);
  double *distance = GT_NEW_ARRAY(double, n *n);
  linked *merges = GT_NEW_ARRAY(linked, n);
  size_t *room = GT_NEW_ARRAY(size_t, 2 * n);
  find_regions(out, fleet, theta_s, bytes > 0 ? bytes : GT_PIPE_USUAL_BYTES, distance, merges);
  for (size_t r = 0; r < out->nregions; r++) find_groups(out, fleet, r, distance, merges, room);
  gt_free(room);
  gt_free(merges);
  gt_free(distance);
  return GT_OK;
}

void gt_pipe_grouping_close(gt_pipe_grouping *grouping) {
  gt_free(grouping->region);
  gt_free(grouping->group);
  gt_free(grouping->region_of_group);
  *grouping = (gt_pipe_grouping){0};
}

/* ---- groups of equal devices ----------------------------------------------------------------- */

static gt_pipe_link worse(gt_pipe_link a, gt_pipe_link b) {
  return (gt_pipe_link){fmax(a.small_s, b.small_s), fmax(a.large_s, b.large_s)};
}

/* Returns the link between a group of one device and the rest of its region. */
static gt_pipe_link around(const gt_pipe_group *groups, size_t n, const gt_pipe_link *between,
                           size_t g) {
  gt_pipe_link worst = {0, 0};
  for (size_t h = 0; h < n; h++)
    if (h != g && groups[h].region == groups[g].region)
      worst = worse(worst, worse(between[g * n + h], between[h * n + g]));
  return worst;
}

void gt_pipe_grouping_groups(const gt_pipe_grouping *grouping, const gt_pipe_fleet *fleet,
                             gt_pipe_group *groups, gt_pipe_link *between) {
  size_t n = grouping->ngroups;
  for (size_t g = 0; g < n; g++)
    groups[g] = (gt_pipe_group){grouping->region_of_group[g], 0, INFINITY, INFINITY};
  for (size_t k = 0; k < n * n; k++) between[k] = (gt_pipe_link){0, 0};
  for (size_t i = 0; i < fleet->n; i++) {
    gt_pipe_group *own = &groups[grouping->group[i]];
    own->count++;
    own->power = fmin(own->power, fleet->power[i]);
    own->memory_bytes = fmin(own->memory_bytes, fleet->memory_bytes[i]);
    for (size_t j = 0; j < fleet->n; j++) {
      gt_pipe_link *pair = &between[grouping->group[i] * n + grouping->group[j]];
      if (i != j) *pair = worse(*pair, fleet->links[i * fleet->n + j]);
    }
  }
  for (size_t g = 0; g < n; g++)
    if (groups[g].count == 1) between[g * n + g] = around(groups, n, between, g);
}
