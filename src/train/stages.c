/* Where the buffers of a worker lie in its activation area. */
#include "stages.h"

#define ALIGNMENT ((size_t)64)

static size_t place(size_t *at, const gt_pipe_buffers *buffers, size_t end) {
  for (size_t i = 0; i < buffers->count; i++) {
    at[buffers->first + i] = end;
    end += (buffers->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  return end;
}

gt_stage_area gt_stage_area_of(const gt_pipe_layout *layout, size_t stage) {
  gt_stage_area area = {.out = GT_NEW_ARRAY(size_t, gt_pipe_out_all(layout, stage).count),
                        .landing = GT_NEW_ARRAY(size_t, gt_pipe_landing_all(layout, stage).count)};
  for (size_t chunk = 0; chunk < layout->chunks; chunk++)
    for (int gradient = 0; gradient < 2; gradient++) {
      const gt_pipe_buffers out = gt_pipe_out_buffers(layout, stage, chunk, gradient),
                            landing = gt_pipe_landing_buffers(layout, stage, chunk, gradient);
      area.bytes = place(area.out, &out, area.bytes);
      area.bytes = place(area.landing, &landing, area.bytes);
    }
  return area;
}

void gt_stage_area_close(gt_stage_area *area) {
  gt_free(area->out);
  gt_free(area->landing);
  *area = (gt_stage_area){0};
}

static size_t largest(const gt_pipe_layout *layout, size_t region) {
  size_t most = 0;
  for (size_t stage = 0; stage < layout->stages; stage++) {
    if (layout->places[stage].region != region) continue;
    gt_stage_area area = gt_stage_area_of(layout, stage);
    if (area.bytes > most) most = area.bytes;
    gt_stage_area_close(&area);
  }
  return most;
}

size_t gt_stage_area_max(const gt_pipe_job *pipe, size_t region) {
  size_t most = 0;
  for (size_t i = 0; i < gt_pipe_job_shapes(pipe); i++) {
    const size_t bytes = largest(&gt_pipe_job_shape(pipe, i)->layout, region);
    if (bytes > most) most = bytes;
  }
  return most;
}
