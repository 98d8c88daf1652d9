/* Reads files through zlib, which also reads plain files, and members of zip archives. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "bytes.h"
#include "import.h"
#include "zip.h"

struct gt_bytes {
  gzFile file;
  gt_zip *member; /* instead of `file`; NULL: none */
  char *path;
};

char *gt_bytes_find(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 8;
  char *path = gt_alloc(size, 1);
  for (int plain = 0; plain < 2; plain++) {
    snprintf(path, size, "%s/%s%s", folder, name, plain ? "" : ".gz");
    if (access(path, F_OK) == 0) return path;
  }
  gt_free(path);
  return NULL;
}

gt_status gt_bytes_open(gt_bytes **out, const char *path) {
  *out = NULL;
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file)
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be opened (%s)", path,
                   errno ? strerror(errno) : "out of memory");
  gzbuffer(file, 1U << 17);
  gt_bytes *b = GT_NEW(gt_bytes);
  *b = (gt_bytes){.file = file, .path = gt_strdup(path)};
  *out = b;
  return GT_OK;
}

gt_status gt_bytes_open_member(gt_bytes **out, const char *archive, const char *name) {
  const size_t size = strlen(archive) + strlen(name) + 3;
  gt_zip *member;
  *out = NULL;
  GT_TRY(gt_zip_open(&member, archive, name));
  if (!member) return GT_OK;
  *out = GT_NEW(gt_bytes);
  **out = (gt_bytes){.member = member, .path = gt_alloc(size, 1)};
  snprintf((*out)->path, size, "%s: %s", archive, name);
  return GT_OK;
}

const char *gt_bytes_path(const gt_bytes *b) {
  return b->path;
}

/* Returns zlib's message without the leading path. */
static const char *reason_of(const gt_bytes *b, int *code) {
  const char *text = gzerror(b->file, code);
  size_t n = strlen(b->path);
  if (*code == Z_ERRNO) return strerror(errno);
  return strncmp(text, b->path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

/* Sets the error text, unless the file ends too early.  Returns zlib's code. */
static int note_error(const gt_bytes *b) {
  int code;
  const char *reason = reason_of(b, &code);
  if (code != Z_BUF_ERROR) GT_FAIL(GT_ERR_DATA, "%s: cannot be read (%s)", b->path, reason);
  return code;
}

int64_t gt_bytes_read(gt_bytes *b, void *out, size_t n) {
  size_t got = 0;
  if (b->member) return gt_zip_read(b->member, out, n);
  while (got < n) {
    size_t want = n - got < (1U << 20) ? n - got : (1U << 20);
    int r = gzread(b->file, (char *)out + got, (unsigned)want);
    if (r < 0 && note_error(b) != Z_BUF_ERROR) return -1;
    if (r <= 0) break; /* also truncated gzip data */
    got += (size_t)r;
  }
  return (int64_t)got;
}

gt_status gt_bytes_whole(gt_bytes *b) {
  int code;
  if (b->member) return gt_zip_whole(b->member);
  gzerror(b->file, &code);
  if (code != Z_OK && code != Z_STREAM_END)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: its gzip data end before their check sum; expected a whole file", b->path);
  return GT_OK;
}

int gt_bytes_next(gt_bytes *b) {
  const int byte = gzgetc(b->file);
  if (byte >= 0) return byte;
  if (gt_bytes_whole(b) == GT_OK) return GT_BYTES_END;
  (void)note_error(b);
  return GT_BYTES_FAILED;
}

void gt_bytes_back(gt_bytes *b, int byte) {
  if (byte >= 0) gzungetc(byte, b->file);
}

gt_status gt_bytes_rewind(gt_bytes *b) {
  if (gzrewind(b->file) != 0)
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be read a second time (%s)", b->path, strerror(errno));
  return GT_OK;
}

void gt_bytes_close(gt_bytes *b) {
  if (!b) return;
  if (b->file) gzclose(b->file);
  gt_zip_close(b->member);
  gt_free(b->path);
  gt_free(b);
}

/* ---- the name of a folder -------------------------------------------------------------------- */

void gt_import_name(const char *folder, const char *fallback, char name[64]) {
  size_t end = strlen(folder);
  while (end > 0 && folder[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && folder[begin - 1] != '/') begin--;
  snprintf(name, 64, "%.*s", (int)(end - begin < 63 ? end - begin : 63), folder + begin);
  if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    snprintf(name, 64, "%s", fallback);
}

/* ---- a schema ---- */

gt_status gt_import_ids(const char *source, const gt_schema *schema, size_t *ids) {
  if (!schema || (schema->ids > 0 && *ids <= schema->ids)) {
    if (schema) *ids = schema->ids;
    return GT_OK;
  }
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: has ids below %zu, and the schema has %zu ids; expected a schema of all regions", source,
      *ids, schema->ids);
}

/* ---- samples held back for tests ------------------------------------------------------------- */

gt_status gt_import_keeps_tests(const char *source, const gt_import_options *options) {
  if (!options->holds_back) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "data import has --test-share or --seed, and %s has test samples of its own; "
                 "expected no such option",
                 source);
}

gt_split gt_import_split_of(const gt_import_options *options, uint64_t row) {
  gt_rng rng = gt_rng_make(options->seed, GT_RNG_HELD_BACK, 1, row);
  return gt_rng_uniform(&rng) < *options->test_share ? GT_SPLIT_TEST : GT_SPLIT_TRAIN;
}
