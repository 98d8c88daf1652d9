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

static double zeros[40 * 6 * 5];
static const hsize_t x_dims[4] = {30, 6, 5, 1};

static void no_train(hid_t f) {
  H5Ldelete(f, "train", H5P_DEFAULT);
}
static void no_test(hid_t f) {
  H5Ldelete(f, "test", H5P_DEFAULT);
}
static void no_x(hid_t f) {
  H5Ldelete(f, "train/x", H5P_DEFAULT);
}
static void no_y(hid_t f) {
  H5Ldelete(f, "test/y", H5P_DEFAULT);
}
static void dangling_x(hid_t f) {
  no_x(f);
  H5Lcreate_soft("/nowhere", f, "train/x", H5P_DEFAULT, H5P_DEFAULT);
}
static void x_is_group(hid_t f) {
  no_x(f);
  H5Gclose(H5Gcreate2(f, "train/x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void x_rank(hid_t f) {
  replace_set(f, "train/x", H5T_STD_U8LE, 3, x_dims, H5T_NATIVE_DOUBLE, zeros);
}
static void y_rank(hid_t f) {
  replace_set(f, "train/y", H5T_STD_I32LE, 2, (hsize_t[]){30, 1}, H5T_NATIVE_DOUBLE, zeros);
}
static void y_scalar(hid_t f) {
  replace_set(f, "train/y", H5T_STD_I32LE, 0, NULL, H5T_NATIVE_DOUBLE, zeros);
}
static void x_double(hid_t f) {
  replace_set(f, "train/x", H5T_IEEE_F64LE, 4, x_dims, H5T_NATIVE_DOUBLE, zeros);
}
static void x_signed(hid_t f) {
  replace_set(f, "train/x", H5T_STD_I8LE, 4, x_dims, H5T_NATIVE_DOUBLE, zeros);
}
static void x_mixed(hid_t f) {
  replace_set(f, "train/x", H5T_IEEE_F32LE, 4, x_dims, H5T_NATIVE_DOUBLE, zeros);
}
static void y_int64(hid_t f) {
  replace_set(f, "test/y", H5T_STD_I64LE, 1, (hsize_t[]){20}, H5T_NATIVE_DOUBLE, zeros);
}
static void y_short(hid_t f) {
  replace_set(f, "train/y", H5T_STD_I32LE, 1, (hsize_t[]){29}, H5T_NATIVE_DOUBLE, zeros);
}
static void shapes_differ(hid_t f) {
  replace_set(f, "test/x", H5T_STD_U8LE, 4, (hsize_t[]){20, 5, 6, 1}, H5T_NATIVE_DOUBLE, zeros);
}
static void no_samples(hid_t f) {
  replace_set(f, "train/x", H5T_STD_U8LE, 4, (hsize_t[]){0, 6, 5, 1}, H5T_NATIVE_DOUBLE, NULL);
  replace_set(f, "train/y", H5T_STD_I32LE, 1, (hsize_t[]){0}, H5T_NATIVE_DOUBLE, NULL);
}
static void no_height(hid_t f) {
  replace_set(f, "train/x", H5T_STD_U8LE, 4, (hsize_t[]){30, 0, 5, 1}, H5T_NATIVE_DOUBLE, NULL);
}
static void huge(hid_t f) {
  replace_set(f, "train/x", H5T_STD_U8LE, 4, (hsize_t[]){4000000000, 1000, 1000, 3},
              H5T_NATIVE_DOUBLE, NULL);
  replace_set(f, "train/y", H5T_STD_I32LE, 1, (hsize_t[]){4000000000}, H5T_NATIVE_DOUBLE, NULL);
}
static void huge_images(hid_t f) {
  replace_set(f, "train/x", H5T_STD_U8LE, 4, (hsize_t[]){30, 100000, 100000, 1}, H5T_NATIVE_DOUBLE,
              NULL);
}
static void set_label(hid_t f, int32_t value) {
  int32_t y[30] = {0};
  y[17] = value;
  replace_set(f, "train/y", H5T_STD_I32LE, 1, (hsize_t[]){30}, H5T_NATIVE_INT32, y);
}
static void label_high(hid_t f) {
  set_label(f, 4);
}
static void label_negative(hid_t f) {
  set_label(f, -1);
}
static void set_float(hid_t f, double value) {
  static double x[30 * 6 * 5];
  for (size_t i = 0; i < 30 * 6 * 5; i++) x[i] = (double)i / 7;
  replace_set(f, "train/x", H5T_IEEE_F32LE, 4, x_dims, H5T_NATIVE_DOUBLE, x);
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
static void no_schema(hid_t f) {
  H5Adelete(f, "geotrain_schema");
}
static void schema_2(hid_t f) {
  replace_attr(f, "geotrain_schema", H5T_NATIVE_INT, 1, (int[]){2});
}
static void schema_text(hid_t f) {
  replace_attr(f, "geotrain_schema", H5T_C_S1, 1, "1");
}
static void no_name(hid_t f) {
  H5Adelete(f, "name");
}
static void name_number(hid_t f) {
  replace_attr(f, "name", H5T_NATIVE_INT, 1, (int[]){2});
}
static void no_classes(hid_t f) {
  H5Adelete(f, "classes");
}
static void classes_1(hid_t f) {
  replace_attr(f, "classes", H5T_NATIVE_INT, 1, (int[]){1});
}
static void classes_two(hid_t f) {
  replace_attr(f, "classes", H5T_NATIVE_INT, 2, (int[]){4, 4});
}
static void no_mean(hid_t f) {
  H5Adelete(f, "mean");
}
static void mean_double(hid_t f) {
  replace_attr(f, "mean", H5T_NATIVE_DOUBLE, 1, (double[]){0.5});
}
static void mean_two(hid_t f) {
  replace_attr(f, "mean", H5T_NATIVE_FLOAT, 2, (float[]){0.5F, 0.5F});
}
static void mean_nan(hid_t f) {
  replace_attr(f, "mean", H5T_NATIVE_FLOAT, 1, (float[]){NAN});
}
static void std_zero(hid_t f) {
  replace_attr(f, "std", H5T_NATIVE_FLOAT, 1, (float[]){0.0F});
}
static void std_inf(hid_t f) {
  replace_attr(f, "std", H5T_NATIVE_FLOAT, 1, (float[]){INFINITY});
}
static void std_negative(hid_t f) {
  replace_attr(f, "std", H5T_NATIVE_FLOAT, 1, (float[]){-1.0F});
}

static const struct {
  void (*spoil)(hid_t file);
  const char *said; /* NULL: the file stays valid */
} cases[] = {
    {no_train, "the group /train is missing"},
    {no_test, "the group /test is missing"},
    {no_x, "/train/x is missing"},
    {no_y, "/test/y is missing"},
    {dangling_x, "/train/x is missing"},
    {x_is_group, "/train/x cannot be opened"},
    {x_rank, "/train/x has 3 dimensions; expected (N,H,W,C)"},
    {y_rank, "/train/y has 2 dimensions; expected (N)"},
    {y_scalar, "/train/y has 0 dimensions; expected (N)"},
    {x_double, "/train/x is float64; expected uint8, float32 or int32"},
    {x_signed, "/train/x is int8; expected uint8, float32 or int32"},
    {x_mixed, "/test/x is uint8 but /train/x is float32"},
    {y_int64, "/test/y is int64; expected int32"},
    {y_short, "/train/x has 30 samples but /train/y has 29"},
    {shapes_differ, "/test/x holds images of 5 x 6 x 1 but /train/x of 6 x 5 x 1"},
    {no_samples, "/train has 0 samples"},
    {no_height, "/train/x holds images of 0 x 5 x 1"},
    {huge, "the file is damaged"},
    {huge_images, "the file is damaged"},
    {label_high, "/train/y[17] is 4; expected labels 0 to 3"},
    {label_negative, "/train/y[17] is -1; expected labels 0 to 3"},
    {x_nan, "/test/x holds nan in sample 12, value 4"},
    {x_inf, "/test/x holds -inf in sample 12, value 4"},
    {floats_good, NULL},
    {no_schema, "`geotrain_schema` of / is missing"},
    {schema_2, "geotrain_schema is 2; this version reads schema 1"},
    {schema_text, "`geotrain_schema` is a string"},
    {no_name, "`name` of / is missing"},
    {name_number, "`name` is int32"},
    {no_classes, "`classes` of / is missing"},
    {classes_1, "classes is 1; expected 2 to"},
    {classes_two, "`classes` is int32 with 2 elements"},
    {no_mean, "`mean` of / is missing"},
    {mean_double, "`mean` is float64"},
    {mean_two, "`mean` is float32 with 2 elements"},
    {mean_nan, "mean[0] is nan"},
    {std_zero, "std[0] is 0; expected a number above 0"},
    {std_inf, "std[0] is inf"},
    {std_negative, "std[0] is -1"},
};

static void test_bad_contents(void) {
  const char *path = scratch("bad.h5");
  gt_dataset *dataset;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(gt_data_synth(path, &small), GT_OK);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    cases[i].spoil(file);
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

static void schema_of(void (*change)(hid_t file), const gt_synth_spec *spec, char sha256[65]) {
  const char *path = scratch("schema.h5");
  gt_dataset *dataset;
  assert_int_equal(gt_data_synth(path, spec), GT_OK);
  if (change) {
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    change(file);
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
