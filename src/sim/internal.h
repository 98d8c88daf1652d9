/* What the modules of sim share: heaps, wires between regions, and regions.  Each file calls only
   those before it: heap, ledger, wire, end, region, sim, skip; stride and what it is made of. */
#ifndef GEOTRAIN_SIM_INTERNAL_H
#define GEOTRAIN_SIM_INTERNAL_H

#include "geotrain/ps_ending.h"
#include "geotrain/ps_state.h"
#include "geotrain/ps_time_split.h"
#include "geotrain/ps_timeline.h"
#include "geotrain/sim.h"

#define SIM_NONE UINT32_MAX

/* ---- heaps -------------------------------------------------------------------------------------------------------------- */

/* The least (at, key) first. */
typedef struct {
  gt_ns at;
  uint64_t key;
  uint32_t a, b;
} sim_entry;

typedef struct {
  sim_entry *at;
  size_t n, capacity;
} sim_heap;

void gt_sim_heap_push(sim_heap *h, sim_entry entry);
sim_entry gt_sim_heap_pop(sim_heap *h);
void gt_sim_heap_close(sim_heap *h);

/* Every region once, by the time of its next event; the lowest region first among equals. */
typedef struct {
  gt_ns *at;       /* of a region */
  uint32_t *order; /* the heap */
  uint32_t *place; /* of a region in it */
  size_t n;
} sim_agenda;

void gt_sim_agenda_open(sim_agenda *agenda, size_t n);
void gt_sim_agenda_close(sim_agenda *agenda);
void gt_sim_agenda_set(sim_agenda *agenda, size_t region, gt_ns at);
static inline size_t gt_sim_agenda_first(const sim_agenda *agenda) {
  return agenda->order[0];
}

/* ---- wires -------------------------------------------------------------------------------------------------------------- */

/* A message from its queue to its arrival; they lie in one pool and are named by their place in it. */
typedef struct {
  gt_frame_header head;
  size_t bytes, taken; /* taken: in frames that have begun to leave */
  uint64_t cookie;
  gt_ns queued, depart;
  uint32_t next;         /* in its queue, or in the list of free ones */
  uint32_t next_leaving; /* behind it on the same wire */
  uint32_t users;        /* its queue, the list of those that leave, and frames under way */
} sim_message;

typedef struct {
  uint32_t first, last;
} sim_list;

/* The kinds of messages there are, closely numbered. */
#define SIM_KINDS 13

/* One direction between two regions. */
typedef struct {
  gt_link_state link;
  sim_list control, bulk, leaving; /* leaving: messages whose departure is known, and an event */
  gt_ns due;                       /* as it stands in its region's heap; GT_NEVER: it does not */
  gt_ns wire, wire_until;          /* time in which frames were leaving, and up to when it is counted */
  uint32_t messages[SIM_KINDS];
  uint64_t data_payload, data_wire; /* bytes of data, without and with headers */
  uint32_t report_bytes;
  bool receiving; /* a message of the peer's has begun to arrive (kept where results are exact) */
} sim_wire;

/* Whom the wires of a region tell. */
typedef struct sim_region sim_region;
typedef struct {
  void (*message)(sim_region *r, const gt_frame_header *head); /* it has arrived, whole */
  void (*departed)(sim_region *r, size_t peer, uint64_t cookie);
} sim_wire_hooks;

/* ---- regions ------------------------------------------------------------------------------------------------------------- */

struct sim_region {
  gt_sim *sim;
  size_t id;
  gt_ps *ps;
  gt_optim *optim;
  gt_timeline *timeline;
  gt_order order;
  gt_ps_order *orders; /* one a worker: its last */
  int64_t round;       /* whose checkpoint is being written */
  /* this region's wires, and what arrives here */
  sim_wire *wires; /* nregions; [id] unused */
  const sim_wire_hooks *wire_hooks;
  gt_access up, down;
  sim_heap due;      /* wires, by when they want to be looked at */
  sim_heap arrivals; /* frames, by (time, sender, order) */
  sim_heap landing;  /* those that pass the access */
  uint64_t arrived;  /* frames so far: their order */
  uint64_t *ready;   /* a bit a peer: its wire can move now */
  /* the end */
  gt_ending ending;
  bool complete, ended;
  gt_time_split split;
  gt_region_result result; /* as it was told to the lead */
  gt_link_result *links;   /* likewise, nregions - 1 of them; NULL: there are too many */
  /* as of its last event */
  int64_t steps;
  bool training, evaluating;
};

/* What crossed a wire, and how long frames were leaving on it. */
typedef struct {
  gt_sim_traffic traffic;
  double wire_s;
} sim_crossed;

struct gt_sim {
  gt_sim_spec spec;
  size_t n;
  bool exact; /* few enough regions that their results are made in full, with the parts of a mini-batch's time */
  sim_region *regions;
  sim_agenda agenda;
  double *weights;
  size_t *next; /* as in gt_exchange_spec */
  sim_message *messages;
  size_t nmessages, capacity;
  uint32_t spare; /* the first of the free messages */
  gt_ns complete; /* the last region's training was */
  gt_ns moved;    /* when a worker last pushed or a message last came that was no sign of life */
  gt_status code;
  size_t nended;
  int64_t events;
  /* what was left out (skip.c) */
  gt_ns gone;           /* so much time is before now, beside what the regions' timelines show */
  double *gone_batches; /* nregions; NULL: nothing yet */
  sim_crossed *crossed; /* nregions x nregions, row: sender; NULL: nothing yet */
};

/* sim.c: a simulation that has handled no event yet. */
gt_status gt_sim_open(gt_sim **out, const gt_sim_spec *spec);
static inline bool gt_sim_over(const gt_sim *sim) {
  return sim->nended == sim->n;
}
/* Handles the next event, of *region. */
gt_status gt_sim_step(gt_sim *sim, size_t *region);
/* A region's time, with what was left out. */
static inline gt_ns gt_sim_now(const sim_region *r) {
  return gt_timeline_now(r->timeline) + r->sim->gone;
}

/* skip.c: what has been counted up to a moment. */
typedef struct {
  gt_ns at, moved;
  int64_t events;
  gt_ps_view *views;    /* nregions */
  gt_time_use *uses;    /* nregions */
  sim_crossed *crossed; /* nregions x nregions */
} sim_mark;
void gt_sim_mark_open(sim_mark *mark, const gt_sim *sim);
void gt_sim_mark_close(sim_mark *mark);
/* at: of the event that was handled last, with what was left out before. */
void gt_sim_mark_take(sim_mark *mark, const gt_sim *sim, gt_ns at);
/* Where regions wait for each other all make as many steps as ref, whatever each was at when the
   marks were taken: else they would part. */
void gt_sim_mark_align(sim_mark *to, const sim_mark *from, const gt_sim *sim, size_t ref);
/* A stretch of slices, one behind the other, as it began. What was sent in a slice may be a
   message more or less than its share; in all of them it is not. */
typedef struct {
  sim_crossed *seen, *added; /* nregions x nregions: simulated, and left out */
  double *batches, *gone;    /* nregions: likewise */
} sim_stretch;
void gt_sim_stretch_open(sim_stretch *stretch, const gt_sim *sim);
void gt_sim_stretch_close(sim_stretch *stretch);
void gt_sim_stretch_begin(sim_stretch *stretch, const gt_sim *sim);
/* What came between two marks comes again n times, without being simulated; `to` is now. Every
   link's outages and traces are so much further on, and evaluations that would have come are
   made. also: time beside that in which nothing is counted. stretch: that the marks are in;
   NULL: none. A region makes no more steps than leave it its last ones. */
void gt_sim_skip(gt_sim *sim, const sim_mark *from, const sim_mark *to, int64_t n, gt_ns also, const sim_stretch *stretch);
/* stride.c: simulates to the end with about so many events, leaving out what can be left out. */
typedef struct {
  double error_s;
  gt_sim_doubt why;
} sim_stride;
gt_status gt_sim_stride(gt_sim *sim, int64_t budget, sim_stride *out);

/* ledger.c */
void gt_sim_count(sim_wire *wire, const gt_frame_header *head, size_t bytes); /* a message more has crossed it */
/* Bytes of what is sent once, at the end. */
double gt_sim_once_bytes(const gt_sim *sim, size_t from, size_t to);
/* What crossed a wire: what was simulated of it; with what was left out; by kind. */
gt_sim_traffic gt_sim_traffic_of(const gt_sim *sim, size_t from, size_t to);
sim_crossed gt_sim_crossed_of(const gt_sim *sim, size_t from, size_t to);
void gt_sim_wire_result(const sim_region *r, size_t peer, gt_link_result *result);

/* wire.c */
void gt_sim_wires_open(sim_region *r, const sim_wire_hooks *hooks); /* hooks outlive them */
void gt_sim_wires_close(sim_region *r);
/* Queues a message, as the gateway does. */
void gt_sim_send(sim_region *r, size_t peer, const gt_frame_header *head, size_t bytes, uint64_t cookie, gt_ns now);
bool gt_sim_replace(sim_region *r, size_t peer, uint64_t cookie, const gt_frame_header *head, uint64_t new_cookie);
/* When a wire wants to be looked at next, and when the next frame arrives; GT_NEVER: never. */
gt_ns gt_sim_link_next(sim_region *r);
gt_ns gt_sim_arrival_next(const sim_region *r);
/* Moves every wire as far as it can at this time. */
void gt_sim_poll(sim_region *r, gt_ns now);
/* Hands the next frame on, or to the access. */
void gt_sim_deliver(sim_region *r);
/* What the wire has under way comes sooner by so much, where nothing of it comes before: an
   outage does not last longer for what was left out of it. now: without that. False: it was left
   as it is. */
bool gt_sim_wire_sooner(sim_region *r, size_t peer, gt_ns now, gt_ns by);

/* region.c */
gt_status gt_sim_region_open(sim_region *r, gt_sim *sim, size_t id);
void gt_sim_region_close(sim_region *r);
void gt_sim_region_start(sim_region *r);
/* What it has to do has changed. */
void gt_sim_region_again(sim_region *r);
/* Handles its next event. */
void gt_sim_region_step(sim_region *r);

/* ending.c */
/* The region's result as it stands now. */
void gt_sim_end_result(sim_region *r);
extern const gt_ending_hooks gt_sim_ending; /* their ctx: a sim_region */

#endif
