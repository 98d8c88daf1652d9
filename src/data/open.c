/* Opens a data set: checks its parts against schema 1 (docs/data-format.md) and computes its
   hashes. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset.h"
#include "geotrain/store.h"

/* ---- attributes of exactly one kind: an integer, a text, or n float32 ------------------------ */

static const char *where(hid_t object, char *buf, size_t size) {
  ssize_t n = H5Iget_name(object, buf, size);
  if (n <= 0) snprintf(buf, size, "/");
  return buf;
}

/* Opens the attribute and its type, and counts its elements; `rank` 0 is a scalar. */
static gt_status attr_open(hid_t object, const char *path, const char *name, hid_t *attr,
                           hid_t *type, int *rank, hssize_t *count) {
  char at[128], reason[256];
  *attr = *type = -1;
  if (H5Aexists(object, name) <= 0)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: the attribute `%s` of %s is missing; docs/data-format.md lists the attributes", path,
        name, where(object, at, sizeof at));
  *attr = H5Aopen(object, name, H5P_DEFAULT);
  if (*attr < 0)
    return GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` cannot be opened (%s)", path, name,
                   gt_data_h5_reason(reason, sizeof reason));
  *type = H5Aget_type(*attr);
  hid_t space = H5Aget_space(*attr);
  *rank = H5Sget_simple_extent_ndims(space);
  *count = H5Sget_simple_extent_npoints(space);
  gt_data_h5_close(space);
  if (*type >= 0 && *rank >= 0 && *count >= 0) return GT_OK;
  gt_data_h5_close(*type);
  gt_data_h5_close(*attr);
  return GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` has no readable type or shape", path, name);
}

static gt_status unreadable(const char *path, const char *name) {
  char reason[256];
  return GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` cannot be read (%s)", path, name,
                 gt_data_h5_reason(reason, sizeof reason));
}

static gt_status attr_int(hid_t object, const char *path, const char *name, int64_t *out) {
  char found[48];
  hid_t attr, type;
  int rank;
  hssize_t count;
  gt_status status = GT_OK;
  GT_TRY(attr_open(object, path, name, &attr, &type, &rank, &count));
  if (H5Tget_class(type) != H5T_INTEGER || count != 1)
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: the attribute `%s` is %s with %lld elements; expected one integer", path,
                     name, gt_data_h5_type_name(type, found, sizeof found), (long long)count);
  else if (H5Aread(attr, H5T_NATIVE_INT64, out) < 0)
    status = unreadable(path, name);
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}

/* Reads a text: h5py writes variable length, this program fixed length. */
static gt_status read_text(hid_t attr, hid_t type, const char *path, const char *name, char *out,
                           size_t size) {
  hid_t memory = H5Tcopy(H5T_C_S1);
  gt_status status = GT_OK;
  H5Tset_cset(memory, H5Tget_cset(type));
  if (H5Tis_variable_str(type) > 0) {
    char *text = NULL;
    H5Tset_size(memory, H5T_VARIABLE);
    if (H5Aread(attr, memory, &text) < 0)
      status = unreadable(path, name);
    else
      snprintf(out, size, "%s", text ? text : "");
    H5free_memory(text);
  } else {
    H5Tset_size(memory, size);
    memset(out, 0, size);
    if (H5Aread(attr, memory, out) < 0) status = unreadable(path, name);
    out[size - 1] = 0;
  }
  gt_data_h5_close(memory);
  return status;
}

static gt_status attr_text(hid_t object, const char *path, const char *name, char *out,
                           size_t size) {
  char found[48];
  hid_t attr, type;
  int rank;
  hssize_t count;
  gt_status status;
  GT_TRY(attr_open(object, path, name, &attr, &type, &rank, &count));
  if (H5Tget_class(type) != H5T_STRING || count != 1)
    status =
        GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` is %s with %lld elements; expected one string",
                path, name, gt_data_h5_type_name(type, found, sizeof found), (long long)count);
  else
    status = read_text(attr, type, path, name, out, size);
  for (char *p = out; status == GT_OK && *p; p++) /* the text is printed in messages and tables */
    if ((unsigned char)*p < ' ' || *p == 127) *p = '?';
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}

static gt_status attr_floats(hid_t object, const char *path, const char *name, float *out,
                             size_t n) {
  char found[48];
  hid_t attr, type;
  int rank;
  hssize_t count;
  gt_status status = GT_OK;
  GT_TRY(attr_open(object, path, name, &attr, &type, &rank, &count));
  if (H5Tget_class(type) != H5T_FLOAT || H5Tget_size(type) != sizeof(float) || rank != 1 ||
      (size_t)count != n)
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: the attribute `%s` is %s with %lld elements in %d dimensions; expected "
                     "float32 with %zu (one a channel)",
                     path, name, gt_data_h5_type_name(type, found, sizeof found), (long long)count,
                     rank, n);
  else if (H5Aread(attr, H5T_NATIVE_FLOAT, out) < 0)
    status = unreadable(path, name);
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}

/* ---- checks ---------------------------------------------------------------------------------- */

#define MAX_CLASSES 1000000
/* Largest compression accepted: Deflate compresses at most 1032-fold, so a file that claims more is
   damaged, and no memory is allocated for it. */
#define MAX_COMPRESSION 1100ULL

static gt_status check_root(gt_dataset *d) {
  int64_t schema, classes;
  GT_TRY(attr_int(d->file, d->path, "geotrain_schema", &schema));
  if (schema != GT_DATASET_SCHEMA)
    return GT_FAIL(GT_ERR_DATA, "%s: geotrain_schema is %lld; this version reads schema %d",
                   d->path, (long long)schema, GT_DATASET_SCHEMA);
  GT_TRY(attr_text(d->file, d->path, "name", d->info.name, sizeof d->info.name));
  GT_TRY(attr_int(d->file, d->path, "classes", &classes));
  if (classes < 2 || classes > MAX_CLASSES)
    return GT_FAIL(GT_ERR_DATA, "%s: classes is %lld; expected 2 to %d", d->path,
                   (long long)classes, MAX_CLASSES);
  d->info.classes = (size_t)classes;
  GT_TRY(gt_class_names_read(&d->class_names, d->file, d->path, d->info.classes));
  gt_dataset_take_names(d);
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
    return GT_FAIL(GT_ERR_DATA, "%s: the group /%s is missing; expected groups train and test",
                   d->path, group);
  GT_TRY(gt_data_h5_exists(d->file, d->path, full, &there));
  if (!there)
    return GT_FAIL(GT_ERR_DATA, "%s: %s is missing; expected x and y in groups train and test",
                   d->path, full);
  GT_TRY(gt_data_h5_open_set(d->file, d->path, full, shape, dset));
  hid_t space = H5Dget_space(*dset);
  int found = H5Sget_simple_extent_ndims(space);
  if (found == rank) H5Sget_simple_extent_dims(space, dims, NULL);
  gt_data_h5_close(space);
  if (found != rank)
    return GT_FAIL(GT_ERR_DATA, "%s: %s has %d dimensions; expected %s", d->path, full, found,
                   shape);
  return GT_OK;
}

/* True if `dset` has this type.  The byte order can differ: HDF5 converts it. */
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
        return GT_FAIL(GT_ERR_DATA, "%s: /%s/x is %s; expected uint8, float32 or int32", d->path,
                       group, found);
    }
  }
  if (split == GT_SPLIT_TRAIN)
    d->info.input = input;
  else if (d->info.input != input)
    return GT_FAIL(GT_ERR_DATA, "%s: /test/x is %s but /train/x is %s; both must be the same",
                   d->path, found, gt_data_input_names[d->info.input]);
  if (!has_type(d->y[split], H5T_INTEGER, 4, H5T_SGN_2, found, sizeof found))
    return GT_FAIL(GT_ERR_DATA, "%s: /%s/y is %s; expected int32", d->path, group, found);
  return GT_OK;
}

/* Returns an upper bound for the bytes of values in a data set of a file of this size. */
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

static gt_status check_split(gt_dataset *d, gt_split split) {
  const char *group = gt_data_split_names[split];
  gt_dataset_info *info = &d->info;
  hsize_t x[4], y[1];
  GT_TRY(open_set(d, split, "x", 4, "(N,H,W,C)", &d->x[split], x));
  GT_TRY(open_set(d, split, "y", 1, "(N)", &d->y[split], y));
  GT_TRY(check_types(d, split));
  if (x[0] != y[0])
    return GT_FAIL(GT_ERR_DATA,
                   "%s: /%s/x has %llu samples but /%s/y has %llu; expected the same number",
                   d->path, group, (unsigned long long)x[0], group, (unsigned long long)y[0]);
  if (x[0] == 0 && split == GT_SPLIT_TRAIN)
    return GT_FAIL(GT_ERR_DATA, "%s: /train has 0 samples; expected 1 or more", d->path);
  if (x[1] == 0 || x[2] == 0 || x[3] == 0)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: /%s/x holds images of %llu x %llu x %llu; expected 1 or more in each dimension",
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
  GT_TRY(attr_int(d->file, d->path, "features", &features));
  if (features < 1 || features > GT_DATA_MAX_FEATURES)
    return GT_FAIL(GT_ERR_DATA, "%s: features is %lld; expected 1 to %d", d->path,
                   (long long)features, GT_DATA_MAX_FEATURES);
  d->info.features = (size_t)features;
  GT_TRY(gt_tokens_read(&d->tokens, d->file, d->path));
  d->info.text = d->tokens != NULL;
  if (d->tokens && gt_tokens_count(d->tokens) != d->info.features)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: features is %zu and /%s makes %zu tokens; expected the same number",
                   d->path, d->info.features, GT_DATA_MERGES, gt_tokens_count(d->tokens));
  return GT_OK;
}

static gt_status check_input(gt_dataset *d) {
  size_t c = d->info.c;
  d->mean = GT_NEW_ARRAY(float, c);
  d->std = GT_NEW_ARRAY(float, c);
  for (size_t i = 0; i < c; i++) d->std[i] = 1.0F;
  if (d->info.input != GT_INPUT_BYTES && H5Aexists(d->file, GT_DATA_VOCABULARY_HASH) > 0)
    GT_TRY(attr_text(d->file, d->path, GT_DATA_VOCABULARY_HASH, d->info.vocabulary_sha256,
                     sizeof d->info.vocabulary_sha256));
  if (d->info.input == GT_INPUT_IDS) return check_features(d);
  d->info.scaled =
      d->info.input == GT_INPUT_BYTES || (d->info.h == 1 && d->info.w == 1); /* images or tables */
  if (!d->info.scaled || (d->info.input == GT_INPUT_FLOATS && H5Aexists(d->file, "mean") <= 0))
    return GT_OK;
  GT_TRY(attr_floats(d->file, d->path, "mean", d->mean, c));
  GT_TRY(attr_floats(d->file, d->path, "std", d->std, c));
  for (size_t i = 0; i < c; i++) {
    if (!isfinite(d->mean[i]))
      return GT_FAIL(GT_ERR_DATA, "%s: mean[%zu] is %g; expected a finite number", d->path, i,
                     (double)d->mean[i]);
    if (!isfinite(d->std[i]) || d->std[i] <= 0.0F)
      return GT_FAIL(GT_ERR_DATA, "%s: std[%zu] is %g; expected a number above 0", d->path, i,
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
      return GT_FAIL(GT_ERR_DATA, "%s: %s[%zu] is %d; expected labels 0 to %zu", d->path, full, i,
                     (int)d->labels[split][i], d->info.classes - 1);
  return GT_OK;
}

static gt_status check_floats(const gt_dataset *d, gt_split split, size_t first, size_t count,
                              const float *x) {
  size_t row = d->info.h * d->info.w * d->info.c;
  for (size_t i = 0; i < count * row; i++)
    if (!isfinite(x[i]))
      return GT_FAIL(GT_ERR_DATA,
                     "%s: /%s/x holds %g in sample %zu, value %zu; expected finite numbers",
                     d->path, gt_data_split_names[split], (double)x[i], first + i / row, i % row);
  return GT_OK;
}

static gt_status check_ids(const gt_dataset *d, gt_split split, size_t first, size_t count,
                           const int32_t *x) {
  size_t row = d->info.c;
  for (size_t i = 0; i < count * row; i++)
    if (x[i] < 0 || (size_t)x[i] >= d->info.features)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: /%s/x holds id %d in sample %zu, field %zu; expected ids 0 to %zu",
                     d->path, gt_data_split_names[split], (int)x[i], first + i / row, i % row,
                     d->info.features - 1);
  return GT_OK;
}

/* Checks x block by block: floats and ids; any byte is valid. */
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

static gt_status check_values(gt_dataset *d, gt_split split) {
  GT_TRY(check_labels(d, split));
  return d->info.input == GT_INPUT_BYTES ? GT_OK : check_x(d, split);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Hashes all labels and three samples of a split as stored: cheap, and in practice equal only for
   copies of one file. */
static gt_status hash_samples(gt_dataset *d, gt_split split, char sha256[65]) {
  const size_t n = gt_dataset_count(d, split), row = gt_dataset_row_bytes(d),
               labels = n * sizeof(int32_t), at[3] = {0, n / 2, n - 1};
  if (n == 0) return GT_OK;
  char *bytes = gt_alloc(labels + 3 * row, 1);
  gt_status status = GT_OK;
  memcpy(bytes, d->labels[split], labels);
  for (size_t i = 0; i < 3 && status == GT_OK; i++)
    status = gt_dataset_read(d, split, at[i], 1, bytes + labels + i * row);
  gt_sha256_hex(bytes, labels + 3 * row, sha256);
  gt_free(bytes);
  return status;
}

static gt_status open_checked(gt_dataset *d) {
  struct stat st;
  GT_TRY(gt_data_h5_open(&d->file, d->path));
  d->file_bytes = stat(d->path, &st) == 0 ? (uint64_t)st.st_size : 0;
  GT_TRY(check_root(d));
  GT_TRY(check_split(d, GT_SPLIT_TRAIN));
  GT_TRY(check_split(d, GT_SPLIT_TEST));
  GT_TRY(check_input(d));
  GT_TRY(check_values(d, GT_SPLIT_TRAIN));
  GT_TRY(check_values(d, GT_SPLIT_TEST));
  gt_dataset_hash_schema(d);
  GT_TRY(hash_samples(d, GT_SPLIT_TRAIN, d->info.samples_sha256));
  return hash_samples(d, GT_SPLIT_TEST, d->info.tests_sha256);
}

/* Writes the file to open: the copy of a URL. */
static gt_status find_file(const char *path, char **file) {
  *file = NULL;
  if (!gt_store_is_url(path)) {
    *file = gt_strdup(path);
    return GT_OK;
  }
  GT_TRY(gt_store_copy(path, file));
  if (access(*file, F_OK) == 0) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%.*s has no copy here; expected %s; make it: geotrain data fetch URL",
                 (int)strcspn(path, "?#"), path, *file);
}

gt_status gt_dataset_open(gt_dataset **out, const char *path) {
  gt_dataset *d = GT_NEW(gt_dataset);
  *out = NULL;
  d->file = -1;
  for (int s = 0; s < 2; s++) d->x[s] = d->y[s] = -1;
  gt_status status = find_file(path, &d->path);
  if (status == GT_OK) status = open_checked(d);
  if (status == GT_OK)
    *out = d;
  else
    gt_dataset_close(d);
  return status;
}
