/* The agreement on virtual time, without MPI: the safe time of a region follows from the
   announcements of all regions and the minimum delays of their links. */
#include "internal.h"
#include "tests.h"

#define REGIONS ((size_t)3)
#define MS      ((gt_ns)1000000)

typedef struct {
  gt_agreement *of[REGIONS];
} world;

/* delays: ms, row: sender. */
static world open_world(const gt_ns delays_ms[REGIONS][REGIONS]) {
  world w;
  gt_ns delays[REGIONS * REGIONS];
  for (size_t i = 0; i < REGIONS * REGIONS; i++)
    delays[i] = delays_ms[i / REGIONS][i % REGIONS] * MS;
  for (size_t r = 0; r < REGIONS; r++) w.of[r] = gt_agreement_create(REGIONS, r, delays);
  return w;
}

static void close_world(world *w) {
  for (size_t r = 0; r < REGIONS; r++) gt_agreement_close(w->of[r]);
}

static void tell(world *w, size_t from, size_t to, bool alive) {
  uint8_t word[256];
  assert_true(gt_agreement_bytes(w->of[from]) <= sizeof word);
  gt_agreement_write(w->of[from], alive, word);
  gt_agreement_read(w->of[to], from, word);
}

/* Runs one round of all regions that still take part. */
static void round_of(world *w, const gt_ns next[REGIONS], gt_ns safe[REGIONS]) {
  bool in[REGIONS];
  for (size_t r = 0; r < REGIONS; r++) in[r] = gt_agreement_takes_part(w->of[(r + 1) % REGIONS], r);
  for (size_t r = 0; r < REGIONS; r++)
    if (in[r]) gt_agreement_open(w->of[r], next[r]);
  for (size_t r = 0; r < REGIONS; r++)
    for (size_t p = 0; p < REGIONS; p++)
      if (r != p && in[r] && in[p]) tell(w, r, p, false);
  for (size_t r = 0; r < REGIONS; r++)
    if (in[r]) assert_true(gt_agreement_reached(w->of[r], &safe[r]));
}

/* From 0 to 1: 100 ms directly, 30 ms over 2.  Back: 10 ms. */
static const gt_ns uneven[REGIONS][REGIONS] = {{0, 100, 10}, {10, 0, 50}, {60, 20, 0}};

static void chains_of_links_count(void) {
  world w = open_world(uneven);
  gt_ns safe[REGIONS];
  round_of(&w, (gt_ns[]){0, GT_NEVER - 1, GT_NEVER - 1}, safe);
  assert_int_equal(safe[1], 30 * MS);
  assert_int_equal(safe[2], 10 * MS);
  assert_int_equal(safe[0], 40 * MS); /* its own event returns through 2 and 1 */
  assert_int_equal(gt_agreement_safe(w.of[1]), 30 * MS);
  round_of(&w, (gt_ns[]){500 * MS, 7 * MS, GT_NEVER - 1}, safe);
  assert_int_equal(safe[0], 17 * MS);
  assert_int_equal(safe[2], 27 * MS); /* through 0: 10 + 10; the direct link takes 50 */
  close_world(&w);
}

/* A frame that a region has sent is an event of the receiver, in that round only. */
static void frames_in_flight_are_events(void) {
  world w = open_world(uneven);
  gt_ns safe[REGIONS];
  const gt_ns late = 900 * MS, next[REGIONS] = {late, late, late};
  gt_agreement_sent(w.of[0], 2, 300 * MS);
  gt_agreement_sent(w.of[0], 2, 200 * MS);
  gt_agreement_sent(w.of[0], 2, 250 * MS);
  round_of(&w, next, safe);
  assert_int_equal(safe[1], 220 * MS);
  assert_int_equal(safe[0], 230 * MS);
  round_of(&w, next, safe);
  assert_int_equal(safe[1], 920 * MS); /* 2 can send at 900 */
  close_world(&w);
}

/* No region waits for one that has ended; its last announcement still counts in its round. */
static void regions_end(void) {
  world w = open_world(uneven);
  gt_ns safe[REGIONS];
  gt_agreement_sent(w.of[0], 1, 50 * MS);
  round_of(&w, (gt_ns[]){GT_NEVER, 400 * MS, 300 * MS}, safe);
  assert_int_equal(safe[2], 70 * MS); /* 1 at 50, through 0: 20 */
  assert_false(gt_agreement_takes_part(w.of[1], 0));
  assert_false(gt_agreement_takes_part(w.of[2], 0));
  assert_true(gt_agreement_takes_part(w.of[2], 1));
  round_of(&w, (gt_ns[]){0, 400 * MS, 300 * MS}, safe);
  assert_int_equal(safe[1], 320 * MS);
  round_of(&w, (gt_ns[]){0, GT_NEVER, GT_NEVER}, safe);
  assert_int_equal(safe[1], GT_NEVER);
  close_world(&w);
}

/* A round needs the announcements of all.  A region can be one round ahead; a heartbeat belongs
   to no round. */
static void a_round_waits_for_all(void) {
  world w = open_world(uneven);
  gt_ns safe = -1;
  gt_agreement_open(w.of[0], 5 * MS);
  gt_agreement_open(w.of[1], 6 * MS);
  tell(&w, 1, 0, false);
  assert_false(gt_agreement_reached(w.of[0], &safe));
  tell(&w, 2, 0, true);
  assert_false(gt_agreement_reached(w.of[0], &safe));
  assert_int_equal(safe, -1);
  gt_agreement_open(w.of[1], 80 * MS); /* as if 2's announcement had already reached 1 */
  tell(&w, 1, 0, false);
  gt_agreement_open(w.of[2], 7 * MS);
  tell(&w, 2, 0, false);
  assert_true(gt_agreement_reached(w.of[0], &safe));
  assert_int_equal(safe, 16 * MS); /* 1 at 6, not yet at 80 */
  gt_agreement_open(w.of[0], 90 * MS);
  gt_agreement_open(w.of[2], 95 * MS);
  tell(&w, 2, 0, false);
  tell(&w, 1, 0, true); /* does not cancel its announcement */
  assert_true(gt_agreement_reached(w.of[0], &safe));
  assert_int_equal(safe, 90 * MS);
  close_world(&w);
}

TESTS(chains_of_links_count, frames_in_flight_are_events, regions_end, a_round_waits_for_all)
