/* The list of import formats. */
#include "import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Format NAME is read by gt_import_NAME: from files; from text, with both options; or from items,
   with --length. */
#define FORMATS(X) X(mnist, files) X(cifar, files) X(libfm, files) X(imdb, text) X(sessions, items)

#define AS_NAME(name, kind)   #name,
#define AS_FORMAT(name, kind) {.kind = gt_import_##name},
static const char *const names[] = {FORMATS(AS_NAME) NULL};
static const struct {
  gt_status (*files)(const char *source, const char *out);
  gt_status (*text)(const char *source, const char *out, const gt_text_options *options);
  gt_status (*items)(const char *source, const char *out, const gt_text_options *options);
} formats[] = {FORMATS(AS_FORMAT)};
#define NFORMATS (sizeof formats / sizeof formats[0])

const char *const *gt_data_formats(void) {
  return names;
}

static gt_status unknown_format(const char *format) {
  char known[128] = "";
  for (size_t i = 0, at = 0; i < NFORMATS; i++, at = strlen(known))
    snprintf(known + at, sizeof known - at, "%s%.31s", i ? ", " : "", names[i]);
  const char *near = gt_nearest(format, names, NFORMATS);
  return GT_FAIL(GT_ERR_JOB, "format `%.80s` is not known; one of %s is needed%s%s%s", format,
                 known, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static gt_status no_folder(const char *path) {
  struct stat about;
  if (stat(path, &about) == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: is a file; the folder that holds the files to import is needed", path);
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: there is no such folder (%s); the one that holds the files to import is needed", path,
      strerror(errno));
}

/* ---- options of text ------------------------------------------------------------------------- */

enum { WORDS = 20000, WORDS_MAX = 1000000, LENGTH = 200, LENGTH_MAX = 65536, ITEMS = 50 };

static gt_status check_option(const char *name, uint64_t value, uint64_t most) {
  if (value <= most) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --%s is %llu; 1 to %llu is needed", name,
                 (unsigned long long)value, (unsigned long long)most);
}

static gt_status import_text(size_t format, const char *source, const char *out,
                             const gt_text_options *options) {
  GT_TRY(check_option("vocabulary", options->vocabulary, WORDS_MAX));
  GT_TRY(check_option("length", options->length, LENGTH_MAX));
  const gt_text_options all = {.vocabulary = options->vocabulary ? options->vocabulary : WORDS,
                               .length = options->length ? options->length : LENGTH};
  return formats[format].text(source, out, &all);
}

static gt_status import_items(size_t format, const char *source, const char *out,
                              const gt_text_options *options) {
  if (options->vocabulary)
    return GT_FAIL(GT_ERR_JOB,
                   "data import --vocabulary is for formats of text; format %s has no text, so it "
                   "is not needed",
                   names[format]);
  GT_TRY(check_option("length", options->length, LENGTH_MAX));
  const gt_text_options all = {.length = options->length ? options->length : ITEMS};
  return formats[format].items(source, out, &all);
}

static gt_status import_files(size_t format, const char *source, const char *out,
                              const gt_text_options *options) {
  if (options->vocabulary || options->length)
    return GT_FAIL(GT_ERR_JOB,
                   "data import --%s is for formats of text; format %s has no text, so it is not "
                   "needed",
                   options->vocabulary ? "vocabulary" : "length", names[format]);
  return formats[format].files(source, out);
}

static gt_status import_as(size_t format, const char *source, const char *out,
                           const gt_text_options *options) {
  if (formats[format].text) return import_text(format, source, out, options);
  if (formats[format].items) return import_items(format, source, out, options);
  return import_files(format, source, out, options);
}

gt_status gt_data_import_text(const char *format, const char *source, const char *out,
                              const gt_text_options *options) {
  for (size_t i = 0; i < NFORMATS; i++)
    if (strcmp(names[i], format) == 0)
      return is_folder(source) ? import_as(i, source, out, options) : no_folder(source);
  return unknown_format(format);
}

gt_status gt_data_import(const char *format, const char *source, const char *out) {
  return gt_data_import_text(format, source, out, &(gt_text_options){0});
}
