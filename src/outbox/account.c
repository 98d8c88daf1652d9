/* The cap on bytes (limits.wan_bytes) is never exceeded.  Region 0 keeps the account: it allows
   each region some bytes beyond those that the region has posted, in total at most the limit.  A
   PING reports the bytes that a region has posted; the PONG answers with the bytes that it may
   post.  Bytes count from their post, not from their sending. */
#include <math.h>

#include "internal.h"

#define KEEPER ((size_t)0)
/* At most 1/AHEAD of a region's equal share of the remaining bytes is allowed in advance. */
#define AHEAD 8.0

static bool limited(const gt_outbox *o) {
  return o->spec.limit > 0 && o->spec.nregions > 1;
}

static bool keeps(const gt_outbox *o) {
  return o->spec.self == KEEPER;
}

double gt_outbox_posted(const gt_outbox *o) {
  return o->peers[o->spec.self].wan_bytes + o->account.queued;
}

double gt_outbox_wan_bytes(const gt_outbox *o) {
  double sum = o->account.queued;
  for (size_t p = 0; p < o->spec.nregions; p++) sum += o->peers[p].wan_bytes;
  return sum;
}

void gt_account_open(gt_outbox *o) {
  outbox_account *b = &o->account;
  const size_t n = o->spec.nregions;
  if (!limited(o)) return;
  b->allowed = GT_NEW_ARRAY(double, n);
  b->known = GT_NEW_ARRAY(bool, n);
  for (size_t p = 0; p < n; p++) {
    b->allowed[p] = floor(o->spec.limit / (AHEAD * (double)n));
    b->known[p] = true;
  }
  b->low = b->allowed[0] / 2;
}

void gt_account_close(gt_outbox *o) {
  gt_free(o->account.allowed);
  gt_free(o->account.known);
}

/* Region 0 allows nothing in advance until every region has reported its bytes. */
void gt_account_load(gt_outbox *o, double left) {
  outbox_account *b = &o->account;
  const size_t self = o->spec.self;
  o->peers[self].wan_bytes = fmax(o->peers[self].wan_bytes, left);
  if (!limited(o)) return;
  for (size_t p = 0; p < o->spec.nregions; p++) b->known[p] = p == self;
  b->allowed[self] = gt_outbox_posted(o);
  b->low = 0;
}

void gt_outbox_stop(gt_outbox *o) {
  o->account.stopped = true;
}

bool gt_outbox_exhausted(const gt_outbox *o) {
  return o->account.exhausted;
}

/* ---- region 0 -------------------------------------------------------------------------------- */

static bool all_known(const gt_outbox *o) {
  for (size_t p = 0; p < o->spec.nregions; p++)
    if (!o->account.known[p]) return false;
  return true;
}

static double posted_by(const gt_outbox *o, size_t region) {
  return region == o->spec.self ? gt_outbox_posted(o) : o->peers[region].wan_bytes;
}

static void allow(gt_outbox *o, size_t region) {
  const double limit = o->spec.limit;
  double *allowed = o->account.allowed, posted = posted_by(o, region), all = 0, free_bytes = limit;
  if (!all_known(o)) return;
  for (size_t p = 0; p < o->spec.nregions; p++) {
    all += posted_by(o, p);
    free_bytes -= allowed[p];
  }
  const double once = o->use.at_once[region];
  const double ahead = fmax((limit - all) / (AHEAD * (double)o->spec.nregions), once);
  const double more = floor(fmin(posted + ahead - allowed[region], free_bytes));
  if (more > 0 && allowed[region] + more >= posted + once) allowed[region] += more;
}

/* ---- messages that wait for bytes ------------------------------------------------------------ */

void gt_outbox_beat(gt_outbox *o, size_t peer) {
  if (peer == KEEPER) o->account.pings++;
  gt_outbox_control(o, peer,
                    (gt_frame_header){.kind = GT_MSG_PING,
                                      .range = *o->spec.number,
                                      .value = (uint64_t)o->now,
                                      .posted_bytes = (uint64_t)gt_outbox_posted(o),
                                      .samples = (uint64_t)*o->spec.samples},
                    NULL, 0);
}

static void ask(gt_outbox *o) {
  if (o->account.answer > 0) return;
  gt_outbox_beat(o, KEEPER);
  o->account.answer = o->account.pings;
  o->account.asked_at = gt_outbox_posted(o);
}

static bool enough(const gt_outbox *o, double bytes) {
  return gt_outbox_posted(o) + bytes <= o->account.allowed[o->spec.self];
}

bool gt_account_allows(gt_outbox *o, double bytes) {
  outbox_account *b = &o->account;
  if (!limited(o)) return true;
  if (keeps(o) && !enough(o, bytes)) allow(o, KEEPER);
  if (enough(o, bytes)) {
    if (bytes >= b->need) b->need = 0;
    return true;
  }
  b->need = bytes;
  if (!keeps(o))
    ask(o);
  else if (all_known(o))
    b->exhausted = true;
  return false;
}

void gt_account_posted(gt_outbox *o, double bytes) {
  o->account.queued += bytes;
  if (limited(o) && !keeps(o) && !enough(o, o->account.low)) ask(o);
}

void gt_account_left(gt_outbox *o, double bytes) {
  o->account.queued -= bytes;
  gt_outbox_left(o, bytes);
}

void gt_outbox_left(gt_outbox *o, double bytes) {
  o->peers[o->spec.self].wan_bytes += bytes;
}

void gt_outbox_reported(gt_outbox *o, size_t peer, double bytes) {
  o->peers[peer].wan_bytes = bytes;
}

/* Ends the wait of messages for bytes if the cap now allows them; else the run may have to end.
   final: a region that has posted as much as this one had when it asked gets no more. */
static bool go_on(gt_outbox *o, bool final) {
  outbox_account *b = &o->account;
  if (b->need <= 0 || b->stopped) return false;
  if (keeps(o) && !enough(o, b->need)) allow(o, KEEPER);
  if (enough(o, b->need)) {
    b->need = 0;
    return true;
  }
  if (final && (keeps(o) || gt_outbox_posted(o) == b->asked_at))
    b->exhausted = true;
  else if (final)
    ask(o);
  return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

bool gt_outbox_ping(gt_outbox *o, size_t from, const gt_frame_header *head, bool done) {
  outbox_account *b = &o->account;
  gt_outbox_reported(o, from, (double)head->posted_bytes);
  if (!limited(o) || !keeps(o)) return false;
  /* After a resume a region first reports the bytes that it has sent; after its last step it posts
     no more, unless it forwards messages. */
  const bool over = done && !o->use.forwards[from];
  if (!b->known[from] || over) b->allowed[from] = o->peers[from].wan_bytes;
  b->known[from] = true;
  if (!over) allow(o, from);
  return go_on(o, all_known(o));
}

void gt_outbox_answer(gt_outbox *o, size_t from, const gt_frame_header *head) {
  const bool allows = limited(o) && keeps(o) && all_known(o);
  gt_outbox_control(
      o, from,
      (gt_frame_header){.kind = GT_MSG_PONG,
                        .value = head->value,
                        .clock = (uint64_t)o->now,
                        .allowed_bytes = allows ? (uint64_t)o->account.allowed[from] : 0},
      NULL, 0);
}

bool gt_outbox_pong(gt_outbox *o, size_t from, const gt_frame_header *head) {
  outbox_account *b = &o->account;
  gt_links_measure_answer(o, &o->peers[from], (gt_ns)head->value, (gt_ns)head->clock);
  if (!limited(o) || from != KEEPER) return false;
  const double allowed = (double)head->allowed_bytes;
  double *own = &b->allowed[o->spec.self];
  if (allowed > *own) {
    *own = allowed;
    b->low = (allowed - gt_outbox_posted(o)) / 2;
  }
  if (++b->pongs < b->answer) return false;
  /* Region 0 cannot decide yet: the answer to the next heartbeat counts. */
  b->answer = allowed > 0 || b->need <= 0 ? 0 : b->pings + 1;
  return go_on(o, allowed > 0);
}
