/* Random damage: files with flipped, cut and repeated bytes are rejected or read, without crashes
   or leaks. */
#include "scratch.h"

#include "idx.h"

static const gt_synth_spec small = {
    .seed = 3, .ntrain = 12, .ntest = 6, .h = 4, .w = 4, .classes = 3};

/* HDF5 allocates whatever size a damaged file gives and handles a failure, but AddressSanitizer
   would end the process.  HDF5 also leaks a little for each file that it cannot open. */
const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}
const char *__lsan_default_suppressions(void) {
  return "leak:libhdf5";
}

/* Changes 1 to 4 bytes of data, or shortens it.  Returns the new size. */
static size_t damage(uint8_t *data, size_t size, gt_rng *rng) {
  static const uint8_t often[] = {0, 1, 0x7f, 0x80, 0xff};
  for (uint64_t n = 1 + gt_rng_below(rng, 4); n > 0; n--) {
    size_t at = (size_t)gt_rng_below(rng, size);
    switch (gt_rng_below(rng, 4)) {
    case 0:
      data[at] ^= (uint8_t)(1U << gt_rng_below(rng, 8));
      break;
    case 1:
      data[at] = (uint8_t)gt_rng_below(rng, 256);
      break;
    case 2:
      data[at] = often[gt_rng_below(rng, sizeof often)];
      break;
    default:
      memmove(data + at, data + gt_rng_below(rng, at + 1), size - at < 8 ? size - at : 8);
      break;
    }
  }
  return gt_rng_below(rng, 8) == 0 ? 1 + (size_t)gt_rng_below(rng, size) : size;
}

/* ---- idx ------------------------------------------------------------------------------------- */

static void test_idx(void) {
  enum { SIZE = 16 + 20 * 3 * 3 };
  const char *path = scratch("damaged");
  uint8_t whole[SIZE], bytes[SIZE], item[65536];
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 1, 0);
  size_t good = 0, bad = 0;
  for (size_t i = 0; i < SIZE; i++) whole[i] = (uint8_t)(i * 7);
  memcpy(whole, (const uint8_t[16]){0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 3}, 16);
  for (int round = 0; round < 1000; round++) {
    gt_idx *idx;
    memcpy(bytes, whole, SIZE);
    scratch_write(path, bytes,
                  damage(bytes, round % 2 ? 16 : SIZE, &rng) + (round % 2 ? SIZE - 16 : 0));
    gt_status status = gt_idx_open(&idx, path, 3);
    for (size_t i = 0; status == GT_OK && i < gt_idx_dim(idx, 0) &&
                       gt_idx_dim(idx, 1) * gt_idx_dim(idx, 2) <= sizeof item;
         i++)
      status = gt_idx_read(idx, 1, item);
    if (status == GT_OK) status = gt_idx_end(idx);
    if (status == GT_OK)
      good++;
    else
      bad++;
    gt_idx_close(idx);
  }
  assert_true(good > 30 && bad > 300); /* some damaged files pass, some are rejected */
}

/* ---- HDF5 ------------------------------------------------------------------------------------ */

/* Opens the file and, if that works, reads everything. */
static gt_status use(const char *path) {
  gt_dataset *dataset;
  gt_loader *loader;
  GT_TRY(gt_dataset_open(&dataset, path));
  gt_status status = gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0);
  if (status == GT_OK) gt_loader_close(loader);
  gt_dataset_close(dataset);
  return status;
}

static void test_dataset(void) {
  const char *path = scratch("damaged.h5");
  size_t size, good = 0, bad = 0;
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 2, 0);
  assert_int_equal(gt_data_synth(path, &small), GT_OK);
  uint8_t *whole = scratch_read(path, &size), *bytes = gt_alloc(size, 1);
  for (int round = 0; round < 1000; round++) {
    memcpy(bytes, whole, size);
    scratch_write(path, bytes, damage(bytes, size, &rng));
    gt_status status = use(path);
    if (status == GT_OK)
      good++;
    else {
      assert_int_equal(status, GT_ERR_DATA);
      assert_non_null(strstr(gt_error_text(), "damaged.h5"));
      assert_null(strchr(gt_error_text(), '\n'));
      bad++;
    }
  }
  assert_true(good > 20 && bad > 700); /* metadata have checksums, pixels do not */
  gt_free(bytes);
  gt_free(whole);
}

TESTS_BETWEEN(NULL, scratch_remove, test_idx, test_dataset)
