/* The section `fleet` of a profile, and its table for users. */
#include <math.h>
#include <string.h>

#include "fleet.h"

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

/* The devices of a region, and who stands for whom. */
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

/* What is available on the device's host, shared by its ranks. */
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

/* Between two devices that stand for themselves. */
static gt_pipe_link link_between(const view *v, size_t from, size_t to) {
  const device *a = &v->devices[from], *b = &v->devices[to];
  if (a->region != b->region) {
    const gt_probe_link *l = &v->p->all_links[a->region * v->p->run.job->nregions + b->region];
    return (gt_pipe_link){l->small_s, l->large_s};
  }
  size_t other = b->index;
  if (from == to) /* between two of those for which it stands */
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

/* One of the two times of every link of a device, in us. */
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
  gt_free(v.devices);
}

void gt_probe_report_fleet(const gt_probe_state *p, FILE *to) {
  view v = open_view(p);
  char text[32];
  fprintf(to,
          "\nfleet, reference tasks, the best of several repeats, all workers at once:\n"
          "  %-16s %6s",
          "region", "worker");
  for (int task = 0; task < GT_PROBE_TASKS; task++) fprintf(to, " %13s", gt_probe_tasks[task]);
  fprintf(to, " %10s %10s\n", "power", "memory");
  for (size_t i = 0; i < v.n; i++) {
    const gt_probe_rank *r = rank_of(&v, i);
    fprintf(to, "  %-16s %6zu", p->run.job->regions[v.devices[i].region].name, v.devices[i].index);
    for (int task = 0; task < GT_PROBE_TASKS; task++)
      fprintf(to, " %13s", gt_format_time(text, sizeof text, r->task_s[task]));
    fprintf(to, " %10.4g %10s\n", r->power, gt_format_size(text, sizeof text, memory_of(&v, i)));
  }
  gt_free(v.devices);
}
