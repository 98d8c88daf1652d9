/* Texts as tokens: counts of token pairs, pieces across which no pair is merged, vocabularies,
   encoding. */
#include <stdio.h>
#include <string.h>

#include "tokens.h"

/* ---- pairs, in a hash table with linear probing ---------------------------------------------- */

enum { FIRST_SLOTS = 1024 };

/* Returns the slot of the pair, or the empty slot for it. */
static size_t pair_slot(const gt_pairs *p, uint64_t pair) {
  const uint64_t hash = (pair + 1) * 0x9e3779b97f4a7c15U;
  size_t at = (size_t)(hash ^ hash >> 32) & (p->nslots - 1);
  while (p->keys[at] != 0 && p->keys[at] != pair + 1) at = (at + 1) & (p->nslots - 1);
  return at;
}

const uint32_t *gt_pairs_find(const gt_pairs *p, uint64_t pair) {
  if (p->nslots == 0) return NULL;
  const size_t at = pair_slot(p, pair);
  return p->keys[at] != 0 ? &p->values[at] : NULL;
}

static void put(gt_pairs *p, uint64_t pair, uint32_t value) {
  const size_t at = pair_slot(p, pair);
  p->keys[at] = pair + 1;
  p->values[at] = value;
}

static void grow(gt_pairs *p) {
  const gt_pairs old = *p;
  p->nslots = old.nslots ? 2 * old.nslots : FIRST_SLOTS;
  p->keys = GT_NEW_ARRAY(uint64_t, p->nslots);
  p->values = GT_NEW_ARRAY(uint32_t, p->nslots);
  for (size_t i = 0; old.values && i < old.nslots; i++)
    if (old.keys[i] != 0) put(p, old.keys[i] - 1, old.values[i]);
  gt_free(old.keys);
  gt_free(old.values);
}

void gt_pairs_add(gt_pairs *p, uint64_t pair, uint32_t value) {
  if (!p->values || 2 * (p->n + 1) >= p->nslots) grow(p);
  put(p, pair, value);
  p->n++;
}

void gt_pairs_close(gt_pairs *p) {
  gt_free(p->keys);
  gt_free(p->values);
  *p = (gt_pairs){0};
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Splits texts at spaces and between letters, digits and signs, like the expression of GPT-2
   (Radford et al. 2019) without its rules for English. */

typedef enum { BLANK, LETTER, DIGIT, SIGN } kind;

/* Returns the kind of a byte; bytes of 128 and more are mostly parts of letters in UTF-8. */
static kind kind_of(char c) {
  if (c == ' ' || (c >= '\t' && c <= '\r')) return BLANK;
  if (c >= '0' && c <= '9') return DIGIT;
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) ? LETTER : SIGN;
}

/* Returns the end of the run of one kind that begins at `at`. */
static size_t run(const char *text, size_t at, size_t n) {
  const kind first = kind_of(text[at]);
  while (at < n && kind_of(text[at]) == first) at++;
  return at;
}

size_t gt_piece_next(const char *text, size_t n) {
  const size_t most = n < GT_PIECE_MAX + 1 ? n : GT_PIECE_MAX + 1;
  size_t end = run(text, 0, most);
  /* the last space before a word belongs to the word */
  if (kind_of(text[0]) == BLANK && end < most && text[end - 1] == ' ')
    end = end > 1 ? end - 1 : run(text, end, most);
  return end < GT_PIECE_MAX ? end : GT_PIECE_MAX;
}

enum { FIRST = 1024 }; /* initial capacity */

typedef struct {
  gt_piece *pieces;
  size_t n, capacity;
  uint32_t *slots; /* 0, or 1 + a piece */
  size_t nslots;   /* a power of two, more than twice the pieces */
} table;

/* Returns the slot of the piece, or the empty slot for it.  FNV-1a, linear probing. */
static uint32_t *slot_of(const table *t, const char *text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3U;
  for (size_t at = (size_t)(hash ^ hash >> 32);; at++) {
    uint32_t *slot = &t->slots[at & (t->nslots - 1)];
    if (*slot == 0) return slot;
    const gt_piece *p = &t->pieces[*slot - 1];
    if (p->length == length && memcmp(p->text, text, length) == 0) return slot;
  }
}

static void make_slots(table *t, size_t nslots) {
  gt_free(t->slots);
  t->nslots = nslots;
  t->slots = GT_NEW_ARRAY(uint32_t, nslots);
  for (size_t i = 0; i < t->n; i++)
    *slot_of(t, t->pieces[i].text, t->pieces[i].length) = (uint32_t)(i + 1);
}

static void count(table *t, const char *text, size_t length) {
  uint32_t *slot = slot_of(t, text, length);
  if (*slot > 0) {
    t->pieces[*slot - 1].count++;
    return;
  }
  GT_GROW(t->pieces, t->n, t->capacity, FIRST);
  t->pieces[t->n] = (gt_piece){.text = text, .length = length, .count = 1};
  *slot = (uint32_t)++t->n;
  if (2 * (t->n + 1) >= t->nslots) make_slots(t, 2 * t->nslots);
}

gt_piece *gt_pieces_count(const char *text, size_t length, size_t *n) {
  table t = {.pieces = GT_NEW_ARRAY(gt_piece, FIRST), .capacity = FIRST};
  make_slots(&t, FIRST);
  for (size_t at = 0, step; at < length; at += step) {
    step = gt_piece_next(text + at, length - at);
    count(&t, text + at, step);
  }
  gt_free(t.slots);
  *n = t.n;
  return t.pieces;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

struct gt_tokens {
  size_t nmerges;
  int64_t *merges; /* (nmerges,2) */
  gt_pairs ids;    /* of the pairs of merges */
  char *bytes;     /* of all tokens, one after the other */
  size_t *first;   /* (count + 1): token i is bytes [first[i], first[i+1]) */
  char hash[GT_SHA256_HEX];
};

size_t gt_tokens_count(const gt_tokens *t) {
  return GT_TOKEN_BYTES + t->nmerges;
}

const int64_t *gt_tokens_merges(const gt_tokens *t, size_t *n) {
  *n = t->nmerges;
  return t->merges;
}

const char *gt_tokens_hash(const gt_tokens *t) {
  return t->hash;
}

const char *gt_tokens_bytes(const gt_tokens *t, int32_t id, size_t *n) {
  *n = t->first[id + 1] - t->first[id];
  return t->bytes + t->first[id];
}

/* Appends the bytes of the two tokens of merge k. */
static gt_status join(gt_tokens *t, const char *path, size_t k) {
  const int64_t *pair = t->merges + 2 * k;
  const size_t id = GT_TOKEN_BYTES + k;
  size_t at = t->first[id], n;
  for (size_t i = 0; i < 2; i++) {
    if (pair[i] < 0 || (size_t)pair[i] >= id)
      return GT_FAIL(GT_ERR_DATA, "%s: merge %zu joins token %lld; expected 0 to %zu", path, k,
                     (long long)pair[i], id - 1);
    const char *bytes = gt_tokens_bytes(t, (int32_t)pair[i], &n);
    if (at - t->first[id] + n > GT_PIECE_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: merge %zu gives a token of more than %d bytes", path, k,
                     GT_PIECE_MAX);
    memcpy(t->bytes + at, bytes, n);
    at += n;
  }
  t->first[id + 1] = at;
  const uint64_t key = gt_pair_of((int32_t)pair[0], (int32_t)pair[1]);
  if (gt_pairs_find(&t->ids, key))
    return GT_FAIL(GT_ERR_DATA, "%s: merge %zu is there twice; each must occur once", path, k);
  gt_pairs_add(&t->ids, key, (uint32_t)id);
  return GT_OK;
}

/* Hashes a text form, independent of byte order. */
static void make_hash(gt_tokens *t) {
  const size_t size = 64 + t->nmerges * 24;
  char *text = gt_alloc(size, 1);
  size_t at = (size_t)snprintf(text, size, "%d bytes, %zu merges", GT_TOKEN_BYTES, t->nmerges);
  for (size_t k = 0; k < t->nmerges; k++)
    at += (size_t)snprintf(text + at, size - at, " %lld+%lld", (long long)t->merges[2 * k],
                           (long long)t->merges[2 * k + 1]);
  gt_sha256_hex(text, at, t->hash);
  gt_free(text);
}

gt_status gt_tokens_create(gt_tokens **out, const char *path, const int64_t *merges, size_t n) {
  gt_tokens *t = GT_NEW(gt_tokens);
  gt_status status = GT_OK;
  t->nmerges = n;
  t->merges = GT_NEW_ARRAY(int64_t, 2 * n);
  if (n > 0) memcpy(t->merges, merges, 2 * n * sizeof *merges);
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

/* ---- the vocabulary of a data set ------------------------------------------------------------ */

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
    return GT_FAIL(GT_ERR_DATA, "%s: /%s has another shape; expected int32 (M,2), M at most %d",
                   path, GT_DATA_MERGES, GT_DATA_TOKENS_MAX - GT_TOKEN_BYTES);
  int64_t *merges = GT_NEW_ARRAY(int64_t, 2 * dims[0]);
  gt_status status = gt_data_h5_read_rows(set, path, "/" GT_DATA_MERGES, H5T_NATIVE_INT64, 0,
                                          (size_t)dims[0], merges);
  if (status == GT_OK) status = gt_tokens_create(out, path, merges, (size_t)dims[0]);
  gt_free(merges);
  return status;
}

gt_status gt_tokens_read(gt_tokens **out, hid_t file, const char *path) {
  bool there;
  hid_t set = -1;
  *out = NULL;
  GT_TRY(gt_data_h5_exists(file, path, GT_DATA_MERGES, &there));
  if (!there) return GT_OK;
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
  const gt_status status = gt_tokens_read(out, file, path);
  gt_data_h5_close(file);
  if (status != GT_OK || *out) return status;
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: has no /%s, so it is not a data set of text; expected one that `geotrain data "
      "import text` wrote",
      path, GT_DATA_MERGES);
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Finds the adjacent pair that was merged first in training.  Returns its left position, or n if
   there is none.  *id: the merged token. */
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
