/* What geotrain makes of a model and one batch, for another program to make the same: a checkpoint
   and, as raw numbers, the batch, outputs and tensors after steps. Usage: export_steps
   MODEL[,untied|,large] RUN_DIR.  Writes into RUN_DIR: ckpt/1/east.h5; x, labels; `eval` and
   `train`: outputs; `sgd` and `momentum`: all tensors as PyTorch has them after one step without
   and two steps with momentum.  Rates are in export_torch.py, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "geotrain/ckpt.h"
#include "geotrain/nn.h"

#define LR       0.01
#define MOMENTUM 0.9
enum { BATCH = 8 };

/* Returns the shape of a model's samples; so few pixels that hardly any sum is so close to the kink
   of a ReLU that rounding decides the side. */
static gt_sample_shape shape_of(const char *model, bool large) {
  if (large) return (gt_sample_shape){20, 20, 3, 10, 0};
  if (strcmp(model, "resnet18") == 0) return (gt_sample_shape){8, 8, 3, 10, 0};
  if (strcmp(model, "deepfm") == 0) return (gt_sample_shape){1, 1, 10, 2, 517};
  if (strcmp(model, "lstm") == 0) return (gt_sample_shape){1, 1, 12, 2, 517};
  if (strncmp(model, "gpt", 3) == 0) return (gt_sample_shape){1, 1, 71, 117, 117};
  if (strcmp(model, "niser") == 0) return (gt_sample_shape){1, 1, 6, 200, 201};
  return (gt_sample_shape){28, 28, 1, 10, 0};
}

static void must(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "export_steps: %s: %s\n", what, gt_error_text());
  exit(1);
}

static void put(const char *dir, const char *name, const void *data, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *file = fopen(path, "wb");
  must(file && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0, path);
}

/* Writes all tensors concatenated, as they are exported. */
static void put_tensors(const char *dir, const char *name, const gt_graph *graph) {
  size_t n = 0;
  gt_view as;
  for (size_t i = 0; i < gt_graph_tensors(graph); i++) {
    gt_graph_tensor(graph, i, &as, NULL);
    n += as.count;
  }
  float *all = GT_NEW_ARRAY(float, n), *to = all;
  for (size_t i = 0; i < gt_graph_tensors(graph); i++) {
    gt_graph_tensor(graph, i, &as, to);
    to += as.count;
  }
  put(dir, name, all, n * sizeof *all);
  gt_free(all);
}

/* Makes all tensors non-constant, so that a swap of two would be detected. */
static void stir(const gt_arrays *arrays, gt_rng *rng) {
  for (size_t i = 0; i < arrays->params.n; i++)
    arrays->params.data[i] += 0.01F * (float)gt_rng_normal(rng);
  for (size_t i = 0; i < arrays->buffers.n; i++)
    arrays->buffers.data[i] += 0.2F * (float)gt_rng_uniform(rng);
}

static void checkpoint(const char *dir, const gt_graph *graph, const gt_sample_shape *shape,
                       const char *model, const char *option) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  char job[256];
  gt_ckpt_info info = {
      .job_name = "steps", .region = "east", .round = 1, .step = 3, .job_yaml = job};
  gt_ckpt_writer *writer;
  gt_state state = {0};
  gt_status result = GT_OK;
  snprintf(info.model, sizeof info.model, "%s", model);
  gt_graph_hash(graph, info.model_hash);
  const size_t shapes[4] = {shape->h, shape->w, shape->c, shape->classes};
  for (int i = 0; i < 4; i++) info.shape[i] = (int64_t)shapes[i];
  info.features = (int64_t)shape->features;
  snprintf(job, sizeof job,
           "name: steps\nmodel: {name: %s%s}\ndata: {path: none.h5}\ntrain: {until: {steps: 3}, "
           "optimizer: {name: sgd, lr: 0.01}}\n"
           "regions: [{name: east, ranks: 2}]\n",
           model, option);
  gt_state_add(&state, "", "model/params", GT_TYPE_F32, arrays->params.data, arrays->params.n);
  if (arrays->buffers.n > 0)
    gt_state_add(&state, "", "model/buffers", GT_TYPE_F32, arrays->buffers.data, arrays->buffers.n);
  must(gt_ckpt_writer_create(&writer, dir, "east") == GT_OK, "the checkpoint's writer");
  must(gt_ckpt_write(writer, &info, &state) == GT_OK, "the checkpoint");
  while (gt_ckpt_poll(writer, &result) != GT_CKPT_DONE) usleep(1000);
  must(result == GT_OK, "the checkpoint");
  gt_ckpt_writer_close(writer);
  gt_state_close(&state);
}

/* Writes the tensors after so many steps on the same batch. */
static void train(gt_graph *graph, const void *x, const int32_t *labels, double momentum,
                  int steps) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  const gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD,
                             .schedule = {.kind = GT_LR_CONSTANT, .lr = LR},
                             .momentum = momentum};
  gt_optim *optim;
  gt_metrics metrics;
  must(gt_optim_create(&optim, &sgd, arrays->params.n, true) == GT_OK, "the optimizer");
  for (int i = 0; i < steps; i++) {
    gt_graph_step(graph, x, labels, BATCH, true, &metrics);
    gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
  }
  gt_optim_close(optim);
}

static void dump(const char *dir, gt_graph *graph, const void *x, const int32_t *labels) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  const size_t np = arrays->params.n, nb = arrays->buffers.n,
               scores =
                   BATCH * gt_graph_predictions(graph) * gt_graph_outputs(graph) * sizeof(float);
  float *params = GT_NEW_ARRAY(float, np), *buffers = GT_NEW_ARRAY(float, nb);
  gt_metrics metrics;
  memcpy(params, arrays->params.data, np * sizeof *params);
  memcpy(buffers, arrays->buffers.data, nb * sizeof *buffers);
  gt_graph_step(graph, x, labels, BATCH, false, &metrics);
  put(dir, "eval", gt_graph_scores(graph), scores);
  train(graph, x, labels, 0, 1);
  /* A model that predicts the next id keeps no outputs in training. */
  if (gt_graph_predictions(graph) == 1) put(dir, "train", gt_graph_scores(graph), scores);
  put_tensors(dir, "sgd", graph);
  memcpy(arrays->params.data, params, np * sizeof *params);
  memcpy(arrays->buffers.data, buffers, nb * sizeof *buffers);
  train(graph, x, labels, MOMENTUM, 2);
  put_tensors(dir, "momentum", graph);
  gt_free(buffers);
  gt_free(params);
}

/* Makes texts of several lengths: sample i begins after i ids of padding; the last is padding
   only. */
static void pad(int32_t *ids, size_t length) {
  for (size_t i = 0; i < BATCH; i++)
    for (size_t t = 0; t < length && (t < i || i + 1 == BATCH); t++) ids[i * length + t] = 0;
}

/* Makes sessions of several lengths with repeated items; those of the last samples are empty. */
static void repeat(int32_t *ids, size_t length) {
  for (size_t i = 0; i < BATCH; i++)
    for (size_t t = 0; t < length; t++)
      ids[i * length + t] = t < i ? 0 : 1 + (int32_t)(20 * i) + ids[i * length + t] % 3;
}

int main(int argc, char **argv) {
  must(argc == 3, "usage: export_steps MODEL[,untied|,large] RUN_DIR");
  char *comma = strchr(argv[1], ',');
  const bool large = comma && strcmp(comma, ",large") == 0, untied = comma && !large;
  if (comma) *comma = '\0';
  const gt_sample_shape shape = shape_of(argv[1], large);
  const size_t values = shape.h * shape.w * shape.c;
  const gt_graph_spec spec = {
      .model = argv[1],
      .options = {.untied = untied, .stem = large ? GT_STEM_LARGE : GT_STEM_AUTO},
      .shape = shape,
      .batch_max = BATCH,
      .kernels = gt_kernels_find("auto")};
  float *x = GT_NEW_ARRAY(float, BATCH *values);
  int32_t *ids = (int32_t *)(void *)x, labels[BATCH];
  gt_rng rng = gt_rng_make(4, GT_RNG_TEST, 0, 0);
  gt_graph *graph;
  must(gt_graph_create(&graph, &spec) == GT_OK, "the model");
  gt_graph_init(graph, 1);
  stir(gt_graph_arrays(graph), &rng);
  for (size_t i = 0; i < BATCH * values; i++) {
    if (shape.features)
      ids[i] = (int32_t)gt_rng_below(&rng, shape.features);
    else
      x[i] = (float)gt_rng_normal(&rng);
  }
  if (strcmp(argv[1], "lstm") == 0) pad(ids, values);
  if (strcmp(argv[1], "niser") == 0) repeat(ids, values);
  for (size_t i = 0; i < BATCH; i++) labels[i] = (int32_t)gt_rng_below(&rng, shape.classes);
  checkpoint(argv[2], graph, &shape, argv[1],
             large    ? ", stem: large"
             : untied ? ", untied: true"
                      : "");
  put(argv[2], "x", x, BATCH * values * sizeof *x);
  put(argv[2], "labels", labels, sizeof labels);
  dump(argv[2], graph, x, labels);
  gt_graph_close(graph);
  gt_free(x);
  return 0;
}
