/* ps_memory: memory of the PS of a region with stages of a pipeline.  Local. */
#pragma once

#include "geotrain/exchange.h"
#include "geotrain/pipe_job.h"

/* Bytes of the PS.  Shared memory is part of the figures of the PS and of its workers, but exists
   only once on their host.  For the exchange of several replicas, assumes one message in flight per
   link. */
typedef struct {
  /* parameters, buffers, gradients, and gradients that wait for the other regions; with strategies
     in which no region waits, and without shared memory, also a copy of the parameters for
     workers */
  size_t arrays;
  size_t optimizer;
  /* workers' gradients and buffers, and packets to and from other regions; without shared memory
     also copies of all messages of workers */
  size_t workers;
  size_t frames; /* of messages to and from other regions */
  /* between replicas of the pipeline: vectors of the strategy, messages to send, and arrived
     messages that wait */
  size_t exchange;
  size_t checkpoint; /* images of the state during a checkpoint */
  size_t ending;     /* at the lead: parts of the model that arrive at the end of the run */
  size_t all;        /* total during a checkpoint, or at the end of the run */
} gt_ps_need;

/* The conditions in which a region runs. */
typedef struct {
  bool modelled; /* links are emulated, or the clock is virtual */
  bool apart;    /* the region's ranks are on several hosts, and so share no memory */
  /* With several replicas, the routes of their exchange; otherwise not read. */
  const gt_routes *routes;
} gt_ps_setting;

/* Returns the memory of a PS.  pipe: of the region's replica, or of another replica if its regions
   are alike. */
gt_ps_need gt_ps_need_of(const gt_pipe_job *pipe, size_t region, const gt_ps_setting *how);
/* Returns the bytes of the largest message between regions: a piece of a region's part of the model
   (of several replicas, all of the part), or a stage's activation or gradient of a micro-batch. */
size_t gt_ps_stages_message_max(const gt_pipe_job *pipe);
