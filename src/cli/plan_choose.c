/* The cheapest candidate, the fastest, and the one that is proposed; what must be said beside the figures; and the time to ask Slurm for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plan_inside.h"

#define MINUTE 60.0

static const planner_outcome *expected(const planner_candidate *c) {
  return &gt_planner_set(c)->at[PLANNER_EXPECTED];
}

static double time_of(const planner *p, const planner_candidate *c) {
  (void)p;
  return expected(c)->figures.wall_s;
}

static double cost_of(const planner *p, const planner_candidate *c) {
  return gt_planner_cost(p, expected(c));
}

typedef double (*value_of)(const planner *, const planner_candidate *);

/* The least by `first`, of equals by `second`, of candidates that fit or of all; ncandidates: there is none. */
static size_t least(const planner *p, value_of first, value_of second, bool all) {
  size_t best = p->ncandidates;
  for (size_t i = 0; i < p->ncandidates; i++) {
    const planner_candidate *c = &p->candidates[i], *b = &p->candidates[best];
    if (!c->fits && !all) continue;
    if (best == p->ncandidates || first(p, c) < first(p, b) || (first(p, c) == first(p, b) && second(p, c) < second(p, b))) best = i;
  }
  return best;
}

/* Nobody fits: the one that comes nearest says why. */
static gt_status none_fits(const planner *p) {
  bool by_cost = p->job->plan.deadline_s <= 0 && p->job->plan.budget > 0;
  const planner_candidate *c = &p->candidates[least(p, by_cost ? cost_of : time_of, by_cost ? time_of : cost_of, true)];
  char name[64];
  if (p->ncandidates == 1)
    return GT_FAIL(GT_ERR_JOB, "%s: no plan is possible with %s: %s", p->job->name, gt_planner_name(name, sizeof name, c), c->why);
  return GT_FAIL(GT_ERR_JOB, "%s: no plan is possible with any of %zu candidates; with the %s of them, %s: %s", p->job->name, p->ncandidates,
                 by_cost ? "cheapest" : "fastest", gt_planner_name(name, sizeof name, c), c->why);
}

/* ---- notes ------------------------------------------------------------------------------------------------------------------------ */

static void note_prices(planner *p) {
  char list[512] = "";
  size_t at = 0, shown = 0;
  if (!p->prices.known) gt_planner_note(p, "no price is known (regions[].place, price, ps_price, devices[].price): machine hours stand for cost");
  for (; shown < p->prices.nmissing && shown < 8 && at < sizeof list - 80; shown++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s%.60s", shown ? ", " : "", p->prices.missing[shown]);
  if (shown > 0) gt_planner_note(p, "prices that are not known count as 0: %s%s", list, shown < p->prices.nmissing ? ", and others" : "");
  for (size_t r = 0; r < p->prices.nregions; r++)
    if (p->prices.regions[r].has_place) {
      gt_planner_note(p, "cost is rates times use, not a bill; rates of places are those of %s",
                      p->job->plan.catalogue ? p->job->plan.catalogue : "the catalogue that geotrain comes with");
      return;
    }
}

static bool any_factor(const planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++)
    if (p->candidates[i].factor != 1) return true;
  return false;
}

static void note_samples(planner *p) {
  const planner_candidate *c = &p->candidates[p->choice];
  int64_t all = c->everything.at[PLANNER_EXPECTED].samples, set = expected(c)->samples;
  if (p->shape.assumed) gt_planner_note(p, "no data set is at hand: regions hold what regions[].samples say, and nothing is evaluated");
  if (p->job->sync.local == GT_LOCAL_SYNC && p->job->train.until.steps > 0 && !c->whole)
    gt_planner_note(p, "until steps: fewer workers make more steps, for as many samples: %" PRId64 ", with everything everywhere %" PRId64, set, all);
}

static void note_part(planner *p) {
  const planner_outcome *o = expected(&p->candidates[p->choice]);
  if (o->part < 1)
    gt_planner_note(p, "%.2g of the training was simulated and the rest follows from it; the expected time may be off by %.2g s for that%s%s",
                    o->part, o->error_s, o->why != GT_SIM_KNOWN ? ": " : "", gt_sim_doubt_text(o->why));
}

static void note_links(planner *p) {
  for (size_t i = 0; i < p->job->wan.nlinks; i++)
    if (p->job->wan.links[i].trace) {
      gt_planner_note(p, "links with a trace are as the trace says in every case");
      return;
    }
}

static void note_gap(planner *p, const planner_candidate *c) {
  const char *better = p->job->plan.budget > 0 && p->job->plan.deadline_s <= 0 ? "faster" : "cheaper";
  if (c->exact) return;
  if (isnan(c->gap))
    gt_planner_note(p, "the set is the best of %" PRId64 " that were simulated; others are not ruled out", c->sets);
  else
    gt_planner_note(p, "the set is the best of %" PRId64 " that were simulated; none can be %s by more than %.2g %%", c->sets, better, 100 * c->gap);
}

static void note_sets(planner *p) {
  const planner_candidate *c = &p->candidates[p->choice];
  const gt_job *job = p->job;
  for (size_t r = 0; r < job->nregions && job->nregions <= 16; r++) {
    if (p->pools[r].fixed && job->regions[r].ndevices > 0)
      gt_planner_note(p, "%s keeps its ranks: compute describes its workers one by one", job->regions[r].name);
    if (c->wan_bound[r] && !p->pools[r].fixed && !c->whole)
      gt_planner_note(p, "%s: everything everywhere would wait for the WAN there, so that a set beyond the WAN's pace gains nothing",
                      job->regions[r].name);
  }
  if (c->adjusted > 0)
    gt_planner_note(p, "%d smaller set%s, good enough by the planner's model, missed in simulation; the one shown holds", c->adjusted,
                    c->adjusted == 1 ? "" : "s");
  note_gap(p, c);
}

static void note_assumed(planner *p) {
  for (size_t r = 0; r < p->prices.nregions; r++) {
    const gt_job_region_prices *prices = &p->prices.regions[r];
    const gt_job_region *region = &p->job->regions[r];
    bool machine = false;
    for (size_t d = 0; d < region->ndevices; d++) machine |= region->devices[d].price < 0 && region->price < 0 && prices->devices[d].usd >= 0;
    if (!machine) continue;
    gt_planner_note(p, "* devices without a price of their own are paid for as the catalogue's machine of their place");
    return;
  }
}

/* ---- the choice ------------------------------------------------------------------------------------------------------------------- */

/* Slurm's limit must not come before the signal that stops a run does. */
static double slurm_time(const planner *p) {
  const gt_job *job = p->job;
  double s = job->plan.start_s + gt_planner_set(&p->candidates[p->choice])->at[PLANNER_HIGH].figures.wall_s + job->slurm.signal_before_s;
  s = ceil(s / job->plan.billing_s - 1e-9) * job->plan.billing_s;
  return ceil(s / MINUTE - 1e-9) * MINUTE;
}

gt_status gt_planner_choose(planner *p) {
  const gt_job *job = p->job;
  bool by_time = job->plan.budget > 0 && job->plan.deadline_s <= 0;
  p->cheapest = least(p, cost_of, time_of, true);
  p->fastest = least(p, time_of, cost_of, true);
  p->choice = by_time ? least(p, time_of, cost_of, false) : least(p, cost_of, time_of, false);
  if (p->choice == p->ncandidates) return none_fits(p);
  p->slurm_s = slurm_time(p);
  if (!any_factor(p)) gt_planner_note(p, "accuracy is not predicted: candidates are compared at equal samples (plan.samples_factor)");
  note_samples(p);
  note_sets(p);
  note_part(p);
  note_links(p);
  note_prices(p);
  note_assumed(p);
  return GT_OK;
}
