/* Streams in every direction at once, through the link model: the times that a profile would give.
   Local, and without MPI. */
#include <stdlib.h>

#include "internal.h"

#define FRAMES ((size_t)100) /* per stream */

static int by_time(const void *a, const void *b) {
  const gt_landing_frame *x = a, *y = b;
  return x->arrive != y->arrive ? (x->arrive > y->arrive) - (x->arrive < y->arrive)
                                : (x->of.number > y->of.number) - (x->of.number < y->of.number);
}

/* The link that is free first, among those with frames left. */
static size_t next_of(const gt_link_state *links, const size_t *left, size_t n) {
  size_t next = n;
  for (size_t to = 0; to < n; to++)
    if (left[to] > 0 && (next == n || links[to].busy_until < links[next].busy_until)) next = to;
  return next;
}

/* Sends all streams of a sender.  Those to region `to` are added to frames[to * n * FRAMES], of
   which there are came[to]. */
static void send_row(const gt_probe_link *row, size_t n, size_t from, double access_bps,
                     gt_landing_frame *frames, size_t *came) {
  gt_link_state *links = GT_NEW_ARRAY(gt_link_state, n);
  size_t *left = GT_NEW_ARRAY(size_t, n);
  gt_access up = {.rate_bps = access_bps};
  for (size_t to = 0; to < n; to++) {
    links[to] = gt_link_start(0, from, to, 0);
    left[to] = to != from && row[to].profile_bps > 0 ? FRAMES : 0;
  }
  for (size_t to; (to = next_of(links, left, n)) < n; left[to]--) {
    const gt_link_spec spec = {.bandwidth_bps = row[to].profile_bps};
    const size_t bytes = (size_t)(row[to].busy_bandwidth_bps / 8 / (double)FRAMES) + 1;
    frames[to * n * FRAMES + came[to]++] =
        (gt_landing_frame){.arrive = gt_link_step(&links[to], &spec, &up, bytes, 0).arrive,
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

void gt_probe_together(const gt_probe_link *links, size_t n, const double *access_bps,
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
