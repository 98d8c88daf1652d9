/* Faults of a simulation: regions are lost and start again, links are cut.

   Others notice the loss of a region, or a cut, after limits.wan_patience, or when the region has
   started again.  With sync.on_loss continue, members then change (docs/membership.md).  A region
   that starts again has its newest checkpoint and asks to return; one that the others have excluded
   ends with 75 and starts again.  With stop, the run ends, and all regions resume it from the
   newest whole round when they have started again; also with continue if no member is left.  When
   all regions have finished their training, no fault follows. */
#include "internal.h"

#define FALLS 100 /* a run that falls back to one round so often never ends */

/* Consequences of faults, in this order at equal times. */
enum { HEAL, BACK, NOTICE_OF, NOTICE_BY, NOTICE_CUT };

static void expect(gt_sim *sim, gt_ns at, uint32_t what, size_t of) {
  if (at == GT_NEVER) return;
  gt_heap_push(
      &sim->faults->due,
      (gt_heap_entry){.at = at, .key = (uint64_t)what << 32 | of, .a = (uint32_t)of, .b = what});
}

/* Begins an event of the region outside gt_sim_step. */
static gt_ns begin(sim_region *r, gt_ns now) {
  gt_timeline_begin(r->timeline, &(gt_event){.at = now, .kind = GT_EVENT_TICK});
  return gt_timeline_now(r->timeline);
}

static bool is_inside(const sim_region *r) {
  return !r->away && !r->outside;
}

/* Counts the outcome of the region's last loss. */
static void conclude_loss(sim_region *r, int64_t *outcome) {
  *outcome += r->open;
  r->open = false;
}

static gt_ps_view view_of(const sim_region *r) {
  gt_ps_view v;
  gt_ps_get_view(r->ps, 0, &v);
  return v;
}

/* Returns the samples that this start of the region and its checkpoint have trained. */
static int64_t trained(const sim_region *r) {
  const gt_ps_view v = view_of(r);
  return v.samples - v.moved_samples;
}

static void reopen(sim_region *r, const sim_copy *copy, int64_t round, bool returns, gt_ns now) {
  const int64_t before = trained(r);
  gt_sim_reopen(r, copy, round, returns, now);
  r->sim->faults->found.repeated += before - trained(r);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* True if a cut between the regions that began at `since` or before is in progress. */
static bool is_cut(const gt_sim *sim, size_t a, size_t b, gt_ns now, gt_ns since) {
  const sim_faults *f = sim->faults;
  for (size_t i = 0; i < f->ncuts; i++)
    if (((f->cuts[i].a == a && f->cuts[i].b == b) || (f->cuts[i].a == b && f->cuts[i].b == a)) &&
        f->cuts[i].until > now && f->cuts[i].from <= since)
      return true;
  return false;
}

static void join(gt_sim *sim, size_t a, size_t b, gt_ns now) {
  const bool cut = sim->regions[a].away || sim->regions[b].away || is_cut(sim, a, b, now, GT_NEVER);
  gt_sim_wire_cut(&sim->regions[a], b, cut);
  gt_sim_wire_cut(&sim->regions[b], a, cut);
}

/* Connects the region again with one that is not away. */
static void connect(gt_sim *sim, size_t a, size_t b, gt_ns now) {
  sim->regions[a].wires[b].down = sim->regions[b].wires[a].down = false;
  join(sim, a, b, now);
}

/* The region's processes have ended. */
static void halt(sim_region *r, gt_ns now, gt_ns back) {
  gt_sim *sim = r->sim;
  r->away = true;
  r->refused = r->stops = false;
  r->died = now;
  r->back = back;
  gt_sim_copy_void(r, INT64_MAX);
  gt_sim_arrivals_clear(r);
  for (size_t p = 0; p < sim->n; p++) {
    if (p == r->id) continue;
    gt_sim_wire_clear(r, p);
    join(sim, r->id, p, now);
  }
  gt_sim_agenda_set(&sim->agenda, r->id, GT_NEVER);
}

static void lose(sim_region *r, gt_ns now, gt_ns back) {
  gt_sim *sim = r->sim;
  conclude_loss(r, &sim->faults->found.again);
  r->open = true;
  sim->faults->found.losses++;
  expect(sim, back, BACK, r->id);
  if (r->away) {
    if (back > r->back) r->back = back;
    return;
  }
  halt(r, now, back);
  expect(sim, now + sim->faults->patience, NOTICE_OF, r->id);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void drop(sim_region *r, int64_t *outcome) {
  conclude_loss(r, outcome);
  gt_sim_end_result(r);
  r->away = r->ended = true;
  r->sim->nended++;
  gt_sim_agenda_set(&r->sim->agenda, r->id, GT_NEVER);
}

static void count_away(sim_region *r, gt_ns now) {
  if (r->away) r->sim->faults->found.away_s += gt_seconds(now - r->died);
}

/* No region can continue or resume the run. */
static void end_run(gt_sim *sim, gt_status code, gt_ns now) {
  sim->code = code;
  sim->complete = now;
  gt_timeline_restart(sim->regions[sim->lead].timeline, now);
  for (size_t r = 0; r < sim->n; r++) {
    count_away(&sim->regions[r], now);
    drop(&sim->regions[r], &sim->faults->found.away);
  }
}

/* True if all regions that take part have finished their training, in the same epoch. */
static bool is_finished(const gt_sim *sim) {
  size_t members = 0;
  const sim_region *any = NULL;
  for (size_t i = 0; i < sim->n; i++) {
    const sim_region *r = &sim->regions[i];
    if (!is_inside(r)) continue;
    if (!r->complete || r->entering || r->minority || r->out) return false;
    any = r;
    members++;
  }
  for (size_t i = 0; any && i < sim->n; i++)
    if (!is_inside(&sim->regions[i]) && gt_ps_is_member(any->ps, i)) return false;
  return members > 0;
}

static void begin_ending(gt_sim *sim, gt_ns now) {
  size_t members = 0;
  sim->ending = true;
  sim->lead = sim->n;
  for (size_t i = 0; i < sim->n; i++) {
    sim_region *r = &sim->regions[i];
    count_away(r, now);
    if (is_inside(r) && sim->lead == sim->n) sim->lead = i;
    members += is_inside(r);
    if (!is_inside(r)) drop(r, r->away ? &sim->faults->found.away : &sim->faults->found.refused);
  }
  for (size_t i = 0; i < sim->n; i++) {
    sim_region *r = &sim->regions[i];
    if (r->away) continue;
    conclude_loss(r, &sim->faults->found.returned);
    r->ending.lead = i == sim->lead;
    r->ending.others = members - 1;
    begin(r, now);
    gt_sim_settle(r);
  }
}

/* ---- resuming -------------------------------------------------------------------------------- */

static const sim_copy *copy_or_none(const sim_region *r, int64_t round) {
  return round > 0 ? gt_sim_copy_of(r, round) : NULL;
}

/* True if all members of the copy's epoch have its round; writes them. */
static bool is_whole(const gt_sim *sim, const sim_copy *copy, bool *members) {
  for (size_t r = 0; r < sim->n; r++) members[r] = true;
  if (sim->faults->continues && gt_state_flags((gt_state_direction){.from = &copy->state},
                                               "ps/epoch/", "members", members, sim->n) != GT_OK)
    gt_bug("in a simulation: %s", gt_error_text());
  for (size_t r = 0; r < sim->n; r++)
    if (members[r] && !copy_or_none(&sim->regions[r], copy->round)) return false;
  return true;
}

/* Returns the newest whole round; 0: none, and all regions begin again. */
static int64_t find_whole(gt_sim *sim, bool *members) {
  bool *set = GT_NEW_ARRAY(bool, sim->n);
  int64_t whole = 0;
  for (size_t r = 0; r < sim->n; r++) members[r] = true;
  for (size_t r = 0; r < sim->n; r++)
    for (size_t i = 0; i < sizeof sim->regions[r].copies / sizeof(sim_copy); i++) {
      const sim_copy *c = &sim->regions[r].copies[i];
      if (!c->durable || c->unfit || c->round <= whole || !is_whole(sim, c, set)) continue;
      whole = c->round;
      for (size_t k = 0; k < sim->n; k++) members[k] = set[k];
    }
  gt_free(set);
  return whole;
}

static void join_resumed(gt_sim *sim, gt_ns now) {
  for (size_t a = 0; a < sim->n; a++)
    for (size_t b = 0; b < a; b++)
      if (sim->faults->resumes[a] || sim->faults->resumes[b]) connect(sim, a, b, now);
}

/* Resumes the run when all of its regions have started again and can reach each other. */
static void resume(gt_sim *sim, gt_ns now) {
  sim_faults *f = sim->faults;
  for (size_t r = 0; r < sim->n; r++) {
    if (!f->resumes[r]) continue;
    if (sim->regions[r].back == GT_NEVER) {
      end_run(sim, GT_ERR_LOST, now);
      return;
    }
    if (sim->regions[r].back > now) return;
  }
  for (size_t i = 0; i < f->ncuts; i++)
    if (f->cuts[i].until > now) return;
  f->resuming = false;
  f->found.resumes++;
  for (size_t r = 0; r < sim->n; r++) {
    sim_region *region = &sim->regions[r];
    if (!f->resumes[r]) continue;
    count_away(region, now);
    conclude_loss(region, &sim->faults->found.resumed);
    region->away = region->outside = false;
    region->since = now;
    gt_timeline_restart(region->timeline, now);
    region->split.since = now;
  }
  join_resumed(sim, now);
  for (size_t r = 0; r < sim->n; r++)
    if (f->resumes[r]) gt_sim_start(&sim->regions[r], now);
}

/* Ends the run in all its regions, which go back to the newest whole round. */
static void fall_back(gt_sim *sim, gt_ns now) {
  sim_faults *f = sim->faults;
  if (f->resuming) return;
  f->resuming = true;
  const int64_t whole = find_whole(sim, f->resumes);
  int64_t newest = 0;
  f->falls = whole > f->fell_to ? 1 : f->falls + 1;
  f->fell_to = whole;
  for (size_t r = 0; r < sim->n; r++) {
    const sim_copy *c = f->resumes[r] ? gt_sim_copy_newest(&sim->regions[r]) : NULL;
    if (c && c->round > newest) newest = c->round;
  }
  for (size_t r = 0; r < sim->n; r++)
    if (f->resumes[r] && !sim->regions[r].away) halt(&sim->regions[r], now, now);
  join_resumed(sim, now); /* before their PSs send what was not acknowledged */
  for (size_t r = 0; r < sim->n; r++) {
    sim_region *region = &sim->regions[r];
    if (!f->resumes[r]) continue;
    gt_sim_copy_void(region, whole);
    reopen(region, copy_or_none(region, whole), newest, false, now);
  }
  resume(sim, now);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* True if the regions that are there, or come back, are a majority. */
static bool can_be_majority(const gt_sim *sim) {
  bool *there = GT_NEW_ARRAY(bool, sim->n);
  for (size_t r = 0; r < sim->n; r++)
    there[r] = !sim->regions[r].away || sim->regions[r].back != GT_NEVER;
  const bool majority = gt_ps_is_majority(sim->regions[0].ps, there);
  gt_free(there);
  return majority;
}

/* True if a region that is not a member now can become one without a further fault. */
static bool can_return(const gt_sim *sim, gt_ns now) {
  const sim_faults *f = sim->faults;
  for (size_t r = 0; r < sim->n; r++)
    if (sim->regions[r].away ? sim->regions[r].back != GT_NEVER : sim->regions[r].outside)
      return true;
  for (size_t i = 0; i < f->ncuts; i++)
    if (f->cuts[i].until > now) return true;
  return false;
}

/* Acts if no member is left, or only members without a majority, or a region for which the others
   wait does not come back. */
static void review(gt_sim *sim, gt_ns now) {
  const sim_region *first = NULL; /* the decider */
  if (gt_sim_over(sim)) return;
  if (sim->faults->resuming) resume(sim, now);
  if (!sim->faults->continues || sim->faults->resuming || gt_sim_over(sim)) return;
  for (size_t r = 0; r < sim->n && !first; r++)
    if (is_inside(&sim->regions[r])) first = &sim->regions[r];
  if (!first)
    fall_back(sim, now);
  else if (first->minority && (!can_return(sim, now) || !can_be_majority(sim)))
    end_run(sim, GT_STOPPED, now);
}

/* Returns when all cuts of the region have ended. */
static gt_ns healed(const gt_sim *sim, size_t region, gt_ns now) {
  const sim_faults *f = sim->faults;
  gt_ns at = now + 1;
  for (size_t i = 0; i < f->ncuts; i++)
    if ((f->cuts[i].a == region || f->cuts[i].b == region) && f->cuts[i].until > at)
      at = f->cuts[i].until;
  return at;
}

/* Ends every event of a region. */
static void look_after(sim_region *r, gt_ns now) {
  gt_sim *sim = r->sim;
  if (r->away) return;
  if (r->out || (r->stops && r->minority)) {
    gt_ps_stop(r->ps, GT_STOPPED, gt_timeline_now(r->timeline));
    gt_sim_settle(r);
  }
  if (r->refused) {
    conclude_loss(r, &sim->faults->found.refused);
    halt(r, now, GT_NEVER);
    expect(sim, now + sim->faults->patience, NOTICE_OF, r->id);
  } else if (r->stopped) {
    sim->faults->found.ended++;
    lose(r, now, healed(sim, r->id, now));
  } else if (r->minority && !r->stops) {
    review(sim, now);
  }
  if (r->away) review(sim, now);
  if (!r->outside && !r->away) conclude_loss(r, &sim->faults->found.returned);
  if (r->complete && !r->away && is_finished(sim)) begin_ending(sim, now);
}

/* The region notices that it has lost another one. */
static void notice(sim_region *by, size_t of, gt_ns now) {
  if (by->away || by->wires[of].down) return;
  gt_sim_wire_clear(by, of);
  by->wires[of].down = true;
  gt_ps_lost(by->ps, of, begin(by, now));
  gt_sim_settle(by);
  look_after(by, now);
}

static void notice_of(gt_sim *sim, size_t of, gt_ns now) {
  const sim_region *lost = &sim->regions[of];
  if (!lost->away || lost->died + sim->faults->patience != now) return;
  if (!sim->faults->continues) {
    fall_back(sim, now);
    return;
  }
  for (size_t r = 0; r < sim->n && !gt_sim_over(sim); r++)
    if (r != of && sim->regions[r].since <= lost->died) notice(&sim->regions[r], of, now);
}

/* A region that has started notices those that it has not reached since. */
static void notice_by(gt_sim *sim, size_t by, gt_ns now) {
  sim_region *r = &sim->regions[by];
  if (r->since + sim->faults->patience != now) return;
  for (size_t p = 0; p < sim->n && !r->away; p++) {
    sim_region *other = &sim->regions[p];
    if (p == by || (other->away ? other->died > r->since : !is_cut(sim, by, p, now, r->since)))
      continue;
    notice(r, p, now);
    notice(other, by, now);
  }
}

static void notice_cut(gt_sim *sim, size_t i, gt_ns now) {
  const size_t a = sim->faults->cuts[i].a, b = sim->faults->cuts[i].b;
  if (!sim->faults->continues) {
    fall_back(sim, now);
    return;
  }
  notice(&sim->regions[a], b, now);
  notice(&sim->regions[b], a, now);
}

/* ---- returns --------------------------------------------------------------------------------- */

/* The region asks the others to take it in. */
static void come_back(sim_region *r, gt_ns now) {
  gt_sim *sim = r->sim;
  const sim_copy *copy = gt_sim_copy_newest(r);
  for (size_t p = 0; p < sim->n && !gt_sim_over(sim); p++)
    if (p != r->id) notice(&sim->regions[p], r->id, now);
  if (gt_sim_over(sim) || sim->ending) return;
  reopen(r, copy, copy ? copy->round : 0, true, now);
  count_away(r, now);
  r->away = false;
  r->outside = true;
  r->since = now;
  for (size_t p = 0; p < sim->n; p++)
    if (p != r->id) connect(sim, r->id, p, now);
  gt_sim_start(r, now);
  expect(sim, now + sim->faults->patience, NOTICE_BY, r->id);
}

static void back(gt_sim *sim, size_t region, gt_ns now) {
  sim_region *r = &sim->regions[region];
  sim_faults *f = sim->faults;
  if (!r->away || r->back != now) return;
  if (!f->continues) fall_back(sim, now); /* the others have waited for the one that was lost */
  if (!r->away || gt_sim_over(sim)) return;
  if (!f->resuming || !f->resumes[region])
    come_back(r, now);
  else
    resume(sim, now);
}

static void heal(gt_sim *sim, size_t i, gt_ns now) {
  const size_t ends[] = {sim->faults->cuts[i].a, sim->faults->cuts[i].b};
  join(sim, ends[0], ends[1], now);
  for (size_t k = 0; k < 2; k++) {
    sim_region *r = &sim->regions[ends[k]];
    if (r->away) continue;
    r->stops = r->wires[ends[1 - k]].down;
    begin(r, now);
    gt_sim_settle(r);
    look_after(r, now);
  }
  if (sim->faults->resuming) resume(sim, now);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void cut(gt_sim *sim, const gt_fault *fault) {
  sim_faults *f = sim->faults;
  const size_t i = f->ncuts;
  GT_GROW(f->cuts, f->ncuts, f->cuts_capacity, 8);
  f->cuts[i].a = fault->a;
  f->cuts[i].b = fault->b;
  f->cuts[i].from = fault->at;
  f->cuts[i].until = fault->until;
  f->ncuts++;
  f->found.cuts++;
  join(sim, fault->a, fault->b, fault->at);
  if (fault->until > fault->at + f->patience) expect(sim, fault->at + f->patience, NOTICE_CUT, i);
  expect(sim, fault->until, HEAL, i);
}

static void strike(gt_sim *sim) {
  const gt_fault fault = gt_faults_take(sim->faults->next);
  size_t region = fault.a;
  if (fault.kind == GT_FAULT_CUT) {
    cut(sim, &fault);
    return;
  }
  for (size_t r = 0; region == sim->n && r < sim->n; r++)
    if (!sim->regions[r].away) region = r;
  if (region == sim->n) return;
  lose(&sim->regions[region], fault.at, fault.until);
  review(sim, fault.at);
}

static void follow_up(gt_sim *sim) {
  const gt_heap_entry e = gt_heap_pop(&sim->faults->due);
  switch (e.b) {
  case HEAL:
    heal(sim, e.a, e.at);
    break;
  case BACK:
    back(sim, e.a, e.at);
    break;
  case NOTICE_OF:
    notice_of(sim, e.a, e.at);
    break;
  case NOTICE_BY:
    notice_by(sim, e.a, e.at);
    break;
  default:
    notice_cut(sim, e.a, e.at);
    break;
  }
}

gt_status gt_sim_advance(gt_sim *sim, size_t *region) {
  sim_faults *f = sim->faults;
  if (!f || sim->ending) return gt_sim_step(sim, region);
  const gt_ns event = sim->agenda.at[gt_sim_agenda_first(&sim->agenda)],
              due = f->due.n > 0 ? f->due.at[0].at : GT_NEVER, next = gt_faults_due(f->next);
  *region = SIM_NONE;
  if (f->falls > FALLS)
    return GT_FAIL(GT_ERR_LIMIT,
                   "at %.0f s of simulated time the run has fallen back to %s %d times in a row; "
                   "expected a checkpoint more often (checkpoint.every), or fewer faults",
                   gt_seconds(sim->moved), f->fell_to > 0 ? "one checkpoint" : "its beginning",
                   FALLS);
  if (event < due && event < next) {
    GT_TRY(gt_sim_step(sim, region));
    sim_region *r = &sim->regions[*region];
    look_after(r, gt_timeline_at(r->timeline));
    return GT_OK;
  }
  if (next < due)
    strike(sim);
  else if (due < GT_NEVER)
    follow_up(sim);
  else
    return gt_sim_step(sim, region);
  return GT_OK;
}

gt_fault_result gt_sim_faults_of(const gt_sim *sim) {
  if (!sim->faults) return (gt_fault_result){0};
  gt_fault_result found = sim->faults->found;
  for (size_t r = 0; r < sim->n; r++) found.repeated -= view_of(&sim->regions[r]).moved_samples;
  return found;
}
