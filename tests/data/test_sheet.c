/* A sheet of pictures: its size, the places of its pictures, and samples that are none. */
#include "geotrain/data_picture.h"
#include "scratch.h"

enum { SIDE = 6, CLASSES = 3, TRAIN = 40, COLUMNS = 12, GAP = 2, GRAY = 128 };

static void test_places(void) {
  const gt_synth_spec spec = {1, TRAIN, 5, SIDE, SIDE, CLASSES};
  enum { H = CLASSES * (SIDE + GAP) + GAP, W = COLUMNS * (SIDE + GAP) + GAP };
  static uint8_t pixels[H * W];
  float x[SIDE * SIDE];
  size_t rows, columns, found[CLASSES] = {0};
  gt_picture_size size;
  gt_dataset *dataset;
  gt_loader *loader;
  int32_t y;
  assert_int_equal(gt_data_synth(scratch("s.h5"), &spec), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch("s.h5")), GT_OK);
  assert_int_equal(gt_dataset_sheet(dataset, scratch("s.png"), &rows, &columns), GT_OK);
  assert_true(rows == CLASSES && columns == COLUMNS);
  assert_int_equal(gt_picture_look(&size, scratch("s.png")), GT_OK);
  assert_true(size.h == H && size.w == W && size.gray);
  assert_int_equal(gt_picture_read(scratch("s.png"), H, W, 1, pixels), GT_OK);
  const float zero = 0, unit = 1.0F / 255; /* bytes as they are */
  gt_dataset_normalise(dataset, &zero, &unit);
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  for (size_t i = 0; i < TRAIN; i++) {
    gt_loader_range(loader, i, 1, x, &y);
    const size_t column = found[y]++;
    if (column >= COLUMNS) continue;
    for (size_t k = 0; k < SIDE * SIDE; k++) {
      const size_t at =
          ((size_t)y * (SIDE + GAP) + GAP + k / SIDE) * W + column * (SIDE + GAP) + GAP + k % SIDE;
      assert_int_equal(pixels[at], (int)(x[k] + 0.5F));
    }
  }
  assert_true(pixels[0] == GRAY && pixels[H * W - 1] == GRAY);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

static void test_refused(void) {
  const char *source = scratch("t.csv");
  const double share = 0;
  size_t rows, columns;
  gt_dataset *dataset;
  scratch_write(source, "x,y\n1,0\n2,1\n", 12);
  const gt_import_options options = {.label = "y", .test_share = &share};
  assert_int_equal(gt_data_import("csv", &source, 1, scratch("t.h5"), &options, NULL), GT_OK);
  assert_int_equal(gt_dataset_open(&dataset, scratch("t.h5")), GT_OK);
  assert_failed(gt_dataset_sheet(dataset, scratch("t.png"), &rows, &columns), GT_ERR_DATA,
                "samples are 1 x 1 x 1 int32; expected images with 1 or 3 channels");
  gt_dataset_close(dataset);
}

TESTS_BETWEEN(NULL, scratch_remove, test_places, test_refused)
