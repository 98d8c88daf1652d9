/* Whatever stands in an idx file, plain or gzip: GT_ERR_DATA with a sentence, or a data set; nothing crashes and nothing leaks.
   The first bytes of the input choose which of the four files it replaces. */
#include "geotrain/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
/* Four images of 2 x 2 and their labels. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 3};

static char folder[64], out[96];

static void put(size_t which, const uint8_t *data, size_t size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, files[which]);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

static void clean_up(void) {
  char path[256];
  for (size_t i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    unlink(path);
  }
  rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  if (!folder[0]) {
    snprintf(folder, sizeof folder, "/dev/shm/geotrain-fuzz-%d", (int)getpid());
    snprintf(out, sizeof out, "%s/out.h5", folder);
    if (mkdir(folder, 0700) != 0 || atexit(clean_up) != 0) abort();
  }
  size_t which = data[0] % 4;
  for (size_t i = 0; i < 4; i++) put(i, i % 2 ? labels : images, i % 2 ? sizeof labels : sizeof images);
  put(which, data + 1, size - 1);
  int64_t alive = gt_alloc_alive();
  gt_status status = gt_data_import("mnist", folder, out);
  if (status != GT_OK && (status != GT_ERR_DATA || gt_error_text()[0] == '\0')) abort();
  if (status == GT_OK) {
    gt_dataset *dataset = NULL;
    if (gt_dataset_open(&dataset, out) != GT_OK) abort();
    gt_dataset_close(dataset);
    unlink(out);
  }
  if (gt_alloc_alive() != alive) abort();
  return 0;
}
