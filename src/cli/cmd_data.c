/* geotrain data: creates and describes data sets. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "geotrain/data.h"
#include "geotrain/store.h"
#include "options.h"

static const char *const input_names[] = {"uint8", "float32", "int32"}; /* by gt_input */

static gt_status said(const char *out) {
  struct stat st;
  char size[32];
  printf("wrote %s (%s)\n", out,
         gt_format_size(size, sizeof size, stat(out, &st) == 0 ? (double)st.st_size : 0));
  return GT_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

static gt_status parse_count(const char *command, const char *option, const char *text,
                             uint64_t *out) {
  char *end;
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end || errno)
    return GT_FAIL(GT_ERR_JOB, "data %s --%s is `%s`; expected a whole number", command, option,
                   text);
  *out = v;
  return GT_OK;
}

/* Calls `take` for each option of `data argv[0]`; `known` lists them.  optind is then the first
   word that is not an option. */
static gt_status
take_options(int argc, char **argv, const struct option *options, const char *known,
             gt_status (*take)(void *context, const struct option *option, const char *text),
             void *context) {
  int c, which = 0;
  opterr = 0;
  optind = 0; /* glibc: restart getopt with this argv */
  while ((c = getopt_long(argc, argv, ":", options, &which)) != -1) {
    if (c == ':')
      return GT_FAIL(GT_ERR_JOB, "data %s: option `%s` has no value", argv[0], argv[optind - 1]);
    if (c == '?')
      return GT_FAIL(GT_ERR_JOB, "data %s: option `%s` is not known; %s are", argv[0],
                     gt_option_word(argc, argv), known);
    GT_TRY(take(context, &options[which], optarg));
  }
  return GT_OK;
}

/* ---- import ---------------------------------------------------------------------------------- */

typedef struct {
  gt_import_options format;
  double test_share;
  bool force;
} import_options;

/* Reads a size: 64, or 48x64 (height x width). */
static gt_status parse_size(const char *text, gt_import_options *o) {
  enum { SIDE_MAX = 4096 };
  char *end;
  const unsigned long h = strtoul(text, &end, 10), w = *end == 'x' ? strtoul(end + 1, &end, 10) : h;
  if (text[0] >= '0' && text[0] <= '9' && !*end && h >= 1 && h <= SIDE_MAX && w >= 1 &&
      w <= SIDE_MAX)
    return o->height = h, o->width = w, GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "data import --size is `%s`; expected pixels, 1 to %d: a side, as in 64, or "
                 "height x width, as in 48x64",
                 text, SIDE_MAX);
}

static gt_status take_import_option(void *context, const struct option *option, const char *text) {
  import_options *o = context;
  uint64_t value;
  if (option->val == 'o') return o->format.vocabulary_of = text, GT_OK;
  if (option->val == 'f') return o->force = true, GT_OK;
  if (option->val == 's') return o->format.strict = true, GT_OK;
  if (option->val == 'b') return o->format.label = text, GT_OK;
  if (option->val == 'c') return o->format.columns = text, GT_OK;
  if (option->val == 'm') return o->format.missing = text, GT_OK;
  if (option->val == 'a') return o->format.as = text, GT_OK;
  if (option->val == 'h') return o->format.schema = text, GT_OK;
  if (option->val == 'z') return parse_size(text, &o->format);
  if (option->val == 't') {
    char *end;
    o->format.test_share = &o->test_share;
    o->test_share = strtod(text, &end);
    return end != text && *end == 0
               ? GT_OK
               : GT_FAIL(GT_ERR_JOB, "data import --test-share is `%s`; expected a number", text);
  }
  GT_TRY(parse_count("import", option->name, text, &value));
  if (value == 0)
    return GT_FAIL(GT_ERR_JOB, "data import --%s is 0; expected 1 or more", option->name);
  if (option->val == 'n' && value != 1 && value != 3)
    return GT_FAIL(GT_ERR_JOB, "data import --channels is %s; expected 1 (gray) or 3 (RGB)", text);
  *(option->val == 'n'   ? &o->format.channels
    : option->val == 'v' ? &o->format.vocabulary
    : option->val == 'l' ? &o->format.length
                         : &o->format.seed) = value;
  return GT_OK;
}

static void say_text(const gt_text_found *f) {
  printf(
      "text: %zu bytes, a vocabulary of %zu; %zu training and %zu test samples, behind which %zu "
      "and %zu\n      tokens are left that fill none\n",
      f->bytes, f->vocabulary, f->samples[GT_SPLIT_TRAIN], f->samples[GT_SPLIT_TEST],
      f->left[GT_SPLIT_TRAIN], f->left[GT_SPLIT_TEST]);
}

static const struct option import_table[] = {{"vocabulary", required_argument, NULL, 'v'},
                                             {"length", required_argument, NULL, 'l'},
                                             {"vocabulary-of", required_argument, NULL, 'o'},
                                             {"test-share", required_argument, NULL, 't'},
                                             {"size", required_argument, NULL, 'z'},
                                             {"channels", required_argument, NULL, 'n'},
                                             {"seed", required_argument, NULL, 'e'},
                                             {"strict", no_argument, NULL, 's'},
                                             {"label", required_argument, NULL, 'b'},
                                             {"columns", required_argument, NULL, 'c'},
                                             {"missing", required_argument, NULL, 'm'},
                                             {"as", required_argument, NULL, 'a'},
                                             {"schema", required_argument, NULL, 'h'},
                                             {"force", no_argument, NULL, 'f'},
                                             {NULL, 0, NULL, 0}};

static gt_status import(int argc, char **argv) {
  import_options o = {{0}, 0, false};
  gt_text_found found = {0};
  GT_TRY(take_options(argc, argv, import_table,
                      "--vocabulary, --length, --vocabulary-of, --test-share, --size, --channels, "
                      "--seed, --strict, --label, --columns, --missing, --as, --schema and --force",
                      take_import_option, &o));
  const int words = argc - optind;
  bool files = false;
  if (words > 0) GT_TRY(gt_data_format_find(&files, argv[optind]));
  if (files ? words < 3 : words != 3)
    return GT_FAIL(GT_ERR_JOB, "data import has %d arguments; expected %s", words,
                   files ? "text|csv FILE... OUT.h5" : "FORMAT SOURCE OUT.h5");
  const char *out = argv[argc - 1];
  for (int i = optind + 1; i < argc - 1; i++) GT_TRY(gt_data_check_output(out, argv[i], o.force));
  GT_TRY(gt_data_check_output(out, o.format.vocabulary_of, o.force));
  GT_TRY(gt_data_check_output(out, o.format.schema, o.force));
  gt_progress_begin("data import");
  const gt_status status = gt_data_import(argv[optind], (const char *const *)argv + optind + 1,
                                          (size_t)words - 2, out, &o.format, &found);
  gt_progress_end();
  GT_TRY(status);
  if (found.bytes > 0) say_text(&found);
  return said(out);
}

/* ---- synth ----------------------------------------------------------------------------------- */

typedef struct {
  gt_synth_spec spec;
  bool force;
} synth_options;

static gt_status take_synth_option(void *context, const struct option *option, const char *text) {
  synth_options *o = context;
  gt_synth_spec *spec = &o->spec;
  uint64_t value;
  if (option->val == 'f') return o->force = true, GT_OK;
  GT_TRY(parse_count("synth", option->name, text, &value));
  switch (option->val) {
  case 't':
    spec->ntrain = value;
    break;
  case 'e':
    spec->ntest = value;
    break;
  case 'c':
    spec->classes = value;
    break;
  default:
    spec->seed = value;
    break;
  }
  return GT_OK;
}

static const struct option synth_table[] = {
    {"train", required_argument, NULL, 't'},   {"test", required_argument, NULL, 'e'},
    {"classes", required_argument, NULL, 'c'}, {"seed", required_argument, NULL, 's'},
    {"force", no_argument, NULL, 'f'},         {NULL, 0, NULL, 0},
};

static gt_status synth(int argc, char **argv) {
  synth_options o = {gt_synth_default(), false};
  GT_TRY(take_options(argc, argv, synth_table, "--train, --test, --classes, --seed and --force",
                      take_synth_option, &o));
  if (argc - optind != 1)
    return GT_FAIL(GT_ERR_JOB, "data synth has %d file names; expected OUT.h5", argc - optind);
  GT_TRY(gt_data_check_output(argv[optind], NULL, o.force));
  GT_TRY(gt_data_synth(argv[optind], &o.spec));
  return said(argv[optind]);
}

/* ---- split ----------------------------------------------------------------------------------- */

enum { SPLIT_REGIONS_MAX = 65535 };

typedef struct {
  gt_partition partition;
  double *shares;
  size_t nshares;
  gt_tests tests;
  const char *folder;
  bool force;
} split_options;

static void say_written(const char *path) {
  (void)said(path);
}

/* Finds the index of the word. */
static gt_status parse_word(const char *option, const char *text, const char *const *words,
                            size_t n, int *out) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(text, words[i]) == 0) return *out = (int)i, GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data split --%s is `%s`; expected %s, %s or %s", option, text,
                 words[0], words[1], words[2]);
}

static gt_status parse_number(const char *option, const char *text, char **end, double *out) {
  *out = strtod(text, end);
  if (*end != text && isfinite(*out) && *out > 0 && (**end == 0 || **end == ',')) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data split --%s has `%s`; expected a number above 0", option, text);
}

static gt_status parse_shares(split_options *o, const char *text) {
  gt_free(o->shares);
  o->nshares = 0;
  o->shares = GT_NEW_ARRAY(double, strlen(text) + 1);
  for (char *end = NULL;; text = end + 1) {
    GT_TRY(parse_number("shares", text, &end, &o->shares[o->nshares]));
    o->nshares++;
    if (*end == 0) return GT_OK;
  }
}

static gt_status parse_alpha(split_options *o, const char *text) {
  char *end;
  GT_TRY(parse_number("alpha", text, &end, &o->partition.alpha));
  return *end == 0 ? GT_OK
                   : GT_FAIL(GT_ERR_JOB, "data split --alpha is `%s`; expected one number", text);
}

static gt_status take_option(void *context, const struct option *option, const char *text) {
  static const char *const tests[] = {"all", "first", "last"}; /* in the order of gt_tests */
  split_options *o = context;
  uint64_t count;
  int word = 0;
  switch (option->val) {
  case 'r':
    GT_TRY(parse_count("split", option->name, text, &count));
    if (count < 1 || count > SPLIT_REGIONS_MAX)
      return GT_FAIL(GT_ERR_JOB, "data split --regions is %s; expected 1 to %d", text,
                     SPLIT_REGIONS_MAX);
    o->partition.nregions = count;
    return GT_OK;
  case 's':
    return parse_count("split", option->name, text, &o->partition.seed);
  case 'h':
    return parse_shares(o, text);
  case 'a':
    return parse_alpha(o, text);
  case 'b':
    GT_TRY(parse_word(option->name, text, gt_partition_names, GT_PART_FILE, &word));
    o->partition.kind = (gt_part_kind)word;
    return GT_OK;
  case 'e':
    GT_TRY(parse_word(option->name, text, tests, 3, &word));
    o->tests = (gt_tests)word;
    return GT_OK;
  case 'f':
    o->force = true;
    return GT_OK;
  default:
    o->folder = text;
    return GT_OK;
  }
}

static const struct option split_table[] = {
    {"regions", required_argument, NULL, 'r'},
    {"by", required_argument, NULL, 'b'},
    {"shares", required_argument, NULL, 'h'},
    {"alpha", required_argument, NULL, 'a'},
    {"seed", required_argument, NULL, 's'},
    {"test", required_argument, NULL, 'e'},
    {"to", required_argument, NULL, 'o'},
    {"force", no_argument, NULL, 'f'},
    {NULL, 0, NULL, 0},
};

static gt_status split_as(split_options *o, int argc, char **argv) {
  GT_TRY(take_options(argc, argv, split_table,
                      "--regions, --by, --shares, --alpha, --seed, --test, --to and --force",
                      take_option, o));
  if (argc - optind != 1)
    return GT_FAIL(GT_ERR_JOB, "data split has %d file names; expected FILE.h5", argc - optind);
  if (o->partition.nregions == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "data split has no --regions; expected the number of files to write");
  if (o->shares && o->nshares != o->partition.nregions)
    return GT_FAIL(GT_ERR_JOB, "data split --shares has %zu numbers; expected %zu, one a region",
                   o->nshares, o->partition.nregions);
  o->partition.shares = o->shares;
  return gt_data_split(argv[optind], &o->partition, o->tests, o->folder, o->force, say_written);
}

static gt_status split(int argc, char **argv) {
  split_options o = {.partition = {.kind = GT_PART_SHARES, .alpha = 0.5, .seed = 1},
                     .tests = GT_TESTS_ALL};
  gt_status status = split_as(&o, argc, argv);
  gt_free(o.shares);
  return status;
}

/* ---- schema and classes ---------------------------------------------------------------------- */

typedef struct {
  const char *file; /* --out of `schema`, --schema of `classes`, --png of `info` */
  bool force;
} name_options;

static gt_status take_name_option(void *context, const struct option *option, const char *text) {
  name_options *o = context;
  if (option->val == 'f') return o->force = true, GT_OK;
  return o->file = text, GT_OK;
}

static int first_byte(const char *path) {
  FILE *file = fopen(path, "re");
  const int first = file ? getc(file) : EOF;
  if (file) fclose(file);
  return first;
}

static bool is_schema(const char *path) {
  char text[4096];
  FILE *file = fopen(path, "re");
  const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[n] = '\0';
  return text[0] == '{' && strstr(text, "geotrain_data_schema");
}

static const struct option schema_table[] = {
    {"out", required_argument, NULL, 'o'}, {"force", no_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};

static gt_status schema(int argc, char **argv) {
  name_options o = {0};
  char *text;
  GT_TRY(take_options(argc, argv, schema_table, "--out and --force", take_name_option, &o));
  if (optind == argc)
    return GT_FAIL(GT_ERR_JOB, "data schema has no file names; expected data sets or schemas");
  for (int i = optind; o.file && i < argc; i++)
    GT_TRY(gt_output_may_replace(o.file, argv[i], o.force ? NULL : "schema", is_schema));
  GT_TRY(gt_data_schema((const char *const *)argv + optind, (size_t)(argc - optind), &text));
  gt_status status = GT_OK;
  if (!o.file)
    puts(text);
  else if (!gt_file_replace(o.file, text, strlen(text)))
    status = GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", o.file, strerror(errno));
  gt_free(text);
  return status == GT_OK && o.file ? said(o.file) : status;
}

static const struct option classes_table[] = {{"schema", required_argument, NULL, 's'},
                                              {"force", no_argument, NULL, 'f'},
                                              {NULL, 0, NULL, 0}};

static gt_status classes(int argc, char **argv) {
  name_options o = {0};
  GT_TRY(take_options(argc, argv, classes_table, "--schema and --force", take_name_option, &o));
  const int words = argc - optind;
  if (words < 2 || (words == 2 && !o.file))
    return GT_FAIL(
        GT_ERR_JOB,
        "data classes has %d arguments; expected FILE.h5 OUT.h5 and OLD=NEW, or --schema", words);
  const char *const *word = (const char *const *)argv + optind;
  GT_TRY(gt_data_check_output(word[1], word[0], o.force));
  GT_TRY(gt_data_check_output(word[1], o.file, o.force));
  GT_TRY(gt_data_classes(word[0], word[1], word + 2, (size_t)words - 2, o.file));
  return said(word[1]);
}

/* ---- info ------------------------------------------------------------------------------------ */

enum { CHANNELS_LISTED = 16 };

static void print_channels(const char *title, const float *values, size_t n) {
  printf("%-12s", title);
  for (size_t i = 0; i < n; i++) printf(" %.6f", (double)values[i]);
  printf("\n");
}

enum { CLASSES_LISTED = 1000 }; /* with more classes only the total is printed */

static void print_classes(gt_dataset *dataset) {
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  const int32_t *train = gt_dataset_labels(dataset, GT_SPLIT_TRAIN),
                *test = gt_dataset_labels(dataset, GT_SPLIT_TEST);
  size_t *counts = GT_NEW_ARRAY(size_t, 2 * info->classes);
  for (size_t i = 0; i < info->ntrain; i++) counts[2 * train[i]]++;
  for (size_t i = 0; i < info->ntest; i++) counts[2 * test[i] + 1]++;
  printf("\n%-12s %10s %10s\n", "label", "train", "test");
  const char *name = info->class_names;
  for (size_t k = 0; k < info->classes && info->classes <= CLASSES_LISTED; k++) {
    printf("%-12zu %10zu %10zu%s%s\n", k, counts[2 * k], counts[2 * k + 1], name ? "  " : "",
           name ? name : "");
    if (name) name += strlen(name) + 1;
  }
  printf("%-12s %10zu %10zu\n", "all", info->ntrain, info->ntest);
  gt_free(counts);
}

static bool is_png(const char *path) {
  return first_byte(path) == 0x89;
}

static gt_status draw(gt_dataset *dataset, const char *png) {
  size_t rows, columns;
  GT_TRY(gt_dataset_sheet(dataset, png, &rows, &columns));
  printf("\n%s: a row for each of %zu classes, with up to %zu training images\n", png, rows,
         columns);
  return GT_OK;
}

static gt_status info(int argc, char **argv) {
  static const struct option options[] = {
      {"png", required_argument, NULL, 'p'}, {"force", no_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
  name_options o = {0};
  gt_dataset *dataset;
  struct stat st;
  char size[32];
  GT_TRY(take_options(argc, argv, options, "--png and --force", take_name_option, &o));
  if (argc - optind != 1)
    return GT_FAIL(GT_ERR_JOB, "data info has %d file names; expected FILE.h5", argc - optind);
  const char *path = argv[optind];
  if (o.file) GT_TRY(gt_output_may_replace(o.file, path, o.force ? NULL : "PNG", is_png));
  GT_TRY(gt_dataset_open(&dataset, path));
  const gt_dataset_info *d = gt_dataset_describe(dataset);
  printf("%-12s %s (%s)\n", "file", path,
         gt_format_size(size, sizeof size, stat(path, &st) == 0 ? (double)st.st_size : 0));
  printf("%-12s %d\n", "schema", GT_DATASET_SCHEMA);
  printf("%-12s %s\n", "name", d->name);
  printf("%-12s %zu x %zu x %zu %s\n", "shape", d->h, d->w, d->c, input_names[d->input]);
  if (d->input == GT_INPUT_IDS) printf("%-12s %zu\n", "features", d->features);
  if (!d->text) printf("%-12s %zu\n", "classes", d->classes);
  printf("%-12s %zu\n", "train", d->ntrain);
  printf("%-12s %zu\n", "test", d->ntest);
  if (d->scaled && d->c <= CHANNELS_LISTED) {
    print_channels("mean", gt_dataset_mean(dataset), d->c);
    print_channels("std", gt_dataset_std(dataset), d->c);
  }
  if (d->vocabulary_sha256[0]) printf("%-12s %s\n", "vocabulary", d->vocabulary_sha256);
  printf("%-12s %s\n", "sha256", d->schema_sha256);
  if (!d->text) print_classes(dataset);
  gt_status status = gt_dataset_doubts(dataset, gt_log_warning);
  if (status == GT_OK && o.file) status = draw(dataset, o.file);
  gt_dataset_close(dataset);
  return status;
}

/* ---- fetch ----------------------------------------------------------------------------------- */

/* how long nothing may arrive */
#define FETCH_PATIENCE_S 60.0
#define FETCH_STEP_S     0.2
#define MB               ((size_t)1000000)

static gt_status say_copy(const char *url) {
  char *path, hex[GT_SHA256_HEX];
  GT_TRY(gt_store_copy(url, &path));
  const gt_status status = gt_store_hash(path, hex);
  if (status == GT_OK) printf("copy    %s\nsha256  %s\n", path, hex);
  gt_free(path);
  return status;
}

static gt_status fetch_url(const char *url, bool again) {
  gt_fetch *fetch;
  gt_status status;
  bool done = false;
  GT_TRY(gt_fetch_open(&fetch, url, FETCH_PATIENCE_S, again));
  gt_progress_begin("data fetch");
  while ((status = gt_fetch_step(fetch, FETCH_STEP_S, &done)) == GT_OK && !done) {
    int64_t whole;
    const int64_t have = gt_fetch_bytes(fetch, &whole);
    gt_progress_of((size_t)have / MB, (size_t)whole / MB, "MB");
  }
  gt_progress_end();
  gt_fetch_close(fetch);
  return status == GT_OK ? say_copy(url) : status;
}

static const struct option fetch_table[] = {{"again", no_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};

static gt_status take_again(void *context, const struct option *option, const char *text) {
  (void)option, (void)text;
  *(bool *)context = true;
  return GT_OK;
}

static gt_status fetch(int argc, char **argv) {
  bool again = false;
  GT_TRY(take_options(argc, argv, fetch_table, "--again", take_again, &again));
  if (argc - optind != 1)
    return GT_FAIL(GT_ERR_JOB, "data fetch has %d names; expected one URL", argc - optind);
  if (!gt_store_is_url(argv[optind]))
    return GT_FAIL(GT_ERR_JOB, "data fetch: `%.200s` is no URL; expected https:// or s3://",
                   argv[optind]);
  return fetch_url(argv[optind], again);
}

const struct option *const gt_options_data[] = {
    import_table, synth_table, split_table, schema_table, classes_table, fetch_table, NULL};

#define COMMANDS(X) X(import) X(synth) X(split) X(schema) X(classes) X(info) X(fetch)

gt_status gt_cmd_data(int argc, char **argv) {
#define AS_NAME(name)     #name,
#define AS_FUNCTION(name) name,
  static const char *const names[] = {COMMANDS(AS_NAME)};
  static gt_status (*const functions[])(int argc, char **argv) = {COMMANDS(AS_FUNCTION)};
  const size_t n = sizeof names / sizeof *names;
  gt_temporary_guard();
  if (argc < 2)
    return GT_FAIL(
        GT_ERR_JOB,
        "data has no command; expected import, synth, split, schema, classes, info or fetch");
  for (size_t i = 0; i < n; i++)
    if (strcmp(argv[1], names[i]) == 0) return functions[i](argc - 1, argv + 1);
  const char *near = gt_nearest(argv[1], names, n);
  return GT_FAIL(GT_ERR_JOB, "data command `%s` is not known; %s%s", argv[1],
                 near ? "did you mean "
                      : "import, synth, split, schema, classes, info and fetch are",
                 near ? near : "");
}
