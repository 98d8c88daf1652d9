/* The region's state machine: region_sides.c knows what its workers hold, region.c what they do. */
#ifndef GEOTRAIN_PIPE_REGION_INTERNAL_H
#define GEOTRAIN_PIPE_REGION_INTERNAL_H

#include "geotrain/pipe_region.h"
#include "internal.h"

/* A worker of a neighbouring stage that has samples in common with this one. */
typedef struct {
  size_t worker;       /* of its region */
  size_t first, count; /* of the samples in common, in the micro-batch */
  size_t here, there;  /* the first of them in this worker's share, and in the peer's */
} gt_pipe_peer;

/* Input or output of a micro-batch, from when there is a part of it until all have read it. */
typedef struct {
  bool used, forward_only;
  uint32_t micro;
  int64_t step;
  /* Input: parts that are missing.  Output: workers that have not read it; packets that have not
     left. */
  size_t waits, leaving;
  /* Of each peer.  Input: 0: missing; else 1 + the out buffer that it is in (another region's: 1).
     Output in an evaluation: 1: the other region says that it has been read. */
  size_t *of;
} gt_pipe_held;

/* Where a worker's span gets input from, or where its output goes. */
typedef struct {
  bool there;          /* false: the first and the last span have one less */
  bool away;           /* the neighbour is in another region */
  size_t span, stage;  /* the neighbour's */
  size_t replica;      /* of the neighbouring stage: the first peer */
  gt_pipe_peer *peers; /* in order of samples */
  size_t npeers;
  gt_pipe_held *held; /* as many as there are buffers */
  size_t count;
  size_t first; /* number of the first buffer */
  size_t bytes; /* of a sample */
  size_t *marks;
} gt_pipe_side;

typedef struct {
  size_t stage; /* GT_PIPE_NONE: the worker has none */
  size_t replica;
  int64_t step;                 /* the last that has begun */
  bool runs;                    /* it has not ended */
  size_t forward_micro_batches; /* of an evaluation; 0: a training step */
  size_t begun, ended;          /* F of the first chunk in this step */
  bool stalled;                 /* the next pass waits for an out buffer */
  gt_pipe_progress progress;    /* in training steps */
  /* The pass that runs; input and output are NULL where there is none. */
  bool busy;
  gt_pass pass;
  gt_pipe_held *input, *output;
  size_t slot;
  /* Of each chunk: the next micro-batch of an evaluation; a weight pass of this step has begun. */
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
  const gt_pipe_schedule *schedule; /* in force; borrowed */
  size_t self, forward_micro_batches, stalls, nworkers;
  size_t stride; /* of the numbers of micro-batches, from step to step */
  gt_pipe_region_host host;
  gt_pipe_worker *workers;
  gt_pipe_input *pieces; /* for orders */
};

/* layout.c: the neighbour of a span, ahead or back; false: there is none. */
bool gt_pipe_next_span(const gt_pipe_layout *layout, size_t span, bool ahead, size_t *next);

/* Peers and buffers of a worker, and what they hold. */
void gt_pipe_sides_open(gt_pipe_region *region, gt_pipe_worker *worker);
void gt_pipe_sides_close(gt_pipe_region *region, gt_pipe_worker *worker);
/* What is held of a micro-batch; NULL: nothing.  A free place, now taken; NULL: all are in use. */
gt_pipe_held *gt_pipe_held_of(const gt_pipe_side *side, int64_t step, uint32_t micro);
gt_pipe_held *gt_pipe_held_take(gt_pipe_side *side, int64_t step, uint32_t micro);
bool gt_pipe_held_room(const gt_pipe_side *side);
/* The number of the buffer, and the held of an out buffer (NULL: there is no such buffer). */
size_t gt_pipe_held_buffer(const gt_pipe_side *side, const gt_pipe_held *held);
gt_pipe_held *gt_pipe_held_out(const gt_pipe_region *region, const gt_pipe_worker *worker,
                               size_t buffer);
/* Free if all have read it and all packets have left. */
void gt_pipe_held_settle(gt_pipe_held *held);

/* Can this packet come?  Then: the receiving worker, its side (of an empty packet:
   that of its output) and the peer. */
typedef struct {
  gt_pipe_worker *worker;
  gt_pipe_side *side;
  size_t chunk, peer;
} gt_pipe_packet_route;
gt_status gt_pipe_packet_check(gt_pipe_region *region, const gt_pipe_packet *packet,
                               gt_pipe_packet_route *route);

#endif
