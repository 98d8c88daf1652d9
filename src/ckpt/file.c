/* A checkpoint on disk: a user block with the SHA-256, then the HDF5 image.  Made durable by
   temporary name, fsync, rename, and fsync of the directories.  Uses POSIX only, so any thread can
   call it. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "GEOTRAIN CHECKPOINT 1 sha256 "

static void print_seal(char block[CKPT_BLOCK], const char *hex, size_t bytes) {
  memset(block, 0, CKPT_BLOCK);
  snprintf(block, CKPT_BLOCK, FIRST_LINE "%s bytes %zu\n", hex, bytes);
}

void gt_ckpt_seal(gt_ckpt_file *file) {
  char hex[GT_SHA256_HEX];
  gt_sha256_hex(file->bytes + CKPT_BLOCK, file->size - CKPT_BLOCK, hex);
  print_seal((char *)file->bytes, hex, file->size - CKPT_BLOCK);
}

/* ---- writing ---- */

static gt_status refused(const char *what, const char *path) {
  return GT_FAIL(GT_ERR_CKPT, "%s: the checkpoint could not be %s: %s", path, what,
                 strerror(errno));
}

static gt_status sync_name(const char *path) {
  return gt_name_sync(path) ? GT_OK : refused("made durable (fsync of its directory)", path);
}

static char *mark_path(char *buf, size_t size, const char *run_dir, const char *region) {
  snprintf(buf, size, "%s/ckpt/%s.whole", run_dir, region);
  return buf;
}

gt_status gt_ckpt_mark_whole(const char *run_dir, const char *region) {
  char path[PATH_MAX];
  int fd =
      open(mark_path(path, sizeof path, run_dir, region), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return refused("made (open)", path);
  close(fd);
  return sync_name(path);
}

bool gt_ckpt_was_whole(const char *run_dir, const char *region) {
  char path[PATH_MAX];
  return access(mark_path(path, sizeof path, run_dir, region), F_OK) == 0;
}

/* Another region can remove an empty folder between mkdir and open; then both are repeated. */
static gt_status open_temporary(const char *folder, const char *final, char *temporary, size_t size,
                                int *fd) {
  for (int attempt = 0;; attempt++) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return refused("begun (mkdir)", folder);
    *fd = gt_temporary_create(temporary, size, final);
    if (*fd >= 0) return GT_OK;
    if (errno != ENOENT || attempt == 10) return refused("begun (open)", final);
  }
}

static gt_status write_bytes(int fd, const char *path, const unsigned char *bytes, size_t size) {
  return gt_write_all(fd, bytes, size) ? GT_OK : refused("written", path);
}

/* Writes to the open temporary file and closes it. */
static gt_status fill_temporary(int fd, const char *path, const gt_ckpt_file *file) {
  size_t half = file->size / 2;
  gt_failpoint("ckpt.open");
  gt_status status = write_bytes(fd, path, file->bytes, half);
  if (status == GT_OK) {
    gt_failpoint("ckpt.half");
    status = write_bytes(fd, path, file->bytes + half, file->size - half);
  }
  if (status == GT_OK) {
    gt_failpoint("ckpt.written");
    if (fsync(fd) != 0) status = refused("made durable (fsync)", path);
  }
  if (close(fd) != 0 && status == GT_OK) status = refused("made durable (close)", path);
  if (status == GT_OK) gt_failpoint("ckpt.fsynced");
  return status;
}

static void name_folder(char folder[PATH_MAX], const char *run_dir, int64_t round) {
  if (round != CKPT_NO_ROUND)
    snprintf(folder, PATH_MAX, "%s/ckpt/%lld", run_dir, (long long)round);
  else
    snprintf(folder, PATH_MAX, "%s", run_dir);
}

char *gt_ckpt_final_model_path(char *buf, size_t size, const char *run_dir, const char *region) {
  snprintf(buf, size, "%s/final%s%s.h5", run_dir, region ? "-" : "", region ? region : "");
  return buf;
}

gt_status gt_ckpt_file_write(const gt_ckpt_file *file, const char *run_dir, int64_t round,
                             const char *name) {
  char folder[PATH_MAX], temporary[PATH_MAX], final[PATH_MAX + 512];
  name_folder(folder, run_dir, round);
  snprintf(final, sizeof final, "%s/%s.h5", folder, name);

  gt_failpoint("ckpt.begin");
  int fd = -1;
  gt_status status = open_temporary(folder, final, temporary, sizeof temporary, &fd);
  if (status == GT_OK) status = fill_temporary(fd, temporary, file);
  if (status == GT_OK && rename(temporary, final) != 0) status = refused("renamed", final);
  if (status != GT_OK) {
    if (fd >= 0) unlink(temporary);
    rmdir(folder); /* only succeeds if the folder is empty */
    return status;
  }
  gt_failpoint("ckpt.renamed");
  GT_TRY(sync_name(final));
  if (round != CKPT_NO_ROUND) GT_TRY(sync_name(folder));
  gt_failpoint("ckpt.done");
  return GT_OK;
}

/* ---- a file written in parts ---- */

#define SEALED_AT_ONCE ((size_t)1 << 20)

/* Computes the SHA-256 and size of everything after the user block. */
static gt_status hash_open(int fd, const char *path, char hex[GT_SHA256_HEX], size_t *bytes) {
  gt_sha256 *hash = gt_sha256_begin();
  unsigned char *part = gt_alloc(SEALED_AT_ONCE, 1);
  off_t at = CKPT_BLOCK;
  ssize_t n;
  while ((n = pread(fd, part, SEALED_AT_ONCE, at)) > 0 || (n < 0 && errno == EINTR)) {
    if (n < 0) continue;
    gt_sha256_add(hash, part, (size_t)n);
    at += n;
  }
  gt_free(part);
  gt_sha256_end(hash, hex);
  *bytes = (size_t)at - CKPT_BLOCK;
  return n == 0 ? GT_OK : refused("read back", path);
}

static gt_status seal_open(int fd, const char *path) {
  char block[CKPT_BLOCK], hex[GT_SHA256_HEX];
  size_t bytes = 0;
  GT_TRY(hash_open(fd, path, hex, &bytes));
  print_seal(block, hex, bytes);
  if (pwrite(fd, block, CKPT_BLOCK, 0) != CKPT_BLOCK) return refused("written", path);
  return fsync(fd) == 0 ? GT_OK : refused("made durable (fsync)", path);
}

gt_status gt_ckpt_file_finish(const char *temporary, const char *final) {
  int fd = open(temporary, O_RDWR | O_CLOEXEC);
  if (fd < 0) return refused("sealed (open)", temporary);
  gt_status status = seal_open(fd, temporary);
  if (close(fd) != 0 && status == GT_OK) status = refused("made durable (close)", temporary);
  if (status == GT_OK && rename(temporary, final) != 0) status = refused("renamed", final);
  return status == GT_OK ? sync_name(final) : status;
}

/* ---- reading ---- */

static gt_status unreadable(const char *path) {
  return GT_FAIL(GT_ERR_CKPT, "%s: the checkpoint cannot be read: %s", path, strerror(errno));
}

static gt_status read_bytes(int fd, const char *path, unsigned char *bytes, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = read(fd, bytes + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(path);
    if (n == 0)
      return GT_FAIL(GT_ERR_CKPT, "%s: it ends after %zu of %zu bytes; expected a whole checkpoint",
                     path, at, size);
    at += (size_t)n;
  }
  return GT_OK;
}

/* Reads hash and size from the user block.  Every byte is checked: the block must equal the one
   printed from these values. */
static gt_status parse_block(const char *path, const char block[CKPT_BLOCK],
                             char hex[GT_SHA256_HEX], size_t *bytes) {
  char expected[CKPT_BLOCK], text[CKPT_BLOCK + 1];
  memcpy(text, block, CKPT_BLOCK);
  text[CKPT_BLOCK] = '\0';
  if (strncmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) != 0 ||
      sscanf(text + sizeof FIRST_LINE - 1, "%64[0-9a-f] bytes %19zu", hex, bytes) != 2)
    return GT_FAIL(GT_ERR_CKPT,
                   "%s: it does not begin with '%s<hex> bytes <n>'; expected a checkpoint", path,
                   FIRST_LINE);
  print_seal(expected, hex, *bytes);
  if (strlen(hex) != GT_SHA256_HEX - 1 || memcmp(block, expected, CKPT_BLOCK) != 0)
    return GT_FAIL(GT_ERR_CKPT,
                   "%s: its first %d bytes are damaged; expected '%s<hex> bytes <n>' and NULs",
                   path, CKPT_BLOCK, FIRST_LINE);
  return GT_OK;
}

/* The contents of the user block: the SHA-256 and size of everything after it.  The file has that
   size. */
typedef struct {
  char block[CKPT_BLOCK], hex[GT_SHA256_HEX];
  size_t bytes;
} promise;

static gt_status read_promise(int fd, promise *p, const char *path) {
  struct stat at;
  if (fstat(fd, &at) != 0) return unreadable(path);
  if (!S_ISREG(at.st_mode))
    return GT_FAIL(GT_ERR_CKPT, "%s: it is not a regular file; expected a checkpoint", path);
  size_t size = (size_t)at.st_size;
  if (size < CKPT_BLOCK)
    return GT_FAIL(GT_ERR_CKPT, "%s: it ends after %zu bytes; expected more than %d", path, size,
                   CKPT_BLOCK);
  GT_TRY(read_bytes(fd, path, (unsigned char *)p->block, CKPT_BLOCK));
  GT_TRY(parse_block(path, p->block, p->hex, &p->bytes));
  if (size - CKPT_BLOCK < p->bytes)
    return GT_FAIL(GT_ERR_CKPT, "%s: it ends after %zu of %zu bytes; expected a whole checkpoint",
                   path, size, p->bytes + CKPT_BLOCK);
  if (size - CKPT_BLOCK > p->bytes)
    return GT_FAIL(GT_ERR_CKPT, "%s: it has %zu bytes; its first line says %zu", path, size,
                   p->bytes + CKPT_BLOCK);
  return GT_OK;
}

static gt_status keeps(const promise *p, const char *found, const char *path) {
  if (strcmp(found, p->hex) == 0) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s: its SHA-256 is %s, the file says %s; it is damaged", path, found,
                 p->hex);
}

static gt_status read_open(int fd, gt_ckpt_file *file, const char *path) {
  promise p;
  char found[GT_SHA256_HEX];
  GT_TRY(read_promise(fd, &p, path));
  file->size = p.bytes + CKPT_BLOCK;
  file->bytes = GT_NEW_ARRAY(unsigned char, file->size);
  memcpy(file->bytes, p.block, CKPT_BLOCK);
  GT_TRY(read_bytes(fd, path, file->bytes + CKPT_BLOCK, p.bytes));
  gt_sha256_hex(file->bytes + CKPT_BLOCK, p.bytes, found);
  return keeps(&p, found, path);
}

/* Opens a file without blocking if it is a FIFO. */
static int open_to_read(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static gt_status check_open(int fd, const char *path) {
  promise p;
  char found[GT_SHA256_HEX];
  size_t bytes = 0;
  GT_TRY(read_promise(fd, &p, path));
  GT_TRY(hash_open(fd, path, found, &bytes));
  return keeps(&p, found, path);
}

gt_status gt_ckpt_file_check(const char *path) {
  int fd = open_to_read(path);
  if (fd < 0) return unreadable(path);
  const gt_status status = check_open(fd, path);
  close(fd);
  return status;
}

gt_status gt_ckpt_file_read(gt_ckpt_file *file, const char *path) {
  *file = (gt_ckpt_file){0};
  int fd = open_to_read(path);
  if (fd < 0) return unreadable(path);
  gt_status status = read_open(fd, file, path);
  close(fd);
  if (status != GT_OK) {
    gt_free(file->bytes);
    *file = (gt_ckpt_file){0};
  }
  return status;
}
