/* Whether the ranks of a host, or of a control group there, fit into its memory, before they
   allocate the model. */
#include <stdio.h>

#include "geotrain/pipe_job.h"
#include "internal.h"

typedef struct {
  uint64_t group;   /* of ranks that share memory */
  double need, has; /* bytes */
} rank_memory;

/* At least: a PS also has momenta and what it exchanges. */
static gt_status find_need(const gt_run *run, const gt_graph_spec *spec, size_t *parameters,
                           double *need) {
  gt_graph_spec all = *spec;
  size_t bytes;
  if (run->pipe) all.batch_max = 0;
  GT_TRY(gt_graph_size(&all, parameters, &bytes));
  *need = (double)bytes;
  if (!run->pipe) return GT_OK;
  const size_t region = run->roles.region_id;
  const gt_part_ranges *params = &run->pipe->parts[region].params;
  if (!run->roles.is_ps) {
    const size_t worker = (size_t)run->roles.region_rank - 1,
                 stage = gt_pipe_stage_at(run->pipe->layout, region, worker);
    *need = (double)gt_pipe_job_memory(run->pipe->job, stage);
    return GT_OK;
  }
  *need = 0;
  for (size_t i = 0; i < params->n; i++)
    *need += 2.0 * sizeof(float) * (double)params->ranges[i].count;
  return GT_OK;
}

static gt_status check_group(const rank_memory *own, const rank_memory *all, size_t n,
                             const gt_graph_spec *spec, size_t parameters) {
  double need = 0, has = own->has;
  size_t here = 0;
  char what[256];
  for (size_t i = 0; i < n; i++) {
    if (all[i].group != own->group) continue;
    here++;
    need += all[i].need;
    if (all[i].has < has) has = all[i].has;
  }
  snprintf(what, sizeof what, "model %s has %zu parameters, and training it with %zu ranks here",
           spec->model, parameters, here);
  return gt_memory_check(GT_ERR_JOB, what, need, has);
}

gt_status gt_setup_check_memory(const gt_run *run, const gt_graph_spec *spec) {
  const gt_roles *roles = &run->roles;
  const int bytes = (int)sizeof(rank_memory);
  rank_memory own = {.group = gt_memory_group(), .has = gt_memory_free("")};
  rank_memory *all = GT_NEW_ARRAY(rank_memory, (size_t)roles->world_size);
  size_t parameters = 0;
  MPI_Request request;
  gt_status status = find_need(run, spec, &parameters, &own.need);
  GT_MPI(MPI_Iallgather(&own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, roles->world, &request));
  gt_wait_all(&request, 1, "the memory of all ranks", run->start_limit_s, NULL, NULL);
  if (status == GT_OK) status = check_group(&own, all, (size_t)roles->world_size, spec, parameters);
  gt_free(all);
  return gt_agree(roles->world, status, run->start_limit_s);
}
