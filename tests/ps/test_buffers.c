/* Buffers between regions: workers' pushes do not undo the effect of an exchange during their
   computation. */
#include "tests.h"
#include "geotrain/ps.h"
#include "../strategies.h"

#define WORKERS  ((size_t)2)
#define NPARAMS  ((size_t)3)
#define NBUFFERS ((size_t)2)
#define NMODEL   (NPARAMS + NBUFFERS)

/* Region 0 of two, whose weights are 3/4 and 1/4. */
typedef struct {
  gt_ps *ps;
  gt_optim *optim;
  float params[NPARAMS], grads[NPARAMS], buffers[NBUFFERS];
  float lent[WORKERS][NPARAMS], own[WORKERS][NBUFFERS];
  bool ordered[WORKERS];
  float model[NMODEL]; /* the last one sent */
  uint64_t sequence;   /* of the other region's last message */
} fixture;

static void on_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                    size_t bytes, uint64_t cookie) {
  (void)peer, (void)cookie;
  if (head->kind == GT_MSG_STATE) memcpy(((fixture *)ctx)->model, payload, bytes);
}

static bool on_drop(void *ctx, size_t peer, uint64_t cookie) {
  (void)ctx, (void)peer, (void)cookie;
  return true;
}

static void on_order(void *ctx, size_t worker, const gt_ps_order *o) {
  if (o->kind == GT_PS_TRAIN) ((fixture *)ctx)->ordered[worker] = true;
}

static void on_taken(void *ctx, size_t worker) {
  (void)ctx, (void)worker;
}

static void on_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)ctx, (void)note, (void)a, (void)b;
}

static void begin(fixture *f, const char *strategy, size_t workers, bool async, int64_t period) {
  static const double weights[] = {0.75, 0.25};
  *f = (fixture){.buffers = {8, 8}};
  gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD, .schedule = {.kind = GT_LR_CONSTANT, .lr = 1}};
  assert_int_equal(gt_optim_create(&f->optim, &sgd, NPARAMS, true), GT_OK);
  gt_ps_spec spec = {.nregions = 2,
                     .nworkers = workers,
                     .local_async = async,
                     .strategy = sync_named(strategy),
                     .weights = weights,
                     .options = {.period = period, .scale = 1},
                     .outbox = 2,
                     .window = 2,
                     .params = gt_vec_of(f->params, NPARAMS),
                     .grads = gt_vec_of(f->grads, NPARAMS),
                     .buffers = gt_vec_of(f->buffers, NBUFFERS),
                     .optim = f->optim,
                     .order = {.seed = 1, .n = 1600, .batch = 4},
                     .until = {.steps = 100},
                     .nonfinite_limit = 3,
                     .heartbeat = GT_SECOND,
                     .keepalive = GT_SECOND,
                     .host = {.ctx = f,
                              .gateway = {f, on_send, on_drop},
                              .order = on_order,
                              .taken = on_taken,
                              .note = on_note}};
  f->ps = gt_ps_create(&spec);
  gt_ps_start(f->ps, 0);
  for (size_t w = 0; w < workers; w++) gt_ps_ready(f->ps, w, 0);
}

static void end(fixture *f) {
  gt_ps_close(f->ps);
  gt_optim_close(f->optim);
}

static void push(fixture *f, size_t worker, float b) {
  assert_true(f->ordered[worker]);
  f->ordered[worker] = false;
  memset(f->lent[worker], 0, sizeof f->lent[worker]);
  for (size_t i = 0; i < NBUFFERS; i++) f->own[worker][i] = b;
  gt_ps_push p = {.samples = 4, .buffers = f->own[worker]};
  gt_ps_gradient(f->ps, worker, &p, f->lent[worker], 1);
}

/* Receives the other region's model, whose buffers are all b. */
static void a_model_comes(fixture *f, float b) {
  float model[NMODEL] = {0};
  for (size_t i = NPARAMS; i < NMODEL; i++) model[i] = b;
  f->sequence++;
  gt_frame_header head = {.kind = GT_MSG_STATE,
                          .from = 1,
                          .sequence = f->sequence,
                          .value = f->sequence,
                          .message_bytes = sizeof model};
  gt_ps_message(f->ps, 1, &head, model, 1);
}

static void buffers_are(const fixture *f, double x) {
  for (size_t i = 0; i < NBUFFERS; i++)
    if (!(fabs((double)f->buffers[i] - x) < 1e-5))
      fail_msg("the buffers are %g; expected %g", (double)f->buffers[i], x);
}

/* A quarter of the other's, although the worker began before it arrived. */
static void ama_keeps_what_came_meanwhile(void) {
  for (int async = 0; async < 2; async++) {
    fixture f;
    begin(&f, "ama", 1, async, 100);
    a_model_comes(&f, 4);
    buffers_are(&f, 7);
    push(&f, 0, 6);
    buffers_are(&f, 0.75 * 6 + 0.25 * 4);
    push(&f, 0, 5); /* it includes the exchange */
    buffers_are(&f, 5);
    a_model_comes(&f, 1);
    a_model_comes(&f, 3);
    push(&f, 0, 4);
    buffers_are(&f, 0.75 * (0.75 * 4 + 0.25 * 1) + 0.25 * 3);
    end(&f);
  }
}

/* The workers began at different times; each includes the exchanges since then. */
static void ama_goes_by_each_worker(void) {
  fixture f;
  begin(&f, "ama", 2, true, 100);
  a_model_comes(&f, 4);
  push(&f, 0, 6);
  buffers_are(&f, 0.75 * 6 + 0.25 * 4);
  a_model_comes(&f, 0);
  push(&f, 1, 5);
  buffers_are(&f, 0.75 * (0.75 * 5 + 0.25 * 4));
  push(&f, 0, 2);
  buffers_are(&f, 0.75 * 2);
  end(&f);
}

static void ama_of_a_step(void) {
  fixture f;
  begin(&f, "ama", 2, false, 100);
  push(&f, 0, 6);
  a_model_comes(&f, 4);
  push(&f, 1, 4);
  buffers_are(&f, 0.75 * 5 + 0.25 * 4);
  end(&f);
}

/* Buffers that start non-negative stay non-negative, however different the regions are. */
static void a_variance_stays_one(void) {
  fixture f;
  begin(&f, "ama", 1, true, 100);
  for (int i = 0; i < 40; i++) a_model_comes(&f, 0.001f);
  push(&f, 0, 7.2f);
  assert_true(f.buffers[0] > 0 && f.buffers[0] < 0.01f);
  end(&f);
}

/* Worker 0's step completes the round; worker 1 computes meanwhile. */
static void sma_keeps_the_mean(void) {
  fixture f;
  begin(&f, "sma", 2, true, 1);
  push(&f, 0, 6);
  assert_true(f.model[NPARAMS] == 6);
  a_model_comes(&f, 2);
  buffers_are(&f, 0.75 * 6 + 0.25 * 2);
  push(&f, 1, 4);
  assert_true(fabs((double)f.model[NPARAMS] - (0.75 * 4 + 0.25 * 2)) < 1e-5);
  end(&f);
}

/* Buffers without an exchange meanwhile are taken unchanged. */
static void undisturbed_buffers_keep_their_bits(void) {
  for (int async = 0; async < 2; async++) {
    fixture f;
    begin(&f, "ama", 1, async, 100);
    push(&f, 0, 0.7f);
    assert_true(f.buffers[0] == 0.7f && f.buffers[1] == 0.7f);
    end(&f);
  }
}

TESTS(ama_keeps_what_came_meanwhile, ama_goes_by_each_worker, ama_of_a_step, a_variance_stays_one,
      sma_keeps_the_mean, undisturbed_buffers_keep_their_bits)
