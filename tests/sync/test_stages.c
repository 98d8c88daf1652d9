/* The lockstep of regions of one pipeline, event by event: who is told what, when workers are held,
   when a step is made or dropped, how far another region can be ahead, and what a resume needs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "geotrain/sync.h"

#define PARAMS 3

/* What the strategy of a region has asked for. */
typedef struct {
  gt_sync *sync;
  gt_optim *optim;
  float params[PARAMS];
  bool held;
  int64_t step, mark; /* that it told last */
  size_t told;        /* to so many regions in all */
  size_t made, spoilt;
} region;

static void hold(void *ctx) {
  ((region *)ctx)->held = true;
}

static void release(void *ctx) {
  ((region *)ctx)->held = false;
}

static void tell(void *ctx, size_t peer, int64_t value, int64_t detail) {
  region *r = ctx;
  assert_int_not_equal(peer, 0);
  r->told++;
  r->step = value;
  r->mark = detail;
}

static void made(void *ctx, size_t spoilt) {
  region *r = ctx;
  r->made++;
  r->spoilt = spoilt;
}

/* Region 0 of so many; its optimizer subtracts the gradient. */
static void open_region(region *r, size_t nregions) {
  static const double weights[] = {0.5, 0.25, 0.25};
  const gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD,
                             .schedule = {.kind = GT_LR_CONSTANT, .lr = 1, .gamma = 1}};
  *r = (region){0};
  assert_int_equal(gt_optim_create(&r->optim, &sgd, PARAMS, true), GT_OK);
  const gt_sync_env env = {
      .nregions = nregions,
      .weights = weights,
      .options = {.period = 1, .scale = 1},
      .params = gt_vec_of(r->params, PARAMS),
      .optim = r->optim,
      .host = {.ctx = r, .hold = hold, .release = release, .tell = tell, .made = made}};
  r->sync = gt_sync_create(&gt_sync_stages, &env);
}

static void close_region(region *r) {
  gt_sync_close(r->sync);
  gt_optim_close(r->optim);
}

/* The vector is the strategy's for the call only. */
static void gradient(region *r, float x) {
  float grads[PARAMS] = {x, 2 * x, 0};
  gt_sync_on_gradient(r->sync, 0, gt_vec_of(grads, PARAMS), 1);
  for (size_t j = 0; j < PARAMS; j++) grads[j] = NAN;
}

static void hears(region *r, size_t peer, int64_t step, int64_t mark) {
  assert_int_equal(gt_sync_check_control(r->sync, peer, step, mark), GT_OK);
  gt_sync_on_control(r->sync, 0, peer, step, mark);
}

static void refuses(const region *r, size_t peer, int64_t step, int64_t mark) {
  assert_int_equal(gt_sync_check_control(r->sync, peer, step, mark), GT_ERR_FAULT);
}

static void test_alone(void **state) {
  (void)state;
  region r;
  open_region(&r, 1);
  gradient(&r, 1);
  assert_true(r.made == 1 && r.spoilt == 1 && !r.held && r.told == 0 && r.params[1] == -2);
  gt_sync_on_spoilt(r.sync, 0);
  assert_true(r.made == 2 && r.spoilt == 0 && !r.held && r.params[1] == -2);
  assert_int_equal(gt_optim_steps(r.optim), 1);
  close_region(&r);
}

static void test_all_have_told(void **state) {
  (void)state;
  region r;
  open_region(&r, 3);
  gradient(&r, 1);
  assert_true(r.told == 2 && r.step == 1 && r.mark == 0 && r.held && r.made == 0);
  hears(&r, 2, 1, 0);
  assert_true(r.held && r.made == 0 && r.params[0] == 0);
  hears(&r, 1, 1, 0);
  assert_true(!r.held && r.made == 1 && r.spoilt == 3 && r.params[0] == -1);
  hears(&r, 1, 2, 0); /* before the own gradient is there */
  hears(&r, 2, 2, 0);
  assert_true(!r.held && r.made == 1);
  gradient(&r, 1);
  assert_true(!r.held && r.made == 2 && r.told == 4 && r.step == 2 && r.params[0] == -2);
  close_region(&r);
}

/* Dropped by all if one says so, and named by the first of those; the next step is another
   matter. */
static void test_spoilt(void **state) {
  (void)state;
  region r;
  open_region(&r, 3);
  gradient(&r, 1);
  hears(&r, 2, 1, 1);
  hears(&r, 1, 1, 1);
  assert_true(!r.held && r.made == 1 && r.spoilt == 1 && r.params[0] == 0);
  gt_sync_on_spoilt(r.sync, 0);
  assert_true(r.held && r.step == 2 && r.mark == 1);
  hears(&r, 1, 2, 0);
  hears(&r, 2, 2, 0);
  assert_true(!r.held && r.made == 2 && r.spoilt == 0);
  gradient(&r, 1);
  hears(&r, 1, 3, 0);
  hears(&r, 2, 3, 0);
  assert_true(r.made == 3 && r.spoilt == 3 && r.params[0] == -1);
  assert_int_equal(gt_optim_steps(r.optim), 1);
  close_region(&r);
}

/* Another region that has heard of all can be a step ahead, and no more. */
static void test_ahead(void **state) {
  (void)state;
  region r;
  open_region(&r, 3);
  refuses(&r, 1, 0, 0);
  refuses(&r, 1, 2, 0);
  refuses(&r, 1, 1, 2);
  refuses(&r, 1, 1, -1);
  hears(&r, 1, 1, 0);
  refuses(&r, 1, 1, 0);
  refuses(&r, 1, 2, 0); /* it cannot have made step 1 */
  gradient(&r, 1);
  hears(&r, 1, 2, 1); /* it has heard of region 2 what is not here yet */
  refuses(&r, 1, 3, 0);
  hears(&r, 2, 1, 0);
  assert_true(r.made == 1 && r.spoilt == 3);
  gradient(&r, 1);
  hears(&r, 2, 2, 0);
  assert_true(r.made == 2 && r.spoilt == 1 && r.params[0] == -1);
  close_region(&r);
}

/* What was told of a step that was not made is not saved. */
static void test_resume(void **state) {
  (void)state;
  region r, again;
  gt_state saved = {0};
  open_region(&r, 3);
  gradient(&r, 1);
  hears(&r, 1, 1, 0);
  hears(&r, 2, 1, 0);
  hears(&r, 1, 2, 1);
  gradient(&r, 1);
  gt_sync_save(r.sync, &saved);
  open_region(&again, 3);
  assert_int_equal(gt_sync_load(again.sync, &saved), GT_OK);
  refuses(&again, 1, 1, 0);
  refuses(&again, 1, 3, 0);
  hears(&again, 1, 2, 0);
  gradient(&again, 1);
  assert_true(again.held && again.step == 2);
  hears(&again, 2, 2, 0);
  assert_true(!again.held && again.made == 1 && again.spoilt == 3);
  gt_state_close(&saved);
  close_region(&r);
  close_region(&again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alone), cmocka_unit_test(test_all_have_told),
      cmocka_unit_test(test_spoilt), cmocka_unit_test(test_ahead), cmocka_unit_test(test_resume)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
