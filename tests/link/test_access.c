/* The receiver's access: examples computed by hand, and laws over random frames. */
#include "cases.h"
#include "scratch.h"

#include <math.h>

#define LINKS 8
#define MOST  400

/* ---- by hand --------------------------------------------------------------------------------- */

static void a_frame_uses_what_is_left_since_its_first_bit(void) {
  gt_access down = {.rate_bps = 8e6};
  assert_int_equal(gt_access_pass(&down, 1000, 8e6, 10 * MS), 10 * MS); /* from 9 ms on */
  assert_int_equal(gt_access_pass(&down, 1000, 8e6, 10 * MS), 11 * MS);
  /* It comes from 7 ms on: 2 ms of it pass until 9 ms, the others from 11 ms on. */
  assert_int_equal(gt_access_pass(&down, 5000, 8e6, 12 * MS), 14 * MS);
  assert_int_equal(gt_access_pass(&down, 1000, 8e6, 30 * MS), 30 * MS);
  assert_int_equal(gt_access_pass(&down, 1000, 0, 40 * MS), 41 * MS); /* all bits come at once */
  gt_access unlimited = {0};
  assert_int_equal(gt_access_pass(&unlimited, 1 << 20, 8e6, 10 * MS), 10 * MS);
  assert_int_equal(gt_access_pass(&unlimited, 1 << 20, 8e6, 5 * MS), 5 * MS);
}

/* A small frame that comes in concurrently with a large one delays it by its own time, not by the
   large one's. */
static void a_small_frame_takes_its_own_time(void) {
  gt_access down = {.rate_bps = 8e6};
  assert_int_equal(gt_access_pass(&down, 100, 0, 990 * MS), 990100000);
  assert_int_equal(gt_access_pass(&down, 1000000, 8e6, 1000 * MS), 1000100000);
}

/* Bits of a slow link cannot have passed before they came. */
static void a_slow_stream_leaves_room_for_another(void) {
  gt_access down = {.rate_bps = 8e6};
  /* at a quarter of the access, from 0 to 4 s; then at three quarters, from 2 to 5 s */
  assert_int_equal(gt_access_pass(&down, 1000000, 2e6, 4 * GT_SECOND), 4 * GT_SECOND);
  assert_int_equal(gt_access_pass(&down, 2250000, 6e6, 5 * GT_SECOND), 5 * GT_SECOND);
  /* from 3 s on, at the rate of the access, which is full until 4 s: 3/4 s are left of 4 to 5 s */
  assert_int_equal(gt_access_pass(&down, 2000000, 8e6, 5 * GT_SECOND), 6750 * MS);
}

/* A stream passes at the lower of its rate and the access's. */
static void a_stream_alone_has_the_lower_rate(void) {
  for (int rate = 4; rate <= 12; rate += 4) {
    gt_access down = {.rate_bps = 1e6 * rate};
    for (int i = 1; i <= 500; i++) {
      gt_ns arrive = GT_SECOND + i * MS;
      gt_ns expected = rate == 4 ? GT_SECOND + 2 * i * MS : arrive;
      assert_int_equal(gt_access_pass(&down, 1000, 8e6, arrive), expected);
    }
  }
}

/* ---- laws ------------------------------------------------------------------------------------ */

typedef struct {
  gt_ns first, last, passed;
  size_t bytes;
  double stream_bps;
} frame;

static int by_arrival(const void *a, const void *b) {
  const frame *x = a, *y = b;
  return (x->last > y->last) - (x->last < y->last);
}

/* Frames of one link, one after another; most without a pause. */
static size_t add_link(gt_rng *rng, frame *frames, size_t n, double rate_bps) {
  gt_ns at = (gt_ns)gt_rng_below(rng, GT_SECOND);
  for (size_t i = 0; i < MOST / LINKS; i++) {
    frame *f = &frames[n++];
    if (gt_rng_below(rng, 4) == 0) at += (gt_ns)gt_rng_below(rng, GT_SECOND);
    f->bytes = 64 + gt_rng_below(rng, gt_rng_below(rng, 3) ? 1 << 20 : 200);
    f->stream_bps = rate_bps;
    f->first = at;
    at = f->last = at + gt_from_seconds(8.0 * (double)f->bytes / rate_bps);
  }
  return n;
}

/* Makes random links, whose rates add up to `load` times that of the access. */
static size_t make(gt_rng *rng, frame *frames, gt_access *down, double load) {
  double rate[LINKS], sum = 0;
  size_t n = 0, links = 1 + gt_rng_below(rng, LINKS);
  *down = (gt_access){.rate_bps = 1e6 * (1 + (double)gt_rng_below(rng, 100))};
  for (size_t k = 0; k < links; k++) sum += rate[k] = 1 + (double)gt_rng_below(rng, 20);
  for (size_t k = 0; k < links; k++)
    n = add_link(rng, frames, n, rate[k] / sum * load * down->rate_bps);
  qsort(frames, n, sizeof *frames, by_arrival);
  for (size_t i = 0; i < n; i++)
    frames[i].passed = gt_access_pass(down, frames[i].bytes, frames[i].stream_bps, frames[i].last);
  return n;
}

/* Checks that the access passes no more than its rate, over all frames that came after one time and
   had passed by another. */
static void check_rate(const frame *frames, size_t n, double rate_bps) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      double bits = 0;
      for (size_t j = 0; j < n; j++)
        if (frames[j].first >= frames[i].first && frames[j].passed <= frames[k].passed)
          bits += 8.0 * (double)frames[j].bytes;
      const gt_ns span = frames[k].passed - frames[i].first;
      if (span > 0) assert_true(bits <= rate_bps * gt_seconds(span + (gt_ns)n));
    }
}

static void no_more_passes_than_the_rate(void) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  frame frames[MOST];
  gt_access down;
  for (int turn = 0; turn < (int)cases(20, 7); turn++) {
    size_t n = make(&rng, frames, &down, 0.5 + (double)gt_rng_below(&rng, 100) / 40);
    check_rate(frames, n, down.rate_bps);
    for (size_t i = 0; i < n; i++) {
      gt_ns before = i ? frames[i - 1].passed : 0, alone = frames[i].last;
      assert_true(frames[i].passed >= alone && frames[i].passed >= before);
      /* and none waits without a reason */
      if (before > alone) alone = before;
      alone += gt_from_seconds(8.0 * (double)frames[i].bytes / down.rate_bps) + 1;
      assert_true(frames[i].passed <= alone);
    }
  }
}

/* Links that together are no faster than the access are not slowed by it. */
static void what_fits_passes_as_it_arrives(void) {
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  frame frames[MOST];
  gt_access down;
  for (int turn = 0; turn < 300; turn++) {
    size_t n = make(&rng, frames, &down, turn % 2 ? 1 : 0.9);
    for (size_t i = 0; i < n; i++)
      assert_true(frames[i].passed - frames[i].last <= 10 * (gt_ns)(n + 1));
  }
}

/* Links that are always busy, together faster than the access, keep it busy from their first bit
   on. */
static void a_full_access_does_not_idle(void) {
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  for (int turn = 0; turn < 100; turn++) {
    frame frames[MOST];
    gt_access down = {.rate_bps = 1e6};
    size_t n = 0, links = 2 + gt_rng_below(&rng, LINKS - 1);
    double bits = 0;
    gt_ns passed = 0;
    for (size_t k = 0; k < links; k++) {
      gt_ns at = 0;
      for (size_t i = 0; i < MOST / LINKS; i++) {
        const size_t bytes = i % 5 ? 100000 + gt_rng_below(&rng, 10000) : 64;
        const double rate = 1.1e6 / (double)links;
        at += gt_from_seconds(8.0 * (double)bytes / rate);
        frames[n++] = (frame){.last = at, .bytes = bytes, .stream_bps = rate};
        bits += 8.0 * (double)bytes;
      }
    }
    qsort(frames, n, sizeof *frames, by_arrival);
    for (size_t i = 0; i < n; i++)
      passed = gt_access_pass(&down, frames[i].bytes, frames[i].stream_bps, frames[i].last);
    assert_true(passed >= gt_from_seconds(bits / 1e6) - (gt_ns)n);
    if (frames[n - 1].last <= gt_from_seconds(bits / 1e6))
      assert_true(passed <= gt_from_seconds(bits / 1e6) + (gt_ns)(10 * n));
  }
}

TESTS(a_frame_uses_what_is_left_since_its_first_bit, a_small_frame_takes_its_own_time,
      a_slow_stream_leaves_room_for_another, a_stream_alone_has_the_lower_rate,
      no_more_passes_than_the_rate, what_fits_passes_as_it_arrives, a_full_access_does_not_idle)
