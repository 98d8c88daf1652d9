/* The idx reader and the import of a folder: the written data are restored, and the message names
   every kind of damage. */
#include "scratch.h"

#include "idx.h"

enum { N = 300, H = 5, W = 7, ITEM = H * W, HEADER = 16, SIZE = HEADER + N * ITEM };

static void put32(uint8_t *to, uint32_t v) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint8_t pixel(size_t i, unsigned salt) {
  return (uint8_t)((i * 2654435761U + salt) >> 7);
}

/* Makes an idx file of n images (labels if h is 0) in `out`; returns its size. */
static size_t make_idx(uint8_t *out, uint32_t n, uint32_t h, uint32_t w, unsigned salt) {
  put32(out, h ? 0x803 : 0x801);
  put32(out + 4, n);
  if (!h) {
    for (size_t i = 0; i < n; i++) out[8 + i] = (uint8_t)((i + salt) % 10);
    return 8 + n;
  }
  put32(out + 8, h);
  put32(out + 12, w);
  for (size_t i = 0; i < (size_t)n * h * w; i++) out[16 + i] = pixel(i, salt);
  return 16 + (size_t)n * h * w;
}

static uint8_t file[SIZE + 16];

/* Reads all of `path` as images in two pieces of unequal size. */
static gt_status read_images(const char *path, uint8_t *out) {
  gt_idx *idx;
  GT_TRY(gt_idx_open(&idx, path, 3));
  assert_int_equal(gt_idx_dim(idx, 0), N);
  assert_int_equal(gt_idx_dim(idx, 1), H);
  assert_int_equal(gt_idx_dim(idx, 2), W);
  gt_status status = gt_idx_read(idx, 7, out);
  if (status == GT_OK) status = gt_idx_read(idx, N - 7, out + 7 * ITEM);
  if (status == GT_OK) status = gt_idx_end(idx);
  gt_idx_close(idx);
  return status;
}

static void test_round_trip(void) {
  static uint8_t found[N * ITEM];
  size_t size = make_idx(file, N, H, W, 1);
  const char *plain = scratch("plain"), *zipped = scratch("zipped.gz");
  scratch_write(plain, file, size);
  scratch_gzip(zipped, file, size);
  assert_int_equal(read_images(plain, found), GT_OK);
  assert_memory_equal(found, file + HEADER, sizeof found);
  memset(found, 0, sizeof found);
  assert_int_equal(read_images(zipped, found), GT_OK);
  assert_memory_equal(found, file + HEADER, sizeof found);
}

static void test_truncated(void) {
  static uint8_t found[N * ITEM];
  size_t size = make_idx(file, N, H, W, 2), zipped_size;
  const char *plain = scratch("plain"), *zipped = scratch("zipped.gz"), *cut = scratch("cut");
  scratch_gzip(zipped, file, size);
  uint8_t *bytes = scratch_read(zipped, &zipped_size);
  for (size_t keep = 0; keep < size; keep += keep < 32 ? 1 : 997) {
    scratch_write(plain, file, keep);
    assert_failed(read_images(plain, found), GT_ERR_DATA,
                  keep < HEADER ? "an idx header has 16" : "of 10500 bytes of data");
  }
  /* every position in the checksum, too */
  for (size_t keep = 20; keep < zipped_size; keep += keep + 32 < zipped_size ? 23 : 1) {
    scratch_write(cut, bytes, keep);
    assert_failed(read_images(cut, found), GT_ERR_DATA, "cut: ");
  }
  gt_free(bytes);
}

/* Reads more images than the file holds. */
static gt_status read_claim(const char *path) {
  static uint8_t found[(N + 1) * ITEM];
  gt_idx *idx;
  GT_TRY(gt_idx_open(&idx, path, 3));
  gt_status status = gt_idx_read(idx, N + 1, found);
  gt_idx_close(idx);
  return status;
}

static void test_damaged(void) {
  static uint8_t found[N * ITEM];
  gt_idx *idx;
  size_t size = make_idx(file, N, H, W, 3), zipped_size;
  const char *path = scratch("plain"), *zipped = scratch("zipped.gz");
  scratch_write(path, file, size + 1);
  assert_failed(read_images(path, found), GT_ERR_DATA, "more than the 10500 bytes");
  file[3] = 1;
  scratch_write(path, file, size);
  assert_failed(read_images(path, found), GT_ERR_DATA,
                "begins with 0x00000801; an idx file of images begins with 0x00000803");
  file[2] = 13; /* floats */
  scratch_write(path, file, size);
  assert_failed(gt_idx_open(&idx, path, 1), GT_ERR_DATA,
                "0x00000d01; an idx file of labels begins with 0x00000801");
  make_idx(file, N, H, W, 3);
  put32(file + 8, 0);
  scratch_write(path, file, size);
  assert_failed(gt_idx_open(&idx, path, 3), GT_ERR_DATA, "dimension 1 is 0");
  put32(file + 8, 1U << 20);
  scratch_write(path, file, size);
  assert_failed(gt_idx_open(&idx, path, 3), GT_ERR_DATA,
                "dimension 1 is 1048576; expected 1 to 65536");
  put32(file + 8, H);
  put32(file + 4, 0);
  scratch_write(path, file, size);
  assert_failed(gt_idx_open(&idx, path, 3), GT_ERR_DATA, "dimension 0 is 0; expected 1 or more");
  put32(file + 4, UINT32_MAX); /* the header claims 140 GB of images */
  scratch_write(path, file, size);
  assert_failed(read_claim(path), GT_ERR_DATA, "ends after 10500 of 150323855325 bytes of data");
  assert_failed(gt_idx_open(&idx, scratch("none"), 3), GT_ERR_DATA, "No such file");
  assert_failed(gt_idx_open(&idx, scratch("."), 3), GT_ERR_DATA, "/.: ");

  size = make_idx(file, N, H, W, 3);
  scratch_gzip(zipped, file, size);
  uint8_t *bytes = scratch_read(zipped, &zipped_size);
  bytes[zipped_size - 6] ^= 1; /* the checksum */
  scratch_write(zipped, bytes, zipped_size);
  assert_failed(read_images(zipped, found), GT_ERR_DATA, "zipped.gz: ");
  gt_free(bytes);
}

/* ---- a folder -------------------------------------------------------------------------------- */

enum { NTRAIN = 2000, NTEST = 50 };
static uint8_t big[16 + NTRAIN * ITEM];

static void write_folder(bool zipped) {
  static const char *const names[2][2] = {{"m/train-images", "m/train-labels"},
                                          {"m/t10k-images", "m/t10k-labels"}};
  mkdir(scratch("m"), 0777);
  for (int s = 0; s < 2; s++)
    for (int labels = 0; labels < 2; labels++) {
      char name[64];
      size_t size = make_idx(big, s ? NTEST : NTRAIN, labels ? 0 : H, W, (unsigned)s);
      /* test files with the other common spelling */
      snprintf(name, sizeof name, "%s%cidx%d-ubyte%s", names[s][labels], s ? '.' : '-',
               labels ? 1 : 3, zipped ? ".gz" : "");
      if (zipped)
        scratch_gzip(scratch(name), big, size);
      else
        scratch_write(scratch(name), big, size);
    }
}

static void check_imported(const char *path) {
  gt_dataset *dataset;
  gt_loader *loader;
  assert_int_equal(gt_dataset_open(&dataset, path), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_string_equal(info->name, "m");
  assert_int_equal(info->ntrain, NTRAIN);
  assert_int_equal(info->ntest, NTEST);
  assert_int_equal(info->h, H);
  assert_int_equal(info->w, W);
  assert_int_equal(info->c, 1);
  assert_int_equal(info->classes, 10);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < NTRAIN * ITEM; i++) sum += pixel(i, 0) / 255.0;
  double mean = sum / (NTRAIN * ITEM);
  for (size_t i = 0; i < NTRAIN * ITEM; i++)
    squares += (pixel(i, 0) / 255.0 - mean) * (pixel(i, 0) / 255.0 - mean);
  double std = __builtin_sqrt(squares / (NTRAIN * ITEM));
  assert_true(__builtin_fabs((double)gt_dataset_mean(dataset)[0] - mean) < 1e-6);
  assert_true(__builtin_fabs((double)gt_dataset_std(dataset)[0] - std) < 1e-6);
  for (size_t i = 0; i < NTEST; i++)
    assert_int_equal(gt_dataset_labels(dataset, GT_SPLIT_TEST)[i], (i + 1) % 10);
  static float x[NTEST * ITEM];
  int32_t y[NTEST];
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TEST, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, NTEST, x, y);
  for (size_t i = 0; i < NTEST * ITEM; i++)
    assert_true(__builtin_fabs((double)x[i] - (pixel(i, 1) / 255.0 - mean) / std) < 1e-5);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

static void test_import(void) {
  const char *out = scratch("m.h5");
  for (int zipped = 0; zipped < 2; zipped++) {
    write_folder(zipped);
    assert_int_equal(import_from("mnist", scratch("m/"), out), GT_OK);
    check_imported(out);
    unlink(out);
    scratch_write(scratch("m/train-images-idx3-ubyte"), "x", 1); /* .gz takes precedence */
  }
}

/* A failed import leaves neither a new nor a temporary file, and does not change an older file. */
static void test_import_refused(void) {
  const char *out = scratch("m.h5");
  scratch_write(out, "old", 3);
  write_folder(true);
  int entries = scratch_entries();
  assert_failed(import_from("minst", scratch("m"), out), GT_ERR_JOB,
                "`minst` is not known; expected one of mnist, cifar, libfm, imdb, text, sessions, "
                "folder, csv, npy; "
                "did you mean mnist?");
  assert_failed(import_from("mnist", scratch("nowhere"), out), GT_ERR_DATA,
                "nowhere: there is no such folder");
  size_t size = make_idx(big, NTRAIN - 1, 0, 0, 0);
  scratch_gzip(scratch("m/train-labels-idx1-ubyte.gz"), big, size);
  assert_failed(import_from("mnist", scratch("m"), out), GT_ERR_DATA,
                "train-images has 2000 samples but train-labels has 1999");
  size = make_idx(big, NTEST, W, H, 0);
  write_folder(true);
  size = make_idx(big, NTEST, W, H, 0);
  scratch_gzip(scratch("m/t10k-images.idx3-ubyte.gz"), big, size);
  assert_failed(import_from("mnist", scratch("m"), out), GT_ERR_DATA,
                "t10k-images are 7 x 5 but train-images 5 x 7");
  write_folder(true);
  size = make_idx(big, NTRAIN, H, W, 0);
  scratch_gzip(scratch("m/train-images-idx3-ubyte.gz"), big, size - 1);
  assert_failed(import_from("mnist", scratch("m"), out), GT_ERR_DATA,
                "ends after 69999 of 70000 bytes");
  /* the headers claim 4 G samples: rejected at the end of the file without allocating memory or
     disk */
  put32(big + 4, UINT32_MAX);
  scratch_gzip(scratch("m/train-images-idx3-ubyte.gz"), big, size);
  size = make_idx(big, NTRAIN, 0, 0, 0);
  put32(big + 4, UINT32_MAX);
  scratch_gzip(scratch("m/train-labels-idx1-ubyte.gz"), big, size);
  assert_failed(import_from("mnist", scratch("m"), out), GT_ERR_DATA,
                "ends after 2000 of 4294967295 bytes");
  assert_failed(import_from("mnist", scratch("m"), scratch("no/m.h5")), GT_ERR_DATA,
                "No such file");
  assert_int_equal(scratch_entries(), entries);
  uint8_t *old = scratch_read(out, &size);
  assert_int_equal(size, 3);
  gt_free(old);
}

TESTS_BETWEEN(NULL, scratch_remove, test_round_trip, test_truncated, test_damaged, test_import,
              test_import_refused)
