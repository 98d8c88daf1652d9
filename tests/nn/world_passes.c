#include "world_passes.h"

const char *const w_pass_tables[3] = {"ref", "auto", "dnn"};

const w_bench w_benches[W_BENCHES] = {
    {.model = "gpt",
     .shape = {1, 1, 8, 23, 23},
     .options = {.layers = 2, .width = 12, .heads = 2, .context = 9},
     .batch = W_BATCH,
     .cuts = {"transformer.h.0.attn.sum", "transformer.h.0.mlp.sum", "transformer.h.1.mlp.sum",
              "transformer.ln_f"}},
    {.model = "gpt",
     .shape = {1, 1, 8, 23, 23},
     .options = {.layers = 2, .width = 12, .heads = 2, .context = 9, .untied = true},
     .batch = W_BATCH,
     .cuts = {"transformer.h.0.mlp.sum", "transformer.h.1.attn.sum"}},
    {.model = "lenet5",
     .shape = {12, 14, 1, 3, 0},
     .batch = W_BATCH,
     .cuts = {"pool1", "relu1", "conv2", "relu3", "fc2"}},
    {.model = "lstm",
     .shape = {1, 1, 6, 3, 19},
     .options = {.embedding = 5, .hidden = 7},
     .batch = W_BATCH,
     .sessions = true,
     .cuts = {"embedding", "lstm"}},
    {.model = "deepfm",
     .shape = {1, 1, 4, 2, 17},
     .options = {.embedding = 3, .mlp = (const int64_t[]){6, 5}, .nmlp = 2},
     .batch = W_BATCH,
     .cuts = {"embedding"}},
    {.model = "niser",
     .shape = {1, 1, 6, 14, 15},
     .options = {.hidden = 7},
     .batch = W_BATCH,
     .sessions = true,
     .cuts = {"readout", "linear_transform", "session"}},
    {.model = "dummy",
     .shape = {2, 2, 1, 3, 0},
     .options = {.parameters = 400},
     .batch = W_BATCH,
     .cuts = {"fc"}},
    {.model = "resnet18",
     .shape = {8, 8, 3, 4, 0},
     .batch = W_BATCH,
     .large = true,
     .cuts = {"conv1", "bn1", "layer2.0.bn2", "layer3.1.bn2", "avgpool"}},
};

gt_graph_spec w_spec_of(const w_bench *b, const char *table, gt_precision precision) {
  return (gt_graph_spec){.model = b->model,
                         .options = b->options,
                         .shape = b->shape,
                         .batch_max = b->batch,
                         .kernels = gt_kernels_find(table),
                         .precision = precision};
}

static void fill_samples(const w_bench *b, gt_rng *rng, void *samples, size_t count) {
  const size_t size = b->shape.h * b->shape.w * b->shape.c;
  for (size_t i = 0; i < count; i++) {
    const size_t padding = b->sessions ? gt_rng_below(rng, size + 1) : 0;
    for (size_t k = 0; k < size; k++)
      if (b->shape.features == 0)
        ((float *)samples)[i * size + k] = (float)gt_rng_normal(rng);
      else
        ((int32_t *)samples)[i * size + k] =
            k < padding
                ? GT_PADDING
                : (int32_t)(b->sessions + gt_rng_below(rng, b->shape.features - b->sessions));
  }
}

void w_draw(const w_bench *b, gt_rng *rng, w_micros *d, size_t m, size_t least) {
  d->m = m;
  for (size_t j = 0; j < m; j++) {
    const size_t n = least + gt_rng_below(rng, b->batch - least + 1);
    fill_samples(b, rng, d->samples[j], n);
    for (size_t i = 0; i < n; i++) d->labels[j][i] = (int32_t)gt_rng_below(rng, b->shape.classes);
    d->micro_batches[j] = (gt_micro_batch){d->samples[j], d->labels[j], n};
  }
}

w_micros w_open_data(const w_bench *b) {
  w_micros d = {.m = 0};
  for (size_t j = 0; j < W_MICROS; j++)
    d.samples[j] = GT_NEW_ARRAY(float, b->batch * b->shape.h * b->shape.w * b->shape.c);
  return d;
}

void w_close_data(w_micros *d) {
  for (size_t j = 0; j < W_MICROS; j++) gt_free(d->samples[j]);
}

void w_judge_step(gt_graph *judge, const w_micros *d, gt_metrics *metrics) {
  for (size_t j = 0; j < d->m; j++) {
    gt_graph_forward(judge, 0, 0, &d->micro_batches[j], true, &metrics[j]);
    gt_graph_backward(judge, 0, 0, &d->micro_batches[j], j == 0);
  }
  gt_graph_gradients_end(judge);
}
