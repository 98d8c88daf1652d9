/* Sends one message from a region to another through their gateways, for bench/transfer.  The side
   that receives prints "BYTES SECONDS CPU-SENDER CPU-RECEIVER".  SECONDS is the time from the start of
   sending until the last byte has arrived: measured by the sender until the answer, minus half of the
   least round trip.  CPU: seconds of this time, user and system, of both processes.
   Usage: under mpirun with 2 ranks, over MPI:  bench_transfer BYTES MBIT/S LATENCY-S
          one process at each side, over TCP:   bench_transfer BYTES MBIT/S LATENCY-S SIDE ADDRESS
                                                               STREAMS [CA CERT KEY]
   SIDE: a (listens at ADDRESS and receives) or b. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "geotrain/net.h"
#include "geotrain/wan.h"
#include "geotrain/wan_tcp.h"

#define LIMIT_S 300.0
#define PINGS   5
#define RUN     UINT64_C(77) /* that of a group is 1 */
enum { RECEIVER, SENDER, SIDES };

/* What the sides tell each other. */
typedef struct {
  double seconds, cpu_s;
} figures;

typedef struct {
  gt_gateway *gateway;
  uint64_t answer; /* value of the last PONG */
  bool arrived;
} side;

static double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  side *s = ctx;
  (void)payload;
  const gt_frame_header pong = {.kind = GT_MSG_PONG, .value = head->value};
  if (head->kind == GT_MSG_PONG) {
    s->answer = head->value;
    return;
  }
  if (head->kind == GT_MSG_MODEL) s->arrived = true;
  gt_gateway_send(s->gateway, peer, &pong, NULL, 0, 0, now);
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)ctx, (void)peer, (void)cookie, (void)now;
}

static void poll_once(side *s, gt_backoff *backoff, gt_ns since) {
  if (gt_seconds(gt_now() - since) > LIMIT_S)
    gt_panic(GT_ERR_LOST, "waited %.0f s for the other side", LIMIT_S);
  if (gt_gateway_poll(s->gateway, gt_now()))
    gt_backoff_reset(backoff);
  else
    gt_backoff_sleep(backoff, gt_gateway_urgent(s->gateway) ? GT_BACKOFF_BUSY : GT_BACKOFF_IDLE,
                     gt_gateway_next(s->gateway, NULL));
}

static void keep_polling(void *ctx) {
  (void)gt_gateway_poll(((side *)ctx)->gateway, gt_now());
}

/* Sends a message and waits for its answer; returns the seconds. */
static double ask(side *s, gt_msg_kind kind, const void *payload, size_t bytes, uint64_t value) {
  const gt_frame_header head = {.kind = kind, .value = value};
  const gt_ns since = gt_now();
  gt_backoff backoff = {0};
  gt_backoff_reset(&backoff);
  s->answer = 0;
  gt_gateway_send(s->gateway, RECEIVER, &head, payload, bytes, bytes > 0 ? value : 0, since);
  while (s->answer != value) poll_once(s, &backoff, since);
  return gt_seconds(gt_now() - since);
}

static double send_all(side *s, const void *payload, size_t bytes) {
  double round_trip_s = LIMIT_S;
  for (uint64_t i = 1; i <= PINGS; i++) {
    const double t = ask(s, GT_MSG_PING, NULL, 0, i);
    if (t < round_trip_s) round_trip_s = t;
  }
  return ask(s, GT_MSG_MODEL, payload, bytes, PINGS + 1) - round_trip_s / 2;
}

static void receive(side *s) {
  const gt_ns since = gt_now();
  gt_backoff backoff = {0};
  gt_backoff_reset(&backoff);
  while (!s->arrived) poll_once(s, &backoff, since);
}

static void transfer(gt_peers *peers, gt_endpoint *endpoint, size_t self, char **argv) {
  const size_t bytes = strtoull(argv[1], NULL, 10);
  const char *const names[SIDES] = {"a", "b"};
  const double latency_s = strtod(argv[3], NULL);
  const gt_link_spec link = {
      .bandwidth_bps = 1e6 * strtod(argv[2], NULL), .latency_s = latency_s, .back_s = latency_s};
  const gt_link_spec links[SIDES] = {link, link};
  side s = {0};
  const gt_gateway_spec spec = {.nregions = SIDES,
                                .self = self,
                                .names = names,
                                .links = links,
                                .payload_max = bytes,
                                .endpoint = endpoint};
  const gt_gateway_events events = {&s, on_message, on_departed, NULL};
  float *payload = gt_alloc(bytes, 1);
  memset(payload, 1, bytes); /* its pages are there before the clock runs */
  s.gateway = gt_gateway_create(peers, &spec, &events);
  const gt_peers_wait met = {
      .what = "the other side", .limit_s = LIMIT_S, .progress = keep_polling, .context = &s};
  gt_peers_meet(peers, &met);
  figures own = {.cpu_s = -cpu_s()}, all[SIDES];
  if (self == SENDER)
    own.seconds = send_all(&s, payload, bytes);
  else
    receive(&s);
  own.cpu_s += cpu_s();
  gt_peers_meet(peers, &met);
  gt_peers_gather(peers, &own, sizeof own, all, "the figures", LIMIT_S);
  if (self == RECEIVER)
    printf("%zu %.4f %.4f %.4f\n", bytes, all[SENDER].seconds, all[SENDER].cpu_s,
           all[RECEIVER].cpu_s);
  gt_gateway_close(s.gateway, LIMIT_S);
  gt_free(payload);
}

static gt_endpoint *open_tcp(size_t self, int argc, char **argv) {
  const gt_tcp_region regions[SIDES] = {{"a", argv[5]}, {"b", NULL}};
  const gt_tcp_spec spec = {.regions = regions,
                            .nregions = SIDES,
                            .self = self,
                            .listen = self == RECEIVER ? argv[5] : NULL,
                            .ca = argc > 7 ? argv[7] : NULL,
                            .cert = argc > 8 ? argv[8] : NULL,
                            .key = argc > 9 ? argv[9] : NULL,
                            .streams = strtoull(argv[6], NULL, 10),
                            .patience_s = 60};
  gt_endpoint *endpoint;
  if (gt_tcp_open(&endpoint, &spec) != GT_OK) gt_panic(GT_ERR_JOB, "%s", gt_error_text());
  gt_endpoint_set_run(endpoint, RUN);
  return endpoint;
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 7 && argc != 10) {
    fprintf(stderr,
            "usage: bench_transfer BYTES MBIT/S LATENCY-S [SIDE ADDRESS STREAMS [CA CERT KEY]]\n");
    return 2;
  }
  gt_peers *world = gt_net_start(60);
  if (argc == 4) {
    transfer(world, NULL, world->rank, argv);
  } else {
    const size_t self = argv[4][0] == 'a' ? RECEIVER : SENDER;
    gt_endpoint *endpoint = open_tcp(self, argc, argv);
    gt_peers *peers = gt_endpoint_peers(endpoint);
    transfer(peers, endpoint, self, argv);
    gt_peers_close(peers);
    gt_endpoint_close(endpoint);
  }
  gt_net_finalize(world, 60);
  return 0;
}
