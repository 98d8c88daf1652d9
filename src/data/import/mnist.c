/* Imports MNIST and data sets of the same format (Fashion-MNIST, KMNIST, EMNIST): a folder with
   four idx files, gzip or plain.  EMNIST (Cohen, Afshar, Tapson and van Schaik, 2017) has file
   names of its own, stores images column by column, and numbers letters from 1. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "idx.h"
#include "import.h"
#include "store.h"

#define DIGITS  "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

typedef struct {
  const char *name, *stems[2]; /* of the file names, by gt_split */
  uint8_t first;               /* the label of class 0 */
  const char *characters;      /* the name of each class; NULL: not EMNIST */
} variant;

#define EMNIST(name, first, characters)                                                            \
  { "emnist-" name, {"emnist-" name "-train", "emnist-" name "-test"}, first, characters }
static const variant variants[] = {
    {"mnist", {"train", "t10k"}, 0, NULL},
    EMNIST("balanced", 0, DIGITS LETTERS "abdefghnqrt"),
    EMNIST("byclass", 0, DIGITS LETTERS "abcdefghijklmnopqrstuvwxyz"),
    EMNIST("bymerge", 0, DIGITS LETTERS "abdefghnqrt"),
    EMNIST("digits", 0, DIGITS),
    EMNIST("letters", 1, LETTERS),
    EMNIST("mnist", 0, DIGITS),
};

typedef struct {
  const char *folder;
  const gt_schema *schema;
  const variant *kind;
  gt_idx *images[2], *labels[2]; /* indexed by gt_split */
  gt_data_store *store;
  size_t n[2], h, w, classes;
} mnist;

/* ---- files ----------------------------------------------------------------------------------- */

/* Returns the path of STEM-CONTENT; NULL if it does not exist; the caller frees it.  Two spellings
   are common, train-images-idx3-ubyte and train-images.idx3-ubyte, with or without .gz. */
static char *find_file(const char *folder, const char *stem, const char *content, int ndims) {
  const size_t size = strlen(folder) + strlen(stem) + 64;
  char *path = gt_alloc(size, 1);
  for (int form = 0; form < 4; form++) {
    snprintf(path, size, "%s/%s-%s%cidx%d-ubyte%s", folder, stem, content, form & 2 ? '.' : '-',
             ndims, form & 1 ? "" : ".gz");
    if (access(path, F_OK) == 0) return path;
  }
  gt_free(path);
  return NULL;
}

static gt_status open_file(const char *folder, const char *stem, const char *content, int ndims,
                           gt_idx **out) {
  char *path = find_file(folder, stem, content, ndims);
  if (!path)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s-%s-idx%d-ubyte is missing, with .gz and without; expected the four idx "
                   "files of MNIST, or of one set of EMNIST",
                   folder, stem, content, ndims);
  gt_status status = gt_idx_open(out, path, ndims);
  gt_free(path);
  return status;
}

/* Finds the set.  EMNIST's archive unpacks six sets into one folder. */
static gt_status find_variant(mnist *m) {
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    char *path = find_file(m->folder, variants[i].stems[GT_SPLIT_TRAIN], "images", 3);
    if (!path) continue;
    gt_free(path);
    if (m->kind)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has both %s and %s; put the four files of one of them into a folder of "
                     "their own, and import that",
                     m->folder, m->kind->name, variants[i].name);
    m->kind = &variants[i];
  }
  if (!m->kind) m->kind = variants; /* none found: report the first one's files as missing */
  return GT_OK;
}

static gt_status open_split(mnist *m, gt_split split) {
  const char *stem = m->kind->stems[split];
  GT_TRY(open_file(m->folder, stem, "images", 3, &m->images[split]));
  GT_TRY(open_file(m->folder, stem, "labels", 1, &m->labels[split]));
  m->n[split] = gt_idx_dim(m->images[split], 0);
  if (gt_idx_dim(m->labels[split], 0) != m->n[split])
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s-images has %zu samples but %s-labels has %zu; expected the same number",
                   m->folder, stem, m->n[split], stem, gt_idx_dim(m->labels[split], 0));
  size_t h = gt_idx_dim(m->images[split], 1), w = gt_idx_dim(m->images[split], 2);
  if (split == GT_SPLIT_TRAIN) {
    m->h = h;
    m->w = w;
  } else if (h != m->h || w != m->w)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s-images are %zu x %zu but %s-images %zu x %zu; both must be the same",
                   m->folder, stem, h, w, m->kind->stems[GT_SPLIT_TRAIN], m->h, m->w);
  return GT_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Transposes a square image stored column by column; `item` is scratch of its size. */
static void turn(uint8_t *image, uint8_t *item, size_t side) {
  memcpy(item, image, side * side);
  for (size_t y = 0; y < side; y++)
    for (size_t x = 0; x < side; x++) image[y * side + x] = item[x * side + y];
}

static gt_status copy_images(mnist *m, gt_split split) {
  size_t item = m->h * m->w, n = m->n[split], block = item < (1U << 20) ? (1U << 20) / item : 1;
  uint8_t *images = gt_alloc(block + 1, item);
  gt_status status = GT_OK;
  for (size_t first = 0; first < n && status == GT_OK; first += block) {
    size_t count = n - first < block ? n - first : block;
    status = gt_idx_read(m->images[split], count, images);
    for (size_t i = 0; m->kind->characters && i < count && status == GT_OK; i++)
      turn(images + i * item, images + block * item, m->h);
    if (status == GT_OK) status = gt_data_store_samples(m->store, split, first, count, images);
  }
  gt_free(images);
  return status == GT_OK ? gt_idx_end(m->images[split]) : status;
}

/* Finds the class of the i-th label; EMNIST's number of classes is known. */
static gt_status class_of(mnist *m, gt_split split, size_t i, uint8_t label, int32_t *class) {
  const uint8_t first = m->kind->first;
  if (m->kind->characters && (label < first || label - first >= (int)m->classes))
    return GT_FAIL(GT_ERR_DATA, "%s: the label of sample %zu is %u; %s has the labels %u to %zu",
                   gt_idx_path(m->labels[split]), i, label, m->kind->name, first,
                   first + m->classes - 1);
  *class = label - first;
  if ((size_t) * class >= m->classes) m->classes = (size_t) * class + 1;
  return GT_OK;
}

static gt_status copy_labels(mnist *m, gt_split split) {
  enum { BLOCK = 65536 };
  size_t n = m->n[split];
  uint8_t *bytes = gt_alloc(BLOCK, 1);
  int32_t *labels = GT_NEW_ARRAY(int32_t, BLOCK);
  gt_status status = GT_OK;
  for (size_t first = 0; first < n && status == GT_OK; first += BLOCK) {
    size_t count = n - first < BLOCK ? n - first : BLOCK;
    status = gt_idx_read(m->labels[split], count, bytes);
    for (size_t i = 0; i < count && status == GT_OK; i++)
      status = class_of(m, split, first + i, bytes[i], &labels[i]);
    if (status == GT_OK) status = gt_data_store_labels(m->store, split, first, count, labels);
  }
  gt_free(labels);
  gt_free(bytes);
  return status == GT_OK ? gt_idx_end(m->labels[split]) : status;
}

/* Writes the class names: EMNIST's are known; others can be in the folder. */
static gt_status name_classes(mnist *m) {
  gt_class_names names = {0};
  if (!m->kind->characters) return gt_import_class_names(m->store, m->folder, NULL, &m->classes);
  for (const char *c = m->kind->characters; *c; c++) gt_class_names_add(&names, (char[]){*c, 0});
  gt_status status = gt_data_store_class_names(m->store, &names);
  gt_free(names.text);
  return status;
}

static gt_status convert(mnist *m, const char *out) {
  char name[64];
  GT_TRY(find_variant(m));
  if (m->kind->characters) m->classes = strlen(m->kind->characters);
  GT_TRY(open_split(m, GT_SPLIT_TRAIN));
  GT_TRY(open_split(m, GT_SPLIT_TEST));
  if (m->kind->characters && m->h != m->w)
    return GT_FAIL(GT_ERR_DATA, "%s: its images are %zu x %zu; those of EMNIST are square",
                   gt_idx_path(m->images[GT_SPLIT_TRAIN]), m->h, m->w);
  const gt_data_shape shape = {
      .n = {m->n[0], m->n[1]}, .h = m->h, .w = m->w, .c = 1, .schema = m->schema};
  GT_TRY(gt_data_store_create(&m->store, out, &shape));
  for (int s = 0; s < 2; s++) {
    GT_TRY(copy_labels(m, (gt_split)s));
    GT_TRY(copy_images(m, (gt_split)s));
  }
  GT_TRY(name_classes(m));
  gt_import_name(m->folder, m->kind->name, name);
  return gt_data_store_finish(m->store, name, m->classes);
}

gt_status gt_import_mnist(const char *source, const char *out, const gt_import_options *options) {
  mnist m = {.folder = source, .schema = options->names};
  gt_status status = convert(&m, out);
  gt_data_store_close(m.store);
  for (int s = 0; s < 2; s++) {
    gt_idx_close(m.images[s]);
    gt_idx_close(m.labels[s]);
  }
  return status;
}
