/* `geotrain info`: describes this build and this machine; useful for bug reports.  `geotrain info
   JOB.yaml`: prints the resolved job, in a form for scripts. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "cli.h"
#include "commit.h"
#include "geotrain/ckpt.h"
#include "geotrain/job_prices.h"
#include "geotrain/nn.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/setup.h"
#include "geotrain/sim_shape.h"
#include "geotrain/tensor.h"
#include "options.h"

/* ---- info JOB --measure: the measurements of the start of a training run --------------------- */

static gt_status list_layers(gt_choices *out, const gt_job *job) {
  gt_sim_shape shape;
  gt_graph *graph = NULL;
  const char *why;
  const bool bf16 = job->train.precision == GT_BF16;
  GT_TRY(gt_sim_shape_of(&shape, job));
  if (bf16 && !gt_kernels_bf16(&why))
    fprintf(stderr, "geotrain: train.precision is bf16, and %s: f32 is measured\n", why);
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = shape.sample;
  spec.kernels = gt_kernels_find("auto");
  spec.precision = bf16 && gt_kernels_bf16(&why) ? GT_BF16 : GT_F32;
  const gt_status status = gt_graph_create(&graph, &spec);
  for (size_t r = 0; status == GT_OK && r < job->nregions; r++)
    gt_graph_layers(
        graph, (size_t)(shape.samples[r] < job->train.batch ? shape.samples[r] : job->train.batch),
        out);
  gt_graph_close(graph);
  gt_sim_shape_close(&shape);
  return status;
}

static gt_status write_text(const char *out, const char *text) {
  FILE *file = out ? fopen(out, "we") : stdout;
  bool whole = file && fputs(text, file) >= 0;
  if (out && file && fclose(file) != 0) whole = false;
  return whole ? GT_OK
               : GT_FAIL(GT_ERR_JOB, "info: %s cannot be written: %s",
                         out ? out : "standard output", strerror(errno));
}

/* Times each method of computing the products of every region's batch, and writes the choices to
   the file `out`, or prints them if it is NULL.  GT_ERR_JOB, GT_ERR_DATA: the job, its data, or the
   file. */
static gt_status measure_job(const gt_job *job, const char *out) {
  gt_choices choices = {0};
  gt_status status = list_layers(&choices, job);
  if (status == GT_OK) {
    gt_choices_measure(&choices, gt_kernels_find("auto"));
    char *text = gt_choices_text(&choices);
    status = write_text(out, text);
    gt_free(text);
  }
  if (status == GT_OK && out)
    fprintf(stderr,
            "geotrain: %zu layers measured in %.2f s; use them with --set train.choices=%s\n",
            choices.n, choices.seconds, out);
  gt_choices_close(&choices);
  return status;
}

/* ---- info JOB --check: whether a job can begin, as far as this machine can tell -------------- */

/* Sets *elsewhere: a region whose hosts are other machines has its data there.  region: its number,
   if only its site is checked. */
static gt_status find_elsewhere(bool *elsewhere, const gt_job *job, bool here,
                                const size_t *region) {
  char host[256] = "";
  gt_status status = GT_OK;
  gt_region_plan *plan = gt_setup_regions(job);
  if (gethostname(host, sizeof host) == 0) host[sizeof host - 1] = '\0';
  for (size_t r = 0; r < job->nregions && status == GT_OK; r++) {
    bool found = region ? r == *region : plan[r].nhosts == 0;
    if (!found && !region) status = gt_region_has_host(&plan[r], host, &found);
    elsewhere[r] = here || !found;
  }
  gt_free(plan);
  return status;
}

static gt_status check_links(const gt_job *job) {
  gt_links *links = NULL;
  GT_TRY(gt_ps_check_routes(job));
  GT_TRY(gt_links_create(&links, job));
  gt_links_close(links);
  return GT_OK;
}

/* Checks the other files that ranks read; if data are on other machines, these files can be,
   too. */
static gt_status check_files(const gt_job *job) {
  GT_TRY(gt_setup_check_choices(job));
  return gt_setup_check_init(job->train.init);
}

static gt_status find_region(const gt_job *job, const char *name, size_t *region) {
  gt_region_plan *plan = gt_setup_regions(job);
  int found = 0;
  const gt_status status = gt_region_named("--region", name, plan, job->nregions, &found);
  if (status == GT_OK) *region = (size_t)found;
  gt_free(plan);
  return status;
}

/* Prints where the regions meet, and whether that can be used. */
static void print_store(const char *url, FILE *to) {
  static const char folder[] = "file://";
  const size_t skip = sizeof folder - 1;
  const bool can = strncmp(url, folder, skip) == 0 && access(url + skip, R_OK | W_OK | X_OK) == 0;
  fprintf(to, "meets the others in %s, %s\n", url,
          can ? "a folder that can be written"
              : "which is not checked; `geotrain probe --region` uses it");
}

/* Prints how the site of a region takes part, after checking what it needs. */
static gt_status check_site(const gt_job *job, size_t region, FILE *to) {
  const gt_job_region *own = &job->regions[region];
  gt_setup_cert cert;
  GT_TRY(gt_setup_check_site(job, region, &cert));
  fprintf(to, "site %s: mpirun -n %d; ", own->name, own->ranks);
  if (job->wan.transport == GT_WAN_STORE) {
    print_store(job->wan.store.url, to);
    return GT_OK;
  }
  if (cert.path[0])
    fprintf(to, "certificate %s, valid until %s; ", cert.path, cert.until);
  else
    fprintf(to, "no TLS; ");
  if (own->address)
    fprintf(to, "listens at %s for %s\n", own->listen ? own->listen : own->address, own->address);
  else
    fprintf(to, "dials the others\n");
  return GT_OK;
}

/* Makes `train`'s checks before it begins, without ranks.  Prints a line for each region to `to`,
   then a verdict unless there is an error.  here: files that cannot be read here can be on other
   machines, whatever the hosts of their region, and a plan can still set the ranks.  GT_ERR_JOB,
   GT_ERR_DATA, GT_ERR_CKPT (train.init): the first error. */
static gt_status check_job(const gt_job *job, bool here, const size_t *region, FILE *to) {
  bool *elsewhere = GT_NEW_ARRAY(bool, job->nregions);
  size_t naway = 0;
  gt_status status = find_elsewhere(elsewhere, job, here, region);
  if (status == GT_OK && !here) status = gt_job_check_run(job);
  if (status == GT_OK && !here) status = check_links(job);
  if (status == GT_OK) status = gt_sim_shape_check(job, elsewhere, to, &naway);
  if (status == GT_OK && (naway == 0 || region) && !here) status = check_files(job);
  if (status == GT_OK && region) status = check_site(job, *region, to);
  gt_free(elsewhere);
  if (status != GT_OK) return status;
  if (naway > 0 && !region)
    fprintf(to,
            "check: ok as far as this machine can tell; data of %zu of %zu regions not checked\n",
            naway, job->nregions);
  else
    fprintf(to, "check: ok\n");
  return GT_OK;
}

/* ---- this build and this machine ------------------------------------------------------------- */

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
  const char *path, *out, *resume, *region; /* NULL: not given */
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
  size_t region = 0;
  if (status == GT_OK && o->region) status = find_region(job, o->region, &region);
  if (status == GT_OK && o->check)
    status = check_job(job, o->check_here, o->region ? &region : NULL, asked ? stderr : stdout);
  if (status != GT_OK || (o->check && !asked)) return status;
  char *text = asked ? NULL : gt_job_resolved(job);
  if (o->resume)
    status = print_changes(job, o->resume);
  else if (o->measure && o->out && gt_output_may_replace(o->out, o->path, NULL, NULL) != GT_OK)
    status = GT_ERR_JOB;
  else if (o->measure)
    status = measure_job(job, o->out);
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

const struct option gt_options_info[] = {
    {"set", required_argument, NULL, 1},    {"flat", no_argument, NULL, 2},
    {"measure", no_argument, NULL, 3},      {"out", required_argument, NULL, 4},
    {"check", optional_argument, NULL, 5},  {"resume", required_argument, NULL, 6},
    {"region", required_argument, NULL, 7}, {NULL, 0, NULL, 0}};

static gt_status read_options(options *o, int argc, char **argv) {
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", gt_options_info, NULL)) != -1) {
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
    if (option == 7) o->region = optarg;
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
  if (o->region && !o->check)
    return GT_FAIL(GT_ERR_JOB, "info: --region needs --check; see `geotrain help info`");
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

void gt_print_build(void) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  printf("commit:         " GT_COMMIT "\n"
         "build:          " GT_BUILD_TYPE ", " GT_COMPILER ", " GT_BUILD_OPTIONS "\n"
         "libraries:      %s, " GT_LIBRARIES "\n",
         mpi);
}

static void print_machine(void) {
  printf("geotrain:       " GT_VERSION "\n");
  gt_print_build();
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
    print_machine();
  gt_free(o.sets);
  return status;
}
