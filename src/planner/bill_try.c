/* Simulates a set, judges it, and keeps it if it is among the best. */
#include <math.h>
#include <string.h>

#include "bill.h"

/* Judges limits by the high figure if it is known; otherwise only the expected time is limited. */
static gt_planner_verdict judge(const gt_planner_bill *b, const gt_planner_set *set) {
  const gt_planner_outcome *expected = &set->at[GT_PLANNER_EXPECTED];
  double time_s = expected->figures.wall_s, cost = gt_planner_cost(b->p, expected);
  bool fastest = gt_planner_bill_by_time(b);
  double over =
      fmax(time_s / b->judged_s, set->at[GT_PLANNER_HIGH].known ? gt_planner_over(b->p, set) : 0);
  return (gt_planner_verdict){.fits = over <= 1,
                              .over = over,
                              .first = fastest ? time_s : cost,
                              .second = fastest ? cost : time_s};
}

/* ---- the best sets --------------------------------------------------------------------------- */

static void note_best(gt_planner_bill *b, const gt_planner_set *set) {
  const gt_planner_outcome *expected = &set->at[GT_PLANNER_EXPECTED],
                           *high = &set->at[GT_PLANNER_HIGH];
  gt_plan_answer answer = {.counts = b->kept};
  gt_plan_value(b->problem, &answer);
  b->seen.slower = expected->figures.wall_s / answer.time_s;
  b->seen.high = high->known ? fmax(1, high->figures.wall_s / expected->figures.wall_s) : 1;
  for (size_t r = 0; r < b->p->job->nregions; r++)
    b->seen.egress_usd[r] = expected->cost.regions[r].egress_usd;
}

static void keep(gt_planner_bill *b, const gt_planner_verdict *v, const gt_planner_set *set) {
  size_t n = b->p->ncounts, at = b->nkept;
  while (at > 0 && gt_planner_bill_better(v, &b->verdicts[at - 1])) at--;
  if (at == GT_PLANNER_BILL_KEPT) return;
  if (b->nkept < GT_PLANNER_BILL_KEPT) b->nkept++;
  size_t behind = b->nkept - at - 1;
  memmove(b->verdicts + at + 1, b->verdicts + at, behind * sizeof *b->verdicts);
  memmove(b->kept + (at + 1) * n, b->kept + at * n, behind * n * sizeof *b->kept);
  b->verdicts[at] = *v;
  memcpy(b->kept + at * n, set->counts, n * sizeof *b->kept);
  if (at == 0) note_best(b, set);
}

void gt_planner_bill_take_known(gt_planner_bill *b, const gt_planner_set *set) {
  if (!set->counts || !set->at[GT_PLANNER_EXPECTED].known ||
      !gt_planner_list_add(&b->tried, set->counts))
    return;
  gt_planner_verdict v = judge(b, set);
  b->belied |= gt_planner_bill_belies(b, set);
  keep(b, &v, set);
  b->c->sets++;
}

/* ---- simulating ------------------------------------------------------------------------------ */

static gt_status look(gt_planner_bill *b, const gt_planner *p, gt_planner_set *set,
                      gt_planner_case which) {
  GT_TRY(gt_planner_simulate(p, b->c, set, which));
  if (which == GT_PLANNER_EXPECTED) {
    int64_t events = set->at[which].part < 1 ? p->max_events : set->forecast.totals.events;
    b->last = GT_PLANNER_BILL_EVENTS + (events < p->max_events ? events : p->max_events);
  }
  b->work -= b->last;
  return GT_OK;
}

/* Skips the high figure of a set that is no better by its expected figure. */
static gt_status look_at(gt_planner_bill *b, const gt_planner *p, gt_planner_set *set) {
  GT_TRY(look(b, p, set, GT_PLANNER_EXPECTED));
  b->belied |= gt_planner_bill_belies(b, set);
  gt_planner_verdict v = judge(b, set), best = gt_planner_bill_best(b);
  if (gt_planner_limited(p) && (!best.fits || gt_planner_bill_better(&v, &best))) {
    GT_TRY(look(b, p, set, GT_PLANNER_HIGH));
    v = judge(b, set);
  }
  keep(b, &v, set);
  b->c->sets++;
  return GT_OK;
}

gt_status gt_planner_bill_simulate(gt_planner_bill *b, const gt_planner *p, const int64_t *counts) {
  gt_planner_set set = {.counts = GT_NEW_ARRAY(int64_t, p->ncounts)};
  memcpy(set.counts, counts, p->ncounts * sizeof *counts);
  gt_status status = look_at(b, p, &set);
  gt_planner_set_close(&set);
  return status;
}

gt_status gt_planner_bill_try(gt_planner_bill *b, const int64_t *counts) {
  if (b->work <= 0 || !gt_planner_list_add(&b->tried, counts) ||
      !gt_planner_bill_may_be_better(b, gt_planner_bill_least(b, counts)))
    return GT_OK;
  return gt_planner_bill_simulate(b, &b->coarse, counts);
}
