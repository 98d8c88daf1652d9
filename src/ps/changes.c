/* What a pipeline that follows the network has changed so far, for the summary. */
#include <inttypes.h>
#include <stdio.h>

#include "internal.h"

void gt_ps_changes_add(gt_ps *ps, int64_t step, size_t from, size_t micros) {
  ps_changes *c = &ps->changes;
  c->all++;
  if (micros == from) return;
  c->others++;
  if (c->told == CHANGES_TOLD) return;
  c->steps[c->told] = step;
  c->micros[c->told++] = (int64_t)micros;
}

void gt_ps_changes_save(gt_ps *ps, gt_state *state) {
  gt_state_add(state, "adapt/", "changes", GT_TYPE_I64, &ps->changes, PS_CHANGES);
}

/* What is loaded is of another plan, which a resume has left, if it ends with another number. */
static bool is_other(const gt_ps *ps) {
  const ps_changes *c = &ps->changes;
  const int64_t last = c->told > 0 ? c->micros[c->told - 1] : (int64_t)ps->spec.micros;
  return c->others == c->told && last != (int64_t)ps->stages.micros;
}

/* Older checkpoints do not have it. */
gt_status gt_ps_changes_load(gt_ps *ps, const gt_state *state) {
  ps_changes *c = &ps->changes;
  if (!gt_state_find(state, "adapt/", "changes")) return GT_OK;
  GT_TRY(gt_state_get(state, "adapt/", "changes", GT_TYPE_I64, c, PS_CHANGES));
  if (c->told < 0 || c->told > CHANGES_TOLD)
    return GT_FAIL(GT_ERR_CKPT, "adapt/changes has %" PRId64 " of them; expected 0 to %d", c->told,
                   CHANGES_TOLD);
  if (is_other(ps)) *c = (ps_changes){0};
  return GT_OK;
}

/* The region speaks for those of its pipeline. */
static bool has_first(const gt_ps *ps) {
  for (size_t i = 0; i < ps->spec.nstages; i++)
    if (ps->spec.stages[i].counts) return true;
  return false;
}

char *gt_ps_changes_text(const gt_ps *ps, char *text, size_t size) {
  const ps_changes *c = &ps->changes;
  const gt_pipe_job *pipe = ps->spec.adapts;
  char copy[GT_COPY_TEXT];
  size_t used = 0;
  text[0] = '\0';
  if (!pipe || !has_first(ps)) return text;
  if (gt_job_copies(pipe->job) > 1)
    used = (size_t)snprintf(text, size,
                            "%s: ", gt_job_copy_text(pipe->job, pipe->copy, copy, sizeof copy));
  used +=
      (size_t)snprintf(text + used, size - used, "the order of passes changed %" PRId64 " time%s",
                       c->all, c->all == 1 ? "" : "s");
  if (pipe->nothers == 0) return text;
  used += (size_t)snprintf(text + used, size - used, "; %zu micro-batches", ps->spec.micros);
  for (int64_t i = 0; i < c->told && used + 48 < size; i++)
    used += (size_t)snprintf(text + used, size - used, ", from step %" PRId64 " on %" PRId64,
                             c->steps[i], c->micros[i]);
  if (c->others > c->told && used + 48 < size)
    snprintf(text + used, size - used, ", and %" PRId64 " more", c->others - c->told);
  return text;
}
