/* A region's file of a round: read once, then checked. */
#include <stdio.h>

#include "internal.h"

const char *gt_setup_nonfinite(const gt_state *state) {
  for (size_t i = 0; i < state->n; i++) {
    const gt_state_item *item = &state->items[i];
    if (item->type == GT_TYPE_F32 && !gt_vec_finite(gt_vec_of(item->data, item->count)))
      return item->name;
  }
  return NULL;
}

void gt_setup_close_kept(gt_kept *kept) {
  gt_state_close(&kept->state);
  gt_ckpt_info_close(&kept->info);
  *kept = (gt_kept){0};
}

/* Returns the verdict on the file, given the status of reading it; kept->why receives the reason if
   it is not sound. */
static gt_round_verdict judge(gt_kept *kept, gt_status read, const char *path) {
  if (read != GT_OK) {
    snprintf(kept->why, sizeof kept->why, "%s", gt_error_text());
    return GT_ROUND_DAMAGED;
  }
  const char *nonfinite = gt_setup_nonfinite(&kept->state);
  if (nonfinite)
    snprintf(kept->why, sizeof kept->why, "%s: %s has non-finite values", path, nonfinite);
  else if (kept->info.doubtful)
    snprintf(kept->why, sizeof kept->why, "%s: its model gave only non-finite gradients", path);
  return nonfinite ? GT_ROUND_NOT_FINITE : kept->info.doubtful ? GT_ROUND_DOUBTFUL : GT_ROUND_SOUND;
}

gt_round_verdict gt_setup_read_round(gt_run *run, int64_t round) {
  gt_kept *kept = &run->kept;
  const char *run_dir = run->options->run_dir ? run->options->run_dir : run->run_dir;
  char path[1300];
  if (kept->round == round) return kept->verdict;
  gt_setup_close_kept(kept);
  const gt_status read = gt_ckpt_read_round(run_dir, round, run->region, &kept->info, &kept->state);
  kept->verdict = judge(kept, read, gt_ckpt_path(path, sizeof path, run_dir, round, run->region));
  kept->round = round;
  return kept->verdict;
}
