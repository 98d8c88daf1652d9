/* `geotrain info`: describes this build and this machine; useful for bug reports.  `geotrain info
   JOB.yaml`: prints the resolved job, in a form for scripts. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_job.h"
#include "cli.h"
#include "geotrain/job.h"
#include "geotrain/nn.h"
#include "geotrain/tensor.h"
#include "measure_job.h"
#include "options.h"

/* Reads the value after "key : " on the first line of /proc/cpuinfo with the key. */
static void read_cpu(const char *key, char *value, size_t size) {
  char line[8192];
  value[0] = '\0';
  FILE *file = fopen(GT_CPUINFO, "r");
  while (file && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " "));
    break;
  }
  if (file) fclose(file);
}

static void print_cpu(void) {
  static const char *const sets[] = {"sse4_2",      "avx",      "fma",   "avx2", "avx512f",
                                     "avx512_bf16", "amx_bf16", "asimd", "sve"};
  char model[256], flags[8192], padded[8200];
  gt_cpu_name(model, sizeof model, GT_CPUINFO);
  read_cpu("flags", flags, sizeof flags);
  if (!flags[0]) read_cpu("Features", flags, sizeof flags);
  snprintf(padded, sizeof padded, " %s ", flags);
  printf("cpu:            %s\ninstructions:  ", model);
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    char word[32];
    snprintf(word, sizeof word, " %s ", sets[i]);
    if (strstr(padded, word)) printf(" %s", sets[i]);
  }
  printf("\n");
}

static void print_names(const char *title, const char *const *names) {
  printf("%-15s", title);
  for (size_t i = 0; names && names[i]; i++) printf(" %s", names[i]);
  printf("\n");
}

/* Prints the kernels that this build has and jobs can name. */
static void print_kernels(void) {
  const char *const *names = gt_kernels_names;
  printf("kernels:       ");
  for (size_t i = 0; names[i]; i++)
    if (gt_kernels_find(names[i])) printf(" %s", names[i]);
  printf("\n");
}

/* The options of the command line. */
typedef struct {
  const char *path, *out, *resume; /* NULL: not given */
  bool flat, measure, check, check_here;
  const char **sets;
  size_t nsets;
} options;

/* A place is valid if the catalogue has its rates. */
static gt_status check_places(const gt_job *job) {
  gt_job_prices prices = {0};
  gt_status status = gt_job_prices_of(&prices, job);
  if (status == GT_OK) gt_job_prices_close(&prices);
  return status;
}

/* Prints the differences between the job and the run in a run directory. */
static gt_status print_changes(const gt_job *job, const char *run_dir) {
  char path[4096];
  gt_job *run = NULL;
  snprintf(path, sizeof path, "%s/job.yaml", run_dir);
  if (access(path, F_OK) != 0) return GT_OK;
  GT_TRY(gt_job_load(&run, path, NULL, 0));
  const gt_status status = gt_job_run_sets(stdout, job, run);
  gt_job_close(run);
  return status;
}

static gt_status print_loaded(const options *o, const gt_job *job) {
  gt_job_warn(job, gt_job_warning);
  gt_status status = check_places(job);
  const bool asked = o->flat || o->measure || o->resume; /* another output than the job itself */
  if (status == GT_OK && o->check)
    status = gt_cli_check_job(job, o->check_here, asked ? stderr : stdout);
  if (status != GT_OK || (o->check && !asked)) return status;
  char *text = asked ? NULL : gt_job_resolved(job);
  if (o->resume)
    status = print_changes(job, o->resume);
  else if (o->measure && o->out && gt_output_may_replace(o->out, o->path, NULL, NULL) != GT_OK)
    status = GT_ERR_JOB;
  else if (o->measure)
    status = gt_cli_measure_job(job, o->out);
  else if (o->flat)
    gt_job_flat(job, stdout);
  else
    fputs(text, stdout);
  gt_free(text);
  return status;
}

static gt_status print_job(const options *o) {
  gt_job *job = NULL;
  GT_TRY(gt_job_load(&job, o->path, o->sets, o->nsets));
  const gt_status status = gt_job_blame(job, print_loaded(o, job));
  gt_job_close(job);
  return status;
}

static gt_status read_options(options *o, int argc, char **argv) {
  static const struct option known[] = {{"set", required_argument, NULL, 1},
                                        {"flat", no_argument, NULL, 2},
                                        {"measure", no_argument, NULL, 3},
                                        {"out", required_argument, NULL, 4},
                                        {"check", optional_argument, NULL, 5},
                                        {"resume", required_argument, NULL, 6},
                                        {NULL, 0, NULL, 0}};
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
    if (option == 1) o->sets[o->nsets++] = optarg;
    if (option == 2) o->flat = true;
    if (option == 3) o->measure = true;
    if (option == 4) o->out = optarg;
    if (option == 5) {
      o->check = true;
      o->check_here = optarg != NULL;
      if (optarg && strcmp(optarg, "here") != 0)
        return GT_FAIL(GT_ERR_JOB, "info: --check=%s is unknown; use --check or --check=here",
                       optarg);
    }
    if (option == 6) o->resume = optarg;
    if (option == '?') return gt_option_refused(argc, argv, "info");
  }
  if (argc - optind > 1)
    return GT_FAIL(GT_ERR_JOB, "info: expected at most one job file, found %d", argc - optind);
  o->path = optind < argc ? argv[optind] : NULL;
  const char *of_job = o->nsets     ? "--set overrides a key of"
                       : o->flat    ? "--flat prints"
                       : o->measure ? "--measure times the products of"
                       : o->check   ? "--check tries"
                       : o->resume  ? "--resume compares"
                                    : NULL;
  if (!o->path && of_job)
    return GT_FAIL(GT_ERR_JOB, "info: %s a job file, and none is named; see `geotrain help info`",
                   of_job);
  if (o->out && !o->measure)
    return GT_FAIL(GT_ERR_JOB, "info: --out needs --measure; see `geotrain help info`");
  return GT_OK;
}

/* Describes a model with its default options: size, kernels by rule, source. */
static void print_model(const gt_model *model) {
  gt_graph *graph;
  const gt_sample_shape *s = &model->usual;
  const gt_graph_spec spec = {
      .model = model->name, .shape = *s, .sizes_only = true, .kernels = gt_kernels_find("auto")};
  if (gt_graph_create(&graph, &spec) != GT_OK) return;
  const gt_arrays *arrays = gt_graph_arrays(graph);
  printf("  %-13s %zu parameters", model->name, arrays->params.n);
  if (arrays->buffers.n) printf(" and %zu statistics", arrays->buffers.n);
  if (s->features)
    printf(", of %zu ids among %zu", s->c, s->features);
  else
    printf(", of %zu x %zu x %zu", s->h, s->w, s->c);
  printf(" samples in %zu classes; %s\n%16s%s\n", s->classes, gt_graph_kernels(graph), "",
         model->source);
  gt_graph_close(graph);
}

static void print_models(void) {
  printf("models:\n");
  for (const char *const *name = gt_model_names; *name; name++) print_model(gt_model_find(*name));
}

static void print_bf16(void) {
  const char *why = NULL;
  const bool has = gt_kernels_bf16(&why);
  printf("onednn:         %s\nbf16:           %s\n",
         gt_kernels_dnn_version() ? gt_kernels_dnn_version() : "none in this build",
         has ? "yes" : why);
}

static void print_build(void) {
  printf("geotrain:       " GT_VERSION "\n"
         "build:          " GT_BUILD_TYPE ", " GT_COMPILER "\n");
  print_kernels();
  printf("openblas core:  %s\n", gt_kernels_blas_core());
  print_bf16();
  print_cpu();
  printf("instruction set: %s%s\n", gt_isa_name(gt_isa_used()),
         gt_isa_used() < gt_isa_best() ? " (GEOTRAIN_ISA; this CPU has more)" : "");
  print_models();
  print_names("strategies:", gt_strategy_names);
  print_names("optimizers:", gt_optimizer_names);
  print_names("precision:", gt_precision_names);
  if (gt_kernels_blas_pinned())
    fprintf(stderr,
            "geotrain: warning: the environment pins OpenBLAS to %s (OPENBLAS_CORETYPE), and this "
            "CPU can do more; unset it\n",
            gt_kernels_blas_core());
}

gt_status gt_cmd_info(int argc, char **argv) {
  options o = {.sets = GT_NEW_ARRAY(const char *, (size_t)argc + 1)};
  gt_status status = read_options(&o, argc, argv);
  if (status == GT_OK && o.path)
    status = print_job(&o);
  else if (status == GT_OK)
    print_build();
  gt_free(o.sets);
  return status;
}
