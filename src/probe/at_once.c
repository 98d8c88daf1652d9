/* Measures every direction between the regions at once, as in training. */
#include <math.h>

#include "prober.h"

#define SHAPING 2 /* rounds whose results set the size of the next round's streams */

/* Streams to every peer at the same time, as in training.  Each is sized for GT_PROBER_STREAM_S at
   its rate, or for the given bytes if that is more. */
static void stream_together(gt_prober *b, double bytes, const double *rate_bps,
                            gt_probe_stream *streams) {
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s * (double)b->n);
  gt_prober_meet(b);
  gt_ns from = gt_now();
  for (size_t peer = 0; peer < b->n; peer++) {
    size_t chunk;
    uint64_t total;
    if (peer == b->self) continue;
    gt_prober_shape(b, fmax(8 * bytes / GT_PROBER_STREAM_S, rate_bps[peer]), &chunk, &total);
    gt_prober_send_stream(b, peer, chunk, total);
    until +=
        gt_from_seconds(10 * gt_prober_wire_bits(chunk, total) / b->p->links[peer].bandwidth_bps);
    streams[peer].bits = gt_prober_wire_bits(chunk, total);
  }
  gt_backoff_reset(&b->backoff);
  for (size_t peer = 0; peer < b->n; peer++) {
    if (peer == b->self) continue;
    double whole = gt_seconds(gt_prober_await_until(b, peer, until) - from),
           carried = whole - 2 * b->p->links[peer].latency_s;
    streams[peer].s = carried > whole / 16 ? carried : whole;
  }
  gt_prober_meet(b);
}

/* The rate that the next stream is sized for, bounded so that a disturbed measurement makes it
   neither too short nor endless. */
static double shaping_bps(const gt_prober *b, const gt_probe_link *l, const gt_probe_stream *last) {
  return fmin(l->bandwidth_bps, fmax(last->bits / last->s, l->bandwidth_bps / (4 * (double)b->n)));
}

/* Rounds of streams, the first of which set the sizes of the others; then the sustained rate if it
   is requested. */
static void measure_together(gt_prober *b) {
  gt_probe_link *links = b->p->links;
  double *rate_bps = GT_NEW_ARRAY(double, b->n);
  gt_probe_stream *streams = GT_NEW_ARRAY(gt_probe_stream, b->n);
  for (size_t peer = 0; peer < b->n; peer++) rate_bps[peer] = links[peer].bandwidth_bps;
  for (int round = 0; round < GT_PROBE_ROUNDS; round++) {
    stream_together(b, 0, rate_bps, streams);
    for (size_t peer = 0; peer < b->n; peer++) {
      links[peer].together[round] = streams[peer];
      if (peer != b->self && round < SHAPING)
        rate_bps[peer] = shaping_bps(b, &links[peer], &streams[peer]);
    }
  }
  if (b->p->options->sustained && b->p->run.graph) {
    const gt_arrays *a = gt_graph_arrays(b->p->run.graph);
    stream_together(b, (double)((a->params.n + a->buffers.n) * sizeof(float)), rate_bps, streams);
    for (size_t peer = 0; peer < b->n; peer++)
      if (peer != b->self) links[peer].sustained_bps = streams[peer].bits / streams[peer].s;
  }
  gt_free(rate_bps);
  gt_free(streams);
}

/* The round trip of a ping while this rank's stream to the peer, and all other streams, are in
   progress. */
static void ping_together(gt_prober *b) {
  for (size_t peer = 0; peer < b->n; peer++) {
    gt_probe_link *l = &b->p->links[peer];
    size_t chunk;
    uint64_t total;
    gt_prober_meet(b);
    for (size_t other = 0; other < b->n; other++) {
      if (other == b->self) continue;
      gt_prober_shape(b, b->p->links[other].bandwidth_bps / 2, &chunk, &total);
      gt_prober_send_stream(b, other, chunk, total);
    }
    gt_prober_idle(b, 2 * l->latency_s);
    double times[3];
    for (size_t k = 0; peer != b->self && k < 3; k++) times[k] = gt_prober_ping(b, peer);
    if (peer != b->self) l->busy_latency_s = gt_probe_median(times, 3) / 2;
    while (gt_gateway_poll(b->gateway, gt_now()) || gt_gateway_next(b->gateway, NULL) != GT_NEVER)
      gt_prober_turn(b, GT_BACKOFF_IDLE, GT_NEVER);
  }
  gt_prober_meet(b);
}

void gt_probe_at_once(gt_prober *b) {
  measure_together(b);
  ping_together(b);
}
