/* `scale: average` over a resume: a region that had finished is excluded from the shares until it
   announces that it trains again. */
#include "tests.h"
#include "geotrain/ps_state.h"
#include "../strategies.h"

#define NPARAMS ((size_t)3)

/* Region 0 of two of equal weight, one worker, a rate of 1. */
typedef struct {
  gt_ps *ps;
  gt_optim *optim;
  float params[NPARAMS], grads[NPARAMS], lent[NPARAMS];
  bool ordered;
  float sent;             /* the first value of the last update */
  gt_frame_header joined; /* the JOINED that it sent */
} fixture;

static void on_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                    size_t bytes, uint64_t cookie) {
  (void)peer, (void)bytes, (void)cookie;
  fixture *f = ctx;
  if (head->kind == GT_MSG_UPDATE) memcpy(&f->sent, payload, sizeof f->sent);
  if (head->kind == GT_MSG_JOINED) f->joined = *head;
}

static void on_order(void *ctx, size_t worker, const gt_ps_order *o) {
  (void)worker;
  if (o->kind == GT_PS_TRAIN) ((fixture *)ctx)->ordered = true;
}

static void on_taken(void *ctx, size_t worker) {
  (void)ctx, (void)worker;
}

static void on_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)ctx, (void)note, (void)a, (void)b;
}

static void create(fixture *f, int64_t steps) {
  static const double weights[] = {0.5, 0.5};
  *f = (fixture){.sent = 0};
  gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD, .schedule = {.kind = GT_LR_CONSTANT, .lr = 1}};
  assert_int_equal(gt_optim_create(&f->optim, &sgd, NPARAMS, true), GT_OK);
  gt_ps_spec spec = {.nregions = 2,
                     .nworkers = 1,
                     .strategy = sync_named("asgd"),
                     .weights = weights,
                     .options = {.period = 1, .scale = 1, .average = true},
                     .outbox = 8,
                     .window = 8,
                     .params = gt_vec_of(f->params, NPARAMS),
                     .grads = gt_vec_of(f->grads, NPARAMS),
                     .optim = f->optim,
                     .order = {.seed = 1, .n = 1600, .batch = 4},
                     .until = {.steps = steps},
                     .nonfinite_limit = 3,
                     .heartbeat = GT_SECOND,
                     .keepalive = GT_SECOND,
                     .host = {.ctx = f,
                              .gateway = {f, on_send, NULL},
                              .order = on_order,
                              .taken = on_taken,
                              .note = on_note}};
  f->ps = gt_ps_create(&spec);
}

static void start(fixture *f) {
  gt_ps_start(f->ps, 0);
  gt_ps_ready(f->ps, 0, 0);
}

static void end(fixture *f) {
  gt_ps_close(f->ps);
  gt_optim_close(f->optim);
}

/* Makes a step with gradient 1; returns the part of it that is sent. */
static float share(fixture *f) {
  assert_true(f->ordered);
  f->ordered = false;
  for (size_t i = 0; i < NPARAMS; i++) f->lent[i] = 1;
  gt_ps_push p = {.samples = 4};
  gt_ps_gradient(f->ps, 0, &p, f->lent, 1);
  return -f->sent;
}

static void comes(fixture *f, gt_msg_kind kind, uint64_t sequence) {
  gt_frame_header head = {.kind = (uint8_t)kind, .from = 1, .sequence = sequence};
  (void)gt_ps_message(f->ps, 1, &head, NULL, 1);
}

static void resume(fixture *again, fixture *f, int64_t steps) {
  gt_state state = {0};
  create(again, steps);
  gt_ps_save(f->ps, 2, &state);
  assert_int_equal(gt_ps_load(again->ps, 0, &state), GT_OK);
  gt_state_close(&state);
  end(f);
  start(again);
}

static void is(float found, float needed, const char *when) {
  if (found != needed)
    fail_msg("%s the update counts %g; expected %g", when, (double)found, (double)needed);
}

static void a_finished_peer_stays_out(void) {
  fixture f, again;
  create(&f, 100);
  start(&f);
  is(share(&f), 0.5f, "while both train");
  comes(&f, GT_MSG_DONE, 0);
  is(share(&f), 1, "when the other is done");
  resume(&again, &f, 100);
  is(share(&again), 1, "after the resume");
  comes(&again, GT_MSG_JOINED, 1);
  is(share(&again), 1, "when the other has resumed and is done still,");
  comes(&again, GT_MSG_DONE, 0);
  is(share(&again), 1, "when it has said so again");
  end(&again);
}

static void one_that_trains_again_counts_again(void) {
  fixture f, again;
  create(&f, 100);
  start(&f);
  comes(&f, GT_MSG_DONE, 0);
  resume(&again, &f, 100);
  comes(&again, GT_MSG_JOINED, 0);
  is(share(&again), 0.5f, "when the other makes steps again");
  end(&again);
}

/* It announces which of the two it is. */
static void a_resumed_region_says_whether_it_is_done(void) {
  for (int longer = 0; longer < 2; longer++) {
    fixture f, again;
    create(&f, 1);
    start(&f);
    (void)share(&f);
    gt_frame_header ack = {.kind = GT_MSG_ACK, .value = 1};
    (void)gt_ps_message(f.ps, 1, &ack, NULL, 1);
    gt_ps_view v;
    gt_ps_get_view(f.ps, 1, &v);
    assert_int_equal(v.phase, GT_PS_FOLLOWING);
    resume(&again, &f, longer ? 5 : 1);
    assert_int_equal(again.joined.kind, GT_MSG_JOINED);
    assert_int_equal(again.joined.sequence, longer ? GT_JOINED_LATE : GT_JOINED_DONE);
    end(&again);
  }
}

TESTS(a_finished_peer_stays_out, one_that_trains_again_counts_again,
      a_resumed_region_says_whether_it_is_done)
