/* Objects as files of a folder: whole, because a file gets its name when it is complete. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "objects.h"

#define PATH_ROOM ((size_t)4096)
#define PIECE     ((size_t)1 << 20)

typedef struct {
  char *folder;
  char part[256];      /* this thread's temporary file: .part-OWNER-START-THREAD */
  size_t owner, start; /* characters of this name until behind OWNER, and START */
  bool tidy;
} handle;

static void *folder_open(const char *place, const char *owner, const char *start,
                         const store_credentials *credentials) {
  char id[GT_RUN_ID];
  (void)credentials;
  handle *h = GT_NEW(handle);
  h->folder = gt_strdup(place);
  gt_random_id(id); /* other hosts write to the folder, too */
  h->owner = (size_t)snprintf(h->part, sizeof h->part, ".part-%s-", owner);
  h->start = h->owner + strlen(start);
  snprintf(h->part + h->owner, sizeof h->part - h->owner, "%s-%s", start, id);
  return h;
}

/* Removes what killed starts of this owner have not written to its end. */
static void tidy(handle *h) {
  DIR *folder = h->tidy ? NULL : opendir(h->folder);
  h->tidy = true;
  if (!folder) return;
  for (const struct dirent *e; (e = readdir(folder));)
    if (strncmp(e->d_name, h->part, h->owner) == 0 && strncmp(e->d_name, h->part, h->start) != 0)
      (void)unlinkat(dirfd(folder), e->d_name, 0);
  closedir(folder);
}

static void folder_close(void *context) {
  handle *h = context;
  gt_free(h->folder);
  gt_free(h);
}

static gt_object_state failed(char *fault, const char *what, bool *again) {
  *again = errno != EACCES && errno != EROFS && errno != ENAMETOOLONG;
  snprintf(fault, 256, "%s: %s", what, strerror(errno));
  return GT_OBJECT_FAILED;
}

static gt_object_state folder_put(void *context, const char *name, const void *body, size_t bytes,
                                  const uint8_t tail[STORE_TAIL], char *fault, bool *again) {
  handle *h = context;
  char path[PATH_ROOM], part[PATH_ROOM];
  snprintf(path, sizeof path, "%s/%s", h->folder, name);
  snprintf(part, sizeof part, "%s/%s", h->folder, h->part);
  tidy(h);
  int fd = open(part, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 && errno == ENOENT && store_make_folders(part))
    fd = open(part, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) return failed(fault, part, again);
  bool good = gt_write_all(fd, body, bytes) && gt_write_all(fd, tail, STORE_TAIL);
  int error = errno;
  if (close(fd) != 0 && good) {
    good = false;
    error = errno;
  }
  gt_failpoint("store.put");
  if (good && rename(part, path) != 0) {
    good = errno == ENOENT && store_make_folders(path) && rename(part, path) == 0;
    error = errno;
  }
  gt_failpoint("store.did_put");
  if (good) return GT_OBJECT_DONE;
  (void)unlink(part);
  errno = error;
  return failed(fault, path, again);
}

/* In pieces, so that *moved grows. */
static bool read_all(int fd, void *bytes, size_t size, _Atomic size_t *moved) {
  for (char *at = bytes; size > 0;) {
    const ssize_t n = read(fd, at, size < PIECE ? size : PIECE);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    atomic_fetch_add(moved, (size_t)n);
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static gt_object_state folder_get(void *context, const char *name, void *body, size_t *bytes,
                                  uint8_t tail[STORE_TAIL], _Atomic size_t *moved, char *fault,
                                  bool *again) {
  const handle *h = context;
  char path[PATH_ROOM];
  struct stat about;
  snprintf(path, sizeof path, "%s/%s", h->folder, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return GT_OBJECT_MISSING;
  if (fd < 0) return failed(fault, path, again);
  gt_object_state state = GT_OBJECT_DONE;
  if (fstat(fd, &about) != 0) {
    state = failed(fault, path, again);
  } else if ((uint64_t)about.st_size < STORE_TAIL ||
             (uint64_t)about.st_size - STORE_TAIL > (uint64_t)*bytes) {
    *again = (uint64_t)about.st_size < STORE_TAIL; /* half written */
    snprintf(fault, 256, "%.180s has %lld bytes; expected %zu to %zu", path,
             (long long)about.st_size, STORE_TAIL, *bytes + STORE_TAIL);
    state = GT_OBJECT_FAILED;
  } else {
    *bytes = (size_t)about.st_size - STORE_TAIL;
    if (!read_all(fd, body, *bytes, moved) || !read_all(fd, tail, STORE_TAIL, moved))
      state = failed(fault, path, again);
  }
  close(fd);
  gt_failpoint("store.did_get");
  return state;
}

static gt_object_state folder_remove(void *context, const char *name, char *fault, bool *again) {
  const handle *h = context;
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "%s/%s", h->folder, name);
  gt_failpoint("store.delete");
  if (unlink(path) == 0 || errno == ENOENT) return GT_OBJECT_DONE;
  return failed(fault, path, again);
}

const store_kind store_folder = {folder_open, folder_close, folder_put, folder_get, folder_remove};
