/* Links and outages: finds their regions, checks that each direction occurs once, looks up regions
   and directions. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- look-up --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
  return strcmp(((const job_name *)a)->name, ((const job_name *)b)->name);
}

job_name *gt_job_names(const gt_job *job) {
  job_name *names = GT_NEW_ARRAY(job_name, job->nregions);
  for (size_t i = 0; i < job->nregions; i++) names[i] = (job_name){job->regions[i].name, i};
  qsort(names, job->nregions, sizeof *names, by_name);
  return names;
}

size_t gt_job_name_id(const job_name *names, size_t n, const char *name) {
  job_name key = {name, 0};
  const job_name *found = bsearch(&key, names, n, sizeof *names, by_name);
  return found ? found->id : n;
}

const char *gt_job_name_near(const job_name *names, size_t n, const char *name) {
  const char **words = GT_NEW_ARRAY(const char *, n);
  for (size_t i = 0; i < n; i++) words[i] = names[i].name;
  const char *near = gt_nearest(name, words, n);
  gt_free(words);
  return near;
}

static uint64_t direction_key(size_t from, size_t to) {
  return (uint64_t)from << 32 | (uint64_t)to;
}

static int by_direction(const void *a, const void *b) {
  const job_direction *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->link > y->link) - (x->link < y->link);
}

job_direction *gt_job_directions(const gt_job *job, size_t *n) {
  job_direction *list = GT_NEW_ARRAY(job_direction, 2 * job->wan.nlinks + 1);
  *n = 0;
  for (size_t i = 0; i < job->wan.nlinks; i++) {
    const gt_job_link *link = &job->wan.links[i];
    list[(*n)++] = (job_direction){direction_key(link->ia, link->ib), i};
    if (!link->from) list[(*n)++] = (job_direction){direction_key(link->ib, link->ia), i};
  }
  qsort(list, *n, sizeof *list, by_direction);
  return list;
}

static int find_direction(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = ((const job_direction *)b)->key;
  return (x > y) - (x < y);
}

job_direction *gt_job_direction_find(job_direction *list, size_t n, size_t from, size_t to) {
  uint64_t key = direction_key(from, to);
  return bsearch(&key, list, n, sizeof *list, find_direction);
}

const gt_job_link *gt_job_link_default(const gt_job *job) {
  const gt_job_link *l = &job->wan.fallback;
  bool given = l->bandwidth_bps > 0 || l->latency_s > 0 || l->jitter_s > 0 || l->loss > 0 ||
               l->setup_rtts > 0 || l->window_bytes > 0;
  return given ? l : NULL;
}

const gt_job_link **gt_job_link_table(const gt_job *job) {
  const size_t n = job->nregions;
  const gt_job_link *otherwise = gt_job_link_default(job),
                    **table = GT_NEW_ARRAY(const gt_job_link *, n *n);
  for (size_t i = 0; i < n * n; i++) table[i] = otherwise;
  for (size_t i = 0; i < job->wan.nlinks; i++) {
    const gt_job_link *link = &job->wan.links[i];
    table[link->ia * n + link->ib] = link;
    if (!link->from) table[link->ib * n + link->ia] = link;
  }
  return table;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* A list entry whose names are looked up. */
typedef struct {
  const char *source, *list;
  size_t index;
  const job_name *names;
  size_t nnames;
} entry;

static gt_status find_end(const entry *e, const char *key, const char *name, size_t *id) {
  *id = gt_job_name_id(e->names, e->nnames, name);
  if (*id < e->nnames) return GT_OK;
  const char *near = gt_job_name_near(e->names, e->nnames, name);
  return GT_FAIL(GT_ERR_JOB, "%s: %s.%zu.%s names \"%.80s\"; expected the name of a region%s%s%s",
                 e->source, e->list, e->index, key, name, near ? "; did you mean " : "",
                 near ? near : "", near ? "?" : "");
}

static gt_status find_pair(const entry *e, const char *a, const char *b, size_t *ia, size_t *ib) {
  GT_TRY(find_end(e, "between", a, ia));
  GT_TRY(find_end(e, "between", b, ib));
  if (*ia == *ib)
    return GT_FAIL(GT_ERR_JOB, "%s: %s.%zu.between names %s twice; expected two regions", e->source,
                   e->list, e->index, a);
  return GT_OK;
}

static gt_status find_ends(const entry *e, gt_job_link *link) {
  if (link->a && (link->from || link->to))
    return GT_FAIL(GT_ERR_JOB, "%s: %s.%zu has between and %s; expected between, or from and to",
                   e->source, e->list, e->index, link->from ? "from" : "to");
  if (link->a) return find_pair(e, link->a, link->b, &link->ia, &link->ib);
  if (!link->from && !link->to)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: %s.%zu has neither between nor from and to; expected one of the two",
                   e->source, e->list, e->index);
  if (!link->from || !link->to)
    return GT_FAIL(GT_ERR_JOB, "%s: %s.%zu.%s is missing; expected from and to together", e->source,
                   e->list, e->index, link->from ? "to" : "from");
  GT_TRY(find_end(e, "from", link->from, &link->ia));
  GT_TRY(find_end(e, "to", link->to, &link->ib));
  if (link->ia == link->ib)
    return GT_FAIL(GT_ERR_JOB, "%s: %s.%zu.from and to are both %s; expected two regions",
                   e->source, e->list, e->index, link->from);
  return GT_OK;
}

static gt_status twice(const gt_job *job, const char *source, size_t first, size_t second,
                       uint64_t direction) {
  const gt_job_link *link = &job->wan.links[second];
  if (link->a && job->wan.links[first].a)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: wan.links.%zu and wan.links.%zu are both between %s and %s; expected one "
                   "for both directions",
                   source, first, second, link->a, link->b);
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: wan.links.%zu and wan.links.%zu both give the direction from %s to %s; expected one",
      source, first, second, job->regions[direction >> 32].name,
      job->regions[direction & UINT32_MAX].name);
}

static gt_status check_directions(const gt_job *job, const char *source) {
  size_t n = 0;
  gt_status status = GT_OK;
  job_direction *list = gt_job_directions(job, &n);
  for (size_t i = 1; i < n && status == GT_OK; i++)
    if (list[i].key == list[i - 1].key)
      status = twice(job, source, list[i - 1].link, list[i].link, list[i].key);
  gt_free(list);
  return status;
}

/* ---- outages --------------------------------------------------------------------------------- */

typedef struct {
  uint64_t pair;
  double from_s, until_s;
  size_t index;
} outage;

static int by_pair_and_time(const void *a, const void *b) {
  const outage *x = a, *y = b;
  if (x->pair != y->pair) return x->pair < y->pair ? -1 : 1;
  if (x->from_s != y->from_s) return x->from_s < y->from_s ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static gt_status check_overlaps(const gt_job *job, const char *source) {
  size_t n = job->wan.noutages;
  gt_status status = GT_OK;
  outage *list = GT_NEW_ARRAY(outage, n + 1);
  for (size_t i = 0; i < n; i++) {
    const gt_job_outage *o = &job->wan.outages[i];
    uint64_t pair = o->ia < o->ib ? direction_key(o->ia, o->ib) : direction_key(o->ib, o->ia);
    list[i] = (outage){pair, o->from_s, o->from_s + o->for_s, i};
  }
  qsort(list, n, sizeof *list, by_pair_and_time);
  for (size_t i = 1; i < n && status == GT_OK; i++) {
    const gt_job_outage *o = &job->wan.outages[list[i].index];
    if (list[i].pair == list[i - 1].pair && list[i].from_s < list[i - 1].until_s)
      status = GT_FAIL(GT_ERR_JOB,
                       "%s: wan.outages.%zu and wan.outages.%zu of %s and %s overlap; expected one "
                       "outage for that time",
                       source, list[i - 1].index, list[i].index, o->a, o->b);
  }
  gt_free(list);
  return status;
}

gt_status gt_job_check_links(gt_job *job, const char *source) {
  job_name *names = gt_job_names(job);
  gt_status status = GT_OK;
  for (size_t i = 0; i < job->wan.nlinks && status == GT_OK; i++) {
    gt_job_link *link = &job->wan.links[i];
    entry e = {source, "wan.links", i, names, job->nregions};
    status = find_ends(&e, link);
    if (status == GT_OK && link->trace && link->bandwidth_bps > 0)
      status = GT_FAIL(
          GT_ERR_JOB, "%s: wan.links.%zu has trace and bandwidth; expected one of them", source, i);
  }
  for (size_t i = 0; i < job->wan.noutages && status == GT_OK; i++) {
    gt_job_outage *o = &job->wan.outages[i];
    entry e = {source, "wan.outages", i, names, job->nregions};
    status = find_pair(&e, o->a, o->b, &o->ia, &o->ib);
  }
  gt_free(names);
  GT_TRY(status);
  GT_TRY(check_directions(job, source));
  return check_overlaps(job, source);
}
