/* Loss, outages, the transport model and access links, compared with figures computed by hand. */
#include "scratch.h"

#include <math.h>

/* ---- loss ------------------------------------------------------------------------------------ */

/* RFC 8312, 5.1: 1.054 (RTT / p)^0.75 segments of 1448 bytes a round trip; Reno: sqrt(1.5 / p).
   Figures by hand. */
static void goodput_is_what_loss_leaves(void) {
  gt_link_spec s = {.bandwidth_bps = 98.7e6, .latency_s = 0.025, .back_s = 0.025};
  assert_true(gt_link_goodput(&s) == 98.7e6);
  s.loss = 1e-7; /* the ceiling is far above the bandwidth */
  assert_true(fabs(gt_link_goodput(&s) / (98.7e6 * (1 - 1e-7)) - 1) < 1e-12);
  s.loss = 0.01; /* 1.054 x 5^0.75 = 3.5243 segments; Reno has 12.247: 12.247 x 11584 bit / 50 ms */
  assert_true(fabs(gt_link_goodput(&s) - 12.24745 * 11584 / 0.05) < 10);
  s.loss = 1e-4; /* CUBIC 1.054 x 500^0.75 = 111.447 segments, Reno 122.474 */
  assert_true(fabs(gt_link_goodput(&s) - 122.4745 * 11584 / 0.05) < 10);
  s.loss = 1e-4, s.latency_s = s.back_s = 0.1; /* 1.054 x 2000^0.75 = 315.22 segments: CUBIC */
  assert_true(fabs(gt_link_goodput(&s) - 315.2184 * 11584 / 0.2) < 100);
  s.bandwidth_bps = 1e6;
  assert_true(gt_link_goodput(&s) == 1e6 * (1 - 1e-4));
  s.bandwidth_bps = 0; /* unlimited except for loss */
  assert_true(fabs(gt_link_goodput(&s) - 315.2184 * 11584 / 0.2) < 100);
  s.loss = 0;
  assert_true(gt_link_goodput(&s) == 0);
  s.loss = 0.5, s.latency_s = s.back_s = 0; /* no round trip, no ceiling */
  assert_true(gt_link_goodput(&s) == 0);
}

static void frames_pass_at_the_goodput(void) {
  gt_link_spec s = {.bandwidth_bps = 98.7e6, .latency_s = 0.025, .back_s = 0.025, .loss = 0.01};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  gt_link_times t = gt_link_step(&link, &s, NULL, 1000000, 5 * MS);
  assert_int_equal(t.depart, 5 * MS + gt_from_seconds(8e6 / gt_link_goodput(&s)));
}

/* Loss takes its share of a trace, and the ceiling limits it too. */
static void a_trace_suffers_loss_too(void) {
  gt_link_trace *trace = trace_of("loss.csv", "0,1e6\n1,1e9\n2,0\n");
  gt_link_spec s = {.latency_s = 0.025, .back_s = 0.025, .loss = 0.1, .trace = trace};
  double ceiling = sqrt(15.0) * 11584 / 0.05; /* 897 kbit/s */
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &s, NULL, 10000, 0).depart, gt_from_seconds(8e4 / ceiling));
  assert_true(fabs(gt_link_goodput(&s) - ceiling) < 1e-6);
  s.latency_s = s.back_s = 0;
  link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &s, NULL, 45000, 0).depart, gt_from_seconds(0.4));
  assert_true(fabs(gt_link_goodput(&s) - 0.9 * 500.5e6) < 1e-3);
  gt_link_trace_close(trace);
}

/* A frame's flight time is the latency at its departure, and it never overtakes; its round trips
   use the latency at the time at which it is ready. */
static void a_traces_latency_takes_the_place_of_the_links(void) {
  gt_link_trace *trace = trace_of("latency.csv", "0,8e6,0.2\n1,8e6\n2,8e6,0.05\n3,0\n");
  gt_link_spec s = {.bandwidth_bps = 1,
                    .latency_s = 0.1,
                    .back_s = 0.1,
                    .setup_rtts = 1,
                    .eager_bytes = 50000,
                    .trace = trace};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &s, NULL, 1000, 0).arrive, 201 * MS);
  assert_int_equal(gt_link_step(&link, &s, NULL, 1000, 1500 * MS).arrive, 1601 * MS);
  gt_link_times t = gt_link_step(&link, &s, NULL, 51000, 1950 * MS);
  assert_int_equal(t.depart, 2201 * MS); /* a round trip of 0.1 + 0.1 s for set-up */
  assert_int_equal(t.arrive, 2251 * MS);
  /* the next period */
  assert_int_equal(gt_link_step(&link, &s, NULL, 1000, 3990 * MS).arrive, 4191 * MS);
  /* 0.1 s of latency would overtake */
  assert_int_equal(gt_link_step(&link, &s, NULL, 1000, 4000 * MS).arrive, 4191 * MS);
  gt_link_trace_close(trace);
}

/* ---- outages --------------------------------------------------------------------------------- */

static void an_outage_takes_exactly_its_time(void) {
  const gt_link_outage outages[] = {{1.0, 20.0}, {30.0, 0.5}, {30.5, 0.5}};
  gt_link_spec s = {.bandwidth_bps = 8e6, .latency_s = 0.01, .outages = outages, .noutages = 3};
  const gt_ns origin = 500 * GT_SECOND;
  gt_link_state link = gt_link_start(1, 0, 1, origin);
  assert_int_equal(gt_link_step(&link, &s, NULL, 500000, origin).depart, origin + 500 * MS);
  /* Until exactly the end of the outage. */
  assert_int_equal(gt_link_step(&link, &s, NULL, 500000, origin).depart, origin + 1000 * MS);
  /* Begins during it. */
  assert_int_equal(gt_link_step(&link, &s, NULL, 1000, origin).depart, origin + 21001 * MS);
  /* Two outages in the middle. */
  gt_link_times t = gt_link_step(&link, &s, NULL, 1000000, origin + 29500 * MS);
  assert_int_equal(t.depart, origin + 31500 * MS);
  assert_int_equal(t.arrive, origin + 31510 * MS);
  t = gt_link_step(&link, &s, NULL, 1000, origin + 40000 * MS);
  assert_int_equal(t.depart, origin + 40001 * MS);
  gt_link_spec unlimited = {.outages = outages, .noutages = 3};
  link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &unlimited, NULL, 1000000, 999 * MS).depart, 999 * MS);
  assert_int_equal(gt_link_step(&link, &unlimited, NULL, 1000000, 1000 * MS).depart, 21000 * MS);
  assert_int_equal(gt_link_step(&link, &unlimited, NULL, 1000000, 30200 * MS).depart, 31000 * MS);
}

/* Bits that left before the outage arrive during it; the trace continues meanwhile. */
static void an_outage_and_a_trace(void) {
  const gt_link_outage outage = {1.0, 2.0};
  gt_link_trace *trace = trace_of("t.csv", "0,1e6\n2,4e6\n4,0\n");
  gt_link_spec s = {.latency_s = 0.3, .outages = &outage, .noutages = 1, .trace = trace};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  gt_link_times t = gt_link_step(&link, &s, NULL, 112500, 0); /* 0.9 Mbit */
  assert_int_equal(t.depart, 900 * MS);
  assert_int_equal(t.arrive, 1200 * MS);
  /* 0.1 Mbit until 1 s, 2 Mbit from 3 s on at 4 Mbit/s */
  t = gt_link_step(&link, &s, NULL, 262500, 0);
  assert_int_equal(t.depart, 3500 * MS);
  gt_link_trace_close(trace);
}

/* Loss takes half of a trace's bits on both sides of an outage. */
static void an_outage_a_trace_and_loss(void) {
  const gt_link_outage outage = {1.0, 2.0};
  gt_link_trace *trace = trace_of("t.csv", "0,2e6\n10,0\n");
  gt_link_spec s = {.loss = 0.5, .outages = &outage, .noutages = 1, .trace = trace};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  /* 1 Mbit before it, 0.5 after */
  assert_int_equal(gt_link_step(&link, &s, NULL, 187500, 0).depart, 3500 * MS);
  gt_link_trace_close(trace);
}

/* A window whose last byte leaves when the outage begins has left: 12,500 bytes in 1 ms. */
static void an_outage_does_not_hold_what_has_left(void) {
  const gt_link_outage outage = {0.001, 2.0};
  gt_link_spec s = {.bandwidth_bps = 100e6,
                    .latency_s = 0.025,
                    .back_s = 0.025,
                    .window_bytes = 12500,
                    .outages = &outage,
                    .noutages = 1};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &s, NULL, 12500, 0).depart, 1 * MS);
  assert_int_equal(gt_link_step(&link, &s, NULL, 12500, 0).depart, 2002 * MS);
}

static void an_outage_without_end_has_no_arrival(void) {
  const gt_link_outage outage = {1.0, INFINITY};
  gt_link_spec s = {.bandwidth_bps = 1e9,
                    .latency_s = 0.1,
                    .back_s = 0.1,
                    .window_bytes = 1000,
                    .idle_s = 1,
                    .outages = &outage,
                    .noutages = 1};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  gt_access up = {.rate_bps = 1e6};
  for (int i = 0; i < 3; i++) {
    gt_link_times t = gt_link_step(&link, &s, &up, 10000000, 0); /* in the middle of slow start */
    assert_int_equal(t.depart, INT64_MAX / 2);
    assert_int_equal(t.arrive, INT64_MAX / 2);
  }
}

/* ---- transport ------------------------------------------------------------------------------- */

/* Two round trips of set-up for a frame larger than eager_bytes; the second frame's handshake
   overlaps with the first frame. */
static void a_rendezvous_costs_round_trips_once(void) {
  gt_link_spec s = {.bandwidth_bps = 8e6,
                    .latency_s = 0.02,
                    .back_s = 0.03,
                    .setup_rtts = 2,
                    .eager_bytes = 4096};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(gt_link_step(&link, &s, NULL, 4096, 0).depart, 4096000);
  assert_int_equal(gt_link_step(&link, &s, NULL, 100000, 10 * MS).depart, 210 * MS);
  assert_int_equal(gt_link_step(&link, &s, NULL, 100000, 10 * MS).depart, 310 * MS);
  assert_int_equal(gt_link_step(&link, &s, NULL, 100000, 250 * MS).depart, 450 * MS);
}

static const gt_link_spec slow = {.bandwidth_bps = 100e6,
                                  .latency_s = 0.025,
                                  .back_s = 0.025,
                                  .window_bytes = 14480,
                                  .idle_s = 1.0};

/* 100 Mbit/s and 50 ms: the link holds 625,000 bytes.  Windows of 14480, 28960, 57920, 115840,
   231680, 463360 bytes begin at 0, 50, ... 250 ms, 912,240 bytes together; from 300 ms on the link
   is full.  depart: the beginning of the window in which the last byte leaves, plus the time of
   that window's bytes at 100 Mbit/s. */
static void slow_start_follows_the_table(void) {
  const struct {
    size_t bytes;
    double depart_s;
  } table[] = {{1000, 8e-5},
               {14480, 14480 * 8e-8},
               {14481, 0.050 + 1 * 8e-8},
               {43440, 0.050 + 28960 * 8e-8},
               {101360, 0.100 + 57920 * 8e-8},
               /* LeNet-5 with its header: 217,200 bytes in four windows, 29,688 in the fifth */
               {246888, 0.200 + 29688 * 8e-8},
               {912240, 0.250 + 463360 * 8e-8},
               {912241, 0.300 + 1 * 8e-8},
               {1048640, 0.300 + 136400 * 8e-8}, /* a frame of 1 MiB and its header */
               {46000000, 0.300 + 45087760 * 8e-8}};
  for (size_t i = 0; i < COUNT(table); i++) {
    gt_link_state link = gt_link_start(1, 0, 1, 0);
    gt_ns depart = gt_link_step(&link, &slow, NULL, table[i].bytes, 0).depart;
    if (llabs(depart - gt_from_seconds(table[i].depart_s)) > 10)
      fail_msg("%zu bytes: %lld ns", table[i].bytes, (long long)depart);
  }
}

static void slow_start_does_not_mind_how_a_message_is_cut(void) {
  const size_t frames[] = {64, 1000, 14480, 65536, 131072};
  for (size_t k = 0; k < COUNT(frames); k++) {
    gt_link_state link = gt_link_start(1, 0, 1, 0), whole = link;
    gt_ns depart = 0;
    for (size_t left = 1 << 20; left > 0;) {
      size_t frame = left < frames[k] ? left : frames[k];
      depart = gt_link_step(&link, &slow, NULL, frame, 0).depart;
      left -= frame;
    }
    gt_ns count = (gt_ns)(((size_t)1 << 20) / frames[k]) + 10;
    /* roundings */
    assert_true(llabs(depart - gt_link_step(&whole, &slow, NULL, 1 << 20, 0).depart) <= count);
  }
}

static gt_ns takes(gt_link_state *link, const gt_link_spec *spec, size_t bytes, gt_ns ready) {
  return gt_link_step(link, spec, NULL, bytes, ready).depart - ready;
}

static void slow_start_begins_again_after_idleness(void) {
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  const gt_ns at_once = gt_from_seconds((1 << 20) * 8e-8), first = takes(&link, &slow, 1 << 20, 0);
  assert_true(first > 300 * MS);
  gt_ns idle_at = link.busy_until + GT_SECOND;
  gt_link_state copy = link;
  assert_int_equal(takes(&copy, &slow, 1 << 20, idle_at), at_once); /* at most idle_s */
  copy = link;
  assert_true(llabs(takes(&copy, &slow, 1 << 20, idle_at + 1) - first) <= 2);
  gt_link_spec never = slow;
  never.idle_s = 0;
  assert_int_equal(takes(&link, &never, 1 << 20, link.busy_until + 1000 * GT_SECOND), at_once);
}

/* A window that is not used up grows by the used part; an idle time of several round trips counts
   as one. */
static void a_link_that_is_little_used_grows_little(void) {
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  takes(&link, &slow, 4480, 0);
  assert_true(link.window_bytes == 14480 && link.window_left == 10000);
  takes(&link, &slow, 1000, 300 * MS);
  assert_true(link.window_bytes == 18960 && link.window_left == 17960);
  assert_int_equal(link.window_from, 300 * MS);
  /* 125 bytes in the next window, at 350 ms */
  assert_int_equal(takes(&link, &slow, 17960 + 125, 301 * MS), 349 * MS - 300 * MS + 10000);
}

static void without_the_term_or_a_round_trip_there_is_none(void) {
  gt_link_spec s = slow;
  s.latency_s = s.back_s = 0;
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(takes(&link, &s, 1000000, 0), 80 * MS);
  s = slow, s.window_bytes = 625000; /* full from the first byte */
  link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(takes(&link, &s, 1000000, 0), 80 * MS);
}

/* Unlimited bandwidth: a window leaves at once, and above 1 GiB all bytes do. */
static void an_unlimited_link_is_full_at_a_gibibyte(void) {
  gt_link_spec s = {.latency_s = 0.05, .back_s = 0.05, .window_bytes = (double)(1 << 20)};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  assert_int_equal(takes(&link, &s, 1 << 20, 0), 0);
  assert_int_equal(takes(&link, &s, 3 << 20, 0), 200 * MS); /* 2 MiB at 100 ms, 1 MiB at 200 ms */
  assert_int_equal(takes(&link, &s, (size_t)5000 << 20, 0), 1000 * MS);
  assert_true(link.window_bytes == 0);
}

/* ---- access ---------------------------------------------------------------------------------- */

/* Two links of 100 Mbit/s behind an access of 100 Mbit/s: each gets half; behind 200 Mbit/s or more
   they do not influence each other. */
static void links_share_their_access(void) {
  for (int rate = 100; rate <= 300; rate += 100) {
    gt_link_spec s = {.bandwidth_bps = 100e6, .latency_s = 0.01};
    gt_link_state links[2] = {gt_link_start(1, 0, 1, 0), gt_link_start(1, 0, 2, 0)};
    gt_access up = {.rate_bps = 1e6 * rate};
    gt_ns depart[2] = {0};
    for (int i = 0; i < 100; i++) {
      for (int k = 0; k < 2; k++) depart[k] = gt_link_step(&links[k], &s, &up, 1000000, 0).depart;
    }
    gt_ns ideal = rate == 100 ? 16 * GT_SECOND : 8 * GT_SECOND;
    assert_int_equal(depart[1], ideal);
    assert_true(ideal - depart[0] <= 80 * MS);
    if (rate >= 200) assert_int_equal(depart[0], ideal);
  }
}

/* One link gets the lower of the two rates, not the sum of both times. */
static void a_frame_passes_link_and_access_as_one_stream(void) {
  gt_link_spec s = {.bandwidth_bps = 8e6};
  gt_link_state link = gt_link_start(1, 0, 1, 0);
  gt_access up = {.rate_bps = 80e6};
  assert_int_equal(gt_link_step(&link, &s, &up, 100000, 0).depart, 100 * MS);
  assert_int_equal(up.busy_until, 10 * MS);
  up = (gt_access){.rate_bps = 4e6};
  assert_int_equal(gt_link_step(&link, &s, &up, 100000, 0).depart, 300 * MS);
  assert_int_equal(gt_link_step(&link, &s, &up, 100000, 0).depart, 500 * MS);
  up = (gt_access){.busy_until = 77 * GT_SECOND}; /* unlimited */
  assert_int_equal(gt_link_step(&link, &s, &up, 100000, 0).depart, 600 * MS);
}

/* A link in an outage, or waiting for its rendezvous, does not delay the others at the access; its
   own frame still needs its time there. */
static void who_waits_does_not_block_the_access(void) {
  const gt_link_outage outage = {0.0, 20.0};
  gt_link_spec dark = {.outages = &outage, .noutages = 1},
               far = {.latency_s = 0.5, .back_s = 0.5, .setup_rtts = 1}, near = {.latency_s = 0.01};
  gt_link_state a = gt_link_start(1, 0, 1, 0), b = gt_link_start(1, 0, 2, 0),
                c = gt_link_start(1, 0, 3, 0);
  gt_access up = {.rate_bps = 8e6};
  assert_int_equal(gt_link_step(&a, &dark, &up, 1000, 0).depart, 20001 * MS);
  assert_int_equal(gt_link_step(&b, &far, &up, 1000, 0).depart, 1001 * MS);
  assert_int_equal(gt_link_step(&c, &near, &up, 1000, 0).depart, 3 * MS);
}

TESTS(goodput_is_what_loss_leaves, frames_pass_at_the_goodput, a_trace_suffers_loss_too,
      a_traces_latency_takes_the_place_of_the_links, an_outage_takes_exactly_its_time,
      an_outage_and_a_trace, an_outage_a_trace_and_loss, an_outage_does_not_hold_what_has_left,
      an_outage_without_end_has_no_arrival, a_rendezvous_costs_round_trips_once,
      slow_start_follows_the_table, slow_start_does_not_mind_how_a_message_is_cut,
      slow_start_begins_again_after_idleness, a_link_that_is_little_used_grows_little,
      without_the_term_or_a_round_trip_there_is_none, an_unlimited_link_is_full_at_a_gibibyte,
      links_share_their_access, a_frame_passes_link_and_access_as_one_stream,
      who_waits_does_not_block_the_access)
