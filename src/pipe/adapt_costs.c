/* Costs of links: what is planned, what was measured of late, and how far the two are apart. */
#include "adapt.h"

#include <math.h>
#include <stdlib.h>

#define COST_LEAST 1e-6 /* s; below it, ratios say nothing */

static double cost_s(const gt_pipe_cost *c, double bytes) {
  const double s = c->latency_s + (c->rate_bps > 0 ? 8 * bytes / c->rate_bps : 0);
  return s > COST_LEAST ? s : COST_LEAST;
}

static double narrower(double rate_bps, const double *access_bps, size_t region) {
  const double access = access_bps ? access_bps[region] : 0;
  return access > 0 && (rate_bps <= 0 || access < rate_bps) ? access : rate_bps;
}

gt_pipe_cost gt_pipe_adapt_planned(const gt_pipe_wan *wan, size_t from, size_t to) {
  const gt_link_spec *link = &wan->links[from * wan->nregions + to];
  const double rate =
      narrower(narrower(gt_link_goodput(link), wan->up_bps, from), wan->down_bps, to);
  return (gt_pipe_cost){rate, link->latency_s};
}

void gt_pipe_adapt_refer(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  for (size_t i = 0; i < a->n * a->n; i++)
    a->reference[i] = a->bytes[i] > 0 ? log(cost_s(&costs[i], a->bytes[i])) : 0;
  a->counts.off = 0;
}

/* What was not measured is as before. */
void gt_pipe_adapt_measure(gt_pipe_adapt *a, const gt_pipe_cost *measured) {
  bool off = false;
  gt_pipe_cost *recent = gt_pipe_adapt_recent(a, a->counts.seen++);
  for (size_t i = 0; i < a->n * a->n; i++) {
    if (a->bytes[i] <= 0) continue;
    if (measured[i].rate_bps > 0) a->last[i].rate_bps = measured[i].rate_bps;
    if (measured[i].latency_s > 0) a->last[i].latency_s = measured[i].latency_s;
    recent[i] = a->last[i];
    a->weighted[i] +=
        GT_PIPE_ADAPT_WEIGHT * (log(cost_s(&a->last[i], a->bytes[i])) - a->weighted[i]);
    off = off || fabs(a->weighted[i] - a->reference[i]) > log(GT_PIPE_ADAPT_RATIO);
  }
  a->counts.off = off ? a->counts.off + 1 : 0;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(const gt_pipe_adapt *a, size_t link, bool rate) {
  double of[GT_PIPE_ADAPT_STEPS];
  for (int64_t k = 0; k < GT_PIPE_ADAPT_STEPS; k++) {
    const gt_pipe_cost *c = &gt_pipe_adapt_recent(a, a->counts.seen - 1 - k)[link];
    of[k] = rate ? c->rate_bps : c->latency_s;
  }
  qsort(of, GT_PIPE_ADAPT_STEPS, sizeof *of, ascending);
  return of[GT_PIPE_ADAPT_STEPS / 2];
}

void gt_pipe_adapt_costs(const gt_pipe_adapt *a, gt_pipe_cost *costs) {
  for (size_t i = 0; i < a->n * a->n; i++)
    costs[i] = (gt_pipe_cost){middle(a, i, true), middle(a, i, false)};
}
