/* The import of NumPy's arrays: types and shapes, rows held back, members of an archive, and
   malformed files. */
#include "scratch.h"

#include <math.h>

enum { N = 6, ROWS = 3 }; /* values, in images of 2 x 1 */

/* Writes an array with this dictionary, by format `version`. */
static void put(const char *path, int version, const char *header, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  const size_t n = strlen(header);
  assert_non_null(f);
  fprintf(f, "\x93NUMPY%c%c%c%c", version, 0, (int)(n & 255), (int)(n >> 8));
  if (version > 1) fwrite("\0", 1, 2, f);
  fwrite(header, 1, n, f);
  fwrite(data, 1, size, f);
  assert_int_equal(fclose(f), 0);
}

static void put_x(const char *header, const void *data, size_t size) {
  put(scratch("n/x.npy"), 1, header, data, size);
}

static gt_status import_arrays(const char *name, gt_import_options options) {
  const char *source = scratch(name);
  return gt_data_import("npy", &source, 1, scratch("n.h5"), &options, NULL);
}

/* Reads the samples and labels of a split; returns their number. */
static size_t samples(gt_split split, float *x, int32_t *y) {
  gt_dataset *dataset;
  gt_loader *loader;
  assert_int_equal(gt_dataset_open(&dataset, scratch("n.h5")), GT_OK);
  const size_t n = split == GT_SPLIT_TRAIN ? gt_dataset_describe(dataset)->ntrain
                                           : gt_dataset_describe(dataset)->ntest;
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, n, x, y);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
  return n;
}

#define INT64_Y "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n"
static const int64_t labels[N] = {0, 1, 2, 0, 1, 2};
static const double none = 0;
static const gt_import_options all_train = {.test_share = &none};

/* Values of every type become the same float32, in both byte orders and all formats. */
static void test_types(void) {
  static const int8_t i1[N] = {1, 2, 3, 4, 5, 6};
  static const uint16_t u2[N] = {1, 2, 3, 4, 5, 6};
  static const uint8_t big[2 * N] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
  static const uint16_t f2[N] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
  static const double f8[N] = {1, 2, 3, 4, 5, 6};
  static const struct {
    const char *descr;
    const void *data;
    size_t size;
  } types[] = {{"|i1", i1, sizeof i1}, {"<u2", u2, sizeof u2}, {">u2", big, sizeof big},
               {"<f2", f2, sizeof f2}, {"<f8", f8, sizeof f8}, {"<i8", labels, sizeof labels},
               {"|b1", i1, sizeof i1}};
  char header[128];
  float x[N];
  int32_t y[ROWS];
  mkdir(scratch("n"), 0700);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    snprintf(header, sizeof header, "{'shape': (3, 2, 1), 'fortran_order': False, 'descr': '%s'}",
             types[i].descr);
    put(scratch("n/x.npy"), 1 + (int)i % 3, header, types[i].data, types[i].size);
    put(scratch("n/y.npy"), 1, INT64_Y, labels, ROWS * sizeof *labels);
    assert_int_equal(import_arrays("n", all_train), GT_OK);
    assert_int_equal(samples(GT_SPLIT_TRAIN, x, y), ROWS);
    for (int k = 0; k < N; k++)
      assert_true(x[k] == (float)(types[i].data == labels ? labels[k] : k + 1));
    for (int k = 0; k < ROWS; k++) assert_int_equal(y[k], labels[k]);
  }
}

/* uint8 images stay as they are; without arrays for tests, rows are held back by the seed. */
static void test_held_back(void) {
  enum { MANY = 1000 };
  static uint8_t x[MANY][4];
  static int32_t y[MANY], labels_found[MANY];
  static float found[MANY * 4];
  for (int i = 0; i < MANY; i++) x[i][0] = (uint8_t)i, x[i][3] = 255, y[i] = i % 256;
  put_x("{'descr': '|u1', 'fortran_order': False, 'shape': (1000, 2, 2)}", x, sizeof x);
  put(scratch("n/y.npy"), 2, "{'descr': '<i4', 'fortran_order': False, 'shape': (1000, 1)}", y,
      sizeof y);
  assert_int_equal(import_arrays("n", (gt_import_options){.seed = 5}), GT_OK);
  gt_dataset *dataset;
  assert_int_equal(gt_dataset_open(&dataset, scratch("n.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  const float mean = gt_dataset_mean(dataset)[0], std = gt_dataset_std(dataset)[0];
  assert_true(info->h == 2 && info->w == 2 && info->c == 1 && info->classes == 256);
  assert_true(info->input == GT_INPUT_BYTES && info->ntrain + info->ntest == MANY);
  assert_true(info->ntest > MANY / 20 && info->ntest < MANY / 5);
  gt_dataset_close(dataset);
  for (int s = 0; s < 2; s++) {
    const size_t n = samples((gt_split)s, found, labels_found);
    for (size_t i = 0; i < n; i++)
      assert_true((int)(255 * (found[4 * i] * std + mean) + 0.5F) == labels_found[i]);
  }
}

/* ---- archives -------------------------------------------------------------------------------- */

static void put_numbers(uint8_t **at, const uint32_t *values, const int *bytes) {
  for (; *bytes; values++, bytes++)
    for (int i = 0; i < *bytes; i++) *(*at)++ = (uint8_t)(*values >> 8 * i);
}

/* Writes an archive of the files x.npy and y.npy of the folder n, stored or deflated. */
static void put_archive(const char *path, uint32_t method, uint32_t flags, uint32_t damage) {
  static const char *const members[] = {"x.npy", "y.npy"};
  static uint8_t zip[1 << 16];
  uint8_t *at = zip, directory[512], *to = directory;
  for (int i = 0; i < 2; i++) {
    char file[16];
    size_t size;
    snprintf(file, sizeof file, "n/%s", members[i]);
    uint8_t *data = scratch_read(scratch(file), &size), packed[4096];
    const uint32_t crc = (uint32_t)crc32(0, data, (unsigned)size) ^ damage,
                   local = (uint32_t)(at - zip);
    z_stream z = {.next_in = data,
                  .avail_in = (unsigned)size,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    const uint32_t length = method ? (uint32_t)z.total_out : (uint32_t)size;
    put_numbers(&at,
                (uint32_t[]){0x04034b50, 20, flags, method, 0, crc, length, (uint32_t)size, 5, 0},
                (int[]){4, 2, 2, 2, 4, 4, 4, 4, 2, 2, 0});
    memcpy(at, members[i], 5);
    memcpy(at + 5, method ? packed : data, length);
    at += 5 + length;
    put_numbers(&to,
                (uint32_t[]){0x02014b50, 20, 20, flags, method, 0, crc, length, (uint32_t)size, 5,
                             0, 0, 0, 0, 0, local},
                (int[]){4, 2, 2, 2, 2, 4, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4, 0});
    memcpy(to, members[i], 5);
    to += 5;
    gt_free(data);
  }
  const uint32_t offset = (uint32_t)(at - zip), size = (uint32_t)(to - directory);
  memcpy(at, directory, size);
  at += size;
  put_numbers(&at, (uint32_t[]){0x06054b50, 0, 2, 2, size, offset, 4},
              (int[]){4, 4, 2, 2, 4, 4, 2, 0});
  memcpy(at, "note", 4);
  scratch_write(path, zip, (size_t)(at + 4 - zip));
}

static void test_archives(void) {
  static const float x[N] = {1, 2, 3, 4, 5, 6};
  float found[N];
  int32_t y[ROWS];
  put_x("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 1)}", x, sizeof x);
  put(scratch("n/y.npy"), 1, INT64_Y, labels, ROWS * sizeof *labels);
  assert_int_equal(import_arrays("n", all_train), GT_OK);
  const size_t n = samples(GT_SPLIT_TRAIN, found, y);
  for (uint32_t method = 0; method <= 8; method += 8) {
    float again[N];
    put_archive(scratch("a.npz"), method, 0, 0);
    assert_int_equal(import_arrays("a.npz", all_train), GT_OK);
    assert_int_equal(samples(GT_SPLIT_TRAIN, again, y), n);
    assert_memory_equal(again, found, sizeof again);
    put_archive(scratch("a.npz"), method, 0, 1);
    assert_failed(import_arrays("a.npz", all_train), GT_ERR_DATA,
                  "a.npz: y.npy: differs from its checksum; expected a whole zip archive");
    put_archive(scratch("a.npz"), method, 1, 0);
    assert_failed(import_arrays("a.npz", all_train), GT_ERR_DATA, "a.npz: x.npy: is encrypted");
  }
  put_archive(scratch("a.npz"), 12, 0, 0);
  assert_failed(import_arrays("a.npz", all_train), GT_ERR_DATA, "compressed by another method");
  scratch_write(scratch("a.npz"), "PK", 2);
  assert_failed(import_arrays("a.npz", all_train), GT_ERR_DATA, "has no directory of members");
  assert_failed(import_arrays("b.npz", all_train), GT_ERR_DATA, "b.npz: cannot be opened (No such");
}

/* ---- malformed files ------------------------------------------------------------------------- */

static void test_refused(void) {
  static const float x[N] = {1, 2, 3, 4, 5, 6}, bad[N] = {1, 2, NAN, 4, 5, 6};
  static const int64_t negative[N] = {0, 1, -2};
  static const struct {
    const char *header, *error;
  } headers[] = {
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 2)}", "its type is <c8'; expected "},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 2)}", "its type is [('a'"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}", "numpy.ascontiguousarray(x)"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "its shape is ()"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0)}", "its shape is (3, 0)"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1, 1, 1, 1)}", "its shape is (3, 1,"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 99999999999999999999)}", "its shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "has 1 dimension; expected sam"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 1)}", "y.npy: has 3 rows of 1 val"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3)}", "ends before its 3 rows do"},
      {"{}", "its type is "}};
  put(scratch("n/y.npy"), 1, INT64_Y, labels, ROWS * sizeof *labels);
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    put_x(headers[i].header, x, sizeof x);
    assert_failed(import_arrays("n", all_train), GT_ERR_DATA, headers[i].error);
  }
  put_x("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", bad, sizeof bad);
  assert_failed(import_arrays("n", all_train), GT_ERR_DATA,
                "x.npy: sample 1 has the value nan as float32; expected numbers");
  put_x("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", x, sizeof x);
  put(scratch("n/y.npy"), 1, INT64_Y, negative, sizeof negative);
  assert_failed(import_arrays("n", all_train), GT_ERR_DATA,
                "y.npy: the label of sample 2 is -2; expected 0 to 999999");
  put(scratch("n/y.npy"), 4, INT64_Y, labels, ROWS * sizeof *labels);
  assert_failed(import_arrays("n", all_train), GT_ERR_DATA, "y.npy: is no array of NumPy");
  assert_int_equal(unlink(scratch("n/y.npy")), 0);
  assert_failed(import_arrays("n", all_train), GT_ERR_DATA, "n: has no array y.npy");
  assert_int_equal(unlink(scratch("n/x.npy")), 0);
  assert_failed(import_arrays("n", all_train), GT_ERR_DATA,
                "n: has none of the arrays x_train.npy");
}

/* Without room for a test split the import is refused; labels of one class need a schema. */
static void test_few(void) {
  static const char text[] = "{\"geotrain_data_schema\":1,\"classes\":[\"cat\",\"dog\"]}";
  static const uint8_t x[N] = {0};
  static const int64_t zero[ROWS] = {0};
  scratch_write(scratch("schema.json"), text, sizeof text - 1);
  put_x("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)}", x, sizeof x);
  put(scratch("n/y.npy"), 1, INT64_Y, zero, sizeof zero);
  assert_failed(import_arrays("n", (gt_import_options){0}), GT_ERR_DATA,
                "n: has no row for the test split; expected more rows, or another --seed");
  assert_failed(import_arrays("n", all_train), GT_ERR_DATA, "has 1 class; expected 2 or more");
  assert_int_equal(import_arrays("n", (gt_import_options){.test_share = &none,
                                                          .schema = scratch("schema.json")}),
                   GT_OK);
}

TESTS_BETWEEN(NULL, scratch_remove, test_types, test_held_back, test_archives, test_refused,
              test_few)
