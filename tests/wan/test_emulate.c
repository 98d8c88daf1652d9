/* ranks: 2; processors: all */
/* Emulation in real time: exchange times and throughput follow the link, directions are
   independent, control overtakes data, and emulation costs little CPU time. */
#include <time.h>

#include "internal.h"
#include "tests.h"

#define LIMIT_S 40.0
#define MODEL   ((size_t)250000)
#define LARGE   ((size_t)8 << 20)

static gt_peers *world;
static int rank;

typedef struct {
  gt_gateway *g;
  int64_t data, control, data_at_control, departed;
  uint64_t last_value, last_cookie;
  gt_ns last_arrival, last_departure; /* of this host */
} side;

/* Both ranks run on one host here, so the test can compare its clock; the gateway never does. */
static gt_ns host_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (gt_ns)t.tv_sec * GT_SECOND + t.tv_nsec;
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  (void)peer, (void)payload, (void)now;
  side *s = ctx;
  if (gt_msg_is_control(head->kind)) {
    s->control++;
    s->data_at_control = s->data;
    return;
  }
  s->data++;
  s->last_value = head->value;
  s->last_arrival = host_now();
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)peer, (void)now;
  side *s = ctx;
  s->departed++;
  s->last_cookie = cookie;
  s->last_departure = host_now();
}

static void open_side(side *s, double mbit, double latency_s, double jitter_s, size_t payload_max) {
  gt_link_spec link = {.bandwidth_bps = mbit * 1e6, .latency_s = latency_s, .jitter_s = jitter_s},
               links[2] = {link, link};
  gt_gateway_spec spec = {.nregions = 2,
                          .names = (const char *const[]){"a", "b"},
                          .self = (size_t)rank,
                          .links = links,
                          .emulate = true,
                          .seed = 1,
                          .payload_max = payload_max};
  gt_gateway_events events = {.ctx = s, .on_message = on_message, .on_departed = on_departed};
  *s = (side){0};
  s->g = gt_gateway_create(world, &spec, &events);
  gt_peers_meet(world, &(gt_peers_wait){.what = "the other side", .limit_s = LIMIT_S});
}

/* Polls like the PS: when something is due or could have arrived. */
static void run_until(side *s, int64_t data, int64_t control, int64_t departed) {
  gt_backoff backoff = {0};
  gt_ns deadline = gt_now() + gt_from_seconds(LIMIT_S);
  while (s->data < data || s->control < control || s->departed < departed) {
    assert_true(gt_now() < deadline);
    if (gt_gateway_poll(s->g, gt_now()))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, gt_gateway_next(s->g, NULL));
  }
}

static void send(side *s, gt_msg_kind kind, const void *payload, size_t bytes, uint64_t cookie) {
  gt_frame_header head = {.kind = (uint8_t)kind, .sequence = 1, .value = (uint64_t)host_now()};
  gt_gateway_send(s->g, 1 - (size_t)rank, &head, payload, bytes, cookie, gt_now());
}

/* An outage at the start of the run holds messages sent then, but not the greetings before it. */
static void outage_at_the_start(void) {
  const gt_link_outage outage = {.from_s = 0, .for_s = 0.5};
  const gt_link_spec link = {
      .bandwidth_bps = 1e9, .latency_s = 0.001, .outages = &outage, .noutages = 1};
  const gt_link_spec links[2] = {link, link};
  const gt_gateway_spec spec = {.nregions = 2,
                                .names = (const char *const[]){"a", "b"},
                                .self = (size_t)rank,
                                .links = links,
                                .emulate = true,
                                .seed = 1,
                                .payload_max = 1000};
  side s = {0};
  const gt_gateway_events events = {
      .ctx = &s, .on_message = on_message, .on_departed = on_departed};
  s.g = gt_gateway_create(world, &spec, &events);
  const gt_ns from = gt_now();
  send(&s, GT_MSG_HELLO, NULL, 0, 0);
  run_until(&s, 0, 1, 0);
  /* Nothing must be in flight at the beginning: as at the start of a run, greetings have left
     before. */
  for (bool large; gt_gateway_next(s.g, &large) != GT_NEVER;) gt_gateway_poll(s.g, gt_now());
  assert_true(gt_now() - from < GT_SECOND / 2);
  gt_gateway_begin(s.g, gt_now());
  const gt_ns begun = gt_now();
  send(&s, GT_MSG_PING, NULL, 0, 0);
  run_until(&s, 0, 2, 0);
  assert_true(gt_now() - begun > GT_SECOND * 2 / 5);
  gt_gateway_close(s.g, LIMIT_S);
}

#define EXCHANGES 10

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Regions send in turn.  The last sender closes as soon as its message has departed, 40 ms before
   it arrives: closing loses nothing that has left.  No exchange is early; the median bounds the
   lateness, because other programs on this host delay single exchanges. */
static void exchange_time(void) {
  side s;
  uint8_t *payload = gt_alloc(MODEL, 1);
  double off[EXCHANGES / 2];
  size_t n = 0;
  open_side(&s, 10.0, 0.040, 0.0, MODEL);
  double expected_s = (double)gt_wire_bytes(MODEL) * 8.0 / 10e6 + 0.040;
  for (int i = 1; i <= EXCHANGES; i++) {
    bool sends = rank == i % 2;
    if (sends) send(&s, GT_MSG_UPDATE, payload, MODEL, 9);
    run_until(&s, i / 2 + (rank == 0 ? i % 2 : 0), 0, i / 2 + (rank == 1 ? i % 2 : 0));
    if (!sends) off[n++] = gt_seconds(s.last_arrival - (gt_ns)s.last_value) / expected_s - 1.0;
  }
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(payload);
  qsort(off, n, sizeof *off, by_value);
  printf("rank %d: 250 KB at 10 Mbit/s and 40 ms: %.1f ms expected; more measured: least %.2f %%, "
         "median %.2f %%, most %.2f %%\n",
         rank, expected_s * 1e3, off[0] * 100.0, off[n / 2] * 100.0, off[n - 1] * 100.0);
  assert_int_equal(n, EXCHANGES / 2);
  assert_true(off[0] > -1e-6);
  assert_true(off[n / 2] < 0.05);
}

/* Sends 8 MiB each way at once; returns the seconds from the first message to the last departure
   and arrival here, and of CPU. */
static void both_ways(double *departed_s, double *arrived_s, double *cpu_s) {
  side s;
  uint8_t *payload = gt_alloc(LARGE / 8, 1);
  open_side(&s, 100.0, 0.010, 0.001, LARGE / 8);
  gt_ns begin = host_now();
  for (uint64_t i = 1; i <= 8; i++) send(&s, GT_MSG_STATE, payload, LARGE / 8, i);
  run_until(&s, 8, 0, 8);
  *departed_s = gt_seconds(s.last_departure - begin);
  *arrived_s = gt_seconds(s.last_arrival - begin);
  *cpu_s = gt_gateway_emulation_s(s.g);
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(payload);
}

/* At 100 Mbit/s each direction has the full rate, as if it were alone.  Best of three, because
   other programs on this host can only slow it down. */
static void throughput(void) {
  double expected_s = 8.0 * (double)gt_wire_bytes(LARGE / 8) * 8.0 / 100e6, best_departed_s = 1e9,
         best_arrived_s = 1e9;
  for (int i = 0; i < 3; i++) {
    double departed_s, arrived_s, cpu_s;
    both_ways(&departed_s, &arrived_s, &cpu_s);
    printf("rank %d: 8 MiB at 100 Mbit/s: %.1f ms expected, %.1f measured; emulation took %.3f ms "
           "of CPU\n",
           rank, expected_s * 1e3, departed_s * 1e3, cpu_s * 1e3);
    assert_true(departed_s > expected_s * 0.999);
    assert_true(cpu_s > 0.0 && cpu_s < 0.01 * departed_s);
    if (departed_s < best_departed_s) best_departed_s = departed_s;
    if (arrived_s < best_arrived_s) best_arrived_s = arrived_s;
  }
  assert_true(best_departed_s < expected_s * 1.03);
  assert_true(best_arrived_s < expected_s * 1.06 + 0.010);
}

/* With a poll every 5 ms, twice the time of a message, the link still has its full rate, and
   messages arrive in real time. */
static void late_polls_lose_nothing(void) {
  enum { COUNT = 40 };
  size_t bytes = (size_t)64 << 10;
  side s;
  uint8_t *payload = gt_alloc(bytes, 1);
  open_side(&s, 200.0, 0.010, 0.0, bytes);
  gt_ns begin = host_now();
  for (uint64_t i = 1; i <= COUNT; i++) send(&s, GT_MSG_UPDATE, payload, bytes, i);
  while (s.departed < COUNT || s.data < COUNT) {
    assert_true(host_now() - begin < gt_from_seconds(LIMIT_S));
    gt_gateway_poll(s.g, gt_now());
    gt_sleep(GT_SECOND / 200);
  }
  double expected_s = COUNT * (double)gt_wire_bytes(bytes) * 8.0 / 200e6,
         took_s = gt_seconds(s.last_departure - begin);
  if (rank == 0)
    printf("polled every 5 ms: %.1f ms expected, %.1f measured\n", expected_s * 1e3, took_s * 1e3);
  /* 1.9 when each late poll costs the link its lateness */
  assert_true(took_s > expected_s * 0.999 && took_s < expected_s * 1.7);
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(payload);
}

/* A control message queued after four frames of data arrives after the one that is on the link. */
static void control_overtakes(void) {
  side s;
  uint8_t *payload = gt_alloc(4 * GT_FRAME_PAYLOAD_MAX, 1);
  open_side(&s, 200.0, 0.005, 0.0, 4 * GT_FRAME_PAYLOAD_MAX);
  if (rank == 0) {
    send(&s, GT_MSG_UPDATE, payload, 4 * GT_FRAME_PAYLOAD_MAX, 1);
    gt_gateway_poll(s.g, gt_now());
    send(&s, GT_MSG_PING, NULL, 0, 0);
  }
  run_until(&s, rank == 1, rank == 1, rank == 0);
  if (rank == 1) assert_int_equal(s.data_at_control, 0);
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(payload);
}

static void drop_before_and_after(void) {
  side s;
  size_t bytes = 2 * GT_FRAME_PAYLOAD_MAX; /* the first frame is on the link, the second is not */
  uint8_t *payload = gt_alloc(bytes, 1);
  open_side(&s, 400.0, 0.001, 0.0, bytes);
  if (rank == 0) {
    send(&s, GT_MSG_STATE, payload, bytes, 1);
    send(&s, GT_MSG_STATE, payload, bytes, 2);
    assert_int_equal(gt_gateway_queued(s.g, 1), 2);
    gt_gateway_poll(s.g, gt_now());
    assert_int_equal(gt_gateway_queued(s.g, 1), 1);
    gt_frame_header head = {.kind = GT_MSG_STATE, .sequence = 1, .value = 77};
    assert_false(gt_gateway_drop(s.g, 1, 1)); /* begun */
    assert_false(gt_gateway_drop(s.g, 1, 8)); /* unknown */
    assert_true(gt_gateway_drop(s.g, 1, 2));
    assert_false(gt_gateway_drop(s.g, 1, 2));
    gt_gateway_send(s.g, 1, &head, payload, bytes, 3, gt_now());
  }
  run_until(&s, rank == 1 ? 2 : 0, 0, rank == 0 ? 2 : 0);
  if (rank == 1) assert_int_equal(s.last_value, 77);
  if (rank == 0) assert_int_equal(s.last_cookie, 3);
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(payload);
}

/* A message that leaves late keeps the link busy after a restart, and the ledger continues. */
static void save_and_load(void) {
  side s;
  uint8_t *payload = gt_alloc(MODEL, 1);
  open_side(&s, 20.0, 0.001, 0.0005, MODEL);
  send(&s, GT_MSG_STATE, payload, MODEL, 1);
  run_until(&s, 1, 0, 1);
  gt_state saved = {0};
  gt_ns now = gt_now();
  gt_gateway_save(s.g, now, &saved);
  gt_gateway fresh = *s.g;
  gt_sender *senders = GT_NEW_ARRAY(gt_sender, 2);
  fresh.senders = senders;
  gt_ns later = now + 5 * GT_SECOND;
  assert_int_equal(gt_gateway_load(&fresh, later, &saved), GT_OK);
  const gt_sender *old = &s.g->senders[1 - rank], *new = &senders[1 - rank];
  assert_int_equal(new->wire.link.busy_until, old->wire.link.busy_until + 5 * GT_SECOND);
  assert_int_equal(new->wire.link.last_arrival, old->wire.link.last_arrival + 5 * GT_SECOND);
  assert_memory_equal(&new->wire.link.rng, &old->wire.link.rng, sizeof new->wire.link.rng);
  assert_true(old->wire.link.rng.counter > 0);
  assert_int_equal(new->ledger[GT_MSG_STATE].wire_bytes, gt_wire_bytes(MODEL));
  assert_memory_equal(new->ledger, old->ledger, sizeof new->ledger);
  gt_state_close(&saved);
  gt_state empty = {0};
  assert_int_equal(gt_gateway_load(&fresh, later, &empty), GT_ERR_CKPT);
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(senders);
  gt_free(payload);
}

int main(void) {
  world = gt_net_start(LIMIT_S);
  rank = (int)world->rank;
  int failed =
      RUN_TESTS(NULL, NULL, outage_at_the_start, exchange_time, throughput, control_overtakes,
                late_polls_lose_nothing, drop_before_and_after, save_and_load);
  gt_net_finalize(world, LIMIT_S);
  return failed;
}
