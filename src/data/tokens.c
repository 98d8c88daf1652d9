/* Encodes texts as tokens, and tokens as bytes. */
#include "tokens.h"

#include <stdio.h>
#include <string.h>

#include "h5.h"
#include "pairs.h"
#include "pieces.h"

struct gt_tokens {
  size_t nmerges;
  int32_t *merges; /* (nmerges,2) */
  gt_pairs ids;    /* of the pairs of merges */
  char *bytes;     /* of all tokens, one after the other */
  size_t *first;   /* (count + 1): token i is bytes [first[i], first[i+1]) */
  char hash[GT_SHA256_HEX];
};

size_t gt_tokens_count(const gt_tokens *t) {
  return GT_TOKEN_BYTES + t->nmerges;
}

const int32_t *gt_tokens_merges(const gt_tokens *t) {
  return t->merges;
}

const char *gt_tokens_hash(const gt_tokens *t) {
  return t->hash;
}

const char *gt_tokens_bytes(const gt_tokens *t, int32_t id, size_t *n) {
  *n = t->first[id + 1] - t->first[id];
  return t->bytes + t->first[id];
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Appends the bytes of the two tokens of merge k. */
static gt_status join(gt_tokens *t, const char *path, size_t k) {
  const int32_t *pair = t->merges + 2 * k;
  const size_t id = GT_TOKEN_BYTES + k;
  size_t at = t->first[id], n;
  for (size_t i = 0; i < 2; i++) {
    if (pair[i] < 0 || (size_t)pair[i] >= id)
      return GT_FAIL(GT_ERR_DATA, "%s: merge %zu joins token %d; 0 to %zu are there", path, k,
                     (int)pair[i], id - 1);
    const char *bytes = gt_tokens_bytes(t, pair[i], &n);
    if (at - t->first[id] + n > GT_PIECE_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: merge %zu gives a token of more than %d bytes", path, k,
                     GT_PIECE_MAX);
    memcpy(t->bytes + at, bytes, n);
    at += n;
  }
  t->first[id + 1] = at;
  if (gt_pairs_find(&t->ids, gt_pair_of(pair[0], pair[1])))
    return GT_FAIL(GT_ERR_DATA, "%s: merge %zu is there before; each is needed once", path, k);
  gt_pairs_add(&t->ids, gt_pair_of(pair[0], pair[1]), (uint32_t)id);
  return GT_OK;
}

/* Hashes a text, so that the hash does not depend on byte order. */
static void make_hash(gt_tokens *t) {
  const size_t size = 64 + t->nmerges * 24;
  char *text = gt_alloc(size, 1);
  size_t at = (size_t)snprintf(text, size, "%d bytes, %zu merges", GT_TOKEN_BYTES, t->nmerges);
  for (size_t k = 0; k < t->nmerges; k++)
    at += (size_t)snprintf(text + at, size - at, " %d+%d", (int)t->merges[2 * k],
                           (int)t->merges[2 * k + 1]);
  gt_sha256_hex(text, at, t->hash);
  gt_free(text);
}

gt_status gt_tokens_create(gt_tokens **out, const char *path, const int32_t *merges, size_t n) {
  gt_tokens *t = GT_NEW(gt_tokens);
  gt_status status = GT_OK;
  t->nmerges = n;
  t->merges = GT_NEW_ARRAY(int32_t, 2 * n);
  memcpy(t->merges, merges, 2 * n * sizeof *merges);
  t->first = GT_NEW_ARRAY(size_t, GT_TOKEN_BYTES + n + 1);
  t->bytes = gt_alloc(GT_TOKEN_BYTES + n * GT_PIECE_MAX, 1);
  for (size_t i = 0; i < GT_TOKEN_BYTES; i++) t->bytes[i] = (char)i, t->first[i + 1] = i + 1;
  for (size_t k = 0; k < n && status == GT_OK; k++) status = join(t, path, k);
  if (status == GT_OK) make_hash(t);
  if (status != GT_OK) gt_tokens_close(t);
  *out = status == GT_OK ? t : NULL;
  return status;
}

void gt_tokens_close(gt_tokens *t) {
  if (!t) return;
  gt_pairs_close(&t->ids);
  gt_free(t->first);
  gt_free(t->bytes);
  gt_free(t->merges);
  gt_free(t);
}

/* ---- a data set's ---------------------------------------------------------------------------- */

static gt_status read_merges(gt_tokens **out, hid_t set, const char *path) {
  hsize_t dims[2] = {0};
  hid_t space = H5Dget_space(set), type = H5Dget_type(set);
  const bool pairs = H5Sget_simple_extent_ndims(space) == 2 &&
                     H5Sget_simple_extent_dims(space, dims, NULL) == 2 && dims[1] == 2 &&
                     H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == sizeof(int32_t) &&
                     dims[0] <= GT_DATA_TOKENS_MAX - GT_TOKEN_BYTES;
  gt_data_h5_close(type);
  gt_data_h5_close(space);
  if (!pairs)
    return GT_FAIL(GT_ERR_DATA, "%s: /%s has another shape; int32 (M,2), M at most %d, is needed",
                   path, GT_DATA_MERGES, GT_DATA_TOKENS_MAX - GT_TOKEN_BYTES);
  int32_t *merges = GT_NEW_ARRAY(int32_t, 2 * dims[0]);
  gt_status status = gt_data_h5_read_rows(set, path, "/" GT_DATA_MERGES, H5T_NATIVE_INT32, 0,
                                          (size_t)dims[0], merges);
  if (status == GT_OK) status = gt_tokens_create(out, path, merges, (size_t)dims[0]);
  gt_free(merges);
  return status;
}

static gt_status read_file(gt_tokens **out, hid_t file, const char *path) {
  bool there;
  hid_t set = -1;
  GT_TRY(gt_data_h5_exists(file, path, GT_DATA_MERGES, &there));
  if (!there)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: has no /%s, so it is no data set of text; one that `geotrain data import "
                   "text` wrote is needed",
                   path, GT_DATA_MERGES);
  gt_status status = gt_data_h5_open_set(file, path, GT_DATA_MERGES, "(M,2)", &set);
  if (status == GT_OK) status = read_merges(out, set, path);
  gt_data_h5_close(set);
  return status;
}

gt_status gt_tokens_open(gt_tokens **out, const char *path) {
  hid_t file;
  *out = NULL;
  gt_data_h5_quiet();
  GT_TRY(gt_data_h5_open(&file, path));
  const gt_status status = read_file(out, file, path);
  gt_data_h5_close(file);
  return status;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* The pair that was merged first in training, of those that are next to each other; its left place,
   or n if there is none.  *id: what it becomes. */
static size_t first_merge(const gt_tokens *t, const int32_t *ids, size_t n, uint32_t *id) {
  size_t found = n;
  for (size_t i = 0; i + 1 < n; i++) {
    const uint32_t *merged = gt_pairs_find(&t->ids, gt_pair_of(ids[i], ids[i + 1]));
    if (merged && (found == n || *merged < *id)) found = i, *id = *merged;
  }
  return found;
}

static size_t encode_piece(const gt_tokens *t, const char *text, size_t n, int32_t *ids) {
  uint32_t id = 0;
  for (size_t i = 0; i < n; i++) ids[i] = (unsigned char)text[i];
  for (size_t at; (at = first_merge(t, ids, n, &id)) < n; n--) {
    ids[at] = (int32_t)id;
    memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
  }
  return n;
}

size_t gt_tokens_encode(const gt_tokens *t, const char *text, size_t n, int32_t *ids) {
  size_t count = 0;
  for (size_t at = 0, step; at < n; at += step) {
    step = gt_piece_next(text + at, n - at);
    count += encode_piece(t, text + at, step, ids + count);
  }
  return count;
}
