/* Private to the measurement of links: messages and streams of one PS rank to the others, and their
   answers.  A rank that waits for an answer answers the others meanwhile. */
#ifndef GEOTRAIN_PROBE_PROBER_H
#define GEOTRAIN_PROBE_PROBER_H

#include "internal.h"

#define GT_PROBER_STREAM_S 1.2 /* that a stream is made for */
#define GT_PROBER_MANY     4   /* more regions than these are measured with less effort */

typedef struct {
  uint64_t awaited;
  bool here;
  gt_ns at;
} gt_prober_answer;

typedef struct {
  gt_probe_state *p; /* borrowed */
  gt_gateway *gateway;
  size_t n, self, largest; /* bytes of the largest message */
  uint8_t *payload;        /* the same for every message */
  uint64_t sequence, last_id;
  gt_prober_answer *answers; /* nregions */
  gt_backoff backoff;
} gt_prober;

/* prober.c.  Open, close and meet are collective over the PS ranks, the rest is local: what waits
   for a peer in vain for p->limit_s, or meets the others in vain for longer, ends the job (panic
   with 7). */
void gt_prober_open(gt_prober *b, gt_probe_state *p);
/* Lets what is under way leave, p->limit_s at most. */
void gt_prober_close(gt_prober *b);
/* The PS ranks meet; those that have nothing to do meanwhile answer the others. */
void gt_prober_meet(gt_prober *b);
/* Moves what can move, or sleeps, `cap` and until `until` at most. */
void gt_prober_turn(gt_prober *b, gt_ns cap, gt_ns until);
void gt_prober_idle(gt_prober *b, double seconds);
/* When the answer to what was last sent to the peer came; `until`: waits no longer. */
gt_ns gt_prober_await_until(gt_prober *b, size_t peer, gt_ns until);
gt_ns gt_prober_await(gt_prober *b, size_t peer);
/* Seconds until a ping, or one message of this size, is answered. */
double gt_prober_ping(gt_prober *b, size_t peer);
double gt_prober_message(gt_prober *b, size_t peer, size_t bytes);
/* A stream that lasts GT_PROBER_STREAM_S: one message, cut into frames as in training, or several
   of one size where the link is fast. */
void gt_prober_shape(const gt_prober *b, double rate_bps, size_t *bytes, uint64_t *total);
/* `total` messages of `chunk` bytes, the last of which is answered; does not wait. */
void gt_prober_send_stream(gt_prober *b, size_t peer, size_t chunk, uint64_t total);
/* Of such a stream, headers in. */
double gt_prober_wire_bits(size_t bytes, uint64_t total);

/* alone.c: this rank's direction to the peer, while no other link of the two regions is in use: all
   of p->links[peer] but what is measured at once.  Local; the peer answers. */
void gt_probe_alone(gt_prober *b, size_t peer);
/* at_once.c: every direction at the same time.  Collective over the PS ranks. */
void gt_probe_at_once(gt_prober *b);
/* links.c: whom `self` meets in this round of a tournament of n (circle method); n: nobody.  Each
   pair meets once in n - 1 rounds, or n where n is odd.  Local. */
size_t gt_probe_partner(size_t n, size_t round, size_t self);

#endif
