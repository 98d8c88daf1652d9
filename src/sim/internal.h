/* Shared by the files of sim: the agenda, wires between regions, and regions.  Each file calls only
   those before it: shape, threads, arithmetic, agenda, ledger, wire, copies, ending, sim; then
   those that choose a topology (topology.h); last results, faults and predict. */
#pragma once

#include "geotrain/base_heap.h"
#include "geotrain/job_faults.h"
#include "geotrain/ps_ending.h"
#include "geotrain/ps_state.h"
#include "geotrain/ps_time_split.h"
#include "geotrain/ps_timeline.h"
#include "geotrain/sim.h"

#define SIM_NONE UINT32_MAX

/* ---- data ------------------------------------------------------------------------------------ */

/* The data sets of a job's regions, each file opened once, and the regions' samples. */
typedef struct {
  const gt_job *job;
  gt_dataset **opened;           /* nregions; NULL: an earlier region has the same file */
  gt_dataset_info *infos;        /* nregions */
  gt_data_samples *parts, *held; /* nregions */
} sim_data;

/* shape.c.  The caller closes it, also after an error: GT_ERR_JOB, GT_ERR_DATA. */
gt_status gt_sim_data_open(sim_data *data, const gt_job *job);
gt_dataset *gt_sim_data_of(const sim_data *data, size_t region);
void gt_sim_data_close(sim_data *data);

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
  uint16_t epoch, start; /* start: the sender's start that it is of */
  void *body;            /* of a message about members; NULL: none */
} sim_message;

typedef struct {
  uint32_t first, last;
} sim_list;

/* The kinds of messages, numbered without gaps. */
#define SIM_KINDS 20

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
  bool cut;       /* nothing leaves */
  bool down;      /* this region has lost the peer: messages to it are discarded */
} sim_wire;

/* Events of the wires of a region. */
typedef struct sim_region sim_region;
typedef struct {
  /* a whole message has arrived; body: borrowed, NULL without contents */
  void (*message)(sim_region *r, const gt_frame_header *head, const void *body);
  void (*departed)(sim_region *r, size_t peer, uint64_t cookie);
} sim_wire_hooks;

/* ---- regions --------------------------------------------------------------------------------- */

/* A checkpoint of a region; with arithmetic also with its model, else without the contents of
   vectors. */
typedef struct {
  int64_t round; /* 0: none */
  bool durable;
  bool unfit; /* as in gt_ps_view: only the region itself can return with it */
  gt_state state;
} sim_copy;

struct sim_region {
  gt_sim *sim;
  size_t id;
  size_t parameters, buffers; /* of the model, or of the region's part of it */
  /* of the PS; without arithmetic they have no data */
  gt_vec model, statistics, grads, snapshot, snapshot_statistics;
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
  gt_link_objects read;
  gt_link_function function;
  uint64_t *ready; /* one bit per peer: its wire can move now */
  /* the end */
  gt_ending ending;
  bool asked; /* the lead: another region scores the mean */
  bool complete, ended;
  gt_time_split split;
  gt_region_result result; /* as sent to the lead */
  gt_ps_score own, score;  /* of its own model, of the mean on its test set */
  gt_link_result *links;   /* likewise, nregions - 1 links; NULL: too many regions */
  /* as of its last event */
  int64_t steps;
  bool training, evaluating, stopped, entering, outside, minority, out;
  /* of a run with faults */
  bool away;          /* lost, and not started again */
  bool refused, open; /* open: a loss whose outcome is not known yet */
  bool stops;         /* a minority that others could take in if it started again */
  gt_ns since, died;  /* its last start and loss */
  gt_ns back;         /* of an away region; GT_NEVER: it does not return */
  sim_copy copies[3]; /* oldest first */
  uint64_t starts;    /* how often it has started again */
  int64_t promised;   /* as in gt_ps_members */
};

/* Events of the faults of a run, and their outcomes. */
typedef struct {
  gt_faults *next;
  gt_heap due;    /* the consequences of faults (faults.c) */
  bool continues; /* sync.on_loss */
  gt_ns patience;
  struct {
    size_t a, b;
    gt_ns from, until;
  } * cuts; /* ncuts, in progress and past */
  size_t ncuts, cuts_capacity;
  int64_t fell_to; /* the round to which the run fell back last, `falls` times in a row */
  int falls;
  bool resuming;           /* the run has ended, and waits for regions in order to start again */
  size_t nplaced, *placed; /* members whose next hops were found last, then these hops */
  bool *resumes;           /* nregions: it starts again with the others, from the same round */
  gt_fault_result found;
} sim_faults;

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
  size_t nended, lead;
  int64_t events;
  gt_model_mean mean; /* with arithmetic, at the end */
  double *shares;     /* nregions: the weights of the models in it */
  gt_sim_model final;
  sim_faults *faults; /* NULL: none */
  bool ending;        /* all regions have finished their training; with faults, none follows */
};

/* threads.c */
/* A piece of work.  pending: begun, and not done. */
typedef struct sim_task {
  void (*run)(void *of);
  void *of;
  bool pending;
  struct sim_task *next;
} sim_task;
typedef struct sim_threads sim_threads;
/* Starts n threads, or fewer with a warning; without any, gt_sim_task_begin does the task. */
sim_threads *gt_sim_threads_open(size_t n);
/* Ends them when all tasks are done.  Takes NULL. */
void gt_sim_threads_close(sim_threads *threads);
/* Begins a task, borrowed until it is done.  Tasks of one number are done by one thread. */
void gt_sim_task_begin(sim_threads *threads, size_t number, sim_task *task);
void gt_sim_task_wait(sim_threads *threads, const sim_task *task);

/* arithmetic.c */
/* Returns the initial model; owned by a. */
const gt_arrays *gt_sim_initial(const gt_sim_arithmetic *a);
/* Sets what the PS needs to judge the region's test samples. */
void gt_sim_judge(const gt_sim_arithmetic *a, size_t region, gt_ps_spec *spec);
/* Begins to compute an order to train or to evaluate; its vectors are read at once. */
void gt_sim_compute(gt_sim_arithmetic *a, size_t region, size_t worker, const gt_ps_order *order);
/* Waits until the worker has computed its last order.  Writes the result to *push, except times;
   returns the gradient, which is valid until the worker's next order. */
float *gt_sim_computed(const gt_sim_arithmetic *a, size_t region, size_t worker, gt_ps_push *push);

/* sim.c: creates a simulation that has handled no event yet.  spec->routes is not NULL. */
gt_status gt_sim_open(gt_sim **out, const gt_sim_spec *spec);
static inline bool gt_sim_over(const gt_sim *sim) {
  return sim->nended == sim->n;
}
/* Handles the next event; *region: the region of the event.  Not with faults. */
gt_status gt_sim_step(gt_sim *sim, size_t *region);
/* For faults.  Starts a region at this time; its PS has been opened. */
void gt_sim_start(sim_region *r, gt_ns now);
/* Replaces the PS by one that has loaded this copy; NULL: by a new one.  round: as in gt_ps_spec;
   returns: as in gt_ps_members. */
void gt_sim_reopen(sim_region *r, const sim_copy *copy, int64_t round, bool returns, gt_ns now);
/* Ends an event outside gt_sim_step. */
void gt_sim_settle(sim_region *r);

/* faults.c */
/* Handles the next event as gt_sim_step does, or the next fault; *region: SIM_NONE after a
   fault. */
gt_status gt_sim_advance(gt_sim *sim, size_t *region);
/* Returns the samples that the region holds back for validation. */
size_t gt_sim_held(const gt_sim *sim, size_t region);
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
/* counts a message that has crossed the wire; whole: in one frame */
void gt_sim_count(sim_wire *wire, unsigned kind, size_t bytes, size_t header_bytes, bool whole);
/* Adds the messages that have left. */
void gt_sim_written(const sim_wire *wire, gt_link_objects *sum);
/* Return the traffic of a wire: all; by kind. */
gt_sim_traffic gt_sim_traffic_of(const gt_sim *sim, size_t from, size_t to);
void gt_sim_wire_result(const sim_region *r, size_t peer, gt_link_result *result);

/* wire.c */
void gt_sim_wires_open(sim_region *r, const sim_wire_hooks *hooks); /* hooks outlive the wires */
void gt_sim_wires_close(sim_region *r);
/* Queues a message, as the gateway does.  payload: read if it is about members. */
void gt_sim_send(sim_region *r, size_t peer, const gt_frame_header *head, const void *payload,
                 size_t bytes, uint64_t cookie, gt_ns now);
bool gt_sim_drop(sim_region *r, size_t peer, uint64_t cookie);
/* Return the time at which a wire needs to be polled next, and at which the next frame arrives;
   GT_NEVER: never. */
gt_ns gt_sim_link_next(sim_region *r);
gt_ns gt_sim_arrival_next(const sim_region *r);
/* Moves every wire as far as possible at this time. */
void gt_sim_poll(sim_region *r, gt_ns now);
/* Delivers the next frame, or puts it on the access. */
void gt_sim_deliver(sim_region *r);

/* For faults.  Discards the messages on the wire that have not left; lets nothing leave; discards
   all frames on their way to the region. */
void gt_sim_wire_clear(sim_region *r, size_t peer);
void gt_sim_wire_cut(sim_region *r, size_t peer, bool cut);
void gt_sim_arrivals_clear(sim_region *r);

/* copies.c */
/* Keeps the region's state as its copy of this round; of older ones the newest two that are
   durable. */
void gt_sim_copy_take(sim_region *r, int64_t round, bool unfit);
void gt_sim_copy_written(sim_region *r);
/* Discards copies that are not durable, and those of rounds after `newest`. */
void gt_sim_copy_void(sim_region *r, int64_t newest);
/* Returns the newest copy, or that of this round; NULL: none. */
const sim_copy *gt_sim_copy_newest(const sim_region *r);
const sim_copy *gt_sim_copy_of(const sim_region *r, int64_t round);
void gt_sim_copies_close(sim_region *r);
/* With arithmetic, adds the region's model to a copy's state, or reads it. */
void gt_sim_copy_model(const sim_region *r, gt_state_direction direction);

/* ending.c */
/* Creates the current result of the region. */
void gt_sim_end_result(sim_region *r);
/* Takes a REPORT, MODEL or BYE. */
void gt_sim_end_message(sim_region *r, const gt_frame_header *head);
extern const gt_ending_hooks gt_sim_ending; /* their ctx: a sim_region */
