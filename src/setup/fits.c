/* Checks that the ranks of a host, and those of a control group, fit into its memory, before they
   allocate the model. */
#include <math.h>
#include <stdio.h>

#include "geotrain/pipe_job.h"
#include "internal.h"

typedef struct {
  gt_memory_pool pools[2];
  double need; /* bytes */
} rank_memory;

static double need_of_stage(const gt_run *run) {
  const size_t region = run->roles.region_id;
  const gt_part_ranges *params = &run->pipe->parts[region].params;
  double floats = 0;
  if (!run->roles.is_ps) {
    const size_t worker = (size_t)run->roles.region_rank - 1;
    return (double)gt_pipe_job_memory(run->pipe->job,
                                      gt_pipe_stage_at(run->pipe->layout, region, worker));
  }
  for (size_t i = 0; i < params->n; i++) floats += 2.0 * (double)params->ranges[i].count;
  return sizeof(float) * floats;
}

/* A lower bound: a PS also has momenta and buffers of its exchange. */
static gt_status find_need(const gt_run *run, const gt_graph_spec *spec, size_t *parameters,
                           double *need) {
  size_t bytes;
  if (run->pipe) {
    *parameters = gt_graph_arrays(run->model)->params.n;
    *need = need_of_stage(run);
    return GT_OK;
  }
  GT_TRY(gt_graph_size(spec, parameters, &bytes));
  *need = (double)bytes;
  return GT_OK;
}

static gt_status check_pool(const rank_memory *own, const rank_memory *all, size_t n, int pool,
                            const char *model, size_t parameters) {
  double need = 0, free_bytes = INFINITY;
  size_t ranks = 0;
  char what[256];
  for (size_t i = 0; i < n; i++) {
    if (all[i].pools[pool].id != own->pools[pool].id) continue;
    ranks++;
    need += all[i].need;
    free_bytes = fmin(free_bytes, all[i].pools[pool].free_bytes);
  }
  snprintf(what, sizeof what, "model %s has %zu parameters, and training it with %zu ranks here",
           model, parameters, ranks);
  return gt_memory_check(GT_ERR_JOB, what, need, free_bytes);
}

gt_status gt_setup_check_memory(const gt_run *run, const gt_graph_spec *spec) {
  const gt_roles *roles = &run->roles;
  const size_t n = (size_t)roles->world_size;
  const int bytes = (int)sizeof(rank_memory);
  rank_memory own = {0}, *all = GT_NEW_ARRAY(rank_memory, n);
  size_t parameters = 0;
  MPI_Request request;
  gt_memory_pools(own.pools);
  gt_status status = find_need(run, spec, &parameters, &own.need);
  GT_MPI(MPI_Iallgather(&own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, roles->world, &request));
  gt_wait_all(&request, 1, "the memory of all ranks", run->start_limit_s, NULL, NULL);
  for (int pool = 0; pool < 2 && status == GT_OK; pool++)
    status = check_pool(&own, all, n, pool, spec->model, parameters);
  gt_free(all);
  return gt_agree(roles->world, status, run->start_limit_s);
}
