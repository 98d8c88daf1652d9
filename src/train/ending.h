/* Private to train: the end of a run, and its results: the mean of the models, the final model, the
   summary. */
#ifndef GEOTRAIN_TRAIN_ENDING_H
#define GEOTRAIN_TRAIN_ENDING_H

#include "internal.h"

/* ending.c: a server's implementation of gt_ending, from COMPLETE on: own score, models and results
   to the lead, mean, summary. */
gt_server_ending *gt_server_ending_open(gt_server *s);
/* NULL is allowed. */
void gt_server_ending_close(gt_server_ending *e);
/* Handles a MODEL, REPORT or BYE; payload borrowed for the call. */
void gt_server_ending_message(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                              const void *payload);
void gt_server_ending_departed(gt_server_ending *e, uint64_t cookie);
/* True while the final model is being written. */
bool gt_server_ending_writes(const gt_server_ending *e);
/* Writes to text[size] what this region, which is COMPLETE, waits for from another. */
void gt_server_ending_waits_for(const gt_server_ending *e, char *text, size_t size);
/* Advances as far as possible; true when the run is over.  *code is then GT_OK, or GT_ERR_LIMIT
   with a text if a region's final model or its loss is non-finite. */
bool gt_server_ending_step(gt_server_ending *e, gt_ns now, gt_status *code);

/* mean.c: the mean of the regions' models, parameters then buffers, in region order. */
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

/* stage_model.c: the final model of a pipeline, which no rank holds as a whole.  All functions
   panic (GT_ERR_CKPT) if the file cannot be written. */
typedef struct gt_stage_model gt_stage_model;
/* On the lead. */
gt_stage_model *gt_stage_model_open(const gt_server *s);
void gt_stage_model_close(gt_stage_model *m); /* NULL is allowed */
/* Write the part of this region, or a piece of another one, which must be the next (else panic);
   true if it was the last. */
void gt_stage_model_own(gt_stage_model *m);
bool gt_stage_model_take(gt_stage_model *m, size_t peer, const gt_frame_header *head,
                         const void *payload);
/* Returns the first region whose part is non-finite; the number of regions: none. */
size_t gt_stage_model_bad(const gt_stage_model *m);
/* Makes the file durable after all parts are written; of: steps and samples of the run. */
void gt_stage_model_finish(gt_stage_model *m, const gt_region_result *of,
                           char params_sha256[GT_SHA256_HEX]);
/* Sends this region's part to the lead; the cookie is that of the last piece. */
void gt_stage_model_send(gt_server *s, uint64_t cookie);

/* summary.c: the results of all regions, gathered by the lead; everything is borrowed. */
typedef struct {
  gt_region_result *regions; /* nregions */
  gt_link_result *links;
  size_t nlinks;
  gt_ps_score score; /* of the mean; NaN: none */
  const char *params_sha256;
} gt_gathered;

/* Writes summary.json and prints the table.  GT_ERR_CKPT: the file cannot be written. */
gt_status gt_server_summarise(gt_server *s, const gt_gathered *g);

#endif
