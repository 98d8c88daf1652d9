/* Agreement of the regions on virtual time: the time before which each knows every frame that
   arrives (wan.h). */
#include "internal.h"

#include <string.h>

/* A region's announcement in a round; on the wire: round, next, sent[nregions]. */
typedef struct {
  int64_t round; /* 0 on the wire: a heartbeat */
  gt_ns next;    /* its next event is at this time or later; GT_NEVER: it has ended */
  /* nregions: the earliest arrival of the frames sent since the last round; GT_NEVER: none */
  gt_ns *sent;
} promise;

struct gt_agreement {
  size_t nregions, self;
  /* nregions: the minimum delay from an event of a region to the arrival of a frame here that it
     causes */
  gt_ns *back;
  gt_ns *sent; /* nregions, since the last round */
  gt_ns safe;  /* of the last round */
  promise own;
  promise *promises; /* 2 per region, because a peer can be one round ahead */
  bool *ended;
};

static gt_ns sum(gt_ns a, gt_ns b) {
  return a > GT_NEVER - b ? GT_NEVER : a + b;
}

static gt_ns sooner(gt_ns a, gt_ns b) {
  return a < b ? a : b;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Floyd-Warshall: a chain of messages through other regions can be faster than the direct link. */
static void find_back(gt_agreement *a, const gt_ns *delay_min) {
  size_t n = a->nregions;
  gt_ns *d = GT_NEW_ARRAY(gt_ns, n * n);
  for (size_t i = 0; i < n * n; i++) d[i] = i / n == i % n ? 0 : delay_min[i];
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < n; j++)
        d[i * n + j] = sooner(d[i * n + j], sum(d[i * n + k], d[k * n + j]));
  for (size_t r = 0; r < n; r++) {
    a->back[r] = GT_NEVER;
    for (size_t p = 0; p < n; p++)
      if (p != a->self)
        a->back[r] = sooner(a->back[r], sum(d[r * n + p], delay_min[p * n + a->self]));
  }
  gt_free(d);
}

static void forget_sent(gt_agreement *a) {
  for (size_t r = 0; r < a->nregions; r++) a->sent[r] = GT_NEVER;
}

gt_agreement *gt_agreement_create(size_t nregions, size_t self, const gt_ns *delay_min) {
  gt_agreement *a = GT_NEW(gt_agreement);
  a->nregions = nregions;
  a->self = self;
  a->back = GT_NEW_ARRAY(gt_ns, nregions);
  a->sent = GT_NEW_ARRAY(gt_ns, nregions);
  a->own.sent = GT_NEW_ARRAY(gt_ns, nregions);
  a->promises = GT_NEW_ARRAY(promise, 2 * nregions);
  for (size_t i = 0; i < 2 * nregions; i++) a->promises[i].sent = GT_NEW_ARRAY(gt_ns, nregions);
  a->ended = GT_NEW_ARRAY(bool, nregions);
  find_back(a, delay_min);
  forget_sent(a);
  return a;
}

void gt_agreement_close(gt_agreement *a) {
  if (!a) return;
  for (size_t i = 0; i < 2 * a->nregions; i++) gt_free(a->promises[i].sent);
  gt_free(a->promises);
  gt_free(a->own.sent);
  gt_free(a->back);
  gt_free(a->sent);
  gt_free(a->ended);
  gt_free(a);
}

/* ---- announcements --------------------------------------------------------------------------- */

void gt_agreement_sent(gt_agreement *a, size_t region, gt_ns arrive) {
  a->sent[region] = sooner(a->sent[region], arrive);
}

void gt_agreement_open(gt_agreement *a, gt_ns next) {
  a->own.round++;
  a->own.next = next;
  memcpy(a->own.sent, a->sent, a->nregions * sizeof *a->sent);
  forget_sent(a);
}

bool gt_agreement_takes_part(const gt_agreement *a, size_t region) {
  return !a->ended[region];
}

size_t gt_agreement_bytes(const gt_agreement *a) {
  return sizeof(int64_t) + (1 + a->nregions) * sizeof(gt_ns);
}

void gt_agreement_write(const gt_agreement *a, bool alive, uint8_t *word) {
  const int64_t round = alive ? 0 : a->own.round;
  memcpy(word, &round, sizeof round);
  memcpy(word + sizeof round, &a->own.next, sizeof a->own.next);
  memcpy(word + sizeof round + sizeof a->own.next, a->own.sent, a->nregions * sizeof *a->own.sent);
}

/* No region can be further ahead: the next round needs this region's announcement of the one
   before. */
bool gt_agreement_read(gt_agreement *a, size_t region, const uint8_t *word) {
  int64_t round;
  memcpy(&round, word, sizeof round);
  if (round == 0) return true;
  if (round < a->own.round || round > a->own.round + 1) return false;
  promise *p = &a->promises[2 * region + (size_t)(round & 1)];
  p->round = round;
  memcpy(&p->next, word + sizeof round, sizeof p->next);
  memcpy(p->sent, word + sizeof round + sizeof p->next, a->nregions * sizeof *p->sent);
  return true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static const promise *said_by(const gt_agreement *a, size_t region) {
  return region == a->self ? &a->own : &a->promises[2 * region + (size_t)(a->own.round & 1)];
}

/* The earliest event of each region follows from its own announcement and from the frames in flight
   to it; that event plus `back` is the earliest arrival here that it can cause. */
static gt_ns work_out(const gt_agreement *a) {
  gt_ns safe = GT_NEVER;
  for (size_t r = 0; r < a->nregions; r++) {
    if (a->ended[r]) continue;
    gt_ns first = said_by(a, r)->next;
    for (size_t p = 0; p < a->nregions; p++)
      if (!a->ended[p]) first = sooner(first, said_by(a, p)->sent[r]);
    safe = sooner(safe, sum(first, a->back[r]));
  }
  return safe;
}

size_t gt_agreement_missing(const gt_agreement *a) {
  size_t r = 0;
  while (r < a->nregions && (r == a->self || a->ended[r] || said_by(a, r)->round == a->own.round))
    r++;
  return r;
}

bool gt_agreement_reached(gt_agreement *a, gt_ns *safe) {
  if (gt_agreement_missing(a) < a->nregions) return false;
  *safe = a->safe = work_out(a);
  for (size_t r = 0; r < a->nregions; r++)
    if (r != a->self && !a->ended[r] && said_by(a, r)->next == GT_NEVER) a->ended[r] = true;
  return true;
}

gt_ns gt_agreement_safe(const gt_agreement *a) {
  return a->safe;
}
