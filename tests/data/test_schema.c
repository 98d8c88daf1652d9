/* Schemas: the union of files, imports that use it, classes renamed and merged, and malformed
   files. */
#include "scratch.h"

static const char *put(const char *name, const char *text) {
  const char *path = scratch(name);
  scratch_write(path, text, strlen(text));
  return path;
}

static gt_status join(const char *a, const char *b, const char *out) {
  const char *paths[] = {scratch(a), scratch(b)};
  char *text;
  const gt_status status = gt_data_schema(paths, b[0] ? 2 : 1, &text);
  if (status == GT_OK) put(out, text);
  gt_free(text);
  return status;
}

static gt_status import_csv(const char *source, const char *out, gt_import_options options) {
  const char *path = scratch(source);
  const double share = 0;
  options.test_share = &share;
  options.label = "y";
  return gt_data_import("csv", &path, 1, scratch(out), &options, NULL);
}

/* Opens a data set, checks its number of training samples, and reads their values and labels. */
static gt_dataset_info read_all(const char *name, size_t n, void *x, int32_t *y) {
  gt_dataset *dataset;
  gt_loader *loader;
  assert_int_equal(gt_dataset_open(&dataset, scratch(name)), GT_OK);
  gt_dataset_info info = *gt_dataset_describe(dataset);
  assert_int_equal(info.ntrain, n);
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, n, x, y);
  gt_loader_close(loader);
  info.class_names = NULL;
  gt_dataset_close(dataset);
  return info;
}

static void assert_schema(const char *name, const char *text) {
  size_t size;
  uint8_t *found = scratch_read(scratch(name), &size);
  char *flat = gt_alloc(size + 1, 1), *to = flat;
  for (size_t i = 0; i < size; i++)
    if (found[i] != '\n' && (found[i] != ' ' || (i > 0 && found[i - 1] == ':')))
      *to++ = (char)found[i];
  assert_string_equal(flat, text);
  gt_free(flat);
  gt_free(found);
}

/* Two tables with other values, labels and order of columns: one schema, and the same ids. */
static void test_ids(void) {
  int32_t ids[2][3][2], y[2][3];
  put("a.csv", "x,color,y\n1,red,no\n2,blue,yes\n3,red,no\n");
  put("b.csv", "color,x,y\ngreen,2,maybe\nred,9,no\ngreen,4,maybe\n");
  for (int k = 0; k < 2; k++)
    assert_int_equal(import_csv(k ? "b.csv" : "a.csv", k ? "b.h5" : "a.h5", (gt_import_options){0}),
                     GT_OK);
  assert_int_equal(join("a.h5", "b.h5", "ab.json"), GT_OK);
  assert_schema("ab.json", "{\"geotrain_data_schema\": 1,\"classes\": [\"no\",\"yes\",\"maybe\"],"
                           "\"columns\": [{\"name\": \"x\",\"edges\": [1.0,2.0,4.0]},"
                           "{\"name\": \"color\",\"values\": [\"red\",\"blue\",\"green\"]}]}");
  const gt_import_options with = {.schema = scratch("ab.json")};
  assert_int_equal(import_csv("a.csv", "a2.h5", with), GT_OK);
  assert_int_equal(import_csv("b.csv", "b2.h5", with), GT_OK);
  const gt_dataset_info a = read_all("a2.h5", 3, ids[0], y[0]),
                        b = read_all("b2.h5", 3, ids[1], y[1]);
  assert_string_equal(a.vocabulary_sha256, b.vocabulary_sha256);
  assert_string_equal(a.class_names_sha256, b.class_names_sha256);
  assert_true(a.features == 8 && b.features == 8 && a.classes == 3 && b.classes == 3);
  /* x: 0 to 3; color: 4 unknown, then red, blue, green */
  assert_memory_equal(ids[0], ((int32_t[]){0, 5, 1, 6, 2, 5}), sizeof ids[0]);
  assert_memory_equal(ids[1], ((int32_t[]){1, 7, 3, 5, 2, 7}), sizeof ids[1]);
  assert_memory_equal(y[0], ((int32_t[]){0, 1, 0}), sizeof y[0]);
  assert_memory_equal(y[1], ((int32_t[]){2, 0, 2}), sizeof y[1]);
  assert_int_equal(join("b2.h5", "a2.h5", "again.json"),
                   GT_OK); /* that of an import that used it */
  assert_schema("again.json",
                "{\"geotrain_data_schema\": 1,\"classes\": [\"no\",\"yes\",\"maybe\"],"
                "\"columns\": [{\"name\": \"x\",\"edges\": [1.0,2.0,4.0]},"
                "{\"name\": \"color\",\"values\": [\"red\",\"blue\",\"green\"]}]}");
}

static void test_numbers(void) {
  float x[2][12];
  int32_t y[2][3];
  const gt_import_options plain = {.as = "numbers"};
  assert_int_equal(import_csv("a.csv", "a.h5", plain), GT_OK);
  assert_int_equal(import_csv("b.csv", "b.h5", plain), GT_OK);
  assert_int_equal(join("a.h5", "b.h5", "n.json"), GT_OK);
  const gt_import_options with = {.as = "numbers", .schema = scratch("n.json")};
  assert_int_equal(import_csv("a.csv", "a2.h5", with), GT_OK);
  assert_int_equal(import_csv("b.csv", "b2.h5", with), GT_OK);
  const gt_dataset_info a = read_all("a2.h5", 3, x[0], y[0]), b = read_all("b2.h5", 3, x[1], y[1]);
  assert_true(a.c == 4 && b.c == 4);
  assert_string_equal(a.vocabulary_sha256, b.vocabulary_sha256);
  for (int i = 0; i < 3; i++) {
    const float *row = x[1] + i * 4; /* x, red, blue, green */
    assert_true(row[1] == (i == 1) && row[2] == 0 && row[3] == (i != 1));
  }
  assert_failed(import_csv("a.csv", "c.h5", (gt_import_options){.schema = scratch("n.json")}),
                GT_ERR_DATA, "column x of the schema has no edges; it is for --as numbers");
  assert_failed(join("a.h5", "ab.json", "c.json"), GT_ERR_DATA, "column x of " /* folder */);
}

/* More than 63 edges are thinned at equal distances. */
static void test_edges(void) {
  char text[2][2000];
  for (int k = 0; k < 2; k++) {
    size_t at = (size_t)sprintf(
        text[k], "{\"geotrain_data_schema\": 1, \"columns\": [{\"name\": \"x\", \"edges\": [");
    for (int i = 0; i < 63; i++)
      at += (size_t)sprintf(text[k] + at, "%s%d", i ? "," : "", 2 * i + k);
    sprintf(text[k] + at, "]}]}");
    put(k ? "e1.json" : "e0.json", text[k]);
  }
  assert_int_equal(join("e0.json", "e1.json", "e.json"), GT_OK);
  size_t size;
  uint8_t *all = scratch_read(scratch("e.json"), &size);
  size_t commas = 0;
  for (size_t i = 0; i < size; i++) commas += all[i] == ',';
  assert_int_equal(commas, 62 + 2);                  /* 63 edges, two keys of each object */
  assert_non_null(memmem(all, size, " 124.0\n", 7)); /* the largest: all[63 * 126 / 64] */
  gt_free(all);
}

/* The union of six files with other ranges has as many edges of each, in any order. */
static void test_ranges(void) {
  enum { FILES = 6, EDGES = 63 };
  const char *paths[2][FILES];
  char name[16], *found[2];
  int kept[FILES] = {0};
  for (int k = 0; k < FILES; k++) {
    char text[2000];
    size_t at = (size_t)sprintf(
        text, "{\"geotrain_data_schema\": 1, \"columns\": [{\"name\": \"x\", \"edges\": [");
    for (int i = 0; i < EDGES; i++)
      at += (size_t)sprintf(text + at, "%s%d", i ? "," : "", 1000 * k + i);
    sprintf(text + at, "]}]}");
    sprintf(name, "r%d.json", k);
    paths[0][k] = paths[1][FILES - 1 - k] = put(name, text);
  }
  for (int k = 0; k < 2; k++) assert_int_equal(gt_data_schema(paths[k], FILES, &found[k]), GT_OK);
  assert_string_equal(found[0], found[1]);
  char *at = strchr(found[0], '[');
  for (at = strchr(at + 1, '['); *at == '[' || *at == ',';) {
    const double edge = strtod(at + 1, &at);
    kept[(int)edge / 1000]++;
    at += strspn(at, " \n");
  }
  for (int k = 0; k < FILES; k++) assert_in_range(kept[k], 9, 12);
  gt_free(found[0]);
  gt_free(found[1]);
}

/* Imports a table and returns the hash of its columns, in one of 4 buffers. */
static const char *columns_hash(const char *table, const char *as) {
  static char hashes[4][65];
  static int next;
  char x[64];
  int32_t y[2];
  put("h.csv", table);
  assert_int_equal(import_csv("h.csv", "h.h5", (gt_import_options){.as = as}), GT_OK);
  next = (next + 1) % 4;
  strcpy(hashes[next], read_all("h.h5", 2, x, y).vocabulary_sha256);
  return hashes[next];
}

/* Names are compared as they are stored, without control characters. */
static void test_controls(void) {
  char text[2000];
  size_t at = (size_t)sprintf(
      text, "{\"geotrain_data_schema\": 1, \"columns\": [{\"name\": \"a??b\", \"values\": []}");
  for (int i = 0; i < 20; i++)
    at += (size_t)sprintf(text + at, ", {\"name\": \"a\\u0001\\u0002b\", \"values\": []}");
  sprintf(text + at, "]}");
  put("k.json", text);
  put("k.csv", "a??b,y\np,0\nq,1\n");
  assert_failed(import_csv("k.csv", "c.h5", (gt_import_options){.schema = scratch("k.json")}),
                GT_ERR_DATA, "k.json: two columns have the name `a??b`; expected different names");
}

/* As numbers, a schema without values makes no column. */
static void test_no_values(void) {
  put("k.json", "{\"geotrain_data_schema\": 1, \"classes\": [\"0\", \"1\"], "
                "\"columns\": [{\"name\": \"color\", \"values\": []}]}");
  put("k.csv", "color,y\nred,0\nblue,1\n");
  const gt_import_options with = {.as = "numbers", .schema = scratch("k.json")};
  assert_failed(import_csv("k.csv", "c.h5", with), GT_ERR_DATA,
                "k.csv: the schema has no values of its columns; expected one or more");
  assert_true(access(scratch("c.h5"), F_OK) != 0);
}

/* The hash that regions compare covers whole names, values and edges, and their order. */
static void test_hash(void) {
#define LONG "patient_has_previous_diagnosis_"
  static const char diabetes[] = LONG "diabetes," LONG "cancer,y\nno,no,0\nyes,yes,1\n",
                    cancer[] = LONG "cancer," LONG "diabetes,y\nno,no,0\nyes,yes,1\n";
#undef LONG
  for (int k = 0; k < 2; k++) {
    const char *as = k ? "numbers" : "ids";
    assert_string_equal(columns_hash(diabetes, as), columns_hash(diabetes, as));
    assert_string_not_equal(columns_hash(diabetes, as), columns_hash(cancer, as));
  }
  assert_string_not_equal(columns_hash("x,y\n1234567890.25,0\n2e9,1\n", "ids"),
                          columns_hash("x,y\n1234567890.5,0\n2e9,1\n", "ids"));
}

/* A format whose samples are ids takes the names of classes of a schema. */
static void test_names_of_ids(void) {
  static const struct {
    const char *format, *schema;
    size_t classes;
  } formats[] = {
      {"sessions", "\"ids\": 7, \"classes\": [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]}", 6},
      {"libfm", "\"ids\": 7, \"classes\": [\"no\", \"yes\"]}", 2}};
  char text[200];
  int32_t x[8], y[4];
  mkdir(scratch("g"), 0700);
  put("g/train.txt", "1 2 3\n4 5 6\n");
  put("g/test.txt", "1 2\n");
  put("g/a.train.libfm", "1 0:1 3:1\n0 1:1 3:1\n");
  put("g/a.test.libfm", "1 0:1 3:1\n");
  const char *source = scratch("g");
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
    snprintf(text, sizeof text, "{\"geotrain_data_schema\": 1, %s", formats[k].schema);
    const gt_import_options with = {.length = k == 0 ? 2 : 0, .schema = put("g.json", text)};
    assert_int_equal(gt_data_import(formats[k].format, &source, 1, scratch("g.h5"), &with, NULL),
                     GT_OK);
    const gt_dataset_info info = read_all("g.h5", 2, x, y);
    assert_true(info.classes == formats[k].classes && info.class_names_sha256[0]);
  }
}

/* Classes: two become one, with a schema in another order; ids of sessions: the larger number. */
static void test_classes(void) {
  const gt_synth_spec spec = {1, 60, 10, 8, 8, 4};
  const char *const renames[] = {"0=cat", "1=dog", "2=cat", "3=owl"};
  int32_t before[60], after[60];
  float x[60 * 64];
  assert_int_equal(gt_data_synth(scratch("s.h5"), &spec), GT_OK);
  assert_failed(join("s.h5", "", "c.json"), GT_ERR_DATA, "s.h5: its classes have no names");
  assert_int_equal(gt_data_classes(scratch("s.h5"), scratch("r.h5"), renames, 4, NULL), GT_OK);
  read_all("s.h5", 60, x, before);
  assert_int_equal(read_all("r.h5", 60, x, after).classes, 3);
  for (int i = 0; i < 60; i++) assert_int_equal(after[i], ((int[]){0, 1, 0, 2})[before[i]]);
  put("o.json", "{\"geotrain_data_schema\": 1, \"classes\": [\"owl\", \"eel\", \"dog\", \"cat\"]}");
  assert_int_equal(gt_data_classes(scratch("r.h5"), scratch("q.h5"), NULL, 0, scratch("o.json")),
                   GT_OK);
  assert_int_equal(read_all("q.h5", 60, x, after).classes, 4);
  for (int i = 0; i < 60; i++) assert_int_equal(after[i], ((int[]){3, 2, 3, 0})[before[i]]);
  assert_failed(gt_data_classes(scratch("r.h5"), scratch("t.h5"), renames, 1, NULL), GT_ERR_JOB,
                "data classes has `0=cat`; expected OLD=NEW with the name of a class of ");
  assert_failed(gt_data_classes(scratch("r.h5"), scratch("t.h5"), (const char *const[]){"cat=ant"},
                                1, scratch("o.json")),
                GT_ERR_DATA, "the schema has 4 classes, and none is `ant`");
  put("i.json", "{\"geotrain_data_schema\": 1, \"ids\": 30}");
  put("j.json", "{\"geotrain_data_schema\": 1, \"ids\": 20}");
  assert_int_equal(join("j.json", "i.json", "ij.json"), GT_OK);
  assert_schema("ij.json", "{\"geotrain_data_schema\": 1,\"ids\": 30}");
  mkdir(scratch("f"), 0700);
  put("f/train.txt", "1 2 3\n4 5 6\n");
  put("f/test.txt", "1 2\n");
  const char *source = scratch("f");
  gt_import_options with = {.length = 2, .schema = scratch("ij.json")};
  assert_int_equal(gt_data_import("sessions", &source, 1, scratch("f.h5"), &with, NULL), GT_OK);
  const gt_dataset_info info = read_all("f.h5", 2, x, after);
  assert_true(info.features == 30 && info.classes == 29);
  put("j.json", "{\"geotrain_data_schema\": 1, \"ids\": 5}");
  with.schema = scratch("j.json");
  assert_failed(gt_data_import("sessions", &source, 1, scratch("f.h5"), &with, NULL), GT_ERR_DATA,
                "has ids below 7, and the schema has 5 ids");
}

static void test_refused(void) {
#define V "{\"geotrain_data_schema\": 1, "
  static const struct {
    const char *text, *error;
  } files[] = {
      {"", "expected a data set, or a schema as `geotrain data schema` writes it"},
      {"[1]", "has no geotrain_data_schema"},
      {"{\"classes\": [\"a\"]}", "has no geotrain_data_schema"},
      {"{\"new\": [], \"geotrain_data_schema\": 2}", "has no geotrain_data_schema 1; expected a"},
      {V "\"clases\": [\"a\"]}", "the key `clases` is not known"},
      {V "\"ids\": -3}", "the key `ids` is not known, or its value is wrong"},
      {V "\"classes\": [\"a\", \"a\"]}", "classes has twice a; expected a list of different texts"},
      {V "\"classes\": [\"\"]}", "classes[0] is not a text of 1 to 255 bytes"},
      {V "\"classes\": \"a\"}", "classes is no list"},
      {V "\"columns\": [{\"values\": []}]}", "a column has no name, or other keys"},
      {V "\"columns\": [{\"name\": \"x\", \"values\": [], \"edges\": []}]}",
       "a column has no name"},
      {V "\"columns\": [{\"name\": \"x\"}, {\"name\": \"x\"}]}",
       "two columns have the name `x`; expected different"},
      {V "\"columns\": [{\"name\": \"x\", \"edges\": [2, 1]}]}", "the edges of column x are wrong"},
      {V "\"columns\": [{\"name\": \"x\", \"edges\": [null]}]}",
       "the edges of column x are wrong"}};
#undef V
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    put("bad.json", files[i].text);
    assert_failed(join("bad.json", "", "c.json"), GT_ERR_DATA, files[i].error);
  }
  put("k.json", "{\"geotrain_data_schema\": 1, \"words\": [\"a\"]}");
  assert_failed(join("k.json", "i.json", "c.json"), GT_ERR_DATA, "are of different kinds");
  put("k.json", "{\"geotrain_data_schema\": 1, \"columns\": [{\"name\": \"z\"}]}");
  assert_failed(join("ab.json", "k.json", "c.json"), GT_ERR_DATA, "has 2 columns and ");
  const gt_import_options with = {.schema = scratch("k.json")};
  assert_failed(import_csv("a.csv", "c.h5", with), GT_ERR_DATA, "a.csv: has no column `z`");
  put("w.csv", "x,color,y\nten,red,no\n");
  assert_failed(import_csv("w.csv", "c.h5", (gt_import_options){.schema = scratch("ab.json")}),
                GT_ERR_DATA, "line 2 has `ten` in column x; expected a number, as the schema says");
  put("w.csv", "x,color,y\n1,red,never\n");
  assert_failed(import_csv("w.csv", "c.h5", (gt_import_options){.schema = scratch("ab.json")}),
                GT_ERR_DATA, "the schema has 3 classes, and none is `never`");
  put("w.csv", "x,color,y\n1,gr\xfcn,no\n2,red,yes\n");
  assert_failed(import_csv("w.csv", "c.h5", (gt_import_options){0}), GT_ERR_DATA,
                "w.csv: the row at line 2 is not UTF-8; convert the file");
  assert_true(access(scratch("c.h5"), F_OK) != 0);
}

TESTS_BETWEEN(NULL, scratch_remove, test_ids, test_numbers, test_edges, test_ranges, test_controls,
              test_no_values, test_hash, test_names_of_ids, test_classes, test_refused)
