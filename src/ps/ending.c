/* The end of a run: the order of its stages, the same for servers and simulated regions. */
#include "geotrain/link.h"
#include "geotrain/ps_ending.h"
#include "geotrain/ps_state.h"

#define COOKIE_MODEL  GT_ENDING_COOKIE
#define COOKIE_REPORT (GT_ENDING_COOKIE + 1)

/* Zero is the first. */
enum {
  BEGIN,
  JUDGING,
  EVALUATING_OWN,
  SENDING,
  AWAITING_BYE,
  GATHERING,
  LAST_ROUND,
  EVALUATING_MEAN,
  OVER
};

void gt_ending_open(gt_ending *e, const gt_ending_hooks *hooks, void *ctx, gt_ps *ps, bool lead,
                    size_t others) {
  *e = (gt_ending){.hooks = hooks, .ctx = ctx, .ps = ps, .lead = lead, .others = others};
}

void gt_ending_evaluated(gt_ending *e) {
  e->evaluated++;
}

void gt_ending_departed(gt_ending *e, uint64_t cookie) {
  if (cookie == COOKIE_MODEL)
    e->hooks->send_report(e->ctx, COOKIE_REPORT);
  else
    e->stage = AWAITING_BYE;
}

void gt_ending_message(gt_ending *e, unsigned kind) {
  if (kind == GT_MSG_BYE)
    e->bye = true;
  else if (kind == GT_MSG_MODEL)
    e->nmodels++;
  else if (e->stage == EVALUATING_MEAN)
    e->evaluated++;
  else
    e->nreports++;
}

gt_frame_header gt_ending_piece(size_t params, size_t all, size_t at, size_t *n) {
  const size_t end = at < params ? params : all, left = end - at;
  *n = left < GT_MODEL_PIECE ? left : GT_MODEL_PIECE;
  return (gt_frame_header){.kind = GT_MSG_MODEL, .value = at, .detail = all - at - *n};
}

static void evaluate(gt_ending *e, bool mean, int stage) {
  e->stage = stage;
  e->evaluated = 0;
  e->evaluations = e->hooks->evaluate(e->ctx, mean);
}

static bool is_evaluated(const gt_ending *e) {
  return e->evaluated >= e->evaluations;
}

/* Call when the own model is evaluated. */
static void report(gt_ending *e) {
  e->stage = e->lead ? GATHERING : SENDING;
  if (!e->lead) e->hooks->send_model(e->ctx, COOKIE_MODEL);
}

/* The lead opens the last round first: scores and models can take long, and a run that is killed
   then has no steps to repeat. */
static void begin(gt_ending *e, gt_ns now) {
  gt_ps_view v;
  gt_ps_get_view(e->ps, now, &v);
  if (e->lead && (v.round != v.whole_round || v.validating)) return;
  if (e->lead) gt_ps_last_round(e->ps, now);
  e->last_round = v.round + 1;
  if (gt_ps_made_of(e->ps)->validates)
    e->stage = JUDGING;
  else
    evaluate(e, false, EVALUATING_OWN);
}

/* The last round may be the best one. */
static void judging(gt_ending *e, gt_ns now) {
  gt_ps_view v;
  gt_ps_get_view(e->ps, now, &v);
  if (v.last_round > 0 && v.judged >= v.last_round && v.whole_round >= v.last_round)
    evaluate(e, false, EVALUATING_OWN);
}

static void last_round(gt_ending *e, gt_ns now) {
  gt_ps_view v;
  gt_ps_get_view(e->ps, now, &v);
  if (v.whole_round >= e->last_round) evaluate(e, true, EVALUATING_MEAN);
}

static void conclude(gt_ending *e) {
  e->hooks->conclude(e->ctx);
  e->stage = OVER;
}

static void step(gt_ending *e, gt_ns now) {
  switch (e->stage) {
  case BEGIN:
    begin(e, now);
    break;
  case JUDGING:
    judging(e, now);
    break;
  case EVALUATING_OWN:
    if (is_evaluated(e)) report(e);
    break;
  case GATHERING:
    if (e->nmodels == e->others && e->nreports == e->others) e->stage = LAST_ROUND;
    break;
  case LAST_ROUND:
    last_round(e, now);
    break;
  case EVALUATING_MEAN:
    if (is_evaluated(e)) conclude(e);
    break;
  case AWAITING_BYE:
    if (e->bye) e->stage = OVER;
    break;
  default: /* SENDING: ends in gt_ending_departed */
    break;
  }
}

bool gt_ending_step(gt_ending *e, gt_ns now) {
  int before;
  do {
    before = e->stage;
    step(e, now);
  } while (e->stage != before);
  return e->stage == OVER;
}
