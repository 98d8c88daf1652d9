/* How one PS makes a step from its workers' pushes: mean gradients, mean or last buffers, without
   non-finite ones; and the step number in orders. */
#include "tests.h"
#include "geotrain/ps.h"
#include "../strategies.h"

#define MOST     ((size_t)5)
#define NPARAMS  ((size_t)3)
#define NBUFFERS ((size_t)2)

typedef struct {
  gt_ps *ps;
  gt_optim *optim;
  float params[NPARAMS], grads[NPARAMS], buffers[NBUFFERS], snapshot[NPARAMS + NBUFFERS];
  gt_ps_order orders[MOST]; /* the last of each worker; kind 0: none */
  float given[MOST];        /* its first parameter */
  float lent[MOST][NPARAMS], own[MOST][NBUFFERS];
  const float *reduced; /* the mean formed by the workers */
  int asked, taken, notes;
} fixture;

static void on_order(void *ctx, size_t worker, const gt_ps_order *o) {
  fixture *f = ctx;
  if (o->kind == GT_PS_KEEPALIVE) return;
  f->orders[worker] = *o;
  if (o->params.data) f->given[worker] = o->params.data[0];
}

static void on_taken(void *ctx, size_t worker) {
  (void)worker;
  ((fixture *)ctx)->taken++;
}

static const float *on_reduced(void *ctx) {
  fixture *f = ctx;
  f->asked++;
  return f->reduced;
}

static void on_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)a, (void)b;
  ((fixture *)ctx)->notes += note == GT_NOTE_NONFINITE;
}

/* Parameters start at 0 and the rate is 1: after a step they are the gradient's negative. */
static void begin(fixture *f, size_t workers, bool async, gt_ps_interval until,
                  int64_t eval_every) {
  static const double weight = 1;
  *f = (fixture){.buffers = {9, 9}};
  gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD, .schedule = {.kind = GT_LR_CONSTANT, .lr = 1}};
  assert_int_equal(gt_optim_create(&f->optim, &sgd, NPARAMS, true), GT_OK);
  gt_ps_spec spec = {
      .nregions = 1,
      .nworkers = workers,
      .local_async = async,
      .strategy = sync_named("none"),
      .weights = &weight,
      .options = {.period = 1, .scale = 1},
      .outbox = 1,
      .window = 1,
      .params = gt_vec_of(f->params, NPARAMS),
      .grads = gt_vec_of(f->grads, NPARAMS),
      .buffers = gt_vec_of(f->buffers, NBUFFERS),
      .optim = f->optim,
      .order = {.seed = 1, .n = 16, .batch = 4},
      .until = until,
      .eval_every = {.steps = eval_every},
      .test_samples = eval_every ? 8 : 0,
      .eval_chunk = 8,
      .snapshot = gt_vec_of(f->snapshot, NPARAMS),
      .snapshot_buffers = gt_vec_of(f->snapshot + NPARAMS, NBUFFERS),
      .nonfinite_limit = 100,
      .heartbeat = GT_SECOND,
      .keepalive = GT_SECOND,
      .host = {
          .ctx = f, .order = on_order, .taken = on_taken, .reduced = on_reduced, .note = on_note}};
  f->ps = gt_ps_create(&spec);
  gt_ps_start(f->ps, 0);
  for (size_t w = 0; w < workers; w++) gt_ps_ready(f->ps, w, 0);
}

static void end(fixture *f) {
  gt_ps_close(f->ps);
  gt_optim_close(f->optim);
}

/* The worker's gradient and buffers are all g and b. */
static void push(fixture *f, size_t worker, int64_t samples, float g, float b) {
  assert_int_equal(f->orders[worker].kind, GT_PS_TRAIN);
  f->orders[worker].kind = 0;
  for (size_t i = 0; i < NPARAMS; i++) f->lent[worker][i] = g;
  for (size_t i = 0; i < NBUFFERS; i++) f->own[worker][i] = b;
  gt_ps_push p = {
      .samples = samples, .buffers = f->own[worker], .nonfinite = !isfinite(g) || !isfinite(b)};
  gt_ps_gradient(f->ps, worker, &p, f->lent[worker], 1);
}

static void all_are(const float *v, size_t n, double x) {
  for (size_t i = 0; i < n; i++) assert_true(fabs((double)v[i] - x) < 1e-5);
}

static const gt_ps_interval many = {.steps = 1000};

static void sync_takes_means(void) {
  fixture f;
  begin(&f, 3, false, many, 0);
  push(&f, 2, 2, 7, -2);
  push(&f, 0, 4, 1, 3);
  assert_true(f.params[0] == 0 && f.buffers[0] == 9);
  push(&f, 1, 4, -2, 0.5f);
  all_are(f.params, NPARAMS, -(4.0 * 1 - 2.0 * 4 + 7.0 * 2) / 10);
  all_are(f.buffers, NBUFFERS, (4.0 * 3 + 0.5 * 4 - 2.0 * 2) / 10);
  assert_int_equal(f.taken, 3);
  end(&f);
}

static void sync_leaves_out_what_is_not_finite(void) {
  fixture f;
  const float never[NPARAMS] = {NAN, NAN, NAN};
  begin(&f, 3, false, many, 0);
  f.reduced = never;
  push(&f, 0, 4, 1, 3);
  push(&f, 1, 4, NAN, 100);
  push(&f, 2, 2, 4, 6);
  all_are(f.params, NPARAMS, -2);
  all_are(f.buffers, NBUFFERS, 4);
  assert_int_equal(f.asked, 0);
  assert_int_equal(f.notes, 1);
  memset(f.params, 0, sizeof f.params);
  /* one is left */
  for (size_t w = 0; w < 3; w++) push(&f, w, 4, w == 1 ? 5 : 1, w == 1 ? 8.1f : INFINITY);
  all_are(f.params, NPARAMS, -5);
  assert_true(f.buffers[0] == 8.1f && f.buffers[1] == 8.1f);
  for (size_t w = 0; w < 3; w++) push(&f, w, 4, NAN, 1); /* none is */
  all_are(f.params, NPARAMS, -5);
  assert_true(f.buffers[0] == 8.1f);
  end(&f);
}

static void sync_uses_what_workers_formed(void) {
  fixture f;
  const float mean[NPARAMS] = {11, 12, 13};
  begin(&f, 2, false, many, 0);
  push(&f, 0, 4, 1, 3);
  f.reduced = mean;
  push(&f, 1, 4, 1, 3);
  for (size_t i = 0; i < NPARAMS; i++) assert_true(f.params[i] == -mean[i]);
  assert_int_equal(f.asked, 1);
  end(&f);
}

/* A single worker's gradient is taken without any rounding. */
static void one_worker_is_taken_as_it_is(void) {
  fixture f;
  begin(&f, 1, false, many, 0);
  push(&f, 0, 3, 0.1f, 0.7f);
  assert_true(f.params[0] == -0.1f && f.buffers[1] == 0.7f);
  assert_int_equal(f.asked, 0);
  end(&f);
}

static void async_takes_the_last(void) {
  fixture f;
  begin(&f, 2, true, many, 0);
  assert_true(f.orders[0].step == 0 && f.orders[0].workers == 0 && !f.orders[0].common);
  push(&f, 1, 4, 1, 3);
  all_are(f.params, NPARAMS, -1);
  assert_true(f.buffers[0] == 3);
  push(&f, 0, 4, 2, NAN);
  all_are(f.params, NPARAMS, -1);
  assert_true(f.buffers[0] == 3);
  push(&f, 1, 4, 2, 4);
  all_are(f.params, NPARAMS, -3);
  assert_true(f.buffers[0] == 4);
  assert_int_equal(f.asked, 0);
  end(&f);
}

static void told(const fixture *f, size_t workers, int64_t step, size_t all) {
  for (size_t w = 0; w < all; w++) {
    assert_int_equal(f->orders[w].kind, w < workers ? GT_PS_TRAIN : 0);
    if (w >= workers) continue;
    assert_int_equal(f->orders[w].step, step);
    assert_int_equal(f->orders[w].workers, workers);
    assert_true(f->orders[w].common);
  }
}

/* 16 samples in batches of 4 are 4 batches: a step of three workers and one of one.  A step without
   gradients has a number, too. */
static void orders_tell_of_the_step(void) {
  fixture f;
  begin(&f, 3, false, (gt_ps_interval){.epochs = 2}, 0);
  told(&f, 3, 1, 3);
  for (size_t w = 0; w < 3; w++) push(&f, w, 4, NAN, 1);
  told(&f, 3, 2, 3);
  for (size_t w = 0; w < 3; w++) push(&f, w, 4, 1, 1);
  told(&f, 2, 3, 3);
  for (size_t w = 0; w < 2; w++) push(&f, w, 4, 1, 1);
  told(&f, 0, 0, 3);
  end(&f);
}

/* All workers of a step begin together, with the current parameters. */
static void a_step_waits_for_the_evaluation(void) {
  fixture f;
  begin(&f, 2, false, many, 1);
  for (size_t w = 0; w < 2; w++) push(&f, w, 4, 1, 1);
  assert_int_equal(f.orders[0].kind, GT_PS_EVAL);
  assert_int_equal(f.orders[1].kind, 0);
  f.params[0] = 50; /* a message came */
  gt_ps_push done = {.samples = 8, .correct = 1, .loss_sum = 1};
  gt_ps_evaluated(f.ps, 0, &done, 2);
  told(&f, 2, 2, 2);
  assert_true(f.given[0] == 50 && f.given[1] == 50);
  end(&f);
}

TESTS(sync_takes_means, sync_leaves_out_what_is_not_finite, sync_uses_what_workers_formed,
      one_worker_is_taken_as_it_is, async_takes_the_last, orders_tell_of_the_step,
      a_step_waits_for_the_evaluation)
