/* Imports click data in libFM's text format: NAME.train.libfm and NAME.test.libfm, such as the
   Frappe files of He and Chua (Neural Factorization Machines, SIGIR 2017). */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataset.h"
#include "import.h"
#include "libfm_text.h"
#include "store.h"

enum { BLOCK_BYTES = 1 << 20 };

typedef struct {
  const char *folder;
  char *name; /* stem of the file names */
  gt_libfm *files[2];
  size_t n[2], fields;
  int32_t largest; /* largest id */
  int32_t *ids;    /* of one line */
  int32_t *block, *labels;
  gt_data_store *store;
} libfm;

/* ---- files ----------------------------------------------------------------------------------- */

/* Length of NAME in "NAME.train.libfm" or "NAME.train.libfm.gz", or 0. */
static size_t stem_of(const char *file) {
  static const char *const ends[] = {".train.libfm", ".train.libfm.gz"};
  size_t n = strlen(file);
  for (size_t i = 0; i < 2; i++) {
    size_t end = strlen(ends[i]);
    if (n > end && strcmp(file + n - end, ends[i]) == 0) return n - end;
  }
  return 0;
}

static gt_status find_name(libfm *l) {
  DIR *dir = opendir(l->folder);
  if (!dir)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: cannot be read (%s); a folder with NAME.train.libfm and NAME.test.libfm is needed",
        l->folder, strerror(errno));
  gt_status status = GT_OK;
  for (const struct dirent *entry; status == GT_OK && (entry = readdir(dir));) {
    size_t stem = stem_of(entry->d_name);
    if (stem == 0 || (l->name && strncmp(l->name, entry->d_name, stem) == 0 && !l->name[stem]))
      continue;
    if (l->name) {
      status = GT_FAIL(
          GT_ERR_DATA,
          "%s: has both %s.train.libfm and %.*s.train.libfm; one data set a folder is needed",
          l->folder, l->name, (int)stem, entry->d_name);
    } else {
      l->name = gt_strdup(entry->d_name);
      l->name[stem] = 0;
    }
  }
  closedir(dir);
  if (status == GT_OK && !l->name)
    status =
        GT_FAIL(GT_ERR_DATA, "%s: NAME.train.libfm is missing, with .gz and without", l->folder);
  return status;
}

static gt_status open_split(libfm *l, gt_split split) {
  size_t size = strlen(l->name) + 16;
  char *name = gt_alloc(size, 1), *path;
  gt_status status;
  snprintf(name, size, "%s.%s.libfm", l->name, gt_data_split_names[split]);
  path = gt_bytes_find(l->folder, name);
  if (path)
    status = gt_libfm_open(&l->files[split], path);
  else
    status = GT_FAIL(GT_ERR_DATA, "%s: %s is missing, with .gz and without", l->folder, name);
  gt_free(path);
  gt_free(name);
  return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads the next line; every line of both files must have as many fields as the first. */
static gt_status next_line(libfm *l, gt_split split, bool *more, int32_t *label) {
  gt_libfm *file = l->files[split];
  size_t fields;
  GT_TRY(gt_libfm_next(file, more, label, l->ids, &fields));
  if (!*more) return GT_OK;
  if (l->fields == 0) l->fields = fields;
  if (fields != l->fields)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: line %zu has %zu fields, but the first line of %s.train.libfm has %zu; all "
                   "need the same number",
                   gt_libfm_path(file), gt_libfm_line(file), fields, l->name, l->fields);
  return GT_OK;
}

/* First pass: counts lines and fields, and finds the largest id. */
static gt_status measure(libfm *l, gt_split split) {
  int32_t label;
  bool more;
  for (;; l->n[split]++) {
    GT_TRY(next_line(l, split, &more, &label));
    if (!more) break;
    for (size_t i = 0; i < l->fields; i++)
      if (l->ids[i] > l->largest) l->largest = l->ids[i];
    if (l->n[split] == UINT32_MAX)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has more than %u lines; a split holds at most so many samples",
                     gt_libfm_path(l->files[split]), UINT32_MAX);
  }
  if (l->n[split] == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: has no lines; 1 or more `label id:1 id:1 ...` are needed",
                   gt_libfm_path(l->files[split]));
  return gt_libfm_rewind(l->files[split]);
}

static gt_status changed(const libfm *l, gt_split split) {
  return GT_FAIL(GT_ERR_DATA, "%s: changed while it was read; import it again",
                 gt_libfm_path(l->files[split]));
}

static gt_status copy_split(libfm *l, gt_split split, size_t block) {
  bool more;
  size_t row = l->fields * sizeof *l->ids;
  for (size_t first = 0; first < l->n[split]; first += block) {
    size_t count = l->n[split] - first < block ? l->n[split] - first : block;
    for (size_t i = 0; i < count; i++) {
      GT_TRY(next_line(l, split, &more, &l->labels[i]));
      if (!more) return changed(l, split);
      for (size_t k = 0; k < l->fields; k++)
        if (l->ids[k] > l->largest) return changed(l, split);
      memcpy(l->block + i * l->fields, l->ids, row);
    }
    GT_TRY(gt_data_store_ids(l->store, split, first, count, l->block));
    GT_TRY(gt_data_store_labels(l->store, split, first, count, l->labels));
  }
  return GT_OK;
}

static gt_status convert(libfm *l, const char *out) {
  GT_TRY(find_name(l));
  for (int s = 0; s < 2; s++) GT_TRY(open_split(l, (gt_split)s));
  l->ids = GT_NEW_ARRAY(int32_t, GT_LIBFM_MAX_FIELDS);
  for (int s = 0; s < 2; s++) GT_TRY(measure(l, (gt_split)s));
  size_t row = l->fields * sizeof *l->ids, block = 1 + BLOCK_BYTES / (row + 1); /* about 1 MiB */
  l->block = gt_alloc(block, row);
  l->labels = GT_NEW_ARRAY(int32_t, block);
  const gt_data_shape shape = {
      .n = {l->n[0], l->n[1]}, .h = 1, .w = 1, .c = l->fields, .features = (size_t)l->largest + 1};
  GT_TRY(gt_data_store_create(&l->store, out, &shape));
  for (int s = 0; s < 2; s++) GT_TRY(copy_split(l, (gt_split)s, block));
  return gt_data_store_finish(l->store, l->name, 2);
}

gt_status gt_import_libfm(const char *source, const char *out) {
  libfm l = {.folder = source};
  gt_status status = convert(&l, out);
  gt_data_store_close(l.store);
  for (int s = 0; s < 2; s++) gt_libfm_close(l.files[s]);
  gt_free(l.labels);
  gt_free(l.block);
  gt_free(l.ids);
  gt_free(l.name);
  return status;
}
