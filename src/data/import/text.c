/* Imports plain text as tokens: windows of `length` + 1 ids, each of which begins with the last id
   of the previous one, so that every id but the first is predicted once. */
#include <string.h>
#include <sys/stat.h>

#include "geotrain/base_heap.h"
#include "bytes.h"
#include "import.h"
#include "tokens.h"
#include "store.h"

/* ---- merges ---------------------------------------------------------------------------------- */

typedef struct {
  size_t first, length; /* its tokens, in learner.ids */
  int64_t count;
} word;

typedef struct {
  uint64_t key;
  int64_t count;
  size_t place; /* the last one, as 1 + index; 0: none */
} pair;

/* A word in which a pair occurs, or did before another merge. */
typedef struct {
  uint32_t word;
  size_t before; /* the previous place, as in pair */
} place;

typedef struct {
  word *words;
  size_t nwords;
  int32_t *ids;
  gt_pairs numbers; /* of pairs, in `pairs` */
  pair *pairs;
  size_t npairs, pairs_capacity;
  place *places;
  size_t nplaces, places_capacity;
  gt_heap heap; /* by falling counts; pairs are added again when their count changes */
  int64_t *merges;
  size_t nmerges;
} learner;

static void take_words(learner *l, const char *text, size_t length) {
  size_t at = 0;
  gt_piece *pieces = gt_pieces_count(text, length, &l->nwords);
  l->words = GT_NEW_ARRAY(word, l->nwords);
  for (size_t i = 0; i < l->nwords; i++) at += pieces[i].length;
  l->ids = GT_NEW_ARRAY(int32_t, at);
  at = 0;
  for (size_t i = 0; i < l->nwords; i++) {
    l->words[i] = (word){at, pieces[i].length, (int64_t)pieces[i].count};
    for (size_t k = 0; k < pieces[i].length; k++) l->ids[at++] = (unsigned char)pieces[i].text[k];
  }
  gt_free(pieces);
}

static pair *pair_at(learner *l, uint64_t key) {
  const uint32_t *number = gt_pairs_find(&l->numbers, key);
  if (number) return &l->pairs[*number];
  GT_GROW(l->pairs, l->npairs, l->pairs_capacity, 4096);
  gt_pairs_add(&l->numbers, key, (uint32_t)l->npairs);
  l->pairs[l->npairs] = (pair){.key = key};
  return &l->pairs[l->npairs++];
}

static void add_place(learner *l, pair *p, uint32_t at) {
  if (p->place > 0 && l->places[p->place - 1].word == at) return;
  GT_GROW(l->places, l->nplaces, l->places_capacity, 4096);
  l->places[l->nplaces] = (place){at, p->place};
  p->place = ++l->nplaces;
}

/* Adds the pairs of a word to the counts, or subtracts them (sign -1).  Records the word as a place
   of the pairs with the token `fresh`; -1: of all pairs. */
static void count_word(learner *l, uint32_t at, int64_t sign, int32_t fresh) {
  const word *w = &l->words[at];
  const int32_t *ids = l->ids + w->first;
  for (size_t i = 0; i + 1 < w->length; i++) {
    pair *p = pair_at(l, gt_pair_of(ids[i], ids[i + 1]));
    p->count += sign * w->count;
    if (sign > 0 && (fresh < 0 || ids[i] == fresh || ids[i + 1] == fresh)) add_place(l, p, at);
  }
}

/* Replaces each occurrence of the pair by `id`. */
static void replace(learner *l, word *w, int32_t left, int32_t right, int32_t id) {
  int32_t *ids = l->ids + w->first;
  size_t to = 0;
  for (size_t i = 0; i < w->length; to++) {
    const bool found = i + 1 < w->length && ids[i] == left && ids[i + 1] == right;
    ids[to] = found ? id : ids[i];
    i += found ? 2 : 1;
  }
  w->length = to;
}

static bool occurs(const learner *l, const word *w, int32_t left, int32_t right) {
  const int32_t *ids = l->ids + w->first;
  for (size_t i = 0; i + 1 < w->length; i++)
    if (ids[i] == left && ids[i + 1] == right) return true;
  return false;
}

static void push_pairs(learner *l, size_t from) {
  for (size_t i = from; i < l->npairs; i++)
    if (l->pairs[i].count > 1)
      gt_heap_push(
          &l->heap,
          (gt_heap_entry){.at = -l->pairs[i].count, .key = l->pairs[i].key, .a = (uint32_t)i});
}

static void merge(learner *l, size_t number) {
  const pair merged = l->pairs[number];
  const int32_t left = (int32_t)(merged.key >> 32), right = (int32_t)(uint32_t)merged.key,
                id = (int32_t)(GT_TOKEN_BYTES + l->nmerges);
  const size_t before = l->npairs;
  for (size_t at = merged.place; at > 0; at = l->places[at - 1].before) {
    const uint32_t i = l->places[at - 1].word;
    if (!occurs(l, &l->words[i], left, right)) continue;
    count_word(l, i, -1, id);
    replace(l, &l->words[i], left, right, id);
    count_word(l, i, 1, id);
  }
  push_pairs(l, before);
  l->merges[2 * l->nmerges] = left;
  l->merges[2 * l->nmerges + 1] = right;
  l->nmerges++;
}

static void learn(learner *l, size_t most) {
  for (uint32_t i = 0; i < l->nwords; i++) count_word(l, i, 1, -1);
  push_pairs(l, 0);
  while (l->nmerges < most && l->heap.n > 0) {
    gt_progress_of(l->nmerges, most, "merges learnt");
    gt_heap_entry next = gt_heap_pop(&l->heap);
    const int64_t count = l->pairs[next.a].count;
    if (count > 1 && count == -next.at)
      merge(l, next.a);
    else if (count > 1) {
      next.at = -count;
      gt_heap_push(&l->heap, next);
    }
  }
}

gt_tokens *gt_merges_learn(const char *text, size_t length, size_t count) {
  learner l = {.merges = GT_NEW_ARRAY(int64_t, 2 * (count - GT_TOKEN_BYTES))};
  gt_tokens *tokens;
  if (count > GT_TOKEN_BYTES) {
    take_words(&l, text, length);
    learn(&l, count - GT_TOKEN_BYTES);
  }
  if (gt_tokens_create(&tokens, "learnt", l.merges, l.nmerges) != GT_OK)
    gt_bug("the learnt vocabulary is invalid: %s", gt_error_text());
  gt_heap_close(&l.heap);
  gt_pairs_close(&l.numbers);
  gt_free(l.merges);
  gt_free(l.places);
  gt_free(l.pairs);
  gt_free(l.ids);
  gt_free(l.words);
  return tokens;
}

/* ---- windows --------------------------------------------------------------------------------- */

enum { BLOCK_BYTES = 1 << 20 };
#define MAX_BYTES ((size_t)UINT32_MAX) /* of the text, which is kept in memory with its ids */

typedef struct {
  const gt_import_options *options;
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
                     "%s: the text has more than %zu bytes up to here, the maximum of a data set",
                     gt_bytes_path(file), MAX_BYTES);
  }
  return gt_bytes_whole(file);
}

static gt_status read_file(text *t, const char *path) {
  gt_bytes *file;
  struct stat about;
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
    return GT_FAIL(GT_ERR_DATA, "%s: is a folder; expected a file of text", path);
  GT_TRY(gt_bytes_open(&file, path));
  const gt_status status = read_all(t, file);
  gt_bytes_close(file);
  return status;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Returns the start of the test part: not inside a UTF-8 character. */
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
                 "%s: the text for the %s split, %zu bytes, is %zu tokens; expected %zu or more "
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
    status = gt_data_store_samples(t->store, split, first, count, rows);
    if (status == GT_OK) status = gt_data_store_labels(t->store, split, first, count, labels);
  }
  gt_free(labels);
  gt_free(rows);
  return status;
}

/* Writes the name of OUT without its extension. */
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
                         const gt_import_options *options, gt_text_found *found) {
  text t = {.options = options};
  const gt_status status = convert(&t, sources, n, out, found);
  gt_data_store_close(t.store);
  for (size_t s = 0; s < 2; s++) gt_free(t.ids[s]);
  gt_tokens_close(t.tokens);
  gt_free(t.bytes);
  return status;
}
