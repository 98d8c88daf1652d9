/* The fleet of a probe: who measures with whom, reference tasks, and a section
   of the profile that is read back as it was measured. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "geotrain/job_fleet.h"
#include "world.h"

/* ---- points ---------------------------------------------------------------------------------- */

static const char hosts[7][GT_PROBE_BOOT_ID] = {"x", "y", "x", "z", "y", "x", "z"};

static void test_points(void) {
  static const size_t first[7] = {0, 1, 0, 3, 1, 0, 3};
  size_t point[7];
  gt_probe_points(hosts, 7, false, point);
  assert_memory_equal(point, first, sizeof first);
  assert_int_equal(gt_probe_point_second(point, 7, 0), 2);
  assert_int_equal(gt_probe_point_second(point, 7, 1), 4);
  gt_probe_points(hosts, 7, true, point);
  for (size_t i = 0; i < 7; i++) assert_int_equal(point[i], i);
  assert_int_equal(gt_probe_point_second(point, 7, 3), 7);
}

/* Every two of those that stand for themselves meet once; others never do. */
static void check_rounds(const size_t *point, size_t n, size_t needed) {
  int met[7][7] = {{0}};
  const size_t rounds = gt_probe_point_rounds(point, n);
  assert_int_equal(rounds, needed);
  for (size_t round = 0; round < rounds; round++)
    for (size_t self = 0; self < n; self++) {
      const size_t other = gt_probe_point_partner(point, n, round, self);
      if (other == n) continue;
      assert_int_equal(gt_probe_point_partner(point, n, round, other), self);
      met[self][other]++;
    }
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      assert_int_equal(met[i][j], i != j && point[i] == i && point[j] == j);
}

static void test_rounds(void) {
  size_t point[7];
  gt_probe_points(hosts, 7, true, point);
  for (size_t n = 1; n <= 7; n++) check_rounds(point, n, n == 1 ? 0 : n - 1 + n % 2);
  gt_probe_points(hosts, 7, false, point);
  check_rounds(point, 7, 3);
}

/* ---- reference tasks ------------------------------------------------------------------------- */

static void test_reference(void) {
  double times_s[GT_PROBE_TASKS];
  cpu_set_t before, after;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  const gt_ns began = gt_now();
  gt_probe_reference(times_s, 1);
  const double all_s = gt_seconds(gt_now() - began);
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_true(CPU_EQUAL(&before, &after));
  for (int task = 0; task < GT_PROBE_TASKS; task++) {
    print_message("%s: %.3f ms\n", gt_probe_tasks[task], 1e3 * times_s[task]);
    assert_true(times_s[task] > 1e-6 && times_s[task] < all_s); /* seconds, on every machine */
  }
}

/* Two ranks with places in a row go through the same cores, on a different one in each turn. */
static void test_cores(void) {
  gt_probe_cores one, other;
  cpu_set_t before, now, then;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  gt_probe_cores_open(&one, 6);
  gt_probe_cores_open(&other, 7);
  assert_int_equal(one.n, CPU_COUNT(&before));
  for (size_t turn = 0; turn < 2 * one.n; turn++) {
    gt_probe_cores_take(&one, turn);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    gt_probe_cores_take(&other, turn);
    assert_int_equal(sched_getaffinity(0, sizeof then, &then), 0);
    assert_true(CPU_COUNT(&now) == 1 && CPU_COUNT(&then) == 1);
    assert_true(one.n == 1 || !CPU_EQUAL(&now, &then));
    gt_probe_cores_take(&one, turn + one.n);
    assert_int_equal(sched_getaffinity(0, sizeof then, &then), 0);
    assert_true(CPU_EQUAL(&now, &then));
  }
  gt_probe_cores_close(&other);
  assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
  assert_true(CPU_EQUAL(&now, &before));
}

/* ---- the profile ----------------------------------------------------------------------------- */

static const char *path;

/* Times that name their ends: no two of them are equal. */
static gt_pipe_link made(size_t from, size_t to) {
  const double small_s = 1e-6 * (double)(1 + 100 * from + to);
  return (gt_pipe_link){small_s, 100 * small_s};
}

/* Each worker of a region knows the others by their numbers. */
static void measure(gt_probe_state *p) {
  const size_t n = (size_t)p->run.roles.world_size, nregions = p->run.job->nregions;
  p->all_pairs = GT_NEW_ARRAY(gt_pipe_link, n * n);
  for (size_t i = 0; i < n; i++) {
    p->ranks[i].power = (double)(i + 1);
    p->ranks[i].memory_bytes = 1e9 + (double)i;
    for (size_t k = 0; k < n; k++) p->all_pairs[i * n + k] = made(i, k);
  }
  for (size_t i = 0; i < nregions * nregions; i++) {
    p->all_links[i].small_s = made(1000 + i / nregions, i % nregions).small_s;
    p->all_links[i].large_s = made(1000 + i / nregions, i % nregions).large_s;
  }
}

static gt_job_fleet *written(gt_probe_state *p) {
  gt_job_fleet *fleet = NULL;
  must(gt_probe_profile(p, path));
  must(gt_job_fleet_load(&fleet, path));
  return fleet;
}

static void assert_link(const gt_job_fleet *f, size_t from, size_t to, gt_pipe_link needed) {
  const gt_job_fleet_link *l = &f->links[from * f->n + to];
  if (!(fabs(l->small_s / needed.small_s - 1) < 1e-5) ||
      !(fabs(l->large_s / needed.large_s - 1) < 1e-5))
    fail_msg("from %zu to %zu: %g s, %g s; expected %g s, %g s", from, to, l->small_s, l->large_s,
             needed.small_s, needed.large_s);
}

#define WAN "{emulate: true, default: {bandwidth: 1 Gbit/s, latency: 1 ms}}"

static void test_small_fleet(void) {
  gt_probe_state *p = w_found("[{name: a, ranks: 3}, {name: b, ranks: 4}]", WAN);
  measure(p);
  gt_job_fleet *f = written(p);
  assert_int_equal(f->n, 5);
  assert_string_equal(f->devices[1].name, "a.1");
  assert_string_equal(f->devices[2].name, "b.0");
  assert_string_equal(f->devices[2].region, "b");
  assert_string_equal(f->devices[2].host, "host");
  assert_true(f->devices[0].power == 2 && f->devices[2].power == 5 && f->devices[4].power == 7);
  /* seven ranks share what the host has */
  assert_true(fabs(f->devices[4].memory_bytes - 1e9 / 7) < 1);
  assert_link(f, 0, 1, made(1, 1));
  assert_link(f, 1, 0, made(2, 0));
  assert_link(f, 2, 4, made(4, 2));
  assert_link(f, 4, 3, made(6, 1));
  assert_link(f, 0, 4, made(1000, 1));
  assert_link(f, 3, 1, made(1001, 0));
  gt_job_fleet_close(f);
  w_close(p);
}

/* Workers alternate between two hosts. */
static void test_large_fleet(void) {
  gt_probe_state *p = w_found("[{name: a, ranks: 61}, {name: b, ranks: 4}]", WAN);
  for (int i = 0; i < p->run.roles.world_size; i++)
    snprintf(p->ranks[i].kernel, sizeof p->ranks[i].kernel, "boot-%d", i % 2);
  measure(p);
  gt_job_fleet *f = written(p);
  assert_int_equal(f->n, 63);
  /* ranks 1 and 2 stand for the first region's hosts, 62 and 63 for the second's */
  assert_link(f, 0, 1, made(1, 1));
  assert_link(f, 2, 59, made(1, 1));
  assert_link(f, 59, 58, made(2, 0));
  assert_link(f, 4, 2, made(1, 2)); /* on one host: between the first two there */
  assert_link(f, 3, 5, made(2, 3));
  assert_link(f, 60, 62, made(62, 2));
  assert_link(f, 61, 62, made(63, 0));
  assert_link(f, 59, 62, made(1000, 1));
  assert_true(fabs(f->devices[0].memory_bytes - 1e9 / 32) < 1);
  gt_job_fleet_close(f);
  w_close(p);
}

/* The passes of all spans together take about as long as a step of the whole model. */
static void test_passes(void) {
  gt_job *job = w_job("[{name: a, ranks: 2}]", "{default: {latency: 1 ms}}");
  gt_graph *whole, *cut;
  gt_metrics m;
  float *x = GT_NEW_ARRAY(float, 16 * 28 * 28);
  int32_t labels[16];
  for (int i = 0; i < 16; i++) labels[i] = i % 10;
  for (int i = 0; i < 16 * 28 * 28; i++) x[i] = (float)(i % 97) / 97;
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = (gt_sample_shape){.h = 28, .w = 28, .c = 1, .classes = 10};
  spec.batch_max = 16;
  spec.kernels = gt_kernels_find("auto");
  must(gt_graph_create(&whole, &spec));
  const size_t n = gt_probe_spans(whole, NULL);
  gt_span *spans = GT_NEW_ARRAY(gt_span, n);
  gt_probe_passes *passes = GT_NEW_ARRAY(gt_probe_passes, n);
  assert_int_equal(gt_probe_spans(whole, spans), n);
  spec.spans = spans, spec.nspans = n, spec.slots = 1, spec.micro_batches = 1;
  must(gt_graph_create(&cut, &spec));
  gt_graph_init(whole, 1);
  gt_graph_init(cut, 1);
  gt_graph_prepare(cut, 16);
  /* Beside other work both are too long now and then: the shortest are compared. */
  double step_s = INFINITY, sum_s = INFINITY;
  for (int turn = 0; turn < 40 && !(sum_s > step_s / 2 && sum_s < 2 * step_s); turn++) {
    double sum = 0;
    gt_probe_passes_of(cut, spans, n, &(gt_micro_batch){x, labels, 16}, passes);
    for (size_t k = 0; k < n; k++) {
      assert_true(passes[k].forward_s > 0 && passes[k].input_s >= 0 && passes[k].weight_s >= 0);
      sum += passes[k].forward_s + passes[k].input_s + passes[k].weight_s;
    }
    sum_s = fmin(sum_s, sum);
    for (int i = 0; i < 20; i++) {
      const gt_ns from = gt_now();
      gt_graph_step(whole, x, labels, 16, true, &m);
      step_s = fmin(step_s, gt_seconds(gt_now() - from) / 16);
    }
  }
  print_message("a sample: %.2f us in a step, %.2f us in %zu spans\n", 1e6 * step_s, 1e6 * sum_s,
                n);
  assert_true(sum_s > step_s / 2 && sum_s < 2 * step_s);
  /* the last turn's gradients are those of the step: no operation was left out */
  assert_memory_equal(gt_graph_arrays(whole)->grads.data, gt_graph_arrays(cut)->grads.data,
                      gt_graph_arrays(cut)->grads.n * sizeof(float));
  gt_graph_close(whole);
  gt_graph_close(cut);
  gt_job_close(job);
  gt_free(spans);
  gt_free(passes);
  gt_free(x);
}

/* Workers of power 2 and 4, of which the job slows the second to a quarter, so that it could have
   16: the times in the profile are those at power 1, the median of both. */
static void test_operations(void) {
  gt_probe_state *p =
      w_found("[{name: a, ranks: 3, compute: {speeds: [1, 0.25]}}]", "{default: {latency: 1 ms}}");
  gt_graph_spec spec = gt_graph_spec_of(p->run.job);
  spec.shape = (gt_sample_shape){.h = 28, .w = 28, .c = 1, .classes = 10};
  spec.sizes_only = true;
  spec.kernels = gt_kernels_find("ref");
  must(gt_graph_create(&p->run.graph, &spec));
  measure(p);
  p->ranks[1].power = 2;
  p->ranks[2].power = 4;
  p->noperations = gt_probe_spans(p->run.graph, NULL);
  assert_in_range(p->noperations, 3, gt_graph_operations(p->run.graph));
  p->all_passes = GT_NEW_ARRAY(gt_probe_passes, 3 * p->noperations);
  for (size_t k = 0; k < p->noperations; k++) {
    p->all_passes[p->noperations + k] = (gt_probe_passes){(double)k + 1, 2, 3};
    p->all_passes[2 * p->noperations + k] = (gt_probe_passes){(double)k + 1, 0, 1};
  }
  gt_job_fleet *f = written(p);
  assert_int_equal(f->noperations, p->noperations);
  assert_int_equal(f->operations[f->noperations - 1].last + 1, gt_graph_operations(p->run.graph));
  for (size_t k = 0; k < f->noperations; k++) {
    assert_true(fabs(f->operations[k].forward_s / ((double)(k + 1) * (2 + 16) / 2) - 1) < 1e-5);
    assert_true(fabs(f->operations[k].input_s - 2) < 1e-5);
    assert_true(fabs(f->operations[k].weight_s - (3 * 2 + 16) / 2.0) < 1e-5);
  }
  must_contain(w_print(p, gt_probe_report_fleet), "  operations: ");
  gt_job_fleet_close(f);
  gt_graph_close(p->run.graph);
  w_close(p);
}

static size_t widest(const char *text) {
  size_t most = 0;
  for (size_t n = strcspn(text, "\n"); *text; text += n + (text[n] != 0), n = strcspn(text, "\n"))
    if (n > most) most = n;
  return most;
}

/* The table has a line for every worker; a probe without a fleet has neither table nor section.
   The report keeps to 80 columns. */
static void test_report(void) {
  gt_job_fleet *fleet = NULL;
  gt_probe_state *p = w_found("[{name: a, ranks: 3}, {name: b, ranks: 4}]", WAN);
  assert_null(strstr(w_print(p, gt_probe_report), "fleet"));
  must(gt_probe_profile(p, path));
  assert_int_equal(gt_job_fleet_load(&fleet, path), GT_ERR_JOB);
  measure(p);
  must_contain(w_print(p, gt_probe_report), "fleet, reference tasks");
  assert_in_range(widest(w_print(p, gt_probe_report)), 40, GT_LINE_WIDTH);
  assert_int_equal(w_lines(w_print(p, gt_probe_report_fleet)), 4 + 5);
  w_close(p);
}

int main(void) {
  path = in_folder("profile.yaml");
  return RUN_TESTS(NULL, NULL, test_points, test_rounds, test_reference, test_cores,
                   test_small_fleet, test_large_fleet, test_passes, test_operations, test_report);
}
