/* Synthetic data: the same bytes for the same seed, a larger set begins with the smaller, and
   classes can be learnt, but not trivially. */
#include "scratch.h"

#include <math.h>

static gt_dataset *make(const char *name, uint64_t seed, size_t ntrain, size_t ntest) {
  gt_synth_spec spec = gt_synth_default();
  gt_dataset *dataset;
  spec.seed = seed;
  spec.ntrain = ntrain;
  spec.ntest = ntest;
  assert_int_equal(gt_data_synth(scratch(name), &spec), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch(name)), GT_OK);
  return dataset;
}

static float *values(gt_dataset *dataset, gt_split split, size_t n, int32_t *y) {
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  gt_loader *loader;
  float *x = GT_NEW_ARRAY(float, n * info->h * info->w * info->c);
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, n, x, y);
  gt_loader_close(loader);
  return x;
}

static void test_deterministic(void) {
  size_t size_a, size_b;
  gt_dataset_close(make("a.h5", 5, 200, 50));
  /* HDF5's time stamps, in whole seconds, must not be in the file */
  gt_sleep(GT_SECOND + GT_SECOND / 10);
  gt_dataset_close(make("b.h5", 5, 200, 50));
  uint8_t *a = scratch_read(scratch("a.h5"), &size_a), *b = scratch_read(scratch("b.h5"), &size_b);
  assert_int_equal(size_a, size_b);
  assert_memory_equal(a, b, size_a);
  gt_free(b);
  gt_dataset_close(make("b.h5", 6, 200, 50));
  b = scratch_read(scratch("b.h5"), &size_b);
  assert_true(size_a != size_b || memcmp(a, b, size_a) != 0);
  gt_free(b);
  gt_free(a);
}

/* Sums over the bytes of the default set's first images: identical on every machine and
   compiler. */
static void test_known(void) {
  int32_t y[20];
  gt_dataset *d = make("a.h5", 1, 20, 1);
  float *x = values(d, GT_SPLIT_TRAIN, 20, y);
  double mean = (double)gt_dataset_mean(d)[0], std = (double)gt_dataset_std(d)[0];
  int64_t sum = 0, weighted = 0;
  for (size_t i = 0; i < 20 * 784; i++) {
    int64_t byte = (int64_t)(((double)x[i] * std + mean) * 255 + 0.5);
    sum += byte;
    weighted += byte * (int64_t)(i % 1009);
  }
  assert_int_equal(sum, 2042506);
  assert_int_equal(weighted, 1015476154);
  gt_free(x);
  gt_dataset_close(d);
}

static void test_prefix(void) {
  int32_t y[2][40];
  gt_dataset *small = make("a.h5", 5, 40, 10), *large = make("b.h5", 5, 300, 60);
  float *a = values(small, GT_SPLIT_TRAIN, 40, y[0]), *b = values(large, GT_SPLIT_TRAIN, 40, y[1]);
  double ma = (double)gt_dataset_mean(small)[0], sa = (double)gt_dataset_std(small)[0];
  double mb = (double)gt_dataset_mean(large)[0], sb = (double)gt_dataset_std(large)[0];
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  for (size_t i = 0; i < 40 * 784; i++)
    assert_true(fabs(((double)a[i] * sa + ma) - ((double)b[i] * sb + mb)) < 1e-5);
  gt_free(b);
  gt_free(a);
  gt_dataset_close(large);
  gt_dataset_close(small);
}

/* Nearest mean image: well above chance (the classes differ), well below certainty (shifts and
   noise need a better model). */
static void test_learnable(void) {
  enum { NTRAIN = 2000, NTEST = 500, CLASSES = 10, PIXELS = 784 };
  static double means[CLASSES][PIXELS], counts[CLASSES];
  static int32_t y[NTRAIN], yt[NTEST];
  gt_dataset *d = make("a.h5", 1, NTRAIN, NTEST);
  float *x = values(d, GT_SPLIT_TRAIN, NTRAIN, y), *xt = values(d, GT_SPLIT_TEST, NTEST, yt);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < NTRAIN; i++) {
    counts[y[i]]++;
    for (size_t j = 0; j < PIXELS; j++) {
      double v = (double)x[i * PIXELS + j];
      means[y[i]][j] += v;
      sum += v;
      squares += v * v;
    }
  }
  /* mean and std are those of the training images */
  assert_true(fabs(sum / (NTRAIN * PIXELS)) < 1e-4);
  assert_true(fabs(squares / (NTRAIN * PIXELS) - 1) < 1e-4);
  size_t correct = 0;
  for (size_t i = 0; i < NTEST; i++) {
    int best = 0;
    double nearest = INFINITY;
    for (int k = 0; k < CLASSES; k++) {
      double distance = 0;
      for (size_t j = 0; j < PIXELS; j++) {
        double e = (double)xt[i * PIXELS + j] - means[k][j] / counts[k];
        distance += e * e;
      }
      if (distance < nearest) {
        nearest = distance;
        best = k;
      }
    }
    correct += best == yt[i];
  }
  assert_in_range(correct, NTEST * 40 / 100, NTEST * 90 / 100);
  gt_free(xt);
  gt_free(x);
  gt_dataset_close(d);
}

static void refused(gt_synth_spec spec, const char *text) {
  const char *path = scratch("no.h5");
  assert_failed(gt_data_synth(path, &spec), GT_ERR_JOB, text);
  assert_int_not_equal(access(path, F_OK), 0);
}

static void test_refused(void) {
  gt_synth_spec spec = gt_synth_default(), bad = spec;
  bad.ntrain = 0;
  refused(bad, "train is 0; expected 1 to");
  bad = spec;
  bad.ntest = (size_t)1 << 40;
  refused(bad, "test is 1099511627776; expected 1 to");
  bad = spec;
  bad.classes = 1;
  refused(bad, "classes is 1; expected 2 to");
  bad = spec;
  bad.w = 3;
  refused(bad, "28 x 3; expected sides of 4 to");
  assert_failed(gt_data_synth(scratch("none/a.h5"), &spec), GT_ERR_DATA,
                "none/a.h5: cannot be written (No such file");
}

TESTS_BETWEEN(NULL, scratch_remove, test_deterministic, test_known, test_prefix, test_learnable,
              test_refused)
