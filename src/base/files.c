/* Atomic replacement of files: written under a temporary name, made durable, then renamed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "geotrain/base.h"

#define LEFTOVER_S 3600 /* a temporary file not written for this long is a leftover */

/* Returns the length of the folder part of a path; 0: the current folder. */
static int folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return !slash ? 0 : slash == path ? 1 : (int)(slash - path);
}

bool gt_temporary_is(const char *name, const char *of) {
  static const char mark[] = ".tmp-";
  const size_t length = strlen(of);
  if (name[0] != '.' || strncmp(name + 1, of, length) != 0 ||
      strncmp(name + 1 + length, mark, sizeof mark - 1) != 0)
    return false;
  const char *rest = name + length + sizeof mark;
  const size_t digits = strspn(rest, "0123456789");
  if (digits == 0 || (rest[digits] && rest[digits] != '-')) return false;
  return rest[digits + strspn(rest + digits, "-0123456789abcdef")] == '\0';
}

/* Removes temporary files that killed processes have left of the same file. */
static void remove_leftovers(const char *folder, const char *name) {
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    struct stat at;
    if (gt_temporary_is(entry->d_name, name) &&
        fstatat(dirfd(dir), entry->d_name, &at, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(at.st_mode) &&
        time(NULL) - at.st_mtime > LEFTOVER_S)
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  if (dir) closedir(dir);
}

/* The temporary file that a signal removes; it may be gone, but no other file gets its name. */
static struct {
  char path[4096];
  volatile sig_atomic_t set;
} guarded;

void gt_temporary_remove(void) {
  if (guarded.set) unlink(guarded.path);
}

static void remove_and_die(int number) {
  gt_temporary_remove();
  raise(number); /* SA_RESETHAND: the default action follows */
}

void gt_temporary_guard(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
  const struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};
  struct sigaction before;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(numbers[i], &action, NULL);
}

int gt_temporary_create(char *temporary, size_t size, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  char folder[4096];
  const int length = folder_length(path);
  snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".");
  remove_leftovers(folder, name);
  for (int attempt = 0; attempt < 100; attempt++) {
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return -1;
    const int used = snprintf(temporary, size, "%.*s%s.%s.tmp-%ld-%016" PRIx64, length, path,
                              length > 1 || (length == 1 && path[0] != '/') ? "/" : "", name,
                              (long)getpid(), random);
    if (used < 0 || (size_t)used >= size) {
      errno = ENAMETOOLONG;
      return -1;
    }
    guarded.set = false;
    if ((size_t)snprintf(guarded.path, sizeof guarded.path, "%s", temporary) < sizeof guarded.path)
      guarded.set = true;
    const int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

bool gt_write_all(int fd, const void *bytes, size_t size) {
  const char *at = bytes;
  while (size > 0) {
    const ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

bool gt_name_sync(const char *path) {
  char folder[4096];
  const int length = folder_length(path);
  snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".");
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  /* Some file systems cannot sync a folder; ignore that. */
  const bool ok = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int reason = errno;
  close(fd);
  errno = reason;
  return ok;
}

/* Writes to a device or pipe, which cannot be replaced. */
static bool write_into(const char *path, const void *bytes, size_t size) {
  const int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = gt_write_all(fd, bytes, size);
  const int reason = errno;
  close(fd);
  errno = reason;
  return ok;
}

bool gt_file_replace(const char *path, const void *bytes, size_t size) {
  char temporary[4096], target[PATH_MAX];
  struct stat at;
  if (stat(path, &at) == 0 && !S_ISREG(at.st_mode) && !S_ISDIR(at.st_mode))
    return write_into(path, bytes, size);
  if (lstat(path, &at) == 0 && S_ISLNK(at.st_mode) && realpath(path, target)) path = target;
  const int fd = gt_temporary_create(temporary, sizeof temporary, path);
  if (fd < 0) return false;
  bool ok = gt_write_all(fd, bytes, size) && fsync(fd) == 0;
  int reason = errno;
  if (close(fd) != 0 && ok) ok = false, reason = errno;
  if (ok && rename(temporary, path) != 0) ok = false, reason = errno;
  if (!ok) {
    unlink(temporary);
    errno = reason;
    return false;
  }
  return gt_name_sync(path);
}

bool gt_file_compose(const char *path, void (*write)(FILE *to, const void *what),
                     const void *what) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to) write(to, what);
  const bool ok = to && fclose(to) == 0 && gt_file_replace(path, text, size);
  const int reason = errno;
  free(text);
  errno = reason;
  return ok;
}

gt_status gt_output_may_replace(const char *out, const char *input, const char *kind,
                                bool (*is_kind)(const char *path)) {
  struct stat there, given;
  if (stat(out, &there) != 0) return GT_OK; /* other problems are reported when it is written */
  if (S_ISDIR(there.st_mode))
    return GT_FAIL(GT_ERR_JOB, "%s is a folder; expected the name of a file to write", out);
  if (input && stat(input, &given) == 0 && there.st_dev == given.st_dev &&
      there.st_ino == given.st_ino)
    return GT_FAIL(GT_ERR_JOB, "%s is both the input and the output; choose another output file",
                   out);
  if (!kind || (S_ISREG(there.st_mode) && (there.st_size == 0 || is_kind(out)))) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s exists and is no %s file, so it is not overwritten; choose another output, or "
                 "add --force",
                 out, kind);
}
