/* ckpt: named state to and from HDF5, rounds on disk.  Layer 4.  Local; no MPI.
   A round is DIR/ckpt/<round>/<region>.h5.  The HDF5 image is built in memory, a 512-byte user block with its SHA-256 goes in front, and the whole is written to
   a temporary name, fsynced, renamed, and the directory fsynced.
   The model that a run ends with is a file of the same form, DIR/final.h5. */
#ifndef GEOTRAIN_CKPT_H
#define GEOTRAIN_CKPT_H

#include "geotrain/base.h"

/* Text attributes that go with the state: what a reader must know to use it. */
typedef struct {
  char job_name[64], region[64], model[64], model_hash[65];
  char *job_yaml; /* the resolved job; borrowed for writing, owned (gt_free) after reading */
  int64_t round, step, samples;
  double elapsed_s;
  int64_t shape[4];  /* h, w, c, classes */
  int64_t features;  /* samples are ids below it; 0: images */
  char kernels[320]; /* what computed; empty: not said */
  int64_t doubtful;  /* 1: the last gradients of these parameters all were not finite */
  /* Of a final model alone: of how many regions it is the mean, and the SHA-256 of its
     parameters. */
  int64_t mean_of; /* 0: a checkpoint */
  char params_sha256[65];
} gt_ckpt_info;

/* ---- writing ------------------------------------------------------------------------------------------------------ */

typedef struct gt_ckpt_writer gt_ckpt_writer;

/* Writes go to RUN_DIR/ckpt/<round>/<region>.h5 by a thread of its own, one at a time. */
gt_status gt_ckpt_writer_create(gt_ckpt_writer **out, const char *run_dir, const char *region);
/* Waits for a write under way, then frees. */
void gt_ckpt_writer_close(gt_ckpt_writer *writer);
/* Copies the state into an image before it returns; then the thread makes it durable.  GT_ERR_FAULT while a write is under way. */
gt_status gt_ckpt_write(gt_ckpt_writer *writer, const gt_ckpt_info *info, const gt_state *state);
typedef enum { GT_CKPT_IDLE, GT_CKPT_BUSY, GT_CKPT_DONE } gt_ckpt_progress;
/* BUSY, DONE once after each write (its result in *result: GT_ERR_CKPT with the path and the system's reason, text copied to gt_error_text), then IDLE. */
gt_ckpt_progress gt_ckpt_poll(gt_ckpt_writer *writer, gt_status *result);
/* Removes this region's files of rounds below `oldest_kept` and of none above, and the round's folder when empty. */
void gt_ckpt_prune(gt_ckpt_writer *writer, int64_t oldest_kept);

/* ---- the final model ------------------------------------------------------------------------- */

/* "RUN_DIR/final.h5" into buf; "RUN_DIR/final-<region>.h5" where each region ends with a model of
   its own.  region: NULL where there is one model of all. */
char *gt_ckpt_final_model_path(char *buf, size_t size, const char *run_dir, const char *region);
/* Copies the state into an image before it returns; then a thread of *out makes it durable under
   gt_ckpt_final_model_path, replacing what is there at once or not at all.  gt_ckpt_poll on *out says
   when; the caller closes it.  Writes of rounds go on beside it.  On failure *out is NULL. */
gt_status gt_ckpt_write_final_model(gt_ckpt_writer **out, const char *run_dir, const char *region, const gt_ckpt_info *info, const gt_state *state);
/* Removes RUN_DIR/final.h5 (region NULL) or the region's, and what a killed run left of it. */
void gt_ckpt_remove_final_model(const char *run_dir, const char *region);
/* What a run directory holds that has a model, final ones first, then files of rounds, newest
   first: "final-a.h5, ckpt/7/a.h5, ckpt/7/b.h5 and 12 more", or "nothing". */
char *gt_ckpt_list(char *buf, size_t size, const char *run_dir);

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* Reads and checks a file: user block, size, SHA-256, then HDF5.  Fills *state (owned, close with gt_state_close) and *info.  GT_ERR_CKPT names the file, what was
   found ("its SHA-256 is ..., the file says ...", "it ends after 1200 of 8000 bytes") and what is needed. */
gt_status gt_ckpt_read(const char *path, gt_ckpt_info *info, gt_state *state);
void gt_ckpt_info_close(gt_ckpt_info *info);
/* The rounds (ascending) of which RUN_DIR holds this region's file, valid or not, at most max; returns their number. */
size_t gt_ckpt_rounds(const char *run_dir, const char *region, int64_t *rounds, size_t max);
/* A round of this region was whole in every region: said once and for good, by the file RUN_DIR/ckpt/<region>.whole.  GT_ERR_CKPT names it and the system's reason. */
gt_status gt_ckpt_mark_whole(const char *run_dir, const char *region);
bool gt_ckpt_was_whole(const char *run_dir, const char *region);
/* "RUN_DIR/ckpt/<round>/<region>.h5" into buf. */
char *gt_ckpt_path(char *buf, size_t size, const char *run_dir, int64_t round, const char *region);

#endif
