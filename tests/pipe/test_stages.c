/* Stages against a separate brute force, written from the definition in pipe_stages.h; figures by
   hand; memory; many groups; the time of the search; errors. */
#include "cases.h"
#include "geotrain/pipe_stages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define CASES      10000
#define LARGE      300
#define OPERATIONS 64
#define GROUPS     32
#define MIB        1048576.0

typedef struct {
  gt_pipe_stages_problem p;
  gt_pipe_operation operations[OPERATIONS];
  gt_pipe_group groups[GROUPS];
  gt_pipe_link between[GROUPS * GROUPS];
  int64_t in_flight[OPERATIONS];
  bool may_start[GROUPS];
} world;

static void join_world(world *w, size_t noperations, size_t ngroups) {
  w->p.operations = w->operations;
  w->p.noperations = noperations;
  w->p.groups = w->groups;
  w->p.ngroups = ngroups;
  w->p.between = w->between;
  w->p.in_flight = w->in_flight;
}

/* ---- the definition -------------------------------------------------------------------------- */

static double flight_of(const gt_pipe_stages_problem *p, size_t behind) {
  int64_t k = p->in_flight[behind];
  return (double)(k < p->micro_batches ? k : p->micro_batches);
}

static double occupied(gt_pipe_link l, double bytes) {
  return isinf(l.large_s) ? INFINITY : bytes * (l.large_s - l.small_s) / (4 * MIB);
}

/* All figures of a stage but hops. */
static gt_pipe_stage figures_of(const gt_pipe_stages_problem *p, gt_pipe_stage s, size_t behind) {
  double share = ceil((double)p->micro_batch / (double)s.devices), power = p->groups[s.group].power;
  double parameters = 0, held = 0, f = 0, b = 0, w = 0;
  gt_pipe_link inside = p->between[s.group * p->ngroups + s.group];
  for (size_t i = s.first; i <= s.last; i++) {
    const gt_pipe_operation *o = &p->operations[i];
    f += o->forward_s;
    b += o->input_s;
    w += o->weight_s;
    parameters += o->parameter_bytes;
    held += o->activation_bytes + o->kept_bytes;
  }
  s.forward_s = share * f / power;
  s.input_s = share * b / power;
  s.weight_s = share * w / power;
  s.sync_s = 2 * (inside.small_s + occupied(inside, (double)s.devices * parameters));
  s.busy_s = s.forward_s + s.input_s + s.weight_s + s.sync_s / (double)p->micro_batches;
  s.memory_bytes = p->copies * parameters + flight_of(p, behind) * share * held;
  return s;
}

static void add_hop(const gt_pipe_stages_problem *p, gt_pipe_stage *s, const gt_pipe_stage *next) {
  gt_pipe_link there = p->between[s->group * p->ngroups + next->group],
               back = p->between[next->group * p->ngroups + s->group];
  double bytes = (double)p->micro_batch * p->operations[next->first].cut_bytes;
  s->send_s = there.small_s + occupied(there, bytes);
  s->back_s = back.small_s + occupied(back, bytes);
  s->hop_busy_s = fmax(occupied(there, bytes), occupied(back, bytes));
}

/* The pipeline's figures from its stages' groups, devices and operations; slowest_s is INFINITY
   where the memory is too small. */
static void evaluate(const gt_pipe_stages_problem *p, gt_pipe_stages *out) {
  out->slowest_s = out->pass_s = out->bound_s = 0;
  for (size_t i = out->nstages; i-- > 0;) {
    gt_pipe_stage *s = &out->stages[i];
    size_t behind = out->nstages - 1 - i;
    *s = figures_of(p, *s, behind);
    s->send_s = s->back_s = s->hop_busy_s = 0;
    if (behind > 0) add_hop(p, s, s + 1);
    out->slowest_s = fmax(out->slowest_s, fmax(s->busy_s, s->hop_busy_s));
    if (s->memory_bytes > p->groups[s->group].memory_bytes) out->slowest_s = INFINITY;
    out->pass_s += s->forward_s + s->input_s + s->send_s + s->back_s;
    out->bound_s = fmax(out->bound_s, out->pass_s / flight_of(p, behind));
  }
  out->bound_s = fmax(out->bound_s, out->slowest_s);
}

/* ---- brute force ----------------------------------------------------------------------------- */

typedef struct {
  const gt_pipe_stages_problem *p;
  gt_pipe_stage stages[OPERATIONS];
  int64_t left[GROUPS]; /* devices */
  double slowest_s, pass_s;
  bool least_pass; /* second turn: the least pass_s with this slowest_s */
} brute;

static bool may_follow(const brute *b, size_t n, size_t group) {
  const gt_pipe_group *groups = b->p->groups;
  if (n == 0) return !b->p->may_start || b->p->may_start[group];
  if (b->stages[n - 1].group == group) return true;
  for (size_t i = 0; i < n; i++) {
    if (b->stages[i].group == group) return false;
    if (groups[b->stages[i].group].region == groups[group].region &&
        groups[b->stages[n - 1].group].region != groups[group].region)
      return false;
  }
  return true;
}

static void judge(brute *b, size_t n) {
  gt_pipe_stages all = {.stages = b->stages, .nstages = n};
  if (n < b->p->stages_min || (b->p->stages_max > 0 && n > b->p->stages_max)) return;
  evaluate(b->p, &all);
  if (!b->least_pass)
    b->slowest_s = fmin(b->slowest_s, all.slowest_s);
  else if (all.slowest_s <= b->slowest_s * (1 + 1e-12))
    b->pass_s = fmin(b->pass_s, all.pass_s);
}

static void place_from(brute *b, size_t first, size_t n) {
  if (first == b->p->noperations) {
    judge(b, n);
    return;
  }
  for (size_t g = 0; g < b->p->ngroups; g++) {
    if (!may_follow(b, n, g)) continue;
    for (size_t last = first; last < b->p->noperations; last++)
      for (int64_t d = 1; d <= b->left[g]; d++) {
        b->stages[n] = (gt_pipe_stage){.group = g, .first = first, .last = last, .devices = d};
        b->left[g] -= d;
        place_from(b, last + 1, n + 1);
        b->left[g] += d;
      }
  }
}

static brute brute_force(const gt_pipe_stages_problem *p) {
  brute b = {.p = p, .slowest_s = INFINITY, .pass_s = INFINITY};
  for (size_t g = 0; g < p->ngroups; g++) b.left[g] = p->groups[g].count;
  place_from(&b, 0, 0);
  b.least_pass = true;
  if (b.slowest_s < INFINITY) place_from(&b, 0, 0);
  return b;
}

/* ---- random problems ------------------------------------------------------------------------- */

/* Multiples of 1/64, so that all sums are exact, or any number. */
static double draw(gt_rng *rng, bool exact, double most) {
  double x = gt_rng_uniform(rng) * most;
  return exact ? floor(x * 64) / 64 : x;
}

static gt_pipe_link draw_link(gt_rng *rng, bool exact, double small_s) {
  gt_pipe_link link = {.small_s = draw(rng, exact, small_s)};
  link.large_s = link.small_s + draw(rng, exact, 2);
  return link;
}

static void draw_operations(world *w, gt_rng *rng, bool exact) {
  for (size_t i = 0; i < w->p.noperations; i++)
    w->operations[i] = (gt_pipe_operation){draw(rng, exact, 1),       draw(rng, exact, 1),
                                           draw(rng, exact, 1),       MIB * draw(rng, exact, 4),
                                           MIB * draw(rng, exact, 2), MIB * draw(rng, exact, 1),
                                           MIB * draw(rng, exact, 2)};
}

static void draw_groups(world *w, gt_rng *rng, bool exact, int64_t devices) {
  size_t n = w->p.ngroups;
  double memory = MIB * exp(2 + 4 * gt_rng_uniform(rng));
  for (size_t g = 0; g < n; g++) {
    double power = exact ? ldexp(1, (int)gt_rng_below(rng, 4) - 1) : 0.5 + gt_rng_uniform(rng);
    w->groups[g] =
        (gt_pipe_group){gt_rng_below(rng, 3), 1, power, memory * (0.5 + gt_rng_uniform(rng))};
    for (size_t h = 0; h < n; h++) {
      bool reached = h == g || gt_rng_uniform(rng) < 0.9;
      w->between[g * n + h] =
          reached ? draw_link(rng, exact, h == g ? 0.1 : 1) : (gt_pipe_link){INFINITY, INFINITY};
    }
  }
  for (int64_t d = (int64_t)n; d < devices; d++) w->groups[gt_rng_below(rng, n)].count++;
}

/* 1F1B, GPipe, a constant, anything. */
static void draw_flight(world *w, gt_rng *rng) {
  uint64_t kind = gt_rng_below(rng, 4);
  for (size_t k = 0; k < w->p.noperations; k++) {
    int64_t held[] = {(int64_t)k + 1, w->p.micro_batches, 2, 1 + (int64_t)gt_rng_below(rng, 5)};
    w->in_flight[k] = held[kind];
  }
}

static void draw_world(world *w, uint64_t number, size_t operations, int64_t devices) {
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, operations, number);
  bool exact = number % 2 == 0;
  int64_t most = 1 + (int64_t)gt_rng_below(&rng, (uint64_t)devices);
  size_t ngroups = 1 + gt_rng_below(&rng, (uint64_t)(most < 6 ? most : 6));
  *w = (world){0};
  join_world(w, 1 + gt_rng_below(&rng, operations), ngroups);
  w->p.micro_batch = 1 + (int64_t)gt_rng_below(&rng, 8);
  w->p.micro_batches = (int64_t)1 << gt_rng_below(&rng, 4);
  w->p.copies = (double)gt_rng_below(&rng, 5);
  w->p.stages_min = gt_rng_below(&rng, 3);
  w->p.stages_max = gt_rng_below(&rng, 2) * (w->p.stages_min + gt_rng_below(&rng, 3));
  draw_operations(w, &rng, exact);
  draw_groups(w, &rng, exact, most);
  draw_flight(w, &rng);
  for (size_t g = 0; g < ngroups; g++) w->may_start[g] = g == 0 || gt_rng_below(&rng, 2) == 1;
  if (number % 3 == 0) w->p.may_start = w->may_start;
}

/* ---- properties of every solution ------------------------------------------------------------ */

static void assert_equal(double a, double b) {
  if (!(fabs(a - b) <= 1e-9 * fabs(b))) fail_msg("%.17g, and %.17g is needed", a, b);
}

static void check_structure(const gt_pipe_stages_problem *p, const gt_pipe_stages *s) {
  brute order = {.p = p};
  int64_t used[GROUPS] = {0};
  assert_true(s->nstages >= 1 && s->nstages >= p->stages_min);
  assert_true(p->stages_max == 0 || s->nstages <= p->stages_max);
  for (size_t i = 0, first = 0; i < s->nstages; first = s->stages[i++].last + 1) {
    assert_int_equal(s->stages[i].first, first);
    assert_true(s->stages[i].last >= first && s->stages[i].devices >= 1);
    assert_true(may_follow(&order, i, s->stages[i].group));
    order.stages[i] = s->stages[i];
    used[s->stages[i].group] += s->stages[i].devices;
  }
  assert_int_equal(s->stages[s->nstages - 1].last, p->noperations - 1);
  for (size_t g = 0; g < p->ngroups; g++) assert_true(used[g] <= p->groups[g].count);
}

static void check_figures(const gt_pipe_stages_problem *p, const gt_pipe_stages *s) {
  gt_pipe_stage stages[OPERATIONS];
  gt_pipe_stages own = {.stages = stages, .nstages = s->nstages};
  memcpy(stages, s->stages, s->nstages * sizeof *stages);
  evaluate(p, &own);
  for (size_t i = 0; i < s->nstages; i++) {
    const gt_pipe_stage *a = &s->stages[i], *b = &stages[i];
    assert_equal(a->forward_s, b->forward_s);
    assert_equal(a->input_s, b->input_s);
    assert_equal(a->weight_s, b->weight_s);
    assert_equal(a->sync_s, b->sync_s);
    assert_equal(a->busy_s, b->busy_s);
    assert_equal(a->send_s, b->send_s);
    assert_equal(a->back_s, b->back_s);
    assert_equal(a->hop_busy_s, b->hop_busy_s);
    assert_equal(a->memory_bytes, b->memory_bytes);
    assert_true(a->memory_bytes <= p->groups[a->group].memory_bytes);
  }
  assert_equal(s->slowest_s, own.slowest_s);
  assert_equal(s->pass_s, own.pass_s);
  assert_equal(s->bound_s, own.bound_s);
}

/* ---- the solution is the best ---------------------------------------------------------------- */

static void check_no_solution(const gt_pipe_stages *s) {
  const char *why = gt_error_text();
  assert_null(s->stages);
  assert_true(strstr(why, "memory") || strstr(why, "stages at least are needed"));
}

/* Where sums are exact the figures are equal bit for bit. */
static void check_best(const world *w, const gt_pipe_stages *s, bool exact) {
  brute best = brute_force(&w->p);
  if (exact) {
    assert_true(s->slowest_s == best.slowest_s);
    assert_true(s->pass_s == best.pass_s);
  }
  assert_equal(s->slowest_s, best.slowest_s);
  assert_equal(s->pass_s, best.pass_s);
  check_structure(&w->p, s);
  check_figures(&w->p, s);
}

static void stages_are_what_brute_force_finds(void **state) {
  (void)state;
  size_t none = 0, several = 0, crossing = 0, replicas = 0;
  static world w;
  for (uint64_t i = 0; i < CASES; i++) {
    gt_pipe_stages s;
    draw_world(&w, i, 6, 4);
    gt_status status = gt_pipe_stages_solve(&s, &w.p);
    if (status != GT_OK) {
      assert_int_equal(status, GT_ERR_JOB);
      assert_true(isinf(brute_force(&w.p).slowest_s));
      check_no_solution(&s);
      none++;
      continue;
    }
    check_best(&w, &s, i % 2 == 0);
    several += s.nstages > 1;
    crossing += s.stages[0].group != s.stages[s.nstages - 1].group;
    replicas += s.stages[0].devices > 1;
    gt_pipe_stages_close(&s);
  }
  print_message("%zu of %d without a solution; %zu with several stages, %zu with several groups\n",
                none, CASES, several, crossing);
  assert_true(none > CASES / 20 && several > CASES / 4 && crossing > CASES / 10);
  assert_true(replicas > CASES / 50);
}

/* ---- larger problems ------------------------------------------------------------------------- */

static void assert_same(const gt_pipe_stages *a, const gt_pipe_stages *b) {
  assert_int_equal(a->nstages, b->nstages);
  assert_memory_equal(a->stages, b->stages, a->nstages * sizeof *a->stages);
}

/* Solutions keep to memory and counts, are the same again, and are not slower with more memory. */
static void larger_problems(void **state) {
  (void)state;
  size_t solved = 0, faster = 0;
  static world w;
  for (uint64_t i = 0; i < LARGE; i++) {
    gt_pipe_stages s, again, more;
    draw_world(&w, i, 20, 30);
    if (gt_pipe_stages_solve(&s, &w.p) != GT_OK) continue;
    solved++;
    check_structure(&w.p, &s);
    check_figures(&w.p, &s);
    assert_int_equal(gt_pipe_stages_solve(&again, &w.p), GT_OK);
    assert_same(&s, &again);
    for (size_t g = 0; g < w.p.ngroups; g++) w.groups[g].memory_bytes *= 2;
    assert_int_equal(gt_pipe_stages_solve(&more, &w.p), GT_OK);
    assert_true(more.slowest_s <= s.slowest_s);
    faster += more.slowest_s < s.slowest_s;
    gt_pipe_stages_close(&more);
    gt_pipe_stages_close(&again);
    gt_pipe_stages_close(&s);
  }
  assert_true(solved > LARGE / 2 && faster > LARGE / 20);
}

/* ---- many groups ----------------------------------------------------------------------------- */

/* Equal operations and groups of some devices in regions one after another; links inside a region
   are a hundred times as fast. */
static void make_fleet(world *w, size_t operations, size_t groups, int64_t devices,
                       size_t regions) {
  *w = (world){0};
  join_world(w, operations, groups);
  w->p.micro_batch = 64;
  w->p.micro_batches = 16;
  w->p.copies = 4;
  gt_rng rng = gt_rng_make(4, GT_RNG_TEST, operations, groups);
  for (size_t i = 0; i < operations; i++) {
    double size = 0.5 + gt_rng_uniform(&rng);
    w->operations[i] =
        (gt_pipe_operation){1e-3 * size, 1e-3 * size,    1e-3 * size,    4 * MIB * size,
                            MIB * size,  MIB * size / 2, MIB / 32 * size};
    w->in_flight[i] = (int64_t)i + 1;
  }
  for (size_t g = 0; g < groups; g++) {
    size_t n = (size_t)devices / groups + (g < (size_t)devices % groups);
    w->groups[g] = (gt_pipe_group){g * regions / groups, (int64_t)n, 1 + gt_rng_uniform(&rng),
                                   2048 * MIB * (1 + gt_rng_uniform(&rng))};
  }
  for (size_t g = 0; g < groups; g++)
    for (size_t h = 0; h < groups; h++) {
      double far = w->groups[g].region == w->groups[h].region ? 1 : 100;
      w->between[g * groups + h] = (gt_pipe_link){1e-4 * far * (1 + gt_rng_uniform(&rng)),
                                                  5e-3 * far * (1 + gt_rng_uniform(&rng))};
    }
}

static void a_hundred_devices(void **state) {
  (void)state;
  static const size_t groups[] = {1, 4, 8, 8, 25}, regions[] = {1, 2, 3, 1, 5};
  static world w;
  for (size_t i = 0; i < 5; i++) {
    if (i % 4 != 0 && !all_cases()) continue;
    gt_pipe_stages s;
    make_fleet(&w, 48, groups[i], 100, regions[i]);
    clock_t began = clock();
    assert_int_equal(gt_pipe_stages_solve(&s, &w.p), GT_OK);
    double took_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    print_message("48 operations, 100 devices, %zu groups, %zu regions: %.2f s of CPU, %zu stages, "
                  "slowest %.2f ms\n",
                  groups[i], regions[i], took_s, s.nstages, 1e3 * s.slowest_s);
    check_structure(&w.p, &s);
    check_figures(&w.p, &s);
    assert_int_equal(s.exact, groups[i] <= GT_PIPE_ORDERS);
    gt_pipe_stages_close(&s);
#ifdef __x86_64__ /* elsewhere perhaps under an emulator */
    /* 5 s are wanted of a search; other tests may share this core's caches */
    if (took_s > 10) fail_msg("%.1f s for 100 devices; at most 10 s are needed", took_s);
#endif
  }
}

/* A ninth group without memory changes nothing but the way of searching. */
static void nearest_neighbours_are_near_the_best(void **state) {
  (void)state;
  static world w;
  double worst = 0, sum = 0;
  const size_t n = cases(20, 8);
  for (size_t i = 0; i < n; i++) {
    gt_pipe_stages best, near;
    make_fleet(&w, 10 + i, 9, 30, 1 + i % 4);
    for (size_t g = 0; g < 8; g++)
      memmove(&w.between[g * 8], &w.between[g * 9], 8 * sizeof *w.between);
    w.p.ngroups = 8;
    assert_int_equal(gt_pipe_stages_solve(&best, &w.p), GT_OK);
    make_fleet(&w, 10 + i, 9, 30, 1 + i % 4);
    w.groups[8].memory_bytes = 0;
    assert_int_equal(gt_pipe_stages_solve(&near, &w.p), GT_OK);
    check_structure(&w.p, &near);
    check_figures(&w.p, &near);
    assert_true(best.exact && !near.exact && near.slowest_s >= best.slowest_s);
    worst = fmax(worst, near.slowest_s / best.slowest_s);
    sum += near.slowest_s / best.slowest_s;
    gt_pipe_stages_close(&near);
    gt_pipe_stages_close(&best);
  }
  print_message("nearest neighbours / best: mean %.3f, worst %.3f\n", sum / (double)n, worst);
  assert_true(worst < 1.25 && sum < (double)n * 1.05);
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* Four operations of 1 s each way, two regions of two devices, 2 samples in a micro-batch: two
   stages of two operations on two devices have 6 s each; four stages have 6 s too, and a
   micro-batch needs longer to pass them. */
static void make_two_regions(world *w) {
  *w = (world){0};
  join_world(w, 4, 2);
  w->p.micro_batch = 2;
  w->p.micro_batches = 4;
  w->p.copies = 3;
  for (size_t i = 0; i < 4; i++) {
    w->operations[i] = (gt_pipe_operation){1, 1, 1, 10 * MIB, 3 * MIB, MIB, MIB / 2};
    w->in_flight[i] = (int64_t)i + 1;
  }
  for (size_t g = 0; g < 2; g++) w->groups[g] = (gt_pipe_group){g, 2, 1, 100 * MIB};
  w->between[1] = (gt_pipe_link){0.5, 4.5};
  w->between[2] = (gt_pipe_link){0.25, 4.25};
}

static void figures_by_hand(void **state) {
  (void)state;
  static world w;
  gt_pipe_stages s;
  make_two_regions(&w);
  assert_int_equal(gt_pipe_stages_solve(&s, &w.p), GT_OK);
  assert_int_equal(s.nstages, 2);
  assert_int_equal(s.stages[0].last, 1);
  assert_int_equal(s.stages[0].devices, 2);
  assert_int_equal(s.stages[1].devices, 2);
  assert_true(s.slowest_s == 6 && s.stages[0].busy_s == 6 && s.stages[0].forward_s == 2);
  assert_true(s.stages[0].hop_busy_s == 1);
  assert_true(s.stages[0].send_s + s.stages[0].back_s == 2.75);
  assert_true(s.pass_s == 4 + 2.75 + 4 && s.bound_s == 6);
  assert_true(s.stages[0].memory_bytes == (3 * 20 + 2 * 8) * MIB);
  assert_true(s.stages[1].memory_bytes == (3 * 20 + 1 * 8) * MIB);
  gt_pipe_stages_close(&s);
}

/* Where a gradient is back late, the micro-batches in flight limit the pace. */
static void in_flight_limits_the_pace(void **state) {
  (void)state;
  static world w;
  gt_pipe_stages s;
  make_two_regions(&w);
  w.between[1] = (gt_pipe_link){20.5, 24.5};
  assert_int_equal(gt_pipe_stages_solve(&s, &w.p), GT_OK);
  assert_true(s.nstages == 2 && s.slowest_s == 6 && s.bound_s == (8 + 22.75) / 2);
  gt_pipe_stages_close(&s);
}

/* An exchange of parameters over a slow network: one device is faster than two. */
static void an_exchange_may_cost_more_than_a_device_gives(void **state) {
  (void)state;
  static world w;
  gt_pipe_stages s;
  make_two_regions(&w);
  w.p.ngroups = 1;
  w.p.stages_max = 1;
  w.groups[0].memory_bytes = INFINITY;
  w.between[0] = (gt_pipe_link){0, 4};
  assert_int_equal(gt_pipe_stages_solve(&s, &w.p), GT_OK);
  assert_int_equal(s.stages[0].devices, 1); /* 24 + 2 x 40 / 4 s instead of 12 + 2 x 80 / 4 s */
  assert_true(s.slowest_s == 44 && s.stages[0].sync_s == 80);
  w.between[0] = (gt_pipe_link){0, 1};
  gt_pipe_stages_close(&s);
  assert_int_equal(gt_pipe_stages_solve(&s, &w.p), GT_OK);
  assert_int_equal(s.stages[0].devices, 2); /* 12 + 2 x 20 / 4 s instead of 24 + 2 x 10 / 4 s */
  assert_true(s.slowest_s == 22);
  gt_pipe_stages_close(&s);
}

/* ---- no solution ----------------------------------------------------------------------------- */

static void assert_refused(const gt_pipe_stages_problem *p, const char *why) {
  gt_pipe_stages s;
  assert_int_equal(gt_pipe_stages_solve(&s, p), GT_ERR_JOB);
  assert_string_equal(gt_error_text(), why);
  assert_null(s.stages);
}

static void why_nothing_fits(void **state) {
  (void)state;
  static world w;
  make_two_regions(&w);
  w.groups[0].memory_bytes = w.groups[1].memory_bytes = 29 * MIB;
  w.p.ngroups = 1;
  assert_refused(&w.p, "no split into stages fits into the devices' memory; the fastest one has "
                       "operations 0 to 3 on 2 of the devices of group 0, which takes 136.0 MiB on "
                       "each, and they have 29.0 MiB");
  make_two_regions(&w);
  w.p.stages_min = 5;
  assert_refused(&w.p, "5 stages at least are needed; 4 operations on devices that reach each "
                       "other make fewer");
  w.p.stages_min = 3;
  w.between[1] = w.between[2] = (gt_pipe_link){INFINITY, INFINITY};
  assert_refused(&w.p, "3 stages at least are needed; 4 operations on devices that reach each "
                       "other make fewer");
}

static void wrong_numbers_are_named(void **state) {
  (void)state;
  static world w;
  make_two_regions(&w);
  const gt_pipe_stages_problem good = w.p;
  w.p.noperations = 0;
  assert_refused(&w.p, "there is no operation; stages need one at least");
  w.p = good;
  w.p.ngroups = 0;
  assert_refused(&w.p, "there is no group; stages need one at least");
  w.p = good;
  w.p.micro_batch = 0;
  assert_refused(&w.p, "4 micro-batches of 0 samples; 1 or more is needed of both");
  w.p = good;
  w.p.copies = NAN;
  assert_refused(&w.p, "nan copies of the parameters; 0 or more are needed");
  w.p = good;
  w.p.stages_min = 3;
  w.p.stages_max = 2;
  assert_refused(&w.p, "at least 3 stages and at most 2 cannot both be");
  w.p = good;
  w.in_flight[1] = 0;
  assert_refused(&w.p, "0 micro-batches in flight with 1 stages behind; 1 or more are needed");
  make_two_regions(&w);
  w.operations[2].input_s = -1;
  assert_refused(&w.p, "operation 2 takes 1, -1 and 1 s; 0 or more is needed");
  w.operations[2].input_s = 1;
  w.operations[2].cut_bytes = INFINITY;
  assert_refused(&w.p, "operation 2 has 1.04858e+07 bytes of parameters, 3.14573e+06 of "
                       "activations, keeps 1.04858e+06 and gets inf; 0 or more are needed");
}

static void wrong_groups_are_named(void **state) {
  (void)state;
  static world w;
  make_two_regions(&w);
  w.groups[1].count = 0;
  assert_refused(&w.p, "group 1 has 0 devices; 1 to 65535 are needed");
  make_two_regions(&w);
  w.groups[1].power = INFINITY;
  assert_refused(&w.p, "group 1 has a power of inf; more than 0 is needed");
  make_two_regions(&w);
  w.groups[1].memory_bytes = NAN;
  assert_refused(&w.p, "group 1 has nan bytes of memory; 0 or more are needed");
  make_two_regions(&w);
  w.between[1] = (gt_pipe_link){2, 1};
  assert_refused(&w.p, "messages from group 0 to group 1 take 2 s (small) and 1 s (large); 0 or "
                       "more is needed, and not less for the larger");
  w.between[0] = (gt_pipe_link){INFINITY, INFINITY};
  assert_refused(&w.p, "the devices of group 0 do not reach each other");
  make_two_regions(&w);
  w.p.may_start = (const bool[]){false, false};
  assert_refused(&w.p, "no group may have the first stage; one is needed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stages_are_what_brute_force_finds),
      cmocka_unit_test(larger_problems),
      cmocka_unit_test(a_hundred_devices),
      cmocka_unit_test(nearest_neighbours_are_near_the_best),
      cmocka_unit_test(figures_by_hand),
      cmocka_unit_test(in_flight_limits_the_pace),
      cmocka_unit_test(an_exchange_may_cost_more_than_a_device_gives),
      cmocka_unit_test(why_nothing_fits),
      cmocka_unit_test(wrong_numbers_are_named),
      cmocka_unit_test(wrong_groups_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
