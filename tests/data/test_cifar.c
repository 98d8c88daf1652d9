/* The import of CIFAR's binary files: the written data are restored, channels last, and the message
   names every kind of damage. */
#include "cases.h"
#include "scratch.h"

#include <math.h>

enum { ITEM = 3072, N1 = 300, N3 = 256, NTEST = 40 };

static uint8_t file[300 * (2 + ITEM)];

static uint8_t pixel(unsigned salt, size_t record, size_t y, size_t x, size_t channel) {
  return (uint8_t)(((record * 7919 + salt) * 31 + y * 57 + x * 3 + channel * 101) * 2654435761U >>
                   9);
}

static uint8_t label(unsigned salt, size_t record, size_t classes) {
  return (uint8_t)((record * 3 + salt) % classes);
}

/* Makes n records of a file in `file`, channels first as in CIFAR; returns the size. */
static size_t make(unsigned salt, size_t n, size_t label_bytes) {
  uint8_t *to = file;
  for (size_t i = 0; i < n; i++) {
    if (label_bytes == 2) *to++ = (uint8_t)(i % 20);
    *to++ = label(salt, i, label_bytes == 2 ? 100 : 10);
    for (size_t c = 0; c < 3; c++)
      for (size_t y = 0; y < 32; y++)
        for (size_t x = 0; x < 32; x++) *to++ = pixel(salt, i, y, x, c);
  }
  return (size_t)(to - file);
}

static const char *in(const char *name) {
  char path[96];
  snprintf(path, sizeof path, "c/%s", name);
  return scratch(path);
}

/* Creates an empty folder c. */
static void empty_folder(void) {
  static const char *const names[] = {
      "data_batch_1.bin.gz", "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
      "test_batch.bin",      "train.bin.gz",     "test.bin"};
  mkdir(scratch("c"), 0777);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in(names[i]));
}

/* Writes only batches 1 and 3, one of them gzip; 256 records are one whole block of the reader. */
static void write_folder(void) {
  empty_folder();
  scratch_gzip(in("data_batch_1.bin.gz"), file, make(1, N1, 1));
  scratch_write(in("data_batch_3.bin"), file, make(3, N3, 1));
  scratch_write(in("test_batch.bin"), file, make(9, NTEST, 1));
}

static void assert_record(gt_loader *loader, gt_dataset *dataset, size_t sample, unsigned salt,
                          size_t record, size_t classes) {
  static float x[32][32][3];
  int32_t y;
  const float *mean = gt_dataset_mean(dataset), *std = gt_dataset_std(dataset);
  gt_loader_range(loader, sample, 1, x, &y);
  assert_int_equal(y, label(salt, record, classes));
  for (size_t h = 0; h < 32; h++)
    for (size_t w = 0; w < 32; w++)
      for (size_t c = 0; c < 3; c++)
        assert_true(x[h][w][c] ==
                    ((float)pixel(salt, record, h, w, c) / 255.0F - mean[c]) / std[c]);
}

/* As published, with an empty line at the end. */
static void test_cifar10(void) {
  static const char names[] =
      "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  gt_dataset *dataset;
  gt_loader *train, *test;
  write_folder();
  scratch_write(in("batches.meta.txt"), names, sizeof names - 1);
  assert_int_equal(import_from("cifar", in(""), scratch("c.h5")), GT_OK);
  unlink(in("batches.meta.txt"));
  assert_int_equal(gt_dataset_open(&dataset, scratch("c.h5")), GT_OK);
  assert_int_equal(gt_dataset_class_names(dataset)->n, 10);
  assert_memory_equal(gt_dataset_class_names(dataset)->text, "airplane\0automobile", 20);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_string_equal(info->name, "c");
  assert_true(info->ntrain == N1 + N3 && info->ntest == NTEST && info->classes == 10);
  assert_true(info->h == 32 && info->w == 32 && info->c == 3 && info->input == GT_INPUT_BYTES &&
              info->features == 0);
  assert_int_equal(gt_loader_create(&train, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  assert_int_equal(gt_loader_create(&test, dataset, GT_SPLIT_TEST, NULL, 0), GT_OK);
  for (size_t i = 0; i < N1; i++) assert_record(train, dataset, i, 1, i, 10);
  for (size_t i = 0; i < N3; i++) assert_record(train, dataset, N1 + i, 3, i, 10);
  for (size_t i = 0; i < NTEST; i++) assert_record(test, dataset, i, 9, i, 10);
  for (size_t c = 0; c < 3; c++) { /* of the training images only */
    double sum = 0;
    for (size_t i = 0; i < N1 + N3; i++)
      for (size_t p = 0; p < 1024; p++)
        sum += i < N1 ? pixel(1, i, p / 32, p % 32, c) : pixel(3, i - N1, p / 32, p % 32, c);
    assert_true(fabs(sum / 255 / 1024 / (N1 + N3) - (double)gt_dataset_mean(dataset)[c]) < 1e-6);
  }
  gt_loader_close(test);
  gt_loader_close(train);
  gt_dataset_close(dataset);
}

static void test_cifar100(void) {
  gt_dataset *dataset;
  gt_loader *train;
  empty_folder();
  scratch_gzip(in("train.bin.gz"), file, make(5, 270, 2));
  scratch_write(in("test.bin"), file, make(6, 10, 2));
  assert_int_equal(import_from("cifar", in(""), scratch("c.h5")), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch("c.h5")), GT_OK);
  assert_int_equal(gt_dataset_describe(dataset)->classes, 100);
  assert_int_equal(gt_loader_create(&train, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  for (size_t i = 0; i < 270; i++) assert_record(train, dataset, i, 5, i, 100); /* the fine label */
  gt_loader_close(train);
  gt_dataset_close(dataset);
}

static void refused(const char *said) {
  int entries = scratch_entries();
  assert_failed(import_from("cifar", scratch("c"), scratch("bad.h5")), GT_ERR_DATA, said);
  assert_int_equal(scratch_entries(), entries);
}

static void test_refused(void) {
  write_folder();
  size_t size = make(3, N3, 1), zipped_size;
  scratch_write(in("data_batch_3.bin"), file, size - 1);
  refused("c/data_batch_3.bin: ends after 786687 bytes, 3072 bytes into record 255; expected whole "
          "records of 3073 bytes");
  scratch_write(in("data_batch_3.bin"), file, size + 1);
  refused("c/data_batch_3.bin: ends after 786689 bytes, 1 bytes into record 256;");
  scratch_write(in("data_batch_3.bin"), file, 0);
  refused("c/data_batch_3.bin: is empty");
  file[200 * 3073] = 10;
  scratch_write(in("data_batch_3.bin"), file, size);
  refused("c/data_batch_3.bin: the label of record 200 is 10; expected 0 to 9");
  write_folder();
  uint8_t *bytes = scratch_read(in("data_batch_1.bin.gz"), &zipped_size);
  /* every position in the checksum, too */
  for (size_t keep = 20; keep < zipped_size;
       keep += keep + 32 < zipped_size ? zipped_size / 7 : 1) {
    scratch_write(in("data_batch_1.bin.gz"), bytes, keep);
    refused("c/data_batch_1.bin.gz: its gzip data end before their check sum");
  }
  bytes[zipped_size - 6] ^= 1;
  scratch_write(in("data_batch_1.bin.gz"), bytes, zipped_size);
  refused("c/data_batch_1.bin.gz: cannot be read (incorrect data check)");
  gt_free(bytes);
  write_folder();
  unlink(in("test_batch.bin"));
  refused("c: test_batch.bin is missing, with .gz and without; it is the test split of cifar-10");
  mkdir(in("test_batch.bin"), 0777);
  refused("c/test_batch.bin: cannot be read (");
  rmdir(in("test_batch.bin"));
  empty_folder();
  refused(
      "c: data_batch_1.bin to data_batch_5.bin (CIFAR-10) and train.bin (CIFAR-100) are missing");
}

/* A small gzip file with very many records is rejected at a limit, before the disk is full. */
static void test_bomb(void) {
  if (!all_cases()) return; /* 3 GB */
  empty_folder();
  scratch_write(in("test_batch.bin"), file, make(9, NTEST, 1));
  memset(file, 0, sizeof file);
  scratch_gzip(in("data_batch_1.bin.gz"), file, 300 * 3073);
  size_t size;
  uint8_t *member = scratch_read(in("data_batch_1.bin.gz"), &size);
  FILE *f = fopen(in("data_batch_1.bin.gz"), "wb"); /* a file can consist of several gzip members */
  assert_non_null(f);
  for (size_t records = 0; records <= 1000000; records += 300)
    assert_int_equal(fwrite(member, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
  gt_free(member);
  refused("c/data_batch_1.bin.gz: has more than 1000000 records; a file of cifar-10 has 10000 or "
          "50000");
}

TESTS_BETWEEN(NULL, scratch_remove, test_cifar10, test_cifar100, test_refused, test_bomb)
