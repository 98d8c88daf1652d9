/* Regions without workers, which only aggregate: runs end, nothing is lost or duplicated, all have
   the same model, with the bits of the other regions alone; over stops, crashes, extended trainings
   and limits of bytes. */
#include "cases.h"
#include "world.h"
#include "../strategies.h"

/* Makes a spec whose last one or two regions only aggregate.  hub: the last is the hub; otherwise
   topology and positions are random, without sync.central. */
static w_spec some_aggregate(const char *strategy, bool async, uint64_t seed, bool hub) {
  w_spec s = w_random(strategy, async, 2 + seed % (W_REGIONS - 1), seed);
  const size_t idle = s.nregions > 2 ? 1 + seed / 7 % 2 : 1;
  if (hub) {
    s.topology = GT_TOPOLOGY_HUB;
    for (size_t i = 0; i < s.nregions; i++) s.next[i] = s.nregions - 1;
  } else {
    w_place(&s);
    if (s.topology == GT_TOPOLOGY_CENTRAL) s.topology = GT_TOPOLOGY_HUB;
  }
  for (size_t i = s.nregions - idle; i < s.nregions; i++) s.workers[i] = s.samples[i] = 0;
  return s;
}

typedef void a_law(w_spec *spec);

static void for_all(a_law *law) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    if (!sync_named(*name)->sends) continue;
    for (int k = 0; k < 4; k++)
      for (uint64_t seed = 0; seed < cases(16, 6); seed++) {
        w_spec s = some_aggregate(*name, k % 2, 9000 + seed, k / 2);
        law(&s);
      }
  }
}

/* Checks that aggregating regions made no step and evaluated nothing. */
static void check_idle(world *w) {
  for (size_t i = 0; i < w->n; i++) {
    if (w->spec.workers[i] > 0) continue;
    gt_ps_view v = w_view(w, i);
    w_check(w, v.steps == 0 && v.samples == 0 && w->regions[i].evals == 0);
    w_check(w, v.drain == 0 && v.compute == 0 && v.wan_wait == 0);
  }
}

static void check_end(world *w, int64_t epochs) {
  w_check_epochs(w, epochs);
  check_idle(w);
  if (w_lockstep(&w->spec)) w_check_identical(w);
}

static void ends(w_spec *spec) {
  spec->until.epochs = 2;
  spec->eval_every.epochs = 1;
  spec->no_data = spec->seed % 5 == 0;
  world *w = w_open(spec);
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, 2);
  w_close(w);
}

static void ends_by_steps(w_spec *spec) {
  spec->until.steps = 1 + (int64_t)(spec->seed % 13);
  spec->eval_every.steps = 3;
  world *w = w_open(spec);
  w_run_until(w, GT_PS_COMPLETE);
  for (size_t i = 0; i < w->n; i++)
    w_check(w, w_view(w, i).steps == (w->spec.workers[i] > 0 ? spec->until.steps : 0));
  check_idle(w);
  if (w_lockstep(spec)) w_check_identical(w);
  w_close(w);
}

static void survives_crashes(w_spec *spec) {
  spec->until.epochs = 2;
  spec->checkpoint_every.steps = 2;
  world *w = w_open(spec);
  for (uint64_t crash = 0; crash < 3; crash++) {
    for (uint64_t i = 0; i < 20 + 37 * (spec->seed % 11) && !w_all_in(w, GT_PS_COMPLETE); i++)
      w_check(w, w_step(w));
    w_crash(w);
  }
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, 2);
  w_close(w);
}

/* Any region can get the stop, also one that only aggregates. */
static void stops(w_spec *spec) {
  spec->until.epochs = 2;
  world *w = w_open(spec);
  for (uint64_t i = 0; i < 60 + spec->seed % 50; i++) w_check(w, w_step(w));
  const size_t at = spec->seed % 2 ? w->n - 1 : 0;
  if (!w_all_in(w, GT_PS_COMPLETE) && w_view(w, at).phase != GT_PS_COMPLETE) {
    gt_ps_stop(w->regions[at].ps, GT_STOPPED, w->now);
    w_run_until(w, GT_PS_STOPPED);
    w_crash(w);
  }
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, 2);
  w_close(w);
}

/* A completed training is extended: the others resume their steps. */
static void goes_on_longer(w_spec *spec) {
  spec->until.epochs = 1;
  spec->checkpoint_every.steps = 3;
  world *w = w_open(spec);
  w_run_until(w, GT_PS_COMPLETE);
  gt_ps_last_round(w->regions[0].ps, w->now);
  for (int64_t newest = 0; w_whole_round(w, &newest) < w_view(w, 0).round;) w_check(w, w_step(w));
  w->spec.until.epochs = 3;
  w_crash(w);
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, 3);
  w_close(w);
}

static double sent_by(const world *w) {
  const size_t n = sync_named(w->spec.strategy)->sends == GT_MSG_STATE ? W_MODEL : W_PARAMS;
  double sum = 0;
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++) sum += (double)w->links[i][k].data_sent;
  return sum * (double)gt_wire_bytes(n * sizeof(float));
}

/* A limit far from the run's traffic stops nothing: a region that aggregates for others continues
   after it has finished itself. */
static void a_far_limit_stops_nothing(w_spec *spec) {
  spec->until.epochs = 2;
  world *w = w_open(spec);
  w_run_until(w, GT_PS_COMPLETE);
  spec->wan_bytes_limit = 12 * sent_by(w);
  w_close(w);
  w = w_open(spec);
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, 2);
  w_close(w);
}

/* ---- the bits of the other regions alone ----------------------------------------------------- */

static size_t training(const w_spec *spec) {
  size_t n = 0;
  while (n < spec->nregions && spec->workers[n] > 0) n++;
  return n;
}

/* A hub that only aggregates adds in region order, as a mesh of the others does. */
static void as_without(w_spec *spec) {
  if (spec->topology == GT_TOPOLOGY_TREE || spec->topology == GT_TOPOLOGY_RING ||
      spec->local_async || !w_lockstep(spec))
    return;
  spec->until.epochs = 2;
  w_spec alone = *spec;
  alone.nregions = training(spec);
  alone.topology = GT_TOPOLOGY_MESH;
  world *w = w_open(spec), *mesh = w_open(&alone);
  w_run_until(w, GT_PS_COMPLETE);
  w_run_until(mesh, GT_PS_COMPLETE);
  for (size_t i = 0; i < w->n; i++)
    w_check(w, memcmp(w->regions[i].params, mesh->regions[0].params,
                      sizeof mesh->regions[0].params) == 0);
  w_close(mesh);
  w_close(w);
}

static void runs_end(void) {
  for_all(ends);
  for_all(ends_by_steps);
}

static void crashes_lose_nothing(void) {
  for_all(survives_crashes);
}

static void stops_and_resumes(void) {
  for_all(stops);
}

static void longer_trainings(void) {
  for_all(goes_on_longer);
}

static void limits_of_bytes(void) {
  for_all(a_far_limit_stops_nothing);
}

static void the_same_bits_as_without(void) {
  for_all(as_without);
}

TESTS(runs_end, crashes_lose_nothing, stops_and_resumes, longer_trainings, limits_of_bytes,
      the_same_bits_as_without)
