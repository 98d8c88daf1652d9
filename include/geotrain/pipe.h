/* pipe: pipeline schedules: orders of the passes of each stage, checks of an order, and its time.
   Layer 5.  Computes with numbers only, without MPI, files or clock.  All functions are local; the
   same input gives the same output.  Input times are in seconds, output times in nanoseconds.

     stage   a position of the pipeline, 0 to p - 1
     micro   a micro-batch, 0 to m - 1; a step is m of them
     span    a sequence of operations of the model, 0 to p c - 1 in the model's order.  A stage has
             c spans (chunks): span k is chunk k / p.  Chunks 0, 2, .. are on stages 0 to p - 1,
             chunks 1, 3, .. on stages p - 1 to 0: a folded pipeline
     pass    F: forward; B: gradient of the input; W: gradient of the weights; BW: B, then W

   F of span k requires the output of span k - 1, and B the gradient from span k + 1; B follows F of
   the same span, W follows B. */
#pragma once

#include "geotrain/base.h"
#include "geotrain/base_families.h"
#include "geotrain/base_phases.h"
#include "geotrain/link.h"

/* ---- the problem ----------------------------------------------------------------------------- */

/* A span, for one micro-batch.  All numbers are finite and 0 or more. */
typedef struct {
  double forward_s, backward_s, weight_s; /* F, B, W; BW takes backward_s + weight_s */
  /* Memory of a micro-batch from the start of F to the end of B, in any unit (bytes, or 1).  W
     keeps the share weight_share of it, 0 to 1, until W has ended. */
  double activation, weight_share;
  double output_bytes; /* from the span to the next one; the gradient has the same size */
  double label_bytes;  /* sent with the output */
} gt_pipe_span;

/* One direction between neighbor stages: a message takes delay_s + 8 bytes / bandwidth_bps (0:
   unlimited), independently of other messages. */
typedef struct {
  double delay_s, bandwidth_bps;
} gt_pipe_hop;

/* The regions of the stages.  A message between regions takes the time of its hop, then that of the
   link, in frames as on the wire.  Messages occupy the link and the access of both regions, in the
   order in which they reach the link. */
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
  const gt_pipe_wan *wan;               /* NULL: only hops */
  /* Maximum memory of each stage in the unit of activation, at least that of one micro-batch; NULL
     or 0: no limit. */
  const double *memory;
  /* From a stage's last pass to its first pass of the next step: push, update, pull; NULL: 0. */
  const double *update_s;
  /* [from * nregions + to], requires `wan`: delay of announcements between regions that make steps
     together.  A region announces the end of its last pass to all others, and starts updates when
     all announcements have arrived.  NULL: a stage updates after its last pass. */
  const double *agree_s;
} gt_pipe_problem;

/* Returns the stage of a span, and the span of a chunk. */
size_t gt_pipe_stage_of(size_t stages, size_t span);
size_t gt_pipe_span_of(size_t stages, size_t chunk, size_t stage);
/* Returns the activations in flight that keep a span busy until the first gradient is back (k_s in
   docs/pipeline-schedules.md): 1 + ceil((F and B of all later spans + all hops there and back) /
   F), at least 1, at most `micro_batches` and the number that its stage has memory for. */
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

/* Creates empty lists; the caller closes the schedule. */
gt_pipe_schedule *gt_pipe_schedule_create(size_t stages, size_t chunks, size_t micro_batches);
void gt_pipe_schedule_close(gt_pipe_schedule *schedule);
/* Adds a pass to the end of the list of the span's stage. */
void gt_pipe_add(gt_pipe_schedule *schedule, gt_pass_kind kind, size_t span, size_t micro);
/* Writes the SHA-256 of the schedule, which regions compare before they run it. */
void gt_pipe_hash(const gt_pipe_schedule *schedule, char hex[GT_SHA256_HEX]);

/* What `auto` minimises.  Among equal schedules it takes the shorter one. */
typedef enum {
  GT_PIPE_MAKESPAN, /* of one step */
  GT_PIPE_COST,     /* as the zero-bubble papers measure it */
  GT_PIPE_PERIOD    /* of a step in a long run */
} gt_pipe_aim;

#define GT_PIPE_VARIANTS ((size_t)1000)
#define GT_PIPE_STEADY   ((size_t)6) /* steps for measuring the period */

typedef struct {
  gt_pipe_aim aim;
  size_t variants; /* 0: GT_PIPE_VARIANTS */
  uint64_t seed;
} gt_pipe_search;

/* Returns the number of chunks per stage that the kind requires; 0: any number. */
size_t gt_pipe_chunks(gt_pipe_kind kind);

/* Makes a sound schedule.  `search` is for `auto` (NULL: all zero), which takes the best of its
   variants and of all other kinds that fit.  GT_ERR_JOB: an invalid number in the problem, another
   number of chunks than the kind requires, or too little memory; *out is then NULL.  The caller
   closes *out. */
gt_status gt_pipe_make(gt_pipe_schedule **out, gt_pipe_kind kind, const gt_pipe_problem *problem,
                       const gt_pipe_search *search);
/* Checks that a schedule is sound for this problem: every pass once (W alone or in BW), in an order
   that cannot deadlock, within memory.  GT_ERR_JOB: one sentence describes the first fault. */
gt_status gt_pipe_check(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem);
/* Returns the peak of a stage's memory, in the unit of activation.  It depends only on the
   order. */
double gt_pipe_peak(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem, size_t stage);

/* ---- running a schedule ---------------------------------------------------------------------- */

/* A message from one span to another: an output to span k from k - 1, or a gradient to k from k +
   1.  If both are on one stage, it arrives at once. */
typedef struct {
  bool gradient;
  uint32_t span, micro; /* span: the receiver */
} gt_pipe_message;

/* The position of a stage in its schedule. */
typedef struct {
  const gt_pipe_schedule *schedule; /* borrowed */
  size_t stage;
  int64_t step;      /* from 0 */
  size_t counter;    /* passes of this step that have started */
  uint64_t *arrived; /* messages of each kind, chunk and micro-batch, over all steps; owned */
} gt_pipe_progress;

gt_pipe_progress gt_pipe_progress_open(const gt_pipe_schedule *schedule, size_t stage);
void gt_pipe_progress_close(gt_pipe_progress *progress);
/* Finds the message that a pass waits for; gt_pipe_sends: the message that it sends at its end.
   False: none. */
bool gt_pipe_needs(const gt_pipe_schedule *schedule, const gt_pass *pass, gt_pipe_message *message);
bool gt_pipe_sends(const gt_pipe_schedule *schedule, const gt_pass *pass, gt_pipe_message *message);
/* Call when a message for this stage has arrived.  A message of the next step can arrive before the
   stage has ended its step; it counts for the next one. */
void gt_pipe_arrived(gt_pipe_progress *progress, const gt_pipe_message *message);
bool gt_pipe_has(const gt_pipe_progress *progress, const gt_pipe_message *message);
/* Returns the pass that an idle stage starts now.  NULL: it waits for a message, or its list has
   ended. */
const gt_pass *gt_pipe_next(const gt_pipe_progress *progress);
/* Call when the pass of gt_pipe_next has started. */
void gt_pipe_begun(gt_pipe_progress *progress);
/* Call when all passes of the step have ended; starts the next step. */
void gt_pipe_next_step(gt_pipe_progress *progress);

/* ---- evaluation ------------------------------------------------------------------------------ */

typedef struct {
  gt_ns start, end;
} gt_pipe_time;

typedef struct {
  gt_pipe_time *times; /* of each pass in its list, in the first step; owned by the result */
  double peak;         /* gt_pipe_peak */
  gt_ns work;          /* of all its passes */
  /* Phases of its time from 0 to the end of its last update, over all steps (docs/time-split.md).
     A stage that waits for other regions before an update is in STEP_END. */
  gt_ns phases[GT_NPHASES];
} gt_pipe_stage_times;

/* Times of a step that starts at 0.  A stage's cost is the time from its first start to its last
   end. */
typedef struct {
  gt_pipe_stage_times *stages;
  size_t nstages;
  gt_ns makespan; /* end of the last pass of the first step */
  gt_ns cost;     /* maximum over stages */
  /* Mean time between the ends of steps, updates included, over the last half of the steps: the
     steady state, if the steps suffice.  After one step: the end of its update. */
  gt_ns period;
  /* 1 - work / cost and 1 - work / period, with the work of the busiest stage.  With equal stages
     the first is 1 - m (F + B + W) / cost, the bubble of the zero-bubble papers. */
  double bubble, period_bubble;
} gt_pipe_result;

/* Runs `steps` steps (1 or more) in simulated time: a pass starts when its stage is idle and its
   message has arrived.  GT_ERR_JOB: as gt_pipe_check; *out is then empty.  The caller closes
   *out. */
gt_status gt_pipe_evaluate(gt_pipe_result *out, const gt_pipe_schedule *schedule,
                           const gt_pipe_problem *problem, size_t steps);
void gt_pipe_result_close(gt_pipe_result *result);

/* ---- pictures -------------------------------------------------------------------------------- */

/* Returns the first step as text, one line per stage, `columns` wide: F B W, small letters in odd
   chunks, a dot where the stage waits.  A letter shows the activity in the middle of its column; BW
   is drawn as B, then W.  The caller frees it (gt_free). */
char *gt_pipe_text(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                   const gt_pipe_result *result, size_t columns);
/* Returns the first step as an SVG image of width_px pixels, one row per stage, with the number of
   each micro-batch if it fits.  The caller frees it (gt_free). */
char *gt_pipe_svg(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                  const gt_pipe_result *result, size_t width_px);
