/* Decides who is a member.  A region that has lost others tells the decider, the first member in
   job order that it has not lost.  The decider proposes the members of the next epoch; each of them
   stops and reports its rounds; then the decider makes the epoch durable and announces it.  When
   all have entered it, they continue.  A proposal has a number of its own, and a region accepts
   only those of its decider, so that no two epochs have one number.  docs/membership.md. */
#include <string.h>

#include "internal.h"

/* What a message of kind MEMBERS says: its range.  value: the number of the proposal or epoch. */
enum {
  M_LOST,    /* the regions that the sender has lost; value: the newest proposal it has seen */
  M_JOIN,    /* the sender asks to return: its incarnation */
  M_REFUSE,  /* it is refused: the newest round of the group, and its own */
  M_PROPOSE, /* the members of the next epoch */
  M_NEWER,   /* the receiver of a proposal has seen a higher number: value */
  M_REPORT,  /* accepts a proposal: report_words */
  M_EPOCH,   /* the decision */
  M_READY,   /* the sender has entered the epoch: its incarnation, then the states it lacks */
  M_OUT      /* the receiver is no member of the epoch */
};

static void say(gt_ps *ps, size_t to, unsigned what, int64_t value, const int64_t *words,
                size_t n) {
  gt_outbox_control(ps->outbox, to,
                    (gt_frame_header){.kind = GT_MSG_MEMBERS,
                                      .range = what,
                                      .value = (uint64_t)value,
                                      .message_bytes = n * sizeof *words},
                    words, n * sizeof *words);
}

static void say_to(gt_ps *ps, const bool *set, unsigned what, int64_t value, const int64_t *words,
                   size_t n) {
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (set[r] && r != ps->spec.self) say(ps, r, what, value, words, n);
}

static size_t ranges_of(const gt_ps *ps) {
  return gt_exchange_ranges(ps->exchange);
}

static void freeze(gt_ps *ps) {
  ps->epoch.frozen = true;
  gt_ps_hold(ps, PS_HOLDER_EPOCH, true);
}

static void consider(gt_ps *ps);

/* ---- entering an epoch ----------------------------------------------------------------------- */

static bool all_ready(const gt_ps *ps) {
  const ps_epoch *e = &ps->epoch;
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (e->member[r] && r != ps->spec.self && e->ready[r] < e->number) return false;
  return true;
}

static void release(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  bool needs = false;
  for (size_t i = 0; i < ranges_of(ps); i++) needs = needs || e->needs[i];
  gt_ps_hold(ps, PS_HOLDER_EPOCH, needs);
  gt_exchange_pause(ps->exchange, needs);
  gt_exchange_start(ps->exchange);
}

static void end_freeze(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  if (!e->frozen || e->outside || e->promised != e->number || !all_ready(ps)) return;
  e->frozen = e->proposing = false;
  release(ps);
}

/* Tells the members that this one is ready, and what it lacks.  Until all are, nothing changes the
   state that it sends to those that lack it. */
static void enter(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions, ranges = ranges_of(ps);
  int64_t words[GT_CONTROL_NUMBERS];
  bool *was = GT_NEW_ARRAY(bool, n);
  memcpy(was, e->member, n * sizeof *was);
  gt_ps_enter_epoch(ps, d);
  gt_exchange_pause(ps->exchange, true);
  words[0] = (int64_t)ps->spec.members.incarnation;
  gt_ps_set_write(words + 1, e->needs, ranges);
  say_to(ps, e->member, M_READY, e->number, words, 1 + gt_ps_words(ranges));
  for (size_t r = 0; r < n; r++) {
    if (was[r] && !e->member[r]) gt_ps_members_refuse(ps, r);
    if (e->member[r] && e->ready[r] == e->number) gt_ps_send_states(ps, r);
  }
  gt_free(was);
  end_freeze(ps);
  for (size_t r = 0; r < n; r++)
    if (e->member[r] && e->lost[r]) { /* since before it entered */
      consider(ps);
      return;
    }
}

void gt_ps_members_refuse(gt_ps *ps, size_t peer) {
  const ps_epoch *e = &ps->epoch;
  if (e->changes && !e->outside && !e->out && !e->frozen && !e->joins[peer])
    say(ps, peer, M_OUT, e->number, NULL, 0);
}

/* ---- reports --------------------------------------------------------------------------------- */

#define REPORT_HEAD 3 /* flags, place, round; then applied and own of each range */

static size_t write_report(gt_ps *ps, int64_t *words) {
  const ps_epoch *e = &ps->epoch;
  const size_t ranges = ranges_of(ps);
  words[0] = e->fresh | (e->fresh || gt_exchange_is_late(ps->exchange)) << 1 |
             (ps->phase == GT_PS_TRAINING) << 2;
  words[1] = gt_sync_place(ps->sync, false, 0);
  words[2] = ps->round;
  for (size_t i = 0; i < ranges; i++) {
    const gt_exchange_progress at = gt_exchange_progress_of(ps->exchange, i);
    words[REPORT_HEAD + 2 * i] = at.applied;
    words[REPORT_HEAD + 2 * i + 1] = at.own;
  }
  return REPORT_HEAD + 2 * ranges;
}

static void read_report(const gt_ps *ps, const int64_t *words, ps_report *report) {
  report->here = true;
  report->fresh = words[0] & 1;
  report->late = words[0] >> 1 & 1;
  report->trains = words[0] >> 2 & 1;
  report->place = words[1];
  report->round = words[2];
  for (size_t i = 0; i < ranges_of(ps); i++) {
    report->ranges[i].applied = words[REPORT_HEAD + 2 * i];
    report->ranges[i].own = words[REPORT_HEAD + 2 * i + 1];
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

static void propose(gt_ps *ps, bool again);

/* True if a region that returns is more than a round ahead of the group: a round that only this
   region has applied is repeated without it. */
static bool is_ahead(const gt_ps *ps, const ps_report *report, const int64_t *applied,
                     size_t *range) {
  for (*range = 0; *range < ranges_of(ps); ++*range)
    if (report->fresh && report->ranges[*range].applied > applied[*range] + 1) return true;
  return false;
}

/* Refuses regions that are ahead; true: the proposal is void. */
static bool refuses(gt_ps *ps, const int64_t *applied) {
  ps_epoch *e = &ps->epoch;
  bool any = false;
  size_t range;
  for (size_t r = 0; r < ps->spec.nregions; r++) {
    if (!e->in[r] || !is_ahead(ps, &e->reports[r], applied, &range)) continue;
    const int64_t words[2] = {applied[range], e->reports[r].ranges[range].applied};
    say(ps, r, M_REFUSE, e->number, words, 2);
    e->joins[r] = false;
    e->lost[r] = any = true;
  }
  if (any) propose(ps, true);
  return any;
}

static void decide(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  const gt_ps_host *host = &ps->spec.host;
  const size_t n = ps->spec.nregions, ranges = ranges_of(ps), w = gt_ps_words(n);
  int64_t words[GT_CONTROL_NUMBERS], *numbers = words + 2 * w + 2;
  int64_t *applied = GT_NEW_ARRAY(int64_t, 2 * ranges + 1), *floor = applied + ranges;
  size_t *source = GT_NEW_ARRAY(size_t, ranges + 1);
  bool *late = GT_NEW_ARRAY(bool, n);
  size_t pace = most(ps, ABREAST, contributions, ranges);
  const bool abreast = pace < n; /* else a late member counts at once */
  if (pace == n) pace = most(ps, TRAINS, contributions, ranges);
  if (pace == n) pace = most(ps, HAS_STATE, contributions, ranges);
  ps_decision d = {.number = e->promised,
                   .place = e->reports[pace].place,
                   .members = e->in,
                   .late = late,
                   .applied = applied,
                   .floor = floor,
                   .source = source};
  for (size_t i = 0; i < ranges; i++) {
    source[i] = most(ps, HAS_STATE, applied_of, i);
    applied[i] = applied_of(&e->reports[source[i]], i);
    floor[i] = abreast ? own_of(&e->reports[most(ps, ABREAST, own_of, i)], i) : 0;
    if (floor[i] < applied[i]) floor[i] = applied[i];
    numbers[3 * i] = applied[i];
    numbers[3 * i + 1] = floor[i];
    numbers[3 * i + 2] = (int64_t)source[i];
  }
  for (size_t r = 0; r < n; r++) {
    late[r] = e->in[r] && e->reports[r].late;
    if (e->in[r] && e->reports[r].round > d.round) d.round = e->reports[r].round;
  }
  if (!refuses(ps, applied)) {
    gt_ps_set_write(words, e->in, n);
    gt_ps_set_write(words + w, late, n);
    words[2 * w] = d.place;
    words[2 * w + 1] = d.round;
    host->epoch(host->ctx, d.number, e->in);
    say_to(ps, e->in, M_EPOCH, d.number, words, 2 * w + 2 + 3 * ranges);
    e->proposing = false;
    enter(ps, &d);
  }
  gt_free(applied);
  gt_free(source);
  gt_free(late);
}

static bool all_reported(const gt_ps *ps) {
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (ps->epoch.in[r] && !ps->epoch.reports[r].here) return false;
  return true;
}

/* Decides when all have reported, if one of them has the state of the group. */
static void decide_if_all(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  if (!e->proposing || !all_reported(ps)) return;
  if (most(ps, HAS_STATE, contributions, ranges_of(ps)) < ps->spec.nregions)
    decide(ps);
  else
    e->minority = true;
}

/* Reports to the decider when no checkpoint is being written. */
void gt_ps_members_pump(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  int64_t words[GT_CONTROL_NUMBERS];
  if (!e->changes) return;
  if (e->minority || e->out) gt_ps_round_whole(ps);
  if (!e->owes || ps->own_written < ps->round) return;
  e->owes = false;
  const size_t n = write_report(ps, words);
  if (e->decider != ps->spec.self) {
    say(ps, e->decider, M_REPORT, e->promised, words, n);
    return;
  }
  read_report(ps, words, &e->reports[ps->spec.self]);
  decide_if_all(ps);
}

/* ---- proposals ------------------------------------------------------------------------------- */

static void send_proposal(gt_ps *ps, size_t to) {
  int64_t words[GT_CONTROL_NUMBERS];
  gt_ps_set_write(words, ps->epoch.in, ps->spec.nregions);
  say(ps, to, M_PROPOSE, ps->epoch.promised, words, gt_ps_words(ps->spec.nregions));
}

/* Proposes the members and regions that return, without those lost, if they are a majority.
   again: also the same members as before. */
static void propose(gt_ps *ps, bool again) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  bool changes = again || e->frozen;
  for (size_t r = 0; r < n; r++) {
    e->in[r] = (e->member[r] || e->joins[r]) && !e->lost[r];
    changes = changes || e->in[r] != e->member[r] || (e->joins[r] && e->in[r]);
    e->reports[r].here = e->reports[r].fresh = false;
  }
  e->minority = !gt_ps_is_majority(ps, e->in);
  e->proposing = changes && !e->minority;
  if (!e->proposing) return;
  e->promised = (e->promised > e->number ? e->promised : e->number) + 1;
  ps->spec.host.epoch(ps->spec.host.ctx, e->promised, NULL);
  e->decider = ps->spec.self;
  e->owes = true;
  freeze(ps);
  for (size_t r = 0; r < n; r++)
    if (e->in[r] && r != ps->spec.self) send_proposal(ps, r);
}

/* Acts on a change of the regions that are lost or return. */
static void consider(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  int64_t words[GT_CONTROL_NUMBERS];
  const size_t first = gt_ps_first_member(ps);
  if (e->outside || e->out || ps->phase == GT_PS_STOPPED) return;
  if (first == ps->spec.self) {
    propose(ps, false);
    return;
  }
  e->proposing = false;
  gt_ps_set_write(words, e->lost, ps->spec.nregions);
  say(ps, first, M_LOST, e->promised, words, gt_ps_words(ps->spec.nregions));
}

void gt_ps_members_lost(gt_ps *ps, size_t peer) {
  ps_epoch *e = &ps->epoch;
  if (!e->changes || e->lost[peer]) return;
  const bool counts = e->member[peer] || e->joins[peer] || (e->frozen && e->in[peer]);
  e->lost[peer] = true;
  e->joins[peer] = false;
  if (!counts) return;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_LOST, (double)peer, 0);
  consider(ps);
}

void gt_ps_members_tick(gt_ps *ps) {
  const int64_t incarnation = (int64_t)ps->spec.members.incarnation;
  if (!ps->epoch.outside || ps->epoch.owes) return;
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (r != ps->spec.self) say(ps, r, M_JOIN, ps->epoch.number, &incarnation, 1);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void take_lost(gt_ps *ps, size_t from, int64_t promised, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  if (!e->member[from] || e->lost[from] || gt_ps_first_member(ps) != ps->spec.self) return;
  if (e->proposing && e->in[from] && !e->reports[from].here) send_proposal(ps, from);
  bool *lost = GT_NEW_ARRAY(bool, n);
  gt_ps_set_read(words, lost, n);
  for (size_t r = 0; r < n; r++)
    if (lost[r] && r != ps->spec.self && r != from) gt_ps_members_lost(ps, r);
  gt_free(lost);
  if (promised <= e->promised) return;
  e->promised = promised; /* it has stopped for a proposal that is void */
  propose(ps, true);
}

/* A region that has started again is connected again, but is no member until an epoch says so. */
static void take_join(gt_ps *ps, size_t from, uint64_t incarnation) {
  ps_epoch *e = &ps->epoch;
  const int64_t ended[2] = {-1, -1};
  if (e->outside) e->lost[from] = false;
  if (e->outside || e->out || e->incarnation[from] == incarnation) return;
  const bool proposed = e->frozen && e->in[from] && !e->lost[from],
             taken = e->member[from] && e->late[from] && e->ready[from] < e->number;
  if (taken && !e->lost[from]) return; /* it has not entered the epoch yet */
  e->lost[from] = false;
  if (!proposed) e->joins[from] = true;
  if (gt_ps_first_member(ps) != ps->spec.self) return;
  if (proposed && e->proposing && !e->reports[from].here) send_proposal(ps, from);
  if (proposed) return;
  if (ps->phase == GT_PS_COMPLETE || ps->phase == GT_PS_STOPPED)
    say(ps, from, M_REFUSE, e->number, ended, 2);
  else
    propose(ps, true);
}

static gt_status refused(gt_ps *ps, size_t from, const int64_t *words) {
  const gt_ps_host *host = &ps->spec.host;
  if (!ps->epoch.outside) return GT_OK;
  ps->epoch.out = true;
  if (words[0] < 0)
    host->fault(host->ctx, GT_FAIL(GT_ERR_CKPT,
                                   "region %zu refuses this region: the run is at its "
                                   "end",
                                   from));
  else
    host->fault(host->ctx,
                GT_FAIL(GT_ERR_CKPT,
                        "the checkpoint of this region is of round %lld, and the others have gone "
                        "on from round %lld without it; resume from an older checkpoint",
                        (long long)words[1], (long long)words[0]));
  return GT_OK;
}

/* Accepts the proposal of this region's decider. */
static void take_proposal(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  if (e->out || ps->phase == GT_PS_STOPPED) return;
  if (!e->outside && !e->member[from]) say(ps, from, M_OUT, e->number, NULL, 0);
  if (!e->outside && (gt_ps_first_member(ps) != from || !e->member[from])) return;
  if (number <= e->promised) {
    if (number < e->promised || e->decider != from) say(ps, from, M_NEWER, e->promised, NULL, 0);
    return;
  }
  e->promised = number;
  ps->spec.host.epoch(ps->spec.host.ctx, number, NULL);
  e->decider = from;
  e->owes = true;
  gt_ps_set_read(words, e->in, ps->spec.nregions);
  freeze(ps);
}

static void take_newer(gt_ps *ps, int64_t number) {
  ps_epoch *e = &ps->epoch;
  if (!e->frozen || e->decider != ps->spec.self || number < e->promised) return;
  e->promised = number;
  propose(ps, true);
}

static void take_report(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  if (!e->proposing || number != e->promised || !e->in[from]) return;
  read_report(ps, words, &e->reports[from]);
  decide_if_all(ps);
}

static gt_status take_epoch(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions, ranges = ranges_of(ps), w = gt_ps_words(n);
  const int64_t *numbers = words + 2 * w + 2;
  if (number > e->number && number < e->promised) say(ps, from, M_NEWER, e->promised, NULL, 0);
  if (number != e->promised || number <= e->number || from != e->decider || e->owes) return GT_OK;
  for (size_t i = 0; i < ranges; i++)
    if (numbers[3 * i] < 0 || numbers[3 * i + 1] < numbers[3 * i] || numbers[3 * i + 2] < 0 ||
        (uint64_t)numbers[3 * i + 2] >= n)
      return GT_FAIL(GT_ERR_FAULT, "epoch %lld has the rounds %lld and %lld of region %lld",
                     (long long)number, (long long)numbers[3 * i], (long long)numbers[3 * i + 1],
                     (long long)numbers[3 * i + 2]);
  int64_t *applied = GT_NEW_ARRAY(int64_t, 2 * ranges + 1), *floor = applied + ranges;
  size_t *source = GT_NEW_ARRAY(size_t, ranges + 1);
  bool *members = GT_NEW_ARRAY(bool, 2 * n), *late = members + n;
  for (size_t i = 0; i < ranges; i++) {
    applied[i] = numbers[3 * i];
    floor[i] = numbers[3 * i + 1];
    source[i] = (size_t)numbers[3 * i + 2];
  }
  gt_ps_set_read(words, members, n);
  gt_ps_set_read(words + w, late, n);
  members[ps->spec.self] = true;
  enter(ps, &(ps_decision){.number = number,
                           .place = words[2 * w],
                           .round = words[2 * w + 1],
                           .members = members,
                           .late = late,
                           .applied = applied,
                           .floor = floor,
                           .source = source});
  gt_free(applied);
  gt_free(source);
  gt_free(members);
  return GT_OK;
}

static void take_ready(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  const size_t ranges = ranges_of(ps);
  if (number <= e->ready[from]) return;
  e->ready[from] = number;
  const bool again = e->lost[from]; /* it is connected again */
  e->lost[from] = false;
  e->incarnation[from] = (uint64_t)words[0];
  gt_ps_set_read(words + 1, e->lacks + from * ranges, ranges);
  if (number != e->number || !e->member[from]) return;
  gt_ps_send_states(ps, from);
  end_freeze(ps);
  if (again && e->proposing) consider(ps); /* it can be the decider */
}

static void take_out(gt_ps *ps, size_t from, int64_t number) {
  ps_epoch *e = &ps->epoch;
  const bool counts = e->member[from] || (e->frozen && e->in[from]);
  if (e->outside || !counts || number <= e->number) return;
  e->out = true;
  freeze(ps);
}

/* Returns the number of words of a message. */
static size_t words_of(const gt_ps *ps, unsigned what) {
  const size_t w = gt_ps_words(ps->spec.nregions), ranges = ranges_of(ps);
  switch (what) {
  case M_LOST:
  case M_PROPOSE:
    return w;
  case M_JOIN:
    return 1;
  case M_REFUSE:
    return 2;
  case M_REPORT:
    return REPORT_HEAD + 2 * ranges;
  case M_EPOCH:
    return 2 * w + 2 + 3 * ranges;
  case M_READY:
    return 1 + gt_ps_words(ranges);
  default:
    return 0;
  }
}

static gt_status state_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                               const void *body) {
  bool complete;
  GT_TRY(gt_ps_take_state(ps, from, head, body, &complete));
  if (complete && !ps->epoch.frozen) release(ps);
  return GT_OK;
}

gt_status gt_ps_members_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                                const void *body) {
  const ps_epoch *e = &ps->epoch;
  const int64_t value = (int64_t)head->value;
  int64_t words[GT_CONTROL_NUMBERS] = {0};
  if (!e->changes || from >= ps->spec.nregions || from == ps->spec.self || value < 0)
    return GT_FAIL(GT_ERR_FAULT,
                   "a message about members of region %zu, epoch %lld, in a job whose "
                   "members %s",
                   from, (long long)value, e->changes ? "change" : "do not change");
  if (head->kind == GT_MSG_GROUP) return state_message(ps, from, head, body);
  const size_t n = words_of(ps, head->range);
  if (head->range > M_OUT || head->message_bytes != n * sizeof *words || (n && !body))
    return GT_FAIL(GT_ERR_FAULT,
                   "a message %u about members has %llu bytes; expected %zu of 0 to %d",
                   head->range, (unsigned long long)head->message_bytes, n * sizeof *words, M_OUT);
  if (n) memcpy(words, body, n * sizeof *words);
  switch (head->range) {
  case M_LOST:
    take_lost(ps, from, value, words);
    return GT_OK;
  case M_JOIN:
    take_join(ps, from, (uint64_t)words[0]);
    return GT_OK;
  case M_REFUSE:
    return refused(ps, from, words);
  case M_PROPOSE:
    take_proposal(ps, from, value, words);
    return GT_OK;
  case M_NEWER:
    take_newer(ps, value);
    return GT_OK;
  case M_REPORT:
    take_report(ps, from, value, words);
    return GT_OK;
  case M_EPOCH:
    return take_epoch(ps, from, value, words);
  case M_READY:
    take_ready(ps, from, value, words);
    return GT_OK;
  default:
    take_out(ps, from, value);
    return GT_OK;
  }
}
