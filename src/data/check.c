/* The checks of a data set file against schema 1 (docs/data-format.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset.h"

#define MAX_CLASSES 1000000
/* Deflate compresses at most 1032-fold: a file that claims more is damaged, and no memory is
   allocated for it. */
#define MAX_COMPRESSION 1100ULL

gt_status gt_dataset_check_root(gt_dataset *d) {
  int64_t schema, classes;
  GT_TRY(gt_data_h5_attr_int(d->file, d->path, "geotrain_schema", &schema));
  if (schema != GT_DATASET_SCHEMA)
    return GT_FAIL(GT_ERR_DATA, "%s: geotrain_schema is %lld; this version reads schema %d",
                   d->path, (long long)schema, GT_DATASET_SCHEMA);
  GT_TRY(gt_data_h5_attr_text(d->file, d->path, "name", d->info.name, sizeof d->info.name));
  GT_TRY(gt_data_h5_attr_int(d->file, d->path, "classes", &classes));
  if (classes < 2 || classes > MAX_CLASSES)
    return GT_FAIL(GT_ERR_DATA, "%s: classes is %lld; 2 to %d are needed", d->path,
                   (long long)classes, MAX_CLASSES);
  d->info.classes = (size_t)classes;
  GT_TRY(gt_class_names_read(&d->class_names, d->file, d->path, d->info.classes));
  gt_class_names_hash(&d->class_names, d->info.class_names_sha256);
  d->info.class_names_bytes = d->class_names.bytes;
  d->info.class_names = d->class_names.text;
  return GT_OK;
}

/* Opens /SPLIT/NAME and reads its shape. */
static gt_status open_set(gt_dataset *d, gt_split split, const char *name, int rank,
                          const char *shape, hid_t *dset, hsize_t *dims) {
  const char *group = gt_data_split_names[split];
  char full[16], above[16];
  bool there;
  snprintf(full, sizeof full, "/%s/%s", group, name);
  snprintf(above, sizeof above, "/%s", group);
  GT_TRY(gt_data_h5_exists(d->file, d->path, above, &there));
  if (!there)
    return GT_FAIL(GT_ERR_DATA, "%s: the group /%s is missing; groups train and test are needed",
                   d->path, group);
  GT_TRY(gt_data_h5_exists(d->file, d->path, full, &there));
  if (!there)
    return GT_FAIL(GT_ERR_DATA, "%s: %s is missing; x and y are needed in groups train and test",
                   d->path, full);
  GT_TRY(gt_data_h5_open_set(d->file, d->path, full, shape, dset));
  hid_t space = H5Dget_space(*dset);
  int found = H5Sget_simple_extent_ndims(space);
  if (found == rank) H5Sget_simple_extent_dims(space, dims, NULL);
  gt_data_h5_close(space);
  if (found != rank)
    return GT_FAIL(GT_ERR_DATA, "%s: %s has %d dimensions; %s is needed", d->path, full, found,
                   shape);
  return GT_OK;
}

/* Whether `dset` has this type.  The byte order may differ: HDF5 converts it. */
static bool has_type(hid_t dset, H5T_class_t class, size_t size, H5T_sign_t sign, char *found,
                     size_t found_size) {
  hid_t type = H5Dget_type(dset);
  bool same = H5Tget_class(type) == class && H5Tget_size(type) == size &&
              (class != H5T_INTEGER || H5Tget_sign(type) == sign);
  gt_data_h5_type_name(type, found, found_size);
  gt_data_h5_close(type);
  return same;
}

static gt_status check_types(gt_dataset *d, gt_split split) {
  const char *group = gt_data_split_names[split];
  char found[48];
  gt_input input = GT_INPUT_BYTES;
  if (!has_type(d->x[split], H5T_INTEGER, 1, H5T_SGN_NONE, found, sizeof found)) {
    input = GT_INPUT_FLOATS;
    if (!has_type(d->x[split], H5T_FLOAT, 4, H5T_SGN_ERROR, found, sizeof found)) {
      input = GT_INPUT_IDS;
      if (!has_type(d->x[split], H5T_INTEGER, 4, H5T_SGN_2, found, sizeof found))
        return GT_FAIL(GT_ERR_DATA, "%s: /%s/x is %s; uint8, float32 or int32 is needed", d->path,
                       group, found);
    }
  }
  if (split == GT_SPLIT_TRAIN)
    d->info.input = input;
  else if (d->info.input != input)
    return GT_FAIL(GT_ERR_DATA, "%s: /test/x is %s but /train/x is %s; both must be the same",
                   d->path, found, gt_data_input_names[d->info.input]);
  if (!has_type(d->y[split], H5T_INTEGER, 4, H5T_SGN_2, found, sizeof found))
    return GT_FAIL(GT_ERR_DATA, "%s: /%s/y is %s; int32 is needed", d->path, group, found);
  return GT_OK;
}

/* Upper bound for the bytes of values in a data set of a file of this size. */
static uint64_t most_bytes(hid_t dset, uint64_t file_bytes) {
  uint64_t most = file_bytes;
  hid_t plist = H5Dget_create_plist(dset);
  if (plist >= 0 && H5Pget_nfilters(plist) > 0 &&
      __builtin_mul_overflow(file_bytes, MAX_COMPRESSION, &most))
    most = UINT64_MAX;
  gt_data_h5_close(plist);
  return most;
}

static gt_status check_size(const gt_dataset *d, gt_split split, const hsize_t x[4]) {
  uint64_t bytes = d->info.input == GT_INPUT_BYTES ? 1 : sizeof(float);
  bool overflow = false;
  for (int i = 0; i < 4; i++) overflow |= __builtin_mul_overflow(bytes, (uint64_t)x[i], &bytes);
  if (overflow || x[0] > UINT32_MAX || bytes > most_bytes(d->x[split], d->file_bytes) ||
      x[0] * sizeof(int32_t) > most_bytes(d->y[split], d->file_bytes))
    return GT_FAIL(GT_ERR_DATA,
                   "%s: /%s/x claims %llu x %llu x %llu x %llu values, more than %llu bytes can "
                   "hold; the file is damaged",
                   d->path, gt_data_split_names[split], (unsigned long long)x[0],
                   (unsigned long long)x[1], (unsigned long long)x[2], (unsigned long long)x[3],
                   (unsigned long long)d->file_bytes);
  return GT_OK;
}

gt_status gt_dataset_check_split(gt_dataset *d, gt_split split) {
  const char *group = gt_data_split_names[split];
  gt_dataset_info *info = &d->info;
  hsize_t x[4], y[1];
  GT_TRY(open_set(d, split, "x", 4, "(N,H,W,C)", &d->x[split], x));
  GT_TRY(open_set(d, split, "y", 1, "(N)", &d->y[split], y));
  GT_TRY(check_types(d, split));
  if (x[0] != y[0])
    return GT_FAIL(GT_ERR_DATA,
                   "%s: /%s/x has %llu samples but /%s/y has %llu; the same number is needed",
                   d->path, group, (unsigned long long)x[0], group, (unsigned long long)y[0]);
  if (x[0] == 0 && split == GT_SPLIT_TRAIN)
    return GT_FAIL(GT_ERR_DATA, "%s: /train has 0 samples; 1 or more are needed", d->path);
  if (x[1] == 0 || x[2] == 0 || x[3] == 0)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: /%s/x holds images of %llu x %llu x %llu; 1 or more is needed in each dimension",
        d->path, group, (unsigned long long)x[1], (unsigned long long)x[2],
        (unsigned long long)x[3]);
  if (info->input == GT_INPUT_IDS && (x[1] != 1 || x[2] != 1))
    return GT_FAIL(GT_ERR_DATA,
                   "%s: /%s/x is int32 of %llu x %llu x %llu a sample; ids need 1 x 1 x F", d->path,
                   group, (unsigned long long)x[1], (unsigned long long)x[2],
                   (unsigned long long)x[3]);
  GT_TRY(check_size(d, split, x));
  if (split == GT_SPLIT_TRAIN) {
    info->ntrain = (size_t)x[0];
    info->h = (size_t)x[1];
    info->w = (size_t)x[2];
    info->c = (size_t)x[3];
    return GT_OK;
  }
  info->ntest = (size_t)x[0];
  if (x[1] != info->h || x[2] != info->w || x[3] != info->c)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: /test/x holds images of %llu x %llu x %llu but /train/x of %zu x %zu x "
                   "%zu; both must be the same",
                   d->path, (unsigned long long)x[1], (unsigned long long)x[2],
                   (unsigned long long)x[3], info->h, info->w, info->c);
  return GT_OK;
}

static gt_status check_features(gt_dataset *d) {
  int64_t features;
  GT_TRY(gt_data_h5_attr_int(d->file, d->path, "features", &features));
  if (features < 1 || features > GT_DATA_MAX_FEATURES)
    return GT_FAIL(GT_ERR_DATA, "%s: features is %lld; 1 to %d are needed", d->path,
                   (long long)features, GT_DATA_MAX_FEATURES);
  d->info.features = (size_t)features;
  GT_TRY(gt_tokens_read(&d->tokens, d->file, d->path));
  d->info.text = d->tokens != NULL;
  if (d->tokens && gt_tokens_count(d->tokens) != d->info.features)
    return GT_FAIL(GT_ERR_DATA, "%s: features is %zu and /%s makes %zu tokens; as many are needed",
                   d->path, d->info.features, GT_DATA_MERGES, gt_tokens_count(d->tokens));
  if (H5Aexists(d->file, GT_DATA_VOCABULARY_HASH) <= 0) return GT_OK;
  return gt_data_h5_attr_text(d->file, d->path, GT_DATA_VOCABULARY_HASH, d->info.vocabulary_sha256,
                              sizeof d->info.vocabulary_sha256);
}

gt_status gt_dataset_check_input(gt_dataset *d) {
  size_t c = d->info.c;
  d->mean = GT_NEW_ARRAY(float, c);
  d->std = GT_NEW_ARRAY(float, c);
  for (size_t i = 0; i < c; i++) d->std[i] = 1.0F;
  if (d->info.input == GT_INPUT_IDS) return check_features(d);
  if (d->info.input == GT_INPUT_FLOATS) return GT_OK; /* not scaled */
  GT_TRY(gt_data_h5_attr_floats(d->file, d->path, "mean", d->mean, c));
  GT_TRY(gt_data_h5_attr_floats(d->file, d->path, "std", d->std, c));
  for (size_t i = 0; i < c; i++) {
    if (!isfinite(d->mean[i]))
      return GT_FAIL(GT_ERR_DATA, "%s: mean[%zu] is %g; a finite number is needed", d->path, i,
                     (double)d->mean[i]);
    if (!isfinite(d->std[i]) || d->std[i] <= 0.0F)
      return GT_FAIL(GT_ERR_DATA, "%s: std[%zu] is %g; a number above 0 is needed", d->path, i,
                     (double)d->std[i]);
  }
  return GT_OK;
}

static gt_status check_labels(gt_dataset *d, gt_split split) {
  const char *group = gt_data_split_names[split];
  char full[16], what[1200];
  size_t n = gt_dataset_count(d, split);
  snprintf(full, sizeof full, "/%s/y", group);
  snprintf(what, sizeof what, "%s: reading %zu samples of /%s", d->path, n, group);
  GT_TRY(gt_memory_check(GT_ERR_DATA, what, 2.0 * sizeof(int32_t) * (double)n, gt_memory_free("")));
  d->labels[split] = GT_NEW_ARRAY(int32_t, n);
  GT_TRY(
      gt_data_h5_read_rows(d->y[split], d->path, full, H5T_NATIVE_INT32, 0, n, d->labels[split]));
  for (size_t i = 0; i < n; i++)
    if (d->labels[split][i] < 0 || (size_t)d->labels[split][i] >= d->info.classes)
      return GT_FAIL(GT_ERR_DATA, "%s: %s[%zu] is %d; labels 0 to %zu are needed", d->path, full, i,
                     (int)d->labels[split][i], d->info.classes - 1);
  return GT_OK;
}

static gt_status check_floats(const gt_dataset *d, gt_split split, size_t first, size_t count,
                              const float *x) {
  size_t row = d->info.h * d->info.w * d->info.c;
  for (size_t i = 0; i < count * row; i++)
    if (!isfinite(x[i]))
      return GT_FAIL(GT_ERR_DATA,
                     "%s: /%s/x holds %g in sample %zu, value %zu; finite numbers are needed",
                     d->path, gt_data_split_names[split], (double)x[i], first + i / row, i % row);
  return GT_OK;
}

static gt_status check_ids(const gt_dataset *d, gt_split split, size_t first, size_t count,
                           const int32_t *x) {
  size_t row = d->info.c;
  for (size_t i = 0; i < count * row; i++)
    if (x[i] < 0 || (size_t)x[i] >= d->info.features)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: /%s/x holds id %d in sample %zu, field %zu; ids 0 to %zu are needed",
                     d->path, gt_data_split_names[split], (int)x[i], first + i / row, i % row,
                     d->info.features - 1);
  return GT_OK;
}

/* Any byte is valid; floats and ids are checked block by block. */
static gt_status check_x(gt_dataset *d, gt_split split) {
  size_t n = gt_dataset_count(d, split), row_bytes = gt_dataset_row_bytes(d);
  size_t block = gt_data_h5_block_rows(d->x[split], n, row_bytes);
  void *x = gt_alloc(block, row_bytes);
  gt_status status = GT_OK;
  for (size_t first = 0; first < n && status == GT_OK; first += block) {
    size_t count = n - first < block ? n - first : block;
    status = gt_dataset_read(d, split, first, count, x);
    if (status == GT_OK)
      status = d->info.input == GT_INPUT_IDS ? check_ids(d, split, first, count, x)
                                             : check_floats(d, split, first, count, x);
  }
  gt_free(x);
  return status;
}

gt_status gt_dataset_check_values(gt_dataset *d, gt_split split) {
  GT_TRY(check_labels(d, split));
  return d->info.input == GT_INPUT_BYTES ? GT_OK : check_x(d, split);
}
