/* Splitting a data set into one file per region: each has its samples unchanged, and the exact sums
   of the parts give the normalisation of the whole. */
#include "scratch.h"

#include <hdf5.h>
#include <unistd.h>

enum { TRAIN = 90, TEST = 20, PARTS = 3, VALUES = 6 * 6 };

static const gt_synth_spec spec = {
    .seed = 3, .ntrain = TRAIN, .ntest = TEST, .h = 6, .w = 6, .classes = 4};
static const double shares[PARTS] = {3, 2, 1};
static size_t nwritten;
static char written[PARTS][512];

static void wrote(const char *path) {
  snprintf(written[nwritten++], sizeof written[0], "%s", path);
}

static gt_status split(const char *path, gt_part_kind kind, gt_tests tests) {
  const gt_partition p = {.kind = kind, .nregions = PARTS, .shares = shares, .alpha = 1, .seed = 5};
  nwritten = 0;
  return gt_data_split(path, &p, tests, NULL, false, wrote);
}

static gt_dataset *open_file(const char *path) {
  gt_dataset *dataset;
  if (gt_dataset_open(&dataset, path) != GT_OK) fail_msg("%s", gt_error_text());
  return dataset;
}

/* Samples of a split as they are stored. */
static void read_values(gt_dataset *dataset, gt_split which, size_t first, void *x, int32_t *y) {
  static const float zero[8] = {0}, one[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  gt_loader *loader;
  if (gt_dataset_describe(dataset)->input == GT_INPUT_BYTES)
    gt_dataset_normalise(dataset, zero, one);
  assert_int_equal(gt_loader_create(&loader, dataset, which, NULL, 0), GT_OK);
  gt_loader_range(loader, first, 1, x, y);
  gt_loader_close(loader);
}

static void check_same(gt_dataset *a, gt_dataset *b, gt_split which, size_t in_a, size_t in_b) {
  float xa[VALUES] = {0}, xb[VALUES] = {0};
  int32_t ya, yb;
  read_values(a, which, in_a, xa, &ya);
  read_values(b, which, in_b, xb, &yb);
  assert_memory_equal(xa, xb, sizeof xa);
  assert_int_equal(ya, yb);
}

/* Every part has its samples, in their order, and all test samples. */
static void check_parts(const char *path, gt_part_kind kind) {
  const gt_partition p = {.kind = kind, .nregions = PARTS, .shares = shares, .alpha = 1, .seed = 5};
  gt_dataset *whole = open_file(path);
  const gt_dataset_info *d = gt_dataset_describe(whole);
  assert_int_equal(split(path, kind, GT_TESTS_ALL), GT_OK);
  assert_int_equal(nwritten, PARTS);
  for (size_t r = 0; r < PARTS; r++) {
    uint32_t *samples;
    size_t n;
    gt_dataset *part = open_file(written[r]);
    const gt_dataset_info *of = gt_dataset_describe(part);
    assert_int_equal(
        gt_partition_part(&p, gt_dataset_labels(whole, GT_SPLIT_TRAIN), d->ntrain, r, &samples, &n),
        GT_OK);
    assert_true(of->ntrain == n && of->ntest == d->ntest && of->classes == d->classes &&
                of->features == d->features && of->input == d->input);
    assert_string_equal(of->name, d->name);
    assert_string_equal(of->tests_sha256, d->tests_sha256);
    assert_string_not_equal(of->tests_sha256, of->samples_sha256);
    for (size_t i = 0; i < n; i++) check_same(part, whole, GT_SPLIT_TRAIN, i, samples[i]);
    for (size_t i = 0; i < d->ntest; i++) check_same(part, whole, GT_SPLIT_TEST, i, i);
    gt_free(samples);
    gt_dataset_close(part);
  }
  gt_dataset_close(whole);
}

static const char *make(void) {
  const char *path = scratch("whole.h5");
  assert_int_equal(gt_data_synth(path, &spec), GT_OK);
  return path;
}

static void test_bytes(void) {
  const char *path = make();
  for (int kind = GT_PART_SHARES; kind <= GT_PART_DIRICHLET; kind++)
    check_parts(path, (gt_part_kind)kind);
  assert_non_null(strstr(written[2], "/whole-3.h5"));
}

static void test_floats(void) {
  const char *path = make(), *const names[] = {"train/x", "test/x"};
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  for (size_t i = 0; i < 2; i++) {
    static float x[TRAIN * VALUES];
    hid_t old = H5Dopen2(file, names[i], H5P_DEFAULT), space = H5Dget_space(old);
    assert_true(H5Dread(old, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Dclose(old);
    H5Ldelete(file, names[i], H5P_DEFAULT);
    hid_t now =
        H5Dcreate2(file, names[i], H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(now, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Dclose(now);
    H5Sclose(space);
  }
  H5Fclose(file);
  check_parts(path, GT_PART_SHARES);
}

static void test_ids(void) {
  char text[2][4096] = {"", ""};
  const char *folder = scratch("clicks"), *out = scratch("clicks.h5");
  for (int i = 0; i < 40; i++)
    sprintf(text[i % 2] + strlen(text[i % 2]), "%d %d:1 %d:1\n", i % 4 < 2, i, 80 - i);
  assert_int_equal(mkdir(folder, 0777), 0);
  scratch_write(scratch("clicks/c.train.libfm"), text[0], strlen(text[0]));
  scratch_write(scratch("clicks/c.test.libfm"), text[1], strlen(text[1]));
  assert_int_equal(import_from("libfm", folder, out), GT_OK);
  check_parts(out, GT_PART_SHARES);
}

/* Exact sums, in any order, give the same floats as the whole file, bit for bit. */
static void test_sums(void) {
  const char *path = make();
  double all[GT_DATA_SUMS(1)], sum[GT_DATA_SUMS(1)] = {0}, part_sums[GT_DATA_SUMS(1)];
  uint32_t every[TRAIN];
  float mean, std;
  for (uint32_t i = 0; i < TRAIN; i++) every[i] = i;
  assert_int_equal(split(path, GT_PART_LABEL, GT_TESTS_ALL), GT_OK);
  for (size_t r = PARTS; r-- > 0;) {
    gt_dataset *part = open_file(written[r]);
    assert_int_equal(gt_dataset_sums(part, every, gt_dataset_describe(part)->ntrain, part_sums),
                     GT_OK);
    for (size_t i = 0; i < GT_DATA_SUMS(1); i++) sum[i] += part_sums[i];
    gt_data_moments(GT_INPUT_BYTES, part_sums, 1, &mean, &std);
    assert_true(mean == *gt_dataset_mean(part) && std == *gt_dataset_std(part));
    gt_dataset_close(part);
  }
  gt_dataset *whole = open_file(path);
  assert_int_equal(gt_dataset_sums(whole, every, TRAIN, all), GT_OK);
  assert_memory_equal(all, sum, sizeof all);
  assert_true(all[0] == TRAIN * VALUES);
  gt_data_moments(GT_INPUT_BYTES, sum, 1, &mean, &std);
  assert_true(mean == *gt_dataset_mean(whole) && std == *gt_dataset_std(whole));
  gt_dataset_close(whole);
}

static void test_tests(void) {
  const char *path = make();
  const gt_tests kinds[] = {GT_TESTS_FIRST, GT_TESTS_LAST};
  for (size_t k = 0; k < 2; k++) {
    assert_int_equal(split(path, GT_PART_SHARES, kinds[k]), GT_OK);
    for (size_t r = 0; r < PARTS; r++) {
      gt_dataset *part = open_file(written[r]);
      gt_loader *loader;
      const size_t ntest = gt_dataset_describe(part)->ntest;
      assert_int_equal(ntest, r == (k == 0 ? 0 : PARTS - 1) ? TEST : 0);
      assert_int_equal(strlen(gt_dataset_describe(part)->tests_sha256), ntest > 0 ? 64 : 0);
      assert_int_equal(gt_loader_create(&loader, part, GT_SPLIT_TEST, NULL, 0), GT_OK);
      assert_int_equal(gt_loader_samples(loader), ntest);
      gt_loader_close(loader);
      gt_dataset_close(part);
    }
  }
}

static void test_refused(void) {
  const gt_partition p = {.kind = GT_PART_LABEL, .nregions = 5, .seed = 5};
  const char *path = make();
  const int entries = scratch_entries();
  nwritten = 0;
  assert_failed(gt_data_split(path, &p, GT_TESTS_ALL, NULL, false, wrote), GT_ERR_DATA,
                "4 different labels for 5 regions");
  assert_failed(gt_data_split(path, &(gt_partition){.nregions = 2}, GT_TESTS_ALL, scratch("none"),
                              false, wrote),
                GT_ERR_DATA, "none/whole-1.h5: cannot be written (No such file or directory)");
  assert_true(scratch_entries() == entries && nwritten == 0);
}

/* If an output name is a file that is not a data set, it is not overwritten, and no part is
   written. */
static void test_other_files_stay(void) {
  const gt_partition p = {.kind = GT_PART_SHARES, .nregions = 2, .seed = 5};
  const char *path = make(), *second = scratch("whole-2.h5");
  unlink(scratch("whole-1.h5"));
  scratch_write(second, "a text", 6);
  nwritten = 0;
  assert_failed(gt_data_split(path, &p, GT_TESTS_ALL, NULL, false, wrote), GT_ERR_JOB,
                "whole-2.h5 exists and is no HDF5 file, so it is not overwritten");
  assert_int_equal(nwritten, 0);
  assert_int_equal(access(scratch("whole-1.h5"), F_OK), -1);
  assert_failed(gt_data_check_output(second, second, true), GT_ERR_JOB,
                "is both the input and the output");
  assert_int_equal(gt_data_split(path, &p, GT_TESTS_ALL, NULL, true, wrote), GT_OK);
  nwritten = 0;
  assert_int_equal(gt_data_split(path, &p, GT_TESTS_ALL, NULL, false, wrote), GT_OK);
}

/* Copies with other classes keep mean and std; a table without them stays without. */
static void test_norm(void) {
  static const char *const renames[] = {"0=zero", "0=one"};
  const char *path = make(), *copy = scratch("copy.h5");
  const float mean = 0.485F, std = 0.229F;
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t attrs[2] = {H5Aopen(file, "mean", H5P_DEFAULT), H5Aopen(file, "std", H5P_DEFAULT)};
  assert_true(H5Awrite(attrs[0], H5T_NATIVE_FLOAT, &mean) >= 0 &&
              H5Awrite(attrs[1], H5T_NATIVE_FLOAT, &std) >= 0);
  for (int i = 0; i < 2; i++) H5Aclose(attrs[i]);
  H5Fclose(file);
  assert_int_equal(gt_data_classes(path, copy, renames, 1, NULL), GT_OK);
  gt_dataset *dataset = open_file(copy);
  assert_true(*gt_dataset_mean(dataset) == mean && *gt_dataset_std(dataset) == std);
  gt_dataset_close(dataset);
  assert_failed(gt_data_classes(path, copy, renames, 2, NULL), GT_ERR_JOB,
                "data classes names class `0` twice");
  assert_failed(gt_data_classes(path, copy, (const char *const[]){"0="}, 1, NULL), GT_ERR_JOB,
                "data classes has `0=`; expected a name behind =");
}

/* Returns whether the file has the attribute `mean`. */
static bool has_mean(const char *path) {
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const bool has = H5Aexists(file, "mean") > 0;
  H5Fclose(file);
  return has;
}

static void test_no_norm(void) {
  const char *table = scratch("table.csv"), *path = scratch("table.h5");
  char text[1024] = "a,b,y\n";
  for (int i = 0; i < 60; i++) sprintf(text + strlen(text), "%d,%d,%d\n", i, 60 - i, i % 2);
  scratch_write(table, text, strlen(text));
  assert_int_equal(gt_data_import("csv", &table, 1, path,
                                  &(gt_import_options){.label = "y", .as = "numbers"}, NULL),
                   GT_OK);
  assert_int_equal(split(path, GT_PART_SHARES, GT_TESTS_ALL), GT_OK);
  assert_true(has_mean(written[0]));
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  H5Adelete(file, "mean");
  H5Adelete(file, "std");
  H5Fclose(file);
  assert_int_equal(split(path, GT_PART_SHARES, GT_TESTS_ALL), GT_OK);
  assert_false(has_mean(written[0]));
  assert_int_equal(
      gt_data_classes(path, scratch("copy.h5"), (const char *const[]){"0=no"}, 1, NULL), GT_OK);
  assert_false(has_mean(scratch("copy.h5")));
}

TESTS_BETWEEN(NULL, scratch_remove, test_bytes, test_floats, test_ids, test_sums, test_tests,
              test_refused, test_other_files_stay, test_norm, test_no_norm)
