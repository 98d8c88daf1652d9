/* Makes a plan: the job, its prices, the pools of devices, the candidates with a set each, the
   choice, and notes on the figures: assumptions, unknown values, limits of the prediction. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "geotrain/ps_work_time.h"
#include "internal.h"

/* per simulation, divided by the number of candidates, so that all simulations together take
   seconds */
#define EVENTS     3000000
#define EVENTS_MIN 200000
#define SETS_MOST  100000
#define MINUTE     60.0
#define FIRST      8 /* initial room, in notes */

/* ---- pools ----------------------------------------------------------------------------------- */

/* True if the region keeps its workers: they are described one by one, or without devices. */
static bool is_fixed(const gt_job_region *r) {
  return r->ndevices == 0 || r->nspeeds > 0 || r->nmeasured > 0;
}

static gt_status check_devices(const gt_job *job, size_t region) {
  const gt_job_region *r = &job->regions[region];
  int64_t devices = 0;
  for (size_t d = 0; d < r->ndevices; d++) {
    devices += r->devices[d].count;
    if (r->devices[d].count > 0 && gt_job_device_power(job, region, d) <= 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: regions.%zu.devices.%zu (%s of %s) has no power, which `geotrain plan` "
                     "requires; expected it here, or in compute or a profile",
                     job->name, region, d, r->devices[d].type, r->name);
  }
  if (devices == 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: regions.%zu (%s) has no device: all counts are 0; expected at least one device",
        job->name, region, r->name);
  if (r->ranks_min > devices)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.ranks_min is %d and its devices are %" PRId64
                   "; ranks_min must be at most their number",
                   job->name, region, r->ranks_min, devices);
  return GT_OK;
}

static gt_status make_pools(gt_planner *p) {
  p->pools = GT_NEW_ARRAY(gt_planner_pool, p->job->nregions);
  for (size_t r = 0; r < p->job->nregions; r++) {
    const gt_job_region *region = &p->job->regions[r];
    bool fixed = is_fixed(region);
    if (!fixed) GT_TRY(check_devices(p->job, r));
    p->pools[r] =
        (gt_planner_pool){.first = p->ncounts, .n = fixed ? 1 : region->ndevices, .fixed = fixed};
    p->ncounts += p->pools[r].n;
  }
  return GT_OK;
}

/* ---- prices ---------------------------------------------------------------------------------- */

static gt_status find_prices(gt_planner *p) {
  GT_TRY(gt_job_prices_of(&p->prices, p->job));
  if (p->job->plan.budget <= 0) return GT_OK;
  if (!p->prices.known)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: plan.budget is %g USD and no price is known; expected regions[].place, "
                   "price and ps_price, or devices[].price",
                   p->job->name, p->job->plan.budget);
  if (p->prices.nmissing > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: plan.budget is %g USD and the price of %s is not known; expected "
                   "regions[].place, or prices of its own",
                   p->job->name, p->job->plan.budget, p->prices.missing[0]);
  return GT_OK;
}

/* ---- the choice -------------------------------------------------------------------------------
   */

static const gt_planner_outcome *expected(const gt_planner_candidate *c) {
  return &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED];
}

static double time_of(const gt_planner *p, const gt_planner_candidate *c) {
  (void)p;
  return expected(c)->figures.wall_s;
}

static double cost_of(const gt_planner *p, const gt_planner_candidate *c) {
  return gt_planner_cost(p, expected(c));
}

static double bytes_of(const gt_planner *p, const gt_planner_candidate *c) {
  (void)p;
  return expected(c)->figures.wan_bytes;
}

typedef double (*value_of)(const gt_planner *, const gt_planner_candidate *);

static bool is_better(const gt_planner *p, const gt_planner_candidate *a,
                      const gt_planner_candidate *b, value_of first, value_of second) {
  const value_of all[] = {first, second, bytes_of};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i](p, a) != all[i](p, b)) return all[i](p, a) < all[i](p, b);
  return false;
}

/* Returns the candidate with the least `first` (ties: `second`, then bytes on the WAN, then the
   order) among those that fit, or among all; ncandidates: none. */
static size_t least(const gt_planner *p, value_of first, value_of second, bool all) {
  size_t best = p->ncandidates;
  for (size_t i = 0; i < p->ncandidates; i++) {
    const gt_planner_candidate *c = &p->candidates[i];
    if (!c->fits && !all) continue;
    if (best == p->ncandidates || is_better(p, c, &p->candidates[best], first, second)) best = i;
  }
  return best;
}

/* Reports why the closest candidate does not fit. */
static gt_status none_fits(const gt_planner *p) {
  bool by_cost = p->job->plan.deadline_s <= 0 && p->job->plan.budget > 0;
  const gt_planner_candidate *c =
      &p->candidates[least(p, by_cost ? cost_of : time_of, by_cost ? time_of : cost_of, true)];
  if (p->ncandidates == 1)
    return GT_FAIL(GT_ERR_JOB, "%s: %s is not feasible: %s", p->job->name, c->label, c->why);
  return GT_FAIL(GT_ERR_JOB, "%s: none of %zu candidates is feasible; the %s one is %s: %s",
                 p->job->name, p->ncandidates, by_cost ? "cheapest" : "fastest", c->label, c->why);
}

/* Returns the time limit.  Slurm sends the stop signal signal_before ahead of it, so that it
   includes that time after the run. */
static double slurm_time(const gt_planner *p) {
  const gt_job *job = p->job;
  double s = job->plan.start_s +
             gt_planner_proposed(&p->candidates[p->choice])->at[GT_PLANNER_HIGH].figures.wall_s +
             job->slurm.signal_before_s + fmax(0, p->faults.wall_s - p->faults.undisturbed_s);
  s = ceil(s / job->plan.billing_s - 1e-9) * job->plan.billing_s;
  return ceil(s / MINUTE - 1e-9) * MINUTE;
}

gt_status gt_planner_choose(gt_planner *p) {
  const gt_job *job = p->job;
  bool by_time = job->plan.budget > 0 && job->plan.deadline_s <= 0;
  p->cheapest = least(p, cost_of, time_of, true);
  p->fastest = least(p, time_of, cost_of, true);
  p->choice = by_time ? least(p, time_of, cost_of, false) : least(p, cost_of, time_of, false);
  if (p->choice == p->ncandidates) return none_fits(p);
  GT_TRY(gt_planner_disturb(p));
  p->slurm_s = slurm_time(p);
  return GT_OK;
}

/* ---- notes ------------------------------------------------------------------------------------
   */

/* Adds a sentence to the notes. */
__attribute__((format(printf, 2, 3))) static void note(gt_planner *p, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  GT_GROW(p->notes, p->nnotes, p->notes_room, FIRST);
  p->notes[p->nnotes++] = gt_strdup(text);
}

static void note_prices(gt_planner *p) {
  char list[512] = "";
  size_t at = 0, shown = 0;
  if (!p->prices.known)
    note(p, "no price is known (regions[].place, price, ps_price, devices[].price): cost is in "
            "machine hours");
  for (; shown < p->prices.nmissing && shown < 8 && at < sizeof list - 80; shown++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s%.60s", shown ? ", " : "",
                           p->prices.missing[shown]);
  if (shown > 0)
    note(p, "unknown prices count as 0: %s%s", list,
         shown < p->prices.nmissing ? ", and others" : "");
  for (size_t r = 0; r < p->prices.nregions; r++)
    if (p->prices.regions[r].has_place) {
      note(p, "cost is rates times use, not a bill; rates of places are those of %s",
           p->job->plan.catalogue ? p->job->plan.catalogue : "geotrain's own catalogue");
      return;
    }
}

static bool any_factor(const gt_planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++)
    if (p->candidates[i].factor != 1) return true;
  return false;
}

static void note_samples(gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  int64_t all = c->everything.at[GT_PLANNER_EXPECTED].samples, set = expected(c)->samples;
  if (p->shape.assumed)
    note(p, "no data set found: samples are those of regions[].samples, and nothing is evaluated");
  if (p->job->sync.local == GT_LOCAL_SYNC && p->job->train.until.steps > 0 && !c->whole)
    note(p,
         "until steps: fewer workers make more steps, for as many samples: %" PRId64
         ", with everything everywhere %" PRId64,
         set, all);
}

static void note_part(gt_planner *p) {
  const gt_planner_outcome *o = expected(&p->candidates[p->choice]);
  if (o->part < 1)
    note(p,
         "%.2g of the training was simulated and the rest extrapolated; error of the expected "
         "time: up to %.2g s%s%s",
         o->part, o->error_s, o->why != GT_SIM_KNOWN ? ": " : "", gt_sim_doubt_text(o->why));
}

static void note_links(gt_planner *p) {
  for (size_t i = 0; i < p->job->wan.nlinks; i++)
    if (p->job->wan.links[i].trace) {
      note(p, "links with a trace have its rates in all three cases");
      return;
    }
}

static void note_gap(gt_planner *p, const gt_planner_candidate *c) {
  const char *better =
      p->job->plan.budget > 0 && p->job->plan.deadline_s <= 0 ? "faster" : "cheaper";
  if (c->exact) return;
  if (isnan(c->gap))
    note(p, "the set is the best of %" PRId64 " that were simulated; others are not ruled out",
         c->sets);
  else
    note(p,
         "the set is the best of %" PRId64
         " that were simulated; none can be %s by more than %.2g %%",
         c->sets, better, 100 * c->gap);
}

static void note_sets(gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  const gt_job *job = p->job;
  for (size_t r = 0; r < job->nregions && job->nregions <= 16; r++) {
    if (p->pools[r].fixed && job->regions[r].ndevices > 0)
      note(p, "%s keeps its ranks: compute describes its workers one by one", job->regions[r].name);
    if (c->wan_bound[r] && !p->pools[r].fixed && !c->whole)
      note(p,
           "%s: with all its devices it would wait for the WAN; devices beyond the WAN's pace gain "
           "nothing",
           job->regions[r].name);
  }
  if (c->adjusted > 0)
    note(p,
         "%d smaller set%s met the limits in the planner's model, but not in simulation; the one "
         "shown does",
         c->adjusted, c->adjusted == 1 ? "" : "s");
  note_gap(p, c);
}

static void note_topology(gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  char text[512];
  if (!gt_topology_has(p->job->sync.topology, GT_CHOSEN)) return;
  gt_topology_choice_text(&c->topology, p->job, text, sizeof text);
  note(p, "sync.topology auto, with %s: %s", c->label, text);
}

static void note_assumed(gt_planner *p) {
  for (size_t r = 0; r < p->prices.nregions; r++) {
    const gt_job_region_prices *prices = &p->prices.regions[r];
    const gt_job_region *region = &p->job->regions[r];
    bool machine = false;
    for (size_t d = 0; d < region->ndevices; d++)
      machine |= region->devices[d].price < 0 && region->price < 0 && prices->devices[d].usd >= 0;
    if (!machine) continue;
    note(p,
         "* devices without their own price have that of the catalogue's machine at their place");
    return;
  }
}

/* Names the pairs of a strategy and a codec that are no candidates. */
static void note_skipped(gt_planner *p) {
  const gt_job *job = p->job;
  for (size_t i = 0; i < job->plan.nstrategies * job->plan.ncodecs; i++) {
    const gt_strategy strategy = job->plan.strategies[i / job->plan.ncodecs];
    const gt_codec_kind codec = job->plan.codecs[i % job->plan.ncodecs];
    const char *why = gt_job_unsound_codec(job, strategy, codec, job->sync.topology);
    if (why)
      note(p, "no candidate has strategy %s and codec %s: %s", gt_strategy_names[strategy],
           gt_codec_names[codec], why);
  }
}

static void note_faults(gt_planner *p) {
  const gt_job *job = p->job;
  const gt_planner_faults *f = &p->faults;
  if (job->nfaults == 0) return;
  if (f->endless)
    note(p, "with faults the run never ends: it falls back to the same checkpoint again and again; "
            "expected checkpoint.every to be shorter");
  else if (!f->known)
    note(p, "faults are in no figure: the run has too many events for a plan; geotrain simulate "
            "has them");
  else if (f->code != GT_OK)
    note(p, "with faults the run ends with %d, because a lost region does not return", f->code);
  else if (job->plan.deadline_s > 0 && job->plan.start_s + f->wall_s > job->plan.deadline_s)
    note(p, "with faults the run ends after plan.deadline");
  note(p, "a job written by --write has no faults");
}

static void add_notes(gt_planner *p) {
  if (!any_factor(p))
    note(p, "accuracy is not predicted: candidates are compared at equal samples "
            "(plan.samples_factor)");
  note_skipped(p);
  note_samples(p);
  note_sets(p);
  note_topology(p);
  note_part(p);
  note_faults(p);
  note_links(p);
  note_prices(p);
  note_assumed(p);
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status open_parts(gt_planner *p) {
  const gt_planner_options *o = &p->options;
  GT_TRY(gt_job_load_regions(&p->job, o->job_path, o->sets, o->nsets, o->regions_csv));
  GT_TRY(make_pools(p));
  GT_TRY(gt_cost_check(p->job, "to plan"));
  GT_TRY(find_prices(p));
  GT_TRY(gt_planner_list_candidates(p, gt_planner_axes));
  p->max_events = EVENTS / (int64_t)p->ncandidates;
  if (p->max_events < EVENTS_MIN) p->max_events = EVENTS_MIN;
  GT_TRY(gt_sim_shape_of(&p->shape, p->job));
  return gt_planner_open_candidates(p);
}

gt_status gt_planner_open(gt_planner **out, const gt_planner_options *options) {
  gt_planner *p = GT_NEW(gt_planner);
  *p = (gt_planner){.options = *options, .sets_most = SETS_MOST};
  *out = NULL;
  gt_status status = open_parts(p);
  if (status == GT_OK)
    *out = p;
  else
    gt_planner_close(p);
  return status;
}

static gt_status plan(gt_planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++) {
    gt_progress_part("candidate %zu of %zu (%s): ", i + 1, p->ncandidates, p->candidates[i].label);
    GT_TRY(gt_planner_find(p, &p->candidates[i]));
  }
  GT_TRY(gt_planner_choose(p));
  add_notes(p);
  return GT_OK;
}

gt_status gt_planner_make(gt_planner **out, const gt_planner_options *options) {
  GT_TRY(gt_planner_open(out, options));
  gt_status status = plan(*out);
  if (status == GT_OK) return GT_OK;
  gt_planner_close(*out);
  *out = NULL;
  return status;
}

static void close_texts(char **texts, size_t n) {
  for (size_t i = 0; i < n; i++) gt_free(texts[i]);
  gt_free(texts);
}

static void close_candidate(gt_planner_candidate *c) {
  gt_planner_set_close(&c->everything);
  gt_planner_set_close(&c->set);
  gt_topology_choice_close(&c->topology);
  gt_free(c->wan_bound);
  close_texts(c->overrides, c->noverrides);
  gt_free(c->label);
}

void gt_planner_close(gt_planner *p) {
  if (!p) return;
  for (size_t i = 0; i < p->ncandidates; i++) close_candidate(&p->candidates[i]);
  close_texts(p->notes, p->nnotes);
  gt_plan_job_cost_close(&p->faults.cost);
  gt_free(p->candidates);
  gt_free(p->pools);
  gt_job_prices_close(&p->prices);
  gt_sim_shape_close(&p->shape);
  gt_job_close(p->job);
  gt_free(p);
}
