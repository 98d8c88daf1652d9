/* Notes about the figures of the choice: what is assumed, unknown, or not predicted. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

#define FIRST 8 /* initial room, in notes */

/* Adds a sentence after the table. */
__attribute__((format(printf, 2, 3))) static void note(gt_planner *p, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  GT_GROW(p->notes, p->nnotes, p->notes_room, FIRST);
  p->notes[p->nnotes++] = gt_strdup(text);
}

static const gt_planner_outcome *expected(const gt_planner_candidate *c) {
  return &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED];
}

static void note_prices(gt_planner *p) {
  char list[512] = "";
  size_t at = 0, shown = 0;
  if (!p->prices.known)
    note(p, "no price is known (regions[].place, price, ps_price, devices[].price): machine hours "
            "stand for cost");
  for (; shown < p->prices.nmissing && shown < 8 && at < sizeof list - 80; shown++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s%.60s", shown ? ", " : "",
                           p->prices.missing[shown]);
  if (shown > 0)
    note(p, "prices that are not known count as 0: %s%s", list,
         shown < p->prices.nmissing ? ", and others" : "");
  for (size_t r = 0; r < p->prices.nregions; r++)
    if (p->prices.regions[r].has_place) {
      note(p, "cost is rates times use, not a bill; rates of places are those of %s",
           p->job->plan.catalogue ? p->job->plan.catalogue
                                  : "the catalogue that geotrain comes with");
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
    note(p, "no data set is at hand: regions hold what regions[].samples say, and nothing is "
            "evaluated");
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
         "%.2g of the training was simulated and the rest follows from it; the expected time may "
         "be off by %.2g s for that%s%s",
         o->part, o->error_s, o->why != GT_SIM_KNOWN ? ": " : "", gt_sim_doubt_text(o->why));
}

static void note_links(gt_planner *p) {
  for (size_t i = 0; i < p->job->wan.nlinks; i++)
    if (p->job->wan.links[i].trace) {
      note(p, "links with a trace are as the trace says in every case");
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
           "%s: everything everywhere would wait for the WAN there, so that a set beyond the WAN's "
           "pace gains nothing",
           job->regions[r].name);
  }
  if (c->adjusted > 0)
    note(p,
         "%d smaller set%s, good enough by the planner's model, missed in simulation; the one "
         "shown holds",
         c->adjusted, c->adjusted == 1 ? "" : "s");
  note_gap(p, c);
}

static void note_topology(gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  char text[512];
  if (!c->chosen || p->job->sync.topology == GT_TOPOLOGY_TREE) return;
  gt_wiring_choice_text(&c->topology, p->job, text, sizeof text);
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
    note(p, "* devices without a price of their own are paid for as the catalogue's machine of "
            "their place");
    return;
  }
}

void gt_planner_add_notes(gt_planner *p) {
  if (!any_factor(p))
    note(p, "accuracy is not predicted: candidates are compared at equal samples "
            "(plan.samples_factor)");
  note_samples(p);
  note_sets(p);
  note_topology(p);
  note_part(p);
  note_links(p);
  note_prices(p);
  note_assumed(p);
}
