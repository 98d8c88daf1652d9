/* Imports plain text as tokens: windows of `length` + 1 ids, each of which begins with the last id
   of the one before, so that every id but the first is predicted once. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bytes.h"
#include "import.h"
#include "merges.h"
#include "store.h"

enum { BLOCK_BYTES = 1 << 20 };
#define MAX_BYTES ((size_t)UINT32_MAX) /* of text: it is kept in memory, and so are its ids */

typedef struct {
  const gt_text_options *options;
  char *bytes; /* of all files */
  size_t n, capacity;
  gt_tokens *tokens;
  int32_t *ids[2]; /* by gt_split */
  size_t nids[2];
  gt_data_store *store;
} text;

/* ---- reading --------------------------------------------------------------------------------- */

static void make_room(text *t, size_t more) {
  while (t->capacity - t->n < more)
    t->bytes = gt_grown(t->bytes, &t->capacity, (size_t)4 * BLOCK_BYTES, 1);
}

static gt_status read_all(text *t, gt_bytes *file) {
  for (int64_t got = BLOCK_BYTES; got == BLOCK_BYTES; t->n += (size_t)got) {
    make_room(t, BLOCK_BYTES);
    got = gt_bytes_read(file, t->bytes + t->n, BLOCK_BYTES);
    if (got < 0) return GT_ERR_DATA;
    if ((size_t)got > MAX_BYTES - t->n)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: the text has more than %zu bytes up to here; at most so many are "
                     "imported into one data set",
                     gt_bytes_path(file), MAX_BYTES);
  }
  return gt_bytes_whole(file);
}

static gt_status read_file(text *t, const char *path) {
  gt_bytes *file;
  struct stat about;
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
    return GT_FAIL(GT_ERR_DATA, "%s: is a folder; a file of text is needed", path);
  GT_TRY(gt_bytes_open(&file, path));
  const gt_status status = read_all(t, file);
  gt_bytes_close(file);
  return status;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Where the test part begins: not inside a character of UTF-8. */
static size_t test_begin(const text *t) {
  const size_t begin = (size_t)((double)t->n * (1 - *t->options->test_share));
  size_t at = begin;
  while (at < t->n && at < begin + 3 && ((unsigned char)t->bytes[at] & 0xC0) == 0x80) at++;
  return at;
}

static gt_status encode(text *t, gt_split split, const char *bytes, size_t n, const char *first) {
  const size_t needed = t->options->length + 1;
  t->ids[split] = GT_NEW_ARRAY(int32_t, n + 1);
  t->nids[split] = gt_tokens_encode(t->tokens, bytes, n, t->ids[split]);
  if (t->nids[split] >= needed || (split == GT_SPLIT_TEST && *t->options->test_share == 0))
    return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the text for the %s split, %zu bytes, is %zu tokens; %zu or more are needed "
                 "for a sample (--length %llu, and the one that follows)",
                 first, gt_data_split_names[split], n, t->nids[split], needed,
                 (unsigned long long)t->options->length);
}

static gt_status make_tokens(text *t, const char *first) {
  const size_t begin = test_begin(t);
  if (t->options->vocabulary_of)
    GT_TRY(gt_tokens_open(&t->tokens, t->options->vocabulary_of));
  else
    t->tokens = gt_merges_learn(t->bytes, begin, t->options->vocabulary);
  GT_TRY(encode(t, GT_SPLIT_TRAIN, t->bytes, begin, first));
  return encode(t, GT_SPLIT_TEST, t->bytes + begin, t->n - begin, first);
}

/* ---- samples --------------------------------------------------------------------------------- */

static gt_status write_split(text *t, gt_split split, size_t n) {
  const size_t length = t->options->length, row = length + 1,
               block = 1 + BLOCK_BYTES / (row * sizeof(int32_t));
  int32_t *rows = gt_alloc(block * row, sizeof *rows), *labels = GT_NEW_ARRAY(int32_t, block);
  gt_status status = GT_OK;
  for (size_t first = 0; first < n && status == GT_OK; first += block) {
    const size_t count = n - first < block ? n - first : block;
    for (size_t i = 0; i < count; i++)
      memcpy(rows + i * row, t->ids[split] + (first + i) * length, row * sizeof *rows);
    status = gt_data_store_ids(t->store, split, first, count, rows);
    if (status == GT_OK) status = gt_data_store_labels(t->store, split, first, count, labels);
  }
  gt_free(labels);
  gt_free(rows);
  return status;
}

/* The name of OUT without its end. */
static void name_of(const char *out, char name[64]) {
  gt_import_name(out, "text", name);
  char *end = strrchr(name, '.');
  if (end && end > name) *end = 0;
}

static gt_status convert(text *t, const char *const *sources, size_t n, const char *out,
                         gt_text_found *found) {
  char name[64];
  for (size_t i = 0; i < n; i++) GT_TRY(read_file(t, sources[i]));
  GT_TRY(make_tokens(t, sources[0]));
  const size_t length = t->options->length, ids = gt_tokens_count(t->tokens);
  *found = (gt_text_found){.bytes = t->n, .vocabulary = ids};
  for (size_t s = 0; s < 2; s++) {
    const size_t predicted = t->nids[s] > 0 ? t->nids[s] - 1 : 0;
    found->samples[s] = predicted / length;
    found->left[s] = predicted % length;
  }
  const gt_data_shape shape = {.n = {found->samples[0], found->samples[1]},
                               .h = 1,
                               .w = 1,
                               .c = length + 1,
                               .features = ids};
  GT_TRY(gt_data_store_create(&t->store, out, &shape));
  for (size_t s = 0; s < 2; s++) GT_TRY(write_split(t, (gt_split)s, found->samples[s]));
  GT_TRY(gt_data_store_tokens(t->store, t->tokens));
  name_of(out, name);
  return gt_data_store_finish(t->store, name, ids);
}

gt_status gt_import_text(const char *const *sources, size_t n, const char *out,
                         const gt_text_options *options, gt_text_found *found) {
  text t = {.options = options};
  const gt_status status = convert(&t, sources, n, out, found);
  gt_data_store_close(t.store);
  for (size_t s = 0; s < 2; s++) gt_free(t.ids[s]);
  gt_tokens_close(t.tokens);
  gt_free(t.bytes);
  return status;
}
