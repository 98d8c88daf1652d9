/* The adapter: costs of links in, another order of the passes out.  It knows two orders, the plan of
   the start and the one that was found last. */
#include "adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AS_GOOD 1.01 /* an order that is known is taken if it is as good as a new one */
#define LAG     2    /* steps until a bad order is left: measured, told */

/* ---- periods --------------------------------------------------------------------------------- */

static gt_pipe_schedule *order_of(const gt_pipe_adapt *a, int64_t which) {
  return which ? a->found : a->start;
}

static gt_pipe_schedule *current(const gt_pipe_adapt *a) {
  return order_of(a, a->counts.away);
}

/* Steps of which recent costs are known. */
static int64_t known(const gt_pipe_adapt *a) {
  return a->counts.seen < GT_PIPE_ADAPT_PAST ? a->counts.seen : GT_PIPE_ADAPT_PAST;
}

static double *period_at(gt_pipe_adapt *a, int64_t which, int64_t step) {
  return &a->periods[which][step % GT_PIPE_ADAPT_PAST];
}

/* The period by the costs of a step; those of the step before it are often the same. */
static double period_then(gt_pipe_adapt *a, const gt_pipe_schedule *order, int64_t step,
                          int64_t first, double before_s) {
  const gt_pipe_cost *costs = gt_pipe_adapt_recent(a, step);
  if (step > first &&
      memcmp(costs, gt_pipe_adapt_recent(a, step - 1), a->n * a->n * sizeof *costs) == 0)
    return before_s;
  return gt_pipe_adapt_period(a, order, costs);
}

void gt_pipe_adapt_look_back(gt_pipe_adapt *a, size_t which) {
  const int64_t first = a->counts.seen - known(a);
  double before_s = 0;
  for (int64_t k = first; k < a->counts.seen; k++) {
    before_s = period_then(a, order_of(a, (int64_t)which), k, first, before_s);
    *period_at(a, (int64_t)which, k) = before_s;
  }
}

/* The step that was made: the order in force compared with the plan of the start. */
static void account(gt_pipe_adapt *a) {
  const int64_t step = a->counts.seen - 1, first = a->counts.seen - known(a);
  for (int64_t which = 0; which <= (a->found != NULL); which++) {
    const double before_s = step > 0 ? *period_at(a, which, step - 1) : 0;
    *period_at(a, which, step) = period_then(a, order_of(a, which), step, first, before_s);
  }
  const double took = *period_at(a, a->counts.away, step), start = took / *period_at(a, 0, step);
  a->took[step % GT_PIPE_ADAPT_PAST] = took;
  a->progress.start += start;
  a->progress.behind += start - 1;
}

/* Steps that the plan of the start gains while another order makes one. */
static double loss_of(double period_s, double start_s) {
  return period_s / start_s - 1;
}

/* It would not be too far behind if an order were left that loses so much a step. */
static bool affords(const gt_pipe_adapt *a, double loss) {
  return loss <= 0 || a->progress.behind + LAG * loss <= GT_PIPE_ADAPT_BEHIND * a->progress.start;
}

/* ---- the past -------------------------------------------------------------------------------- */

/* What an order would have done in the time of the recent steps. */
typedef struct {
  double steps, worst; /* that it would have made; its largest loss, or 0 */
} past;

static past past_of(gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  const int64_t first = a->counts.seen - known(a);
  past p = {0};
  double s = 0;
  for (int64_t k = first; k < a->counts.seen; k++) {
    s = order == a->start   ? *period_at(a, 0, k)
        : order == a->found ? *period_at(a, 1, k)
                            : period_then(a, order, k, first, s);
    p.steps += a->took[k % GT_PIPE_ADAPT_PAST] / s;
    p.worst = fmax(p.worst, loss_of(s, *period_at(a, 0, k)));
  }
  return p;
}

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

/* An order that loses too much is left at once. */
static bool fell_behind(gt_pipe_adapt *a) {
  const int64_t step = a->counts.seen - 1;
  if (!a->counts.away) return false;
  const double period_s = *period_at(a, 1, step), start_s = *period_at(a, 0, step);
  if (affords(a, loss_of(period_s, start_s))) return false;
  choose(a, a->start, a->last, period_s, start_s, true);
  gt_pipe_adapt_refer(a, a->last);
  return true;
}

/* The other order that is known would have been better on the whole: a link that swings faster than
   orders may change is met with the order that is best on the whole. */
static bool was_worse(gt_pipe_adapt *a) {
  if (!a->found || a->counts.seen < GT_PIPE_ADAPT_PAST) return false;
  gt_pipe_schedule *other = order_of(a, !a->counts.away);
  const past own = past_of(a, current(a)), others = past_of(a, other);
  if (others.steps <= GT_PIPE_ADAPT_GAIN * own.steps || !affords(a, others.worst)) return false;
  choose(a, other, a->last, *period_at(a, a->counts.away, a->counts.seen - 1),
         *period_at(a, !a->counts.away, a->counts.seen - 1), false);
  return true;
}

/* The best order by these costs; one that is known, if it is as good. */
static gt_pipe_schedule *find_order(gt_pipe_adapt *a, const gt_pipe_cost *costs, double *period_s) {
  gt_pipe_schedule *best = gt_pipe_adapt_best(a, costs);
  *period_s = gt_pipe_adapt_period(a, best, costs);
  for (int64_t which = a->found != NULL; which >= 0; which--) {
    const double s = gt_pipe_adapt_period(a, order_of(a, which), costs);
    if (s > AS_GOOD * *period_s) continue;
    if (best != a->found) gt_pipe_schedule_close(best);
    best = order_of(a, which);
    *period_s = fmin(s, *period_s);
  }
  return best;
}

/* The order pays now, and if the next steps are as now, it does together with the last ones; and it
   would not lose too much if the links were again as they have been, or as planned. */
static bool pays(gt_pipe_adapt *a, gt_pipe_schedule *order, double before_s, double after_s) {
  if (before_s <= GT_PIPE_ADAPT_GAIN * after_s) return false;
  const past own = past_of(a, current(a)), others = past_of(a, order);
  const double steps = GT_PIPE_ADAPT_REST,
               loss = loss_of(gt_pipe_adapt_period(a, order, a->planned),
                              gt_pipe_adapt_period(a, a->start, a->planned));
  return others.steps + steps * before_s / after_s > own.steps + steps &&
         affords(a, fmax(loss, others.worst));
}

static double middle_period(gt_pipe_adapt *a, int64_t which) {
  const int64_t last = a->counts.seen - 1;
  const double x = *period_at(a, which, last), y = *period_at(a, which, last - 1),
               z = *period_at(a, which, last - 2);
  return fmax(fmin(x, y), fmin(fmax(x, y), z));
}

/* The other order that is known pays by the last three steps: nothing has to be searched. */
static bool other_pays(gt_pipe_adapt *a) {
  if (!a->found || a->counts.seen < GT_PIPE_ADAPT_STEPS) return false;
  const double before_s = middle_period(a, a->counts.away),
               after_s = middle_period(a, !a->counts.away);
  gt_pipe_schedule *other = order_of(a, !a->counts.away);
  if (!pays(a, other, before_s, after_s)) return false;
  choose(a, other, a->last, before_s, after_s, false);
  gt_pipe_adapt_refer(a, a->last);
  return true;
}

/* Makes it the order that was found last, which is not in force. */
static void keep(gt_pipe_adapt *a, gt_pipe_schedule *order) {
  gt_pipe_schedule_close(a->found);
  a->found = order;
  gt_pipe_adapt_look_back(a, 1);
}

static void search(gt_pipe_adapt *a) {
  gt_pipe_cost *costs = GT_NEW_ARRAY(gt_pipe_cost, a->n * a->n);
  double after_s;
  gt_pipe_adapt_costs(a, costs);
  const double before_s = gt_pipe_adapt_period(a, current(a), costs);
  gt_pipe_schedule *order = find_order(a, costs, &after_s);
  const bool fresh = order != a->start && order != a->found;
  if (order != current(a) && pays(a, order, before_s, after_s))
    choose(a, order, costs, before_s, after_s, false);
  else if (fresh && !a->counts.away && before_s > GT_PIPE_ADAPT_GAIN * after_s)
    keep(a, order); /* it may pay later */
  else if (fresh)
    gt_pipe_schedule_close(order);
  gt_pipe_adapt_refer(a, costs);
  gt_free(costs);
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* The first 15 digits of the order's hash; a zero is a one. */
int64_t gt_pipe_adapt_mark(const gt_pipe_adapt *adapt) {
  char hex[GT_SHA256_HEX];
  if (!adapt->next) return 0;
  gt_pipe_hash(adapt->next, hex);
  hex[15] = '\0';
  const int64_t mark = strtoll(hex, NULL, 16);
  return mark > 0 ? mark : 1;
}

/* Puts the order that waits in force. */
static bool settle(gt_pipe_adapt *a, bool all) {
  gt_pipe_schedule *next = a->next;
  const bool fresh = next != a->start && next != a->found;
  if (!next) return false;
  a->next = NULL;
  if (fresh) gt_pipe_schedule_close(all ? a->found : next);
  a->counts.rested = 0;
  if (!all) return false;
  a->counts.away = next != a->start;
  a->why = a->next_why;
  if (fresh) {
    a->found = next;
    gt_pipe_adapt_look_back(a, 1);
  }
  return true;
}

bool gt_pipe_adapt_step(gt_pipe_adapt *adapt, const gt_pipe_cost *measured, bool all) {
  gt_pipe_adapt *a = adapt;
  gt_pipe_adapt_measure(a, measured);
  account(a);
  a->counts.rested++;
  const bool other = settle(a, all);
  if (fell_behind(a) || a->counts.rested < GT_PIPE_ADAPT_REST || was_worse(a) || other_pays(a))
    return other;
  if (a->counts.off >= GT_PIPE_ADAPT_STEPS) search(a);
  return other;
}

const gt_pipe_schedule *gt_pipe_adapt_schedule(const gt_pipe_adapt *adapt) {
  return current(adapt);
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
                       .codes = {GT_NEW_ARRAY(int64_t, passes), GT_NEW_ARRAY(int64_t, passes)}};
  memcpy(a->links, spec->problem->wan->links, n * n * sizeof *a->links);
  a->wan.links = a->links;
  a->problems[0] = *spec->problem;
  for (size_t i = 0; i < spec->nothers; i++) a->problems[1 + i] = spec->others[i];
  a->start = copy_of(spec->schedule);
  gt_pipe_hash(a->start, a->hash);
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
  if (adapt->next != adapt->start && adapt->next != adapt->found)
    gt_pipe_schedule_close(adapt->next);
  gt_pipe_schedule_close(adapt->found);
  gt_pipe_schedule_close(adapt->start);
  void *owned[] = {adapt->problems, adapt->links, adapt->bytes,  adapt->reference, adapt->weighted,
                   adapt->planned,  adapt->last,  adapt->recent, adapt->codes[0],  adapt->codes[1]};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_free(adapt);
}
