/* geotrain eval: evaluates a checkpoint's model on the test split of a data set. */
#include "cli.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_model.h"
#include "evaluate.h"
#include "geotrain/data.h"
#include "geotrain/record_table.h"
#include "options.h"

#define USAGE "usage: geotrain eval CHECKPOINT|RUN_DIR [REGION] DATA.h5 [--classes] [--threads N]"

typedef struct {
  size_t threads; /* 0: by gt_cli_threads */
  bool classes;   /* print a row for each class */
} eval_options;

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

/* The data must have the shape of the model's samples. */
static gt_status match_shape(const gt_cli_model *model, const gt_dataset_info *data,
                             const char *data_path) {
  const gt_sample_shape *shape = &model->shape;
  const char *path = model->path;
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

/* Ids and columns must mean the same as in training, as far as both files describe them. */
static gt_status match_ids(const gt_cli_model *model, const gt_dataset *dataset,
                           const char *data_path) {
  const gt_tokens *tokens = gt_dataset_tokens(dataset);
  const char *vocabulary = gt_dataset_describe(dataset)->vocabulary_sha256;
  gt_state here = {0};
  const int64_t *merges = NULL;
  char *columns;
  size_t n, pairs = 0;
  GT_TRY(gt_dataset_columns(dataset, &columns, &n));
  if (tokens) merges = gt_tokens_merges(tokens, &pairs);
  gt_data_save_ids(&here, tokens != NULL, merges, 2 * pairs, columns, n, vocabulary);
  const gt_state_item *item = gt_state_changed(&here, &model->state);
  const gt_status status =
      item ? GT_FAIL(GT_ERR_DATA,
                     "%s was imported with other columns, words or tokens than the data of the "
                     "model of %s (%s differs); expected an import by the schema or vocabulary of "
                     "that data",
                     data_path, model->path, item->name)
           : GT_OK;
  gt_state_close(&here);
  gt_free(columns);
  return status;
}

/* Numbers the classes of the data set as the model does, if both have names. */
static gt_status number_classes(const gt_cli_model *model, gt_dataset *dataset) {
  gt_class_names names;
  char whose[sizeof model->path + 16];
  snprintf(whose, sizeof whose, "the model of %s", model->path);
  gt_status status = gt_cli_model_class_names(model, &names);
  if (status == GT_OK && names.n > 0 && gt_dataset_class_names(dataset)->n > 0)
    status = gt_dataset_number_classes(dataset, &names, whose);
  gt_free(names.text);
  return status;
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

/* Counts of the samples of a class. */
typedef struct {
  size_t labelled, predicted, both;
} tally;

static double ratio(size_t part, size_t all) {
  return all > 0 ? (double)part / (double)all : NAN;
}

/* Prints how well each class is found.  F1 = 2 precision recall / (precision + recall); macro-F1 is
   its mean over the classes that have a label or a prediction. */
static void print_classes(const tally *found, size_t classes, const gt_class_names *names) {
  static const gt_column columns[] = {{"class", "class", NULL, GT_COLUMN_TEXT, 0, false},
                                      {"samples", "samples", NULL, GT_COLUMN_WHOLE, 0, false},
                                      {"precision", "precision", NULL, GT_COLUMN_FIXED, 4, false},
                                      {"recall", "recall", NULL, GT_COLUMN_FIXED, 4, false},
                                      {"f1", "F1", NULL, GT_COLUMN_FIXED, 4, false}};
  gt_table *table = gt_table_create(GT_ARRAY(columns));
  const char *name = names->n > 0 ? names->text : NULL;
  double sum = 0;
  size_t counted = 0;
  for (size_t k = 0; k < classes; k++) {
    const tally *t = &found[k];
    const double f1 = ratio(2 * t->both, t->labelled + t->predicted);
    char number[24];
    snprintf(number, sizeof number, "%zu", k);
    if (!isnan(f1)) sum += f1, counted++;
    gt_table_add(table,
                 GT_ROW(gt_cell_text(name ? name : number), gt_cell_whole((int64_t)t->labelled),
                        gt_cell_number(ratio(t->both, t->predicted)),
                        gt_cell_number(ratio(t->both, t->labelled)), gt_cell_number(f1)));
    if (name) name += strlen(name) + 1;
  }
  gt_table_note(table, "macro-F1 %.4f", sum / (double)counted);
  gt_table_finish(stdout, table);
}

/* Prints a row for each class, by the predictions of the test set. */
static gt_status report_classes(const gt_cli_model *model, const int32_t *labels,
                                const int32_t *predicted, size_t n) {
  const size_t classes = model->shape.classes;
  gt_class_names names;
  const gt_status status = gt_cli_model_class_names(model, &names);
  tally *found = GT_NEW_ARRAY(tally, classes);
  for (size_t i = 0; i < n; i++) {
    found[labels[i]].labelled++;
    found[predicted[i]].predicted++;
    if (labels[i] == predicted[i]) found[labels[i]].both++;
  }
  if (status == GT_OK) print_classes(found, classes, &names);
  gt_free(found);
  gt_free(names.text);
  return status;
}

/* Evaluates the whole test split.  Texts need memory for the logits of every position. */
static gt_status judge(gt_cli_model *model, gt_dataset *dataset, gt_loader *loader,
                       const eval_options *options) {
  gt_cli_score score;
  const size_t samples = gt_loader_samples(loader);
  const gt_ranking *ranking = gt_ranking_of(model->info.model, model->shape.classes);
  if (options->classes &&
      (gt_graph_of_text(model->graph) || gt_model_find(model->info.model)->ranks))
    return GT_FAIL(
        GT_ERR_JOB,
        "eval: --classes is given, and model %s does not classify; expected a model with "
        "labels, not of texts or sessions",
        model->info.model);
  model->batch = gt_graph_of_text(model->graph) ? GT_CLI_EVAL_TEXTS : GT_CLI_EVAL_BATCH;
  const gt_cli_evaluation evaluation = {
      .make = gt_cli_model_graph,
      .ctx = model,
      .test = loader,
      .ranking = ranking,
      .labels = gt_dataset_labels(dataset, GT_SPLIT_TEST),
      .shape = model->shape,
      .batch = model->batch,
      .threads = gt_cli_threads_choose(options->threads,
                                       (samples + GT_CLI_EVAL_BATCH - 1) / GT_CLI_EVAL_BATCH),
      .predicted = options->classes ? GT_NEW_ARRAY(int32_t, samples) : NULL};
  gt_status status = gt_cli_evaluate(&score, &evaluation);
  if (status == GT_OK) report(&model->info, model->graph, &score);
  if (status == GT_OK && options->classes)
    status = report_classes(model, evaluation.labels, evaluation.predicted, samples);
  gt_free(evaluation.predicted);
  return status;
}

/* Normalises samples as in training, whatever the mean and std of the data file. */
static gt_status normalise(gt_dataset *dataset, const char *path, const gt_state *state) {
  const gt_dataset_info *about = gt_dataset_describe(dataset);
  const float *mean, *std;
  bool said;
  if (!about->scaled) return GT_OK;
  GT_TRY(gt_cli_checkpoint_norm(path, state, about->c, &said, &mean, &std));
  if (said) gt_dataset_normalise(dataset, mean, std);
  return GT_OK;
}

static gt_status run(gt_cli_model *model, const char *data_path, const eval_options *options) {
  gt_dataset *dataset = NULL;
  gt_loader *loader = NULL;
  GT_TRY(gt_dataset_open(&dataset, data_path));
  const gt_dataset_info *about = gt_dataset_describe(dataset);
  gt_status status = number_classes(model, dataset);
  if (status == GT_OK) status = match_shape(model, about, data_path);
  if (status == GT_OK) status = match_ids(model, dataset, data_path);
  if (status == GT_OK) status = normalise(dataset, model->path, &model->state);
  if (status == GT_OK)
    status = gt_loader_create(&loader, dataset, GT_SPLIT_TEST, NULL, about->ntest);
  if (status == GT_OK) status = judge(model, dataset, loader, options);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
  return status;
}

static gt_status evaluate(const char *named, const char *region, const char *data_path,
                          const eval_options *options) {
  gt_cli_model model;
  gt_status status = gt_cli_model_open(&model, named, region);
  if (status == GT_OK) status = run(&model, data_path, options);
  gt_cli_model_close(&model);
  return status;
}

const struct option gt_options_eval[] = {
    {"classes", no_argument, NULL, 'c'}, {"threads", required_argument, NULL, 't'}, {0}};

gt_status gt_cmd_eval(int argc, char **argv) {
  eval_options options = {0};
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":", gt_options_eval, NULL)) != -1;) {
    if (option == ':') return GT_FAIL(GT_ERR_JOB, "eval: %s needs a number", argv[optind - 1]);
    if (option != 't' && option != 'c')
      return GT_FAIL(GT_ERR_JOB, "eval: unknown option '%s'; " USAGE, gt_option_word(argc, argv));
    if (option == 'c')
      options.classes = true;
    else
      GT_TRY(gt_cli_threads_read(&options.threads, "eval", optarg));
  }
  const int given = argc - optind;
  if (given == 1)
    return GT_FAIL(GT_ERR_JOB,
                   "eval: %s is given and no data set; expected one for its test split, as in "
                   "`geotrain eval %s DATA.h5`",
                   argv[optind], argv[optind]);
  if (given != 2 && given != 3)
    return GT_FAIL(GT_ERR_JOB, "eval: %d files are given; " USAGE, given);
  return evaluate(argv[optind], given == 3 ? argv[optind + 1] : NULL, argv[argc - 1], &options);
}
