/* The members of an epoch, and the rules about them: which message counts, which regions are a
   majority. */
#include <string.h>

#include "internal.h"

void gt_ps_group_open(ps_group *g, const gt_ps *ps, const size_t *regions, size_t n) {
  const size_t all = ps->spec.nregions;
  g->n = n ? n : all;
  g->regions = GT_NEW_ARRAY(size_t, g->n);
  g->of = GT_NEW_ARRAY(size_t, all);
  for (size_t r = 0; r < all; r++) g->of[r] = PS_NONE;
  for (size_t i = 0; i < g->n; i++) {
    g->regions[i] = n ? regions[i] : i;
    g->of[g->regions[i]] = i;
  }
  g->self = g->of[ps->spec.self];
  if (g->self == PS_NONE) gt_bug("region %zu is not of its own group", ps->spec.self);
}

void gt_ps_group_close(ps_group *g) {
  gt_free(g->regions);
  gt_free(g->of);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void open_changes(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions, ranges = gt_exchange_ranges(ps->exchange);
  const ps_plane *plane = ps->plane;
  if (plane->together || gt_topology_per_worker(ps->spec.topology) || ps->spec.wan_bytes_limit > 0)
    gt_bug("members change, with a pipeline, a central region or a limit on bytes");
  if (2 * gt_ps_words(n) + 2 + 3 * ranges > GT_CONTROL_NUMBERS)
    gt_bug("members change, with %zu ranges of %zu regions", ranges, n);
  e->lost = GT_NEW_ARRAY(bool, n);
  e->since = GT_NEW_ARRAY(int64_t, n);
  e->incarnation = GT_NEW_ARRAY(uint64_t, n);
  e->ready = GT_NEW_ARRAY(int64_t, n);
  e->lacks = GT_NEW_ARRAY(bool, n *ranges + 1);
  e->in = GT_NEW_ARRAY(bool, n);
  e->joins = GT_NEW_ARRAY(bool, n);
  e->reports = GT_NEW_ARRAY(ps_report, n);
  e->source = GT_NEW_ARRAY(size_t, ranges + 1);
  e->late = GT_NEW_ARRAY(bool, n);
  e->needs = GT_NEW_ARRAY(bool, ranges + 1);
  e->weights = GT_NEW_ARRAY(double, n);
  gt_ps_position_open(e, n, ranges);
  for (size_t r = 0; r < n; r++)
    e->reports[r].ranges = GT_NEW_ARRAY(gt_exchange_progress, ranges + 1);
  e->incarnation[ps->spec.self] = ps->spec.members.incarnation;
  e->promised = ps->spec.members.promised;
  e->next_cookie = PS_GROUP_COOKIE;
}

void gt_ps_epoch_open(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  e->changes = ps->spec.members.change;
  e->member = GT_NEW_ARRAY(bool, n);
  for (size_t r = 0; r < n; r++) e->member[r] = true;
  if (!e->changes) return;
  open_changes(ps);
  e->outside = e->fresh = e->frozen = ps->spec.members.returns;
  if (!e->outside) return;
  for (size_t r = 0; r < n; r++) {
    e->member[r] = r == ps->spec.self;
    if (r == ps->spec.self) continue;
    gt_outbox_renew(ps->outbox, r, false);
    gt_outbox_hold(ps->outbox, r, true);
  }
}

void gt_ps_epoch_close(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  for (size_t r = 0; e->reports && r < ps->spec.nregions; r++) gt_free(e->reports[r].ranges);
  for (size_t i = 0; i < e->nstates; i++) gt_free(e->states[i].bytes);
  gt_free(e->states);
  gt_free(e->member);
  gt_free(e->lost);
  gt_free(e->since);
  gt_free(e->incarnation);
  gt_free(e->ready);
  gt_free(e->lacks);
  gt_free(e->in);
  gt_free(e->joins);
  gt_free(e->reports);
  gt_free(e->source);
  gt_free(e->late);
  gt_free(e->needs);
  gt_free(e->weights);
  gt_ps_position_close(e);
}

/* ---- rules ----------------------------------------------------------------------------------- */

void gt_ps_set_write(int64_t *words, const bool *set, size_t n) {
  memset(words, 0, gt_ps_words(n) * sizeof *words);
  for (size_t r = 0; r < n; r++)
    if (set[r]) words[r / 64] = (int64_t)((uint64_t)words[r / 64] | (uint64_t)1 << r % 64);
}

void gt_ps_set_read(const int64_t *words, bool *set, size_t n) {
  for (size_t r = 0; r < n; r++) set[r] = ((uint64_t)words[r / 64] >> r % 64 & 1) != 0;
}

size_t gt_ps_first_member(const gt_ps *ps) {
  const ps_epoch *e = &ps->epoch;
  size_t r = 0;
  if (!e->changes) return 0;
  while (r != ps->spec.self &&
         (!e->member[r] || e->lost[r] || e->joins[r] || e->ready[r] < e->number))
    r++;
  return r;
}

bool gt_ps_is_behind(const gt_ps *ps) {
  const ps_epoch *e = &ps->epoch;
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (!e->lost[r] && e->ready[r] > e->number) return true;
  return false;
}

/* The weights of a job are sums of whole numbers, so that rounding is far below 1e-9. */
bool gt_ps_majority(const double *weights, size_t nregions, size_t tie, const bool *set) {
  double all = 0, own = 0;
  for (size_t r = 0; r < nregions; r++) {
    all += weights[r];
    if (set[r]) own += weights[r];
  }
  const double lead = 2 * own - all;
  if (lead > 1e-9 * all) return true;
  return lead >= -1e-9 * all && tie < nregions && set[tie];
}

bool gt_ps_is_majority(const gt_ps *ps, const bool *set) {
  return gt_ps_majority(ps->spec.weights, ps->spec.nregions, ps->spec.members.tie, set);
}

bool gt_ps_epoch_takes(const gt_ps *ps, size_t from, const gt_frame_header *head) {
  const ps_epoch *e = &ps->epoch;
  if (!e->changes) return true;
  if (from >= ps->spec.nregions || !e->member[from] || e->out) return false;
  /* after its report the region's state must not change */
  const bool reported = e->frozen && e->promised > e->number;
  if (gt_msg_is_data(head->kind) || head->kind == GT_MSG_ACK)
    return head->epoch >= e->since[from] && (!reported || gt_exchange_continues(ps->exchange));
  if (head->kind == GT_MSG_PING || head->kind == GT_MSG_PONG) return head->epoch == e->number;
  return head->epoch == e->number && !reported;
}
