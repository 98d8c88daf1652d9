/* A region's record in JSON Lines.  Each line is one write(2), so that complete lines survive a
   kill. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

json_t *gt_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

double gt_json_number_of(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

json_t *gt_json_text(const char *text) {
  if (!text) return json_null();
  json_t *json = json_string(text);
  if (json) return json;
  char *plain = gt_strdup(text);
  for (char *c = plain; *c; c++)
    if ((unsigned char)*c >= 0x80) *c = '?';
  json = json_string(plain);
  gt_free(plain);
  return json;
}

struct gt_record {
  int fd;
  char *path;
};

static gt_status refused(const char *path, const char *what) {
  return GT_FAIL(GT_ERR_CKPT, "%s: the record could not be %s: %s", path, what, strerror(errno));
}

/* Removes an incomplete last line, which a kill leaves. */
static gt_status cut_torn_line(int fd, const char *path) {
  struct stat at;
  if (fstat(fd, &at) != 0) return refused(path, "examined");
  for (off_t end = at.st_size; end > 0;) {
    char block[4096];
    size_t want = end < (off_t)sizeof block ? (size_t)end : sizeof block;
    ssize_t n = pread(fd, block, want, end - (off_t)want);
    if (n != (ssize_t)want) return refused(path, "read back");
    const char *newline = memrchr(block, '\n', want);
    end -= (off_t)want;
    if (!newline && end > 0) continue;
    off_t keep = newline ? end + (newline - block) + 1 : 0;
    if (keep != at.st_size && ftruncate(fd, keep) != 0)
      return refused(path, "cut to its last whole line");
    return GT_OK;
  }
  return GT_OK;
}

gt_status gt_record_open(gt_record **out, const char *run_dir, const char *region, bool append) {
  char path[PATH_MAX];
  *out = NULL;
  int length = snprintf(path, sizeof path, "%s/%s.jsonl", run_dir, region);
  if (length < 0 || (size_t)length >= sizeof path)
    return GT_FAIL(GT_ERR_FAULT, "%s: the path is longer than %d bytes", run_dir, PATH_MAX - 1);
  int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  if (fd < 0) return refused(path, "opened");
  gt_status status = append ? cut_torn_line(fd, path) : GT_OK;
  if (status != GT_OK) {
    close(fd);
    return status;
  }
  *out = GT_NEW(gt_record);
  (*out)->fd = fd;
  (*out)->path = gt_strdup(path);
  return GT_OK;
}

void gt_record_close(gt_record *record) {
  if (!record) return;
  close(record->fd);
  gt_free(record->path);
  gt_free(record);
}

/* Adds the fields in the arguments.  Returns the name of an invalid field, or NULL. */
static const char *add_fields(json_t *line, va_list args) {
  for (const char *name; (name = va_arg(args, const char *));) {
    json_t *value = NULL;
    switch (va_arg(args, int)) {
    case 'i':
      value = json_integer(va_arg(args, int64_t));
      break;
    case 'f':
      value = gt_json_number(va_arg(args, double));
      break;
    case 's':
      value = gt_json_text(va_arg(args, const char *));
      break;
    case 'b':
      value = json_boolean(va_arg(args, int));
      break;
    case 'j':
      value = json_loads(va_arg(args, const char *), JSON_DECODE_ANY, NULL);
      break;
    default:
      return name;
    }
    if (json_object_set_new(line, name, value) != 0) return name;
  }
  return NULL;
}

/* Writes a line, and removes it if only a part was written, so that the next one starts on a new
   line. */
static gt_status write_line(gt_record *record, const char *text, size_t size) {
  off_t before = lseek(record->fd, 0, SEEK_END);
  ssize_t n;
  do n = write(record->fd, text, size);
  while (n < 0 && errno == EINTR);
  if (n == (ssize_t)size) return GT_OK;
  if (n >= 0) errno = ENOSPC;
  gt_status status = refused(record->path, "written");
  if (n > 0 && before >= 0 && ftruncate(record->fd, before) != 0)
    return refused(record->path, "cut to its last whole line");
  return status;
}

gt_status gt_record_line(gt_record *record, double t_s, const char *event, ...) {
  json_t *line = json_object();
  json_object_set_new(line, "t", gt_json_number(t_s));
  json_object_set_new(line, "event", gt_json_text(event));
  va_list args;
  va_start(args, event);
  const char *fault = add_fields(line, args);
  va_end(args);
  char *text = fault ? NULL : json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(10));
  json_decref(line);
  if (!text)
    return GT_FAIL(GT_ERR_FAULT, "%s: event '%s', field '%s' is not a value that JSON has",
                   record->path, event, fault ? fault : "t");
  size_t size = strlen(text);
  char *whole = gt_alloc(size + 1, 1);
  memcpy(whole, text, size);
  whole[size] = '\n';
  free(text);
  gt_status status = write_line(record, whole, size + 1);
  gt_free(whole);
  return status;
}
