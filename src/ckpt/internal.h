/* The internal interface of ckpt: the image in memory, the file on disk, names of rounds. */
#pragma once

#include <limits.h>

#include "geotrain/ckpt.h"

/* The user block in front of the HDF5 image: one line of text, then NULs. */
#define CKPT_BLOCK 512

/* A whole checkpoint file in memory, including the user block. */
typedef struct {
  unsigned char *bytes; /* from gt_alloc, `size` bytes; the first CKPT_BLOCK are the user block */
  size_t size;
} gt_ckpt_file;

/* ---- image.c: HDF5, in the caller's thread only ---- */

/* Builds the image behind an empty user block; the caller frees file->bytes.  GT_ERR_CKPT names the
   item that HDF5 rejected. */
gt_status gt_ckpt_image_encode(gt_ckpt_file *file, const gt_ckpt_info *info, const gt_state *state);
/* Silences HDF5's own messages; returns the state for gt_ckpt_speak, which restores them. */
typedef struct {
  int (*print)(int64_t stack, void *data);
  void *data;
} gt_ckpt_silence;
gt_ckpt_silence gt_ckpt_be_silent(void);
void gt_ckpt_speak(gt_ckpt_silence before);
/* Copies n floats between memory and an open dataset (an hid_t), from `at` on; false: HDF5
   failed. */
bool gt_ckpt_move(int64_t set, size_t at, void *data, size_t n, bool reads);

/* ---- unpack.c ---- */
/* Reads the image of a file whose seal is valid; `path` is for messages.  On failure *info and
   *state are empty. */
gt_status gt_ckpt_image_decode(const gt_ckpt_file *file, const char *path, gt_ckpt_info *info,
                               gt_state *state);

#define CKPT_PARAMS  "model/params"
#define CKPT_BUFFERS "model/buffers"
/* The dataset with the text of the resolved job, which can exceed the size limit of an HDF5
   attribute. */
#define CKPT_JOB_DATASET "job.yaml"
#define CKPT_SCHEMA      1

/* The fields of gt_ckpt_info that are attributes of the root. */
typedef enum { CKPT_TEXT, CKPT_I64, CKPT_F64 } gt_ckpt_kind;
typedef struct {
  const char *name;
  gt_ckpt_kind kind;
  bool later;           /* added after the first version of the format: 0 if absent */
  size_t offset, count; /* offset of the member; count: bytes of a text, elements of numbers */
} gt_ckpt_field;
extern const gt_ckpt_field gt_ckpt_fields[];
extern const size_t gt_ckpt_nfields;

/* ---- file.c: POSIX only, any thread ---- */

/* Writes the user block into file->bytes. */
void gt_ckpt_seal(gt_ckpt_file *file);
/* The round of a file in the run directory itself, which belongs to no round. */
#define CKPT_NO_ROUND ((int64_t)-1)
/* Makes the file durable as RUN_DIR/ckpt/<round>/<name>.h5; for CKPT_NO_ROUND as RUN_DIR/<name>.h5.
   On failure no partial file remains, and an older file of that name is unchanged. */
gt_status gt_ckpt_file_write(const gt_ckpt_file *file, const char *run_dir, int64_t round,
                             const char *name);
/* Seals a file on disk with an empty user block, makes it durable and renames it to `final`.  On
   failure `temporary` remains. */
gt_status gt_ckpt_file_finish(const char *temporary, const char *final);
/* Reads a file and checks its seal; the caller frees file->bytes, which is NULL on failure. */
gt_status gt_ckpt_file_read(gt_ckpt_file *file, const char *path);
/* Checks the seal of a file that is too large for memory. */
gt_status gt_ckpt_file_check(const char *path);
