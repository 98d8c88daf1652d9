/* The region's state machine: region_sides.c has the buffers of its workers, region.c their
   actions. */
#pragma once

#include "geotrain/pipe_region.h"
#include "internal.h"

/* A worker of a neighbor stage that has samples in common with this one. */
typedef struct {
  size_t worker;       /* of its region */
  size_t first, count; /* of the common samples, in the micro-batch */
  size_t here, there;  /* the first of them in this worker's share, and in the peer's */
} gt_pipe_peer;

/* Input or output of a micro-batch, from its first part until all have read it. */
typedef struct {
  bool used, forward_only;
  uint32_t micro;
  int64_t step;
  /* Input: number of missing parts.  Output: workers that have not read it; packets that have not
     left. */
  size_t waits, leaving;
  /* Of each peer.  Input: 0 if missing, otherwise 1 + its out buffer (1 if from another region).
     Output in an evaluation: 1 if the other region has read it. */
  size_t *of;
} gt_pipe_held;

/* The neighbor from which a worker's span gets input, or to which its output goes. */
typedef struct {
  bool there;          /* false: the first or the last span, which has no such neighbor */
  bool away;           /* the neighbor is in another region */
  size_t span, stage;  /* of the neighbor */
  size_t replica;      /* of the neighbor stage: the first peer */
  gt_pipe_peer *peers; /* in order of samples */
  size_t npeers;
  gt_pipe_held *held; /* one per buffer */
  size_t count;
  size_t first; /* number of the first buffer */
  size_t bytes; /* of a sample */
  size_t *marks;
} gt_pipe_side;

typedef struct {
  size_t stage; /* GT_PIPE_NONE: the worker has no stage */
  size_t replica;
  int64_t step;                 /* the last one that has started */
  bool runs;                    /* the step has not ended */
  size_t forward_micro_batches; /* of an evaluation; 0: a training step */
  size_t begun, ended;          /* F of the first chunk in this step */
  bool stalled;                 /* the next pass waits for an out buffer */
  gt_pipe_progress progress;    /* in training steps */
  /* The current pass; input and output are NULL if it has none. */
  bool busy;
  gt_pass pass;
  gt_pipe_held *input, *output;
  size_t slot;
  /* Of each chunk: the next micro-batch of an evaluation; true if a weight pass of this step has
     started. */
  uint32_t *next;
  bool *weighed;
  /* Of each slot; of each chunk and micro-batch in flight: its slot, or GT_PIPE_NONE. */
  bool *taken;
  size_t *slot_of;
  /* [gradient * chunks + chunk]. */
  gt_pipe_side *in, *out;
} gt_pipe_worker;

struct gt_pipe_region {
  const gt_pipe_layout *layout;
  const gt_pipe_schedule *schedule; /* current; borrowed */
  size_t self, forward_micro_batches, stalls, nworkers;
  size_t stride; /* of the numbers of micro-batches per step */
  gt_pipe_region_host host;
  gt_pipe_worker *workers;
  gt_pipe_input *pieces; /* for orders */
};

/* layout.c: finds the neighbor of a span, ahead or back; false: none. */
bool gt_pipe_next_span(const gt_pipe_layout *layout, size_t span, bool ahead, size_t *next);

/* Opens a worker's peers, buffers and their records. */
void gt_pipe_sides_open(gt_pipe_region *region, gt_pipe_worker *worker);
void gt_pipe_sides_close(gt_pipe_region *region, gt_pipe_worker *worker);
/* In this order: returns the record of a micro-batch, or NULL; returns a free record, now used, or
   NULL; true if a record is free. */
gt_pipe_held *gt_pipe_held_of(const gt_pipe_side *side, int64_t step, uint32_t micro);
gt_pipe_held *gt_pipe_held_take(gt_pipe_side *side, int64_t step, uint32_t micro);
bool gt_pipe_held_room(const gt_pipe_side *side);
/* In this order: returns the number of the buffer; returns the record of an out buffer, or NULL. */
size_t gt_pipe_held_buffer(const gt_pipe_side *side, const gt_pipe_held *held);
gt_pipe_held *gt_pipe_held_out(const gt_pipe_region *region, const gt_pipe_worker *worker,
                               size_t buffer);
/* Frees the record if all have read it and all packets have left. */
void gt_pipe_held_settle(gt_pipe_held *held);

/* Checks that a packet is allowed now.  Then *route has the receiving worker, its side (of an empty
   packet: that of its output) and the peer. */
typedef struct {
  gt_pipe_worker *worker;
  gt_pipe_side *side;
  size_t chunk, peer;
} gt_pipe_packet_route;
gt_status gt_pipe_packet_check(gt_pipe_region *region, const gt_pipe_packet *packet,
                               gt_pipe_packet_route *route);
