/* Imports MNIST and data sets of the same format (Fashion-MNIST, KMNIST, EMNIST): a folder with
   four idx files, gzip or plain. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "idx.h"
#include "import.h"
#include "store.h"

typedef struct {
  const char *folder;
  gt_idx *images[2], *labels[2]; /* indexed by gt_split */
  gt_data_store *store;
  size_t n[2], h, w, classes;
} mnist;

/* Two spellings are common, train-images-idx3-ubyte and train-images.idx3-ubyte, with or without
   .gz. */
static gt_status open_file(const char *folder, const char *stem, int ndims, gt_idx **out) {
  size_t size = strlen(folder) + strlen(stem) + 32;
  char *path = gt_alloc(size, 1);
  gt_status status = GT_OK;
  bool found = false;
  for (int form = 0; form < 4 && !found; form++) {
    snprintf(path, size, "%s/%s%cidx%d-ubyte%s", folder, stem, form & 2 ? '.' : '-', ndims,
             form & 1 ? "" : ".gz");
    found = access(path, F_OK) == 0;
  }
  if (found)
    status = gt_idx_open(out, path, ndims);
  else
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: %s-idx%d-ubyte is missing, with .gz and without; the four idx files of "
                     "MNIST are needed",
                     folder, stem, ndims);
  gt_free(path);
  return status;
}

static gt_status open_split(mnist *m, gt_split split) {
  const char *stem = split == GT_SPLIT_TRAIN ? "train" : "t10k";
  char name[32];
  snprintf(name, sizeof name, "%s-images", stem);
  GT_TRY(open_file(m->folder, name, 3, &m->images[split]));
  snprintf(name, sizeof name, "%s-labels", stem);
  GT_TRY(open_file(m->folder, name, 1, &m->labels[split]));
  m->n[split] = gt_idx_dim(m->images[split], 0);
  if (gt_idx_dim(m->labels[split], 0) != m->n[split])
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s-images has %zu samples but %s-labels has %zu; the same number is needed",
                   m->folder, stem, m->n[split], stem, gt_idx_dim(m->labels[split], 0));
  size_t h = gt_idx_dim(m->images[split], 1), w = gt_idx_dim(m->images[split], 2);
  if (split == GT_SPLIT_TRAIN) {
    m->h = h;
    m->w = w;
  } else if (h != m->h || w != m->w)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: t10k-images are %zu x %zu but train-images %zu x %zu; both must be the same",
        m->folder, h, w, m->h, m->w);
  return GT_OK;
}

static gt_status copy_images(mnist *m, gt_split split) {
  size_t item = m->h * m->w, n = m->n[split], block = item < (1U << 20) ? (1U << 20) / item : 1;
  uint8_t *images = gt_alloc(block, item);
  gt_status status = GT_OK;
  for (size_t first = 0; first < n && status == GT_OK; first += block) {
    size_t count = n - first < block ? n - first : block;
    status = gt_idx_read(m->images[split], count, images);
    if (status == GT_OK) status = gt_data_store_images(m->store, split, first, count, images);
  }
  gt_free(images);
  return status == GT_OK ? gt_idx_end(m->images[split]) : status;
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
    for (size_t i = 0; i < count && status == GT_OK; i++) {
      labels[i] = bytes[i];
      if (bytes[i] >= m->classes) m->classes = (size_t)bytes[i] + 1;
    }
    if (status == GT_OK) status = gt_data_store_labels(m->store, split, first, count, labels);
  }
  gt_free(labels);
  gt_free(bytes);
  return status == GT_OK ? gt_idx_end(m->labels[split]) : status;
}

static gt_status convert(mnist *m, const char *out) {
  char name[64];
  GT_TRY(open_split(m, GT_SPLIT_TRAIN));
  GT_TRY(open_split(m, GT_SPLIT_TEST));
  const gt_data_shape shape = {.n = {m->n[0], m->n[1]}, .h = m->h, .w = m->w, .c = 1};
  GT_TRY(gt_data_store_create(&m->store, out, &shape));
  for (int s = 0; s < 2; s++) {
    GT_TRY(copy_labels(m, (gt_split)s));
    GT_TRY(copy_images(m, (gt_split)s));
  }
  if (m->classes < 2)
    return GT_FAIL(GT_ERR_DATA, "%s: every label is 0; 2 or more classes are needed", m->folder);
  gt_import_name(m->folder, "mnist", name);
  return gt_data_store_finish(m->store, name, m->classes);
}

gt_status gt_import_mnist(const char *source, const char *out) {
  mnist m = {.folder = source};
  gt_status status = convert(&m, out);
  gt_data_store_close(m.store);
  for (int s = 0; s < 2; s++) {
    gt_idx_close(m.images[s]);
    gt_idx_close(m.labels[s]);
  }
  return status;
}
