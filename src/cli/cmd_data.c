/* geotrain data: makes data sets and tells what is in one. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "geotrain/data.h"

static const char *const input_names[] = {"uint8", "float32", "int32"}; /* by gt_input */

static const char usage[] = "usage: geotrain data import FORMAT SOURCE OUT.h5\n"
                            "       geotrain data synth OUT.h5 [--train N] [--test N] [--classes N] [--seed N]\n"
                            "       geotrain data info FILE.h5\n";

static gt_status print_usage(void) {
  printf("%sformats:", usage);
  for (const char *const *f = gt_data_formats(); *f; f++) printf(" %s", *f);
  fputs("\nSOURCE is a folder; its files may be gzip (.gz) or plain:\n"
        "  mnist  the four idx files of MNIST, Fashion-MNIST or the like\n"
        "  cifar  data_batch_1.bin to data_batch_5.bin (those that are there; at least one) and test_batch.bin of CIFAR-10,\n"
        "         or train.bin and test.bin of CIFAR-100 (its fine labels)\n"
        "  libfm  NAME.train.libfm and NAME.test.libfm, lines `label id:1 id:1 ...` with the same number of fields, label 1 or else 0 or -1;\n"
        "         NAME.validation.libfm is not used\n",
        stdout);
  return GT_OK;
}

static gt_status said(const char *out) {
  struct stat st;
  char size[32];
  printf("wrote %s (%s)\n", out, gt_format_size(size, sizeof size, stat(out, &st) == 0 ? (double)st.st_size : 0));
  return GT_OK;
}

/* ---- import ------------------------------------------------------------------------------------------------------ */

static gt_status import(int argc, char **argv) {
  if (argc != 4) return GT_FAIL(GT_ERR_JOB, "data import has %d arguments; FORMAT SOURCE OUT.h5 are needed", argc - 1);
  GT_TRY(gt_data_import(argv[1], argv[2], argv[3]));
  return said(argv[3]);
}

/* ---- synth ------------------------------------------------------------------------------------------------------- */

static gt_status parse_count(const char *option, const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end || errno) return GT_FAIL(GT_ERR_JOB, "data synth --%s is `%s`; a whole number is needed", option, text);
  *out = v;
  return GT_OK;
}

static gt_status synth(int argc, char **argv) {
  static const struct option options[] = {
      {"train", required_argument, NULL, 't'},
      {"test", required_argument, NULL, 'e'},
      {"classes", required_argument, NULL, 'c'},
      {"seed", required_argument, NULL, 's'},
      {NULL, 0, NULL, 0},
  };
  gt_synth_spec spec = gt_synth_default();
  uint64_t value = 0;
  int c, which = 0;
  opterr = 0;
  optind = 0; /* glibc: begin anew with this argv */
  while ((c = getopt_long(argc, argv, ":", options, &which)) != -1) {
    if (c == ':') return GT_FAIL(GT_ERR_JOB, "data synth: option `%s` has no value; a whole number is needed", argv[optind - 1]);
    if (c == '?') return GT_FAIL(GT_ERR_JOB, "data synth: option `%s` is not known; --train, --test, --classes and --seed are", argv[optind - 1]);
    GT_TRY(parse_count(options[which].name, optarg, &value));
    switch (c) {
    case 't':
      spec.ntrain = value;
      break;
    case 'e':
      spec.ntest = value;
      break;
    case 'c':
      spec.classes = value;
      break;
    default:
      spec.seed = value;
      break;
    }
  }
  if (argc - optind != 1) return GT_FAIL(GT_ERR_JOB, "data synth has %d file names; OUT.h5 is needed", argc - optind);
  GT_TRY(gt_data_synth(argv[optind], &spec));
  return said(argv[optind]);
}

/* ---- info -------------------------------------------------------------------------------------------------------- */

static void print_channels(const char *title, const float *values, size_t n) {
  printf("%-12s", title);
  for (size_t i = 0; i < n; i++) printf(" %.6f", (double)values[i]);
  printf("\n");
}

static void print_classes(gt_dataset *dataset) {
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  const int32_t *train = gt_dataset_labels(dataset, GT_SPLIT_TRAIN), *test = gt_dataset_labels(dataset, GT_SPLIT_TEST);
  size_t *counts = GT_NEW_ARRAY(size_t, 2 * info->classes);
  for (size_t i = 0; i < info->ntrain; i++) counts[2 * train[i]]++;
  for (size_t i = 0; i < info->ntest; i++) counts[2 * test[i] + 1]++;
  printf("\n%-12s %10s %10s\n", "label", "train", "test");
  for (size_t k = 0; k < info->classes; k++) printf("%-12zu %10zu %10zu\n", k, counts[2 * k], counts[2 * k + 1]);
  printf("%-12s %10zu %10zu\n", "all", info->ntrain, info->ntest);
  gt_free(counts);
}

static gt_status info(int argc, char **argv) {
  gt_dataset *dataset;
  struct stat st;
  char size[32];
  if (argc != 2) return GT_FAIL(GT_ERR_JOB, "data info has %d file names; FILE.h5 is needed", argc - 1);
  GT_TRY(gt_dataset_open(&dataset, argv[1]));
  const gt_dataset_info *d = gt_dataset_describe(dataset);
  printf("%-12s %s (%s)\n", "file", argv[1], gt_format_size(size, sizeof size, stat(argv[1], &st) == 0 ? (double)st.st_size : 0));
  printf("%-12s %d\n", "schema", GT_DATASET_SCHEMA);
  printf("%-12s %s\n", "name", d->name);
  printf("%-12s %zu x %zu x %zu %s\n", "shape", d->h, d->w, d->c, input_names[d->input]);
  if (d->input == GT_INPUT_IDS) printf("%-12s %zu\n", "features", d->features);
  printf("%-12s %zu\n", "classes", d->classes);
  printf("%-12s %zu\n", "train", d->ntrain);
  printf("%-12s %zu\n", "test", d->ntest);
  if (d->input == GT_INPUT_BYTES) {
    print_channels("mean", gt_dataset_mean(dataset), d->c);
    print_channels("std", gt_dataset_std(dataset), d->c);
  }
  printf("%-12s %s\n", "sha256", d->schema_sha256);
  print_classes(dataset);
  gt_dataset_close(dataset);
  return GT_OK;
}

gt_status gt_cmd_data(int argc, char **argv) {
  static const char *const names[] = {"import", "synth", "info"};
  if (argc < 2) return GT_FAIL(GT_ERR_JOB, "data has no command; import, synth or info is needed");
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return print_usage();
  if (strcmp(argv[1], "import") == 0) return import(argc - 1, argv + 1);
  if (strcmp(argv[1], "synth") == 0) return synth(argc - 1, argv + 1);
  if (strcmp(argv[1], "info") == 0) return info(argc - 1, argv + 1);
  const char *near = gt_nearest(argv[1], names, 3);
  return GT_FAIL(GT_ERR_JOB, "data command `%s` is not known; %s%s", argv[1], near ? "did you mean " : "import, synth and info are",
                 near ? near : "");
}
