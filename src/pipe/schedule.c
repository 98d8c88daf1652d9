/* Schedules: lists of passes, the progress of stages through them, checks. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-9

size_t gt_pipe_stage_of(size_t stages, size_t span) {
  size_t at = span % stages;
  return span / stages % 2 ? stages - 1 - at : at;
}

size_t gt_pipe_span_of(size_t stages, size_t chunk, size_t stage) {
  return chunk * stages + (chunk % 2 ? stages - 1 - stage : stage);
}

double gt_pipe_limit(const gt_pipe_problem *problem, size_t stage) {
  const double limit = problem->memory ? problem->memory[stage] : 0.0;
  return limit > 0.0 ? limit * (1.0 + ROUNDING) : INFINITY;
}

gt_pipe_schedule *gt_pipe_schedule_create(size_t stages, size_t chunks, size_t micro_batches) {
  gt_pipe_schedule *s = GT_NEW(gt_pipe_schedule);
  *s = (gt_pipe_schedule){stages, chunks, micro_batches, GT_NEW_ARRAY(gt_pipe_list, stages)};
  return s;
}

void gt_pipe_schedule_close(gt_pipe_schedule *schedule) {
  if (!schedule) return;
  for (size_t s = 0; s < schedule->stages; s++) gt_free(schedule->lists[s].passes);
  gt_free(schedule->lists);
  gt_free(schedule);
}

void gt_pipe_add(gt_pipe_schedule *schedule, gt_pass_kind kind, size_t span, size_t micro) {
  gt_pipe_list *list = &schedule->lists[gt_pipe_stage_of(schedule->stages, span)];
  GT_GROW(list->passes, list->n, list->capacity, 3 * schedule->chunks * schedule->micro_batches);
  list->passes[list->n++] = (gt_pass){kind, (uint32_t)span, (uint32_t)micro};
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Adds the memory that a pass takes at its start, and subtracts the memory that it frees at its
   end. */
static void hold(const gt_pipe_span *span, gt_pass_kind kind, double *held, double *peak) {
  const double kept = span->activation * span->weight_share;
  if (kind == GT_PASS_F) *held += span->activation;
  *peak = fmax(*peak, *held);
  if (kind == GT_PASS_B) *held -= span->activation - kept;
  if (kind == GT_PASS_W) *held -= kept;
  if (kind == GT_PASS_BW) *held -= span->activation;
}

double gt_pipe_peak(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                    size_t stage) {
  const gt_pipe_list *list = &schedule->lists[stage];
  double held = 0.0, peak = 0.0;
  for (size_t i = 0; i < list->n; i++)
    hold(&problem->spans[list->passes[i].span], list->passes[i].kind, &held, &peak);
  return peak;
}

/* ---- hash ------------------------------------------------------------------------------------ */

static void put(uint8_t **to, size_t number) {
  for (size_t i = 0; i < 4; i++) *(*to)++ = (uint8_t)(number >> (8 * i));
}

/* Numbers of 32 bits, little endian: stages, chunks, micro_batches; for each stage the number of
   passes, then kind, span and micro of each. */
void gt_pipe_hash(const gt_pipe_schedule *schedule, char hex[GT_SHA256_HEX]) {
  size_t numbers = 3;
  for (size_t s = 0; s < schedule->stages; s++) numbers += 1 + 3 * schedule->lists[s].n;
  uint8_t *bytes = GT_NEW_ARRAY(uint8_t, 4 * numbers), *to = bytes;
  put(&to, schedule->stages);
  put(&to, schedule->chunks);
  put(&to, schedule->micro_batches);
  for (size_t s = 0; s < schedule->stages; s++) {
    const gt_pipe_list *list = &schedule->lists[s];
    put(&to, list->n);
    for (size_t i = 0; i < list->n; i++) {
      put(&to, (size_t)list->passes[i].kind);
      put(&to, list->passes[i].span);
      put(&to, list->passes[i].micro);
    }
  }
  gt_sha256_hex(bytes, 4 * numbers, hex);
  gt_free(bytes);
}

uint64_t gt_pipe_mark(const gt_pipe_schedule *schedule) {
  char hex[GT_SHA256_HEX];
  gt_pipe_hash(schedule, hex);
  hex[16] = '\0';
  return strtoull(hex, NULL, 16);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* ---- messages -------------------------------------------------------------------------------- */

static size_t spans_of(const gt_pipe_schedule *s) {
  return s->stages * s->chunks;
}

bool gt_pipe_needs(const gt_pipe_schedule *schedule, const gt_pass *pass,
                   gt_pipe_message *message) {
  *message = (gt_pipe_message){pass->kind != GT_PASS_F, pass->span, pass->micro};
  if (pass->kind == GT_PASS_W) return false;
  return message->gradient ? pass->span + 1 < spans_of(schedule) : pass->span > 0;
}

bool gt_pipe_sends(const gt_pipe_schedule *schedule, const gt_pass *pass,
                   gt_pipe_message *message) {
  *message = (gt_pipe_message){pass->kind != GT_PASS_F, pass->span, pass->micro};
  if (pass->kind == GT_PASS_W) return false;
  bool sends = message->gradient ? pass->span > 0 : pass->span + 1 < spans_of(schedule);
  if (sends) message->span = message->gradient ? pass->span - 1 : pass->span + 1;
  return sends;
}

/* ---- progress -------------------------------------------------------------------------------- */

gt_pipe_progress gt_pipe_progress_open(const gt_pipe_schedule *schedule, size_t stage) {
  return (gt_pipe_progress){
      .schedule = schedule,
      .stage = stage,
      .arrived = GT_NEW_ARRAY(uint64_t, 2 * schedule->chunks * schedule->micro_batches)};
}

void gt_pipe_progress_close(gt_pipe_progress *progress) {
  if (!progress) return;
  gt_free(progress->arrived);
  progress->arrived = NULL;
}

static uint64_t *arrivals(const gt_pipe_progress *p, const gt_pipe_message *message) {
  const gt_pipe_schedule *s = p->schedule;
  size_t chunk = message->span / s->stages;
  return &p->arrived[(message->gradient * s->chunks + chunk) * s->micro_batches + message->micro];
}

void gt_pipe_arrived(gt_pipe_progress *progress, const gt_pipe_message *message) {
  ++*arrivals(progress, message);
}

bool gt_pipe_has(const gt_pipe_progress *progress, const gt_pipe_message *message) {
  return *arrivals(progress, message) > (uint64_t)progress->step;
}

const gt_pass *gt_pipe_next(const gt_pipe_progress *progress) {
  const gt_pipe_list *list = &progress->schedule->lists[progress->stage];
  if (progress->counter >= list->n) return NULL;
  const gt_pass *pass = &list->passes[progress->counter];
  gt_pipe_message message;
  bool waits = gt_pipe_needs(progress->schedule, pass, &message);
  return waits && !gt_pipe_has(progress, &message) ? NULL : pass;
}

void gt_pipe_begun(gt_pipe_progress *progress) {
  progress->counter++;
}

void gt_pipe_next_step(gt_pipe_progress *progress) {
  progress->counter = 0;
  progress->step++;
}

#define PLACES_MAX ((size_t)1 << 28)

/* ---- the problem ----------------------------------------------------------------------------- */

static bool sound(double number) {
  return number >= 0.0 && number < INFINITY;
}

static gt_status check_number(const char *what, size_t of, const char *name, double number) {
  if (sound(number)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s of %s %zu is %g; expected a finite number, 0 or more", name, what,
                 of, number);
}

static gt_status check_span(const gt_pipe_span *span, size_t k) {
  GT_TRY(check_number("span", k, "forward_s", span->forward_s));
  GT_TRY(check_number("span", k, "backward_s", span->backward_s));
  GT_TRY(check_number("span", k, "weight_s", span->weight_s));
  GT_TRY(check_number("span", k, "activation", span->activation));
  GT_TRY(check_number("span", k, "output_bytes", span->output_bytes));
  GT_TRY(check_number("span", k, "label_bytes", span->label_bytes));
  if (span->weight_share >= 0.0 && span->weight_share <= 1.0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "weight_share of span %zu is %g; expected 0 to 1", k,
                 span->weight_share);
}

static gt_status check_hop(const gt_pipe_hop *hop, const char *what, size_t s) {
  GT_TRY(check_number(what, s, "delay_s", hop->delay_s));
  return check_number(what, s, "bandwidth_bps", hop->bandwidth_bps);
}

/* Checks a stage, which must have memory for one micro-batch. */
static gt_status check_stage(const gt_pipe_problem *problem, size_t s) {
  double one = 0.0;
  if (problem->update_s) GT_TRY(check_number("stage", s, "update_s", problem->update_s[s]));
  if (problem->memory) GT_TRY(check_number("stage", s, "memory", problem->memory[s]));
  for (size_t c = 0; c < problem->chunks; c++)
    one += problem->spans[gt_pipe_span_of(problem->stages, c, s)].activation;
  if (problem->memory && one > gt_pipe_limit(problem, s))
    return GT_FAIL(GT_ERR_JOB,
                   "stage %zu has memory for %g of activations; one micro-batch needs %g", s,
                   problem->memory[s], one);
  if (problem->wan && problem->wan->region[s] >= problem->wan->nregions)
    return GT_FAIL(GT_ERR_JOB, "stage %zu is in region %zu; expected a number below %zu", s,
                   problem->wan->region[s], problem->wan->nregions);
  return GT_OK;
}

gt_status gt_pipe_check_problem(const gt_pipe_problem *problem) {
  const size_t p = problem->stages, c = problem->chunks, m = problem->micro_batches;
  if (p < 1 || c < 1 || m < 1)
    return GT_FAIL(GT_ERR_JOB,
                   "a pipeline has %zu stages, %zu chunks per stage and %zu micro-batches; "
                   "expected 1 or more of each",
                   p, c, m);
  if (p > PLACES_MAX / c || m > PLACES_MAX / (p * c))
    return GT_FAIL(GT_ERR_JOB,
                   "a pipeline has %zu stages, %zu chunks per stage and %zu micro-batches; "
                   "expected at most %zu forward passes",
                   p, c, m, PLACES_MAX);
  for (size_t k = 0; k < p * c; k++) GT_TRY(check_span(&problem->spans[k], k));
  for (size_t s = 0; s + 1 < p; s++) {
    GT_TRY(check_hop(&problem->ahead[s], "the hop ahead of stage", s));
    GT_TRY(check_hop(&problem->back[s], "the hop back to stage", s));
  }
  for (size_t s = 0; s < p; s++) GT_TRY(check_stage(problem, s));
  if (problem->agree_s && !problem->wan)
    return GT_FAIL(GT_ERR_JOB, "agree_s is given without regions; expected both, or neither");
  for (size_t i = 0; problem->agree_s && i < problem->wan->nregions * problem->wan->nregions; i++)
    if (!sound(problem->agree_s[i]))
      return GT_FAIL(GT_ERR_JOB, "agree_s is %g; expected finite numbers, 0 or more",
                     problem->agree_s[i]);
  return GT_OK;
}

/* ---- every pass once ------------------------------------------------------------------------- */

enum { HAS_F = 1, HAS_B = 2, HAS_W = 4, HAS_ALL = 7 };

const char *const gt_pass_names[] = {
    [GT_PASS_F] = "F", [GT_PASS_B] = "B", [GT_PASS_W] = "W", [GT_PASS_BW] = "BW"};
static const unsigned char adds[] = {
    [GT_PASS_F] = HAS_F, [GT_PASS_B] = HAS_B, [GT_PASS_W] = HAS_W, [GT_PASS_BW] = HAS_B | HAS_W};
/* The pass that must precede each kind. */
static const unsigned char after[] = {
    [GT_PASS_F] = 0, [GT_PASS_B] = HAS_F, [GT_PASS_W] = HAS_F | HAS_B, [GT_PASS_BW] = HAS_F};

static gt_status take_pass(const gt_pipe_schedule *s, size_t stage, const gt_pass *pass,
                           unsigned char *has) {
  const char *name = (size_t)pass->kind < sizeof gt_pass_names / sizeof *gt_pass_names
                         ? gt_pass_names[pass->kind]
                         : NULL;
  if (!name || pass->span >= s->stages * s->chunks || pass->micro >= s->micro_batches ||
      gt_pipe_stage_of(s->stages, pass->span) != stage)
    return GT_FAIL(GT_ERR_JOB,
                   "stage %zu has a pass %s of span %u, micro-batch %u, which is not its", stage,
                   name ? name : "of no kind", pass->span, pass->micro);
  unsigned char *seen = &has[pass->span * s->micro_batches + pass->micro];
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
    for (size_t i = 0; i < s->micro_batches; i++) {
      const int lacks = HAS_ALL & ~has[k * s->micro_batches + i];
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
  unsigned char *has = GT_NEW_ARRAY(unsigned char, s->stages * s->chunks * s->micro_batches);
  gt_status status = take_passes(s, has);
  gt_free(has);
  return status;
}

/* ---- does it end? ---------------------------------------------------------------------------- */

/* Advances every stage as far as possible; true if one advanced. */
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

/* Returns the pass for which a stage waits. */
static const gt_pass *stuck_at(const gt_pipe_progress *at) {
  return &at->schedule->lists[at->stage].passes[at->counter];
}

/* Reports a deadlock: stage a waits for stage b, which waits too, otherwise all passes would have
   run. */
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
      return GT_FAIL(GT_ERR_JOB,
                     "stage %zu holds %g of activations at its peak; expected at most %g", stage,
                     peak, problem->memory[stage]);
  }
  return GT_OK;
}

gt_status gt_pipe_check(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem) {
  const gt_pipe_schedule *s = schedule;
  GT_TRY(gt_pipe_check_problem(problem));
  if (s->stages != problem->stages || s->chunks != problem->chunks ||
      s->micro_batches != problem->micro_batches)
    return GT_FAIL(GT_ERR_JOB,
                   "the schedule is for %zu stages of %zu chunks and %zu micro-batches; expected "
                   "%zu of %zu and %zu",
                   s->stages, s->chunks, s->micro_batches, problem->stages, problem->chunks,
                   problem->micro_batches);
  GT_TRY(gt_pipe_check_order(s));
  return check_memory(s, problem);
}
