/* Streams in every direction at once, through the link model: the times that a profile would give.
   Local, and without MPI. */
#include <stdlib.h>

#include "internal.h"

#define FRAMES ((size_t)100) /* per stream */

typedef struct {
  gt_ns at;
  size_t link, bytes;
} frame;

static int by_time(const void *a, const void *b) {
  const frame *x = a, *y = b;
  return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                        : (x->link > y->link) - (x->link < y->link);
}

/* The link that is free first, among those with frames left. */
static size_t next_of(const gt_link_state *links, const size_t *left, size_t n) {
  size_t next = n;
  for (size_t to = 0; to < n; to++)
    if (left[to] > 0 && (next == n || links[to].busy_until < links[next].busy_until)) next = to;
  return next;
}

/* Sends all streams of a sender; those to region `to` start at frames[(to * n + from) * FRAMES]. */
static void send_row(const gt_probe_link *row, size_t n, size_t from, double access_bps,
                     frame *frames) {
  gt_link_state *links = GT_NEW_ARRAY(gt_link_state, n);
  size_t *left = GT_NEW_ARRAY(size_t, n);
  gt_access up = {.rate_bps = access_bps};
  for (size_t to = 0; to < n; to++) {
    links[to] = gt_link_start(0, from, to, 0);
    left[to] = to != from && row[to].profile_bps > 0 ? FRAMES : 0;
  }
  for (size_t to; (to = next_of(links, left, n)) < n;) {
    gt_link_spec spec = {.bandwidth_bps = row[to].profile_bps};
    size_t bytes = (size_t)(row[to].busy_bandwidth_bps / 8 / (double)FRAMES) + 1;
    gt_ns arrive = gt_link_step(&links[to], &spec, &up, bytes, 0).arrive;
    frames[(to * n + from) * FRAMES + --left[to]] = (frame){arrive, from * n + to, bytes};
  }
  gt_free(links);
  gt_free(left);
}

static void land(gt_landing *down, double *seconds) {
  const gt_ns passes = gt_landing_next(down);
  seconds[gt_landing_take(down).of.number] = gt_seconds(passes);
}

/* Puts the frames that came to a region, in order of time, through its access. */
static void pass_access(const frame *came, size_t n, const gt_probe_link *links,
                        const double *access_bps, gt_landing *down, double *seconds) {
  for (size_t i = 0; i < n * FRAMES; i++) {
    const gt_link_spec spec = {.bandwidth_bps = links[came[i].link].profile_bps};
    const size_t from = came[i].link / n;
    const gt_landing_frame f = {.arrive = came[i].at,
                                .from = from,
                                .bytes = came[i].bytes,
                                .stream_bps = gt_link_stream_bps(&spec, access_bps[from]),
                                .of.number = came[i].link};
    if (came[i].bytes == 0) continue;
    while (gt_landing_next(down) <= came[i].at) land(down, seconds);
    gt_landing_put(down, &f);
  }
  while (gt_landing_next(down) != GT_NEVER) land(down, seconds);
}

void gt_probe_together(const gt_probe_link *links, size_t n, const double *access_bps,
                       double *seconds) {
  frame *frames = GT_NEW_ARRAY(frame, n * n * FRAMES);
  for (size_t r = 0; r < n; r++) send_row(&links[r * n], n, r, access_bps[r], frames);
  for (size_t r = 0; r < n; r++) {
    frame *came = &frames[r * n * FRAMES];
    gt_landing down;
    gt_landing_open(&down, n);
    down.access.rate_bps = access_bps[r];
    qsort(came, n * FRAMES, sizeof *came, by_time);
    pass_access(came, n, links, access_bps, &down, seconds);
    gt_landing_close(&down);
  }
  gt_free(frames);
}
