/* Every topology under the laws of the mesh: rounds of ssgd and sma give every region the same
   bits, over a hub those of a mesh; updates arrive once, in order; a crash at any event loses
   nothing; random worlds end. */
#include "cases.h"
#include "world_run.h"

#include <math.h>

static const gt_topology all[] = {GT_TOPOLOGY_HUB, GT_TOPOLOGY_TREE, GT_TOPOLOGY_RING,
                                  GT_TOPOLOGY_CENTRAL};
#define ALL 4

/* Makes routes with the regions in random order: in a tree each hangs from an earlier one; to a
   central region the others send a message for each of up to three workers. */
static void place(w_spec *spec, gt_topology topology, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 7, 0);
  size_t order[W_REGIONS];
  spec->topology = topology;
  for (size_t i = 0; i < spec->nregions; i++) {
    const size_t at = (size_t)gt_rng_below(&rng, i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (size_t i = 0; i < spec->nregions; i++) {
    size_t next = order[(i + 1) % spec->nregions];
    spec->ranks[i] = 1 + (size_t)gt_rng_below(&rng, 3);
    if (topology == GT_TOPOLOGY_HUB || topology == GT_TOPOLOGY_CENTRAL) next = order[0];
    if (topology == GT_TOPOLOGY_TREE) next = i == 0 ? order[0] : order[gt_rng_below(&rng, i)];
    spec->next[order[i]] = next;
  }
}

static void assert_same_models(const world *a, const world *b) {
  for (size_t i = 0; i < a->spec.nregions; i++) {
    assert_memory_equal(a->regions[i].params, b->regions[i].params, sizeof a->regions[i].params);
    assert_memory_equal(a->regions[i].buffers, b->regions[i].buffers, sizeof a->regions[i].buffers);
  }
}

static void assert_regions_agree(const world *w, bool buffers) {
  for (size_t i = 1; i < w->spec.nregions; i++) {
    if (memcmp(w->regions[0].params, w->regions[i].params, sizeof w->regions[0].params) != 0)
      fail_msg("%s over %s, seed %llu: regions 0 and %zu differ", w->spec.strategy,
               gt_topology_names[w->spec.topology], (unsigned long long)w->spec.seed, i);
    if (buffers)
      assert_memory_equal(w->regions[0].buffers, w->regions[i].buffers,
                          sizeof w->regions[0].buffers);
  }
}

static const char *const synchronous[] = {"ssgd", "sma"};

static void gives_the_bits_of_a_mesh(gt_topology topology) {
  for (uint64_t seed = 0; seed < cases(300, 50); seed++) {
    w_spec spec = w_random(synchronous[seed % 2], seed);
    spec.workers = 1;
    world *mesh = w_run(&spec);
    place(&spec, topology, seed);
    for (size_t i = 0; i < spec.nregions; i++) spec.ranks[i] = 1;
    world *other = w_run(&spec);
    assert_same_models(mesh, other);
    for (size_t i = 0; i < spec.nregions && seed % 2 == 0; i++)
      assert_int_equal(gt_optim_steps(mesh->regions[i].optim),
                       gt_optim_steps(other->regions[i].optim));
    w_close(mesh);
    w_close(other);
  }
}

static void test_a_hub_gives_the_bits_of_a_mesh(void) {
  gives_the_bits_of_a_mesh(GT_TOPOLOGY_HUB);
}

/* With one worker in each region. */
static void test_a_central_region_gives_the_bits_of_a_mesh(void) {
  gives_the_bits_of_a_mesh(GT_TOPOLOGY_CENTRAL);
}

/* A hub without steps and weight gives the bits of a mesh of the other regions. */
static void test_a_hub_that_only_aggregates_changes_no_bit(void) {
  for (uint64_t seed = 0; seed < cases(300, 50); seed++) {
    w_spec spec = w_random(synchronous[seed % 2], seed);
    const size_t others = spec.nregions < W_REGIONS ? spec.nregions : W_REGIONS - 1;
    spec.nregions = others;
    spec.workers = 1;
    for (size_t i = 0; i < others; i++)
      if (spec.weights[i] <= 0) spec.weights[i] = 1;
    world *mesh = w_run(&spec);
    spec.nregions = others + 1;
    spec.steps[others] = 0;
    spec.weights[others] = 0;
    spec.topology = GT_TOPOLOGY_HUB;
    for (size_t i = 0; i <= others; i++) spec.next[i] = others;
    world *hub = w_run(&spec);
    for (size_t i = 0; i <= others; i++)
      assert_memory_equal(hub->regions[i].params, mesh->regions[0].params,
                          sizeof mesh->regions[0].params);
    w_close(hub);
    w_close(mesh);
  }
}

static void test_every_region_gets_the_same_bits(void) {
  for (uint64_t seed = 0; seed < cases(600, 100); seed++) {
    w_spec spec = w_random("ssgd", seed);
    place(&spec, all[seed % ALL], seed);
    world *w = w_run(&spec);
    assert_regions_agree(w, false);
    w_close(w);
  }
}

/* sma's means differ between topologies only by rounding. */
static void test_means_are_those_of_a_mesh(void) {
  for (uint64_t seed = 0; seed < cases(300, 50); seed++) {
    w_spec spec = w_random("sma", seed);
    spec.workers = 1;
    spec.optim = w_sgd(0.05, 0);
    world *mesh = w_run(&spec);
    place(&spec, all[seed % ALL], seed);
    world *w = w_run(&spec);
    for (size_t i = 0; i < spec.nregions; i++)
      for (size_t j = 0; j < W_PARAMS; j++)
        assert_float_equal(mesh->regions[i].params[j], w->regions[i].params[j], 1e-4);
    w_close(mesh);
    w_close(w);
  }
}

static void test_updates_arrive_once(void) {
  static const char *const names[] = {"asgd", "asgd-ga"};
  for (uint64_t seed = 0; seed < cases(300, 50); seed++) {
    w_spec spec = w_random(names[seed % 2], seed);
    spec.optim = w_sgd(0.02, 0);
    place(&spec, all[(seed / 2) % 2], seed);
    world *w = w_run(&spec);
    for (size_t i = 0; i < spec.nregions; i++)
      for (size_t j = 0; j < W_PARAMS; j++) {
        double expected = (double)w_start(j);
        for (size_t k = 0; k < spec.nregions; k++)
          expected += (k == i ? 1 : spec.scale) * w->regions[k].sent[j];
        assert_float_equal(w->regions[i].params[j], expected, 2e-5);
      }
    w_close(w);
  }
}

static const w_spec crash_specs[] = {
    {.nregions = 3,
     .steps = {4, 2, 0},
     .period = 2,
     .scale = 1,
     .outbox = 1,
     .window = 2,
     .slow = {1, 20, 1},
     .seed = 21},
    {.nregions = 2,
     .steps = {3, 5},
     .period = 2,
     .scale = 0.5,
     .outbox = 1,
     .weights = {2, 1},
     .drain_late = true,
     .seed = 22},
    {.nregions = 4,
     .steps = {2, 4, 4, 3},
     .period = 1,
     .scale = 1,
     .outbox = 1,
     .slow = {1, 1, 30, 1},
     .seed = 23},
    {.nregions = 3, /* the last only aggregates */
     .steps = {4, 3, 0},
     .weights = {2, 1, 0},
     .period = 1,
     .scale = 1,
     .outbox = 1,
     .window = 2,
     .seed = 24},
};

static world *crashed(const w_spec *spec, int64_t event) {
  world *w = w_open(spec);
  w_begin(w);
  while (w->events < event) assert_true(w_step(w));
  w_restart(w, true);
  w_run_on(w);
  return w;
}

static void test_a_crash_at_every_event_changes_no_bit(void) {
  int64_t worlds = 0;
  for (size_t k = 0; k < ALL; k++)
    for (size_t n = 0; n < 2; n++)
      for (size_t s = 0; s < sizeof crash_specs / sizeof crash_specs[0]; s++) {
        w_spec spec = crash_specs[s];
        spec.strategy = synchronous[n];
        place(&spec, all[k], s);
        world *quiet = w_run(&spec);
        for (int64_t event = worlds++ % stride(6); event <= quiet->events; event += stride(6)) {
          world *w = crashed(&spec, event);
          assert_same_models(quiet, w);
          w_close(w);
        }
        w_close(quiet);
      }
}

static void test_a_crash_at_every_event_loses_no_update(void) {
  int64_t worlds = 0;
  for (size_t k = 0; k < 2; k++)
    for (size_t s = 0; s < sizeof crash_specs / sizeof crash_specs[0]; s++) {
      w_spec spec = crash_specs[s];
      spec.strategy = "asgd-ga";
      spec.optim = w_sgd(0.02, 0);
      place(&spec, all[k], s);
      world *quiet = w_run(&spec);
      for (int64_t event = worlds++ % stride(3); event <= quiet->events; event += stride(3)) {
        world *w = crashed(&spec, event);
        for (size_t i = 0; i < spec.nregions; i++)
          for (size_t j = 0; j < W_PARAMS; j++) {
            double expected = (double)w_start(j);
            for (size_t r = 0; r < spec.nregions; r++)
              expected += (r == i ? 1 : spec.scale) * w->regions[r].sent[j];
            assert_float_equal(w->regions[i].params[j], expected, 2e-5);
          }
        w_close(w);
      }
      w_close(quiet);
    }
}

/* A model that did not leave in time is replaced; the last one of every region arrives
   everywhere. */
static void test_random_worlds_end(void) {
  static const char *const names[] = {"ssgd", "sma", "asgd", "asgd-ga", "ama"};
  for (uint64_t seed = 0; seed < cases(10000, 800); seed++) {
    w_spec spec = w_random(names[seed % 5], seed);
    const bool rounds = seed % 5 < 2;
    place(&spec, all[seed / 5 % (rounds ? ALL : 2)], seed);
    spec.no_data = seed % 7 == 0;
    if (seed % 3 == 0) {
      gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 8, 0);
      world *w = w_open(&spec);
      w_begin(w);
      for (uint64_t left = gt_rng_below(&rng, 200); left && w_step(w); left--) continue;
      w_restart(w, true);
      w_run_on(w);
      w_close(w);
    } else
      w_close(w_run(&spec));
  }
}

TESTS(test_a_hub_gives_the_bits_of_a_mesh, test_a_central_region_gives_the_bits_of_a_mesh,
      test_a_hub_that_only_aggregates_changes_no_bit, test_every_region_gets_the_same_bits,
      test_means_are_those_of_a_mesh, test_updates_arrive_once,
      test_a_crash_at_every_event_changes_no_bit, test_a_crash_at_every_event_loses_no_update,
      test_random_worlds_end)
