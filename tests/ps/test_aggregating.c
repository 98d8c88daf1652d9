/* Regions without workers, which only aggregate: all have the same model, with the bits of the
   other regions alone; a limit of bytes stops none too early.  (test_runs, test_rounds: their runs
   end, and lose nothing.) */
#include "cases.h"
#include "world.h"
#include "../strategies.h"

typedef void a_law(w_spec *spec);

static void for_all(a_law *law) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    if (!sync_named(*name)->sends) continue;
    for (uint64_t seed = 0; seed < cases(64, 24); seed++) {
      w_spec s = w_random(*name, seed % 2, 2 + seed % (W_REGIONS - 1), 9000 + seed);
      w_place(&s);
      w_aggregate(&s);
      law(&s);
    }
  }
}

/* A limit far from the run's traffic stops nothing: a region that aggregates for others continues
   after it has finished itself. */
static void a_far_limit_stops_nothing(w_spec *spec) {
  spec->until.epochs = 2;
  world *w = w_finished(spec);
  spec->wan_bytes_limit = 12 * w_sent_bytes(w);
  w_close(w);
  w = w_finished(spec);
  w_check_epochs(w, 2);
  if (w_lockstep(spec)) w_check_identical(w);
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
  world *w = w_finished(spec), *mesh = w_finished(&alone);
  for (size_t i = 0; i < w->n; i++)
    w_check(w, w_same(w->regions[i].params, mesh->regions[0].params, W_PARAMS));
  w_close(mesh);
  w_close(w);
}

static void limits_of_bytes(void) {
  for_all(a_far_limit_stops_nothing);
}

static void the_same_bits_as_without(void) {
  for_all(as_without);
}

TESTS(limits_of_bytes, the_same_bits_as_without)
