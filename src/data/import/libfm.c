/* Imports libFM data.  Reads lines of any length word by word. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataset.h"
#include "import.h"
#include "bytes.h"
#include "store.h"

/* ---- lines of words -------------------------------------------------------------------------- */

/* WORD: the longest valid word is 2147483645:1.000...; longer ones are rejected. */
enum { WORD = 40 };

typedef struct {
  gt_bytes *file;
  size_t line;
  char word[WORD];
} text_file;

static bool is_blank(int byte) {
  return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Reads the next word of the line into l->word; empty at the end of the line, which is not
   consumed. */
static gt_status next_word(text_file *l) {
  size_t n = 0;
  int byte;
  while (is_blank(byte = gt_bytes_next(l->file))) continue;
  for (; byte >= 0 && byte != '\n' && !is_blank(byte); byte = gt_bytes_next(l->file)) {
    /* printable, because messages quote it */
    if (n + 1 < WORD) l->word[n] = (char)(byte > ' ' && byte < 127 ? byte : '?');
    n++;
  }
  if (byte == GT_BYTES_FAILED) return GT_ERR_DATA;
  gt_bytes_back(l->file, byte);
  l->word[n < WORD ? n : WORD - 1] = 0;
  if (n >= WORD)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: line %zu has a word of more than %d bytes, `%.16s...`; expected `label id:1 id:1 ...`",
        gt_bytes_path(l->file), l->line, WORD - 1, l->word);
  return GT_OK;
}

/* Reads a whole number written as 1, +1, -1 or 1.0.  Returns the text after it; NULL if there is
   none or it is 2^32 or more. */
static const char *take_number(const char *text, bool *negative, uint64_t *out) {
  *negative = *text == '-';
  if (*text == '-' || *text == '+') text++;
  if (*text < '0' || *text > '9') return NULL;
  for (*out = 0; *text >= '0' && *text <= '9'; text++)
    if ((*out = *out * 10 + (uint64_t)(*text - '0')) > UINT32_MAX) return NULL;
  return text;
}

static const char *skip_zeros(const char *text) {
  if (*text == '.')
    for (text++; *text == '0';) text++;
  return text;
}

static gt_status parse_label(const text_file *l, int32_t *label) {
  bool negative;
  uint64_t value;
  const char *rest = take_number(l->word, &negative, &value);
  if (!rest || *skip_zeros(rest) || value > 1)
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu begins with `%s`; expected a label 1, 0 or -1",
                   gt_bytes_path(l->file), l->line, l->word);
  *label = value == 1 && !negative;
  return GT_OK;
}

static gt_status parse_field(const text_file *l, size_t field, int32_t *id) {
  bool negative;
  uint64_t value, one;
  const char *rest = take_number(l->word, &negative, &value);
  if (!strchr(l->word, ':'))
    return GT_FAIL(GT_ERR_DATA, "%s: field %zu of line %zu is `%s`; expected `id:1`",
                   gt_bytes_path(l->file), field + 1, l->line, l->word);
  if (!rest || *rest != ':' || negative || value >= GT_DATA_MAX_FEATURES)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: the id in field %zu of line %zu is `%.*s`; expected a whole number from 0 to %d",
        gt_bytes_path(l->file), field + 1, l->line, (int)strcspn(l->word, ":"), l->word,
        GT_DATA_MAX_FEATURES - 1);
  const char *end = take_number(rest + 1, &negative, &one);
  if (!end || negative || one != 1 || *skip_zeros(end))
    return GT_FAIL(GT_ERR_DATA,
                   "%s: the value in field %zu of line %zu is `%s`; expected 1, as only categories "
                   "(ids) are read",
                   gt_bytes_path(l->file), field + 1, l->line, rest + 1);
  *id = (int32_t)value;
  return GT_OK;
}

/* Checks after an empty line that only blanks follow up to the end of the file. */
static gt_status expect_end(text_file *l) {
  int byte;
  while (is_blank(byte = gt_bytes_next(l->file)) || byte == '\n') continue;
  if (byte < 0) return byte == GT_BYTES_END ? GT_OK : GT_ERR_DATA;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: line %zu is empty, and others follow; expected `label id:1 id:1 ...`",
                 gt_bytes_path(l->file), l->line);
}

/* Reads the label of the next line, 0 or 1, and its *fields ids into `ids`, which has room for
   GT_LIBFM_MAX_FIELDS.  At the end of the file *more is false and nothing else is written.  Spaces
   and carriage returns at the end of a line, and empty lines at the end of the file, are ignored.
   GT_ERR_DATA names the file, the line, what was found and what was expected. */
static gt_status next_text(text_file *l, bool *more, int32_t *label, int32_t *ids, size_t *fields) {
  *more = false;
  l->line++;
  GT_TRY(next_word(l));
  if (!l->word[0]) return expect_end(l);
  GT_TRY(parse_label(l, label));
  for (*fields = 0;; ++*fields) {
    GT_TRY(next_word(l));
    if (!l->word[0]) break;
    if (*fields == GT_LIBFM_MAX_FIELDS)
      return GT_FAIL(GT_ERR_DATA, "%s: line %zu has more than %d fields, the maximum",
                     gt_bytes_path(l->file), l->line, GT_LIBFM_MAX_FIELDS);
    GT_TRY(parse_field(l, *fields, &ids[*fields]));
  }
  if (*fields == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: line %zu has a label and no fields; expected `label id:1 id:1 ...`",
                   gt_bytes_path(l->file), l->line);
  (void)gt_bytes_next(l->file); /* the end of the line */
  *more = true;
  return GT_OK;
}

/* ---- the data set ---------------------------------------------------------------------------- */

enum { BLOCK_BYTES = 1 << 20 };

typedef struct {
  const char *folder;
  char *name; /* stem of the file names */
  text_file files[2];
  size_t n[2], fields;
  int32_t largest; /* largest id */
  int32_t *ids;    /* of one line */
  int32_t *block, *labels;
  gt_data_store *store;
} libfm;

/* ---- files ----------------------------------------------------------------------------------- */

/* Returns the length of NAME in "NAME.train.libfm" or "NAME.train.libfm.gz", or 0. */
static size_t stem_of(const char *file) {
  static const char *const ends[] = {".train.libfm", ".train.libfm.gz"};
  size_t n = strlen(file);
  for (size_t i = 0; i < 2; i++) {
    size_t end = strlen(ends[i]);
    if (n > end && strcmp(file + n - end, ends[i]) == 0) return n - end;
  }
  return 0;
}

static gt_status find_name(libfm *l) {
  DIR *dir = opendir(l->folder);
  if (!dir)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: cannot be read (%s); expected a folder with NAME.train.libfm and NAME.test.libfm",
        l->folder, strerror(errno));
  gt_status status = GT_OK;
  for (const struct dirent *entry; status == GT_OK && (entry = readdir(dir));) {
    size_t stem = stem_of(entry->d_name);
    if (stem == 0 || (l->name && strncmp(l->name, entry->d_name, stem) == 0 && !l->name[stem]))
      continue;
    if (l->name) {
      status = GT_FAIL(
          GT_ERR_DATA,
          "%s: has both %s.train.libfm and %.*s.train.libfm; expected one data set a folder",
          l->folder, l->name, (int)stem, entry->d_name);
    } else {
      l->name = gt_strdup(entry->d_name);
      l->name[stem] = 0;
    }
  }
  closedir(dir);
  if (status == GT_OK && !l->name)
    status =
        GT_FAIL(GT_ERR_DATA, "%s: NAME.train.libfm is missing, with .gz and without", l->folder);
  return status;
}

static gt_status open_split(libfm *l, gt_split split) {
  size_t size = strlen(l->name) + 16;
  char *name = gt_alloc(size, 1), *path;
  gt_status status;
  snprintf(name, size, "%s.%s.libfm", l->name, gt_data_split_names[split]);
  path = gt_bytes_find(l->folder, name);
  if (path)
    status = gt_bytes_open(&l->files[split].file, path);
  else
    status = GT_FAIL(GT_ERR_DATA, "%s: %s is missing, with .gz and without", l->folder, name);
  gt_free(path);
  gt_free(name);
  return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads the next line; every line of both files must have as many fields as the first. */
static gt_status next_line(libfm *l, gt_split split, bool *more, int32_t *label) {
  text_file *file = &l->files[split];
  size_t fields = 0;
  GT_TRY(next_text(file, more, label, l->ids, &fields));
  if (!*more) return GT_OK;
  if (l->fields == 0) l->fields = fields;
  if (fields != l->fields)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: line %zu has %zu fields, but the first line of %s.train.libfm has %zu; all "
                   "need the same number",
                   gt_bytes_path(file->file), file->line, fields, l->name, l->fields);
  return GT_OK;
}

/* First pass: counts lines and fields, and finds the largest id. */
static gt_status measure(libfm *l, gt_split split) {
  int32_t label;
  bool more;
  for (;; l->n[split]++) {
    GT_TRY(next_line(l, split, &more, &label));
    if (!more) break;
    for (size_t i = 0; i < l->fields; i++)
      if (l->ids[i] > l->largest) l->largest = l->ids[i];
    if (l->n[split] == UINT32_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: has more than %u lines, the maximum of a split",
                     gt_bytes_path(l->files[split].file), UINT32_MAX);
  }
  if (l->n[split] == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: has no lines; expected 1 or more `label id:1 id:1 ...`",
                   gt_bytes_path(l->files[split].file));
  l->files[split].line = 0;
  return gt_bytes_rewind(l->files[split].file);
}

static gt_status changed(const libfm *l, gt_split split) {
  return GT_FAIL(GT_ERR_DATA, "%s: changed while it was read; import it again",
                 gt_bytes_path(l->files[split].file));
}

static gt_status copy_split(libfm *l, gt_split split, size_t block) {
  bool more;
  size_t row = l->fields * sizeof *l->ids;
  for (size_t first = 0; first < l->n[split]; first += block) {
    size_t count = l->n[split] - first < block ? l->n[split] - first : block;
    for (size_t i = 0; i < count; i++) {
      GT_TRY(next_line(l, split, &more, &l->labels[i]));
      if (!more) return changed(l, split);
      for (size_t k = 0; k < l->fields; k++)
        if (l->ids[k] > l->largest) return changed(l, split);
      memcpy(l->block + i * l->fields, l->ids, row);
    }
    GT_TRY(gt_data_store_samples(l->store, split, first, count, l->block));
    GT_TRY(gt_data_store_labels(l->store, split, first, count, l->labels));
  }
  return GT_OK;
}

static gt_status convert(libfm *l, const char *out, const gt_schema *names) {
  GT_TRY(find_name(l));
  for (int s = 0; s < 2; s++) GT_TRY(open_split(l, (gt_split)s));
  l->ids = GT_NEW_ARRAY(int32_t, GT_LIBFM_MAX_FIELDS);
  for (int s = 0; s < 2; s++) GT_TRY(measure(l, (gt_split)s));
  size_t row = l->fields * sizeof *l->ids, block = 1 + BLOCK_BYTES / (row + 1); /* about 1 MiB */
  l->block = gt_alloc(block, row);
  l->labels = GT_NEW_ARRAY(int32_t, block);
  size_t features = (size_t)l->largest + 1;
  GT_TRY(gt_import_ids(l->folder, names, &features));
  const gt_data_shape shape = {.n = {l->n[0], l->n[1]},
                               .h = 1,
                               .w = 1,
                               .c = l->fields,
                               .features = features,
                               .schema = names};
  GT_TRY(gt_data_store_create(&l->store, out, &shape));
  for (int s = 0; s < 2; s++) GT_TRY(copy_split(l, (gt_split)s, block));
  return gt_data_store_finish(l->store, l->name, 2);
}

gt_status gt_import_libfm(const char *source, const char *out, const gt_import_options *options) {
  libfm l = {.folder = source};
  gt_status status = convert(&l, out, options->names);
  gt_data_store_close(l.store);
  for (int s = 0; s < 2; s++) gt_bytes_close(l.files[s].file);
  gt_free(l.labels);
  gt_free(l.block);
  gt_free(l.ids);
  gt_free(l.name);
  return status;
}
