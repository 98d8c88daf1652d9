/* No region starves another: if links are the bottleneck, all regions of asgd and asgd-ga end their
   training at about the same time, also those that forward the updates of others. */
#include "jobs.h"
#include "tests.h"
#include "cases.h"
#include "geotrain/sim.h"

#define MOST 8

typedef struct {
  const char *strategy, *topology;
  size_t n, parameters, outbox;
} turns;

static gt_job *job_of(const turns *t) {
  char text[4096];
  int at =
      snprintf(text, sizeof text,
               "name: turns\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
               "train: {until: {steps: %d}, batch: 10, optimizer: {name: sgd, lr: 0.1}, "
               "eval_every: {epochs: 0}}\nsync: {strategy: %s, topology: %s}\n"
               "compute: {step: 5 ms}\nwan:\n  outbox: %zu\n"
               "  default: {bandwidth: 20 Mbit/s, latency: 60 ms}\n  links:\n",
               strcmp(t->strategy, "asgd") == 0 ? 300 : 2400, t->strategy, t->topology, t->outbox);
  for (size_t r = 0; r + 1 < t->n; r++)
    at +=
        snprintf(text + at, sizeof text - (size_t)at,
                 "    - {between: [r%zu, r%zu], bandwidth: 20 Mbit/s, latency: 10 ms}\n", r, r + 1);
  at += snprintf(text + at, sizeof text - (size_t)at, "regions:\n");
  for (size_t r = 0; r < t->n; r++)
    at += snprintf(text + at, sizeof text - (size_t)at,
                   "  - {name: r%zu, ranks: 2, samples: 1000}\n", r);
  return job_as("%s", text);
}

/* Returns the time at which the first region ends its training, as a share of that of the last. */
static double first_end(const turns *t) {
  const int64_t samples[MOST] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
  gt_job *job = job_of(t);
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  double first = 1e9, last = 0;
  must(gt_links_create(&links, job));
  /* a tree that is a line of regions: the inner ones forward messages from both sides */
  size_t next[MOST];
  for (size_t r = 0; r < t->n; r++) next[r] = r < t->n / 2 ? r + 1 : r > t->n / 2 ? r - 1 : r;
  const gt_routes line = {GT_TOPOLOGY_TREE, next};
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = t->parameters,
                            .samples = samples,
                            .routes = strcmp(t->topology, "tree") == 0 ? &line : NULL};
  must(gt_sim_run(&sim, &spec));
  for (size_t r = 0; r < t->n; r++) {
    gt_region_result result;
    gt_sim_region(sim, r, &result);
    const double end = result.wall_s - result.idle_s;
    if (end < first) first = end;
    if (end > last) last = end;
  }
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  return first / last;
}

static void test_all_end_together(void) {
  static const char *const strategies[] = {"asgd", "asgd-ga"}, *const topologies[] = {"mesh", "hub",
                                                                                      "tree"};
  static const size_t sizes[] = {3, 4, 8}, outboxes[] = {1, 2, 4}, models[] = {62000, 1000000};
  int64_t number = 0;
  for (size_t s = 0; s < 2; s++)
    for (size_t p = 0; p < 3; p++)
      for (size_t n = 0; n < 3; n++)
        for (size_t o = 0; o < 3; o++)
          for (size_t m = 0; m < 2; m++) {
            const turns t = {strategies[s], topologies[p], sizes[n], models[m], outboxes[o]};
            if (number++ % stride(5) != 0) continue;
            const double share = first_end(&t);
            if (share < 0.7)
              fail_msg("%s over a %s of %zu, %zu parameters, outbox %zu: a region ends at %.2f of "
                       "the time of the last; expected 0.7 or more",
                       t.strategy, t.topology, t.n, t.parameters, t.outbox, share);
          }
}

TESTS(test_all_end_together)
