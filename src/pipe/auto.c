/* Finds the best of many greedy schedules: plain rules, rules with depths that hide the hops, and
   random rules, mostly near the best so far.  A greedy schedule is made during its simulated run:
   an idle stage takes B or F, the one that is ready first, within memory; W fills gaps, as in Qi et
   al. 2024 (arXiv 2401.10241), section 3.1. */
#include "internal.h"

#include <string.h>

#define GAP        0.25 /* minimum gap for W, relative to its time */
#define FRESH_TURN 4    /* every fourth set of rules is drawn independently of the best */
#define DEPTH_LESS 1    /* random depths: from the formula's minus one to plus four */
#define DEPTH_SPAN 6
#define FILL_SHARE 16 /* of other rules; may fill stages if folded and memory is limited */
#define NONE       SIZE_MAX

/* ---- a schedule by rules --------------------------------------------------------------------- */

/* The rule of a span. */
typedef struct {
  double gap;   /* minimum gap for W, relative to its time */
  double bias;  /* B is preferred if it is ready no later than F plus this share of F's time */
  size_t depth; /* maximum number of micro-batches between F and B */
  bool fill;    /* F can use all memory that leaves the oldest micro-batches able to continue */
} rule;

typedef struct {
  const gt_pipe_problem *problem;
  const rule *rules;
  gt_pipe_schedule *schedule;
  size_t (*begun)[3];      /* of each span: F, B, W */
  gt_ns *gap_ns, *bias_ns; /* of each span */
} greedy;

/* A pass that a stage could run, and its earliest start; GT_NEVER: not known, or no pass. */
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

/* Returns the memory of a micro-batch in the stage; with `ahead`, that of its later chunks. */
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

/* True if the micro-batches in flight can all finish in their order, each with the free memory and
   that of the older ones. */
static bool is_safe(const greedy *g, size_t stage, double left) {
  const size_t *begun = g->begun[gt_pipe_span_of(g->problem->stages, 0, stage)];
  for (size_t micro = begun[GT_PASS_W]; micro < begun[GT_PASS_F]; micro++) {
    if (part(g, stage, micro, true) > left) return false;
    left += part(g, stage, micro, false);
  }
  return true;
}

/* True if the stage has memory for F of the chunk such that the oldest micro-batch can always
   continue: also for one in each later chunk, or all free memory if the span fills the stage. */
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
    if (g->begun[k][GT_PASS_F] == g->problem->micro_batches || between(g, k) >= g->rules[k].depth ||
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

/* Returns the span whose W is due; of several the last one, which frees the memory that others wait
   for. */
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

/* Returns a schedule by rules (one per span), owned by the caller. */
static gt_pipe_schedule *greedy_by(const gt_pipe_problem *problem, const rule *rules) {
  const size_t n = problem->stages * problem->chunks;
  greedy g = {.problem = problem,
              .rules = rules,
              .schedule =
                  gt_pipe_schedule_create(problem->stages, problem->chunks, problem->micro_batches),
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

/* ---- the search for rules -------------------------------------------------------------------- */

typedef struct {
  const gt_pipe_problem *problem;
  size_t n;      /* spans */
  size_t *depth; /* of each span, from the formula */
  rule *rules;   /* of this variant */
  rule *kept;    /* of the best schedule, and of the last equally good one */
  gt_pipe_worth worth;
  gt_rng rng;
  bool fills; /* rules may fill stages */
} search;

static rule draw(search *s, size_t span, bool deep) {
  static const double gaps[] = {0, 0.1, 0.25, 0.5, 0.75, 1},
                      biases[] = {-1, -0.5, 0, 0, 0.25, 0.5, 1};
  const double gap = gaps[gt_rng_below(&s->rng, sizeof gaps / sizeof *gaps)],
               bias = biases[gt_rng_below(&s->rng, sizeof biases / sizeof *biases)];
  const size_t deeper = s->depth[span] + gt_rng_below(&s->rng, DEPTH_SPAN),
               depth = deeper > DEPTH_LESS ? deeper - DEPTH_LESS : 1;
  const bool fill = s->fills && gt_rng_below(&s->rng, 2) == 0;
  return (rule){gap, bias, deep ? s->problem->micro_batches : depth, fill};
}

/* Draws a new rule for one or two spans, or for all. */
static void vary(search *s, bool fresh) {
  memcpy(s->rules, s->kept, s->n * sizeof *s->rules);
  if (fresh) {
    bool deep = gt_rng_below(&s->rng, 2) == 0;
    for (size_t k = 0; k < s->n; k++) s->rules[k] = draw(s, k, deep);
    return;
  }
  for (size_t i = 1 + gt_rng_below(&s->rng, 2); i > 0; i--) {
    size_t k = gt_rng_below(&s->rng, s->n);
    s->rules[k] = draw(s, k, gt_rng_below(&s->rng, 2) == 0);
  }
}

static void rules_of(search *s, size_t variant) {
  for (size_t k = 0; k < s->n && variant < 2; k++)
    s->rules[k] = (rule){.gap = GAP,
                         .depth = variant == 0 ? s->problem->micro_batches : s->depth[k],
                         .fill = s->fills};
  if (variant >= 2) vary(s, variant % FRESH_TURN == 0);
}

static void try_variant(search *s, gt_pipe_best *best, size_t variant) {
  rules_of(s, variant);
  const gt_pipe_worth worth = gt_pipe_offer(best, greedy_by(s->problem, s->rules));
  if (gt_pipe_better(&s->worth, &worth)) return;
  s->worth = worth;
  memcpy(s->kept, s->rules, s->n * sizeof *s->rules);
}

/* True if a stage has memory for only some micro-batches of a step. */
static bool is_limited(const gt_pipe_problem *problem) {
  bool limited = false;
  for (size_t s = 0; s < problem->stages; s++) {
    double all = 0.0;
    for (size_t c = 0; c < problem->chunks; c++)
      all += problem->spans[gt_pipe_span_of(problem->stages, c, s)].activation;
    limited |= (double)problem->micro_batches * all > gt_pipe_limit(problem, s);
  }
  return limited;
}

static void search_best(gt_pipe_best *best) {
  const gt_pipe_problem *problem = best->problem;
  const size_t n = problem->stages * problem->chunks,
               variants = best->search.variants > 0 ? best->search.variants : GT_PIPE_VARIANTS;
  search s = {.problem = problem,
              .n = n,
              .depth = GT_NEW_ARRAY(size_t, n),
              .rules = GT_NEW_ARRAY(rule, n),
              .kept = GT_NEW_ARRAY(rule, n),
              .worth = {GT_NEVER, GT_NEVER},
              .rng = gt_rng_make(best->search.seed, GT_RNG_SCHEDULE, n, problem->micro_batches)};
  for (size_t k = 0; k < n; k++) s.depth[k] = gt_pipe_depth(problem, k);
  for (size_t v = 0; v < variants; v++) try_variant(&s, best, v);
  s.fills = problem->chunks > 1 && is_limited(problem);
  for (size_t v = 0; s.fills && v < variants / FILL_SHARE; v++) try_variant(&s, best, v);
  gt_free(s.kept);
  gt_free(s.rules);
  gt_free(s.depth);
}

const gt_pipe_ops gt_pipe_auto = {.name = "auto", .search = search_best};
