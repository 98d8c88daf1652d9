/* A bare evaluator: evaluates a model on the test split of a data set repeatedly, in the chunks and
   batches of a region's worker, without MPI and without a parameter server.
   Usage: see `usage`. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/data.h"
#include "geotrain/nn.h"
#include "geotrain/ps_of_job.h"
#include "measured.h"

static const char usage[] =
    "usage: evaluate --model M --data FILE.h5 [--batch N] [--seconds S] [--kernels "
    "auto|dnn|blas|ref] [--precision f32|bf16]\n"
    "  Prints samples/s, over S seconds after a first pass over some chunks.\n";

typedef struct {
  const char *model, *kernels, *data;
  size_t batch;
  double seconds;
  gt_precision precision;
} options;

static int parse(int argc, char **argv, options *o) {
  static const struct option known[] = {{"model", 1, NULL, 'm'},   {"data", 1, NULL, 'd'},
                                        {"batch", 1, NULL, 'b'},   {"seconds", 1, NULL, 's'},
                                        {"kernels", 1, NULL, 'k'}, {"precision", 1, NULL, 'p'},
                                        {NULL, 0, NULL, 0}};
  *o = (options){.kernels = "auto", .batch = 64, .seconds = 5};
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) switch (c) {
    case 'm':
      o->model = optarg;
      break;
    case 'd':
      o->data = optarg;
      break;
    case 'b':
      o->batch = (size_t)atol(optarg);
      break;
    case 's':
      o->seconds = atof(optarg);
      break;
    case 'k':
      o->kernels = optarg;
      break;
    case 'p':
      o->precision = strcmp(optarg, "bf16") == 0 ? GT_BF16 : GT_F32;
      break;
    default:
      return 2;
    }
  return o->model && o->data && o->batch > 0 && o->seconds > 0 && optind == argc ? 0 : 2;
}

typedef struct {
  gt_dataset *dataset;
  gt_loader *test;
  gt_graph *graph;
  gt_choices choices;
  float *x;
  int32_t *y;
  size_t chunk;
} evaluator;

static gt_status open_evaluator(evaluator *e, const options *o) {
  *e = (evaluator){0};
  GT_TRY(gt_dataset_open(&e->dataset, o->data));
  const gt_dataset_info *about = gt_dataset_describe(e->dataset);
  const gt_graph_spec spec = {
      .model = o->model,
      .shape = {about->h, about->w, about->c, about->classes, about->features},
      .batch_max = o->batch,
      .kernels = gt_kernels_find(o->kernels),
      .precision = o->precision};
  if (!spec.kernels) return GT_FAIL(GT_ERR_JOB, "this build has no kernels \"%s\"", o->kernels);
  GT_TRY(gt_loader_create(&e->test, e->dataset, GT_SPLIT_TEST, NULL, 0));
  GT_TRY(measured_graph(&e->graph, &e->choices, &spec));
  gt_graph_init(e->graph, 1);
  e->chunk = gt_ps_eval_chunk(gt_loader_samples(e->test));
  e->x = GT_NEW_ARRAY(float, o->batch * about->h * about->w * about->c);
  e->y = GT_NEW_ARRAY(int32_t, o->batch);
  return GT_OK;
}

/* The samples from `first` to the end of its chunk; returns how many. */
static size_t score_chunk(evaluator *e, size_t batch, size_t first) {
  size_t left = gt_loader_samples(e->test) - first, count = left < e->chunk ? left : e->chunk;
  for (size_t done = 0; done < count;) {
    size_t n = count - done < batch ? count - done : batch;
    gt_metrics metrics;
    gt_loader_range(e->test, first + done, n, e->x, e->y);
    gt_graph_step(e->graph, e->x, e->y, n, false, &metrics);
    done += n;
  }
  return count;
}

static double rate(evaluator *e, const options *o) {
  const size_t n = gt_loader_samples(e->test);
  size_t at = 0, samples = 0;
  for (size_t chunk = 0; chunk < 2 && chunk * e->chunk < n; chunk++)
    score_chunk(e, o->batch, chunk * e->chunk);
  const gt_ns start = gt_now();
  while (gt_seconds(gt_now() - start) < o->seconds) {
    size_t count = score_chunk(e, o->batch, at);
    samples += count;
    at = (at + count) % n;
  }
  return (double)samples / gt_seconds(gt_now() - start);
}

int main(int argc, char **argv) {
  options o;
  evaluator e;
  gt_isa_fit_blas(argv);
  if (parse(argc, argv, &o) != 0) {
    fputs(usage, stderr);
    return 2;
  }
  if (open_evaluator(&e, &o) != GT_OK) {
    fprintf(stderr, "evaluate: %s\n", gt_error_text());
    return 2;
  }
  printf("%.1f\n", rate(&e, &o));
  gt_free(e.y);
  gt_free(e.x);
  gt_graph_close(e.graph);
  gt_choices_close(&e.choices);
  gt_loader_close(e.test);
  gt_dataset_close(e.dataset);
  return 0;
}
