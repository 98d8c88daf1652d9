/* The adapter's orders as numbers, for messages and checkpoints, and its state in a checkpoint. */
#include "adapt.h"

#include <string.h>

#define MICRO_BITS 24
#define SPAN_BITS  24
#define PREFIX     "adapt/"
#define VERSION    2 /* of the state; version 1 did not store it */

/* ---- orders as numbers ----------------------------------------------------------------------- */

/* Writes the passes of one stage after the other; the span identifies the stage. */
static size_t encode(const gt_pipe_schedule *schedule, int64_t *codes) {
  size_t n = 0;
  for (size_t s = 0; schedule && s < schedule->stages; s++)
    for (size_t i = 0; i < schedule->lists[s].n; i++) {
      const gt_pass *pass = &schedule->lists[s].passes[i];
      codes[n++] = ((int64_t)pass->kind << SPAN_BITS | pass->span) << MICRO_BITS | pass->micro;
    }
  return n;
}

static size_t micro_of(int64_t code) {
  return (size_t)code & ((1 << MICRO_BITS) - 1);
}

/* Returns the number of micro-batches of an order, which has every one. */
static size_t micro_batches_of(const int64_t *codes, size_t n) {
  size_t most = 0;
  for (size_t i = 0; i < n; i++)
    if (micro_of(codes[i]) > most) most = micro_of(codes[i]);
  return most + 1;
}

static gt_status add_passes(gt_pipe_schedule *s, const int64_t *codes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const size_t span = (size_t)(codes[i] >> MICRO_BITS) & ((1 << SPAN_BITS) - 1);
    const int64_t kind = codes[i] >> (MICRO_BITS + SPAN_BITS);
    if (kind < GT_PASS_F || kind > GT_PASS_BW || span >= s->stages * s->chunks)
      return GT_FAIL(GT_ERR_FAULT, "pass %lld is not one of this pipeline", (long long)codes[i]);
    gt_pipe_add(s, (gt_pass_kind)kind, span, micro_of(codes[i]));
  }
  return GT_OK;
}

/* GT_ERR_FAULT: it is not a sound order. */
static gt_status decode(const gt_pipe_adapt *a, const int64_t *codes, size_t n,
                        gt_pipe_schedule **out) {
  const gt_pipe_schedule *start = a->orders[ADAPT_START];
  const gt_pipe_problem *problem = gt_pipe_adapt_problem(a, micro_batches_of(codes, n));
  *out = NULL;
  if (!problem)
    return GT_FAIL(GT_ERR_FAULT, "%zu micro-batches are not allowed", micro_batches_of(codes, n));
  *out = gt_pipe_schedule_create(start->stages, start->chunks, problem->micro_batches);
  gt_status status = add_passes(*out, codes, n);
  if (status == GT_OK && gt_pipe_check(*out, problem) != GT_OK)
    status = GT_FAIL(GT_ERR_FAULT, "%s", gt_error_text());
  if (status == GT_OK) return GT_OK;
  gt_pipe_schedule_close(*out);
  *out = NULL;
  return status;
}

/* Returns the known order that equals this one, which it closes; otherwise this one. */
static gt_pipe_schedule *own(const gt_pipe_adapt *a, gt_pipe_schedule *schedule) {
  char hash[GT_SHA256_HEX], other[GT_SHA256_HEX];
  if (!schedule) return NULL;
  gt_pipe_hash(schedule, hash);
  for (size_t i = 0; i < ADAPT_ORDERS; i++) {
    if (!a->orders[i]) continue;
    gt_pipe_hash(a->orders[i], other);
    if (strcmp(hash, other) != 0) continue;
    gt_pipe_schedule_close(schedule);
    return a->orders[i];
  }
  return schedule;
}

/* ---- told ------------------------------------------------------------------------------------ */

size_t gt_pipe_adapt_told(gt_pipe_adapt *adapt, const int64_t **passes) {
  *passes = adapt->codes[3];
  return encode(adapt->next, adapt->codes[3]);
}

gt_status gt_pipe_adapt_check(const gt_pipe_adapt *adapt, const int64_t *passes, size_t n) {
  gt_pipe_schedule *order;
  GT_TRY(decode(adapt, passes, n, &order));
  gt_pipe_schedule_close(order);
  return GT_OK;
}

gt_status gt_pipe_adapt_take(gt_pipe_adapt *adapt, const int64_t *passes, size_t n) {
  gt_pipe_schedule *order;
  GT_TRY(decode(adapt, passes, n, &order));
  adapt->next = own(adapt, order);
  return GT_OK;
}

/* ---- the reason of the order that waits ------------------------------------------------------ */

static void save_why(const gt_pipe_adapt_reason *why, double *to) {
  const double all[ADAPT_WHY] = {(double)why->from,      (double)why->to,     why->planned.rate_bps,
                                 why->planned.latency_s, why->found.rate_bps, why->found.latency_s,
                                 why->before_s,          why->after_s,        (double)why->back};
  memcpy(to, all, sizeof all);
}

static gt_status load_why(gt_pipe_adapt *a, const gt_state *state) {
  double w[ADAPT_WHY];
  GT_TRY(gt_state_get(state, PREFIX, "why", GT_TYPE_F64, w, ADAPT_WHY));
  if (!(w[0] >= 0 && w[0] < (double)a->n && w[1] >= 0 && w[1] < (double)a->n))
    return GT_FAIL(GT_ERR_CKPT, PREFIX "why has regions %g and %g; expected numbers below %zu",
                   w[0], w[1], a->n);
  a->next_why = (gt_pipe_adapt_reason){(size_t)w[0], (size_t)w[1], {w[2], w[3]}, {w[4], w[5]},
                                       w[6],         w[7],         w[8] != 0};
  return GT_OK;
}

/* ---- saving and loading ---------------------------------------------------------------------- */

static gt_status load_order(const gt_pipe_adapt *a, const gt_state *state, const char *name,
                            gt_pipe_schedule **out) {
  const gt_state_item *item = gt_state_find(state, PREFIX, name);
  *out = NULL;
  if (!item || item->type != GT_TYPE_I64)
    return GT_FAIL(GT_ERR_CKPT, PREFIX "%s is missing, or not a list of numbers", name);
  if (item->count > 0 && decode(a, item->data, item->count, out) != GT_OK)
    return GT_FAIL(GT_ERR_CKPT, PREFIX "%s is not a sound order: %s", name, gt_error_text());
  return GT_OK;
}

static void save_order(gt_state *state, const char *name, const gt_pipe_schedule *order,
                       int64_t *codes) {
  gt_state_add(state, PREFIX, name, GT_TYPE_I64, codes, encode(order, codes));
}

/* The fields that are saved unchanged. */
static gt_status fields_of(gt_pipe_adapt *a, gt_state_direction direction) {
  const size_t links = a->n * a->n, costs = links * sizeof(gt_pipe_cost) / sizeof(double);
  const gt_state_field fields[] = {{"counts", GT_TYPE_I64, &a->counts, ADAPT_COUNTS},
                                   {"progress", GT_TYPE_F64, &a->progress, ADAPT_PROGRESS},
                                   {"since", GT_TYPE_F64, &a->since, ADAPT_PROGRESS},
                                   {"looked", GT_TYPE_I64, &a->looked, 1},
                                   {"reference", GT_TYPE_F64, a->reference, links},
                                   {"weighted", GT_TYPE_F64, a->weighted, links},
                                   {"last", GT_TYPE_F64, a->last, costs},
                                   {"recent", GT_TYPE_F64, a->recent, costs * GT_PIPE_ADAPT_PAST},
                                   {"took", GT_TYPE_F64, a->took, GT_PIPE_ADAPT_PAST}};
  return GT_STATE_FIELDS(direction, PREFIX, fields);
}

void gt_pipe_adapt_save(gt_pipe_adapt *a, gt_state *state) {
  const gt_state_direction direction = {.to = state};
  a->version = VERSION;
  gt_state_add(state, PREFIX, "version", GT_TYPE_I64, &a->version, 1);
  gt_state_add(state, PREFIX, "start", GT_TYPE_U8, a->hash, sizeof a->hash - 1);
  (void)fields_of(a, direction);
  save_order(state, "found", a->orders[ADAPT_FOUND], a->codes[0]);
  save_order(state, "better", a->orders[ADAPT_BETTER], a->codes[2]);
  save_why(&a->next_why, a->saved_why);
  gt_state_add(state, PREFIX, "why", GT_TYPE_F64, a->saved_why, ADAPT_WHY);
  save_order(state, "next", a->next, a->codes[1]);
}

/* True if the state has the same initial plan and only numbers of micro-batches that are allowed
   now. */
static bool is_own(const gt_pipe_adapt *a, const gt_state *state) {
  static const char *const orders[] = {"found", "better", "next"};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    const gt_state_item *item = gt_state_find(state, PREFIX, orders[i]);
    if (item && item->type == GT_TYPE_I64 && item->count > 0 &&
        !gt_pipe_adapt_problem(a, micro_batches_of(item->data, item->count)))
      return false;
  }
  return true;
}

static gt_status load_orders(gt_pipe_adapt *a, const gt_state *state) {
  static const char *const names[] = {"start", "found", "better"};
  gt_pipe_schedule *next;
  GT_TRY(load_order(a, state, "found", &a->orders[ADAPT_FOUND]));
  GT_TRY(load_order(a, state, "better", &a->orders[ADAPT_BETTER]));
  if (a->since.start <= 0) { /* from an earlier search; it has not replaced the plan */
    gt_pipe_schedule_close(a->orders[ADAPT_BETTER]);
    a->orders[ADAPT_BETTER] = NULL;
  }
  GT_TRY(load_order(a, state, "next", &next));
  if (a->decides) /* otherwise it is announced again */
    a->next = own(a, next);
  else
    gt_pipe_schedule_close(next);
  if (!a->orders[a->counts.force])
    return GT_FAIL(GT_ERR_CKPT, PREFIX "%s is empty", names[a->counts.force]);
  for (adapt_order which = ADAPT_START; which < ADAPT_ORDERS; which++)
    if (a->orders[which]) gt_pipe_adapt_look_back(a, which);
  return GT_OK;
}

static gt_status check_version(const gt_state *state) {
  int64_t version = 1;
  if (gt_state_find(state, PREFIX, "version"))
    GT_TRY(gt_state_get(state, PREFIX, "version", GT_TYPE_I64, &version, 1));
  if (version == VERSION) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 PREFIX "version is %lld; expected %d: resume with the geotrain that wrote the "
                        "checkpoint, or with --set pipeline.adapt=false",
                 (long long)version, VERSION);
}

gt_status gt_pipe_adapt_load(gt_pipe_adapt *a, const gt_state *state, bool *used) {
  char hash[GT_SHA256_HEX] = "";
  *used = true;
  if (!gt_state_find(state, PREFIX, "start")) return GT_OK;
  GT_TRY(check_version(state));
  GT_TRY(gt_state_get(state, PREFIX, "start", GT_TYPE_U8, hash, sizeof hash - 1));
  *used = strcmp(hash, a->hash) == 0 && is_own(a, state);
  if (!*used) return GT_OK;
  GT_TRY(fields_of(a, (gt_state_direction){.from = state}));
  if (a->counts.rested < 0 || a->counts.off < 0 || a->counts.seen < 0 || a->counts.force < 0 ||
      a->counts.force >= ADAPT_ORDERS)
    return GT_FAIL(GT_ERR_CKPT, PREFIX "counts has an invalid number");
  GT_TRY(load_why(a, state));
  return load_orders(a, state);
}
