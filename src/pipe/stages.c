/* The search for stages: checks, the two programmes one after another, the solution's figures, and
   the reason if there is none. */
#include <math.h>

#include "stages.h"

#define DEVICES_MOST 65535 /* a rank on the wire has 16 bits */
#define STARTS_MOST  16    /* orders of nearest neighbours that are tried */

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_amount(double x) {
  return x >= 0 && x < INFINITY;
}

static gt_status check_operation(const gt_pipe_operation *o, size_t i) {
  if (!is_amount(o->forward_s) || !is_amount(o->input_s) || !is_amount(o->weight_s))
    return GT_FAIL(GT_ERR_JOB, "operation %zu takes %g, %g and %g s; 0 or more is needed", i,
                   o->forward_s, o->input_s, o->weight_s);
  if (!is_amount(o->parameter_bytes) || !is_amount(o->activation_bytes) ||
      !is_amount(o->kept_bytes) || !is_amount(o->cut_bytes))
    return GT_FAIL(GT_ERR_JOB,
                   "operation %zu has %g bytes of parameters, %g of activations, keeps %g and gets "
                   "%g; 0 or more are needed",
                   i, o->parameter_bytes, o->activation_bytes, o->kept_bytes, o->cut_bytes);
  return GT_OK;
}

static gt_status check_group(const gt_pipe_stages_problem *p, size_t g) {
  const gt_pipe_group *group = &p->groups[g];
  if (group->count < 1 || group->count > DEVICES_MOST)
    return GT_FAIL(GT_ERR_JOB, "group %zu has %lld devices; 1 to %d are needed", g,
                   (long long)group->count, DEVICES_MOST);
  if (!(group->power > 0 && group->power < INFINITY))
    return GT_FAIL(GT_ERR_JOB, "group %zu has a power of %g; more than 0 is needed", g,
                   group->power);
  if (!(group->memory_bytes >= 0))
    return GT_FAIL(GT_ERR_JOB, "group %zu has %g bytes of memory; 0 or more are needed", g,
                   group->memory_bytes);
  if (p->between[g * p->ngroups + g].large_s == INFINITY)
    return GT_FAIL(GT_ERR_JOB, "the devices of group %zu do not reach each other", g);
  for (size_t h = 0; h < p->ngroups; h++) {
    gt_pipe_link t = p->between[g * p->ngroups + h];
    if (!(t.small_s >= 0 && t.large_s >= t.small_s))
      return GT_FAIL(GT_ERR_JOB,
                     "messages from group %zu to group %zu take %g s (small) and %g s (large); 0 "
                     "or more is needed, and not less for the larger",
                     g, h, t.small_s, t.large_s);
  }
  return GT_OK;
}

static gt_status check_counts(const gt_pipe_stages_problem *p) {
  if (p->noperations == 0)
    return GT_FAIL(GT_ERR_JOB, "there is no operation; stages need one at least");
  if (p->ngroups == 0) return GT_FAIL(GT_ERR_JOB, "there is no group; stages need one at least");
  if (p->micro_batch < 1 || p->micro_batches < 1)
    return GT_FAIL(GT_ERR_JOB, "%lld micro-batches of %lld samples; 1 or more is needed of both",
                   (long long)p->micro_batches, (long long)p->micro_batch);
  if (!is_amount(p->copies))
    return GT_FAIL(GT_ERR_JOB, "%g copies of the parameters; 0 or more are needed", p->copies);
  if (p->stages_max > 0 && p->stages_max < p->stages_min)
    return GT_FAIL(GT_ERR_JOB, "at least %zu stages and at most %zu cannot both be", p->stages_min,
                   p->stages_max);
  for (size_t i = 0; i < p->noperations; i++)
    if (p->in_flight[i] < 1)
      return GT_FAIL(GT_ERR_JOB,
                     "%lld micro-batches in flight with %zu stages behind; 1 or more are needed",
                     (long long)p->in_flight[i], i);
  return GT_OK;
}

static gt_status check(const gt_pipe_stages_problem *p) {
  bool starts = false;
  GT_TRY(check_counts(p));
  for (size_t i = 0; i < p->noperations; i++) GT_TRY(check_operation(&p->operations[i], i));
  for (size_t g = 0; g < p->ngroups; g++) {
    GT_TRY(check_group(p, g));
    starts = starts || gt_pipe_costs_may_start(p, g);
  }
  return starts ? GT_OK : GT_FAIL(GT_ERR_JOB, "no group may have the first stage; one is needed");
}

/* ---- search ---------------------------------------------------------------------------------- */

/* The best of the orders of nearest neighbours, as *order; the caller closes it. */
static double try_near(const gt_pipe_costs *costs, gt_pipe_order *order) {
  const gt_pipe_stages_problem *p = costs->problem;
  size_t starts = p->ngroups < STARTS_MOST ? p->ngroups : STARTS_MOST;
  double slowest_s = INFINITY;
  gt_pipe_order_near(order, p, 0);
  for (size_t i = 0; i < starts; i++) {
    gt_pipe_order tried;
    gt_pipe_order_near(&tried, p, i * p->ngroups / starts);
    double value = gt_pipe_stages_least(costs, &tried, slowest_s);
    if (value < slowest_s) {
      slowest_s = value;
      gt_pipe_order_close(order);
      *order = tried;
    } else
      gt_pipe_order_close(&tried);
  }
  return slowest_s;
}

/* Writes the stages, without their figures; returns their number, 0 if there is no solution.
   Nearest neighbours give a limit within which all orders are searched much faster. */
static size_t search_stages(const gt_pipe_costs *costs, gt_pipe_stage *stages) {
  const gt_pipe_stages_problem *p = costs->problem;
  gt_pipe_order order;
  double slowest_s = try_near(costs, &order);
  if (p->ngroups <= GT_PIPE_ORDERS) {
    gt_pipe_order_close(&order);
    gt_pipe_order_all(&order, p);
    slowest_s = gt_pipe_stages_least(costs, &order, slowest_s);
  }
  size_t n = slowest_s < INFINITY ? gt_pipe_stages_best(costs, &order, slowest_s, stages) : 0;
  gt_pipe_order_close(&order);
  return n;
}

/* ---- the solution's figures ------------------------------------------------------------------ */

static void complete_stage(const gt_pipe_costs *costs, gt_pipe_stages *out, size_t i) {
  gt_pipe_stage *stage = &out->stages[i], bare = *stage;
  size_t end = bare.last + 1, behind = out->nstages - 1 - i;
  *stage = gt_pipe_costs_stage(costs, bare.group, bare.first, end, bare.devices);
  gt_pipe_memory memory = gt_pipe_costs_memory(costs, bare.first, end, bare.devices);
  stage->memory_bytes =
      memory.fixed_bytes + gt_pipe_costs_flight(costs->problem, behind) * memory.flight_bytes;
  if (behind == 0) return;
  gt_pipe_crossing hop =
      gt_pipe_costs_hop(costs->problem, stage->group, out->stages[i + 1].group, end);
  stage->send_s = hop.send_s;
  stage->back_s = hop.back_s;
  stage->hop_busy_s = hop.busy_s;
}

static void complete(const gt_pipe_costs *costs, gt_pipe_stages *out) {
  for (size_t i = out->nstages; i-- > 0;) {
    const gt_pipe_stage *s = &out->stages[i];
    complete_stage(costs, out, i);
    out->pass_s += s->forward_s + s->input_s + s->send_s + s->back_s;
    out->slowest_s = fmax(out->slowest_s, fmax(s->busy_s, s->hop_busy_s));
    double flight = gt_pipe_costs_flight(costs->problem, out->nstages - 1 - i);
    out->bound_s = fmax(out->bound_s, out->pass_s / flight);
  }
  out->bound_s = fmax(out->bound_s, out->slowest_s);
  out->exact = costs->problem->ngroups <= GT_PIPE_ORDERS;
}

/* false: there is no solution, and *out is empty. */
static bool solve(gt_pipe_stages *out, const gt_pipe_stages_problem *problem) {
  gt_pipe_costs costs;
  gt_pipe_costs_open(&costs, problem);
  out->stages = GT_NEW_ARRAY(gt_pipe_stage, problem->noperations);
  out->nstages = search_stages(&costs, out->stages);
  if (out->nstages > 0)
    complete(&costs, out);
  else
    gt_pipe_stages_close(out);
  gt_pipe_costs_close(&costs);
  return out->nstages > 0;
}

void gt_pipe_stages_close(gt_pipe_stages *stages) {
  gt_free(stages->stages);
  *stages = (gt_pipe_stages){0};
}

/* ---- reasons for no solution ----------------------------------------------------------------- */

/* The stage that exceeds the memory of its group most. */
static gt_status too_large(const gt_pipe_stages_problem *p, const gt_pipe_stages *stages) {
  const gt_pipe_stage *worst = &stages->stages[0];
  double excess = -INFINITY;
  for (size_t i = 0; i < stages->nstages; i++) {
    const gt_pipe_stage *s = &stages->stages[i];
    double over = s->memory_bytes - p->groups[s->group].memory_bytes;
    if (!(over > excess)) continue;
    excess = over;
    worst = s;
  }
  char needed[32], there[32];
  return GT_FAIL(GT_ERR_JOB,
                 "no split into stages fits into the devices' memory; the fastest one has "
                 "operations %zu to %zu on %lld of the devices of group %zu, which takes %s on "
                 "each, and they have %s",
                 worst->first, worst->last, (long long)worst->devices, worst->group,
                 gt_format_size(needed, sizeof needed, worst->memory_bytes),
                 gt_format_size(there, sizeof there, p->groups[worst->group].memory_bytes));
}

static gt_status explain(const gt_pipe_stages_problem *problem) {
  gt_pipe_stages_problem unlimited = *problem;
  gt_pipe_group *groups = GT_NEW_ARRAY(gt_pipe_group, problem->ngroups);
  for (size_t g = 0; g < problem->ngroups; g++) {
    groups[g] = problem->groups[g];
    groups[g].memory_bytes = INFINITY;
  }
  unlimited.groups = groups;
  gt_pipe_stages stages = {0};
  gt_status status =
      solve(&stages, &unlimited)
          ? too_large(problem, &stages)
          : GT_FAIL(GT_ERR_JOB,
                    "%zu stages at least are needed; %zu operations on devices that reach each "
                    "other make fewer",
                    problem->stages_min, problem->noperations);
  gt_pipe_stages_close(&stages);
  gt_free(groups);
  return status;
}

gt_status gt_pipe_stages_solve(gt_pipe_stages *out, const gt_pipe_stages_problem *problem) {
  *out = (gt_pipe_stages){0};
  GT_TRY(check(problem));
  return solve(out, problem) ? GT_OK : explain(problem);
}
