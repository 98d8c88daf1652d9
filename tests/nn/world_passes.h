/* Models divided into spans, and steps of micro-batches, for the tests of passes. */
#pragma once

#include "cases.h"
#include "world.h"

enum { SPANS = 6, W_MICROS = 6, W_BATCH = 4, W_BENCHES = 8 };

/* Tables of kernels; those that the build lacks are left out. */
extern const char *const w_pass_tables[3];

/* A model, and the operations after which it is divided. */
typedef struct {
  const char *model;
  gt_sample_shape shape;
  gt_model_options options;
  size_t batch; /* samples of a micro-batch, at most */
  bool sessions;
  bool large; /* tried less often */
  const char *cuts[SPANS];
} w_bench;

extern const w_bench w_benches[W_BENCHES];

gt_graph_spec w_spec_of(const w_bench *b, const char *table, gt_precision precision);

typedef struct {
  void *samples[W_MICROS];
  int32_t labels[W_MICROS][W_BATCH];
  gt_micro_batch micro_batches[W_MICROS];
  size_t m;
} w_micros;

w_micros w_open_data(const w_bench *b);
void w_close_data(w_micros *d);
/* Makes m micro-batches of `least` to b->batch samples. */
void w_draw(const w_bench *b, gt_rng *rng, w_micros *d, size_t m, size_t least);
/* Processes one micro-batch after the other with the whole model. */
void w_judge_step(gt_graph *judge, const w_micros *d, gt_metrics *metrics);
