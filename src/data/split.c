/* Copies a data set: into one file per region, as if the data had been collected there, each with
   the mean and std of its own training samples; or with other classes.  A table without mean and
   std stays without. */
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
                            size_t ntest, const gt_class_names *names, const gt_schema *schema) {
  const gt_dataset_info *d = gt_dataset_describe(from);
  const gt_data_shape shape = {.n = {n, ntest},
                               .h = d->h,
                               .w = d->w,
                               .c = d->c,
                               .features = d->features,
                               .floats = d->input == GT_INPUT_FLOATS,
                               .schema = schema,
                               .norm_of = !samples || !gt_dataset_has_norm(from) ? from : NULL};
  gt_data_store *to;
  GT_TRY(gt_data_store_create(&to, path, &shape));
  gt_status status = copy(from, to, GT_SPLIT_TRAIN, samples, n);
  if (status == GT_OK) status = copy(from, to, GT_SPLIT_TEST, NULL, ntest);
  if (status == GT_OK) status = gt_data_store_copy_vocabulary(to, from);
  if (status == GT_OK) status = gt_data_store_class_names(to, names);
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
      status = write_part(from, name, samples, n, has_tests(tests, r, p->nregions) ? d->ntest : 0,
                          gt_dataset_class_names(from), NULL);
    if (status == GT_OK) wrote(name);
    gt_free(samples);
    gt_free(name);
  }
  gt_dataset_close(from);
  return status;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Appends the new name of a class to `to`, and marks the text OLD=NEW that names it. */
static gt_status rename_one(gt_class_names *to, const char *name, const char *const *renames,
                            size_t n, bool *used) {
  const size_t length = strlen(name);
  const char *now = NULL;
  for (size_t i = 0; i < n; i++) {
    if (strncmp(renames[i], name, length) != 0 || renames[i][length] != '=') continue;
    if (now)
      return GT_FAIL(GT_ERR_JOB, "data classes names class `%s` twice; expected one OLD=NEW each",
                     name);
    now = renames[i] + length + 1;
    used[i] = true;
    if (!*now)
      return GT_FAIL(GT_ERR_JOB, "data classes has `%s`; expected a name behind =", renames[i]);
  }
  gt_class_names_add(to, now ? now : name);
  return GT_OK;
}

/* Lists the classes with their new names; those without names have their numbers. */
static gt_status rename_all(gt_class_names *to, const gt_dataset *from, const char *const *renames,
                            size_t n) {
  enum { UNNAMED_MAX = 10000 };
  const gt_class_names *own = gt_dataset_class_names(from);
  const char *name = own->text;
  char number[24];
  size_t k = 0;
  if (from->info.text)
    return GT_FAIL(GT_ERR_DATA, "%s: is a text, which has no classes", from->path);
  if (own->n == 0 && from->info.classes > UNNAMED_MAX)
    return GT_FAIL(GT_ERR_DATA, "%s: has %zu classes without names; expected at most %d",
                   from->path, from->info.classes, UNNAMED_MAX);
  bool *used = GT_NEW_ARRAY(bool, n);
  gt_status status = GT_OK;
  for (; k < from->info.classes && status == GT_OK; k++) {
    snprintf(number, sizeof number, "%zu", k);
    status = rename_one(to, own->n > 0 ? name : number, renames, n, used);
    if (own->n > 0) name += strlen(name) + 1;
  }
  for (k = 0; k < n && used[k];) k++;
  gt_free(used);
  if (status != GT_OK || k == n) return status;
  return GT_FAIL(GT_ERR_JOB,
                 "data classes has `%s`; expected OLD=NEW with the name of a class of %s, which "
                 "`geotrain data info` lists",
                 renames[k], from->path);
}

gt_status gt_data_classes(const char *path, const char *out, const char *const *renames, size_t n,
                          const char *schema) {
  gt_dataset *from;
  gt_schema *to = NULL;
  gt_class_names names = {0};
  GT_TRY(gt_dataset_open(&from, path));
  gt_status status = rename_all(&names, from, renames, n);
  if (status == GT_OK && schema) status = gt_schema_read(&to, schema);
  if (status == GT_OK)
    status = write_part(from, out, NULL, from->info.ntrain, from->info.ntest, &names, to);
  gt_schema_close(to);
  gt_free(names.text);
  gt_dataset_close(from);
  return status;
}
