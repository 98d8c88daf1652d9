/* pipe: pipeline schedules: in which order the stages of a pipeline run their passes, whether that
   order is sound, and how long it takes.  Layer 5.  Numbers only: no MPI, no files, no clock.
   Everything is local; the same input gives the same output.  Times of the input are in seconds,
   those of the output in nanoseconds.

     stage   a position of the pipeline, 0 to p - 1
     micro   a micro-batch, 0 to m - 1; a step is m of them
     span    a run of operations of the model, 0 to p c - 1 in the model's order.  A stage holds c
             spans (chunks): span k is chunk k / p.  Chunks 0, 2, .. run over the stages from 0 to
             p - 1, chunks 1, 3, .. back from p - 1 to 0: a folded pipeline
     pass    F: forward; B: gradient of the input; W: gradient of the weights; BW: B, then W

   F of span k needs the output of span k - 1, B the gradient that span k + 1 sends back; B comes
   after F of the same span, W after B. */
#ifndef GEOTRAIN_PIPE_H
#define GEOTRAIN_PIPE_H

#include "geotrain/base.h"
#include "geotrain/base_families.h"
#include "geotrain/base_phases.h"
#include "geotrain/link.h"

/* ---- what is scheduled ----------------------------------------------------------------------- */

/* A span, for one micro-batch.  All numbers are finite, 0 or more. */
typedef struct {
  double forward_s, backward_s, weight_s; /* F, B, W; BW takes backward_s + weight_s */
  /* Memory that a micro-batch holds from the begin of F to the end of B, in any unit (bytes, or 1);
     the share of it that W needs is held until W has ended, 0 to 1. */
  double activation, weight_share;
  double output_bytes; /* what the span sends to the next; the gradient has the same size */
  double label_bytes;  /* that go with the output */
} gt_pipe_span;

/* One direction between neighbouring stages: a message takes delay_s + 8 bytes / bandwidth_bps
   (0: unlimited), however many are under way. */
typedef struct {
  double delay_s, bandwidth_bps;
} gt_pipe_hop;

/* The stages' regions.  A message between regions takes its hop's time, then the link, in frames as
   on the wire: messages occupy the link, and the access of both regions.  Messages are served in
   the order in which they reach the link. */
typedef struct {
  size_t nregions;
  const size_t *region;      /* of each stage */
  const gt_link_spec *links; /* [from * nregions + to] */
  const double *up_bps;      /* access of each region; NULL or 0: unlimited */
  const double *down_bps;
  uint64_t seed; /* of the links' jitter */
} gt_pipe_wan;

/* A pipeline.  Everything is borrowed. */
typedef struct {
  size_t stages, chunks, micro_batches; /* p, c, m; 1 or more */
  const gt_pipe_span *spans;            /* stages x chunks */
  const gt_pipe_hop *ahead;             /* stages - 1: from stage s to s + 1 */
  const gt_pipe_hop *back;              /* stages - 1: from stage s + 1 to s */
  const gt_pipe_wan *wan;               /* NULL: hops alone */
  /* The most that a stage may hold, in the unit of activation; NULL or 0: no limit.  Room for one
     micro-batch is needed. */
  const double *memory;
  /* From a stage's last pass to the first of its next step: push, update, pull; NULL: 0. */
  const double *update_s;
  /* [from * nregions + to], with `wan`: regions make steps together.  When the last pass of a
     region's stages has ended, it tells every other, which hears of it so much later; updates of a
     region begin when it has heard of all.  NULL: the update of a stage follows its last pass. */
  const double *agree_s;
} gt_pipe_problem;

/* Returns the stage of a span, and the span of a chunk. */
size_t gt_pipe_stage_of(size_t stages, size_t span);
size_t gt_pipe_span_of(size_t stages, size_t chunk, size_t stage);
/* Activations in flight that keep a span busy until the first gradient is back (k_s in
   docs/pipeline-schedules.md): 1 + ceil((F and B of all later spans + all hops there and back) /
   F), at most `micro_batches` and what the memory of its stage holds, at least 1. */
size_t gt_pipe_depth(const gt_pipe_problem *problem, size_t span);

/* ---- schedules ------------------------------------------------------------------------------- */

typedef enum { GT_PASS_F, GT_PASS_B, GT_PASS_W, GT_PASS_BW } gt_pass_kind;

typedef struct {
  gt_pass_kind kind;
  uint32_t span, micro;
} gt_pass;

/* The passes of a stage in a step, in their order. */
typedef struct {
  gt_pass *passes;
  size_t n, capacity;
} gt_pipe_list;

typedef struct gt_pipe_schedule {
  size_t stages, chunks, micro_batches;
  gt_pipe_list *lists; /* of each stage */
} gt_pipe_schedule;

/* Creates empty lists; the caller closes it. */
gt_pipe_schedule *gt_pipe_schedule_create(size_t stages, size_t chunks, size_t micro_batches);
void gt_pipe_schedule_close(gt_pipe_schedule *schedule);
/* Adds a pass to the end of the list of the span's stage. */
void gt_pipe_add(gt_pipe_schedule *schedule, gt_pass_kind kind, size_t span, size_t micro);
/* Writes the SHA-256 of the schedule: regions compare it before they run it. */
void gt_pipe_hash(const gt_pipe_schedule *schedule, char hex[GT_SHA256_HEX]);

/* What `auto` makes as small as it can.  Of schedules that are equal in it, the shorter one. */
typedef enum {
  GT_PIPE_MAKESPAN, /* of one step */
  GT_PIPE_COST,     /* as the zero-bubble papers measure it */
  GT_PIPE_PERIOD    /* of a step in a long run */
} gt_pipe_aim;

#define GT_PIPE_VARIANTS ((size_t)1000)
#define GT_PIPE_STEADY   ((size_t)6) /* steps that are run to find the period */

typedef struct {
  gt_pipe_aim aim;
  size_t variants; /* 0: GT_PIPE_VARIANTS */
  uint64_t seed;
} gt_pipe_search;

/* Chunks of a stage that the kind is for; 0: any number. */
size_t gt_pipe_chunks(gt_pipe_kind kind);

/* Makes a schedule; `search` is for `auto` (NULL: all zero), which takes the best of its variants
   and of all other kinds that fit.  The schedule is sound.  GT_ERR_JOB: a number of the problem is
   wrong, the kind is for another number of chunks, or it needs more memory than there is; *out is
   then NULL.  The caller closes *out. */
gt_status gt_pipe_make(gt_pipe_schedule **out, gt_pipe_kind kind, const gt_pipe_problem *problem,
                       const gt_pipe_search *search);
/* Checks that a schedule, whoever made it, is sound for this problem: every pass once (W alone or
   in BW), in an order that cannot deadlock, within memory?  GT_ERR_JOB: one sentence says what is
   wrong first. */
gt_status gt_pipe_check(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem);
/* Returns the most that a stage holds, in the unit of activation; it follows from the order
   alone. */
double gt_pipe_peak(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem, size_t stage);

/* ---- running a schedule ---------------------------------------------------------------------- */

/* What one span sends to another: an output to span k from k - 1, or a gradient to k from k + 1.
   Both may be on the same stage: the message then arrives at once. */
typedef struct {
  bool gradient;
  uint32_t span, micro; /* span: the receiver */
} gt_pipe_message;

/* Where a stage is in its schedule. */
typedef struct {
  const gt_pipe_schedule *schedule; /* borrowed */
  size_t stage;
  int64_t step;      /* from 0 */
  size_t counter;    /* passes that have begun in this step */
  uint64_t *arrived; /* messages of each kind, chunk and micro-batch, over all steps; owned */
} gt_pipe_progress;

gt_pipe_progress gt_pipe_progress_open(const gt_pipe_schedule *schedule, size_t stage);
void gt_pipe_progress_close(gt_pipe_progress *progress);
/* Find the message that a pass waits for, and the one that it sends when it has ended; false:
   none. */
bool gt_pipe_needs(const gt_pipe_schedule *schedule, const gt_pass *pass, gt_pipe_message *message);
bool gt_pipe_sends(const gt_pipe_schedule *schedule, const gt_pass *pass, gt_pipe_message *message);
/* Call when a message to this stage is there.  Messages of the next step may come before the own
   step has ended; they count then. */
void gt_pipe_arrived(gt_pipe_progress *progress, const gt_pipe_message *message);
bool gt_pipe_has(const gt_pipe_progress *progress, const gt_pipe_message *message);
/* Returns the pass that an idle stage begins now.  NULL: it waits for a message, or its list has
   ended. */
const gt_pass *gt_pipe_next(const gt_pipe_progress *progress);
/* Call when the pass of gt_pipe_next has begun. */
void gt_pipe_begun(gt_pipe_progress *progress);
/* Call when all passes of the step have ended; the next step begins. */
void gt_pipe_next_step(gt_pipe_progress *progress);

/* ---- evaluation ------------------------------------------------------------------------------ */

typedef struct {
  gt_ns start, end;
} gt_pipe_time;

typedef struct {
  gt_pipe_time *times; /* of each pass of its list, in the first step; owned by the result */
  double peak;         /* gt_pipe_peak */
  gt_ns work;          /* of all its passes */
  /* Where its time goes from 0 to the end of its last update, over all steps (docs/time-split.md).
     A stage that waits for others to update together is in STEP_END. */
  gt_ns phases[GT_NPHASES];
} gt_pipe_stage_times;

/* Times of a step that begins at 0; a stage's cost is from its first start to its last end. */
typedef struct {
  gt_pipe_stage_times *stages;
  size_t nstages;
  gt_ns makespan; /* until the last pass of the first step has ended */
  gt_ns cost;     /* the largest of the stages' */
  /* Mean time between the ends of steps, updates included, over the last half of the steps: the
     steady state, if there are enough.  After one step: until its update has ended. */
  gt_ns period;
  /* 1 - work / cost, work / period, with the work of the busiest stage; with equal stages this is
     1 - m (F + B + W) / cost, the zero-bubble papers' bubble. */
  double bubble, period_bubble;
} gt_pipe_result;

/* Runs `steps` steps (1 or more) in simulated time: a pass starts when its stage is free and the
   message that it needs is there.  GT_ERR_JOB: as gt_pipe_check; *out is then empty.  The caller
   closes *out. */
gt_status gt_pipe_evaluate(gt_pipe_result *out, const gt_pipe_schedule *schedule,
                           const gt_pipe_problem *problem, size_t steps);
void gt_pipe_result_close(gt_pipe_result *result);

/* ---- pictures -------------------------------------------------------------------------------- */

/* Returns the first step as text, one line a stage, `columns` wide: F B W, small letters in odd
   chunks, a dot where the stage waits.  A letter is what the stage does in the middle of its
   column; BW is drawn as B, then W.  The caller frees it (gt_free). */
char *gt_pipe_text(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                   const gt_pipe_result *result, size_t columns);
/* Returns the first step as an SVG image of width_px pixels, a row a stage, with the number of each
   micro-batch where there is room.  The caller frees it (gt_free). */
char *gt_pipe_svg(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                  const gt_pipe_result *result, size_t width_px);

#endif
