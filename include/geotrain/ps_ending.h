/* ps_ending: the end of a run, after a PS is complete.  Local. */
#ifndef GEOTRAIN_PS_ENDING_H
#define GEOTRAIN_PS_ENDING_H

#include "geotrain/link.h"
#include "geotrain/ps.h"

/* When its PS is COMPLETE, a region evaluates its model, sends the model and then its result to the
   lead, and waits for BYE.  The lead opens the last round when the round in progress is complete,
   waits for the models and results of all others and for that round, has the mean evaluated, and
   concludes.  Every region that scores the mean (gt_ps_tests) gets it as a MODEL, and answers with
   a REPORT. */
typedef struct {
  /* Begins the evaluations of the region's own model or, on the lead, of the mean.  Returns the
     number of evaluations, each of which ends with gt_ending_evaluated or a REPORT before the next
     stage.  0: no test set. */
  size_t (*evaluate)(void *ctx, bool mean);
  void (*send_model)(void *ctx, uint64_t cookie);
  void (*send_report)(void *ctx, uint64_t cookie);
  void (*conclude)(void *ctx); /* the lead: the mean is evaluated; sends BYE to all */
} gt_ending_hooks;

#define GT_ENDING_COOKIE ((uint64_t)1 << 63) /* least cookie of the end, above those of the PS */

typedef struct {
  const gt_ending_hooks *hooks;
  void *ctx;
  gt_ps *ps;
  bool lead, bye;
  int stage;
  size_t evaluations, evaluated;    /* begun in this stage; ended */
  size_t others, nmodels, nreports; /* the other regions; models and results received from them */
  int64_t last_round;
} gt_ending;
/* Opens an ending, which owns nothing and is not closed. */
void gt_ending_open(gt_ending *ending, const gt_ending_hooks *hooks, void *ctx, gt_ps *ps,
                    bool lead, size_t others);
void gt_ending_evaluated(gt_ending *ending);
void gt_ending_departed(gt_ending *ending, uint64_t cookie);
/* Call when a MODEL, REPORT or BYE has arrived. */
void gt_ending_message(gt_ending *ending, unsigned kind);
/* A region of a pipeline sends its part of the model, params floats and then its buffers, `all`
   together, in pieces.  Returns the header of the piece that begins at float `at`, and its floats
   in *n.  In the last piece detail, the number of floats after it, is 0. */
#define GT_MODEL_PIECE ((size_t)1 << 20) /* the most floats of a piece */
gt_frame_header gt_ending_piece(size_t params, size_t all, size_t at, size_t *n);
/* Makes all possible progress; true when the run is over. */
bool gt_ending_step(gt_ending *ending, gt_ns now);

#endif
