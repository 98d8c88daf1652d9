/* pipe_job: the pipeline of a job: the operations of its spans, where its stages are, how long its
   passes take, what its workers hold, its schedule and its traffic.  Layer 5.  Local; the only
   files that are read are traces of links.  The same job and model give the same pipeline on every
   rank with the same build.

   Words as in pipe.h: stage, span, micro-batch, F, B, W. */
#ifndef GEOTRAIN_PIPE_JOB_H
#define GEOTRAIN_PIPE_JOB_H

#include "geotrain/nn_span.h"
#include "geotrain/pipe_layout.h"

/* Bytes of one worker of a stage. */
typedef struct {
  size_t arrays;                   /* parameters, gradients and buffers of its spans */
  size_t shared;                   /* scratch of its passes */
  size_t slot;                     /* of each micro-batch in flight */
  size_t fused_shared, fused_slot; /* where no pass computes the two gradients apart */
} gt_pipe_holds;

/* All bytes that one worker of a stage needs for training. */
typedef struct {
  size_t arrays; /* parameters, gradients and buffers, with those that it borrows */
  size_t scratch;
  size_t slots, slot; /* micro-batches in flight, and bytes of each */
  size_t areas;       /* what goes to other stages, and what comes from other regions */
  size_t samples;     /* of a step, where it reads them */
  size_t all;
} gt_pipe_need;

/* The links of a job; `wan` points into the rest. */
typedef struct {
  gt_pipe_wan wan;
  gt_links *links;
  gt_link_spec *specs; /* (regions, regions) */
  double *access_bps;  /* of each region */
} gt_pipe_job_wan;

/* Everything is owned by it, except `job`. */
typedef struct gt_pipe_job {
  const gt_job *job;
  size_t replica; /* of the pipeline */
  /* With pipeline.adapt micro_batches: the same pipeline with other numbers of micro-batches, to
     which a run may change.  Else none. */
  struct gt_pipe_job **others;
  size_t nothers;
  size_t variants; /* that `auto` tries; 0: as many as usual */
  gt_graph *graph; /* the model, sizes only: names and sizes of its operations */
  gt_span *spans;  /* stages x chunks: operations of each span */
  gt_pipe_layout layout;
  gt_pipe_holds *holds; /* of each stage */
  size_t sample_bytes;  /* in memory, with its label */
  /* What the schedule is for.  An activation is one slot; where the stages' workers differ, times
     are those of the slowest one. */
  gt_pipe_problem problem;
  bool timed;       /* compute says how long work takes in every region; else all times are 0 */
  double *sample_s; /* (spans, 3): F, B and W of a sample on a worker of speed 1 of the region */
  size_t *owners;   /* the region of each of the model's tensors, in its order */
  size_t nowners;
  /* Behind the pointers of `problem`. */
  gt_pipe_span *problem_spans;
  gt_pipe_hop *hops;
  gt_pipe_job_wan wan;
  size_t *regions;
  double *slots_most, *update_s, *agree_s;
} gt_pipe_job;

/* Opens the pipeline of a job that has one, in the regions of this replica (gt_job_replicas).
   model: gt_graph_spec_of(job) with shape, text, kernels and precision; its other fields are not
   read.  The caller closes *out; after an error it is NULL.  GT_ERR_JOB names the key and says what
   is needed: a stage ends where the model cannot be cut, has no operation, or more workers than its
   operations allow; a tied head is in another region than the embedding; pipeline.memory is too
   small for the schedule; `auto` needs times, which compute does not say; the number of
   micro-batches may change, and the model keeps statistics of them.  Other errors as
   gt_graph_create and gt_links_create. */
gt_status gt_pipe_job_open(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model,
                           size_t replica);
void gt_pipe_job_close(gt_pipe_job *pipe);
/* Returns the shapes of its micro-batches: 0 is the one of the job, the others follow in the order
   of their numbers of micro-batches.  Every rank has the same. */
size_t gt_pipe_job_shapes(const gt_pipe_job *pipe);
const gt_pipe_job *gt_pipe_job_shape(const gt_pipe_job *pipe, size_t shape);
/* Returns the numbers of micro-batches that a run may have, ascending: "2, 4, 8 or 16".  Returns
   text. */
char *gt_pipe_job_shapes_text(const gt_pipe_job *pipe, char *text, size_t size);
/* Returns the shape with so many micro-batches; none is a bug of the caller. */
size_t gt_pipe_job_shape_of(const gt_pipe_job *pipe, size_t micro_batches);

/* Creates a schedule of this kind for the same pipeline, within pipeline.memory.  GT_ERR_JOB: it is
   for another number of spans a stage, needs more memory, or needs times.  The caller closes
   *out. */
gt_status gt_pipe_job_schedule(gt_pipe_schedule **out, const gt_pipe_job *pipe, gt_pipe_kind kind);

/* Returns how long a pass of `samples` samples takes on a worker (from 0, of the span's stage), by
   compute: the time of a training step of these samples in its region, times the span's share of
   the model's multiply-adds in this pass, and compute.pass (of BW twice: it is B and W).  The
   virtual clock, compute.emulate and predictions all use it.  0 if it is not timed. */
gt_ns gt_pipe_job_time(const gt_pipe_job *pipe, size_t span, gt_pass_kind kind, size_t samples,
                       size_t worker);
/* Returns the share of the model's parameters that the stages of a region have. */
double gt_pipe_job_update_share(const gt_pipe_job *pipe, size_t region);
/* Returns the bytes on the wire from one region to another in a training step: outputs, gradients,
   and labels if they are sent, with the headers of their frames. */
size_t gt_pipe_job_bytes(const gt_pipe_job *pipe, size_t from, size_t to);
/* Returns what a worker of the stage needs with this schedule, which is sound for the pipeline:
   enough for each of its shapes.  Slots are those of the shape that needs the most for them. */
gt_pipe_need gt_pipe_job_need(const gt_pipe_job *pipe, const gt_pipe_schedule *schedule,
                              size_t stage);
/* Returns the bytes of a worker of the stage: all that it needs, with the schedule of the
   layout. */
size_t gt_pipe_job_memory(const gt_pipe_job *pipe, size_t stage);

#endif
