/* Measures links over the transport of training: the gateway, emulated if the job says so.  Clocks
   of hosts are never compared: times are round trips minus the one-way time of a 64-byte answer.
   Regions meet in pairs as in a round-robin tournament: while one direction of a pair is measured,
   no other link of the two regions is in use. */
#include <math.h>

#include "internal.h"

/* ---- messages between PS ranks --------------------------------------------------------------- */

#define STREAM_S     1.2            /* intended duration of a stream */
#define MANY         4              /* with more regions than this the probe measures less */
#define FINE         ((gt_ns)50000) /* longest sleep while times are measured */
#define MESSAGES_MAX 256
#define SMALLEST     ((size_t)16 << 10)
#define LAST         1 /* detail of the last message of a stream, which is answered */

typedef struct {
  uint64_t awaited;
  bool here;
  gt_ns at;
} answer;

/* A rank that waits for an answer keeps answering the others.  A wait for a peer that exceeds
   p->limit_s, or a longer limit for meet, aborts the job (panic with 7). */
typedef struct {
  gt_probe_state *p; /* borrowed */
  gt_gateway *gateway;
  size_t n, self, largest; /* largest: bytes of the largest message */
  uint8_t *payload;        /* used for all messages */
  uint64_t sequence, last_id;
  answer *answers; /* nregions */
  gt_backoff backoff;
  gt_ns meet_until;
} prober;

static void answer_back(prober *b, size_t peer, uint64_t id, gt_ns now) {
  gt_frame_header head = {.kind = GT_MSG_PONG, .value = id};
  gt_gateway_send(b->gateway, peer, &head, NULL, 0, 0, now);
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  prober *b = ctx;
  (void)payload;
  bool asks = head->kind == GT_MSG_PING || (head->kind == GT_MSG_UPDATE && head->detail == LAST);
  if (asks)
    answer_back(b, peer, head->value, now);
  else if (head->kind == GT_MSG_PONG && head->value == b->answers[peer].awaited)
    b->answers[peer] = (answer){.awaited = head->value, .here = true, .at = now};
}

/* One turn of progress; if nothing can progress, sleeps for at most `cap` and not beyond
   `until`. */
static void turn(prober *b, gt_ns cap, gt_ns until) {
  if (gt_gateway_poll(b->gateway, gt_now())) {
    gt_backoff_reset(&b->backoff);
    return;
  }
  gt_ns next = gt_gateway_next(b->gateway, NULL);
  gt_backoff_sleep(&b->backoff, cap, next < until ? next : until);
}

static _Noreturn void lost(const prober *b, size_t peer) {
  const gt_job *job = b->p->run.job;
  gt_panic(GT_ERR_NOGO,
           "NO-GO: waited %g s for an answer of region %s to region %s; messages passed at first, "
           "then the link fell silent",
           b->p->limit_s, job->regions[peer].name, job->regions[b->self].name);
}

/* Returns the time at which the answer to the last message to the peer came; waits until `until` at
   most. */
static gt_ns await_until(prober *b, size_t peer, gt_ns until) {
  while (!b->answers[peer].here) {
    turn(b, FINE, until);
    if (gt_now() > until) lost(b, peer);
  }
  return b->answers[peer].at;
}

static gt_ns await(prober *b, size_t peer) {
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s);
  gt_backoff_reset(&b->backoff);
  return await_until(b, peer, until);
}

static void idle(prober *b, double seconds) {
  gt_ns until = gt_now() + gt_from_seconds(seconds);
  gt_backoff_reset(&b->backoff);
  while (gt_now() < until) turn(b, GT_BACKOFF_IDLE, until);
}

static void poll(void *context) {
  prober *b = context;
  if (gt_now() > b->meet_until)
    gt_panic(GT_ERR_NOGO, "NO-GO: region %s waited for the other regions' measurements in vain",
             b->p->run.region);
  turn(b, FINE, GT_NEVER);
}

/* A barrier of the PS ranks. */
static void meet(prober *b) {
  const double limit_s = b->p->limit_s * (double)(4 * b->n);
  b->meet_until = gt_now() + gt_from_seconds(limit_s);
  gt_backoff_reset(&b->backoff);
  gt_peers_meet(b->p->run.roles.ps, &(gt_peers_wait){.what = "the other regions' measurements",
                                                     .limit_s = 2 * limit_s,
                                                     .progress = poll,
                                                     .context = b,
                                                     .sleeps = true});
}

static uint64_t expect(prober *b, size_t peer) {
  b->answers[peer] = (answer){.awaited = ++b->last_id};
  return b->last_id;
}

/* Returns the seconds until a ping is answered. */
static double ping(prober *b, size_t peer) {
  gt_ns from = gt_now();
  gt_frame_header head = {.kind = GT_MSG_PING, .value = expect(b, peer)};
  gt_gateway_send(b->gateway, peer, &head, NULL, 0, 0, from);
  return gt_seconds(await(b, peer) - from);
}

/* Sends `total` messages of `chunk` bytes, the last of which is answered; does not wait. */
static void send_stream(prober *b, size_t peer, size_t chunk, uint64_t total) {
  gt_frame_header head = {.kind = GT_MSG_UPDATE, .value = expect(b, peer)};
  for (uint64_t i = 0; i < total; i++) {
    head.sequence = ++b->sequence;
    head.detail = i + 1 == total ? LAST : 0;
    gt_gateway_send(b->gateway, peer, &head, b->payload, chunk, 0, gt_now());
  }
}

/* Returns the seconds until one message of this size is answered. */
static double message(prober *b, size_t peer, size_t bytes) {
  gt_ns from = gt_now();
  send_stream(b, peer, bytes, 1);
  return gt_seconds(await(b, peer) - from);
}

/* Sizes a stream for STREAM_S: one message, cut into frames as in training, or several messages of
   one size if the link is fast. */
static void shape(const prober *b, double rate_bps, size_t *bytes, uint64_t *total) {
  double all = rate_bps * STREAM_S / 8, n = ceil(all / (double)b->largest);
  *total = n < 1 ? 1 : n > MESSAGES_MAX ? MESSAGES_MAX : (uint64_t)n;
  double each = all / (double)*total;
  *bytes = each < (double)SMALLEST     ? SMALLEST
           : each > (double)b->largest ? b->largest
                                       : (size_t)each;
}

/* Returns the bits of such a stream, including headers. */
static double wire_bits(size_t bytes, uint64_t total) {
  return 8 * (double)gt_wire_bytes(bytes) * (double)total;
}

static void open_prober(prober *b, gt_probe_state *p) {
  gt_run *run = &p->run;
  size_t n = run->job->nregions,
         largest = gt_probe_sizes[n > MANY ? GT_PROBE_SIZES - 2 : GT_PROBE_SIZES - 1];
  *b = (prober){.p = p,
                .n = n,
                .self = run->roles.region_id,
                .largest = largest,
                .payload = gt_alloc(largest, 1)};
  b->answers = GT_NEW_ARRAY(answer, n);
  b->gateway =
      gt_setup_gateway(run, largest, &(gt_gateway_events){.ctx = b, .on_message = on_message});
  gt_gateway_begin(b->gateway, gt_now());
}

/* Waits, p->limit_s at most, until all messages are sent. */
static void flush(prober *b) {
  bool large = false;
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s);
  while (gt_gateway_next(b->gateway, &large) != GT_NEVER || large) {
    turn(b, GT_BACKOFF_IDLE, until);
    if (gt_now() > until) return;
  }
}

static void close_prober(prober *b) {
  flush(b);
  meet(b);
  gt_gateway_close(b->gateway, b->p->run.end_limit_s);
  gt_free(b->answers);
  gt_free(b->payload);
}

/* ---- a direction alone ----------------------------------------------------------------------- */

#define PINGS      12
#define SPAN_S     2.0 /* upper limit for the pings and for a stream of one direction */
#define PAUSE_S    1.1
#define SHORT_S    0.6 /* pause with many regions */
#define EMULATED_S 0.2 /* pause on an emulated link */
#define IDLE_SIZE  3   /* index in gt_probe_sizes: 256 KiB */
#define PLAIN      1.2 /* a slow start must lengthen such a message by this factor to be detected */

static void measure_latency(prober *b, size_t peer, gt_probe_link *l) {
  double times[PINGS];
  size_t n = 0;
  gt_ns until = gt_now() + gt_from_seconds(SPAN_S);
  (void)ping(b, peer); /* connects */
  while (n < PINGS && (n < 3 || gt_now() < until)) times[n++] = ping(b, peer);
  l->latency_s = gt_probe_median(times, n) / 2;
}

/* Returns the seconds until a stream is answered. */
static double stream(prober *b, size_t peer, size_t chunk, uint64_t total) {
  gt_ns from = gt_now();
  send_stream(b, peer, chunk, total);
  return gt_seconds(await(b, peer) - from);
}

/* Estimates the rate from a message that is large enough to measure; much too high for a small
   one. */
static double guess_rate_bps(prober *b, size_t peer, double rtt_s) {
  double rate = 0, spent = 0;
  for (size_t bytes = (size_t)16 << 10; bytes <= GT_FRAME_PAYLOAD_MAX && spent < SPAN_S / 4;
       bytes *= 8) {
    double t = message(b, peer, bytes), carried = t - rtt_s > t / 16 ? t - rtt_s : t / 16;
    rate = 8 * (double)gt_wire_bytes(bytes) / (carried > 1e-6 ? carried : 1e-6);
    spent += t;
  }
  return rate;
}

/* Computes the rate from the bits of a stream and its time, minus one round trip for the answer.
   The result never exceeds the link's rate, and is a little below it while TCP still probes for the
   rate.  So the best of three counts. */
static void measure_bandwidth(prober *b, size_t peer, gt_probe_link *l) {
  double rate = guess_rate_bps(b, peer, 2 * l->latency_s);
  for (int good = 0, attempt = 0; good < 3 && attempt < 5; attempt++) {
    size_t chunk;
    uint64_t total;
    shape(b, rate, &chunk, &total);
    double whole = stream(b, peer, chunk, total), carried = whole - 2 * l->latency_s;
    rate = wire_bits(chunk, total) / (carried > whole / 16 ? carried : whole);
    good += whole > STREAM_S / 3;
    if (rate > l->bandwidth_bps || good <= 1) l->bandwidth_bps = rate;
  }
}

/* Long enough for TCP to reset its congestion window; for an emulated link the job gives that
   time. */
static double pause_before(const prober *b, size_t peer) {
  const gt_link_spec *said = &gt_links_from(b->p->run.links, b->self)[peer];
  if (b->p->run.job->wan.emulate)
    return said->window_bytes > 0 ? 1.2 * said->idle_s + EMULATED_S : EMULATED_S;
  return b->n > MANY ? SHORT_S : PAUSE_S;
}

static void measure_sizes(prober *b, size_t peer, gt_probe_link *l) {
  double times[3];
  size_t repeats = b->n > MANY ? 1 : 3;
  l->pause_s = pause_before(b, peer);
  l->time_s[0] = l->latency_s;
  for (size_t i = 1; i < GT_PROBE_SIZES; i++) {
    double ideal_s = 8 * (double)gt_probe_sizes[i] / l->bandwidth_bps + 2 * l->latency_s;
    if (ideal_s > SPAN_S || (gt_probe_sizes[i] > (size_t)4 << 20 && b->n > MANY)) return;
    for (size_t k = 0; k < repeats; k++) {
      idle(b, l->pause_s);
      times[k] = message(b, peer, gt_probe_sizes[i]) - l->latency_s;
    }
    double t = gt_probe_median(times, repeats);
    l->time_s[i] = t > 1e-6 ? t : 1e-6;
  }
}

/* Fills the link with a stream, then pauses; returns the one-way time of the next message in
   seconds. */
static double after_silence(prober *b, size_t peer, const gt_probe_link *l, double pause_s) {
  double t[2];
  for (size_t k = 0; k < 2; k++) {
    size_t chunk;
    uint64_t total;
    shape(b, l->bandwidth_bps / 2, &chunk, &total);
    send_stream(b, peer, chunk, total);
    await(b, peer);
    idle(b, pause_s);
    t[k] = message(b, peer, gt_probe_sizes[IDLE_SIZE]) - l->latency_s;
  }
  return t[0] < t[1] ? t[0] : t[1];
}

/* Finds the silence after which the window is small again: the first pause after which a message
   takes closer to its time after a long pause than to its time without one. */
static void measure_idle(prober *b, size_t peer, gt_probe_link *l) {
  static const double pauses[] = {0.1, 0.2, 0.4, 0.8};
  double cold = l->time_s[IDLE_SIZE];
  if (l->window_bytes <= 0 || l->idle_s <= 0 || cold <= 0 || b->n > MANY) return;
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

/* Sends the first large message to the peer; no large message may have been sent to the peer
   before. */
static void first_message(prober *b, size_t peer) {
  (void)ping(b, peer); /* connects */
  double rtt_s = ping(b, peer);
  b->p->links[peer].fresh_s = message(b, peer, GT_PROBE_FRESH) - rtt_s / 2;
}

/* Measures all of p->links[peer] except the first message and the figures at once. */
static void alone(prober *b, size_t peer) {
  gt_probe_link *l = &b->p->links[peer];
  measure_latency(b, peer, l);
  measure_bandwidth(b, peer, l);
  measure_sizes(b, peer, l);
  gt_probe_fit(l);
  measure_idle(b, peer, l);
}

/* ---- every direction at once, as in training ------------------------------------------------- */

#define SHAPING 2 /* rounds whose results set the size of the next round's streams */

/* Sends streams to every peer at the same time, as in training.  Each is sized for STREAM_S at its
   rate, or for the given bytes if that is more. */
static void stream_together(prober *b, double bytes, const double *rate_bps,
                            gt_probe_stream *streams) {
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s * (double)b->n);
  meet(b);
  gt_ns from = gt_now();
  for (size_t peer = 0; peer < b->n; peer++) {
    size_t chunk;
    uint64_t total;
    if (peer == b->self) continue;
    shape(b, fmax(8 * bytes / STREAM_S, rate_bps[peer]), &chunk, &total);
    send_stream(b, peer, chunk, total);
    until += gt_from_seconds(10 * wire_bits(chunk, total) / b->p->links[peer].bandwidth_bps);
    streams[peer].bits = wire_bits(chunk, total);
  }
  gt_backoff_reset(&b->backoff);
  for (size_t peer = 0; peer < b->n; peer++) {
    if (peer == b->self) continue;
    double whole = gt_seconds(await_until(b, peer, until) - from),
           carried = whole - 2 * b->p->links[peer].latency_s;
    streams[peer].s = carried > whole / 16 ? carried : whole;
  }
  meet(b);
}

/* Returns the rate that the next stream is sized for, bounded so that a disturbed measurement makes
   it neither too short nor endless. */
static double shaping_bps(const prober *b, const gt_probe_link *l, const gt_probe_stream *last) {
  return fmin(l->bandwidth_bps, fmax(last->bits / last->s, l->bandwidth_bps / (4 * (double)b->n)));
}

/* Rounds of streams, the first of which set the sizes of the others; then the sustained rate if it
   is requested. */
static void measure_together(prober *b) {
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

/* Measures the round trip of a ping while this rank's stream to the peer, and all other streams,
   are in progress. */
static void ping_together(prober *b) {
  for (size_t peer = 0; peer < b->n; peer++) {
    gt_probe_link *l = &b->p->links[peer];
    size_t chunk;
    uint64_t total;
    meet(b);
    for (size_t other = 0; other < b->n; other++) {
      if (other == b->self) continue;
      shape(b, b->p->links[other].bandwidth_bps / 2, &chunk, &total);
      send_stream(b, other, chunk, total);
    }
    idle(b, 2 * l->latency_s);
    double times[3];
    for (size_t k = 0; peer != b->self && k < 3; k++) times[k] = ping(b, peer);
    if (peer != b->self) l->busy_latency_s = gt_probe_median(times, 3) / 2;
    while (gt_gateway_poll(b->gateway, gt_now()) || gt_gateway_next(b->gateway, NULL) != GT_NEVER)
      turn(b, GT_BACKOFF_IDLE, GT_NEVER);
  }
  meet(b);
}

static void at_once(prober *b) {
  measure_together(b);
  ping_together(b);
}

/* ---- a direction as a pipeline uses it ------------------------------------------------------- */

/* Messages from one region to another as a pipeline sends them: one after the other, so that no
   silence makes a connection start slowly. */

#define PINGS_FLEET    12
#define MESSAGES_FLEET 3
#define LONG_S         2.0 /* a message that would take longer is cut */

/* Returns the bytes of the large message, less over a slow link. */
static size_t large_bytes(const gt_probe_link *l) {
  const double most = l->bandwidth_bps * LONG_S / 8;
  if (l->bandwidth_bps <= 0 || most >= GT_PIPE_LARGE_BYTES) return GT_PIPE_LARGE_BYTES;
  return most < GT_PIPE_USUAL_BYTES ? GT_PIPE_USUAL_BYTES : (size_t)most;
}

static void direction(prober *b, size_t peer) {
  gt_probe_link *l = &b->p->links[peer];
  const size_t bytes = large_bytes(l);
  double times[PINGS_FLEET];
  for (size_t i = 0; i < PINGS_FLEET; i++) times[i] = ping(b, peer);
  const double answer_s = gt_probe_median(times, PINGS_FLEET) / 2;
  for (size_t i = 0; i < PINGS_FLEET; i++) times[i] = message(b, peer, GT_PIPE_SMALL_BYTES);
  l->small_s = fmax(gt_probe_median(times, PINGS_FLEET) - answer_s, answer_s);
  (void)message(b, peer, bytes); /* opens the window */
  for (size_t i = 0; i < MESSAGES_FLEET; i++) times[i] = message(b, peer, bytes);
  const double carried_s = gt_probe_median(times, MESSAGES_FLEET) - answer_s - l->small_s;
  l->large_s = l->small_s + fmax(carried_s, 0) * GT_PIPE_LARGE_BYTES / (double)bytes;
}

/* ---- the order of the measurements ----------------------------------------------------------- */

size_t gt_probe_partner(size_t n, size_t round, size_t self) {
  size_t even = n + n % 2, last = even - 1, other;
  if (self == last)
    other = round;
  else if (self == round)
    other = last;
  else
    other = (2 * round + last - self) % last;
  return other < n ? other : n;
}

/* Measures each direction in its turn. */
static void in_turns(prober *b, void (*measure)(prober *b, size_t peer)) {
  for (size_t round = 0; round + 1 < b->n + b->n % 2; round++) {
    size_t peer = gt_probe_partner(b->n, round, b->self);
    for (int half = 0; half < 2; half++) {
      meet(b);
      if (peer < b->n && (b->self < peer) == (half == 0)) measure(b, peer);
    }
  }
  meet(b);
}

static void first_messages(gt_probe_state *p) {
  prober b;
  open_prober(&b, p);
  in_turns(&b, first_message);
  close_prober(&b);
}

static void probe_ps(gt_probe_state *p) {
  prober b;
  open_prober(&b, p);
  in_turns(&b, alone);
  at_once(&b);
  if (p->options->fleet) in_turns(&b, direction);
  close_prober(&b);
}

void gt_probe_first_messages(gt_probe_state *p) {
  p->links = GT_NEW_ARRAY(gt_probe_link, p->run.job->nregions);
  if (p->run.roles.is_ps) first_messages(p);
  gt_probe_meet(p, "the first messages between the regions");
}

void gt_probe_links(gt_probe_state *p) {
  if (p->run.roles.is_ps) probe_ps(p);
  gt_probe_meet(p, "the measurement of the links");
}
