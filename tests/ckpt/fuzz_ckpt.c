/* Whatever stands in a checkpoint file: GT_ERR_CKPT with a sentence, or a state; nothing crashes and nothing leaks. */
#include "geotrain/ckpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t alive = gt_alloc_alive();
  int file = memfd_create("region.h5", 0);
  char path[64];
  if (file < 0 || (size > 0 && write(file, data, size) != (ssize_t)size)) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  gt_ckpt_info info = {0};
  gt_state state = {0};
  gt_status status = gt_ckpt_read(path, &info, &state);
  close(file);
  if (status != GT_OK && (status != GT_ERR_CKPT || gt_error_text()[0] == '\0')) abort();
  if (status == GT_OK) {
    gt_state_close(&state);
    gt_ckpt_info_close(&info);
  }
  if (gt_alloc_alive() != alive) abort();
  return 0;
}
