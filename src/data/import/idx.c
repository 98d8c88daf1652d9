/* Reads idx files (LeCun, Cortes and Burges, the MNIST database): magic 0 0 8 ndims, dimensions in
   big-endian 32 bits, then the bytes. */
#include "idx.h"

#include "bytes.h"

#define MAX_SIDE 65536 /* of an image; a larger value means a damaged header */

struct gt_idx {
  gt_bytes *file;
  char *path;
  int ndims;
  size_t dims[3], item, done; /* item: bytes of one item; done: bytes read after the header */
};

static uint32_t big_endian(const uint8_t b[4]) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static gt_status read_header(gt_idx *idx) {
  uint8_t header[4 * 4] = {0};
  size_t size = 4 + 4 * (size_t)idx->ndims;
  int64_t got = gt_bytes_read(idx->file, header, size);
  if (got < 0) return GT_ERR_DATA;
  uint32_t magic = big_endian(header), needed = 0x800U + (uint32_t)idx->ndims;
  if (got >= 4 && magic != needed)
    return GT_FAIL(GT_ERR_DATA, "%s: begins with 0x%08x; an idx file of %s begins with 0x%08x",
                   idx->path, magic, idx->ndims == 1 ? "labels" : "images", needed);
  if ((size_t)got < size)
    return GT_FAIL(GT_ERR_DATA, "%s: ends after %lld bytes; an idx header has %zu", idx->path,
                   (long long)got, size);
  idx->item = 1;
  for (int i = 0; i < idx->ndims; i++) {
    idx->dims[i] = big_endian(header + 4 + 4 * i);
    if (i > 0) idx->item *= idx->dims[i];
    if (idx->dims[i] == 0 || (i > 0 && idx->dims[i] > MAX_SIDE))
      return GT_FAIL(GT_ERR_DATA, "%s: dimension %d is %zu; expected 1%s", idx->path, i,
                     idx->dims[i], i > 0 ? " to 65536" : " or more");
  }
  return GT_OK;
}

gt_status gt_idx_open(gt_idx **out, const char *path, int ndims) {
  gt_idx *idx = GT_NEW(gt_idx);
  *out = NULL;
  *idx = (gt_idx){.path = gt_strdup(path), .ndims = ndims, .dims = {1, 1, 1}};
  gt_status status = gt_bytes_open(&idx->file, path);
  if (status == GT_OK) status = read_header(idx);
  if (status == GT_OK)
    *out = idx;
  else
    gt_idx_close(idx);
  return status;
}

size_t gt_idx_dim(const gt_idx *idx, int i) {
  return idx->dims[i];
}

const char *gt_idx_path(const gt_idx *idx) {
  return idx->path;
}

gt_status gt_idx_read(gt_idx *idx, size_t count, uint8_t *out) {
  size_t n = count * idx->item;
  int64_t got = gt_bytes_read(idx->file, out, n);
  if (got < 0) return GT_ERR_DATA;
  idx->done += (size_t)got;
  if ((size_t)got == n) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: ends after %zu of %zu bytes of data; expected a whole file",
                 idx->path, idx->done, idx->dims[0] * idx->item);
}

gt_status gt_idx_end(gt_idx *idx) {
  uint8_t extra;
  int64_t got = gt_bytes_read(idx->file, &extra, 1);
  if (got < 0) return GT_ERR_DATA;
  if (got > 0)
    return GT_FAIL(GT_ERR_DATA, "%s: has more than the %zu bytes of data its header says",
                   idx->path, idx->dims[0] * idx->item);
  return gt_bytes_whole(idx->file);
}

void gt_idx_close(gt_idx *idx) {
  if (!idx) return;
  gt_bytes_close(idx->file);
  gt_free(idx->path);
  gt_free(idx);
}
