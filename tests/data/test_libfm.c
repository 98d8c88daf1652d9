/* libFM text: the written data are restored for any line ending, and the message names every
   invalid line. */
#include "scratch.h"

#include "import.h"

static const char good_test[] = "-1 0:1 9:1 5:1\n";

/* Writes these texts into folder f; size 0: length of the text. */
static void write_pair(const char *train, const char *test) {
  mkdir(scratch("f"), 0777);
  scratch_write(scratch("f/clicks.train.libfm"), train, strlen(train));
  scratch_write(scratch("f/clicks.test.libfm"), test, strlen(test));
}

static gt_status import(void) {
  return import_from("libfm", scratch("f"), scratch("f.h5"));
}

static void assert_imported(size_t ntrain, size_t fields, size_t features, const int32_t *ids,
                            const int32_t *labels) {
  gt_dataset *dataset;
  gt_loader *loader;
  static int32_t x[8][8];
  int32_t y[8];
  assert_int_equal(import(), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch("f.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_string_equal(info->name, "clicks");
  assert_true(info->input == GT_INPUT_IDS && info->classes == 2 && info->features == features);
  assert_true(info->ntrain == ntrain && info->h == 1 && info->w == 1 && info->c == fields);
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, ntrain, x, y);
  assert_memory_equal(x, ids, ntrain * fields * sizeof *ids);
  assert_memory_equal(y, labels, ntrain * sizeof *labels);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

static void test_lines(void) {
  static const int32_t ids[] = {3, 7, 2, 0, 7, 8, 11, 4, 4}, labels[] = {1, 0, 0};
  static const char *const forms[] = {
      "1 3:1 7:1 2:1\n-1 0:1 7:1 8:1\n0 11:1 4:1 4:1\n", /* as libFM writes */
      /* as in the published Frappe files */
      "1 3:1 7:1 2:1\r\n-1 0:1 7:1 8:1\r\n0 11:1 4:1 4:1\r\n",
      /* no newline at the end */
      "1 3:1 7:1 2:1\n-1 0:1 7:1 8:1\n0 11:1 4:1 4:1",
      /* blanks, and numbers in other common forms */
      "+1.0  3:1\t7:1 2:1.0 \n -1 0:+1 7:1 8:1. \n0 11:1 4:1 4:1\n",
      "1 3:1 7:1 2:1\n-1 0:1 7:1 8:1\n-0 11:1 4:1 4:1\n\n \r\n\n", /* empty lines at the end */
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    write_pair(forms[i], good_test);
    assert_imported(3, 3, 12, ids, labels);
  }
  /* an id that only the test file has; gzip takes precedence */
  write_pair(forms[0], "1 0:1 20:1 5:1\n");
  scratch_gzip(scratch("f/clicks.test.libfm.gz"), good_test, sizeof good_test - 1);
  assert_imported(3, 3, 12, ids, labels);
  unlink(scratch("f/clicks.test.libfm.gz"));
  assert_imported(3, 3, 21, ids, labels);
}

static const struct {
  const char *train, *test, *said;
} cases[] = {
    {"1 3:1 7:1\n1 3:1\n", good_test,
     "clicks.train.libfm: line 2 has 1 fields, but the first line of clicks.train.libfm has 2"},
    {"1 3:1 7:1\n1 3:1 4:1\n", good_test,
     "clicks.test.libfm: line 1 has 3 fields, but the first line of clicks.train.libfm has 2"},
    {"1 3:1\n\n1 3:1\n", good_test, "clicks.train.libfm: line 2 is empty, and others follow"},
    {"\n1 3:1\n", good_test, "clicks.train.libfm: line 1 is empty"},
    {"", good_test, "clicks.train.libfm: has no lines"},
    {"\n\n", good_test, "clicks.train.libfm: has no lines"},
    {"1 3:1 4:1 5:1\n", "", "clicks.test.libfm: has no lines"},
    {"1\n", good_test, "line 1 has a label and no fields"},
    {"2 3:1\n", good_test, "line 1 begins with `2`; expected a label 1, 0 or -1"},
    {"0.5 3:1\n", good_test, "line 1 begins with `0.5`; expected a label"},
    {"yes 3:1\n", good_test, "line 1 begins with `yes`; expected a label"},
    {"3:1 4:1\n", good_test, "line 1 begins with `3:1`; expected a label"},
    {"1 3\n", good_test, "field 1 of line 1 is `3`; expected `id:1`"},
    {"1 3:1 :1\n", good_test,
     "the id in field 2 of line 1 is ``; expected a whole number from 0 to 2147483645"},
    {"1 3:1\n1 -4:1\n", good_test, "the id in field 1 of line 2 is `-4`;"},
    {"1 x:1\n", good_test, "the id in field 1 of line 1 is `x`;"},
    {"1 3.5:1\n", good_test, "the id in field 1 of line 1 is `3.5`;"},
    {"1 2147483646:1\n", good_test, "the id in field 1 of line 1 is `2147483646`;"},
    {"1 18446744073709551617:1\n", good_test,
     "the id in field 1 of line 1 is `18446744073709551617`;"},
    {"1 3:0.5\n", good_test,
     "the value in field 1 of line 1 is `0.5`; expected 1, as only categories"},
    {"1 3:2\n", good_test, "the value in field 1 of line 1 is `2`;"},
    {"1 3:\n", good_test, "the value in field 1 of line 1 is ``;"},
    {"1 3:1.01\n", good_test, "the value in field 1 of line 1 is `1.01`;"},
    {"1 3:1:1\n", good_test, "the value in field 1 of line 1 is `1:1`;"},
    {"1 3:1 # comment\n", good_test, "field 2 of line 1 is `#`;"},
    {"\x7f\x45LF\x01\x02\n", good_test, "line 1 begins with `?ELF??`; expected a label"},
    {"1 3:1000000000000000000000000000000000000000\n", good_test,
     "line 1 has a word of more than 39 bytes, `3:10000000000000...`"},
};

static void refused(const char *said) {
  int entries = scratch_entries();
  assert_failed(import_from("libfm", scratch("f"), scratch("bad.h5")), GT_ERR_DATA, said);
  assert_int_equal(scratch_entries(), entries);
}

static void test_refused(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_pair(cases[i].train, cases[i].test);
    refused(cases[i].said);
  }
  write_pair("1 3:1 4:1 5:1\n", good_test);
  scratch_write(scratch("f/clicks.train.libfm"), "1 3:1 \0:1 5:1\n", 14);
  refused("the id in field 2 of line 1 is `?`;");
}

static void test_files(void) {
  size_t size;
  write_pair("1 3:1 4:1 5:1\n", good_test);
  unlink(scratch("f/clicks.test.libfm"));
  refused("f: clicks.test.libfm is missing, with .gz and without");
  write_pair("1 3:1 4:1 5:1\n", good_test);
  scratch_write(scratch("f/other.train.libfm.gz"), "", 0);
  refused(".train.libfm; expected one data set a folder");
  unlink(scratch("f/other.train.libfm.gz"));
  scratch_write(scratch("f/clicks.train.libfm.gz.part"), "", 0); /* must be ignored */
  assert_int_equal(import(), GT_OK);
  unlink(scratch("f/clicks.train.libfm"));
  refused("f: NAME.train.libfm is missing, with .gz and without");
  assert_failed(import_from("libfm", scratch("nowhere"), scratch("bad.h5")), GT_ERR_DATA,
                "nowhere: there is no such folder (No such file");

  static char text[5000];
  for (size_t at = 0; at + 30 < sizeof text;)
    at += (size_t)sprintf(text + at, "%d %zu:1 4:1 5:1\n", at % 3 ? 1 : -1, at * 37 % 1000);
  scratch_gzip(scratch("f/clicks.train.libfm.gz"), text, strlen(text));
  assert_int_equal(import(), GT_OK);
  uint8_t *bytes = scratch_read(scratch("f/clicks.train.libfm.gz"), &size);
  for (size_t keep = 20; keep < size; keep += keep + 32 < size ? 97 : 1) {
    scratch_write(scratch("f/clicks.train.libfm.gz"), bytes, keep);
    refused("clicks.train.libfm.gz: its gzip data end before their check sum");
  }
  gt_free(bytes);
  unlink(scratch("f/clicks.train.libfm.gz"));
}

/* The maximum number of fields, in two lines of 400 KB, and one more; then more lines than one
   block of the writer. */
static void test_long(void) {
  size_t size = (size_t)2 * 8 * (GT_LIBFM_MAX_FIELDS + 1);
  char *text = gt_alloc(size, 1);
  gt_dataset *dataset;
  for (size_t extra = 0; extra < 2; extra++) {
    char *at = text;
    for (int line = 0; line < 2; line++) {
      at += sprintf(at, "1");
      for (size_t i = 0; i < GT_LIBFM_MAX_FIELDS + extra; i++) at += sprintf(at, " %zu:1", i);
      *at++ = '\n';
    }
    *at = 0;
    write_pair(text, text);
    if (extra) {
      gt_free(text);
      refused("line 1 has more than 65536 fields");
    } else {
      assert_int_equal(import(), GT_OK);
      assert_int_equal(gt_dataset_open(&dataset, scratch("f.h5")), GT_OK);
      assert_int_equal(gt_dataset_describe(dataset)->c, GT_LIBFM_MAX_FIELDS);
      gt_dataset_close(dataset);
    }
  }
  enum { LINES = 131072 + 5 }; /* of 2 ids: over 1 MiB */
  text = gt_alloc(LINES, 24);
  char *at = text;
  for (int i = 0; i < LINES; i++) at += sprintf(at, "%d %d:1 %d:1\n", i % 2, i, LINES - i);
  write_pair(text, "0 1:1 2:1\n");
  gt_free(text);
  assert_int_equal(import(), GT_OK);
  gt_loader *loader;
  int32_t x[2], y;
  assert_int_equal(gt_dataset_open(&dataset, scratch("f.h5")), GT_OK);
  assert_int_equal(gt_dataset_describe(dataset)->features, LINES + 1);
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  for (int32_t i = 0; i < LINES; i++) {
    gt_loader_range(loader, (size_t)i, 1, x, &y);
    assert_true(x[0] == i && x[1] == LINES - i && y == i % 2);
  }
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

TESTS_BETWEEN(NULL, scratch_remove, test_lines, test_refused, test_files, test_long)
