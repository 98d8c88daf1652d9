/* The section `fleet` of a profile.  A device that says `links: NAME` has the links of that device:
   in a large fleet, one device per host was measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fleet.h"

typedef struct {
  const char *file;
  gt_job_fleet *fleet;
  job_name *names;
  const job_node *devices, *rows; /* of the section */
  size_t *point;                  /* of each device, the row with its links */
  size_t *owner;                  /* of each row, its device */
} reader;

static const char *const section_keys[] = {"devices", "links", "operations", "theta", NULL};
static const char *const device_keys[] = {"name",   "host",  "region", "power",
                                          "memory", "links", NULL};
static const char *const row_keys[] = {"from", "small_us", "large_us", NULL};
static const char *const operation_keys[] = {"name",     "first",     "last", "forward_us",
                                             "input_us", "weight_us", NULL};

static job_node *child(const job_node *map, const char *key) {
  return gt_job_node_find(map, key, strlen(key));
}

/* `at` is "" or the path of the map with a dot behind it. */
static gt_status only(const reader *r, const job_node *map, const char *const *keys,
                      const char *at) {
  size_t n = 0;
  while (keys[n]) n++;
  if (map->kind != NODE_MAP)
    return GT_FAIL(GT_ERR_JOB, "%s: fleet%s%.*s is no mapping of keys; one is needed", r->file,
                   *at ? "." : "", (int)(*at ? strlen(at) - 1 : 0), at);
  for (size_t i = 0; i < map->n; i++) {
    const char *key = map->items[i]->key, *near = gt_nearest(key, keys, n);
    size_t k = 0;
    while (k < n && strcmp(keys[k], key) != 0) k++;
    if (k == n)
      return GT_FAIL(GT_ERR_JOB, "%s: unknown key fleet.%s%s%s%s%s", r->file, at, key,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  }
  return GT_OK;
}

static gt_status list_of(const reader *r, const job_node *section, const char *key,
                         const job_node **out) {
  *out = child(section, key);
  if (*out && (*out)->kind == NODE_LIST && (*out)->n > 0 && (*out)->n <= GT_JOB_FLEET_MAX)
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s is no list of 1 to %zu entries; one is needed", r->file,
                 key, GT_JOB_FLEET_MAX);
}

/* The text of a key of an entry; "" if it is not given and not needed. */
static gt_status text_of(const reader *r, const job_node *map, const char *at, const char *key,
                         bool needed, const char **out) {
  const job_node *node = child(map, key);
  *out = node && node->text ? node->text : "";
  if (node ? node->kind == NODE_SCALAR : !needed) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s is %s; %s is needed", r->file, at, key,
                 node ? "a list or a mapping" : "missing", "a single value");
}

/* ---- devices --------------------------------------------------------------------------------- */

static gt_status read_word(const reader *r, const job_node *map, const char *at, const char *key,
                           bool needed, char **out) {
  const char *text = "";
  char place[512];
  GT_TRY(text_of(r, map, at, key, needed, &text));
  snprintf(place, sizeof place, "%.400s: fleet.%s%s", r->file, at, key);
  if (needed || *text) GT_TRY(gt_job_fleet_name(place, text));
  *out = gt_strdup(text);
  return GT_OK;
}

static gt_status read_memory(const char *place, const char *text, double *out) {
  if (gt_parse_size_bytes(text, out) == GT_OK && *out > 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; a size, more than 0, is needed, as in 4 GiB", place,
                 text);
}

static gt_status read_device(const reader *r, size_t i) {
  const job_node *map = r->devices->items[i];
  gt_job_fleet_device *device = &r->fleet->devices[i];
  const char *text = "";
  char at[48], place[512];
  snprintf(at, sizeof at, "devices.%zu.", i);
  GT_TRY(only(r, map, device_keys, at));
  GT_TRY(read_word(r, map, at, "name", true, &device->name));
  GT_TRY(read_word(r, map, at, "host", false, &device->host));
  GT_TRY(read_word(r, map, at, "region", false, &device->region));
  GT_TRY(text_of(r, map, at, "power", true, &text));
  snprintf(place, sizeof place, "%.400s: fleet.%spower", r->file, at);
  GT_TRY(gt_job_fleet_amount(place, text, &device->power));
  GT_TRY(text_of(r, map, at, "memory", true, &text));
  snprintf(place, sizeof place, "%.400s: fleet.%smemory", r->file, at);
  return read_memory(place, text, &device->memory_bytes);
}

static gt_status read_devices(reader *r) {
  size_t first, again;
  for (size_t i = 0; i < r->fleet->n; i++) GT_TRY(read_device(r, i));
  r->names = gt_job_fleet_names(r->fleet);
  if (!gt_job_fleet_twice(r->names, r->fleet->n, &first, &again)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.devices.%zu and fleet.devices.%zu are both named %.80s; one is needed",
                 r->file, first, again, r->fleet->devices[first].name);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The device that is named at a place. */
static gt_status find_device(const reader *r, const char *at, const char *key, const char *name,
                             size_t *out) {
  *out = gt_job_name_id(r->names, r->fleet->n, name);
  if (*out < r->fleet->n) return GT_OK;
  const char *near = gt_job_name_near(r->names, r->fleet->n, name);
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s names \"%.80s\"; one of fleet.devices is needed%s%s%s",
                 r->file, at, key, name, near ? "; did you mean " : "", near ? near : "",
                 near ? "?" : "");
}

static gt_status read_owner(const reader *r, size_t row) {
  const char *text = "";
  char at[48];
  snprintf(at, sizeof at, "links.%zu.", row);
  GT_TRY(only(r, r->rows->items[row], row_keys, at));
  GT_TRY(text_of(r, r->rows->items[row], at, "from", true, &text));
  GT_TRY(find_device(r, at, "from", text, &r->owner[row]));
  for (size_t k = 0; k < row; k++)
    if (r->owner[k] == r->owner[row])
      return GT_FAIL(GT_ERR_JOB,
                     "%s: fleet.links.%zu and fleet.links.%zu are both from %.80s; one is needed",
                     r->file, k, row, text);
  r->point[r->owner[row]] = row;
  return GT_OK;
}

static gt_status find_point(const reader *r, size_t i) {
  const char *text = "";
  char at[48];
  size_t named = i;
  if (r->point[i] < r->rows->n) return GT_OK; /* it has a row of its own */
  snprintf(at, sizeof at, "devices.%zu.", i);
  GT_TRY(text_of(r, r->devices->items[i], at, "links", false, &text));
  if (*text) GT_TRY(find_device(r, at, "links", text, &named));
  for (size_t row = 0; row < r->rows->n; row++)
    if (r->owner[row] == named) r->point[i] = row;
  if (r->point[i] < r->rows->n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.links has no entry from %.80s; one is needed, or `links: NAME` at the "
                 "device with the name of one that has such an entry",
                 r->file, r->fleet->devices[named].name);
}

/* A row of times, in microseconds. */
static gt_status times_of(const reader *r, size_t row, const char *key, const job_node **out) {
  *out = child(r->rows->items[row], key);
  if (*out && (*out)->kind == NODE_LIST && (*out)->n == r->rows->n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.links.%zu.%s is no list of %zu times; one is needed for each entry of "
                 "fleet.links, in their order",
                 r->file, row, key, r->rows->n);
}

static gt_status read_time(const reader *r, const job_node *times, size_t row, const char *key,
                           size_t column, double *out) {
  char place[512];
  const char *text = times->items[column]->text;
  /* YAML writes infinity as .inf */
  if (text && strcmp(text, ".inf") == 0) text = "inf";
  if (!text || !gt_job_fleet_is_time(text, out)) {
    snprintf(place, sizeof place, "%.400s: fleet.links.%zu.%s.%zu", r->file, row, key, column);
    return gt_job_fleet_no_time(place, text ? text : "");
  }
  *out *= 1e-6;
  return GT_OK;
}

static gt_status read_row(const reader *r, size_t row, gt_job_fleet_link *links) {
  const job_node *small, *large;
  char place[512];
  GT_TRY(times_of(r, row, "small_us", &small));
  GT_TRY(times_of(r, row, "large_us", &large));
  for (size_t column = 0; column < r->rows->n; column++) {
    gt_job_fleet_link *link = &links[row * r->rows->n + column];
    GT_TRY(read_time(r, small, row, "small_us", column, &link->small_s));
    GT_TRY(read_time(r, large, row, "large_us", column, &link->large_s));
    /* a device has no link with itself, unless it stands for several */
    if (gt_job_fleet_is_link(link) || (row == column && link->small_s <= 0)) continue;
    snprintf(place, sizeof place, "%.400s: fleet.links.%zu, entry %zu", r->file, row, column);
    return gt_job_fleet_no_link(place, link);
  }
  return GT_OK;
}

static gt_status spread(const reader *r, const gt_job_fleet_link *links) {
  gt_job_fleet *fleet = r->fleet;
  for (size_t i = 0; i < fleet->n; i++)
    for (size_t j = 0; j < fleet->n; j++) {
      const gt_job_fleet_link *link = &links[r->point[i] * r->rows->n + r->point[j]];
      if (i == j) continue;
      if (link->small_s <= 0)
        return GT_FAIL(GT_ERR_JOB,
                       "%s: %.80s and %.80s have the links of %.80s, whose time to itself is 0; "
                       "that between two devices of its host is needed there",
                       r->file, fleet->devices[i].name, fleet->devices[j].name,
                       fleet->devices[r->owner[r->point[i]]].name);
      fleet->links[i * fleet->n + j] = *link;
    }
  return GT_OK;
}

static gt_status read_links(reader *r) {
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

/* ---- operations ------------------------------------------------------------------------------ */

static gt_status read_count(const reader *r, const job_node *map, const char *at, const char *key,
                            size_t least, size_t *out) {
  const char *text = "";
  double value;
  GT_TRY(text_of(r, map, at, key, true, &text));
  if (gt_job_fleet_is_time(text, &value) && value >= (double)least && value < 1e9 &&
      value == floor(value)) {
    *out = (size_t)value;
    return GT_OK;
  }
  return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s is \"%.80s\"; a whole number, %zu or more, is needed",
                 r->file, at, key, text, least);
}

static gt_status read_pass(const reader *r, const job_node *map, const char *at, const char *key,
                           double *out) {
  const char *text = "";
  GT_TRY(text_of(r, map, at, key, true, &text));
  if (!gt_job_fleet_is_time(text, out) || isinf(*out))
    return GT_FAIL(GT_ERR_JOB, "%s: fleet.%s%s is \"%.80s\"; a number, 0 or more, is needed",
                   r->file, at, key, text);
  *out *= 1e-6;
  return GT_OK;
}

static gt_status read_operation(const reader *r, const job_node *map, size_t i) {
  gt_job_fleet_operation *o = &r->fleet->operations[i];
  const size_t follows = i > 0 ? o[-1].last + 1 : 0;
  char at[48];
  snprintf(at, sizeof at, "operations.%zu.", i);
  GT_TRY(only(r, map, operation_keys, at));
  GT_TRY(read_word(r, map, at, "name", true, &o->name));
  GT_TRY(read_count(r, map, at, "first", 0, &o->first));
  if (o->first != follows)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: fleet.%sfirst is %zu; %zu is needed, because operations follow each other",
                   r->file, at, o->first, follows);
  GT_TRY(read_count(r, map, at, "last", o->first, &o->last));
  GT_TRY(read_pass(r, map, at, "forward_us", &o->forward_s));
  GT_TRY(read_pass(r, map, at, "input_us", &o->input_s));
  return read_pass(r, map, at, "weight_us", &o->weight_s);
}

static gt_status read_operations(const reader *r, const job_node *section) {
  const job_node *list;
  if (!child(section, "operations")) return GT_OK;
  GT_TRY(list_of(r, section, "operations", &list));
  r->fleet->operations = GT_NEW_ARRAY(gt_job_fleet_operation, list->n);
  r->fleet->noperations = list->n;
  for (size_t i = 0; i < list->n; i++) GT_TRY(read_operation(r, list->items[i], i));
  return GT_OK;
}

/* ---- the section ----------------------------------------------------------------------------- */

static gt_status read_theta(const reader *r, const job_node *section) {
  const char *text = "";
  GT_TRY(text_of(r, section, "", "theta", false, &text));
  if (!*text || (gt_parse_time_s(text, &r->fleet->theta_s) == GT_OK && r->fleet->theta_s > 0))
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: fleet.theta is \"%.80s\"; a time, more than 0, is needed, as in 5 ms",
                 r->file, text);
}

gt_status gt_job_fleet_of_profile(gt_job_fleet **out, const char *file, const job_node *section) {
  reader r = {.file = file};
  GT_TRY(only(&r, section, section_keys, ""));
  GT_TRY(list_of(&r, section, "devices", &r.devices));
  GT_TRY(list_of(&r, section, "links", &r.rows));
  r.fleet = gt_job_fleet_new(r.devices->n);
  r.point = GT_NEW_ARRAY(size_t, r.devices->n);
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
