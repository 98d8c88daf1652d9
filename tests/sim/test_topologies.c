/* The time and bytes of a round of ssgd over each topology, on equal links, compared with the
   equations: bandwidth B, latency L, a model of m bytes on the wire, frames of f. */
#include "jobs.h"
#include "tests.h"
#include "cases.h"
#include "geotrain/sim.h"

#define PARAMETERS ((size_t)11200000) /* 45 MB */
#define STEPS      4
#define RATE_BPS   100e6
#define LATENCY_S  0.050
#define MOST       16

/* The simulated case; fields that are 0: 1 worker, ssgd, no access limit, all links equal. */
typedef struct {
  size_t n;        /* regions */
  const char *way; /* a key of sync */
  size_t workers, buffers;
  const char *strategy;
  const char *access;
  /* The tree; each is joined to its parent by a link of RATE_BPS and LATENCY_S; the others have ten
     times the latency. */
  const size_t *parent;
  bool search;        /* for a tree, over these links */
  size_t region;      /* whose rounds are timed */
  double limit_bytes; /* limits.wan_bytes */
  bool idle;          /* the last region only aggregates */
} law;

static gt_job *job_of(const law *l) {
  char text[8192];
  int at = snprintf(text, sizeof text,
                    "name: law\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                    "train: {until: {steps: %d}, batch: 10, optimizer: {name: sgd, lr: 0.1}, "
                    "eval_every: {epochs: 0}}\n"
                    "sync: {strategy: %s, period: 1, %s}\ncompute: {step: 10 ms}\n"
                    "wan:\n  default: {bandwidth: 100 Mbit/s, latency: %d ms}\n%s",
                    STEPS, l->strategy ? l->strategy : "ssgd", l->way, l->parent ? 500 : 50,
                    l->parent ? "  links:\n" : "");
  for (size_t r = 0; l->parent && r < l->n; r++)
    if (l->parent[r] != r)
      at += snprintf(text + at, sizeof text - (size_t)at,
                     "    - {between: [r%zu, r%zu], bandwidth: 100 Mbit/s, latency: 50 ms}\n", r,
                     l->parent[r]);
  if (l->limit_bytes > 0)
    at += snprintf(text + at, sizeof text - (size_t)at, "limits: {wan_bytes: %.0f B}\n",
                   l->limit_bytes);
  at += snprintf(text + at, sizeof text - (size_t)at, "regions:\n");
  for (size_t r = 0; r < l->n; r++) {
    const bool trains = !l->idle || r + 1 < l->n;
    at += snprintf(text + at, sizeof text - (size_t)at, "  - {name: r%zu, ranks: %zu%s%s%s}\n", r,
                   trains ? (l->workers ? l->workers : 1) + 1 : 1, trains ? ", samples: 1000" : "",
                   l->access ? ", access: " : "", l->access ? l->access : "");
  }
  return job_as("%s", text);
}

typedef struct {
  double round_s;
  int64_t payload, messages; /* of all links; data */
  int64_t most;              /* payload of one link, a round */
} found;

static found simulate_law(const law *l) {
  const size_t n = l->n;
  int64_t samples[MOST];
  gt_job *job = job_of(l);
  gt_links *links = NULL;
  gt_sim *sim = NULL;
  gt_region_result r;
  gt_link_result *result = GT_NEW_ARRAY(gt_link_result, n);
  found f = {0};
  const gt_routes tree = {GT_TOPOLOGY_TREE, (size_t *)l->parent};
  for (size_t i = 0; i < n; i++) samples[i] = gt_job_trains(job, i) ? 1000 : 0;
  must(gt_links_create(&links, job));
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = PARAMETERS,
                            .buffers = l->buffers,
                            .samples = samples,
                            .routes = l->parent && !l->search ? &tree : NULL};
  must(gt_sim_run(&sim, &spec));
  gt_sim_region(sim, l->region, &r);
  f.round_s = (r.wan_wait_s + r.local_wait_s) / (STEPS - 1); /* no waiting after the last step */
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      if (i == k) continue;
      gt_sim_link(sim, i, k, result);
      f.payload += result->payload_bytes;
      f.messages += result->messages;
      if (result->payload_bytes / STEPS > f.most) f.most = result->payload_bytes / STEPS;
    }
  gt_sim_close(sim);
  gt_links_close(links);
  gt_job_close(job);
  gt_free(result);
  return f;
}

static found simulate(size_t n, const char *topology) {
  char way[64];
  snprintf(way, sizeof way, "topology: %s", topology);
  return simulate_law(&(law){.n = n, .way = way});
}

static void assert_near(const char *what, size_t n, double is, double expected) {
  if (fabs(is - expected) > 0.01 * expected)
    fail_msg("%s, %zu regions: %.4f s; expected %.4f s within 1 %%", what, n, is, expected);
}

static const size_t sizes[] = {2, 3, 5, 8, 16};
static const double m = (double)PARAMETERS * sizeof(float);
static const double frame_s = 8 * (double)GT_FRAME_PAYLOAD_MAX / RATE_BPS;

static void test_mesh(void) {
  for (size_t i = 0; i < 5; i++) {
    const size_t n = sizes[i];
    found f = simulate(n, "mesh");
    assert_near("mesh", n, f.round_s, 8 * m / RATE_BPS + LATENCY_S);
    assert_int_equal(f.most, (int64_t)m);
    assert_int_equal(f.payload, (int64_t)(n * (n - 1)) * STEPS * (int64_t)m);
  }
}

static void test_hub(void) {
  for (size_t i = 0; i < 5; i++) {
    const size_t n = sizes[i];
    found f = simulate(n, "hub");
    assert_near("hub", n, f.round_s, 8 * m / RATE_BPS + 2 * LATENCY_S + frame_s);
    assert_int_equal(f.most, (int64_t)m);
    assert_int_equal(f.payload, 2 * (int64_t)(n - 1) * STEPS * (int64_t)m);
  }
}

/* The hub is a region that only aggregates: the others' round is that of any hub, and each of them
   sends and gets a model. */
static void test_hub_that_only_aggregates(void) {
  for (size_t n = 2; n < MOST; n++) {
    char way[64];
    snprintf(way, sizeof way, "topology: hub, hub: r%zu", n);
    found f = simulate_law(&(law){.n = n + 1, .way = way, .workers = 2, .idle = true});
    assert_near("hub that only aggregates", n, f.round_s,
                8 * m / RATE_BPS + 2 * LATENCY_S + frame_s);
    assert_int_equal(f.most, (int64_t)m);
    assert_int_equal(f.payload, 2 * (int64_t)n * STEPS * (int64_t)m);
  }
}

static void test_ring(void) {
  for (size_t i = 0; i < 5; i++) {
    const size_t n = sizes[i];
    found f = simulate(n, "ring");
    assert_near("ring", n, f.round_s,
                2 * (double)(n - 1) * (8 * m / (double)n / RATE_BPS + LATENCY_S));
    /* Every link carries the model twice, less two chunks. */
    assert_int_equal(f.payload, 2 * (int64_t)(n - 1) * STEPS * (int64_t)m);
    assert_true(fabs((double)f.most - (2 * m - 2 * m / (double)n)) < 4 * sizeof(float) * (double)n);
  }
}

/* Parents of a path whose middle is the root; of a binary tree. */
static void path_of(size_t depth, size_t *parent) {
  for (size_t r = 0; r <= 2 * depth; r++) parent[r] = r < depth ? r + 1 : r > depth ? r - 1 : r;
}

static void binary_of(size_t n, size_t *parent) {
  for (size_t r = 0; r < n; r++) parent[r] = r ? (r - 1) / 2 : 0;
}

static void assert_tree(size_t n, size_t depth, const size_t *parent) {
  const double d = (double)depth;
  law l = {.n = n, .way = "topology: tree", .parent = parent, .region = n - 1};
  found f = simulate_law(&l);
  assert_near("tree", n, f.round_s, 8 * m / RATE_BPS + 2 * d * LATENCY_S + (2 * d - 1) * frame_s);
  assert_int_equal(f.most, (int64_t)m);
  assert_int_equal(f.payload, 2 * (int64_t)(n - 1) * STEPS * (int64_t)m);
  l.search = true; /* a better tree can have slower links, and fewer of them to the root */
  assert_true(simulate_law(&l).round_s <= 1.01 * f.round_s);
}

static void test_tree(void) {
  size_t parent[MOST];
  for (size_t depth = 1; depth <= 7; depth++) {
    path_of(depth, parent);
    assert_tree(2 * depth + 1, depth, parent);
  }
  binary_of(7, parent);
  assert_tree(7, 2, parent);
  binary_of(15, parent);
  assert_tree(15, 3, parent);
}

/* An access of A, below B, serves all links of a region.  mesh: R - 1 models leave by it.  ring:
   one stream in and one out, as without.  hub: that of the hub serves a model from and to every
   other region; the first pieces of all come in before one goes out.  From the second round on the
   others begin one after another, as they got the last piece: then the first pieces are in by up to
   R - 1 frames later. */
static void test_access(void) {
  const double access = 0.4 * RATE_BPS, slow_frame_s = 8 * (double)GT_FRAME_PAYLOAD_MAX / access;
  for (size_t n = 2; n <= MOST; n = n < 5 || all_cases() ? n + 1 : MOST + (n == MOST)) {
    const double others = (double)n - 1, model_s = 8 * m / access;
    found f = simulate_law(&(law){.n = n, .way = "topology: mesh", .access = "40 Mbit/s"});
    assert_near("mesh with access", n, f.round_s, others * model_s + LATENCY_S);
    f = simulate_law(&(law){.n = n, .way = "topology: ring", .access = "40 Mbit/s"});
    assert_near("ring with access", n, f.round_s, 2 * others * (model_s / (double)n + LATENCY_S));
    f = simulate_law(&(law){.n = n, .way = "topology: hub", .access = "40 Mbit/s"});
    const double hub_s = others * (model_s + slow_frame_s) + 2 * LATENCY_S;
    if (f.round_s < 0.999 * hub_s || f.round_s > 1.001 * hub_s + others * slow_frame_s)
      fail_msg("hub with access, %zu regions: %.4f s; expected %.4f s and up to %.4f s more", n,
               f.round_s, hub_s, others * slow_frame_s);
  }
}

/* Every worker's gradient, then the model for every worker, one after the other. */
static void test_central(void) {
  for (size_t i = 0; i < 5; i++)
    for (size_t k = 1; k <= 3; k++) {
      const size_t n = sizes[i];
      found f = simulate_law(&(law){.n = n, .way = "central: r0", .workers = k, .region = n - 1});
      const double way_s = (double)k * 8 * m / RATE_BPS + LATENCY_S;
      assert_near("central", n, f.round_s, 2 * way_s);
      assert_int_equal(f.most, (int64_t)k * (int64_t)m);
      assert_int_equal(f.payload, 2 * (int64_t)((n - 1) * k) * STEPS * (int64_t)m);
      assert_int_equal(f.messages, 2 * (int64_t)((n - 1) * k) * STEPS);
    }
}

/* Models include their buffers, gradients do not. */
static void test_central_with_buffers(void) {
  const size_t b = 9600;
  found f = simulate_law(&(law){.n = 3, .way = "central: r1", .workers = 2, .buffers = b});
  assert_int_equal(f.payload, 2 * 2 * 2 * STEPS * (int64_t)m);
  f = simulate_law(
      &(law){.n = 3, .way = "central: r1", .workers = 2, .strategy = "sma", .buffers = b});
  assert_int_equal(f.payload, 2 * 2 * 2 * STEPS * (int64_t)(m + (double)b * sizeof(float)));
}

/* A run that limits.wan_bytes ends has used up the limit, except for a model to every other region
   over a mesh, where the third round would have half of its need, and for a few pieces or chunks
   elsewhere. */
static void test_limit_on_bytes(void) {
  static const char *const names[] = {"mesh", "hub", "tree", "ring"};
  const double n = 8, others = n - 1;
  for (size_t i = 0; i < 4; i++) {
    char way[64];
    snprintf(way, sizeof way, "topology: %s", names[i]);
    const double limit = 2.5 * others * (i == 0 ? n : 2) * m,
                 left = i == 0 ? others * n / 2 * m : 1.5 * m;
    const law l = {.n = (size_t)n, .way = way, .limit_bytes = limit};
    const double sent = (double)simulate_law(&l).payload;
    if (sent > limit || sent < limit - left - 1)
      fail_msg("%s: %.0f bytes of %.0f", names[i], sent, limit);
  }
}

TESTS(test_mesh, test_hub, test_hub_that_only_aggregates, test_ring, test_tree, test_access,
      test_central, test_central_with_buffers, test_limit_on_bytes)
