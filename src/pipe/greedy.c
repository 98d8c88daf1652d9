/* A schedule made while it runs: an idle stage takes B or F, whichever is ready first, within
   memory; W fills gaps.  (The zero-bubble papers' heuristic fills gaps with W as well: Qi et al.,
   "Zero Bubble Pipeline Parallelism", ICLR 2024, section 3.1.) */
#include "internal.h"

#define NONE SIZE_MAX

typedef struct {
  const gt_pipe_problem *problem;
  const gt_pipe_rule *rules;
  gt_pipe_schedule *schedule;
  size_t (*begun)[3];      /* of each span: F, B, W */
  gt_ns *gap_ns, *bias_ns; /* of each span */
} greedy;

/* A pass that a stage could run, and when it can begin; GT_NEVER: not known, or there is none. */
typedef struct {
  gt_ns at;
  size_t span;
} option;

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t between(const greedy *g, size_t span) {
  return g->begun[span][GT_PASS_F] - g->begun[span][GT_PASS_B];
}

static double held(const greedy *g, size_t stage) {
  const gt_pipe_problem *problem = g->problem;
  double sum = 0.0;
  for (size_t c = 0; c < problem->chunks; c++) {
    const size_t k = gt_pipe_span_of(problem->stages, c, stage);
    const double due = (double)(g->begun[k][GT_PASS_B] - g->begun[k][GT_PASS_W]),
                 share = problem->spans[k].weight_share;
    sum += problem->spans[k].activation * ((double)between(g, k) + due * share);
  }
  return sum;
}

/* What the stage holds of a micro-batch, or with `ahead` what it will need for later chunks. */
static double part(const greedy *g, size_t stage, size_t micro, bool ahead) {
  const gt_pipe_problem *problem = g->problem;
  double sum = 0.0;
  for (size_t c = 0; c < problem->chunks; c++) {
    const size_t k = gt_pipe_span_of(problem->stages, c, stage), *const begun = g->begun[k];
    const gt_pipe_span *span = &problem->spans[k];
    if (micro >= begun[GT_PASS_F])
      sum += ahead ? span->activation : 0;
    else if (!ahead && micro >= begun[GT_PASS_W])
      sum += span->activation * (micro >= begun[GT_PASS_B] ? 1 : span->weight_share);
  }
  return sum;
}

/* Micro-batches that have begun can go on in their order, each with the room that is left and what
   older ones have given back. */
static bool is_safe(const greedy *g, size_t stage, double left) {
  const size_t *begun = g->begun[gt_pipe_span_of(g->problem->stages, 0, stage)];
  for (size_t micro = begun[GT_PASS_W]; micro < begun[GT_PASS_F]; micro++) {
    if (part(g, stage, micro, true) > left) return false;
    left += part(g, stage, micro, false);
  }
  return true;
}

/* Room for F of the chunk, so that the oldest micro-batch can always go on: for one in each later
   chunk, too, or if the span fills the stage, as much as there is. */
static bool has_room(const greedy *g, size_t stage, size_t chunk) {
  const gt_pipe_problem *problem = g->problem;
  const size_t k = gt_pipe_span_of(problem->stages, chunk, stage);
  const double left = gt_pipe_limit(problem, stage) - held(g, stage),
               own = problem->spans[k].activation;
  double sum = 0.0;
  for (size_t c = chunk; c < problem->chunks; c++)
    sum += problem->spans[gt_pipe_span_of(problem->stages, c, stage)].activation;
  if (sum <= left || own > left || !g->rules[k].fill) return sum <= left;
  g->begun[k][GT_PASS_F]++;
  const bool safe = is_safe(g, stage, left - own);
  g->begun[k][GT_PASS_F]--;
  return safe;
}

/* ---- options --------------------------------------------------------------------------------- */

static gt_ns ready_at(const greedy *g, const gt_pipe_run *run, gt_pass_kind kind, size_t span,
                      gt_ns now) {
  const gt_pass pass = {kind, (uint32_t)span, (uint32_t)g->begun[span][kind]};
  gt_pipe_message message;
  return gt_pipe_needs(g->schedule, &pass, &message) ? gt_pipe_run_due(run, &message, now) : now;
}

static option forward(const greedy *g, const gt_pipe_run *run, size_t stage, gt_ns now) {
  option best = {GT_NEVER, NONE};
  for (size_t c = 0; c < g->problem->chunks; c++) {
    const size_t k = gt_pipe_span_of(g->problem->stages, c, stage);
    if (g->begun[k][GT_PASS_F] == g->problem->micros || between(g, k) >= g->rules[k].depth ||
        !has_room(g, stage, c))
      continue;
    gt_ns at = ready_at(g, run, GT_PASS_F, k, now);
    if (at <= best.at) best = (option){at, k};
  }
  return best;
}

static option backward(const greedy *g, const gt_pipe_run *run, size_t stage, gt_ns now) {
  option best = {GT_NEVER, NONE};
  for (size_t c = 0; c < g->problem->chunks; c++) {
    const size_t k = gt_pipe_span_of(g->problem->stages, c, stage);
    if (between(g, k) == 0) continue;
    gt_ns at = ready_at(g, run, GT_PASS_B, k, now);
    if (at <= best.at) best = (option){at, k};
  }
  return best;
}

/* The span whose W is due; of several the last, which frees what the others wait for. */
static size_t weight(const greedy *g, size_t stage) {
  size_t span = NONE;
  for (size_t c = 0; c < g->problem->chunks; c++) {
    const size_t k = gt_pipe_span_of(g->problem->stages, c, stage);
    if (g->begun[k][GT_PASS_B] > g->begun[k][GT_PASS_W]) span = k;
  }
  return span;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void take(greedy *g, gt_pass_kind kind, size_t span) {
  gt_pipe_add(g->schedule, kind, span, g->begun[span][kind]++);
}

static bool b_first(const greedy *g, option f, option b) {
  if (b.at == GT_NEVER || f.at == GT_NEVER) return b.at != GT_NEVER;
  return b.at <= f.at + g->bias_ns[f.span];
}

static void choose(gt_pipe_run *run, size_t stage, gt_ns now) {
  greedy *g = gt_pipe_run_context(run);
  const option f = forward(g, run, stage, now), b = backward(g, run, stage, now);
  const gt_ns first = f.at < b.at ? f.at : b.at;
  const size_t w = weight(g, stage);
  if (w != NONE && (first == GT_NEVER || first - now >= g->gap_ns[w])) {
    take(g, GT_PASS_W, w);
    return;
  }
  const gt_pass_kind kind = b_first(g, f, b) ? GT_PASS_B : GT_PASS_F;
  const option next = kind == GT_PASS_B ? b : f;
  if (next.at <= now)
    take(g, kind, next.span);
  else if (next.at != GT_NEVER)
    gt_pipe_run_wake(run, stage, next.at);
}

gt_pipe_schedule *gt_pipe_greedy(const gt_pipe_problem *problem, const gt_pipe_rule *rules) {
  const size_t n = problem->stages * problem->chunks;
  greedy g = {.problem = problem,
              .rules = rules,
              .schedule =
                  gt_pipe_schedule_create(problem->stages, problem->chunks, problem->micros),
              .begun = gt_alloc(n, sizeof *g.begun),
              .gap_ns = GT_NEW_ARRAY(gt_ns, n),
              .bias_ns = GT_NEW_ARRAY(gt_ns, n)};
  for (size_t k = 0; k < n; k++) {
    g.gap_ns[k] = (gt_ns)(1e9 * rules[k].gap * problem->spans[k].weight_s);
    g.bias_ns[k] = (gt_ns)(1e9 * rules[k].bias * problem->spans[k].forward_s);
  }
  const gt_pipe_run_spec spec = {
      .problem = problem, .schedule = g.schedule, .choose = choose, .context = &g, .steps = 1};
  if (!gt_pipe_run_steps(&spec).whole) gt_bug("a greedy schedule has stopped short");
  gt_free(g.bias_ns);
  gt_free(g.gap_ns);
  gt_free(g.begun);
  return g.schedule;
}
