/* profile: values that `geotrain probe` measured.  A profile is a fragment of a job, merged into
   the job by region name. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

typedef struct {
  const char *file;
  job_node *root; /* of the job */
  const gt_job *job;
  job_name *names;
} merge;

static size_t id_of(const merge *m, const job_node *map, const char *key) {
  return gt_job_name_id(m->names, m->job->nregions, gt_job_node_child(map, key)->text);
}

/* ---- allowed keys ---------------------------------------------------------------------------- */

static const char *const sections[] = {"regions", "wan", NULL};
static const char *const wan_keys[] = {"links", NULL};
static const char *const region_keys[] = {"name", "access", "compute", NULL};
static const char *const link_keys[] = {"from",  "to",     "bandwidth", "latency", "setup",
                                        "eager", "window", "idle",      NULL};
static const char *const transport[] = {"setup", "eager", "window", "idle"};

/* Rejects keys of a job that a profile cannot have. */
static gt_status only(const merge *m, const job_node *map, const char *const *keys,
                      const char *at) {
  for (size_t i = 0; map && i < map->n; i++) {
    size_t k = 0;
    while (keys[k] && strcmp(keys[k], map->items[i]->key) != 0) k++;
    if (keys[k]) continue;
    return GT_FAIL(GT_ERR_JOB,
                   "%s: %s%s has no place in a profile, which holds regions[].name, access and "
                   "compute, wan.links[].from, to and figures, and fleet",
                   m->file, at, map->items[i]->key);
  }
  return GT_OK;
}

static gt_status lacks(const merge *m, const char *list, size_t index, const char *key) {
  return GT_FAIL(GT_ERR_JOB, "%s: %s.%zu.%s is missing; expected the name of a region", m->file,
                 list, index, key);
}

static gt_status check_region(const merge *m, const job_node *regions, size_t i) {
  const job_node *region = regions->items[i], *name = gt_job_node_child(region, "name"),
                 *compute = gt_job_node_child(region, "compute");
  char at[48];
  snprintf(at, sizeof at, "regions.%zu.", i);
  GT_TRY(only(m, region, region_keys, at));
  if (!name) return lacks(m, "regions", i, "name");
  for (size_t k = 0; k < i; k++)
    if (strcmp(gt_job_node_child(regions->items[k], "name")->text, name->text) == 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: regions.%zu and regions.%zu are both named %.80s; expected one", m->file,
                     k, i, name->text);
  if (gt_job_node_child(compute, "samples_per_s") && gt_job_node_child(compute, "step"))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.compute has samples_per_s and step; expected one of them",
                   m->file, i);
  return GT_OK;
}

static gt_status check_link(const merge *m, const job_node *links, size_t i) {
  const job_node *link = links->items[i], *from = gt_job_node_child(link, "from"),
                 *to = gt_job_node_child(link, "to");
  char at[48];
  snprintf(at, sizeof at, "wan.links.%zu.", i);
  GT_TRY(only(m, link, link_keys, at));
  if (!from || !to) return lacks(m, "wan.links", i, from ? "to" : "from");
  if (strcmp(from->text, to->text) == 0)
    return GT_FAIL(GT_ERR_JOB, "%s: wan.links.%zu.from and to are both %.80s; expected two regions",
                   m->file, i, from->text);
  for (size_t k = 0; k < i; k++)
    if (strcmp(gt_job_node_child(links->items[k], "from")->text, from->text) == 0 &&
        strcmp(gt_job_node_child(links->items[k], "to")->text, to->text) == 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: wan.links.%zu and wan.links.%zu both give the direction from %.80s to "
                     "%.80s; expected one",
                     m->file, k, i, from->text, to->text);
  return GT_OK;
}

static gt_status check(const merge *m, const job_node *profile) {
  const job_node *wan = gt_job_node_child(profile, "wan"),
                 *regions = gt_job_node_child(profile, "regions"),
                 *links = gt_job_node_child(wan, "links");
  GT_TRY(only(m, profile, sections, ""));
  GT_TRY(only(m, wan, wan_keys, "wan."));
  for (size_t i = 0; regions && i < regions->n; i++) GT_TRY(check_region(m, regions, i));
  for (size_t i = 0; links && i < links->n; i++) GT_TRY(check_link(m, links, i));
  return GT_OK;
}

/* ---- compute --------------------------------------------------------------------------------- */

static void put_copy(job_node *map, const job_node *value) {
  gt_job_node_drop(map, value->key);
  gt_job_node_add(map, gt_job_node_copy(value));
}

/* Replaces the job's values by measured ones, except speed and speeds, with which the user slows
   workers. */
static void merge_compute(const merge *m, size_t id, const job_node *measured) {
  job_node *region = gt_job_node_child(m->root, "regions")->items[id],
           *own = gt_job_node_child(region, "compute");
  if (!own) gt_job_node_add(region, own = gt_job_node_new(NODE_MAP, "compute", NULL));
  for (size_t i = 0; i < measured->n; i++) {
    const job_node *figure = measured->items[i];
    if (strcmp(figure->key, "speed") == 0 || strcmp(figure->key, "speeds") == 0) continue;
    if (strcmp(figure->key, "measured") == 0 && figure->n != (size_t)m->job->regions[id].ranks - 1)
      continue;
    if (strcmp(figure->key, "step") == 0) gt_job_node_drop(own, "samples_per_s");
    if (strcmp(figure->key, "samples_per_s") == 0) gt_job_node_drop(own, "step");
    put_copy(own, figure);
  }
}

/* Adds the access; the job's own value takes precedence, as for links. */
static void merge_access(const merge *m, size_t id, const job_node *measured) {
  job_node *region = gt_job_node_child(m->root, "regions")->items[id];
  if (!gt_job_node_child(region, "access")) gt_job_node_add(region, gt_job_node_copy(measured));
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Splits a link between two regions into two directions: `link` becomes from -> to, the new last
   entry the other one. */
static void split(job_node *links, job_node *link, const char *from, const char *to) {
  gt_job_node_drop(link, "between");
  job_node *back = gt_job_node_copy(link);
  gt_job_node_add(link, gt_job_node_new(NODE_SCALAR, "from", from));
  gt_job_node_add(link, gt_job_node_new(NODE_SCALAR, "to", to));
  gt_job_node_add(back, gt_job_node_new(NODE_SCALAR, "from", to));
  gt_job_node_add(back, gt_job_node_new(NODE_SCALAR, "to", from));
  gt_job_node_add(links, back);
}

/* Adds the measured transport model to a direction that the job itself names. */
static void merge_transport(job_node *links, size_t *at, size_t *back, const job_node *measured) {
  job_node *link = links->items[*at];
  for (size_t t = 0; t < sizeof transport / sizeof *transport; t++) {
    const job_node *figure = gt_job_node_child(measured, transport[t]);
    if (!figure || gt_job_node_child(link, transport[t])) continue;
    if (gt_job_node_child(link, "between")) {
      split(links, link, gt_job_node_child(measured, "from")->text,
            gt_job_node_child(measured, "to")->text);
      *back = links->n - 1;
    }
    put_copy(link, figure);
  }
}

static void merge_links(const merge *m, const job_node *measured) {
  job_node *links = gt_job_node_list(m->root, "wan.links");
  size_t n = 0;
  job_direction *given = gt_job_directions(m->job, &n);
  for (size_t i = 0; i < measured->n; i++) {
    const job_node *link = measured->items[i];
    size_t from = id_of(m, link, "from"), to = id_of(m, link, "to");
    if (from == m->job->nregions || to == m->job->nregions) continue;
    job_direction *own = gt_job_direction_find(given, n, from, to),
                  *back = gt_job_direction_find(given, n, to, from);
    size_t nowhere = 0;
    if (own)
      merge_transport(links, &own->link, back ? &back->link : &nowhere, link);
    else
      gt_job_node_add(links, gt_job_node_copy(link));
  }
  gt_free(given);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Checks the fleet before a search uses it, and removes the keys that the table does not know. */
static gt_status check_fleet(const char *path, job_node *profile, bool *there) {
  gt_job_fleet *fleet = NULL;
  const job_node *section = gt_job_node_child(profile, "fleet");
  *there = section != NULL;
  if (!section) return GT_OK;
  GT_TRY(gt_job_fleet_of_profile(&fleet, path, section));
  gt_job_fleet_close(fleet);
  gt_job_node_drop(profile, "fleet");
  return GT_OK;
}

static gt_status read_profile(const char *path, job_node **profile, bool *fleet) {
  char *text = NULL;
  size_t size = 0;
  GT_TRY(gt_job_read_file(path, "a profile", &text, &size));
  gt_status status = gt_job_yaml_parse(profile, path, text, size);
  gt_free(text);
  GT_TRY(status);
  GT_TRY(gt_job_prune(*profile, path, false));
  if ((*profile)->kind != NODE_MAP)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: is not a mapping of keys; expected a profile that `geotrain probe` wrote",
                   path);
  GT_TRY(check_fleet(path, *profile, fleet));
  return gt_job_values(*profile, path);
}

static void merge_all(const merge *m, const job_node *profile) {
  const job_node *regions = gt_job_node_child(profile, "regions"),
                 *links = gt_job_node_child(gt_job_node_child(profile, "wan"), "links");
  for (size_t i = 0; regions && i < regions->n; i++) {
    const job_node *compute = gt_job_node_child(regions->items[i], "compute"),
                   *access = gt_job_node_child(regions->items[i], "access");
    size_t id = id_of(m, regions->items[i], "name");
    if (id == m->job->nregions) continue;
    if (access) merge_access(m, id, access);
    if (compute) merge_compute(m, id, compute);
  }
  if (links) merge_links(m, links);
  gt_job_node_drop(m->root, "profile");
}

gt_status gt_job_profile(job_node *root, const gt_job *job, const char *source, char **fleet) {
  char path[4096 + JOB_PATH_MAX];
  job_node *profile = NULL;
  GT_TRY(gt_job_find_file(path, sizeof path, source, "profile", job->profile));
  merge m = {path, root, job, gt_job_names(job)};
  bool has_fleet = false;
  gt_status status = read_profile(path, &profile, &has_fleet);
  if (status == GT_OK) status = check(&m, profile);
  if (status == GT_OK) merge_all(&m, profile);
  *fleet = status == GT_OK && has_fleet ? gt_strdup(path) : NULL;
  gt_job_node_close(profile);
  gt_free(m.names);
  return status;
}
