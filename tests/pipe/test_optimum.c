/* The distance of the search from the best order, which is found by trying all. */
#include "cases.h"
#include "world.h"
#include "tests.h"

#define STAGES_MAX 3
#define MICROS     2
#define PASSES     (3 * MICROS)
#define ORDERS     20 /* 6! / (3! 3!): F, B, W of two micro-batches, each in its order */

/* The micro-batch of each pass, as the bits of a number. */
static size_t all_orders(unsigned *orders) {
  size_t n = 0;
  for (unsigned bits = 0; bits < 1u << PASSES; bits++)
    if (__builtin_popcount(bits) == PASSES / MICROS) orders[n++] = bits;
  return n;
}

static void add_order(gt_pipe_schedule *s, size_t stage, unsigned bits) {
  gt_pass_kind next[MICROS] = {GT_PASS_F, GT_PASS_F};
  for (size_t i = 0; i < PASSES; i++) {
    size_t micro = bits >> i & 1;
    gt_pipe_add(s, next[micro]++, stage, micro);
  }
}

/* Returns the lowest aim over all sound orders of all stages. */
static gt_ns least(const world *w, gt_pipe_aim aim) {
  unsigned orders[ORDERS];
  assert_int_equal(all_orders(orders), ORDERS);
  gt_ns best = GT_NEVER;
  size_t combinations = 1;
  for (size_t s = 0; s < w->problem.stages; s++) combinations *= ORDERS;
  for (size_t i = 0; i < combinations; i++) {
    gt_pipe_schedule *s = gt_pipe_schedule_create(w->problem.stages, 1, MICROS);
    gt_pipe_result r;
    for (size_t stage = 0, rest = i; stage < w->problem.stages; stage++, rest /= ORDERS)
      add_order(s, stage, orders[rest % ORDERS]);
    if (gt_pipe_evaluate(&r, s, &w->problem, 1) == GT_OK) {
      gt_ns found = aim == GT_PIPE_COST ? r.cost : r.makespan;
      if (found < best) best = found;
    }
    gt_pipe_result_close(&r);
    gt_pipe_schedule_close(s);
  }
  return best;
}

static void random_pipeline(world *w, gt_rng *rng, size_t stages) {
  w_alike(w, stages, 1, MICROS, 0, 0, 0, 0);
  for (size_t k = 0; k < stages; k++) {
    w->spans[k].forward_s = 1 + gt_rng_uniform(rng);
    w->spans[k].backward_s = 1 + gt_rng_uniform(rng);
    w->spans[k].weight_s = 0.2 + gt_rng_uniform(rng);
    w->ahead[k].delay_s = 3 * gt_rng_uniform(rng);
    w->back[k].delay_s = 3 * gt_rng_uniform(rng);
    w->memory[k] = gt_rng_below(rng, 2) ? 1.5 : 0;
  }
  w->problem.memory = w->memory;
}

/* Never below the optimum, and in none of these pipelines above it. */
static void compare(size_t stages, gt_pipe_aim aim, size_t n) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, stages, (uint64_t)aim);
  for (size_t i = 0; i < n; i++) {
    world w;
    random_pipeline(&w, &rng, stages);
    const gt_pipe_search search = {.aim = aim, .variants = 200};
    gt_pipe_result r = w_run(&w, GT_PIPE_AUTO, &search);
    assert_int_equal(aim == GT_PIPE_COST ? r.cost : r.makespan, least(&w, aim));
    gt_pipe_result_close(&r);
  }
}

static void makespans_against_all_orders(void) {
  compare(2, GT_PIPE_MAKESPAN, cases(200, 60));
  compare(3, GT_PIPE_MAKESPAN, cases(10, 3));
}

static void costs_against_all_orders(void) {
  compare(2, GT_PIPE_COST, cases(200, 60));
}

TESTS(makespans_against_all_orders, costs_against_all_orders)
