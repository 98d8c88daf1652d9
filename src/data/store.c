/* Writes a data set file of schema 1 (docs/data-format.md) atomically. */
#include "store.h"

#include "dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct gt_data_store {
  char *path, *temporary;
  hid_t file, x[2], y[2];
  gt_data_shape shape;
  gt_input input;
  gt_data_sums sums;    /* of the training samples, for mean and std; none: they are not scaled */
  gt_class_names names; /* of the classes; none: they have no names */
  int32_t *map;         /* the class of each label as written; NULL: itself */
  size_t stored;        /* samples */
  bool finished;
};

static gt_status failed(const gt_data_store *s, const char *doing) {
  char reason[256];
  return GT_FAIL(GT_ERR_DATA, "%s: %s failed (%s)", s->path, doing,
                 gt_data_h5_reason(reason, sizeof reason));
}

/* Returns properties without time stamps, so that the same data give the same file. */
static hid_t untimed(hid_t class) {
  hid_t properties = H5Pcreate(class);
  H5Pset_obj_track_times(properties, false);
  return properties;
}

/* Creates one group with x and y, stored contiguously: reads are sequential, and importing needs no
   compression time. */
static gt_status create_split(gt_data_store *s, gt_split split) {
  hsize_t dims[4] = {s->shape.n[split], s->shape.h, s->shape.w, s->shape.c};
  hid_t untimed_group = untimed(H5P_GROUP_CREATE), untimed_set = untimed(H5P_DATASET_CREATE);
  hid_t group =
      H5Gcreate2(s->file, gt_data_split_names[split], H5P_DEFAULT, untimed_group, H5P_DEFAULT);
  hid_t xs = H5Screate_simple(4, dims, NULL), ys = H5Screate_simple(1, dims, NULL);
  const hid_t types[] = {H5T_STD_U8LE, H5T_IEEE_F32LE, H5T_STD_I32LE}, type = types[s->input];
  s->x[split] = H5Dcreate2(group, "x", type, xs, H5P_DEFAULT, untimed_set, H5P_DEFAULT);
  s->y[split] = H5Dcreate2(group, "y", H5T_STD_I32LE, ys, H5P_DEFAULT, untimed_set, H5P_DEFAULT);
  gt_status status =
      s->x[split] < 0 || s->y[split] < 0 ? failed(s, "creating a group of data sets") : GT_OK;
  gt_data_h5_close(ys);
  gt_data_h5_close(xs);
  gt_data_h5_close(group);
  gt_data_h5_close(untimed_set);
  gt_data_h5_close(untimed_group);
  return status;
}

static bool is_hdf5(const char *path) {
  gt_data_h5_quiet();
  return H5Fis_hdf5(path) > 0;
}

gt_status gt_data_check_output(const char *out, const char *input, bool force) {
  return gt_output_may_replace(out, input, force ? NULL : "HDF5", is_hdf5);
}

static gt_status create_file(gt_data_store *s, size_t size) {
  int fd = gt_temporary_create(s->temporary, size, s->path);
  if (fd < 0) return GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", s->path, strerror(errno));
  close(fd);
  /* The format of HDF5 1.8 has metadata checksums, so HDF5 detects damage before it uses the
     metadata. */
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = untimed(H5P_FILE_CREATE);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  s->file = H5Fcreate(s->temporary, H5F_ACC_TRUNC, create, access);
  gt_status status = s->file < 0 ? failed(s, "creating the file") : GT_OK;
  gt_data_h5_close(create);
  gt_data_h5_close(access);
  return status;
}

gt_status gt_data_store_create(gt_data_store **out, const char *path, const gt_data_shape *shape) {
  gt_data_h5_quiet();
  gt_data_store *s = GT_NEW(gt_data_store);
  const size_t size = strlen(path) + 64;
  *s = (gt_data_store){.file = -1, .x = {-1, -1}, .y = {-1, -1}, .shape = *shape};
  s->path = gt_strdup(path);
  s->temporary = gt_alloc(size, 1);
  s->input = shape->features ? GT_INPUT_IDS : shape->floats ? GT_INPUT_FLOATS : GT_INPUT_BYTES;
  if (!shape->norm_of && (s->input == GT_INPUT_BYTES ||
                          (s->input == GT_INPUT_FLOATS && shape->h == 1 && shape->w == 1)))
    s->sums = gt_data_sums_open(shape->c);
  gt_status status = create_file(s, size);
  if (status == GT_OK) status = create_split(s, GT_SPLIT_TRAIN);
  if (status == GT_OK) status = create_split(s, GT_SPLIT_TEST);
  *out = status == GT_OK ? s : NULL;
  if (status != GT_OK) gt_data_store_close(s);
  return status;
}

static gt_status write_rows(gt_data_store *s, hid_t dset, hid_t memory_type, int rank, size_t first,
                            size_t count, const void *rows) {
  hsize_t start[4] = {first}, dims[4] = {count, s->shape.h, s->shape.w, s->shape.c};
  hid_t file_space = H5Dget_space(dset), memory_space = H5Screate_simple(rank, dims, NULL);
  bool ok = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0 &&
            H5Dwrite(dset, memory_type, memory_space, file_space, H5P_DEFAULT, rows) >= 0;
  gt_status status = ok ? GT_OK : failed(s, "writing");
  gt_data_h5_close(memory_space);
  gt_data_h5_close(file_space);
  return status;
}

gt_status gt_data_store_samples(gt_data_store *s, gt_split split, size_t first, size_t count,
                                const void *samples) {
  const hid_t types[] = {H5T_NATIVE_UINT8, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32}; /* by gt_input */
  if (split == GT_SPLIT_TRAIN && s->sums.sums)
    gt_data_sums_add(&s->sums, s->input, s->shape.c, samples, count * s->shape.h * s->shape.w);
  s->stored += count;
  gt_progress_of(s->stored, s->shape.n[0] + s->shape.n[1], "samples written");
  return write_rows(s, s->x[split], types[s->input], 4, first, count, samples);
}

gt_status gt_data_store_labels(gt_data_store *s, gt_split split, size_t first, size_t count,
                               const int32_t *labels) {
  return write_rows(s, s->y[split], H5T_NATIVE_INT32, 1, first, count, labels);
}

static bool write_attr(hid_t file, const char *name, hid_t stored, hid_t memory, int rank, size_t n,
                       const void *value) {
  hsize_t dims[1] = {n};
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t attr = H5Acreate2(file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
  bool ok = attr >= 0 && H5Awrite(attr, memory, value) >= 0;
  gt_data_h5_close(attr);
  gt_data_h5_close(space);
  return ok;
}

static bool write_norm(gt_data_store *s, const float *mean, const float *std) {
  return write_attr(s->file, "mean", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, s->shape.c, mean) &&
         write_attr(s->file, "std", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, s->shape.c, std);
}

/* Writes mean and std of scaled samples, or the number of ids. */
static bool write_input(gt_data_store *s) {
  const size_t channels = s->shape.c;
  const gt_dataset *of = s->shape.norm_of;
  int64_t features = (int64_t)s->shape.features;
  if (features)
    return write_attr(s->file, "features", H5T_STD_I64LE, H5T_NATIVE_INT64, 0, 1, &features);
  if (of) return !gt_dataset_has_norm(of) || write_norm(s, of->mean, of->std);
  if (!s->sums.sums) return true;
  float *norm = GT_NEW_ARRAY(float, 2 * channels);
  gt_data_moments(s->input, s->sums.sums, channels, norm, norm + channels);
  const bool ok = write_norm(s, norm, norm + channels);
  gt_free(norm);
  return ok;
}

static bool write_text(hid_t file, const char *name, const char *value) {
  hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, strlen(value) + 1);
  const bool ok = write_attr(file, name, text, text, 0, 1, value);
  gt_data_h5_close(text);
  return ok;
}

/* Writes a data set of n texts of `width` bytes each; n 0: of one, as a scalar. */
static bool write_texts(gt_data_store *s, const char *name, const char *texts, size_t n,
                        size_t width) {
  const hsize_t dims[1] = {n};
  hid_t text = H5Tcopy(H5T_C_S1), untimed_set = untimed(H5P_DATASET_CREATE);
  H5Tset_size(text, width);
  H5Tset_strpad(text, H5T_STR_NULLPAD);
  hid_t space = H5Screate_simple(n > 0, dims, NULL);
  hid_t set = H5Dcreate2(s->file, name, text, space, H5P_DEFAULT, untimed_set, H5P_DEFAULT);
  const bool ok = set >= 0 && H5Dwrite(set, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0;
  gt_data_h5_close(set);
  gt_data_h5_close(space);
  gt_data_h5_close(untimed_set);
  gt_data_h5_close(text);
  return ok;
}

/* Writes the texts of n ids, and the hash of `size` bytes that define the ids. */
static gt_status write_vocabulary(gt_data_store *s, const char *texts, size_t n, size_t width,
                                  const char *hashed, size_t size) {
  char hash[GT_SHA256_HEX];
  gt_sha256_hex(hashed, size, hash);
  return write_texts(s, GT_DATA_VOCABULARY, texts, n, width) &&
                 write_text(s->file, GT_DATA_VOCABULARY_HASH, hash)
             ? GT_OK
             : failed(s, "writing the vocabulary");
}

gt_status gt_data_store_vocabulary(gt_data_store *s, const char *words, size_t n, size_t width) {
  return write_vocabulary(s, words, n, width, words, n * width);
}

gt_status gt_data_store_tokens(gt_data_store *s, const gt_tokens *tokens) {
  size_t n;
  const int64_t *merges = gt_tokens_merges(tokens, &n);
  const hsize_t dims[2] = {n, 2};
  hid_t space = H5Screate_simple(2, dims, NULL), untimed_set = untimed(H5P_DATASET_CREATE);
  hid_t set = H5Dcreate2(s->file, GT_DATA_MERGES, H5T_STD_I32LE, space, H5P_DEFAULT, untimed_set,
                         H5P_DEFAULT);
  const bool ok = set >= 0 &&
                  H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, merges) >= 0 &&
                  write_text(s->file, GT_DATA_VOCABULARY_HASH, gt_tokens_hash(tokens));
  const gt_status status = ok ? GT_OK : failed(s, "writing the vocabulary");
  gt_data_h5_close(set);
  gt_data_h5_close(untimed_set);
  gt_data_h5_close(space);
  return status;
}

static gt_status copy_set(gt_data_store *s, const gt_dataset *from, const char *name) {
  bool there;
  GT_TRY(gt_data_h5_exists(from->file, from->path, name, &there));
  return !there || H5Ocopy(from->file, name, s->file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0
             ? GT_OK
             : failed(s, "copying the vocabulary");
}

static gt_status too_many_values(const gt_data_store *s, const gt_schema *columns, size_t size) {
  const gt_schema_column *widest = columns->columns;
  for (size_t i = 1; i < columns->ncolumns; i++)
    if (columns->columns[i].values.bytes > widest->values.bytes) widest = &columns->columns[i];
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the columns with their values have %zu bytes, most of them column %.64s with "
                 "%zu values; expected at most %zu: leave it out with --columns",
                 s->path, size, widest->name, widest->values.n, GT_SCHEMA_TEXT_MAX);
}

gt_status gt_data_store_columns(gt_data_store *s, const gt_schema *columns, const char *texts,
                                size_t n, size_t width) {
  char *json;
  GT_TRY(gt_schema_text(columns, s->path, &json));
  const size_t size = strlen(json);
  gt_status status = size > GT_SCHEMA_TEXT_MAX ? too_many_values(s, columns, size)
                                               : write_vocabulary(s, texts, n, width, json, size);
  if (status == GT_OK && !write_texts(s, GT_DATA_COLUMNS, json, 0, size))
    status = failed(s, "writing the columns");
  gt_free(json);
  return status;
}

gt_status gt_data_store_copy_vocabulary(gt_data_store *s, const gt_dataset *from) {
  if (!from->info.vocabulary_sha256[0]) return GT_OK;
  GT_TRY(copy_set(s, from, GT_DATA_VOCABULARY));
  GT_TRY(copy_set(s, from, GT_DATA_MERGES));
  GT_TRY(copy_set(s, from, GT_DATA_COLUMNS));
  return write_text(s->file, GT_DATA_VOCABULARY_HASH, from->info.vocabulary_sha256)
             ? GT_OK
             : failed(s, "writing attributes");
}

/* ---- classes --------------------------------------------------------------------------------- */

gt_status gt_data_store_class_names(gt_data_store *s, const gt_class_names *names) {
  static const gt_class_names none;
  const gt_class_names *of = s->shape.schema ? &s->shape.schema->classes : names;
  if (names->n == 0) return GT_OK;
  gt_class_names_join(&s->names, of->n > 0 ? of : &none);
  s->map = GT_NEW_ARRAY(int32_t, names->n);
  const char *missing = gt_class_names_map(names, &s->names, s->map);
  if (!missing) return gt_class_names_check(&s->names, s->path);
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the schema has %zu classes, and none is `%s`; expected a schema with all "
                 "classes, or other names by `geotrain data classes`",
                 s->path, s->names.n, missing);
}

/* Replaces the labels of a split by their classes. */
static gt_status map_labels(gt_data_store *s, gt_split split) {
  enum { BLOCK = 65536 };
  int32_t *labels = GT_NEW_ARRAY(int32_t, BLOCK);
  gt_status status = GT_OK;
  for (size_t first = 0; first < s->shape.n[split] && status == GT_OK; first += BLOCK) {
    const size_t n = s->shape.n[split] - first < BLOCK ? s->shape.n[split] - first : BLOCK;
    status = gt_data_h5_read_rows(s->y[split], s->path, "y", H5T_NATIVE_INT32, first, n, labels);
    for (size_t i = 0; i < n && status == GT_OK; i++) labels[i] = s->map[labels[i]];
    if (status == GT_OK) status = gt_data_store_labels(s, split, first, n, labels);
  }
  gt_free(labels);
  return status;
}

/* Classes without names keep their numbers in a schema. */
static gt_status finish_classes(gt_data_store *s, size_t *classes) {
  const gt_class_names *all = s->shape.schema ? &s->shape.schema->classes : &s->names;
  if (s->map)
    for (int k = 0; k < 2; k++) GT_TRY(map_labels(s, (gt_split)k));
  else if (s->shape.schema && all->n > 0 && *classes > all->n)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: has %zu classes, and the schema has %zu; expected at most these", s->path,
                   *classes, all->n);
  else
    gt_class_names_join(&s->names, all);
  if (s->names.n > 0) *classes = s->names.n;
  if (*classes < 2)
    return GT_FAIL(GT_ERR_DATA, "%s: has %zu class; expected 2 or more", s->path, *classes);
  return gt_class_names_write(&s->names, s->file) ? GT_OK
                                                  : failed(s, "writing the names of the classes");
}

static gt_status write_attributes(gt_data_store *s, const char *name, size_t classes) {
  GT_TRY(finish_classes(s, &classes));
  int64_t schema = GT_DATASET_SCHEMA, count = (int64_t)classes;
  bool ok =
      write_attr(s->file, "geotrain_schema", H5T_STD_I64LE, H5T_NATIVE_INT64, 0, 1, &schema) &&
      write_attr(s->file, "classes", H5T_STD_I64LE, H5T_NATIVE_INT64, 0, 1, &count) &&
      write_text(s->file, "name", name) && write_input(s);
  return ok ? GT_OK : failed(s, "writing attributes");
}

static bool sync_file(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = fsync(fd) == 0;
  int reason = errno;
  close(fd);
  errno = reason;
  return ok;
}

/* Publishes the file: fsync, rename, fsync of the folder. */
static gt_status publish(gt_data_store *s) {
  if (!sync_file(s->temporary))
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be made durable (%s)", s->path, strerror(errno));
  if (rename(s->temporary, s->path) != 0)
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be given its name (%s)", s->path, strerror(errno));
  s->finished = true;
  return gt_name_sync(s->path) ? GT_OK
                               : GT_FAIL(GT_ERR_DATA, "%s: its folder cannot be made durable (%s)",
                                         s->path, strerror(errno));
}

static void close_sets(gt_data_store *s) {
  for (int i = 0; i < 2; i++) {
    gt_data_h5_close(s->x[i]);
    gt_data_h5_close(s->y[i]);
    s->x[i] = s->y[i] = -1;
  }
}

gt_status gt_data_store_finish(gt_data_store *s, const char *name, size_t classes) {
  gt_data_h5_quiet();
  GT_TRY(write_attributes(s, name, classes));
  close_sets(s);
  if (H5Fflush(s->file, H5F_SCOPE_GLOBAL) < 0) return failed(s, "flushing the file");
  hid_t file = s->file;
  s->file = -1;
  if (H5Fclose(file) < 0) return failed(s, "closing the file");
  return publish(s);
}

void gt_data_store_close(gt_data_store *s) {
  if (!s) return;
  gt_data_h5_quiet();
  close_sets(s);
  gt_data_h5_close(s->file);
  if (!s->finished) unlink(s->temporary);
  gt_data_sums_close(&s->sums);
  gt_free(s->names.text);
  gt_free(s->map);
  gt_free(s->temporary);
  gt_free(s->path);
  gt_free(s);
}
