/* Imports CIFAR-10 and CIFAR-100 in their binary form (Krizhevsky, Learning Multiple Layers of
   Features from Tiny Images, 2009): records of one label byte (CIFAR-100: a coarse one before it)
   and 32 x 32 pixels, first all red, then green, then blue. */
#include <stdio.h>

#include "bytes.h"
#include "import.h"
#include "store.h"

enum {
  SIDE = 32,
  PIXELS = SIDE * SIDE,
  CHANNELS = 3,
  ITEM = PIXELS * CHANNELS,
  BLOCK = 256 /* records at a time */
};
#define MAX_FILES   5
#define MAX_RECORDS 1000000 /* per file; a larger number means other data or a gzip bomb */

typedef struct {
  const char *name;
  size_t label_bytes, classes; /* the label is the last label byte */
  const char *files[MAX_FILES + 1], *test, *class_names;
} variant;

static const variant variants[] = {
    {"cifar-10",
     1,
     10,
     {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
      "data_batch_5.bin"},
     "test_batch.bin",
     "batches.meta.txt"},
    {"cifar-100", 2, 100, {"train.bin"}, "test.bin", "fine_label_names.txt"},
};

typedef struct {
  const char *folder;
  const gt_schema *schema;
  const variant *kind;
  gt_bytes *files[2][MAX_FILES]; /* indexed by gt_split */
  size_t nfiles[2], records[2][MAX_FILES], n[2];
  uint8_t *block, *images;
  int32_t labels[BLOCK];
  gt_data_store *store;
} cifar;

/* ---- files ----------------------------------------------------------------------------------- */

static gt_status open_file(cifar *c, gt_split split, const char *name) {
  char *path = gt_bytes_find(c->folder, name);
  if (!path) return GT_OK;
  gt_status status = gt_bytes_open(&c->files[split][c->nfiles[split]], path);
  if (status == GT_OK) c->nfiles[split]++;
  gt_free(path);
  return status;
}

/* Opens the training files that exist, and the test file. */
static gt_status open_variant(cifar *c, const variant *kind) {
  for (const char *const *name = kind->files; *name; name++)
    GT_TRY(open_file(c, GT_SPLIT_TRAIN, *name));
  if (c->nfiles[GT_SPLIT_TRAIN] == 0) return GT_OK;
  c->kind = kind;
  GT_TRY(open_file(c, GT_SPLIT_TEST, kind->test));
  if (c->nfiles[GT_SPLIT_TEST] == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s is missing, with .gz and without; it is the test split of %s", c->folder,
                   kind->test, kind->name);
  return GT_OK;
}

/* Logs the files found.  A folder with some of the batches is a smaller training set, perhaps
   unintended. */
static void say_found(const cifar *c) {
  size_t all = 0;
  while (c->kind->files[all]) all++;
  gt_log(c->nfiles[GT_SPLIT_TRAIN] < all ? GT_LOG_WARN : GT_LOG_INFO,
         "%s: found %zu of the %zu training files of %s: %zu training and %zu test samples",
         c->folder, c->nfiles[GT_SPLIT_TRAIN], all, c->kind->name, c->n[GT_SPLIT_TRAIN],
         c->n[GT_SPLIT_TEST]);
}

static gt_status open_files(cifar *c) {
  for (size_t i = 0; i < sizeof variants / sizeof *variants && !c->kind; i++)
    GT_TRY(open_variant(c, &variants[i]));
  if (!c->kind)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: data_batch_1.bin to data_batch_5.bin (CIFAR-10) and train.bin (CIFAR-100) "
                   "are missing, with .gz and without; expected at least one of these binary files",
                   c->folder);
  return GT_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static size_t record_bytes(const cifar *c) {
  return c->kind->label_bytes + ITEM;
}

/* Reads the next records of a file, at most BLOCK, into c->block; *count is 0 at the end. */
static gt_status read_block(cifar *c, gt_bytes *file, size_t before, size_t *count) {
  size_t record = record_bytes(c);
  int64_t got = gt_bytes_read(file, c->block, BLOCK * record);
  if (got < 0) return GT_ERR_DATA;
  if ((size_t)got < BLOCK * record) GT_TRY(gt_bytes_whole(file));
  *count = (size_t)got / record;
  if ((size_t)got % record)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: ends after %zu bytes, %zu bytes into record %zu; expected whole records of %zu bytes",
        gt_bytes_path(file), before * record + (size_t)got, (size_t)got % record, before + *count,
        record);
  return GT_OK;
}

/* First pass: counts the records, because gzip files do not store their number. */
static gt_status count_records(cifar *c, gt_bytes *file, size_t *records) {
  size_t count;
  *records = 0;
  do {
    GT_TRY(read_block(c, file, *records, &count));
    *records += count;
    if (*records > MAX_RECORDS)
      return GT_FAIL(GT_ERR_DATA, "%s: has more than %d records; a file of %s has 10000 or 50000",
                     gt_bytes_path(file), MAX_RECORDS, c->kind->name);
  } while (count == BLOCK);
  if (*records == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: is empty; expected records of %zu bytes", gt_bytes_path(file),
                   record_bytes(c));
  return gt_bytes_rewind(file);
}

static gt_status count_all(cifar *c) {
  for (int s = 0; s < 2; s++)
    for (size_t i = 0; i < c->nfiles[s]; i++) {
      GT_TRY(count_records(c, c->files[s][i], &c->records[s][i]));
      c->n[s] += c->records[s][i];
    }
  return GT_OK;
}

/* Converts from channels first to channels last. */
static void interleave(uint8_t *image, const uint8_t *planes) {
  for (size_t i = 0; i < PIXELS; i++)
    for (size_t k = 0; k < CHANNELS; k++) image[i * CHANNELS + k] = planes[k * PIXELS + i];
}

static gt_status convert_block(cifar *c, const gt_bytes *file, size_t before, size_t count) {
  size_t record = record_bytes(c), at = c->kind->label_bytes;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *r = c->block + i * record;
    if (r[at - 1] >= c->kind->classes)
      return GT_FAIL(GT_ERR_DATA, "%s: the label of record %zu is %u; expected 0 to %zu",
                     gt_bytes_path(file), before + i, r[at - 1], c->kind->classes - 1);
    c->labels[i] = r[at - 1];
    interleave(c->images + i * ITEM, r + at);
  }
  return GT_OK;
}

static gt_status copy_file(cifar *c, gt_split split, size_t which, size_t first) {
  gt_bytes *file = c->files[split][which];
  size_t count, done = 0;
  do {
    GT_TRY(read_block(c, file, done, &count));
    if (count == 0 || done + count > c->records[split][which]) break;
    GT_TRY(convert_block(c, file, done, count));
    GT_TRY(gt_data_store_samples(c->store, split, first + done, count, c->images));
    GT_TRY(gt_data_store_labels(c->store, split, first + done, count, c->labels));
    done += count;
  } while (count == BLOCK);
  if (done != c->records[split][which])
    return GT_FAIL(GT_ERR_DATA, "%s: changed while it was read; import it again",
                   gt_bytes_path(file));
  return GT_OK;
}

static gt_status convert(cifar *c, const char *out) {
  char name[64];
  GT_TRY(open_files(c));
  c->block = gt_alloc(BLOCK, record_bytes(c));
  c->images = gt_alloc(BLOCK, ITEM);
  GT_TRY(count_all(c));
  const gt_data_shape shape = {
      .n = {c->n[0], c->n[1]}, .h = SIDE, .w = SIDE, .c = CHANNELS, .schema = c->schema};
  GT_TRY(gt_data_store_create(&c->store, out, &shape));
  for (int s = 0; s < 2; s++)
    for (size_t i = 0, first = 0; i < c->nfiles[s]; first += c->records[s][i++])
      GT_TRY(copy_file(c, (gt_split)s, i, first));
  size_t classes = c->kind->classes;
  GT_TRY(gt_import_class_names(c->store, c->folder, c->kind->class_names, &classes));
  gt_import_name(c->folder, c->kind->name, name);
  GT_TRY(gt_data_store_finish(c->store, name, classes));
  say_found(c);
  return GT_OK;
}

gt_status gt_import_cifar(const char *source, const char *out, const gt_import_options *options) {
  cifar *c = GT_NEW(cifar);
  c->folder = source;
  c->schema = options->names;
  gt_status status = convert(c, out);
  gt_data_store_close(c->store);
  for (int s = 0; s < 2; s++)
    for (size_t i = 0; i < MAX_FILES; i++) gt_bytes_close(c->files[s][i]);
  gt_free(c->images);
  gt_free(c->block);
  gt_free(c);
  return status;
}
