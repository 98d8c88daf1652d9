/* geotrain predict: class names and probabilities of pictures, or of the rows of tables, by the
   model of a run or a checkpoint. */
#include "cli.h"

#include <errno.h>
#include <fts.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_model.h"
#include "evaluate.h"
#include "geotrain/data.h"
#include "geotrain/data_picture.h"
#include "options.h"

#define BATCH ((size_t)16)
#define BLOCK ((size_t)1 << 16) /* rows of a table at a time */

typedef struct {
  gt_cli_model model;
  const float *mean, *std;      /* of the samples of training; NULL: they are ids */
  const gt_state_item *columns; /* of the tables of training; NULL: pictures */
  gt_class_names class_names;
  const char **names; /* of the classes, in class_names */
  /* n samples, in the order of the rows: pictures, or rows of the table paths[0] */
  char **paths;
  size_t n, room;
  float *x;             /* (n,item) of a table; int32_t if the model takes ids */
  size_t *lines;        /* (n) of a table */
  bool *good;           /* (n) of a table */
  pthread_mutex_t lock; /* protects the fields below, and standard output */
  pthread_cond_t turn;
  size_t printed, all, unread; /* batches of these n; all samples; those that could not be read */
} prediction;

/* ---- the model ------------------------------------------------------------------------------- */

/* The classes have the names of the file, or their numbers if it has none. */
static gt_status name_classes(prediction *p) {
  const size_t n = p->model.shape.classes;
  GT_TRY(gt_cli_model_class_names(&p->model, &p->class_names));
  for (size_t k = 0; p->class_names.n < n; k++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", k);
    gt_class_names_add(&p->class_names, number);
  }
  p->names = GT_NEW_ARRAY(const char *, n);
  const char *at = p->class_names.text;
  for (size_t k = 0; k < n; k++, at += strlen(at) + 1) p->names[k] = at;
  return GT_OK;
}

static gt_status open_model(prediction *p, const char *named) {
  gt_cli_model *m = &p->model;
  bool said;
  GT_TRY(gt_cli_model_open(m, named, NULL));
  const gt_sample_shape *s = &m->shape;
  GT_TRY(gt_cli_checkpoint_norm(m->path, &m->state, s->c, &said, &p->mean, &p->std));
  p->columns = gt_state_find(&m->state, "data/", "columns");
  if (p->columns && p->columns->type != GT_TYPE_U8) p->columns = NULL;
  m->batch = BATCH;
  const bool pictures = said && (s->c == 1 || s->c == 3) && s->h * s->w > 1;
  if (!p->columns && (s->features > 0 || !pictures))
    return GT_FAIL(
        GT_ERR_CKPT,
        "%s: its model, %s, was trained neither on pictures nor on a table of `geotrain "
        "data import csv`: samples have %zu x %zu x %zu %s; expected 1 or 3 channels and "
        "data/mean, or data/columns",
        m->path, m->info.model, s->h, s->w, s->c, s->features > 0 ? "ids" : "values");
  return name_classes(p);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a file, or the pictures of a folder and its subfolders in the order of their paths, as an
   import does; hidden ones are left out. */
static gt_status add_pictures(prediction *p, const char *named) {
  char *roots[] = {(char *)(uintptr_t)named, NULL};
  FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
  const size_t first = p->n;
  gt_status status = GT_OK;
  for (FTSENT *e; status == GT_OK && tree && (e = fts_read(tree));) {
    const bool root = e->fts_level == FTS_ROOTLEVEL;
    if (!root && e->fts_name[0] == '.') {
      fts_set(tree, e, FTS_SKIP);
    } else if ((e->fts_info == FTS_F || e->fts_info == FTS_SLNONE) &&
               (root || gt_picture_is(e->fts_name))) {
      GT_GROW(p->paths, p->n, p->room, 1024);
      p->paths[p->n++] = gt_strdup(e->fts_path);
    } else if (e->fts_info == FTS_SLNONE) {
      status = GT_FAIL(GT_ERR_DATA, "%s: cannot be read (a link to nothing)", e->fts_path);
    } else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
      status = GT_FAIL(GT_ERR_DATA, "%s: cannot be read (%s)", e->fts_path, strerror(e->fts_errno));
    }
  }
  if (tree) fts_close(tree);
  if (status == GT_OK && p->n == first)
    status = GT_FAIL(GT_ERR_DATA, "%s: has no pictures; expected files .png, .jpg or .jpeg", named);
  if (p->n > first) qsort((void *)(p->paths + first), p->n - first, sizeof *p->paths, by_text);
  return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Writes the probabilities of the classes; a model of two classes can have one logit, that of the
   second. */
static void to_probabilities(const float *logits, size_t outputs, size_t classes, double *out) {
  double sum = 0, largest = outputs < classes ? 0 : -INFINITY;
  for (size_t k = 0; k < outputs; k++) largest = fmax(largest, logits[k]);
  for (size_t k = 0; k < classes; k++) {
    const size_t unsaid = classes - outputs;
    sum += out[k] = exp((k < unsaid ? 0 : logits[k - unsaid]) - largest);
  }
  for (size_t k = 0; k < classes; k++) out[k] /= sum;
}

static void print_row(const prediction *p, const char *name, const double *probabilities) {
  const size_t n = p->model.shape.classes;
  size_t best = 0;
  gt_csv_text(stdout, name);
  for (size_t k = 1; probabilities && k < n; k++)
    if (probabilities[k] > probabilities[best]) best = k;
  putchar(',');
  if (probabilities) {
    gt_csv_text(stdout, p->names[best]);
    printf(",%.6g", probabilities[best]);
  } else
    putchar(',');
  for (size_t k = 0; k < n; k++)
    if (probabilities)
      printf(",%.6g", probabilities[k]);
    else
      putchar(',');
  putchar('\n');
}

/* Prints the rows of a batch when those of all earlier batches are printed. */
static void print_batch(prediction *p, size_t number, size_t n, const bool *read,
                        const double *probabilities) {
  const size_t first = number * BATCH;
  pthread_mutex_lock(&p->lock);
  while (p->printed < number) pthread_cond_wait(&p->turn, &p->lock);
  for (size_t i = 0; i < n; i++) {
    char row[4128];
    const char *name = p->columns ? row : p->paths[first + i];
    if (p->columns) snprintf(row, sizeof row, "%s:%zu", p->paths[0], p->lines[first + i]);
    p->unread += !read[i];
    print_row(p, name, read[i] ? probabilities + i * p->model.shape.classes : NULL);
  }
  p->printed++;
  pthread_cond_broadcast(&p->turn);
  pthread_mutex_unlock(&p->lock);
}

/* Reads a picture as the model's input. */
static bool read_picture(const prediction *p, const char *path, float *x) {
  const gt_sample_shape *s = &p->model.shape;
  uint8_t *bytes = gt_alloc(s->h * s->w, s->c);
  const bool read = gt_picture_read(path, s->h, s->w, s->c, bytes) == GT_OK;
  if (!read) gt_log(GT_LOG_WARN, "%s", gt_error_text());
  gt_data_scale(x, bytes, s->h * s->w, s->c, p->mean, p->std);
  gt_free(bytes);
  return read;
}

static void predict_batch(void *context, gt_graph *graph, size_t number) {
  prediction *p = context;
  const gt_sample_shape *s = &p->model.shape;
  const size_t first = number * BATCH, left = p->n - first, n = left < BATCH ? left : BATCH,
               item = s->h * s->w * s->c, outputs = gt_graph_outputs(graph);
  const int32_t labels[BATCH] = {0};
  bool read[BATCH];
  gt_metrics ignored;
  float *x = p->columns ? p->x + first * item : GT_NEW_ARRAY(float, n *item);
  double *probabilities = GT_NEW_ARRAY(double, n * s->classes);
  for (size_t i = 0; i < n; i++)
    read[i] = p->columns ? p->good[first + i] : read_picture(p, p->paths[first + i], x + i * item);
  gt_graph_step(graph, x, labels, n, false, &ignored);
  for (size_t i = 0; i < n; i++)
    to_probabilities(gt_graph_scores(graph) + i * outputs, outputs, s->classes,
                     probabilities + i * s->classes);
  print_batch(p, number, n, read, probabilities);
  gt_free(probabilities);
  if (!p->columns) gt_free(x);
}

/* Predicts the n samples. */
static gt_status predict(prediction *p, size_t threads) {
  const gt_cli_batches all = {.make = gt_cli_model_graph,
                              .ctx = &p->model,
                              .batch = predict_batch,
                              .of = p,
                              .n = (p->n + BATCH - 1) / BATCH,
                              .threads = threads};
  p->printed = 0;
  p->all += p->n;
  return p->n > 0 ? gt_cli_compute(&all) : GT_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Reads up to BLOCK rows.  *more false: the table has ended, or cannot be read further. */
static gt_status read_rows(prediction *p, gt_rows *rows, bool *more) {
  const size_t width = gt_rows_width(rows);
  gt_status status = GT_OK;
  *more = true;
  for (p->n = 0; p->n < BLOCK && *more;) {
    float *x = p->x + p->n * width;
    status = gt_rows_next(rows, x, more);
    if (!*more) break;
    p->good[p->n] = status == GT_OK;
    if (status != GT_OK) gt_log(GT_LOG_WARN, "%s", gt_error_text());
    if (p->mean) gt_data_scale_rows(x, 1, width, p->mean, p->std);
    p->lines[p->n++] = gt_rows_line(rows);
  }
  return *more ? GT_OK : status;
}

static gt_status predict_rows(prediction *p, gt_rows *rows, size_t threads) {
  const size_t width = gt_rows_width(rows);
  if (width != p->model.shape.c || p->model.shape.h * p->model.shape.w != 1)
    return GT_FAIL(GT_ERR_CKPT, "%s: its data/columns make %zu values, and its model takes %zu",
                   p->model.path, width, p->model.shape.c);
  gt_status status = GT_OK;
  p->x = GT_NEW_ARRAY(float, BLOCK *width);
  p->lines = GT_NEW_ARRAY(size_t, BLOCK);
  p->good = GT_NEW_ARRAY(bool, BLOCK);
  for (bool more = true; more && status == GT_OK;) {
    const gt_status read = read_rows(p, rows, &more);
    status = predict(p, threads);
    if (status == GT_OK) status = read;
  }
  gt_free(p->good);
  gt_free(p->lines);
  gt_free(p->x);
  return status;
}

static gt_status predict_table(prediction *p, char *path, size_t threads) {
  gt_rows *rows;
  char *paths[] = {path};
  p->paths = paths;
  gt_status status = gt_rows_open(&rows, path, p->columns->data, p->columns->count,
                                  p->model.shape.features > 0, p->model.path);
  if (status == GT_OK) status = predict_rows(p, rows, threads);
  gt_rows_close(rows);
  p->paths = NULL;
  p->n = 0;
  return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print_header(const prediction *p) {
  printf("\"%s\",\"class\",\"probability\"", p->columns ? "row" : "file");
  for (size_t k = 0; k < p->model.shape.classes; k++) {
    putchar(',');
    gt_csv_text(stdout, p->names[k]);
  }
  putchar('\n');
}

/* Predicts the samples of the files, which end with NULL. */
static gt_status predict_all(prediction *p, char **files, size_t threads) {
  gt_status status = GT_OK;
  for (char **file = files; *file && !p->columns && status == GT_OK; file++)
    status = add_pictures(p, *file);
  if (status != GT_OK) return status;
  threads = gt_cli_threads_choose(threads, p->columns ? SIZE_MAX : (p->n + BATCH - 1) / BATCH);
  print_header(p);
  if (!p->columns) status = predict(p, threads);
  for (; *files && p->columns && status == GT_OK; files++)
    status = predict_table(p, *files, threads);
  if (status != GT_OK || p->unread == 0) return status;
  return GT_FAIL(GT_ERR_DATA, "%zu of %zu %s could not be read; their rows have no class",
                 p->unread, p->all, p->columns ? "rows" : "pictures");
}

const struct option gt_options_predict[] = {{"threads", required_argument, NULL, 't'}, {0}};

gt_status gt_cmd_predict(int argc, char **argv) {
  prediction p = {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};
  size_t threads = 0;
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "", gt_options_predict, NULL)) != -1;) {
    if (option != 't') return gt_option_refused(argc, argv, "predict");
    GT_TRY(gt_cli_threads_read(&threads, "predict", optarg));
  }
  if (argc - optind < 2)
    return GT_FAIL(GT_ERR_JOB,
                   "predict: expected a model, then pictures, folders or tables, as in `geotrain "
                   "predict RUN_DIR pictures`; found %d names",
                   argc - optind);
  gt_status status = open_model(&p, argv[optind]);
  if (status == GT_OK) status = predict_all(&p, argv + optind + 1, threads);
  for (size_t i = 0; i < p.n; i++) gt_free(p.paths[i]);
  gt_free((void *)p.paths);
  gt_free((void *)p.names);
  gt_free(p.class_names.text);
  gt_cli_model_close(&p.model);
  return status;
}
