/* pipe_job: the pipeline of a job: operations of its spans, places of its stages, times of its
   passes, memory of its workers, its schedule and its traffic.  Layer 5.  Local; reads only files
   of traces.  The same job and model give the same pipeline on every rank with the same build.
   Terms as in pipe.h: stage, span, micro-batch, F, B, W. */
#pragma once

#include "geotrain/nn_span.h"
#include "geotrain/pipe_layout.h"

/* Bytes of one worker of a stage. */
typedef struct {
  size_t arrays;                   /* parameters, gradients and buffers of its spans */
  size_t shared;                   /* scratch of its passes */
  size_t slot;                     /* of each micro-batch in flight */
  size_t fused_shared, fused_slot; /* the same if no pass computes the two gradients separately */
} gt_pipe_holds;

/* Bytes that one worker of a stage uses in training. */
typedef struct {
  size_t arrays; /* parameters, gradients and buffers, including borrowed ones */
  size_t scratch;
  size_t slots, slot; /* micro-batches in flight, and bytes per micro-batch */
  size_t areas;       /* messages to other stages, and messages from other regions */
  size_t samples;     /* of a step, if the worker reads them */
  size_t all;
} gt_pipe_need;

/* The links of a job.  `wan` points to the other members. */
typedef struct {
  gt_pipe_wan wan;
  gt_links *links;
  gt_link_spec *specs;       /* (regions, regions) */
  double *up_bps, *down_bps; /* of each region's access */
} gt_pipe_job_wan;

/* Owns all members except `job`. */
typedef struct gt_pipe_job {
  const gt_job *job;
  size_t replica; /* of the pipeline */
  /* With pipeline.adapt micro_batches: the same pipeline with the other numbers of micro-batches
     that a run may use. */
  struct gt_pipe_job **others;
  size_t nothers;
  size_t variants; /* variants for `auto`; 0: the default number */
  gt_graph *graph; /* the model, without values: names and sizes of its operations */
  gt_span *spans;  /* stages x chunks: operations of each span */
  gt_pipe_layout layout;
  gt_pipe_holds *holds; /* of each stage */
  size_t sample_bytes;  /* in memory, with its label */
  /* The problem of the schedule.  An activation is one slot.  If the workers of a stage differ,
     times are those of the slowest one. */
  gt_pipe_problem problem;
  bool timed;       /* compute gives the time of work in every region; otherwise all times are 0 */
  double *sample_s; /* (spans, 3): F, B and W of a sample on a worker of speed 1 of the region */
  size_t *owners;   /* region of each tensor of the model, in its order */
  size_t nowners;
  /* Storage of the pointers in `problem`. */
  gt_pipe_span *problem_spans;
  gt_pipe_hop *hops;
  gt_pipe_job_wan wan;
  size_t *regions;
  double *slots_most, *update_s, *agree_s;
} gt_pipe_job;

/* Opens the pipeline of a job that has one, in the regions of this replica (gt_job_replicas).
   model: gt_graph_spec_of(job) with shape, text, kernels and precision; other fields are ignored.
   The caller closes *out; after an error it is NULL.  GT_ERR_JOB names the key and the expected
   value: the model cannot be cut at the end of a stage, a stage has no operation or more workers
   than its operations allow, a tied head is in another region than the embedding, pipeline.memory
   is too small for the schedule, `auto` requires times that compute does not give, or the number of
   micro-batches may change and the model has statistics of micro-batches.  Other errors as
   gt_graph_create and gt_links_create. */
gt_status gt_pipe_job_open(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model,
                           size_t replica);
void gt_pipe_job_close(gt_pipe_job *pipe);
/* Returns the number of shapes of its micro-batches: 0 is that of the job, the others follow by
   their numbers of micro-batches.  Every rank has the same. */
size_t gt_pipe_job_shapes(const gt_pipe_job *pipe);
const gt_pipe_job *gt_pipe_job_shape(const gt_pipe_job *pipe, size_t shape);
/* Writes the numbers of micro-batches that a run may use, ascending: "2, 4, 8 or 16".  Returns
   text. */
char *gt_pipe_job_shapes_text(const gt_pipe_job *pipe, char *text, size_t size);
/* Returns the shape with this number of micro-batches, which must exist. */
size_t gt_pipe_job_shape_of(const gt_pipe_job *pipe, size_t micro_batches);

/* Creates a schedule of this kind for the same pipeline, within pipeline.memory.  GT_ERR_JOB: it
   requires another number of spans per stage, more memory, or times.  The caller closes *out. */
gt_status gt_pipe_job_schedule(gt_pipe_schedule **out, const gt_pipe_job *pipe, gt_pipe_kind kind);

/* Returns the time of a pass of `samples` samples on a worker (from 0, of the span's stage), by
   compute: the time of a training step of these samples in its region, times the span's share of
   the model's multiply-adds in this pass, plus compute.pass (twice for BW, which is B and W).  The
   virtual clock, compute.emulate and predictions use it. 0 if the pipeline is not timed. */
gt_ns gt_pipe_job_time(const gt_pipe_job *pipe, size_t span, gt_pass_kind kind, size_t samples,
                       size_t worker);
/* Returns the share of the model's parameters in the stages of a region. */
double gt_pipe_job_update_share(const gt_pipe_job *pipe, size_t region);
/* Returns the bytes on the wire from one region to another per training step: outputs, gradients,
   and labels if they are sent, with frame headers. */
size_t gt_pipe_job_bytes(const gt_pipe_job *pipe, size_t from, size_t to);
/* Returns the memory of a worker of the stage with this sound schedule, enough for each of its
   shapes.  Slots are those of the shape with the largest slots in total. */
gt_pipe_need gt_pipe_job_need(const gt_pipe_job *pipe, const gt_pipe_schedule *schedule,
                              size_t stage);
/* Returns the bytes of a worker of the stage with the schedule of the layout. */
size_t gt_pipe_job_memory(const gt_pipe_job *pipe, size_t stage);
