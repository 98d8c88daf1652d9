/* Fleets: from a profile, or from CSV files for devices elsewhere. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal.h"

void gt_job_fleet_close(gt_job_fleet *fleet) {
  if (!fleet) return;
  for (size_t i = 0; i < fleet->n; i++) {
    gt_free(fleet->devices[i].name);
    gt_free(fleet->devices[i].host);
    gt_free(fleet->devices[i].region);
  }
  for (size_t i = 0; i < fleet->noperations; i++) gt_free(fleet->operations[i].name);
  gt_free(fleet->operations);
  gt_free(fleet->devices);
  gt_free(fleet->links);
  gt_free(fleet);
}

/* True if the times of a link are valid. */
static bool is_link(const gt_job_fleet_link *link) {
  return link->small_s > 0 && link->large_s >= link->small_s &&
         isinf(link->small_s) == isinf(link->large_s);
}

static gt_status no_link(const char *at, const gt_job_fleet_link *link) {
  return GT_FAIL(GT_ERR_JOB,
                 "%s: a message of 64 B takes %g s and one of 4 MiB %g s; expected times above 0, "
                 "that of the larger one not below the other, or inf for both",
                 at, link->small_s, link->large_s);
}

static int by_name(const void *a, const void *b) {
  const job_name *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* Returns the devices by name; the caller frees them. */
static job_name *names_of(const gt_job_fleet *fleet) {
  job_name *names = GT_NEW_ARRAY(job_name, fleet->n);
  for (size_t i = 0; i < fleet->n; i++) names[i] = (job_name){fleet->devices[i].name, i};
  qsort(names, fleet->n, sizeof *names, by_name);
  return names;
}

/* True if a name occurs twice; *first < *again are its numbers. */
static bool twice(const job_name *names, size_t n, size_t *first, size_t *again) {
  for (size_t i = 1; i < n; i++) {
    if (strcmp(names[i - 1].name, names[i].name) != 0) continue;
    *first = names[i - 1].id;
    *again = names[i].id;
    return true;
  }
  return false;
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* devices.csv and links.csv.  A line of links.csv names two devices, two hosts or two regions, the
   latter for all pairs of their devices.  The most specific line counts. */

enum { DEVICE, HOST, REGION, KINDS };
static const char *const kind_names[KINDS] = {"device", "host", "region"};

static const job_column device_columns[] = {
    [DEVICE] = {"device", COLUMN_NAME, offsetof(gt_job_fleet_device, name)},
    [HOST] = {"host", COLUMN_LABEL, offsetof(gt_job_fleet_device, host)},
    [REGION] = {"region", COLUMN_LABEL, offsetof(gt_job_fleet_device, region)},
    {"power", COLUMN_AMOUNT, offsetof(gt_job_fleet_device, power)},
    {"memory_bytes", COLUMN_AMOUNT, offsetof(gt_job_fleet_device, memory_bytes)}};
static const job_table device_table = {device_columns, 5, 5, 5,
                                       "device,host,region,power,memory_bytes"};

enum { FROM, TO, LINK_FIELDS = 4 };
static const job_column link_columns[LINK_FIELDS] = {
    [FROM] = {.name = "from"},
    [TO] = {.name = "to"},
    {"small_s", COLUMN_TIME, offsetof(gt_job_fleet_link, small_s)},
    {"large_s", COLUMN_TIME, offsetof(gt_job_fleet_link, large_s)}};
static const job_table link_table = {link_columns, LINK_FIELDS, LINK_FIELDS, LINK_FIELDS,
                                     "from,to,small_s,large_s"};

/* The names of a kind and the times between them, in both orders: [from * n + to]. */
typedef struct {
  job_name *names; /* by name; ids from 0 */
  size_t n;
  size_t *of; /* id of each device; n: none */
  gt_job_fleet_link *links;
} level;

typedef struct {
  char file[1200];
  job_csv csv;
  gt_job_fleet *fleet;
  size_t capacity;
  level levels[KINDS];
} folder_reader;

static gt_status open_file(folder_reader *r, const char *folder, const char *name,
                           const char *needed) {
  snprintf(r->file, sizeof r->file, "%.1000s/%s", folder, name);
  return gt_job_csv_open(&r->csv, r->file, needed);
}

static gt_status read_device_line(void *ctx, const char *const *fields) {
  folder_reader *r = ctx;
  gt_job_fleet *fleet = r->fleet;
  char at[512];
  if (fleet->n == GT_JOB_FLEET_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s: has more than %zu devices, the maximum",
                   gt_job_csv_place(&r->csv, "", at), GT_JOB_FLEET_MAX);
  GT_GROW(fleet->devices, fleet->n, r->capacity, 64);
  fleet->devices[fleet->n++] = (gt_job_fleet_device){0};
  return gt_job_csv_fill(&r->csv, &device_table, fields, &fleet->devices[fleet->n - 1]);
}

static gt_status read_device_lines(folder_reader *r) {
  GT_TRY(gt_job_csv_rows(&r->csv, &device_table, read_device_line, r));
  if (r->fleet->n > 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: has no device; expected one line per device: %s", r->file,
                 device_table.needed);
}

static const char *name_of(const gt_job_fleet_device *device, int kind) {
  return kind == DEVICE ? device->name : kind == HOST ? device->host : device->region;
}

/* Collects the distinct names of a kind and the name of each device. */
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

static gt_status check_names(const folder_reader *r) {
  size_t first, again;
  job_name *names = names_of(r->fleet);
  const bool found = twice(names, r->fleet->n, &first, &again);
  gt_free(names);
  if (!found) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: devices %zu and %zu are both named %.80s; expected one", r->file,
                 first + 1, again + 1, r->fleet->devices[first].name);
}

/* Returns the most specific kind that has the name; KINDS: none. */
static int kind_of(const folder_reader *r, const char *name) {
  int kind = DEVICE;
  while (kind < KINDS &&
         gt_job_name_id(r->levels[kind].names, r->levels[kind].n, name) == r->levels[kind].n)
    kind++;
  return kind;
}

/* Reports that no kind has both names. */
static gt_status no_kind(const folder_reader *r, const char *const *fields) {
  char at[512];
  const int kinds[] = {kind_of(r, fields[FROM]), kind_of(r, fields[TO])};
  for (int end = FROM; end <= TO; end++) {
    if (kinds[end - FROM] < KINDS) continue;
    const char *near = NULL;
    for (int kind = DEVICE; kind < KINDS && !near; kind++)
      near = gt_job_name_near(r->levels[kind].names, r->levels[kind].n, fields[end]);
    return GT_FAIL(GT_ERR_JOB,
                   "%s is \"%.80s\"; expected a device, host or region of devices.csv%s%s%s",
                   gt_job_csv_place(&r->csv, link_columns[end].name, at), fields[end],
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  }
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %.80s is a %s and %.80s a %s; expected two devices, two hosts or two regions",
                 gt_job_csv_place(&r->csv, "", at), fields[FROM], kind_names[kinds[0]], fields[TO],
                 kind_names[kinds[1]]);
}

static gt_status read_link_line(void *ctx, const char *const *fields) {
  folder_reader *r = ctx;
  char at[512];
  gt_job_fleet_link link;
  GT_TRY(gt_job_csv_fill(&r->csv, &link_table, fields, &link));
  if (!is_link(&link)) return no_link(gt_job_csv_place(&r->csv, "", at), &link);
  for (int kind = DEVICE; kind < KINDS; kind++) {
    level *l = &r->levels[kind];
    const size_t from = gt_job_name_id(l->names, l->n, fields[FROM]),
                 to = gt_job_name_id(l->names, l->n, fields[TO]);
    if (from == l->n || to == l->n) continue;
    if (kind == DEVICE && from == to)
      return GT_FAIL(GT_ERR_JOB, "%s: from and to are both %.80s; expected two devices",
                     gt_job_csv_place(&r->csv, "", at), fields[FROM]);
    if (!l->links) l->links = GT_NEW_ARRAY(gt_job_fleet_link, l->n * l->n);
    gt_job_fleet_link *place = &l->links[from * l->n + to];
    if (place->small_s > 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: an earlier line gives the direction from %.80s to %.80s; expected one",
                     gt_job_csv_place(&r->csv, "", at), fields[FROM], fields[TO]);
    *place = link;
    return GT_OK;
  }
  return no_kind(r, fields);
}

/* Returns the link between two devices by a kind of names: its direction, else the other one; NULL:
   no line. */
static const gt_job_fleet_link *link_by(const level *l, size_t from, size_t to) {
  const size_t a = l->of[from], b = l->of[to];
  if (!l->links || a == l->n || b == l->n) return NULL;
  const gt_job_fleet_link *there = &l->links[a * l->n + b], *back = &l->links[b * l->n + a];
  return there->small_s > 0 ? there : back->small_s > 0 ? back : NULL;
}

static gt_status spread_levels(folder_reader *r) {
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
                     "%s: has no line for %.80s and %.80s; expected one for every pair of devices, "
                     "of their hosts or of their regions",
                     r->file, fleet->devices[from].name, fleet->devices[to].name);
    fleet->links[i] = *link;
  }
  return GT_OK;
}

static gt_status read_both(folder_reader *r, const char *folder) {
  GT_TRY(open_file(r, folder, "devices.csv", "a CSV file of devices"));
  gt_status status = read_device_lines(r);
  if (status == GT_OK) status = check_names(r);
  gt_job_csv_close(&r->csv);
  GT_TRY(status);
  for (int kind = DEVICE; kind < KINDS; kind++) open_level(r->fleet, kind, &r->levels[kind]);
  GT_TRY(open_file(r, folder, "links.csv", "a CSV file of links"));
  status = gt_job_csv_rows(&r->csv, &link_table, read_link_line, r);
  if (status == GT_OK) status = spread_levels(r);
  gt_job_csv_close(&r->csv);
  return status;
}

static gt_status read_folder(gt_job_fleet **out, const char *folder) {
  folder_reader *r = GT_NEW(folder_reader);
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

/* ---- the section `fleet` of a profile -------------------------------------------------------- */

/* A device with `links: NAME` has the links of that device: in a large fleet, one device per host
   was measured. */

typedef struct {
  const char *file;
  gt_job_fleet *fleet;
  job_name *names;
  const job_node *devices, *rows; /* of the section */
  size_t *point;                  /* row with the links of each device */
  size_t *owner;                  /* device of each row */
} profile_reader;

static const job_column section_keys[] = {
    {.name = "devices"}, {.name = "links"}, {.name = "operations"}, {.name = "theta"}};
static const job_column device_keys[] = {
    {"name", COLUMN_NAME, offsetof(gt_job_fleet_device, name)},
    {"host", COLUMN_LABEL, offsetof(gt_job_fleet_device, host)},
    {"region", COLUMN_LABEL, offsetof(gt_job_fleet_device, region)},
    {"power", COLUMN_AMOUNT, offsetof(gt_job_fleet_device, power)},
    {"memory", COLUMN_SIZE, offsetof(gt_job_fleet_device, memory_bytes)},
    {.name = "links"}};
static const job_column row_keys[] = {{.name = "from"}, {.name = "small_us"}, {.name = "large_us"}};
static const job_column operation_keys[] = {
    {"name", COLUMN_NAME, offsetof(gt_job_fleet_operation, name)},
    {.name = "first"},
    {.name = "last"},
    {"forward_us", COLUMN_PASS, offsetof(gt_job_fleet_operation, forward_s)},
    {"input_us", COLUMN_PASS, offsetof(gt_job_fleet_operation, input_s)},
    {"weight_us", COLUMN_PASS, offsetof(gt_job_fleet_operation, weight_s)}};

/* Checks that a map has only these keys.  `at`: "", or the path of the map with a final dot. */
static gt_status only(const profile_reader *r, const job_node *map, const job_column *keys,
                      size_t n, const char *at) {
  const char *names[8];
  for (size_t k = 0; k < n; k++) names[k] = keys[k].name;
  if (map->kind != NODE_MAP)
    return GT_FAIL(GT_ERR_JOB, "%s: fleet%s%.*s is not a mapping of keys", r->file, *at ? "." : "",
                   (int)(*at ? strlen(at) - 1 : 0), at);
  for (size_t i = 0; i < map->n; i++) {
    const char *key = map->items[i]->key, *near = gt_nearest(key, names, n);
    size_t k = 0;
    while (k < n && strcmp(names[k], key) != 0) k++;
    if (k == n)
      return GT_FAIL(GT_ERR_JOB, "%s: unknown key fleet.%s%s%s%s%s", r->file, at, key,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  }
  return GT_OK;
}
#define ONLY(r, map, keys, at) only(r, map, keys, sizeof(keys) / sizeof *(keys), at)

static gt_status list_of(const profile_reader *r, const job_node *section, const char *key,
                         const job_node **out) {
  *out = gt_job_node_child(section, key);
  if (*out && (*out)->kind == NODE_LIST && (*out)->n > 0 && (*out)->n <= GT_JOB_FLEET_MAX)
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s is not a list of 1 to %zu entries", r->file, key,
                 GT_JOB_FLEET_MAX);
}

/* Returns the text of a key of an entry; "" if an optional key is not given. */
static gt_status text_of(const profile_reader *r, const job_node *map, const char *at,
                         const char *key, bool needed, const char **out) {
  const job_node *node = gt_job_node_child(map, key);
  *out = node && node->text ? node->text : "";
  if (node ? node->kind == NODE_SCALAR : !needed) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s is %s; expected %s", r->file, at, key,
                 node ? "a list or a mapping" : "missing", "a single value");
}

/* Reads a key of an entry into the struct at `to`. */
static gt_status read_key(const profile_reader *r, const job_node *map, const char *at,
                          const job_column *key, void *to) {
  const char *text = "";
  char place[512];
  GT_TRY(text_of(r, map, at, key->name, key->type != COLUMN_LABEL, &text));
  snprintf(place, sizeof place, "%.400s: fleet.%s%s", r->file, at, key->name);
  return gt_job_column_read(key, place, text, to);
}

static gt_status read_device(const profile_reader *r, size_t i) {
  const job_node *map = r->devices->items[i];
  char at[48];
  snprintf(at, sizeof at, "devices.%zu.", i);
  GT_TRY(ONLY(r, map, device_keys, at));
  for (size_t k = 0; device_keys[k].type != COLUMN_OTHER; k++)
    GT_TRY(read_key(r, map, at, &device_keys[k], &r->fleet->devices[i]));
  return GT_OK;
}

static gt_status read_devices(profile_reader *r) {
  size_t first, again;
  for (size_t i = 0; i < r->fleet->n; i++) GT_TRY(read_device(r, i));
  r->names = names_of(r->fleet);
  if (!twice(r->names, r->fleet->n, &first, &again)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.devices.%zu and fleet.devices.%zu are both named %.80s; expected one",
                 r->file, first, again, r->fleet->devices[first].name);
}

/* Finds the device with the name at a place. */
static gt_status find_device(const profile_reader *r, const char *at, const char *key,
                             const char *name, size_t *out) {
  *out = gt_job_name_id(r->names, r->fleet->n, name);
  if (*out < r->fleet->n) return GT_OK;
  const char *near = gt_job_name_near(r->names, r->fleet->n, name);
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s names \"%.80s\"; expected one of fleet.devices%s%s%s",
                 r->file, at, key, name, near ? "; did you mean " : "", near ? near : "",
                 near ? "?" : "");
}

static gt_status read_owner(const profile_reader *r, size_t row) {
  const char *text = "";
  char at[48];
  snprintf(at, sizeof at, "links.%zu.", row);
  GT_TRY(ONLY(r, r->rows->items[row], row_keys, at));
  GT_TRY(text_of(r, r->rows->items[row], at, "from", true, &text));
  GT_TRY(find_device(r, at, "from", text, &r->owner[row]));
  for (size_t k = 0; k < row; k++)
    if (r->owner[k] == r->owner[row])
      return GT_FAIL(GT_ERR_JOB,
                     "%s: fleet.links.%zu and fleet.links.%zu are both from %.80s; expected one",
                     r->file, k, row, text);
  r->point[r->owner[row]] = row;
  return GT_OK;
}

static gt_status find_point(const profile_reader *r, size_t i) {
  const char *text = "";
  char at[48];
  size_t named = i;
  if (r->point[i] < r->rows->n) return GT_OK; /* it has its own row */
  snprintf(at, sizeof at, "devices.%zu.", i);
  GT_TRY(text_of(r, r->devices->items[i], at, "links", false, &text));
  if (*text) GT_TRY(find_device(r, at, "links", text, &named));
  for (size_t row = 0; row < r->rows->n; row++)
    if (r->owner[row] == named) r->point[i] = row;
  if (r->point[i] < r->rows->n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.links has no entry from %.80s; expected one, or `links: NAME` at the "
                 "device with the name of one that has such an entry",
                 r->file, r->fleet->devices[named].name);
}

/* Reads a row of times, in microseconds. */
static gt_status times_of(const profile_reader *r, size_t row, const char *key,
                          const job_node **out) {
  *out = gt_job_node_child(r->rows->items[row], key);
  if (*out && (*out)->kind == NODE_LIST && (*out)->n == r->rows->n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.links.%zu.%s is not a list of %zu times; expected one per entry of "
                 "fleet.links, in that order",
                 r->file, row, key, r->rows->n);
}

static gt_status read_time(const profile_reader *r, const job_node *times, size_t row,
                           const char *key, size_t column, double *out) {
  char place[512];
  const char *text = times->items[column]->text;
  /* YAML writes infinity as .inf */
  if (text && strcmp(text, ".inf") == 0) text = "inf";
  if (!text || !gt_job_column_accepts(COLUMN_TIME, text, out)) {
    snprintf(place, sizeof place, "%.400s: fleet.links.%zu.%s.%zu", r->file, row, key, column);
    return gt_job_column_no(COLUMN_TIME, place, text ? text : "");
  }
  *out *= 1e-6;
  return GT_OK;
}

static gt_status read_row(const profile_reader *r, size_t row, gt_job_fleet_link *links) {
  const job_node *small, *large;
  char place[512];
  GT_TRY(times_of(r, row, "small_us", &small));
  GT_TRY(times_of(r, row, "large_us", &large));
  for (size_t column = 0; column < r->rows->n; column++) {
    gt_job_fleet_link *link = &links[row * r->rows->n + column];
    GT_TRY(read_time(r, small, row, "small_us", column, &link->small_s));
    GT_TRY(read_time(r, large, row, "large_us", column, &link->large_s));
    /* the diagonal is a time only if the device stands for several */
    if (is_link(link) || (row == column && link->small_s <= 0)) continue;
    snprintf(place, sizeof place, "%.400s: fleet.links.%zu, entry %zu", r->file, row, column);
    return no_link(place, link);
  }
  return GT_OK;
}

static gt_status spread(const profile_reader *r, const gt_job_fleet_link *links) {
  gt_job_fleet *fleet = r->fleet;
  for (size_t i = 0; i < fleet->n; i++)
    for (size_t j = 0; j < fleet->n; j++) {
      const gt_job_fleet_link *link = &links[r->point[i] * r->rows->n + r->point[j]];
      if (i == j) continue;
      if (link->small_s <= 0)
        return GT_FAIL(GT_ERR_JOB,
                       "%s: %.80s and %.80s have the links of %.80s, whose time to itself is 0; it "
                       "must be the time between two devices of its host",
                       r->file, fleet->devices[i].name, fleet->devices[j].name,
                       fleet->devices[r->owner[r->point[i]]].name);
      fleet->links[i * fleet->n + j] = *link;
    }
  return GT_OK;
}

static gt_status read_links(profile_reader *r) {
  const size_t n = r->rows->n;
  gt_status status = GT_OK;
  for (size_t i = 0; i < r->fleet->n; i++) r->point[i] = n;
  for (size_t row = 0; row < n; row++) GT_TRY(read_owner(r, row));
  for (size_t i = 0; i < r->fleet->n; i++) GT_TRY(find_point(r, i));
  gt_job_fleet_link *links = GT_NEW_ARRAY(gt_job_fleet_link, n * n);
  for (size_t row = 0; row < n && status == GT_OK; row++) status = read_row(r, row, links);
  if (status == GT_OK) status = spread(r, links);
  gt_free(links);
  return status;
}

static gt_status read_count(const profile_reader *r, const job_node *map, const char *at,
                            const char *key, size_t least, size_t *out) {
  const char *text = "";
  double value;
  GT_TRY(text_of(r, map, at, key, true, &text));
  if (gt_job_column_accepts(COLUMN_TIME, text, &value) && value >= (double)least && value < 1e9 &&
      value == floor(value)) {
    *out = (size_t)value;
    return GT_OK;
  }
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s is \"%.80s\"; expected a whole number, %zu or more",
                 r->file, at, key, text, least);
}

static gt_status read_operation(const profile_reader *r, const job_node *map, size_t i) {
  gt_job_fleet_operation *o = &r->fleet->operations[i];
  const size_t follows = i > 0 ? o[-1].last + 1 : 0;
  char at[48];
  snprintf(at, sizeof at, "operations.%zu.", i);
  GT_TRY(ONLY(r, map, operation_keys, at));
  GT_TRY(read_key(r, map, at, &operation_keys[0], o));
  GT_TRY(read_count(r, map, at, "first", 0, &o->first));
  if (o->first != follows)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: fleet.%sfirst is %zu; expected %zu, because operations follow each other",
                   r->file, at, o->first, follows);
  GT_TRY(read_count(r, map, at, "last", o->first, &o->last));
  for (size_t k = 3; k < sizeof operation_keys / sizeof *operation_keys; k++)
    GT_TRY(read_key(r, map, at, &operation_keys[k], o));
  return GT_OK;
}

static gt_status read_operations(const profile_reader *r, const job_node *section) {
  const job_node *list;
  if (!gt_job_node_child(section, "operations")) return GT_OK;
  GT_TRY(list_of(r, section, "operations", &list));
  r->fleet->operations = GT_NEW_ARRAY(gt_job_fleet_operation, list->n);
  r->fleet->noperations = list->n;
  for (size_t i = 0; i < list->n; i++) GT_TRY(read_operation(r, list->items[i], i));
  return GT_OK;
}

static gt_status read_theta(const profile_reader *r, const job_node *section) {
  const char *text = "";
  GT_TRY(text_of(r, section, "", "theta", false, &text));
  if (!*text || (gt_parse_time_s(text, &r->fleet->theta_s) == GT_OK && r->fleet->theta_s > 0))
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.theta is \"%.80s\"; expected a time, more than 0, as in 5 ms", r->file,
                 text);
}

gt_status gt_job_fleet_of_profile(gt_job_fleet **out, const char *file, const job_node *section) {
  profile_reader r = {.file = file};
  GT_TRY(ONLY(&r, section, section_keys, ""));
  GT_TRY(list_of(&r, section, "devices", &r.devices));
  GT_TRY(list_of(&r, section, "links", &r.rows));
  const size_t n = r.devices->n;
  r.fleet = GT_NEW(gt_job_fleet);
  *r.fleet = (gt_job_fleet){.n = n,
                            .devices = GT_NEW_ARRAY(gt_job_fleet_device, n),
                            .links = GT_NEW_ARRAY(gt_job_fleet_link, n * n)};
  r.point = GT_NEW_ARRAY(size_t, n);
  r.owner = GT_NEW_ARRAY(size_t, r.rows->n);
  gt_status status = read_theta(&r, section);
  if (status == GT_OK) status = read_devices(&r);
  if (status == GT_OK) status = read_links(&r);
  if (status == GT_OK) status = read_operations(&r, section);
  gt_free(r.names);
  gt_free(r.point);
  gt_free(r.owner);
  if (status == GT_OK)
    *out = r.fleet;
  else
    gt_job_fleet_close(r.fleet);
  return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static gt_status read_profile(gt_job_fleet **out, const char *path) {
  char *text = NULL;
  size_t size = 0;
  job_node *profile = NULL;
  GT_TRY(gt_job_read_file(path, "a profile", &text, &size));
  gt_status status = gt_job_yaml_parse(&profile, path, text, size);
  gt_free(text);
  GT_TRY(status);
  status = gt_job_prune(profile, path, false);
  const job_node *section = gt_job_node_child(profile, "fleet");
  if (status == GT_OK)
    status = section
                 ? gt_job_fleet_of_profile(out, path, section)
                 : GT_FAIL(GT_ERR_JOB,
                           "%s: has no section fleet; expected a profile that `geotrain probe "
                           "JOB.yaml --fleet` wrote, or a folder with devices.csv and links.csv",
                           path);
  gt_job_node_close(profile);
  return status;
}

gt_status gt_job_fleet_load(gt_job_fleet **out, const char *path) {
  struct stat about;
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return read_folder(out, path);
  return read_profile(out, path);
}
