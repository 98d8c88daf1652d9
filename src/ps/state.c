/* Saves and loads the PS: totals, batch numbers without a gradient, its outbox, strategy and
   optimizer. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Collects the numbers to issue again and those that workers have; returns their count.  On a plane
   that is `whole` all workers have the same one. */
static size_t collect_unreturned(gt_ps *ps) {
  size_t need = ps->nreissue + ps->spec.nworkers, n = ps->nreissue;
  if (ps->unreturned_capacity < need) {
    gt_free(ps->unreturned);
    ps->unreturned = GT_NEW_ARRAY(int64_t, need);
    ps->unreturned_capacity = need;
  }
  if (n) memcpy(ps->unreturned, ps->reissue, n * sizeof *ps->reissue);
  const size_t holders = ps->plane->whole ? 1 : ps->spec.nworkers;
  for (size_t w = 0; w < holders; w++)
    if (ps->workers[w].has_batch) ps->unreturned[n++] = ps->workers[w].batch;
  if (n) qsort(ps->unreturned, n, sizeof *ps->unreturned, ascending);
  return n;
}

void gt_ps_save(gt_ps *ps, gt_state *state) {
  size_t n = collect_unreturned(ps);
  gt_state_add(state, "ps/", "totals", GT_TYPE_I64, &ps->totals, PS_TOTALS);
  gt_state_add(state, "ps/", "unreturned", GT_TYPE_I64, ps->unreturned, n);
  (void)gt_ps_coded_state(ps, (gt_state_direction){.to = state});
  (void)gt_ps_validation_state(ps, (gt_state_direction){.to = state});
  gt_outbox_save(ps->outbox, state);
  gt_optim_save(ps->spec.optim, "", state);
  gt_ps_agree_state(ps, (gt_state_direction){.to = state});
  gt_sync_state(ps->sync, (gt_state_direction){.to = state});
  gt_ps_adapt_save(ps, state);
  gt_ps_epoch_save(ps, state);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Returns the bytes of a whole message. */
static size_t whole_bytes(const void *ctx, const gt_frame_header *head) {
  return gt_exchange_bytes(((const gt_ps *)ctx)->exchange, head);
}

/* A longer `until` makes a finished region train again. */
static void load_phase(gt_ps *ps) {
  ps->phase = GT_PS_TRAINING;
  ps->came_back = ps->totals.phase != GT_PS_TRAINING;
  if (ps->nreissue == 0 && !gt_ps_may_issue(ps)) ps->phase = (gt_ps_phase)ps->totals.phase;
  /* until all have sent DONE again: another can have more to train */
  if (ps->phase == GT_PS_COMPLETE) ps->phase = GT_PS_FOLLOWING;
  ps->came_back = ps->came_back && ps->phase == GT_PS_TRAINING;
  ps->totals.phase = ps->phase;
}

static gt_status load_numbers(gt_ps *ps, const gt_state *state) {
  GT_TRY(gt_state_get(state, "ps/", "totals", GT_TYPE_I64, &ps->totals, PS_TOTALS));
  ps->steps_at_round = ps->totals.steps;
  ps->samples_at_round = ps->totals.samples;
  int64_t next = ps->totals.next_batch, phase = ps->totals.phase;
  if (next < 0 || phase < GT_PS_TRAINING || phase > GT_PS_STOPPED)
    return GT_FAIL(GT_ERR_CKPT, "ps/totals has batch %lld and phase %lld, which cannot be",
                   (long long)next, (long long)phase);
  const gt_state_item *numbers = gt_state_find(state, "ps/", "unreturned");
  if (!numbers || numbers->type != GT_TYPE_I64)
    return GT_FAIL(GT_ERR_CKPT, "ps/unreturned is missing, or no list of numbers");
  gt_free(ps->reissue);
  ps->nreissue = numbers->count;
  ps->reissue = GT_NEW_ARRAY(int64_t, numbers->count + 1);
  if (numbers->count) memcpy(ps->reissue, numbers->data, numbers->count * sizeof *ps->reissue);
  for (size_t i = 0; i < ps->nreissue; i++)
    if (ps->reissue[i] < 0 || ps->reissue[i] >= next)
      return GT_FAIL(GT_ERR_CKPT, "ps/unreturned has batch %lld; expected below %lld",
                     (long long)ps->reissue[i], (long long)next);
  return GT_OK;
}

gt_status gt_ps_load(gt_ps *ps, gt_ns now, const gt_state *state) {
  gt_ps_at(ps, now);
  GT_TRY(gt_ps_epoch_load(ps, state));
  GT_TRY(load_numbers(ps, state));
  GT_TRY(gt_ps_coded_state(ps, (gt_state_direction){.from = state}));
  GT_TRY(gt_ps_validation_state(ps, (gt_state_direction){.from = state}));
  const gt_ps_host *host = &ps->spec.host;
  GT_TRY(
      gt_outbox_load(ps->outbox, state, host->left ? host->left(host->ctx) : 0, whole_bytes, ps));
  GT_TRY(gt_optim_load(ps->spec.optim, "", state));
  GT_TRY(gt_ps_agree_state(ps, (gt_state_direction){.from = state}));
  GT_TRY(gt_sync_state(ps->sync, (gt_state_direction){.from = state}));
  GT_TRY(gt_ps_adapt_load(ps, state));
  gt_ps_reorder(ps);
  load_phase(ps);
  gt_ps_eval_again(ps);
  ps->resumed = true;
  return GT_OK;
}
