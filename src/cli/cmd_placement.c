/* `geotrain placement`: compares places for aggregation: time and cost of a mini-batch by place and
   vendor of function and storage (Phalak et al., ICPE 2024 Companion, figures 5 to 8). */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "options.h"
#include "placement.h"

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
  WINDOW,
  RESIDENCY
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
  if (status == GT_OK) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "placement: %s: %s", option, gt_error_text());
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

static gt_status read_residency(placement_options *o, const char *text) {
  if (strcmp(text, "month") != 0 && strcmp(text, "time") != 0)
    return GT_FAIL(GT_ERR_JOB, "placement: --residency is \"%.80s\"; expected time or month", text);
  o->objects_by_month = strcmp(text, "month") == 0;
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
    return read_real(&o->add_s_per_gb, "--add-s-per-gb", value, 0, 1e6);
  case SETUP:
    return read_real(&o->setup_rtts, "--setup-rtts", value, 0, 100);
  case WINDOW:
    return named("--window", gt_parse_size_bytes(value, &o->window_bytes));
  default:
    return read_residency(o, value);
  }
}

const struct option gt_options_placement[] = {
    {"model-bytes", 1, NULL, MODEL},   {"workers-at", 1, NULL, WORKERS_AT},
    {"workers-each", 1, NULL, EACH},   {"clouds", 1, NULL, CLOUDS},
    {"functions", 1, NULL, FUNCTIONS}, {"storage", 1, NULL, STORAGE},
    {"places", 1, NULL, PLACES},       {"batches", 1, NULL, BATCHES},
    {"train-time", 1, NULL, TRAIN},    {"catalogue", 1, NULL, CATALOGUE},
    {"network", 1, NULL, NETWORK},     {"csv", 1, NULL, CSV},
    {"plot", 1, NULL, PLOT},           {"hierarchy", 0, NULL, HIERARCHY},
    {"memory-gb", 1, NULL, MEMORY},    {"poll", 1, NULL, POLL},
    {"start", 1, NULL, START},         {"add-s-per-gb", 1, NULL, ADD},
    {"setup-rtts", 1, NULL, SETUP},    {"window", 1, NULL, WINDOW},
    {"residency", 1, NULL, RESIDENCY}, {NULL, 0, NULL, 0}};

/* Workers are at places, on each cloud in turn, or each at its own CLOUD:PLACE. */
static gt_status find_spots(placement_options *o, bool clouds_given) {
  const size_t n = o->workers_at.n;
  o->spots = GT_NEW_ARRAY(worker_spot, n);
  o->worker_places = (word_list){NULL, GT_NEW_ARRAY(const char *, n), 0};
  word_list *places = &o->worker_places;
  for (size_t i = 0; i < n; i++) {
    worker_spot *spot = &o->spots[i];
    char *colon = strchr(o->workers_at.names[i], ':');
    spot->cloud = colon ? o->workers_at.names[i] : NULL;
    spot->place = colon ? colon + 1 : o->workers_at.names[i];
    if (colon) *colon = '\0';
    if (!spot->cloud != !o->spots->cloud)
      return GT_FAIL(GT_ERR_JOB,
                     "placement: --workers-at has %s with and %s without a cloud; "
                     "expected PLACE,... or CLOUD:PLACE,...",
                     spot->cloud ? spot->place : o->spots->place,
                     spot->cloud ? o->spots->place : spot->place);
    while (spot->point < places->n && strcmp(places->names[spot->point], spot->place) != 0)
      spot->point++;
    if (spot->point == places->n) places->names[places->n++] = spot->place;
  }
  if (o->spots->cloud && clouds_given)
    return GT_FAIL(GT_ERR_JOB, "placement: --clouds is given, but --workers-at names clouds; "
                               "expected one of them");
  if (o->spots->cloud) return read_words(&o->clouds, "--clouds", "several");
  return GT_OK;
}

static gt_status read_options(placement_options *o, int argc, char **argv) {
  int option;
  bool catalogue = false, clouds = false;
  opterr = 0;
  o->nfiles = 1; /* the first entry is for the default catalogue, used if none is given */
  while ((option = getopt_long(argc, argv, "", gt_options_placement, NULL)) != -1) {
    if (option < MODEL || option > RESIDENCY) return gt_option_refused(argc, argv, "placement");
    if (option == CATALOGUE && !catalogue) {
      catalogue = true;
      o->files[0] = optarg;
      continue;
    }
    clouds |= option == CLOUDS;
    GT_TRY(take_option(o, option, optarg));
  }
  if (optind < argc)
    return GT_FAIL(GT_ERR_JOB,
                   "placement: \"%.80s\" is not an option; see `geotrain help placement`",
                   argv[optind]);
  if (o->model_bytes == 0)
    return GT_FAIL(GT_ERR_JOB, "placement: --model-bytes is not given; expected the size of a "
                               "gradient, as in --model-bytes 17MB");
  if (o->memory_gb < 2 * o->model_bytes / 1e9)
    return GT_FAIL(GT_ERR_JOB,
                   "placement: --memory-gb is %g; expected at least %g, because a function has the "
                   "sum and one gradient in memory",
                   o->memory_gb, 2 * o->model_bytes / 1e9);
  GT_TRY(find_spots(o, clouds));
  if (o->places.n == 0) {
    o->places = (word_list){NULL, GT_NEW_ARRAY(const char *, o->workers_at.n), o->worker_places.n};
    memcpy(o->places.names, o->worker_places.names, o->places.n * sizeof *o->places.names);
  }
  return GT_OK;
}

/* ---- plot: a panel per cloud of workers, phases stacked, costs as points on the right axis --- */

/* Returns GT_ERR_JOB if gnuplot is not in PATH. */
static gt_status can_plot(void) {
  const char *path = getenv("PATH");
  char file[4096];
  for (const char *at = path; at && *at; at += strcspn(at, ":"), at += *at == ':') {
    snprintf(file, sizeof file, "%.*s/gnuplot", (int)strcspn(at, ":"), at);
    if (access(file, X_OK) == 0) return GT_OK;
  }
  return GT_FAIL(GT_ERR_JOB, "placement: --plot needs gnuplot, which is not in PATH; install "
                             "it, or omit --plot (--csv writes the same figures)");
}

/* Writes a text in single quotes, with quotes doubled. */
static void put_quoted(FILE *to, const char *text) {
  fputc('\'', to);
  for (; *text; text++) fprintf(to, *text == '\'' ? "''" : "%c", *text);
  fputc('\'', to);
}

/* Writes the panel's lines as a data block; returns their number. */
static size_t put_data(FILE *to, size_t panel, const char *cloud, const placement_result *results,
                       size_t n) {
  size_t lines = 0;
  fprintf(to, "$data%zu << EOD\n", panel);
  for (size_t i = 0; i < n; i++) {
    const placement_result *r = &results[i];
    if (strcmp(r->cloud, cloud) != 0) continue;
    fprintf(to, "\"%s+%s %s%s\" %.6g %.6g %.6g %.6g %.6g\n", r->function, r->storage, r->place,
            r->regional ? ", regional" : "", r->split.train_s, r->split.upload_s, r->split.wait_s,
            r->split.download_s, 1000 * r->terms.total);
    lines++;
  }
  fprintf(to, "EOD\n");
  return lines;
}

static void put_script(FILE *to, const char *path, const placement_options *o,
                       const placement_result *results, size_t n) {
  size_t panels = o->clouds.n, lines = 0;
  for (size_t c = 0; c < panels; c++) lines = put_data(to, c, o->clouds.names[c], results, n);
  fprintf(to, "set terminal pngcairo size %zu,%zu noenhanced\nset output ", 400 + 28 * lines,
          420 * panels);
  put_quoted(to, path);
  fprintf(to,
          "\nset multiplot layout %zu,1\nset style data histograms\nset style histogram "
          "rowstacked\nset style fill solid\nset boxwidth 0.7\nset "
          "yrange [0:*]\n"
          "set y2range [0:*]\nset ytics nomirror\nset y2tics\nset xtics rotate by -45\nset ylabel "
          "'s of a mini-batch'\nset y2label 'USD of 1,000'\n"
          "set key outside right\n",
          panels);
  for (size_t c = 0; c < panels; c++) {
    fprintf(to, "set title ");
    put_quoted(to, o->clouds.names[c]);
    fprintf(to,
            "\nplot $data%zu using 2:xtic(1) title 'train', '' using 3 title 'upload', '' using 4 "
            "title 'wait', '' using 5 title 'download', "
            "'' using 0:6 axes x1y2 with points pt 7 lc rgb 'black' title 'cost'\n",
            c);
  }
  fprintf(to, "unset multiplot\n");
}

static gt_status plot(const char *path, const placement_options *o, const placement_result *results,
                      size_t n) {
  /* NOLINT(cert-env33-c): a program that the user asks for by name */
  FILE *to = popen("gnuplot", "w");
  if (!to) return GT_FAIL(GT_ERR_JOB, "placement: gnuplot cannot be started");
  put_script(to, path, o, results, n);
  if (pclose(to) != 0 || access(path, R_OK) != 0)
    return GT_FAIL(GT_ERR_JOB, "placement: gnuplot did not write %s; see its messages above", path);
  return GT_OK;
}

/* ---- the sweep ------------------------------------------------------------------------------- */

/* Places the workers, with a regional aggregator at each of their places if `regional`. */
static void place_one(const placement_options *o, const placement_sites *s, placement_result *r) {
  const size_t n = o->worker_places.n, spots = o->workers_at.n, nworkers = spots * (size_t)o->each;
  gt_plan_worker *workers = GT_NEW_ARRAY(gt_plan_worker, nworkers);
  gt_plan_point *points = GT_NEW_ARRAY(gt_plan_point, n);
  gt_plan_use *use = GT_NEW_ARRAY(gt_plan_use, n + 1);
  double *vm_s = GT_NEW_ARRAY(double, nworkers);
  for (size_t i = 0; i < nworkers; i++) {
    const worker_spot *spot = &o->spots[i % spots];
    size_t site = gt_placement_site(s, spot->cloud ? spot->cloud : r->cloud, spot->place);
    workers[i] = (gt_plan_worker){site, spot->point, o->train_s};
  }
  for (size_t i = 0; i < n; i++)
    points[i] = (gt_plan_point){gt_placement_site(s, r->function, o->worker_places.names[i]),
                                gt_placement_site(s, r->storage, o->worker_places.names[i])};
  gt_plan_placement p = {.sites = &s->sites,
                         .workers = workers,
                         .nworkers = nworkers,
                         .global = {gt_placement_site(s, r->function, r->place),
                                    gt_placement_site(s, r->storage, r->place)},
                         .regional = points,
                         .nregional = r->regional ? n : 0,
                         .model_bytes = o->model_bytes,
                         .batches = o->batches,
                         .objects_by_month = o->objects_by_month};
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
            results[n].one_cloud =
                strcmp(results[n].function, results[n].storage) == 0 &&
                (o->spots->cloud || strcmp(results[n].cloud, results[n].function) == 0);
            place_one(o, s, &results[n++]);
          }
  return n;
}

static gt_status placement(const placement_options *o) {
  placement_sites sites;
  if (o->plot) GT_TRY(can_plot());
  for (size_t i = 0; o->csv && i < o->nfiles; i++)
    GT_TRY(gt_output_may_replace(o->csv, o->files[i], NULL, NULL));
  gt_status status = gt_placement_find_sites(&sites, o);
  if (status == GT_OK) {
    placement_result *results = GT_NEW_ARRAY(placement_result, 2 * o->clouds.n * o->functions.n *
                                                                   o->storages.n * o->places.n);
    size_t n = sweep(o, &sites, results);
    gt_placement_print(stdout, o, &sites, results, n);
    if (o->csv) status = gt_placement_csv(o->csv, results, n);
    if (status == GT_OK && o->plot) status = plot(o->plot, o, results, n);
    gt_free(results);
  }
  gt_placement_close_sites(&sites);
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
                         .each = 1,
                         .add_s_per_gb = -1};
  o.pace = (gt_plan_pace){.poll_s = 1, .start_s = 0.1};
  o.files = GT_NEW_ARRAY(const char *, (size_t)argc + 1);
  o.files[0] = rates;
  gt_status status = read_words(&o.workers_at, "--workers-at", "london,mumbai,oregon,sydney");
  if (status == GT_OK) status = read_words(&o.clouds, "--clouds", "aws,azure,gcp");
  if (status == GT_OK) status = read_words(&o.functions, "--functions", "aws,gcp");
  if (status == GT_OK) status = read_words(&o.storages, "--storage", "aws,gcp");
  if (status == GT_OK) status = read_options(&o, argc, argv);
  if (status == GT_OK) status = placement(&o);
  word_list *lists[] = {&o.workers_at, &o.worker_places, &o.places,
                        &o.clouds,     &o.functions,     &o.storages};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    gt_free(lists[i]->names);
    gt_free(lists[i]->text);
  }
  gt_free(o.spots);
  gt_free(o.files);
  return status;
}
