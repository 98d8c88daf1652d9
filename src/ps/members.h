/* members: the members of a run in epochs, for regions that can be lost and return.  Private to ps.
   epoch.c has the members and the rules about them, decide.c makes the decision about the next
   epoch, recover.c continues in it, members.c agrees on it with the others (docs/membership.md). */
#pragma once

#include "geotrain/ps.h"

/* Cookies of group states: above those of the outbox. */
#define PS_GROUP_COOKIE ((uint64_t)1 << 61)

/* A group state on its way to another member. */
typedef struct {
  size_t peer;
  uint64_t cookie;
  unsigned char *bytes;
} ps_group_state;

/* A region's report to the decider. */
typedef struct {
  /* here: it has reported; late: it has returned, and has not contributed to every range since;
     fresh: it also lacks the state of the group; trains: it still makes steps */
  bool here, fresh, late, trains;
  int64_t place, round;
  gt_exchange_progress *ranges;
} ps_report;

typedef struct {
  bool changes;   /* members can change; else the rest is unused, but `member` */
  bool *member;   /* nregions: of the epoch */
  int64_t number; /* of the epoch */
  bool *lost;     /* nregions: the region has no connection to it, or another member reported so */
  int64_t *since; /* nregions: data of the region counts from this epoch on */
  uint64_t *incarnation; /* nregions: of its start; 0: not known */
  int64_t *ready;        /* nregions: the newest epoch that the region has entered */
  bool *lacks;           /* nregions x ranges: the state that the region lacked then */
  /* Of each region: its steps in the group's model when it was last taken in; its place in the
     period then; and (nregions x ranges) the rounds after which it contributes since, and the last
     ones with its contribution when it was last left out. */
  int64_t *steps, *places, *floors, *lasts;
  /* The next epoch: number of the newest proposal seen, and its sender.  frozen: from its
     acceptance until all members have entered it, the region makes no step, no round and no
     checkpoint.  owes: the report to the decider waits for the disk. */
  int64_t promised;
  int64_t accepted; /* the newest proposal of another region that this one has accepted */
  size_t decider;
  bool frozen, owes;
  int64_t beats, owes_since; /* heartbeats so far; then, at the last proposal; 0: none */
  /* At the decider: proposing; the members proposed; regions that ask to return; reports. */
  bool proposing, *in, *joins;
  ps_report *reports;
  /* The change to the current epoch, by range: the member that has the state. */
  size_t *source;
  bool *late;    /* nregions */
  bool *needs;   /* ranges whose state this region still lacks */
  int64_t place; /* in the period, for a late region */
  bool fresh;    /* it has returned, and lacks the state of some range */
  bool late_self;
  double *weights;   /* nregions: of the members, in their order; sum 1 */
  bool outside, out; /* has not been taken in yet; is no member any more */
  bool minority;     /* no majority is left with this region */
  int64_t unfit;     /* 1, GT_PS_UNFIT_ALWAYS: it was when its state was last saved */
  ps_group_state *states;
  size_t nstates, states_capacity;
  uint64_t next_cookie;
} ps_epoch;

/* epoch.c */
void gt_ps_epoch_open(gt_ps *ps); /* call when the collectives are open */
void gt_ps_epoch_close(gt_ps *ps);
static inline size_t gt_ps_words(size_t nregions) {
  return nregions / 64 + 1;
}
/* Write a set of regions as words, or read one. */
void gt_ps_set_write(int64_t *words, const bool *set, size_t n);
void gt_ps_set_read(const int64_t *words, bool *set, size_t n);
/* Returns the first member that has entered the epoch, that this region has not lost, and that does
   not ask to return. */
size_t gt_ps_first_member(const gt_ps *ps);
/* True if others have entered a later epoch, with this region: it leaves decisions to them. */
bool gt_ps_is_behind(const gt_ps *ps);
/* True if a message counts: its sender is a member, and it is of this epoch; data also of an
   earlier one if nothing was lost since. */
bool gt_ps_epoch_takes(const gt_ps *ps, size_t from, const gt_frame_header *head);

/* decide.c */
/* The decision about an epoch: applied, floor: of each range, as in gt_exchange_group. */
typedef struct {
  int64_t number, place, round;
  bool *members, *late;
  int64_t *applied, *floor;
  size_t *source;
} ps_decision;
/* Everything is 0 or false. */
void gt_ps_decision_open(const gt_ps *ps, ps_decision *d);
void gt_ps_decision_close(ps_decision *d);
/* Makes the decision from the reports of all proposed members; the caller closes it.  False: none
   of them has the state of the group. */
bool gt_ps_decide(const gt_ps *ps, ps_decision *d);
/* Writes this region's report, and returns the number of words; or reads one. */
size_t gt_ps_report_write(gt_ps *ps, int64_t *words);
void gt_ps_report_read(const gt_ps *ps, const int64_t *words, ps_report *report);
#define PS_REPORT_HEAD 3 /* numbers of a report; 2 of each range follow */
/* True if a region that returns is more than a round ahead of the group, in *range: a round that
   only this region has applied is repeated without it. */
bool gt_ps_is_ahead(const gt_ps *ps, const ps_report *report, const int64_t *applied,
                    size_t *range);

/* position.c */
void gt_ps_position_open(ps_epoch *e, size_t nregions, size_t ranges);
void gt_ps_position_close(ps_epoch *e);
/* Counts the steps of regions that are left out or taken in; call before the epoch is entered. */
void gt_ps_position_note(gt_ps *ps, const ps_decision *decision);
/* Saves or loads the counts.  GT_ERR_FAULT: a number cannot be correct. */
gt_status gt_ps_position_state(gt_ps *ps, gt_state_direction direction);
/* Continues after the steps of this region that are in the group's model. */
void gt_ps_position_take(gt_ps *ps);

/* recover.c */
/* Continues in the epoch; held until all members have entered it, and this one has all states. */
void gt_ps_enter_epoch(gt_ps *ps, const ps_decision *decision);
/* Saves the epoch.  Load it before the exchange, whose members become those of the checkpoint. */
void gt_ps_epoch_save(gt_ps *ps, gt_state *state);
gt_status gt_ps_epoch_load(gt_ps *ps, const gt_state *state);
/* Sends the states that the member lacks and this region has. */
void gt_ps_send_states(gt_ps *ps, size_t member);
/* Call when the state with this cookie has been sent. */
void gt_ps_state_departed(gt_ps *ps, size_t peer, uint64_t cookie);
/* Call when the gateway has dropped everything for the peer. */
void gt_ps_forget_states(gt_ps *ps, size_t peer);
/* Takes a state; GT_ERR_FAULT: it cannot be correct.  *complete: it was the last one. */
gt_status gt_ps_take_state(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body,
                           bool *complete);

/* members.c */
gt_status gt_ps_members_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                                const void *body);
void gt_ps_members_lost(gt_ps *ps, size_t peer);
void gt_ps_members_tick(gt_ps *ps); /* once for each heartbeat */
void gt_ps_members_pump(gt_ps *ps); /* reports to the decider when the disk allows it */
/* Tells a region that is no member, and does not know it. */
void gt_ps_members_refuse(gt_ps *ps, size_t peer);
