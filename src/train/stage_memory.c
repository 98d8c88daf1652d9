/* The memory of the ranks of a pipeline: what is planned, before the run; what was used, in the
   record. */
#include <stdio.h>

#include "geotrain/ps_memory.h"
#include "stages.h"

static gt_ps_need server_need(const gt_server *s, size_t region, bool apart) {
  const gt_run *run = s->run;
  const gt_ps_setting how = {.modelled = run->job->wan.emulate || run->options->virtual_clock,
                             .apart = apart,
                             .wiring = &s->wiring};
  return gt_ps_need_of(run->pipe->job, region, &how);
}

/* Which regions have no shared memory: each tells the others.  Collective over the servers. */
static void find_apart(const gt_server *s, int *apart) {
  const gt_run *run = s->run;
  const int own = !gt_plane_ps_wakes(s->plane);
  MPI_Request request;
  GT_MPI(MPI_Iallgather(&own, 1, MPI_INT, apart, 1, MPI_INT, run->roles.ps, &request));
  gt_wait_all(&request, 1, "the other regions to say how they run", run->start_limit_s, NULL, NULL);
}

void gt_server_stages_say_memory(const gt_server *s) {
  const gt_run *run = s->run;
  char text[900] = "";
  size_t used = 0;
  int apart[GT_MAX_REGIONS];
  if (!run->pipe) return;
  find_apart(s, apart);
  for (size_t i = 0; i < run->pipe->layout->stages && used + 64 < sizeof text; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu %.4g", i > 0 ? ", " : "", i,
                             1e-6 * (double)gt_pipe_job_memory(run->pipe->job, i));
  gt_log_job(GT_LOG_INFO, "planned memory, MB of a worker of stage: %s", text);
  used = 0;
  for (size_t r = 0; r < run->job->nregions && used + 96 < sizeof text; r++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%.63s %.4g", r > 0 ? ", " : "",
                             run->job->regions[r].name,
                             1e-6 * (double)server_need(s, r, apart[r] != 0).all);
  gt_log_job(GT_LOG_INFO, "planned memory, MB of the server of: %s", text);
}

/* ---- in the record --------------------------------------------------------------------------- */

#define RANK_TEXT ((size_t)192)

static size_t write_rank(char *text, const gt_server *s, const char *who, size_t planned,
                         gt_resident used) {
  size_t n = (size_t)snprintf(text, RANK_TEXT, "{%s,\"planned_bytes\":%zu", who, planned);
  if (s->clock->measures)
    n += (size_t)snprintf(text + n, RANK_TEXT - n, ",\"peak_bytes\":%zu,\"start_bytes\":%zu}",
                          used.peak, used.start);
  else
    n += (size_t)snprintf(text + n, RANK_TEXT - n, ",\"peak_bytes\":null,\"start_bytes\":null}");
  return n;
}

gt_status gt_server_stages_record_memory(const gt_server *s) {
  if (!s->stages) return GT_OK;
  const gt_run *run = s->run;
  const gt_ps_passes *passes = gt_server_stages_passes(s->stages);
  const size_t workers = gt_ps_passes_workers(passes);
  char *text = gt_alloc((workers + 1) * RANK_TEXT + 4, 1), who[64];
  size_t used = 1;
  text[0] = '[';
  used += write_rank(text + used, s, "\"rank\":\"server\"",
                     server_need(s, run->roles.region_id, !gt_plane_ps_wakes(s->plane)).all,
                     (gt_resident){gt_resident_peak(), run->resident_start});
  for (size_t w = 0; w < workers; w++) {
    const size_t stage = gt_ps_passes_stage(passes, w);
    snprintf(who, sizeof who, "\"rank\":\"worker %zu\",\"stage\":%zu", w, stage);
    text[used++] = ',';
    used += write_rank(text + used, s, who, gt_pipe_job_memory(run->pipe->job, stage),
                       gt_server_stages_used(s->stages, w));
  }
  snprintf(text + used, 2, "]");
  const gt_status status =
      gt_record_line(s->record, gt_server_elapsed(s), "memory", "ranks", 'j', text, NULL);
  gt_free(text);
  return status;
}
