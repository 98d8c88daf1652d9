/* Data sets of ids: the loader returns what is stored, invalid ids are rejected, and regions
   compare the number of ids. */
#include "scratch.h"

#include <hdf5.h>

#include "loader.h"
#include "store.h"

enum { NTRAIN = 130, NTEST = 20, FIELDS = 4, FEATURES = 1000 };

static int32_t ids[NTRAIN][FIELDS], labels[NTRAIN];

static int make_samples(void **state) {
  (void)state;
  gt_rng rng = gt_rng_make(6, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < NTRAIN; i++) {
    labels[i] = (int32_t)gt_rng_below(&rng, 2);
    for (size_t k = 0; k < FIELDS; k++) ids[i][k] = (int32_t)gt_rng_below(&rng, FEATURES);
  }
  ids[3][1] = FEATURES - 1;
  ids[5][2] = 0x3f800000 % FEATURES;
  return 0;
}

/* Written in pieces of unequal size, as importers do. */
static void write_file(const char *path, size_t features) {
  gt_data_store *store;
  const gt_data_shape shape = {
      .n = {NTRAIN, NTEST}, .h = 1, .w = 1, .c = FIELDS, .features = features};
  assert_int_equal(gt_data_store_create(&store, path, &shape), GT_OK);
  for (int s = 0; s < 2; s++) {
    size_t n = shape.n[s];
    assert_int_equal(gt_data_store_samples(store, (gt_split)s, 0, 7, ids[0]), GT_OK);
    assert_int_equal(gt_data_store_samples(store, (gt_split)s, 7, n - 7, ids[7]), GT_OK);
    assert_int_equal(gt_data_store_labels(store, (gt_split)s, 0, n, labels), GT_OK);
  }
  assert_int_equal(gt_data_store_finish(store, "clicks", 2), GT_OK);
  gt_data_store_close(store);
}

static void test_loader(void) {
  static const uint32_t part[] = {0, 3, 5, 6, 40, 129};
  static int32_t x[NTRAIN][FIELDS], y[NTRAIN];
  gt_dataset *dataset;
  gt_loader *whole, *some;
  write_file(scratch("i.h5"), FEATURES);
  assert_int_equal(gt_dataset_open(&dataset, scratch("i.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_true(info->input == GT_INPUT_IDS && info->features == FEATURES && info->h == 1 &&
              info->w == 1 && info->c == FIELDS);
  assert_true(gt_dataset_mean(dataset)[FIELDS - 1] == 0 &&
              gt_dataset_std(dataset)[FIELDS - 1] == 1);
  assert_int_equal(gt_loader_create(&whole, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  assert_int_equal(gt_loader_create(&some, dataset, GT_SPLIT_TRAIN, part, 6), GT_OK);
  gt_dataset_close(dataset);
  int64_t allocations = gt_alloc_total();
  gt_loader_range(whole, 0, NTRAIN, x, y);
  assert_memory_equal(x, ids, sizeof ids);
  assert_memory_equal(y, labels, sizeof labels);
  gt_order order = {.seed = 1, .region = 2, .n = 6, .batch = 4};
  for (int64_t number = 0; number < 6; number++) {
    gt_permutation p = gt_order_permutation(&order, number / 2);
    size_t size = gt_loader_batch(some, &order, number, x, y);
    assert_int_equal(size, number % 2 ? 2 : 4);
    for (size_t i = 0; i < size; i++) {
      size_t sample = part[gt_permutation_at(&p, (size_t)(number % 2) * 4 + i)];
      assert_memory_equal(x[i], ids[sample], sizeof ids[sample]);
      assert_int_equal(y[i], labels[sample]);
    }
  }
  assert_int_equal(gt_loader_augment(some, GT_AUGMENT_NONE), GT_OK);
  assert_int_equal(gt_alloc_total(), allocations);
  assert_failed(gt_loader_augment(some, GT_AUGMENT_CROP_FLIP), GT_ERR_JOB,
                "data.augment is crop-flip, but the samples are ids; expected images");
  gt_loader_close(some);
  gt_loader_close(whole);
}

/* ---- refused files --------------------------------------------------------------------------- */

static void set_x(hid_t f, const char *name, hid_t type, const hsize_t dims[4], const void *data) {
  H5Ldelete(f, name, H5P_DEFAULT);
  hid_t space = H5Screate_simple(4, dims, NULL);
  hid_t dset = H5Dcreate2(f, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(dset >= 0 &&
              H5Dwrite(dset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(dset);
  H5Sclose(space);
}

static const hsize_t dims[4] = {NTRAIN, 1, 1, FIELDS};

static void set_id(hid_t f, int32_t id) {
  static int32_t x[NTRAIN][FIELDS];
  memcpy(x, ids, sizeof x);
  x[77][2] = id;
  set_x(f, "train/x", H5T_STD_I32BE, dims, x); /* any byte order is accepted */
}

static void set_features(hid_t f, int64_t value) {
  H5Adelete(f, "features");
  hid_t space = H5Screate(H5S_SCALAR),
        attr = H5Acreate2(f, "features", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attr, H5T_NATIVE_INT64, &value) >= 0);
  H5Aclose(attr);
  H5Sclose(space);
}

static void id_last(hid_t f) {
  set_id(f, FEATURES - 1);
}
static void id_high(hid_t f) {
  set_id(f, FEATURES);
}
static void id_negative(hid_t f) {
  set_id(f, -1);
}
static void features_few(hid_t f) {
  set_features(f, FEATURES - 1);
}
static void features_none(hid_t f) {
  set_features(f, 0);
}
static void features_many(hid_t f) {
  set_features(f, 2147483647);
}
static void features_missing(hid_t f) {
  H5Adelete(f, "features");
}
static void x_square(hid_t f) {
  set_x(f, "train/x", H5T_STD_I32LE, (hsize_t[]){NTRAIN, 2, 1, 2}, ids);
}
static void x_unsigned(hid_t f) {
  set_x(f, "train/x", H5T_STD_U32LE, dims, ids);
}
static void x_mixed(hid_t f) {
  set_x(f, "test/x", H5T_IEEE_F32LE, (hsize_t[]){NTEST, 1, 1, FIELDS}, ids);
}
static void x_fewer(hid_t f) {
  set_x(f, "test/x", H5T_STD_I32LE, (hsize_t[]){NTEST, 1, 1, FIELDS - 1}, ids);
}

static const struct {
  void (*spoil)(hid_t file);
  const char *said; /* NULL: the file stays valid */
} cases[] = {
    {id_last, NULL},
    {id_high, "/train/x holds id 1000 in sample 77, field 2; expected ids 0 to 999"},
    {id_negative, "/train/x holds id -1 in sample 77, field 2; expected ids 0 to 999"},
    {features_few, "/train/x holds id 999 in sample 3, field 1; expected ids 0 to 998"},
    {features_none, "features is 0; expected 1 to 2147483646"},
    {features_many, "features is 2147483647; expected 1 to 2147483646"},
    {features_missing, "`features` of / is missing"},
    {x_square, "/train/x is int32 of 2 x 1 x 2 a sample; ids need 1 x 1 x F"},
    {x_unsigned, "/train/x is uint32; expected uint8, float32 or int32"},
    {x_mixed, "/test/x is float32 but /train/x is int32; both must be the same"},
    {x_fewer, "/test/x holds images of 1 x 1 x 3 but /train/x of 1 x 1 x 4"},
};

static void test_refused(void) {
  const char *path = scratch("bad.h5");
  gt_dataset *dataset;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(path, FEATURES);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    cases[i].spoil(file);
    assert_true(H5Fclose(file) >= 0);
    gt_status status = gt_dataset_open(&dataset, path);
    if (cases[i].said)
      assert_failed(status, GT_ERR_DATA, cases[i].said);
    else
      assert_int_equal(status, GT_OK);
    gt_dataset_close(dataset);
  }
}

static void schema_of(size_t features, char sha256[65]) {
  gt_dataset *dataset;
  write_file(scratch("s.h5"), features);
  assert_int_equal(gt_dataset_open(&dataset, scratch("s.h5")), GT_OK);
  memcpy(sha256, gt_dataset_describe(dataset)->schema_sha256, 65);
  gt_dataset_close(dataset);
}

static void test_schema(void) {
  char a[65], b[65];
  schema_of(FEATURES, a);
  schema_of(FEATURES, b);
  assert_string_equal(a, b);
  schema_of(FEATURES + 1, b);
  assert_string_not_equal(a, b);
}

TESTS_BETWEEN(make_samples, scratch_remove, test_loader, test_refused, test_schema)
