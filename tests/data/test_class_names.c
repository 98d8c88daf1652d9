/* Class names: from a folder into a file, through a split, and every kind of error. */
#include "scratch.h"

#include <hdf5.h>

enum { SIDE = 4, N = 12, CLASSES = 3 };

/* Four idx files in folder m, whose labels are 0 to CLASSES - 1. */
static void write_folder(void) {
  static const char *const splits[] = {"train", "t10k"};
  uint8_t images[16 + N * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, SIDE, 0, 0, 0, SIDE},
                                 labels[8 + N] = {0, 0, 8, 1, 0, 0, 0, N};
  for (size_t i = 0; i < N * SIDE * SIDE; i++) images[16 + i] = (uint8_t)(i * 37);
  for (size_t i = 0; i < N; i++) labels[8 + i] = (uint8_t)(i % CLASSES);
  mkdir(scratch("m"), 0777);
  for (size_t s = 0; s < 2; s++) {
    char name[64];
    snprintf(name, sizeof name, "m/%s-images-idx3-ubyte", splits[s]);
    scratch_write(scratch(name), images, sizeof images);
    snprintf(name, sizeof name, "m/%s-labels-idx1-ubyte", splits[s]);
    scratch_write(scratch(name), labels, sizeof labels);
  }
}

static gt_status import(const char *names) {
  write_folder();
  scratch_write(scratch("m/class-names.txt"), names, strlen(names));
  return import_from("mnist", scratch("m"), scratch("m.h5"));
}

/* Checks that the file has `classes` classes with these names, separated by commas; "": no
   names. */
static void check_names(const char *path, size_t classes, const char *names) {
  gt_dataset *dataset;
  char found[1024] = "";
  if (gt_dataset_open(&dataset, path) != GT_OK) fail_msg("%s", gt_error_text());
  const gt_class_names *all = gt_dataset_class_names(dataset);
  const char *name = all->text;
  for (size_t k = 0; k < all->n; k++, name += strlen(name) + 1)
    sprintf(found + strlen(found), "%s%s", k ? "," : "", name);
  assert_string_equal(found, names);
  assert_int_equal(gt_dataset_describe(dataset)->classes, classes);
  assert_int_equal(gt_dataset_describe(dataset)->class_names_sha256[0] != 0, *names != 0);
  gt_dataset_close(dataset);
}

static void ignore(const char *path) {
  (void)path;
}

/* More names than labels: the classes of another region. */
static void test_folder(void) {
  write_folder();
  assert_int_equal(import_from("mnist", scratch("m"), scratch("m.h5")), GT_OK);
  check_names(scratch("m.h5"), CLASSES, "");
  assert_int_equal(import("\xef\xbb\xbf"
                          "cat\nbig dog \r\nowl\nmouse\n\n"),
                   GT_OK);
  check_names(scratch("m.h5"), 4, "cat,big dog,owl,mouse");
  const gt_partition p = {.kind = GT_PART_SHARES, .nregions = 2, .seed = 1};
  assert_int_equal(gt_data_split(scratch("m.h5"), &p, GT_TESTS_ALL, NULL, false, ignore), GT_OK);
  check_names(scratch("m-2.h5"), 4, "cat,big dog,owl,mouse");
}

static void test_folder_refused(void) {
  char text[600];
  assert_failed(import("cat\ndog\n"), GT_ERR_DATA,
                "m/class-names.txt: names 2 classes, and the labels go up to 2; expected a name "
                "for each of the 3 classes, one a line, that of label 0 first");
  assert_failed(import("cat\ndog\n\n\nowl\n"), GT_ERR_DATA,
                "m/class-names.txt: line 3 is empty; expected the name of a class");
  assert_failed(import("cat\ndog\nowl\ndog\n"), GT_ERR_DATA,
                "m/class-names.txt: two classes have the name `dog`; each class needs its own");
  sprintf(text, "cat\n%0300d\nowl\n", 1);
  assert_failed(import(text), GT_ERR_DATA, "the name of class 1 has 300 bytes; expected 1 to 255");
}

/* Writes the attribute with n elements of this type. */
static void set_attribute(const char *path, hid_t type, hsize_t n, const void *values) {
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(1, &n, NULL);
  if (H5Aexists(file, "class_names") > 0) H5Adelete(file, "class_names");
  hid_t attr = H5Acreate2(file, "class_names", type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attr, type, values) >= 0);
  H5Aclose(attr);
  H5Sclose(space);
  H5Fclose(file);
}

/* As written by h5py from a list of strings, and from an array of bytes. */
static void test_attribute(void) {
  const char *path = scratch("s.h5"), *words[] = {"cat", "ma\tn", "owl", "cat"};
  gt_dataset *dataset;
  gt_synth_spec spec = {.seed = 1, .ntrain = 9, .ntest = 3, .h = 6, .w = 6, .classes = 3};
  assert_int_equal(gt_data_synth(path, &spec), GT_OK);
  hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, H5T_VARIABLE);
  H5Tset_cset(text, H5T_CSET_UTF8);
  set_attribute(path, text, 3, (const void *)words);
  check_names(path, 3, "cat,ma n,owl");
  set_attribute(path, text, 4, (const void *)words);
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA,
                "s.h5: the attribute `class_names` is a string with 4 elements; expected 3 "
                "strings, one a class");
  words[2] = "cat";
  set_attribute(path, text, 3, (const void *)words);
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "s.h5: two classes have the name");
  H5Tclose(text);
  text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 3);
  H5Tset_strpad(text, H5T_STR_NULLPAD);
  set_attribute(path, text, 3, "catdog\0\0\0");
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "the name of class 2 has 0 bytes");
  set_attribute(path, text, 3, "catdogox\0");
  check_names(path, 3, "cat,dog,ox");
  H5Tclose(text);
  set_attribute(path, H5T_NATIVE_INT, 3, (int[]){1, 2, 3});
  assert_failed(gt_dataset_open(&dataset, path), GT_ERR_DATA, "`class_names` is int32 with 3");
}

/* More than 64 KiB, which HDF5 stores in another way. */
static void test_many(void) {
  enum { MANY = 3000 };
  static char text[MANY * 64];
  size_t at = 0;
  gt_dataset *dataset;
  for (int k = 0; k < MANY; k++) at += (size_t)sprintf(text + at, "class %d of %040d\n", k, k);
  assert_int_equal(import(text), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch("m.h5")), GT_OK);
  const gt_class_names *names = gt_dataset_class_names(dataset);
  assert_int_equal(names->n, MANY);
  assert_int_equal(names->bytes, at);
  gt_dataset_close(dataset);
}

TESTS_BETWEEN(NULL, scratch_remove, test_folder, test_folder_refused, test_attribute, test_many)
