/* Reads new lines of a JSON Lines file, on any host that shares the file.  Every poll opens the
   file again, so that a network file system shows its current contents. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)65536) /* longer than any line of a record */
#define MARK  ((size_t)64)    /* bytes kept from before the offset, to detect a rewritten file */

struct gt_tail {
  char *path;
  dev_t dev;
  ino_t ino;
  off_t offset; /* of the first unread byte */
  off_t size;   /* at the last poll */
  struct timespec changed;
  char mark[MARK];
  size_t marked;
  bool seen, skipping; /* skipping: inside a line that is too long for a record */
  char *block;
};

gt_tail *gt_tail_create(const char *path) {
  gt_tail *t = GT_NEW(gt_tail);
  t->path = gt_strdup(path);
  t->block = GT_NEW_ARRAY(char, BLOCK);
  return t;
}

void gt_tail_close(gt_tail *t) {
  if (!t) return;
  gt_free(t->block);
  gt_free(t->path);
  gt_free(t);
}

const char *gt_tail_path(const gt_tail *t) {
  return t->path;
}

static bool is_changed(const gt_tail *t, const struct stat *at) {
  return !t->seen || at->st_ino != t->ino || at->st_dev != t->dev || at->st_size != t->size ||
         at->st_mtim.tv_sec != t->changed.tv_sec || at->st_mtim.tv_nsec != t->changed.tv_nsec;
}

/* True if the bytes before the offset differ from those read there. */
static bool is_another(const gt_tail *t, int fd, const struct stat *at) {
  char before[MARK];
  if (at->st_ino != t->ino || at->st_dev != t->dev || at->st_size < t->offset) return true;
  return pread(fd, before, t->marked, t->offset - (off_t)t->marked) != (ssize_t)t->marked ||
         memcmp(before, t->mark, t->marked) != 0;
}

static void remember(gt_tail *t, const char *text, size_t n) {
  size_t kept = n < MARK ? n : MARK;
  memcpy(t->mark, text + n - kept, kept);
  t->marked = kept;
  t->offset += (off_t)n;
}

static void take_line(const char *text, size_t n, void (*on_line)(void *ctx, const json_t *line),
                      void *ctx) {
  json_t *line = json_loadb(text, n, 0, NULL);
  if (json_is_object(line)) on_line(ctx, line);
  json_decref(line);
}

/* Handles the complete lines in the buffer; returns their size in bytes. */
static size_t take_lines(gt_tail *t, size_t n, void (*on_line)(void *ctx, const json_t *line),
                         void *ctx) {
  size_t used = 0;
  for (const char *newline; (newline = memchr(t->block + used, '\n', n - used));
       used = (size_t)(newline - t->block) + 1) {
    if (!t->skipping) take_line(t->block + used, (size_t)(newline - t->block) - used, on_line, ctx);
    t->skipping = false;
  }
  if (used > 0 || n < BLOCK) return used;
  t->skipping = true;
  return n;
}

static void read_on(gt_tail *t, int fd, void (*on_line)(void *ctx, const json_t *line), void *ctx) {
  for (;;) {
    ssize_t n = pread(fd, t->block, BLOCK, t->offset);
    if (n < 0 && errno == EINTR) continue;
    size_t used = n > 0 ? take_lines(t, (size_t)n, on_line, ctx) : 0;
    if (used == 0) return;
    remember(t, t->block, used);
  }
}

gt_tail_found gt_tail_poll(gt_tail *t, void (*on_anew)(void *ctx),
                           void (*on_line)(void *ctx, const json_t *line), void *ctx) {
  struct stat at;
  if (stat(t->path, &at) != 0) return GT_TAIL_ABSENT;
  if (!is_changed(t, &at)) return GT_TAIL_SAME;
  int fd = open(t->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &at) != 0) {
    if (fd >= 0) close(fd);
    return GT_TAIL_ABSENT;
  }
  if (t->seen && is_another(t, fd, &at)) {
    t->offset = 0;
    t->marked = 0;
    t->skipping = false;
    on_anew(ctx);
  }
  t->seen = true;
  t->dev = at.st_dev;
  t->ino = at.st_ino;
  t->size = at.st_size;
  t->changed = at.st_mtim;
  read_on(t, fd, on_line, ctx);
  close(fd);
  return GT_TAIL_MORE;
}

struct timespec gt_tail_changed(const gt_tail *t) {
  return t->changed;
}
