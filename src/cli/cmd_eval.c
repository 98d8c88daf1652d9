/* geotrain eval: a checkpoint's model on the test split of a data set. */
#include "cli.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>

#include "checkpoint_model.h"
#include "geotrain/data.h"

#define BATCH 256

static const char usage[] =
    "usage: geotrain eval CHECKPOINT DATA.h5\n"
    "Evaluates the model of a checkpoint (RUN_DIR/ckpt/ROUND/REGION.h5) on the test split of a data set: accuracy, mean loss and, for\n"
    "two classes, the area under the ROC curve (the loss is then the log loss).\n";

/* The shape of the samples that the checkpoint's model takes; the data must have it. */
static gt_status match_shape(const gt_ckpt_info *info, const char *path, const gt_dataset_info *data, const char *data_path, gt_sample_shape *shape) {
  GT_TRY(gt_cli_checkpoint_shape(path, info, shape));
  if (shape->h != data->h || shape->w != data->w || shape->c != data->c || shape->classes != data->classes)
    return GT_FAIL(GT_ERR_DATA, "%s holds %zu x %zu x %zu samples of %zu classes; the model of %s takes %zu x %zu x %zu of %zu", data_path, data->h,
                   data->w, data->c, data->classes, path, shape->h, shape->w, shape->c, shape->classes);
  if (shape->features != data->features)
    return GT_FAIL(GT_ERR_DATA, "%s holds %s; the model of %s takes %s: %zu ids there, %zu needed (0: images)", data_path,
                   data->features ? "ids" : "images", path, shape->features ? "ids" : "images", data->features, shape->features);
  if (data->ntest == 0) return GT_FAIL(GT_ERR_DATA, "%s has no test samples; 1 or more is needed", data_path);
  return GT_OK;
}

/* scores: NULL, or room for one a sample. */
static void evaluate(gt_graph *graph, gt_loader *loader, const gt_sample_shape *shape, gt_metrics *sum, float *scores) {
  float *x = GT_NEW_ARRAY(float, BATCH * shape->h * shape->w * shape->c);
  int32_t *y = GT_NEW_ARRAY(int32_t, BATCH);
  size_t n = gt_loader_samples(loader);
  for (size_t first = 0; first < n; first += BATCH) {
    gt_metrics part = {0};
    size_t count = n - first < BATCH ? n - first : BATCH;
    gt_loader_range(loader, first, count, x, y);
    gt_graph_step(graph, x, y, count, false, &part);
    if (scores) gt_graph_lean(graph, count, scores + first);
    sum->loss_sum += part.loss_sum;
    sum->correct += part.correct;
    sum->samples += part.samples;
  }
  gt_free(y);
  gt_free(x);
}

/* What is printed: the AUC, too, where labels are two. */
static void report(const gt_ckpt_info *info, const gt_metrics *sum, double auc) {
  char ranked[32] = "";
  if (!isnan(auc)) snprintf(ranked, sizeof ranked, "  auc %.6f", auc);
  printf("accuracy %.4f  loss %.3f%s  (%zu samples, %s, round %lld of region %s, step %lld)\n", (double)sum->correct / (double)sum->samples,
         sum->loss_sum / (double)sum->samples, ranked, sum->samples, info->model, (long long)info->round, info->region, (long long)info->step);
}

/* Evaluates all of the test split. */
static void judge(gt_graph *graph, gt_dataset *dataset, gt_loader *loader, const gt_sample_shape *shape, const gt_ckpt_info *info) {
  size_t n = gt_loader_samples(loader);
  gt_metrics sum = {0};
  double auc = NAN;
  float *scores = shape->classes == 2 ? GT_NEW_ARRAY(float, n) : NULL;
  uint32_t *scratch = shape->classes == 2 ? GT_NEW_ARRAY(uint32_t, n) : NULL;
  evaluate(graph, loader, shape, &sum, scores);
  if (scores) auc = gt_auc(scores, gt_dataset_labels(dataset, GT_SPLIT_TEST), n, scratch);
  report(info, &sum, auc);
  gt_free(scratch);
  gt_free(scores);
}

static gt_status run(const char *path, const gt_ckpt_info *info, const gt_state *state, const char *data_path) {
  gt_dataset *dataset = NULL;
  gt_loader *loader = NULL;
  gt_graph *graph = NULL;
  gt_sample_shape shape;
  GT_TRY(gt_dataset_open(&dataset, data_path));
  const gt_dataset_info *about = gt_dataset_describe(dataset);
  gt_status status = match_shape(info, path, about, data_path, &shape);
  if (status == GT_OK) status = gt_cli_checkpoint_model(&graph, path, info, state, &shape, BATCH);
  if (status == GT_OK) status = gt_loader_create(&loader, dataset, GT_SPLIT_TEST, NULL, about->ntest);
  if (status == GT_OK) judge(graph, dataset, loader, &shape, info);
  gt_loader_close(loader);
  gt_graph_close(graph);
  gt_dataset_close(dataset);
  return status;
}

gt_status gt_cmd_eval(int argc, char **argv) {
  static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
  gt_ckpt_info info;
  gt_state state;
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    if (option != 'h') return GT_FAIL(GT_ERR_JOB, "eval: unknown option '%s'; usage: geotrain eval CHECKPOINT DATA.h5", argv[optind - 1]);
    fputs(usage, stdout);
    return GT_OK;
  }
  if (argc - optind != 2) return GT_FAIL(GT_ERR_JOB, "eval: %d files are given; usage: geotrain eval CHECKPOINT DATA.h5", argc - optind);
  GT_TRY(gt_ckpt_read(argv[optind], &info, &state));
  gt_status status = run(argv[optind], &info, &state, argv[optind + 1]);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status;
}
