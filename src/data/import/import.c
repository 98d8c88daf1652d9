/* The list of import formats. */
#include "import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Format NAME is read by gt_import_NAME: from a folder, from one with options for words, for items
   (--length) or for pictures, from tables, or from text files. */
#define FORMATS(X)                                                                                 \
  X(mnist, folder)                                                                                 \
  X(cifar, folder)                                                                                 \
  X(libfm, folder)                                                                                 \
  X(imdb, words)                                                                                   \
  X(text, text)                                                                                    \
  X(sessions, items)                                                                               \
  X(folder, pictures)                                                                              \
  X(csv, table)

#define AS_NAME(name, kind)   #name,
#define AS_FORMAT(name, kind) {.kind = gt_import_##name},
static const char *const names[] = {FORMATS(AS_NAME) NULL};
static const struct {
  gt_status (*folder)(const char *source, const char *out);
  gt_status (*words)(const char *source, const char *out, const gt_import_options *options);
  gt_status (*items)(const char *source, const char *out, const gt_import_options *options);
  gt_status (*pictures)(const char *source, const char *out, const gt_import_options *options);
  gt_status (*table)(const char *const *sources, size_t n, const char *out,
                     const gt_import_options *options);
  gt_status (*text)(const char *const *sources, size_t n, const char *out,
                    const gt_import_options *options, gt_text_found *found);
} formats[] = {FORMATS(AS_FORMAT)};
#define NFORMATS (sizeof formats / sizeof formats[0])

static gt_status unknown_format(const char *format) {
  char known[160] = "";
  for (size_t i = 0, at = 0; i < NFORMATS; i++, at = strlen(known))
    snprintf(known + at, sizeof known - at, "%s%.31s", i ? ", " : "", names[i]);
  const char *near = gt_nearest(format, names, NFORMATS);
  return GT_FAIL(GT_ERR_JOB, "format `%.80s` is not known; expected one of %s%s%s%s", format, known,
                 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static gt_status no_folder(const char *path) {
  struct stat about;
  if (stat(path, &about) == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: is a file; expected the folder that holds the files to import",
                   path);
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: there is no such folder (%s); expected the one that holds the files to import", path,
      strerror(errno));
}

/* ---- options --------------------------------------------------------------------------------- */

enum {
  WORDS = 20000,
  WORDS_LENGTH = 200,
  ITEMS_LENGTH = 50,
  TOKENS = 256,
  TOKENS_LENGTH = 128,
  VOCABULARY_MAX = 1000000,
  LENGTH_MAX = 65536
};
static const double TEST_SHARE = 0.1;

static gt_status check_range(const char *name, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --%s is %llu; expected %llu to %llu", name,
                 (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
}

enum { OF_WORDS = 1, OF_ITEMS = 2, OF_TEXT = 4, OF_PICTURES = 8, OF_TABLE = 16 };

static unsigned kind_of(size_t format) {
  return formats[format].words      ? OF_WORDS
         : formats[format].items    ? OF_ITEMS
         : formats[format].text     ? OF_TEXT
         : formats[format].pictures ? OF_PICTURES
         : formats[format].table    ? OF_TABLE
                                    : 0;
}

/* Refuses the first given option that the format does not have. */
static gt_status check_options(size_t format, const gt_import_options *o) {
  const struct {
    const char *name;
    bool given;
    unsigned kinds;
  } options[] = {{"vocabulary", o->vocabulary, OF_WORDS | OF_TEXT},
                 {"length", o->length, OF_WORDS | OF_ITEMS | OF_TEXT},
                 {"vocabulary-of", o->vocabulary_of, OF_TEXT},
                 {"test-share", o->test_share, OF_TEXT | OF_PICTURES | OF_TABLE},
                 {"size", o->height, OF_PICTURES},
                 {"seed", o->seed, OF_PICTURES | OF_TABLE},
                 {"label", o->label, OF_TABLE},
                 {"columns", o->columns, OF_TABLE},
                 {"missing", o->missing, OF_TABLE},
                 {"strict", o->strict, OF_PICTURES}};
  const size_t n = sizeof options / sizeof *options;
  size_t refused = n, known = 0, said = 0;
  char list[160] = "";
  for (size_t i = 0; i < n; i++) known += (options[i].kinds & kind_of(format)) != 0;
  for (size_t i = n; i-- > 0;)
    if (options[i].given && !(options[i].kinds & kind_of(format))) refused = i;
  for (size_t i = 0; i < n; i++) {
    if (!(options[i].kinds & kind_of(format))) continue;
    const size_t at = strlen(list);
    const char *before = said == 0 ? "" : said + 1 == known ? " and " : ", ";
    snprintf(list + at, sizeof list - at, "%s--%s", before, options[i].name);
    said++;
  }
  if (refused == n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --%s is not an option of format %s; %s%s",
                 options[refused].name, names[format], known ? list : "it has none",
                 known > 1 ? " are"
                 : known   ? " is"
                           : "");
}

static gt_status check_test_share(double share) {
  if (share >= 0 && share < 1) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --test-share is %g; expected 0 or more, and less than 1",
                 share);
}

/* ---- import ---------------------------------------------------------------------------------- */

static gt_status import_words(size_t format, const char *source, const char *out,
                              const gt_import_options *options) {
  const gt_import_options all = {.vocabulary = options->vocabulary ? options->vocabulary : WORDS,
                                 .length = options->length ? options->length : WORDS_LENGTH};
  GT_TRY(check_range("vocabulary", all.vocabulary, 1, VOCABULARY_MAX));
  GT_TRY(check_range("length", all.length, 1, LENGTH_MAX));
  return formats[format].words(source, out, &all);
}

static gt_status import_items(size_t format, const char *source, const char *out,
                              const gt_import_options *options) {
  const gt_import_options all = {.length = options->length ? options->length : ITEMS_LENGTH};
  GT_TRY(check_range("length", all.length, 1, LENGTH_MAX));
  return formats[format].items(source, out, &all);
}

/* Of formats that hold back samples for tests. */
static gt_status held_back(gt_import_options *all, const gt_import_options *options) {
  *all = *options;
  if (!all->test_share) all->test_share = &TEST_SHARE;
  if (!all->seed) all->seed = 1;
  return check_test_share(*all->test_share);
}

static gt_status import_pictures(size_t format, const char *source, const char *out,
                                 const gt_import_options *options) {
  gt_import_options all;
  GT_TRY(held_back(&all, options));
  return formats[format].pictures(source, out, &all);
}

static gt_status import_table(size_t format, const char *const *sources, size_t n, const char *out,
                              const gt_import_options *options) {
  gt_import_options all;
  GT_TRY(held_back(&all, options));
  return formats[format].table(sources, n, out, &all);
}

static gt_status import_text(size_t format, const char *const *sources, size_t n, const char *out,
                             const gt_import_options *options, gt_text_found *found) {
  gt_import_options all = *options;
  if (options->vocabulary && options->vocabulary_of)
    return GT_FAIL(GT_ERR_JOB,
                   "data import has --vocabulary and --vocabulary-of; expected one of them");
  if (!all.vocabulary) all.vocabulary = TOKENS;
  if (!all.length) all.length = TOKENS_LENGTH;
  if (!all.test_share) all.test_share = &TEST_SHARE;
  GT_TRY(check_range("vocabulary", all.vocabulary, TOKENS, VOCABULARY_MAX));
  GT_TRY(check_range("length", all.length, 1, LENGTH_MAX));
  GT_TRY(check_test_share(*all.test_share));
  return formats[format].text(sources, n, out, &all, found);
}

static gt_status import_folder(size_t format, const char *source, const char *out,
                               const gt_import_options *options) {
  if (!is_folder(source)) return no_folder(source);
  return formats[format].words      ? import_words(format, source, out, options)
         : formats[format].items    ? import_items(format, source, out, options)
         : formats[format].pictures ? import_pictures(format, source, out, options)
                                    : formats[format].folder(source, out);
}

static gt_status find_format(size_t *out, const char *format) {
  *out = 0;
  while (*out < NFORMATS && strcmp(names[*out], format) != 0) ++*out;
  return *out < NFORMATS ? GT_OK : unknown_format(format);
}

gt_status gt_data_format_find(bool *takes_files, const char *format) {
  size_t i;
  GT_TRY(find_format(&i, format));
  *takes_files = formats[i].text || formats[i].table;
  return GT_OK;
}

gt_status gt_data_import(const char *format, const char *const *sources, size_t n, const char *out,
                         const gt_import_options *options, gt_text_found *found) {
  gt_text_found ignored;
  size_t i;
  GT_TRY(find_format(&i, format));
  GT_TRY(check_options(i, options));
  return formats[i].text    ? import_text(i, sources, n, out, options, found ? found : &ignored)
         : formats[i].table ? import_table(i, sources, n, out, options)
                            : import_folder(i, sources[0], out, options);
}
