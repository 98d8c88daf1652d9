/* The copies of a job's pipeline: which regions take whose places. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* Stage s is the first one of its region. */
static bool comes_first(const gt_job *job, size_t s) {
  for (size_t t = 0; t < s; t++)
    if (job->pipeline.stages[t].id == job->pipeline.stages[s].id) return false;
  return true;
}

/* Regions of a copy. */
static size_t places(const gt_job *job) {
  size_t n = 0;
  for (size_t s = 0; s < job->pipeline.nstages; s++) n += comes_first(job, s);
  return n;
}

/* The place of a region of the first copy; places(job): it has none. */
static size_t place_of(const gt_job *job, size_t region) {
  size_t place = 0;
  for (size_t s = 0; s < job->pipeline.nstages; s++) {
    if (!comes_first(job, s)) continue;
    if (job->pipeline.stages[s].id == region) break;
    place++;
  }
  return place;
}

/* The region of the first copy with this place. */
static size_t region_at(const gt_job *job, size_t place) {
  size_t s = 0;
  while (!comes_first(job, s) || place-- > 0) s++;
  return job->pipeline.stages[s].id;
}

static size_t find(const gt_job *job, const char *name) {
  size_t r = 0;
  while (r < job->nregions && strcmp(job->regions[r].name, name) != 0) r++;
  return r;
}

/* Copy and place of a region; copies: it has none. */
static size_t look_up(const gt_job *job, size_t region, size_t *place) {
  *place = place_of(job, region);
  if (*place < places(job)) return 0;
  for (size_t c = 0; c < job->pipeline.ncopies; c++) {
    const gt_job_copy *copy = &job->pipeline.copies[c];
    for (*place = 0; *place < copy->nregions; ++*place)
      if (strcmp(copy->regions[*place], job->regions[region].name) == 0) return c + 1;
  }
  return gt_job_copies(job);
}

/* ---- interface ------------------------------------------------------------------------------- */

size_t gt_job_copies(const gt_job *job) {
  return 1 + job->pipeline.ncopies;
}

size_t gt_job_copy_of(const gt_job *job, size_t region) {
  size_t place;
  return look_up(job, region, &place);
}

size_t gt_job_twin(const gt_job *job, size_t region, size_t copy) {
  size_t place;
  look_up(job, region, &place);
  return copy == 0 ? region_at(job, place)
                   : find(job, job->pipeline.copies[copy - 1].regions[place]);
}

size_t gt_job_stage_region(const gt_job *job, size_t copy, size_t stage) {
  return gt_job_twin(job, job->pipeline.stages[stage].id, copy);
}

char *gt_job_copy_text(const gt_job *job, size_t copy, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "copy %zu (", copy + 1);
  for (size_t place = 0, n = places(job); place < n; place++) {
    const char *name = job->regions[gt_job_twin(job, region_at(job, place), copy)].name,
               *before = place == 0 ? "" : ", ";
    const bool fits = used + strlen(before) + strlen(name) + sizeof ", ...)" <= size;
    used += (size_t)snprintf(text + used, size - used, "%s%s", before, fits ? name : "...");
    if (!fits) break;
  }
  snprintf(text + used, size - used, ")");
  return text;
}

bool gt_job_has_first(const gt_job *job, size_t region) {
  size_t place;
  return look_up(job, region, &place) < gt_job_copies(job) && place == 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static gt_status check_count(const gt_job *job, size_t c, const char *source) {
  const size_t have = job->pipeline.copies[c].nregions, n = places(job);
  if (have == n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: pipeline.copies.%zu.regions has %zu name%s, and pipeline.stages has stages "
                 "in %zu region%s; as many names are needed",
                 source, c, have, have == 1 ? "" : "s", n, n == 1 ? "" : "s");
}

static gt_status check_name(const gt_job *job, size_t c, size_t place, const char *source) {
  const char *name = job->pipeline.copies[c].regions[place];
  char key[80];
  size_t found;
  snprintf(key, sizeof key, "pipeline.copies.%zu.regions.%zu", c, place);
  GT_TRY(gt_job_check_region(job, source, key, name));
  const size_t region = find(job, name), copy = look_up(job, region, &found);
  if (copy == c + 1 && found == place) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s is %s, which has stages already (%s); a region that has none is needed",
                 source, key, name, copy == 0 ? "pipeline.stages" : "pipeline.copies");
}

gt_status gt_job_check_copies(const gt_job *job, const char *source) {
  for (size_t c = 0; c < job->pipeline.ncopies; c++) {
    GT_TRY(check_count(job, c, source));
    for (size_t i = 0; i < job->pipeline.copies[c].nregions; i++)
      GT_TRY(check_name(job, c, i, source));
  }
  return GT_OK;
}

gt_status gt_job_check_between(const gt_job *job, const char *source) {
  const gt_strategy strategy = job->sync.strategy;
  const bool several = job->pipeline.ncopies > 0;
  if (!several && strategy != GT_STRATEGY_NONE)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: sync.strategy is %s, and pipeline.stages has one copy of the model, so that "
        "nothing is exchanged by a strategy; none, or pipeline.copies, is needed",
        source, gt_strategy_names[strategy]);
  if (several && strategy == GT_STRATEGY_NONE)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.strategy is none and there is pipeline.copies, which nothing would "
                   "keep equal; another strategy is needed",
                   source);
  if (several && job->sync.topology == GT_TOPOLOGY_AUTO)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: sync.topology is auto and there is pipeline.copies, whose way is not chosen "
        "by simulation; mesh, hub, tree or ring is needed",
        source);
  return GT_OK;
}
