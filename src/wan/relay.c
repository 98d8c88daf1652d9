/* The relay: a connection of each of two regions that both only dial, and a buffer for each
   direction.  Frames, numbers, acknowledgements and starts are between the two regions; a
   connection is not read while its buffer is full, so that the sender waits.  TLS ends here: the
   relay has checked the certificate of each. */
#include "relay.h"

#include <string.h>

#define BUFFER_BYTES ((size_t)256 << 10)

struct gt_leg {
  gt_connection c;
  gt_tcp_record hello;
  gt_leg *other; /* of the other region; NULL: it has not come */
  uint8_t *out;  /* from the other one: bytes at to end wait for the socket */
  size_t at, end;
  gt_leg *next;
};

/* ---- life ------------------------------------------------------------------------------------ */

static void free_leg(gt_leg *leg) {
  gt_connection_close(&leg->c);
  gt_free(leg->out);
  gt_free(leg);
}

/* Closes the connection and the other region's: both dial again. */
static void drop(gt_tcp *tcp, gt_leg *leg) {
  gt_leg *other = leg->other;
  for (gt_leg **at = &tcp->legs; *at;) {
    gt_leg *l = *at;
    if (l != leg && l != other) {
      at = &l->next;
      continue;
    }
    *at = l->next;
    free_leg(l);
  }
}

static gt_leg *find(const gt_tcp *tcp, uint16_t from, uint16_t to, const gt_tcp_record *as) {
  for (gt_leg *l = tcp->legs; l; l = l->next)
    if (l->hello.from == from && l->hello.to == to && l->hello.stream == as->stream &&
        l->hello.sequence == as->sequence)
      return l;
  return NULL;
}

/* A region has one connection for each transport, pair and stream.  Returns the oldest of that
   many; NULL: they are fewer. */
static gt_leg *oldest(const gt_tcp *tcp, const gt_tcp_record *hello) {
  gt_leg *last = NULL;
  size_t n = 0;
  for (gt_leg *l = tcp->legs; l; l = l->next) {
    if (l->hello.from != hello->from || l->hello.to != hello->to ||
        l->hello.stream != hello->stream)
      continue;
    last = l;
    n++;
  }
  return n < GT_TCP_TRANSPORTS ? NULL : last;
}

/* The greeting was read from the connection already. */
static void put_hello(gt_leg *to, const gt_leg *from) {
  memcpy(to->out, &from->hello, sizeof from->hello);
  to->end = sizeof from->hello;
}

void gt_relay_take(gt_tcp *tcp, const gt_connection *c, const gt_tcp_record *hello) {
  gt_leg *last = find(tcp, hello->from, hello->to, hello), *leg = GT_NEW(gt_leg);
  if (!last) last = oldest(tcp, hello);
  if (last) drop(tcp, last);
  gt_leg *other = find(tcp, hello->to, hello->from, hello);
  *leg = (gt_leg){.c = *c, .hello = *hello, .other = other, .next = tcp->legs};
  leg->out = gt_alloc(BUFFER_BYTES, 1);
  tcp->legs = leg;
  if (!other) return;
  other->other = leg;
  put_hello(leg, other);
  put_hello(other, leg);
}

void gt_relay_close(gt_tcp *tcp) {
  while (tcp->legs) drop(tcp, tcp->legs);
}

/* ---- copying --------------------------------------------------------------------------------- */

/* False: one of the connections has ended. */
static bool copy(gt_tcp *tcp, gt_leg *to) {
  for (;;) {
    if (to->at == to->end) {
      const long got = gt_connection_read(&to->other->c, to->out, BUFFER_BYTES);
      if (got <= 0) return got == 0;
      to->at = 0;
      to->end = (size_t)got;
      tcp->base.relayed[to->hello.from] += (uint64_t)got;
    }
    const long n = gt_connection_write(&to->c, to->out + to->at, to->end - to->at);
    if (n <= 0) return n == 0;
    to->at += (size_t)n;
  }
}

/* A region says nothing until it has the other one's greeting. */
static bool waits(gt_leg *leg) {
  uint8_t byte;
  return gt_connection_read(&leg->c, &byte, sizeof byte) == 0;
}

bool gt_relay_pump(gt_tcp *tcp) {
  bool any = false;
  for (gt_leg *l = tcp->legs, *next; l; l = next) {
    next = l->next;
    any |= l->other != NULL;
    if (l->other ? copy(tcp, l) : waits(l)) continue;
    if (l->other) (void)copy(tcp, l->other); /* the last words of a region that has closed */
    drop(tcp, l);
    next = tcp->legs; /* the list has changed */
  }
  return any;
}
