/* Measures how fast codecs encode and decode the gradient of a model on one core, in bytes of
   float32 read (encode) or covered (decode) per second, beside memcpy in the same run; powersgd
   also beside the matrix products that it consists of.  Usage: codec [MODEL [ROUNDS]]; GEOTRAIN_ISA
   selects the instruction set.  Codecs take turns; times are medians. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/codec.h"
#include "geotrain/nn.h"

typedef struct {
  const char *name;
  gt_codec_kind kind;
  gt_codec_spec spec;
} entry;

static const entry entries[] = {
    {"bf16", GT_CODEC_BF16, {.decay = 1.0F}},
    {"fp16", GT_CODEC_FP16, {.decay = 1.0F}},
    {"int8", GT_CODEC_INT8, {.decay = 1.0F}},
    {"int8 random", GT_CODEC_INT8, {.decay = 1.0F, .stochastic = true}},
    {"e3m0", GT_CODEC_E3M0, {.decay = 1.0F}},
    {"e3m0 random", GT_CODEC_E3M0, {.decay = 1.0F, .stochastic = true}},
    {"topk 2 bits", GT_CODEC_TOPK, {.decay = 0.95F, .density = 1.0 / 64, .bits = 2}},
    {"topk 8 bits", GT_CODEC_TOPK, {.decay = 0.95F, .density = 1.0 / 64, .bits = 8}},
    {"mask", GT_CODEC_MASK, {.decay = 1.0F, .density = 1.0 / 64}},
    {"powersgd 4", GT_CODEC_POWERSGD, {.decay = 1.0F, .rank = 4}},
    {"dgc", GT_CODEC_DGC, {.decay = 0.9F, .density = 0.001}}};
enum { ENTRIES = sizeof entries / sizeof *entries, ROUNDS_MAX = 99 };

/* Seconds of: encoding, with feedback, decoding; and of powersgd's products. */
enum { PLAIN, FEEDBACK, DECODE, PRODUCTS, MEASURED };

static double times[ENTRIES + 1][MEASURED][ROUNDS_MAX];

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *t, size_t n) {
  qsort(t, n, sizeof *t, by_value);
  return t[n / 2];
}

static double since(gt_ns start) {
  return (double)(gt_now() - start) * 1e-9;
}

/* One message of all steps. */
static size_t encode(gt_codec *codec, const entry *e, uint64_t round, const float *x, float *r,
                     unsigned char *payload, size_t *last, double *seconds) {
  size_t bytes = 0;
  *seconds = 0.0;
  const size_t steps = gt_codec_facts_of(e->kind).steps;
  for (size_t step = 0; step < steps; step++) {
    const gt_codec_turn turn = {.round = round, .step = step};
    const gt_ns start = gt_now();
    const size_t found = gt_codec_encode(codec, &turn, x, r, payload);
    *seconds += since(start);
    bytes += found, *last = found;
    if (step + 1 < steps) gt_codec_agree(codec, &turn, payload, 1.0F);
  }
  return bytes;
}

/* The two products of powersgd and a copy of each factor, by OpenBLAS alone. */
static double products(const gt_arrays *arrays, const float *x, size_t rank, float *work) {
  const gt_ns start = gt_now();
  for (size_t i = 0; i < arrays->nviews; i++) {
    const gt_view *v = &arrays->views[i];
    const size_t cols = v->ndims > 1 ? v->shape[v->ndims - 1] : 1, rows = v->count / cols;
    if (v->count < GT_CODEC_DENSE || 2 * rank * (rows + cols) > v->count) continue;
    gt_gemm(false, false, rows, rank, cols, x + v->offset, work, 0.0F, work + cols * rank);
    gt_gemm(true, false, cols, rank, rows, x + v->offset, work + cols * rank, 0.0F, work);
  }
  return since(start);
}

int main(int argc, char **argv) {
  const char *model = argc > 1 ? argv[1] : "resnet18";
  const size_t rounds = argc > 2 ? (size_t)atoi(argv[2]) : 15;
  const gt_model *found = gt_model_find(model);
  gt_graph *graph;
  if (!found || rounds < 1 || rounds > ROUNDS_MAX) {
    fprintf(stderr, "usage: codec [MODEL [ROUNDS up to %d]]\n", ROUNDS_MAX);
    return 2;
  }
  const gt_graph_spec spec = {.model = model,
                              .shape = found->usual,
                              .batch = 1,
                              .batch_max = 1,
                              .kernels = gt_kernels_find("blas")};
  if (gt_graph_create(&graph, &spec) != GT_OK) {
    fprintf(stderr, "%s\n", gt_error_text());
    return 1;
  }
  const gt_arrays *arrays = gt_graph_arrays(graph);
  const size_t n = arrays->params.n;
  float *x = GT_NEW_ARRAY(float, n), *y = GT_NEW_ARRAY(float, n), *r[ENTRIES];
  gt_codec *codecs[ENTRIES];
  size_t bytes[ENTRIES] = {0}, most = n * sizeof(float); /* of a payload, or of the products */
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < n; i++) x[i] = (float)gt_rng_normal(&rng);
  for (size_t e = 0; e < ENTRIES; e++) {
    r[e] = GT_NEW_ARRAY(float, n *gt_codec_facts_of(entries[e].kind).residuals);
    if (gt_codec_open(&codecs[e], entries[e].kind, &entries[e].spec, arrays->views,
                      arrays->nviews) != GT_OK) {
      fprintf(stderr, "%s\n", gt_error_text());
      return 1;
    }
    for (size_t step = 0; step < gt_codec_facts_of(entries[e].kind).steps; step++)
      if (gt_codec_bound(codecs[e], &(gt_codec_turn){.step = step}) > most)
        most = gt_codec_bound(codecs[e], &(gt_codec_turn){.step = step});
  }
  unsigned char *payload = GT_NEW_ARRAY(unsigned char, most);
  for (size_t round = 0; round < rounds; round++) {
    gt_ns start = gt_now();
    memcpy(y, x, n * sizeof *x);
    times[ENTRIES][PLAIN][round] = since(start);
    for (size_t e = 0; e < ENTRIES; e++) {
      const entry *of = &entries[e];
      size_t last = 0;
      const bool own = gt_codec_facts_of(of->kind).residuals > 1;
      if (!own)
        (void)encode(codecs[e], of, round, x, NULL, payload, &last, &times[e][PLAIN][round]);
      bytes[e] = encode(codecs[e], of, round, x, r[e], payload, &last, &times[e][FEEDBACK][round]);
      const gt_codec_turn turn = {.round = round, .step = gt_codec_facts_of(of->kind).steps - 1};
      start = gt_now();
      if (gt_codec_check(codecs[e], &turn, payload, last) != GT_OK) gt_bug("%s", gt_error_text());
      gt_codec_add(codecs[e], &turn, payload, 1e-3F, y);
      times[e][DECODE][round] = since(start);
      if (of->kind == GT_CODEC_POWERSGD)
        times[e][PRODUCTS][round] = products(arrays, x, of->spec.rank, (float *)(void *)payload);
    }
  }
  const double size = (double)(gt_codec_values(codecs[0]) * sizeof(float)),
               copy = median(times[ENTRIES][PLAIN], rounds);
  printf("%s: %zu values, %s, memcpy %.2f GB/s (bytes read)\n", model, n,
         gt_isa_name(gt_isa_used()), size / copy * 1e-9);
  printf("%-12s  %9s  %7s  %15s  %15s  %15s\n", "codec", "bytes", "smaller", "encode GB/s",
         "with feedback", "decode");
  for (size_t e = 0; e < ENTRIES; e++) {
    printf("%-12s  %9zu  %6.1fx", entries[e].name, bytes[e], size / (double)bytes[e]);
    for (int m = PLAIN; m <= DECODE; m++) {
      const double t = median(times[e][m], rounds);
      if (t > 0.0)
        printf("  %6.2f (%.3f)", size / t * 1e-9, copy / t);
      else
        printf("  %14s", "-");
    }
    if (times[e][PRODUCTS][0] > 0.0)
      printf("  %.2f of its products' rate",
             median(times[e][PRODUCTS], rounds) / median(times[e][PLAIN], rounds));
    printf("\n");
    gt_codec_close(codecs[e]);
    gt_free(r[e]);
  }
  gt_free(payload), gt_free(y), gt_free(x);
  gt_graph_close(graph);
  return 0;
}
