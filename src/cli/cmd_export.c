/* geotrain export: writes a checkpoint's model for PyTorch, as safetensors with PyTorch's names and
   layouts. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_model.h"
#include "geotrain/tensor.h"
#include "options.h"

/* ---- safetensors (https://huggingface.co/docs/safetensors) ----------------------------------- */

/* A file: the length of the header in 8 bytes, the header in JSON with the position of every
   tensor, padded with spaces to 8 bytes, then the tensors one after another, all little-endian. */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are written as they lie in memory");

enum { ALIGNMENT = 8 };

typedef enum { SAFETENSOR_F32, SAFETENSOR_I64 } safetensor_type;

/* One tensor, row-major; data borrowed. */
typedef struct {
  char name[96];
  safetensor_type type;
  int ndims; /* 0: a scalar */
  size_t shape[GT_MAX_DIMS];
  const void *data;
} safetensor;

/* An entry of the file's metadata. */
typedef struct {
  const char *key, *value;
} safetensor_note;

static size_t bytes_of(const safetensor *t) {
  size_t bytes = t->type == SAFETENSOR_I64 ? sizeof(int64_t) : sizeof(float);
  for (int d = 0; d < t->ndims; d++) bytes *= t->shape[d];
  return bytes;
}

/* Returns {"dtype": "F32", "shape": [6, 1, 5, 5], "data_offsets": [0, 600]}. */
static json_t *entry(const safetensor *t, size_t at) {
  const size_t end = at + bytes_of(t);
  json_t *shape = json_array();
  for (int d = 0; d < t->ndims; d++)
    json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", t->type == SAFETENSOR_I64 ? "I64" : "F32",
                   "shape", shape, "data_offsets", (json_int_t)at, (json_int_t)end);
}

/* Returns the header as text; the caller frees it with free(). */
static char *header(const safetensor *tensors, size_t n, const safetensor_note *notes,
                    size_t nnotes) {
  json_t *root = json_object(), *metadata = json_object();
  size_t at = 0;
  for (size_t i = 0; i < nnotes; i++)
    json_object_set_new(metadata, notes[i].key, json_string(notes[i].value));
  json_object_set_new(root, "__metadata__", metadata);
  for (size_t i = 0; i < n; i++) {
    json_object_set_new(root, tensors[i].name, entry(&tensors[i], at));
    at += bytes_of(&tensors[i]);
  }
  char *text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
  json_decref(root);
  return text;
}

static bool put(FILE *file, const void *data, size_t bytes) {
  return fwrite(data, 1, bytes, file) == bytes;
}

static bool put_all(FILE *file, const char *text, const safetensor *tensors, size_t n) {
  const size_t used = strlen(text), padding = (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT;
  const uint64_t length = used + padding;
  bool ok =
      put(file, &length, sizeof length) && put(file, text, used) && put(file, "        ", padding);
  for (size_t i = 0; ok && i < n; i++) ok = put(file, tensors[i].data, bytes_of(&tensors[i]));
  return ok && fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* Writes the file under its temporary name and renames it. */
static gt_status publish(const char *path, const char *text, const safetensor *tensors, size_t n) {
  char temporary[4096];
  const int fd = gt_temporary_create(temporary, sizeof temporary, path);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (!file) return GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", path, strerror(errno));
  bool ok = put_all(file, text, tensors, n);
  int reason = errno;
  if (fclose(file) != 0 && ok) ok = false, reason = errno;
  if (ok && rename(temporary, path) != 0) ok = false, reason = errno;
  if (!ok) {
    unlink(temporary);
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", path, strerror(reason));
  }
  if (!gt_name_sync(path))
    return GT_FAIL(GT_ERR_DATA, "%s: its folder cannot be made durable (%s)", path,
                   strerror(errno));
  return GT_OK;
}

/* Writes the file atomically: a reader sees either the whole file or the previous one.  Tensors are
   stored in the given order; those with elements of 8 bytes must come first, so that all are
   aligned.  GT_ERR_DATA with the path and the system's reason; nothing of the new file remains in
   that case. */
static gt_status write_safetensors(const char *path, const safetensor *tensors, size_t n,
                                   const safetensor_note *notes, size_t nnotes) {
  char *text = header(tensors, n, notes, nnotes);
  if (!text) gt_bug("jansson made no header for %s", path);
  const gt_status status = publish(path, text, tensors, n);
  free(text);
  return status;
}

/* True if a file begins like a safetensors file: the length of its header, then the header. */
static bool is_safetensors(const char *path) {
  uint64_t length;
  char first = 0;
  FILE *file = fopen(path, "rbe");
  const bool read =
      file && fread(&length, sizeof length, 1, file) == 1 && fread(&first, 1, 1, file) == 1;
  struct stat at;
  const bool fits =
      read && fstat(fileno(file), &at) == 0 && length <= (uint64_t)at.st_size - sizeof length;
  if (file) fclose(file);
  return fits && first == '{';
}

/* ---- the model as tensors -------------------------------------------------------------------- */

#define RUNNING_VAR ".running_var"
#define USAGE       "usage: geotrain export CHECKPOINT|RUN_DIR [REGION] OUT.safetensors [--force]"

/* The tensors of a file and their memory. */
typedef struct {
  safetensor *tensors;
  size_t n;
  float *values;
  int64_t steps;
} exported;

static void add(exported *e, const gt_view *as, safetensor_type type, const void *data) {
  safetensor *t = &e->tensors[e->n++];
  *t = (safetensor){.type = type, .ndims = as->ndims, .data = data};
  snprintf(t->name, sizeof t->name, "%s", as->name);
  for (int d = 0; d < as->ndims; d++) t->shape[d] = as->shape[d];
}

/* PyTorch's normalisation layers count their batches: one per step. */
static void add_counts(exported *e, const gt_graph *graph) {
  for (size_t i = 0; i < gt_graph_tensors(graph); i++) {
    gt_view as;
    gt_graph_tensor(graph, i, &as, NULL);
    char *end = strstr(as.name, RUNNING_VAR);
    if (!end) continue;
    snprintf(end, sizeof as.name - (size_t)(end - as.name), ".num_batches_tracked");
    as.ndims = 0;
    add(e, &as, SAFETENSOR_I64, &e->steps);
  }
}

static void add_values(exported *e, const gt_graph *graph) {
  float *to = e->values;
  for (size_t i = 0; i < gt_graph_tensors(graph); i++) {
    gt_view as;
    gt_graph_tensor(graph, i, &as, to);
    add(e, &as, SAFETENSOR_F32, to);
    to += as.count;
  }
}

/* Returns "0.49139968 0.48215827 0.44653124": nine digits represent a float32 exactly. */
static char *list_of(const float *values, size_t n) {
  char *text = gt_alloc(n, 24);
  for (size_t i = 0, at = 0; i < n; i++)
    at += (size_t)snprintf(text + at, n * 24 - at, "%s%.9g", i > 0 ? " " : "", (double)values[i]);
  return text;
}

/* Counts the values of all tensors; a tensor with two names counts twice. */
static size_t count_values(const gt_graph *graph) {
  size_t n = 0;
  gt_view as;
  for (size_t i = 0; i < gt_graph_tensors(graph); i++) {
    gt_graph_tensor(graph, i, &as, NULL);
    n += as.count;
  }
  return n;
}

/* Removes the notes without a text; returns the number of those left. */
static size_t keep_known(safetensor_note *notes, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    if (notes[i].value) notes[kept++] = notes[i];
  return kept;
}

static gt_status write_model(const char *path, const gt_graph *graph, const gt_ckpt_info *info,
                             const char *mean, const char *std) {
  const size_t values = count_values(graph), number = gt_graph_heads(graph);
  exported e = {.tensors = GT_NEW_ARRAY(safetensor, 2 * gt_graph_tensors(graph)),
                .values = GT_NEW_ARRAY(float, values),
                .steps = info->step};
  char step[32], round[32], heads[32];
  snprintf(step, sizeof step, "%lld", (long long)info->step);
  snprintf(round, sizeof round, "%lld", (long long)info->round);
  snprintf(heads, sizeof heads, "%zu", number);
  safetensor_note notes[] = {{"format", "pt"},
                             {"model", info->model},
                             {"job", info->job_name},
                             {"region", info->region},
                             {"round", round},
                             {"step", step},
                             {"geotrain", GT_VERSION},
                             {"mean", mean},
                             {"std", std},
                             {"heads", number ? heads : NULL}};
  add_counts(&e, graph);
  add_values(&e, graph);
  const gt_status status = write_safetensors(path, e.tensors, e.n, notes,
                                             keep_known(notes, sizeof notes / sizeof *notes));
  if (status == GT_OK)
    printf("%s: %zu tensors, %zu numbers of %s at step %lld\n", path, e.n, values, info->model,
           (long long)info->step);
  gt_free(e.values);
  gt_free(e.tensors);
  return status;
}

static gt_status export(const char *path, const gt_ckpt_info *info, const gt_state *state,
                        const char *to) {
  gt_sample_shape shape;
  gt_graph *graph;
  GT_TRY(gt_cli_checkpoint_shape(path, info, &shape));
  GT_TRY(gt_cli_checkpoint_model(&graph, path, info, state, &shape, 0));
  const float *mean, *std;
  bool said;
  gt_status status = gt_cli_checkpoint_norm(path, state, shape.c, &said, &mean, &std);
  /* Users of the model need the normalisation of training: (x / 255 - mean[c]) / std[c]. */
  char *means = status == GT_OK && said ? list_of(mean, shape.c) : NULL,
       *stds = means ? list_of(std, shape.c) : NULL;
  if (status == GT_OK) status = write_model(to, graph, info, means, stds);
  gt_free(stds);
  gt_free(means);
  gt_graph_close(graph);
  return status;
}

const struct option gt_options_export[] = {{"force", no_argument, NULL, 'f'}, {0}};

gt_status gt_cmd_export(int argc, char **argv) {
  char path[4096];
  gt_ckpt_info info;
  gt_state state;
  opterr = 0;
  bool force = false;
  for (int o; (o = getopt_long(argc, argv, "", gt_options_export, NULL)) != -1;) {
    if (o != 'f')
      return GT_FAIL(GT_ERR_JOB, "export: unknown option '%s'; " USAGE, gt_option_word(argc, argv));
    force = true;
  }
  const int given = argc - optind;
  if (given != 2 && given != 3)
    return GT_FAIL(GT_ERR_JOB, "export: %d files are given; " USAGE, given);
  const char *to = argv[argc - 1];
  GT_TRY(gt_cli_run_model(path, sizeof path, argv[optind], given == 3 ? argv[optind + 1] : NULL));
  GT_TRY(gt_output_may_replace(to, path, force ? NULL : "safetensors", is_safetensors));
  GT_TRY(gt_ckpt_read(path, &info, &state));
  const gt_status status = export(path, &info, &state, to);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status;
}
