/* Published figures, a table over latencies, and theorems of the zero-bubble papers. */
#include "world.h"
#include "tests.h"

static void near_to(double found, double needed, double within) {
  if (!(fabs(found - needed) <= within)) fail_msg("found %.9g, needed %.9g", found, needed);
}

/* Makespan in seconds, cost and bubble of one kind. */
static void expect_row(gt_pipe_kind kind, double makespan_s, double bubble) {
  world w;
  w_published(&w, 0);
  gt_pipe_result r = w_run(&w, kind, NULL);
  near_to(gt_seconds(r.makespan), makespan_s, 0.0005);
  near_to(gt_seconds(r.cost), makespan_s, 0.0005);
  near_to(r.bubble, bubble, 0.00005);
  near_to(r.bubble, 1 - 24 * (18.522 + 18.086 + 9.337) / gt_seconds(r.cost), 1e-9);
  gt_pipe_result_close(&r);
}

/* Qi et al. 2024, table of bubble rates: 8 stages, 24 micro-batches. */
static void the_published_bubbles(void) {
  expect_row(GT_PIPE_1F1B, 1456.749, 0.2431);
  expect_row(GT_PIPE_ZB_H1, 1310.405, 0.1585);
  expect_row(GT_PIPE_ZB_H2, 1236.632, 0.1083);
}

static void expect_auto(double memory, double bubble) {
  world w;
  w_published(&w, memory);
  const gt_pipe_search search = {.aim = GT_PIPE_COST};
  gt_pipe_result r = w_run(&w, GT_PIPE_AUTO, &search);
  near_to(r.bubble, bubble, 0.00005);
  assert_int_equal(r.period, r.cost);
  for (size_t s = 0; s < r.nstages; s++) assert_true(r.stages[s].peak <= memory);
  gt_pipe_result_close(&r);
}

/* The paper's own search, with 16 activations, has .0433. */
static void auto_on_the_published_row(void) {
  expect_auto(16, 0.0436);
  expect_auto(20, 0.0433);
}

/* A single variant: the plain rules. */
static void the_plain_rules_on_the_published_row(void) {
  const gt_pipe_search search = {.aim = GT_PIPE_COST, .variants = 1};
  static const struct { double memory, bubble; } rows[] = {{16, 0.0666}, {20, 0.0436}};
  for (size_t i = 0; i < 2; i++) {
    world w;
    w_published(&w, rows[i].memory);
    gt_pipe_result r = w_run(&w, GT_PIPE_AUTO, &search);
    near_to(r.bubble, rows[i].bubble, 0.00005);
    gt_pipe_result_close(&r);
  }
}

static void memory_as_published(void) {
  world w;
  w_published(&w, 0);
  static const struct {
    gt_pipe_kind kind;
    double peak;
  } rows[] = {{GT_PIPE_GPIPE, 24}, {GT_PIPE_1F1B, 8}, {GT_PIPE_ZB_H1, 8}, {GT_PIPE_ZB_H2, 15}};
  for (size_t i = 0; i < 4; i++) {
    gt_pipe_result r = w_run(&w, rows[i].kind, NULL);
    near_to(r.stages[0].peak, rows[i].peak, 1e-9);
    gt_pipe_result_close(&r);
  }
}

/* F = B = W without communication: every stage works without a gap from its first pass to its last,
   and step follows step without one. */
static void no_bubble_where_times_are_equal(void) {
  for (size_t p = 1; p <= 8; p++)
    for (size_t m = 2 * p; m <= 2 * p + 5; m++) {
      world h2, v;
      w_alike(&h2, p, 1, m, 1, 1, 1, 0);
      w_alike(&v, p, 2, m, 0.5, 0.5, 0.5, 0);
      gt_pipe_result a = w_run(&h2, GT_PIPE_ZB_H2, NULL), b = w_run(&v, GT_PIPE_ZB_V, NULL);
      const gt_ns work = 3 * (gt_ns)m * GT_SECOND;
      assert_true(a.cost == work && b.cost == work && a.bubble == 0 && b.bubble == 0);
      assert_true(a.period == work && b.period == work);
      for (size_t s = 0; s < p; s++) assert_true(b.stages[s].peak <= 2 * (double)p);
      gt_pipe_result_close(&a);
      gt_pipe_result_close(&b);
    }
}

/* The zero-bubble README: with equal times 1F1B's bubble is (p - 1) / (m + p - 1), H1's a third of
   that time. */
static void bubbles_by_formula(void) {
  for (size_t p = 2; p <= 8; p++)
    for (size_t m = 2 * p; m <= 24; m += 5) {
      world w;
      w_alike(&w, p, 1, m, 1, 1, 1, 0);
      gt_pipe_result a = w_run(&w, GT_PIPE_1F1B, NULL), b = w_run(&w, GT_PIPE_ZB_H1, NULL);
      assert_true(a.cost == 3 * (gt_ns)(m + p - 1) * GT_SECOND);
      assert_true(b.cost == (gt_ns)(3 * m + p - 1) * GT_SECOND);
      gt_pipe_result_close(&a);
      gt_pipe_result_close(&b);
    }
}

static gt_ns makespan(double delay_s, gt_pipe_kind kind, const gt_pipe_search *search,
                      double memory, double share) {
  world w;
  w_over_wan(&w, delay_s, memory);
  for (size_t k = 0; k < 4; k++) w.spans[k].weight_share = share;
  gt_pipe_result r = w_run(&w, kind, search);
  gt_ns found = r.makespan;
  gt_pipe_result_close(&r);
  return found;
}

/* Latency of the middle hop, and makespans in seconds.  The last stage cannot begin before 3 + c,
   and has 48 s of work: auto's are the least there are. */
static void a_table_over_latencies(void) {
  static const double rows[][4] = {
      {0, 57, 57, 51}, {1, 59, 73, 52}, {2, 61, 89, 53}, {4, 65, 121, 55}, {8, 73, 185, 59}};
  const gt_pipe_search plain = {.variants = 1};
  for (size_t i = 0; i < COUNT(rows); i++) {
    const double c = rows[i][0];
    assert_int_equal(makespan(c, GT_PIPE_GPIPE, NULL, 0, 0.5), gt_from_seconds(rows[i][1]));
    assert_int_equal(makespan(c, GT_PIPE_1F1B, NULL, 0, 0.5), gt_from_seconds(rows[i][2]));
    assert_int_equal(makespan(c, GT_PIPE_AUTO, &plain, 0, 0.5), gt_from_seconds(rows[i][3]));
    assert_int_equal(makespan(c, GT_PIPE_AUTO, NULL, 0, 0.5), gt_from_seconds(rows[i][3]));
  }
}

/* 8 activations at 4 s: the plain rules take 57 s where W keeps all of an activation; other
   variants less. */
static void less_memory_over_latency(void) {
  const gt_pipe_search plain = {.variants = 1};
  assert_int_equal(makespan(4, GT_PIPE_AUTO, &plain, 8, 1), 57 * GT_SECOND);
  assert_int_equal(makespan(4, GT_PIPE_AUTO, NULL, 8, 1), 55 * GT_SECOND);
  assert_int_equal(makespan(4, GT_PIPE_AUTO, NULL, 8, 0.5), 55 * GT_SECOND);
}

static void depths_by_hand(void) {
  world w;
  w_published(&w, 0);
  assert_int_equal(gt_pipe_depth(&w.problem, 7), 1);
  assert_int_equal(gt_pipe_depth(&w.problem, 6), 4);  /* 1 + ceil(37.81 / 18.522) */
  assert_int_equal(gt_pipe_depth(&w.problem, 0), 16); /* 1 + ceil(264.67 / 18.522) */
  w_limit(&w, 12.5);
  assert_int_equal(gt_pipe_depth(&w.problem, 0), 12);
  w_over_wan(&w, 4, 0);
  static const size_t needed[] = {15, 13, 3, 1};
  for (size_t s = 0; s < 4; s++) assert_int_equal(gt_pipe_depth(&w.problem, s), needed[s]);
  w_over_wan(&w, 8, 0);
  assert_int_equal(gt_pipe_depth(&w.problem, 0), 16); /* 23, but there are 16 micro-batches */
}

/* The search is never slower than its candidates. */
static void auto_is_never_behind(void) {
  const gt_pipe_kind kinds[] = {GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_ZB_H1, GT_PIPE_ZB_H2};
  const gt_pipe_search search = {.aim = GT_PIPE_PERIOD, .variants = 50};
  for (int c = 0; c <= 8; c += 4) {
    world w;
    w_over_wan(&w, c, 0);
    gt_pipe_result best = w_run(&w, GT_PIPE_AUTO, &search);
    for (size_t i = 0; i < 4; i++) {
      gt_pipe_result r = w_run(&w, kinds[i], NULL);
      assert_true(best.period <= r.period);
      gt_pipe_result_close(&r);
    }
    gt_pipe_result_close(&best);
  }
}

/* Two stages of two chunks, 6 micro-batches; a stage holds two chunks.  If F of a first chunk
   waited for a slot in the later one, too, micro-batches would run one after the other: 1,116 s
   without latency, 7,116 s with 250 s each way.  These of auto are the lowest possible. */
static void folded_with_two_slots(void) {
  static const struct { double delay_s, makespan_s; } rows[] = {{0, 996}, {250, 4496}};
  static const size_t variants[] = {0, 50};
  for (size_t i = 0; i < 4; i++) {
    world w;
    w_alike(&w, 2, 2, 6, 20, 22, 18, rows[i / 2].delay_s);
    w_limit(&w, 2);
    const gt_pipe_search search = {.variants = variants[i % 2]};
    gt_pipe_result r = w_run(&w, GT_PIPE_AUTO, &search);
    near_to(gt_seconds(r.makespan), rows[i / 2].makespan_s, 1e-9);
    for (size_t s = 0; s < 2; s++) assert_true(r.stages[s].peak <= 2);
    gt_pipe_result_close(&r);
  }
}

TESTS(the_published_bubbles, auto_on_the_published_row, the_plain_rules_on_the_published_row,
      memory_as_published, no_bubble_where_times_are_equal, bubbles_by_formula,
      a_table_over_latencies, less_memory_over_latency, depths_by_hand, auto_is_never_behind,
      folded_with_two_slots)
