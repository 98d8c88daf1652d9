/* ranks: 2 4; processors: 1 */
/* The local plane: gradients and parameters arrive complete and in order, signals do not collide
   with pushes, all workers evaluate one snapshot, their scores arrive, and the time of a round trip
   is measured. */
#include "geotrain/net.h"
#include "ranks.h"

#include <signal.h>

#define NPARAMS  ((size_t)62006)
#define NBUFFERS ((size_t)10)
#define ROUNDS   200

#define NSCORES ((size_t)1000)

static const gt_plane_size plane_size = {
    .nparams = NPARAMS, .nbuffers = NBUFFERS, .nscores = NSCORES};

static float grad_at(size_t worker, int64_t batch, size_t i) {
  return (float)(worker + 1) * 1000.0f + (float)batch + (float)(i % 97) * 0.5f;
}

static float param_at(int64_t batch, size_t i) {
  return (float)batch * 2.0f + (float)(i % 89);
}

/* ---- the PS ---- */

typedef struct {
  gt_plane_ps *plane;
  float *params, buffers[NBUFFERS];
  int64_t rounds[8];
  size_t ready, signals, ended;
} server;

static void order(server *s, size_t worker, gt_order_kind kind, bool with_params, int64_t batch) {
  gt_order_msg msg = {.kind = (uint32_t)kind, .with_params = with_params, .batch = batch};
  for (size_t i = 0; with_params && i < NPARAMS; i++) s->params[i] = param_at(batch, i);
  for (size_t i = 0; with_params && i < NBUFFERS; i++) s->buffers[i] = -param_at(batch, i);
  gt_plane_ps_order(s->plane, worker, &msg, s->params, s->buffers);
}

static void on_push(void *context, size_t worker, const gt_push_msg *push, float *grads,
                    const float *buffers) {
  server *s = context;
  (void)buffers;
  if (push->kind == GT_PUSH_SIGNAL) {
    assert_int_equal(push->signal, SIGUSR1);
    s->signals++;
    return;
  }
  if (push->kind == GT_PUSH_READY) {
    assert_null(grads);
    s->ready++;
    order(s, worker, GT_ORDER_TRAIN, true, 0);
    return;
  }
  assert_int_equal(push->kind, GT_PUSH_GRADIENT);
  assert_int_equal(push->batch, s->rounds[worker]);
  for (size_t i = 0; i < NPARAMS; i++) assert_true(grads[i] == grad_at(worker, push->batch, i));
  int64_t next = ++s->rounds[worker];
  /* Every third time the order is sent before the gradients are released. */
  if (next % 3 != 0) gt_plane_ps_taken(s->plane, worker);
  if (next % 10 == 0) {
    order(s, worker, GT_ORDER_KEEPALIVE, false, 0);
    order(s, worker, GT_ORDER_KEEPALIVE, false, 0);
  }
  bool end = next == ROUNDS;
  order(s, worker, end ? GT_ORDER_END : GT_ORDER_TRAIN, !end, next);
  if (next % 3 == 0) gt_plane_ps_taken(s->plane, worker);
  s->ended += end;
}

static void serve(void) {
  server s = {.plane = gt_plane_ps_create(world, &plane_size),
              .params = GT_NEW_ARRAY(float, NPARAMS)};
  size_t workers = gt_plane_ps_workers(s.plane);
  assert_int_equal(workers, size - 1);
  gt_backoff backoff = {0};
  int64_t allocations = gt_alloc_total();
  while (s.ended < workers || s.signals < workers) {
    if (gt_plane_ps_poll(s.plane, on_push, &s))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
  }
  assert_int_equal(gt_alloc_total(), allocations);
  assert_int_equal(s.ready, workers);
  assert_int_equal(s.signals, workers);
  gt_plane_ps_close(s.plane, LIMIT_S);
  gt_free(s.params);
}

/* ---- a worker ---- */

static int by_time(const void *a, const void *b) {
  gt_ns x = *(const gt_ns *)a, y = *(const gt_ns *)b;
  return (x > y) - (x < y);
}

static void work(void) {
  gt_ns took[ROUNDS];
  size_t worker = (size_t)rank - 1, n = 0;
  gt_plane_worker *plane = gt_plane_worker_create(world, &plane_size);
  float *params = gt_plane_worker_params(plane), *grads = gt_plane_worker_grads(plane),
        *buffers = gt_plane_worker_buffers(plane);
  gt_order_msg order = {0};
  gt_push_msg push = {.kind = GT_PUSH_READY};
  gt_plane_worker_push(plane, &push);
  for (gt_plane_worker_wait(plane, &order, LIMIT_S); order.kind != GT_ORDER_END;) {
    assert_int_equal(order.kind, GT_ORDER_TRAIN);
    for (size_t i = 0; i < NPARAMS; i++) assert_true(params[i] == param_at(order.batch, i));
    for (size_t i = 0; i < NBUFFERS; i++) assert_true(buffers[i] == -param_at(order.batch, i));
    for (size_t i = 0; i < NPARAMS; i++) grads[i] = grad_at(worker, order.batch, i);
    if (order.batch == ROUNDS / 2) raise(SIGUSR1);
    gt_plane_worker_progress(plane);
    push = (gt_push_msg){.kind = GT_PUSH_GRADIENT, .batch = order.batch, .samples = 64};
    gt_ns begin = gt_now();
    gt_plane_worker_push(plane, &push);
    gt_plane_worker_wait(plane, &order, LIMIT_S);
    took[n++] = gt_now() - begin;
  }
  assert_int_equal(n, ROUNDS);
  qsort(took, ROUNDS, sizeof *took, by_time);
  printf("worker %zu: median round trip of %zu KB each way %.3f ms\n", worker, NPARAMS * 4 / 1000,
         gt_seconds(took[ROUNDS / 2]) * 1e3);
  gt_plane_worker_close(plane, LIMIT_S);
}

/* ---- evaluation ---- */

/* Two EVAL orders, the first with the snapshot; then a TRAIN order with other parameters. */
enum { FIRST, SECOND, TRAINED };

static float score_at(size_t worker, int64_t order, size_t i) {
  return (float)worker + 10.0f * (float)order + 100.0f * (float)i;
}

static int64_t scores_of(size_t worker, int64_t order) {
  return (int64_t)(NSCORES - 3 * worker) - order;
}

static void on_evaluated(void *context, size_t worker, const gt_push_msg *push, float *floats,
                         const float *buffers) {
  server *s = context;
  const gt_plane_snapshot snapshot = gt_plane_ps_snapshot(s->plane);
  if (push->kind == GT_PUSH_SIGNAL) return; /* from the previous test */
  if (push->kind == GT_PUSH_READY) {
    gt_order_msg eval = {.kind = GT_ORDER_EVAL, .with_params = true, .batch = FIRST};
    gt_plane_ps_order(s->plane, worker, &eval, snapshot.params, snapshot.buffers);
  } else if (push->kind == GT_PUSH_EVAL) {
    assert_int_equal(push->scores, scores_of(worker, push->batch));
    for (int64_t i = 0; i < push->scores; i++)
      assert_true(floats[i] == score_at(worker, push->batch, (size_t)i));
    order(s, worker, push->batch == FIRST ? GT_ORDER_EVAL : GT_ORDER_TRAIN, push->batch == SECOND,
          push->batch + 1);
  } else {
    assert_int_equal(push->kind, GT_PUSH_GRADIENT);
    for (size_t i = 0; i < NPARAMS; i++) assert_true(floats[i] == grad_at(worker, push->batch, i));
    for (size_t i = 0; i < NBUFFERS; i++) assert_true(buffers[i] == (float)worker);
    gt_plane_ps_taken(s->plane, worker);
    order(s, worker, GT_ORDER_END, false, 0);
    s->ended++;
  }
}

/* The live parameters have changed by the time of the second order. */
static void serve_evaluation(void) {
  server s = {.plane = gt_plane_ps_create(world, &plane_size),
              .params = GT_NEW_ARRAY(float, NPARAMS)};
  const gt_plane_snapshot snapshot = gt_plane_ps_snapshot(s.plane);
  for (size_t i = 0; i < NPARAMS; i++) snapshot.params[i] = param_at(77, i);
  for (size_t i = 0; i < NBUFFERS; i++) snapshot.buffers[i] = -param_at(77, i);
  gt_backoff backoff = {0};
  int64_t allocations = gt_alloc_total();
  while (s.ended < gt_plane_ps_workers(s.plane))
    if (!gt_plane_ps_poll(s.plane, on_evaluated, &s))
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
  assert_int_equal(gt_alloc_total(), allocations);
  gt_plane_ps_close(s.plane, LIMIT_S);
  gt_free(s.params);
}

static void is_given(const gt_plane_worker *plane, int64_t batch) {
  for (size_t i = 0; i < NPARAMS; i++)
    assert_true(gt_plane_worker_params(plane)[i] == param_at(batch, i));
  for (size_t i = 0; i < NBUFFERS; i++)
    assert_true(gt_plane_worker_buffers(plane)[i] == -param_at(batch, i));
}

static void work_evaluation(void) {
  size_t worker = (size_t)rank - 1;
  gt_plane_worker *plane = gt_plane_worker_create(world, &plane_size);
  gt_order_msg o = {0};
  gt_push_msg push = {.kind = GT_PUSH_READY};
  gt_plane_worker_push(plane, &push);
  for (int64_t k = FIRST; k <= SECOND; k++) {
    gt_plane_worker_wait(plane, &o, LIMIT_S);
    assert_true(o.kind == GT_ORDER_EVAL && o.batch == k);
    is_given(plane, 77);
    push = (gt_push_msg){.kind = GT_PUSH_EVAL, .batch = k, .scores = scores_of(worker, k)};
    for (int64_t i = 0; i < push.scores; i++)
      gt_plane_worker_scores(plane)[i] = score_at(worker, k, (size_t)i);
    gt_plane_worker_push(plane, &push);
  }
  gt_plane_worker_wait(plane, &o, LIMIT_S);
  assert_true(o.kind == GT_ORDER_TRAIN && o.batch == TRAINED);
  is_given(plane, TRAINED);
  for (size_t i = 0; i < NPARAMS; i++)
    gt_plane_worker_grads(plane)[i] = grad_at(worker, TRAINED, i);
  for (size_t i = 0; i < NBUFFERS; i++) gt_plane_worker_buffers(plane)[i] = (float)worker;
  push = (gt_push_msg){.kind = GT_PUSH_GRADIENT, .batch = TRAINED, .samples = 64};
  gt_plane_worker_push(plane, &push);
  gt_plane_worker_wait(plane, &o, LIMIT_S);
  assert_int_equal(o.kind, GT_ORDER_END);
  gt_plane_worker_close(plane, LIMIT_S);
}

static void evaluations(void) {
  both_planes(serve_evaluation, work_evaluation);
}

static void round_trips(void) {
  gt_stop_install();
  both_planes(serve, work);
}

RANK_TESTS(round_trips, evaluations)
