/* What the parameter servers of a pipeline's regions need. */
#include "geotrain/ps_memory.h"
#include "pipeline.h"

#define MB 1e-6

static gt_ps_need need_of(const gt_planner_pipeline *p, size_t region) {
  return gt_ps_need_of(p->pipe, region, p->job->wan.emulate);
}

void gt_planner_pipeline_print_servers(FILE *to, const gt_planner_pipeline *p) {
  fprintf(to, "%-12s %9s %9s %9s %9s %10s %9s\n", "server of", "arrays", "optimizer", "workers'",
          "frames", "checkpoint", "all");
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_copy_of(p->job, r) != p->pipe->copy) continue;
    const gt_ps_need n = need_of(p, r);
    fprintf(to, "%-12.12s %9.4g %9.4g %9.4g %9.4g %10.4g %9.4g\n", p->job->regions[r].name,
            MB * (double)n.arrays, MB * (double)n.optimizer, MB * (double)n.workers,
            MB * (double)n.frames, MB * (double)n.checkpoint, MB * (double)n.all);
  }
  fprintf(to, "MB of a parameter server; workers': its workers' memory that it reads and writes, "
              "counted there, too\n\n");
}

json_t *gt_planner_pipeline_servers(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_copy_of(p->job, r) != p->pipe->copy) continue;
    const gt_ps_need n = need_of(p, r);
    json_array_append_new(
        out,
        json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "region", p->job->regions[r].name,
                  "arrays_bytes", (json_int_t)n.arrays, "optimizer_bytes", (json_int_t)n.optimizer,
                  "workers_bytes", (json_int_t)n.workers, "frames_bytes", (json_int_t)n.frames,
                  "checkpoint_bytes", (json_int_t)n.checkpoint, "memory_bytes", (json_int_t)n.all));
  }
  return out;
}
