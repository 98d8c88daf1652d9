/* Which regions' links share one access, and the rate of each link, from what streams in every
   direction at once carried beside what each link carries alone.  Local, and without MPI.

   An access is one rate of each direction (link.h).  It is written of a region that carried less
   at once than its links' single rates promise, where one such rate explains that: the other
   direction carried no more, no single link does, and links that were as fast as alone were no
   faster than those that were slowed.  What no access explains (one that sends at another rate than
   it receives, a path that regions share, one link's two directions) is the link's own: its rate at
   once in the place of its single rate.  So a profile gives at once what was measured at once. */
#include <math.h>

#include "internal.h"

#define MARGIN 0.15 /* less at once than promised by no more is noise */
#define LESS   0.75 /* than a link that was not slowed, in bit/s and in its share: no access did that */
#define EXCESS 0.35 /* the link model gives a region so much more than it carried: not noise */
#define UNFAIR 0.4  /* of its part is what a stream that shares a rate has at least */

/* A region's links of one direction: n of them, `stride` apart. */
typedef struct {
  gt_probe_link *first;
  size_t n, stride;
  double carried_bps;               /* at once */
  double promised_bps, fastest_bps; /* alone: of all together, and of one */
  double slowed_bps, untouched_bps; /* at once: of the fastest that was slowed, and that was not */
  double slowed_share;              /* of its single rate, greatest */
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

/* All bits over the longest time: links that share a rate keep it busy until the last of them ends,
   however they divide it. */
static double together_bps(const side *s, int round) {
  double bits = 0, longest_s = 0;
  for (size_t i = 0; i < s->n; i++) {
    bits += at(s, i)->together[round].bits;
    longest_s = fmax(longest_s, at(s, i)->together[round].s);
  }
  return longest_s > 0 ? bits / longest_s : 0;
}

/* What disturbs a round only ever takes away. */
static int best_round(const side *s, int from) {
  int best = from;
  for (int k = from + 1; k < GT_PROBE_ROUNDS; k++)
    if (together_bps(s, k) > together_bps(s, best)) best = k;
  return best;
}

/* Streams of the first round are made for single rates: where these do not hold, some end sooner
   than others, and the others then get more. */
static void take_busy(const side *row) {
  int best = best_round(row, 1);
  for (size_t i = 0; i < row->n; i++) at(row, i)->busy_bandwidth_bps = stream_bps(&at(row, i)->together[best]);
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

/* Whether an access of this rate is why the links carried less than promised. */
static bool explains(double access_bps, const side *s) {
  bool less = s->carried_bps < (1 - MARGIN) * s->promised_bps, full = s->carried_bps >= (1 - MARGIN) * access_bps;
  return less && full && (s->slowed_bps >= LESS * s->untouched_bps || s->slowed_share >= LESS);
}

static double access_of(const side *out, const side *in) {
  double bps = fmax(out->carried_bps, in->carried_bps);
  if (fmax(out->fastest_bps, in->fastest_bps) > bps / (1 - MARGIN)) return 0; /* one link alone carries more */
  return explains(bps, out) || explains(bps, in) ? bps : 0;
}

/* Its part is as much as the others have, or, where frames queue for the access, in proportion to
   its single rate. */
static bool takes_its_part(double access_bps, const side *s, const gt_probe_link *l) {
  double part = fmin(s->slowed_bps, l->bandwidth_bps * s->carried_bps / s->promised_bps);
  return access_bps > 0 && l->busy_bandwidth_bps >= UNFAIR * part;
}

/* `shared`: by an access, which holds the links to what they carry at once. */
static double own_bps(const gt_probe_link *l, bool shared) {
  double bps = l->fit_bandwidth_bps > 0 ? l->fit_bandwidth_bps : l->bandwidth_bps;
  if (shared) return bps;
  if (slowed(l)) bps = fmin(bps, l->busy_bandwidth_bps);
  return l->sustained_bps > 0 ? fmin(bps, l->sustained_bps) : bps;
}

/* What the region carries when all links go on for long; without such a measurement: at once. */
static double lasting_bps(const side *s) {
  double sustained = 0, busy = 0;
  for (size_t i = 0; i < s->n; i++) {
    busy += at(s, i)->busy_bandwidth_bps;
    sustained += fmin(at(s, i)->sustained_bps, at(s, i)->busy_bandwidth_bps);
  }
  return sustained > 0 ? s->carried_bps * sustained / busy : s->carried_bps;
}

/* Links of a region that is still promised more than it carried get their rate at once.  Returns
   whether there were any. */
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

/* The link model has the last word: what took a second at once must do so in the profile. */
static void check(gt_probe_link *links, size_t n, const side *out, const side *in, const double *access_bps) {
  double *seconds = GT_NEW_ARRAY(double, n *n);
  for (bool again = true; again;) {
    again = false;
    gt_probe_together(links, n, access_bps, seconds);
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
    l->profile_bps = own_bps(l, takes_its_part(access_bps[i / n], &out[i / n], l) || takes_its_part(access_bps[i % n], &in[i % n], l));
  }
  check(links, n, out, in, access_bps);
  for (size_t r = 0; r < n; r++)
    if (access_bps[r] > 0) access_bps[r] = fmax(lasting_bps(&out[r]), lasting_bps(&in[r]));
  gt_free(out);
  gt_free(in);
}
