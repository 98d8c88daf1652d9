/* `geotrain placement`: compares places for aggregation: time and cost of a mini-batch by place and
   vendor of function and storage (Phalak et al., ICPE 2024 Companion, figures 5 to 8). */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "placement.h"
#include "options.h"

enum {
  MODEL = 1,
  WORKERS_AT,
  EACH,
  CLOUDS,
  FUNCTIONS,
  STORAGE,
  PLACES,
  BATCHES,
  TRAIN,
  CATALOGUE,
  NETWORK,
  CSV,
  PLOT,
  HIERARCHY,
  MEMORY,
  POLL,
  START,
  ADD,
  SETUP,
  WINDOW
};

/* ---- options --------------------------------------------------------------------------------- */

static gt_status read_words(word_list *list, const char *option, const char *text) {
  gt_free(list->text);
  gt_free(list->names);
  *list = (word_list){gt_strdup(text), GT_NEW_ARRAY(const char *, strlen(text) + 1), 0};
  for (char *at = list->text, *comma; at; at = comma ? comma + 1 : NULL) {
    comma = strchr(at, ',');
    if (comma) *comma = '\0';
    for (size_t i = 0; i < list->n; i++)
      if (strcmp(list->names[i], at) == 0)
        return GT_FAIL(GT_ERR_JOB, "placement: %s names %.80s twice; expected once", option, at);
    if (!*at)
      return GT_FAIL(GT_ERR_JOB,
                     "placement: %s is \"%.80s\"; expected names with commas between them", option,
                     text);
    list->names[list->n++] = at;
  }
  return GT_OK;
}

static gt_status read_count(int64_t *out, const char *option, const char *text, int64_t most) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (errno || end == text || *end || n < 1 || n > most)
    return GT_FAIL(GT_ERR_JOB, "placement: %s is \"%.80s\"; expected a whole number from 1 to %lld",
                   option, text, (long long)most);
  *out = n;
  return GT_OK;
}

static gt_status read_real(double *out, const char *option, const char *text, double least,
                           double most) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= least && x <= most))
    return GT_FAIL(GT_ERR_JOB, "placement: %s is \"%.80s\"; expected a number from %g to %g",
                   option, text, least, most);
  *out = x;
  return GT_OK;
}

static gt_status named(const char *option, gt_status status) {
  char text[GT_ERROR_TEXT_MAX - 128];
  if (status == GT_OK) return GT_OK;
  snprintf(text, sizeof text, "%s", gt_error_text());
  return GT_FAIL(GT_ERR_JOB, "placement: %s: %s", option, text);
}

/* Reads a time of at most a day; anything longer is taken as a mistake. */
static gt_status read_time(double *out, const char *option, const char *text) {
  GT_TRY(named(option, gt_parse_time_s(text, out)));
  if (*out > 86400)
    return GT_FAIL(GT_ERR_JOB, "placement: %s is \"%.80s\"; expected at most a day", option, text);
  return GT_OK;
}

static gt_status read_model(double *out, const char *text) {
  GT_TRY(named("--model-bytes", gt_parse_size_bytes(text, out)));
  if (*out < 1 || *out > 1e13)
    return GT_FAIL(GT_ERR_JOB, "placement: --model-bytes is \"%.80s\"; expected from 1 B to 10 TB",
                   text);
  return GT_OK;
}

static gt_status take_option(placement_options *o, int option, const char *value) {
  switch (option) {
  case MODEL:
    return read_model(&o->model_bytes, value);
  case WORKERS_AT:
    return read_words(&o->workers_at, "--workers-at", value);
  case EACH:
    return read_count(&o->each, "--workers-each", value, 1000);
  case CLOUDS:
    return read_words(&o->clouds, "--clouds", value);
  case FUNCTIONS:
    return read_words(&o->functions, "--functions", value);
  case STORAGE:
    return read_words(&o->storages, "--storage", value);
  case PLACES:
    return read_words(&o->places, "--places", value);
  case BATCHES:
    return read_count(&o->batches, "--batches", value, 1000000);
  case TRAIN:
    return read_time(&o->train_s, "--train-time", value);
  case CATALOGUE:
  case NETWORK:
    o->files[o->nfiles++] = value;
    return GT_OK;
  case CSV:
    o->csv = value;
    return GT_OK;
  case PLOT:
    o->plot = value;
    return GT_OK;
  case HIERARCHY:
    o->hierarchy = true;
    return GT_OK;
  case MEMORY:
    return read_real(&o->memory_gb, "--memory-gb", value, 0.001, 1000);
  case POLL:
    return read_time(&o->pace.poll_s, "--poll", value);
  case START:
    return read_time(&o->pace.start_s, "--start", value);
  case ADD:
    return read_real(&o->pace.add_s_per_gb, "--add-s-per-gb", value, 0, 1e6);
  case SETUP:
    return read_real(&o->setup_rtts, "--setup-rtts", value, 0, 100);
  default:
    return named("--window", gt_parse_size_bytes(value, &o->window_bytes));
  }
}

static gt_status read_options(placement_options *o, int argc, char **argv) {
  static const struct option options[] = {{"model-bytes", 1, NULL, MODEL},
                                          {"workers-at", 1, NULL, WORKERS_AT},
                                          {"workers-each", 1, NULL, EACH},
                                          {"clouds", 1, NULL, CLOUDS},
                                          {"functions", 1, NULL, FUNCTIONS},
                                          {"storage", 1, NULL, STORAGE},
                                          {"places", 1, NULL, PLACES},
                                          {"batches", 1, NULL, BATCHES},
                                          {"train-time", 1, NULL, TRAIN},
                                          {"catalogue", 1, NULL, CATALOGUE},
                                          {"network", 1, NULL, NETWORK},
                                          {"csv", 1, NULL, CSV},
                                          {"plot", 1, NULL, PLOT},
                                          {"hierarchy", 0, NULL, HIERARCHY},
                                          {"memory-gb", 1, NULL, MEMORY},
                                          {"poll", 1, NULL, POLL},
                                          {"start", 1, NULL, START},
                                          {"add-s-per-gb", 1, NULL, ADD},
                                          {"setup-rtts", 1, NULL, SETUP},
                                          {"window", 1, NULL, WINDOW},
                                          {NULL, 0, NULL, 0}};
  int option;
  bool catalogue = false;
  opterr = 0;
  o->nfiles = 1; /* the first entry is for the default catalogue, used if none is given */
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option < MODEL || option > WINDOW) return gt_option_refused(argc, argv, "placement");
    if (option == CATALOGUE && !catalogue) {
      catalogue = true;
      o->files[0] = optarg;
      continue;
    }
    GT_TRY(take_option(o, option, optarg));
  }
  if (optind < argc)
    return GT_FAIL(GT_ERR_JOB,
                   "placement: \"%.80s\" is not an option; see `geotrain help placement`",
                   argv[optind]);
  if (o->model_bytes == 0)
    return GT_FAIL(GT_ERR_JOB, "placement: --model-bytes is not given; expected the size of a "
                               "gradient, as in --model-bytes 17MB");
  if (o->places.n == 0) {
    gt_free(o->places.names);
    o->places = (word_list){NULL, GT_NEW_ARRAY(const char *, o->workers_at.n), o->workers_at.n};
    memcpy(o->places.names, o->workers_at.names, o->workers_at.n * sizeof *o->places.names);
  }
  return GT_OK;
}

/* ---- the sweep ------------------------------------------------------------------------------- */

/* Places the workers, with a regional aggregator at each of their places if `regional`. */
static void place_one(const placement_options *o, const placement_sites *s, placement_result *r) {
  const size_t n = o->workers_at.n, nworkers = n * (size_t)o->each;
  gt_plan_worker *workers = GT_NEW_ARRAY(gt_plan_worker, nworkers);
  gt_plan_point *points = GT_NEW_ARRAY(gt_plan_point, n);
  gt_plan_use *use = GT_NEW_ARRAY(gt_plan_use, n + 1);
  double *vm_s = GT_NEW_ARRAY(double, nworkers);
  for (size_t i = 0; i < nworkers; i++)
    workers[i] = (gt_plan_worker){gt_placement_site(s, r->cloud, o->workers_at.names[i % n]), i % n,
                                  o->train_s};
  for (size_t i = 0; i < n; i++)
    points[i] = (gt_plan_point){gt_placement_site(s, r->function, o->workers_at.names[i]),
                                gt_placement_site(s, r->storage, o->workers_at.names[i])};
  gt_plan_placement p = {
      &s->sites,
      workers,
      nworkers,
      {gt_placement_site(s, r->function, r->place), gt_placement_site(s, r->storage, r->place)},
      points,
      r->regional ? n : 0,
      o->model_bytes,
      o->memory_gb,
      o->batches};
  r->split = gt_plan_place(&p, &o->pace, vm_s, use);
  r->terms = gt_plan_cost(&p, vm_s, use, NULL, 0);
  gt_free(vm_s);
  gt_free(use);
  gt_free(points);
  gt_free(workers);
}

static size_t sweep(const placement_options *o, const placement_sites *s,
                    placement_result *results) {
  size_t n = 0;
  for (size_t c = 0; c < o->clouds.n; c++)
    for (size_t f = 0; f < o->functions.n; f++)
      for (size_t t = 0; t < o->storages.n; t++)
        for (size_t p = 0; p < o->places.n; p++)
          for (int regional = 0; regional <= o->hierarchy; regional++) {
            results[n] = (placement_result){.cloud = o->clouds.names[c],
                                            .function = o->functions.names[f],
                                            .storage = o->storages.names[t],
                                            .place = o->places.names[p],
                                            .regional = regional};
            place_one(o, s, &results[n++]);
          }
  return n;
}

static gt_status placement(const placement_options *o) {
  placement_sites sites;
  if (o->plot) GT_TRY(gt_placement_can_plot());
  for (size_t i = 0; o->csv && i < o->nfiles; i++)
    GT_TRY(gt_output_may_replace(o->csv, o->files[i], NULL, NULL));
  gt_status status = gt_placement_sites(&sites, o);
  if (status == GT_OK) {
    placement_result *results = GT_NEW_ARRAY(placement_result, 2 * o->clouds.n * o->functions.n *
                                                                   o->storages.n * o->places.n);
    size_t n = sweep(o, &sites, results);
    gt_placement_print(stdout, o, &sites, results, n);
    if (o->csv) status = gt_placement_csv(o->csv, results, n);
    if (status == GT_OK && o->plot) status = gt_placement_plot(o->plot, o, results, n);
    gt_free(results);
  }
  gt_placement_sites_close(&sites);
  return status;
}

gt_status gt_cmd_placement(int argc, char **argv) {
  char rates[1200];
  gt_catalogue_default(rates, sizeof rates);
  placement_options o = {.memory_gb = 1,
                         .train_s = 1,
                         .setup_rtts = 2,
                         .window_bytes = 14480,
                         .batches = 100,
                         .each = 1};
  o.pace = (gt_plan_pace){.poll_s = 1, .start_s = 0.1, .add_s_per_gb = 1};
  o.files = GT_NEW_ARRAY(const char *, (size_t)argc + 1);
  o.files[0] = rates;
  gt_status status = read_words(&o.workers_at, "--workers-at", "london,mumbai,oregon,sydney");
  if (status == GT_OK) status = read_words(&o.clouds, "--clouds", "aws,azure,gcp");
  if (status == GT_OK) status = read_words(&o.functions, "--functions", "aws,gcp");
  if (status == GT_OK) status = read_words(&o.storages, "--storage", "aws,gcp");
  if (status == GT_OK) status = read_options(&o, argc, argv);
  if (status == GT_OK) status = placement(&o);
  word_list *lists[] = {&o.workers_at, &o.places, &o.clouds, &o.functions, &o.storages};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    gt_free(lists[i]->names);
    gt_free(lists[i]->text);
  }
  gt_free(o.files);
  return status;
}
