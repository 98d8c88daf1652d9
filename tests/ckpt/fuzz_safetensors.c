/* Any bytes as a safetensors file give GT_ERR_CKPT with a sentence, or tensors that lie in the
   file, without crashes or leaks.  The first byte of the input selects the file: the remaining
   bytes, or a right length in front of them, which are a header and, after the first '\n', the
   data. */
#include "geotrain/ckpt_safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every tensor of known elements into memory of their size in the file. */
static void read_all(const gt_safetensors *file, size_t bytes) {
  static const size_t sizes[] = {4, 2, 2, 8};
  for (size_t i = 0; i < file->n; i++) {
    const gt_safetensor *t = &file->tensors[i];
    size_t n = 1;
    if (gt_safetensors_find(file, t->name) != t || t->at > bytes) abort();
    if (t->type == GT_SAFETENSOR_OTHER || t->ndims > 4) continue;
    for (int d = 0; d < t->ndims; d++) n *= t->shape[d];
    if (n > bytes || n * sizes[t->type] > bytes - t->at) abort();
    float *values = gt_alloc(n + 1, sizeof *values);
    if (gt_safetensors_read(file, t, values) != GT_OK && t->type != GT_SAFETENSOR_I64) abort();
    gt_free(values);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  const uint8_t *rest = data + 1, *end = memchr(rest, '\n', size - 1);
  const uint64_t length = end ? (uint64_t)(end - rest) : size - 1;
  const bool framed = data[0] % 2;
  const size_t bytes = size - 1 + (framed ? sizeof length : 0);
  const int64_t alive = gt_alloc_alive();
  const int fd = memfd_create("a.safetensors", 0);
  char path[64];
  if (fd < 0 || (framed && write(fd, &length, sizeof length) != sizeof length) ||
      (size > 1 && write(fd, rest, size - 1) != (ssize_t)(size - 1)))
    abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  gt_safetensors file;
  const gt_status status = gt_safetensors_open(&file, path);
  if (status == GT_OK) read_all(&file, bytes);
  if (status != GT_OK && (status != GT_ERR_CKPT || gt_error_text()[0] == '\0')) abort();
  gt_safetensors_close(&file);
  close(fd);
  if (gt_alloc_alive() != alive) abort();
  return 0;
}
