/* The devices of a job's workers, and the times of its model's operations, as `geotrain probe
   --fleet` has measured them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/job_fleet.h"
#include "search.h"

/* The device of a worker: probe names it by its region and number. */
static const gt_job_fleet_device *device_of(const gt_job_fleet *fleet, const char *region,
                                            size_t worker) {
  char name[128];
  snprintf(name, sizeof name, "%s.%zu", region, worker);
  for (size_t i = 0; i < fleet->n; i++)
    if (strcmp(fleet->devices[i].name, name) == 0) return &fleet->devices[i];
  return NULL;
}

static gt_status use_devices(gt_pipe_job_search *s, const gt_job_fleet *fleet, size_t region) {
  const gt_job *job = s->job;
  gt_pipe_site *site = &s->sites[region];
  const bool limited = job->pipeline.memory_bytes > 0;
  for (size_t w = 0; w < site->workers; w++) {
    const gt_job_fleet_device *d = device_of(fleet, job->regions[region].name, w);
    if (!d)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: the fleet of %s has no device %s.%zu, and region %s has %zu workers; a "
                     "device for each, as `geotrain probe --fleet` measures them, is needed",
                     job->name, job->fleet, job->regions[region].name, w, job->regions[region].name,
                     site->workers);
    s->power[region][w] = d->power;
    if (!limited && (s->memory_bytes == 0 || d->memory_bytes < s->memory_bytes))
      s->memory_bytes = floor(d->memory_bytes);
  }
  return GT_OK;
}

static gt_status use_times(gt_pipe_job_search *s, const gt_job_fleet *fleet) {
  bool same = fleet->noperations == s->problem.npieces;
  for (size_t k = 0; k < s->problem.npieces && same; k++) {
    const gt_job_fleet_operation *o = &fleet->operations[k];
    same = o->first == s->spans[k].first && o->last + 1 == s->spans[k].end;
    s->pieces[k].work.forward_s = o->forward_s;
    s->pieces[k].work.input_s = o->input_s;
    s->pieces[k].work.weight_s = o->weight_s;
  }
  if (same) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: the fleet of %s has times of %zu runs of operations, which are not those of "
                 "model %s (%zu runs); a fleet measured with this model is needed",
                 s->job->name, s->job->fleet, fleet->noperations,
                 gt_model_names[s->job->model.name], s->problem.npieces);
}

gt_status gt_pipe_search_use_fleet(gt_pipe_job_search *search) {
  gt_job_fleet *fleet = NULL;
  gt_status status = gt_job_fleet_load(&fleet, search->job->fleet);
  search->by_fleet = status == GT_OK && fleet->noperations > 0;
  if (search->by_fleet) status = use_times(search, fleet);
  for (size_t r = 0; r < search->job->nregions && search->by_fleet && status == GT_OK; r++)
    status = use_devices(search, fleet, r);
  for (size_t r = 0; r < search->job->nregions && search->memory_bytes > 0; r++)
    search->sites[r].memory_bytes = search->memory_bytes;
  gt_job_fleet_close(fleet);
  return status;
}
