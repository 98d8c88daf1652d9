/* Finds the regions whose links share one access, and the rate of each link, from two measurements:
   streams in every direction at once, and each link alone.  Local, and without MPI.

   An access is one rate for each direction (link.h).  A region gets one if it carried less at once
   than the sum of its links' single rates, and if one such rate explains this: the other direction
   carried no more, no single link carries more alone, and links that were as fast as alone were no
   faster than the slowed ones.  Other effects (different rates for sending and receiving, a path
   that regions share, the two directions of a link) are attributed to the link: it gets its rate at
   once instead of its single rate.  So a simulation with the profile reproduces the rates at
   once. */
#include <math.h>
#include <stdlib.h>

#include "internal.h"

#define MARGIN 0.15 /* smaller shortfalls from the promised rate are noise */
/* if slowed links fall below this share, both in bit/s and relative to their single rate, no access
   slowed them */
#define LESS 0.75
/* the link model exceeds the region's measured rate by more than this: not noise */
#define EXCESS 0.35
#define FRAMES ((size_t)100) /* of a stream in the link model */
#define UNFAIR 0.4 /* a stream that shares a rate gets at least this much of its fair part */

/* A region's links of one direction: n of them, `stride` apart. */
typedef struct {
  gt_probe_link *first;
  size_t n, stride;
  double carried_bps;               /* measured at once */
  double promised_bps, fastest_bps; /* measured alone: sum of all, and the fastest */
  /* at once: the fastest slowed link, and the fastest that was not slowed */
  double slowed_bps, untouched_bps;
  double slowed_share; /* relative to its single rate, the greatest */
} side;

static gt_probe_link *at(const side *s, size_t i) {
  return &s->first[i * s->stride];
}

static double stream_bps(const gt_probe_stream *s) {
  return s->s > 0 ? s->bits / s->s : 0;
}

static bool slowed(const gt_probe_link *l) {
  return l->busy_bandwidth_bps > 0 && l->busy_bandwidth_bps < (1 - MARGIN) * l->bandwidth_bps;
}

/* All bits over the longest time.  Links that share a rate keep it busy until the last of them
   ends, however they divide it. */
static double together_bps(const side *s, int round) {
  double bits = 0, longest_s = 0;
  for (size_t i = 0; i < s->n; i++) {
    bits += at(s, i)->together[round].bits;
    longest_s = fmax(longest_s, at(s, i)->together[round].s);
  }
  return longest_s > 0 ? bits / longest_s : 0;
}

/* The fastest round: disturbances only reduce a rate. */
static int best_round(const side *s, int from) {
  int best = from;
  for (int k = from + 1; k < GT_PROBE_ROUNDS; k++)
    if (together_bps(s, k) > together_bps(s, best)) best = k;
  return best;
}

/* Ignores the first round.  Its streams are sized for single rates; if links share a rate, some
   streams end early and the others then get more. */
static void take_busy(const side *row) {
  int best = best_round(row, 1);
  for (size_t i = 0; i < row->n; i++)
    at(row, i)->busy_bandwidth_bps = stream_bps(&at(row, i)->together[best]);
}

static side look(gt_probe_link *first, size_t n, size_t stride) {
  side s = {.first = first, .n = n, .stride = stride};
  s.carried_bps = together_bps(&s, best_round(&s, 0));
  for (size_t i = 0; i < n; i++) {
    const gt_probe_link *l = at(&s, i);
    double *fastest = slowed(l) ? &s.slowed_bps : &s.untouched_bps;
    s.promised_bps += l->bandwidth_bps;
    s.fastest_bps = fmax(s.fastest_bps, l->bandwidth_bps);
    *fastest = fmax(*fastest, l->busy_bandwidth_bps);
    if (slowed(l)) s.slowed_share = fmax(s.slowed_share, l->busy_bandwidth_bps / l->bandwidth_bps);
  }
  return s;
}

/* True if an access of this rate explains why the links carried less than promised. */
static bool explains(double access_bps, const side *s) {
  bool less = s->carried_bps < (1 - MARGIN) * s->promised_bps,
       full = s->carried_bps >= (1 - MARGIN) * access_bps;
  return less && full && (s->slowed_bps >= LESS * s->untouched_bps || s->slowed_share >= LESS);
}

static double access_of(const side *out, const side *in) {
  double bps = fmax(out->carried_bps, in->carried_bps);
  /* one link alone carries more */
  if (fmax(out->fastest_bps, in->fastest_bps) > bps / (1 - MARGIN)) return 0;
  return explains(bps, out) || explains(bps, in) ? bps : 0;
}

/* True if the link gets its part of the access: as much as the other links or, if frames queue for
   the access, in proportion to its single rate. */
static bool takes_its_part(double access_bps, const side *s, const gt_probe_link *l) {
  double part = fmin(s->slowed_bps, l->bandwidth_bps * s->carried_bps / s->promised_bps);
  return access_bps > 0 && l->busy_bandwidth_bps >= UNFAIR * part;
}

/* The link's own rate. shared: an access limits its rate at once. */
static double own_bps(const gt_probe_link *l, bool shared) {
  double bps = l->fit_bandwidth_bps > 0 ? l->fit_bandwidth_bps : l->bandwidth_bps;
  if (shared) return bps;
  if (slowed(l)) bps = fmin(bps, l->busy_bandwidth_bps);
  return l->sustained_bps > 0 ? fmin(bps, l->sustained_bps) : bps;
}

/* The region's rate when all links send for a long time; if that was not measured, its rate at
   once. */
static double lasting_bps(const side *s) {
  double sustained = 0, busy = 0;
  for (size_t i = 0; i < s->n; i++) {
    busy += at(s, i)->busy_bandwidth_bps;
    sustained += fmin(at(s, i)->sustained_bps, at(s, i)->busy_bandwidth_bps);
  }
  return sustained > 0 ? s->carried_bps * sustained / busy : s->carried_bps;
}

/* ---- streams at once, through the link model --------------------------------------------------
   */

static int by_time(const void *a, const void *b) {
  const gt_landing_frame *x = a, *y = b;
  return x->arrive != y->arrive ? (x->arrive > y->arrive) - (x->arrive < y->arrive)
                                : (x->of.number > y->of.number) - (x->of.number < y->of.number);
}

/* The link that is free first, among those with frames left. */
static size_t next_of(const gt_wire *links, const size_t *left, size_t n) {
  size_t next = n;
  for (size_t to = 0; to < n; to++)
    if (left[to] > 0 && (next == n || links[to].link.busy_until < links[next].link.busy_until))
      next = to;
  return next;
}

/* Sends all streams of a sender.  Appends those to region `to` to frames[to * n * FRAMES], which
   has came[to] frames. */
static void send_row(const gt_probe_link *row, size_t n, size_t from, double access_bps,
                     gt_landing_frame *frames, size_t *came) {
  gt_wire *links = GT_NEW_ARRAY(gt_wire, n);
  size_t *left = GT_NEW_ARRAY(size_t, n);
  gt_access up = {.rate_bps = access_bps};
  for (size_t to = 0; to < n; to++) {
    links[to].link = gt_link_start(0, from, to, 0);
    left[to] = to != from && row[to].profile_bps > 0 ? FRAMES : 0;
  }
  for (size_t to; (to = next_of(links, left, n)) < n; left[to]--) {
    const gt_link_spec spec = {.bandwidth_bps = row[to].profile_bps};
    const size_t bytes = (size_t)(row[to].busy_bandwidth_bps / 8 / (double)FRAMES) + 1;
    frames[to * n * FRAMES + came[to]++] =
        (gt_landing_frame){.arrive = gt_wire_send(&links[to], &spec, &up, bytes, 0).arrive,
                           .from = from,
                           .bytes = bytes,
                           .stream_bps = gt_link_stream_bps(&spec, access_bps),
                           .of.number = from * n + to};
  }
  gt_free(links);
  gt_free(left);
}

static void passed(void *seconds, const gt_landing_frame *frame, gt_ns at) {
  ((double *)seconds)[frame->of.number] = gt_seconds(at);
}

/* Computes the seconds of each of n x n streams if all start together on links of profile_bps with
   these accesses.  A stream has the bits that its link carried in a second at once. */
static void find_seconds(const gt_probe_link *links, size_t n, const double *access_bps,
                         double *seconds) {
  gt_landing_frame *frames = GT_NEW_ARRAY(gt_landing_frame, n * n * FRAMES);
  size_t *came = GT_NEW_ARRAY(size_t, n);
  for (size_t r = 0; r < n; r++) send_row(&links[r * n], n, r, access_bps[r], frames, came);
  for (size_t r = 0; r < n; r++) {
    gt_landing down;
    gt_landing_open(&down, n, access_bps[r]);
    if (came[r] > 0) qsort(&frames[r * n * FRAMES], came[r], sizeof *frames, by_time);
    gt_landing_all(&down, &frames[r * n * FRAMES], came[r], passed, seconds);
    gt_landing_close(&down);
  }
  gt_free(frames);
  gt_free(came);
}

/* ---- the accesses -----------------------------------------------------------------------------
   */

/* Gives the links of a region their rate at once if the profile still gives the region more than it
   carried.  True: a link changed. */
static bool correct(const side *s, const gt_probe_link *links, const double *seconds) {
  double promised = 0, carried = 0;
  bool any = false;
  for (size_t i = 0; i < s->n; i++) {
    const gt_probe_link *l = at(s, i);
    if (seconds[l - links] > 0) promised += l->busy_bandwidth_bps / seconds[l - links];
    carried += l->busy_bandwidth_bps;
  }
  for (size_t i = 0; i < s->n && carried < (1 - EXCESS) * promised; i++) {
    gt_probe_link *l = at(s, i);
    if (l->profile_bps <= l->busy_bandwidth_bps || seconds[l - links] >= 1 - MARGIN) continue;
    l->profile_bps = l->busy_bandwidth_bps;
    any = true;
  }
  return any;
}

/* Checks with the link model: streams that took a second at once must take a second in the
   profile. */
static void check(gt_probe_link *links, size_t n, const side *out, const side *in,
                  const double *access_bps) {
  double *seconds = GT_NEW_ARRAY(double, n *n);
  for (bool again = true; again;) {
    again = false;
    find_seconds(links, n, access_bps, seconds);
    for (size_t r = 0; r < n; r++) {
      again |= correct(&out[r], links, seconds);
      again |= correct(&in[r], links, seconds);
    }
  }
  gt_free(seconds);
}

void gt_probe_access(gt_probe_link *links, size_t n, double *access_bps) {
  side *out = GT_NEW_ARRAY(side, n), *in = GT_NEW_ARRAY(side, n);
  for (size_t r = 0; r < n; r++) take_busy(&(side){.first = &links[r * n], .n = n, .stride = 1});
  for (size_t r = 0; r < n; r++) {
    out[r] = look(&links[r * n], n, 1);
    in[r] = look(&links[r], n, n);
    access_bps[r] = n > 2 ? access_of(&out[r], &in[r]) : 0;
  }
  for (size_t i = 0; i < n * n; i++) {
    gt_probe_link *l = &links[i];
    l->profile_bps = own_bps(l, takes_its_part(access_bps[i / n], &out[i / n], l) ||
                                    takes_its_part(access_bps[i % n], &in[i % n], l));
  }
  check(links, n, out, in, access_bps);
  for (size_t r = 0; r < n; r++)
    if (access_bps[r] > 0) access_bps[r] = fmax(lasting_bps(&out[r]), lasting_bps(&in[r]));
  gt_free(out);
  gt_free(in);
}
