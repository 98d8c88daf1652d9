/* Splits one file into one per region, as if the data had been collected there: each file has the
   mean and std of its own training images. */
#include <stdio.h>
#include <string.h>

#include "dataset.h"
#include "store.h"

/* Returns FOLDER/NAME-1.h5, numbered from 1; folder NULL: the folder of `path`.  The caller frees
   it. */
static char *name_of(const char *path, const char *folder, size_t region) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path,
             *end = strrchr(base, '.');
  const size_t size = strlen(path) + (folder ? strlen(folder) : 0) + 32;
  const int length = (int)(end && end > base ? end - base : (long)strlen(base));
  char *name = gt_alloc(size, 1);
  if (folder)
    snprintf(name, size, "%s/%.*s-%zu.h5", folder, length, base, region + 1);
  else
    snprintf(name, size, "%.*s%.*s-%zu.h5", (int)(base - path), path, length, base, region + 1);
  return name;
}

/* Copies the given samples (ascending numbers; NULL: the first n), one block of the file at a
   time. */
static gt_status copy(gt_dataset *from, gt_data_store *to, gt_split split, const uint32_t *samples,
                      size_t n) {
  const size_t total = gt_dataset_count(from, split), row = gt_dataset_row_bytes(from),
               block = gt_data_h5_block_rows(from->x[split], total, row);
  char *rows = gt_alloc(block + 1, row);
  int32_t *labels = GT_NEW_ARRAY(int32_t, block + 1);
  gt_status status = GT_OK;
  for (size_t i = 0, done = 0; i < n && status == GT_OK; done = i) {
    const size_t first = (samples ? samples[i] : i) / block * block,
                 count = total - first < block ? total - first : block;
    status = gt_dataset_read(from, split, first, count, rows);
    /* moved to the front in place; earlier rows are no longer needed */
    for (; i < n && (samples ? samples[i] : i) < first + count; i++) {
      const size_t at = samples ? samples[i] : i;
      memmove(rows + (i - done) * row, rows + (at - first) * row, row);
      labels[i - done] = from->labels[split][at];
    }
    if (status == GT_OK) status = gt_data_store_samples(to, split, done, i - done, rows);
    if (status == GT_OK) status = gt_data_store_labels(to, split, done, i - done, labels);
  }
  gt_free(labels);
  gt_free(rows);
  return status;
}

static gt_status write_part(gt_dataset *from, const char *path, const uint32_t *samples, size_t n,
                            size_t ntest) {
  const gt_dataset_info *d = gt_dataset_describe(from);
  const gt_data_shape shape = {.n = {n, ntest},
                               .h = d->h,
                               .w = d->w,
                               .c = d->c,
                               .features = d->features,
                               .floats = d->input == GT_INPUT_FLOATS};
  gt_data_store *to;
  GT_TRY(gt_data_store_create(&to, path, &shape));
  gt_status status = copy(from, to, GT_SPLIT_TRAIN, samples, n);
  if (status == GT_OK) status = copy(from, to, GT_SPLIT_TEST, NULL, ntest);
  if (status == GT_OK) status = gt_data_store_copy_vocabulary(to, from);
  if (status == GT_OK) status = gt_data_store_class_names(to, gt_dataset_class_names(from));
  if (status == GT_OK) status = gt_data_store_finish(to, d->name, d->classes);
  gt_data_store_close(to);
  return status;
}

static bool has_tests(gt_tests tests, size_t region, size_t nregions) {
  return tests == GT_TESTS_ALL || region == (tests == GT_TESTS_FIRST ? 0 : nregions - 1);
}

static gt_status check_outputs(const char *path, const gt_partition *p, const char *folder,
                               bool force) {
  gt_status status = GT_OK;
  for (size_t r = 0; r < p->nregions && status == GT_OK; r++) {
    char *name = name_of(path, folder, r);
    status = gt_data_check_output(name, path, force);
    gt_free(name);
  }
  return status;
}

gt_status gt_data_split(const char *path, const gt_partition *p, gt_tests tests, const char *folder,
                        bool force, void (*wrote)(const char *path)) {
  gt_dataset *from;
  gt_status status = GT_OK;
  GT_TRY(check_outputs(path, p, folder, force));
  GT_TRY(gt_dataset_open(&from, path));
  const gt_dataset_info *d = gt_dataset_describe(from);
  for (size_t r = 0; r < p->nregions && status == GT_OK; r++) {
    char *name = name_of(path, folder, r);
    uint32_t *samples = NULL;
    size_t n;
    status =
        gt_partition_part(p, gt_dataset_labels(from, GT_SPLIT_TRAIN), d->ntrain, r, &samples, &n);
    if (status == GT_OK)
      status = write_part(from, name, samples, n, has_tests(tests, r, p->nregions) ? d->ntest : 0);
    if (status == GT_OK) wrote(name);
    gt_free(samples);
    gt_free(name);
  }
  gt_dataset_close(from);
  return status;
}
