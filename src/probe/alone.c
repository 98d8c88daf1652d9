/* Measures one direction between two regions while no other link of the two is in use.  Times are
   round trips minus the one-way time of the answer. */
#include "prober.h"

#define PINGS      12
#define SPAN_S     2.0 /* upper limit for the pings and for a stream of one direction */
#define PAUSE_S    1.1
#define SHORT_S    0.6 /* pause with many regions */
#define EMULATED_S 0.2 /* pause on an emulated link */
#define IDLE_SIZE  3   /* index in gt_probe_sizes: 256 KiB */
#define PLAIN      1.2 /* a slow start must lengthen such a message by this factor to be detected */

static void measure_latency(gt_prober *b, size_t peer, gt_probe_link *l) {
  double times[PINGS];
  size_t n = 0;
  gt_ns until = gt_now() + gt_from_seconds(SPAN_S);
  (void)gt_prober_ping(b, peer); /* connects */
  while (n < PINGS && (n < 3 || gt_now() < until)) times[n++] = gt_prober_ping(b, peer);
  l->latency_s = gt_probe_median(times, n) / 2;
}

/* Seconds until a stream is answered. */
static double stream(gt_prober *b, size_t peer, size_t chunk, uint64_t total) {
  gt_ns from = gt_now();
  gt_prober_send_stream(b, peer, chunk, total);
  return gt_seconds(gt_prober_await(b, peer) - from);
}

/* From a message that is large enough to measure; much too high for a small one. */
static double guess_rate_bps(gt_prober *b, size_t peer, double rtt_s) {
  double rate = 0, spent = 0;
  for (size_t bytes = (size_t)16 << 10; bytes <= GT_FRAME_PAYLOAD_MAX && spent < SPAN_S / 4;
       bytes *= 8) {
    double t = gt_prober_message(b, peer, bytes), carried = t - rtt_s > t / 16 ? t - rtt_s : t / 16;
    rate = 8 * (double)gt_wire_bytes(bytes) / (carried > 1e-6 ? carried : 1e-6);
    spent += t;
  }
  return rate;
}

/* Bits of a stream over its time minus one round trip for the answer.  The result never exceeds the
   link's rate, and is a little below it while TCP still probes for the rate.  So the best of three
   is taken. */
static void measure_bandwidth(gt_prober *b, size_t peer, gt_probe_link *l) {
  double rate = guess_rate_bps(b, peer, 2 * l->latency_s);
  for (int good = 0, attempt = 0; good < 3 && attempt < 5; attempt++) {
    size_t chunk;
    uint64_t total;
    gt_prober_shape(b, rate, &chunk, &total);
    double whole = stream(b, peer, chunk, total), carried = whole - 2 * l->latency_s;
    rate = gt_prober_wire_bits(chunk, total) / (carried > whole / 16 ? carried : whole);
    good += whole > GT_PROBER_STREAM_S / 3;
    if (rate > l->bandwidth_bps || good <= 1) l->bandwidth_bps = rate;
  }
}

/* Long enough for TCP to reset its congestion window; for an emulated link the job gives that
   time. */
static double pause_before(const gt_prober *b, size_t peer) {
  const gt_link_spec *said = &gt_links_from(b->p->run.links, b->self)[peer];
  if (b->p->run.job->wan.emulate)
    return said->window_bytes > 0 ? 1.2 * said->idle_s + EMULATED_S : EMULATED_S;
  return b->n > GT_PROBER_MANY ? SHORT_S : PAUSE_S;
}

static void measure_sizes(gt_prober *b, size_t peer, gt_probe_link *l) {
  double times[3];
  size_t repeats = b->n > GT_PROBER_MANY ? 1 : 3;
  l->pause_s = pause_before(b, peer);
  l->time_s[0] = l->latency_s;
  for (size_t i = 1; i < GT_PROBE_SIZES; i++) {
    double ideal_s = 8 * (double)gt_probe_sizes[i] / l->bandwidth_bps + 2 * l->latency_s;
    if (ideal_s > SPAN_S || (gt_probe_sizes[i] > (size_t)4 << 20 && b->n > GT_PROBER_MANY)) return;
    for (size_t k = 0; k < repeats; k++) {
      gt_prober_idle(b, l->pause_s);
      times[k] = gt_prober_message(b, peer, gt_probe_sizes[i]) - l->latency_s;
    }
    double t = gt_probe_median(times, repeats);
    l->time_s[i] = t > 1e-6 ? t : 1e-6;
  }
}

/* Fills the link with a stream, then pauses; returns the one-way time of the next message in
   seconds. */
static double after_silence(gt_prober *b, size_t peer, const gt_probe_link *l, double pause_s) {
  double t[2];
  for (size_t k = 0; k < 2; k++) {
    size_t chunk;
    uint64_t total;
    gt_prober_shape(b, l->bandwidth_bps / 2, &chunk, &total);
    gt_prober_send_stream(b, peer, chunk, total);
    gt_prober_await(b, peer);
    gt_prober_idle(b, pause_s);
    t[k] = gt_prober_message(b, peer, gt_probe_sizes[IDLE_SIZE]) - l->latency_s;
  }
  return t[0] < t[1] ? t[0] : t[1];
}

/* Finds the silence after which the window is small again: the first pause after which a message
   takes closer to its time after a long pause than to its time without one. */
static void measure_idle(gt_prober *b, size_t peer, gt_probe_link *l) {
  static const double pauses[] = {0.1, 0.2, 0.4, 0.8};
  double cold = l->time_s[IDLE_SIZE];
  if (l->window_bytes <= 0 || l->idle_s <= 0 || cold <= 0 || b->n > GT_PROBER_MANY) return;
  double warm = after_silence(b, peer, l, 0);
  if (cold < PLAIN * warm) return;
  double before = 0;
  for (size_t i = 0; i < sizeof pauses / sizeof *pauses && pauses[i] < l->pause_s; i++) {
    double silence = pauses[i] + 2 * l->latency_s; /* the answer to the stream took a round trip */
    l->idle_s = (before + silence) / 2;
    if (after_silence(b, peer, l, pauses[i]) > (cold + warm) / 2) return;
    before = silence;
  }
  l->idle_s = l->pause_s;
}

void gt_probe_first(gt_prober *b, size_t peer) {
  (void)gt_prober_ping(b, peer); /* connects */
  double rtt_s = gt_prober_ping(b, peer);
  b->p->links[peer].fresh_s = gt_prober_message(b, peer, GT_PROBE_FRESH) - rtt_s / 2;
}

void gt_probe_alone(gt_prober *b, size_t peer) {
  gt_probe_link *l = &b->p->links[peer];
  measure_latency(b, peer, l);
  measure_bandwidth(b, peer, l);
  measure_sizes(b, peer, l);
  gt_probe_fit(l);
  measure_idle(b, peer, l);
}
