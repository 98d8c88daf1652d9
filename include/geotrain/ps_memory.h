/* ps_memory: bytes that the PS of a region with stages of a pipeline needs.  Local. */
#ifndef GEOTRAIN_PS_MEMORY_H
#define GEOTRAIN_PS_MEMORY_H

#include "geotrain/pipe_job.h"

/* Memory that workers have, too, is counted with both: it is in both processes, but once on their
   host. */
typedef struct {
  size_t arrays; /* parameters, buffers, gradients, and gradients that wait for the other regions */
  size_t optimizer;
  size_t workers;    /* workers' gradients and buffers, and what passes through it to and from other
                        regions */
  size_t frames;     /* of messages to and from other regions */
  size_t checkpoint; /* images of it while one is made */
  size_t all;
} gt_ps_need;

/* modelled: links are emulated, or the clock is virtual. */
gt_ps_need gt_ps_need_of(const gt_pipe_job *pipe, size_t region, bool modelled);
/* Bytes of the largest message between regions: a piece of a region's part of the model, of several
   copies all of the part, or what a stage sends of a micro-batch. */
size_t gt_ps_stages_message_max(const gt_pipe_job *pipe);

#endif
