/* A pipeline as it is run. */
#include "geotrain/pipe_layout.h"

void gt_pipe_layout_close(gt_pipe_layout *layout) {
  if (!layout) return;
  gt_free(layout->places);
  gt_free(layout->output_bytes);
  gt_free(layout->slots);
  gt_pipe_schedule_close(layout->schedule);
  *layout = (gt_pipe_layout){0};
}
