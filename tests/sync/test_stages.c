/* The lockstep of regions of one pipeline, event by event: who is told what, when workers are held,
   when a step is made or dropped, how far another region can be ahead, and what a resume needs. */
#include "tests.h"
#include "geotrain/sync.h"

#define PARAMS 3

/* What the strategy of a region has asked for. */
typedef struct {
  gt_sync *sync;
  gt_optim *optim;
  float params[PARAMS];
  bool held;
  int64_t step, mark;       /* that it told last */
  size_t told;              /* to so many regions in all */
  size_t messages, numbers; /* of numbers, to region 1 */
  double last;              /* of them */
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

/* Squares go before what is told of the step. */
static void tell_numbers(void *ctx, size_t peer, int64_t value, size_t first, const double *numbers,
                         size_t n) {
  region *r = ctx;
  assert_true(value == r->step + 1 && n > 0 && n <= GT_CONTROL_NUMBERS);
  if (peer != 1) return;
  assert_int_equal(first, r->numbers);
  r->messages++;
  r->numbers += n;
  r->last = numbers[n - 1];
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
  const gt_sync_env env = {.nregions = nregions,
                           .weights = weights,
                           .options = {.period = 1, .scale = 1},
                           .params = gt_vec_of(r->params, PARAMS),
                           .optim = r->optim,
                           .host = {.ctx = r,
                                    .hold = hold,
                                    .release = release,
                                    .tell = tell,
                                    .tell_numbers = tell_numbers,
                                    .made = made}};
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

static void test_alone(void) {
  region r;
  open_region(&r, 1);
  gradient(&r, 1);
  assert_true(r.made == 1 && r.spoilt == 1 && !r.held && r.told == 0 && r.params[1] == -2);
  gt_sync_on_spoilt(r.sync, 0);
  assert_true(r.made == 2 && r.spoilt == 0 && !r.held && r.params[1] == -2);
  assert_int_equal(gt_optim_steps(r.optim), 1);
  close_region(&r);
}

static void test_all_have_told(void) {
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
static void test_spoilt(void) {
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
static void test_ahead(void) {
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
static void test_resume(void) {
  region r, again;
  gt_state saved = {0};
  open_region(&r, 3);
  gradient(&r, 1);
  hears(&r, 1, 1, 0);
  hears(&r, 2, 1, 0);
  hears(&r, 1, 2, 1);
  gradient(&r, 1);
  assert_int_equal(gt_sync_state(r.sync, (gt_state_way){.to = &saved}), GT_OK);
  open_region(&again, 3);
  assert_int_equal(gt_sync_state(again.sync, (gt_state_way){.from = &saved}), GT_OK);
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

/* ---- clipping -------------------------------------------------------------------------------- */

enum { TENSORS = 1200 }; /* of region 0, one float each: three messages; region 1 has two */

static void open_clipped(region *r, const gt_view *views, const size_t *owners, float *params) {
  static const double weights[] = {0.5, 0.5};
  const gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD,
                             .schedule = {.kind = GT_LR_CONSTANT, .lr = 1, .gamma = 1},
                             .clip = 2,
                             .tensors = views,
                             .ntensors = TENSORS};
  *r = (region){0};
  assert_int_equal(gt_optim_create(&r->optim, &sgd, TENSORS, true), GT_OK);
  const gt_sync_env env = {.nregions = 2,
                           .weights = weights,
                           .options = {.period = 1, .scale = 1},
                           .params = gt_vec_of(params, TENSORS),
                           .optim = r->optim,
                           .owners = owners,
                           .nowners = TENSORS + 2,
                           .host = {.ctx = r,
                                    .hold = hold,
                                    .release = release,
                                    .tell = tell,
                                    .tell_numbers = tell_numbers,
                                    .made = made}};
  r->sync = gt_sync_create(&gt_sync_stages, &env);
}

/* What region 1 sends for this step; the numbers lie at an odd address, as in a frame. */
static void sends(region *r, int64_t step, double a, double b) {
  char bytes[1 + 2 * sizeof(double)];
  memcpy(bytes + 1, &a, sizeof a);
  memcpy(bytes + 1 + sizeof a, &b, sizeof b);
  assert_int_equal(gt_sync_check_numbers(r->sync, 1, step, 0, 2), GT_OK);
  gt_sync_on_numbers(r->sync, 0, 1, step, 0, bytes + 1, 2);
}

static void sends_wrong(const region *r, int64_t step, size_t first, size_t n) {
  assert_int_equal(gt_sync_check_numbers(r->sync, 1, step, first, n), GT_ERR_FAULT);
}

/* The norm is that of both regions' tensors, added in the order of the model: small squares before
   and behind a large one, so that another order would round otherwise. */
static void test_clipped(void) {
  static gt_view views[TENSORS];
  static size_t owners[TENSORS + 2];
  static float params[TENSORS], grads[TENSORS];
  region r;
  for (size_t i = 0; i < TENSORS; i++) {
    views[i] = (gt_view){.offset = i, .count = 1};
    grads[i] = i % 2 ? 1e-5f : 0.25f;
  }
  owners[0] = owners[TENSORS / 2] = 1;
  open_clipped(&r, views, owners, params);
  sends_wrong(&r, 1, 0, 1);
  sends_wrong(&r, 1, 1, 2);
  sends_wrong(&r, 2, 0, 2);
  refuses(&r, 1, 1, 0); /* no squares are there yet */
  gt_sync_on_gradient(r.sync, 0, gt_vec_of(grads, TENSORS), 1);
  assert_true(r.told == 1 && r.messages == 3 && r.numbers == TENSORS);
  assert_true(r.last == (double)1e-5f * (double)1e-5f);
  sends(&r, 1, 1e9, 1e-7);
  sends_wrong(&r, 1, 0, 2); /* once more */
  refuses(&r, 1, 1, 1);     /* squares, and yet not finite */
  assert_true(r.made == 0 && r.held);
  hears(&r, 1, 1, 0);
  double sum = 1e9;
  for (size_t i = 0, own = 0; i < TENSORS + 1; i++) {
    const double square = i + 1 == TENSORS / 2 ? 1e-7 : (double)grads[own] * (double)grads[own];
    own += i + 1 != TENSORS / 2;
    sum += square;
  }
  const float share = (float)(2 / sqrt(sum));
  assert_true(r.made == 1 && params[0] == -(share * 0.25f) && params[1] == -(share * 1e-5f));
  hears(&r, 1, 2, 1); /* not finite: no squares */
  r.numbers = 0;
  gt_sync_on_gradient(r.sync, 0, gt_vec_of(grads, TENSORS), 1);
  assert_true(r.made == 2 && r.spoilt == 1 && params[0] == -(share * 0.25f));
  close_region(&r);
}

TESTS(test_alone, test_all_have_told, test_spoilt, test_ahead, test_resume, test_clipped)
