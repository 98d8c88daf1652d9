/* Crop and flip: a batch depends only on its key, every image is a window of the original, pixels
   outside the image are black, and all windows are equally likely. */
#include "scratch.h"

#include "loader.h"
#include "store.h"

enum {
  N = 90,
  H = 9,
  W = 7,
  C = 3,
  ITEM = H * W * C,
  BORDER = 4,
  BATCH = 32,
  SPAN = 2 * BORDER + 1
};

static uint8_t images[N][H][W][C];
static int32_t labels[N];
static float table[C][256];

/* Opens a loader of images without black pixels, so that the border can be recognised; no two
   windows of an image are the same. */
static gt_loader *open_loader(gt_augment augment) {
  gt_data_store *store;
  gt_dataset *dataset;
  gt_loader *loader;
  gt_rng rng = gt_rng_make(8, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < N; i++) {
    labels[i] = (int32_t)i;
    for (size_t j = 0; j < ITEM; j++)
      images[i][j / (W * C)][j / C % W][j % C] = (uint8_t)(1 + gt_rng_below(&rng, 255));
  }
  const gt_data_shape shape = {.n = {N, 1}, .h = H, .w = W, .c = C};
  assert_int_equal(gt_data_store_create(&store, scratch("a.h5"), &shape), GT_OK);
  for (int s = 0; s < 2; s++) {
    assert_int_equal(gt_data_store_samples(store, (gt_split)s, 0, shape.n[s], images[0][0][0]),
                     GT_OK);
    assert_int_equal(gt_data_store_labels(store, (gt_split)s, 0, shape.n[s], labels), GT_OK);
  }
  assert_int_equal(gt_data_store_finish(store, "a", N), GT_OK);
  gt_data_store_close(store);
  assert_int_equal(gt_dataset_open(&dataset, scratch("a.h5")), GT_OK);
  for (size_t c = 0; c < C; c++)
    for (int v = 0; v < 256; v++)
      table[c][v] = ((float)v / 255.0F - gt_dataset_mean(dataset)[c]) / gt_dataset_std(dataset)[c];
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  gt_dataset_close(dataset);
  assert_int_equal(gt_loader_augment(loader, augment), GT_OK);
  return loader;
}

/* Computes the direct definition: pad, crop, then flip.  Black is 0 before normalisation. */
static float expected(size_t i, int top, int left, bool flip, int y, int x, size_t c) {
  int row = y + top, column = (flip ? W - 1 - x : x) + left;
  bool inside = row >= 0 && row < H && column >= 0 && column < W;
  return table[c][inside ? images[i][row][column][c] : 0];
}

static bool matches(const float *found, size_t i, int top, int left, bool flip) {
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      for (size_t c = 0; c < C; c++)
        if (found[((size_t)y * W + (size_t)x) * C + c] != expected(i, top, left, flip, y, x, c))
          return false;
  return true;
}

/* Returns the window shown by an image of a batch; fails if there is none. */
static size_t window_of(const float *found, size_t i) {
  for (int k = 0; k < 2 * SPAN * SPAN; k++)
    if (matches(found, i, k / 2 / SPAN - BORDER, k / 2 % SPAN - BORDER, k % 2)) return (size_t)k;
  fail_msg("image %zu is no window of itself", i);
  return 0;
}

static float x[BATCH][ITEM], again[BATCH][ITEM];
static int32_t y[BATCH];

/* Over many batches: each image is a window of the image that its label names, the order is the
   same as without augmentation, and windows are uniformly distributed. */
static void test_windows(void) {
  enum { BATCHES = 600 };
  static size_t tops[SPAN], lefts[SPAN], flips[2];
  gt_loader *loader = open_loader(GT_AUGMENT_CROP_FLIP);
  gt_order order = {.seed = 11, .region = 1, .n = N, .batch = BATCH};
  size_t total = 0, neighbours = 0, before = 0;
  for (int64_t b = 0; b < BATCHES; b++) {
    size_t size = gt_loader_batch(loader, &order, b, x, y);
    gt_permutation p = gt_order_permutation(&order, b / 3);
    for (size_t i = 0; i < size; i++, total++) {
      assert_int_equal(y[i], gt_permutation_at(&p, (size_t)(b % 3) * BATCH + i));
      size_t k = window_of(x[i], (size_t)y[i]);
      tops[k / 2 / SPAN]++;
      lefts[k / 2 % SPAN]++;
      flips[k % 2]++;
      neighbours += total > 0 && k == before;
      before = k;
    }
  }
  /* 18000 draws.  Chi-square of 8 degrees of freedom: 8 + 5 standard deviations of 4 is 28; the
     share of flips is 1/2 within 5 standard deviations. */
  double chi_top = 0, chi_left = 0, each = (double)total / SPAN;
  for (size_t i = 0; i < SPAN; i++) {
    chi_top += ((double)tops[i] - each) * ((double)tops[i] - each) / each;
    chi_left += ((double)lefts[i] - each) * ((double)lefts[i] - each) / each;
  }
  assert_int_equal(total, 18000);
  assert_true(chi_top < 28 && chi_left < 28);
  assert_true(flips[0] > 8660 && flips[0] < 9340);
  /* windows of successive images are independent: 1 in 162 equals the previous one, 111 +- 5 x
     10.5 */
  assert_true(neighbours > 60 && neighbours < 165);
  gt_loader_close(loader);
}

static void test_keys(void) {
  gt_loader *loader = open_loader(GT_AUGMENT_CROP_FLIP), *other = open_loader(GT_AUGMENT_CROP_FLIP);
  gt_order order = {.seed = 11, .region = 1, .n = N, .batch = BATCH}, changed;
  int64_t allocations = gt_alloc_total();
  gt_loader_batch(loader, &order, 4, x, y);
  /* another rank, which has made other batches before */
  for (int64_t b = 9; b > 4; b--) gt_loader_batch(other, &order, b, again, y);
  gt_loader_batch(other, &order, 4, again, y);
  assert_memory_equal(x, again, sizeof x);
  assert_int_equal(gt_alloc_total(), allocations);
  /* the windows are keyed by seed, region and batch number */
  for (int what = 0; what < 3; what++) {
    size_t same = 0;
    changed = order;
    changed.seed += what == 0;
    changed.region += what == 1;
    size_t size = gt_loader_batch(loader, &order, 3, x, y), windows[BATCH];
    for (size_t i = 0; i < size; i++) windows[i] = window_of(x[i], (size_t)y[i]);
    /* 3 and 6 are both the first batch of an epoch */
    gt_loader_batch(loader, &changed, what == 2 ? 6 : 3, again, y);
    for (size_t i = 0; i < size; i++) same += windows[i] == window_of(again[i], (size_t)y[i]);
    assert_true(same < 5);
  }
  gt_loader_close(other);
  gt_loader_close(loader);
}

/* Evaluation, and training without augmentation, use the images unchanged. */
static void test_untouched(void) {
  gt_order order = {.seed = 11, .region = 1, .n = N, .batch = BATCH};
  gt_loader *loader = open_loader(GT_AUGMENT_CROP_FLIP);
  gt_loader_range(loader, 10, BATCH, x, y);
  for (size_t i = 0; i < BATCH; i++) assert_true(matches(x[i], 10 + i, 0, 0, false));
  assert_int_equal(gt_loader_augment(loader, GT_AUGMENT_NONE), GT_OK);
  gt_loader_batch(loader, &order, 7, x, y);
  for (size_t i = 0; i < BATCH; i++) assert_true(matches(x[i], (size_t)y[i], 0, 0, false));
  gt_loader_close(loader);
}

/* Every window of images smaller and larger than the border, for floats and bytes. */
static void test_sizes(void) {
  enum { MOST = 12 };
  static uint8_t bytes[MOST * MOST * 2];
  static float floats[MOST * MOST * 2], from_bytes[MOST * MOST * 2], from_floats[MOST * MOST * 2],
      identity[2 * 256];
  for (size_t i = 0; i < sizeof bytes; i++) floats[i] = bytes[i] = (uint8_t)(1 + i % 251);
  for (size_t v = 0; v < 2 * 256; v++) identity[v] = (float)(v % 256);
  for (size_t h = 1; h <= MOST; h++)
    for (size_t w = 1; w <= MOST; w++)
      for (int k = 0; k < 2 * SPAN * SPAN; k++) {
        gt_augment_window window = {k / 2 / SPAN - BORDER, k / 2 % SPAN - BORDER, k % 2};
        gt_augment_bytes(from_bytes, bytes, identity, h, w, 2, window);
        gt_augment_floats(from_floats, floats, h, w, 2, window);
        assert_memory_equal(from_bytes, from_floats, h * w * 2 * sizeof(float));
        for (size_t i = 0; i < h * w * 2; i++) {
          ptrdiff_t row = (ptrdiff_t)(i / 2 / w) + window.top, column = (ptrdiff_t)(i / 2 % w);
          column = (window.flip ? (ptrdiff_t)w - 1 - column : column) + window.left;
          bool inside = row >= 0 && row < (ptrdiff_t)h && column >= 0 && column < (ptrdiff_t)w;
          assert_true(from_bytes[i] ==
                      (inside ? floats[((size_t)row * w + (size_t)column) * 2 + i % 2] : 0));
        }
      }
}

TESTS_BETWEEN(NULL, scratch_remove, test_windows, test_keys, test_untouched, test_sizes)
