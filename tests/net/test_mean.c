/* ranks: 3 4; processors: 1 */
/* Workers form the mean of their gradients in shared memory: the same bits as gt_vec_mean for any
   timing, number of parameters, participants and samples; buffers are returned, and the common
   parameters are complete. */
#include "internal.h"
#include "geotrain/tensor.h"
#include "ranks.h"

#define NBUFFERS ((size_t)5)
#define STEPS    60

/* Returns numbers of a step that every rank can compute. */
static uint32_t mix(int64_t step, size_t a) {
  uint32_t h = (uint32_t)step * 2654435761u + (uint32_t)a * 40503u + 12345u;
  h = (h ^ (h >> 15)) * 2246822519u;
  return h ^ (h >> 13);
}

static size_t participants(int64_t step) {
  size_t workers = (size_t)size - 1;
  return step % 5 == 3 ? 1 + mix(step, 77) % workers : workers;
}

static bool is_bad(int64_t step, size_t worker) {
  return step % 7 == 4 && worker == mix(step, 78) % participants(step);
}

static int64_t samples_of(int64_t step, size_t worker) {
  return 1 + mix(step, worker) % 64;
}

static float grad_at(int64_t step, size_t worker, size_t i) {
  return (float)((i * 7919u + mix(step, worker)) % 100003u) / 7.0f - 7000.0f;
}

/* True for worker 0 in some steps, in which it is ordered later, with other parameters. */
static bool is_late(int64_t step, size_t worker) {
  return worker == 0 && step % 4 == 1;
}

static float param_at(int64_t step, size_t worker, size_t i) {
  return (float)((int64_t)(i % 1013) + step * 8 + is_late(step, worker));
}

/* ---- the PS ---- */

typedef struct {
  gt_plane_ps *plane;
  size_t nparams;
  bool shared;
  float *params, *expected, buffers[NBUFFERS];
  const float *grads[8];
  int64_t samples[8];
  size_t ready, pushed;
  int64_t step;
  int means;
} server;

static void on_push(void *context, size_t worker, const gt_push_msg *push, float *grads,
                    const float *buffers) {
  server *s = context;
  if (push->kind == GT_PUSH_READY) {
    s->ready++;
    return;
  }
  assert_int_equal(push->kind, GT_PUSH_GRADIENT);
  assert_int_equal(push->batch, s->step);
  for (size_t i = 0; i < NBUFFERS; i++)
    assert_true(buffers[i] == (float)(s->step + (int64_t)(10 * worker + i)));
  s->grads[worker] = grads;
  s->samples[worker] = push->samples;
  s->pushed++;
}

static void await(server *s, const size_t *count, size_t n) {
  gt_backoff backoff = {0};
  while (*count < n)
    if (gt_plane_ps_poll(s->plane, on_push, s))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
}

static void order(server *s, size_t worker) {
  gt_order_msg msg = {.kind = GT_ORDER_TRAIN,
                      .with_params = 1,
                      .batch = s->step,
                      .step = s->step,
                      .workers = (uint32_t)participants(s->step),
                      .common = !is_late(s->step, worker)};
  for (size_t i = 0; i < s->nparams; i++) s->params[i] = param_at(s->step, worker, i);
  for (size_t i = 0; i < NBUFFERS; i++) s->buffers[i] = (float)s->step;
  gt_plane_ps_order(s->plane, worker, &msg, s->params, s->buffers);
  /* they must have been copied, as when a message changes them */
  for (size_t i = 0; i < s->nparams; i++) s->params[i] = NAN;
}

static void one_step(server *s) {
  size_t n = participants(s->step);
  bool bad = false;
  s->pushed = 0;
  for (size_t w = 0; w < n; w++) {
    bad |= is_bad(s->step, w);
    if (!is_late(s->step, w)) order(s, w);
  }
  if (is_late(s->step, 0)) {
    if (n > 1) assert_null(gt_plane_ps_reduced(s->plane));
    await(s, &s->pushed, n - 1);
    if (n > 1) assert_null(gt_plane_ps_reduced(s->plane));
    order(s, 0);
  }
  await(s, &s->pushed, n);
  if (!bad) { /* otherwise the next step begins while workers may still add chunks of this one */
    const float *mean = gt_plane_ps_reduced(s->plane);
    /* on a busy machine a worker can keep a chunk for longer than the plane waits for it */
    for (gt_ns until = gt_now() + 10 * GT_SECOND; !mean && s->shared && n > 1 && gt_now() < until;)
      mean = gt_plane_ps_reduced(s->plane);
    assert_int_equal(mean != NULL, s->shared && n > 1);
    gt_vec_mean(gt_vec_of(s->expected, s->nparams), s->grads, s->samples, n);
    if (mean) assert_memory_equal(mean, s->expected, s->nparams * sizeof *mean);
    s->means += mean != NULL;
  }
  for (size_t w = 0; w < n; w++) {
    for (size_t i = 0; i < s->nparams; i++)
      assert_true(s->grads[w][i] == grad_at(s->step, w, i) || (i == 0 && is_bad(s->step, w)));
    gt_plane_ps_taken(s->plane, w);
  }
}

static void serve(size_t nparams, bool shared) {
  server s = {.plane = gt_plane_ps_create(
                  world, &(gt_plane_size){.nparams = nparams, .nbuffers = NBUFFERS}),
              .nparams = nparams,
              .shared = shared,
              .params = GT_NEW_ARRAY(float, nparams),
              .expected = GT_NEW_ARRAY(float, nparams)};
  size_t workers = gt_plane_ps_workers(s.plane);
  await(&s, &s.ready, workers);
  int64_t allocations = gt_alloc_total();
  for (s.step = 1; s.step <= STEPS; s.step++) one_step(&s);
  assert_int_equal(gt_alloc_total(), allocations);
  assert_true(s.means > 30 || !shared);
  gt_order_msg end = {.kind = GT_ORDER_END};
  for (size_t w = 0; w < workers; w++) gt_plane_ps_order(s.plane, w, &end, NULL, NULL);
  gt_plane_ps_close(s.plane, LIMIT_S);
  gt_free(s.params);
  gt_free(s.expected);
}

/* ---- a worker ---- */

/* A backward pass: gradients become final from the end, in uneven parts, sometimes slowly; some
   steps publish everything in the push. */
static void backward(gt_plane_worker *plane, int64_t step, size_t worker, size_t nparams) {
  float *grads = gt_plane_worker_grads(plane);
  bool tells = mix(step, worker + 90) % 4 != 0;
  for (size_t first = nparams, part = 0; first > 0; part++) {
    size_t count = 1 + mix(step + (int64_t)part, worker + 50) % (nparams / 3 + 1),
           from = count < first ? first - count : 0;
    for (size_t i = from; i < first; i++) grads[i] = grad_at(step, worker, i);
    first = from;
    if (first == 0 && is_bad(step, worker)) grads[0] = NAN;
    if (tells) gt_plane_worker_gradients(plane, first, samples_of(step, worker));
    if (mix(step, worker + part) % 8 == 0) gt_sleep(300000);
    gt_plane_worker_progress(plane);
  }
}

static void work(size_t nparams) {
  size_t worker = (size_t)rank - 1;
  gt_plane_worker *plane =
      gt_plane_worker_create(world, &(gt_plane_size){.nparams = nparams, .nbuffers = NBUFFERS});
  gt_order_msg order = {0};
  gt_push_msg push = {.kind = GT_PUSH_READY};
  gt_plane_worker_push(plane, &push);
  int64_t allocations = gt_alloc_total();
  for (gt_plane_worker_wait(plane, &order, LIMIT_S); order.kind != GT_ORDER_END;
       gt_plane_worker_wait(plane, &order, LIMIT_S)) {
    const float *params = gt_plane_worker_params(plane);
    float *buffers = gt_plane_worker_buffers(plane);
    for (size_t i = 0; i < NBUFFERS; i++) {
      assert_true(buffers[i] == (float)order.step);
      buffers[i] += (float)(10 * worker + i);
    }
    backward(plane, order.step, worker, nparams);
    for (size_t i = 0; i < nparams; i++) assert_true(params[i] == param_at(order.step, worker, i));
    push = (gt_push_msg){
        .kind = GT_PUSH_GRADIENT, .batch = order.batch, .samples = samples_of(order.step, worker)};
    gt_plane_worker_push(plane, &push);
  }
  assert_int_equal(gt_alloc_total(), allocations);
  gt_plane_worker_close(plane, LIMIT_S);
}

static void steps(size_t nparams, bool shared) {
  if (rank == 0)
    serve(nparams, shared);
  else
    work(nparams);
}

static void in_shared_memory(void) {
  static const size_t sizes[] = {7, GT_CHUNK_FLOATS, GT_CHUNK_FLOATS + 1, 5 * GT_CHUNK_FLOATS + 17};
  for (size_t i = 0; i < COUNT(sizes); i++) steps(sizes[i], true);
}

static void by_messages(void) {
  setenv("GEOTRAIN_LOCAL_PLANE", "messages", 1);
  steps(GT_CHUNK_FLOATS + 1, false);
  unsetenv("GEOTRAIN_LOCAL_PLANE");
}

/* ---- a claimant that does not finish --------------------------------------------------------- */

/* Begins a step on all ranks.  On the workers all gradients are final; no chunk is computed yet. */
static void announce(gt_mean *m, int64_t step) {
  gt_order_msg msg = {.step = step, .workers = (uint32_t)size - 1};
  gt_mean_begin(m, &msg);
  if (rank > 0) gt_mean_announce(m, 0, 4);
}

static void a_chunk_that_is_claimed_is_left_alone(void) {
  gt_shared s;
  gt_mean m;
  size_t nparams = 2 * GT_CHUNK_FLOATS, self = rank == 0 ? (size_t)size - 1 : (size_t)rank - 1;
  gt_shared_open(&s, MPI_COMM_WORLD, &(gt_plane_size){.nparams = nparams});
  gt_mean_open(&m, &s, self);
  _Atomic uint64_t *state_of = &m.common.chunks[1].state;
  if (rank > 0) gt_shared_segment(&s, rank).grads[GT_CHUNK_FLOATS] = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  announce(&m, 1);
  if (rank == 1) atomic_store(state_of, 1 << 1 | 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) assert_null(gt_mean_finish(&m)); /* claimed in this step */
  MPI_Barrier(MPI_COMM_WORLD);
  announce(&m, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) gt_mean_work(&m); /* the chunk is assigned to worker 1 */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) assert_null(gt_mean_finish(&m)); /* claimed in an earlier step */
  assert_int_equal(atomic_load(state_of), 1 << 1 | 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) atomic_store(state_of, 1 << 1);
  announce(&m, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) { /* the first chunk is assigned to worker 0, so the PS does not compute it */
    assert_true(gt_mean_work(&m));
    assert_int_equal(atomic_load(&m.common.chunks[0].state), 3 << 1);
    m.common.mean[7] = 5;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const float *mean = gt_mean_finish(&m);
    assert_true(mean[GT_CHUNK_FLOATS] == 1 && mean[7] == 5);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  gt_mean_close(&m);
  gt_shared_close(&s);
}

RANK_TESTS(in_shared_memory, by_messages, a_chunk_that_is_claimed_is_left_alone)
