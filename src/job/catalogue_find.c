/* Queries of a catalogue: its names, and the most specific line of a rate. */
#include <stdio.h>
#include <string.h>

#include "catalogue.h"

static const char *find_name(const name_list *list, const char *name) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->names[i], name) == 0) return list->names[i];
  return NULL;
}

static gt_status has(const gt_catalogue *c, const name_list *list, const char *what,
                     const char *where, const char *name) {
  if (find_name(list, name)) return GT_OK;
  const char *near = gt_nearest(name, list->names, list->n);
  char known[GT_ERROR_TEXT_MAX / 2] = "";
  for (size_t i = 0, at = 0; i < list->n && at + 70 < sizeof known; i++) {
    snprintf(known + at, sizeof known - at, "%s%.64s", i ? ", " : "", list->names[i]);
    at += strlen(known + at);
  }
  return GT_FAIL(
      GT_ERR_JOB,
      "%s names the %s \"%.80s\", of which %s has no rates; one that it has is needed: %s%s%s%s",
      where, what, name, c->path, known, near ? "; did you mean " : "", near ? near : "",
      near ? "?" : "");
}

gt_status gt_catalogue_has_cloud(const gt_catalogue *c, const char *where, const char *cloud) {
  return has(c, &c->clouds, "cloud", where, cloud);
}

gt_status gt_catalogue_has_place(const gt_catalogue *c, const char *where, const char *place) {
  return has(c, &c->places, "place", where, place);
}

gt_status gt_catalogue_site(const gt_catalogue *c, const char *where, const char *text,
                            gt_rate_site *out) {
  const char *colon = strchr(text, ':');
  if (!colon)
    return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; CLOUD:PLACE is needed, as in aws:london", where,
                   text);
  char *cloud = gt_strdup(text);
  cloud[colon - text] = '\0';
  gt_status status = gt_catalogue_has_cloud(c, where, cloud);
  if (status == GT_OK) status = gt_catalogue_has_place(c, where, colon + 1);
  if (status == GT_OK)
    *out = (gt_rate_site){find_name(&c->clouds, cloud), find_name(&c->places, colon + 1)};
  gt_free(cloud);
  return status;
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* 1: same name; 0: any; -1: another name. */
static int match(const char *pattern, const char *name) {
  if (strcmp(pattern, name) == 0) return 1;
  return strcmp(pattern, "*") == 0 ? 0 : -1;
}

/* How specific the match of a row is; negative: no match. */
static int exactness(const catalogue_row *r, gt_rate_kind kind, gt_rate_site site,
                     const gt_rate_site *to) {
  if (r->kind != kind || strcmp(r->cloud, site.cloud) != 0) return -1;
  int place = match(r->place, site.place), to_place = to ? match(r->to_place, to->place) : 0,
      to_cloud = to ? match(r->to_cloud, to->cloud) : 0;
  if (place < 0 || to_place < 0 || to_cloud < 0) return -1;
  return 4 * to_place + 2 * to_cloud + place;
}

static gt_status missing(const gt_catalogue *c, gt_rate_kind kind, gt_rate_site site,
                         const gt_rate_site *to) {
  const char *tier = kind == GT_RATE_EGRESS_GB ? "0" : "";
  return GT_FAIL(GT_ERR_JOB,
                 "%s: has no %s of %s at %s%s%s%s%s; a line `%s,%s,%s,%s,%s,%s,VALUE,` is needed, "
                 "there or in a file of your own",
                 c->path, gt_rate_name(kind), site.cloud, site.place, to ? " to " : "",
                 to ? to->cloud : "", to ? " at " : "", to ? to->place : "", gt_rate_name(kind),
                 site.cloud, site.place, to ? to->cloud : "", to ? to->place : "", tier);
}

gt_status gt_catalogue_rate(const gt_catalogue *c, gt_rate_kind kind, gt_rate_site site,
                            const gt_rate_site *to, const gt_rate **out, size_t *n) {
  size_t best = c->n;
  int exact = -1;
  for (size_t i = 0; i < c->n; i++) { /* later layers come first */
    int e = exactness(&c->rows[i], kind, site, to);
    if (e > exact) exact = e, best = i;
  }
  if (best == c->n) return missing(c, kind, site, to);
  size_t end = best + 1;
  while (end < c->n && gt_catalogue_compare(&c->rows[best], &c->rows[end]) == 0 &&
         c->rows[end].layer == c->rows[best].layer)
    end++;
  *out = &c->rates[best];
  *n = end - best;
  return GT_OK;
}
