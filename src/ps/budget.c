/* limits.wan_bytes is never exceeded.  Region 0 keeps the account: it allows each region some bytes
   beyond those that the region has posted, in total never more than the limit.  A PING reports the
   bytes that a region has posted; the PONG answers with the bytes that it may post.  What a region
   posts counts from that moment, even if it has not left yet.
   Activations of a pipeline are not asked for, because a step that has begun must end: each region
   says with every step what it has posted (STRATEGY), and the run stops after the first step that
   has gone beyond the limit (over_wan_limit, rounds.c).  With several copies of a pipeline this is
   so for what they exchange, too; regions of other copies know it from the next PING. */
#include <math.h>

#include "internal.h"

#define KEEPER ((size_t)0)
#define AHEAD  8.0 /* 1/AHEAD of a region's equal share of what is left is allowed in advance */

static bool limited(const gt_ps *ps) {
  return ps->spec.wan_bytes_limit > 0 && ps->spec.nregions > 1 && ps->spec.copies.ntwins == 0;
}

double gt_ps_committed(const gt_ps *ps) {
  return ps->peers[ps->spec.self].wan_bytes + ps->budget.queued;
}

/* Strategy traffic posted by this region, and by the others as their heartbeats say. */
double gt_ps_wan_bytes(const gt_ps *ps) {
  double sum = ps->budget.queued;
  for (size_t p = 0; p < ps->spec.nregions; p++) sum += ps->peers[p].wan_bytes;
  return sum;
}

void gt_ps_budget_open(gt_ps *ps) {
  ps_budget *b = &ps->budget;
  size_t n = ps->spec.nregions;
  if (!limited(ps)) return;
  b->allowed = GT_NEW_ARRAY(double, n);
  b->known = GT_NEW_ARRAY(bool, n);
  for (size_t p = 0; p < n; p++) {
    b->allowed[p] = floor(ps->spec.wan_bytes_limit / (AHEAD * (double)n));
    b->known[p] = true;
  }
  b->low = b->allowed[0] / 2;
}

void gt_ps_budget_close(gt_ps *ps) {
  gt_free(ps->budget.allowed);
  gt_free(ps->budget.known);
}

/* Nothing is allowed in advance until region 0 has heard from every region what it has sent. */
void gt_ps_budget_load(gt_ps *ps) {
  ps_budget *b = &ps->budget;
  const gt_ps_host *host = &ps->spec.host;
  double *sent = &ps->peers[ps->spec.self].wan_bytes;
  if (host->left) *sent = fmax(*sent, host->left(host->ctx));
  if (!limited(ps)) return;
  for (size_t p = 0; p < ps->spec.nregions; p++) b->known[p] = p == ps->spec.self;
  b->allowed[ps->spec.self] = gt_ps_committed(ps);
  b->low = 0;
}

/* ---- region 0 -------------------------------------------------------------------------------- */

static bool all_known(const gt_ps *ps) {
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (!ps->budget.known[p]) return false;
  return true;
}

static double posted_by(const gt_ps *ps, size_t region) {
  return region == ps->spec.self ? gt_ps_committed(ps) : ps->peers[region].wan_bytes;
}

static void allow(gt_ps *ps, size_t region) {
  const double limit = ps->spec.wan_bytes_limit;
  double *allowed = ps->budget.allowed, posted = posted_by(ps, region), all = 0, free_bytes = limit;
  if (!all_known(ps)) return;
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    all += posted_by(ps, p);
    free_bytes -= allowed[p];
  }
  const double once = (double)gt_exchange_at_once(ps->exchange, region);
  double ahead = fmax((limit - all) / (AHEAD * (double)ps->spec.nregions), once);
  double more = floor(fmin(posted + ahead - allowed[region], free_bytes));
  if (more > 0 && allowed[region] + more >= posted + once) allowed[region] += more;
}

/* ---- what waits ------------------------------------------------------------------------------ */

/* PING: value this PS's clock, detail the bytes it has posted, sequence the samples it has seen,
   range the number of advance.c. */
void gt_ps_heartbeat(gt_ps *ps, size_t peer) {
  gt_frame_header head = {.kind = GT_MSG_PING,
                          .round = (uint32_t)ps->round,
                          .range = ps->advance.number,
                          .value = (uint64_t)ps->now,
                          .sequence = (uint64_t)ps->totals.samples,
                          .detail = (uint64_t)gt_ps_committed(ps)};
  if (peer == 0) ps->budget.pings++;
  ps->spec.host.send(ps->spec.host.ctx, peer, &head, NULL, 0, 0);
}

static void ask(gt_ps *ps) {
  if (ps->budget.answer > 0) return;
  gt_ps_heartbeat(ps, KEEPER);
  ps->budget.answer = ps->budget.pings;
  ps->budget.asked_at = gt_ps_committed(ps);
}

static bool enough(const gt_ps *ps, double bytes) {
  return gt_ps_committed(ps) + bytes <= ps->budget.allowed[ps->spec.self];
}

bool gt_ps_affords(gt_ps *ps, double bytes) {
  ps_budget *b = &ps->budget;
  bool keeper = ps->spec.self == KEEPER;
  if (!limited(ps)) return true;
  if (keeper && !enough(ps, bytes)) allow(ps, KEEPER);
  if (enough(ps, bytes)) {
    if (bytes >= b->need) b->need = 0;
    return true;
  }
  b->need = bytes;
  if (!keeper)
    ask(ps);
  else if (all_known(ps))
    ps->want_stop = GT_ERR_LIMIT;
  return false;
}

void gt_ps_budget_posted(gt_ps *ps, double bytes) {
  ps_budget *b = &ps->budget;
  b->queued += bytes;
  if (limited(ps) && ps->spec.self != KEEPER && !enough(ps, b->low)) ask(ps);
}

void gt_ps_budget_left(gt_ps *ps, double bytes) {
  ps->budget.queued -= bytes;
  ps->peers[ps->spec.self].wan_bytes += bytes;
}

/* True: traffic that waited for bytes may continue.  If not, the run may have to end.  final: no
   more can be allowed to a region that has posted as much as this one had when it asked. */
static bool go_on(gt_ps *ps, bool final) {
  ps_budget *b = &ps->budget;
  bool keeper = ps->spec.self == KEEPER;
  if (b->need <= 0 || gt_ps_frozen(ps)) return false;
  if (keeper && !enough(ps, b->need)) allow(ps, KEEPER);
  if (enough(ps, b->need)) {
    b->need = 0;
    return true;
  }
  if (final && (keeper || gt_ps_committed(ps) == b->asked_at))
    ps->want_stop = GT_ERR_LIMIT;
  else if (final)
    ask(ps);
  return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A region that is done posts no more, unless it posts for others. */
static bool posts_no_more(const gt_ps *ps, size_t region) {
  return ps->peers[region].done && !gt_exchange_forwards(ps->exchange, region);
}

uint64_t gt_ps_budget_ping(gt_ps *ps, size_t from, bool *goes_on) {
  ps_budget *b = &ps->budget;
  *goes_on = false;
  if (!limited(ps) || ps->spec.self != KEEPER) return 0;
  /* A region that resumes first reports what it has sent. */
  const bool over = posts_no_more(ps, from);
  if (!b->known[from] || over) b->allowed[from] = ps->peers[from].wan_bytes;
  b->known[from] = true;
  if (!over) allow(ps, from);
  *goes_on = go_on(ps, all_known(ps));
  return all_known(ps) ? (uint64_t)b->allowed[from] : 0;
}

bool gt_ps_budget_pong(gt_ps *ps, size_t from, const gt_frame_header *head) {
  ps_budget *b = &ps->budget;
  if (!limited(ps) || from != KEEPER) return false;
  double allowed = (double)head->detail, *own = &b->allowed[ps->spec.self];
  if (allowed > *own) {
    *own = allowed;
    b->low = (allowed - gt_ps_committed(ps)) / 2;
  }
  if (++b->pongs < b->answer) return false;
  /* Region 0 does not know yet: the answer to the next heartbeat counts. */
  b->answer = allowed > 0 || b->need <= 0 ? 0 : b->pings + 1;
  return go_on(ps, allowed > 0);
}
