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
  M_JOIN,    /* the sender asks to return: its incarnation; value: the epoch of its checkpoint */
  M_REFUSE,  /* it is refused: the newest round of the group, and its own */
  M_PROPOSE, /* the members of the next epoch */
  M_NEWER,   /* the receiver of a proposal has seen a higher number: value */
  M_REPORT,  /* accepts a proposal: report_words */
  M_EPOCH,   /* the decision */
  M_READY,   /* the sender has entered the epoch: its incarnation, then the states it lacks */
  M_ASK,     /* the receiver repeats M_READY: the sender has not heard that it is in this epoch */
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

static void freeze(gt_ps *ps) {
  ps->epoch.frozen = true;
  gt_ps_hold(ps, PS_HOLDER_EPOCH, true);
}

static void consider(gt_ps *ps);

/* This region is no member any more. */
static void leave(gt_ps *ps) {
  ps->epoch.out = true;
  ps->epoch.proposing = false;
  freeze(ps);
}

void gt_ps_leave(gt_ps *ps, gt_status code, gt_ns now) {
  gt_ps_at(ps, now);
  leave(ps);
  gt_ps_stop(ps, code, now);
}

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
  for (size_t i = 0; i < gt_exchange_ranges(ps->exchange); i++) needs = needs || e->needs[i];
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

static void say_ready(gt_ps *ps, size_t to) {
  const ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  int64_t words[GT_CONTROL_NUMBERS];
  words[0] = (int64_t)ps->spec.members.incarnation;
  gt_ps_set_write(words + 1, e->needs, ranges);
  say(ps, to, M_READY, e->number, words, 1 + gt_ps_words(ranges));
}

/* Tells the members that this one is ready, and what it lacks.  Until all are, nothing changes the
   state that it sends to those that lack it. */
static void enter(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  bool *was = GT_NEW_ARRAY(bool, n);
  memcpy(was, e->member, n * sizeof *was);
  gt_ps_enter_epoch(ps, d);
  gt_exchange_pause(ps->exchange, true);
  for (size_t r = 0; r < n; r++) {
    if (e->member[r] && r != ps->spec.self) say_ready(ps, r);
    if (was[r] && !e->member[r]) gt_ps_members_refuse(ps, r);
    if (e->member[r] && e->ready[r] == e->number) gt_ps_send_states(ps, r);
  }
  gt_free(was);
  end_freeze(ps);
}

void gt_ps_members_refuse(gt_ps *ps, size_t peer) {
  const ps_epoch *e = &ps->epoch;
  if (e->changes && !e->outside && !e->out && !e->frozen && !e->joins[peer])
    say(ps, peer, M_OUT, e->number, NULL, 0);
}

/* ---- the decision ---------------------------------------------------------------------------- */

static void propose(gt_ps *ps, bool again);

/* Ends this region, which the group refuses: words as in M_REFUSE, or -1: at the end of the run. */
static void end_refused(gt_ps *ps, const int64_t *words) {
  const gt_ps_host *host = &ps->spec.host;
  ps->epoch.out = true;
  if (words[0] < 0)
    host->fault(host->ctx, GT_FAIL(GT_ERR_CKPT, "the run is at its end, and the other regions do "
                                                "not take this region back"));
  else
    host->fault(host->ctx,
                GT_FAIL(GT_ERR_CKPT,
                        "the checkpoint of this region is of round %lld, and the others have gone "
                        "on from round %lld without it; resume from an older checkpoint",
                        (long long)words[1], (long long)words[0]));
}

/* Refuses regions that are ahead; true: the proposal is void. */
static bool refuses(gt_ps *ps, const int64_t *applied) {
  ps_epoch *e = &ps->epoch;
  bool any = false;
  size_t range;
  for (size_t r = 0; r < ps->spec.nregions; r++) {
    if (!e->in[r] || !gt_ps_is_ahead(ps, &e->reports[r], applied, &range)) continue;
    const int64_t words[2] = {applied[range], e->reports[r].ranges[range].applied};
    if (r == ps->spec.self) {
      end_refused(ps, words);
      return true;
    }
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
  const size_t n = ps->spec.nregions, ranges = gt_exchange_ranges(ps->exchange), w = gt_ps_words(n);
  int64_t words[GT_CONTROL_NUMBERS], *numbers = words + 2 * w + 2;
  ps_decision d;
  e->minority = !gt_ps_decide(ps, &d);
  if (e->minority) return;
  if (!refuses(ps, d.applied)) {
    gt_ps_set_write(words, d.members, n);
    gt_ps_set_write(words + w, d.late, n);
    words[2 * w] = d.place;
    words[2 * w + 1] = d.round;
    for (size_t i = 0; i < ranges; i++) {
      numbers[3 * i] = d.applied[i];
      numbers[3 * i + 1] = d.floor[i];
      numbers[3 * i + 2] = (int64_t)d.source[i];
    }
    host->epoch(host->ctx, d.number, d.members);
    say_to(ps, d.members, M_EPOCH, d.number, words, 2 * w + 2 + 3 * ranges);
    e->proposing = false;
    enter(ps, &d);
  }
  gt_ps_decision_close(&d);
}

static bool all_reported(const gt_ps *ps) {
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (ps->epoch.in[r] && !ps->epoch.reports[r].here) return false;
  return true;
}

static void decide_if_all(gt_ps *ps) {
  if (ps->epoch.proposing && all_reported(ps)) decide(ps);
}

/* Reports to the decider when no checkpoint is being written. */
void gt_ps_members_pump(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  int64_t words[GT_CONTROL_NUMBERS];
  if (!e->changes) return;
  gt_ps_round_alone(ps);
  if (!e->owes || ps->own_written < ps->round) return;
  e->owes = false;
  const size_t n = gt_ps_report_write(ps, words);
  if (e->decider != ps->spec.self) {
    say(ps, e->decider, M_REPORT, e->promised, words, n);
    return;
  }
  gt_ps_report_read(ps, words, &e->reports[ps->spec.self]);
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
  const bool over = ps->phase == GT_PS_COMPLETE;
  bool changes = again || e->frozen;
  for (size_t r = 0; r < n; r++) {
    e->in[r] = (e->member[r] || (e->joins[r] && !over)) && !e->lost[r];
    changes = changes || e->in[r] != e->member[r] || (e->joins[r] && e->in[r]);
    e->reports[r].here = e->reports[r].fresh = false;
  }
  e->minority = !gt_ps_is_majority(ps, e->in);
  e->proposing = changes && !e->minority && !gt_ps_is_behind(ps);
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

/* A decision is to be made: a member is lost, or a proposal of this region is void. */
static bool waits(const gt_ps *ps) {
  const ps_epoch *e = &ps->epoch;
  if (e->frozen && e->promised > e->number && e->decider == ps->spec.self) return true;
  for (size_t r = 0; r < ps->spec.nregions; r++)
    if (e->member[r] && e->lost[r]) return true;
  return false;
}

/* Repeats what a region can have missed that was not connected yet, or had another decider. */
void gt_ps_members_tick(gt_ps *ps) {
  ps_epoch *e = &ps->epoch;
  const int64_t incarnation = (int64_t)ps->spec.members.incarnation;
  e->beats++;
  if (!e->changes || e->owes) return;
  for (size_t r = 0; r < ps->spec.nregions; r++) {
    if (r == ps->spec.self) continue;
    if (e->outside)
      say(ps, r, M_JOIN, e->number, &incarnation, 1);
    else if (e->frozen && e->member[r] && e->ready[r] < e->number)
      say(ps, r, M_ASK, e->number, NULL, 0);
    if (e->proposing && e->in[r] && !e->reports[r].here) send_proposal(ps, r);
  }
  if (!e->proposing && waits(ps)) consider(ps);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void take_lost(gt_ps *ps, size_t from, int64_t promised, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions;
  if (e->lost[from] || gt_ps_first_member(ps) != ps->spec.self) return;
  if (e->proposing && e->in[from] && !e->reports[from].here) send_proposal(ps, from);
  if (!e->member[from]) return;
  bool *lost = GT_NEW_ARRAY(bool, n);
  gt_ps_set_read(words, lost, n);
  for (size_t r = 0; r < n; r++)
    if (lost[r] && r != ps->spec.self && r != from) gt_ps_members_lost(ps, r);
  gt_free(lost);
  if (promised <= e->promised) return;
  e->promised = promised; /* it has stopped for a proposal that is void */
  propose(ps, true);
}

/* A region that has started again is connected again, but is no member until an epoch says so.  Its
   checkpoint is of epoch `number`: a region that has not accepted that one was left out. */
static void take_join(gt_ps *ps, size_t from, int64_t number, uint64_t incarnation) {
  ps_epoch *e = &ps->epoch;
  const int64_t ended[2] = {-1, -1};
  if (e->outside) e->lost[from] = false;
  if (e->outside || e->out || e->incarnation[from] == incarnation) return;
  if (number > e->number && number > e->accepted) {
    leave(ps);
    return;
  }
  const bool proposed = e->frozen && e->in[from] && !e->lost[from],
             taken = e->member[from] && e->late[from] && e->ready[from] < e->number;
  if (taken && !e->lost[from]) return; /* it has not entered the epoch yet */
  e->lost[from] = false;
  if (!proposed) e->joins[from] = true;
  if (gt_ps_first_member(ps) != ps->spec.self) return;
  if (proposed && e->proposing && !e->reports[from].here) send_proposal(ps, from);
  if (proposed) return;
  if (ps->phase == GT_PS_COMPLETE)
    say(ps, from, M_REFUSE, e->number, ended, 2);
  else if (ps->phase != GT_PS_STOPPED)
    propose(ps, true);
}

#define PATIENT_BEATS 10

/* Two members that have lost each other can both propose a region that returns, each with a higher
   number than the other.  It keeps to the first one, unless that one does not decide for a
   while. */
static bool keeps_to_another(const gt_ps *ps, size_t from) {
  const ps_epoch *e = &ps->epoch;
  return e->outside && e->owes_since > 0 && from > e->decider && !e->lost[e->decider] &&
         e->beats < e->owes_since + PATIENT_BEATS;
}

/* Accepts the proposal of this region's decider. */
static void take_proposal(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  if (e->out || ps->phase == GT_PS_STOPPED || gt_ps_ends_alone(ps)) return;
  const bool follows = e->outside || e->ready[from] > e->number;
  if (!follows && !e->member[from]) say(ps, from, M_OUT, e->number, NULL, 0);
  if (!follows && (gt_ps_first_member(ps) != from || !e->member[from])) return;
  if (keeps_to_another(ps, from)) return;
  if (number <= e->promised) {
    if (number < e->promised || e->decider != from) say(ps, from, M_NEWER, e->promised, NULL, 0);
    return;
  }
  e->promised = e->accepted = number;
  ps->spec.host.epoch(ps->spec.host.ctx, number, NULL);
  e->decider = from;
  e->owes = true;
  e->owes_since = e->beats;
  gt_ps_set_read(words, e->in, ps->spec.nregions);
  freeze(ps);
}

static void take_newer(gt_ps *ps, int64_t number) {
  ps_epoch *e = &ps->epoch;
  if (!e->frozen || e->decider != ps->spec.self || number < e->promised) return;
  e->promised = number;
  consider(ps);
}

static void take_report(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  if (!e->proposing || number != e->promised || !e->in[from]) return;
  gt_ps_report_read(ps, words, &e->reports[from]);
  decide_if_all(ps);
}

static gt_status take_epoch(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions, ranges = gt_exchange_ranges(ps->exchange), w = gt_ps_words(n);
  const int64_t *numbers = words + 2 * w + 2;
  ps_decision d;
  if (number > e->number && number < e->promised) say(ps, from, M_NEWER, e->promised, NULL, 0);
  if (number != e->promised || number <= e->number || from != e->decider || e->owes ||
      gt_ps_ends_alone(ps))
    return GT_OK;
  for (size_t i = 0; i < ranges; i++)
    if (numbers[3 * i] < 0 || numbers[3 * i + 1] < numbers[3 * i] || numbers[3 * i + 2] < 0 ||
        (uint64_t)numbers[3 * i + 2] >= n)
      return GT_FAIL(GT_ERR_FAULT, "epoch %lld has the rounds %lld and %lld of region %lld",
                     (long long)number, (long long)numbers[3 * i], (long long)numbers[3 * i + 1],
                     (long long)numbers[3 * i + 2]);
  gt_ps_decision_open(ps, &d);
  d.number = number;
  d.place = words[2 * w];
  d.round = words[2 * w + 1];
  for (size_t i = 0; i < ranges; i++) {
    d.applied[i] = numbers[3 * i];
    d.floor[i] = numbers[3 * i + 1];
    d.source[i] = (size_t)numbers[3 * i + 2];
  }
  gt_ps_set_read(words, d.members, n);
  gt_ps_set_read(words + w, d.late, n);
  d.members[ps->spec.self] = true;
  enter(ps, &d);
  gt_ps_decision_close(&d);
  return GT_OK;
}

static void take_ready(gt_ps *ps, size_t from, int64_t number, const int64_t *words) {
  ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  if (number <= e->ready[from]) return;
  e->ready[from] = number;
  const bool again = e->lost[from]; /* it is connected again */
  e->lost[from] = false;
  e->incarnation[from] = (uint64_t)words[0];
  gt_ps_set_read(words + 1, e->lacks + from * ranges, ranges);
  if (number != e->number || !e->member[from]) return;
  e->joins[from] = false; /* it asked before it was taken in */
  gt_outbox_hold(ps->outbox, from, false);
  gt_outbox_retry(ps->outbox);
  gt_ps_send_states(ps, from);
  end_freeze(ps);
  /* it can be the decider */
  if (e->proposing && (again || gt_ps_first_member(ps) != ps->spec.self)) consider(ps);
}

/* A region of an older epoch takes this one for no member: then it is none itself, and does not ask
   to return. */
static void correct(gt_ps *ps, size_t from) {
  ps_epoch *e = &ps->epoch;
  if (e->outside || e->out || e->member[from]) return;
  say(ps, from, M_OUT, e->number, NULL, 0);
  e->joins[from] = false;
  if (!e->proposing || !e->in[from]) return;
  e->lost[from] = true; /* until it starts again */
  propose(ps, true);
}

static void take_ask(gt_ps *ps, size_t from, int64_t number) {
  const ps_epoch *e = &ps->epoch;
  if (e->outside || e->number < number) return;
  if (e->member[from])
    say_ready(ps, from);
  else if (e->number > number)
    correct(ps, from);
}

static void take_out(gt_ps *ps, size_t from, int64_t number) {
  ps_epoch *e = &ps->epoch;
  /* a later proposal can have this region again */
  const bool hopes = e->frozen && e->promised > number && e->decider != ps->spec.self;
  if (number < e->number) correct(ps, from);
  if (e->outside || number <= e->number || hopes) return;
  leave(ps);
}

/* Returns the number of words of a message. */
static size_t words_of(const gt_ps *ps, unsigned what) {
  const size_t w = gt_ps_words(ps->spec.nregions), ranges = gt_exchange_ranges(ps->exchange);
  switch (what) {
  case M_LOST:
  case M_PROPOSE:
    return w;
  case M_JOIN:
    return 1;
  case M_REFUSE:
    return 2;
  case M_REPORT:
    return PS_REPORT_HEAD + 2 * ranges;
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
    take_join(ps, from, value, (uint64_t)words[0]);
    return GT_OK;
  case M_REFUSE:
    if (e->outside) end_refused(ps, words);
    return GT_OK;
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
  case M_ASK:
    take_ask(ps, from, value);
    return GT_OK;
  default:
    take_out(ps, from, value);
    return GT_OK;
  }
}
