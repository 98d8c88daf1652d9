/* The faults of a job: checks, and their order in time. */
#include "geotrain/job_faults.h"

#include <math.h>

#include "geotrain/base_heap.h"
#include "internal.h"

/* ---- checks ---------------------------------------------------------------------------------- */

enum { LOST = 1, CUT = 2, COORDINATOR = 4, RANDOM = 8 };

static const char *const kind_names[] = {
    [LOST] = "lost", [CUT] = "cut", [COORDINATOR] = "coordinator", [RANDOM] = "mtbf"};

static gt_status check_kind(const gt_job_fault *f, size_t i, const char *source, unsigned *kind) {
  const bool has[] = {f->lost_s >= 0, f->cut_s >= 0, f->coordinator_s >= 0, f->mtbf_s > 0};
  int n = 0;
  for (unsigned k = 0; k < 4; k++) {
    if (!has[k]) continue;
    *kind = 1u << k;
    n++;
  }
  if (n == 1) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: faults.%zu has %d of lost, cut, coordinator and mtbf; expected exactly one",
                 source, i, n);
}

/* Checks that a fault has the keys of its kind, and no others. */
static gt_status check_keys(const gt_job_fault *f, size_t i, const char *source, unsigned kind) {
  const struct {
    const char *key;
    bool given;
    unsigned needs, allows;
  } keys[] = {{"region", f->region != NULL, LOST, LOST | RANDOM},
              {"back", f->back_s > 0, 0, LOST},
              {"link", f->a != NULL, CUT, CUT},
              {"for", f->for_s > 0, CUT | COORDINATOR, CUT | COORDINATOR},
              {"mttr", f->mttr_s > 0, RANDOM, RANDOM}};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    if (!keys[k].given && (keys[k].needs & kind))
      return GT_FAIL(GT_ERR_JOB, "%s: faults.%zu has %s without %s; expected both", source, i,
                     kind_names[kind], keys[k].key);
    if (keys[k].given && !(keys[k].allows & kind))
      return GT_FAIL(GT_ERR_JOB, "%s: faults.%zu has %s and %s; expected one of them", source, i,
                     kind_names[kind], keys[k].key);
  }
  return GT_OK;
}

static gt_status find(const gt_job *job, const char *source, size_t i, const char *key,
                      const char *name, size_t *id) {
  char path[48];
  snprintf(path, sizeof path, "faults.%zu.%s", i, key);
  for (*id = 0; *id < job->nregions; ++*id)
    if (name && strcmp(job->regions[*id].name, name) == 0) return GT_OK;
  return name ? gt_job_check_region(job, source, path, name) : GT_OK;
}

static gt_status check_fault(const gt_job *job, gt_job_fault *f, size_t i, const char *source) {
  unsigned kind = 0;
  GT_TRY(check_kind(f, i, source, &kind));
  GT_TRY(check_keys(f, i, source, kind));
  GT_TRY(find(job, source, i, "region", f->region, &f->id));
  GT_TRY(find(job, source, i, "link", f->a, &f->ia));
  GT_TRY(find(job, source, i, "link", f->b, &f->ib));
  if (f->a && f->ia == f->ib)
    return GT_FAIL(GT_ERR_JOB, "%s: faults.%zu.link names %s twice; expected two regions", source,
                   i, f->a);
  if (f->back_s > 0 && f->back_s <= f->lost_s)
    return GT_FAIL(GT_ERR_JOB, "%s: faults.%zu.back is %g s and lost %g s; back must be later",
                   source, i, f->back_s, f->lost_s);
  return GT_OK;
}

static bool same_link(const gt_job_fault *a, const gt_job_fault *b) {
  return (a->ia == b->ia && a->ib == b->ib) || (a->ia == b->ib && a->ib == b->ia);
}

static gt_status check_cut(const gt_job *job, size_t i, const char *source) {
  const gt_job_fault *f = &job->faults[i];
  for (size_t k = 0; f->a && k < i; k++) {
    const gt_job_fault *other = &job->faults[k];
    if (!other->a || !same_link(f, other) || f->cut_s >= other->cut_s + other->for_s ||
        other->cut_s >= f->cut_s + f->for_s)
      continue;
    return GT_FAIL(GT_ERR_JOB,
                   "%s: faults.%zu and faults.%zu cut the link of %s and %s at the same time; "
                   "expected one cut for all of it",
                   source, k, i, f->a, f->b);
  }
  return GT_OK;
}

gt_status gt_job_check_faults(gt_job *job, const char *source) {
  const char *with = gt_job_bound(job);
  for (size_t i = 0; i < job->nfaults; i++) GT_TRY(check_fault(job, &job->faults[i], i, source));
  for (size_t i = 0; i < job->nfaults; i++) GT_TRY(check_cut(job, i, source));
  if (job->nfaults == 0 || !with) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: faults is given with %s; expected one of them", source, with);
}

const char *gt_job_bound(const gt_job *job) {
  if (job->pipeline.nstages > 0 || job->pipeline.search) return "a pipeline";
  if (job->sync.central) return "sync.central";
  return job->limits.wan_bytes > 0 ? "limits.wan_bytes" : NULL;
}

/* ---- order in time --------------------------------------------------------------------------- */

/* A source of faults: an entry of the job, or one region of an entry with random times. */
typedef struct {
  gt_fault next;
  gt_rng rng;
  double mtbf_s, mttr_s; /* 0: it has one fault */
} source;

struct gt_faults {
  source *sources;
  size_t n;
  gt_heap due; /* sources, by the time of their next fault */
};

static double exponential(gt_rng *rng, double mean) {
  return -mean * log(1 - gt_rng_uniform(rng));
}

static void draw(source *s, gt_ns up) {
  s->next.at = up + 1 + gt_from_seconds(exponential(&s->rng, s->mtbf_s));
  s->next.until = s->next.at + 1 + gt_from_seconds(exponential(&s->rng, s->mttr_s));
}

static void add(gt_faults *f, const source *s) {
  f->sources[f->n] = *s;
  gt_heap_push(&f->due, (gt_heap_entry){.at = s->next.at, .key = f->n, .a = (uint32_t)f->n});
  f->n++;
}

static void add_random(gt_faults *f, const gt_job *job, size_t entry, size_t region) {
  const gt_job_fault *of = &job->faults[entry];
  source s = {.next = {.kind = GT_FAULT_LOSS, .a = region},
              .rng = gt_rng_make(job->seed, GT_RNG_FAULT, region, entry),
              .mtbf_s = of->mtbf_s,
              .mttr_s = of->mttr_s};
  draw(&s, 0);
  add(f, &s);
}

static gt_fault fault_of(const gt_job *job, const gt_job_fault *of) {
  gt_fault f = {.kind = GT_FAULT_LOSS, .until = GT_NEVER, .a = job->nregions};
  double at_s = of->coordinator_s;
  if (of->cut_s >= 0) {
    f.kind = GT_FAULT_CUT;
    f.a = of->ia;
    f.b = of->ib;
    at_s = of->cut_s;
  } else if (of->lost_s >= 0) {
    f.a = of->id;
    at_s = of->lost_s;
  }
  f.at = gt_from_seconds(at_s);
  if (of->for_s > 0) f.until = gt_from_seconds(at_s + of->for_s);
  if (of->back_s > 0) f.until = gt_from_seconds(of->back_s);
  return f;
}

gt_faults *gt_faults_open(const gt_job *job) {
  gt_faults *f = GT_NEW(gt_faults);
  f->sources = GT_NEW_ARRAY(source, job->nfaults * job->nregions);
  for (size_t i = 0; i < job->nfaults; i++) {
    const gt_job_fault *of = &job->faults[i];
    if (of->mtbf_s <= 0) add(f, &(source){.next = fault_of(job, of)});
    for (size_t r = 0; of->mtbf_s > 0 && r < job->nregions; r++)
      if (!of->region || of->id == r) add_random(f, job, i, r);
  }
  return f;
}

void gt_faults_close(gt_faults *f) {
  if (!f) return;
  gt_heap_close(&f->due);
  gt_free(f->sources);
  gt_free(f);
}

gt_ns gt_faults_due(const gt_faults *f) {
  return f->due.n > 0 ? f->due.at[0].at : GT_NEVER;
}

gt_fault gt_faults_take(gt_faults *f) {
  gt_heap_entry e = gt_heap_pop(&f->due);
  source *s = &f->sources[e.a];
  const gt_fault fault = s->next;
  if (s->mtbf_s <= 0) return fault;
  draw(s, fault.until);
  e.at = s->next.at;
  gt_heap_push(&f->due, e);
  return fault;
}
