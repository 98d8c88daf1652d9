/* Shared by the files of sim: the agenda, wires between regions, and regions.  Each file calls only
   those before it: agenda, ledger, wire, ending, sim; then those that choose a
   topology (topology.h); last run and predict. */
#pragma once

#include "geotrain/base_heap.h"
#include "geotrain/ps_ending.h"
#include "geotrain/ps_state.h"
#include "geotrain/ps_time_split.h"
#include "geotrain/ps_timeline.h"
#include "geotrain/sim.h"

#define SIM_NONE UINT32_MAX

/* ---- the agenda ------------------------------------------------------------------------------ */

/* Every region once, ordered by the time of its next event; the lowest region first among
   equals. */
typedef struct {
  gt_ns *at;       /* nregions: time of the next event */
  uint32_t *order; /* the heap, of regions */
  uint32_t *place; /* nregions: place in the heap */
  size_t n;
} sim_agenda;

void gt_sim_agenda_open(sim_agenda *agenda, size_t n);
void gt_sim_agenda_close(sim_agenda *agenda);
void gt_sim_agenda_set(sim_agenda *agenda, size_t region, gt_ns at);
static inline size_t gt_sim_agenda_first(const sim_agenda *agenda) {
  return agenda->order[0];
}

/* ---- wires ----------------------------------------------------------------------------------- */

/* The fields of a header that a simulation needs, and the place of its route; SIM_NONE: none. */
typedef struct {
  uint64_t sequence, most_bytes, value, detail;
  uint32_t round, range, route;
  uint16_t from;
  uint8_t kind, codec;
} sim_header;

/* A message from its queue to its arrival.  All messages are in one pool; the index names a
   message. */
typedef struct {
  sim_header head;
  size_t bytes, taken; /* taken: bytes in frames whose sending has begun */
  uint64_t cookie;
  gt_ns queued, depart;
  uint32_t next;         /* in its queue, or in the list of free messages */
  uint32_t next_leaving; /* the next message that leaves on the same wire */
  uint32_t users;        /* references: its queue, the list of leaving messages, its frames */
} sim_message;

typedef struct {
  uint32_t first, last;
} sim_list;

/* The kinds of messages, numbered without gaps. */
#define SIM_KINDS 16

/* One direction between two regions. */
typedef struct {
  gt_wire wire;
  /* leaving: messages with a known departure that causes an event */
  sim_list control, bulk, leaving;
  gt_ns due; /* its entry in the heap of its region; GT_NEVER: none */
  uint32_t messages[SIM_KINDS];
  /* Bytes of messages of different sizes, without and with headers: of data (one kind crosses a
     wire), of activations, of their gradients, between strategies, of models, and of results. */
  struct {
    uint64_t payload, wire;
  } traffic[6];
  bool receiving; /* a message of the peer has begun to arrive (only where results are exact) */
} sim_wire;

/* Events of the wires of a region. */
typedef struct sim_region sim_region;
typedef struct {
  void (*message)(sim_region *r, const gt_frame_header *head); /* a whole message has arrived */
  void (*departed)(sim_region *r, size_t peer, uint64_t cookie);
} sim_wire_hooks;

/* ---- regions --------------------------------------------------------------------------------- */

struct sim_region {
  gt_sim *sim;
  size_t id;
  size_t parameters, buffers; /* of the model, or of the region's part of it */
  gt_ps *ps;
  gt_optim *optim;
  gt_timeline *timeline;
  gt_order order;
  gt_ps_order *orders; /* the last order of each worker */
  /* of a pipeline */
  const gt_pipe_job *pipe; /* of the region's replica; NULL: no pipeline */
  gt_ps_groups groups;
  gt_ps_stage *stages;
  bool *passing; /* each worker's last order was a pass */
  int64_t round; /* round of the checkpoint that is being written */
  /* this region's wires, and the frames that arrive here */
  sim_wire *wires; /* nregions; [id] unused */
  const sim_wire_hooks *wire_hooks;
  gt_access up;
  gt_heap due;        /* wires, by the time at which they need to be polled */
  gt_heap arrivals;   /* frames, by (time, sender, order) */
  gt_landing landing; /* frames at the access */
  uint64_t arrived;   /* frames so far, which define their order */
  uint64_t *ready;    /* one bit per peer: its wire can move now */
  /* the end */
  gt_ending ending;
  bool asked; /* the lead: another region scores the mean */
  bool complete, ended;
  gt_time_split split;
  gt_region_result result; /* as sent to the lead */
  gt_link_result *links;   /* likewise, nregions - 1 links; NULL: too many regions */
  /* as of its last event */
  int64_t steps;
  bool training, evaluating;
};

struct gt_sim {
  gt_sim_spec spec;
  size_t n;
  bool exact; /* few enough regions for full results, with the parts of a mini-batch's time */
  sim_region *regions;
  sim_agenda agenda;
  double *weights;
  gt_routes routes;
  size_t *workers; /* as in gt_exchange_spec */
  sim_message *messages;
  gt_frame_route *frame_routes; /* of messages; the first word of a free one: the next free one */
  size_t nframe_routes, frame_routes_capacity;
  uint32_t spare_route;
  size_t nmessages, capacity;
  uint32_t spare; /* the first of the free messages */
  gt_ns complete; /* time at which the last region finished its training */
  gt_ns moved;    /* time of the last push of a worker, or of the last message except heartbeats */
  gt_status code;
  size_t nended;
  int64_t events;
};

/* sim.c: creates a simulation that has handled no event yet.  spec->routes is not NULL. */
gt_status gt_sim_open(gt_sim **out, const gt_sim_spec *spec);
static inline bool gt_sim_over(const gt_sim *sim) {
  return sim->nended == sim->n;
}
/* Handles the next event; *region: the region of the event. */
gt_status gt_sim_step(gt_sim *sim, size_t *region);
/* Returns the test samples of an evaluation in which the region takes part; in a pipeline those of
   its region with the data. */
static inline size_t gt_sim_tests(const gt_sim *sim, size_t region) {
  const gt_pipe_job *pipe = sim->regions[region].pipe;
  if (!sim->spec.tests || !gt_job_trains(sim->spec.job, region)) return 0;
  return sim->spec.tests[pipe ? pipe->layout.places[0].region : region].samples;
}

/* Returns the region's own steps from one exchange to the next. */
static inline int64_t gt_sim_period(const gt_sim *sim, size_t region) {
  return gt_ps_made_of(sim->regions[region].ps)->options.period;
}

/* ledger.c */
/* counts a message that has crossed the wire */
void gt_sim_count(sim_wire *wire, unsigned kind, size_t bytes, size_t header_bytes);
/* Return the traffic of a wire: all; by kind. */
gt_sim_traffic gt_sim_traffic_of(const gt_sim *sim, size_t from, size_t to);
void gt_sim_wire_result(const sim_region *r, size_t peer, gt_link_result *result);

/* wire.c */
void gt_sim_wires_open(sim_region *r, const sim_wire_hooks *hooks); /* hooks outlive the wires */
void gt_sim_wires_close(sim_region *r);
/* Queues a message, as the gateway does. */
void gt_sim_send(sim_region *r, size_t peer, const gt_frame_header *head, size_t bytes,
                 uint64_t cookie, gt_ns now);
bool gt_sim_drop(sim_region *r, size_t peer, uint64_t cookie);
/* Return the time at which a wire needs to be polled next, and at which the next frame arrives;
   GT_NEVER: never. */
gt_ns gt_sim_link_next(sim_region *r);
gt_ns gt_sim_arrival_next(const sim_region *r);
/* Moves every wire as far as possible at this time. */
void gt_sim_poll(sim_region *r, gt_ns now);
/* Delivers the next frame, or puts it on the access. */
void gt_sim_deliver(sim_region *r);

/* ending.c */
/* Creates the current result of the region. */
void gt_sim_end_result(sim_region *r);
/* Takes a REPORT, MODEL or BYE. */
void gt_sim_end_message(sim_region *r, const gt_frame_header *head);
extern const gt_ending_hooks gt_sim_ending; /* their ctx: a sim_region */
