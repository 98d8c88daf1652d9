/* Data sets that refer to other files, or that need more memory than their data, are rejected by
   name. */
#include "scratch.h"

#include <hdf5.h>

static const gt_synth_spec small = {
    .seed = 3, .ntrain = 30, .ntest = 20, .h = 6, .w = 5, .classes = 4};
static const hsize_t x_dims[4] = {30, 6, 5, 1},
                     endless[4] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};

/* Replaces /train/x by a data set with these properties. */
static void replace_x(hid_t file, hid_t properties, const hsize_t *most) {
  hid_t space = H5Screate_simple(4, x_dims, most);
  H5Ldelete(file, "train/x", H5P_DEFAULT);
  hid_t dset =
      H5Dcreate2(file, "train/x", H5T_STD_U8LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  assert_true(dset >= 0);
  H5Dclose(dset);
  H5Sclose(space);
  H5Pclose(properties);
}

static void external_storage(hid_t file) {
  hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(properties, "/etc/passwd", 0, 900);
  replace_x(file, properties, NULL);
}

static void virtual_storage(hid_t file) {
  hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(4, x_dims, NULL);
  H5Pset_virtual(properties, space, scratch("other.h5"), "/train/x", space);
  H5Sclose(space);
  replace_x(file, properties, NULL);
}

static void chunks(hid_t file, const hsize_t *dims) {
  hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(properties, 4, dims);
  replace_x(file, properties, endless);
}

static void wide_chunks(hid_t file) {
  chunks(file, (const hsize_t[]){1, 6, 5, 128 << 20});
}

static void high_chunks(hid_t file) {
  chunks(file, (const hsize_t[]){1, 65536, 65535, 1});
}

/* Extendible data sets can have chunks larger than the data. */
static void roomy_chunks(hid_t file) {
  chunks(file, (const hsize_t[]){1024, 6, 5, 1});
}

static void compact(hid_t file) {
  hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(properties, H5D_COMPACT);
  replace_x(file, properties, NULL);
}

static void external_x(hid_t file) {
  H5Ldelete(file, "train/x", H5P_DEFAULT);
  assert_true(H5Lcreate_external(scratch("other.h5"), "/train/x", file, "train/x", H5P_DEFAULT,
                                 H5P_DEFAULT) >= 0);
}

static void external_group(hid_t file) {
  H5Ldelete(file, "test", H5P_DEFAULT);
  assert_true(H5Lcreate_external(scratch("other.h5"), "/test", file, "test", H5P_DEFAULT,
                                 H5P_DEFAULT) >= 0);
}

/* A link inside the file to a link that leaves the file. */
static void round_about(hid_t file) {
  H5Ldelete(file, "test/y", H5P_DEFAULT);
  assert_true(
      H5Lcreate_external(scratch("other.h5"), "/test", file, "out", H5P_DEFAULT, H5P_DEFAULT) >= 0);
  assert_true(H5Lcreate_soft("/out/y", file, "test/y", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void inside(hid_t file) {
  assert_true(H5Lmove(file, "train/x", file, "images", H5P_DEFAULT, H5P_DEFAULT) >= 0);
  assert_true(H5Lcreate_soft("/images", file, "train/x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static const struct {
  void (*spoil)(hid_t file);
  const char *said; /* NULL: the file stays valid */
} cases[] = {
    {external_storage, "/train/x is stored in another file; expected contiguous, compact or "
                       "chunked storage in this file"},
    {virtual_storage, "/train/x is stored in other files (virtual); expected contiguous, compact "
                      "or chunked storage in this file"},
    {wide_chunks, "/train/x has chunks of 4026531840 bytes, and holds 900; expected chunks of at "
                  "most 16777216, or of what it holds"},
    {high_chunks, "/train/x has chunks of 4294901760 bytes"},
    {external_x, "/train/x leads to another file (an external link); expected data in this one"},
    {external_group, "/test leads to another file (an external link)"},
    {round_about, "/test/y leads to another file (an external link)"},
    {roomy_chunks, NULL},
    {compact, NULL},
    {inside, NULL},
};

static void check(size_t i, const char *path, size_t *wrong) {
  gt_dataset *dataset;
  assert_int_equal(gt_data_synth(path, &small), GT_OK);
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(file >= 0);
  cases[i].spoil(file);
  assert_true(H5Fclose(file) >= 0);
  const gt_status status = gt_dataset_open(&dataset, path),
                  needed = cases[i].said ? GT_ERR_DATA : GT_OK;
  if (status != needed || (cases[i].said && !strstr(gt_error_text(), cases[i].said))) {
    print_error("status %d: %s\n  needed: %s\n", status,
                status == GT_OK ? "opened" : gt_error_text(),
                cases[i].said ? cases[i].said : "opened");
    (*wrong)++;
  }
  gt_dataset_close(dataset);
}

static void test_hostile(void) {
  size_t wrong = 0;
  assert_int_equal(gt_data_synth(scratch("other.h5"), &small), GT_OK);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check(i, scratch("hostile.h5"), &wrong);
  assert_int_equal(wrong, 0);
}

TESTS_BETWEEN(NULL, scratch_remove, test_hostile)
