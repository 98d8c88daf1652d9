/* scratch: a folder for one test program, and small files in it. */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tests.h"
#include "geotrain/data.h"

/* Returns the path DIR/name, in one of 64 rotating buffers; the folder is created on the first
   call. */
static inline const char *scratch(const char *name) {
  static char folder[] = "/tmp/geotrain-test-XXXXXX", path[64][512];
  static int next;
  static bool made;
  if (!made) assert_non_null(mkdtemp(folder));
  made = true;
  next = (next + 1) % 64;
  snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
  return path[next];
}

/* Returns the number of entries in the folder. */
static inline int scratch_entries(void) {
  DIR *dir = opendir(scratch("."));
  int n = -2;
  assert_non_null(dir);
  while (readdir(dir)) n++;
  closedir(dir);
  return n;
}

static inline int scratch_remove(void **state) {
  (void)state;
  char command[600];
  snprintf(command, sizeof command, "rm -r '%s'", scratch(""));
  return system(command);
}

static inline void scratch_write(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

static inline void scratch_gzip(const char *path, const void *data, size_t size) {
  gzFile f = gzopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(gzwrite(f, data, (unsigned)size), size);
  assert_int_equal(gzclose(f), Z_OK);
}

/* Reads the whole file; the caller frees it with gt_free. */
static inline uint8_t *scratch_read(const char *path, size_t *size) {
  struct stat st;
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  assert_int_equal(fstat(fileno(f), &st), 0);
  *size = (size_t)st.st_size;
  uint8_t *data = gt_alloc(*size, 1);
  assert_int_equal(fread(data, 1, *size, f), *size);
  fclose(f);
  return data;
}

/* Asserts that the call failed with `status` and a sentence that contains `text`. */
static inline void assert_failed(gt_status found, gt_status needed, const char *text) {
  if (found != needed || !strstr(gt_error_text(), text))
    fail_msg("status %d (needed %d): %s\n  lacks: %s", found, needed, gt_error_text(), text);
}

/* Imports one file or folder, with the format's defaults. */
static inline gt_status import_from(const char *format, const char *source, const char *out) {
  return gt_data_import(format, &source, 1, out, &(gt_import_options){0}, NULL);
}
