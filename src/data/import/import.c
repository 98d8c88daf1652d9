/* The list of import formats. */
#include "import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Format NAME is read by gt_import_NAME: from a folder, from one with options for words or for
   items (--length), or from text files. */
#define FORMATS(X)                                                                                 \
  X(mnist, folder)                                                                                 \
  X(cifar, folder)                                                                                 \
  X(libfm, folder)                                                                                 \
  X(imdb, words)                                                                                   \
  X(text, text)                                                                                    \
  X(sessions, items)

#define AS_NAME(name, kind)   #name,
#define AS_FORMAT(name, kind) {.kind = gt_import_##name},
static const char *const names[] = {FORMATS(AS_NAME) NULL};
static const struct {
  gt_status (*folder)(const char *source, const char *out);
  gt_status (*words)(const char *source, const char *out, const gt_text_options *options);
  gt_status (*items)(const char *source, const char *out, const gt_text_options *options);
  gt_status (*text)(const char *const *sources, size_t n, const char *out,
                    const gt_text_options *options, gt_text_found *found);
} formats[] = {FORMATS(AS_FORMAT)};
#define NFORMATS (sizeof formats / sizeof formats[0])

static gt_status unknown_format(const char *format) {
  char known[128] = "";
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

/* Returns the first given option that the format does not have; NULL: none. */
static const char *unknown_option(size_t format, const gt_text_options *o) {
  const bool text = formats[format].text, words = text || formats[format].words;
  return o->vocabulary && !words                          ? "vocabulary"
         : o->length && !(words || formats[format].items) ? "length"
         : o->vocabulary_of && !text                      ? "vocabulary-of"
         : o->test_share && !text                         ? "test-share"
                                                          : NULL;
}

static gt_status check_options(size_t format, const gt_text_options *o) {
  const char *unknown = unknown_option(format, o);
  if (!unknown) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --%s is not an option of format %s; %s", unknown,
                 names[format],
                 formats[format].words   ? "--vocabulary and --length are"
                 : formats[format].items ? "--length is"
                                         : "it has none");
}

/* ---- import ---------------------------------------------------------------------------------- */

static gt_status import_words(size_t format, const char *source, const char *out,
                              const gt_text_options *options) {
  const gt_text_options all = {.vocabulary = options->vocabulary ? options->vocabulary : WORDS,
                               .length = options->length ? options->length : WORDS_LENGTH};
  GT_TRY(check_range("vocabulary", all.vocabulary, 1, VOCABULARY_MAX));
  GT_TRY(check_range("length", all.length, 1, LENGTH_MAX));
  return formats[format].words(source, out, &all);
}

static gt_status import_items(size_t format, const char *source, const char *out,
                              const gt_text_options *options) {
  const gt_text_options all = {.length = options->length ? options->length : ITEMS_LENGTH};
  GT_TRY(check_range("length", all.length, 1, LENGTH_MAX));
  return formats[format].items(source, out, &all);
}

static gt_status import_text(size_t format, const char *const *sources, size_t n, const char *out,
                             const gt_text_options *options, gt_text_found *found) {
  gt_text_options all = *options;
  if (options->vocabulary && options->vocabulary_of)
    return GT_FAIL(GT_ERR_JOB,
                   "data import has --vocabulary and --vocabulary-of; expected one of them");
  if (!all.vocabulary) all.vocabulary = TOKENS;
  if (!all.length) all.length = TOKENS_LENGTH;
  if (!all.test_share) all.test_share = &TEST_SHARE;
  GT_TRY(check_range("vocabulary", all.vocabulary, TOKENS, VOCABULARY_MAX));
  GT_TRY(check_range("length", all.length, 1, LENGTH_MAX));
  if (!(*all.test_share >= 0 && *all.test_share < 1))
    return GT_FAIL(GT_ERR_JOB,
                   "data import --test-share is %g; expected 0 or more, and less than 1",
                   *all.test_share);
  return formats[format].text(sources, n, out, &all, found);
}

static gt_status import_folder(size_t format, const char *source, const char *out,
                               const gt_text_options *options) {
  if (!is_folder(source)) return no_folder(source);
  return formats[format].words   ? import_words(format, source, out, options)
         : formats[format].items ? import_items(format, source, out, options)
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
  *takes_files = formats[i].text;
  return GT_OK;
}

gt_status gt_data_import(const char *format, const char *const *sources, size_t n, const char *out,
                         const gt_text_options *options, gt_text_found *found) {
  gt_text_found ignored;
  size_t i;
  GT_TRY(find_format(&i, format));
  GT_TRY(check_options(i, options));
  return formats[i].text ? import_text(i, sources, n, out, options, found ? found : &ignored)
                         : import_folder(i, sources[0], out, options);
}
