/* Convolutions and linear layers of the models, one by one: every way they could be computed, so that the rules of kernels_auto.c and of dnn/conv.c can be checked.
   Usage: see `usage`.  A line is a pass of a layer; ways take turns, times are medians. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn/dnn.h"
#include "layers.h"
#include "peak.h"

static const char usage[] =
    "usage: kernels [--precision f32|bf16] [--turns N] [--only NAME]\n"
    "  auto: as by rule (how: in brackets); dnn: as the table dnn has it, where that is another; own: oneDNN's convolution; gemm: columns and "
    "oneDNN's product;\n"
    "  blas: columns and OpenBLAS's.  Milliseconds, and the share of the f32 multiply-add peak; `!` where auto is 5 % behind the best.\n";

enum { FORWARD, INPUT, WEIGHT, PASSES };
enum { AUTO, DNN, OWN, GEMM, BLAS, WAYS, TURNS_MAX = 99 };
static const char *const pass_names[] = {"forward", "input", "weight"}, *const way_names[] = {"auto", "dnn", "own", "gemm", "blas"};

/* A layer under test: values in float32 and in the precision, prepared kernels, products. */
typedef struct {
  const layer *l;
  gt_conv_shape s;
  gt_precision precision;
  bool linear;
  void *x, *y, *dx, *dy; /* of the precision (linear: float32) */
  float *x32, *y32, *dx32, *dy32, *w, *dw, *b, *db, *work, *image;
  void *columns;
  float *dcolumns;
  gt_prepared_context *context;
  gt_prepared_conv *conv, *own;
  gt_prepared_linear *fc;
  gt_dnn_stage products[PASSES];
  const gt_kernels *by_rule;
  bool prepared_by_rule;
} bench;

static const gt_prepared_ops *ops;

static float *random_floats(size_t n) {
  gt_rng rng = gt_rng_make(n, GT_RNG_TEST, 0, 0);
  float *x = GT_NEW_ARRAY(float, n);
  for (size_t i = 0; i < n; i++) x[i] = (float)gt_rng_normal(&rng);
  return x;
}

static void *in_precision(const bench *b, float *x, size_t n) {
  if (b->precision == GT_F32 || b->linear) return x;
  gt_bf16 *y = GT_NEW_ARRAY(gt_bf16, n);
  gt_to_bf16(y, x, n);
  return y;
}

static void open_products(bench *b) {
  const gt_conv_shape *s = &b->s;
  const size_t rows = b->l->batch * s->P * s->Q, taps = s->R * s->S * s->C;
  const bool half = b->precision == GT_BF16;
  const gt_dnn_product products[PASSES] = {{.m = rows, .n = s->K, .k = taps, .packed = half, .type = b->precision, .out = b->precision},
                                           {.m = rows, .n = taps, .k = s->K, .tb = true, .packed = half, .type = b->precision, .out = GT_F32},
                                           {.m = taps, .n = s->K, .k = rows, .ta = true, .type = b->precision, .out = GT_F32}};
  for (int p = 0; p < PASSES; p++) gt_dnn_product_open(b->context, &b->products[p], &products[p]);
  b->columns = GT_NEW_ARRAY(float, rows *taps);
  b->dcolumns = GT_NEW_ARRAY(float, rows *taps);
  b->image = GT_NEW_ARRAY(float, s->H * s->W * s->C);
}

static void open_kernels(bench *b) {
  const size_t N = b->l->batch;
  b->by_rule = gt_kernels_find("auto");
  b->context = ops->create();
  if (b->linear) {
    b->prepared_by_rule = b->by_rule->prepares_linear(b->s.C, b->s.K, b->precision);
    b->fc = ops->linear_create(b->context, b->s.C, b->s.K, b->precision);
    ops->linear_prepare(b->fc, N);
    return;
  }
  gt_conv_spec spec = {
      .shape = b->s, .bias = b->l->bias, .needs_input_gradient = true, .in = b->precision, .out = b->precision, .precision = b->precision};
  b->prepared_by_rule = b->by_rule->prepares_conv(&spec);
  b->conv = ops->conv_create(b->context, &spec);
  spec.bias = true; /* then there is no product */
  b->own = ops->conv_create(b->context, &spec);
  ops->conv_prepare(b->conv, N);
  ops->conv_prepare(b->own, N);
  open_products(b);
}

static bench open_bench(const layer *l, gt_precision precision) {
  bench b = {.l = l, .s = l->s, .precision = precision, .linear = l->s.H == 0};
  gt_conv_shape *s = &b.s;
  if (b.linear) s->H = s->W = s->R = s->stride = 1;
  s->S = s->R;
  s->P = (s->H + 2 * s->pad - s->R) / s->stride + 1, s->Q = s->P;
  const size_t N = l->batch, nx = N * s->H * s->W * s->C, ny = N * s->P * s->Q * s->K, nw = s->R * s->S * s->C * s->K;
  b.x32 = random_floats(nx), b.dx32 = random_floats(nx), b.y32 = random_floats(ny), b.dy32 = random_floats(ny);
  b.w = random_floats(nw), b.dw = random_floats(nw), b.b = random_floats(s->K), b.db = random_floats(s->K);
  b.x = in_precision(&b, b.x32, nx), b.dx = in_precision(&b, b.dx32, nx), b.y = in_precision(&b, b.y32, ny), b.dy = in_precision(&b, b.dy32, ny);
  const size_t work = gt_kernels_find("blas")->conv_work(s, N), more = gt_kernels_find("auto")->conv_work(s, N);
  b.work = GT_NEW_ARRAY(float, work > more ? work : more);
  open_kernels(&b);
  return b;
}

static void close_bench(bench *b) {
  float *floats[] = {b->x32, b->y32, b->dx32, b->dy32, b->w, b->dw, b->b, b->db, b->work, b->image, b->columns, b->dcolumns};
  if (b->x != b->x32) gt_free(b->x), gt_free(b->y), gt_free(b->dx), gt_free(b->dy);
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) gt_free(floats[i]);
  for (int p = 0; p < PASSES; p++) gt_dnn_stage_close(&b->products[p]);
  ops->conv_close(b->own), ops->conv_close(b->conv);
  ops->linear_close(b->fc);
  ops->close(b->context);
}

/* ---- ways ---- */

static void run_table(bench *b, const gt_kernels *k, int pass) {
  const gt_conv_shape *s = &b->s;
  const size_t N = b->l->batch;
  const float *bias = b->l->bias ? b->b : NULL;
  float *db = b->l->bias ? b->db : NULL;
  if (b->linear && pass == FORWARD) k->linear_forward(b->y32, b->x32, b->w, bias, N, s->C, s->K);
  if (b->linear && pass == INPUT) k->linear_backward_input(b->dx32, b->dy32, b->w, N, s->C, s->K);
  if (b->linear && pass == WEIGHT) k->linear_backward_weight(b->dw, db, b->dy32, b->x32, N, s->C, s->K);
  if (!b->linear && pass == FORWARD) k->conv_forward(b->y32, b->x32, b->w, bias, s, N, b->work);
  if (!b->linear && pass == INPUT) k->conv_backward_input(b->dx32, b->dy32, b->w, s, N, b->work);
  if (!b->linear && pass == WEIGHT) k->conv_backward_weight(b->dw, db, b->dy32, b->x32, s, N, b->work);
}

static void run_prepared(bench *b, gt_prepared_conv *conv, int pass) {
  const size_t N = b->l->batch;
  if (b->linear && pass == FORWARD) ops->linear_forward(b->fc, b->y32, b->x32, b->w, b->b, N);
  if (b->linear && pass == INPUT) ops->linear_backward_input(b->fc, b->dx32, b->dy32, b->w, N);
  if (b->linear && pass == WEIGHT) ops->linear_backward_weight(b->fc, b->dw, b->db, b->dy32, b->x32, N);
  if (!b->linear && pass == FORWARD) ops->conv_forward(conv, b->y, b->x, b->w, b->b, N);
  if (!b->linear && pass == INPUT) ops->conv_backward_input(conv, b->dx, b->dy, b->w, N);
  if (!b->linear && pass == WEIGHT) ops->conv_backward_weight(conv, b->dw, b->db, b->dy, b->x, N);
}

static void unfold(bench *b) {
  const gt_conv_shape *s = &b->s;
  const size_t size = gt_precision_bytes(b->precision), image = s->H * s->W * s->C * size, unfolded = s->P * s->Q * s->R * s->S * s->C * size;
  for (size_t n = 0; n < b->l->batch; n++) gt_im2col((char *)b->columns + n * unfolded, (const char *)b->x + n * image, s, size);
}

static void fold(bench *b) {
  const gt_conv_shape *s = &b->s;
  const size_t image = s->H * s->W * s->C, unfolded = s->P * s->Q * s->R * s->S * s->C;
  for (size_t n = 0; n < b->l->batch; n++) {
    gt_col2im(b->precision == GT_F32 ? (float *)b->dx + n * image : b->image, b->dcolumns + n * unfolded, s);
    if (b->precision == GT_BF16) gt_to_bf16((gt_bf16 *)b->dx + n * image, b->image, image);
  }
}

static void run_product(bench *b, int pass) {
  if (pass != INPUT) unfold(b);
  if (pass == FORWARD) gt_dnn_product_run(b->context, &b->products[pass], b->y, b->columns, b->w, NULL);
  if (pass == INPUT) gt_dnn_product_run(b->context, &b->products[pass], b->dcolumns, b->dy, b->w, NULL), fold(b);
  if (pass == WEIGHT) gt_dnn_product_run(b->context, &b->products[pass], b->dw, b->columns, b->dy, NULL);
}

static bool has(const bench *b, int way) {
  if (way == BLAS) return b->precision == GT_F32;
  if (way == DNN) return !b->prepared_by_rule; /* else it is what auto is */
  return way == AUTO || (!b->linear && !b->l->bias);
}

static void run(bench *b, int way, int pass) {
  if (way == BLAS || (way == AUTO && !b->prepared_by_rule))
    run_table(b, way == BLAS ? gt_kernels_find("blas") : b->by_rule, pass);
  else if (way == GEMM)
    run_product(b, pass);
  else
    run_prepared(b, way == OWN ? b->own : b->conv, pass);
}

/* ---- times ---- */

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Medians in ms; a turn of a way lasts a millisecond at least, and none is always the first. */
static void measure(bench *b, int pass, size_t turns, double *ms) {
  static double times[WAYS][TURNS_MAX];
  for (size_t turn = 0; turn < turns; turn++)
    for (size_t i = 0; i < WAYS; i++) {
      const int way = (int)((i + turn) % WAYS);
      if (!has(b, way)) continue;
      run(b, way, pass);
      const gt_ns start = gt_now();
      size_t times_run = 0;
      do {
        run(b, way, pass);
        times_run++;
      } while (gt_seconds(gt_now() - start) < 1e-3);
      times[way][turn] = gt_seconds(gt_now() - start) * 1e3 / (double)times_run;
    }
  for (int way = 0; way < WAYS; way++) {
    qsort(times[way], turns, sizeof **times, by_value);
    ms[way] = has(b, way) ? times[way][turns / 2] : 0;
  }
}

static void report(bench *b, int pass, size_t turns) {
  const gt_conv_shape *s = &b->s;
  const double gflop = 2e-9 * (double)(b->l->batch * s->P * s->Q * s->K * s->R * s->S * s->C);
  double ms[WAYS], best = 1e9;
  measure(b, pass, turns, ms);
  printf("%-29s %-7s %7.4f", b->l->name, pass_names[pass], gflop);
  for (int way = 0; way < WAYS; way++) {
    if (ms[way] > 0 && ms[way] < best) best = ms[way];
    if (ms[way] > 0)
      printf("  %9.4f %4.0f %%", ms[way], 100 * gflop / ms[way] * 1e3 / peak_gflops());
    else
      printf("  %9s %6s", "-", "");
  }
  const char *family = !b->prepared_by_rule ? b->by_rule->family(b->linear ? "linear" : "conv", s) : b->linear ? "dnn" : ops->conv_family(b->conv);
  printf(" %s [%s]\n", ms[AUTO] > 1.05 * best ? "!" : " ", family);
  fflush(stdout);
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"precision", 1, NULL, 'p'}, {"turns", 1, NULL, 't'}, {"only", 1, NULL, 'o'}, {NULL, 0, NULL, 0}};
  gt_precision precision = GT_F32;
  const char *only = "", *why;
  size_t turns = 7;
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (c == 'p') precision = strcmp(optarg, "bf16") == 0 ? GT_BF16 : GT_F32;
    if (c == 't') turns = (size_t)atol(optarg);
    if (c == 'o') only = optarg;
    if (c == '?') return fputs(usage, stderr), 2;
  }
  if (turns < 1 || turns > TURNS_MAX || optind != argc) return fputs(usage, stderr), 2;
  if (precision == GT_BF16 && !gt_kernels_bf16(&why)) return fprintf(stderr, "kernels: %s\n", why), 2;
  ops = gt_kernels_find("dnn")->prepared();
  printf("%s, %s; peak %.1f GFLOP/s of f32 multiply-adds; OpenBLAS %s, oneDNN %s\n", precision == GT_BF16 ? "bf16" : "f32",
         gt_isa_name(gt_isa_used()), peak_gflops(), gt_kernels_blas_core(), gt_kernels_dnn_version());
  printf("%-29s %-7s %7s", "layer", "pass", "GFLOP");
  for (int way = 0; way < WAYS; way++) printf("  %9s %6s", way_names[way], "");
  puts("");
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    const bool convolution = layers[i].s.H > 0;
    if (!strstr(layers[i].name, only) || (precision == GT_BF16 && convolution && layers[i].bias)) continue; /* a bias: float32 */
    bench b = open_bench(&layers[i], precision);
    for (int pass = 0; pass < PASSES; pass++) report(&b, pass, turns);
    close_bench(&b);
  }
  return 0;
}
