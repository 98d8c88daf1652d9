/* Every kind of invalid data set file is rejected with a sentence that says what was found and what
   was expected. */
#include "scratch.h"

#include <hdf5.h>
#include <math.h>

static const gt_synth_spec small = {
    .seed = 3, .ntrain = 30, .ntest = 20, .h = 6, .w = 5, .classes = 4};

/* ---- invalid files --------------------------------------------------------------------------- */

static void replace_set(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                        hid_t memory, const void *data) {
  H5Ldelete(file, name, H5P_DEFAULT);
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t dset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(dset >= 0);
  if (data) assert_true(H5Dwrite(dset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(dset);
  H5Sclose(space);
}

static void replace_attr(hid_t file, const char *name, hid_t type, size_t n, const void *data) {
  hsize_t dims[1] = {n};
  if (H5Aexists(file, name) > 0) H5Adelete(file, name);
  hid_t space = H5Screate_simple(1, dims, NULL),
        attr = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(attr >= 0 && H5Awrite(attr, type, data) >= 0);
  H5Aclose(attr);
  H5Sclose(space);
}

/* A change of a valid file: one of a link or an attribute that is removed, an attribute or a data
   set that is replaced, and a function. */
typedef struct {
  const char *unlink, *drop, *attr, *set;
  hid_t type;
  size_t n;         /* elements of the attribute, dimensions of the data set */
  hsize_t dims[4];  /* of the data set */
  bool empty;       /* nothing is written to the data set; else zeros or, if given, data */
  const void *data; /* of the type; for a data set doubles or, of an int32, int32 */
  void (*spoil)(hid_t file);
  const char *said; /* NULL: the file stays valid */
} change;

static void apply(hid_t file, const change *c) {
  static const double zeros[40 * 6 * 5];
  if (c->unlink) H5Ldelete(file, c->unlink, H5P_DEFAULT);
  if (c->drop) H5Adelete(file, c->drop);
  if (c->attr) replace_attr(file, c->attr, c->type, c->n, c->data);
  if (c->set)
    replace_set(file, c->set, c->type, (int)c->n, c->dims, c->data ? c->type : H5T_NATIVE_DOUBLE,
                c->empty  ? NULL
                : c->data ? c->data
                          : zeros);
  if (c->spoil) c->spoil(file);
}

static void dangling_x(hid_t f) {
  H5Ldelete(f, "train/x", H5P_DEFAULT);
  H5Lcreate_soft("/nowhere", f, "train/x", H5P_DEFAULT, H5P_DEFAULT);
}
static void x_is_group(hid_t f) {
  H5Ldelete(f, "train/x", H5P_DEFAULT);
  H5Gclose(H5Gcreate2(f, "train/x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void no_samples(hid_t f) {
  const change y = {.set = "train/y", .type = H5T_STD_I32LE, .n = 1, .empty = true};
  apply(f, &y);
}
static void many_labels(hid_t f) {
  const change y = {
      .set = "train/y", .type = H5T_STD_I32LE, .n = 1, .dims = {4000000000}, .empty = true};
  apply(f, &y);
}
static void set_float(hid_t f, double value) {
  static double x[30 * 6 * 5];
  for (size_t i = 0; i < 30 * 6 * 5; i++) x[i] = (double)i / 7;
  replace_set(f, "train/x", H5T_IEEE_F32LE, 4, (hsize_t[]){30, 6, 5, 1}, H5T_NATIVE_DOUBLE, x);
  x[12 * 30 + 4] = value;
  replace_set(f, "test/x", H5T_IEEE_F32LE, 4, (hsize_t[]){20, 6, 5, 1}, H5T_NATIVE_DOUBLE, x);
}
static void x_nan(hid_t f) {
  set_float(f, (double)NAN);
}
static void x_inf(hid_t f) {
  set_float(f, -(double)INFINITY);
}
static void floats_good(hid_t f) {
  set_float(f, 2.5);
  H5Adelete(f, "mean"); /* float input is not scaled */
}

#define SET(name, kind, dimensions, ...)                                                           \
  .set = name, .type = kind, .n = dimensions, .dims = {__VA_ARGS__}
#define ATTR(name, kind, ...)                                                                      \
  .attr = name, .type = kind, .n = sizeof((__VA_ARGS__)) / H5Tget_size(kind), .data = (__VA_ARGS__)

static void test_bad_contents(void) {
  const char *path = scratch("bad.h5");
  const int32_t high[30] = {[17] = 4}, negative[30] = {[17] = -1};
  gt_dataset *dataset;
  const change cases[] = {
      {.unlink = "train", .said = "the group /train is missing"},
      {.unlink = "test", .said = "the group /test is missing"},
      {.unlink = "train/x", .said = "/train/x is missing"},
      {.unlink = "test/y", .said = "/test/y is missing"},
      {.spoil = dangling_x, .said = "/train/x is missing"},
      {.spoil = x_is_group, .said = "/train/x cannot be opened"},
      {SET("train/x", H5T_STD_U8LE, 3, 30, 6, 5),
       .said = "/train/x has 3 dimensions; expected (N,H,W,C)"},
      {SET("train/y", H5T_STD_I32LE, 2, 30, 1), .said = "/train/y has 2 dimensions; expected (N)"},
      {SET("train/y", H5T_STD_I32LE, 0, 0), .said = "/train/y has 0 dimensions; expected (N)"},
      {SET("train/x", H5T_IEEE_F64LE, 4, 30, 6, 5, 1),
       .said = "/train/x is float64; expected uint8, float32 or int32"},
      {SET("train/x", H5T_STD_I8LE, 4, 30, 6, 5, 1),
       .said = "/train/x is int8; expected uint8, float32 or int32"},
      {SET("train/x", H5T_IEEE_F32LE, 4, 30, 6, 5, 1),
       .said = "/test/x is uint8 but /train/x is float32"},
      {SET("test/y", H5T_STD_I64LE, 1, 20), .said = "/test/y is int64; expected int32"},
      {SET("train/y", H5T_STD_I32LE, 1, 29), .said = "/train/x has 30 samples but /train/y has 29"},
      {SET("test/x", H5T_STD_U8LE, 4, 20, 5, 6, 1),
       .said = "/test/x holds images of 5 x 6 x 1 but /train/x of 6 x 5 x 1"},
      {SET("train/x", H5T_STD_U8LE, 4, 0, 6, 5, 1), .empty = true, .spoil = no_samples,
       .said = "/train has 0 samples"},
      {SET("train/x", H5T_STD_U8LE, 4, 30, 0, 5, 1), .empty = true,
       .said = "/train/x holds images of 0 x 5 x 1"},
      {SET("train/x", H5T_STD_U8LE, 4, 4000000000, 1000, 1000, 3), .empty = true,
       .spoil = many_labels, .said = "the file is damaged"},
      {SET("train/x", H5T_STD_U8LE, 4, 30, 100000, 100000, 1), .empty = true,
       .said = "the file is damaged"},
      {SET("train/y", H5T_STD_I32LE, 1, 30), .data = high,
       .said = "/train/y[17] is 4; expected labels 0 to 3"},
      {SET("train/y", H5T_STD_I32LE, 1, 30), .data = negative,
       .said = "/train/y[17] is -1; expected labels 0 to 3"},
      {.spoil = x_nan, .said = "/test/x holds nan in sample 12, value 4"},
      {.spoil = x_inf, .said = "/test/x holds -inf in sample 12, value 4"},
      {.spoil = floats_good},
      {.drop = "geotrain_schema", .said = "`geotrain_schema` of / is missing"},
      {ATTR("geotrain_schema", H5T_NATIVE_INT, (int[]){2}),
       .said = "geotrain_schema is 2; this version reads schema 1"},
      {.attr = "geotrain_schema",
       .type = H5T_C_S1,
       .n = 1,
       .data = "1",
       .said = "`geotrain_schema` is a string"},
      {.drop = "name", .said = "`name` of / is missing"},
      {ATTR("name", H5T_NATIVE_INT, (int[]){2}), .said = "`name` is int32"},
      {.drop = "classes", .said = "`classes` of / is missing"},
      {ATTR("classes", H5T_NATIVE_INT, (int[]){1}), .said = "classes is 1; expected 2 to"},
      {ATTR("classes", H5T_NATIVE_INT, (int[]){4, 4}),
       .said = "`classes` is int32 with 2 elements"},
      {.drop = "mean", .said = "`mean` of / is missing"},
      {ATTR("mean", H5T_NATIVE_DOUBLE, (double[]){0.5}), .said = "`mean` is float64"},
      {ATTR("mean", H5T_NATIVE_FLOAT, (float[]){0.5F, 0.5F}),
       .said = "`mean` is float32 with 2 elements"},
      {ATTR("mean", H5T_NATIVE_FLOAT, (float[]){NAN}), .said = "mean[0] is nan"},
      {ATTR("std", H5T_NATIVE_FLOAT, (float[]){0}),
       .said = "std[0] is 0; expected a number above 0"},
      {ATTR("std", H5T_NATIVE_FLOAT, (float[]){INFINITY}), .said = "std[0] is inf"},
      {ATTR("std", H5T_NATIVE_FLOAT, (float[]){-1}), .said = "std[0] is -1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(gt_data_synth(path, &small), GT_OK);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    apply(file, &cases[i]);
    assert_true(H5Fclose(file) >= 0);
    gt_status status = gt_dataset_open(&dataset, path);
    if (cases[i].said) {
      assert_failed(status, GT_ERR_DATA, cases[i].said);
      assert_failed(status, GT_ERR_DATA, "bad.h5: ");
      assert_null(dataset);
    } else
      assert_int_equal(status, GT_OK);
    gt_dataset_close(dataset);
  }
}

static void test_bad_files(void) {
  const char *path = scratch("bad.h5");
  gt_dataset *dataset;
  size_t size;
  assert_failed(gt_dataset_open(&dataset, scratch("nothing.h5")), GT_ERR_DATA,
                "nothing.h5: cannot be opened (No such file");
  assert_failed(gt_dataset_open(&dataset, scratch(".")), GT_ERR_DATA, "is not a file");
  scratch_write(path, "", 0);
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "bad.h5: is not an HDF5 file");
  scratch_write(path, "name: a text\n", 13);
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "bad.h5: is not an HDF5 file");
  assert_int_equal(gt_data_synth(path, &small), GT_OK);
  uint8_t *bytes = scratch_read(path, &size);
  for (size_t keep = 1; keep < size; keep += 97) {
    scratch_write(path, bytes, keep);
    assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "bad.h5: ");
  }
  scratch_write(path, bytes, size - 1);
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "truncated");
  gt_free(bytes);
}

/* ---- the properties that regions compare ----------------------------------------------------- */

static void schema_of(void (*edit)(hid_t file), const gt_synth_spec *spec, char sha256[65]) {
  const char *path = scratch("schema.h5");
  gt_dataset *dataset;
  assert_int_equal(gt_data_synth(path, spec), GT_OK);
  if (edit) {
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    edit(file);
    assert_true(H5Fclose(file) >= 0);
  }
  assert_int_equal(gt_dataset_open(&dataset, path), GT_OK);
  memcpy(sha256, gt_dataset_describe(dataset)->schema_sha256, 65);
  gt_dataset_close(dataset);
}

static void set_norm(hid_t f) {
  replace_attr(f, "mean", H5T_NATIVE_FLOAT, 1, (float[]){0.5F});
  replace_attr(f, "std", H5T_NATIVE_FLOAT, 1, (float[]){0.25F});
}
static void set_norm_next(hid_t f) {
  set_norm(f);
  replace_attr(f, "std", H5T_NATIVE_FLOAT, 1, (float[]){nextafterf(0.25F, 1)});
}
static void more_classes(hid_t f) {
  set_norm(f);
  replace_attr(f, "classes", H5T_NATIVE_INT, 1, (int[]){5});
}
/* A text as written by h5py. */
static void renamed(hid_t f) {
  const char *text = "other";
  set_norm(f);
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  replace_attr(f, "name", type, 1, &text);
  H5Tclose(type);
}

static void test_schema(void) {
  gt_synth_spec other = {.seed = 9, .ntrain = 11, .ntest = 12, .h = 6, .w = 5, .classes = 4};
  char a[65], b[65];
  schema_of(set_norm, &small, a);
  assert_int_equal(strlen(a), 64);
  schema_of(renamed, &other, b); /* other samples, counts and name: the same schema */
  assert_string_equal(a, b);
  schema_of(set_norm_next, &small, b);
  assert_string_not_equal(a, b);
  schema_of(more_classes, &small, b);
  assert_string_not_equal(a, b);
  schema_of(floats_good, &small, b);
  assert_string_not_equal(a, b);
  other.h = 7;
  schema_of(set_norm, &other, b);
  assert_string_not_equal(a, b);
}

TESTS_BETWEEN(NULL, scratch_remove, test_bad_contents, test_bad_files, test_schema)
