/* Measures the time of a training step (forward, backward, SGD with momentum) of a model on this
   machine, and the peak of multiply-adds in the same run.  Usage: see `usage`; step.py does the
   same with PyTorch. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "geotrain/nn.h"
#include "measured.h"
#include "peak.h"

static const char usage[] =
    "usage: step [--model M] [--size N] [--batch N] [--rounds N] [--kernels auto|dnn|blas|ref]\n"
    "            [--precision f32|bf16] [--choices measure|rule] [--brief]\n"
    "  --size: images have N x N pixels; default: the model's usual ones.\n"
    "  Prints one line: median ms, least ms.  Without --brief also samples/s, GFLOP/s, share of\n"
    "  the peak, and memory.  Threads: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS (default: 1).\n";

typedef struct {
  const char *model, *kernels;
  size_t batch, rounds, size; /* size: 0: the usual one */
  gt_precision precision;
  bool brief, measured; /* measured: algorithms of the products, as training does */
} options;

static gt_sample_shape shape_of(const options *o) {
  const gt_model *found = gt_model_find(o->model);
  gt_sample_shape shape = found ? found->usual : (gt_sample_shape){0};
  if (o->size > 0) shape.h = shape.w = o->size;
  return shape;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Random images, or ids, and labels. */
static void fill(void *x, int32_t *labels, size_t n, const gt_sample_shape *shape) {
  const size_t values = shape->h * shape->w * shape->c;
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < n * values; i++) {
    if (shape->features)
      ((int32_t *)x)[i] = (int32_t)gt_rng_below(&rng, shape->features);
    else
      ((float *)x)[i] = (float)gt_rng_normal(&rng);
  }
  for (size_t i = 0; i < n; i++) labels[i] = (int32_t)gt_rng_below(&rng, shape->classes);
}

static int parse(int argc, char **argv, options *o) {
  static const struct option known[] = {
      {"model", 1, NULL, 'm'},   {"batch", 1, NULL, 'b'},     {"rounds", 1, NULL, 'r'},
      {"kernels", 1, NULL, 'k'}, {"precision", 1, NULL, 'p'}, {"choices", 1, NULL, 'c'},
      {"brief", 0, NULL, 's'},   {"size", 1, NULL, 'x'},      {NULL, 0, NULL, 0}};
  *o = (options){.model = "lenet5", .kernels = "auto", .batch = 64, .rounds = 50, .measured = true};
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) switch (c) {
    case 'm':
      o->model = optarg;
      break;
    case 'b':
      o->batch = (size_t)atol(optarg);
      break;
    case 'r':
      o->rounds = (size_t)atol(optarg);
      break;
    case 'k':
      o->kernels = optarg;
      break;
    case 'p':
      o->precision = strcmp(optarg, "bf16") == 0 ? GT_BF16 : GT_F32;
      break;
    case 'c':
      o->measured = strcmp(optarg, "rule") != 0;
      break;
    case 's':
      o->brief = true;
      break;
    case 'x':
      o->size = (size_t)atol(optarg);
      break;
    default:
      return 2;
    }
  return o->batch > 0 && o->rounds > 0 && optind == argc ? 0 : 2;
}

/* Step times in ms, sorted; the first tenth and at least 2 are a warm-up. */
static void measure(const options *o, gt_graph *graph, gt_optim *optim,
                    const gt_sample_shape *shape, double *times_ms) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  float *x = GT_NEW_ARRAY(float, o->batch * shape->h * shape->w * shape->c);
  int32_t *labels = GT_NEW_ARRAY(int32_t, o->batch);
  const size_t warm = o->rounds / 10 > 2 ? o->rounds / 10 : 2;
  gt_metrics metrics;
  fill(x, labels, o->batch, shape);
  for (size_t i = 0; i < o->rounds + warm; i++) {
    const gt_ns start = gt_now();
    gt_graph_step(graph, x, labels, o->batch, true, &metrics);
    gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
    if (i >= warm) times_ms[i - warm] = gt_seconds(gt_now() - start) * 1e3;
  }
  qsort(times_ms, o->rounds, sizeof *times_ms, by_value);
  gt_free(labels);
  gt_free(x);
}

static void report(const options *o, const gt_graph *graph, const gt_choices *choices,
                   const double *times_ms) {
  struct rusage use;
  const double median = times_ms[o->rounds / 2],
               flops = (double)gt_graph_flops(graph) * (double)o->batch * 1e-9,
               rate = flops / median * 1e3;
  getrusage(RUSAGE_SELF, &use);
  printf("%s, batch %zu, %s, %s: %s\n", o->model, o->batch,
         o->precision == GT_BF16 ? "bf16" : "f32", gt_isa_name(gt_isa_used()),
         gt_graph_kernels(graph));
  printf("  step      %.3f ms (median of %zu; least %.3f)\n", median, o->rounds, times_ms[0]);
  printf("  samples   %.0f /s\n", (double)o->batch / median * 1e3);
  printf("  rate      %.1f GFLOP/s (%.3f GFLOP a step)\n", rate, flops);
  printf("  peak      %.1f GFLOP/s f32 multiply-adds: %.0f %% of it\n", peak_gflops(),
         100 * rate / peak_gflops());
  if (o->precision == GT_BF16 && peak_bf16_gflops() > 0)
    printf("  of bf16   %.1f GFLOP/s bf16 multiply-adds: %.0f %% of it\n", peak_bf16_gflops(),
           100 * rate / peak_bf16_gflops());
  printf("  memory    %.0f MB resident at most; %.0f MB activations and scratch\n",
         (double)use.ru_maxrss / 1e3, (double)gt_graph_bytes(graph) / 1e6);
  if (choices->n)
    printf("  choices   %zu layers measured in %.2f s\n", choices->n, choices->seconds);
  printf("  OpenBLAS  core %s; oneDNN %s\n", gt_kernels_blas_core(),
         gt_kernels_dnn_version() ? gt_kernels_dnn_version() : "none");
}

int main(int argc, char **argv) {
  const gt_optim_spec sgd = {
      .kind = GT_OPTIMIZER_SGD, .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.001}, .momentum = 0.9};
  options o;
  gt_graph *graph;
  gt_optim *optim;
  gt_isa_fit_blas(argv);
  if (parse(argc, argv, &o) != 0) {
    fputs(usage, stderr);
    return 2;
  }
  const gt_sample_shape shape = shape_of(&o);
  gt_choices choices = {0};
  const gt_graph_spec spec = {.model = o.model,
                              .shape = shape,
                              .batch_max = o.batch,
                              .batch = o.batch,
                              .kernels = gt_kernels_find(o.kernels),
                              .precision = o.precision};
  if (!spec.kernels || (o.measured ? measured_graph(&graph, &choices, &spec)
                                   : gt_graph_create(&graph, &spec)) != GT_OK) {
    fprintf(stderr, "step: %s\n",
            spec.kernels ? gt_error_text() : "this build has no such kernels");
    return 2;
  }
  if (gt_optim_create(&optim, &sgd, gt_graph_arrays(graph)->params.n, true) != GT_OK) return 1;
  double *times_ms = GT_NEW_ARRAY(double, o.rounds);
  gt_graph_init(graph, 1);
  gt_graph_prepare(graph, o.batch);
  measure(&o, graph, optim, &shape, times_ms);
  if (o.brief)
    printf("%.4f %.4f\n", times_ms[o.rounds / 2], times_ms[0]);
  else
    report(&o, graph, &choices, times_ms);
  gt_free(times_ms);
  gt_optim_close(optim);
  gt_graph_close(graph);
  gt_choices_close(&choices);
  return 0;
}
