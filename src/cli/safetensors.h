/* Writes safetensors files: https://huggingface.co/docs/safetensors, the format that PyTorch's users exchange weights in. */
#ifndef GEOTRAIN_CLI_SAFETENSORS_H
#define GEOTRAIN_CLI_SAFETENSORS_H

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

/* A line of the file's metadata. */
typedef struct {
  const char *key, *value;
} gt_safetensor_note;

/* Writes the file so that a reader sees the whole of it or what was there before.  Tensors lie in the order given: those of 8 bytes an element come first, that all be aligned.
   GT_ERR_DATA with the path and the system's reason; nothing of the file stays then. */
gt_status gt_safetensors_write(const char *path, const gt_safetensor *tensors, size_t n, const gt_safetensor_note *notes, size_t nnotes);

#endif
