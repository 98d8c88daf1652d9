/* ps_ending: the end of a run, after a PS is complete.  Local. */
#pragma once

#include "geotrain/link.h"
#include "geotrain/ps.h"

/* When its PS is COMPLETE, a region evaluates its model, sends the model and then its result to the
   lead, and waits for BYE.  The lead opens the last checkpoint round when the round in progress is
   complete.  With validation, all this begins when the last round has been judged.  The lead waits
   for the last round and for the models and results of all other regions, has the mean model
   evaluated, and concludes.  A region that scores the mean model (gt_ps_tests) gets it in MODEL
   messages, and answers with a REPORT. */
typedef struct {
  /* Begins to evaluate the region's own model, with train.keep best that of the best round, or, on
     the lead, the mean model.  Returns the number of evaluations; 0: no test set.  Each evaluation
     ends with gt_ending_evaluated or a REPORT.  The next stage of the ending begins when all have
     ended. */
  size_t (*evaluate)(void *ctx, bool mean);
  void (*send_model)(void *ctx, uint64_t cookie);
  void (*send_report)(void *ctx, uint64_t cookie);
  /* on the lead, after the mean model is evaluated: sends BYE to all */
  void (*conclude)(void *ctx);
} gt_ending_hooks;

#define GT_ENDING_COOKIE ((uint64_t)1 << 63) /* least cookie of the ending, above all of the PS */

typedef struct {
  const gt_ending_hooks *hooks;
  void *ctx;
  gt_ps *ps;
  bool lead, bye;
  int stage;
  size_t evaluations, evaluated; /* begun and ended in this stage */
  /* number of other regions, of models and of results received from them */
  size_t others, nmodels, nreports;
  int64_t last_round;
} gt_ending;
/* Opens an ending, which owns nothing and is not closed. */
void gt_ending_open(gt_ending *ending, const gt_ending_hooks *hooks, void *ctx, gt_ps *ps,
                    bool lead, size_t others);
void gt_ending_evaluated(gt_ending *ending);
void gt_ending_departed(gt_ending *ending, uint64_t cookie);
/* Call when a MODEL, REPORT or BYE has arrived. */
void gt_ending_message(gt_ending *ending, unsigned kind);
/* A region of a pipeline sends its part of the model in pieces: `params` parameters, then its
   buffers, in total `all` floats.  Returns the header of the piece that begins at float `at`;
   writes the number of its floats to *n.  The detail of a piece is the number of floats after it;
   0: the last piece. */
#define GT_MODEL_PIECE ((size_t)1 << 20) /* maximum floats of a piece */
gt_frame_header gt_ending_piece(size_t params, size_t all, size_t at, size_t *n);
/* Makes all possible progress; true when the run is over. */
bool gt_ending_step(gt_ending *ending, gt_ns now);

/* ---- the mean of the models ------------------------------------------------------------------ */

/* The mean of the regions' models, parameters then buffers, in region order. */
typedef struct {
  size_t nregions, self, nparams, nbuffers;
  const double *weights; /* nregions; borrowed */
  /* this region's model; borrowed, and final once gt_model_mean_begin is called */
  gt_vec params, buffers;
  gt_vec mean;
  size_t next;   /* the next region to be added */
  size_t bad;    /* the first region with a non-finite model; nregions: none */
  bool *seen;    /* nregions */
  float **early; /* models that arrived before their turn */
  /* owned: the model that the others are compared with; NULL: this region's own, or, with parts, no
     two regions have the same one */
  float *first;
  bool params_differ, buffers_differ;
} gt_model_mean;

void gt_model_mean_open(gt_model_mean *m, size_t nregions, size_t self, const double *weights,
                        size_t nparams, size_t nbuffers);
void gt_model_mean_close(gt_model_mean *m);
/* Adds another region's model, borrowed for the call; false: it was added before. */
bool gt_model_mean_add(gt_model_mean *m, size_t region, const float *model);
/* Call when this region's model is final: adds the models received so far; later ones are added on
   arrival. */
void gt_model_mean_begin(gt_model_mean *m, gt_vec params, gt_vec buffers);
/* Call instead if all regions hold this model: it is the mean. */
void gt_model_mean_own(gt_model_mean *m, gt_vec params, gt_vec buffers);
/* Returns the mean, owned by m, after all models are added.  Parameters or buffers that are bitwise
   equal in all regions are copied without rounding. */
gt_vec gt_model_mean_finish(gt_model_mean *m);
