/* Imports reviews with a sentiment, those of the Large Movie Review Dataset (Maas et al. 2011),
   from imdb_train.tsv and imdb_test.tsv: a header, then lines of label, rating, id and text. A
   sample is the ids of a review's last words. */
#include <stdio.h>
#include <string.h>

#include "import.h"
#include "lines.h"
#include "store.h"
#include "words.h"

enum { BLOCK_BYTES = 1 << 20, CLASSES = 2 };
#define HEADER    "label\trating\tid\ttext"
#define MAX_WORDS 4000000 /* different words; a larger number means other data or a gzip bomb */

typedef struct {
  const char *folder;
  const gt_schema *schema;
  size_t length; /* ids of a sample */
  gt_lines *files[2];
  size_t n[2];
  gt_vocabulary *words;
  int32_t *last; /* (length): the last ids of a text; word k is at k % length */
  int32_t *block, *labels;
  gt_data_store *store;
} imdb;

/* ---- files ----------------------------------------------------------------------------------- */

static gt_status open_split(imdb *d, gt_split split) {
  char name[32];
  snprintf(name, sizeof name, "imdb_%s.tsv", gt_data_split_names[split]);
  char *path = gt_bytes_find(d->folder, name);
  if (!path)
    return GT_FAIL(GT_ERR_DATA, "%s: %s is missing, with .gz and without", d->folder, name);
  const gt_status status = gt_lines_open(&d->files[split], path);
  gt_free(path);
  return status;
}

/* Returns the first bytes of a line, printable, for messages. */
static const char *quote(const char *line, char out[41]) {
  snprintf(out, 41, "%.40s", line);
  for (char *p = out; *p; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return out;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static gt_status begin(gt_lines *file) {
  const char *line;
  char found[41];
  GT_TRY(gt_lines_next(file, &line));
  if (line && strcmp(line, HEADER) == 0) return GT_OK;
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: line 1 is `%s`; expected the header `label rating id text`, separated by tabs",
      gt_lines_path(file), line ? quote(line, found) : "");
}

/* Reads the next line; *text is NULL at the end. */
static gt_status next_review(gt_lines *file, int32_t *label, const char **text) {
  const char *line;
  char found[41];
  *text = NULL;
  GT_TRY(gt_lines_next(file, &line));
  if (!line) return GT_OK;
  const char *end = line;
  for (size_t field = 1; field <= 3; field++, end++) {
    end = strchr(end, '\t');
    if (!end)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: line %zu, `%s`, has %zu fields; expected 4, separated by tabs: label, "
                     "rating, id, text",
                     gt_lines_path(file), gt_lines_number(file), quote(line, found), field);
  }
  if ((line[0] != '0' && line[0] != '1') || line[1] != '\t')
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu begins with `%s`; expected a label 0 or 1",
                   gt_lines_path(file), gt_lines_number(file), quote(line, found));
  *label = line[0] - '0';
  *text = end;
  return GT_OK;
}

static gt_status count_words(imdb *d, gt_lines *file, const char *text) {
  char word[GT_WORD_MAX + 1];
  for (size_t n; (n = gt_word_next(&text, word)) > 0;)
    if (gt_vocabulary_count(d->words, word, n) > MAX_WORDS)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has more than %d different words up to line %zu, the maximum",
                     gt_lines_path(file), MAX_WORDS, gt_lines_number(file));
  return GT_OK;
}

/* First pass: counts the samples and, in the training split, the words. */
static gt_status measure(imdb *d, gt_split split) {
  gt_lines *file = d->files[split];
  const char *text;
  int32_t label;
  GT_TRY(begin(file));
  for (;; d->n[split]++) {
    GT_TRY(next_review(file, &label, &text));
    if (!text) break;
    if (split == GT_SPLIT_TRAIN && !d->schema) GT_TRY(count_words(d, file, text));
    if (d->n[split] == UINT32_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: has more than %u reviews, the maximum of a split",
                     gt_lines_path(file), UINT32_MAX);
  }
  if (d->n[split] == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: has no reviews; expected 1 or more behind the header",
                   gt_lines_path(file));
  return gt_lines_rewind(file);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Writes the ids of the last words of a text, after padding. */
static void number(const imdb *d, const char *text, int32_t *ids) {
  char word[GT_WORD_MAX + 1];
  size_t words = 0;
  for (size_t n; (n = gt_word_next(&text, word)) > 0; words++)
    d->last[words % d->length] = gt_vocabulary_id(d->words, word, n);
  const size_t kept = words < d->length ? words : d->length, padding = d->length - kept;
  for (size_t i = 0; i < padding; i++) ids[i] = GT_ID_PADDING;
  for (size_t i = 0; i < kept; i++) ids[padding + i] = d->last[(words - kept + i) % d->length];
}

static gt_status copy_split(imdb *d, gt_split split, size_t block) {
  const char *text;
  GT_TRY(begin(d->files[split]));
  for (size_t first = 0; first < d->n[split]; first += block) {
    const size_t count = d->n[split] - first < block ? d->n[split] - first : block;
    for (size_t i = 0; i < count; i++) {
      GT_TRY(next_review(d->files[split], &d->labels[i], &text));
      if (!text)
        return GT_FAIL(GT_ERR_DATA, "%s: changed while it was read; import it again",
                       gt_lines_path(d->files[split]));
      number(d, text, d->block + i * d->length);
    }
    GT_TRY(gt_data_store_samples(d->store, split, first, count, d->block));
    GT_TRY(gt_data_store_labels(d->store, split, first, count, d->labels));
  }
  return GT_OK;
}

static gt_status store_words(const imdb *d) {
  const size_t ids = gt_vocabulary_ids(d->words);
  size_t width = 1;
  for (size_t i = 0; i < ids; i++)
    if (strlen(gt_vocabulary_text(d->words, i)) > width)
      width = strlen(gt_vocabulary_text(d->words, i));
  char *rows = gt_alloc(ids, width);
  for (size_t i = 0; i < ids; i++) {
    const char *text = gt_vocabulary_text(d->words, i);
    memcpy(rows + i * width, text, strlen(text));
  }
  const gt_status status = gt_data_store_vocabulary(d->store, rows, ids, width);
  gt_free(rows);
  return status;
}

/* Takes the words of a schema, in its order. */
static gt_status take_words(imdb *d) {
  const char *word = d->schema->words.text;
  for (size_t k = 0; k < d->schema->words.n; k++, word += strlen(word) + 1)
    gt_vocabulary_count(d->words, word, strlen(word));
  return d->schema->words.n > 0
             ? GT_OK
             : GT_FAIL(GT_ERR_DATA, "%s: the schema has no words; expected one of such data sets",
                       d->folder);
}

static gt_status convert(imdb *d, const char *out, size_t vocabulary) {
  char name[64];
  for (int s = 0; s < 2; s++) GT_TRY(open_split(d, (gt_split)s));
  d->words = gt_vocabulary_create();
  if (d->schema) GT_TRY(take_words(d));
  for (int s = 0; s < 2; s++) GT_TRY(measure(d, (gt_split)s));
  if (!d->schema) gt_vocabulary_choose(d->words, vocabulary);
  const size_t row = d->length * sizeof *d->block, block = 1 + BLOCK_BYTES / row;
  d->last = GT_NEW_ARRAY(int32_t, d->length);
  d->block = gt_alloc(block, row);
  d->labels = GT_NEW_ARRAY(int32_t, block);
  const gt_data_shape shape = {.n = {d->n[0], d->n[1]},
                               .h = 1,
                               .w = 1,
                               .c = d->length,
                               .features = gt_vocabulary_ids(d->words),
                               .schema = d->schema};
  GT_TRY(gt_data_store_create(&d->store, out, &shape));
  for (int s = 0; s < 2; s++) GT_TRY(copy_split(d, (gt_split)s, block));
  GT_TRY(store_words(d));
  size_t classes = CLASSES;
  GT_TRY(gt_import_class_names(d->store, d->folder, NULL, &classes));
  gt_import_name(d->folder, "imdb", name);
  return gt_data_store_finish(d->store, name, classes);
}

gt_status gt_import_imdb(const char *source, const char *out, const gt_import_options *options) {
  imdb d = {.folder = source, .length = options->length, .schema = options->names};
  const gt_status status = convert(&d, out, options->vocabulary);
  gt_data_store_close(d.store);
  for (int s = 0; s < 2; s++) gt_lines_close(d.files[s]);
  gt_vocabulary_close(d.words);
  gt_free(d.labels);
  gt_free(d.block);
  gt_free(d.last);
  return status;
}
