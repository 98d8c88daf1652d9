/* Random jobs whose topology is to be chosen, and the best of all topologies by brute force. */
#include "world_dice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double between(gt_rng *rng, double low, double high) {
  return low * pow(high / low, gt_rng_uniform(rng));
}

gt_job *dice_throw(gt_rng *rng, const dice_spec *d) {
  const size_t size = 1024 + d->n * d->n * 160;
  char *text = GT_NEW_ARRAY(char, size);
  int at = snprintf(text, size,
                    "name: dice\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                    "train: {until: {steps: 12}, batch: 10, optimizer: {name: sgd, lr: 0.1}, "
                    "eval_every: {epochs: 0}}\n"
                    "sync: {strategy: %s, period: 1, topology: auto, codec: {name: %s}}\n"
                    "compute: {step: 100 us, codec: {int8: {encode: 4 Gbit/s, decode: 4 Gbit/s}}}\n"
                    "checkpoint: {every: {epochs: 0}}\nwan:\n  links:\n",
                    d->strategy ? d->strategy : "ssgd", gt_codec_names[d->codec]);
  for (size_t a = 0; a < d->n; a++)
    for (size_t b = 0; b < d->n; b++)
      if (a != b) {
        const double latency_ms = between(rng, 5, 150), rate_mbps = between(rng, 20, 1000);
        at += snprintf(text + at, size - (size_t)at,
                       "    - {from: r%zu, to: r%zu, bandwidth: %.3f Mbit/s, latency: %.4f ms}\n",
                       a, b, rate_mbps, latency_ms);
      }
  at += snprintf(text + at, size - (size_t)at, "regions:\n");
  for (size_t r = 0; r < d->n; r++) {
    at += snprintf(text + at, size - (size_t)at, "  - {name: r%zu, ranks: 2, samples: 1000", r);
    if (d->access && gt_rng_uniform(rng) < 0.7)
      at += snprintf(text + at, size - (size_t)at, ", access: %.3f Mbit/s", between(rng, 20, 1000));
    at += snprintf(text + at, size - (size_t)at, "}\n");
  }
  gt_job *job = NULL;
  if (gt_job_parse(&job, "dice", text) != GT_OK) gt_bug("%s", gt_error_text());
  gt_free(text);
  return job;
}

/* ---- brute force ----------------------------------------------------------------------------- */

void dice_try(dice_best *b, topology_world *w, gt_topology topology, const size_t *next) {
  const double seconds = gt_topology_simulate(w, topology, next, INFINITY);
  b->simulated++;
  if (seconds >= b->seconds) return;
  b->seconds = seconds;
  if (next) memcpy(b->next, next, w->job.nregions * sizeof *next);
}

static bool is_tree(const size_t *parent, size_t n) {
  size_t roots = 0;
  for (size_t r = 0; r < n; r++) {
    size_t at = r, steps = 0;
    while (parent[at] != at && steps++ <= n) at = parent[at];
    if (steps > n) return false;
    roots += parent[r] == r;
  }
  return roots == 1;
}

/* Every map of regions to regions that is a tree, hubs included. */
void dice_all_trees(dice_best *b, topology_world *w) {
  const size_t n = w->job.nregions;
  size_t parent[TOPOLOGY_EXACT] = {0}, r = 0;
  for (;;) {
    if (is_tree(parent, n)) dice_try(b, w, GT_TOPOLOGY_TREE, parent);
    for (r = 0; r < n && ++parent[r] == n; r++) parent[r] = 0;
    if (r == n) return;
  }
}

static void all_rings(dice_best *b, topology_world *w, size_t *order, size_t placed, size_t n) {
  if (placed == n) {
    size_t next[TOPOLOGY_EXACT];
    for (size_t i = 0; i < n; i++) next[order[i]] = order[(i + 1) % n];
    dice_try(b, w, GT_TOPOLOGY_RING, next);
    return;
  }
  for (size_t i = placed; i < n; i++) {
    size_t taken = order[i];
    order[i] = order[placed];
    order[placed] = taken;
    all_rings(b, w, order, placed + 1, n);
    taken = order[i];
    order[i] = order[placed];
    order[placed] = taken;
  }
}

void dice_all_rings(dice_best *b, topology_world *w) {
  size_t order[TOPOLOGY_EXACT];
  for (size_t r = 0; r < w->job.nregions; r++) order[r] = r;
  all_rings(b, w, order, 1, w->job.nregions);
}
