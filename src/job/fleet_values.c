/* A fleet's devices and times, as both of its sources fill them in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"

#define NAME_MAX ((size_t)256)

gt_job_fleet *gt_job_fleet_new(size_t n) {
  gt_job_fleet *fleet = GT_NEW(gt_job_fleet);
  fleet->n = n;
  fleet->devices = GT_NEW_ARRAY(gt_job_fleet_device, n);
  fleet->links = GT_NEW_ARRAY(gt_job_fleet_link, n * n);
  return fleet;
}

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

/* ---- values ---------------------------------------------------------------------------------- */

gt_status gt_job_fleet_name(const char *at, const char *text) {
  bool good = *text != '\0' && strlen(text) <= NAME_MAX;
  for (const char *letter = text; *letter; letter++)
    good = good && *letter >= ' ' && *letter <= '~';
  return good
             ? GT_OK
             : GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; a name of 1 to %zu ASCII characters is needed",
                       at, text, NAME_MAX);
}

/* Only if the whole text is a number. */
static bool number(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0';
}

gt_status gt_job_fleet_amount(const char *at, const char *text, double *out) {
  if (number(text, out) && *out > 0 && isfinite(*out)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; a number, more than 0 is needed", at, text);
}

bool gt_job_fleet_is_time(const char *text, double *out) {
  return number(text, out) && *out >= 0;
}

gt_status gt_job_fleet_no_time(const char *at, const char *text) {
  return GT_FAIL(GT_ERR_JOB,
                 "%s is \"%.80s\"; a time as a number without unit is needed, or inf where nothing "
                 "passes",
                 at, text);
}

/* ---- links ----------------------------------------------------------------------------------- */

bool gt_job_fleet_is_link(const gt_job_fleet_link *link) {
  return link->small_s > 0 && link->large_s >= link->small_s &&
         isinf(link->small_s) == isinf(link->large_s);
}

gt_status gt_job_fleet_no_link(const char *at, const gt_job_fleet_link *link) {
  return GT_FAIL(GT_ERR_JOB,
                 "%s: a message of 64 B takes %g s and one of 4 MiB %g s; more than 0 is needed, "
                 "and no less for the larger one; inf for both or none",
                 at, link->small_s, link->large_s);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
  const job_name *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->id > y->id) - (x->id < y->id);
}

job_name *gt_job_fleet_names(const gt_job_fleet *fleet) {
  job_name *names = GT_NEW_ARRAY(job_name, fleet->n);
  for (size_t i = 0; i < fleet->n; i++) names[i] = (job_name){fleet->devices[i].name, i};
  qsort(names, fleet->n, sizeof *names, by_name);
  return names;
}

bool gt_job_fleet_twice(const job_name *names, size_t n, size_t *first, size_t *again) {
  for (size_t i = 1; i < n; i++) {
    if (strcmp(names[i - 1].name, names[i].name) != 0) continue;
    *first = names[i - 1].id;
    *again = names[i].id;
    return true;
  }
  return false;
}
