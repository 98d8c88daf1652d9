/* Links measured over the transport of training: the gateway, emulated where the job says so.  Clocks of hosts are never compared: times are round trips less the flight
   of a 64-byte answer.  Regions meet in pairs as in a round-robin tournament: while one direction of a pair is measured, no other link of the two regions is in
   use. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define FINE         ((gt_ns)50000) /* longest sleep while times are taken */
#define PINGS        12
#define SPAN_S       2.0 /* pings, and a stream, of one direction last no longer */
#define STREAM_S     1.2
#define MESSAGES_MAX 256
#define SHAPING      2 /* rounds of streams at once by which the next are made */
#define SMALLEST     ((size_t)16 << 10)
#define PAUSE_S      1.1
#define SHORT_S      0.6 /* pause where there are many regions */
#define EMULATED_S   0.2 /* pause on an emulated link */
#define MANY_REGIONS 4
#define IDLE_SIZE    3   /* of gt_probe_sizes: 256 KiB */
#define PLAIN        1.2 /* a slow start makes such a message so much longer, or it cannot be told */
#define LAST         1   /* detail of the last message of a stream: it is answered */

typedef struct {
  uint64_t awaited;
  bool here;
  gt_ns at;
} answer;

typedef struct {
  gt_probe_state *p;
  gt_gateway *gateway;
  size_t n, self, largest; /* bytes of the largest message */
  uint8_t *payload;        /* the same for every message */
  uint64_t sequence, last_id;
  answer *answers; /* nregions */
  gt_backoff backoff;
} prober;

/* ---- events ---- */

static void answer_back(prober *b, size_t peer, uint64_t id, gt_ns now) {
  gt_frame_header head = {.kind = GT_MSG_PONG, .value = id};
  gt_gateway_send(b->gateway, peer, &head, NULL, 0, 0, now);
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload, gt_ns now) {
  prober *b = ctx;
  (void)payload;
  bool asks = head->kind == GT_MSG_PING || (head->kind == GT_MSG_UPDATE && head->detail == LAST);
  if (asks)
    answer_back(b, peer, head->value, now);
  else if (head->kind == GT_MSG_PONG && head->value == b->answers[peer].awaited)
    b->answers[peer] = (answer){.awaited = head->value, .here = true, .at = now};
}

/* ---- waits ---- */

/* Moves what can move, or sleeps. */
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
  gt_panic(GT_ERR_NOGO, "NO-GO: waited %g s for an answer of region %s to region %s; messages passed at first, then the link fell silent",
           b->p->limit_s, job->regions[peer].name, job->regions[b->self].name);
}

static gt_ns await_answer(prober *b, size_t peer) {
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s);
  gt_backoff_reset(&b->backoff);
  while (!b->answers[peer].here) {
    turn(b, FINE, until);
    if (gt_now() > until) lost(b, peer);
  }
  return b->answers[peer].at;
}

static void idle(prober *b, double seconds) {
  gt_ns until = gt_now() + gt_from_seconds(seconds);
  gt_backoff_reset(&b->backoff);
  while (gt_now() < until) turn(b, GT_BACKOFF_IDLE, until);
}

/* The PS ranks meet; those that have nothing to do meanwhile answer the others. */
static void meet(prober *b) {
  MPI_Request request;
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s * (double)(4 * b->n));
  GT_MPI(MPI_Ibarrier(b->p->run.roles.ps, &request));
  gt_backoff_reset(&b->backoff);
  for (;;) {
    int done = 0;
    GT_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
    if (gt_now() > until) gt_panic(GT_ERR_NOGO, "NO-GO: region %s waited for the other regions' measurements in vain", b->p->run.region);
    turn(b, FINE, GT_NEVER);
  }
}

/* ---- messages ---- */

static uint64_t expect(prober *b, size_t peer) {
  b->answers[peer] = (answer){.awaited = ++b->last_id};
  return b->last_id;
}

static double ping(prober *b, size_t peer) {
  gt_ns from = gt_now();
  gt_frame_header head = {.kind = GT_MSG_PING, .value = expect(b, peer)};
  gt_gateway_send(b->gateway, peer, &head, NULL, 0, 0, from);
  return gt_seconds(await_answer(b, peer) - from);
}

static void send_stream(prober *b, size_t peer, size_t chunk, uint64_t total) {
  gt_frame_header head = {.kind = GT_MSG_UPDATE, .value = expect(b, peer)};
  for (uint64_t i = 0; i < total; i++) {
    head.sequence = ++b->sequence;
    head.detail = i + 1 == total ? LAST : 0;
    gt_gateway_send(b->gateway, peer, &head, b->payload, chunk, 0, gt_now());
  }
}

/* Seconds until one message of this size is answered. */
static double message(prober *b, size_t peer, size_t bytes) {
  gt_ns from = gt_now();
  send_stream(b, peer, bytes, 1);
  return gt_seconds(await_answer(b, peer) - from);
}

/* ---- one direction ---- */

static void measure_latency(prober *b, size_t peer, gt_probe_link *l) {
  double times[PINGS];
  size_t n = 0;
  gt_ns until = gt_now() + gt_from_seconds(SPAN_S);
  (void)ping(b, peer); /* the first opens the way */
  while (n < PINGS && (n < 3 || gt_now() < until)) times[n++] = ping(b, peer);
  l->latency_s = gt_probe_median(times, n) / 2;
}

/* A stream that lasts STREAM_S: one message, cut into frames as in training, or several of one size
   where the link is fast. */
static void stream_shape(const prober *b, double rate_bps, size_t *bytes, uint64_t *total) {
  double all = rate_bps * STREAM_S / 8, n = ceil(all / (double)b->largest);
  *total = n < 1 ? 1 : n > MESSAGES_MAX ? MESSAGES_MAX : (uint64_t)n;
  double each = all / (double)*total;
  *bytes = each < (double)SMALLEST ? SMALLEST : each > (double)b->largest ? b->largest : (size_t)each;
}

static double wire_bits(size_t bytes, uint64_t total) {
  return 8 * (double)gt_wire_bytes(bytes) * (double)total;
}

/* Seconds until a stream is answered. */
static double stream(prober *b, size_t peer, size_t chunk, uint64_t total) {
  gt_ns from = gt_now();
  send_stream(b, peer, chunk, total);
  return gt_seconds(await_answer(b, peer) - from);
}

/* From a message that is long enough to tell; much too high where it was not. */
static double guess_rate_bps(prober *b, size_t peer, double rtt_s) {
  double rate = 0, spent = 0;
  for (size_t bytes = (size_t)16 << 10; bytes <= GT_FRAME_PAYLOAD_MAX && spent < SPAN_S / 4; bytes *= 8) {
    double t = message(b, peer, bytes), carried = t - rtt_s > t / 16 ? t - rtt_s : t / 16;
    rate = 8 * (double)gt_wire_bytes(bytes) / (carried > 1e-6 ? carried : 1e-6);
    spent += t;
  }
  return rate;
}

/* What a stream carries over its time less the round trip that its answer comes late: never more than the link gives, and a little less while TCP still finds out how much that is.
   So the best of three. */
static void measure_bandwidth(prober *b, size_t peer, gt_probe_link *l) {
  double rate = guess_rate_bps(b, peer, 2 * l->latency_s);
  for (int good = 0, attempt = 0; good < 3 && attempt < 5; attempt++) {
    size_t chunk;
    uint64_t total;
    stream_shape(b, rate, &chunk, &total);
    double whole = stream(b, peer, chunk, total), carried = whole - 2 * l->latency_s;
    rate = wire_bits(chunk, total) / (carried > whole / 16 ? carried : whole);
    good += whole > STREAM_S / 3;
    if (rate > l->bandwidth_bps || good <= 1) l->bandwidth_bps = rate;
  }
}

/* Long enough for TCP to forget how much the link takes; an emulated link forgets when the job says. */
static double pause_before(const prober *b, size_t peer) {
  const gt_link_spec *said = &gt_links_from(b->p->run.links, b->self)[peer];
  if (b->p->run.job->wan.emulate) return said->window_bytes > 0 ? 1.2 * said->idle_s + EMULATED_S : EMULATED_S;
  return b->n > MANY_REGIONS ? SHORT_S : PAUSE_S;
}

static void measure_sizes(prober *b, size_t peer, gt_probe_link *l) {
  double times[3];
  size_t repeats = b->n > MANY_REGIONS ? 1 : 3;
  l->pause_s = pause_before(b, peer);
  l->time_s[0] = l->latency_s;
  for (size_t i = 1; i < GT_PROBE_SIZES; i++) {
    double ideal_s = 8 * (double)gt_probe_sizes[i] / l->bandwidth_bps + 2 * l->latency_s;
    if (ideal_s > SPAN_S || (gt_probe_sizes[i] > (size_t)4 << 20 && b->n > MANY_REGIONS)) return;
    for (size_t k = 0; k < repeats; k++) {
      idle(b, l->pause_s);
      times[k] = message(b, peer, gt_probe_sizes[i]) - l->latency_s;
    }
    double t = gt_probe_median(times, repeats);
    l->time_s[i] = t > 1e-6 ? t : 1e-6;
  }
}

/* A stream fills the link; seconds one way of a message after so much silence. */
static double after_silence(prober *b, size_t peer, const gt_probe_link *l, double pause_s) {
  double t[2];
  for (size_t k = 0; k < 2; k++) {
    size_t chunk;
    uint64_t total;
    stream_shape(b, l->bandwidth_bps / 2, &chunk, &total);
    send_stream(b, peer, chunk, total);
    await_answer(b, peer);
    idle(b, pause_s);
    t[k] = message(b, peer, gt_probe_sizes[IDLE_SIZE]) - l->latency_s;
  }
  return t[0] < t[1] ? t[0] : t[1];
}

/* After how much silence the window is small again: the pause from which on a message takes nearer to what it takes after a long one. */
static void measure_idle(prober *b, size_t peer, gt_probe_link *l) {
  static const double pauses[] = {0.1, 0.2, 0.4, 0.8};
  double cold = l->time_s[IDLE_SIZE];
  if (l->window_bytes <= 0 || l->idle_s <= 0 || cold <= 0 || b->n > MANY_REGIONS) return;
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

static void measure(prober *b, size_t peer) {
  gt_probe_link *l = &b->p->links[peer];
  measure_latency(b, peer, l);
  l->fresh_s = message(b, peer, GT_PROBE_FRESH) - l->latency_s;
  measure_bandwidth(b, peer, l);
  measure_sizes(b, peer, l);
  gt_probe_fit(l);
  measure_idle(b, peer, l);
}

/* ---- all directions ---- */

/* Whom `self` meets in this round of a tournament of n (circle method); n: nobody. */
static size_t partner(size_t n, size_t round, size_t self) {
  size_t even = n + n % 2, last = even - 1, other;
  if (self == last)
    other = round;
  else if (self == round)
    other = last;
  else
    other = (2 * round + last - self) % last;
  return other < n ? other : n;
}

static void measure_alone(prober *b) {
  for (size_t round = 0; round + 1 < b->n + b->n % 2; round++) {
    size_t peer = partner(b->n, round, b->self);
    for (int half = 0; half < 2; half++) {
      meet(b);
      if (peer < b->n && (b->self < peer) == (half == 0)) measure(b, peer);
    }
  }
  meet(b);
}

/* Streams to every peer at the same time, as in training, each of what takes STREAM_S at its rate or of
   so many bytes at least. */
static void stream_together(prober *b, double bytes, const double *rate_bps, gt_probe_stream *streams) {
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s * (double)b->n);
  meet(b);
  gt_ns from = gt_now();
  for (size_t peer = 0; peer < b->n; peer++) {
    size_t chunk;
    uint64_t total;
    if (peer == b->self) continue;
    stream_shape(b, fmax(8 * bytes / STREAM_S, rate_bps[peer]), &chunk, &total);
    send_stream(b, peer, chunk, total);
    until += gt_from_seconds(10 * wire_bits(chunk, total) / b->p->links[peer].bandwidth_bps);
    streams[peer].bits = wire_bits(chunk, total);
  }
  gt_backoff_reset(&b->backoff);
  for (size_t peer = 0; peer < b->n; peer++) {
    if (peer == b->self) continue;
    while (!b->answers[peer].here) {
      turn(b, FINE, until);
      if (gt_now() > until) lost(b, peer);
    }
    double whole = gt_seconds(b->answers[peer].at - from), carried = whole - 2 * b->p->links[peer].latency_s;
    streams[peer].s = carried > whole / 16 ? carried : whole;
  }
  meet(b);
}

/* Of the next stream: a figure that was disturbed makes none that is too short to tell, or endless. */
static double shaping_bps(const prober *b, const gt_probe_link *l, const gt_probe_stream *last) {
  return fmin(l->bandwidth_bps, fmax(last->bits / last->s, l->bandwidth_bps / (4 * (double)b->n)));
}

/* Rounds of streams, the first of which say how long each is to be, and what lasts, where that is asked
   for. */
static void measure_together(prober *b) {
  gt_probe_link *links = b->p->links;
  double *rate_bps = GT_NEW_ARRAY(double, b->n);
  gt_probe_stream *streams = GT_NEW_ARRAY(gt_probe_stream, b->n);
  for (size_t peer = 0; peer < b->n; peer++) rate_bps[peer] = links[peer].bandwidth_bps;
  for (int round = 0; round < GT_PROBE_ROUNDS; round++) {
    stream_together(b, 0, rate_bps, streams);
    for (size_t peer = 0; peer < b->n; peer++) {
      links[peer].together[round] = streams[peer];
      if (peer != b->self && round < SHAPING) rate_bps[peer] = shaping_bps(b, &links[peer], &streams[peer]);
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

/* The round trip of a ping while the own stream to the peer, and all others, are under way. */
static void ping_together(prober *b) {
  for (size_t peer = 0; peer < b->n; peer++) {
    gt_probe_link *l = &b->p->links[peer];
    size_t chunk;
    uint64_t total;
    meet(b);
    for (size_t other = 0; other < b->n; other++) {
      if (other == b->self) continue;
      stream_shape(b, b->p->links[other].bandwidth_bps / 2, &chunk, &total);
      send_stream(b, other, chunk, total);
    }
    idle(b, 2 * l->latency_s);
    double times[3];
    for (size_t k = 0; peer != b->self && k < 3; k++) times[k] = ping(b, peer);
    if (peer != b->self) l->busy_latency_s = gt_probe_median(times, 3) / 2;
    while (gt_gateway_poll(b->gateway, gt_now()) || gt_gateway_next(b->gateway, NULL) != GT_NEVER) turn(b, GT_BACKOFF_IDLE, GT_NEVER);
  }
  meet(b);
}

static void flush(prober *b) {
  bool large = false;
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s);
  while (gt_gateway_next(b->gateway, &large) != GT_NEVER || large) {
    turn(b, GT_BACKOFF_IDLE, until);
    if (gt_now() > until) return;
  }
}

static void probe_ps(gt_probe_state *p) {
  gt_run *run = &p->run;
  size_t n = run->job->nregions, largest = gt_probe_sizes[n > MANY_REGIONS ? GT_PROBE_SIZES - 2 : GT_PROBE_SIZES - 1];
  prober b = {.p = p, .n = n, .self = run->roles.region_id, .largest = largest, .payload = gt_alloc(largest, 1)};
  b.answers = GT_NEW_ARRAY(answer, n);
  b.gateway = gt_run_gateway(run, largest, &(gt_gateway_events){&b, on_message, NULL});
  gt_gateway_begin(b.gateway, gt_now());
  measure_alone(&b);
  measure_together(&b);
  ping_together(&b);
  flush(&b);
  meet(&b);
  gt_gateway_close(b.gateway, run->end_limit_s);
  gt_free(b.answers);
  gt_free(b.payload);
}

void gt_probe_links(gt_probe_state *p) {
  p->links = GT_NEW_ARRAY(gt_probe_link, p->run.job->nregions);
  if (p->run.roles.is_ps) probe_ps(p);
  gt_probe_meet(p, "the measurement of the links");
}

/* ---- inside a region ---- */

#define INSIDE_PINGS   20
#define INSIDE_WORKERS 8
#define INSIDE_LARGEST ((size_t)16 << 20)
#define INSIDE_LONG_S  0.1
enum { TAG_THERE = 91, TAG_BACK };

/* Region rank 0 sends bytes, the other answers with a word; seconds of the round trip, 0 on the other. */
static double exchange(const gt_probe_state *p, int worker, uint8_t *room, size_t bytes) {
  const gt_roles *roles = &p->run.roles;
  uint64_t word[8] = {0};
  MPI_Request requests[2];
  gt_ns from = gt_now();
  if (roles->is_ps) {
    GT_MPI(MPI_Irecv(word, (int)sizeof word, MPI_BYTE, worker, TAG_BACK, roles->region, &requests[0]));
    GT_MPI(MPI_Isend(room, (int)bytes, MPI_BYTE, worker, TAG_THERE, roles->region, &requests[1]));
    gt_wait_all(requests, 2, "a worker's answer", p->limit_s, NULL, NULL);
    return gt_seconds(gt_now() - from);
  }
  GT_MPI(MPI_Irecv(room, (int)bytes, MPI_BYTE, 0, TAG_THERE, roles->region, &requests[0]));
  gt_wait_all(requests, 1, "a message of the PS", p->limit_s, NULL, NULL);
  GT_MPI(MPI_Isend(word, (int)sizeof word, MPI_BYTE, 0, TAG_BACK, roles->region, &requests[0]));
  gt_wait_all(requests, 1, "the PS to take an answer", p->limit_s, NULL, NULL);
  return 0;
}

/* Both know from the first words how large a message the PS sends next; 0 ends it. */
static void inside_with(gt_probe_state *p, int worker, uint8_t *room) {
  double times[INSIDE_PINGS], latency, rate = 0;
  for (int i = 0; i < INSIDE_PINGS; i++) times[i] = exchange(p, worker, room, GT_FRAME_HEADER_BYTES);
  latency = gt_probe_median(times, INSIDE_PINGS) / 2;
  for (size_t bytes = (size_t)1 << 20; bytes;) {
    double best = exchange(p, worker, room, bytes), again = exchange(p, worker, room, bytes);
    if (again < best) best = again;
    double carried = best - latency > best / 2 ? best - latency : best / 2;
    if (carried > 0) rate = 8 * (double)bytes / carried;
    uint64_t next = best > INSIDE_LONG_S || bytes >= INSIDE_LARGEST ? 0 : 4 * bytes;
    memcpy(room, &next, sizeof next);
    exchange(p, worker, room, GT_FRAME_HEADER_BYTES);
    memcpy(&next, room, sizeof next);
    bytes = (size_t)next;
  }
  gt_probe_rank *own = &p->own;
  if (!p->run.roles.is_ps) return;
  if (latency > own->inside_latency_s) own->inside_latency_s = latency;
  if (own->inside_bandwidth_bps <= 0 || rate < own->inside_bandwidth_bps) own->inside_bandwidth_bps = rate;
}

/* One region after another: they may share a machine. */
void gt_probe_inside(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  uint8_t *room = gt_alloc(INSIDE_LARGEST, 1);
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    gt_probe_meet(p, "the measurement inside another region");
    if (r != roles->region_id) continue;
    for (int w = 1; w < roles->region_size && w <= INSIDE_WORKERS; w++)
      if (roles->is_ps || roles->region_rank == w) inside_with(p, w, room);
  }
  gt_free(room);
  gt_probe_meet(p, "the measurement inside another region");
}
