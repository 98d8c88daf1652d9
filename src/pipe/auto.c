/* The best of many greedy schedules: the plain rules, those whose depth hides the hops, and rules
   drawn at random, mostly near the best so far.  W in gaps as in Qi et al. 2024 (arXiv
   2401.10241). */
#include "internal.h"

#include <string.h>

#define GAP        0.25 /* W needs a gap of a quarter of its time */
#define FRESH_TURN 4    /* every fourth set of rules is drawn anew */
#define DEPTH_LESS 1    /* depths are drawn from one below the formula's to four above */
#define DEPTH_SPAN 6
#define FILL_SHARE 16 /* one in so many more, folded and within memory, may fill stages */

typedef struct {
  const gt_pipe_problem *problem;
  size_t n;            /* spans */
  size_t *depth;       /* of each span, by the formula */
  gt_pipe_rule *rules; /* of this variant */
  gt_pipe_rule *kept;  /* of the best, and of the last of equally good ones */
  gt_pipe_worth worth;
  gt_rng rng;
  bool fills; /* rules may fill stages */
} search;

static gt_pipe_rule draw(search *s, size_t span, bool deep) {
  static const double gaps[] = {0, 0.1, 0.25, 0.5, 0.75, 1},
                      biases[] = {-1, -0.5, 0, 0, 0.25, 0.5, 1};
  const double gap = gaps[gt_rng_below(&s->rng, sizeof gaps / sizeof *gaps)],
               bias = biases[gt_rng_below(&s->rng, sizeof biases / sizeof *biases)];
  const size_t deeper = s->depth[span] + gt_rng_below(&s->rng, DEPTH_SPAN),
               depth = deeper > DEPTH_LESS ? deeper - DEPTH_LESS : 1;
  const bool fill = s->fills && gt_rng_below(&s->rng, 2) == 0;
  return (gt_pipe_rule){gap, bias, deep ? s->problem->micros : depth, fill};
}

/* A rule in one or two spans, or in all, is drawn anew. */
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
    s->rules[k] = (gt_pipe_rule){
        .gap = GAP, .depth = variant == 0 ? s->problem->micros : s->depth[k], .fill = s->fills};
  if (variant >= 2) vary(s, variant % FRESH_TURN == 0);
}

static void try_variant(search *s, gt_pipe_best *best, size_t variant) {
  rules_of(s, variant);
  const gt_pipe_worth worth = gt_pipe_offer(best, gt_pipe_greedy(s->problem, s->rules));
  if (gt_pipe_better(&s->worth, &worth)) return;
  s->worth = worth;
  memcpy(s->kept, s->rules, s->n * sizeof *s->rules);
}

/* A stage cannot hold all micro-batches of a step. */
static bool is_limited(const gt_pipe_problem *problem) {
  bool limited = false;
  for (size_t s = 0; s < problem->stages; s++) {
    double all = 0.0;
    for (size_t c = 0; c < problem->chunks; c++)
      all += problem->spans[gt_pipe_span_of(problem->stages, c, s)].activation;
    limited |= (double)problem->micros * all > gt_pipe_limit(problem, s);
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
              .rules = GT_NEW_ARRAY(gt_pipe_rule, n),
              .kept = GT_NEW_ARRAY(gt_pipe_rule, n),
              .worth = {GT_NEVER, GT_NEVER},
              .rng = gt_rng_make(best->search.seed, GT_RNG_SCHEDULE, n, problem->micros)};
  for (size_t k = 0; k < n; k++) s.depth[k] = gt_pipe_depth(problem, k);
  for (size_t v = 0; v < variants; v++) try_variant(&s, best, v);
  s.fills = problem->chunks > 1 && is_limited(problem);
  for (size_t v = 0; s.fills && v < variants / FILL_SHARE; v++) try_variant(&s, best, v);
  gt_free(s.kept);
  gt_free(s.rules);
  gt_free(s.depth);
}

const gt_pipe_ops gt_pipe_auto = {.name = "auto", .search = search_best};
