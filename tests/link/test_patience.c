/* The links of a job: round trips of traces, how long a region waits for another one's heartbeat (determined by the
   link from that region, not the one to it), a large matrix, the connections that fill them. */
#include <time.h>

#include "cases.h"
#include "geotrain/link.h"
#include "jobs.h"
#include "tests.h"

#define BYTES ((size_t)1000000) /* 8 s at 1 Mbit/s */

static void waits(const gt_links *links, size_t self, size_t peer, double needed) {
  double found = gt_links_patience(links, peer, self, BYTES, 30);
  if (!(fabs(found - needed) < 1e-6 * needed))
    fail_msg("region %zu waits %g s for region %zu; expected %g s", self, found, peer, needed);
}

static void by_the_link_from_the_peer(void) {
  gt_job *job = NULL;
  gt_links *links = NULL;
  const char *text = "name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\ntrain: {until: {steps: "
                     "1}, optimizer: {lr: 0.1}}\n"
                     "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}, {name: c, ranks: 2}]\n"
                     "wan:\n  links:\n"
                     "    - {from: a, to: b, bandwidth: 100 Mbit/s, latency: 1 ms}\n"
                     "    - {from: b, to: a, bandwidth: 1 Mbit/s, latency: 1 ms}\n"
                     "    - {between: [a, c], bandwidth: 2 Mbit/s, latency: 1 ms}\n";
  must(gt_job_parse(&job, "t.yaml", text));
  must(gt_links_create(&links, job));
  waits(links, 0, 1, 80);
  waits(links, 1, 0, 30);
  waits(links, 0, 2, 40);
  waits(links, 2, 0, 40);
  waits(links, 1, 2, 30); /* the job gives this link no bandwidth */
  gt_links_close(links);
  gt_job_close(job);
}

/* A trace with latencies is a link with their mean, in both directions. */
static void a_round_trip_has_the_latencies_of_traces(void) {
  const char *path = in_folder("latency.csv");
  FILE *to = fopen(path, "w");
  gt_links *links = NULL;
  assert_non_null(to);
  fputs("0,100 Mbit/s,40 ms\n10,0,\n", to);
  fclose(to);
  gt_job *job = job_as("name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\n"
                       "train: {until: {steps: 1}, optimizer: {lr: 0.1}}\n"
                       "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\n"
                       "wan: {links: [{from: a, to: b, trace: %s}, {from: b, to: a, latency: 7 "
                       "ms}]}\n",
                       path);
  must(gt_links_create(&links, job));
  assert_true(gt_links_from(links, 0)[1].back_s == 0.007);
  assert_true(fabs(gt_links_from(links, 1)[0].back_s - 0.04) < 1e-12);
  gt_links_close(links);
  gt_job_close(job);
}

/* A message is written, then read, by the rates that are given. */
static void by_the_rates_of_a_store(void) {
  gt_links *links = NULL;
  gt_job *job = job_as("name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\n"
                       "train: {until: {steps: 1}, optimizer: {lr: 0.1}}\n"
                       "regions: [{name: a, ranks: 2, store: {upload: 1 Mbit/s}},\n"
                       "  {name: b, ranks: 2, store: {download: 2 Mbit/s}}, {name: c, ranks: 2}]\n"
                       "wan: {transport: store, store: {url: 'file:///%s'}}\n",
                       "none");
  must(gt_links_create(&links, job));
  waits(links, 1, 0, 120);
  waits(links, 2, 0, 80);
  waits(links, 1, 2, 40);
  waits(links, 0, 1, 30);
  gt_links_close(links);
  gt_job_close(job);
}

/* A job with a link from each of n regions to each other one: the latency from a to b is 1 + a +
   b/n seconds. */
static gt_job *full_matrix(size_t n) {
  gt_job *job = NULL;
  const size_t room = 256 + 64 * n + 80 * n * n;
  char *text = malloc(room);
  int at = snprintf(text, room,
                    "name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\n"
                    "train: {until: {steps: 1}, optimizer: {lr: 0.1}}\nregions:\n");
  for (size_t a = 0; a < n; a++)
    at += snprintf(text + at, room - (size_t)at, "  - {name: r%zu, ranks: 2}\n", a);
  at += snprintf(text + at, room - (size_t)at, "wan:\n  links:\n");
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n)
      at +=
          snprintf(text + at, room - (size_t)at, "    - {from: r%zu, to: r%zu, latency: %.6f s}\n",
                   i / n, i % n, 1 + (double)(i / n) + (double)(i % n) / (double)n);
  must(gt_job_parse(&job, "t.yaml", text));
  free(text);
  return job;
}

/* The time grows with the number of links, not with its square. */
static void a_large_matrix(void) {
  const size_t n = cases(200, 100);
  gt_links *links = NULL;
  gt_job *job = full_matrix(n);
  const clock_t start = clock();
  must(gt_links_create(&links, job));
  assert_true(clock() - start < CLOCKS_PER_SEC / 2);
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n) {
      const double latency_s = gt_links_from(links, i / n)[i % n].latency_s;
      assert_true(fabs(latency_s - (1 + (double)(i / n) + (double)(i % n) / (double)n)) < 1e-5);
    }
  gt_links_close(links);
  gt_job_close(job);
}

/* One connection has at most 4 MiB in flight. */
static void streams_fill_the_longest_path(void) {
  static const struct {
    const char *link;
    size_t streams;
  } paths[] = {{"bandwidth: 100 Mbit/s, latency: 25 ms", 1},
               {"bandwidth: 1 Gbit/s, latency: 60 ms", 4},
               {"bandwidth: 1 Gbit/s, latency: 68 ms", 5},
               {"bandwidth: 100 Gbit/s, latency: 100 ms", 16},
               {"latency: 100 ms", 4}};
  for (size_t i = 0; i < COUNT(paths); i++) {
    gt_job *job = job_as("name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\n"
                         "train: {until: {steps: 1}, optimizer: {lr: 0.1}}\n"
                         "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\n"
                         "wan: {links: [{between: [a, b], %s}]}\n",
                         paths[i].link);
    gt_links *links = NULL;
    must(gt_links_create(&links, job));
    assert_int_equal(gt_links_streams(links), paths[i].streams);
    gt_links_close(links);
    gt_job_close(job);
  }
}

TESTS(by_the_link_from_the_peer, a_round_trip_has_the_latencies_of_traces, by_the_rates_of_a_store,
      a_large_matrix, streams_fill_the_longest_path)
