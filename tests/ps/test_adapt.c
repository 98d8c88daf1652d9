/* What a region of a pipeline that follows the network says and accepts: one PS, its events by
   hand, in the middle of three regions a - b - c; and the same in one of two replicas, whose others
   are d - e - f. */
#include "internal.h"
#include "tests.h"

#define STAGES  3 /* one in each region of a replica */
#define REGIONS 6
#define SELF    1
#define REPLICA 4
#define MICROS  4
#define SENT    64

/* A note of kind k about q is the number note(k, q) < 0 here; that of a step is the step. */
#define KINDS 8 /* one more than there are */

static int64_t note(int64_t k, int64_t q) {
  return -1 - k - KINDS * q;
}

typedef struct {
  size_t peer;
  int64_t what, detail;
} told;

typedef struct {
  gt_pipe_job pipe;
  gt_job job;
  gt_job_region regions[REGIONS];
  gt_pipe_place places[STAGES];
  gt_pipe_span spans[STAGES];
  gt_pipe_hop hops[STAGES];
  gt_link_spec links[REGIONS * REGIONS];
  size_t region[STAGES], n; /* n: regions */
  gt_ps_stage stage;
  gt_optim *optim;
  gt_ps *ps;
  told told[SENT]; /* steps and notes */
  size_t ntold, orders;
} hand;

static void host_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                      size_t bytes, uint64_t cookie) {
  hand *h = ctx;
  (void)payload, (void)bytes, (void)cookie;
  const bool step = head->kind == GT_MSG_STRATEGY;
  if (step || head->kind == GT_MSG_ADAPT)
    h->told[h->ntold++ % SENT] =
        (told){peer, step ? (int64_t)head->value : note(head->range, (int64_t)head->value),
               (int64_t)head->detail};
}

static void host_order(void *ctx, size_t worker, const gt_ps_order *order) {
  (void)worker;
  ((hand *)ctx)->orders += order->kind == GT_PS_TRAIN;
}

static void host_taken(void *ctx, size_t worker) {
  (void)ctx, (void)worker;
}

static void host_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)ctx, (void)note, (void)a, (void)b;
}

static void open_pipe(hand *h) {
  static const char *const names[REGIONS] = {"a", "b", "c", "d", "e", "f"};
  for (size_t r = 0; r < h->n; r++) h->regions[r].name = (char *)(uintptr_t)names[r];
  for (size_t s = 0; s < STAGES; s++) {
    h->places[s] = (gt_pipe_place){s, 0, 1};
    h->spans[s] = (gt_pipe_span){0.02, 0.02, 0.02, 1, 1, 250000, 0};
    h->region[s] = s;
  }
  for (size_t i = 0; i < h->n * h->n; i++)
    h->links[i] = (gt_link_spec){.bandwidth_bps = 1e8, .latency_s = 0.05, .back_s = 0.05};
  h->job.regions = h->regions;
  h->job.nregions = h->n;
  h->pipe = (gt_pipe_job){.job = &h->job,
                          .layout = {.nregions = h->n,
                                     .stages = STAGES,
                                     .chunks = 1,
                                     .micro_batches = MICROS,
                                     .micro_samples = 1,
                                     .places = h->places,
                                     .adapts = true},
                          .wan.wan = {.nregions = h->n, .region = h->region, .links = h->links}};
  h->pipe.problem = (gt_pipe_problem){.stages = STAGES,
                                      .chunks = 1,
                                      .micro_batches = MICROS,
                                      .spans = h->spans,
                                      .ahead = h->hops,
                                      .back = h->hops,
                                      .wan = &h->pipe.wan.wan};
  must(gt_pipe_make(&h->pipe.layout.schedule, GT_PIPE_1F1B, &h->pipe.problem, NULL));
}

static void open_hand(hand *h, gt_ps_groups groups) {
  static const double weights[REGIONS] = {1};
  const gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.1}};
  *h = (hand){.stage = {.workers = 1, .judges = true, .counts = true},
              .n = groups.nreplicas > 0 ? REGIONS : STAGES};
  open_pipe(h);
  must(gt_optim_create(&h->optim, &sgd, 8, false));
  const gt_ps_spec spec = {.nregions = h->n,
                           .self = SELF,
                           .groups = groups,
                           .nworkers = 1,
                           .strategy = &gt_ps_lockstep,
                           .stages = &h->stage,
                           .nstages = 1,
                           .adapts = &h->pipe,
                           .weights = weights,
                           .options = {.period = 1, .scale = 1},
                           .params = gt_vec_of(NULL, 8),
                           .grads = gt_vec_of(NULL, 8),
                           .optim = h->optim,
                           .order = {.n = 100, .batch = 1, .whole = true},
                           .until = {.steps = 10},
                           .outbox = 1,
                           .window = 1,
                           .heartbeat = GT_SECOND,
                           .keepalive = GT_NEVER / 2,
                           .nonfinite_limit = 1,
                           .host = {.ctx = h,
                                    .gateway = {h, host_send, NULL},
                                    .order = host_order,
                                    .taken = host_taken,
                                    .note = host_note}};
  h->ps = gt_ps_create(&spec);
  gt_ps_start(h->ps, 0);
  gt_ps_ready(h->ps, 0, 0);
  assert_int_equal(h->orders, 1);
}

static const gt_ps_groups one_replica = {0};

static void close_hand(hand *h) {
  gt_ps_close(h->ps);
  gt_optim_close(h->optim);
  gt_pipe_schedule_close(h->pipe.layout.schedule);
}

static gt_status hears(hand *h, size_t from, int64_t what, int64_t detail, gt_ns now) {
  gt_frame_header head = {
      .kind = GT_MSG_STRATEGY, .value = (uint64_t)what, .detail = (uint64_t)detail};
  if (what < 0) {
    head.kind = GT_MSG_ADAPT;
    head.range = (uint32_t)((-1 - what) % KINDS);
    head.value = (uint64_t)((-1 - what) / KINDS);
  }
  return gt_ps_message(h->ps, from, &head, NULL, now);
}

static void refuses(hand *h, size_t from, int64_t what, int64_t detail, const char *words) {
  must_fail(hears(h, from, what, detail, 5 * GT_SECOND), GT_ERR_FAULT, words);
}

static void says(const hand *h, size_t at, size_t peer, int64_t what) {
  assert_true(at < h->ntold);
  assert_int_equal(h->told[at].peer, peer);
  assert_int_equal(h->told[at].what, what);
}

/* Three messages of 125,000 bytes at 1 Mbit/s, 100 ms away there and back: two follow each other,
   one comes later; the acknowledgement of the last has waited, and those two count.  To the other
   neighbour nothing is sent. */
static void costs_of_a_step(void) {
  hand h;
  const gt_frame_header head = {.kind = GT_MSG_ACTIVATION}, score = {.detail = 1};
  const gt_ns ms = GT_SECOND / 1000;
  open_hand(&h, one_replica);
  says(&h, 0, 0, note(1, 0));
  says(&h, 1, 2, note(1, 0));
  must(hears(&h, 2, note(2, 0), h.told[1].detail, 100 * ms));
  gt_ps_posted(h.ps, 2, &head, 125000, 200 * ms);
  gt_ps_posted(h.ps, 2, &head, 125000, 300 * ms);
  gt_ps_posted(h.ps, 2, &score, 125000, 300 * ms); /* of an evaluation: not acknowledged */
  must(hears(&h, 2, note(0, 0), 1, 1300 * ms));
  must(hears(&h, 2, note(0, 0), 2, 2300 * ms));
  gt_ps_posted(h.ps, 2, &head, 125000, 4000 * ms);
  must(hears(&h, 2, note(0, 0), 3, 5500 * ms));
  const size_t before = h.ntold;
  const gt_ps_push push = {.samples = 1, .loss_sum = 1};
  gt_ps_gradient(h.ps, 0, &push, NULL, 6000 * ms);
  /* step 1: rate and round trip of both neighbours to both, then the step itself */
  const int64_t values[] = {note(3, 1), note(4, 1), note(3, 5), note(4, 5), 1},
                details[] = {0, 0, 1000000, 100 * ms, 0};
  for (size_t i = 0; i < 10; i++) {
    says(&h, before + i, i % 2 ? 2 : 0, values[i / 2]);
    assert_int_equal(h.told[before + i].detail, details[i / 2]);
  }
  assert_int_equal(h.ntold, before + 10);
  close_hand(&h);
}

static void what_others_tell_is_checked(void) {
  hand h;
  const gt_frame_header head = {.kind = GT_MSG_ACTIVATION};
  open_hand(&h, one_replica);
  gt_ps_posted(h.ps, 0, &head, 1000, 1);
  refuses(&h, 0, note(0, 0), 0, "the next one that was sent");
  refuses(&h, 0, note(0, 0), 2, "the next one that was sent");
  refuses(&h, 2, note(0, 0), 1, "the next one that was sent");
  must(hears(&h, 0, note(0, 0), 1, 5 * GT_SECOND));
  refuses(&h, 0, note(0, 0), 1, "the next one that was sent");
  refuses(&h, 0, note(0, 1), 2, "one that there is");
  refuses(&h, 0, note(2, 0), 6 * GT_SECOND, "one that has been");
  refuses(&h, 0, note(3, 4), 1, "one that it uses"); /* from a to c */
  refuses(&h, 0, note(4, 6), 1, "one that it uses"); /* there are three */
  refuses(&h, 0, note(3, 2), -1, "0 or more");
  refuses(&h, 0, note(4, 2), -1, "0 or more");
  must(hears(&h, 0, note(3, 2), 1000000, 5 * GT_SECOND));
  refuses(&h, 0, note(7, 0), 1, "one that there is");
  refuses(&h, 0, INT64_MIN, 1, "one that there is");
  close_hand(&h);
}

/* No region measures, so nothing changes; the step continues. */
static void silent_links_change_nothing(void) {
  hand h;
  open_hand(&h, one_replica);
  const gt_pipe_schedule *order = gt_ps_schedule(h.ps);
  for (int64_t k = 1; k <= 5; k++) {
    const gt_ps_push push = {.samples = 1, .loss_sum = 1};
    gt_ps_gradient(h.ps, 0, &push, NULL, k * GT_SECOND);
    must(hears(&h, 0, k, 0, k * GT_SECOND));
    assert_int_equal(h.orders, k);
    must(hears(&h, 2, k, 0, k * GT_SECOND));
    assert_int_equal(h.orders, k + 1);
  }
  assert_ptr_equal(gt_ps_schedule(h.ps), order);
  close_hand(&h);
}

/* Writes the passes of another order than the plan, as in a message; returns their number. */
static size_t other_order(const hand *h, int64_t *passes) {
  gt_pipe_schedule *order;
  size_t n = 0;
  must(gt_pipe_make(&order, GT_PIPE_GPIPE, &h->pipe.problem, NULL));
  for (size_t s = 0; s < STAGES; s++)
    for (size_t i = 0; i < order->lists[s].n; i++) {
      const gt_pass *p = &order->lists[s].passes[i];
      passes[n++] = ((int64_t)p->kind << 24 | p->span) << 24 | p->micro;
    }
  gt_pipe_schedule_close(order);
  return n;
}

/* The first region tells an order with step 1, all at once, and it alone may; when the step is made
   it is in force. */
static void the_order_that_is_told_is_taken(void) {
  hand h;
  int64_t passes[3 * STAGES * MICROS];
  char plan[GT_SHA256_HEX], order[GT_SHA256_HEX];
  const gt_ps_push push = {.samples = 1, .loss_sum = 1};
  open_hand(&h, one_replica);
  const size_t n = other_order(&h, passes);
  refuses(&h, 2, note(5, 1), passes[0], "does not decide");
  refuses(&h, 0, note(5, 2), passes[0], "one that there is");
  for (size_t i = 0; i < n; i++) must(hears(&h, 0, note(5, 1), passes[i], GT_SECOND));
  refuses(&h, 0, note(6, 1), (int64_t)n - 1, "all that were told");
  must(hears(&h, 0, note(6, 1), (int64_t)n, GT_SECOND));
  refuses(&h, 0, note(5, 1), passes[0], "no more than a step has");
  must(hears(&h, 0, note(5, 0), passes[0], GT_SECOND));
  refuses(&h, 0, note(6, 0), 1, "not sound");
  gt_ps_gradient(h.ps, 0, &push, NULL, 2 * GT_SECOND);
  gt_pipe_hash(h.pipe.layout.schedule, plan);
  gt_pipe_hash(gt_ps_schedule(h.ps), order);
  assert_string_equal(order, plan);
  for (size_t peer = 0; peer < STAGES; peer += 2) must(hears(&h, peer, 1, 0, 3 * GT_SECOND));
  gt_pipe_hash(gt_ps_schedule(h.ps), order);
  assert_string_not_equal(order, plan);
  close_hand(&h);
}

/* To its copy alone it tells of the links, and hears of them from there; the next step begins when
   the replica's gradient is there, too. */
static void replicas_measure_for_themselves(void) {
  static const size_t stage_group[] = {0, 1, 2}, replicas[] = {SELF, REPLICA};
  static const double weights[] = {0.5, 0.5};
  const gt_ps_groups two = {.stage_group = stage_group,
                            .nstage_group = STAGES,
                            .replicas = replicas,
                            .nreplicas = 2,
                            .weights = weights,
                            .strategy = gt_sync_of(GT_STRATEGY_SSGD),
                            .options = {.period = 1, .scale = 1}};
  hand h;
  open_hand(&h, two);
  says(&h, 0, 0, note(1, 0));
  says(&h, 1, 2, note(1, 0));
  assert_int_equal(h.ntold, 2);
  for (size_t other = STAGES; other < REGIONS; other++) {
    refuses(&h, other, note(1, 0), GT_SECOND,
            "one from a region that is of the same copy of the pipeline");
    refuses(&h, other, note(4, 0), 1, "one from a region that is of the same copy of the pipeline");
  }
  const gt_ps_push push = {.samples = 1, .loss_sum = 1};
  gt_ps_gradient(h.ps, 0, &push, NULL, 6 * GT_SECOND);
  for (size_t i = 2; i < h.ntold; i++) assert_int_equal(h.told[i].peer, i % 2 ? 2 : 0);
  assert_int_equal(h.ntold, 2 + 10); /* two costs, the step, to both */
  must(hears(&h, 0, 1, 0, 7 * GT_SECOND));
  must(hears(&h, 2, 1, 0, 8 * GT_SECOND));
  assert_int_equal(h.orders, 1);
  const gt_frame_header update = {
      .kind = GT_MSG_UPDATE, .value = 1, .sequence = 1, .message_bytes = 8 * sizeof(float)};
  must(gt_ps_message(h.ps, REPLICA, &update, NULL, 9 * GT_SECOND));
  assert_int_equal(h.orders, 2);
  assert_int_equal(h.ntold, 2 + 10 + 2); /* echoes of the next step */
  for (size_t i = 12; i < 14; i++) says(&h, i, i % 2 ? 2 : 0, note(1, 0));
  close_hand(&h);
}

TESTS(costs_of_a_step, the_order_that_is_told_is_taken, what_others_tell_is_checked,
      silent_links_change_nothing, replicas_measure_for_themselves)
