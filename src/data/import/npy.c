/* Imports arrays of NumPy (numpy.lib.format, versions 1 to 3): a folder with NAME.npy, gzip or
   plain, or an .npz archive.  uint8 stays as it is; other numbers become float32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bytes.h"
#include "h5.h"
#include "import.h"

#define BLOCK       ((size_t)4 << 20) /* bytes read at a time, or one row */
#define ROW_MAX     ((size_t)1 << 26) /* bytes */
#define HEADER_MAX  ((size_t)1 << 16)
#define CLASSES_MAX 1000000

/* Names of samples and labels, by gt_split; without names for tests, rows are held back. */
static const struct {
  const char *x[2], *y[2];
} names[] = {{{"x_train", "x_test"}, {"y_train", "y_test"}},
             {{"train_images", "test_images"}, {"train_labels", "test_labels"}}, /* MedMNIST */
             {{"x", NULL}, {"y", NULL}}};
#define NNAMES (sizeof names / sizeof *names)

typedef struct {
  gt_bytes *file;
  char kind;   /* b, i, u or f */
  size_t size; /* bytes of a value */
  hid_t type;
  size_t n, dims[3], item; /* rows; the shape of a row, and its values */
} array;

typedef struct {
  const char *source;
  bool folder;
  const gt_import_options *options;
  array x[2], y[2];
  bool held_back; /* from x[0] and y[0] */
  size_t n[2], classes;
  gt_data_store *store;
} arrays;

/* ---- the header ------------------------------------------------------------------------------ */

/* Returns the text behind a key of the header, which is a Python dictionary; "" if it has none. */
static const char *value_of(const char *header, const char *key) {
  const char *at = strstr(header, key);
  if (!at) return "";
  at += strlen(key);
  return at + strspn(at, "': ");
}

static gt_status unknown_type(const array *a, const char *descr) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: its type is %.*s; expected bool, int8 to int64, uint8 to uint64, float16, "
                 "float32 or float64",
                 gt_bytes_path(a->file), (int)strcspn(descr, ","), descr);
}

/* Reads a type such as <f4, and makes the type of HDF5 that converts it. */
static gt_status read_type(array *a, const char *descr) {
  const char order = descr[0];
  a->kind = order ? descr[1] : '\0';
  a->size = a->kind ? strtoul(descr + 2, NULL, 10) : 0;
  const bool real = a->kind == 'f', whole = a->kind == 'i' || a->kind == 'u';
  if (!strchr("<>|=", order) ||
      !((a->kind == 'b' && a->size == 1) ||
        ((a->size == 2 || a->size == 4 || a->size == 8) && (whole || real)) ||
        (a->size == 1 && whole)))
    return unknown_type(a, descr);
  a->type = H5Tcopy(real             ? a->size == 8 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE
                    : a->kind == 'u' ? H5T_STD_U8LE
                                     : H5T_STD_I8LE);
  if (real && a->size == 2) { /* sign, exponent and mantissa of IEEE's half precision */
    H5Tset_fields(a->type, 15, 10, 5, 0, 10);
    H5Tset_ebias(a->type, 15);
  }
  H5Tset_size(a->type, a->size);
  H5Tset_precision(a->type, 8 * a->size);
  if (order == '>') H5Tset_order(a->type, H5T_ORDER_BE);
  return GT_OK;
}

static gt_status bad_shape(const array *a, const char *text) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: its shape is %.*s; expected 1 to 4 numbers above 0, first that of the "
                 "samples, and at most %zu bytes a sample",
                 gt_bytes_path(a->file), (int)strcspn(text, "}"), text, ROW_MAX);
}

/* Reads a shape such as (60000, 28, 28). */
static gt_status read_shape(array *a, const char *text, size_t *ndims) {
  size_t bytes = a->size;
  char *end = (char *)(uintptr_t)text + (*text == '(');
  a->item = 1;
  for (*ndims = 0; *end >= '0' && *end <= '9' && *ndims <= 4; ++*ndims) {
    const unsigned long long n = strtoull(end, &end, 10);
    end += strspn(end, "L, ");
    if (*ndims == 0) a->n = n;
    if (*ndims == 0 || *ndims == 4) continue;
    a->dims[*ndims - 1] = n;
    if (n == 0 || __builtin_mul_overflow(bytes, n, &bytes) || bytes > ROW_MAX)
      return bad_shape(a, text);
    a->item *= n;
  }
  return *text == '(' && *end == ')' && *ndims > 0 && *ndims <= 4 && a->n > 0 && a->n <= UINT32_MAX
             ? GT_OK
             : bad_shape(a, text);
}

static gt_status parse(array *a, const char *header, size_t *ndims) {
  const char *descr = value_of(header, "'descr'");
  GT_TRY(read_type(a, descr));
  if (strncmp(value_of(header, "'fortran_order'"), "False", 5) != 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: is stored by columns (Fortran's order); expected rows: save "
                   "numpy.ascontiguousarray(x)",
                   gt_bytes_path(a->file));
  return read_shape(a, value_of(header, "'shape'"), ndims);
}

static gt_status read_header(array *a, size_t *ndims) {
  uint8_t head[12] = {0};
  const int64_t got = gt_bytes_read(a->file, head, 10);
  if (got < 0) return GT_ERR_DATA;
  if (got < 10 || memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3)
    return GT_FAIL(GT_ERR_DATA, "%s: is no array of NumPy, format 1 to 3; save it by numpy.save",
                   gt_bytes_path(a->file));
  if (head[6] > 1 && gt_bytes_read(a->file, head + 10, 2) < 0) return GT_ERR_DATA;
  const size_t n = head[8] | (size_t)head[9] << 8 | (size_t)head[10] << 16 | (size_t)head[11] << 24;
  char *text = gt_alloc(HEADER_MAX + 1, 1);
  const int64_t length = n <= HEADER_MAX ? gt_bytes_read(a->file, text, n) : 0;
  gt_status status = length < 0 ? GT_ERR_DATA
                     : (size_t)length < n
                         ? GT_FAIL(GT_ERR_DATA,
                                   "%s: its header has %zu bytes; expected a whole one of at "
                                   "most %zu",
                                   gt_bytes_path(a->file), n, HEADER_MAX)
                         : GT_OK;
  if (status == GT_OK) gt_text_flatten(text);
  if (status == GT_OK) status = parse(a, text, ndims);
  gt_free(text);
  return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Opens NAME.npy of the folder or archive; a->file NULL: there is none. */
static gt_status open_file(const arrays *s, const char *name, array *a) {
  char file[40], *path;
  snprintf(file, sizeof file, "%s.npy", name);
  if (!s->folder) return gt_bytes_open_member(&a->file, s->source, file);
  path = gt_bytes_find(s->source, file);
  const gt_status status = path ? gt_bytes_open(&a->file, path) : GT_OK;
  gt_free(path);
  return status;
}

static gt_status open_array(const arrays *s, const char *name, array *a, size_t *ndims) {
  if (!a->file) GT_TRY(open_file(s, name, a));
  if (a->file) return read_header(a, ndims);
  return GT_FAIL(GT_ERR_DATA, "%s: has no array %s.npy", s->source, name);
}

/* Opens samples (N,F), (N,H,W) or (N,H,W,C), and N labels. */
static gt_status open_pair(arrays *s, const char *x_name, const char *y_name, int i) {
  array *x = &s->x[i], *y = &s->y[i];
  size_t ndims;
  GT_TRY(open_array(s, x_name, x, &ndims));
  if (ndims == 1)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: has 1 dimension; expected samples: (N,F), (N,H,W) or (N,H,W,C)",
                   gt_bytes_path(x->file));
  if (ndims == 2) x->dims[2] = x->dims[0], x->dims[0] = x->dims[1] = 1;
  if (ndims == 3) x->dims[2] = 1;
  GT_TRY(open_array(s, y_name, y, &ndims));
  if (y->n != x->n || y->item != 1 || y->kind == 'f')
    return GT_FAIL(GT_ERR_DATA,
                   "%s: has %zu rows of %zu values of type %c%zu; expected %zu whole numbers, the "
                   "labels of %s",
                   gt_bytes_path(y->file), y->n, y->item, y->kind, y->size, x->n,
                   gt_bytes_path(x->file));
  if (i == 0 || (memcmp(x->dims, s->x[0].dims, sizeof x->dims) == 0 &&
                 (x->kind == 'u' && x->size == 1) == (s->x[0].kind == 'u' && s->x[0].size == 1)))
    return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: has samples of another shape or type than %s",
                 gt_bytes_path(x->file), gt_bytes_path(s->x[0].file));
}

static gt_status open_all(arrays *s) {
  size_t i = 0;
  for (; i < NNAMES && !s->x[0].file; i += !s->x[0].file)
    GT_TRY(open_file(s, names[i].x[0], &s->x[0]));
  if (i == NNAMES)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: has none of the arrays x_train.npy, train_images.npy and x.npy; expected "
                   "one, with its labels",
                   s->source);
  GT_TRY(open_pair(s, names[i].x[0], names[i].y[0], 0));
  s->held_back = !names[i].x[1];
  if (!s->held_back) GT_TRY(gt_import_keeps_tests(s->source, s->options));
  if (!s->held_back) GT_TRY(open_pair(s, names[i].x[1], names[i].y[1], 1));
  for (int k = 0; k < 2; k++) s->n[k] = s->x[k].n;
  for (size_t k = s->n[0]; s->held_back && k-- > 0;)
    if (gt_import_split_of(s->options, k) == GT_SPLIT_TEST) s->n[0]--, s->n[1]++;
  for (int k = 0; k < 2 && s->held_back; k++)
    if (s->n[k] == 0 && (k == GT_SPLIT_TRAIN || *s->options->test_share > 0))
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has no row for the %s split; expected more rows, or another --seed",
                     s->source, gt_data_split_names[k]);
  return GT_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Moves the rows of one split to the front; returns their number. */
static size_t rows_of(const arrays *s, int i, gt_split split, size_t first, size_t count,
                      const char *rows, size_t bytes, char *to) {
  size_t n = 0;
  for (size_t k = 0; k < count; k++)
    if ((s->held_back ? gt_import_split_of(s->options, first + k) : (gt_split)i) == split)
      memcpy(to + n++ * bytes, rows + k * bytes, bytes);
  return n;
}

static gt_status check_values(const array *a, size_t first, size_t count, const float *x) {
  for (size_t k = 0; k < count * a->item; k++)
    if (!isfinite(x[k]))
      return GT_FAIL(GT_ERR_DATA, "%s: sample %zu has the value %g as float32; expected numbers",
                     gt_bytes_path(a->file), first + k / a->item, (double)x[k]);
  return GT_OK;
}

/* Converts labels in place. */
static gt_status convert_labels(arrays *s, const array *a, size_t first, size_t count, void *rows) {
  const int64_t *from = rows;
  int32_t *to = rows;
  H5Tconvert(a->type, H5T_NATIVE_INT64, count, rows, NULL, H5P_DEFAULT);
  for (size_t k = 0; k < count; k++) {
    if (from[k] < 0 || from[k] >= CLASSES_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: the label of sample %zu is %lld; expected 0 to %d",
                     gt_bytes_path(a->file), first + k, (long long)from[k], CLASSES_MAX - 1);
    if ((size_t)from[k] >= s->classes) s->classes = (size_t)from[k] + 1;
    to[k] = (int32_t)from[k];
  }
  return GT_OK;
}

static gt_status read_rows(array *a, size_t count, void *rows) {
  const int64_t got = gt_bytes_read(a->file, rows, count * a->item * a->size);
  if (got < 0) return GT_ERR_DATA;
  if ((size_t)got == count * a->item * a->size) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: ends before its %zu rows do; expected a whole file",
                 gt_bytes_path(a->file), a->n);
}

/* Copies an array, of samples or labels, block by block. */
static gt_status copy(arrays *s, int i, array *a, bool labels) {
  const bool bytes = !labels && a->kind == 'u' && a->size == 1;
  const size_t row = a->item * (labels  ? sizeof(int32_t)
                                : bytes ? 1
                                        : sizeof(float)),
               room = a->item * sizeof(int64_t), most = BLOCK / room > 0 ? BLOCK / room : 1;
  char *rows = gt_alloc(most, room), *part = gt_alloc(most, row);
  size_t done[2] = {0};
  gt_status status = GT_OK;
  for (size_t first = 0; first < a->n && status == GT_OK; first += most) {
    const size_t count = a->n - first < most ? a->n - first : most;
    status = read_rows(a, count, rows);
    if (status == GT_OK && labels) status = convert_labels(s, a, first, count, rows);
    if (status == GT_OK && !labels && !bytes) {
      H5Tconvert(a->type, H5T_NATIVE_FLOAT, count * a->item, rows, NULL, H5P_DEFAULT);
      status = check_values(a, first, count, (const float *)(const void *)rows);
    }
    for (int k = 0; k < 2 && status == GT_OK; k++) {
      const size_t n = rows_of(s, i, (gt_split)k, first, count, rows, row, part);
      if (n == 0) continue;
      status = labels ? gt_data_store_labels(s->store, (gt_split)k, done[k], n, (void *)part)
                      : gt_data_store_samples(s->store, (gt_split)k, done[k], n, part);
      done[k] += n;
    }
  }
  gt_free(part);
  gt_free(rows);
  return status == GT_OK ? gt_bytes_whole(a->file) : status;
}

/* ---- import ---------------------------------------------------------------------------------- */

static gt_status convert(arrays *s, const char *out) {
  char name[64];
  GT_TRY(open_all(s));
  const array *x = &s->x[0];
  const gt_data_shape shape = {.n = {s->n[0], s->n[1]},
                               .h = x->dims[0],
                               .w = x->dims[1],
                               .c = x->dims[2],
                               .floats = x->kind != 'u' || x->size != 1,
                               .schema = s->options->names};
  GT_TRY(gt_data_store_create(&s->store, out, &shape));
  for (int i = 0; i < (s->held_back ? 1 : 2); i++) {
    GT_TRY(copy(s, i, &s->y[i], true));
    GT_TRY(copy(s, i, &s->x[i], false));
  }
  if (s->folder) GT_TRY(gt_import_class_names(s->store, s->source, NULL, &s->classes));
  gt_import_name(s->source, "arrays", name);
  return gt_data_store_finish(s->store, name, s->classes);
}

gt_status gt_import_npy(const char *source, const char *out, const gt_import_options *options) {
  struct stat about;
  arrays s = {.source = source, .options = options};
  for (int i = 0; i < 2; i++) s.x[i].type = s.y[i].type = -1;
  s.folder = stat(source, &about) == 0 && S_ISDIR(about.st_mode);
  gt_data_h5_quiet();
  gt_status status = convert(&s, out);
  gt_data_store_close(s.store);
  for (int i = 0; i < 2; i++) {
    gt_bytes_close(s.x[i].file);
    gt_bytes_close(s.y[i].file);
    gt_data_h5_close(s.x[i].type);
    gt_data_h5_close(s.y[i].type);
  }
  return status;
}
