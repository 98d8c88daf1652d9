/* The ways of messages between stages, and how many activations in flight hide them. */
#include "internal.h"

#include <math.h>

#define DEPTH_ROUNDING 1e-9

static double hop_s(const gt_pipe_hop *hop, double bytes) {
  return hop->delay_s + (hop->bandwidth_bps > 0.0 ? 8.0 * bytes / hop->bandwidth_bps : 0.0);
}

gt_pipe_way gt_pipe_way_of(const gt_pipe_problem *problem, const gt_pipe_message *message) {
  const size_t p = problem->stages, k = message->span, sender = message->gradient ? k + 1 : k - 1;
  gt_pipe_way way = {.from = gt_pipe_stage_of(p, sender),
                     .to = gt_pipe_stage_of(p, k),
                     .bytes = problem->spans[message->gradient ? k : sender].output_bytes +
                              (message->gradient ? 0 : problem->spans[sender].label_bytes)};
  if (way.from == way.to) return way;
  way.local_s =
      hop_s(way.from < way.to ? &problem->ahead[way.from] : &problem->back[way.to], way.bytes);
  const gt_pipe_wan *wan = problem->wan;
  if (!wan || wan->region[way.from] == wan->region[way.to]) return way;
  way.from_region = wan->region[way.from];
  way.to_region = wan->region[way.to];
  way.link = &wan->links[way.from_region * wan->nregions + way.to_region];
  return way;
}

double gt_pipe_way_s(const gt_pipe_way *way) {
  if (!way->link) return way->local_s;
  const double rate = gt_link_goodput(way->link);
  return way->local_s + way->link->latency_s + (rate > 0.0 ? 8.0 * way->bytes / rate : 0.0);
}

/* From a span to the next and back. */
static double there_and_back_s(const gt_pipe_problem *problem, size_t span) {
  gt_pipe_message out = {false, (uint32_t)(span + 1), 0}, in = {true, (uint32_t)span, 0};
  gt_pipe_way ahead = gt_pipe_way_of(problem, &out), back = gt_pipe_way_of(problem, &in);
  return gt_pipe_way_s(&ahead) + gt_pipe_way_s(&back);
}

static size_t held_at_most(const gt_pipe_problem *problem, size_t span) {
  const double each = problem->spans[span].activation,
               limit = gt_pipe_limit(problem, gt_pipe_stage_of(problem->stages, span));
  return each > 0.0 && limit < each * (double)problem->micros ? (size_t)(limit / each)
                                                              : problem->micros;
}

size_t gt_pipe_depth(const gt_pipe_problem *problem, size_t span) {
  const size_t n = problem->stages * problem->chunks;
  const double forward_s = problem->spans[span].forward_s;
  double away_s = 0.0;
  for (size_t k = span; k + 1 < n; k++)
    away_s += problem->spans[k + 1].forward_s + problem->spans[k + 1].backward_s +
              there_and_back_s(problem, k);
  double more = away_s > 0.0 ? ceil(away_s / forward_s - DEPTH_ROUNDING) : 0.0;
  size_t most = held_at_most(problem, span);
  size_t depth = more < (double)most ? 1 + (size_t)more : most;
  if (depth > most) depth = most;
  return depth > 0 ? depth : 1;
}
