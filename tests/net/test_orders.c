/* Memory orders of the data shared by ranks.  Threads play the PS and the workers: ThreadSanitizer
   follows the rules of C11, not of one CPU, and detects code that is only correct on x86
   (tests/run.sh --full).  A release and an acquire stand for a message, as MPI_Win_sync makes it
   between ranks. */
#include <pthread.h>

#include "tests.h"
#include "geotrain/tensor.h"
#include "internal.h"

#define WORKERS 4
#define STEPS   40
#define NPARAMS (3 * GT_CHUNK_FLOATS + 100)

static gt_announcement announced[WORKERS];
static gt_chunk chunks[4];
static gt_bell bells[WORKERS + 1]; /* the last is the PS's */
static float mean[NPARAMS], params[NPARAMS], grads[WORKERS][NPARAMS];
static _Atomic int64_t ordered, pushed[WORKERS];

static gt_mean open_mean(size_t self) {
  gt_mean m = {.common = {.announced = announced, .chunks = chunks, .mean = mean, .params = params},
               .nparams = NPARAMS,
               .nchunks = gt_chunks(NPARAMS),
               .self = self};
  m.grads = GT_NEW_ARRAY(const float *, WORKERS);
  m.parts = GT_NEW_ARRAY(const float *, WORKERS);
  m.samples = GT_NEW_ARRAY(int64_t, WORKERS);
  for (size_t w = 0; w < WORKERS; w++) m.grads[w] = grads[w];
  return m;
}

static void begin(gt_mean *m, int64_t step) {
  gt_mean_begin(m, &(gt_order_msg){.kind = GT_ORDER_TRAIN, .step = step, .workers = WORKERS});
}

/* Sleeps on the bell until the message contains `step`; meanwhile a worker computes chunks. */
static void await(_Atomic int64_t *message, int64_t step, gt_bell *bell, gt_mean *working) {
  for (;;) {
    uint32_t heard = gt_bell_heard(bell);
    if (atomic_load_explicit(message, memory_order_acquire) == step) return;
    if (working && gt_mean_work(working)) continue;
    gt_bell_sleep(bell, heard, working && working->left ? GT_SECOND / 1000 : GT_SECOND);
  }
}

/* Gradients depend on the parameters of the step; chunk by chunk from the end. */
static void backward(gt_mean *m, size_t w, int64_t step) {
  for (size_t c = gt_chunks(NPARAMS); c-- > 0;) {
    size_t first = c * GT_CHUNK_FLOATS,
           end = first + GT_CHUNK_FLOATS < NPARAMS ? first + GT_CHUNK_FLOATS : NPARAMS;
    for (size_t i = first; i < end; i++) grads[w][i] = params[i] + (float)(2 * w);
    gt_mean_announce(m, first, (int64_t)1 << step % 8); /* so that the mean is exact */
    gt_mean_work(m);
  }
}

static void *work(void *context) {
  size_t w = *(const size_t *)context;
  gt_mean m = open_mean(w);
  for (int64_t step = 1; step <= STEPS; step++) {
    await(&ordered, step, &bells[w], &m);
    begin(&m, step);
    backward(&m, w, step);
    atomic_store_explicit(&pushed[w], step, memory_order_release);
    gt_bell_ring(&bells[WORKERS]);
  }
  await(&ordered, STEPS + 1, &bells[w], &m);
  gt_mean_close(&m);
  return NULL;
}

static void order(int64_t step) {
  atomic_store_explicit(&ordered, step, memory_order_release);
  for (size_t w = 0; w < WORKERS; w++) gt_bell_ring(&bells[w]);
}

/* One step; returns how many values of the mean are wrong. */
static size_t serve(gt_mean *m, int64_t step) {
  size_t wrong = 0;
  for (size_t i = 0; i < NPARAMS; i++) params[i] = (float)step;
  begin(m, step);
  order(step);
  for (size_t w = 0; w < WORKERS; w++) await(&pushed[w], step, &bells[WORKERS], NULL);
  const float *formed = NULL;
  /* NULL: on a busy machine a claimant may exceed its time limit */
  while (!formed) formed = gt_mean_finish(m);
  for (size_t i = 0; i < NPARAMS; i++) wrong += formed[i] != (float)(step + WORKERS - 1);
  return wrong;
}

static void mean_and_bells(void) {
  pthread_t threads[WORKERS];
  size_t numbers[WORKERS], wrong = 0;
  /* The program chooses before its first computation; here threads replace processes. */
  must(gt_isa_choose(getenv("GEOTRAIN_ISA")));
  gt_mean m = open_mean(WORKERS);
  for (size_t w = 0; w < WORKERS; w++) {
    numbers[w] = w;
    assert_int_equal(pthread_create(&threads[w], NULL, work, &numbers[w]), 0);
  }
  for (int64_t step = 1; step <= STEPS; step++) wrong += serve(&m, step);
  order(STEPS + 1);
  for (size_t w = 0; w < WORKERS; w++) pthread_join(threads[w], NULL);
  gt_mean_close(&m);
  assert_int_equal(wrong, 0);
}

TESTS(mean_and_bells)
