/* What a member reports about its rounds, and what the decider makes of all reports: the first
   rounds of the next epoch, and who has the state of the last ones (docs/membership.md). */
#include <string.h>

#include "internal.h"

size_t gt_ps_report_write(gt_ps *ps, int64_t *words) {
  const ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  words[0] = e->fresh | (e->fresh || gt_exchange_is_late(ps->exchange)) << 1 |
             (ps->phase == GT_PS_TRAINING) << 2;
  words[1] = gt_sync_place(ps->sync, false, 0);
  words[2] = ps->round;
  for (size_t i = 0; i < ranges; i++) {
    const gt_exchange_progress at = gt_exchange_progress_of(ps->exchange, i);
    words[PS_REPORT_HEAD + 2 * i] = at.applied;
    words[PS_REPORT_HEAD + 2 * i + 1] = at.own;
  }
  return PS_REPORT_HEAD + 2 * ranges;
}

void gt_ps_report_read(const gt_ps *ps, const int64_t *words, ps_report *report) {
  report->here = true;
  report->fresh = words[0] & 1;
  report->late = words[0] >> 1 & 1;
  report->trains = words[0] >> 2 & 1;
  report->place = words[1];
  report->round = words[2];
  for (size_t i = 0; i < gt_exchange_ranges(ps->exchange); i++) {
    report->ranges[i].applied = words[PS_REPORT_HEAD + 2 * i];
    report->ranges[i].own = words[PS_REPORT_HEAD + 2 * i + 1];
  }
}

/* ---- the decision ---------------------------------------------------------------------------- */

/* The members that a value is taken from: those that train and have contributed since they came;
   those that train; those with the state of the group. */
typedef enum { ABREAST, TRAINS, HAS_STATE } standing;

static bool stands(const ps_report *report, standing as) {
  if (report->fresh) return false;
  return as == HAS_STATE || (report->trains && !(as == ABREAST && report->late));
}

/* Returns the first such member with the largest value; nregions: none. */
static size_t most(const gt_ps *ps, standing as, int64_t (*value)(const ps_report *, size_t),
                   size_t range) {
  const ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  size_t best = n;
  for (size_t r = 0; r < n; r++) {
    if (!e->in[r] || !stands(&e->reports[r], as)) continue;
    if (best == n || value(&e->reports[r], range) > value(&e->reports[best], range)) best = r;
  }
  return best;
}

static int64_t applied_of(const ps_report *report, size_t range) {
  return report->ranges[range].applied;
}

static int64_t own_of(const ps_report *report, size_t range) {
  return report->ranges[range].own;
}

/* Returns the number of contributions; range: the number of ranges. */
static int64_t contributions(const ps_report *report, size_t ranges) {
  int64_t sum = 0;
  for (size_t i = 0; i < ranges; i++) sum += report->ranges[i].own;
  return sum;
}

bool gt_ps_is_ahead(const gt_ps *ps, const ps_report *report, const int64_t *applied,
                    size_t *range) {
  for (*range = 0; *range < gt_exchange_ranges(ps->exchange); ++*range)
    if (report->fresh && report->ranges[*range].applied > applied[*range] + 1) return true;
  return false;
}

void gt_ps_decision_open(const gt_ps *ps, ps_decision *d) {
  const size_t n = ps->spec.nregions, ranges = gt_exchange_ranges(ps->exchange);
  *d = (ps_decision){.members = GT_NEW_ARRAY(bool, n),
                     .late = GT_NEW_ARRAY(bool, n),
                     .applied = GT_NEW_ARRAY(int64_t, ranges + 1),
                     .floor = GT_NEW_ARRAY(int64_t, ranges + 1),
                     .source = GT_NEW_ARRAY(size_t, ranges + 1)};
}

void gt_ps_decision_close(ps_decision *d) {
  gt_free(d->members);
  gt_free(d->late);
  gt_free(d->applied);
  gt_free(d->floor);
  gt_free(d->source);
}

bool gt_ps_decide(const gt_ps *ps, ps_decision *d) {
  const ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions, ranges = gt_exchange_ranges(ps->exchange);
  size_t pace = most(ps, ABREAST, contributions, ranges);
  const bool abreast = pace < n; /* else a late member counts at once */
  if (pace == n) pace = most(ps, TRAINS, contributions, ranges);
  if (pace == n) pace = most(ps, HAS_STATE, contributions, ranges);
  if (pace == n) return false;
  gt_ps_decision_open(ps, d);
  d->number = e->promised;
  d->place = e->reports[pace].place;
  for (size_t i = 0; i < ranges; i++) {
    d->source[i] = most(ps, HAS_STATE, applied_of, i);
    d->applied[i] = applied_of(&e->reports[d->source[i]], i);
    d->floor[i] = abreast ? own_of(&e->reports[most(ps, ABREAST, own_of, i)], i) : 0;
    if (d->floor[i] < d->applied[i]) d->floor[i] = d->applied[i];
  }
  for (size_t r = 0; r < n; r++) {
    d->members[r] = e->in[r];
    d->late[r] = e->in[r] && e->reports[r].late;
    if (e->in[r] && e->reports[r].round > d->round) d->round = e->reports[r].round;
  }
  return true;
}
