/* Tensors in a file of the format safetensors (https://huggingface.co/docs/safetensors): the length
   of the header in 8 bytes, the header in JSON with the position of every tensor, then the tensors,
   row-major and little-endian.  Local. */
#pragma once

#include "geotrain/base.h"

/* Types of elements.  Files can hold others; tensors of those cannot be read. */
typedef enum {
  GT_SAFETENSOR_F32,
  GT_SAFETENSOR_F16,
  GT_SAFETENSOR_BF16,
  GT_SAFETENSOR_I64,
  GT_SAFETENSOR_OTHER
} gt_safetensor_type;

/* A tensor.  data: its elements, to write; borrowed. */
typedef struct {
  char name[96];
  gt_safetensor_type type;
  int ndims; /* 0: a scalar; above 4: shape is not filled */
  size_t shape[4];
  const void *data;
  size_t at; /* offset in the file */
} gt_safetensor;

/* An entry of a file's metadata. */
typedef struct {
  const char *key, *value;
} gt_safetensor_note;

/* Writes a file atomically: a reader sees either the whole file or the previous one.  Tensors are
   stored in the given order; those with elements of 8 bytes must come first, so that all are
   aligned.  GT_ERR_DATA with the path and the system's reason; nothing of the new file remains in
   that case. */
gt_status gt_safetensors_write(const char *path, const gt_safetensor *tensors, size_t n,
                               const gt_safetensor_note *notes, size_t nnotes);

/* Returns true if a file begins like a safetensors file: the length of its header, the header. */
bool gt_is_safetensors(const char *path);

/* An open file with its tensors, in the order of their names. */
typedef struct {
  char path[1024];
  gt_safetensor *tensors;
  size_t n;
  void *file;
} gt_safetensors;

/* Opens a file and checks its header against its size.  The caller closes *out, also after an
   error.  GT_ERR_CKPT: it cannot be read, or is not valid. */
gt_status gt_safetensors_open(gt_safetensors *out, const char *path);
void gt_safetensors_close(gt_safetensors *file);
/* Returns the tensor of this name, or NULL. */
const gt_safetensor *gt_safetensors_find(const gt_safetensors *file, const char *name);
/* Reads all elements as float32.  GT_ERR_CKPT: they have another type, or cannot be read. */
gt_status gt_safetensors_read(const gt_safetensors *file, const gt_safetensor *tensor, float *out);
