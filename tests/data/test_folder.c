/* The import of pictures: PNG keeps its bytes, in the order of the paths; scaling, held-back
   pictures, unreadable files. */
#include "geotrain/data_picture.h"
#include "pictures.h"
#include "scratch.h"

enum { H = 6, W = 9 };

/* The size, options and contents of an import. */
static gt_status import_pictures(const char *folder, gt_import_options options) {
  const char *source = scratch(folder);
  return gt_data_import("folder", &source, 1, scratch("p.h5"), &options, NULL);
}

static const char *at(const char *name) {
  char folder[256];
  for (size_t i = 0; name[i]; i++)
    if (name[i] == '/') {
      snprintf(folder, sizeof folder, "%.*s", (int)i, name);
      mkdir(scratch(folder), 0777);
    }
  return scratch(name);
}

static void fill(uint8_t *pixels, size_t n, unsigned salt) {
  for (size_t i = 0; i < n; i++)
    pixels[i] = (uint8_t)((i * 7919 + salt * 104729) * 2654435761U >> 9);
}

static void put(const char *name, size_t c, unsigned salt) {
  uint8_t pixels[H * W * 4];
  fill(pixels, H * W * c, salt);
  write_png(at(name), H, W, c, pixels);
}

static gt_dataset *open_set(void) {
  gt_dataset *dataset;
  assert_int_equal(gt_dataset_open(&dataset, scratch("p.h5")), GT_OK);
  return dataset;
}

/* Reads a sample back as bytes; returns its label. */
static int32_t sample(gt_dataset *dataset, gt_split split, size_t i, uint8_t *pixels) {
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  const size_t n = info->h * info->w * info->c;
  const float *mean = gt_dataset_mean(dataset), *std = gt_dataset_std(dataset);
  float *x = GT_NEW_ARRAY(float, n);
  gt_loader *loader;
  int32_t y;
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  gt_loader_range(loader, i, 1, x, &y);
  for (size_t k = 0; k < n; k++)
    pixels[k] = (uint8_t)(255 * (x[k] * std[k % info->c] + mean[k % info->c]) + 0.5F);
  gt_loader_close(loader);
  gt_free(x);
  return y;
}

/* Classes, also in subfolders, in the order of the paths; alpha is dropped, gray becomes RGB. */
static void test_lossless(void) {
  static const struct {
    const char *name;
    size_t c;
    gt_split split;
    int32_t class;
  } files[] = {
      {"l/train/ant/1.png", 3, GT_SPLIT_TRAIN, 0},   {"l/train/ant/2.PNG", 1, GT_SPLIT_TRAIN, 0},
      {"l/train/bee/a/9.png", 4, GT_SPLIT_TRAIN, 1}, {"l/train/bee/b.png", 3, GT_SPLIT_TRAIN, 1},
      {"l/test/ant/x.png", 3, GT_SPLIT_TEST, 0},     {"l/test/bee/y.png", 3, GT_SPLIT_TEST, 1}};
  uint8_t want[H * W * 4], found[H * W * 3];
  size_t n[2] = {0};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    put(files[i].name, files[i].c, (unsigned)i);
  scratch_write(at("l/train/bee/notes.txt"), "x", 1);
  put("l/train/.hidden/z.png", 3, 9);
  assert_int_equal(import_pictures("l", (gt_import_options){0}), GT_OK);
  gt_dataset *dataset = open_set();
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_true(info->ntrain == 4 && info->ntest == 2 && info->classes == 2);
  assert_true(info->h == H && info->w == W && info->c == 3);
  assert_memory_equal(gt_dataset_class_names(dataset)->text, "ant\0bee", 8);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const size_t c = files[i].c;
    fill(want, H * W * c, (unsigned)i);
    assert_int_equal(sample(dataset, files[i].split, n[files[i].split]++, found), files[i].class);
    for (size_t k = 0; k < (size_t)H * W * 3; k++)
      assert_int_equal(found[k], want[k / 3 * c + (c == 1 ? 0 : k % 3)]);
  }
  gt_dataset_close(dataset);
}

/* All gray: one channel.  A share of each class is held back, the same for the same seed. */
static void test_held_back(void) {
  char name[64], hashes[3][65];
  for (unsigned i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "h/%s/%02u.png", i % 4 ? "most" : "few", i);
    put(name, 1, i);
  }
  for (unsigned k = 0; k < 3; k++) {
    const double share = 0.2;
    assert_int_equal(
        import_pictures("h", (gt_import_options){.test_share = &share, .seed = k / 2 + 1}), GT_OK);
    gt_dataset *dataset = open_set();
    const gt_dataset_info *info = gt_dataset_describe(dataset);
    const int32_t *labels = gt_dataset_labels(dataset, GT_SPLIT_TEST);
    size_t few = 0;
    assert_true(info->c == 1 && info->ntrain == 32 && info->ntest == 8);
    for (size_t i = 0; i < 8; i++) few += labels[i] == 0;
    assert_int_equal(few, 2);
    memcpy(hashes[k], info->samples_sha256, 65);
    gt_dataset_close(dataset);
  }
  assert_string_equal(hashes[0], hashes[1]);
  assert_string_not_equal(hashes[0], hashes[2]);
}

/* A ramp stays a ramp when it is scaled, and the middle is cut out; one colour stays one colour. */
static void test_scaled(void) {
  enum { BIG_H = 60, BIG_W = 100, SIDE = 20 };
  static uint8_t pixels[BIG_H * BIG_W * 3], found[SIDE * SIDE * 3];
  for (size_t i = 0; i < sizeof pixels; i++)
    pixels[i] = i % 3 == 0   ? (uint8_t)(2 * (i / 3 % BIG_W))
                : i % 3 == 1 ? (uint8_t)(4 * (i / 3 / BIG_W))
                             : 77;
  for (int jpeg = 0; jpeg < 2; jpeg++) {
    write_png(at("s/a/1.png"), BIG_H, BIG_W, 3, pixels);
    write_png(at("s/b/1.png"), BIG_H, BIG_W, 3, pixels);
    if (jpeg) write_jpeg(at("s/a/0.jpg"), BIG_H, BIG_W, 3, pixels); /* comes first */
    write_png(at("s/b/2.png"), BIG_H, BIG_W, 3, pixels);
    write_png(at("s/a/2.png"), BIG_H, BIG_W, 3, pixels);
    assert_int_equal(import_pictures("s", (gt_import_options){.height = SIDE, .width = SIDE}),
                     GT_OK);
    gt_dataset *dataset = open_set();
    for (size_t n = 0; n < gt_dataset_describe(dataset)->ntrain; n++) {
      sample(dataset, GT_SPLIT_TRAIN, n, found);
      for (int y = 1; y < SIDE - 1; y++)
        for (int x = 1; x < SIDE - 1; x++) {
          const uint8_t *at = found + (y * SIDE + x) * 3;
          assert_true(abs(at[0] - 2 * (20 + 3 * x + 1)) <= 2 + 3 * jpeg);
          assert_true(abs(at[1] - 4 * (3 * y + 1)) <= 2 + 3 * jpeg);
          assert_true(abs(at[2] - 77) <= 3 * jpeg);
        }
    }
    gt_dataset_close(dataset);
  }
}

/* 16 bits become 8 in proportion, whatever gAMA says; gray of RGB is as in JPEG files. */
static void test_depth(void) {
  uint16_t deep[H * W];
  uint8_t found[H * W];
  for (size_t i = 0; i < (size_t)H * W; i++) deep[i] = (uint16_t)(i * 1200);
  write_png16(at("d/16.png"), H, W, deep);
  assert_int_equal(gt_picture_read(scratch("d/16.png"), H, W, 1, found), GT_OK);
  for (size_t i = 0; i < (size_t)H * W; i++)
    assert_int_equal(found[i], (deep[i] * 255U + 32767) / 65535);
  write_png(at("d/rgb.png"), 1, 2, 3, (const uint8_t[]){200, 100, 50, 255, 255, 255});
  assert_int_equal(gt_picture_read(scratch("d/rgb.png"), 1, 2, 1, found), GT_OK);
  assert_true(found[0] == 124 && found[1] == 255); /* 0.299 R + 0.587 G + 0.114 B */
}

/* Unreadable pictures are left out, or refused. */
static void test_broken(void) {
  uint8_t pixels[64 * 64 * 4];
  size_t size;
  fill(pixels, sizeof pixels, 1);
  write_png(at("b/train/x/1.png"), 64, 64, 3, pixels);
  write_png(at("b/train/y/1.png"), 64, 64, 3, pixels);
  write_png(at("b/test/x/1.png"), 64, 64, 3, pixels);
  write_jpeg(at("b/train/y/2.jpg"), 64, 64, 3, pixels);
  write_jpeg(at("b/train/y/4.jpg"), 64, 64, 4, pixels);
  uint8_t *png = scratch_read(scratch("b/train/x/1.png"), &size);
  scratch_write(at("b/train/x/2.png"), png, size / 2);
  scratch_write(at("b/train/x/3.png"), png, 20);
  scratch_write(at("b/train/x/4.png"), png, 0);
  scratch_write(at("b/train/x/5.png"), "GIF89a", 6);
  gt_free(png);
  uint8_t *jpeg = scratch_read(scratch("b/train/y/2.jpg"), &size);
  scratch_write(at("b/train/y/3.jpg"), jpeg, size / 2);
  gt_free(jpeg);
  assert_int_equal(import_pictures("b", (gt_import_options){0}), GT_OK);
  gt_dataset *dataset = open_set();
  assert_int_equal(gt_dataset_describe(dataset)->ntrain, 3);
  gt_dataset_close(dataset);
  assert_failed(import_pictures("b", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "b/train/x/3.png: cannot be read as a picture: ");
  unlink(scratch("b/train/x/3.png"));
  assert_failed(import_pictures("b", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "b/train/x/4.png: cannot be read as a picture: it is empty");
  unlink(scratch("b/train/x/4.png"));
  assert_failed(import_pictures("b", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "b/train/x/5.png: cannot be read as a picture: it is neither PNG nor JPEG");
  unlink(scratch("b/train/x/5.png"));
  assert_failed(import_pictures("b", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "b/train/y/4.jpg: cannot be read as a picture: it has four colours (CMYK); "
                "expected gray or RGB");
  unlink(scratch("b/train/y/4.jpg"));
  assert_failed(import_pictures("b", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "b/train/x/2.png: cannot be read as a picture: ");
  unlink(scratch("b/train/x/2.png"));
  assert_failed(import_pictures("b", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "b/train/y/3.jpg: cannot be read as a picture: Premature end of JPEG file");
}

/* A link to a folder above gives no picture twice; one to nothing is named. */
static void test_links(void) {
  const double share = 0;
  const gt_import_options options = {.test_share = &share};
  put("k/a/1.png", 1, 1);
  put("k/b/in/1.png", 1, 2);
  assert_int_equal(symlink(".", scratch("k/a/same")), 0);
  assert_int_equal(symlink("../..", scratch("k/b/in/up")), 0);
  assert_int_equal(import_pictures("k", options), GT_OK);
  gt_dataset *dataset = open_set();
  assert_int_equal(gt_dataset_describe(dataset)->ntrain, 2);
  gt_dataset_close(dataset);
  assert_int_equal(symlink("gone.png", scratch("k/a/0.png")), 0);
  assert_failed(import_pictures("k", (gt_import_options){.strict = true}), GT_ERR_DATA,
                "k/a/0.png: cannot be read as a picture: No such file");
  assert_int_equal(symlink("gone", scratch("k/a/link")), 0);
  assert_failed(import_pictures("k", options), GT_ERR_DATA,
                "k/a/link: cannot be read (a link to nothing)");
  unlink(scratch("k/a/link"));
  assert_int_equal(symlink("gone", scratch("k/train")), 0);
  assert_failed(import_pictures("k", options), GT_ERR_DATA,
                "k/train: cannot be read (a link to nothing)");
}

static void test_refused(void) {
  put("r/one/1.png", 3, 1);
  assert_failed(import_pictures("r", (gt_import_options){0}), GT_ERR_DATA,
                "has 1 folders of classes; expected two or more");
  uint8_t pixels[2 * 2 * 3] = {0};
  write_png(at("r/two/1.png"), 2, 2, 3, pixels);
  put("r/one/2.png", 3, 2);
  put("r/two/2.png", 3, 2);
  assert_failed(
      import_pictures("r", (gt_import_options){0}), GT_ERR_DATA,
      "r/two/1.png: is 2 x 2, and the pictures before it are 6 x 9; give the size to which "
      "all are scaled, as in --size 64");
  mkdir(scratch("e"), 0777);
  mkdir(scratch("e/a"), 0777);
  mkdir(scratch("e/b"), 0777);
  assert_failed(import_pictures("e", (gt_import_options){0}), GT_ERR_DATA,
                "e: has no picture for the train split");
  put("e/b/1.png", 3, 1);
  put("e/c/1.png", 3, 2);
  assert_failed(
      import_pictures("e", (gt_import_options){.strict = true}), GT_ERR_DATA,
      "e: 1 of 3 classes have no picture for training, such as `a`; expected PNG or JPEG");
  put("t/train/a/1.png", 3, 1);
  put("t/train/b/1.png", 3, 1);
  put("t/test/c/1.png", 3, 1);
  assert_failed(import_pictures("t", (gt_import_options){0}), GT_ERR_DATA,
                "t/test/c: is a class that ");
  assert_failed(import_pictures("t", (gt_import_options){.length = 3}), GT_ERR_JOB,
                "data import --length is not an option of format folder; --test-share, --size, "
                "--channels, --seed, --strict and --schema are");
  put("t/test/a/1.png", 3, 1);
  unlink(scratch("t/test/c/1.png"));
  rmdir(scratch("t/test/c"));
  assert_failed(import_pictures("t", (gt_import_options){.seed = 5}), GT_ERR_JOB,
                "data import has --test-share or --seed, and ");
}

/* A schema knows the classes that a region lacks, and those of its test split only. */
static void test_schema(void) {
  static const char text[] = "{\"geotrain_data_schema\":1,\"classes\":[\"cat\",\"dog\",\"owl\"]}";
  scratch_write(scratch("schema.json"), text, sizeof text - 1);
  const gt_import_options options = {.schema = scratch("schema.json")};
  put("c/cat/1.png", 1, 1);
  put("c/cat/2.png", 1, 2);
  assert_int_equal(import_pictures("c", options), GT_OK);
  put("o/train/dog/1.png", 1, 1);
  put("o/train/cat/1.png", 1, 1);
  put("o/test/owl/1.png", 1, 1);
  assert_int_equal(import_pictures("o", options), GT_OK);
  gt_dataset *dataset = open_set();
  assert_int_equal(gt_dataset_describe(dataset)->classes, 3);
  assert_int_equal(gt_dataset_labels(dataset, GT_SPLIT_TEST)[0], 2);
  gt_dataset_close(dataset);
  put("o/test/fox/1.png", 1, 1);
  assert_failed(import_pictures("o", options), GT_ERR_DATA, "o/test/fox: is a class that ");
}

/* Control characters in the names of folders, as of another encoding, become `?`. */
static void test_names(void) {
  put("n/train/caf\x82/1.png", 1, 1);
  put("n/train/tea/1.png", 1, 1);
  put("n/test/caf\x82/1.png", 1, 1);
  assert_int_equal(import_pictures("n", (gt_import_options){0}), GT_OK);
  gt_dataset *dataset = open_set();
  assert_memory_equal(gt_dataset_class_names(dataset)->text, "caf?\0tea", 9);
  gt_dataset_close(dataset);
}

static void test_channels(void) {
  put("g/a/1.png", 1, 1);
  put("g/a/2.png", 1, 2);
  put("g/b/1.png", 3, 1);
  put("g/b/2.png", 3, 2);
  for (size_t c = 1; c <= 3; c += 2) {
    assert_int_equal(import_pictures("g", (gt_import_options){.channels = c}), GT_OK);
    gt_dataset *dataset = open_set();
    assert_int_equal(gt_dataset_describe(dataset)->c, c);
    gt_dataset_close(dataset);
  }
}

/* A folder of a split is no class. */
static void test_layouts(void) {
  static const char *const splits[] = {"Train", "test", "VAL", "valid", "validation"};
  char name[64];
  put("y/a/1.png", 1, 1);
  put("y/b/1.png", 1, 1);
  for (size_t i = 0; i < COUNT(splits); i++) {
    snprintf(name, sizeof name, "y/%s/a/1.png", splits[i]);
    put(name, 1, 1);
    assert_failed(import_pictures("y", (gt_import_options){0}), GT_ERR_DATA,
                  "is a split and no class; expected ");
    snprintf(name, sizeof name, "y/%s/a/1.png", splits[i]);
    unlink(scratch(name));
    snprintf(name, sizeof name, "y/%s/a", splits[i]);
    rmdir(scratch(name));
    snprintf(name, sizeof name, "y/%s", splits[i]);
    rmdir(scratch(name));
  }
  put("v/train/a/1.png", 1, 1);
  put("v/train/b/1.png", 1, 1);
  put("v/val/a/1.png", 1, 1);
  put("v/train/a/2.png", 1, 1);
  put("v/train/b/2.png", 1, 1);
  assert_int_equal(import_pictures("v", (gt_import_options){0}), GT_OK); /* with a warning */
}

/* Bytes between the markers of a JPEG file do no harm. */
static void test_extraneous_bytes(void) {
  uint8_t pixels[16 * 16 * 3], found[16 * 16 * 3], want[16 * 16 * 3];
  size_t size;
  fill(pixels, sizeof pixels, 3);
  write_jpeg(at("j.jpg"), 16, 16, 3, pixels);
  assert_int_equal(gt_picture_read(scratch("j.jpg"), 16, 16, 3, want), GT_OK);
  uint8_t *jpeg = scratch_read(scratch("j.jpg"), &size), *more = gt_alloc(size + 3, 1);
  memcpy(more, jpeg, 2);
  memcpy(more + 5, jpeg + 2, size - 2);
  scratch_write(scratch("j.jpg"), more, size + 3);
  assert_int_equal(gt_picture_read(scratch("j.jpg"), 16, 16, 3, found), GT_OK);
  assert_memory_equal(found, want, sizeof want);
  gt_free(more);
  gt_free(jpeg);
}

TESTS_BETWEEN(NULL, scratch_remove, test_lossless, test_held_back, test_scaled, test_depth,
              test_broken, test_links, test_refused, test_schema, test_names, test_channels,
              test_layouts, test_extraneous_bytes)
