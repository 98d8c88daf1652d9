/* What a PS needs for the stages of its region. */
#include "geotrain/ps_memory.h"

#include "geotrain/ps_ending.h"
#include "geotrain/ps_of_job.h"

static size_t floats_of(const gt_pipe_job *p, size_t region, bool buffers) {
  const gt_pipe_layout *l = &p->layout;
  size_t sum = 0;
  for (size_t k = 0; k < l->stages * l->chunks; k++)
    if (l->places[gt_pipe_stage_of(l->stages, k)].region == region)
      sum += gt_graph_span_floats(p->graph, p->spans[k], buffers);
  return sum;
}

size_t gt_ps_stages_message_max(const gt_pipe_job *pipe) {
  const gt_pipe_layout *l = &pipe->layout;
  size_t most = 0;
  for (size_t r = 0; r < l->nregions; r++) {
    const size_t all = floats_of(pipe, r, false) + floats_of(pipe, r, true);
    const bool whole = all < GT_MODEL_PIECE || gt_job_copies(pipe->job) > 1;
    const size_t message = (whole ? all : GT_MODEL_PIECE) * sizeof(float);
    if (message > most) most = message;
  }
  for (size_t i = 0; i < gt_pipe_job_shapes(pipe); i++) {
    const gt_pipe_layout *shape = &gt_pipe_job_shape(pipe, i)->layout;
    for (size_t span = 0; span < l->stages * l->chunks; span++)
      if (shape->micro_samples * gt_pipe_sample_bytes(shape, span, false) > most)
        most = shape->micro_samples * gt_pipe_sample_bytes(shape, span, false);
  }
  return most;
}

static size_t passing_of(const gt_pipe_layout *l, size_t stage) {
  size_t sum = gt_pipe_landing_all(l, stage).bytes;
  for (size_t chunk = 0; chunk < l->chunks; chunk++)
    for (int gradient = 0; gradient < 2; gradient++) {
      const size_t span = gt_pipe_span_of(l->stages, chunk, stage);
      const bool edge = gradient ? span == 0 : span + 1 == l->stages * l->chunks;
      const gt_pipe_buffers out = gt_pipe_out_buffers(l, stage, chunk, gradient);
      if (edge) continue;
      const size_t to = gt_pipe_stage_of(l->stages, gradient ? span - 1 : span + 1);
      if (l->places[to].region != l->places[stage].region) sum += out.count * out.bytes;
    }
  return sum;
}

/* What leaves for other regions from a worker's area, and lands in it: of one shape at a time. */
static size_t passing(const gt_pipe_job *p, size_t stage) {
  size_t most = 0;
  for (size_t i = 0; i < gt_pipe_job_shapes(p); i++) {
    const size_t sum = passing_of(&gt_pipe_job_shape(p, i)->layout, stage);
    if (sum > most) most = sum;
  }
  return most;
}

/* A worker's gradients and buffers; its arrays are parameters, gradients and buffers. */
static size_t pushed(const gt_pipe_job *p, size_t stage, size_t buffers) {
  return (p->holds[stage].arrays - buffers) / 2 + buffers;
}

static size_t of_workers(const gt_pipe_job *p, size_t region) {
  const gt_pipe_layout *l = &p->layout;
  size_t sum = 0;
  for (size_t s = 0; s < l->stages; s++) {
    size_t buffers = 0;
    if (l->places[s].region != region) continue;
    for (size_t c = 0; c < l->chunks; c++)
      buffers += gt_graph_span_floats(p->graph, p->spans[gt_pipe_span_of(l->stages, c, s)], true) *
                 sizeof(float);
    sum += l->places[s].workers * (pushed(p, s, buffers) + passing(p, s));
  }
  return sum;
}

gt_ps_need gt_ps_need_of(const gt_pipe_job *pipe, size_t region, bool modelled) {
  const gt_job *job = pipe->job;
  const size_t params = floats_of(pipe, region, false) * sizeof(float),
               buffers = floats_of(pipe, region, true) * sizeof(float),
               batch = (size_t)job->train.batch, message = gt_ps_stages_message_max(pipe);
  const gt_order order = {.region = region, .n = batch, .batch = batch, .whole = true};
  int64_t *samples = GT_NEW_ARRAY(int64_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) samples[r] = job->train.batch;
  const gt_optim_spec optim = gt_ps_stages_optim_of(job, &order, samples);
  gt_free(samples);
  gt_ps_need n = {.arrays = 3 * params + buffers,
                  .optimizer = gt_optim_arrays(&optim) * params,
                  .workers = of_workers(pipe, region)};
  for (size_t r = 0; r < job->nregions; r++)
    if (r != region)
      n.frames += gt_link_frames_bytes(&gt_links_from(pipe->links, region)[r], modelled, message);
  n.checkpoint = 2 * (params + buffers + n.optimizer) + ((size_t)1 << 20);
  n.all = n.arrays + n.optimizer + n.workers + n.frames + n.checkpoint;
  return n;
}
