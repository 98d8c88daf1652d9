/* The queue at the receiver's access: senders take turns, and the access is that of test_access. */
#include "scratch.h"

#define SENDERS 5
#define FRAMES  200

static gt_landing open_landing(double rate_bps) {
  gt_landing l;
  gt_landing_open(&l, SENDERS, rate_bps);
  return l;
}

static void put(gt_landing *l, size_t from, size_t bytes, gt_ns arrive) {
  gt_landing_put(l, &(gt_landing_frame){.arrive = arrive, .from = from, .bytes = bytes});
}

static void passes(gt_landing *l, size_t from, size_t bytes, gt_ns at) {
  assert_int_equal(gt_landing_next(l), at);
  gt_landing_frame f = gt_landing_take(l);
  assert_true(f.from == from && f.bytes == bytes);
}

static void close_landing(gt_landing *l) {
  assert_int_equal(gt_landing_next(l), GT_NEVER);
  gt_landing_close(l);
}

/* 1000 bytes take 1 ms.  A sender that comes late does not wait for all that came before. */
static void senders_take_turns(void) {
  gt_landing l = open_landing(8e6);
  assert_int_equal(gt_landing_next(&l), GT_NEVER);
  for (int i = 0; i < 4; i++) put(&l, 0, 1000, 10 * MS);
  put(&l, 1, 1000, 10 * MS);
  passes(&l, 0, 1000, 11 * MS);
  put(&l, 2, 1000, 11 * MS + 1); /* while the next one is served */
  passes(&l, 0, 1000, 12 * MS);
  passes(&l, 1, 1000, 13 * MS);
  passes(&l, 0, 1000, 14 * MS);
  passes(&l, 2, 1000, 15 * MS);
  passes(&l, 0, 1000, 16 * MS);
  close_landing(&l);
}

/* By bytes, not by frames; a sender's own frames stay in order. */
static void small_frames_have_more_turns(void) {
  gt_landing l = open_landing(8e6);
  put(&l, 3, 3000, 0);
  put(&l, 3, 3000, 0);
  put(&l, 3, 100, 0);
  for (int i = 0; i < 4; i++) put(&l, 1, 1000, 0);
  passes(&l, 3, 3000, 3 * MS);
  for (int i = 0; i < 3; i++) passes(&l, 1, 1000, (4 + i) * MS);
  passes(&l, 3, 3000, 9 * MS);
  passes(&l, 3, 100, 9100000);
  passes(&l, 1, 1000, 10100000);
  close_landing(&l);
}

/* ---- a store: a message to several regions --------------------------------------------------- */

/* 1 MB in 100 ms; a look takes 30 ms, and the answer to a write 40. */
static const gt_link_spec stored = {
    .latency_s = 0.05, .back_s = 0.05, .look_s = 0.03, .every_s = 0.03};

static gt_link_times written(gt_link_function *f, gt_wire *wire, gt_access *up, size_t bytes,
                             uint64_t value, gt_ns at) {
  const struct gt_link_written what = {
      .queued = at, .value = value, .bytes = bytes, .kind = GT_MSG_UPDATE};
  return gt_function_write(f, wire, &stored, up, &what);
}

static void a_large_message_is_written_once(void) {
  enum { MB = 1 << 20 };
  gt_link_function f = {.shares = true, .request = 40 * MS};
  gt_access up = {.rate_bps = 8 * MB * 10};
  gt_wire wires[3] = {0};
  const gt_link_times first = written(&f, &wires[0], &up, MB, 7, 0),
                      second = written(&f, &wires[1], &up, MB, 7, 0),
                      third = written(&f, &wires[2], &up, MB, 8, 0);
  assert_int_equal(first.depart, 100 * MS);
  /* the reference leaves when the object is there, and is read before it: two looks */
  assert_true(second.depart >= 140 * MS && second.depart < 141 * MS);
  assert_true(second.arrive > second.depart + 50 * MS + 30 * MS);
  assert_int_equal(wires[1].link.last_arrival, second.arrive);
  /* another message passes the upload, which the reference has hardly used */
  assert_true(third.depart >= 200 * MS && third.depart < 241 * MS);
  assert_int_equal(f.shared, 1);
  assert_int_equal(f.shared_bytes, MB);
  assert_true(f.byte_s > 0);
}

static void others_are_not(void) {
  gt_link_function f = {.shares = true};
  gt_access up = {.rate_bps = 8e6};
  gt_wire wires[2] = {0};
  for (int i = 0; i < 2; i++) (void)written(&f, &wires[i], &up, 1000, 7, 0);
  assert_true(f.shared == 0 && up.busy_until == 2 * MS);
  f.shares = false;
  for (int i = 0; i < 2; i++) (void)written(&f, &wires[i], &up, 2 << 20, 7, 0);
  assert_true(f.shared == 0);
}

/* While a sender has frames queued, no other gets ahead of it by more than two of the largest
   frames, however long the others have been sending; and the access does not idle. */
static void shares_are_equal(void) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (int turn = 0; turn < 100; turn++) {
    gt_landing l = open_landing(8e6);
    double passed[SENDERS] = {0}, all = 0;
    const gt_ns late = (gt_ns)gt_rng_below(&rng, 400) * MS;
    for (size_t i = 0; i < FRAMES; i++)
      for (size_t k = 1; k < SENDERS; k++) put(&l, k, 1 + gt_rng_below(&rng, 2000), 0);
    while (gt_landing_next(&l) <= late) all += (double)gt_landing_take(&l).bytes;
    for (size_t i = 0; i < FRAMES / 10; i++) put(&l, 0, 1 + gt_rng_below(&rng, 2000), late);
    for (size_t i = 0; i < FRAMES / 10;) {
      gt_ns at = gt_landing_next(&l);
      gt_landing_frame f = gt_landing_take(&l);
      passed[f.from] += (double)f.bytes;
      all += (double)f.bytes;
      i += f.from == 0;
      assert_true(llabs(at - gt_from_seconds(all / 1e6)) <= 2000);
      for (size_t k = 1; k < SENDERS; k++) assert_true(passed[k] - passed[0] <= 4000);
    }
    while (gt_landing_next(&l) != GT_NEVER) gt_landing_take(&l);
    close_landing(&l);
  }
}

/* With an empty queue the result is that of the access alone. */
static void one_sender_has_the_access(void) {
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  gt_landing l = open_landing(8e6);
  gt_access alone = {.rate_bps = 8e6};
  gt_ns at = 0;
  for (int i = 0; i < FRAMES; i++) {
    const gt_landing_frame f = {.arrive = at += (gt_ns)gt_rng_below(&rng, 4 * MS),
                                .bytes = 2000,
                                .stream_bps = i % 2 ? 7e6 : 9e6};
    const bool through = gt_landing_put(&l, &f);
    const gt_ns expected = gt_access_pass(&alone, 2000, f.stream_bps, at);
    assert_int_equal(through, expected == at);
    assert_int_equal(gt_landing_next(&l), through ? GT_NEVER : expected);
    if (!through) gt_landing_take(&l);
    at = expected;
  }
  close_landing(&l);
}

TESTS(senders_take_turns, small_frames_have_more_turns, shares_are_equal, one_sender_has_the_access,
      a_large_message_is_written_once, others_are_not)
