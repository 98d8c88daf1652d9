/* The receiver's access: when a frame has passed it.  Frames are taken in the order in which they
   are complete.  Each frame uses access time that earlier frames left unused, from its first bit
   on, limited by the bits that have arrived (docs/link-model.md). */
#include <math.h>
#include <string.h>

#include "geotrain/link.h"

#define LEAST_NS 1.0 /* a gap with less time left is dropped */

/* A frame on its way through the access: its bits come in evenly between first and last. */
typedef struct {
  gt_ns first, last;
  double takes_ns; /* access time that the whole frame takes */
} passage;

/* Returns the access time of the bits that have come in by t. */
static double come_by(const passage *p, gt_ns t) {
  if (t >= p->last) return p->takes_ns;
  return p->takes_ns * (double)(t - p->first) / (double)(p->last - p->first);
}

/* ---- gaps, oldest first; if full, the oldest is dropped -------------------------------------- */

static void append(gt_access *a, gt_access_gap gap) {
  if (gap.left_ns < LEAST_NS) return;
  if (a->ngaps == GT_ACCESS_GAPS) memmove(a->gaps, a->gaps + 1, --a->ngaps * sizeof *a->gaps);
  a->gaps[a->ngaps++] = gap;
}

/* Makes room for a gap before gaps[i]; i > 0 if the array is full.  Returns its index. */
static size_t open_place(gt_access *a, size_t i) {
  if (a->ngaps == GT_ACCESS_GAPS) {
    memmove(a->gaps, a->gaps + 1, (i - 1) * sizeof *a->gaps);
    return i - 1;
  }
  memmove(a->gaps + i + 1, a->gaps + i, (a->ngaps++ - i) * sizeof *a->gaps);
  return i;
}

/* Splits the gap that contains t, if any.  Returns the first gap that begins at t or later. */
static size_t cut(gt_access *a, gt_ns t) {
  size_t i = 0;
  while (i < a->ngaps && a->gaps[i].until <= t) i++;
  if (i == a->ngaps || a->gaps[i].from >= t) return i;
  gt_access_gap early = a->gaps[i];
  early.left_ns *= (double)(t - early.from) / (double)(early.until - early.from);
  early.until = t;
  a->gaps[i].from = t;
  a->gaps[i].left_ns -= early.left_ns;
  if (i == 0 && a->ngaps == GT_ACCESS_GAPS) return 0;
  size_t place = open_place(a, i);
  a->gaps[place] = early;
  return place + 1;
}

/* Returns the part of the frame's time that fits into gaps. */
static double pass_in_gaps(gt_access *a, const passage *p) {
  double passed_ns = 0;
  size_t i = cut(a, p->first), kept = i;
  for (; i < a->ngaps; i++) {
    gt_access_gap gap = a->gaps[i];
    double part_ns = fmax(0, fmin(gap.left_ns, come_by(p, gap.until) - passed_ns));
    passed_ns += part_ns;
    gap.left_ns -= part_ns;
    if (gap.left_ns >= LEAST_NS) a->gaps[kept++] = gap;
  }
  a->ngaps = kept;
  return passed_ns;
}

/* The rest passes after all earlier frames: evenly until the last bit has come in, or without a
   pause if that interval is too short. */
static void pass_after(gt_access *a, const passage *p, double rest_ns) {
  gt_ns begin = p->first > a->busy_until ? p->first : a->busy_until,
        end = begin + (gt_ns)(rest_ns + 0.5);
  append(a, (gt_access_gap){a->busy_until, begin, (double)(begin - a->busy_until)});
  if (end < p->last) {
    append(a, (gt_access_gap){begin, p->last, (double)(p->last - begin) - rest_ns});
    end = p->last;
  }
  a->busy_until = end;
}

gt_ns gt_access_pass(gt_access *down, size_t size_bytes, double stream_bps, gt_ns arrive) {
  const double bits = 8.0 * (double)size_bytes;
  if (down->rate_bps <= 0.0) return arrive;
  passage p = {.last = arrive, .takes_ns = 1e9 * bits / down->rate_bps};
  p.first = stream_bps > 0.0 ? arrive - gt_from_seconds(bits / stream_bps) : arrive;
  pass_after(down, &p, p.takes_ns - pass_in_gaps(down, &p));
  return arrive > down->busy_until ? arrive : down->busy_until;
}
