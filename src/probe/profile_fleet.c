/* The section `fleet` of a profile, and its table for users. */
#include <math.h>
#include <string.h>

#include "geotrain/ps_work_time.h"
#include "internal.h"

/* A worker. */
typedef struct {
  size_t rank;          /* in the world */
  size_t region, index; /* index: in its region, from 0 */
  size_t point;         /* the device whose links it has */
} device;

typedef struct {
  const gt_probe_state *p;
  device *devices;
  size_t n;
} view;

/* Adds the devices of a region, with their representatives. */
static void add_region(view *v, size_t region) {
  const gt_probe_state *p = v->p;
  const size_t from = v->n, most = (size_t)p->run.roles.world_size;
  char(*hosts)[GT_PROBE_BOOT_ID] = gt_alloc(most, sizeof *hosts);
  size_t *point = GT_NEW_ARRAY(size_t, most);
  const gt_probe_rank *w;
  for (int i = 0; (w = gt_probe_worker(p, region, i)); i++) {
    memcpy(hosts[i], w->kernel, sizeof hosts[i]);
    v->devices[v->n++] =
        (device){.rank = (size_t)(w - p->ranks), .region = region, .index = (size_t)i};
  }
  gt_probe_points((const char(*)[GT_PROBE_BOOT_ID])hosts, v->n - from, most <= GT_PROBE_ALL_PAIRS,
                  point);
  for (size_t i = from; i < v->n; i++) v->devices[i].point = from + point[i - from];
  gt_free(hosts);
  gt_free(point);
}

static view open_view(const gt_probe_state *p) {
  view v = {.p = p, .devices = GT_NEW_ARRAY(device, (size_t)p->run.roles.world_size)};
  for (size_t r = 0; r < p->run.job->nregions; r++) add_region(&v, r);
  return v;
}

static const gt_probe_rank *rank_of(const view *v, size_t i) {
  return &v->p->ranks[v->devices[i].rank];
}

/* Returns the memory available on the device's host, divided by its ranks. */
static double memory_of(const view *v, size_t i) {
  const gt_probe_rank *own = rank_of(v, i);
  double least = own->memory_bytes;
  int ranks = 0;
  for (int k = 0; k < v->p->run.roles.world_size; k++) {
    const gt_probe_rank *r = &v->p->ranks[k];
    if (strcmp(r->kernel, own->kernel) != 0) continue;
    least = fmin(least, r->memory_bytes);
    ranks++;
  }
  return least / ranks;
}

/* Returns the link between two representatives. */
static gt_pipe_link link_between(const view *v, size_t from, size_t to) {
  const device *a = &v->devices[from], *b = &v->devices[to];
  if (a->region != b->region) {
    const gt_probe_link *l = &v->p->all_links[a->region * v->p->run.job->nregions + b->region];
    return (gt_pipe_link){l->small_s, l->large_s};
  }
  size_t other = b->index;
  if (from == to) /* between two of the devices that it represents */
    for (size_t i = v->n; i-- > 0;)
      if (i != from && v->devices[i].point == from) other = v->devices[i].index;
  return v->p->all_pairs[a->rank * (size_t)v->p->run.roles.world_size + other];
}

static void put_name(FILE *f, const view *v, size_t i) {
  fprintf(f, "%s.%zu", v->p->run.job->regions[v->devices[i].region].name, v->devices[i].index);
}

static void put_device(FILE *f, const view *v, size_t i) {
  fprintf(f, "    - {name: ");
  put_name(f, v, i);
  fprintf(f, ", host: \"%s\", region: %s, power: %.6g, memory: %.0f B", rank_of(v, i)->host,
          v->p->run.job->regions[v->devices[i].region].name, rank_of(v, i)->power, memory_of(v, i));
  if (v->devices[i].point != i) {
    fprintf(f, ", links: ");
    put_name(f, v, v->devices[i].point);
  }
  fprintf(f, "}\n");
}

/* Writes one of the two times of every link of a device, in us. */
static void put_times(FILE *f, const view *v, size_t from, const char *key, bool large) {
  const char *between = "";
  fprintf(f, ", %s: [", key);
  for (size_t to = 0; to < v->n; to++) {
    if (v->devices[to].point != to) continue;
    const gt_pipe_link l = link_between(v, from, to);
    fprintf(f, "%s%.6g", between, 1e6 * (large ? l.large_s : l.small_s));
    between = ", ";
  }
  fprintf(f, "]");
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Returns the device's power without the job's slowing, which the measured times do not include. */
static double power_in(const view *v, size_t i) {
  return rank_of(v, i)->power *
         gt_cost_slowdown(v->p->run.job, v->devices[i].region, v->devices[i].index);
}

/* Returns the median over devices of an operation's times, scaled to power 1. */
static gt_probe_passes passes_of(const view *v, size_t operation, double *room) {
  gt_probe_passes result = {0};
  double *const to[] = {&result.forward_s, &result.input_s, &result.weight_s};
  for (int pass = 0; pass < 3; pass++) {
    for (size_t i = 0; i < v->n; i++) {
      const gt_probe_passes *own =
          &v->p->all_passes[v->devices[i].rank * v->p->noperations + operation];
      const double s[] = {own->forward_s, own->input_s, own->weight_s};
      room[i] = s[pass] * power_in(v, i);
    }
    *to[pass] = gt_probe_median(room, v->n);
  }
  return result;
}

/* Writes "first .. last", or the name of a single operation. */
static void put_operation(FILE *f, const gt_graph *graph, gt_span span) {
  fprintf(f, "    - {name: \"%s", gt_graph_operation(graph, span.first).name);
  if (span.end > span.first + 1) fprintf(f, " .. %s", gt_graph_operation(graph, span.end - 1).name);
  fprintf(f, "\", first: %zu, last: %zu", span.first, span.end - 1);
}

static void put_operations(FILE *f, const view *v) {
  const gt_probe_state *p = v->p;
  gt_span *spans = GT_NEW_ARRAY(gt_span, p->noperations);
  double *room = GT_NEW_ARRAY(double, v->n);
  gt_probe_spans(p->run.graph, spans);
  fprintf(f, "  operations: # of a sample on a device of power 1\n");
  for (size_t k = 0; k < p->noperations; k++) {
    const gt_probe_passes s = passes_of(v, k, room);
    put_operation(f, p->run.graph, spans[k]);
    fprintf(f, ", forward_us: %.6g, input_us: %.6g, weight_us: %.6g}\n", 1e6 * s.forward_s,
            1e6 * s.input_s, 1e6 * s.weight_s);
  }
  gt_free(spans);
  gt_free(room);
}

/* Prints the spread over devices of the time of a sample times power, which power should make
   equal; and the time of a sample, of all operations, on the fastest device. */
static void report_operations(FILE *to, const view *v) {
  const gt_probe_state *p = v->p;
  double least = INFINITY, most = 0, least_s = INFINITY;
  char text[32];
  for (size_t i = 0; i < v->n; i++) {
    double s = 0;
    for (size_t k = 0; k < p->noperations; k++) {
      const gt_probe_passes *own = &p->all_passes[v->devices[i].rank * p->noperations + k];
      s += own->forward_s + own->input_s + own->weight_s;
    }
    least_s = fmin(least_s, s);
    least = fmin(least, s * power_in(v, i));
    most = fmax(most, s * power_in(v, i));
  }
  gt_print_wrapped(
      to, 2,
      "  operations: %zu; a sample takes %s or more; time x power differs between workers by "
      "%.1f%%",
      p->noperations, gt_format_time(text, sizeof text, least_s), 100 * (most / least - 1));
}

/* ---- section and table ----------------------------------------------------------------------- */

void gt_probe_put_fleet(FILE *f, const gt_probe_state *p) {
  view v = open_view(p);
  fprintf(f, "fleet:\n  devices:\n");
  for (size_t i = 0; i < v.n; i++) put_device(f, &v, i);
  fprintf(f, "  links: # of a message of 64 B, of 4 MiB, to the device of each line\n");
  for (size_t i = 0; i < v.n; i++) {
    if (v.devices[i].point != i) continue;
    fprintf(f, "    - {from: ");
    put_name(f, &v, i);
    put_times(f, &v, i, "small_us", false);
    put_times(f, &v, i, "large_us", true);
    fprintf(f, "}\n");
  }
  if (p->all_passes) put_operations(f, &v);
  gt_free(v.devices);
}

void gt_probe_report_fleet(const gt_probe_state *p, FILE *to) {
  enum { POWER = 2 + GT_PROBE_TASKS, MEMORY, COLUMNS };
  gt_column columns[COLUMNS] = {{.title = "region"},
                                {.title = "worker", .format = GT_COLUMN_WHOLE},
                                [POWER] = NUMBER("power", NULL),
                                [MEMORY] = NUMBER("memory", "GB")};
  view v = open_view(p);
  gt_table *t = gt_table_create(columns, COLUMNS);
  for (int task = 0; task < GT_PROBE_TASKS; task++)
    columns[2 + task] = (gt_column)NUMBER(gt_probe_tasks[task], "ms");
  for (size_t i = 0; i < v.n; i++) {
    const gt_probe_rank *r = rank_of(&v, i);
    gt_cell row[COLUMNS] = {
        gt_cell_text(p->run.job->regions[v.devices[i].region].name),
        gt_cell_whole((int64_t)v.devices[i].index), [POWER] = gt_cell_number(r->power),
        [MEMORY] = gt_cell_number(memory_of(&v, i))};
    for (int task = 0; task < GT_PROBE_TASKS; task++)
      row[2 + task] = gt_cell_number(r->task_s[task]);
    gt_table_add(t, row, COLUMNS);
  }
  fprintf(to, "\nfleet, reference tasks, the best of several repeats, all workers at once:\n");
  gt_table_finish(to, t);
  if (p->all_passes) report_operations(to, &v);
  if (p->operations_error[0])
    gt_print_wrapped(to, 2, "  operations were not measured: %s", p->operations_error);
  gt_free(v.devices);
}
