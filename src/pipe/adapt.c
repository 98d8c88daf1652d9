/* The adapter: chooses another order of the passes from the costs of links. */
#include "adapt.h"

#include <math.h>
#include <string.h>

#define COST_LEAST 1e-6 /* s; smaller costs have no meaningful ratio */
#define FEWEST     50   /* minimum number of variants for a number of micro-batches */
#define LAG        2    /* steps until the run leaves a bad order: to measure, to announce */
#define AS_GOOD    1.01 /* a known order is taken if it is nearly as good as a new one */

/* ---- costs of links: planned, measured, how far they are apart ------------------------------- */

/* Returns the costs of one of the last GT_PIPE_ADAPT_PAST steps, counted from the first step. */
static gt_pipe_cost *recent_of(const gt_pipe_adapt *a, int64_t step) {
  return &a->recent[(size_t)(step % GT_PIPE_ADAPT_PAST) * a->n * a->n];
}

static double cost_s(const gt_pipe_cost *c, double bytes) {
  const double s = c->latency_s + (c->rate_bps > 0 ? 8 * bytes / c->rate_bps : 0);
  return s > COST_LEAST ? s : COST_LEAST;
}

static double narrower(double rate_bps, const double *access_bps, size_t region) {
  const double access = access_bps ? access_bps[region] : 0;
  return access > 0 && (rate_bps <= 0 || access < rate_bps) ? access : rate_bps;
}

static gt_pipe_cost planned_cost(const gt_pipe_wan *wan, size_t from, size_t to) {
  const gt_link_spec *link = &wan->links[from * wan->nregions + to];
  const double rate =
      narrower(narrower(gt_link_goodput(link), wan->up_bps, from), wan->down_bps, to);
  return (gt_pipe_cost){rate, link->latency_s};
}

/* Sets the costs by which the current order is judged. */
static void refer(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  for (size_t i = 0; i < a->n * a->n; i++)
    a->reference[i] = a->bytes[i] > 0 ? log(cost_s(&costs[i], a->bytes[i])) : 0;
  a->counts.off = 0;
}

/* Takes the measured costs of a step; a link without a measurement keeps its cost. */
static void measure(gt_pipe_adapt *a, const gt_pipe_cost *measured) {
  bool off = false;
  gt_pipe_cost *recent = recent_of(a, a->counts.seen++);
  for (size_t i = 0; i < a->n * a->n; i++) {
    if (a->bytes[i] <= 0) continue;
    if (measured[i].rate_bps > 0) a->last[i].rate_bps = measured[i].rate_bps;
    if (measured[i].latency_s > 0) a->last[i].latency_s = measured[i].latency_s;
    recent[i] = a->last[i];
    a->weighted[i] +=
        GT_PIPE_ADAPT_WEIGHT * (log(cost_s(&a->last[i], a->bytes[i])) - a->weighted[i]);
    off = off || fabs(a->weighted[i] - a->reference[i]) > log(GT_PIPE_ADAPT_RATIO);
  }
  a->counts.off = off ? a->counts.off + 1 : 0;
}

_Static_assert(GT_PIPE_ADAPT_STEPS == 3, "medians are of three steps");

static double median(double x, double y, double z) {
  return fmax(fmin(x, y), fmin(fmax(x, y), z));
}

/* Computes costs for a choice, n x n: medians of the last three steps, because the weighted cost
   reacts late. */
static void find_costs(const gt_pipe_adapt *a, gt_pipe_cost *costs) {
  const gt_pipe_cost *x = recent_of(a, a->counts.seen - 1), *y = recent_of(a, a->counts.seen - 2),
                     *z = recent_of(a, a->counts.seen - 3);
  for (size_t i = 0; i < a->n * a->n; i++)
    costs[i] = (gt_pipe_cost){median(x[i].rate_bps, y[i].rate_bps, z[i].rate_bps),
                              median(x[i].latency_s, y[i].latency_s, z[i].latency_s)};
}

/* ---- periods of orders, and the best order --------------------------------------------------- */

static void set_links(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  for (size_t i = 0; i < a->n * a->n; i++) {
    const size_t other = i % a->n * a->n + i / a->n;
    if (a->bytes[i] > 0)
      a->links[i] = (gt_link_spec){.bandwidth_bps = costs[i].rate_bps,
                                   .latency_s = costs[i].latency_s,
                                   .back_s = costs[other].latency_s};
  }
}

/* Returns the problem over the links of set_links. */
static gt_pipe_problem measured(const gt_pipe_adapt *a, size_t micro_batches) {
  gt_pipe_problem problem = *gt_pipe_adapt_problem(a, micro_batches);
  problem.wan = &a->wan;
  return problem;
}

/* Returns the period in seconds. */
static double period_of(gt_pipe_adapt *a, const gt_pipe_schedule *schedule,
                        const gt_pipe_cost *costs) {
  const gt_pipe_problem problem = measured(a, schedule->micro_batches);
  set_links(a, costs);
  const gt_pipe_run_spec spec = {
      .problem = &problem, .schedule = schedule, .steps = GT_PIPE_STEADY};
  return gt_seconds(gt_pipe_run_steps(&spec).period);
}

/* Returns the best order with this number of micro-batches, found with a share of the variants. */
static gt_pipe_schedule *search_order(gt_pipe_adapt *a, const gt_pipe_cost *costs,
                                      size_t micro_batches, size_t share) {
  const gt_pipe_problem problem = measured(a, micro_batches);
  const size_t variants = a->search.variants > 0 ? a->search.variants : GT_PIPE_VARIANTS,
               fair = variants * a->problems->micro_batches / micro_batches / share,
               least = variants < FEWEST ? variants : FEWEST;
  const gt_pipe_search search = {
      .aim = GT_PIPE_PERIOD, .seed = a->search.seed, .variants = fair > least ? fair : least};
  gt_pipe_schedule *best;
  set_links(a, costs);
  if (gt_pipe_make(&best, GT_PIPE_AUTO, &problem, &search) != GT_OK)
    gt_bug("no schedule for the pipeline: %s", gt_error_text());
  return best;
}

/* Returns the best number of micro-batches by these costs, found with few variants each. */
static size_t find_micro_batches(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  size_t best = a->problems->micro_batches;
  double least_s = INFINITY;
  for (size_t i = 0; a->nproblems > 1 && i < a->nproblems; i++) {
    gt_pipe_schedule *order = search_order(a, costs, a->problems[i].micro_batches, a->nproblems);
    const double s = period_of(a, order, costs);
    if (s < least_s) best = a->problems[i].micro_batches;
    least_s = fmin(s, least_s);
    gt_pipe_schedule_close(order);
  }
  return best;
}

/* Returns the best order by these costs with any allowed number of micro-batches; the caller owns
   it. */
static gt_pipe_schedule *best_order(gt_pipe_adapt *a, const gt_pipe_cost *costs) {
  return search_order(a, costs, find_micro_batches(a, costs), 1);
}

/* ---- periods over recent steps --------------------------------------------------------------- */

static gt_pipe_schedule *current(const gt_pipe_adapt *a) {
  return a->orders[a->counts.force];
}

/* Returns the period of a known order by the costs of a recent step. */
static double *period_at(gt_pipe_adapt *a, int64_t which, int64_t step) {
  return &a->periods[which][step % GT_PIPE_ADAPT_PAST];
}

/* Returns the same by the costs of the last step. */
static double period_now(gt_pipe_adapt *a, int64_t which) {
  return *period_at(a, which, a->counts.seen - 1);
}

/* True if the order is not a known one. */
static bool is_fresh(const gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  bool known_one = false;
  for (size_t i = 0; i < ADAPT_ORDERS; i++) known_one = known_one || order == a->orders[i];
  return !known_one;
}

/* Returns the number of steps with known recent costs. */
static int64_t known(const gt_pipe_adapt *a) {
  return a->counts.seen < GT_PIPE_ADAPT_PAST ? a->counts.seen : GT_PIPE_ADAPT_PAST;
}

/* Returns the period by the costs of a step; before_s if these equal those of the step before. */
static double period_then(gt_pipe_adapt *a, const gt_pipe_schedule *order, int64_t step,
                          int64_t first, double before_s) {
  const gt_pipe_cost *costs = recent_of(a, step);
  if (step > first && memcmp(costs, recent_of(a, step - 1), a->n * a->n * sizeof *costs) == 0)
    return before_s;
  return period_of(a, order, costs);
}

void gt_pipe_adapt_look_back(gt_pipe_adapt *a, adapt_order which) {
  const int64_t first = a->counts.seen - known(a);
  double before_s = 0;
  for (int64_t k = first; a->decides && k < a->counts.seen; k++) {
    before_s = period_then(a, a->orders[which], k, first, before_s);
    *period_at(a, which, k) = before_s;
  }
}

static void count(adapt_progress *progress, double took_s, double period_s) {
  progress->start += took_s / period_s;
  progress->behind += took_s / period_s - 1;
}

/* Counts a step: compares the current order with the initial plan and the better order. */
static void account(gt_pipe_adapt *a) {
  const int64_t step = a->counts.seen - 1, first = a->counts.seen - known(a);
  for (int64_t which = 0; which < ADAPT_ORDERS; which++) {
    const double before_s = step > 0 ? *period_at(a, which, step - 1) : 0;
    if (a->orders[which])
      *period_at(a, which, step) = period_then(a, a->orders[which], step, first, before_s);
  }
  const double took = period_now(a, a->counts.force);
  a->took[step % GT_PIPE_ADAPT_PAST] = took;
  count(&a->progress, took, period_now(a, ADAPT_START));
  if (a->orders[ADAPT_BETTER]) count(&a->since, took, period_now(a, ADAPT_BETTER));
}

/* ---- losses of an order ---------------------------------------------------------------------- */

/* Steps that the initial plan and the better order gain per step of an order; better is 0 without
   one. */
typedef struct {
  double start, better;
} losses;

static double loss_of(double period_s, double other_s) {
  return period_s / other_s - 1;
}

/* Returns the losses of an order with this period over the links of a recent step. */
static losses loss_at(gt_pipe_adapt *a, double period_s, int64_t step) {
  return (losses){loss_of(period_s, *period_at(a, ADAPT_START, step)),
                  a->orders[ADAPT_BETTER] ? loss_of(period_s, *period_at(a, ADAPT_BETTER, step))
                                          : 0};
}

/* Returns the losses over the planned links. */
static losses planned_loss(gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  const gt_pipe_schedule *better = a->orders[ADAPT_BETTER];
  const double s = period_of(a, order, a->planned);
  return (losses){loss_of(s, period_of(a, a->orders[ADAPT_START], a->planned)),
                  better ? loss_of(s, period_of(a, better, a->planned)) : 0};
}

static losses larger_loss(losses x, losses y) {
  return (losses){fmax(x.start, y.start), fmax(x.better, y.better)};
}

static bool within(const adapt_progress *progress, double lost) {
  return lost <= 0 || progress->behind + LAG * lost <= GT_PIPE_ADAPT_BEHIND * progress->start;
}

/* True if the run would not fall too far behind before it leaves an order with these losses per
   step. */
static bool affords(const gt_pipe_adapt *a, losses lost) {
  return within(&a->progress, lost.start) && within(&a->since, lost.better);
}

/* The result that an order would have had in the time of the recent steps. */
typedef struct {
  double steps; /* steps it would have made */
  losses worst; /* maximum over these steps */
} past;

static past past_of(gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  const int64_t first = a->counts.seen - known(a);
  int64_t which = 0;
  past p = {0, {-1, -1}}; /* the minimum of any loss */
  double s = 0;
  while (which < ADAPT_ORDERS && order != a->orders[which]) which++;
  for (int64_t k = first; k < a->counts.seen; k++) {
    s = which < ADAPT_ORDERS ? *period_at(a, which, k) : period_then(a, order, k, first, s);
    p.steps += a->took[k % GT_PIPE_ADAPT_PAST] / s;
    p.worst = larger_loss(p.worst, loss_at(a, s, k));
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

/* Replaces the plan by the best order over these costs and chooses it, if this order was at no
   recent step, and is not over the planned links, slower than the plan, and would have made more
   steps by this factor. */
static bool improve(gt_pipe_adapt *a, const gt_pipe_cost *costs, double gain) {
  gt_pipe_schedule *order = best_order(a, costs);
  const past plan = past_of(a, a->orders[ADAPT_START]), others = past_of(a, order);
  if (others.worst.start > 0 || planned_loss(a, order).start > 0 ||
      others.steps <= gain * plan.steps) {
    gt_pipe_schedule_close(order);
    return false;
  }
  a->orders[ADAPT_BETTER] = order;
  a->since = a->progress;
  gt_pipe_adapt_look_back(a, ADAPT_BETTER);
  choose(a, order, a->last, period_now(a, a->counts.force), period_now(a, ADAPT_BETTER),
         a->counts.force != ADAPT_START);
  return true;
}

/* Handles oscillating links: searches over the planned costs, and over the geometric mean of
   planned and current costs.  Waits GT_PIPE_ADAPT_PAST steps between searches, because these take
   time. */
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

/* Returns the order to return to: of the initial plan and the better order, the faster one over the
   links of the last step. */
static adapt_order home(gt_pipe_adapt *a) {
  const bool better =
      a->orders[ADAPT_BETTER] && period_now(a, ADAPT_BETTER) <= period_now(a, ADAPT_START);
  return better ? ADAPT_BETTER : ADAPT_START;
}

/* Leaves an order that loses too much, at once. */
static bool fell_behind(gt_pipe_adapt *a) {
  if (a->counts.force == ADAPT_START) return false;
  const double period_s = period_now(a, a->counts.force);
  const adapt_order to = home(a);
  if (affords(a, loss_at(a, period_s, a->counts.seen - 1)) || to == a->counts.force) return false;
  if (!improve_between(a, a->last))
    choose(a, a->orders[to], a->last, period_s, period_now(a, to), true);
  refer(a, a->last);
  return true;
}

/* Chooses another known order that would have been better over all recent steps: if links oscillate
   faster than orders can change, the order that is best on average is used. */
static bool was_worse(gt_pipe_adapt *a) {
  if (a->counts.seen < GT_PIPE_ADAPT_PAST) return false;
  double most = GT_PIPE_ADAPT_GAIN * past_of(a, current(a)).steps;
  int64_t to = a->counts.force;
  for (int64_t which = 0; which < ADAPT_ORDERS; which++) {
    if (which == a->counts.force || !a->orders[which]) continue;
    const past others = past_of(a, a->orders[which]);
    if (others.steps <= most || !affords(a, others.worst)) continue;
    most = others.steps;
    to = which;
  }
  if (to == a->counts.force) return false;
  choose(a, a->orders[to], a->last, period_now(a, a->counts.force), period_now(a, to), false);
  return true;
}

/* Returns the best order by these costs, preferring a known one that is nearly as good. */
static gt_pipe_schedule *find_order(gt_pipe_adapt *a, const gt_pipe_cost *costs, double *period_s) {
  gt_pipe_schedule *best = best_order(a, costs);
  *period_s = period_of(a, best, costs);
  for (int64_t which = ADAPT_ORDERS - 1; which >= 0; which--) {
    if (!a->orders[which]) continue;
    const double s = period_of(a, a->orders[which], costs);
    if (s > AS_GOOD * *period_s) continue;
    if (is_fresh(a, best)) gt_pipe_schedule_close(best);
    best = a->orders[which];
    *period_s = fmin(s, *period_s);
  }
  return best;
}

/* True if the order is worth a switch: it gains now; together with recent steps, if the next steps
   are like the current one; and it would not lose too much over recent or planned links. */
static bool pays(gt_pipe_adapt *a, gt_pipe_schedule *order, double before_s, double after_s) {
  if (before_s <= GT_PIPE_ADAPT_GAIN * after_s) return false;
  const past own = past_of(a, current(a)), others = past_of(a, order);
  const double steps = GT_PIPE_ADAPT_REST;
  return others.steps + steps * before_s / after_s > own.steps + steps &&
         affords(a, larger_loss(planned_loss(a, order), others.worst));
}

static double middle_period(gt_pipe_adapt *a, int64_t which) {
  const int64_t last = a->counts.seen - 1;
  return median(*period_at(a, which, last), *period_at(a, which, last - 1),
                *period_at(a, which, last - 2));
}

/* Chooses another known order that is worth a switch by the last three steps, without a search. */
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
  refer(a, a->last);
  return true;
}

/* Keeps an order, which is not the current one, as the last order found. */
static void keep(gt_pipe_adapt *a, gt_pipe_schedule *order) {
  gt_pipe_schedule_close(a->orders[ADAPT_FOUND]);
  a->orders[ADAPT_FOUND] = order;
  gt_pipe_adapt_look_back(a, ADAPT_FOUND);
}

static void search(gt_pipe_adapt *a) {
  gt_pipe_cost *costs = GT_NEW_ARRAY(gt_pipe_cost, a->n * a->n);
  double after_s;
  find_costs(a, costs);
  const double before_s = period_of(a, current(a), costs);
  gt_pipe_schedule *order = find_order(a, costs, &after_s);
  const bool fresh = is_fresh(a, order);
  if (order != current(a) && pays(a, order, before_s, after_s))
    choose(a, order, costs, before_s, after_s, false);
  else if (fresh && a->counts.force != ADAPT_FOUND && before_s > GT_PIPE_ADAPT_GAIN * after_s)
    keep(a, order); /* can be useful later */
  else if (fresh)
    gt_pipe_schedule_close(order);
  if (!a->next && a->counts.force == ADAPT_START) improve_between(a, costs);
  refer(a, costs);
  gt_free(costs);
}

/* ---- the next step --------------------------------------------------------------------------- */

/* Restores the plan: the order that replaced it is no better over other links. */
static void restore_plan(gt_pipe_adapt *a) {
  gt_pipe_schedule *order = a->orders[ADAPT_BETTER];
  a->orders[ADAPT_BETTER] = NULL;
  a->since = (adapt_progress){0};
  keep(a, order);
}

/* Makes the pending order the current one. */
static bool settle(gt_pipe_adapt *a) {
  gt_pipe_schedule *next = a->next;
  if (!next) return false;
  const bool fresh = is_fresh(a, next);
  a->next = NULL;
  a->counts.rested = 0;
  if (fresh) keep(a, next);
  if (next == a->orders[ADAPT_START] && a->counts.force == ADAPT_BETTER) restore_plan(a);
  a->counts.force = ADAPT_START;
  while (a->orders[a->counts.force] != next) a->counts.force++;
  a->why = a->next_why;
  return true;
}

static void decide(gt_pipe_adapt *a) {
  if (fell_behind(a) || a->counts.rested < GT_PIPE_ADAPT_REST || was_worse(a) || other_pays(a))
    return;
  if (a->counts.off >= GT_PIPE_ADAPT_STEPS)
    search(a);
  else if (a->counts.seen == GT_PIPE_ADAPT_STEPS && a->nproblems > 1)
    improve(a, a->planned, GT_PIPE_ADAPT_GAIN); /* the job's number may be far from the best one */
}

bool gt_pipe_adapt_step(gt_pipe_adapt *adapt, const gt_pipe_cost *measured) {
  measure(adapt, measured);
  if (adapt->decides) account(adapt);
  adapt->counts.rested++;
  const bool other = settle(adapt);
  if (adapt->decides) decide(adapt);
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

/* Computes bytes of the largest messages, at least 1, so that a used link has a cost. */
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
      gt_pipe_schedule_create(schedule->stages, schedule->chunks, schedule->micro_batches);
  for (size_t s = 0; s < schedule->stages; s++)
    for (size_t i = 0; i < schedule->lists[s].n; i++) {
      const gt_pass *pass = &schedule->lists[s].passes[i];
      gt_pipe_add(copy, pass->kind, pass->span, pass->micro);
    }
  return copy;
}

size_t gt_pipe_adapt_passes(const gt_pipe_adapt *a) {
  size_t micro_batches = 0;
  for (size_t i = 0; i < a->nproblems; i++)
    if (a->problems[i].micro_batches > micro_batches) micro_batches = a->problems[i].micro_batches;
  return 3 * a->problems->stages * a->problems->chunks * micro_batches;
}

gt_pipe_adapt *gt_pipe_adapt_create(const gt_pipe_adapt_spec *spec) {
  const size_t n = spec->problem->wan->nregions;
  gt_pipe_adapt *a = GT_NEW(gt_pipe_adapt);
  *a = (gt_pipe_adapt){.problems = GT_NEW_ARRAY(gt_pipe_problem, 1 + spec->nothers),
                       .nproblems = 1 + spec->nothers,
                       .search = spec->search,
                       .decides = spec->decides,
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
                       .looked = -GT_PIPE_ADAPT_PAST};
  a->problems[0] = *spec->problem;
  for (size_t i = 0; i < spec->nothers; i++) a->problems[1 + i] = spec->others[i];
  for (size_t i = 0; i < 4; i++) a->codes[i] = GT_NEW_ARRAY(int64_t, gt_pipe_adapt_passes(a));
  memcpy(a->links, spec->problem->wan->links, n * n * sizeof *a->links);
  a->wan.links = a->links;
  a->orders[ADAPT_START] = copy_of(spec->schedule);
  gt_pipe_hash(a->orders[ADAPT_START], a->hash);
  find_bytes(a);
  for (size_t i = 0; i < n * n; i++)
    if (a->bytes[i] > 0)
      a->planned[i] = a->last[i] = planned_cost(spec->problem->wan, i / n, i % n);
  refer(a, a->planned);
  memcpy(a->weighted, a->reference, n * n * sizeof *a->weighted);
  return a;
}

void gt_pipe_adapt_close(gt_pipe_adapt *adapt) {
  if (!adapt) return;
  if (is_fresh(adapt, adapt->next)) gt_pipe_schedule_close(adapt->next);
  for (size_t i = 0; i < ADAPT_ORDERS; i++) gt_pipe_schedule_close(adapt->orders[i]);
  void *owned[] = {adapt->problems, adapt->links,    adapt->bytes,    adapt->reference,
                   adapt->weighted, adapt->planned,  adapt->last,     adapt->recent,
                   adapt->codes[0], adapt->codes[1], adapt->codes[2], adapt->codes[3]};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_free(adapt);
}
