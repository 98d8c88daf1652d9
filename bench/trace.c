/* Measures how closely the gateway follows a bandwidth trace, under the virtual clock and in real
   time: a sender keeps the link busy with small messages, and a receiver counts the bytes delivered
   in each second of the trace.  2 ranks.  Prints CSV: second, bytes that the trace lets pass, bytes
   delivered in virtual and in real time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/net.h"
#include "geotrain/wan.h"

#define MESSAGE     ((size_t)1436) /* 1500 bytes with the header */
#define AHEAD       ((size_t)64)   /* messages queued at a time */
#define LATENCY     0.02
#define SECONDS_MAX 3600

typedef struct {
  gt_peers *world;
  gt_gateway *g;
  size_t self;
  int seconds;
  gt_ns begin;
  size_t queued;
  uint64_t sent;
  double bytes[SECONDS_MAX]; /* delivered */
  const float *payload;
} side;

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  side *s = ctx;
  double at = gt_seconds(now - s->begin) - LATENCY;
  (void)peer, (void)payload;
  if (at >= 0 && at < s->seconds) s->bytes[(int)at] += (double)gt_wire_bytes(head->message_bytes);
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)peer, (void)cookie, (void)now;
  ((side *)ctx)->queued--;
}

static void top_up(side *s, gt_ns now) {
  if (s->self != 0 || gt_seconds(now - s->begin) > s->seconds) return;
  while (s->queued < AHEAD) {
    gt_frame_header head = {.kind = GT_MSG_UPDATE, .sequence = s->sent + 1};
    gt_gateway_send(s->g, 1, &head, s->payload, MESSAGE, ++s->sent, now);
    s->queued++;
  }
}

static void run_virtual(side *s) {
  gt_ns delays[] = {0, gt_from_seconds(LATENCY), gt_from_seconds(LATENCY), 0}, safe = 0, at = 0;
  gt_ns end = gt_from_seconds(s->seconds + 1);
  gt_gateway_virtual(s->g, delays);
  s->begin = 0;
  while (at < end) {
    top_up(s, at);
    gt_ns frame = gt_gateway_arrival(s->g), link = gt_gateway_next(s->g, NULL),
          next = frame < link ? frame : link;
    if (next > end) next = end;
    if (next < at) next = at;
    if (next >= safe) {
      gt_gateway_propose(s->g, next);
      while (!gt_gateway_agreed(s->g, &safe)) gt_sleep(20000);
      continue;
    }
    at = next;
    if (frame <= at)
      gt_gateway_deliver(s->g, at);
    else
      gt_gateway_poll(s->g, at);
  }
  gt_gateway_propose(s->g, GT_NEVER);
}

static void run_real(side *s) {
  gt_backoff backoff;
  gt_ns now = gt_now(), end;
  gt_backoff_reset(&backoff);
  s->begin = now;
  end = now + gt_from_seconds(s->seconds + 1);
  gt_gateway_begin(s->g, now);
  while ((now = gt_now()) < end) {
    top_up(s, now);
    if (gt_gateway_poll(s->g, now))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, gt_gateway_next(s->g, NULL));
  }
}

static void deliver(side *s, const gt_link_trace *trace, bool virtual_clock) {
  gt_link_spec links[2] = {{.latency_s = LATENCY, .back_s = LATENCY, .trace = trace},
                           {.latency_s = LATENCY, .back_s = LATENCY, .trace = trace}};
  gt_gateway_spec spec = {.nregions = 2,
                          .self = s->self,
                          .links = links,
                          .emulate = true,
                          .virtual_clock = virtual_clock,
                          .seed = 1,
                          .payload_max = MESSAGE};
  gt_gateway_events events = {s, on_message, on_departed};
  s->queued = 0;
  s->sent = 0;
  memset(s->bytes, 0, sizeof s->bytes);
  s->g = gt_gateway_create(s->world, &spec, &events);
  gt_peers_meet(s->world, &(gt_peers_wait){.what = "the other side", .limit_s = 60});
  if (virtual_clock)
    run_virtual(s);
  else
    run_real(s);
  gt_gateway_close(s->g, 60);
}

/* The largest and the mean difference between a second's bytes and the trace's, relative to the
   trace's mean per second. */
static void deviation(const char *name, const side *s, const gt_link_trace *trace,
                      const double *bytes) {
  double mean = gt_link_trace_bits(trace, s->seconds) / 8 / s->seconds, largest = 0, sum = 0,
         all = 0;
  for (int i = 0; i < s->seconds; i++) {
    double owed = (gt_link_trace_bits(trace, i + 1) - gt_link_trace_bits(trace, i)) / 8,
           off = fabs(bytes[i] - owed) / mean;
    if (off > largest) largest = off;
    sum += off;
    all += bytes[i];
  }
  printf("# %s: largest deviation of a second %.2f %%, mean %.2f %%, in all %.3f %% of the trace "
         "(of its mean, %.0f bytes a second)\n",
         name, 100 * largest, 100 * sum / s->seconds, 100 * all / (mean * s->seconds), mean);
}

int main(int argc, char **argv) {
  if (argc != 3 || atoi(argv[2]) < 1 || atoi(argv[2]) >= SECONDS_MAX) {
    fprintf(stderr, "usage: mpirun -n 2 bench_trace TRACE SECONDS\n");
    return 2;
  }
  static side s;
  static double virtual_bytes[SECONDS_MAX];
  gt_link_trace *trace;
  gt_peers *world = gt_net_start(60);
  if (gt_link_trace_read(&trace, argv[1]) != GT_OK) gt_panic(GT_ERR_JOB, "%s", gt_error_text());
  s.world = world;
  s.self = world->rank;
  s.seconds = atoi(argv[2]);
  s.payload = GT_NEW_ARRAY(float, MESSAGE / sizeof(float));
  deliver(&s, trace, true);
  memcpy(virtual_bytes, s.bytes, sizeof virtual_bytes);
  deliver(&s, trace, false);
  if (s.self == 1) {
    printf("second,trace,virtual,emulated\n");
    for (int i = 0; i < s.seconds; i++)
      printf("%d,%.0f,%.0f,%.0f\n", i,
             (gt_link_trace_bits(trace, i + 1) - gt_link_trace_bits(trace, i)) / 8,
             virtual_bytes[i], s.bytes[i]);
    deviation("virtual", &s, trace, virtual_bytes);
    deviation("emulated", &s, trace, s.bytes);
  }
  gt_link_trace_close(trace);
  gt_net_finalize(world, 60);
  return 0;
}
