/* A wire alone: departures and arrivals are reported once and in order, and messages are counted by
   kind. */
#include "jobs.h"
#include "tests.h"
#include "internal.h"

static const char text[] =
    "name: wire\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
    "train: {until: {steps: 1}, batch: 10, optimizer: {name: sgd, lr: 0.1}}\n"
    "regions: [{name: a, ranks: 2, samples: 10}, {name: b, ranks: 2, samples: 10}]\n"
    "sync: {strategy: asgd}\nwan: {default: {bandwidth: 100 Mbit/s, latency: 20 ms}}\n";

enum { PARAMETERS = 1000, BYTES = PARAMETERS * sizeof(float), LARGE = 3 << 20 };

typedef struct {
  gt_job *job;
  gt_links *links;
  gt_sim sim;
  sim_region regions[2];
} pair;

static struct {
  uint64_t departed[4];
  uint8_t arrived[4];
  size_t ndeparted, narrived, at; /* at: where the last one arrived */
} told;

static void on_message(sim_region *r, const gt_frame_header *head, const void *body) {
  assert_null(body);
  told.arrived[told.narrived++] = head->kind;
  told.at = r->id;
}

static void on_departed(sim_region *r, size_t peer, uint64_t cookie) {
  assert_int_equal(r->id, 0);
  assert_int_equal(peer, 1);
  told.departed[told.ndeparted++] = cookie;
}

static const sim_wire_hooks hooks = {.message = on_message, .departed = on_departed};

static int open_pair(void **state) {
  static pair p;
  p = (pair){.job = job_as("%s", text)};
  told.ndeparted = told.narrived = 0;
  must(gt_links_create(&p.links, p.job));
  p.sim.spec = (gt_sim_spec){.job = p.job, .links = p.links, .parameters = PARAMETERS};
  p.sim.n = 2;
  p.sim.spare = p.sim.spare_route = SIM_NONE;
  p.sim.regions = p.regions;
  gt_sim_agenda_open(&p.sim.agenda, 2);
  for (size_t i = 0; i < 2; i++) {
    p.regions[i].sim = &p.sim;
    p.regions[i].id = i;
    gt_sim_wires_open(&p.regions[i], &hooks);
  }
  *state = &p;
  return 0;
}

static int close_pair(void **state) {
  pair *p = *state;
  for (size_t i = 0; i < 2; i++) gt_sim_wires_close(&p->regions[i]);
  gt_sim_agenda_close(&p->sim.agenda);
  gt_free(p->sim.messages);
  gt_free(p->sim.frame_routes);
  gt_links_close(p->links);
  gt_job_close(p->job);
  return 0;
}

static void send(pair *p, gt_msg_kind kind, size_t bytes, uint64_t cookie) {
  const gt_frame_header head = {.kind = (uint8_t)kind};
  gt_sim_send(&p->regions[0], 1, &head, NULL, bytes, cookie, 0);
}

/* Polls until nothing is in flight. */
static void run(pair *p) {
  for (gt_ns at; (at = gt_sim_link_next(&p->regions[0])) != GT_NEVER;)
    gt_sim_poll(&p->regions[0], at);
  while (gt_sim_arrival_next(&p->regions[1]) != GT_NEVER) gt_sim_deliver(&p->regions[1]);
}

static void test_each_is_told_once(void **state) {
  pair *p = *state;
  send(p, GT_MSG_UPDATE, BYTES, 7);
  send(p, GT_MSG_UPDATE, BYTES, 8);
  run(p);
  assert_int_equal(told.ndeparted, 2);
  assert_int_equal(told.departed[0], 7);
  assert_int_equal(told.departed[1], 8);
  assert_int_equal(told.narrived, 2);
  assert_int_equal(told.at, 1);
}

static void test_what_has_no_cookie_departs_unsaid(void **state) {
  send(*state, GT_MSG_ACK, 0, 0);
  run(*state);
  assert_int_equal(told.ndeparted, 0);
  assert_int_equal(told.narrived, 1);
}

/* Control frames go between the frames of a large message; that message arrives with its last
   frame. */
static void test_control_goes_first(void **state) {
  send(*state, GT_MSG_STATE, LARGE, 7);
  send(*state, GT_MSG_ACK, 0, 0);
  run(*state);
  assert_int_equal(told.narrived, 2);
  assert_int_equal(told.arrived[0], GT_MSG_ACK);
  assert_int_equal(told.arrived[1], GT_MSG_STATE);
}

static void test_each_is_counted_by_kind(void **state) {
  pair *p = *state;
  const double hello = (double)gt_wire_bytes(GT_HELLO_BYTES), ack = (double)gt_wire_bytes(0);
  send(p, GT_MSG_UPDATE, BYTES, 7);
  send(p, GT_MSG_ACK, 0, 0);
  run(p);
  gt_sim_traffic there = gt_sim_traffic_of(&p->sim, 0, 1), back = gt_sim_traffic_of(&p->sim, 1, 0);
  assert_true(there.messages == 1 && there.bytes_sent == (double)gt_wire_bytes(BYTES));
  assert_true(there.bytes_other == hello + ack);
  assert_true(back.messages == 0 && back.bytes_sent == 0 && back.bytes_other == hello);
}

/* Messages of a pipeline: each kind has its own sums, and each frame a route. */
static void test_activations_are_counted_by_kind(void **state) {
  pair *p = *state;
  const uint8_t kinds[] = {GT_MSG_ACTIVATION, GT_MSG_ACTIVATION, GT_MSG_ACT_GRADIENT};
  const size_t bytes[] = {LARGE, 0, BYTES};
  for (uint64_t i = 0; i < 3; i++) {
    const gt_frame_header head = {
        .kind = kinds[i], .flags = GT_FRAME_ROUTED, .route = {.destination = 1, .count = 4}};
    gt_sim_send(&p->regions[0], 1, &head, NULL, bytes[i], 7 + i, 0);
  }
  send(p, GT_MSG_UPDATE, BYTES, 10);
  run(p);
  const gt_sim_traffic there = gt_sim_traffic_of(&p->sim, 0, 1);
  assert_true(there.messages == 4);
  assert_true(there.bytes_sent == LARGE + BYTES + 5 * 96 + (double)gt_wire_bytes(BYTES));
  assert_true(there.bytes_other == (double)gt_wire_bytes(GT_HELLO_BYTES));
  assert_int_equal(told.narrived, 4);
  for (size_t i = 0; i < 3; i++) assert_int_equal(told.arrived[i], kinds[i]);
  for (size_t i = 0; i < 4; i++) assert_int_equal(told.departed[i], 7 + i);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, open_pair, close_pair)
  const struct CMUnitTest tests[] = {
      TEST(test_each_is_told_once),
      TEST(test_what_has_no_cookie_departs_unsaid),
      TEST(test_control_goes_first),
      TEST(test_each_is_counted_by_kind),
      TEST(test_activations_are_counted_by_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
