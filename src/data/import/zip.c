/* Reads zip archives (PKWARE's APPNOTE 6.3), with the 64-bit sizes that numpy writes. */
#include "zip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define MARK_LOCAL     0x04034b50U
#define MARK_CENTRAL   0x02014b50U
#define MARK_END       0x06054b50U
#define MARK_END64     0x06064b50U
#define MARK_LOCATOR64 0x07064b50U
enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR64 = 20, COMMENT_MAX = 65535 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };
#define IN_64 0xffffffffU /* the value is in the 64-bit field */

struct gt_zip {
  FILE *file;
  char *path;
  int method;
  uint64_t packed, left; /* bytes that are not read, compressed and not */
  uint32_t needed, crc;  /* checksum: in the directory, and of the bytes so far */
  z_stream inflate;
  uint8_t in[1 << 16];
};

/* ---- the directory --------------------------------------------------------------------------- */

static uint64_t number(const uint8_t *at, int bytes) {
  uint64_t n = 0;
  while (bytes-- > 0) n = n << 8 | at[bytes];
  return n;
}

static gt_status damaged(const gt_zip *z, const char *what) {
  return GT_FAIL(GT_ERR_DATA, "%s: %s; expected a whole zip archive", z->path, what);
}

static bool read_at(gt_zip *z, uint64_t offset, void *out, size_t n) {
  return offset <= INT64_MAX && fseeko(z->file, (off_t)offset, SEEK_SET) == 0 &&
         fread(out, 1, n, z->file) == n;
}

/* Finds the directory by the record at the end of the file, behind which is only a comment. */
static gt_status find_directory(gt_zip *z, uint64_t *offset, uint64_t *entries) {
  uint8_t *tail = gt_alloc(END + COMMENT_MAX, 1), record[END64];
  if (fseeko(z->file, 0, SEEK_END) != 0) return gt_free(tail), damaged(z, strerror(errno));
  const uint64_t size = (uint64_t)ftello(z->file),
                 n = size < END + COMMENT_MAX ? size : END + COMMENT_MAX;
  uint64_t at = n < END ? 0 : n - END + 1;
  bool found = false;
  if (read_at(z, size - n, tail, (size_t)n))
    while (!found && at > 0) found = number(tail + --at, 4) == MARK_END;
  *entries = number(tail + at + 10, 2);
  *offset = number(tail + at + 16, 4);
  gt_free(tail);
  if (!found) return damaged(z, "has no directory of members");
  at += size - n;
  if (at < LOCATOR64 || !read_at(z, at - LOCATOR64, record, LOCATOR64) ||
      number(record, 4) != MARK_LOCATOR64)
    return GT_OK;
  if (!read_at(z, number(record + 8, 8), record, END64) || number(record, 4) != MARK_END64)
    return damaged(z, "has no 64-bit directory where it says");
  *entries = number(record + 32, 8);
  *offset = number(record + 48, 8);
  return GT_OK;
}

/* Replaces the values that did not fit into 32 bits by those of the field 1 of `extra`. */
static void take_64(const uint8_t *extra, size_t n, uint64_t *const values[3]) {
  for (size_t at = 0, length; at + 4 <= n; at += 4 + length) {
    length = number(extra + at + 2, 2);
    if (number(extra + at, 2) != 1 || at + 4 + length > n) continue;
    const uint8_t *from = extra + at + 4, *end = from + length;
    for (int i = 0; i < 3; i++)
      if (*values[i] == IN_64 && end - from >= 8) *values[i] = number(from, 8), from += 8;
  }
}

/* Reads the entries up to that of `name`; *found false: none has it. */
static gt_status find_entry(gt_zip *z, const char *name, uint64_t *local, bool *found) {
  uint64_t offset, entries;
  uint8_t head[CENTRAL], *rest = gt_alloc(2, 65536);
  gt_status status = find_directory(z, &offset, &entries);
  for (*found = false; status == GT_OK && entries > 0 && !*found; entries--) {
    if (!read_at(z, offset, head, CENTRAL) || number(head, 4) != MARK_CENTRAL) {
      status = damaged(z, "has a damaged directory of members");
      break;
    }
    const size_t length = number(head + 28, 2), extra = number(head + 30, 2);
    if (length != strlen(name) || !read_at(z, offset + CENTRAL, rest, length + extra) ||
        memcmp(rest, name, length) != 0) {
      offset += CENTRAL + length + extra + number(head + 32, 2);
      continue;
    }
    z->method = number(head + 8, 2) & ENCRYPTED ? -1 : (int)number(head + 10, 2);
    z->needed = (uint32_t)number(head + 16, 4);
    z->packed = number(head + 20, 4);
    z->left = number(head + 24, 4);
    *local = number(head + 42, 4);
    take_64(rest + length, extra, (uint64_t *const[]){&z->left, &z->packed, local});
    *found = true;
  }
  gt_free(rest);
  return status;
}

/* Goes to the first byte of the member, behind its local head. */
static gt_status go_to(gt_zip *z, uint64_t local) {
  uint8_t head[LOCAL];
  if (!read_at(z, local, head, LOCAL) || number(head, 4) != MARK_LOCAL ||
      fseeko(z->file, (off_t)(number(head + 26, 2) + number(head + 28, 2)), SEEK_CUR) != 0)
    return damaged(z, "is not where the directory says");
  if (z->method != STORED && z->method != DEFLATED)
    return GT_FAIL(GT_ERR_DATA, "%s: is %s; expected a member stored or deflated, as numpy does",
                   z->path, z->method < 0 ? "encrypted" : "compressed by another method");
  return z->method == STORED || inflateInit2(&z->inflate, -MAX_WBITS) == Z_OK
             ? GT_OK
             : damaged(z, "cannot be unpacked");
}

gt_status gt_zip_open(gt_zip **out, const char *path, const char *name) {
  const size_t size = strlen(path) + strlen(name) + 3;
  uint64_t local;
  bool found;
  gt_zip *z = GT_NEW(gt_zip);
  *out = NULL;
  z->path = gt_alloc(size, 1);
  snprintf(z->path, size, "%s: %s", path, name);
  z->file = fopen(path, "rb");
  gt_status status = z->file
                         ? find_entry(z, name, &local, &found)
                         : GT_FAIL(GT_ERR_DATA, "%s: cannot be opened (%s)", path, strerror(errno));
  if (status == GT_OK && found) status = go_to(z, local);
  if (status == GT_OK && found) return *out = z, GT_OK;
  gt_zip_close(z);
  return status;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Reads the next compressed bytes; 0: there are none. */
static size_t read_packed(gt_zip *z, void *out, size_t most) {
  const size_t n = fread(out, 1, z->packed < most ? (size_t)z->packed : most, z->file);
  z->packed -= n;
  return n;
}

/* Unpacks up to n bytes, at most 2^30; 0: no more, or damaged. */
static size_t unpack(gt_zip *z, void *out, size_t n) {
  int code = Z_OK;
  z->inflate.next_out = out;
  z->inflate.avail_out = (unsigned)n;
  while (z->inflate.avail_out == n && code == Z_OK) {
    if (z->inflate.avail_in == 0) {
      z->inflate.next_in = z->in;
      z->inflate.avail_in = (unsigned)read_packed(z, z->in, sizeof z->in);
      if (z->inflate.avail_in == 0) break;
    }
    code = inflate(&z->inflate, Z_NO_FLUSH);
  }
  return n - z->inflate.avail_out;
}

int64_t gt_zip_read(gt_zip *z, void *out, size_t n) {
  size_t got = 0;
  if (n > z->left) n = (size_t)z->left;
  while (got < n) {
    const size_t want = n - got < (1U << 30) ? n - got : 1U << 30;
    uint8_t *to = (uint8_t *)out + got;
    const size_t more = z->method == STORED ? read_packed(z, to, want) : unpack(z, to, want);
    if (more == 0) {
      (void)damaged(z, "ends early, or is damaged");
      return -1;
    }
    z->crc = (uint32_t)crc32_z(z->crc, to, more);
    z->left -= more;
    got += more;
  }
  return (int64_t)got;
}

gt_status gt_zip_whole(const gt_zip *z) {
  return z->left > 0 || z->crc == z->needed ? GT_OK : damaged(z, "differs from its checksum");
}

void gt_zip_close(gt_zip *z) {
  if (!z) return;
  if (z->method == DEFLATED) inflateEnd(&z->inflate);
  if (z->file) fclose(z->file);
  gt_free(z->path);
  gt_free(z);
}
