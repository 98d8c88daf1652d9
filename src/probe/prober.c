/* Messages of a probe between PS ranks, over the transport of training: the gateway, emulated if
   the job says so.  Clocks of hosts are never compared: times end when a 64-byte answer is back. */
#include <math.h>

#include "prober.h"

#define FINE         ((gt_ns)50000) /* longest sleep while times are measured */
#define MESSAGES_MAX 256
#define SMALLEST     ((size_t)16 << 10)
#define LAST         1 /* detail of the last message of a stream, which is answered */

/* ---- events ---- */

static void answer_back(gt_prober *b, size_t peer, uint64_t id, gt_ns now) {
  gt_frame_header head = {.kind = GT_MSG_PONG, .value = id};
  gt_gateway_send(b->gateway, peer, &head, NULL, 0, 0, now);
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  gt_prober *b = ctx;
  (void)payload;
  bool asks = head->kind == GT_MSG_PING || (head->kind == GT_MSG_UPDATE && head->detail == LAST);
  if (asks)
    answer_back(b, peer, head->value, now);
  else if (head->kind == GT_MSG_PONG && head->value == b->answers[peer].awaited)
    b->answers[peer] = (gt_prober_answer){.awaited = head->value, .here = true, .at = now};
}

/* ---- waits ---- */

void gt_prober_turn(gt_prober *b, gt_ns cap, gt_ns until) {
  if (gt_gateway_poll(b->gateway, gt_now())) {
    gt_backoff_reset(&b->backoff);
    return;
  }
  gt_ns next = gt_gateway_next(b->gateway, NULL);
  gt_backoff_sleep(&b->backoff, cap, next < until ? next : until);
}

static _Noreturn void lost(const gt_prober *b, size_t peer) {
  const gt_job *job = b->p->run.job;
  gt_panic(GT_ERR_NOGO,
           "NO-GO: waited %g s for an answer of region %s to region %s; messages passed at first, "
           "then the link fell silent",
           b->p->limit_s, job->regions[peer].name, job->regions[b->self].name);
}

gt_ns gt_prober_await_until(gt_prober *b, size_t peer, gt_ns until) {
  while (!b->answers[peer].here) {
    gt_prober_turn(b, FINE, until);
    if (gt_now() > until) lost(b, peer);
  }
  return b->answers[peer].at;
}

gt_ns gt_prober_await(gt_prober *b, size_t peer) {
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s);
  gt_backoff_reset(&b->backoff);
  return gt_prober_await_until(b, peer, until);
}

void gt_prober_idle(gt_prober *b, double seconds) {
  gt_ns until = gt_now() + gt_from_seconds(seconds);
  gt_backoff_reset(&b->backoff);
  while (gt_now() < until) gt_prober_turn(b, GT_BACKOFF_IDLE, until);
}

void gt_prober_meet(gt_prober *b) {
  MPI_Request request;
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s * (double)(4 * b->n));
  GT_MPI(MPI_Ibarrier(b->p->run.roles.ps, &request));
  gt_backoff_reset(&b->backoff);
  for (;;) {
    int done = 0;
    GT_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
    if (gt_now() > until)
      gt_panic(GT_ERR_NOGO, "NO-GO: region %s waited for the other regions' measurements in vain",
               b->p->run.region);
    gt_prober_turn(b, FINE, GT_NEVER);
  }
}

/* ---- messages ---- */

static uint64_t expect(gt_prober *b, size_t peer) {
  b->answers[peer] = (gt_prober_answer){.awaited = ++b->last_id};
  return b->last_id;
}

double gt_prober_ping(gt_prober *b, size_t peer) {
  gt_ns from = gt_now();
  gt_frame_header head = {.kind = GT_MSG_PING, .value = expect(b, peer)};
  gt_gateway_send(b->gateway, peer, &head, NULL, 0, 0, from);
  return gt_seconds(gt_prober_await(b, peer) - from);
}

void gt_prober_send_stream(gt_prober *b, size_t peer, size_t chunk, uint64_t total) {
  gt_frame_header head = {.kind = GT_MSG_UPDATE, .value = expect(b, peer)};
  for (uint64_t i = 0; i < total; i++) {
    head.sequence = ++b->sequence;
    head.detail = i + 1 == total ? LAST : 0;
    gt_gateway_send(b->gateway, peer, &head, b->payload, chunk, 0, gt_now());
  }
}

double gt_prober_message(gt_prober *b, size_t peer, size_t bytes) {
  gt_ns from = gt_now();
  gt_prober_send_stream(b, peer, bytes, 1);
  return gt_seconds(gt_prober_await(b, peer) - from);
}

/* ---- streams ---- */

void gt_prober_shape(const gt_prober *b, double rate_bps, size_t *bytes, uint64_t *total) {
  double all = rate_bps * GT_PROBER_STREAM_S / 8, n = ceil(all / (double)b->largest);
  *total = n < 1 ? 1 : n > MESSAGES_MAX ? MESSAGES_MAX : (uint64_t)n;
  double each = all / (double)*total;
  *bytes = each < (double)SMALLEST     ? SMALLEST
           : each > (double)b->largest ? b->largest
                                       : (size_t)each;
}

double gt_prober_wire_bits(size_t bytes, uint64_t total) {
  return 8 * (double)gt_wire_bytes(bytes) * (double)total;
}

/* ---- open and close ---- */

void gt_prober_open(gt_prober *b, gt_probe_state *p) {
  gt_run *run = &p->run;
  size_t n = run->job->nregions,
         largest = gt_probe_sizes[n > GT_PROBER_MANY ? GT_PROBE_SIZES - 2 : GT_PROBE_SIZES - 1];
  *b = (gt_prober){.p = p,
                   .n = n,
                   .self = run->roles.region_id,
                   .largest = largest,
                   .payload = gt_alloc(largest, 1)};
  b->answers = GT_NEW_ARRAY(gt_prober_answer, n);
  b->gateway = gt_setup_gateway(run, largest, &(gt_gateway_events){b, on_message, NULL});
  gt_gateway_begin(b->gateway, gt_now());
}

static void flush(gt_prober *b) {
  bool large = false;
  gt_ns until = gt_now() + gt_from_seconds(b->p->limit_s);
  while (gt_gateway_next(b->gateway, &large) != GT_NEVER || large) {
    gt_prober_turn(b, GT_BACKOFF_IDLE, until);
    if (gt_now() > until) return;
  }
}

void gt_prober_close(gt_prober *b) {
  flush(b);
  gt_prober_meet(b);
  gt_gateway_close(b->gateway, b->p->run.end_limit_s);
  gt_free(b->answers);
  gt_free(b->payload);
}
