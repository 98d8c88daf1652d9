/* ranks: 2 4; processors: 1; wraps: gt_panic */
/* Passes of a pipeline in the local plane: a chain of workers whose inputs are pieces of several
   activation areas, in shared memory and by messages; the PS knows the right value of every byte.
   In every fifth step parameters are in the snapshot, which does not change.  Invalid orders and
   pushes are refused. */
#include "panic.h"
#include "ranks.h"
#include "internal.h"

#define NPARAMS  ((size_t)300)
#define NBUFFERS ((size_t)5)
#define WORKERS  8
#define MICROS   UINT32_C(1000)
#define STEP     UINT32_C(16) /* micro-batches of a step */

/* An area: for each slot an output, then the bytes written by the PS. */
#define SLOTS   3
#define OUTPUT  ((size_t)20000)
#define LANDING ((size_t)3000)
#define AREA    (SLOTS * (OUTPUT + LANDING))

static const gt_plane_size plane_size = {
    .nparams = NPARAMS, .nbuffers = NBUFFERS, .nactivations = AREA};

enum { COMPUTE, UPDATE }; /* kinds of a pass here; an UPDATE is answered by gradients */

static float param_at(int64_t step, size_t i) {
  return (float)(step * 3) + (float)(i % 89);
}

static float grad_at(size_t worker, uint32_t micro, size_t i) {
  return (float)worker * 1000.0f + (float)micro + (float)(i % 97);
}

/* Returns a sum that depends on every byte of the input and its position; every byte of the output
   depends on the sum. */
static uint32_t sum_of(const uint8_t *input, size_t n) {
  uint32_t sum = 7;
  for (size_t i = 0; i < n; i++) sum = sum * 31 + input[i];
  return sum;
}

static uint8_t output_at(const uint8_t *input, size_t n, uint32_t sum, size_t i) {
  return (uint8_t)((n ? input[i % n] : 0U) + (sum >> (i % 4 * 8)) + i * 7);
}

/* ---- the PS ---------------------------------------------------------------------------------- */

typedef struct {
  gt_plane_ps *plane;
  size_t workers, ended;
  gt_rng rng;
  uint8_t *areas[WORKERS]; /* the expected contents of the activation areas */
  uint64_t outputs[WORKERS][SLOTS];
  uint8_t *input;
  uint32_t done[WORKERS], updates[WORKERS], sums[WORKERS];
  gt_order_msg orders[WORKERS];
  bool busy[WORKERS];
  int64_t lent; /* the step whose parameters are in the snapshot */
} server;

static size_t below(server *s, size_t n) {
  return (size_t)gt_rng_below(&s->rng, n);
}

/* Adds at most `parts` pieces; a part can be empty. */
static void add_pieces(server *s, gt_pass_msg *pass, size_t worker, size_t from, size_t bytes,
                       size_t parts) {
  for (; parts > 0; parts--) {
    const size_t n = parts == 1 ? bytes : below(s, bytes + 1);
    pass->pieces[pass->npieces++] =
        (gt_pass_piece){.from = from, .bytes = n, .worker = (uint32_t)worker};
    from += n;
    bytes -= n;
  }
}

/* Arranges pieces that fill the input contiguously, but are listed in another order. */
static size_t arrange(server *s, gt_pass_msg *pass) {
  size_t n = 0;
  for (size_t i = 0; i < pass->npieces; i++) {
    pass->pieces[i].to = n;
    n += pass->pieces[i].bytes;
  }
  for (size_t i = pass->npieces; i > 1; i--) {
    const size_t k = below(s, i);
    const gt_pass_piece last = pass->pieces[i - 1];
    pass->pieces[i - 1] = pass->pieces[k];
    pass->pieces[k] = last;
  }
  return n;
}

static void land(server *s, size_t worker, size_t at, size_t n) {
  for (size_t i = 0; i < n; i++) s->areas[worker][at + i] = (uint8_t)gt_rng_u64(&s->rng);
  memcpy(gt_plane_ps_area(s->plane, worker) + at, s->areas[worker] + at, n);
}

static void choose_pieces(server *s, size_t worker, gt_pass_msg *pass) {
  const size_t slot = pass->slot, landing = SLOTS * OUTPUT + slot * LANDING,
               landed = below(s, LANDING + 1);
  land(s, worker, landing, landed);
  add_pieces(s, pass, worker, landing, landed, 1 + below(s, 2));
  if (worker > 0)
    add_pieces(s, pass, worker - 1, slot * OUTPUT, s->outputs[worker - 1][slot], 1 + below(s, 3));
  if (worker > 1) add_pieces(s, pass, 0, slot * OUTPUT, s->outputs[0][slot] / 2, 1);
  if (pass->micro > 0) {
    const size_t before = (pass->micro - 1) % SLOTS;
    add_pieces(s, pass, worker, before * OUTPUT, s->outputs[worker][before] / 2, 1);
  }
}

/* Writes the worker's expected output into the copy of the area. */
static void foresee(server *s, size_t worker, const gt_pass_msg *pass, size_t n) {
  for (size_t i = 0; i < pass->npieces; i++) {
    const gt_pass_piece *p = &pass->pieces[i];
    memcpy(s->input + p->to, s->areas[p->worker] + p->from, p->bytes);
  }
  s->sums[worker] = sum_of(s->input, n);
  for (size_t i = 0; i < pass->out_bytes; i++)
    s->areas[worker][pass->out + i] = output_at(s->input, n, s->sums[worker], i);
}

static bool is_lent(const gt_order_msg *order) {
  return order->step % 5 == 4;
}

/* Lends the snapshot when all workers have answered the orders of the last step that used it. */
static void lend(server *s, const gt_order_msg *order) {
  const gt_plane_snapshot snapshot = gt_plane_ps_snapshot(s->plane);
  for (size_t i = 0; s->lent != order->step && i < NPARAMS; i++)
    snapshot.params[i] = param_at(order->step, i);
  for (size_t i = 0; s->lent != order->step && i < NBUFFERS; i++)
    snapshot.buffers[i] = -param_at(order->step, i);
  s->lent = order->step;
}

static void stayed(const server *s, const gt_order_msg *order) {
  const gt_plane_snapshot snapshot = gt_plane_ps_snapshot(s->plane);
  for (size_t i = 0; is_lent(order) && i < NBUFFERS; i++)
    assert_true(snapshot.buffers[i] == -param_at(order->step, i));
}

static void give(server *s, size_t worker) {
  float params[NPARAMS], buffers[NBUFFERS];
  gt_order_msg *order = &s->orders[worker];
  const gt_plane_snapshot snapshot = gt_plane_ps_snapshot(s->plane);
  for (size_t i = 0; i < NPARAMS; i++) params[i] = param_at(order->step, i);
  for (size_t i = 0; i < NBUFFERS; i++) buffers[i] = -param_at(order->step, i);
  if (below(s, 16) == 0)
    gt_plane_ps_order(s->plane, worker, &(gt_order_msg){.kind = GT_ORDER_KEEPALIVE}, NULL, NULL);
  s->busy[worker] = true;
  if (order->with_params && is_lent(order)) {
    lend(s, order);
    gt_plane_ps_order(s->plane, worker, order, snapshot.params, snapshot.buffers);
  } else {
    gt_plane_ps_order(s->plane, worker, order, params, buffers);
  }
}

static void order_pass(server *s, size_t worker) {
  const uint32_t micro = s->done[worker], slot = micro % SLOTS;
  gt_order_msg *order = &s->orders[worker];
  *order = (gt_order_msg){.kind = GT_ORDER_PASS,
                          .with_params = micro % STEP == 0,
                          .step = 1 + micro / STEP,
                          .common = micro / STEP % 3 != 0};
  gt_pass_msg *pass = &order->pass;
  *pass = (gt_pass_msg){.kind = COMPUTE,
                        .span = (uint32_t)worker,
                        .micro = micro,
                        .slot = slot,
                        .out = slot * OUTPUT,
                        .out_bytes = below(s, 10) == 0 ? 0 : below(s, OUTPUT + 1)};
  choose_pieces(s, worker, pass);
  foresee(s, worker, pass, arrange(s, pass));
  s->outputs[worker][slot] = pass->out_bytes;
  give(s, worker);
}

static void order_update(server *s, size_t worker) {
  s->orders[worker] = (gt_order_msg){.kind = GT_ORDER_PASS,
                                     .step = s->orders[worker].step,
                                     .pass = {.kind = UPDATE, .micro = s->done[worker]}};
  give(s, worker);
}

/* Runs one pass at a time, inputs first; slots are free again when the last worker is done with
   them. */
static void conduct(server *s, size_t worker) {
  const uint32_t micro = s->done[worker];
  if (s->busy[worker]) return;
  if (s->updates[worker] < micro / STEP) {
    order_update(s, worker);
  } else if (micro == MICROS) {
    s->busy[worker] = true;
    gt_plane_ps_order(s->plane, worker, &(gt_order_msg){.kind = GT_ORDER_END}, NULL, NULL);
    s->ended++;
  } else if ((worker == 0 || s->done[worker - 1] > micro) &&
             micro < s->done[s->workers - 1] + SLOTS)
    order_pass(s, worker);
}

static void on_push(void *context, size_t worker, const gt_push_msg *push, float *grads,
                    const float *buffers) {
  server *s = context;
  const gt_pass_msg *pass = &s->orders[worker].pass;
  s->busy[worker] = false;
  if (push->kind == GT_PUSH_READY) return;
  if (push->kind == GT_PUSH_GRADIENT) {
    assert_int_equal(pass->kind, UPDATE);
    for (size_t i = 0; i < NPARAMS; i++) assert_true(grads[i] == grad_at(worker, pass->micro, i));
    assert_true(buffers[NBUFFERS - 1] == (float)pass->micro);
    stayed(s, &s->orders[worker]);
    gt_plane_ps_taken(s->plane, worker);
    s->updates[worker]++;
    return;
  }
  assert_int_equal(push->kind, GT_PUSH_PASS);
  assert_null(grads);
  assert_int_equal(push->batch, pass->micro);
  assert_int_equal(push->samples, s->sums[worker]);
  assert_int_equal(push->out_bytes, pass->out_bytes);
  if (push->out_bytes)
    assert_memory_equal(gt_plane_ps_area(s->plane, worker) + push->out,
                        s->areas[worker] + push->out, push->out_bytes);
  s->done[worker]++;
}

static void serve(void) {
  server s = {.plane = gt_plane_ps_create(world, &plane_size),
              .workers = (size_t)size - 1,
              .rng = gt_rng_make(3, GT_RNG_TEST, 0, 0),
              .input = gt_alloc(AREA, 1)};
  for (size_t w = 0; w < s.workers; w++) {
    s.areas[w] = gt_alloc(AREA, 1);
    s.busy[w] = true; /* until it is ready */
    assert_int_equal((uintptr_t)gt_plane_ps_area(s.plane, w) % 64, 0);
  }
  gt_backoff backoff = {0};
  const int64_t allocations = gt_alloc_total();
  while (s.ended < s.workers) {
    const bool moved = gt_plane_ps_poll(s.plane, on_push, &s);
    for (size_t w = 0; w < s.workers; w++) conduct(&s, w);
    if (moved)
      gt_backoff_reset(&backoff);
    else
      gt_plane_ps_sleep(s.plane, gt_backoff_next(&backoff, GT_BACKOFF_BUSY, GT_NEVER));
  }
  assert_int_equal(gt_alloc_total(), allocations);
  for (size_t w = 0; w < s.workers; w++) {
    assert_int_equal(s.done[w], MICROS);
    gt_free(s.areas[w]);
  }
  gt_free(s.input);
  gt_plane_ps_close(s.plane, LIMIT_S);
}

/* ---- a worker -------------------------------------------------------------------------------- */

static void has_params_of(const gt_plane_worker *plane, int64_t step) {
  for (size_t i = 0; i < NPARAMS; i++)
    assert_true(gt_plane_worker_params(plane)[i] == param_at(step, i));
}

/* Copies the pieces; returns the size of the input. */
static size_t gather(const gt_plane_worker *plane, const gt_pass_msg *pass, uint8_t *input) {
  size_t n = 0;
  for (size_t i = 0; i < pass->npieces; i++) {
    const gt_pass_piece *p = &pass->pieces[i];
    const uint8_t *at = gt_plane_worker_piece(plane, i);
    if (getenv("GEOTRAIN_LOCAL_PLANE"))
      assert_int_equal((uintptr_t)at % 64, 0);
    else if (p->worker + 1 == (uint32_t)rank)
      assert_ptr_equal(at, gt_plane_worker_area(plane) + p->from);
    memcpy(input + p->to, at, p->bytes);
    n += p->bytes;
  }
  return n;
}

static void compute(gt_plane_worker *plane, const gt_pass_msg *pass, uint8_t *input) {
  const size_t n = gather(plane, pass, input);
  const uint32_t sum = sum_of(input, n);
  uint8_t *output = gt_plane_worker_area(plane) + pass->out;
  for (size_t i = 0; i < pass->out_bytes; i++) output[i] = output_at(input, n, sum, i);
  gt_plane_worker_push(plane, &(gt_push_msg){.kind = GT_PUSH_PASS,
                                             .batch = pass->micro,
                                             .samples = sum,
                                             .out = pass->out,
                                             .out_bytes = pass->out_bytes});
}

static void update(gt_plane_worker *plane, const gt_pass_msg *pass) {
  for (size_t i = 0; i < NPARAMS; i++)
    gt_plane_worker_grads(plane)[i] = grad_at((size_t)rank - 1, pass->micro, i);
  for (size_t i = 0; i < NBUFFERS; i++) gt_plane_worker_buffers(plane)[i] = (float)pass->micro;
  gt_plane_worker_push(plane, &(gt_push_msg){.kind = GT_PUSH_GRADIENT, .batch = pass->micro});
}

static void work(void) {
  gt_plane_worker *plane = gt_plane_worker_create(world, &plane_size);
  uint8_t *input = gt_alloc(AREA, 1);
  gt_order_msg order;
  int64_t step = 0;
  assert_int_equal((uintptr_t)gt_plane_worker_area(plane) % 64, 0);
  gt_plane_worker_push(plane, &(gt_push_msg){.kind = GT_PUSH_READY});
  const int64_t allocations = gt_alloc_total();
  for (;;) {
    gt_plane_worker_wait(plane, &order, LIMIT_S);
    if (order.kind == GT_ORDER_END) break;
    assert_int_equal(order.kind, GT_ORDER_PASS);
    if (order.with_params) {
      step = order.step;
      assert_true(gt_plane_worker_buffers(plane)[1] == -param_at(step, 1));
    }
    has_params_of(plane, step);
    if (order.pass.kind == UPDATE)
      update(plane, &order.pass);
    else
      compute(plane, &order.pass, input);
  }
  assert_int_equal(gt_alloc_total(), allocations);
  gt_free(input);
  gt_plane_worker_close(plane, LIMIT_S);
}

static void chain(void) {
  both_planes(serve, work);
}

/* ---- refused orders and pushes --------------------------------------------------------------- */

static void order_refused(const gt_order_msg *order, const char *why) {
  must_fail(gt_order_check(order, 3, 1000), GT_ERR_FAULT, why);
}

static void orders_that_do_not_fit(void) {
  const gt_order_msg good = {
      .kind = GT_ORDER_PASS,
      .pass = {
          .out = 900, .out_bytes = 100, .npieces = 1, .pieces = {{.bytes = 1000, .worker = 2}}}};
  gt_order_msg bad = good;
  must(gt_order_check(&good, 3, 1000));
  bad.kind = 0, order_refused(&bad, "has unknown kind 0");
  bad.kind = GT_ORDER_PASS + 1, order_refused(&bad, "has unknown kind 7");
  bad = good, bad.pass.out = 901;
  order_refused(&bad, "has 100 bytes at 901; the activation area has 1000");
  bad = good, bad.pass.out = UINT64_MAX, order_refused(&bad, "the activation area has 1000");
  bad = good, bad.pass.out_bytes = GT_PASS_BYTES_MAX + 1;
  order_refused(&bad, "the output of a pass has 1073741825 bytes; expected at most 1073741824");
  bad = good, bad.pass.npieces = 9, order_refused(&bad, "has 9 pieces; expected at most 8");
  bad = good, bad.pass.pieces[0].worker = 3;
  order_refused(&bad, "of worker 3; 3 workers have 1000 bytes each");
  bad = good, bad.pass.pieces[0].from = 1;
  order_refused(&bad, "reads 1000 bytes at 1 in the activation area of worker 2");
  bad = good, bad.pass.pieces[0].from = UINT64_MAX, order_refused(&bad, "in the activation area");
  bad = good, bad.pass.pieces[0].bytes = UINT64_MAX, order_refused(&bad, "a piece of a pass has");
  bad = good, bad.pass.npieces = 2, bad.pass.pieces[1].bytes = 1;
  order_refused(&bad, "have 1001 bytes together; expected at most 1000");
}

static void order_beyond(void *plane) {
  const gt_order_msg order = {.kind = GT_ORDER_PASS, .pass = {.out = AREA, .out_bytes = 1}};
  gt_plane_ps_order(plane, 0, &order, NULL, NULL);
}

static void nothing_pushed(void *context, size_t worker, const gt_push_msg *push, float *floats,
                           const float *buffers) {
  (void)context, (void)worker, (void)floats, (void)buffers;
  fail_msg("kind %u was taken", push->kind);
}

static void poll_once(void *plane) {
  while (!gt_plane_ps_poll(plane, nothing_pushed, NULL)) gt_sleep(GT_BACKOFF_BUSY);
}

static void push_beyond(void *plane) {
  gt_plane_worker_push(plane, &(gt_push_msg){.kind = GT_PUSH_PASS, .out = 1, .out_bytes = AREA});
}

static void wait_once(void *plane) {
  gt_order_msg order;
  gt_plane_worker_wait(plane, &order, LIMIT_S);
}

/* Both sides, as if the other had sent an invalid message. */
static void refuse_on_ps(void) {
  gt_plane_ps *plane = gt_plane_ps_create(world, &plane_size);
  const gt_order_msg unknown = {.kind = 77},
                     beyond = {.kind = GT_ORDER_PASS,
                               .pass = {.npieces = 1, .pieces = {{.worker = WORKERS, .bytes = 1}}}};
  must_panic("for worker rank 1: the output of a pass has 1 bytes", order_beyond(plane));
  for (int w = 1; w < size; w++) {
    MPI_Send(&unknown, (int)sizeof unknown, MPI_BYTE, w, GT_TAG_ORDER, MPI_COMM_WORLD);
    MPI_Send(&beyond, (int)sizeof beyond, MPI_BYTE, w, GT_TAG_ORDER, MPI_COMM_WORLD);
  }
  must_panic("from worker rank 1: the output of a pass has", poll_once(plane));
  must_panic("worker rank 1 pushed unknown kind 78", poll_once(plane));
  gt_plane_ps_close(plane, LIMIT_S);
}

static void refuse_on_worker(void) {
  gt_plane_worker *plane = gt_plane_worker_create(world, &plane_size);
  const gt_push_msg beyond = {.kind = GT_PUSH_PASS, .out = 1, .out_bytes = AREA},
                    unknown = {.kind = 78};
  must_panic("the output of a pass has", push_beyond(plane));
  must_panic("from this region's PS: an order has unknown kind 77", wait_once(plane));
  must_panic("from this region's PS: a pass reads 1 bytes at 0", wait_once(plane));
  if (rank == 1) {
    MPI_Send(&beyond, (int)sizeof beyond, MPI_BYTE, 0, GT_TAG_PUSH, MPI_COMM_WORLD);
    MPI_Send(&unknown, (int)sizeof unknown, MPI_BYTE, 0, GT_TAG_PUSH, MPI_COMM_WORLD);
  }
  gt_plane_worker_close(plane, LIMIT_S);
}

static void nonsense_ends_the_run(void) {
  both_planes(refuse_on_ps, refuse_on_worker);
}

RANK_TESTS(chain, orders_that_do_not_fit, nonsense_ends_the_run)
