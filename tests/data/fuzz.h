/* fuzz: a folder for a fuzzer of an importer, and the checks for any file contents. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "geotrain/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char fuzz_folder[64];

static inline void fuzz_remove(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -r '%s'", fuzz_folder);
  if (system(command) != 0) abort();
}

/* Writes a file into the folder, which is created on the first call. */
static inline void fuzz_put(const char *name, const void *data, size_t size) {
  char path[256];
  if (!fuzz_folder[0]) {
    snprintf(fuzz_folder, sizeof fuzz_folder, "/dev/shm/geotrain-fuzz-%d", (int)getpid());
    if (mkdir(fuzz_folder, 0700) != 0 || atexit(fuzz_remove) != 0) abort();
  }
  snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

static inline void fuzz_take(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
  unlink(path);
}

/* Checks that an import gives either GT_ERR_DATA with a sentence or a data set that can be opened,
   without leaks.  options: NULL: for a format without options. */
static inline void fuzz_import_as(const char *format, const char *source,
                                  const gt_import_options *options) {
  static const gt_import_options none;
  char out[96];
  snprintf(out, sizeof out, "%s/out.h5", fuzz_folder);
  int64_t alive = gt_alloc_alive();
  gt_status status = gt_data_import(format, &source, 1, out, options ? options : &none, NULL);
  if (status != GT_OK && (status != GT_ERR_DATA || gt_error_text()[0] == '\0')) abort();
  if (status == GT_OK) {
    gt_dataset *dataset = NULL;
    if (gt_dataset_open(&dataset, out) != GT_OK) abort();
    gt_dataset_close(dataset);
    unlink(out);
  } else if (access(out, F_OK) == 0)
    abort();
  if (gt_alloc_alive() != alive) abort();
}

static inline void fuzz_import(const char *format) {
  fuzz_import_as(format, fuzz_folder, NULL);
}
