/* The adapter: costs of links in, another order of the passes out. */
#include "adapt.h"

#include <math.h>
#include <string.h>

#define AS_GOOD 1.01 /* an order that is known is taken if it is as good as a new one */

/* ---- decisions ------------------------------------------------------------------------------- */

static size_t most_changed(const gt_pipe_adapt *a) {
  size_t most = 0;
  double by = -1;
  for (size_t i = 0; i < a->n * a->n; i++) {
    const double change = a->bytes[i] > 0 ? fabs(a->weighted[i] - a->reference[i]) : -1;
    if (change > by) {
      by = change;
      most = i;
    }
  }
  return most;
}

static void choose(gt_pipe_adapt *a, gt_pipe_schedule *next, const gt_pipe_cost *costs,
                   double before_s, double after_s, bool back) {
  const size_t link = most_changed(a);
  a->next = next;
  a->next_why = (gt_pipe_adapt_reason){.from = link / a->n,
                                       .to = link % a->n,
                                       .planned = a->planned[link],
                                       .found = costs[link],
                                       .before_s = before_s,
                                       .after_s = after_s,
                                       .back = back};
}

/* It has been as good as the plan over all links of late, and is as planned, and would have been
   better by this factor on the whole. */
static bool is_better(gt_pipe_adapt *a, const gt_pipe_schedule *order, double gain) {
  const adapt_past plan = gt_pipe_past_of(a, a->orders[ADAPT_START]),
                   others = gt_pipe_past_of(a, order);
  return others.worst.start <= 0 && gt_pipe_loss_planned(a, order).start <= 0 &&
         others.steps > gain * plan.steps;
}

/* Chooses the best order over these links if it is better than the plan: it takes its place. */
static bool improve(gt_pipe_adapt *a, const gt_pipe_cost *costs, double gain) {
  gt_pipe_schedule_close(a->best);
  a->best = gt_pipe_adapt_best(a, costs);
  if (!is_better(a, a->best, gain)) return false;
  choose(a, a->best, a->last, adapt_now(a, a->counts.force),
         gt_pipe_adapt_period(a, a->best, a->last), a->counts.force != ADAPT_START);
  return true;
}

/* For links that swing: as planned, and halfway to what they are now, in logarithms.  Searches take
   time, and what is looked back at must have changed since the last ones. */
static bool improve_between(gt_pipe_adapt *a, const gt_pipe_cost *now) {
  if (a->orders[ADAPT_BETTER] || a->counts.seen < a->looked + GT_PIPE_ADAPT_PAST) return false;
  a->looked = a->counts.seen;
  if (improve(a, a->planned, GT_PIPE_ADAPT_BETTER)) return true;
  gt_pipe_cost *between = GT_NEW_ARRAY(gt_pipe_cost, a->n * a->n);
  for (size_t i = 0; i < a->n * a->n; i++)
    between[i] = (gt_pipe_cost){sqrt(now[i].rate_bps * a->planned[i].rate_bps),
                                sqrt(now[i].latency_s * a->planned[i].latency_s)};
  const bool found = improve(a, between, GT_PIPE_ADAPT_BETTER);
  gt_free(between);
  return found;
}

/* The order that a run returns to: of the plan of the start and the better one, the faster one over
   the links of the last step. */
static adapt_order home(gt_pipe_adapt *a) {
  const bool better =
      a->orders[ADAPT_BETTER] && adapt_now(a, ADAPT_BETTER) <= adapt_now(a, ADAPT_START);
  return better ? ADAPT_BETTER : ADAPT_START;
}

/* An order that loses too much is left at once. */
static bool fell_behind(gt_pipe_adapt *a) {
  if (a->counts.force == ADAPT_START) return false;
  const double period_s = adapt_now(a, a->counts.force);
  const adapt_order to = home(a);
  if (gt_pipe_affords(a, gt_pipe_loss_at(a, period_s, a->counts.seen - 1)) || to == a->counts.force)
    return false;
  if (!improve_between(a, a->last))
    choose(a, a->orders[to], a->last, period_s, adapt_now(a, to), true);
  gt_pipe_adapt_refer(a, a->last);
  return true;
}

/* Another order that is known would have been better on the whole: a link that swings faster than
   orders may change is met with the order that is best on the whole. */
static bool was_worse(gt_pipe_adapt *a) {
  if (a->counts.seen < GT_PIPE_ADAPT_PAST) return false;
  double most = GT_PIPE_ADAPT_GAIN * gt_pipe_past_of(a, adapt_current(a)).steps;
  int64_t to = a->counts.force;
  for (int64_t which = 0; which < ADAPT_ORDERS; which++) {
    if (which == a->counts.force || !a->orders[which]) continue;
    const adapt_past others = gt_pipe_past_of(a, a->orders[which]);
    if (others.steps <= most || !gt_pipe_affords(a, others.worst)) continue;
    most = others.steps;
    to = which;
  }
  if (to == a->counts.force) return false;
  choose(a, a->orders[to], a->last, adapt_now(a, a->counts.force), adapt_now(a, to), false);
  return true;
}

/* The best order by these costs; one that is known, if it is as good. */
static gt_pipe_schedule *find_order(gt_pipe_adapt *a, const gt_pipe_cost *costs, double *period_s) {
  gt_pipe_schedule *best = gt_pipe_adapt_best(a, costs);
  *period_s = gt_pipe_adapt_period(a, best, costs);
  for (int64_t which = ADAPT_ORDERS - 1; which >= 0; which--) {
    if (!a->orders[which]) continue;
    const double s = gt_pipe_adapt_period(a, a->orders[which], costs);
    if (s > AS_GOOD * *period_s) continue;
    if (gt_pipe_adapt_is_fresh(a, best)) gt_pipe_schedule_close(best);
    best = a->orders[which];
    *period_s = fmin(s, *period_s);
  }
  return best;
}

/* The order pays now, and if the next steps are as now, it does together with the last ones; and it
   would not lose too much if the links were again as they have been, or as planned. */
static bool pays(gt_pipe_adapt *a, gt_pipe_schedule *order, double before_s, double after_s) {
  if (before_s <= GT_PIPE_ADAPT_GAIN * after_s) return false;
  const adapt_past own = gt_pipe_past_of(a, adapt_current(a)), others = gt_pipe_past_of(a, order);
  const double steps = GT_PIPE_ADAPT_REST;
  return others.steps + steps * before_s / after_s > own.steps + steps &&
         gt_pipe_affords(a, gt_pipe_loss_larger(gt_pipe_loss_planned(a, order), others.worst));
}

static double middle_period(gt_pipe_adapt *a, int64_t which) {
  const int64_t last = a->counts.seen - 1;
  const double x = *adapt_at(a, which, last), y = *adapt_at(a, which, last - 1),
               z = *adapt_at(a, which, last - 2);
  return fmax(fmin(x, y), fmin(fmax(x, y), z));
}

/* Another order that is known pays by the last three steps: nothing has to be searched. */
static bool other_pays(gt_pipe_adapt *a) {
  if (a->counts.seen < GT_PIPE_ADAPT_STEPS) return false;
  const double before_s = middle_period(a, a->counts.force);
  double least_s = INFINITY;
  int64_t to = a->counts.force;
  for (int64_t which = 0; which < ADAPT_ORDERS; which++) {
    if (which == a->counts.force || !a->orders[which]) continue;
    const double after_s = middle_period(a, which);
    if (after_s >= least_s || !pays(a, a->orders[which], before_s, after_s)) continue;
    least_s = after_s;
    to = which;
  }
  if (to == a->counts.force) return false;
  choose(a, a->orders[to], a->last, before_s, least_s, false);
  gt_pipe_adapt_refer(a, a->last);
  return true;
}

/* Makes it the order that was found last, which is not in force. */
static void keep(gt_pipe_adapt *a, gt_pipe_schedule *order) {
  gt_pipe_schedule_close(a->orders[ADAPT_FOUND]);
  a->orders[ADAPT_FOUND] = order;
  gt_pipe_adapt_look_back(a, ADAPT_FOUND);
}

static void search(gt_pipe_adapt *a) {
  gt_pipe_cost *costs = GT_NEW_ARRAY(gt_pipe_cost, a->n * a->n);
  double after_s;
  gt_pipe_adapt_costs(a, costs);
  const double before_s = gt_pipe_adapt_period(a, adapt_current(a), costs);
  gt_pipe_schedule *order = find_order(a, costs, &after_s);
  const bool fresh = gt_pipe_adapt_is_fresh(a, order);
  if (order != adapt_current(a) && pays(a, order, before_s, after_s))
    choose(a, order, costs, before_s, after_s, false);
  else if (fresh && a->counts.force != ADAPT_FOUND && before_s > GT_PIPE_ADAPT_GAIN * after_s)
    keep(a, order); /* it may pay later */
  else if (fresh)
    gt_pipe_schedule_close(order);
  if (!a->next && a->counts.force == ADAPT_START) improve_between(a, costs);
  gt_pipe_adapt_refer(a, costs);
  gt_free(costs);
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* The first 60 bits of the order's hash; a zero is a one. */
int64_t gt_pipe_adapt_mark(const gt_pipe_adapt *adapt) {
  if (!adapt->next) return 0;
  const int64_t mark = (int64_t)(gt_pipe_mark(adapt->next) >> 4);
  return mark > 0 ? mark : 1;
}

/* The better order takes the place of the plan. */
static void replace_plan(gt_pipe_adapt *a) {
  a->orders[ADAPT_BETTER] = a->best;
  a->best = NULL;
  a->since = a->progress;
  gt_pipe_adapt_look_back(a, ADAPT_BETTER);
}

/* The better order has turned out to be no better over other links: the plan has its place again. */
static void restore_plan(gt_pipe_adapt *a) {
  gt_pipe_schedule *order = a->orders[ADAPT_BETTER];
  a->orders[ADAPT_BETTER] = NULL;
  a->since = (adapt_progress){0};
  keep(a, order);
}

/* Puts the order that waits in force. */
static bool settle(gt_pipe_adapt *a, bool all) {
  gt_pipe_schedule *next = a->next;
  if (!next) return false;
  const bool fresh = gt_pipe_adapt_is_fresh(a, next);
  a->next = NULL;
  a->counts.rested = 0;
  if (!all) {
    if (fresh) gt_pipe_schedule_close(next);
    return false;
  }
  if (next == a->best) replace_plan(a);
  if (fresh) keep(a, next);
  if (next == a->orders[ADAPT_START] && a->counts.force == ADAPT_BETTER) restore_plan(a);
  a->counts.force = ADAPT_START;
  while (a->orders[a->counts.force] != next) a->counts.force++;
  a->why = a->next_why;
  return true;
}

bool gt_pipe_adapt_step(gt_pipe_adapt *adapt, const gt_pipe_cost *measured, bool all) {
  gt_pipe_adapt *a = adapt;
  gt_pipe_adapt_measure(a, measured);
  gt_pipe_adapt_account(a);
  a->counts.rested++;
  const bool other = settle(a, all);
  if (fell_behind(a) || a->counts.rested < GT_PIPE_ADAPT_REST || was_worse(a) || other_pays(a))
    return other;
  if (a->counts.off >= GT_PIPE_ADAPT_STEPS)
    search(a);
  else if (a->counts.seen == GT_PIPE_ADAPT_STEPS && a->nproblems > 1)
    improve(a, a->planned, GT_PIPE_ADAPT_GAIN); /* the job's number may be far from the best one */
  return other;
}

const gt_pipe_schedule *gt_pipe_adapt_schedule(const gt_pipe_adapt *adapt) {
  return adapt_current(adapt);
}

gt_pipe_adapt_reason gt_pipe_adapt_why(const gt_pipe_adapt *adapt) {
  return adapt->why;
}

gt_pipe_cost gt_pipe_adapt_cost(const gt_pipe_adapt *adapt, size_t from, size_t to) {
  return adapt->last[from * adapt->n + to];
}

bool gt_pipe_adapt_uses(const gt_pipe_adapt *adapt, size_t from, size_t to) {
  return adapt->bytes[from * adapt->n + to] > 0;
}

/* ---- create and close ------------------------------------------------------------------------ */

/* A message has a byte at least, so that a link that is used has a cost. */
static void find_bytes(gt_pipe_adapt *a) {
  const gt_pipe_problem *p = a->problems;
  for (size_t k = 0; k + 1 < p->stages * p->chunks; k++) {
    const size_t x = p->wan->region[gt_pipe_stage_of(p->stages, k)],
                 y = p->wan->region[gt_pipe_stage_of(p->stages, k + 1)];
    const double bytes = fmax(1, p->spans[k].output_bytes);
    if (x == y) continue;
    a->bytes[x * a->n + y] = fmax(a->bytes[x * a->n + y], bytes);
    a->bytes[y * a->n + x] = fmax(a->bytes[y * a->n + x], bytes);
  }
}

static gt_pipe_schedule *copy_of(const gt_pipe_schedule *schedule) {
  gt_pipe_schedule *copy =
      gt_pipe_schedule_create(schedule->stages, schedule->chunks, schedule->micros);
  for (size_t s = 0; s < schedule->stages; s++)
    for (size_t i = 0; i < schedule->lists[s].n; i++) {
      const gt_pass *pass = &schedule->lists[s].passes[i];
      gt_pipe_add(copy, pass->kind, pass->span, pass->micro);
    }
  return copy;
}

/* The most passes of a step. */
static size_t passes_of(const gt_pipe_adapt_spec *spec) {
  const gt_pipe_problem *p = spec->problem;
  size_t micros = p->micros;
  for (size_t i = 0; i < spec->nothers; i++)
    if (spec->others[i].micros > micros) micros = spec->others[i].micros;
  return 3 * p->stages * p->chunks * micros;
}

gt_pipe_adapt *gt_pipe_adapt_create(const gt_pipe_adapt_spec *spec) {
  const size_t n = spec->problem->wan->nregions, passes = passes_of(spec);
  gt_pipe_adapt *a = GT_NEW(gt_pipe_adapt);
  *a = (gt_pipe_adapt){.problems = GT_NEW_ARRAY(gt_pipe_problem, 1 + spec->nothers),
                       .nproblems = 1 + spec->nothers,
                       .search = spec->search,
                       .wan = *spec->problem->wan,
                       .links = GT_NEW_ARRAY(gt_link_spec, n * n),
                       .n = n,
                       .bytes = GT_NEW_ARRAY(double, n *n),
                       .reference = GT_NEW_ARRAY(double, n *n),
                       .weighted = GT_NEW_ARRAY(double, n *n),
                       .planned = GT_NEW_ARRAY(gt_pipe_cost, n * n),
                       .last = GT_NEW_ARRAY(gt_pipe_cost, n * n),
                       .recent = GT_NEW_ARRAY(gt_pipe_cost, GT_PIPE_ADAPT_PAST * n * n),
                       .counts = {.rested = GT_PIPE_ADAPT_REST},
                       .looked = -GT_PIPE_ADAPT_PAST,
                       .codes = {GT_NEW_ARRAY(int64_t, passes), GT_NEW_ARRAY(int64_t, passes),
                                 GT_NEW_ARRAY(int64_t, passes)}};
  memcpy(a->links, spec->problem->wan->links, n * n * sizeof *a->links);
  a->wan.links = a->links;
  a->problems[0] = *spec->problem;
  for (size_t i = 0; i < spec->nothers; i++) a->problems[1 + i] = spec->others[i];
  a->orders[ADAPT_START] = copy_of(spec->schedule);
  gt_pipe_hash(a->orders[ADAPT_START], a->hash);
  find_bytes(a);
  for (size_t i = 0; i < n * n; i++)
    if (a->bytes[i] > 0)
      a->planned[i] = a->last[i] = gt_pipe_adapt_planned(spec->problem->wan, i / n, i % n);
  gt_pipe_adapt_refer(a, a->planned);
  memcpy(a->weighted, a->reference, n * n * sizeof *a->weighted);
  return a;
}

void gt_pipe_adapt_close(gt_pipe_adapt *adapt) {
  if (!adapt) return;
  if (gt_pipe_adapt_is_fresh(adapt, adapt->next)) gt_pipe_schedule_close(adapt->next);
  gt_pipe_schedule_close(adapt->best);
  for (size_t i = 0; i < ADAPT_ORDERS; i++) gt_pipe_schedule_close(adapt->orders[i]);
  void *owned[] = {adapt->problems, adapt->links,    adapt->bytes,   adapt->reference,
                   adapt->weighted, adapt->planned,  adapt->last,    adapt->recent,
                   adapt->codes[0], adapt->codes[1], adapt->codes[2]};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_free(adapt);
}
