/* Private to train: the end of a run, and its results: the mean of the models, the final model, the
   summary. */
#pragma once

#include "internal.h"

/* ending_group.c: the members at the end of a run. */
typedef struct {
  uint16_t epoch; /* in the header of their messages; those of other epochs are ignored */
  size_t nregions, self, lead, nmembers; /* lead: the first member */
  bool *member;                          /* nregions */
  double *weights;    /* nregions: of the members' models in the mean; others: 0 */
  gt_ps_tests *tests; /* nregions: each set is scored by the first member that has it */
} gt_ending_group;
void gt_ending_group_open(gt_ending_group *g, const gt_server *s);
void gt_ending_group_close(gt_ending_group *g);
/* Returns the score of the mean over all test sets, and notes each one's in the region's result.
   scores, regions: of every region. */
gt_ps_score gt_ending_total(const gt_ending_group *g, const gt_ps_score *scores,
                            gt_region_result *regions);
/* Returns the score of a pipeline's model from the result of the region with its last stage. */
gt_ps_score gt_ending_score_of(const gt_region_result *r);

/* ending.c: a server's implementation of gt_ending, from COMPLETE on: own score, models and results
   to the lead, mean, summary.  Of the members now; former: the ending of an earlier epoch, owned
   from here on; NULL: none. */
gt_server_ending *gt_server_ending_open(gt_server *s, gt_server_ending *former);
/* NULL is allowed. */
void gt_server_ending_close(gt_server_ending *e);
/* Handles a MODEL, REPORT or BYE, unless it is of another epoch; payload borrowed for the call. */
void gt_server_ending_message(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                              const void *payload);
void gt_server_ending_departed(gt_server_ending *e, uint64_t cookie);
/* True while the final model is being written. */
bool gt_server_ending_writes(const gt_server_ending *e);
/* True if the lead has ended the run: other regions that are MPI jobs of their own can be gone. */
bool gt_server_ending_released(const gt_server_ending *e);
/* Writes to text[size] what this region, which is COMPLETE, waits for from another. */
void gt_server_ending_waits_for(const gt_server_ending *e, char *text, size_t size);
/* Advances as far as possible; true when the run is over.  *code is then GT_OK, or GT_ERR_LIMIT
   with a text if a region's final model or its loss is non-finite. */
bool gt_server_ending_step(gt_server_ending *e, gt_ns now, gt_status *code);

/* final_model.c: a file that a thread writes.  Initialise it to zero. */
typedef struct {
  gt_ckpt_writer *writer; /* NULL: not begun */
  gt_ns since;            /* wall time */
  bool durable;
} gt_final_model;
/* Returns the largest step count of the final models of n regions, and the sum of their samples. */
gt_region_result gt_final_model_total(const gt_region_result *regions, size_t n);
/* Begins to write the model.  region: its owner; NULL: the mean of all regions.  of: its steps and
   samples.  params and buffers are copied.  Panics if writing cannot begin. */
void gt_final_model_begin(gt_final_model *f, const gt_server *s, const char *region,
                          const gt_region_result *of, gt_vec params, gt_vec buffers);
/* True if the file is durable.  Panics (GT_ERR_CKPT) if the disk fails or does not answer in
   time. */
bool gt_final_model_durable(gt_final_model *f, gt_server *s);
void gt_final_model_close(gt_final_model *f);

/* site_end.c: the lead's results in the run directory of a region that is an MPI job of its own. */
typedef struct gt_site_end gt_site_end;
/* alone: regions keep their own models.  The caller closes it. */
gt_site_end *gt_site_end_open(gt_server *s, size_t lead, bool alone);
void gt_site_end_close(gt_site_end *e); /* NULL is allowed */
/* Take what the lead sends: the whole model, which the caller keeps; or the next piece of a
   pipeline's model; or of the text of summary.json.  Panic: another piece. */
void gt_site_end_model(gt_site_end *e);
void gt_site_end_piece(gt_site_end *e, const gt_frame_header *head, const void *payload);
void gt_site_end_text(gt_site_end *e, const gt_frame_header *head, const void *payload);
/* True while the model is being written. */
bool gt_site_end_writes(const gt_site_end *e);
/* Writes the files and prints the table when all has come; true when done.  params, buffers: the
   model, without a pipeline. */
bool gt_site_end_step(gt_site_end *e, gt_vec params, gt_vec buffers);

/* stage_model.c: the final model of a pipeline, which no rank holds as a whole.  All functions
   panic (GT_ERR_CKPT) if the file cannot be written. */
typedef struct gt_stage_model gt_stage_model;
/* On the lead; and on other regions that are MPI jobs of their own, for a copy. */
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
/* Sends the next piece of the whole model to all other regions; returns the number of messages, 0
   after the last piece.  Call it again when they have left. */
size_t gt_stage_model_spread(gt_stage_model *m, uint64_t cookie);
/* Writes a piece that the lead sends, which must be the next (else panic); true if it was the
   last. */
bool gt_stage_model_copy(gt_stage_model *m, const gt_frame_header *head, const void *payload);
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

/* Writes summary.json and prints the table; *text: the contents of the file, freed by the caller.
   GT_ERR_CKPT: the file cannot be written. */
gt_status gt_server_summarise(gt_server *s, const gt_gathered *g, char **text);
