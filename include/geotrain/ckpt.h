/* ckpt: writes named state to HDF5 files and reads it back; rounds on disk.  Layer 4.  Local; no
   MPI.  A round is DIR/ckpt/<round>/<region>.h5.  The HDF5 image is built in memory behind a
   512-byte user block with its SHA-256.  The file is written under a temporary name, fsynced and
   renamed, and the directory is fsynced.  The final model of a run has the same format:
   DIR/final.h5. */
#pragma once

#include "geotrain/base.h"

/* Attributes stored with the state, for readers. */
typedef struct {
  char job_name[64], region[64], model[64], model_hash[65];
  char *job_yaml; /* the resolved job; borrowed for writing, owned (gt_free) after reading */
  int64_t round, step, samples;
  double elapsed_s;
  int64_t shape[4];       /* h, w, c, classes */
  int64_t features;       /* samples are ids below this number; 0: images */
  char run_id[GT_RUN_ID]; /* the same in all files of a run; empty: unknown */
  char kernels[320];      /* kernels used for the computation; empty: unknown */
  int64_t doubtful;       /* 1: all recent gradients of these parameters were non-finite */
  /* For a final model only: the number of regions in the mean, and the SHA-256 of its
     parameters. */
  int64_t mean_of; /* 0: a checkpoint */
  char params_sha256[65];
} gt_ckpt_info;

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct gt_ckpt_writer gt_ckpt_writer;

/* Creates a writer of RUN_DIR/ckpt/<round>/<region>.h5, which has its own thread and writes one
   file at a time. */
gt_status gt_ckpt_writer_create(gt_ckpt_writer **out, const char *run_dir, const char *region);
/* Waits for a pending write, then frees the writer. */
void gt_ckpt_writer_close(gt_ckpt_writer *writer);
/* Copies the state into an image before it returns; then the thread makes it durable.  GT_ERR_FAULT
   if a write is pending. */
gt_status gt_ckpt_write(gt_ckpt_writer *writer, const gt_ckpt_info *info, const gt_state *state);
typedef enum { GT_CKPT_IDLE, GT_CKPT_BUSY, GT_CKPT_DONE } gt_ckpt_progress;
/* Returns BUSY, then DONE once after each write, then IDLE.  DONE stores the result in *result:
   GT_ERR_CKPT with the path and the system's reason; the text is copied to gt_error_text. */
gt_ckpt_progress gt_ckpt_poll(gt_ckpt_writer *writer, gt_status *result);
/* Removes this region's files of rounds below `oldest_kept`, but not of the round `spared`, and
   round folders that become empty. */
void gt_ckpt_prune(gt_ckpt_writer *writer, int64_t oldest_kept, int64_t spared);

/* ---- the final model ------------------------------------------------------------------------- */

/* Writes "RUN_DIR/final.h5" to buf, or "RUN_DIR/final-<region>.h5" if each region has its own
   model.  region: NULL if all share one model. */
char *gt_ckpt_final_model_path(char *buf, size_t size, const char *run_dir, const char *region);
/* Copies the state into an image before it returns; then a thread of *out makes it durable at
   gt_ckpt_final_model_path and replaces an existing file atomically.  gt_ckpt_poll on *out reports
   the end; the caller closes it.  Rounds can be written at the same time.  On failure *out is
   NULL. */
gt_status gt_ckpt_write_final_model(gt_ckpt_writer **out, const char *run_dir, const char *region,
                                    const gt_ckpt_info *info, const gt_state *state);
/* The final model, written in parts, so that no process needs memory for all of it.  It is renamed
   to its final name when finished.  All work is done in the caller's thread. */
typedef struct gt_ckpt_parts gt_ckpt_parts;
/* Creates RUN_DIR/final.h5 for a model of this size, in floats.  GT_ERR_CKPT names the file; *out
   is then NULL. */
gt_status gt_ckpt_parts_open(gt_ckpt_parts **out, const char *run_dir, size_t nparams,
                             size_t nbuffers);
/* Writes n floats of the parameters (or `buffers`) from `at` on. */
gt_status gt_ckpt_parts_put(gt_ckpt_parts *parts, bool buffers, size_t at, const float *data,
                            size_t n);
/* Reads n floats already written back into `data`.  Errors as gt_ckpt_parts_put. */
gt_status gt_ckpt_parts_get(gt_ckpt_parts *parts, bool buffers, size_t at, float *data, size_t n);
/* Adds the remaining state, seals the file and makes it durable.  Writes info->params_sha256: the
   hash of the parameters, read back in order. */
gt_status gt_ckpt_parts_finish(gt_ckpt_parts *parts, gt_ckpt_info *info, const gt_state *rest);
/* Frees the parts and removes an unfinished file.  NULL is allowed. */
void gt_ckpt_parts_close(gt_ckpt_parts *parts);
/* Removes RUN_DIR/final.h5 (region NULL) or the region's file, and temporary files of a killed
   run. */
void gt_ckpt_remove_final_model(const char *run_dir, const char *region);
/* Lists the model files in a run directory, final ones first, then those of rounds, newest first:
   "final-a.h5, ckpt/7/a.h5, ckpt/7/b.h5 and 12 more", or "nothing". */
char *gt_ckpt_list(char *buf, size_t size, const char *run_dir);

/* ---- the lock of a run directory ------------------------------------------------------------- */

/* Takes RUN_DIR/<region>.lock for this process.  GT_ERR_JOB names the process that holds the lock.
   A thread increments a counter in the file until gt_ckpt_lock_release, which removes the file.
   The lock of a killed run is taken over: at once if the run was on the same host, or in the same
   requeued Slurm job; else after this call has waited 20 s without a change of the counter. */
typedef struct gt_ckpt_lock gt_ckpt_lock;
gt_status gt_ckpt_lock_take(gt_ckpt_lock **out, const char *run_dir, const char *region);
/* True if another process has taken over the lock, for example while this process was suspended. */
bool gt_ckpt_lock_lost(gt_ckpt_lock *lock);
void gt_ckpt_lock_release(gt_ckpt_lock *lock); /* NULL is allowed */

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads and checks a file: user block, size, SHA-256, then HDF5.  Fills *state (owned, close with
   gt_state_close) and *info.  GT_ERR_CKPT names the file and the values found and expected ("its
   SHA-256 is ..., the file says ...", "it ends after 1200 of 8000 bytes"). */
gt_status gt_ckpt_read(const char *path, gt_ckpt_info *info, gt_state *state);
/* Reads the region's file of a round as gt_ckpt_read does, RUN_DIR/ckpt/<round>/<region>.h5.
   GT_ERR_CKPT also if it is the file of another round or region. */
gt_status gt_ckpt_read_round(const char *run_dir, int64_t round, const char *region,
                             gt_ckpt_info *info, gt_state *state);
void gt_ckpt_info_close(gt_ckpt_info *info);
/* A file whose model is read range by range, so that no process needs memory for all of it. */
typedef struct gt_ckpt_source gt_ckpt_source;
/* Checks the file as gt_ckpt_read does; *state has all items except model/params and model/buffers.
   The caller closes *out; after an error all three are empty.  Errors as gt_ckpt_read. */
gt_status gt_ckpt_source_open(gt_ckpt_source **out, const char *path, gt_ckpt_info *info,
                              gt_state *state);
/* Closes the source.  NULL is allowed. */
void gt_ckpt_source_close(gt_ckpt_source *source);
/* Returns the number of floats in the model's parameters (or `buffers`). */
size_t gt_ckpt_source_floats(const gt_ckpt_source *source, bool buffers);
/* Reads n floats from `at` on.  GT_ERR_CKPT: the file has fewer, or HDF5 cannot read them. */
gt_status gt_ckpt_source_get(const gt_ckpt_source *source, bool buffers, size_t at, float *data,
                             size_t n);
/* Lists the rounds (ascending) for which RUN_DIR has a file of this region, valid or not, at most
   max; returns their number. */
size_t gt_ckpt_rounds(const char *run_dir, const char *region, int64_t *rounds, size_t max);
/* Records permanently, by the file RUN_DIR/ckpt/<region>.whole, that a round was complete in every
   region.  GT_ERR_CKPT names the file and the system's reason. */
gt_status gt_ckpt_mark_whole(const char *run_dir, const char *region);
bool gt_ckpt_was_whole(const char *run_dir, const char *region);
/* Writes "RUN_DIR/ckpt/<round>/<region>.h5" to buf. */
char *gt_ckpt_path(char *buf, size_t size, const char *run_dir, int64_t round, const char *region);
