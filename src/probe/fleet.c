/* The fleet of a job: its workers as devices of a pipeline. */
#include "geotrain/ps_work_time.h"
#include "fleet.h"

/* A run slows its workers by compute.speed and speeds, so these count. */
static double power_of(const gt_probe_state *p, const double *times_s) {
  static const double weights[GT_PROBE_TASKS] = {1, 1, 1, 1, 1};
  return gt_pipe_power(times_s, weights, GT_PROBE_TASKS) /
         gt_cost_slowdown(p->run.job, p->run.roles.region_id, (size_t)p->run.roles.region_rank - 1);
}

/* All workers compute at once, as in training. */
static void measure_devices(gt_probe_state *p) {
  gt_probe_meet(p, "the other ranks before the reference tasks");
  if (!p->run.roles.is_ps) {
    gt_probe_reference(p->own.task_s, (size_t)p->run.roles.world_rank);
    p->own.power = power_of(p, p->own.task_s);
  }
  p->own.memory_bytes = gt_memory_free("");
  gt_probe_meet(p, "the reference tasks");
}

/* The rows of all ranks, on rank 0. */
static void gather_pairs(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  const size_t n = (size_t)roles->world_size;
  const int bytes = (int)(n * sizeof *p->pairs);
  MPI_Request request;
  if (roles->world_rank == 0) p->all_pairs = GT_NEW_ARRAY(gt_pipe_link, n * n);
  GT_MPI(MPI_Igather(p->pairs, bytes, MPI_BYTE, p->all_pairs, bytes, MPI_BYTE, 0, roles->world,
                     &request));
  gt_wait_all(&request, 1, "the links of all workers", p->limit_s, NULL, NULL);
}

void gt_probe_fleet(gt_probe_state *p) {
  measure_devices(p);
  if (p->run.graph) gt_probe_operations(p);
  gt_probe_pairs(p);
  gather_pairs(p);
}
