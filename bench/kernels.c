/* Times the convolutions and linear layers of the models, one by one, with every algorithm that can
   compute them, and shows the algorithm chosen by measuring (as training does at its start) and
   that of the rule.  Usage: see `usage`.  Each line is a pass of a layer; the algorithms take
   turns, times are medians. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "peak.h"

static const char usage[] =
    "usage: kernels [--precision f32|bf16] [--turns N] [--only NAME]\n"
    "  Prints milliseconds of each way, and its share of the f32 multiply-add peak; then the\n"
    "  chosen way and that of the rule, each with `!` if it is 5 % slower than the best; and for\n"
    "  each model the seconds that choosing took.\n";

enum { TURNS_MAX = 99 };

/* A layer under test, with a layer object for each algorithm. */
typedef struct {
  const layer *l;
  gt_layer_spec spec;
  void *x, *y, *dx, *dy; /* of the precision (linear: float32) */
  float *w, *dw, *b, *db, *work;
  gt_prepared_context *context;
  gt_layer *algorithms[GT_ALGORITHMS];
} bench;

static const gt_kernels *automatic;

static void *random_values(size_t n, gt_precision precision) {
  gt_rng rng = gt_rng_make(n, GT_RNG_TEST, 0, 0);
  float *x = GT_NEW_ARRAY(float, n);
  for (size_t i = 0; i < n; i++) x[i] = (float)gt_rng_normal(&rng);
  if (precision == GT_F32) return x;
  gt_bf16 *y = GT_NEW_ARRAY(gt_bf16, n);
  gt_to_bf16(y, x, n);
  gt_free(x);
  return y;
}

/* The same as in the model's graph. */
static gt_layer_spec spec_of(const layer *l, gt_precision precision) {
  gt_layer_spec spec = {.linear = l->s.H == 0,
                        .conv = {.shape = l->s,
                                 .bias = l->bias,
                                 .needs_input_gradient = !l->first,
                                 .precision = precision}};
  gt_conv_shape *s = &spec.conv.shape;
  if (spec.linear) s->H = s->W = s->R = s->stride = 1;
  s->S = s->R;
  s->P = (s->H + 2 * s->pad - s->R) / s->stride + 1, s->Q = s->P;
  if (!spec.linear) spec.conv.out = precision;
  if (!spec.linear && !l->first) spec.conv.in = precision;
  return spec;
}

static bool can(const bench *b, gt_pass_id pass, int algorithm) {
  if (pass == GT_PASS_INPUT && b->l->first) return false;
  return gt_algorithm_can(&b->spec, b->l->batch, pass, (gt_algorithm)algorithm);
}

static void open_algorithms(bench *b) {
  size_t work = 0;
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
    gt_algorithm algorithms[GT_PASSES];
    bool any = false;
    for (int pass = 0; pass < GT_PASSES; pass++) {
      const bool has = can(b, (gt_pass_id)pass, algorithm);
      algorithms[pass] = has ? (gt_algorithm)algorithm : GT_ALGORITHM_BLAS;
      any = any || has;
    }
    if (!any) continue;
    b->algorithms[algorithm] = gt_layer_create(automatic, &b->context, &b->spec, algorithms);
    gt_layer_prepare(b->algorithms[algorithm], b->l->batch);
    const size_t needs = gt_layer_work(b->algorithms[algorithm], b->l->batch);
    if (needs > work) work = needs;
  }
  b->work = GT_NEW_ARRAY(float, work + 1);
}

static bench open_bench(const layer *l, gt_precision precision) {
  bench b = {.l = l, .spec = spec_of(l, precision)};
  const gt_conv_spec *c = &b.spec.conv;
  const gt_conv_shape *s = &c->shape;
  const size_t nx = l->batch * s->H * s->W * s->C, ny = l->batch * s->P * s->Q * s->K,
               nw = s->R * s->S * s->C * s->K;
  b.x = random_values(nx, c->in), b.dx = random_values(nx, c->in), b.y = random_values(ny, c->out),
  b.dy = random_values(ny, c->out);
  b.w = random_values(nw, GT_F32), b.dw = random_values(nw, GT_F32);
  b.b = l->bias ? random_values(s->K, GT_F32) : NULL,
  b.db = l->bias ? random_values(s->K, GT_F32) : NULL;
  open_algorithms(&b);
  return b;
}

static void close_bench(bench *b) {
  void *all[] = {b->x, b->y, b->dx, b->dy, b->w, b->dw, b->b, b->db, b->work};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) gt_free(all[i]);
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
    gt_layer_close(b->algorithms[algorithm]);
  if (b->context) automatic->prepared()->close(b->context);
}

static void run(bench *b, int algorithm, gt_pass_id pass) {
  const size_t N = b->l->batch;
  if (pass == GT_PASS_FORWARD)
    gt_layer_forward(b->algorithms[algorithm], b->y, b->x, b->w, b->b, N, b->work);
  if (pass == GT_PASS_INPUT)
    gt_layer_backward_input(b->algorithms[algorithm], b->dx, b->dy, b->w, N, b->work);
  if (pass == GT_PASS_WEIGHT)
    gt_layer_backward_weight(b->algorithms[algorithm], b->dw, b->db, b->dy, b->x, N, b->work);
}

/* ---- times ---- */

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Medians in ms, 0: the pass has no such algorithm.  A turn of an algorithm takes at least a
   millisecond, and the order varies. */
static void measure(bench *b, gt_pass_id pass, size_t turns, double *ms) {
  static double times[GT_ALGORITHMS][TURNS_MAX];
  for (size_t turn = 0; turn < turns; turn++)
    for (size_t i = 0; i < GT_ALGORITHMS; i++) {
      const int algorithm = (int)((i + turn) % GT_ALGORITHMS);
      if (algorithm == GT_ALGORITHM_RULE || !can(b, pass, algorithm)) continue;
      run(b, algorithm, pass);
      const gt_ns start = gt_now();
      size_t times_run = 0;
      do {
        run(b, algorithm, pass);
        times_run++;
      } while (gt_seconds(gt_now() - start) < 1e-3);
      times[algorithm][turn] = gt_seconds(gt_now() - start) * 1e3 / (double)times_run;
    }
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
    const bool has = algorithm != GT_ALGORITHM_RULE && can(b, pass, algorithm);
    if (has) qsort(times[algorithm], turns, sizeof **times, by_value);
    ms[algorithm] = has ? times[algorithm][turns / 2] : 0;
  }
}

static void report(bench *b, gt_pass_id pass, size_t turns, gt_algorithm chosen) {
  const gt_conv_shape *s = &b->spec.conv.shape;
  const double gflop = 2e-9 * (double)(b->l->batch * s->P * s->Q * s->K * s->R * s->S * s->C);
  const gt_algorithm rule = gt_layer_algorithm(b->algorithms[GT_ALGORITHM_RULE], b->l->batch, pass);
  double ms[GT_ALGORITHMS], best = 1e9;
  measure(b, pass, turns, ms);
  printf("%-29s %-7s %7.4f", b->l->name, gt_pass_name(pass), gflop);
  for (int algorithm = GT_ALGORITHM_RULE + 1; algorithm < GT_ALGORITHMS; algorithm++) {
    if (ms[algorithm] > 0 && ms[algorithm] < best) best = ms[algorithm];
    if (ms[algorithm] > 0)
      printf("  %9.4f %4.0f %%", ms[algorithm], 100 * gflop / ms[algorithm] * 1e3 / peak_gflops());
    else
      printf("  %9s %6s", "-", "");
  }
  printf("  %-10s %s  %-10s %s\n", gt_algorithm_name(chosen), ms[chosen] > 1.05 * best ? "!" : " ",
         gt_algorithm_name(rule), ms[rule] > 1.05 * best ? "!" : " ");
  fflush(stdout);
}

/* ---- models ---- */

/* The layers of a model are together in the list; their names begin with the model's name. */
static size_t model_end(size_t first) {
  const size_t n = sizeof layers / sizeof *layers, length = strcspn(layers[first].name, " ");
  size_t end = first;
  while (end < n && strncmp(layers[end].name, layers[first].name, length + 1) == 0) end++;
  return end;
}

static bool wanted(const layer *l, gt_precision precision, const char *only) {
  /* a convolution with a bias is float32 */
  return strstr(l->name, only) && (precision == GT_F32 || l->s.H == 0 || !l->bias);
}

static void model(size_t first, size_t end, gt_precision precision, size_t turns,
                  const char *only) {
  gt_choices choices = {0};
  for (size_t i = first; i < end; i++)
    if (wanted(&layers[i], precision, only)) {
      const gt_layer_spec spec = spec_of(&layers[i], precision);
      gt_choices_add(&choices, &spec, layers[i].batch);
    }
  if (choices.n > 0) gt_choices_measure(&choices, automatic);
  for (size_t i = first; i < end; i++) {
    if (!wanted(&layers[i], precision, only)) continue;
    bench b = open_bench(&layers[i], precision);
    const gt_choice *choice = gt_choices_find(&choices, &b.spec, b.l->batch);
    for (int pass = 0; pass < GT_PASSES; pass++)
      if (pass != GT_PASS_INPUT || !b.l->first)
        report(&b, (gt_pass_id)pass, turns, choice->algorithms[pass]);
    close_bench(&b);
  }
  if (choices.n > 0)
    printf("%.*s: choosing took %.2f s\n", (int)strcspn(layers[first].name, " "),
           layers[first].name, choices.seconds);
  gt_choices_close(&choices);
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"precision", 1, NULL, 'p'},
                                        {"turns", 1, NULL, 't'},
                                        {"only", 1, NULL, 'o'},
                                        {NULL, 0, NULL, 0}};
  gt_precision precision = GT_F32;
  const char *only = "", *why;
  size_t turns = 7;
  gt_isa_fit_blas(argv);
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (c == 'p') precision = strcmp(optarg, "bf16") == 0 ? GT_BF16 : GT_F32;
    if (c == 't') turns = (size_t)atol(optarg);
    if (c == 'o') only = optarg;
    if (c == '?') return fputs(usage, stderr), 2;
  }
  if (turns < 1 || turns > TURNS_MAX || optind != argc) return fputs(usage, stderr), 2;
  if (precision == GT_BF16 && !gt_kernels_bf16(&why))
    return fprintf(stderr, "kernels: %s\n", why), 2;
  automatic = gt_kernels_find("auto");
  char machine[256];
  gt_machine_key(machine, sizeof machine);
  printf("%s; peak %.1f GFLOP/s of f32 multiply-adds; %s\n", precision == GT_BF16 ? "bf16" : "f32",
         peak_gflops(), machine);
  printf("%-29s %-7s %7s", "layer", "pass", "GFLOP");
  for (int algorithm = GT_ALGORITHM_RULE + 1; algorithm < GT_ALGORITHMS; algorithm++)
    printf("  %9s %6s", gt_algorithm_name((gt_algorithm)algorithm), "");
  printf("  %-12s  %s\n", "chosen", "rule");
  for (size_t first = 0, end; first < sizeof layers / sizeof *layers; first = end) {
    end = model_end(first);
    model(first, end, precision, turns, only);
  }
  return 0;
}
