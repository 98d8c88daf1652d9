/* geotrain eval: evaluates a checkpoint's model on the test split of a data set. */
#include "cli.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint_model.h"
#include "evaluate.h"
#include "geotrain/data.h"
#include "options.h"

#define USAGE "usage: geotrain eval CHECKPOINT|RUN_DIR [REGION] DATA.h5 [--threads N]"

static const char usage[] = USAGE
    "\n"
    "Evaluates a model on the test split of a data set: accuracy, mean loss and, for two\n"
    "classes, the area under the ROC curve (the loss is then the log loss); of a recommender,\n"
    "Recall@20 and MRR@20.  The model is the final model of a run (RUN_DIR; if each region\n"
    "has its own, RUN_DIR REGION), or a file: RUN_DIR/final.h5, or a checkpoint\n"
    "RUN_DIR/ckpt/ROUND/REGION.h5.\n"
    "Images are normalised as in training, if the model's file says how.\n"
    "Threads: one per core that this process may use, at most OMP_NUM_THREADS, or --threads;\n"
    "the figures do not depend on the number.\n";

/* Writes "round 7 of region a", or "the final model, the mean of 2 regions", to text. */
static void describe_model(char *text, size_t size, const gt_ckpt_info *info) {
  if (info->mean_of == 0)
    snprintf(text, size, "round %lld of region %s", (long long)info->round, info->region);
  else if (info->region[0])
    snprintf(text, size, "the final model of region %s", info->region);
  else if (info->mean_of == 1)
    snprintf(text, size, "the final model");
  else
    snprintf(text, size, "the final model, the mean of %lld regions", (long long)info->mean_of);
}

/* Finds the shape of the checkpoint's samples; the data must have the same shape. */
static gt_status match_shape(const gt_ckpt_info *info, const char *path,
                             const gt_dataset_info *data, const char *data_path,
                             gt_sample_shape *shape) {
  GT_TRY(gt_cli_checkpoint_shape(path, info, shape));
  if (shape->h != data->h || shape->w != data->w || shape->c != data->c ||
      shape->classes != data->classes)
    return GT_FAIL(GT_ERR_DATA,
                   "%s holds %zu x %zu x %zu samples of %zu classes; the model of %s takes %zu x "
                   "%zu x %zu of %zu",
                   data_path, data->h, data->w, data->c, data->classes, path, shape->h, shape->w,
                   shape->c, shape->classes);
  if (shape->features != data->features)
    return GT_FAIL(GT_ERR_DATA,
                   "%s holds %s; the model of %s takes %s: found %zu ids, expected %zu (0: images)",
                   data_path, data->features ? "ids" : "images", path,
                   shape->features ? "ids" : "images", data->features, shape->features);
  if (data->ntest == 0)
    return GT_FAIL(GT_ERR_DATA, "%s has no test samples; expected 1 or more", data_path);
  return GT_OK;
}

/* Prints the result, with the AUC if there are two labels, with the figures of a recommender, and
   with the perplexity of a text. */
static void report(const gt_ckpt_info *info, const gt_graph *model, const gt_cli_score *score) {
  const gt_metrics *sum = &score->sum;
  const gt_ranks *ranks = &score->ranks;
  const double samples = (double)sum->samples, loss = sum->loss_sum / samples;
  char more[64] = "", which[160];
  describe_model(which, sizeof which, info);
  if (!isnan(ranks->auc)) snprintf(more, sizeof more, "  auc %.6f", ranks->auc);
  if (!isnan(ranks->recall20))
    snprintf(more, sizeof more, "  recall@20 %.6f  mrr@20 %.6f", ranks->recall20, ranks->mrr20);
  if (gt_graph_of_text(model)) snprintf(more, sizeof more, "  perplexity %.3f", exp(loss));
  printf("accuracy %.4f  loss %.3f%s  (%zu samples, %s, %s, step %lld)\n",
         (double)sum->correct / (samples * (double)gt_graph_predictions(model)), loss, more,
         sum->samples, info->model, which, (long long)info->step);
}

/* The common source of all threads' graphs; `model` holds the parameters and buffers that all
   share. */
typedef struct {
  const char *path;
  const gt_ckpt_info *info;
  const gt_state *state;
  const gt_sample_shape *shape;
  const gt_graph *model;
} source;

/* Texts need memory for the logits of every position. */
static size_t eval_batch(const gt_graph *model) {
  return gt_graph_of_text(model) ? GT_CLI_EVAL_TEXTS : GT_CLI_EVAL_BATCH;
}

static gt_status make_graph(void *ctx, gt_graph **out) {
  const source *from = ctx;
  const gt_arrays *a = gt_graph_arrays(from->model);
  GT_TRY(gt_cli_checkpoint_model(out, from->path, from->info, from->state, from->shape,
                                 eval_batch(from->model)));
  gt_graph_adopt(*out, a->params.data, NULL, a->buffers.data);
  return GT_OK;
}

/* Returns the number of threads, one per core.  Additional threads of OpenBLAS and oneDNN would
   only compete with them. */
static size_t choose_threads(size_t asked, size_t samples) {
  const char *why;
  size_t threads = gt_cli_threads(asked, samples, &why);
  gt_log(GT_LOG_INFO, "%zu thread%s: %s", threads, threads == 1 ? "" : "s", why);
  unsetenv("OMP_NUM_THREADS");
  unsetenv("OPENBLAS_NUM_THREADS");
  unsetenv("GOTO_NUM_THREADS");
  return threads;
}

/* Evaluates the whole test split. */
static gt_status judge(source *from, gt_dataset *dataset, gt_loader *loader, size_t asked) {
  gt_cli_score score;
  const gt_cli_evaluation evaluation = {
      .make = make_graph,
      .ctx = from,
      .test = loader,
      .ranking = gt_ranking_of(from->info->model, from->shape->classes),
      .labels = gt_dataset_labels(dataset, GT_SPLIT_TEST),
      .shape = *from->shape,
      .batch = eval_batch(from->model),
      .threads = choose_threads(asked, gt_loader_samples(loader))};
  GT_TRY(gt_cli_evaluate(&score, &evaluation));
  report(from->info, from->model, &score);
  return GT_OK;
}

/* Normalises images as in training, whatever the mean and std of the data file. */
static gt_status normalise(gt_dataset *dataset, const char *path, const gt_state *state) {
  const gt_dataset_info *about = gt_dataset_describe(dataset);
  const float *mean, *std;
  bool said;
  if (about->input != GT_INPUT_BYTES) return GT_OK;
  GT_TRY(gt_cli_checkpoint_norm(path, state, about->c, &said, &mean, &std));
  if (said) gt_dataset_normalise(dataset, mean, std);
  return GT_OK;
}

static gt_status run(const char *path, const gt_ckpt_info *info, const gt_state *state,
                     const char *data_path, size_t threads) {
  gt_dataset *dataset = NULL;
  gt_loader *loader = NULL;
  gt_graph *model = NULL;
  gt_sample_shape shape;
  GT_TRY(gt_dataset_open(&dataset, data_path));
  const gt_dataset_info *about = gt_dataset_describe(dataset);
  gt_status status = match_shape(info, path, about, data_path, &shape);
  if (status == GT_OK) status = gt_cli_checkpoint_model(&model, path, info, state, &shape, 0);
  if (status == GT_OK) status = normalise(dataset, path, state);
  if (status == GT_OK)
    status = gt_loader_create(&loader, dataset, GT_SPLIT_TEST, NULL, about->ntest);
  source from = {path, info, state, &shape, model};
  if (status == GT_OK) status = judge(&from, dataset, loader, threads);
  gt_loader_close(loader);
  gt_graph_close(model);
  gt_dataset_close(dataset);
  return status;
}

static gt_status parse_threads(const char *text, size_t *threads) {
  char *end;
  long n = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || n < 1 || n > GT_CLI_THREADS_MOST)
    return GT_FAIL(GT_ERR_JOB, "eval: --threads is '%s'; expected a number from 1 to %d", text,
                   GT_CLI_THREADS_MOST);
  *threads = (size_t)n;
  return GT_OK;
}

static gt_status evaluate(const char *named, const char *region, const char *data_path,
                          size_t threads) {
  char path[4096];
  gt_ckpt_info info;
  gt_state state;
  GT_TRY(gt_cli_run_model(path, sizeof path, named, region));
  GT_TRY(gt_ckpt_read(path, &info, &state));
  gt_status status = run(path, &info, &state, data_path, threads);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status;
}

gt_status gt_cmd_eval(int argc, char **argv) {
  static const struct option options[] = {
      {"help", no_argument, NULL, 'h'}, {"threads", required_argument, NULL, 't'}, {0}};
  size_t threads = 0;
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    if (option == 'h') {
      fputs(usage, stdout);
      return GT_OK;
    }
    if (option == ':') return GT_FAIL(GT_ERR_JOB, "eval: %s needs a number", argv[optind - 1]);
    if (option != 't')
      return GT_FAIL(GT_ERR_JOB, "eval: unknown option '%s'; " USAGE, gt_option_word(argc, argv));
    GT_TRY(parse_threads(optarg, &threads));
  }
  const int given = argc - optind;
  if (given == 1)
    return GT_FAIL(GT_ERR_JOB,
                   "eval: %s is given and no data set; expected one for its test split, as in "
                   "`geotrain eval %s DATA.h5`",
                   argv[optind], argv[optind]);
  if (given != 2 && given != 3)
    return GT_FAIL(GT_ERR_JOB, "eval: %d files are given; " USAGE, given);
  return evaluate(argv[optind], given == 3 ? argv[optind + 1] : NULL, argv[argc - 1], threads);
}
