/* Writes safetensors files (https://huggingface.co/docs/safetensors), a common format for the
   weights of PyTorch models. */
#ifndef GEOTRAIN_CLI_SAFETENSORS_H
#define GEOTRAIN_CLI_SAFETENSORS_H

#include <stdbool.h>

#include "geotrain/tensor.h"

typedef enum { GT_SAFETENSOR_F32, GT_SAFETENSOR_I64 } gt_safetensor_type;

/* One tensor, row-major; data borrowed. */
typedef struct {
  char name[96];
  gt_safetensor_type type;
  int ndims; /* 0: a scalar */
  size_t shape[GT_MAX_DIMS];
  const void *data;
} gt_safetensor;

/* An entry of the file's metadata. */
typedef struct {
  const char *key, *value;
} gt_safetensor_note;

/* Writes the file atomically: a reader sees either the whole file or the previous one.  Tensors are
   stored in the given order; those with elements of 8 bytes must come first, so that all are
   aligned.  GT_ERR_DATA with the path and the system's reason; nothing of the new file remains in
   that case. */
gt_status gt_safetensors_write(const char *path, const gt_safetensor *tensors, size_t n,
                               const gt_safetensor_note *notes, size_t nnotes);

/* True if a file begins like a safetensors file: the length of its header, then the header. */
bool gt_safetensors_is(const char *path);

#endif
