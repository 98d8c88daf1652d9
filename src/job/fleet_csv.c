/* A fleet from two CSV files, for devices that are not here.  A line of links.csv may name two
   devices, two hosts or two regions, which stand for all pairs of their devices; the narrower line
   counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"

enum { DEVICE, HOST, REGION, KINDS };
static const char *const kind_names[KINDS] = {"device", "host", "region"};

enum { POWER = KINDS, MEMORY, DEVICE_FIELDS };
static const char *const device_fields[DEVICE_FIELDS] = {"device", "host", "region", "power",
                                                         "memory_bytes"};
enum { FROM, TO, SMALL, LARGE, LINK_FIELDS };
static const char *const link_fields[LINK_FIELDS] = {"from", "to", "small_s", "large_s"};

/* The names of a kind, and the times between them, in both orders; [from * n + to]. */
typedef struct {
  job_name *names; /* by name; ids from 0 */
  size_t n;
  size_t *of; /* of each device its id; n: none */
  gt_job_fleet_link *links;
} level;

typedef struct {
  char file[1200];
  job_csv csv;
  gt_job_fleet *fleet;
  size_t capacity;
  level levels[KINDS];
} reader;

static gt_status open_file(reader *r, const char *folder, const char *name, const char *needed) {
  snprintf(r->file, sizeof r->file, "%.1000s/%s", folder, name);
  return gt_job_csv_open(&r->csv, r->file, needed);
}

/* "FILE:LINE: FIELD" */
static const char *place_of(const reader *r, const char *field, char buf[512]) {
  snprintf(buf, 512, "%.400s:%zu%s%s", r->file, r->csv.line, *field ? ": " : "", field);
  return buf;
}

/* The next line with `most` fields, without the one that names them.  *more: there is one. */
static gt_status next_line(reader *r, const char *const *names, size_t most, const char **fields,
                           bool *more) {
  size_t n = 0, same = 0;
  char at[512];
  const bool first = r->csv.line == 0;
  *more = gt_job_csv_line(&r->csv, fields, most, &n);
  for (size_t f = 0; *more && f < most; f++) same += strcmp(fields[f], names[f]) == 0;
  if (*more && first && same == most) return next_line(r, names, most, fields, more);
  if (!*more || n == most) return GT_OK;
  char list[160] = "";
  for (size_t f = 0; f < most; f++)
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", f ? "," : "", names[f]);
  return GT_FAIL(GT_ERR_JOB, "%s: has %s%zu fields; %s are needed", place_of(r, "", at),
                 n > most ? "more than " : "", n > most ? most : n, list);
}

/* ---- devices --------------------------------------------------------------------------------- */

static gt_status read_device(reader *r, const char *const *fields) {
  gt_job_fleet *fleet = r->fleet;
  gt_job_fleet_device device = {0};
  char at[512];
  if (fleet->n == GT_JOB_FLEET_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s: there are more than %zu devices; at most that is needed",
                   place_of(r, "", at), GT_JOB_FLEET_MAX);
  for (size_t f = DEVICE; f < KINDS; f++)
    if (f == DEVICE || *fields[f])
      GT_TRY(gt_job_fleet_name(place_of(r, device_fields[f], at), fields[f]));
  GT_TRY(gt_job_fleet_amount(place_of(r, device_fields[POWER], at), fields[POWER], &device.power));
  GT_TRY(gt_job_fleet_amount(place_of(r, device_fields[MEMORY], at), fields[MEMORY],
                             &device.memory_bytes));
  device.name = gt_strdup(fields[DEVICE]);
  device.host = gt_strdup(fields[HOST]);
  device.region = gt_strdup(fields[REGION]);
  GT_GROW(fleet->devices, fleet->n, r->capacity, 64);
  fleet->devices[fleet->n++] = device;
  return GT_OK;
}

static gt_status read_devices(reader *r) {
  const char *fields[DEVICE_FIELDS];
  bool more = false;
  for (;;) {
    GT_TRY(next_line(r, device_fields, DEVICE_FIELDS, fields, &more));
    if (!more) break;
    GT_TRY(read_device(r, fields));
  }
  if (r->fleet->n > 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: has no device; a line a device is needed: device,host,region,power,"
                 "memory_bytes",
                 r->file);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *name_of(const gt_job_fleet_device *device, int kind) {
  return kind == DEVICE ? device->name : kind == HOST ? device->host : device->region;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const job_name *)a)->name, ((const job_name *)b)->name);
}

/* The different names of a kind, and the name that each device has. */
static void open_level(const gt_job_fleet *fleet, int kind, level *l) {
  size_t n = 0;
  l->names = GT_NEW_ARRAY(job_name, fleet->n);
  l->of = GT_NEW_ARRAY(size_t, fleet->n);
  for (size_t i = 0; i < fleet->n; i++) {
    const char *name = name_of(&fleet->devices[i], kind);
    if (*name) l->names[n++].name = name;
  }
  if (n > 0) qsort(l->names, n, sizeof *l->names, by_name);
  for (size_t i = 0; i < n; i++)
    if (l->n == 0 || strcmp(l->names[l->n - 1].name, l->names[i].name) != 0)
      l->names[l->n++].name = l->names[i].name;
  for (size_t i = 0; i < l->n; i++) l->names[i].id = i;
  for (size_t i = 0; i < fleet->n; i++)
    l->of[i] = gt_job_name_id(l->names, l->n, name_of(&fleet->devices[i], kind));
}

static gt_status check_names(const reader *r) {
  size_t first, again;
  job_name *names = gt_job_fleet_names(r->fleet);
  bool twice = gt_job_fleet_twice(names, r->fleet->n, &first, &again);
  gt_free(names);
  if (!twice) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: devices %zu and %zu are both named %.80s; one is needed", r->file,
                 first + 1, again + 1, r->fleet->devices[first].name);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The narrowest kind that has the name; KINDS: none. */
static int kind_of(const reader *r, const char *name) {
  int kind = DEVICE;
  while (kind < KINDS &&
         gt_job_name_id(r->levels[kind].names, r->levels[kind].n, name) == r->levels[kind].n)
    kind++;
  return kind;
}

/* No kind has both names. */
static gt_status no_kind(const reader *r, const char *const *fields) {
  char at[512];
  const int kinds[] = {kind_of(r, fields[FROM]), kind_of(r, fields[TO])};
  for (int end = FROM; end <= TO; end++) {
    if (kinds[end - FROM] < KINDS) continue;
    const char *near = NULL;
    for (int kind = DEVICE; kind < KINDS && !near; kind++)
      near = gt_job_name_near(r->levels[kind].names, r->levels[kind].n, fields[end]);
    return GT_FAIL(GT_ERR_JOB,
                   "%s is \"%.80s\"; a device, host or region of devices.csv is needed%s%s%s",
                   place_of(r, link_fields[end], at), fields[end], near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
  }
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %.80s is a %s and %.80s a %s; two devices, two hosts or two regions are "
                 "needed",
                 place_of(r, "", at), fields[FROM], kind_names[kinds[0]], fields[TO],
                 kind_names[kinds[1]]);
}

static gt_status read_times(const reader *r, const char *const *fields, gt_job_fleet_link *out) {
  char at[512];
  double *times[] = {&out->small_s, &out->large_s};
  for (int f = SMALL; f <= LARGE; f++)
    if (!gt_job_fleet_is_time(fields[f], times[f - SMALL]))
      return gt_job_fleet_no_time(place_of(r, link_fields[f], at), fields[f]);
  return gt_job_fleet_is_link(out) ? GT_OK : gt_job_fleet_no_link(place_of(r, "", at), out);
}

static gt_status read_link(reader *r, const char *const *fields) {
  char at[512];
  gt_job_fleet_link link;
  GT_TRY(read_times(r, fields, &link));
  for (int kind = DEVICE; kind < KINDS; kind++) {
    level *l = &r->levels[kind];
    const size_t from = gt_job_name_id(l->names, l->n, fields[FROM]),
                 to = gt_job_name_id(l->names, l->n, fields[TO]);
    if (from == l->n || to == l->n) continue;
    if (kind == DEVICE && from == to)
      return GT_FAIL(GT_ERR_JOB, "%s: from and to are both %.80s; two devices are needed",
                     place_of(r, "", at), fields[FROM]);
    if (!l->links) l->links = GT_NEW_ARRAY(gt_job_fleet_link, l->n * l->n);
    gt_job_fleet_link *place = &l->links[from * l->n + to];
    if (place->small_s > 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: an earlier line gives the direction from %.80s to %.80s; one is needed",
                     place_of(r, "", at), fields[FROM], fields[TO]);
    *place = link;
    return GT_OK;
  }
  return no_kind(r, fields);
}

static gt_status read_links(reader *r) {
  const char *fields[LINK_FIELDS];
  bool more = false;
  for (;;) {
    GT_TRY(next_line(r, link_fields, LINK_FIELDS, fields, &more));
    if (!more) return GT_OK;
    GT_TRY(read_link(r, fields));
  }
}

/* The link between two devices by a kind of names: its direction, else the other one; NULL: no line
   has it. */
static const gt_job_fleet_link *link_by(const level *l, size_t from, size_t to) {
  const size_t a = l->of[from], b = l->of[to];
  if (!l->links || a == l->n || b == l->n) return NULL;
  const gt_job_fleet_link *there = &l->links[a * l->n + b], *back = &l->links[b * l->n + a];
  return there->small_s > 0 ? there : back->small_s > 0 ? back : NULL;
}

static gt_status spread(reader *r) {
  gt_job_fleet *fleet = r->fleet;
  fleet->links = GT_NEW_ARRAY(gt_job_fleet_link, fleet->n * fleet->n);
  for (size_t i = 0; i < fleet->n * fleet->n; i++) {
    const size_t from = i / fleet->n, to = i % fleet->n;
    const gt_job_fleet_link *link = NULL;
    if (from == to) continue;
    for (int kind = DEVICE; kind < KINDS && !link; kind++)
      link = link_by(&r->levels[kind], from, to);
    if (!link)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: has no line for %.80s and %.80s; one is needed for every pair of "
                     "devices, of their hosts or of their regions",
                     r->file, fleet->devices[from].name, fleet->devices[to].name);
    fleet->links[i] = *link;
  }
  return GT_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static gt_status read_both(reader *r, const char *folder) {
  GT_TRY(open_file(r, folder, "devices.csv", "a CSV file of devices"));
  gt_status status = read_devices(r);
  if (status == GT_OK) status = check_names(r);
  gt_job_csv_close(&r->csv);
  GT_TRY(status);
  for (int kind = DEVICE; kind < KINDS; kind++) open_level(r->fleet, kind, &r->levels[kind]);
  GT_TRY(open_file(r, folder, "links.csv", "a CSV file of links"));
  status = read_links(r);
  if (status == GT_OK) status = spread(r);
  gt_job_csv_close(&r->csv);
  return status;
}

gt_status gt_job_fleet_of_folder(gt_job_fleet **out, const char *folder) {
  reader *r = GT_NEW(reader);
  r->fleet = GT_NEW(gt_job_fleet);
  gt_status status = read_both(r, folder);
  for (int kind = DEVICE; kind < KINDS; kind++) {
    gt_free(r->levels[kind].names);
    gt_free(r->levels[kind].of);
    gt_free(r->levels[kind].links);
  }
  if (status == GT_OK)
    *out = r->fleet;
  else
    gt_job_fleet_close(r->fleet);
  gt_free(r);
  return status;
}
