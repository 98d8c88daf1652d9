/* Winograd's convolution (winograd.c) with oneDNN's products: a batch of 16 products, in float32 or
   bf16.  Transforms are computed in float32; then tiles and weights are rounded.  Sums are
   float32. */
#include "winograd.h"

#include <string.h>

#include "conv.h"
#include "loops.h"

enum { PLACES = GT_WINOGRAD_PLACES };

/* Returns the stage of a full group of tiles, or of a smaller last group (rest). */
static gt_dnn_stage *stage_of(gt_conv_prepared *p, gt_pass_id pass, bool rest) {
  if (rest) return &p->rest[pass];
  return pass == GT_PASS_FORWARD ? &p->forward : pass == GT_PASS_INPUT ? &p->input : &p->weight;
}

/* Returns the rows of a group.  bf16 products sum pairs: an odd number of tiles gets a tile of
   zeros. */
static size_t rows_of(const gt_prepared_conv *c, size_t count) {
  return c->spec.precision == GT_BF16 ? (count + 1) / 2 * 2 : count;
}

static void open_stage(gt_prepared_conv *c, gt_dnn_stage *stage, const gt_tiles *g, gt_pass_id pass,
                       size_t count) {
  const gt_precision type = c->spec.precision;
  gt_dnn_product product = {.places = PLACES,
                            .m = count,
                            .n = g->K,
                            .k = g->C,
                            .tb = pass == GT_PASS_INPUT,
                            .packed = true,
                            .type = type,
                            .out = GT_F32};
  if (pass == GT_PASS_WEIGHT)
    product = (gt_dnn_product){.places = PLACES,
                               .m = g->C,
                               .n = g->K,
                               .k = rows_of(c, count),
                               .ta = true,
                               .add = true,
                               .type = type,
                               .out = GT_F32};
  gt_dnn_product_open(c->dnn, stage, &product);
}

void gt_conv_open_winograd(gt_prepared_conv *c, gt_conv_prepared *p, gt_pass_id pass) {
  const gt_tiles g = gt_winograd_tiles(&c->spec.shape, p->N, pass == GT_PASS_INPUT);
  const size_t rest = g.all % g.group, tiles = PLACES * (g.group + 1);
  open_stage(c, stage_of(p, pass, false), &g, pass, g.group);
  if (rest) open_stage(c, stage_of(p, pass, true), &g, pass, rest);
  gt_dnn_reserve(c->dnn, GT_DNN_WEIGHTS, PLACES * g.C * g.K * sizeof(float));
  gt_dnn_reserve(c->dnn, GT_DNN_TILES, tiles * g.C * sizeof(float));
  gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, tiles * g.K * sizeof(float));
}

void gt_conv_winograd(gt_prepared_conv *c, gt_conv_prepared *p, bool back, void *y, const void *x,
                      const float *w, const float *b) {
  const gt_winograd_loops *loops = gt_loops()->winograd;
  const gt_precision type = c->spec.precision;
  const gt_pass_id pass = back ? GT_PASS_INPUT : GT_PASS_FORWARD;
  gt_tiles g = gt_winograd_tiles(&c->spec.shape, p->N, back);
  float *u = c->dnn->areas[GT_DNN_WEIGHTS], *m = c->dnn->areas[GT_DNN_COLUMNS];
  void *v = c->dnn->areas[GT_DNN_TILES];
  loops->weights(u, w, g.C * g.K, back);
  for (size_t first = 0; first < g.all; first += g.group) {
    const bool rest = g.all - first < g.group;
    g.stride = rest ? g.all - first : g.group;
    loops->input(v, x, type, &g, first, g.stride);
    /* Weights are packed once, and again for a smaller last group, whose product can need another
       layout. */
    gt_dnn_product_run(c->dnn, stage_of(p, pass, rest), m, v, first == 0 || rest ? u : NULL, NULL);
    loops->output(y, m, b, type, &g, first, g.stride);
  }
}

/* Clears the tile that pads an odd number. */
static void clear_last(void *tiles, size_t stride, size_t channels, size_t size) {
  for (size_t i = 0; i < PLACES; i++)
    memset((char *)tiles + ((i * stride + stride - 1) * channels) * size, 0, channels * size);
}

void gt_conv_winograd_weight(gt_prepared_conv *c, gt_conv_prepared *p, float *dw, const void *dy,
                             const void *x) {
  const gt_winograd_loops *loops = gt_loops()->winograd;
  const gt_precision type = c->spec.precision;
  gt_tiles g = gt_winograd_tiles(&c->spec.shape, p->N, false);
  float *u = c->dnn->areas[GT_DNN_WEIGHTS];
  void *v = c->dnn->areas[GT_DNN_TILES], *z = c->dnn->areas[GT_DNN_COLUMNS];
  memset(u, 0, PLACES * g.C * g.K * sizeof *u);
  for (size_t first = 0; first < g.all; first += g.group) {
    const bool rest = g.all - first < g.group;
    const size_t count = rest ? g.all - first : g.group;
    g.stride = rows_of(c, count);
    loops->input(v, x, type, &g, first, count);
    loops->gradient(z, dy, type, &g, first, count);
    if (g.stride > count) {
      clear_last(v, g.stride, g.C, gt_precision_bytes(type));
      clear_last(z, g.stride, g.K, gt_precision_bytes(type));
    }
    gt_dnn_product_run(c->dnn, stage_of(p, GT_PASS_WEIGHT, rest), u, v, z, NULL);
  }
  loops->weight_gradient(dw, u, g.C * g.K);
}
