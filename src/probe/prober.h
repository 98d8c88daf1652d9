/* Private to the measurement of links: messages and streams from one PS rank to the others, and
   their answers.  A rank that waits for an answer keeps answering the others. */
#ifndef GEOTRAIN_PROBE_PROBER_H
#define GEOTRAIN_PROBE_PROBER_H

#include "internal.h"

#define GT_PROBER_STREAM_S 1.2 /* intended duration of a stream */
#define GT_PROBER_MANY     4   /* with more regions than these, less is measured */

typedef struct {
  uint64_t awaited;
  bool here;
  gt_ns at;
} gt_prober_answer;

typedef struct {
  gt_probe_state *p; /* borrowed */
  gt_gateway *gateway;
  size_t n, self, largest; /* largest: bytes of the largest message */
  uint8_t *payload;        /* used for all messages */
  uint64_t sequence, last_id;
  gt_prober_answer *answers; /* nregions */
  gt_backoff backoff;
} gt_prober;

/* prober.c.  Open, close and meet are collective over the PS ranks, the rest is local.  A wait for
   a peer that exceeds p->limit_s, or a longer limit for meet, aborts the job (panic with 7). */
void gt_prober_open(gt_prober *b, gt_probe_state *p);
/* Waits, p->limit_s at most, until all messages have left. */
void gt_prober_close(gt_prober *b);
/* A barrier of the PS ranks; waiting ranks keep answering the others. */
void gt_prober_meet(gt_prober *b);
/* One turn of progress; if nothing can progress, sleeps for at most `cap` and not beyond
   `until`. */
void gt_prober_turn(gt_prober *b, gt_ns cap, gt_ns until);
void gt_prober_idle(gt_prober *b, double seconds);
/* The time at which the answer to the last message to the peer came; waits until `until` at
   most. */
gt_ns gt_prober_await_until(gt_prober *b, size_t peer, gt_ns until);
gt_ns gt_prober_await(gt_prober *b, size_t peer);
/* Seconds until a ping, or one message of this size, is answered. */
double gt_prober_ping(gt_prober *b, size_t peer);
double gt_prober_message(gt_prober *b, size_t peer, size_t bytes);
/* Sizes a stream for GT_PROBER_STREAM_S: one message, cut into frames as in training, or several
   messages of one size if the link is fast. */
void gt_prober_shape(const gt_prober *b, double rate_bps, size_t *bytes, uint64_t *total);
/* Sends `total` messages of `chunk` bytes, the last of which is answered; does not wait. */
void gt_prober_send_stream(gt_prober *b, size_t peer, size_t chunk, uint64_t total);
/* The bits of such a stream, including headers. */
double gt_prober_wire_bits(size_t bytes, uint64_t total);

/* alone.c: measures the first large message to the peer: nothing large may have been sent to it
   before.  Local; the peer answers. */
void gt_probe_first(gt_prober *b, size_t peer);
/* alone.c: measures this rank's direction to the peer while no other link of the two regions is in
   use: all of p->links[peer] except the first message and what is measured at once.  Local; the
   peer answers. */
void gt_probe_alone(gt_prober *b, size_t peer);
/* at_once.c: measures every direction at the same time.  Collective over the PS ranks. */
void gt_probe_at_once(gt_prober *b);
/* links.c: the partner of `self` in this round of a tournament of n (circle method); n: none.  Each
   pair meets once in n - 1 rounds, or in n rounds if n is odd.  Local. */
size_t gt_probe_partner(size_t n, size_t round, size_t self);

#endif
