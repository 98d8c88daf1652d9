/* timeout: 300 */
/* sync.topology auto and tree: the chosen topology takes the least time of all, in simulation. */
#include "jobs.h"
#include "tests.h"
#include "cases.h"
#include "world_dice.h"

#define SHARE 1e-3 /* tolerance of the choice relative to the best */

static void assert_least(const char *what, uint64_t seed, double found, double least) {
  if (!(found <= least * (1 + SHARE)))
    fail_msg("seed %llu: %s takes %.9f s, the best one %.9f s", (unsigned long long)seed, what,
             found, least);
}

/* The model has two tensors, one of them too small to be encoded. */
static gt_model_sizes sizes_of(const dice_spec *d, gt_view tensors[2]) {
  tensors[0] = (gt_view){.count = d->parameters - 500, .shape = {d->parameters - 500}, .ndims = 1};
  tensors[1] = (gt_view){.offset = d->parameters - 500, .count = 500, .shape = {500}, .ndims = 1};
  return (gt_model_sizes){.parameters = d->parameters, .tensors = tensors, .ntensors = 2};
}

/* The tree of a job takes as long as the best hub or tree of auto. */
static void check_tree(gt_job *job, const dice_spec *d, double least) {
  gt_topology_choice c;
  gt_view tensors[2];
  const gt_model_sizes sizes = sizes_of(d, tensors);
  job->sync.topology = GT_TOPOLOGY_TREE;
  must(gt_topology_choose(&c, job, NULL, &sizes));
  assert_int_equal(c.best, GT_TOPOLOGY_TREE);
  assert_true(gt_routes_sound(&c.of[c.best].routes, d->n) && c.of[c.best].seconds == least);
  gt_topology_choice_close(&c);
}

static void check_all(uint64_t seed, const dice_spec *d) {
  gt_rng rng = gt_rng_make(seed, 0, d->n, 7);
  gt_job *job = dice_throw(&rng, d);
  gt_topology_choice c;
  topology_world w;
  gt_view tensors[2];
  const gt_model_sizes sizes = sizes_of(d, tensors);
  const bool ring = d->codec == GT_CODEC_NONE || gt_codec_has(d->codec, GT_RESUMS);
  dice_best trees = {.seconds = INFINITY}, rings = trees, mesh = trees;
  must(gt_topology_choose(&c, job, NULL, &sizes));
  must(gt_topology_world_open(&w, job, NULL, &sizes));
  dice_try(&mesh, &w, GT_TOPOLOGY_MESH, NULL);
  dice_all_trees(&trees, &w);
  if (w.rounds && ring) dice_all_rings(&rings, &w);
  assert_true(c.exact && !c.estimated);
  assert_least("mesh", seed, c.of[GT_TOPOLOGY_MESH].seconds, mesh.seconds);
  const double tree =
      fmin(c.of[GT_TOPOLOGY_HUB].seconds, d->n > 2 ? c.of[GT_TOPOLOGY_TREE].seconds : INFINITY);
  assert_least("hub or tree", seed, tree, trees.seconds);
  assert_true(ring || isnan(c.of[GT_TOPOLOGY_RING].seconds));
  if (w.rounds && ring) assert_least("ring", seed, c.of[GT_TOPOLOGY_RING].seconds, rings.seconds);
  assert_least("auto", seed, c.of[c.best].seconds,
               fmin(mesh.seconds, fmin(trees.seconds, rings.seconds)));
  check_tree(job, d, tree);
  gt_topology_world_close(&w);
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

static void check_sizes(bool access, const char *strategy, gt_codec_kind codec) {
  static const size_t parameters[] = {61706, 700000, 3000000};
  for (uint64_t seed = 0; seed < cases(12, 4); seed++)
    check_all(seed, &(dice_spec){.n = 2 + seed % 3,
                                 .parameters = parameters[seed % 3],
                                 .access = access,
                                 .strategy = strategy,
                                 .codec = codec});
}

static void test_least_of_all(void) {
  check_sizes(false, "ssgd", GT_CODEC_NONE);
}

static void test_least_of_all_with_access(void) {
  check_sizes(true, "ssgd", GT_CODEC_NONE);
}

static void test_least_of_all_broadcasts(void) {
  check_sizes(true, "asgd", GT_CODEC_NONE);
}

static void test_least_of_all_encoded(void) {
  check_sizes(true, "ssgd", GT_CODEC_INT8);
  check_sizes(true, "sma", GT_CODEC_TOPK);
  check_sizes(true, "ssgd", GT_CODEC_MASK);
  check_sizes(true, "asgd", GT_CODEC_INT8);
}

/* Encoded models take a mesh, whatever it costs. */
static void test_encoded_models(void) {
  gt_rng rng = gt_rng_make(1, 0, 4, 7);
  const dice_spec d = {
      .n = 4, .parameters = 3000000, .access = true, .strategy = "ama", .codec = GT_CODEC_INT8};
  gt_job *job = dice_throw(&rng, &d);
  gt_topology_choice c;
  gt_view tensors[2];
  const gt_model_sizes sizes = sizes_of(&d, tensors);
  must(gt_topology_choose(&c, job, NULL, &sizes));
  assert_int_equal(c.best, GT_TOPOLOGY_MESH);
  assert_true(isnan(c.of[GT_TOPOLOGY_HUB].seconds) && isnan(c.of[GT_TOPOLOGY_TREE].seconds));
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

/* ---- more regions ---------------------------------------------------------------------------- */

/* Checks that the choice is no worse than every hub, and than the ring. */
static void check_many(uint64_t seed, const dice_spec *d) {
  gt_rng rng = gt_rng_make(seed, 0, d->n, 7);
  gt_job *job = dice_throw(&rng, d);
  gt_topology_choice c;
  topology_world w;
  dice_best others = {.seconds = INFINITY};
  size_t next[DICE_MOST];
  must(gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = d->parameters}));
  must(gt_topology_world_open(&w, job, NULL, &(gt_model_sizes){.parameters = d->parameters}));
  dice_try(&others, &w, GT_TOPOLOGY_MESH, NULL);
  for (size_t h = 0; h < d->n; h++) {
    for (size_t r = 0; r < d->n; r++) next[r] = h;
    dice_try(&others, &w, GT_TOPOLOGY_HUB, next);
  }
  gt_topology_place(GT_TOPOLOGY_RING, w.spec.links, d->n, d->parameters * sizeof(float), 0, next);
  dice_try(&others, &w, GT_TOPOLOGY_RING, next);
  assert_false(c.estimated);
  assert_true(c.best == GT_TOPOLOGY_MESH || gt_routes_sound(&c.of[c.best].routes, d->n));
  assert_least("auto", seed, c.of[c.best].seconds, others.seconds);
  gt_topology_world_close(&w);
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

static void test_many_regions(void) {
  for (uint64_t seed = 0; seed < cases(6, 2); seed++)
    check_many(seed,
               &(dice_spec){.n = 9 + 2 * seed, .parameters = 700000, .access = seed % 2 == 1});
}

/* Too many to simulate: the choice only has to be valid. */
static void test_very_many_regions(void) {
  gt_rng rng = gt_rng_make(1, 0, 0, 7);
  gt_job *job = dice_throw(&rng, &(dice_spec){.n = 100, .access = true});
  gt_topology_choice c;
  must(gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = 700000}));
  assert_true(c.estimated && !c.exact);
  for (gt_topology t = GT_TOPOLOGY_MESH; t < GT_TOPOLOGY_KINDS; t++) {
    assert_true(gt_routes_sound(&c.of[t].routes, 100));
    assert_true(c.of[t].seconds >= c.of[c.best].seconds);
  }
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

/* ---- a job ----------------------------------------------------------------------------------- */

static double simulated_s(const gt_job *job, const gt_routes *routes) {
  static const int64_t samples[5] = {1000, 1000, 1000, 1000, 1000};
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  gt_sim_totals totals;
  must(gt_links_create(&links, job));
  const gt_sim_spec spec = {
      .job = job, .links = links, .parameters = 700000, .samples = samples, .routes = routes};
  must(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, &totals);
  gt_sim_close(sim);
  gt_links_close(links);
  return totals.virtual_s;
}

/* A simulation of the job uses the topology that is chosen, and no other takes 1 % less.  The
   choice compares steady rounds; a job's first and last rounds are not steady. */
static void test_simulation_takes_it(void) {
  for (uint64_t seed = 0; seed < cases(20, 6); seed++) {
    gt_rng rng = gt_rng_make(seed, 0, 5, 7);
    gt_job *job = dice_throw(&rng, &(dice_spec){.n = 5, .access = seed % 2 == 1});
    gt_topology_choice c;
    must(gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = 700000}));
    const double is = simulated_s(job, NULL);
    assert_true(is == simulated_s(job, &c.of[c.best].routes));
    for (size_t t = 0; t < GT_TOPOLOGY_KINDS; t++)
      assert_least("the job", seed, is * 0.991, simulated_s(job, &c.of[t].routes));
    gt_topology_choice_close(&c);
    gt_job_close(job);
  }
}

static gt_job *parse(const char *sync, const char *wan) {
  return job_as("name: j\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                "train: {until: {steps: 4}, batch: 10, optimizer: {name: sgd, lr: 0.1}}\n"
                "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\nsync: %s\n%s",
                sync, wan);
}

static void test_nothing_to_choose(void) {
  gt_topology_choice c;
  gt_job *job = parse("{strategy: none, topology: auto}", "");
  must(gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = 100}));
  assert_int_equal(c.best, GT_TOPOLOGY_MESH);
  assert_true(isnan(c.of[GT_TOPOLOGY_MESH].seconds));
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

static void test_unknown_links(void) {
  gt_topology_choice c;
  gt_job *job = parse("{strategy: ssgd, topology: auto}", "wan: {default: {bandwidth: 1 Gbit/s}}");
  must_say(gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = 100}), GT_ERR_JOB,
           "sync.topology is auto, and the link from a to b has no latency; to choose "
           "among topologies, every pair of regions needs one above 0 (wan.links, "
           "wan.matrix, wan.default or a profile)");
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

/* If nothing is known about the links, any tree is valid. */
static void test_tree_of_unknown_links(void) {
  gt_routes routes;
  gt_links *links = NULL;
  gt_job *job = parse("{strategy: ssgd, topology: tree}", "");
  must(gt_links_create(&links, job));
  must(gt_routes_of(&routes, job, links, &(gt_model_sizes){.parameters = 100}));
  assert_true(routes.topology == GT_TOPOLOGY_TREE && gt_routes_sound(&routes, 2));
  gt_routes_close(&routes);
  gt_links_close(links);
  gt_job_close(job);
}

static void test_without_rounds_no_ring(void) {
  gt_topology_choice c;
  gt_job *job = parse("{strategy: ama, topology: auto}",
                      "wan: {default: {bandwidth: 1 Gbit/s, latency: 9 ms}}");
  char text[256];
  must(gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = 1000, .buffers = 24}));
  assert_true(isnan(c.of[GT_TOPOLOGY_RING].seconds));
  gt_topology_choice_text(&c, job, text, sizeof text);
  assert_true(strncmp(text, "mesh, ", 6) == 0 && strstr(text, "hub at a"));
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

/* The contents of a checkpoint. */
static void test_sound(void) {
  static const struct {
    gt_topology topology;
    size_t next[4];
    bool sound;
  } all[] = {{GT_TOPOLOGY_HUB, {2, 2, 2, 2}, true},   {GT_TOPOLOGY_TREE, {1, 1, 1, 2}, true},
             {GT_TOPOLOGY_TREE, {1, 0, 2, 2}, false}, {GT_TOPOLOGY_TREE, {0, 1, 1, 1}, false},
             {GT_TOPOLOGY_TREE, {1, 2, 0, 3}, false}, {GT_TOPOLOGY_TREE, {1, 1, 1, 4}, false},
             {GT_TOPOLOGY_RING, {1, 2, 3, 0}, true},  {GT_TOPOLOGY_RING, {1, 0, 3, 2}, false},
             {GT_TOPOLOGY_RING, {1, 2, 1, 0}, false}, {GT_TOPOLOGY_MESH, {0, 0, 0, 0}, false}};
  for (size_t i = 0; i < COUNT(all); i++) {
    const gt_routes routes = {all[i].topology, (size_t *)all[i].next};
    if (gt_routes_sound(&routes, 4) != all[i].sound) fail_msg("case %zu", i);
  }
  assert_true(gt_routes_sound(&(gt_routes){.topology = GT_TOPOLOGY_MESH}, 4));
  assert_false(gt_routes_sound(&(gt_routes){.topology = GT_TOPOLOGY_TREE}, 4));
}

TESTS(test_least_of_all, test_least_of_all_with_access, test_least_of_all_broadcasts,
      test_least_of_all_encoded, test_encoded_models, test_many_regions, test_very_many_regions,
      test_simulation_takes_it, test_nothing_to_choose, test_unknown_links,
      test_tree_of_unknown_links, test_without_rounds_no_ring, test_sound)
