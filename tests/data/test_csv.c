/* The import of tables: fields with quotes, bins with equally many rows, values, labels, rows
   without values, and malformed files. */
#include "scratch.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static const char *put(const char *name, const char *text) {
  const char *path = scratch(name);
  scratch_write(path, text, strlen(text));
  return path;
}

static gt_status import_csv(const char *first, const char *second, gt_import_options options) {
  const char *paths[2] = {first, second};
  if (!options.label) options.label = "y";
  return gt_data_import("csv", paths, second ? 2 : 1, scratch("t.h5"), &options, NULL);
}

/* The ids and labels of a split, in the order of the file; the caller frees them. */
typedef struct {
  int32_t *ids, *labels;
  size_t n, columns, features, classes;
  char names[64];
} rows;

static rows read_rows(gt_split split) {
  gt_dataset *dataset;
  gt_loader *loader;
  rows r;
  assert_int_equal(gt_dataset_open(&dataset, scratch("t.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  r = (rows){.n = split == GT_SPLIT_TRAIN ? info->ntrain : info->ntest,
             .columns = info->c,
             .features = info->features,
             .classes = info->classes};
  r.ids = GT_NEW_ARRAY(int32_t, r.n * r.columns);
  r.labels = GT_NEW_ARRAY(int32_t, r.n);
  memcpy(r.names, gt_dataset_class_names(dataset)->text,
         gt_dataset_class_names(dataset)->bytes < 64 ? gt_dataset_class_names(dataset)->bytes : 64);
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, r.n, r.ids, r.labels);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
  return r;
}

static void close_rows(rows *r) {
  gt_free(r->ids);
  gt_free(r->labels);
}

static void assert_ids(gt_split split, const int32_t *ids, const int32_t *labels, size_t n) {
  rows r = read_rows(split);
  assert_int_equal(r.n, n);
  assert_memory_equal(r.ids, ids, n * r.columns * sizeof *ids);
  assert_memory_equal(r.labels, labels, n * sizeof *labels);
  close_rows(&r);
}

/* RFC 4180: quotes, commas and line ends in fields, CR LF, no line end at the end.  The columns are
   x (numbers 1, 2, 3: bins 0 to 2) and color (3: unknown, then by frequency: red 4, "a,b" 5). */
static void test_fields(void) {
  const char *train = put("a.csv", "\xef\xbb\xbfx,\"color\",y\r\n1,red,no\r\n"
                                   "3,\"a,\"\"b\"\"\nc\",yes\r\n\r\n2,\"red\",\"no\"");
  const char *test = put("b.csv", "x,color,y\n2.5,blue,yes\n-7,red,no\n 9 ,red,no\n");
  assert_int_equal(import_csv(train, test, (gt_import_options){0}), GT_OK);
  assert_ids(GT_SPLIT_TRAIN, (int32_t[]){0, 4, 2, 5, 1, 4}, (int32_t[]){0, 1, 0}, 3);
  assert_ids(GT_SPLIT_TEST, (int32_t[]){2, 3, 0, 4, 2, 4}, (int32_t[]){1, 0, 0}, 3);
  rows r = read_rows(GT_SPLIT_TRAIN);
  assert_true(r.features == 6 && r.classes == 2 && memcmp(r.names, "no\0yes", 7) == 0);
  close_rows(&r);
  assert_int_equal(import_csv(train, test, (gt_import_options){.columns = "color"}), GT_OK);
  assert_ids(GT_SPLIT_TRAIN, (int32_t[]){1, 2, 1}, (int32_t[]){0, 1, 0}, 3);
}

/* 64 bins with equally many of 6,400 different numbers; ids rise with the numbers. */
static void test_bins(void) {
  enum { N = 6400 };
  static char text[N * 24];
  static size_t counts[64];
  size_t at = (size_t)sprintf(text, "v,y\n");
  for (int i = 0; i < N; i++)
    at += (size_t)sprintf(text + at, "%.6f,%d\n", pow(1.001, i * 37 % N), i % 2);
  const char *train = put("n.csv", text), *test = put("m.csv", "v,y\n1,0\n");
  assert_int_equal(import_csv(train, test, (gt_import_options){0}), GT_OK);
  rows r = read_rows(GT_SPLIT_TRAIN);
  assert_int_equal(r.features, 64);
  for (int i = 0; i < N; i++) {
    counts[r.ids[i]]++;
    if (i > 0 && i * 37 % N > (i - 1) * 37 % N) assert_true(r.ids[i] >= r.ids[i - 1]);
  }
  close_rows(&r);
  for (int k = 0; k < 64; k++) assert_true(counts[k] >= 99 && counts[k] <= 101);
}

/* One file: rows are held back by the seed; labels that are numbers are in their order. */
static void test_held_back(void) {
  enum { N = 2000 };
  static char text[N * 16];
  size_t at = (size_t)sprintf(text, "y,v\n"), ntest[2];
  for (int i = 0; i < N; i++) at += (size_t)sprintf(text + at, "%d,%d\n", i % 12, i % 5);
  const char *path = put("h.csv", text);
  int32_t first[2][8];
  for (unsigned k = 0; k < 2; k++) {
    const double share = 0.25;
    assert_int_equal(
        import_csv(path, NULL, (gt_import_options){.test_share = &share, .seed = k + 1}), GT_OK);
    rows r = read_rows(GT_SPLIT_TEST);
    ntest[k] = r.n;
    memcpy(first[k], r.labels, sizeof first[k]);
    assert_int_equal(r.classes, 12);
    assert_memory_equal(r.names,
                        "0\0"
                        "1\0"
                        "2\0",
                        6);
    for (size_t i = 0; i < r.n; i++) assert_true(r.labels[i] >= 0 && r.labels[i] < 12);
    close_rows(&r);
    assert_true(ntest[k] > N / 5 && ntest[k] < N * 3 / 10);
  }
  assert_memory_not_equal(first[0], first[1], sizeof first[0]);
}

/* Labels that are numbers come before others. */
static void test_labels(void) {
  const double share = 0;
  const char *path = put("a.csv", "x,y\n1,10\n2,6\n3,10+\n4,5\n");
  assert_int_equal(import_csv(path, NULL, (gt_import_options){.test_share = &share}), GT_OK);
  rows r = read_rows(GT_SPLIT_TRAIN);
  assert_memory_equal(r.names,
                      "5\0"
                      "6\0"
                      "10\0"
                      "10+",
                      11);
  assert_memory_equal(r.labels, ((int32_t[]){2, 1, 3, 0}), 4 * sizeof *r.labels);
  close_rows(&r);
}

static void test_missing(void) {
  const char *train = put("a.csv", "x,c,y\n1,p,0\n,p,1\n5,q,0\n3,q,1\n"),
             *test = put("b.csv", "x,c,y\n2,p,1\n,q,0\n");
  assert_failed(import_csv(train, test, (gt_import_options){0}), GT_ERR_DATA,
                "a.csv: line 3 has no value in column x; --missing drop leaves such rows out");
  assert_int_equal(import_csv(train, test, (gt_import_options){.missing = "drop"}), GT_OK);
  assert_ids(GT_SPLIT_TRAIN, (int32_t[]){0, 5, 2, 4, 1, 4}, (int32_t[]){0, 0, 1}, 3);
  assert_ids(GT_SPLIT_TEST, (int32_t[]){1, 5}, (int32_t[]){1}, 1);
  assert_int_equal(import_csv(train, test, (gt_import_options){.missing = "mean"}), GT_OK);
  assert_ids(GT_SPLIT_TRAIN, (int32_t[]){0, 4, 1, 4, 2, 5, 1, 5}, (int32_t[]){0, 1, 0, 1}, 4);
  assert_ids(GT_SPLIT_TEST, (int32_t[]){1, 4, 1, 5}, (int32_t[]){1, 0}, 2);
  put("a.csv", "x,c,y\n1,p,0\n \t,p,1\n5,q,0\n");
  assert_failed(import_csv(train, test, (gt_import_options){0}), GT_ERR_DATA,
                "a.csv: line 3 has no value in column x");
  put("a.csv", "x,c,y\n1,p,0\n2,\"  \",1\n");
  assert_failed(import_csv(train, test, (gt_import_options){.missing = "mean"}), GT_ERR_DATA,
                "a.csv: line 3 has no value in column c");
}

static void test_refused(void) {
  static const struct {
    const char *text, *error;
  } files[] = {
      {"", "a.csv: is empty; expected a line with the names of the columns"},
      {"x,y\n1,0\n2\n", "a.csv: line 3 has 1 fields; expected 2, as in the header"},
      {"x,y\n1,0\n\"2,1\n", "a.csv: the quotes that line 3 opens are not closed"},
      {"x,y\n3,\"1\"\n2\"4,\"0\n", "a.csv: the quotes that line 3 opens are not closed"},
      {"x,y\n\"1\"z,0\n", "a.csv: line 2 has text after the quotes of field 1"},
      {"x,y\n1,0\n2,\n", "a.csv: line 3 has no label (column y)"},
      {"x,y\n1,0\n2,0\n", "a.csv: column y has 1 values; expected two or more labels"},
      {"y\n0\n1\n", "a.csv: has no column but the label"},
  };
  const char *test = put("b.csv", "x,y\n1,0\n");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    assert_failed(
        import_csv(put("a.csv", files[i].text), i == 7 ? NULL : test, (gt_import_options){0}),
        GT_ERR_DATA, files[i].error);
  const char *train = put("a.csv", "x,z,y\n1,1,0\n2,2,1\n");
  assert_failed(import_csv(train, test, (gt_import_options){0}), GT_ERR_DATA,
                "b.csv: line 1 has 2 fields");
  put("b.csv", "x,w,y\n1,1,0\n");
  assert_failed(import_csv(train, test, (gt_import_options){0}), GT_ERR_DATA,
                "b.csv: column 2 is `w`; expected `z`, as in ");
  assert_failed(import_csv(train, NULL, (gt_import_options){.label = "q"}), GT_ERR_DATA,
                "a.csv: has no column `q`; expected a name of its first line");
  const double share = 0;
  const char *twice = put("c.csv", "x,z,y,z\n1,1,0,1\n2,2,1,2\n");
  assert_failed(import_csv(twice, NULL, (gt_import_options){0}), GT_ERR_DATA,
                "c.csv: columns 2 and 4 have the name `z`; expected different names");
  assert_int_equal(
      import_csv(twice, NULL, (gt_import_options){.columns = "x", .test_share = &share}), GT_OK);
  assert_failed(import_csv(train, NULL, (gt_import_options){.columns = "x,y"}), GT_ERR_JOB,
                "data import --columns has `y`, which is the label");
  assert_failed(import_csv(train, NULL, (gt_import_options){.missing = "zero"}), GT_ERR_JOB,
                "data import --missing is `zero`; expected refuse, drop or mean");
  assert_failed(import_from("csv", train, scratch("t.h5")), GT_ERR_JOB,
                "data import csv needs --label COLUMN");
}

/* As numbers: a column of numbers, and one with 0 and 1 for each value that training has; numbers
   are normalised, 0 and 1 are not. */
static void test_numbers(void) {
  const char *train = put("a.csv", "x,c,y\n1,p,0\n,q,1\n5,p,0\n"),
             *test = put("b.csv", "x,c,y\n2,r,1\n,q,0\n");
  const float want[2][9] = {{1, 1, 0, 3, 0, 1, 5, 1, 0}, {2, 0, 0, 3, 0, 1}};
  float x[9];
  int32_t y[3];
  assert_int_equal(import_csv(train, test, (gt_import_options){.as = "numbers", .missing = "mean"}),
                   GT_OK);
  gt_dataset *dataset;
  gt_loader *loader;
  assert_int_equal(gt_dataset_open(&dataset, scratch("t.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_true(info->input == GT_INPUT_FLOATS && info->scaled && info->c == 3);
  assert_true(info->vocabulary_sha256[0] && info->ntrain == 3 && info->ntest == 2);
  const float *mean = gt_dataset_mean(dataset), *std = gt_dataset_std(dataset);
  assert_true(mean[0] == 3 && fabsf(std[0] - sqrtf(8.0F / 3)) < 1e-6F);
  assert_true(mean[1] == 0 && std[1] == 1 && mean[2] == 0 && std[2] == 1);
  for (int s = 0; s < 2; s++) {
    const size_t n = s == 0 ? 3 : 2;
    assert_int_equal(gt_loader_create(&loader, dataset, (gt_split)s, NULL, 0), GT_OK);
    gt_loader_range(loader, 0, n, x, y);
    for (size_t i = 0; i < 3 * n; i++)
      assert_true(fabsf(x[i] - (want[s][i] - mean[i % 3]) / std[i % 3]) < 1e-6F);
    gt_loader_close(loader);
  }
  gt_dataset_close(dataset);
  assert_failed(import_csv(train, test, (gt_import_options){.as = "ints"}), GT_ERR_JOB,
                "data import --as is `ints`; expected ids or numbers");
  static char text[20000];
  size_t at = (size_t)sprintf(text, "c,y\n");
  for (int i = 0; i < 1001; i++) at += (size_t)sprintf(text + at, "v%d,%d\n", i, i % 2);
  put("a.csv", text);
  put("b.csv", "c,y\nv1,0\n");
  assert_failed(
      import_csv(train, test, (gt_import_options){.as = "numbers"}), GT_ERR_DATA,
      "a.csv: has 1001 columns, one for each value of a category, 1001 of them of column c; "
      "expected at most 1000");
}

/* Means and deviations of columns of a table: constant ones, ones far from 0, and parts. */
static void test_moments(void) {
  enum { N = 3000 };
  static char text[N * 64];
  size_t at = (size_t)sprintf(text, "constant,far,small,y\n");
  for (int i = 0; i < N; i++)
    at += (size_t)sprintf(text + at, "0.1,%d,%d,%d\n", 1600000000 + i % 7 * 128 * 40, i % 5, i % 2);
  const char *train = put("a.csv", text), *test = put("b.csv", "constant,far,small,y\n1,1,1,1\n");
  assert_int_equal(import_csv(train, test, (gt_import_options){.as = "numbers"}), GT_OK);
  gt_dataset *dataset;
  assert_int_equal(gt_dataset_open(&dataset, scratch("t.h5")), GT_OK);
  const float *mean = gt_dataset_mean(dataset), *std = gt_dataset_std(dataset);
  assert_true(mean[0] == 0.1F && std[0] == 1);
  assert_true(fabsf(std[1] / (128 * 40 * 2) - 1) < 1e-2F);
  assert_true(mean[2] == 2 && fabsf(std[2] - sqrtf(2)) < 1e-6F);
  uint32_t half[N / 2];
  double sums[2][GT_DATA_SUMS(3)];
  float norm[6];
  for (uint32_t k = 0; k < 2; k++) {
    for (uint32_t i = 0; i < N / 2; i++) half[i] = k * N / 2 + i;
    assert_int_equal(gt_dataset_sums(dataset, half, N / 2, sums[k]), GT_OK);
  }
  for (size_t i = 0; i < GT_DATA_SUMS(3); i++) sums[0][i] += sums[1][i];
  gt_data_moments(GT_INPUT_FLOATS, sums[0], 3, norm, norm + 3);
  assert_memory_equal(norm, mean, 3 * sizeof *norm);
  assert_memory_equal(norm + 3, std, 3 * sizeof *norm);
  gt_dataset_close(dataset);
}

/* Bytes that are not UTF-8 are refused, in values and in labels; characters of UTF-8 stay whole. */
static void test_utf8(void) {
  const double share = 0;
  const gt_import_options all = {.test_share = &share};
  assert_failed(import_csv(put("a.csv", "c,y\nb,0\n\x80,0\n\x85,1\n"), NULL, all), GT_ERR_DATA,
                "a.csv: the row at line 3 is not UTF-8; convert the file, as by `iconv");
  assert_failed(import_csv(put("a.csv", "x,y\n1,0\n2,caf\xe9\n"), NULL, all), GT_ERR_DATA,
                "a.csv: the row at line 3 is not UTF-8");
  assert_failed(import_csv(put("a.csv", "\xe9,y\n1,0\n2,1\n"), NULL, all), GT_ERR_DATA,
                "a.csv: the row at line 1 is not UTF-8");
  const char *path =
      put("a.csv", "aaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9,y\n\"a\xc3\xa9\n\xe2\x82\xac\",0\nb,1\n");
  assert_int_equal(import_csv(path, NULL, all), GT_OK);
  char text[3 * 96];
  hid_t file = H5Fopen(scratch("t.h5"), H5F_ACC_RDONLY, H5P_DEFAULT),
        set = H5Dopen2(file, "vocabulary", H5P_DEFAULT), type = H5Dget_type(set);
  assert_int_equal(H5Tget_size(type), 96);
  assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
  H5Tclose(type);
  H5Dclose(set);
  H5Fclose(file);
  assert_string_equal(text, "aaaaaaaaaaaaaaaaaaaaaaa = <unknown>");
  assert_string_equal(text + 96, "aaaaaaaaaaaaaaaaaaaaaaa = a\xc3\xa9 \xe2\x82\xac");
}

/* Numbers are decimal. */
static void test_hex(void) {
  const double share = 0;
  const char *path = put("a.csv", "x,z,y\n0x1F,1e1,0\n31,-.5,1\n");
  assert_int_equal(
      import_csv(path, NULL, (gt_import_options){.as = "numbers", .test_share = &share}), GT_OK);
  rows r = read_rows(GT_SPLIT_TRAIN);
  assert_int_equal(r.columns, 3);
  close_rows(&r);
}

/* A split without rows is named with its file, and a share of tests needs one file. */
static void test_two_files(void) {
  const double share = 0.2, none = 0;
  const char *full = put("a.csv", "x,y\n1,0\n2,1\n"), *empty = put("b.csv", "x,y\n");
  assert_failed(import_csv(empty, full, (gt_import_options){0}), GT_ERR_DATA,
                "b.csv: has no row for the train split");
  assert_failed(import_csv(full, empty, (gt_import_options){0}), GT_ERR_DATA,
                "b.csv: has no row for the test split");
  assert_int_equal(import_csv(full, empty, (gt_import_options){.test_share = &none}), GT_OK);
  assert_failed(import_csv(full, full, (gt_import_options){.test_share = &share}), GT_ERR_JOB,
                "data import --test-share is 0.2, and the test split has a file of its own");
  assert_failed(import_csv(full, NULL, (gt_import_options){.columns = ""}), GT_ERR_JOB,
                "data import --columns is empty; expected names of columns");
}

/* Gives the readers of `path` one text after the other: each finds a pipe, and the next a new one. */
static void give(const char *path, const char *const *texts, int n) {
  for (int i = 0; i < n; i++) {
    char pipe[600], next[600];
    snprintf(pipe, sizeof pipe, "%s%d", path, i);
    snprintf(next, sizeof next, "%s%d", path, i + 1);
    const int fd = open(pipe, O_WRONLY); /* waits for the reader */
    const bool ok = symlink(next, scratch("new")) == 0 && rename(scratch("new"), path) == 0 &&
                    write(fd, texts[i], strlen(texts[i])) > 0;
    close(fd);
    if (!ok) _exit(1);
  }
  _exit(0);
}

/* A file that changes while it is read is refused: a number becomes a text. */
static void test_changed(void) {
  static const char before[] = "x,y\n1,0\n2,1\n", after[] = "x,y\n1,0\nred,1\n";
  static const char *const texts[2][4] = {{before, before, after, after},
                                          {before, before, before, after}};
  const char *path = scratch("p.csv");
  const double share = 0;
  char pipe[600];
  for (int i = 0; i < 5; i++) {
    snprintf(pipe, sizeof pipe, "%s%d", path, i);
    assert_int_equal(mkfifo(pipe, 0600), 0);
  }
  for (int k = 0; k < 2; k++) {
    snprintf(pipe, sizeof pipe, "%s0", path);
    unlink(path);
    assert_int_equal(symlink(pipe, path), 0);
    const pid_t writer = fork();
    if (writer == 0) give(path, texts[k], 4);
    const gt_status status = import_csv(path, NULL, (gt_import_options){.test_share = &share});
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_failed(status, GT_ERR_DATA, "p.csv: has changed while it was read");
  }
}

TESTS_BETWEEN(NULL, scratch_remove, test_fields, test_bins, test_held_back, test_labels,
              test_missing, test_refused, test_numbers, test_moments, test_utf8, test_hex,
              test_two_files, test_changed)
