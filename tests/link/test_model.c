/* Laws of the link model: throughput, latency, service in order of arrival, no reordering,
   determinism; and wire bytes. */
#include "geotrain/link.h"
#include "tests.h"

#define MS (GT_SECOND / 1000)

/* docs: depart = max(ready, busy) + 8 size / bandwidth; arrive = depart + latency. */
static void an_idle_link_takes_size_over_bandwidth_plus_latency(void) {
  gt_link_spec spec = {.bandwidth_bps = 10e6, .latency_s = 0.040};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  gt_link_times t = gt_link_step(&link, &spec, NULL, 125000, 7 * MS);
  assert_int_equal(t.depart, 107 * MS);
  assert_int_equal(t.arrive, 147 * MS);
}

static void a_busy_link_makes_frames_wait_and_latency_is_paid_once(void) {
  gt_link_spec spec = {.bandwidth_bps = 8e6, .latency_s = 0.5};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  for (int i = 1; i <= 10; i++) { /* ten frames of 1 ms, all ready at 0 */
    gt_link_times t = gt_link_step(&link, &spec, NULL, 1000, 0);
    assert_int_equal(t.depart, i * MS);
    assert_int_equal(t.arrive, (500 + i) * MS);
  }
  /* the link has been idle since */
  gt_link_times t = gt_link_step(&link, &spec, NULL, 1000, 600 * MS);
  assert_int_equal(t.depart, 601 * MS);
}

/* A frame given later is served later, even if it says that it was ready earlier. */
static void service_is_first_come_first_served(void) {
  gt_link_spec spec = {.bandwidth_bps = 8e6};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &spec, NULL, 5000, 10 * MS).depart, 15 * MS);
  assert_int_equal(gt_link_step(&link, &spec, NULL, 1000, 2 * MS).depart, 16 * MS);
}

static void a_long_stream_gets_the_bandwidth_and_no_more(void) {
  gt_link_spec spec = {.bandwidth_bps = 98.7e6, .latency_s = 0.025, .jitter_s = 0.002};
  gt_link_state link = gt_link_start(3, 0, 1, 0);
  const size_t frame = GT_FRAME_PAYLOAD_MAX + GT_FRAME_HEADER_BYTES, n = 1000;
  gt_link_times t = {0};
  for (size_t i = 0; i < n; i++) t = gt_link_step(&link, &spec, NULL, frame, 0);
  double ideal_s = 8.0 * (double)frame * (double)n / spec.bandwidth_bps;
  assert_true(fabs(gt_seconds(t.depart) - ideal_s) < 1e-6); /* rounding to nanoseconds only */
}

static void an_unlimited_link_costs_latency_only(void) {
  gt_link_spec spec = {.latency_s = 0.010};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  for (int i = 0; i < 3; i++) {
    gt_link_times t = gt_link_step(&link, &spec, NULL, (size_t)1 << 30, 5 * MS);
    assert_int_equal(t.depart, 5 * MS);
    assert_int_equal(t.arrive, 15 * MS);
  }
}

/* An object is found by the first look after others can see it; looks follow the last arrival. */
static void a_receiver_looks_for_objects_at_intervals(void) {
  const gt_link_spec spec = {.latency_s = 0.050, .look_s = 0.030, .every_s = 0.130};
  gt_access up = {.rate_bps = 8e6};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  gt_link_times t = gt_link_step(&link, &spec, &up, 100000, 40 * MS);
  assert_int_equal(t.depart, 140 * MS);
  assert_int_equal(t.arrive, (30 + 2 * 130) * MS); /* it could have come at 190 ms */
  t = gt_link_step(&link, &spec, &up, 1000, 141 * MS);
  assert_int_equal(t.arrive, (290 + 30) * MS); /* it has been there since 192 ms */
  assert_true(gt_link_stream_bps(&spec, 8e6) == 0);
}

/* Jitter of twice the latency: many drawn delays would overtake or be negative. */
static void jitter_never_reorders_nor_goes_back_in_time(void) {
  gt_link_spec spec = {.bandwidth_bps = 1e9, .latency_s = 0.010, .jitter_s = 0.020};
  gt_link_state link = gt_link_start(11, 0, 1, 0);
  gt_ns last = 0;
  int held = 0;
  for (int i = 0; i < 20000; i++) {
    gt_link_times t = gt_link_step(&link, &spec, NULL, 1000, i * MS);
    assert_true(t.arrive >= last);
    assert_true(t.arrive >= t.depart);
    assert_true(t.depart >= i * MS);
    held += t.arrive == last;
    last = t.arrive;
  }
  assert_true(held > 1000); /* the law was really tested */
}

static void jitter_has_its_standard_deviation(void) {
  gt_link_spec spec = {.latency_s = 0.100, .jitter_s = 0.005};
  gt_link_state link = gt_link_start(5, 0, 1, 0);
  enum { N = 20000 };
  double sum = 0, squares = 0;
  for (int i = 0; i < N; i++) { /* one frame a second: no arrival is delayed by the previous one */
    double delay =
        gt_seconds(gt_link_step(&link, &spec, NULL, 1, i * GT_SECOND).arrive - i * GT_SECOND);
    sum += delay;
    squares += (delay - 0.1) * (delay - 0.1);
  }
  assert_true(fabs(sum / N - 0.1) < 5 * 0.005 / sqrt(N));
  assert_true(fabs(sqrt(squares / N) - 0.005) < 5 * 0.005 / sqrt(2.0 * N));
}

static void the_same_seed_and_direction_give_the_same_times(void) {
  gt_link_spec spec = {.bandwidth_bps = 1e8, .latency_s = 0.02, .jitter_s = 0.004};
  gt_link_state a = gt_link_start(9, 1, 2, 0), b = gt_link_start(9, 1, 2, 0);
  gt_link_state others[] = {gt_link_start(9, 2, 1, 0), gt_link_start(10, 1, 2, 0),
                            gt_link_start(9, 1, 3, 0), gt_link_start(9, 3, 2, 0)};
  int differ[4] = {0};
  for (int i = 0; i < 100; i++) {
    gt_ns ready = i * GT_SECOND;
    gt_link_times t = gt_link_step(&a, &spec, NULL, 1500, ready),
                  u = gt_link_step(&b, &spec, NULL, 1500, ready);
    assert_int_equal(t.depart, u.depart);
    assert_int_equal(t.arrive, u.arrive);
    for (int o = 0; o < 4; o++)
      differ[o] += gt_link_step(&others[o], &spec, NULL, 1500, ready).arrive != t.arrive;
    if (i == 50) b = a; /* a state that was saved and restored continues in the same way */
  }
  for (int o = 0; o < 4; o++) assert_true(differ[o] > 90);
}

static void wire_bytes_are_payload_and_a_header_a_frame(void) {
  const size_t mib = GT_FRAME_PAYLOAD_MAX;
  assert_int_equal(gt_wire_bytes(0), 64);
  assert_int_equal(gt_wire_bytes(1), 65);
  assert_int_equal(gt_wire_bytes(mib), mib + 64);
  assert_int_equal(gt_wire_bytes(mib + 1), mib + 1 + 128);
  assert_int_equal(gt_wire_bytes(246824), 246824 + 64);
  assert_int_equal(gt_wire_bytes(10 * mib - 1), 10 * mib - 1 + 640);
}

/* docs/wire-format.md promises these offsets. */
static void the_header_lies_as_documented(void) {
  assert_int_equal(offsetof(gt_frame_header, route), GT_FRAME_HEADER_BYTES);
  assert_int_equal(sizeof(gt_frame_header), GT_FRAME_HEADER_MAX);
  assert_int_equal(offsetof(gt_frame_header, kind), 4);
  assert_int_equal(offsetof(gt_frame_header, from), 6);
  assert_int_equal(offsetof(gt_frame_header, frame_bytes), 8);
  assert_int_equal(offsetof(gt_frame_header, round), 12);
  assert_int_equal(offsetof(gt_frame_header, sequence), 16);
  assert_int_equal(offsetof(gt_frame_header, frame_offset), 24);
  assert_int_equal(offsetof(gt_frame_header, message_bytes), 32);
  assert_int_equal(offsetof(gt_frame_header, value), 40);
  assert_int_equal(offsetof(gt_frame_header, detail), 48);
  assert_int_equal(offsetof(gt_frame_header, range), 56);
}

TESTS(an_idle_link_takes_size_over_bandwidth_plus_latency,
      a_busy_link_makes_frames_wait_and_latency_is_paid_once, service_is_first_come_first_served,
      a_long_stream_gets_the_bandwidth_and_no_more, an_unlimited_link_costs_latency_only,
      a_receiver_looks_for_objects_at_intervals, jitter_never_reorders_nor_goes_back_in_time,
      jitter_has_its_standard_deviation, the_same_seed_and_direction_give_the_same_times,
      wire_bytes_are_payload_and_a_header_a_frame, the_header_lies_as_documented)
