/* Reads idx files (LeCun, Cortes and Burges, the MNIST database): magic 0 0 8 ndims, dimensions in big-endian 32 bits, then the bytes. */
#include "idx.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#define MAX_SIDE 65536 /* of an image: beyond it the header is damaged */

struct gt_idx {
  gzFile file; /* zlib reads plain files too */
  char *path;
  int ndims;
  size_t dims[3], item, done; /* item: bytes of one; done: bytes read after the header */
};

/* Reads exactly n bytes, or fewer at the end of the file; -1 with a sentence on an error. */
static int64_t take(gt_idx *idx, void *out, size_t n) {
  size_t got = 0;
  while (got < n) {
    size_t want = n - got < (1U << 20) ? n - got : (1U << 20);
    int r = gzread(idx->file, (char *)out + got, (unsigned)want);
    if (r < 0) {
      int code;
      const char *text = gzerror(idx->file, &code);
      if (code == Z_BUF_ERROR) break; /* gzip data that stop early */
      GT_FAIL(GT_ERR_DATA, "%s: cannot be read (%s)", idx->path, code == Z_ERRNO ? strerror(errno) : text);
      return -1;
    }
    if (r == 0) break;
    got += (size_t)r;
  }
  return (int64_t)got;
}

static uint32_t big_endian(const uint8_t b[4]) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static gt_status read_header(gt_idx *idx) {
  uint8_t header[4 * 4] = {0};
  size_t size = 4 + 4 * (size_t)idx->ndims;
  int64_t got = take(idx, header, size);
  if (got < 0) return GT_ERR_DATA;
  uint32_t magic = big_endian(header), needed = 0x800U + (uint32_t)idx->ndims;
  if (got >= 4 && magic != needed)
    return GT_FAIL(GT_ERR_DATA, "%s: begins with 0x%08x; an idx file of %s begins with 0x%08x", idx->path, magic,
                   idx->ndims == 1 ? "labels" : "images", needed);
  if ((size_t)got < size) return GT_FAIL(GT_ERR_DATA, "%s: ends after %lld bytes; an idx header has %zu", idx->path, (long long)got, size);
  idx->item = 1;
  for (int i = 0; i < idx->ndims; i++) {
    idx->dims[i] = big_endian(header + 4 + 4 * i);
    if (i > 0) idx->item *= idx->dims[i];
    if (idx->dims[i] == 0 || (i > 0 && idx->dims[i] > MAX_SIDE))
      return GT_FAIL(GT_ERR_DATA, "%s: dimension %d is %zu; 1%s is needed", idx->path, i, idx->dims[i], i > 0 ? " to 65536" : " or more");
  }
  return GT_OK;
}

gt_status gt_idx_open(gt_idx **out, const char *path, int ndims) {
  gt_idx *idx = GT_NEW(gt_idx);
  *out = NULL;
  *idx = (gt_idx){.path = gt_strdup(path), .ndims = ndims, .dims = {1, 1, 1}};
  errno = 0;
  idx->file = gzopen(path, "rb");
  gt_status status;
  if (!idx->file)
    status = GT_FAIL(GT_ERR_DATA, "%s: cannot be opened (%s)", path, errno ? strerror(errno) : "out of memory");
  else {
    gzbuffer(idx->file, 1U << 17);
    status = read_header(idx);
  }
  if (status == GT_OK)
    *out = idx;
  else
    gt_idx_close(idx);
  return status;
}

size_t gt_idx_dim(const gt_idx *idx, int i) {
  return idx->dims[i];
}

gt_status gt_idx_read(gt_idx *idx, size_t count, uint8_t *out) {
  size_t n = count * idx->item;
  int64_t got = take(idx, out, n);
  if (got < 0) return GT_ERR_DATA;
  idx->done += (size_t)got;
  if ((size_t)got == n) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: ends after %zu of %zu bytes of data; a whole file is needed", idx->path, idx->done, idx->dims[0] * idx->item);
}

gt_status gt_idx_end(gt_idx *idx) {
  uint8_t extra;
  int code;
  int64_t got = take(idx, &extra, 1);
  if (got < 0) return GT_ERR_DATA;
  if (got > 0) return GT_FAIL(GT_ERR_DATA, "%s: has more than the %zu bytes of data its header says", idx->path, idx->dims[0] * idx->item);
  gzerror(idx->file, &code);
  if (code != Z_OK && code != Z_STREAM_END)
    return GT_FAIL(GT_ERR_DATA, "%s: its gzip data end before their check sum; a whole file is needed", idx->path);
  return GT_OK;
}

void gt_idx_close(gt_idx *idx) {
  if (!idx) return;
  if (idx->file) gzclose(idx->file);
  gt_free(idx->path);
  gt_free(idx);
}
