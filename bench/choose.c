/* Measures what sync.topology auto chooses and how long that takes, on random jobs:
     bench_choose least N COUNT PARAMETERS [access] [FIRST]   beside every tree and ring
     bench_choose far N COUNT PARAMETERS [access] [FIRST]     beside a long search
     bench_choose run N COUNT PARAMETERS [access] [FIRST]     beside mesh, every hub, and the tree
     and
                                                              ring of these names, in whole runs
     bench_choose time N COUNT PARAMETERS [access] [FIRST]    the choice alone */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tests/sim/world_dice.h"

#define SHARE  1e-3 /* equal but for this */
#define FEW    6    /* steps of runs whose difference is timed */
#define MANY   36
#define SEARCH 3000 /* trees and rings that a long search simulates */

typedef struct {
  double beyond, worst; /* sum and most of how far the choice is off */
  double took_s, most_s;
  int64_t found; /* the choice takes least */
  int chosen[GT_TOPOLOGY_KINDS];
} sums;

/* ---- a long search --------------------------------------------------------------------------- */

/* Changes the tree or ring a little at random. */
static void shake(gt_rng *rng, gt_topology topology, size_t *next, size_t n) {
  size_t r = gt_rng_below(rng, n), to = gt_rng_below(rng, n);
  if (topology == GT_TOPOLOGY_TREE) {
    (void)gt_topology_move(next, r, to);
    return;
  }
  if (to == r || to == next[r]) return; /* the region after r goes behind `to` */
  const size_t moved = next[r];
  next[r] = next[moved];
  next[moved] = next[to];
  next[to] = moved;
}

/* Simulated annealing from the choice itself and from a poor start. */
static double search(gt_rng *rng, topology_world *w, gt_topology topology, const size_t *from,
                     double seconds) {
  const size_t n = w->job.nregions, size = n * sizeof(size_t);
  size_t at[DICE_MOST], next[DICE_MOST];
  double least = seconds, now = seconds;
  memcpy(at, from, size);
  for (int i = 0; i < SEARCH; i++) {
    const double heat = 0.05 * seconds * (1 - (double)i / SEARCH);
    memcpy(next, at, size);
    for (size_t k = 1 + gt_rng_below(rng, 3); k > 0; k--) shake(rng, topology, next, n);
    const double found = gt_topology_simulate(w, topology, next, now + 3 * heat);
    if (found > now && gt_rng_uniform(rng) >= exp((now - found) / (heat + 1e-12))) continue;
    memcpy(at, next, size);
    now = found;
    least = fmin(least, now);
  }
  return least;
}

static double long_search(gt_rng *rng, topology_world *w, const gt_topology_choice *c) {
  const gt_topology_score *tree = &c->of[GT_TOPOLOGY_TREE], *ring = &c->of[GT_TOPOLOGY_RING];
  const double least = search(rng, w, GT_TOPOLOGY_TREE, tree->routes.next, tree->seconds);
  return fmin(least, search(rng, w, GT_TOPOLOGY_RING, ring->routes.next, ring->seconds));
}

static double brute_force(topology_world *w) {
  dice_best best = {.seconds = INFINITY};
  dice_try(&best, w, GT_TOPOLOGY_MESH, NULL);
  dice_all_trees(&best, w);
  dice_all_rings(&best, w);
  return best.seconds;
}

/* ---- whole runs ------------------------------------------------------------------------------ */

static double train_s(const gt_job *job, const gt_routes *routes, size_t parameters) {
  int64_t samples[DICE_MOST];
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  gt_sim_totals totals;
  for (size_t r = 0; r < job->nregions; r++) samples[r] = 1000;
  if (gt_links_create(&links, job) != GT_OK) gt_bug("%s", gt_error_text());
  const gt_sim_spec spec = {
      .job = job, .links = links, .parameters = parameters, .samples = samples, .routes = routes};
  if (gt_sim_run(&sim, &spec) != GT_OK) gt_bug("%s", gt_error_text());
  gt_sim_get_totals(sim, &totals);
  gt_sim_close(sim);
  gt_links_close(links);
  return totals.train_s;
}

/* Seconds of a round: what a run of more steps takes more. */
static double run_s(gt_job *job, const gt_routes *routes, size_t parameters) {
  job->train.until.steps = FEW;
  const double few_s = train_s(job, routes, parameters);
  job->train.until.steps = MANY;
  return (train_s(job, routes, parameters) - few_s) / (MANY - FEW);
}

/* Seconds of a round of the job by the choice; *least: of the best of all. */
static double whole_runs(gt_job *job, const gt_topology_choice *c, size_t parameters,
                         double *least) {
  size_t next[DICE_MOST];
  const double is = run_s(job, &c->of[c->best].routes, parameters);
  *least = fmin(is, run_s(job, &(gt_routes){.topology = GT_TOPOLOGY_MESH}, parameters));
  for (size_t h = 0; h < job->nregions; h++) {
    for (size_t r = 0; r < job->nregions; r++) next[r] = h;
    *least = fmin(*least, run_s(job, &(gt_routes){GT_TOPOLOGY_HUB, next}, parameters));
  }
  for (size_t k = 0; k < GT_TOPOLOGY_KINDS; k++)
    if (!isnan(c->of[k].seconds)) *least = fmin(*least, run_s(job, &c->of[k].routes, parameters));
  job->sync.topology = GT_TOPOLOGY_TREE;
  *least = fmin(*least, run_s(job, NULL, parameters));
  job->sync.topology = GT_TOPOLOGY_RING;
  *least = fmin(*least, run_s(job, NULL, parameters));
  return is;
}

/* ---- one job --------------------------------------------------------------------------------- */

static void one(sums *all, const char *what, uint64_t seed, const dice_spec *d) {
  gt_rng rng = gt_rng_make(seed, 0, d->n, 7);
  gt_job *job = dice_throw(&rng, d);
  gt_topology_choice c;
  topology_world w;
  const clock_t from = clock();
  if (gt_topology_choose(&c, job, NULL, &(gt_model_sizes){.parameters = d->parameters}) != GT_OK ||
      gt_topology_world_open(&w, job, NULL, &(gt_model_sizes){.parameters = d->parameters}) !=
          GT_OK)
    gt_bug("%s", gt_error_text());
  const double took_s = (double)(clock() - from) / CLOCKS_PER_SEC;
  double is = c.of[c.best].seconds, least = is;
  if (strcmp(what, "run") == 0)
    is = whole_runs(job, &c, d->parameters, &least);
  else
    least = strcmp(what, "least") == 0 ? brute_force(&w)
            : strcmp(what, "far") == 0 ? fmin(is, long_search(&rng, &w, &c))
                                       : is;
  const double beyond = is / least - 1;
  all->beyond += beyond;
  all->worst = fmax(all->worst, beyond);
  all->took_s += took_s;
  all->most_s = fmax(all->most_s, took_s);
  all->found += beyond <= SHARE;
  all->chosen[c.best]++;
  gt_topology_world_close(&w);
  gt_topology_choice_close(&c);
  gt_job_close(job);
}

int main(int argc, char **argv) {
  const bool access = argc > 5 && strcmp(argv[5], "access") == 0;
  if (argc < 5) {
    fprintf(stderr, "bench_choose least|far|run|time N COUNT PARAMETERS [access] [FIRST]\n");
    return 2;
  }
  const dice_spec d = {
      .n = strtoul(argv[2], NULL, 10), .parameters = strtoul(argv[4], NULL, 10), .access = access};
  const uint64_t count = strtoul(argv[3], NULL, 10),
                 first = argc > 5 + access ? strtoul(argv[5 + access], NULL, 10) : 0;
  sums all = {0};
  for (uint64_t seed = first; seed < first + count; seed++) one(&all, argv[1], seed, &d);
  printf("%zu regions, %zu parameters%s: least in %" PRId64 " of %" PRIu64
         ", off by %.3f %% on average, %.3f %% at most; chosen in %.4f s CPU, %.4f s at most; mesh "
         "%d, hub %d, tree %d, ring %d\n",
         d.n, d.parameters, access ? ", access" : "", all.found, count,
         100 * all.beyond / (double)count, 100 * all.worst, all.took_s / (double)count, all.most_s,
         all.chosen[0], all.chosen[1], all.chosen[2], all.chosen[3]);
  return 0;
}
