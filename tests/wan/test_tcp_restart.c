/* wraps: gt_panic */
/* A region that starts again: its frames are numbered from 1 again, a second start is refused while
   the first is connected, and a group repeats its messages. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lane.h"
#include "panic.h"
#include "port.h"

#define LIMIT_S 20.0
#define SHORT_S 0.3
#define WINDOW  ((size_t)4)
#define BYTES   ((size_t)3000)

static int port;

/* ---- ends ------------------------------------------------------------------------------------ */

typedef struct {
  gt_endpoint *tcp;
  gt_transport *t;
  size_t self;
  uint8_t frames[WINDOW][BYTES];
  uint64_t sent, received;
} end;

static void gather(gt_peers *peers, const void *own, size_t bytes, void *all,
                   const gt_peers_wait *wait) {
  (void)peers, (void)wait;
  memcpy(all, own, bytes);
}

static const gt_peers_ops by_itself = {.gather = gather};
static gt_peers alone = {&by_itself, 0, 1};

static size_t nregions = 2;

/* Region 0, a, listens; region 1, b, dials, and so does c. */
static gt_endpoint *open_tcp(size_t self, bool restarts) {
  char at[32];
  gt_endpoint *tcp;
  snprintf(at, sizeof at, "127.0.0.1:%d", port);
  const gt_tcp_region regions[] = {{"a", at}, {"b", NULL}, {"c", NULL}};
  const gt_tcp_spec spec = {.regions = regions,
                            .nregions = nregions,
                            .self = self,
                            .listen = self == 0 ? at : NULL,
                            .patience_s = 0.4,
                            .restarts = restarts};
  if (gt_tcp_open(&tcp, &spec) != GT_OK) fail_msg("%s", gt_error_text());
  gt_endpoint_set_run(tcp, 7);
  return tcp;
}

static void open_gateway(end *e) {
  static const size_t windows[] = {WINDOW, WINDOW};
  const gt_transport_spec spec = {
      .nregions = 2, .self = e->self, .windows = windows, .frame_bytes = BYTES, .endpoint = e->tcp};
  e->t = gt_transport_tcp.open(&alone, &spec);
}

static void open_end(end *e, size_t self, bool restarts) {
  *e = (end){.tcp = open_tcp(self, restarts), .self = self};
  open_gateway(e);
}

static gt_lane *lane_of(const end *e) {
  return &e->t->lanes[1 - e->self];
}

/* The end is gone: it says nothing. */
static void kill_end(end *e) {
  gt_connection_close(&lane_of(e)->streams->c);
  lane_of(e)->streams->said = lane_of(e)->streams->greeted = false;
  lane_of(e)->left = true;
  gt_transport_tcp.close(e->t, LIMIT_S);
  gt_endpoint_close(e->tcp);
}

/* Frame n that a start of a region sends; the regions' frames differ, those of starts too. */
static size_t make_frame(uint8_t *frame, size_t from, uint64_t start, uint64_t n) {
  const size_t bytes = 1 + (size_t)((n * 977) % BYTES);
  for (size_t i = 0; i < bytes; i++) frame[i] = (uint8_t)(i * 31 + from + n + (start >> (i % 8)));
  return bytes;
}

static void send_one(end *e) {
  uint8_t *frame = e->frames[e->sent % WINDOW];
  const size_t bytes = make_frame(frame, e->self, e->tcp->start, e->sent);
  gt_transport_tcp.send_frame(e->t, 1 - e->self, e->sent % WINDOW, frame, bytes);
  e->sent++;
}

/* with: the other end. */
static void take_some(end *e, const end *with) {
  uint8_t frame[BYTES];
  size_t bytes;
  for (const void *got; (got = gt_transport_tcp.receive(e->t, 1 - e->self, &bytes)) != NULL;) {
    assert_int_equal(bytes, make_frame(frame, with->self, with->tcp->start, e->received));
    assert_memory_equal(got, frame, bytes);
    gt_transport_tcp.release(e->t, 1 - e->self);
    e->received++;
  }
}

static void step(end *e, const end *with) {
  gt_transport_tcp.progress(e->t);
  take_some(e, with);
}

/* Both send some frames more, which arrive. */
static void exchange(end *a, end *b, uint64_t frames) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  const uint64_t of_a = a->sent + frames, of_b = b->sent + frames;
  while (a->received < of_b || b->received < of_a) {
    assert_true(gt_now() < until);
    step(a, b);
    step(b, a);
    if (a->sent < of_a && gt_transport_tcp.sent(a->t, 1 - a->self, a->sent % WINDOW)) send_one(a);
    if (b->sent < of_b && gt_transport_tcp.sent(b->t, 1 - b->self, b->sent % WINDOW)) send_one(b);
    gt_sleep(20000);
  }
}

static void close_ends(end *a, end *b) {
  for (size_t missing = 1; missing;) {
    step(a, b);
    step(b, a);
    missing = lane_of(a)->acked < lane_of(a)->queued || lane_of(b)->acked < lane_of(b)->queued;
  }
  gt_transport_tcp.close(a->t, LIMIT_S);
  gt_transport_tcp.close(b->t, LIMIT_S);
  gt_endpoint_close(a->tcp);
  gt_endpoint_close(b->tcp);
}

/* Steps an end until its peer has started again. */
static void see_restart(end *e, end *anew) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (!gt_transport_tcp.lost(e->t, 1 - e->self)) {
    assert_true(gt_now() < until);
    step(e, anew);
    gt_transport_tcp.progress(anew->t);
    gt_sleep(20000);
  }
  assert_false(gt_transport_tcp.lost(e->t, 1 - e->self));
  for (size_t slot = 0; slot < WINDOW; slot++)
    assert_true(gt_transport_tcp.sent(e->t, 1 - e->self, slot));
  e->sent = e->received = 0;
}

/* The side that listens, and the side that dials, start again: with frames that were never
   acknowledged. */
static void lanes_begin_anew(void) {
  for (size_t dead = 0; dead < 2; dead++) {
    end ends[2];
    for (size_t i = 0; i < 2; i++) open_end(&ends[i], i, true);
    exchange(&ends[0], &ends[1], 9);
    end *lives = &ends[1 - dead], *dies = &ends[dead];
    kill_end(dies);
    send_one(lives);
    send_one(lives);
    for (int i = 0; i < 20; i++) gt_transport_tcp.progress(lives->t);
    open_end(dies, dead, true);
    send_one(dies); /* waits until the restart has been seen */
    see_restart(lives, dies);
    exchange(&ends[0], &ends[1], 9);
    assert_int_equal(lives->received, 10);
    close_ends(&ends[0], &ends[1]);
  }
}

/* A frame that is not taken keeps a region from reading on: it still sees that the connection is
   closed, and takes the next start of the other region. */
static void a_start_is_taken_while_a_frame_waits(void) {
  end a, b;
  size_t bytes;
  open_end(&a, 0, true);
  open_end(&b, 1, true);
  exchange(&a, &b, 3);
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  send_one(&b);
  while (!gt_transport_tcp.receive(a.t, 1, &bytes)) {
    assert_true(gt_now() < until);
    gt_transport_tcp.progress(b.t);
  }
  kill_end(&b);
  open_end(&b, 1, true);
  while (!lane_of(&a)->restarted) {
    assert_true(gt_now() < until);
    gt_transport_tcp.progress(a.t);
    gt_transport_tcp.progress(b.t);
    (void)gt_transport_tcp.receive(b.t, 0, &bytes);
    gt_sleep(20000);
  }
  see_restart(&a, &b);
  exchange(&a, &b, 3);
  close_ends(&a, &b);
}

/* However often a region has not answered, several attempts fit into the patience. */
static void it_is_dialled_often_enough(void) {
  end b;
  open_end(&b, 1, true);
  gt_stream *s = lane_of(&b)->streams;
  for (int i = 0; i < 50; i++) {
    gt_lane_lose(b.t, 0, s, "it does not answer");
    assert_true(s->dial_at < gt_now() + gt_from_seconds(b.tcp->patience_s / 2));
  }
  kill_end(&b);
}

static void the_run_ends_where_no_region_may_restart(void) {
  end a, b;
  open_end(&a, 0, false);
  open_end(&b, 1, false);
  exchange(&a, &b, 3);
  kill_end(&b);
  open_end(&b, 1, false);
  must_panic(
      "region b has started again, and this run cannot take it back",
      for (const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S); gt_now() < until;) {
        gt_transport_tcp.progress(b.t);
        step(&a, &b);
      });
  assert_int_equal(panic_status, GT_ERR_LOST);
  kill_end(&a);
  kill_end(&b);
}

/* Steps all three until the newcomer is refused for good. */
static void expect_refusal(end *a, end *b, end *newcomer) {
  must_panic(
      "another start of region b is connected with region a; end it",
      for (const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S); gt_now() < until;) {
        step(a, b);
        step(b, a);
        gt_transport_tcp.progress(newcomer->t);
        size_t bytes;
        assert_null(gt_transport_tcp.receive(newcomer->t, 0, &bytes));
        gt_sleep(100000);
      });
  assert_int_equal(panic_status, GT_ERR_CKPT);
}

static void a_second_start_is_refused(void) {
  end a, b, second;
  open_end(&a, 0, true);
  open_end(&b, 1, true);
  exchange(&a, &b, 5);
  open_end(&second, 1, true);
  expect_refusal(&a, &b, &second);
  exchange(&a, &b, 5);
  kill_end(&second);
  close_ends(&a, &b);
}

/* A start that was cut off, and replaced, does not come back. */
static void a_replaced_start_is_refused(void) {
  end a, b, second;
  open_end(&a, 0, true);
  open_end(&b, 1, true);
  exchange(&a, &b, 5);
  gt_lane_lose(a.t, 1, lane_of(&a)->streams, "the path is cut");
  open_end(&second, 1, true);
  see_restart(&a, &second);
  exchange(&a, &second, 5);
  expect_refusal(&a, &second, &b);
  gt_lane_lose(a.t, 1, lane_of(&a)->streams, "also while the new one is not connected");
  must_panic(
      "", for (const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S); gt_now() < until;) {
        size_t bytes;
        gt_transport_tcp.progress(a.t);
        gt_transport_tcp.progress(b.t);
        assert_null(gt_transport_tcp.receive(b.t, 0, &bytes));
      });
  assert_false(gt_transport_tcp.lost(a.t, 1));
  exchange(&a, &second, 5);
  kill_end(&b);
  close_ends(&a, &second);
}

/* ---- groups ---------------------------------------------------------------------------------- */

#define MESSAGES 6
#define LARGE    ((size_t)150000)

/* Message i: gathered, or shared by each region in turn; long ones have several pieces. */
static void talk(gt_peers *peers, size_t i) {
  const size_t bytes = i % 2 ? LARGE : 5;
  uint8_t *own = gt_alloc(bytes, 1), *all = gt_alloc(bytes, 2);
  char what[32];
  snprintf(what, sizeof what, "message %zu", i);
  memset(own, (int)(10 * i + peers->rank), bytes);
  if (i % 3 == 0) {
    gt_peers_gather(peers, own, bytes, all, what, LIMIT_S);
    for (size_t r = 0; r < 2; r++) assert_int_equal(all[(r + 1) * bytes - 1], 10 * i + r);
  } else {
    gt_peers_share(peers, i % 3 - 1, own, bytes, what, LIMIT_S);
    assert_int_equal(own[bytes - 1], 10 * i + i % 3 - 1);
  }
  gt_free(own);
  gt_free(all);
}

/* Region b in a process of its own, which dies after so many messages; MESSAGES: it ends well. */
static pid_t start_b(size_t messages) {
  const pid_t child = fork();
  if (child != 0) return child;
  gt_endpoint *tcp = open_tcp(1, true);
  gt_peers *peers = gt_endpoint_peers(tcp);
  for (size_t i = 0; i < messages; i++) talk(peers, i);
  if (messages == MESSAGES) {
    gt_peers_close(peers);
    gt_endpoint_close(tcp);
  }
  _exit(0);
}

static void groups_repeat_their_messages(void) {
  for (size_t of_first = 0; of_first < MESSAGES; of_first++) {
    gt_endpoint *tcp = open_tcp(0, true);
    gt_peers *peers = gt_endpoint_peers(tcp);
    int ended;
    const pid_t first = start_b(of_first);
    for (size_t i = 0; i < of_first; i++) talk(peers, i);
    assert_int_equal(waitpid(first, &ended, 0), first);
    assert_int_equal(ended, 0);
    const pid_t second = start_b(MESSAGES);
    for (size_t i = of_first; i < MESSAGES; i++) talk(peers, i);
    gt_peers_close(peers);
    gt_endpoint_close(tcp);
    assert_int_equal(waitpid(second, &ended, 0), second);
    assert_int_equal(ended, 0);
  }
}

/* Region b starts again when the run has begun: alone, it finds what was said at the start, also
   where it leaves messages out. */
static void return_alone(size_t first, size_t step) {
  gt_endpoint *tcp = open_tcp(1, true);
  gt_peers *peers = gt_endpoint_peers(tcp);
  uint8_t own = 99, all[2] = {0};
  gt_peers_gather(peers, &own, 1, all, "the start", LIMIT_S);
  if (!gt_endpoint_returns(tcp) || all[0] != 7 || all[1] != 8) _exit(1);
  for (size_t i = first; i < MESSAGES; i += step) talk(peers, i);
  if (gt_agree(peers, GT_OK, LIMIT_S) != GT_OK) _exit(2);
  if (gt_agree(peers, GT_FAIL(GT_ERR_DATA, "own"), LIMIT_S) != GT_ERR_DATA) _exit(3);
  gt_peers_close(peers);
  gt_endpoint_close(tcp);
  _exit(0);
}

static void finish(gt_endpoint *tcp, pid_t child) {
  int ended;
  while (waitpid(child, &ended, WNOHANG) == 0)
    gt_transport_tcp.progress(((gt_tcp *)tcp)->open[GT_TCP_OF_PEERS]);
  assert_int_equal(ended, 0);
}

static void begin(gt_peers *peers, uint8_t own) {
  uint8_t all[2];
  gt_peers_gather(peers, &own, 1, all, "the start", LIMIT_S);
  for (size_t i = 0; i < MESSAGES; i++) talk(peers, i);
  assert_int_equal(gt_agree(peers, GT_OK, LIMIT_S), GT_OK);
  assert_int_equal(gt_agree(peers, GT_OK, LIMIT_S), GT_OK);
  gt_endpoint_begun(peers);
}

static void a_region_returns_to_a_run_that_has_begun(void) {
  gt_endpoint *tcp = open_tcp(0, true);
  gt_peers *peers = gt_endpoint_peers(tcp);
  pid_t child = fork();
  if (child == 0) {
    tcp = open_tcp(1, true);
    begin(gt_endpoint_peers(tcp), 8);
    _exit(0); /* dies */
  }
  begin(peers, 7);
  finish(tcp, child);
  for (size_t i = 0; i < 4; i++) {
    child = fork();
    if (child == 0) return_alone(i, 1 + 3 * (i == 3));
    finish(tcp, child);
  }
  gt_peers_close(peers);
  gt_endpoint_close(tcp);
}

/* ---- a run that begins without a region ---- */

static bool first_is_enough(const void *ctx, const bool *there) {
  (void)ctx;
  return there[0];
}

/* The run of region a begins when b has not come for the patience. */
static gt_peers *begin_alone(gt_endpoint *tcp) {
  uint8_t own = 7, all[2] = {0};
  gt_endpoint_begin_early(tcp, first_is_enough, NULL);
  gt_peers *peers = gt_endpoint_peers(tcp);
  gt_peers_gather(peers, &own, 1, all, "the start", LIMIT_S);
  assert_int_equal(all[0], 7);
  assert_int_equal(all[1], 7);
  assert_true(gt_endpoint_late(tcp)[1]);
  assert_false(gt_endpoint_late(tcp)[0]);
  return peers;
}

static void continue_alone(gt_peers *peers) {
  uint8_t own = 70, all[2] = {0}, shared = 5;
  gt_peers_gather(peers, &own, 1, all, "more", LIMIT_S);
  assert_int_equal(all[1], 70);
  gt_peers_share(peers, 0, &shared, 1, "what a shares", LIMIT_S);
  assert_int_equal(gt_agree(peers, GT_OK, LIMIT_S), GT_OK);
  gt_endpoint_begun(peers);
}

/* Region b, in a process of its own: it gets the values of a for its own. */
static pid_t start_late_b(void) {
  const pid_t child = fork();
  if (child != 0) return child;
  uint8_t own = 9, all[2] = {0}, shared = 0;
  gt_endpoint *tcp = open_tcp(1, true);
  gt_peers *peers = gt_endpoint_peers(tcp);
  gt_peers_gather(peers, &own, 1, all, "the start", LIMIT_S);
  gt_peers_gather(peers, &own, 1, all, "more", SHORT_S);
  if (!gt_endpoint_returns(tcp) || all[0] != 70 || all[1] != 70) _exit(1);
  gt_peers_share(peers, 0, &shared, 1, "what a shares", LIMIT_S);
  if (shared != 5) _exit(2);
  if (gt_agree(peers, GT_FAIL(GT_ERR_DATA, "own"), LIMIT_S) != GT_ERR_DATA) _exit(3);
  gt_peers_close(peers);
  gt_endpoint_close(tcp);
  _exit(0);
}

/* The start of a takes much longer than b waits for a message of it. */
static void await_b(const gt_endpoint *tcp) {
  gt_transport *t = ((const gt_tcp *)tcp)->open[GT_TCP_OF_PEERS];
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (!t->lanes[1].start && gt_now() < until) gt_transport_tcp.progress(t);
  assert_true(t->lanes[1].start);
  const gt_ns slow = gt_now() + gt_from_seconds(6 * SHORT_S);
  while (gt_now() < slow) gt_transport_tcp.progress(t);
}

/* It comes when the run has begun, twice, or while it begins: then it waits in the first
   message. */
static void a_run_begins_without_a_region_that_joins_later(void) {
  for (int begins = 0; begins < 2; begins++) {
    gt_endpoint *tcp = open_tcp(0, true);
    gt_peers *peers = begin_alone(tcp);
    pid_t child = 0;
    if (begins) child = start_late_b();
    if (begins) await_b(tcp);
    continue_alone(peers);
    if (!begins) child = start_late_b();
    finish(tcp, child);
    finish(tcp, start_late_b());
    gt_peers_close(peers);
    gt_endpoint_close(tcp);
  }
}

/* No region comes: the end does not wait for it. */
static void a_run_ends_without_a_late_region(void) {
  gt_endpoint *tcp = open_tcp(0, true);
  gt_peers *peers = begin_alone(tcp);
  continue_alone(peers);
  const gt_ns from = gt_now();
  gt_peers_close(peers);
  assert_true(gt_seconds(gt_now() - from) < 2);
  gt_endpoint_close(tcp);
}

/* Kills b when its first message has come, once. */
static gt_transport *of_a;
static void kill_b(void *context) {
  pid_t *b = context;
  if (*b == 0 || of_a->lanes[1].received == 0) return;
  kill(*b, SIGKILL);
  waitpid(*b, NULL, 0);
  *b = 0;
}

/* Of three regions b comes and dies, and c does not come: the run begins without both. */
static void begin_without_dead_b(void) {
  uint8_t own = 7, all[3];
  nregions = 3;
  pid_t b = fork();
  if (b == 0) {
    gt_peers_gather(gt_endpoint_peers(open_tcp(1, true)), &own, 1, all, "the start", LIMIT_S);
    _exit(0);
  }
  gt_endpoint *tcp = open_tcp(0, true);
  gt_endpoint_begin_early(tcp, first_is_enough, NULL);
  gt_peers *peers = gt_endpoint_peers(tcp);
  of_a = ((gt_tcp *)tcp)->open[GT_TCP_OF_PEERS];
  peers->ops->gather(
      peers, &own, 1, all,
      &(gt_peers_wait){.what = "the start", .limit_s = LIMIT_S, .progress = kill_b, .context = &b});
  _exit(b == 0 && gt_endpoint_late(tcp)[1] && gt_endpoint_late(tcp)[2] ? 0 : 1);
}

static void a_region_that_came_and_died_is_late(void) {
  int ended;
  const pid_t child = fork();
  if (child == 0) begin_without_dead_b();
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(ended, 0);
}

/* The gateway of a late region is connected when a begins without it: its frames pass. */
static void a_gateway_can_come_before_it_is_forgotten(void) {
  end a, b;
  open_end(&a, 0, true);
  open_end(&b, 1, true);
  a.tcp->late[1] = true;
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while ((!lane_of(&a)->streams->greeted || !lane_of(&b)->streams->greeted) && gt_now() < until) {
    step(&a, &b);
    step(&b, &a);
  }
  gt_transport_tcp.forget(a.t, 1);
  assert_int_equal(gt_transport_tcp.lost(a.t, 1), GT_STARTED_AGAIN);
  exchange(&a, &b, 5);
  close_ends(&a, &b);
}

/* Region a, in a process of its own: its transport is left as it is. */
static void wait_for_lost_b(void) {
  gt_peers *peers = gt_endpoint_peers(open_tcp(0, false));
  talk(peers, 0);
  const gt_ns from = gt_now();
  must_panic("waited 0.4 s for region b, which was lost: message 1", talk(peers, 1));
  _exit(panic_status == GT_ERR_LOST && gt_seconds(gt_now() - from) < LIMIT_S / 2 ? 0 : 1);
}

static void a_group_does_not_wait_for_a_region_that_was_lost(void) {
  int ended;
  const pid_t a = fork();
  if (a == 0) wait_for_lost_b();
  const pid_t b = fork();
  if (b == 0) {
    talk(gt_endpoint_peers(open_tcp(1, false)), 0);
    _exit(0); /* dies */
  }
  assert_int_equal(waitpid(b, &ended, 0), b);
  assert_int_equal(waitpid(a, &ended, 0), a);
  assert_int_equal(ended, 0);
}

/* The connections of b stay, as those of a proxy would: when its gateway is lost, its next start is
   taken by the group, too. */
static void replace_lost_b(void) {
  end a, b;
  open_end(&a, 0, true);
  open_end(&b, 1, true);
  (void)gt_endpoint_peers(a.tcp);
  (void)gt_endpoint_peers(b.tcp);
  const gt_lane *l = &((gt_tcp *)a.tcp)->open[GT_TCP_OF_PEERS]->lanes[1];
  exchange(&a, &b, 3);
  while (!l->streams->greeted) {
    step(&a, &b);
    step(&b, &a);
  }
  gt_transport_tcp.forget(a.t, 1);
  gt_endpoint *next = open_tcp(1, true);
  (void)gt_endpoint_peers(next);
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (l->start != next->start && gt_now() < until) {
    gt_transport_tcp.progress(a.t);
    gt_transport_tcp.progress(((gt_tcp *)next)->open[GT_TCP_OF_PEERS]);
  }
  _exit(l->start == next->start ? 0 : 1);
}

static void a_lost_region_is_not_refused(void) {
  int ended;
  const pid_t child = fork();
  if (child == 0) replace_lost_b();
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(ended, 0);
}

/* Region b ends with an error, or dies, before it has sent anything; then it starts again. */
static void start_twice(bool says) {
  gt_endpoint *tcp = open_tcp(1, false);
  (void)gt_endpoint_peers(tcp);
  gt_transport *t = ((gt_tcp *)tcp)->open[GT_TCP_OF_PEERS];
  while (!t->lanes[0].streams->greeted) gt_transport_tcp.progress(t);
  if (says) gt_transport_tcp.say_bye(t, GT_STOPPED);
  gt_connection_close(&t->lanes[0].streams->c);
  tcp = open_tcp(1, false);
  gt_peers *peers = gt_endpoint_peers(tcp);
  for (size_t i = 0; i < MESSAGES; i++) talk(peers, i);
  gt_peers_close(peers);
  _exit(0);
}

static void a_region_can_start_again_before_all_have_met(void) {
  for (size_t says = 0; says < 2; says++) {
    const pid_t child = fork();
    if (child == 0) start_twice(says);
    gt_endpoint *tcp = open_tcp(0, false);
    gt_peers *peers = gt_endpoint_peers(tcp);
    for (size_t i = 0; i < MESSAGES; i++) talk(peers, i);
    finish(tcp, child);
    gt_peers_close(peers);
    gt_endpoint_close(tcp);
  }
}

/* b's first start dies when its gateway is connected.  Its next start is in the group when the run
   begins (late: only then), and gets a frame that a has sent since: it is not lost (late: it is). */
static void begin_with_next_b(bool late) {
  end a, b, next;
  open_end(&a, 0, true);
  open_end(&b, 1, true);
  gt_peers *peers = gt_endpoint_peers(a.tcp);
  (void)gt_endpoint_peers(b.tcp);
  const gt_lane *group = &((gt_tcp *)a.tcp)->open[GT_TCP_OF_PEERS]->lanes[1];
  gt_transport *of_b = ((gt_tcp *)b.tcp)->open[GT_TCP_OF_PEERS];
  while (!group->streams->greeted || !lane_of(&a)->streams->greeted) {
    step(&a, &b);
    step(&b, &a);
  }
  gt_connection_close(&lane_of(&b)->streams->c);
  gt_connection_close(&of_b->lanes[0].streams->c);
  if (late) gt_endpoint_begun(peers);
  open_end(&next, 1, true);
  (void)gt_endpoint_peers(next.tcp);
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (group->start != next.tcp->start && gt_now() < until) {
    gt_transport_tcp.progress(a.t);
    gt_transport_tcp.progress(((gt_tcp *)next.tcp)->open[GT_TCP_OF_PEERS]);
  }
  if (!late) gt_endpoint_begun(peers);
  send_one(&a);
  while ((lane_of(&a)->start != next.tcp->start || (!late && next.received == 0)) &&
         gt_now() < until) {
    gt_transport_tcp.progress(a.t);
    step(&next, &a);
  }
  _exit(lane_of(&a)->restarted == late && next.received == !late ? 0 : 1);
}

static void a_start_before_the_run_begins_is_in_it(void) {
  for (size_t late = 0; late < 2; late++) {
    int ended;
    const pid_t child = fork();
    if (child == 0) begin_with_next_b(late);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
  }
}

/* The gateway of a has given b up when b comes for the first time; the group has met b by then. */
static void give_up_absent_b(void) {
  end a, b = {.tcp = open_tcp(1, true), .self = 1};
  open_end(&a, 0, true);
  (void)gt_endpoint_peers(a.tcp);
  (void)gt_endpoint_peers(b.tcp);
  const gt_lane *group = &((gt_tcp *)a.tcp)->open[GT_TCP_OF_PEERS]->lanes[1];
  gt_transport_tcp.forget(a.t, 1);
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (group->start != b.tcp->start && gt_now() < until) {
    gt_transport_tcp.progress(a.t);
    gt_transport_tcp.progress(((gt_tcp *)b.tcp)->open[GT_TCP_OF_PEERS]);
  }
  open_gateway(&b);
  gt_loss loss = GT_NOT_LOST;
  while (loss == GT_NOT_LOST && gt_now() < until) {
    step(&a, &b);
    step(&b, &a);
    loss = gt_transport_tcp.lost(a.t, 1);
  }
  _exit(loss == GT_STARTED_AGAIN ? 0 : 1);
}

static void a_region_that_was_given_up_is_noticed(void) {
  int ended;
  const pid_t child = fork();
  if (child == 0) give_up_absent_b();
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(ended, 0);
}

static int set_up(void **state) {
  (void)state;
  port = find_port();
  return 0;
}

TESTS_BETWEEN(set_up, NULL, lanes_begin_anew, a_start_is_taken_while_a_frame_waits,
              it_is_dialled_often_enough, the_run_ends_where_no_region_may_restart,
              a_second_start_is_refused, a_replaced_start_is_refused, groups_repeat_their_messages,
              a_region_returns_to_a_run_that_has_begun,
              a_run_begins_without_a_region_that_joins_later, a_run_ends_without_a_late_region,
              a_region_that_came_and_died_is_late, a_gateway_can_come_before_it_is_forgotten,
              a_group_does_not_wait_for_a_region_that_was_lost,
              a_region_can_start_again_before_all_have_met, a_lost_region_is_not_refused,
              a_start_before_the_run_begins_is_in_it, a_region_that_was_given_up_is_noticed)
