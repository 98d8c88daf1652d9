/* Any bytes as a checkpoint file give GT_ERR_CKPT with a sentence, or the written state, without
   crashes or leaks.  HDF5 itself is not fuzzed: the seal, which is tested here, protects it from
   damaged images.  The first byte selects the input: a file of the remaining bytes, or a valid
   checkpoint with edits (offset, offset, value) and a cut or a tail. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Built once and kept in memory outside gt_alloc, so that counts of allocations do not change. */
static const uint8_t *sound(size_t *size) {
  static uint8_t *bytes;
  static size_t nbytes;
  if (!bytes) {
    float weights[3] = {1, 2, 3};
    gt_state state = {0};
    gt_state_add(&state, "optim/", "w", GT_TYPE_F32, weights, 3);
    gt_ckpt_info info = {
        .job_name = "job", .region = "a", .model = "lenet5", .round = 1, .step = 10};
    gt_ckpt_file file = {0};
    if (gt_ckpt_image_encode(&file, &info, &state) != GT_OK) abort();
    gt_ckpt_seal(&file);
    nbytes = file.size;
    bytes = malloc(nbytes);
    if (!bytes) abort();
    memcpy(bytes, file.bytes, nbytes);
    gt_free(file.bytes);
    gt_state_close(&state);
  }
  *size = nbytes;
  return bytes;
}

/* Makes the file for an input; *whole: the image is unchanged. */
static uint8_t *make_file(const uint8_t *data, size_t size, size_t *nbytes, bool *whole) {
  size_t n, at = 3;
  const uint8_t *good = sound(&n);
  if (size < 3 || data[0] % 2 == 0) {
    *nbytes = size > 0 ? size - 1 : 0;
    *whole = false;
    uint8_t *raw = gt_alloc(size + 1, 1);
    if (*nbytes) memcpy(raw, data + 1, *nbytes);
    return raw;
  }
  uint8_t *file = gt_alloc(n + 256, 1);
  memcpy(file, good, n);
  for (; at + 3 <= size; at += 3) file[((size_t)data[at] << 8 | data[at + 1]) % n] ^= data[at + 2];
  size_t cut = (size_t)data[1] * (n / 256);
  *nbytes = data[2] % 2 ? n - cut : n + data[1];
  *whole = *nbytes == n && memcmp(file + CKPT_BLOCK, good + CKPT_BLOCK, n - CKPT_BLOCK) == 0;
  return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t nbytes;
  bool whole;
  uint8_t *bytes = make_file(data, size, &nbytes, &whole);
  int64_t alive = gt_alloc_alive();
  int file = memfd_create("region.h5", 0);
  char path[64];
  if (file < 0 || (nbytes > 0 && write(file, bytes, nbytes) != (ssize_t)nbytes)) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  gt_ckpt_info info = {0};
  gt_state state = {0};
  gt_status status = gt_ckpt_read(path, &info, &state);
  close(file);
  if (status != GT_OK && (status != GT_ERR_CKPT || gt_error_text()[0] == '\0')) abort();
  if (status == GT_OK) {
    if (!whole || !gt_state_find(&state, "optim/", "w")) abort();
    gt_state_close(&state);
    gt_ckpt_info_close(&info);
  }
  if (gt_alloc_alive() != alive) abort();
  gt_free(bytes);
  return 0;
}
