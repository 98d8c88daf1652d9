/* The phases of a region's workers in its record, and their means in its result. */
#include <stdio.h>

#include "stages.h"

/* "stage": 0 and a number for each phase. */
#define WORKER_TEXT ((size_t)64 * (GT_NPHASES + 2))

static size_t write_worker(char *text, const gt_ps_passes *passes, size_t worker) {
#define KEY(constant, key, title) key,
  static const char *const keys[] = {GT_PHASE_LIST(KEY)};
#undef KEY
  const gt_phase_times times = gt_ps_passes_phases(passes, worker);
  size_t used = (size_t)snprintf(text, WORKER_TEXT, "%s{\"stage\":%zu", worker > 0 ? "," : "",
                                 gt_ps_passes_stage(passes, worker));
  for (size_t i = 0; i < GT_NPHASES; i++)
    used += (size_t)snprintf(text + used, WORKER_TEXT - used, ",\"%s\":%.9f", keys[i],
                             gt_seconds(times.of[i]));
  used += (size_t)snprintf(text + used, WORKER_TEXT - used, "}");
  return used;
}

gt_status gt_server_stages_record(const gt_server *s) {
  if (!s->stages) return GT_OK;
  const gt_ps_passes *passes = gt_server_stages_passes(s->stages);
  const size_t workers = gt_ps_passes_workers(passes);
  char *text = gt_alloc(workers * WORKER_TEXT + 3, 1);
  gt_ps_view v;
  size_t used = 0;
  gt_ps_look(s->ps, gt_server_now(s), &v);
  text[used++] = '[';
  for (size_t w = 0; w < workers; w++) used += write_worker(text + used, passes, w);
  snprintf(text + used, 2, "]");
  const gt_status status = gt_record_line(s->record, gt_server_elapsed(s), "phases", "step", 'i',
                                          v.steps, "workers", 'j', text, NULL);
  gt_free(text);
  return status;
}

double gt_server_stages_transfer_s(const gt_server *s) {
  double phase_s[GT_NPHASES] = {0};
  if (s->stages) gt_ps_passes_means(gt_server_stages_passes(s->stages), phase_s);
  return phase_s[GT_PHASE_TRANSFER];
}

void gt_server_stages_result(const gt_server *s, gt_region_result *r) {
  if (!s->stages) return;
  gt_ps_changes_text(s->ps, r->adapted, sizeof r->adapted);
  gt_ps_passes_means(gt_server_stages_passes(s->stages), r->phase_s);
  r->wan_wait_s += r->phase_s[GT_PHASE_TRANSFER];
  r->local_wait_s -= r->phase_s[GT_PHASE_TRANSFER];
}
