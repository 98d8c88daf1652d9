/* Warnings about valid files: the order of axes, units, missing filters. */
#include "scratch.h"

#include <hdf5.h>

static char told[4096];

static void tell(const char *text) {
  strcat(told, text);
  strcat(told, "\n");
}

/* A file of n images h x w x c of uint8 or float32, value (i, k) = f(k), with this mean and std. */
static const char *make(const hsize_t shape[4], bool floats, double (*value)(size_t), float mean,
                        float std, hid_t properties) {
  const char *path = scratch("d.h5");
  const size_t n = shape[0] * shape[1] * shape[2] * shape[3];
  const hsize_t scalar = 1;
  float *x = gt_alloc(n, sizeof *x), norm[64];
  int32_t y[64] = {0, 1};
  for (size_t i = 0; i < n; i++) x[i] = (float)value(i);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t one = H5Screate_simple(1, &scalar, NULL), rows = H5Screate_simple(1, shape, NULL),
        all = H5Screate_simple(4, shape, NULL), channels = H5Screate_simple(1, shape + 3, NULL),
        name = H5Tcopy(H5T_C_S1);
  static const char *const ints[] = {"geotrain_schema", "classes"},
                           *const norms[] = {"mean", "std"}, *const splits[] = {"train", "test"};
  H5Tset_size(name, 5);
  hid_t attr = H5Acreate2(file, "name", name, one, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attr, name, "doubt");
  H5Aclose(attr);
  for (int i = 0; i < 2; i++) {
    attr = H5Acreate2(file, ints[i], H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attr, H5T_NATIVE_INT, (int[]){1 + i});
    H5Aclose(attr);
    for (size_t c = 0; c < 64; c++) norm[c] = i ? std : mean;
    attr = H5Acreate2(file, norms[i], H5T_NATIVE_FLOAT, channels, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attr, H5T_NATIVE_FLOAT, norm);
    H5Aclose(attr);
    hid_t group = H5Gcreate2(file, splits[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          set = H5Dcreate2(group, "x", floats ? H5T_NATIVE_FLOAT : H5T_NATIVE_UINT8, all,
                           H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Dclose(set);
    set = H5Dcreate2(group, "y", H5T_NATIVE_INT32, rows, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
    H5Dclose(set);
    H5Gclose(group);
  }
  H5Tclose(name);
  H5Sclose(channels);
  H5Sclose(all);
  H5Sclose(rows);
  H5Sclose(one);
  H5Fclose(file);
  gt_free(x);
  return path;
}

static double varied(size_t i) {
  return (double)(i % 251);
}
static double fraction(size_t i) {
  return (double)(i % 100) / 100;
}
static double even(size_t i) {
  (void)i;
  return 0.25;
}

/* Checks that the warnings for such a file contain `said`, or that there are none (""). */
static void doubted(const hsize_t shape[4], bool floats, double (*value)(size_t), float mean,
                    float std, const char *said) {
  gt_dataset *dataset;
  told[0] = 0;
  if (gt_dataset_open(&dataset, make(shape, floats, value, mean, std, H5P_DEFAULT)) != GT_OK)
    fail_msg("%s", gt_error_text());
  assert_int_equal(gt_dataset_doubts(dataset, tell), GT_OK);
  if (*said ? !strstr(told, said) : *told) fail_msg("told: %s\n  needed: %s", told, said);
  gt_dataset_close(dataset);
}

static void test_axes(void) {
  doubted((hsize_t[]){3, 32, 32, 3}, false, varied, 0.5F, 0.25F, "");
  doubted((hsize_t[]){3, 3, 32, 32}, false, varied, 0.5F, 0.25F,
          "d.h5: images are 3 x 32 x 32 (rows, columns, channels), which looks like channels "
          "first; expected channels last: x.transpose(0, 2, 3, 1) in numpy");
  doubted((hsize_t[]){3, 1, 28, 28}, true, fraction, 0, 1, "looks like channels first");
  doubted((hsize_t[]){3, 1, 28, 12}, true, fraction, 0, 1, ""); /* a series of 12 channels */
}

static void test_values(void) {
  const hsize_t shape[4] = {3, 8, 8, 1};
  doubted(shape, false, fraction, 0.5F, 0.25F,
          "d.h5: the first 3 training images are almost constant, with values from 0 to 0 of 0 to "
          "255; floats from 0 to 1 lose their content as uint8");
  doubted(shape, true, fraction, 0, 1, "");
  doubted(shape, true, even, 0, 1, "almost constant, with values from 0.25 to 0.25");
}

static void test_units(void) {
  const hsize_t shape[4] = {3, 8, 8, 1};
  doubted(shape, false, varied, 127.5F, 64,
          "mean[0] is 127.5 and std[0] 64, where images are 0 to 1");
  doubted(shape, false, varied, 0.5F, 64, "std[0] 64");
  doubted(shape, false, varied, 0, 1, "");
}

/* ---- compression that this HDF5 does not have -------------------------------------------------
   */

static size_t copy(unsigned flags, size_t nvalues, const unsigned *values, size_t n, size_t *size,
                   void **buffer) {
  (void)flags, (void)nvalues, (void)values, (void)size, (void)buffer;
  return n;
}

/* h5py's compression="lzf" is filter 32000, which only h5py has. */
static void test_lzf(void) {
  const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, 32000, 1, 1, "lzf", NULL, NULL, copy};
  const hsize_t shape[4] = {3, 8, 8, 1};
  gt_dataset *dataset;
  H5Zregister(&lzf);
  hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(properties, 4, shape);
  H5Pset_filter(properties, 32000, H5Z_FLAG_OPTIONAL, 0, NULL);
  const char *path = make(shape, false, varied, 0.5F, 0.25F, properties);
  H5Pclose(properties);
  H5Zunregister(32000);
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA,
                "d.h5: /train/x is compressed with lzf (HDF5 filter 32000), which this program's "
                "HDF5 does not have; write it again with gzip, or without compression: in h5py "
                "create_dataset(..., compression=\"gzip\")");
}

TESTS_BETWEEN(NULL, scratch_remove, test_axes, test_values, test_units, test_lzf)
