/* Laws of the link model over random links: never early, in order, work-conserving at the link's
   capacity, and independent of the origin. */
#include "scratch.h"

#include <math.h>
#include <time.h>

#define LINKS  1500
#define FRAMES 60

/* A random link; of_* are its borrowed parts. */
typedef struct {
  gt_link_spec spec;
  gt_link_outage outages[4];
  gt_link_trace *trace;
} any_link;

static double one_of(gt_rng *rng, const double *of, size_t n) {
  return of[gt_rng_below(rng, n)];
}
#define ONE_OF(rng, ...)                                                                           \
  one_of(rng, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void make_link(any_link *l, gt_rng *rng, bool plain) {
  *l = (any_link){.spec = {.bandwidth_bps = ONE_OF(rng, 0, 1e6, 2e7, 1e8, 1e10),
                           .latency_s = ONE_OF(rng, 0, 0.0001, 0.01, 0.15)}};
  l->spec.back_s = gt_rng_below(rng, 2) ? l->spec.latency_s : 0.02;
  l->spec.jitter_s = ONE_OF(rng, 0, 0, 0.001, 0.05);
  if (gt_rng_below(rng, 3) == 0)
    l->spec.trace = l->trace = random_trace(rng, 1 + gt_rng_below(rng, 20), true);
  for (double at = 0; l->spec.noutages < gt_rng_below(rng, 5); l->spec.noutages++) {
    gt_link_outage *o = &l->outages[l->spec.noutages];
    *o = (gt_link_outage){at + ONE_OF(rng, 0, 0.5, 3), ONE_OF(rng, 0.001, 0.3, 5)};
    at = o->from_s + o->for_s;
  }
  l->spec.outages = l->outages;
  if (plain) return;
  l->spec.loss = ONE_OF(rng, 0, 0, 1e-5, 0.01, 0.3);
  l->spec.setup_rtts = ONE_OF(rng, 0, 1, 2.5), l->spec.eager_bytes = ONE_OF(rng, 0, 4096);
  l->spec.window_bytes = ONE_OF(rng, 0, 1448, 14480, 1e6), l->spec.idle_s = ONE_OF(rng, 0, 0.2, 3);
}

static size_t any_size(gt_rng *rng) {
  static const size_t sizes[] = {64, 1500, 65536, 1 << 20};
  return 1 + gt_rng_below(rng, sizes[gt_rng_below(rng, 4)]);
}

/* Ready times ascend; sometimes the link idles. */
static gt_ns next_ready(gt_rng *rng, gt_ns ready, const gt_link_state *link) {
  if (gt_rng_below(rng, 10) == 0)
    return (link->busy_until > ready ? link->busy_until : ready) +
           (gt_ns)gt_rng_below(rng, 5 * GT_SECOND);
  return ready + (gt_ns)gt_rng_below(rng, 20 * MS);
}

/* Arrivals are in order, at least the minimum delay after ready; departures are in order too, and
   never earlier than bandwidth and access allow. */
static void nothing_is_early_and_all_is_in_order(void) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (int k = 0; k < LINKS; k++) {
    any_link l;
    make_link(&l, &rng, false);
    gt_link_state link = gt_link_start(7, 0, 1, 0);
    gt_access up = {.rate_bps = ONE_OF(&rng, 0, 3e6, 1e9)};
    const gt_ns least = gt_link_delay_min(&l.spec);
    gt_link_times before = {0};
    gt_ns ready = 0;
    for (int i = 0; i < FRAMES; i++) {
      size_t size = any_size(&rng);
      ready = next_ready(&rng, ready, &link);
      gt_ns busy = up.busy_until;
      gt_link_times t = gt_link_step(&link, &l.spec, &up, size, ready);
      assert_true(t.depart >= ready && t.depart >= before.depart && t.arrive >= before.arrive);
      assert_true(t.arrive >= ready + least && t.arrive >= t.depart + least);
      assert_true(t.depart < GT_NEVER / 2 - 1); /* every frame arrives at some time */
      assert_true(link.busy_until == t.depart && link.last_arrival == t.arrive);
      double rate = l.spec.trace ? 0 : gt_link_goodput(&l.spec),
             takes_s = rate > 0 ? 8.0 * (double)size / rate : 0;
      assert_true(gt_seconds(t.depart - (ready > before.depart ? ready : before.depart)) >=
                  takes_s - 1e-8);
      if (up.rate_bps > 0)
        assert_true(gt_seconds(t.depart - (ready > busy ? ready : busy)) >=
                    8.0 * (double)size / up.rate_bps - 1e-8);
      before = t;
    }
    gt_link_trace_close(l.trace);
  }
}

/* Returns the bits that the link can pass from a to b, without outages. */
static double capacity(const gt_link_spec *spec, double a, double b) {
  double bits = 0;
  for (size_t i = 0; i <= spec->noutages; i++) {
    double from = i == 0 ? a : fmax(a, spec->outages[i - 1].from_s + spec->outages[i - 1].for_s);
    double to = i == spec->noutages ? b : fmin(b, spec->outages[i].from_s);
    if (to > from)
      bits += spec->trace
                  ? gt_link_trace_bits(spec->trace, to) - gt_link_trace_bits(spec->trace, from)
                  : spec->bandwidth_bps * (to - from);
  }
  return bits;
}

/* Without the transport model, a link that is never idle passes exactly its capacity, through
   outages and periods of a trace. */
static void a_busy_link_passes_exactly_what_it_can(void) {
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  for (int k = 0; k < LINKS; k++) {
    any_link l;
    make_link(&l, &rng, true);
    if (l.spec.bandwidth_bps <= 0) l.spec.bandwidth_bps = 5e6;
    gt_link_state link = gt_link_start(7, 0, 1, 0);
    gt_ns ready = 0, begin = 0;
    double sent = 0;
    for (int i = 0; i < FRAMES; i++) {
      size_t size = any_size(&rng);
      gt_ns next = next_ready(&rng, ready, &link);
      if (next > link.busy_until) { /* idle: a busy period ends */
        begin = next;
        sent = 0;
      }
      ready = next;
      sent += 8.0 * (double)size;
      gt_ns depart = gt_link_step(&link, &l.spec, NULL, size, ready).depart;
      double could = capacity(&l.spec, gt_seconds(begin), gt_seconds(depart)),
             rate = l.spec.trace ? 5e7 : l.spec.bandwidth_bps;
      /* The bits of a nanosecond per frame. */
      assert_true(fabs(could - sent) <= rate * 1e-9 * (i + 2));
    }
    gt_link_trace_close(l.trace);
  }
}

/* A trace of one rate equals that bandwidth, within a nanosecond per frame, with any period. */
static void a_constant_trace_is_a_bandwidth(void) {
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  for (int k = 0; k < 50; k++) {
    double rate = 1e5 * (double)(1 + gt_rng_below(&rng, 2000)),
           period = 0.001 * (double)(1 + gt_rng_below(&rng, 3000));
    char text[128];
    snprintf(text, sizeof text, "0,%.0f\n%g,%.0f\n%g,1\n", rate, period / 3, rate, period);
    gt_link_trace *trace = trace_of("constant.csv", text);
    gt_link_spec spec = {.bandwidth_bps = rate,
                         .latency_s = 0.02,
                         .back_s = 0.02,
                         .window_bytes = 14480,
                         .idle_s = 0.2,
                         .setup_rtts = 1,
                         .eager_bytes = 4096};
    gt_link_spec traced = spec;
    traced.bandwidth_bps = 0, traced.trace = trace;
    assert_true(fabs(gt_link_goodput(&traced) / rate - 1) < 1e-12);
    for (int i = 0; i < 200; i++) {
      gt_ns ready = (gt_ns)gt_rng_below(&rng, 86400 * GT_SECOND);
      gt_link_state a = gt_link_start(1, 0, 1, 0), b = a;
      size_t size = any_size(&rng);
      gt_ns difference = gt_link_step(&a, &spec, NULL, size, ready).depart -
                         gt_link_step(&b, &traced, NULL, size, ready).depart;
      /* each window of slow start is rounded */
      assert_true(llabs(difference) <= (size > 14480 ? 10 : 1));
    }
    gt_link_trace_close(trace);
  }
}

/* A link with a later origin, or whose state is shifted in the middle, does the same later, to the
   nanosecond. */
static void a_shifted_link_gives_shifted_times(void) {
  gt_rng rng = gt_rng_make(4, GT_RNG_TEST, 0, 0);
  for (int k = 0; k < LINKS; k++) {
    any_link l;
    make_link(&l, &rng, false);
    gt_ns by = (gt_ns)gt_rng_below(&rng, 1000 * GT_SECOND), ready = 0;
    gt_link_state here = gt_link_start(7, 0, 1, 0), there = gt_link_start(7, 0, 1, by);
    for (int i = 0; i < FRAMES; i++) {
      size_t size = any_size(&rng);
      ready = next_ready(&rng, ready, &here);
      gt_link_times t = gt_link_step(&here, &l.spec, NULL, size, ready),
                    u = gt_link_step(&there, &l.spec, NULL, size, ready + by);
      assert_int_equal(t.depart + by, u.depart);
      assert_int_equal(t.arrive + by, u.arrive);
      if (i % 20 == 19) {
        gt_link_shift(&there, 12345 - by);
        by = 12345;
      }
    }
    gt_link_trace_close(l.trace);
  }
}

/* Jitter beyond three standard deviations would make arrivals too early or too late: there is
   none. */
static void jitter_is_cut_at_three_deviations(void) {
  gt_link_spec spec = {.latency_s = 0.1, .jitter_s = 0.01};
  gt_link_state link = gt_link_start(7, 0, 1, 0);
  gt_ns least = GT_NEVER, most = 0;
  for (int i = 0; i < 20000; i++) {
    gt_ns ready = i * GT_SECOND,
          flight = gt_link_step(&link, &spec, NULL, 1000, ready).arrive - ready;
    least = flight < least ? flight : least;
    most = flight > most ? flight : most;
  }
  assert_int_equal(least, 70 * MS);
  assert_int_equal(most, 130 * MS);
  assert_int_equal(gt_link_delay_min(&spec), 70 * MS);
  spec.jitter_s = 0.05;
  assert_int_equal(gt_link_delay_min(&spec), 10 * MS);
}

/* The n-th frame's jitter depends only on n, whatever the rest of the spec. */
static void each_frame_draws_one_normal_number(void) {
  gt_link_spec spec = {
      .latency_s = 0.1, .jitter_s = 0.01, .loss = 0.1, .window_bytes = 1000, .setup_rtts = 1};
  gt_link_state link = gt_link_start(7, 3, 4, 0);
  gt_rng rng = gt_rng_make(7, GT_RNG_JITTER, 3, 4);
  for (int i = 0; i < 1000; i++) {
    gt_link_times t = gt_link_step(&link, &spec, NULL, 500, i * GT_SECOND);
    double z = gt_rng_normal(&rng);
    if (fabs(z) < 3) assert_true(llabs(t.arrive - t.depart - gt_from_seconds(0.1 + 0.01 * z)) <= 1);
  }
  assert_memory_equal(&rng, &link.rng, sizeof rng);
}

/* A step with all features is cheap, does not allocate and does not change the trace. */
static void a_step_is_cheap(void) {
  enum { N = 200000 };
  gt_rng rng = gt_rng_make(5, GT_RNG_TEST, 0, 0);
  gt_link_outage outages[] = {{10, 1}, {20, 1}, {1000, 2}};
  gt_link_trace *trace = random_trace(&rng, 200, true);
  gt_link_spec spec = {.latency_s = 0.02,
                       .back_s = 0.02,
                       .jitter_s = 0.001,
                       .loss = 0.001,
                       .window_bytes = 14480,
                       .idle_s = 0.2,
                       .outages = outages,
                       .noutages = 3};
  spec.trace = trace;
  gt_link_state link = gt_link_start(7, 0, 1, 0);
  gt_access up = {.rate_bps = 1e9};
  int64_t made = gt_alloc_total();
  struct timespec from, to;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  for (int i = 0; i < N; i++) gt_link_step(&link, &spec, &up, 1500, i * MS);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  double each_ns =
      ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / N;
  print_message("[          ] %.0f ns a step\n", each_ns);
  assert_int_equal(gt_alloc_total(), made);
  assert_true(each_ns < 20000); /* allows for sanitizers and slow machines */
  gt_link_trace_close(trace);
}

TESTS(nothing_is_early_and_all_is_in_order, a_busy_link_passes_exactly_what_it_can,
      a_constant_trace_is_a_bandwidth, a_shifted_link_gives_shifted_times,
      jitter_is_cut_at_three_deviations, each_frame_draws_one_normal_number, a_step_is_cheap)
