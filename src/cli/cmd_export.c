/* geotrain export: writes a checkpoint's model for PyTorch, as safetensors with PyTorch's names and
   layouts. */
#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_model.h"
#include "geotrain/ckpt_safetensors.h"
#include "geotrain/tensor.h"
#include "options.h"

#define RUNNING_VAR ".running_var"
#define USAGE       "usage: geotrain export CHECKPOINT|RUN_DIR [REGION] OUT.safetensors [--force]"

/* The tensors of a file and their memory. */
typedef struct {
  gt_safetensor *tensors;
  size_t n;
  float *values;
  int64_t steps;
} exported;

static void add(exported *e, const gt_view *as, gt_safetensor_type type, const void *data) {
  gt_safetensor *t = &e->tensors[e->n++];
  *t = (gt_safetensor){.type = type, .ndims = as->ndims, .data = data};
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
    add(e, &as, GT_SAFETENSOR_I64, &e->steps);
  }
}

static void add_values(exported *e, const gt_graph *graph) {
  float *to = e->values;
  for (size_t i = 0; i < gt_graph_tensors(graph); i++) {
    gt_view as;
    gt_graph_tensor(graph, i, &as, to);
    add(e, &as, GT_SAFETENSOR_F32, to);
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
static size_t keep_known(gt_safetensor_note *notes, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    if (notes[i].value) notes[kept++] = notes[i];
  return kept;
}

static gt_status write_model(const char *path, const gt_graph *graph, const gt_ckpt_info *info,
                             const char *mean, const char *std) {
  const size_t values = count_values(graph), number = gt_graph_heads(graph);
  exported e = {.tensors = GT_NEW_ARRAY(gt_safetensor, 2 * gt_graph_tensors(graph)),
                .values = GT_NEW_ARRAY(float, values),
                .steps = info->step};
  char step[32], round[32], heads[32];
  snprintf(step, sizeof step, "%lld", (long long)info->step);
  snprintf(round, sizeof round, "%lld", (long long)info->round);
  snprintf(heads, sizeof heads, "%zu", number);
  gt_safetensor_note notes[] = {{"format", "pt"},
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
  const gt_status status = gt_safetensors_write(path, e.tensors, e.n, notes,
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
  GT_TRY(gt_output_may_replace(to, path, force ? NULL : "safetensors", gt_is_safetensors));
  GT_TRY(gt_ckpt_read(path, &info, &state));
  const gt_status status = export(path, &info, &state, to);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status;
}
