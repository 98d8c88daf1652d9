/* The list of import formats, and their options. */
#include "import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The options that a format has. */
enum {
  OF_WORDS = 1,
  OF_ITEMS = 2,
  OF_TEXT = 4,
  OF_PICTURES = 8,
  OF_TABLE = 16,
  OF_ARRAYS = 32,
  OF_FILES = 64
};

/* Format NAME is read by gt_import_NAME: from a folder, from tables, or from text files. */
#define FORMATS(X)                                                                                 \
  X(mnist, folder, OF_FILES)                                                                       \
  X(cifar, folder, OF_FILES)                                                                       \
  X(libfm, folder, OF_FILES)                                                                       \
  X(imdb, folder, OF_WORDS)                                                                        \
  X(text, text, OF_TEXT)                                                                           \
  X(sessions, folder, OF_ITEMS)                                                                    \
  X(folder, folder, OF_PICTURES)                                                                   \
  X(csv, table, OF_TABLE)                                                                          \
  X(npy, folder, OF_ARRAYS)

#define AS_NAME(name, source, options)   #name,
#define AS_FORMAT(name, source, options) {.source = gt_import_##name, .kind = (options)},
static const char *const names[] = {FORMATS(AS_NAME) NULL};
static const struct {
  gt_status (*folder)(const char *source, const char *out, const gt_import_options *options);
  gt_status (*table)(const char *const *sources, size_t n, const char *out,
                     const gt_import_options *options);
  gt_status (*text)(const char *const *sources, size_t n, const char *out,
                    const gt_import_options *options, gt_text_found *found);
  unsigned kind; /* OF_WORDS, ... */
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

/* Refuses the first given option that the format does not have. */
static gt_status check_options(size_t format, const gt_import_options *o) {
  const struct {
    const char *name;
    bool given;
    unsigned kinds;
  } options[] = {{"vocabulary", o->vocabulary, OF_WORDS | OF_TEXT},
                 {"length", o->length, OF_WORDS | OF_ITEMS | OF_TEXT},
                 {"vocabulary-of", o->vocabulary_of, OF_TEXT},
                 {"test-share", o->test_share, OF_TEXT | OF_PICTURES | OF_TABLE | OF_ARRAYS},
                 {"size", o->height, OF_PICTURES},
                 {"channels", o->channels, OF_PICTURES},
                 {"seed", o->seed, OF_PICTURES | OF_TABLE | OF_ARRAYS},
                 {"label", o->label, OF_TABLE},
                 {"columns", o->columns, OF_TABLE},
                 {"missing", o->missing, OF_TABLE},
                 {"as", o->as, OF_TABLE},
                 {"strict", o->strict, OF_PICTURES},
                 {"schema", o->schema, ~(unsigned)OF_TEXT}};
  const size_t n = sizeof options / sizeof *options;
  size_t refused = n, known = 0, said = 0;
  char list[160] = "";
  for (size_t i = 0; i < n; i++) known += (options[i].kinds & formats[format].kind) != 0;
  for (size_t i = n; i-- > 0;)
    if (options[i].given && !(options[i].kinds & formats[format].kind)) refused = i;
  for (size_t i = 0; i < n; i++) {
    if (!(options[i].kinds & formats[format].kind)) continue;
    const size_t at = strlen(list);
    const char *before = said == 0 ? "" : said + 1 == known ? " and " : ", ";
    snprintf(list + at, sizeof list - at, "%s--%s", before, options[i].name);
    said++;
  }
  if (refused == n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --%s is not an option of format %s; %s %s",
                 options[refused].name, names[format], list, known > 1 ? "are" : "is");
}

static gt_status check_test_share(double share) {
  if (share >= 0 && share < 1) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --test-share is %g; expected 0 or more, and less than 1",
                 share);
}

/* ---- import ---------------------------------------------------------------------------------- */

/* Checks the options of a format with this number of files, and fills in its defaults. */
static gt_status complete(size_t format, size_t files, const gt_import_options *given,
                          gt_import_options *all) {
  const unsigned kind = formats[format].kind;
  GT_TRY(check_options(format, given));
  *all = *given;
  if (given->vocabulary && (given->vocabulary_of || given->schema))
    return GT_FAIL(GT_ERR_JOB, "data import has --vocabulary and --%s; expected one of them",
                   given->schema ? "schema" : "vocabulary-of");
  if (kind == OF_TABLE && files > 1 && given->test_share && *given->test_share > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "data import --test-share is %g, and the test split has a file of its own; "
                   "expected one file",
                   *given->test_share);
  if (!all->vocabulary) all->vocabulary = kind == OF_TEXT ? TOKENS : WORDS;
  if (!all->length)
    all->length = kind == OF_TEXT ? TOKENS_LENGTH : kind == OF_WORDS ? WORDS_LENGTH : ITEMS_LENGTH;
  all->holds_back = given->seed || (given->test_share && *given->test_share > 0);
  if (!all->test_share) all->test_share = &TEST_SHARE;
  if (!all->seed) all->seed = 1;
  GT_TRY(check_range("vocabulary", all->vocabulary, kind == OF_TEXT ? TOKENS : 1, VOCABULARY_MAX));
  GT_TRY(check_range("length", all->length, 1, LENGTH_MAX));
  return check_test_share(*all->test_share);
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
  gt_import_options all;
  gt_schema *schema = NULL;
  gt_status status = GT_OK;
  size_t i;
  GT_TRY(find_format(&i, format));
  GT_TRY(complete(i, n, options, &all));
  if (!(formats[i].kind & (OF_TEXT | OF_TABLE | OF_ARRAYS)) && !is_folder(sources[0]))
    return no_folder(sources[0]);
  if (all.schema) status = gt_schema_read(&schema, all.schema);
  all.names = schema;
  if (status == GT_OK)
    status = formats[i].text    ? formats[i].text(sources, n, out, &all, found ? found : &ignored)
             : formats[i].table ? formats[i].table(sources, n, out, &all)
                                : formats[i].folder(sources[0], out, &all);
  gt_schema_close(schema);
  return status;
}
