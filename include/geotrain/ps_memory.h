/* ps_memory: bytes that the PS of a region with stages of a pipeline needs.  Local. */
#ifndef GEOTRAIN_PS_MEMORY_H
#define GEOTRAIN_PS_MEMORY_H

#include "geotrain/exchange.h"
#include "geotrain/pipe_job.h"

/* Memory that workers have, too, is counted with both: it is in both processes, but once on their
   host.  Of what several replicas exchange, one message is on its way on each link. */
typedef struct {
  /* parameters, buffers, gradients, and gradients that wait for the other regions; with strategies
     for which nobody waits, and without shared memory, also a copy of the parameters for workers */
  size_t arrays;
  size_t optimizer;
  size_t workers; /* workers' gradients and buffers, and what passes through it to and from other
                      regions; without shared memory its copies of all that they send and get */
  size_t frames;  /* of messages to and from other regions */
  size_t
      exchange; /* between replicas of the pipeline: what the strategy keeps, what is sent, and what
                      has come and waits */
  size_t checkpoint; /* images of it while one is made */
  size_t ending;     /* of the lead: parts of the model that it gets at the end of the run */
  size_t all;        /* there is a checkpoint, or the run ends */
} gt_ps_need;

/* How a region runs. */
typedef struct {
  bool modelled; /* links are emulated, or the clock is virtual */
  bool apart;    /* its ranks share no memory: they are on several hosts */
  /* Of several replicas: the routes of their exchange.  Else not read. */
  const gt_routes *routes;
} gt_ps_setting;

/* Fills in the need.  pipe: of the region's replica or, with regions alike, of another one. */
gt_ps_need gt_ps_need_of(const gt_pipe_job *pipe, size_t region, const gt_ps_setting *how);
/* Returns the bytes of the largest message between regions: a piece of a region's part of the
   model, of several replicas all of the part, or what a stage sends of a micro-batch. */
size_t gt_ps_stages_message_max(const gt_pipe_job *pipe);

#endif
