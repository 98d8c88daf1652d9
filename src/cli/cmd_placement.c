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

const struct option gt_options_placement[] = {{"model-bytes", 1, NULL, MODEL},
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

static gt_status read_options(placement_options *o, int argc, char **argv) {
  int option;
  bool catalogue = false;
  opterr = 0;
  o->nfiles = 1; /* the first entry is for the default catalogue, used if none is given */
  while ((option = getopt_long(argc, argv, "", gt_options_placement, NULL)) != -1) {
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

/* ---- sites: rates, tariffs and links from catalogues, as input for plan.h -------------------- */

/* The roles of a site in this sweep. */
typedef struct {
  bool worker, function, storage;
} role;

static bool has(const word_list *list, const char *name) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->names[i], name) == 0) return true;
  return false;
}

static void take_names(word_list *into, const word_list *from) {
  for (size_t i = 0; i < from->n; i++)
    if (!has(into, from->names[i])) into->names[into->n++] = from->names[i];
}

static role role_of(const placement_options *o, const char *cloud, const char *place) {
  bool aggregates = has(&o->places, place) || (o->hierarchy && has(&o->workers_at, place));
  return (role){has(&o->clouds, cloud) && has(&o->workers_at, place),
                aggregates && has(&o->functions, cloud), aggregates && has(&o->storages, cloud)};
}

static size_t site_of(const placement_sites *s, const char *cloud, const char *place) {
  size_t c = 0, p = 0;
  while (c + 1 < s->clouds.n && strcmp(s->clouds.names[c], cloud) != 0) c++;
  while (p + 1 < s->places.n && strcmp(s->places.names[p], place) != 0) p++;
  return c * s->places.n + p;
}

static gt_rate_site name_of(const placement_sites *s, size_t site) {
  return (gt_rate_site){s->clouds.names[site / s->places.n], s->places.names[site % s->places.n]};
}

/* ---- from the catalogue ---------------------------------------------------------------------- */

static gt_status take(placement_sites *s, const gt_catalogue *c, gt_rate_kind kind, size_t site,
                      double *out) {
  const gt_rate *rate;
  size_t n;
  GT_TRY(gt_catalogue_rate(c, kind, name_of(s, site), NULL, &rate, &n));
  *out = rate->value;
  s->count[kind].used++;
  s->count[kind].assumed += rate->assumed;
  return GT_OK;
}

static gt_status take_rates(placement_sites *s, const gt_catalogue *c, size_t site, role r) {
  gt_plan_rates *rates = &s->rates[site];
  if (r.worker) GT_TRY(take(s, c, GT_RATE_VM_HOUR, site, &rates->vm_hour));
  if (r.function) GT_TRY(take(s, c, GT_RATE_FUNCTION_GB_S, site, &rates->function_gb_s));
  if (!r.storage) return GT_OK;
  GT_TRY(take(s, c, GT_RATE_STORAGE_GB_MONTH, site, &rates->storage_gb_month));
  GT_TRY(take(s, c, GT_RATE_READ, site, &rates->read));
  GT_TRY(take(s, c, GT_RATE_WRITE, site, &rates->write));
  return take(s, c, GT_RATE_LIST, site, &rates->list);
}

/* Returns the pool of the tier for traffic between two sites.  Traffic within a site counts in no
   tier.  A cloud's traffic between its own places and its traffic to other clouds are two pools. */
static size_t pool_of(const placement_sites *s, size_t from, size_t to) {
  size_t cloud = from / s->places.n;
  return from == to ? 2 * s->clouds.n : 2 * cloud + (cloud != to / s->places.n);
}

static gt_status take_tariff(placement_sites *s, const gt_catalogue *c, size_t from, size_t to) {
  const gt_rate *rate;
  size_t n, pair = from * s->sites.n + to;
  gt_rate_site receiver = name_of(s, to);
  GT_TRY(gt_catalogue_rate(c, GT_RATE_EGRESS_GB, name_of(s, from), &receiver, &rate, &n));
  s->tiers[pair] = GT_NEW_ARRAY(gt_plan_tier, n);
  for (size_t i = 0; i < n; i++) s->tiers[pair][i] = (gt_plan_tier){rate[i].from_gb, rate[i].value};
  s->tariffs[pair] = (gt_plan_tariff){s->tiers[pair], n, pool_of(s, from, to)};
  s->count[GT_RATE_EGRESS_GB].used++;
  s->count[GT_RATE_EGRESS_GB].assumed += rate->assumed;
  return GT_OK;
}

static gt_status take_link(placement_sites *s, const gt_catalogue *c, const placement_options *o,
                           size_t from, size_t to) {
  const gt_rate *mbit_s, *rtt_ms;
  size_t n;
  gt_rate_site receiver = name_of(s, to);
  GT_TRY(gt_catalogue_rate(c, GT_RATE_LINK_MBIT_S, name_of(s, from), &receiver, &mbit_s, &n));
  GT_TRY(gt_catalogue_rate(c, GT_RATE_LINK_RTT_MS, name_of(s, from), &receiver, &rtt_ms, &n));
  double one_way_s = rtt_ms->value / 2000;
  s->links[from * s->sites.n + to] = (gt_link_spec){.bandwidth_bps = mbit_s->value * 1e6,
                                                    .latency_s = one_way_s,
                                                    .back_s = one_way_s,
                                                    .setup_rtts = o->setup_rtts,
                                                    .window_bytes = o->window_bytes};
  s->count[GT_RATE_LINK_MBIT_S].used++;
  s->count[GT_RATE_LINK_MBIT_S].assumed += mbit_s->assumed;
  s->count[GT_RATE_LINK_RTT_MS].used++;
  s->count[GT_RATE_LINK_RTT_MS].assumed += rtt_ms->assumed;
  return GT_OK;
}

/* Takes the rates of sites, then those of the pairs between which objects move. */
static gt_status take_all(placement_sites *s, const gt_catalogue *c, const placement_options *o) {
  for (size_t i = 0; i < s->sites.n; i++) {
    gt_rate_site from = name_of(s, i);
    role a = role_of(o, from.cloud, from.place);
    GT_TRY(take_rates(s, c, i, a));
    for (size_t j = 0; j < s->sites.n; j++) {
      gt_rate_site to = name_of(s, j);
      role b = role_of(o, to.cloud, to.place);
      bool workers = (a.worker && b.storage) || (a.storage && b.worker);
      bool functions = ((a.function && b.storage) || (a.storage && b.function)) &&
                       (o->hierarchy || i % s->places.n == j % s->places.n);
      if (!workers && !functions) continue;
      GT_TRY(take_tariff(s, c, i, j));
      GT_TRY(take_link(s, c, o, i, j));
    }
  }
  return GT_OK;
}

static gt_status check_names(const gt_catalogue *c, const placement_options *o) {
  const struct {
    const char *option;
    const word_list *list;
    gt_status (*has)(const gt_catalogue *, const char *, const char *);
  } checks[] = {{"--workers-at", &o->workers_at, gt_catalogue_has_place},
                {"--places", &o->places, gt_catalogue_has_place},
                {"--clouds", &o->clouds, gt_catalogue_has_cloud},
                {"--functions", &o->functions, gt_catalogue_has_cloud},
                {"--storage", &o->storages, gt_catalogue_has_cloud}};
  for (size_t k = 0; k < sizeof checks / sizeof *checks; k++)
    for (size_t i = 0; i < checks[k].list->n; i++)
      GT_TRY(checks[k].has(c, checks[k].option, checks[k].list->names[i]));
  return GT_OK;
}

/* Reads the rates for the options from the catalogues; GT_ERR_JOB names a missing one.  The caller
   closes *out, also after an error. */
static gt_status find_sites(placement_sites *s, const placement_options *o) {
  gt_catalogue *c = NULL;
  *s = (placement_sites){0};
  GT_TRY(gt_catalogue_read(&c, o->files[0]));
  gt_status status = GT_OK;
  for (size_t i = 1; i < o->nfiles && status == GT_OK; i++)
    status = gt_catalogue_add(c, o->files[i]);
  if (status == GT_OK) status = check_names(c, o);
  s->clouds.names = GT_NEW_ARRAY(const char *, o->clouds.n + o->functions.n + o->storages.n);
  s->places.names = GT_NEW_ARRAY(const char *, o->workers_at.n + o->places.n);
  take_names(&s->clouds, &o->clouds);
  take_names(&s->clouds, &o->functions);
  take_names(&s->clouds, &o->storages);
  take_names(&s->places, &o->workers_at);
  take_names(&s->places, &o->places);
  size_t n = s->clouds.n * s->places.n;
  s->rates = GT_NEW_ARRAY(gt_plan_rates, n);
  s->tariffs = GT_NEW_ARRAY(gt_plan_tariff, n * n);
  s->tiers = GT_NEW_ARRAY(gt_plan_tier *, n * n);
  s->links = GT_NEW_ARRAY(gt_link_spec, n * n);
  s->sites = (gt_plan_sites){n, s->rates, s->tariffs, s->links};
  if (status == GT_OK) status = take_all(s, c, o);
  gt_catalogue_close(c);
  return status;
}

static void close_sites(placement_sites *s) {
  for (size_t i = 0; s->tiers && i < s->sites.n * s->sites.n; i++) gt_free(s->tiers[i]);
  gt_free(s->tiers);
  gt_free(s->tariffs);
  gt_free(s->rates);
  gt_free(s->links);
  gt_free(s->clouds.names);
  gt_free(s->places.names);
  *s = (placement_sites){0};
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
  const size_t n = o->workers_at.n, nworkers = n * (size_t)o->each;
  gt_plan_worker *workers = GT_NEW_ARRAY(gt_plan_worker, nworkers);
  gt_plan_point *points = GT_NEW_ARRAY(gt_plan_point, n);
  gt_plan_use *use = GT_NEW_ARRAY(gt_plan_use, n + 1);
  double *vm_s = GT_NEW_ARRAY(double, nworkers);
  for (size_t i = 0; i < nworkers; i++)
    workers[i] =
        (gt_plan_worker){site_of(s, r->cloud, o->workers_at.names[i % n]), i % n, o->train_s};
  for (size_t i = 0; i < n; i++)
    points[i] = (gt_plan_point){site_of(s, r->function, o->workers_at.names[i]),
                                site_of(s, r->storage, o->workers_at.names[i])};
  gt_plan_placement p = {
      &s->sites,      workers,
      nworkers,       {site_of(s, r->function, r->place), site_of(s, r->storage, r->place)},
      points,         r->regional ? n : 0,
      o->model_bytes, o->memory_gb,
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
  if (o->plot) GT_TRY(can_plot());
  for (size_t i = 0; o->csv && i < o->nfiles; i++)
    GT_TRY(gt_output_may_replace(o->csv, o->files[i], NULL, NULL));
  gt_status status = find_sites(&sites, o);
  if (status == GT_OK) {
    placement_result *results = GT_NEW_ARRAY(placement_result, 2 * o->clouds.n * o->functions.n *
                                                                   o->storages.n * o->places.n);
    size_t n = sweep(o, &sites, results);
    gt_placement_print(stdout, o, &sites, results, n);
    if (o->csv) status = gt_placement_csv(o->csv, results, n);
    if (status == GT_OK && o->plot) status = plot(o->plot, o, results, n);
    gt_free(results);
  }
  close_sites(&sites);
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
