/* Periods of orders by given costs of the links, and the best order by them, of any number of
   micro-batches that is allowed. */
#include "adapt.h"

#include <math.h>

#define FEWEST 50 /* variants of orders of a number of micro-batches */

static void set_links(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  for (size_t i = 0; i < a->n * a->n; i++) {
    const size_t other = i % a->n * a->n + i / a->n;
    if (a->bytes[i] > 0)
      a->links[i] = (gt_link_spec){.bandwidth_bps = costs[i].rate_bps,
                                   .latency_s = costs[i].latency_s,
                                   .back_s = costs[other].latency_s};
  }
}

/* The problem over the links that are set. */
static gt_pipe_problem measured(const gt_pipe_adapt *a, size_t micros) {
  gt_pipe_problem problem = *gt_pipe_adapt_problem(a, micros);
  problem.wan = &a->wan;
  return problem;
}

double gt_pipe_adapt_period(gt_pipe_adapt *a, const gt_pipe_schedule *schedule,
                            const gt_pipe_cost *costs) {
  const gt_pipe_problem problem = measured(a, schedule->micros);
  set_links(a, costs);
  const gt_pipe_run_spec spec = {
      .problem = &problem, .schedule = schedule, .steps = GT_PIPE_STEADY};
  return gt_seconds(gt_pipe_run_steps(&spec).period);
}

/* The best order of so many micro-batches, by a share of the variants. */
static gt_pipe_schedule *search_order(gt_pipe_adapt *a, const gt_pipe_cost *costs, size_t micros,
                                      size_t share) {
  const gt_pipe_problem problem = measured(a, micros);
  const size_t variants = a->search.variants > 0 ? a->search.variants : GT_PIPE_VARIANTS,
               fair = variants * a->problems->micros / micros / share,
               least = variants < FEWEST ? variants : FEWEST;
  const gt_pipe_search search = {
      .aim = GT_PIPE_PERIOD, .seed = a->search.seed, .variants = fair > least ? fair : least};
  gt_pipe_schedule *best;
  set_links(a, costs);
  if (gt_pipe_make(&best, GT_PIPE_AUTO, &problem, &search) != GT_OK)
    gt_bug("no schedule for the pipeline: %s", gt_error_text());
  return best;
}

/* The number of micro-batches that is best by these costs, found with few variants each. */
static size_t find_micros(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  size_t best = a->problems->micros;
  double least_s = INFINITY;
  for (size_t i = 0; a->nproblems > 1 && i < a->nproblems; i++) {
    gt_pipe_schedule *order = search_order(a, costs, a->problems[i].micros, a->nproblems);
    const double s = gt_pipe_adapt_period(a, order, costs);
    if (s < least_s) best = a->problems[i].micros;
    least_s = fmin(s, least_s);
    gt_pipe_schedule_close(order);
  }
  return best;
}

gt_pipe_schedule *gt_pipe_adapt_best(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  return search_order(a, costs, find_micros(a, costs), 1);
}
