/* Grouping of devices: planted fleets, a clustering written from the definition, measured links of
   clouds, limits, a thousand devices. */
#include "geotrain/pipe_groups.h"
#include "tests.h"
#include "geotrain/job.h"
#include "jobs.h"

#include <time.h>

#define FLEETS  1000
#define RANDOM  2000
#define REGIONS 6
#define NEVER   ((gt_pipe_link){INFINITY, INFINITY})

typedef struct {
  gt_pipe_fleet fleet;
  gt_pipe_link *links;
  double *power, *memory;
  size_t *region, *kind; /* as planted */
} world;

static world make_world(size_t n) {
  world w = {.links = GT_NEW_ARRAY(gt_pipe_link, n * n),
             .power = GT_NEW_ARRAY(double, n),
             .memory = GT_NEW_ARRAY(double, n),
             .region = GT_NEW_ARRAY(size_t, n),
             .kind = GT_NEW_ARRAY(size_t, n)};
  for (size_t i = 0; i < n; i++) w.power[i] = w.memory[i] = 1;
  w.fleet = (gt_pipe_fleet){n, w.links, w.power, w.memory};
  return w;
}

static void close_world(world *w) {
  gt_free(w->links);
  gt_free(w->power);
  gt_free(w->memory);
  gt_free(w->region);
  gt_free(w->kind);
}

/* All messages from i to j, and back, take this time. */
static void set_time(world *w, size_t i, size_t j, double there_s, double back_s) {
  w->links[i * w->fleet.n + j] = (gt_pipe_link){there_s, there_s};
  w->links[j * w->fleet.n + i] = (gt_pipe_link){back_s, back_s};
}

static void set_all(world *w, double time_s) {
  for (size_t i = 0; i < w->fleet.n; i++)
    for (size_t j = 0; j < i; j++) set_time(w, i, j, time_s, time_s);
}

static gt_pipe_grouping group(const world *w, double theta_s) {
  gt_pipe_grouping found;
  must(gt_pipe_grouping_make(&found, &w->fleet, theta_s, 0));
  return found;
}

/* ---- numbers of groups ----------------------------------------------------------------------- */

/* Regions are numbered in order of their first devices, groups region by region. */
static void check_numbers(const gt_pipe_grouping *g, size_t n) {
  size_t regions = 0;
  for (size_t i = 0; i < n; i++) {
    assert_true(g->region[i] <= regions);
    if (g->region[i] == regions) regions++;
    assert_true(g->group[i] < g->ngroups);
    assert_int_equal(g->region_of_group[g->group[i]], g->region[i]);
  }
  assert_int_equal(g->nregions, regions);
  for (size_t k = 1; k < g->ngroups; k++)
    assert_true(g->region_of_group[k] >= g->region_of_group[k - 1]);
  for (size_t k = 0, first = 0, before = 0; k < g->ngroups; k++, before = first) {
    for (first = 0; first < n && g->group[first] != k; first++) continue;
    assert_true(first < n);
    if (k > 0 && g->region_of_group[k] == g->region_of_group[k - 1]) assert_true(first > before);
  }
}

/* ---- planted fleets -------------------------------------------------------------------------- */

static double jitter(gt_rng *rng, double most) {
  return 1 + most * (2 * gt_rng_uniform(rng) - 1);
}

/* Distributes n devices over regions and kinds of power, in random order.  The first devices make
   sure that every region has one, and one region has two. */
static void plant_members(world *w, gt_rng *rng, size_t regions) {
  size_t n = w->fleet.n, kinds[REGIONS];
  for (size_t r = 0; r < regions; r++) kinds[r] = 1 + gt_rng_below(rng, 3);
  for (size_t i = 0; i < n; i++) {
    size_t r = i <= regions ? i % regions : gt_rng_below(rng, regions);
    w->region[i] = r;
    w->kind[i] = gt_rng_below(rng, kinds[r]);
  }
  for (size_t i = n; i-- > 1;) {
    size_t j = gt_rng_below(rng, i + 1), region = w->region[i], kind = w->kind[i];
    w->region[i] = w->region[j];
    w->kind[i] = w->kind[j];
    w->region[j] = region;
    w->kind[j] = kind;
  }
}

/* Times between regions are `ratio` times those inside, all times differ by up to 20 %, powers of a
   kind by up to 10 %; the next kind has twice the power. */
static world plant(gt_rng *rng, size_t n, size_t regions, double ratio) {
  world w = make_world(n);
  double small_s = 1e-5 * exp(5 * gt_rng_uniform(rng)),
         large_s = small_s * 2 * exp(7 * gt_rng_uniform(rng));
  plant_members(&w, rng, regions);
  for (size_t i = 0; i < n; i++) {
    w.power[i] = 3 * exp2((double)w.kind[i]) * jitter(rng, 0.1);
    for (size_t j = 0; j < n; j++) {
      double factor = w.region[i] == w.region[j] ? 1 : ratio;
      w.links[i * n + j] =
          (gt_pipe_link){small_s * factor * jitter(rng, 0.2), large_s * factor * jitter(rng, 0.2)};
    }
  }
  return w;
}

static void check_planted(const world *w, const gt_pipe_grouping *g) {
  size_t n = w->fleet.n;
  check_numbers(g, n);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) {
      bool near = w->region[i] == w->region[j];
      assert_int_equal(g->region[i] == g->region[j], near);
      assert_int_equal(g->group[i] == g->group[j], near && w->kind[i] == w->kind[j]);
    }
}

static void planted_fleets_are_found(void) {
  for (uint64_t f = 0; f < FLEETS; f++) {
    gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 1, f);
    size_t regions = 2 + gt_rng_below(&rng, REGIONS - 1), n = regions + 1 + gt_rng_below(&rng, 40);
    world w = plant(&rng, n, regions, 4 * exp(3 * gt_rng_uniform(&rng)));
    gt_pipe_grouping g = group(&w, 0), again = group(&w, 0);
    check_planted(&w, &g);
    assert_memory_equal(g.region, again.region, n * sizeof *g.region);
    assert_memory_equal(g.group, again.group, n * sizeof *g.group);
    gt_pipe_grouping_close(&again);
    gt_pipe_grouping_close(&g);
    close_world(&w);
  }
}

static void a_thousand_devices(void) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 2, 0);
  world w = plant(&rng, 1000, REGIONS, 4);
  clock_t began = clock();
  gt_pipe_grouping g = group(&w, 0);
  double took_s = (double)(clock() - began) / CLOCKS_PER_SEC;
  print_message("1000 devices: %.3f s of CPU\n", took_s);
  check_planted(&w, &g);
  gt_pipe_grouping_close(&g);
  close_world(&w);
  if (took_s > 2) fail_msg("%.1f s for 1000 devices; expected at most 2 s", took_s);
}

/* ---- the definition -------------------------------------------------------------------------- */

#define MOST 12

typedef struct {
  double height[MOST];      /* of each merge, in order */
  size_t label[MOST][MOST]; /* before each merge */
} dendrogram;

static double time_of(const world *w, size_t i, size_t j) {
  gt_pipe_link link = w->links[i * w->fleet.n + j];
  return isinf(link.large_s) ? INFINITY : link.small_s + (link.large_s - link.small_s) / 64;
}

static double mean_distance(const world *w, const size_t *label, size_t a, size_t b) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < w->fleet.n; i++)
    for (size_t j = 0; j < w->fleet.n; j++)
      if (label[i] == a && label[j] == b) {
        sum += log(fmax(time_of(w, i, j), time_of(w, j, i)));
        pairs++;
      }
  return pairs > 0 ? sum / pairs : INFINITY;
}

/* Always merges the two nearest clusters. */
static dendrogram greedy(const world *w) {
  dendrogram d = {0};
  size_t n = w->fleet.n, label[MOST];
  for (size_t i = 0; i < n; i++) label[i] = i;
  for (size_t m = 0; m < n; m++) {
    size_t best_a = n, best_b = n;
    memcpy(d.label[m], label, sizeof label);
    d.height[m] = INFINITY;
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; b < a; b++) {
        double height = mean_distance(w, label, a, b);
        if (height >= d.height[m]) continue;
        d.height[m] = height;
        best_a = a;
        best_b = b;
      }
    for (size_t i = 0; i < n; i++)
      if (best_a < n && label[i] == best_a) label[i] = best_b;
  }
  return d;
}

static double gap_of(const dendrogram *d, size_t n) {
  double gap = log(2), cut = INFINITY;
  for (size_t m = 1; m + 1 < n && d->height[m] < INFINITY; m++)
    if (d->height[m] - d->height[m - 1] > gap) {
      gap = d->height[m] - d->height[m - 1];
      cut = (d->height[m] + d->height[m - 1]) / 2;
    }
  return exp(cut);
}

static void check_against(const world *w, const dendrogram *d, const gt_pipe_grouping *g) {
  size_t m = 0, n = w->fleet.n;
  while (m + 1 < n && d->height[m] <= log(g->theta_s) && d->height[m] < INFINITY) m++;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++)
      assert_int_equal(g->region[i] == g->region[j], d->label[m][i] == d->label[m][j]);
}

static void any_fleet_is_grouped_as_defined(void) {
  size_t split = 0, unreachable = 0;
  for (uint64_t f = 0; f < RANDOM; f++) {
    gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, f);
    size_t n = 2 + gt_rng_below(&rng, MOST - 1);
    double spread = 1 + 6 * gt_rng_uniform(&rng), lost = f % 3 == 0 ? 0.1 : 0;
    world w = make_world(n);
    for (size_t k = 0; k < n * n; k++) {
      double small_s = 1e-3 * exp(spread * gt_rng_uniform(&rng));
      w.links[k] = (gt_pipe_link){small_s, small_s * (1 + 100 * gt_rng_uniform(&rng))};
      if (gt_rng_uniform(&rng) < lost) w.links[k] = NEVER;
    }
    dendrogram d = greedy(&w);
    gt_pipe_grouping g = group(&w, 0), forced = group(&w, 1e-3 * exp(spread / 2));
    double theta_s = gap_of(&d, n);
    if (isinf(theta_s)) assert_true(isinf(g.theta_s));
    if (!isinf(theta_s)) assert_true(fabs(g.theta_s / theta_s - 1) < 1e-9);
    check_against(&w, &d, &g);
    check_against(&w, &d, &forced);
    check_numbers(&g, n);
    split += g.nregions > 1 && lost == 0;
    unreachable += g.nregions > 1 && lost > 0;
    gt_pipe_grouping_close(&forced);
    gt_pipe_grouping_close(&g);
    close_world(&w);
  }
  assert_true(split > RANDOM / 10 && unreachable > RANDOM / 10);
}

/* ---- measured links -------------------------------------------------------------------------- */

static gt_job *load(const char *name) {
  char path[512];
  gt_job *job;
  snprintf(path, sizeof path, "%.*s/jobs/%s",
           (int)(strlen(__FILE__) - strlen("/tests/pipe/test_groups.c")), __FILE__, name);
  must(gt_job_load(&job, path, NULL, 0));
  return job;
}

static gt_pipe_link link_of(double latency_s, double bandwidth_bps) {
  return (gt_pipe_link){latency_s + 8 * GT_PIPE_SMALL_BYTES / bandwidth_bps,
                        latency_s + 8.0 * GT_PIPE_LARGE_BYTES / bandwidth_bps};
}

/* Ranks take regions in turn; each third one is half as fast. */
static void check_cloud(const char *name, size_t regions, size_t ranks, gt_pipe_link lan) {
  gt_job *job = load(name);
  assert_int_equal(job->nregions, regions);
  world w = make_world(regions * ranks);
  for (size_t i = 0; i < w.fleet.n; i++) {
    w.region[i] = i % regions;
    w.kind[i] = i / regions % 3 == 2;
    w.power[i] = w.kind[i] ? 50 : 100;
    for (size_t j = 0; j < w.fleet.n; j++) {
      const gt_job_link *l = link_between(job, i % regions, j % regions);
      w.links[i * w.fleet.n + j] =
          i % regions == j % regions ? lan : link_of(l->latency_s, l->bandwidth_bps);
    }
  }
  gt_pipe_grouping g = group(&w, 0);
  check_planted(&w, &g);
  assert_int_equal(g.nregions, regions);
  assert_int_equal(g.ngroups, 2 * regions);
  gt_pipe_grouping_close(&g);
  close_world(&w);
  gt_job_close(job);
}

static void ranks_of_clouds_fall_into_their_regions(void) {
  const gt_pipe_link fast = link_of(50e-6, 10e9), slow = link_of(200e-6, 1e9);
  check_cloud("aws-4-regions.yaml", 4, 4, fast);
  check_cloud("aws-4-regions.yaml", 4, 5, slow);
  check_cloud("gaia-11-regions.yaml", 11, 3, fast);
  check_cloud("gaia-11-regions.yaml", 11, 4, slow);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void assert_groups(const world *w, double theta_s, const size_t *region,
                          const size_t *groups) {
  gt_pipe_grouping g = group(w, theta_s);
  assert_memory_equal(g.region, region, w->fleet.n * sizeof *region);
  assert_memory_equal(g.group, groups, w->fleet.n * sizeof *groups);
  check_numbers(&g, w->fleet.n);
  gt_pipe_grouping_close(&g);
}

static void one_device_and_equal_devices(void) {
  static const size_t none[5] = {0};
  world one = make_world(1), five = make_world(5);
  set_all(&five, 1e-3);
  assert_groups(&one, 0, none, none);
  assert_groups(&five, 0, none, none);
  assert_groups(&five, 1, none, none);
  assert_groups(&five, 1e-4, (size_t[]){0, 1, 2, 3, 4}, (size_t[]){0, 1, 2, 3, 4});
  close_world(&five);
  close_world(&one);
}

static void the_slower_direction_counts(void) {
  world w = make_world(4);
  set_all(&w, 1e-3);
  for (size_t i = 0; i < 2; i++)
    for (size_t j = 2; j < 4; j++) set_time(&w, i, j, i == 0 ? 1e-3 : 1e-2, i == 0 ? 1e-2 : 1e-3);
  assert_groups(&w, 0, (size_t[]){0, 0, 1, 1}, (size_t[]){0, 0, 1, 1});
  close_world(&w);
}

static void a_gap_is_a_ratio_of_two(void) {
  static const size_t none[3] = {0};
  world w = make_world(3);
  set_time(&w, 0, 1, 1e-3, 1e-3);
  set_time(&w, 0, 2, 2e-3, 2e-3);
  set_time(&w, 1, 2, 2e-3, 1e-3);
  assert_groups(&w, 0, (size_t[]){0, 0, 1}, (size_t[]){0, 0, 1});
  set_time(&w, 1, 2, 1.99e-3, 1e-3);
  assert_groups(&w, 0, none, none);
  close_world(&w);
}

static void powers_are_alike_up_to_a_quarter(void) {
  static const size_t none[3] = {0};
  world w = make_world(3);
  set_all(&w, 1e-3);
  w.power[0] = 1.25;
  assert_groups(&w, 0, none, none);
  w.power[0] = 1.26;
  assert_groups(&w, 0, none, (size_t[]){0, 1, 1});
  w.power[1] = 4;
  assert_groups(&w, 0, none, (size_t[]){0, 1, 2});
  close_world(&w);
}

/* Among equal distances the lower device number is taken; unreachable devices are separate for any
   theta. */
static void unreachable_pairs_are_apart(void) {
  world w = make_world(4);
  set_all(&w, 1e-3);
  set_time(&w, 0, 1, INFINITY, 1e-3);
  assert_groups(&w, 0, (size_t[]){0, 1, 0, 0}, (size_t[]){0, 1, 0, 0});
  for (size_t i = 0; i < 2; i++)
    for (size_t j = 2; j < 4; j++) set_time(&w, i, j, INFINITY, INFINITY);
  set_time(&w, 0, 1, 1e-3, 1e-3);
  assert_groups(&w, 0, (size_t[]){0, 0, 1, 1}, (size_t[]){0, 0, 1, 1});
  assert_groups(&w, 100, (size_t[]){0, 0, 1, 1}, (size_t[]){0, 0, 1, 1});
  assert_groups(&w, INFINITY, (size_t[]){0, 0, 1, 1}, (size_t[]){0, 0, 1, 1});
  set_time(&w, 2, 3, 5e-3, 5e-3);
  assert_groups(&w, 0, (size_t[]){0, 0, 1, 2}, (size_t[]){0, 0, 1, 2});
  set_all(&w, INFINITY);
  assert_groups(&w, 0, (size_t[]){0, 1, 2, 3}, (size_t[]){0, 1, 2, 3});
  close_world(&w);
}

static void assert_refused(const world *w, double theta_s, double bytes, const char *why) {
  gt_pipe_grouping g;
  must_say(gt_pipe_grouping_make(&g, &w->fleet, theta_s, bytes), GT_ERR_JOB, why);
  assert_null(g.region);
}

static void wrong_numbers_are_named(void) {
  world w = make_world(3), none = {0};
  set_all(&w, 1e-3);
  assert_refused(&none, 0, 0, "no device; expected at least one");
  assert_refused(&w, -1, 0, "theta is -1 s; expected 0 or more");
  assert_refused(&w, NAN, 0, "theta is nan s; expected 0 or more");
  assert_refused(&w, 0, INFINITY, "messages have inf bytes; expected 0 or more");
  w.links[2] = (gt_pipe_link){0, 1};
  assert_refused(&w, 0, 0,
                 "a message of 64 bytes from device 0 to device 2 takes 0 s; expected more than 0");
  w.links[2] = (gt_pipe_link){1, 0.5};
  assert_refused(&w, 0, 0,
                 "from device 0 to device 2 a message of 64 bytes takes 1 s and one of 4194304 "
                 "bytes 0.5 s; the larger one cannot be faster");
  w.links[2] = (gt_pipe_link){1, NAN};
  assert_refused(&w, 0, 0,
                 "from device 0 to device 2 a message of 64 bytes takes 1 s and one of 4194304 "
                 "bytes nan s; the larger one cannot be faster");
  w.links[2] = NEVER;
  w.power[1] = 0;
  assert_refused(&w, 0, 0, "device 1 has a power of 0; expected more than 0");
  close_world(&w);
}

/* ---- formulas -------------------------------------------------------------------------------- */

static void times_and_powers(void) {
  const gt_pipe_link link = {0.25, 1.25};
  assert_true(gt_pipe_transfer_s(link, 0) == 0.25);
  assert_true(gt_pipe_transfer_s(link, GT_PIPE_LARGE_BYTES) == 1.25);
  assert_true(gt_pipe_transfer_s(link, GT_PIPE_LARGE_BYTES / 4.0) == 0.5);
  assert_true(gt_pipe_transfer_s(link, 8.0 * GT_PIPE_LARGE_BYTES) == 8.25);
  assert_true(isinf(gt_pipe_transfer_s(NEVER, 0)) && isinf(gt_pipe_transfer_s(NEVER, 1)));
  const double times_s[] = {2, 0.5}, weights[] = {1, 4};
  assert_true(gt_pipe_power(times_s, weights, 2) == 1.25);
}

/* Devices 0 and 1 are a region of two powers, 2 and 3 a group, 4 a region of its own. */
static void groups_have_their_worst_members(void) {
  world w = make_world(5);
  gt_pipe_group groups[4];
  gt_pipe_link between[16];
  set_all(&w, 1);
  set_time(&w, 0, 1, 1e-3, 2e-3);
  set_time(&w, 2, 3, 3e-3, 4e-3);
  set_time(&w, 1, 3, 1.5, 1);
  for (size_t i = 0; i < 5; i++) w.memory[i] = 10 + (double)i;
  w.power[1] = 2;
  w.power[3] = 1.1;
  assert_groups(&w, 0, (size_t[]){0, 0, 1, 1, 2}, (size_t[]){0, 1, 2, 2, 3});
  gt_pipe_grouping g = group(&w, 0);
  gt_pipe_grouping_groups(&g, &w.fleet, groups, between);
  assert_true(groups[2].count == 2 && groups[2].power == 1 && groups[2].memory_bytes == 12);
  assert_true(groups[1].count == 1 && groups[1].power == 2 && groups[1].memory_bytes == 11);
  assert_int_equal(groups[2].region, 1);
  assert_int_equal(groups[3].region, 2);
  assert_true(between[0 * 4 + 1].small_s == 1e-3 && between[1 * 4 + 0].large_s == 2e-3);
  assert_true(between[1 * 4 + 2].small_s == 1.5 && between[2 * 4 + 1].small_s == 1);
  assert_true(between[2 * 4 + 2].small_s == 4e-3);
  assert_true(between[0].small_s == 2e-3 && between[1 * 4 + 1].large_s == 2e-3);
  assert_true(between[3 * 4 + 3].small_s == 0 && between[3 * 4 + 3].large_s == 0);
  gt_pipe_grouping_close(&g);
  close_world(&w);
}

TESTS(planted_fleets_are_found, a_thousand_devices, any_fleet_is_grouped_as_defined,
      ranks_of_clouds_fall_into_their_regions, one_device_and_equal_devices,
      the_slower_direction_counts, a_gap_is_a_ratio_of_two, powers_are_alike_up_to_a_quarter,
      unreachable_pairs_are_apart, wrong_numbers_are_named, times_and_powers,
      groups_have_their_worst_members)
