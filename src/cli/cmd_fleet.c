/* `geotrain fleet`: groups the devices of a fleet by links and power, and prints the groups. */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "cli.h"
#include "geotrain/job_fleet.h"
#include "geotrain/pipe_groups.h"
#include "geotrain/record_table.h"
#include "options.h"

#define NAMES 6 /* devices listed by name per group */

typedef struct {
  const char *path;
  double theta_s, bytes; /* 0: not given */
  bool devices;
} options;

/* The data to print. */
typedef struct {
  const options *o;
  const gt_job_fleet *fleet;
  gt_pipe_fleet numbers;
  gt_pipe_grouping grouping;
  gt_pipe_group *groups;
  gt_pipe_link *between; /* [from * ngroups + to] */
} view;

/* ---- numbers --------------------------------------------------------------------------------- */

static void open_numbers(gt_pipe_fleet *numbers, const gt_job_fleet *fleet) {
  const size_t n = fleet->n;
  gt_pipe_link *links = GT_NEW_ARRAY(gt_pipe_link, n * n);
  double *power = GT_NEW_ARRAY(double, n), *memory_bytes = GT_NEW_ARRAY(double, n);
  for (size_t i = 0; i < n * n; i++)
    links[i] = (gt_pipe_link){fleet->links[i].small_s, fleet->links[i].large_s};
  for (size_t i = 0; i < n; i++) {
    power[i] = fleet->devices[i].power;
    memory_bytes[i] = fleet->devices[i].memory_bytes;
  }
  *numbers = (gt_pipe_fleet){n, links, power, memory_bytes};
}

static void close_numbers(gt_pipe_fleet *numbers) {
  gt_free((void *)(uintptr_t)numbers->links);
  gt_free((void *)(uintptr_t)numbers->power);
  gt_free((void *)(uintptr_t)numbers->memory_bytes);
}

static gt_status open_view(view *v) {
  const double theta_s = v->o->theta_s > 0 ? v->o->theta_s : v->fleet->theta_s;
  gt_pipe_grouping grouping;
  open_numbers(&v->numbers, v->fleet);
  GT_TRY(gt_pipe_grouping_make(&grouping, &v->numbers, theta_s, v->o->bytes));
  v->grouping = grouping;
  v->groups = GT_NEW_ARRAY(gt_pipe_group, v->grouping.ngroups);
  v->between = GT_NEW_ARRAY(gt_pipe_link, v->grouping.ngroups * v->grouping.ngroups);
  gt_pipe_grouping_groups(&v->grouping, &v->numbers, v->groups, v->between);
  return GT_OK;
}

static void close_view(view *v) {
  gt_free(v->groups);
  gt_free(v->between);
  gt_pipe_grouping_close(&v->grouping);
  close_numbers(&v->numbers);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *plural(size_t n) {
  return n == 1 ? "" : "s";
}

static const char *span(char buf[32], double s) {
  return isinf(s) ? "never" : gt_format_time(buf, 32, s);
}

static void print_head(const view *v) {
  const gt_pipe_grouping *g = &v->grouping;
  char size[32], theta[32];
  gt_format_size(size, sizeof size, v->o->bytes);
  gt_print_wrapped(stdout, 2, "%s: %zu device%s, %zu region%s, %zu group%s", v->o->path,
                   v->fleet->n, plural(v->fleet->n), g->nregions, plural(g->nregions), g->ngroups,
                   plural(g->ngroups));
  if (isinf(g->theta_s))
    gt_print_wrapped(stdout, 2,
                     "level 1, links: no two consecutive mean times of %s differ by a "
                     "factor of %g",
                     size, GT_PIPE_APART);
  else
    gt_print_wrapped(stdout, 2,
                     "level 1, links: devices with a mean time of %s above %s are separate (%s)",
                     size, gt_format_time(theta, sizeof theta, g->theta_s),
                     v->o->theta_s > 0       ? "--theta"
                     : v->fleet->theta_s > 0 ? "fleet.theta"
                                             : "the largest gap");
  gt_print_wrapped(stdout, 2, "level 2, power: devices whose mean ratio is above %g are separate",
                   GT_PIPE_ALIKE);
}

/* Prints the operations, for one sample, on the most powerful device. */
static void print_operations(const view *v) {
  double forward_s = 0, input_s = 0, weight_s = 0, power = 0;
  char text[3][32];
  for (size_t i = 0; i < v->fleet->n; i++) power = fmax(power, v->fleet->devices[i].power);
  for (size_t k = 0; k < v->fleet->noperations; k++) {
    forward_s += v->fleet->operations[k].forward_s / power;
    input_s += v->fleet->operations[k].input_s / power;
    weight_s += v->fleet->operations[k].weight_s / power;
  }
  if (v->fleet->noperations > 0)
    gt_print_wrapped(
        stdout, 2,
        "model: %zu operations, for one sample on the most powerful device: forward %s, "
        "backward-input %s, backward-weight %s",
        v->fleet->noperations, gt_format_time(text[0], 32, forward_s),
        gt_format_time(text[1], 32, input_s), gt_format_time(text[2], 32, weight_s));
}

#define WHOLE .format = GT_COLUMN_WHOLE
#define POWER                                                                                      \
  { .title = "power", .format = GT_COLUMN_DIGITS, .digits = 4 }

static const char *names_text(char *text, size_t size, const view *v, size_t group) {
  size_t n = 0, at = 0;
  *text = '\0';
  for (size_t i = 0; i < v->fleet->n; i++) {
    if (v->grouping.group[i] != group || ++n > NAMES || at >= size) continue;
    at += (size_t)snprintf(text + at, size - at, "%s%s", n > 1 ? ", " : "",
                           v->fleet->devices[i].name);
  }
  if (n > NAMES && at < size) snprintf(text + at, size - at, " and %zu more", n - NAMES);
  return text;
}

/* Latency and rate of the slowest link inside a group. */
static void add_group(gt_table *t, const view *v, size_t group) {
  const gt_pipe_group *g = &v->groups[group];
  const gt_pipe_link link = v->between[group * v->grouping.ngroups + group];
  const double carried_s = link.large_s - link.small_s;
  char memory[32], latency[32], rate[32], names[1024];
  gt_cell row[8] = {gt_cell_whole((int64_t)group), gt_cell_whole((int64_t)g->region),
                    gt_cell_whole((int64_t)g->count), gt_cell_number(g->power),
                    gt_cell_text(gt_format_size(memory, sizeof memory, g->memory_bytes))};
  if (g->count > 1) row[5] = gt_cell_text(span(latency, link.small_s));
  if (g->count > 1 && carried_s > 0)
    row[6] = gt_cell_text(gt_format_rate(rate, sizeof rate, 8.0 * GT_PIPE_LARGE_BYTES / carried_s));
  row[7] = gt_cell_text(names_text(names, sizeof names, v, group));
  gt_table_add(t, row, 8);
}

static void print_groups(const view *v) {
  static const gt_column columns[8] = {{.title = "group", WHOLE},   {.title = "region", WHOLE},
                                       {.title = "devices", WHOLE}, POWER,
                                       {.title = "memory", WHOLE},  {.title = "latency", WHOLE},
                                       {.title = "rate", WHOLE},    {.title = "names"}};
  gt_table *t = gt_table_create(columns, 8);
  for (size_t k = 0; k < v->grouping.ngroups; k++) add_group(t, v, k);
  printf("\ngroups; latency and rate of the slowest link inside:\n");
  gt_table_finish(stdout, t);
}

static void print_between(const view *v) {
  const size_t n = v->grouping.ngroups;
  gt_column *columns = GT_NEW_ARRAY(gt_column, n + 1);
  gt_cell *row = GT_NEW_ARRAY(gt_cell, n + 1);
  char size[32], (*titles)[24] = gt_alloc(n, sizeof *titles), (*times)[32] = gt_alloc(n, 32);
  columns[0] = (gt_column){.title = "from", WHOLE};
  for (size_t to = 0; to < n; to++) {
    snprintf(titles[to], sizeof titles[to], "%zu", to);
    columns[to + 1] = (gt_column){.title = titles[to], WHOLE};
  }
  gt_table *t = gt_table_create(columns, n + 1);
  for (size_t from = 0; from < n; from++) {
    row[0] = gt_cell_whole((int64_t)from);
    for (size_t to = 0; to < n; to++) {
      const double s = gt_pipe_transfer_s(v->between[from * n + to], v->o->bytes);
      const bool alone = from == to && v->groups[from].count == 1;
      row[to + 1] = gt_cell_text(alone ? "-" : span(times[to], s));
    }
    gt_table_add(t, row, n + 1);
  }
  printf("\n");
  gt_print_wrapped(stdout, 2,
                   "time of %s from the group of a row to that of a column, between the slowest "
                   "pair:",
                   gt_format_size(size, sizeof size, v->o->bytes));
  gt_table_finish(stdout, t);
  gt_free(columns);
  gt_free(row);
  gt_free(titles);
  gt_free(times);
}

static void print_devices(const view *v) {
  static const gt_column columns[7] = {{.title = "group", WHOLE}, {.title = "region", WHOLE},
                                       {.title = "device"},       {.title = "host"},
                                       {.title = "its region"},   POWER,
                                       {.title = "memory", WHOLE}};
  gt_table *t = gt_table_create(columns, 7);
  char memory[32], name[GT_SHORT_NAME], host[GT_SHORT_NAME], region[GT_SHORT_NAME];
  for (size_t i = 0; i < v->fleet->n; i++) {
    const gt_job_fleet_device *d = &v->fleet->devices[i];
    gt_table_add(t, GT_ROW(gt_cell_whole((int64_t)v->grouping.group[i]),
                           gt_cell_whole((int64_t)v->grouping.region[i]),
                           gt_cell_text(gt_short_name(name, d->name)),
                           gt_cell_text(*d->host ? gt_short_name(host, d->host) : NULL),
                           gt_cell_text(gt_short_name(region, d->region)), gt_cell_number(d->power),
                           gt_cell_text(gt_format_size(memory, sizeof memory, d->memory_bytes))));
  }
  printf("\n");
  gt_table_finish(stdout, t);
}

/* ---- command --------------------------------------------------------------------------------- */

enum { THETA = 1, BYTES, DEVICES };

/* Reads a positive size or time of an option. */
static gt_status read_amount(const char *option, const char *text,
                             gt_status (*parse)(const char *, double *), double *out) {
  if (parse(text, out) != GT_OK)
    return GT_FAIL(GT_ERR_JOB, "fleet: %s: %s", option, gt_error_text());
  if (*out > 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "fleet: %s is %s; expected more than 0", option, text);
}

const struct option gt_options_fleet[] = {{"theta", required_argument, NULL, THETA},
                                          {"bytes", required_argument, NULL, BYTES},
                                          {"devices", no_argument, NULL, DEVICES},
                                          {NULL, 0, NULL, 0}};

static gt_status read_options(options *o, int argc, char **argv) {
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", gt_options_fleet, NULL)) != -1) {
    if (option == '?') return gt_option_refused(argc, argv, "fleet");
    if (option == THETA) GT_TRY(read_amount("--theta", optarg, gt_parse_time_s, &o->theta_s));
    if (option == BYTES) GT_TRY(read_amount("--bytes", optarg, gt_parse_size_bytes, &o->bytes));
    if (option == DEVICES) o->devices = true;
  }
  if (optind != argc - 1)
    return GT_FAIL(GT_ERR_JOB,
                   "fleet: expected one profile or folder, found %d; see `geotrain help "
                   "fleet`",
                   argc - optind);
  o->path = argv[optind];
  return GT_OK;
}

gt_status gt_cmd_fleet(int argc, char **argv) {
  options o = {.bytes = GT_PIPE_USUAL_BYTES};
  gt_job_fleet *fleet = NULL;
  GT_TRY(read_options(&o, argc, argv));
  GT_TRY(gt_job_fleet_load(&fleet, o.path));
  view v = {.o = &o, .fleet = fleet};
  gt_status status = open_view(&v);
  if (status == GT_OK) {
    print_head(&v);
    print_operations(&v);
    print_groups(&v);
    print_between(&v);
    if (o.devices) print_devices(&v);
  }
  close_view(&v);
  gt_job_fleet_close(fleet);
  return status;
}
