/* Reads the job file and the files that it names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define FILE_MAX ((size_t)128 << 20)

static gt_status too_long(const char *path, const char *needed) {
  return GT_FAIL(GT_ERR_JOB, "%s: is longer than %zu MiB; expected %s", path, FILE_MAX >> 20,
                 needed);
}

/* Reads to the end, with one extra byte for the NUL. */
static gt_status read_all(FILE *file, const char *path, const char *needed, char **text,
                          size_t *size) {
  size_t capacity = (size_t)1 << 16, n = 0;
  char *buffer = gt_alloc(capacity + 1, 1);
  errno = 0;
  for (size_t got; (got = fread(buffer + n, 1, capacity - n, file)) > 0 && n + got <= FILE_MAX;) {
    n += got;
    if (n < capacity) continue;
    char *larger = gt_alloc(2 * capacity + 1, 1);
    memcpy(larger, buffer, n);
    gt_free(buffer);
    buffer = larger;
    capacity *= 2;
  }
  int error = ferror(file) ? errno : 0;
  if (!error && feof(file)) {
    *text = buffer;
    *size = n;
    return GT_OK;
  }
  gt_free(buffer);
  if (error) return GT_FAIL(GT_ERR_JOB, "%s: cannot be read: %s", path, strerror(error));
  return too_long(path, needed);
}

gt_status gt_job_read_file(const char *path, const char *needed, char **text, size_t *size) {
  struct stat about;
  FILE *file = fopen(path, "rb");
  if (!file) return GT_FAIL(GT_ERR_JOB, "%s: cannot be opened: %s", path, strerror(errno));
  bool large = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) &&
               (uint64_t)about.st_size > FILE_MAX;
  gt_status status = large ? too_long(path, needed) : read_all(file, path, needed, text, size);
  fclose(file);
  return status;
}

static bool is_file(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

gt_status gt_job_find_file(char *buf, size_t size, const char *source, const char *key,
                           const char *name) {
  const char *slash = strrchr(source, '/');
  snprintf(buf, size, "%s", name);
  if (is_file(buf)) return GT_OK;
  if (name[0] == '/' || !slash)
    return GT_FAIL(GT_ERR_JOB, "%s: %s is \"%.200s\": no such file", source, key, name);
  snprintf(buf, size, "%.*s%s", (int)(slash - source + 1), source, name);
  if (is_file(buf)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: %s is \"%.200s\": no such file here or in the job's folder %.*s",
                 source, key, name, (int)(slash - source), source);
}
