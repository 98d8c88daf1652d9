/* The order of samples, and batches compared with a direct reading of the file. */
#include "scratch.h"

#include <hdf5.h>
#include <math.h>

#include "loader.h"

/* Checks every n up to 300, and some around powers of two: a one-to-one mapping of positions to
   samples. */
static void test_permutation(void) {
  static const size_t large[] = {511, 512, 513, 4095, 4096, 4097, 60000, 65537};
  uint8_t *seen = gt_alloc(65537, 1);
  for (size_t k = 0; k < 300 + sizeof large / sizeof large[0]; k++) {
    gt_order order = {
        .seed = 7 + k, .region = k % 3, .n = k < 300 ? k + 1 : large[k - 300], .batch = 1};
    gt_permutation p = gt_order_permutation(&order, (int64_t)k);
    memset(seen, 0, order.n);
    for (size_t i = 0; i < order.n; i++) {
      size_t at = gt_permutation_at(&p, i);
      assert_true(at < order.n && !seen[at]);
      seen[at] = 1;
    }
  }
  gt_free(seen);
}

static size_t agreeing(const gt_order *a, int64_t epoch_a, const gt_order *b, int64_t epoch_b) {
  gt_permutation p = gt_order_permutation(a, epoch_a), q = gt_order_permutation(b, epoch_b);
  size_t same = 0;
  for (size_t i = 0; i < a->n; i++) same += gt_permutation_at(&p, i) == gt_permutation_at(&q, i);
  return same;
}

static void test_keys(void) {
  gt_order a = {.seed = 1, .region = 0, .n = 5000, .batch = 64}, b = a;
  assert_int_equal(agreeing(&a, 3, &b, 3), 5000);
  assert_true(agreeing(&a, 3, &b, 4) < 15); /* two random orders agree in 1 place on average */
  b.region = 1;
  assert_true(agreeing(&a, 3, &b, 3) < 15);
  b = a;
  b.seed = 2;
  assert_true(agreeing(&a, 3, &b, 3) < 15);
  b = a;
  b.batch = 32; /* the batch size does not change the order of samples */
  assert_int_equal(agreeing(&a, 3, &b, 3), 5000);
}

/* The place of a sample and its successor are both uniformly distributed: chi-square over many
   epochs. */
static void test_uniform(void) {
  enum { N = 23, EPOCHS = 23 * 400 };
  static double place[N][N], next[N][N];
  gt_order order = {.seed = 4, .region = 2, .n = N, .batch = 5};
  for (int64_t e = 0; e < EPOCHS; e++) {
    gt_permutation p = gt_order_permutation(&order, e);
    for (size_t i = 0; i < N; i++) {
      size_t s = gt_permutation_at(&p, i);
      place[s][i]++;
      next[s][gt_permutation_at(&p, (i + 1) % N)]++;
    }
  }
  double chi_place = 0, chi_next = 0, expect_next = (double)EPOCHS / (N - 1);
  for (size_t s = 0; s < N; s++)
    for (size_t i = 0; i < N; i++) {
      chi_place += (place[s][i] - 400) * (place[s][i] - 400) / 400;
      if (s != i) chi_next += (next[s][i] - expect_next) * (next[s][i] - expect_next) / expect_next;
    }
  /* 484 and 462 degrees of freedom: 5 standard deviations above the mean are 640 and 614. */
  assert_true(chi_place < 640);
  assert_true(chi_next < 614);
}

static void test_counts(void) {
  gt_order order = {.seed = 1, .region = 0, .n = 130, .batch = 64};
  assert_int_equal(gt_order_batches_per_epoch(&order), 3);
  assert_int_equal(gt_order_batch_size(&order, 0), 64);
  assert_int_equal(gt_order_batch_size(&order, 1), 64);
  assert_int_equal(gt_order_batch_size(&order, 2), 2);
  assert_int_equal(gt_order_batch_size(&order, 3), 64);
  assert_int_equal(gt_order_batch_size(&order, 3000002), 2);
  order.n = 128;
  assert_int_equal(gt_order_batches_per_epoch(&order), 2);
  assert_int_equal(gt_order_batch_size(&order, 1), 64);
  order.n = 5;
  assert_int_equal(gt_order_batches_per_epoch(&order), 1);
  assert_int_equal(gt_order_batch_size(&order, 7), 5);
  order = (gt_order){.seed = 1, .n = 130, .batch = 64, .whole = true};
  assert_int_equal(gt_order_batches_per_epoch(&order), 2);
  for (int64_t b = 0; b < 5; b++) assert_int_equal(gt_order_batch_size(&order, b), 64);
  order.n = 64;
  assert_int_equal(gt_order_batches_per_epoch(&order), 1);
}

/* ---- loader ---------------------------------------------------------------------------------- */

enum { NTRAIN = 130, NTEST = 20, H = 6, W = 5, C = 3, ITEM = H * W * C };

static uint8_t bytes[NTRAIN][ITEM];
static float floats[NTRAIN][ITEM];
static int32_t classes[NTRAIN];
static const float mean[C] = {0.1F, 0.5F, 0.7F}, deviation[C] = {0.3F, 0.2F, 1.5F};

static void write_set(hid_t at, const char *name, hid_t type, int rank, const hsize_t *dims,
                      hsize_t chunk, const void *data) {
  hid_t space = H5Screate_simple(rank, dims, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk) {
    H5Pset_chunk(plist, rank, (hsize_t[]){chunk, H, W, 1});
    H5Pset_deflate(plist, 1);
  }
  hid_t dset = H5Dcreate2(at, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  assert_true(H5Dwrite(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(dset);
  H5Pclose(plist);
  H5Sclose(space);
}

static void write_attr(hid_t at, const char *name, hid_t type, int rank, hsize_t n,
                       const void *data) {
  hid_t space = H5Screate_simple(rank, &n, NULL),
        attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attr, type, data) >= 0);
  H5Aclose(attr);
  H5Sclose(space);
}

/* Three channels, compressed chunks if chunk > 0: files as other programs write them. */
static void write_file(const char *path, bool as_floats, hsize_t chunk) {
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 3);
  for (int s = 0; s < 2; s++) {
    hsize_t dims[4] = {s ? NTEST : NTRAIN, H, W, C};
    hid_t group = H5Gcreate2(file, s ? "test" : "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    write_set(group, "x", as_floats ? H5T_NATIVE_FLOAT : H5T_NATIVE_UINT8, 4, dims, chunk,
              as_floats ? (void *)floats : (void *)bytes);
    write_set(group, "y", H5T_NATIVE_INT32, 1, dims, 0, classes);
    H5Gclose(group);
  }
  write_attr(file, "geotrain_schema", H5T_NATIVE_INT, 0, 1, (int[]){1});
  write_attr(file, "classes", H5T_NATIVE_INT, 0, 1, (int[]){9});
  write_attr(file, "name", text, 0, 1, "rgb");
  write_attr(file, "mean", H5T_NATIVE_FLOAT, 1, C, mean);
  write_attr(file, "std", H5T_NATIVE_FLOAT, 1, C, deviation);
  H5Tclose(text);
  assert_true(H5Fclose(file) >= 0);
}

static int make_samples(void **state) {
  (void)state;
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < NTRAIN; i++) {
    classes[i] = (int32_t)gt_rng_below(&rng, 9);
    for (size_t j = 0; j < ITEM; j++) {
      bytes[i][j] = (uint8_t)gt_rng_below(&rng, 256);
      floats[i][j] = (float)gt_rng_normal(&rng);
    }
  }
  return 0;
}

static void assert_sample(const float *x, int32_t y, size_t i, bool as_floats) {
  assert_int_equal(y, classes[i]);
  for (size_t j = 0; j < ITEM; j++) {
    float v =
        as_floats ? floats[i][j] : ((float)bytes[i][j] / 255.0F - mean[j % C]) / deviation[j % C];
    assert_true(x[j] == v);
  }
}

/* Checks that one epoch of batches contains each sample of the part once, in the given order, with
   its own values, and allocates no memory.  `whole`: without the samples that fill no batch. */
static void check_loader(gt_loader *loader, const uint32_t *part, size_t n, bool as_floats,
                         bool whole) {
  static float x[NTRAIN][ITEM];
  int32_t y[NTRAIN];
  gt_order order = {.seed = 3, .region = 1, .n = n, .batch = 17, .whole = whole};
  assert_int_equal(gt_loader_samples(loader), n);
  int64_t allocations = gt_alloc_total();
  gt_loader_range(loader, 0, n, x[0], y);
  for (size_t i = 0; i < n; i++) assert_sample(x[i], y[i], part ? part[i] : i, as_floats);
  gt_loader_range(loader, n - 2, 1, x[0], y);
  assert_sample(x[0], y[0], part ? part[n - 2] : n - 2, as_floats);
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    gt_permutation p = gt_order_permutation(&order, epoch);
    size_t at = 0;
    for (int64_t b = 0; b < gt_order_batches_per_epoch(&order); b++) {
      size_t size =
          gt_loader_batch(loader, &order, epoch * gt_order_batches_per_epoch(&order) + b, x[0], y);
      assert_int_equal(size, gt_order_batch_size(&order, b));
      for (size_t i = 0; i < size; i++, at++) {
        size_t s = gt_permutation_at(&p, at);
        assert_sample(x[i], y[i], part ? part[s] : s, as_floats);
      }
    }
    assert_int_equal(at, whole ? n / 17 * 17 : n);
  }
  assert_int_equal(gt_alloc_total(), allocations);
}

static void test_loader(void) {
  static const uint32_t part[] = {0,  3,  4,  5,  11, 40, 41,  42,  63, 64,
                                  65, 66, 67, 68, 90, 91, 120, 128, 129};
  const size_t n = sizeof part / sizeof part[0];
  const char *path = scratch("rgb.h5");
  gt_dataset *dataset;
  gt_loader *loader;
  for (int kind = 0; kind < 4; kind++) {
    write_file(path, kind & 1, kind & 2 ? 16 : 0);
    assert_int_equal(gt_dataset_open(&dataset, path), GT_OK);
    assert_int_equal(gt_dataset_describe(dataset)->input,
                     kind & 1 ? GT_INPUT_FLOATS : GT_INPUT_BYTES);
    assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, part, n), GT_OK);
    check_loader(loader, part, n, kind & 1, false);
    check_loader(loader, part, n, kind & 1, true);
    gt_loader_close(loader);
    assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
    gt_dataset_close(dataset); /* the loader no longer needs the file */
    check_loader(loader, NULL, NTRAIN, kind & 1, false);
    gt_loader_close(loader);
  }
}

/* A split of several blocks of 4 MiB: a part and the whole compared with one direct reading. */
static void test_loader_blocks(void) {
  enum { MANY = 13000, PIXELS = 784, STEP = 37 };
  const char *path = scratch("many.h5");
  gt_synth_spec spec = gt_synth_default();
  gt_dataset *dataset;
  gt_loader *part_loader, *whole_loader;
  static uint32_t part[MANY / STEP];
  static float a[PIXELS], b[PIXELS];
  int32_t ya, yb;
  spec.ntrain = MANY;
  spec.ntest = 1;
  assert_int_equal(gt_data_synth(path, &spec), GT_OK);
  uint8_t *x = gt_alloc(MANY, PIXELS);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
        dset = H5Dopen2(file, "train/x", H5P_DEFAULT);
  assert_true(H5Dread(dset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
  H5Dclose(dset);
  H5Fclose(file);
  for (uint32_t i = 0; i < MANY / STEP; i++) part[i] = i < 5 ? i : i * STEP + 3;
  assert_int_equal(gt_dataset_open(&dataset, path), GT_OK);
  assert_int_equal(gt_loader_create(&part_loader, dataset, GT_SPLIT_TRAIN, part, MANY / STEP),
                   GT_OK);
  assert_int_equal(gt_loader_create(&whole_loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  for (size_t i = 0; i < MANY / STEP; i++) {
    gt_loader_range(part_loader, i, 1, a, &ya);
    gt_loader_range(whole_loader, part[i], 1, b, &yb);
    assert_int_equal(ya, yb);
    for (size_t j = 0; j < PIXELS; j++) {
      float v = ((float)x[part[i] * PIXELS + j] / 255.0F - gt_dataset_mean(dataset)[0]) /
                gt_dataset_std(dataset)[0];
      assert_true(a[j] == v && b[j] == v);
    }
  }
  gt_loader_close(whole_loader);
  gt_loader_close(part_loader);
  gt_dataset_close(dataset);
  gt_free(x);
}

static void test_loader_refused(void) {
  const char *path = scratch("rgb.h5");
  gt_dataset *dataset;
  gt_loader *loader;
  write_file(path, false, 0);
  assert_int_equal(gt_dataset_open(&dataset, path), GT_OK);
  assert_failed(gt_loader_create(&loader, dataset, GT_SPLIT_TEST, (uint32_t[]){3, NTEST}, 2),
                GT_ERR_FAULT, "number 20; expected rising numbers below 20");
  assert_failed(gt_loader_create(&loader, dataset, GT_SPLIT_TEST, (uint32_t[]){3, 3}, 2),
                GT_ERR_FAULT, "sample 1 of a part is number 3");
  gt_dataset_close(dataset);
  gt_dataset_close(NULL);
  gt_loader_close(NULL);
}

TESTS_BETWEEN(make_samples, scratch_remove, test_permutation, test_keys, test_uniform, test_counts,
              test_loader, test_loader_blocks, test_loader_refused)
