/* What a problem and a schedule must be: sound numbers; every pass once, in an order that ends,
   within memory. */
#include "internal.h"

#include <math.h>

#define PLACES_MAX ((size_t)1 << 28)

/* ---- the problem ----------------------------------------------------------------------------- */

static bool sound(double number) {
  return number >= 0.0 && number < INFINITY;
}

static gt_status check_number(const char *what, size_t of, const char *name, double number) {
  if (sound(number)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s of %s %zu is %g; a finite number, 0 or more, is needed", name,
                 what, of, number);
}

static gt_status check_span(const gt_pipe_span *span, size_t k) {
  GT_TRY(check_number("span", k, "forward_s", span->forward_s));
  GT_TRY(check_number("span", k, "backward_s", span->backward_s));
  GT_TRY(check_number("span", k, "weight_s", span->weight_s));
  GT_TRY(check_number("span", k, "activation", span->activation));
  GT_TRY(check_number("span", k, "output_bytes", span->output_bytes));
  GT_TRY(check_number("span", k, "label_bytes", span->label_bytes));
  if (span->weight_share >= 0.0 && span->weight_share <= 1.0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "weight_share of span %zu is %g; 0 to 1 is needed", k,
                 span->weight_share);
}

static gt_status check_hop(const gt_pipe_hop *hop, const char *what, size_t s) {
  GT_TRY(check_number(what, s, "delay_s", hop->delay_s));
  return check_number(what, s, "bandwidth_bps", hop->bandwidth_bps);
}

/* Without room for one micro-batch no schedule fits. */
static gt_status check_stage(const gt_pipe_problem *problem, size_t s) {
  double one = 0.0;
  if (problem->update_s) GT_TRY(check_number("stage", s, "update_s", problem->update_s[s]));
  if (problem->memory) GT_TRY(check_number("stage", s, "memory", problem->memory[s]));
  for (size_t c = 0; c < problem->chunks; c++)
    one += problem->spans[gt_pipe_span_of(problem->stages, c, s)].activation;
  if (problem->memory && one > gt_pipe_limit(problem, s))
    return GT_FAIL(GT_ERR_JOB, "stage %zu may hold %g of activations; one micro-batch needs %g", s,
                   problem->memory[s], one);
  if (problem->wan && problem->wan->region[s] >= problem->wan->nregions)
    return GT_FAIL(GT_ERR_JOB, "stage %zu is in region %zu; there are %zu", s,
                   problem->wan->region[s], problem->wan->nregions);
  return GT_OK;
}

gt_status gt_pipe_check_problem(const gt_pipe_problem *problem) {
  const size_t p = problem->stages, c = problem->chunks, m = problem->micros;
  if (p < 1 || c < 1 || m < 1)
    return GT_FAIL(GT_ERR_JOB,
                   "a pipeline has %zu stages, %zu chunks a stage and %zu micro-batches; 1 or more "
                   "of each are needed",
                   p, c, m);
  if (p > PLACES_MAX / c || m > PLACES_MAX / (p * c))
    return GT_FAIL(GT_ERR_JOB,
                   "a pipeline has %zu stages, %zu chunks a stage and %zu micro-batches; %zu "
                   "passes forward are the most",
                   p, c, m, PLACES_MAX);
  for (size_t k = 0; k < p * c; k++) GT_TRY(check_span(&problem->spans[k], k));
  for (size_t s = 0; s + 1 < p; s++) {
    GT_TRY(check_hop(&problem->ahead[s], "the hop ahead of stage", s));
    GT_TRY(check_hop(&problem->back[s], "the hop back to stage", s));
  }
  for (size_t s = 0; s < p; s++) GT_TRY(check_stage(problem, s));
  if (problem->agree_s && !problem->wan)
    return GT_FAIL(GT_ERR_JOB, "agree_s is given, and no regions; both, or neither, are needed");
  for (size_t i = 0; problem->agree_s && i < problem->wan->nregions * problem->wan->nregions; i++)
    if (!sound(problem->agree_s[i]))
      return GT_FAIL(GT_ERR_JOB, "agree_s is %g; finite numbers, 0 or more, are needed",
                     problem->agree_s[i]);
  return GT_OK;
}

/* ---- every pass once ------------------------------------------------------------------------- */

enum { HAS_F = 1, HAS_B = 2, HAS_W = 4, HAS_ALL = 7 };

const char *const gt_pass_names[] = {
    [GT_PASS_F] = "F", [GT_PASS_B] = "B", [GT_PASS_W] = "W", [GT_PASS_BW] = "BW"};
static const unsigned char adds[] = {
    [GT_PASS_F] = HAS_F, [GT_PASS_B] = HAS_B, [GT_PASS_W] = HAS_W, [GT_PASS_BW] = HAS_B | HAS_W};
/* What must come before. */
static const unsigned char after[] = {
    [GT_PASS_F] = 0, [GT_PASS_B] = HAS_F, [GT_PASS_W] = HAS_F | HAS_B, [GT_PASS_BW] = HAS_F};

static gt_status take_pass(const gt_pipe_schedule *s, size_t stage, const gt_pass *pass,
                           unsigned char *has) {
  const char *name = (size_t)pass->kind < sizeof gt_pass_names / sizeof *gt_pass_names
                         ? gt_pass_names[pass->kind]
                         : NULL;
  if (!name || pass->span >= s->stages * s->chunks || pass->micro >= s->micros ||
      gt_pipe_stage_of(s->stages, pass->span) != stage)
    return GT_FAIL(GT_ERR_JOB,
                   "stage %zu has a pass %s of span %u, micro-batch %u, which is not its", stage,
                   name ? name : "of no kind", pass->span, pass->micro);
  unsigned char *seen = &has[pass->span * s->micros + pass->micro];
  if (*seen & adds[pass->kind])
    return GT_FAIL(GT_ERR_JOB, "stage %zu has %s of span %u, micro-batch %u, twice", stage, name,
                   pass->span, pass->micro);
  if ((*seen & after[pass->kind]) != after[pass->kind])
    return GT_FAIL(GT_ERR_JOB,
                   "stage %zu has %s of span %u, micro-batch %u, before the pass that it needs",
                   stage, name, pass->span, pass->micro);
  *seen |= adds[pass->kind];
  return GT_OK;
}

static gt_status take_passes(const gt_pipe_schedule *s, unsigned char *has) {
  for (size_t stage = 0; stage < s->stages; stage++)
    for (size_t i = 0; i < s->lists[stage].n; i++)
      GT_TRY(take_pass(s, stage, &s->lists[stage].passes[i], has));
  for (size_t k = 0; k < s->stages * s->chunks; k++)
    for (size_t i = 0; i < s->micros; i++) {
      const int lacks = HAS_ALL & ~has[k * s->micros + i];
      if (lacks)
        return GT_FAIL(GT_ERR_JOB, "stage %zu has no %s of span %zu, micro-batch %zu",
                       gt_pipe_stage_of(s->stages, k),
                       lacks & HAS_F   ? "F"
                       : lacks & HAS_B ? "B"
                                       : "W",
                       k, i);
    }
  return GT_OK;
}

static gt_status check_passes(const gt_pipe_schedule *s) {
  unsigned char *has = GT_NEW_ARRAY(unsigned char, s->stages * s->chunks * s->micros);
  gt_status status = take_passes(s, has);
  gt_free(has);
  return status;
}

/* ---- does it end? ---------------------------------------------------------------------------- */

/* Every stage goes as far as it can; true: one of them went on. */
static bool advance(const gt_pipe_schedule *s, gt_pipe_progress *at) {
  bool moved = false;
  for (size_t stage = 0; stage < s->stages; stage++)
    for (const gt_pass *pass; (pass = gt_pipe_next(&at[stage])) != NULL; moved = true) {
      gt_pipe_message message;
      gt_pipe_begun(&at[stage]);
      if (gt_pipe_sends(s, pass, &message))
        gt_pipe_arrived(&at[gt_pipe_stage_of(s->stages, message.span)], &message);
    }
  return moved;
}

/* The pass at which a stage waits. */
static const gt_pass *stuck_at(const gt_pipe_progress *at) {
  return &at->schedule->lists[at->stage].passes[at->counter];
}

/* Stage a waits for stage b, which waits itself, or all passes would have run. */
static gt_status say_deadlock(const gt_pipe_schedule *s, const gt_pipe_progress *at, size_t a) {
  const gt_pass *mine = stuck_at(&at[a]);
  gt_pipe_message message;
  gt_pipe_needs(s, mine, &message);
  size_t from = message.gradient ? mine->span + 1 : mine->span - 1,
         b = gt_pipe_stage_of(s->stages, from);
  const gt_pass *first = stuck_at(&at[b]);
  return GT_FAIL(GT_ERR_JOB,
                 "the schedule deadlocks: stage %zu cannot begin %s of span %u, micro-batch %u, "
                 "before stage %zu has run %s of span %zu, and stage %zu has %s of span %u, "
                 "micro-batch %u, first",
                 a, gt_pass_names[mine->kind], mine->span, mine->micro, b,
                 message.gradient ? "B" : "F", from, b, gt_pass_names[first->kind], first->span,
                 first->micro);
}

static gt_status check_order(const gt_pipe_schedule *s) {
  gt_pipe_progress *at = GT_NEW_ARRAY(gt_pipe_progress, s->stages);
  gt_status status = GT_OK;
  for (size_t i = 0; i < s->stages; i++) at[i] = gt_pipe_progress_open(s, i);
  while (advance(s, at)) continue;
  for (size_t i = 0; i < s->stages && status == GT_OK; i++)
    if (at[i].counter < s->lists[i].n) status = say_deadlock(s, at, i);
  for (size_t i = 0; i < s->stages; i++) gt_pipe_progress_close(&at[i]);
  gt_free(at);
  return status;
}

gt_status gt_pipe_check_order(const gt_pipe_schedule *schedule) {
  GT_TRY(check_passes(schedule));
  return check_order(schedule);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static gt_status check_memory(const gt_pipe_schedule *s, const gt_pipe_problem *problem) {
  for (size_t stage = 0; stage < s->stages; stage++) {
    double peak = gt_pipe_peak(s, problem, stage);
    if (peak > gt_pipe_limit(problem, stage))
      return GT_FAIL(GT_ERR_JOB, "stage %zu holds %g of activations at its peak; %g are allowed",
                     stage, peak, problem->memory[stage]);
  }
  return GT_OK;
}

gt_status gt_pipe_check(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem) {
  const gt_pipe_schedule *s = schedule;
  GT_TRY(gt_pipe_check_problem(problem));
  if (s->stages != problem->stages || s->chunks != problem->chunks || s->micros != problem->micros)
    return GT_FAIL(GT_ERR_JOB,
                   "the schedule is for %zu stages of %zu chunks and %zu micro-batches; %zu of %zu "
                   "and %zu are needed",
                   s->stages, s->chunks, s->micros, problem->stages, problem->chunks,
                   problem->micros);
  GT_TRY(gt_pipe_check_order(s));
  return check_memory(s, problem);
}
