/* Imports pictures: SOURCE/train/CLASS/FILE and SOURCE/test/CLASS/FILE, PNG or JPEG.  Without the
   folder `test`, a share of each class is held back for tests, by the seed; without the folder
   `train`, the folders of SOURCE are the classes.  Samples are in the order of their paths. */
#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "geotrain/data_picture.h"
#include "import.h"

#define TOLD  1000 /* unreadable pictures that are named */
#define BLOCK ((size_t)4 << 20)

typedef struct {
  char *path;
  size_t class;
  gt_split split;
} picture;

typedef struct {
  const char *source;
  const gt_import_options *options;
  picture *pictures; /* n, by split, then path */
  size_t n, room, nleft_out;
  gt_class_names names;
  size_t class;  /* of the pictures being found */
  bool found[2]; /* folders of the splits */
  size_t nignored, nothers;
  char *ignored, *other; /* the first file of these; the first folder besides the splits */
  size_t h, w, c;
  gt_data_store *store;
} folder;

/* ---- finding files --------------------------------------------------------------------------- */

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

static size_t class_of(const gt_class_names *names, const char *name) {
  const char *at = names->text;
  size_t i = 0;
  for (; i < names->n && strcmp(at, name) != 0; i++) at += strlen(at) + 1;
  return i;
}

/* The training split names the classes; a schema also has those of the test split. */
static gt_status find_class(folder *f, const char *path, const char *name, gt_split split) {
  const gt_schema *schema = f->options->names;
  const bool known = schema && class_of(&schema->classes, name) < schema->classes.n;
  if (split == GT_SPLIT_TRAIN || (known && class_of(&f->names, name) == f->names.n))
    gt_class_names_add(&f->names, name);
  f->class = class_of(&f->names, name);
  if (f->class < f->names.n) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: is a class that %s/train does not have; expected the same classes, or a "
                 "schema with all of them",
                 path, f->source);
}

/* Without SOURCE/train, a folder with the name of a split is no class. */
static gt_status take_class(folder *f, const FTSENT *e, gt_split split) {
  static const char *const splits[] = {"train", "test", "val", "valid", "validation"};
  for (size_t i = 0; i < sizeof splits / sizeof *splits && e->fts_level == 1; i++)
    if (strcasecmp(e->fts_name, splits[i]) == 0)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: is a split and no class; expected %s/train with a folder for each class",
                     e->fts_path, f->source);
  char *name = gt_strdup(e->fts_name);
  gt_text_flatten(name); /* as names of classes are */
  const gt_status status = find_class(f, e->fts_path, name, split);
  gt_free(name);
  return status;
}

/* Takes a picture, or counts another file. */
static gt_status take_file(folder *f, const FTSENT *e, gt_split split, bool is_picture) {
  if (!is_picture) {
    if (f->nignored++ == 0) f->ignored = gt_strdup(e->fts_path);
    return GT_OK;
  }
  GT_GROW(f->pictures, f->n, f->room, 1024);
  f->pictures[f->n++] = (picture){gt_strdup(e->fts_path), f->class, split};
  return GT_OK;
}

/* The classes are the folders at `level`.  A link to a folder above (FTS_DC) is not followed. */
static gt_status take_entry(folder *f, const FTSENT *e, gt_split split, int level) {
  const bool in_class = e->fts_level > level, is_picture = in_class && gt_picture_is(e->fts_name);
  switch (e->fts_info) {
  case FTS_D:
    if (e->fts_level == 1) f->found[split] = true;
    return e->fts_level == level ? take_class(f, e, split) : GT_OK;
  case FTS_F:
    return e->fts_level >= level ? take_file(f, e, split, is_picture) : GT_OK;
  case FTS_SLNONE:
    if (is_picture)
      return take_file(f, e, split, true); /* find_size leaves it out, or refuses it */
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be read (a link to nothing)", e->fts_path);
  case FTS_NS:
  case FTS_DNR:
  case FTS_ERR:
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be read (%s)", e->fts_path, strerror(e->fts_errno));
  default:
    return GT_OK;
  }
}

/* Takes the pictures of a split, in the order of their paths: with level 2 those of the source's
   folder for it, with level 1 all of the source's.  Hidden entries are left out. */
static gt_status take_split(folder *f, gt_split split, int level) {
  char *roots[] = {(char *)(uintptr_t)f->source, NULL};
  FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
  gt_status status = GT_OK;
  if (!tree) return GT_FAIL(GT_ERR_DATA, "%s: cannot be read (%s)", f->source, strerror(errno));
  for (FTSENT *e; status == GT_OK && (e = fts_read(tree));) {
    const bool hidden = e->fts_level > 0 && e->fts_name[0] == '.',
               other = e->fts_level == 1 && level == 2 &&
                       strcmp(e->fts_name, gt_data_split_names[split]) != 0;
    if (other && !hidden && e->fts_info == FTS_D && strcmp(e->fts_name, "test") != 0 &&
        f->nothers++ == 0)
      f->other = gt_strdup(e->fts_path);
    if (hidden || other)
      fts_set(tree, e, FTS_SKIP);
    else
      status = take_entry(f, e, split, level);
  }
  fts_close(tree);
  return status;
}

/* Puts a share of each class into the test split: at least one picture, and not all of them. */
static void hold_back(folder *f) {
  const double share = *f->options->test_share;
  gt_rng rng = gt_rng_make(f->options->seed, GT_RNG_HELD_BACK, 0, 0);
  for (size_t from = 0, to; from < f->n; from = to) {
    for (to = from; to < f->n && f->pictures[to].class == f->pictures[from].class;) to++;
    const size_t all = to - from;
    size_t left = (size_t)fmin(fmax(1, floor(share * (double)all + 0.5)), (double)all - 1);
    for (size_t i = from; i < to && share > 0; i++) {
      if (gt_rng_below(&rng, to - i) >= left) continue;
      f->pictures[i].split = GT_SPLIT_TEST;
      left--;
    }
  }
}

static int by_split(const void *a, const void *b) {
  const picture *x = a, *y = b;
  return x->split != y->split ? (x->split > y->split ? 1 : -1) : strcmp(x->path, y->path);
}

static gt_status find_pictures(folder *f) {
  gt_status status = take_split(f, GT_SPLIT_TRAIN, 2);
  const bool has_train = f->found[GT_SPLIT_TRAIN];
  if (status == GT_OK && has_train && f->nothers > 0)
    gt_log(GT_LOG_WARN, "%s: %zu folders besides train and test are left out, such as %s",
           f->source, f->nothers, f->other);
  if (status == GT_OK)
    status = has_train ? take_split(f, GT_SPLIT_TEST, 2) : take_split(f, GT_SPLIT_TRAIN, 1);
  if (status == GT_OK && f->found[GT_SPLIT_TEST])
    status = gt_import_keeps_tests(f->source, f->options);
  else if (status == GT_OK)
    hold_back(f);
  if (status == GT_OK && f->names.n < (f->options->names ? 1 : 2))
    status = GT_FAIL(
        GT_ERR_DATA, "%s%s: has %zu folders of classes; expected two or more, as in %s/CLASS/x.png",
        f->source, has_train ? "/train" : "", f->names.n, has_train ? "train" : f->source);
  if (status == GT_OK) status = gt_class_names_check(&f->names, f->source);
  if (f->n > 0) qsort(f->pictures, f->n, sizeof *f->pictures, by_split);
  return status;
}

/* ---- their size ------------------------------------------------------------------------------ */

/* Leaves out a picture that cannot be read, and names the first ones; --strict refuses it. */
static gt_status leave_out(folder *f, picture *p) {
  if (f->options->strict) return GT_ERR_DATA;
  if (f->nleft_out++ < TOLD) gt_log(GT_LOG_WARN, "%s; it is left out", gt_error_text());
  gt_free(p->path);
  p->path = NULL;
  return GT_OK;
}

static void close_gaps(folder *f) {
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++)
    if (f->pictures[i].path) f->pictures[kept++] = f->pictures[i];
  f->n = kept;
}

static gt_status no_size(const folder *f, const char *path, const gt_picture_size *size) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: is %zu x %zu, and the pictures before it are %zu x %zu; give the size to "
                 "which all are scaled, as in --size 64",
                 path, size->h, size->w, f->h, f->w);
}

/* Reads all headers: one size without --size, and whether all are gray. */
static gt_status find_size(folder *f) {
  const bool given = f->options->height > 0;
  f->h = f->options->height;
  f->w = f->options->width;
  f->c = f->options->channels > 0 ? f->options->channels : 1;
  for (size_t i = 0; i < f->n; i++) {
    gt_picture_size size;
    gt_progress_of(i, f->n, "headers read");
    if (gt_picture_look(&size, f->pictures[i].path) != GT_OK) {
      GT_TRY(leave_out(f, &f->pictures[i]));
      continue;
    }
    if (!size.gray && f->options->channels == 0) f->c = 3;
    if (f->h == 0) f->h = size.h, f->w = size.w;
    if (!given && (size.h != f->h || size.w != f->w)) return no_size(f, f->pictures[i].path, &size);
  }
  close_gaps(f);
  return GT_OK;
}

/* Fails if classes have no picture for training. */
static gt_status check_classes(const folder *f) {
  size_t *n = GT_NEW_ARRAY(size_t, f->names.n), nempty = 0;
  const char *name = f->names.text, *first = NULL;
  for (size_t i = 0; i < f->n; i++)
    n[f->pictures[i].class] += f->pictures[i].split == GT_SPLIT_TRAIN;
  for (size_t k = 0; k < f->names.n; k++, name += strlen(name) + 1)
    if (n[k] == 0 && nempty++ == 0) first = name;
  gt_free(n);
  if (nempty == 0) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: %zu of %zu classes have no picture for training, such as `%.64s`; expected "
                 "PNG or JPEG files in the folder of each class",
                 f->source, nempty, f->names.n, first);
}

/* ---- samples --------------------------------------------------------------------------------- */

static size_t count_of(const folder *f, gt_split split) {
  size_t n = 0;
  for (size_t i = 0; i < f->n; i++) n += f->pictures[i].split == split;
  return n;
}

/* Decodes the pictures of a split in blocks.  Those that cannot be decoded are marked; then nothing
   more is written, because the file would have room for them. */
static gt_status write_split(folder *f, gt_split split, size_t begin, size_t n, uint8_t *block) {
  const size_t item = f->h * f->w * f->c, most = BLOCK / item > 0 ? BLOCK / item : 1;
  const size_t left_out = f->nleft_out;
  for (size_t first = 0; first < n; first += most) {
    const size_t count = n - first < most ? n - first : most;
    int32_t *labels = GT_NEW_ARRAY(int32_t, count);
    gt_status status = GT_OK;
    for (size_t i = 0; i < count && status == GT_OK; i++) {
      picture *p = &f->pictures[begin + first + i];
      gt_progress_of(begin + first + i, f->n, "pictures decoded");
      labels[i] = (int32_t)p->class;
      if (gt_picture_read(p->path, f->h, f->w, f->c, block + i * item) != GT_OK)
        status = leave_out(f, p);
    }
    if (status == GT_OK && f->nleft_out == left_out) {
      status = gt_data_store_samples(f->store, split, first, count, block);
      if (status == GT_OK) status = gt_data_store_labels(f->store, split, first, count, labels);
    }
    gt_free(labels);
    GT_TRY(status);
  }
  return GT_OK;
}

static gt_status write_file(folder *f, const char *out) {
  char name[64];
  const gt_data_shape shape = {.n = {count_of(f, GT_SPLIT_TRAIN), count_of(f, GT_SPLIT_TEST)},
                               .h = f->h,
                               .w = f->w,
                               .c = f->c,
                               .schema = f->options->names};
  const size_t item = f->h * f->w * f->c;
  for (int s = 0; s < 2; s++)
    if (shape.n[s] == 0 && (s == GT_SPLIT_TRAIN || *f->options->test_share > 0))
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has no picture for the %s split; expected files such as "
                     "%s/CLASS/x.png, or more pictures in a class",
                     f->source, gt_data_split_names[s], gt_data_split_names[s]);
  const size_t left_out = f->nleft_out;
  uint8_t *block = gt_alloc(BLOCK / item > 0 ? BLOCK / item : 1, item);
  gt_status status = gt_data_store_create(&f->store, out, &shape);
  if (status == GT_OK) status = write_split(f, GT_SPLIT_TRAIN, 0, shape.n[0], block);
  if (status == GT_OK) status = write_split(f, GT_SPLIT_TEST, shape.n[0], shape.n[1], block);
  gt_free(block);
  GT_TRY(status);
  if (f->nleft_out > left_out) { /* again, without them */
    gt_data_store_close(f->store);
    f->store = NULL;
    close_gaps(f);
    return write_file(f, out);
  }
  GT_TRY(gt_data_store_class_names(f->store, &f->names));
  gt_import_name(f->source, "pictures", name);
  return gt_data_store_finish(f->store, name, f->names.n);
}

gt_status gt_import_folder(const char *source, const char *out, const gt_import_options *options) {
  folder f = {.source = source, .options = options};
  gt_status status = find_pictures(&f);
  if (status == GT_OK && f.nignored > 0)
    gt_log(
        GT_LOG_WARN,
        "%s: %zu files are left out, such as %s; expected .png, .jpg or .jpeg in the folder of a "
        "class",
        source, f.nignored, f.ignored);
  if (status == GT_OK) status = find_size(&f);
  if (status == GT_OK && options->strict) status = check_classes(&f);
  if (status == GT_OK) status = write_file(&f, out);
  if (status == GT_OK && f.nleft_out > 0)
    gt_log(GT_LOG_WARN, "%zu of %zu pictures could not be read and are left out", f.nleft_out,
           f.n + f.nleft_out);
  if (status == GT_OK && check_classes(&f) != GT_OK) gt_log(GT_LOG_WARN, "%s", gt_error_text());
  gt_data_store_close(f.store);
  for (size_t i = 0; i < f.n; i++) gt_free(f.pictures[i].path);
  gt_free(f.pictures);
  gt_free(f.ignored);
  gt_free(f.other);
  gt_free(f.names.text);
  return status;
}
