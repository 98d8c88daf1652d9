/* Class names: their check, and the attribute of a file that holds them. */
#include "class_names.h"

#include <stdlib.h>
#include <string.h>

void gt_class_names_add(gt_class_names *names, const char *name) {
  const size_t size = strlen(name) + 1;
  if (names->bytes + size > names->room) {
    names->room = 2 * (names->bytes + size);
    char *text = gt_alloc(names->room, 1);
    if (names->bytes > 0) memcpy(text, names->text, names->bytes);
    gt_free(names->text);
    names->text = text;
  }
  gt_text_flatten(memcpy(names->text + names->bytes, name, size)); /* names are printed, so control
                                                                      characters are removed */
  names->bytes += size;
  names->n++;
}

void gt_class_names_hash(const gt_class_names *names, char hash[65]) {
  hash[0] = 0;
  if (names->n > 0) gt_sha256_hex(names->text, names->bytes, hash);
}

bool gt_class_names_differ(const char *a, const char *b, size_t n, gt_class_difference *out) {
  for (size_t k = 0; k < n; k++, a += strlen(a) + 1, b += strlen(b) + 1)
    if (strcmp(a, b) != 0) return *out = (gt_class_difference){k, a, b}, true;
  return false;
}

/* ---- finding --------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  size_t at;
} place;

static int by_name(const void *a, const void *b) {
  return strcmp(((const place *)a)->name, ((const place *)b)->name);
}

static int by_name_and_place(const void *a, const void *b) {
  const place *x = a, *y = b;
  const int order = by_name(a, b);
  return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Returns the names of two lists, one after the other, sorted; the caller frees them. */
static place *sorted(const gt_class_names *a, const gt_class_names *b) {
  place *all = GT_NEW_ARRAY(place, a->n + b->n);
  const char *name = a->text;
  for (size_t k = 0; k < a->n + b->n; k++, name += strlen(name) + 1) {
    if (k == a->n) name = b->text;
    all[k] = (place){name, k};
  }
  if (a->n + b->n > 0) qsort(all, a->n + b->n, sizeof *all, by_name_and_place);
  return all;
}

static const gt_class_names none;

const char *gt_class_names_repeated(const gt_class_names *names) {
  place *all = sorted(names, &none);
  const char *found = NULL;
  for (size_t k = 1; k < names->n && !found; k++)
    if (strcmp(all[k - 1].name, all[k].name) == 0) found = all[k].name;
  gt_free(all);
  return found;
}

const char *gt_class_names_map(const gt_class_names *from, const gt_class_names *to, int32_t *map) {
  place *all = sorted(to, &none);
  const char *name = from->text, *missing = NULL;
  for (size_t k = 0; k < from->n && !missing; k++, name += strlen(name) + 1) {
    const place *found =
        to->n > 0 ? bsearch(&(place){name, 0}, all, to->n, sizeof *all, by_name) : NULL;
    if (found)
      map[k] = (int32_t)found->at;
    else
      missing = name;
  }
  gt_free(all);
  return missing;
}

void gt_class_names_join(gt_class_names *names, const gt_class_names *more) {
  place *all = sorted(names, more);
  const size_t before = names->n;
  bool *first = GT_NEW_ARRAY(bool, more->n);
  for (size_t k = 0; k < before + more->n; k++)
    if (all[k].at >= before)
      first[all[k].at - before] = k == 0 || by_name(&all[k - 1], &all[k]) != 0;
  const char *name = more->text;
  for (size_t k = 0; k < more->n; k++, name += strlen(name) + 1)
    if (first[k]) gt_class_names_add(names, name);
  gt_free(first);
  gt_free(all);
}

/* ---- check ----------------------------------------------------------------------------------- */

gt_status gt_class_names_check(const gt_class_names *names, const char *path) {
  const char *name = names->text;
  for (size_t k = 0; k < names->n; k++, name += strlen(name) + 1)
    if (!*name || strlen(name) > GT_CLASS_NAME_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: the name of class %zu has %zu bytes; expected 1 to %d", path,
                     k, strlen(name), GT_CLASS_NAME_MAX);
  if (names->bytes > GT_CLASS_NAMES_MAX)
    return GT_FAIL(GT_ERR_DATA, "%s: the names of classes have %zu bytes; at most %d are allowed",
                   path, names->bytes, GT_CLASS_NAMES_MAX);
  if (names->n > 0 && (name = gt_class_names_repeated(names)))
    return GT_FAIL(GT_ERR_DATA, "%s: two classes have the name `%s`; each class needs its own",
                   path, name);
  return GT_OK;
}

/* ---- the attribute --------------------------------------------------------------------------- */

static bool read_fixed(gt_class_names *names, hid_t attr, hid_t memory, size_t size, size_t n) {
  char *rows = gt_alloc(n, size);
  H5Tset_size(memory, size);
  const bool ok = H5Aread(attr, memory, rows) >= 0;
  for (size_t k = 0; ok && k < n; k++) gt_class_names_add(names, rows + k * size);
  gt_free(rows);
  return ok;
}

static bool read_variable(gt_class_names *names, hid_t attr, hid_t memory, size_t n) {
  char **rows = GT_NEW_ARRAY(char *, n);
  H5Tset_size(memory, H5T_VARIABLE);
  const bool ok = H5Aread(attr, memory, (void *)rows) >= 0;
  for (size_t k = 0; k < n; k++) {
    if (ok) gt_class_names_add(names, rows[k] ? rows[k] : "");
    H5free_memory(rows[k]);
  }
  gt_free((void *)rows);
  return ok;
}

/* `type` is a string.  A fixed-length one can be longer than any name, as in arrays of strings. */
static gt_status read_names(gt_class_names *names, hid_t attr, hid_t type, const char *path,
                            size_t n) {
  char reason[256];
  const bool variable = H5Tis_variable_str(type) > 0;
  hid_t memory = H5Tcopy(H5T_C_S1);
  H5Tset_cset(memory, H5Tget_cset(type));
  const bool ok = variable ? read_variable(names, attr, memory, n)
                           : read_fixed(names, attr, memory, H5Tget_size(type) + 1, n);
  if (!ok) gt_data_h5_reason(reason, sizeof reason);
  gt_data_h5_close(memory);
  return ok ? gt_class_names_check(names, path)
            : GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` cannot be read (%s)", path,
                      GT_DATA_CLASS_NAMES, reason);
}

gt_status gt_class_names_read(gt_class_names *names, hid_t file, const char *path, size_t classes) {
  char found[48];
  *names = (gt_class_names){0};
  if (H5Aexists(file, GT_DATA_CLASS_NAMES) <= 0) return GT_OK;
  hid_t attr = H5Aopen(file, GT_DATA_CLASS_NAMES, H5P_DEFAULT), type = H5Aget_type(attr),
        space = H5Aget_space(attr);
  const hssize_t n = H5Sget_simple_extent_npoints(space);
  gt_status status;
  if (H5Tget_class(type) != H5T_STRING || n < 0 || (size_t)n != classes)
    status = GT_FAIL(
        GT_ERR_DATA,
        "%s: the attribute `%s` is %s with %lld elements; expected %zu strings, one a class", path,
        GT_DATA_CLASS_NAMES, gt_data_h5_type_name(type, found, sizeof found), (long long)n,
        classes);
  else
    status = read_names(names, attr, type, path, classes);
  gt_data_h5_close(space);
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}

bool gt_class_names_write(const gt_class_names *names, hid_t file) {
  const hsize_t dims[1] = {names->n};
  size_t width = 1;
  const char *name = names->text;
  if (names->n == 0) return true;
  for (size_t k = 0; k < names->n; k++, name += strlen(name) + 1)
    if (strlen(name) > width) width = strlen(name);
  char *rows = gt_alloc(names->n, width); /* NUL-padded */
  name = names->text;
  for (size_t k = 0; k < names->n; k++, name += strlen(name) + 1)
    memcpy(rows + k * width, name, strlen(name));
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, dims, NULL);
  H5Tset_size(type, width);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  hid_t attr = H5Acreate2(file, GT_DATA_CLASS_NAMES, type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool ok = attr >= 0 && H5Awrite(attr, type, rows) >= 0;
  gt_data_h5_close(attr);
  gt_data_h5_close(space);
  gt_data_h5_close(type);
  gt_free(rows);
  return ok;
}
