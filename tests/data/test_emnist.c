/* EMNIST by its published names: letters are numbered from 1 and become 0 to 25, and its images,
   stored column by column, become upright. */
#include "scratch.h"

enum { SIDE = 5, N = 52 };

static uint8_t pixel(size_t i, size_t y, size_t x) {
  return (uint8_t)(i * 31 + y * 17 + x * 3);
}

/* Writes the files of one set, with `n` labels from `first` on in turn. */
static void write_set(const char *set, uint8_t first, uint8_t n) {
  static const char *const splits[] = {"train", "test"};
  uint8_t images[16 + N * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, SIDE, 0, 0, 0, SIDE},
                                 labels[8 + N] = {0, 0, 8, 1, 0, 0, 0, N}, *to = images + 16;
  for (size_t i = 0; i < N; i++) {
    labels[8 + i] = (uint8_t)(first + i % n);
    for (size_t x = 0; x < SIDE; x++)
      for (size_t y = 0; y < SIDE; y++) *to++ = pixel(i, y, x);
  }
  mkdir(scratch("e"), 0777);
  for (size_t s = 0; s < 2; s++) {
    char name[80];
    snprintf(name, sizeof name, "e/emnist-%s-%s-images-idx3-ubyte.gz", set, splits[s]);
    scratch_gzip(scratch(name), images, sizeof images);
    snprintf(name, sizeof name, "e/emnist-%s-%s-labels-idx1-ubyte%s", set, splits[s],
             s ? "" : ".gz");
    (s ? scratch_write : scratch_gzip)(scratch(name), labels, sizeof labels);
  }
}

static void empty_folder(void) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s'", scratch("e"));
  assert_int_equal(system(command), 0);
}

static gt_status import(void) {
  return import_from("mnist", scratch("e"), scratch("e.h5"));
}

static void test_letters(void) {
  static float x[N][SIDE][SIDE], zero[1] = {0}, one[1] = {1};
  int32_t y[N];
  gt_dataset *dataset;
  gt_loader *test;
  empty_folder();
  write_set("letters", 1, 26);
  if (import() != GT_OK) fail_msg("%s", gt_error_text());
  assert_int_equal(gt_dataset_open(&dataset, scratch("e.h5")), GT_OK);
  const gt_class_names *names = gt_dataset_class_names(dataset);
  assert_int_equal(gt_dataset_describe(dataset)->classes, 26);
  assert_int_equal(names->n, 26);
  assert_memory_equal(names->text, "A\0B\0C", 6);
  gt_dataset_normalise(dataset, zero, one);
  assert_int_equal(gt_loader_create(&test, dataset, GT_SPLIT_TEST, NULL, 0), GT_OK);
  gt_loader_range(test, 0, N, x, y);
  for (size_t i = 0; i < N; i++) {
    assert_int_equal(y[i], i % 26);
    for (size_t r = 0; r < SIDE; r++)
      for (size_t c = 0; c < SIDE; c++) assert_true(x[i][r][c] == (float)pixel(i, r, c) / 255.0F);
  }
  gt_loader_close(test);
  gt_dataset_close(dataset);
}

/* The classes of a set are known, regardless of the ones that a region has. */
static void test_balanced(void) {
  gt_dataset *dataset;
  empty_folder();
  write_set("balanced", 0, 5);
  assert_int_equal(import(), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch("e.h5")), GT_OK);
  assert_int_equal(gt_dataset_describe(dataset)->classes, 47);
  gt_dataset_close(dataset);
}

static void test_refused(void) {
  empty_folder();
  write_set("letters", 0, 26);
  assert_failed(import(), GT_ERR_DATA,
                "e/emnist-letters-train-labels-idx1-ubyte.gz: the label of sample 0 is 0; "
                "emnist-letters has the labels 1 to 26");
  write_set("letters", 2, 26);
  assert_failed(import(), GT_ERR_DATA, "the label of sample 25 is 27;");
  write_set("digits", 0, 10);
  assert_failed(import(), GT_ERR_DATA,
                "e: has both emnist-digits and emnist-letters; put the four files of one of them "
                "into a folder of their own, and import that");
  empty_folder();
  write_set("letters", 1, 26);
  unlink(scratch("e/emnist-letters-test-labels-idx1-ubyte"));
  assert_failed(import(), GT_ERR_DATA,
                "e: emnist-letters-test-labels-idx1-ubyte is missing, with .gz and without");
}

TESTS_BETWEEN(NULL, scratch_remove, test_letters, test_balanced, test_refused)
