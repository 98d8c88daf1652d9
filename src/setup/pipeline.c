/* The pipeline of a run: the part of the model of each region, and the spans that this rank
   runs. */
#include "internal.h"

/* ---- the parts of regions -------------------------------------------------------------------- */

static size_t region_of(const gt_pipe_layout *layout, size_t span) {
  return layout->places[gt_pipe_stage_of(layout->stages, span)].region;
}

/* region: of this region's replica. */
static gt_part_ranges ranges_of(const gt_run_pipe *pipe, const gt_graph *model, size_t region,
                                bool buffers) {
  const size_t spans = pipe->layout->stages * pipe->layout->chunks;
  gt_part_ranges r = {.ranges = GT_NEW_ARRAY(gt_part_range, spans)};
  size_t whole = 0;
  for (size_t k = 0; k < spans; k++) {
    const size_t count = gt_graph_span_floats(model, pipe->job->spans[k], buffers);
    if (region_of(pipe->layout, k) == region) {
      r.ranges[r.n++] = (gt_part_range){.span = k, .own = r.floats, .whole = whole, .count = count};
      r.floats += count;
    }
    whole += count;
  }
  return r;
}

/* ---- the stages of this region --------------------------------------------------------------- */

static const gt_part_range *find(const gt_part_ranges *ranges, size_t span) {
  for (size_t i = 0; i < ranges->n; i++)
    if (ranges->ranges[i].span == span) return &ranges->ranges[i];
  gt_bug("span %zu is not of this region", span);
}

/* Returns the weights that an operation of the span borrows from another stage, as a range of the
   region's parameters; count 0: none. */
static gt_ps_range borrowed(const gt_run_pipe *pipe, const gt_graph *model, size_t region,
                            size_t span) {
  const gt_part_ranges *own = &pipe->parts[region].params;
  for (size_t i = pipe->job->spans[span].first; i < pipe->job->spans[span].end; i++) {
    const size_t owner = gt_graph_operation(model, i).borrows;
    if (owner == SIZE_MAX) continue;
    size_t of = 0;
    while (owner >= pipe->job->spans[of].end) of++;
    const gt_part_range *range = find(own, of);
    const size_t before =
        gt_graph_span_floats(model, (gt_span){pipe->job->spans[of].first, owner}, false);
    /* the weights are the first tensor of the operation that owns them */
    const gt_arrays *a = gt_graph_arrays(model);
    for (size_t t = 0; t < a->nviews; t++)
      if (a->views[t].offset == range->whole + before)
        return (gt_ps_range){range->own + before, a->views[t].count};
  }
  return (gt_ps_range){0};
}

static gt_ps_range *copy_ranges(const gt_run_pipe *pipe, const gt_part_ranges *from, size_t stage,
                                size_t *n) {
  gt_ps_range *ranges = GT_NEW_ARRAY(gt_ps_range, pipe->layout->chunks + 1);
  *n = 0;
  for (size_t chunk = 0; chunk < pipe->layout->chunks; chunk++) {
    const gt_part_range *r = find(from, gt_pipe_span_of(pipe->layout->stages, chunk, stage));
    if (r->count > 0) ranges[(*n)++] = (gt_ps_range){r->own, r->count};
  }
  return ranges;
}

static gt_ps_stage stage_of(const gt_run_pipe *pipe, const gt_graph *model, size_t region,
                            size_t stage) {
  const gt_pipe_layout *l = pipe->layout;
  gt_ps_stage s = gt_ps_stage_of(l, stage);
  gt_ps_range *params = copy_ranges(pipe, &pipe->parts[region].params, stage, &s.nparams);
  for (size_t chunk = 0; chunk < l->chunks; chunk++) {
    const size_t span = gt_pipe_span_of(l->stages, chunk, stage);
    const gt_ps_range tied = borrowed(pipe, model, region, span);
    bool has = tied.count == 0;
    for (size_t i = 0; i < s.nparams; i++)
      has |= tied.offset >= params[i].offset && tied.offset < params[i].offset + params[i].count;
    if (!has) params[s.nparams++] = tied;
  }
  s.params = params;
  s.buffers = copy_ranges(pipe, &pipe->parts[region].buffers, stage, &s.nbuffers);
  return s;
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

bool gt_setup_span_judges(const gt_run_pipe *pipe, size_t span) {
  return span + 1 == pipe->layout->stages * pipe->layout->chunks;
}

bool gt_setup_span_reads(const gt_run *run, size_t span) {
  const gt_span s = run->pipe->job->spans[span];
  if (gt_setup_span_judges(run->pipe, span) && run->pipe->layout->label_bytes == 0) return true;
  for (size_t i = s.first; i < s.end; i++)
    if (gt_graph_operation(run->model, i).samples) return true;
  return false;
}

size_t gt_setup_own_span(const gt_run *run, size_t span) {
  const gt_part_ranges *own = &run->pipe->parts[run->roles.region_id].params;
  return (size_t)(find(own, span) - own->ranges);
}

size_t gt_setup_judge(const gt_run_pipe *pipe) {
  return region_of(pipe->layout, pipe->layout->stages * pipe->layout->chunks - 1);
}

static void open_stages(gt_run *run) {
  gt_run_pipe *pipe = run->pipe;
  const size_t region = run->roles.region_id;
  pipe->stages = GT_NEW_ARRAY(gt_ps_stage, pipe->layout->stages);
  for (size_t stage = 0; stage < pipe->layout->stages; stage++)
    if (pipe->layout->places[stage].region == region)
      pipe->stages[pipe->nstages++] = stage_of(pipe, run->model, region, stage);
}

static const gt_plane_range *copy(gt_plane_range *to, size_t *used, const gt_ps_range *from,
                                  size_t n) {
  const size_t first = *used;
  for (size_t i = 0; i < n; i++) to[(*used)++] = (gt_plane_range){from[i].offset, from[i].count};
  return to + first;
}

/* The workers of a stage have its ranges. */
static void open_workers(gt_run_pipe *pipe) {
  size_t nworkers = 0, nranges = 0, used = 0;
  for (size_t i = 0; i < pipe->nstages; i++) {
    nworkers += pipe->stages[i].workers;
    nranges += pipe->stages[i].nparams + pipe->stages[i].nbuffers;
  }
  pipe->workers = GT_NEW_ARRAY(gt_plane_part, nworkers);
  pipe->ranges = GT_NEW_ARRAY(gt_plane_range, nranges);
  for (size_t i = 0; i < pipe->nstages; i++) {
    const gt_ps_stage *s = &pipe->stages[i];
    const gt_plane_part part = {.params = copy(pipe->ranges, &used, s->params, s->nparams),
                                .buffers = copy(pipe->ranges, &used, s->buffers, s->nbuffers),
                                .nparams = s->nparams,
                                .nbuffers = s->nbuffers};
    for (size_t w = 0; w < s->workers; w++) pipe->workers[s->first_worker + w] = part;
  }
}

/* Logs data that leave their region. */
static void say_labels(const gt_run *run) {
  const gt_pipe_layout *l = run->pipe->layout;
  const gt_job_region *regions = run->job->regions;
  if (l->label_bytes == 0) return;
  gt_log_job(GT_LOG_INFO,
             "labels leave region %s (pipeline.labels: send): they go with all activations to "
             "region %s, which has the loss, %zu bytes a sample%s",
             regions[l->places[0].region].name, regions[gt_setup_judge(run->pipe)].name,
             l->label_bytes, run->data.text ? "; those of a text are the text itself" : "");
}

/* Memory can allow other numbers in another replica. */
static void say_shapes(const gt_run *run) {
  const gt_job *job = run->job;
  const size_t region = run->roles.region_id, replicas = gt_job_replicas(job);
  char numbers[128], replica[GT_REPLICA_TEXT], line[512];
  if (gt_pipe_job_shapes(run->pipe->job) == 1) return;
  snprintf(line, sizeof line,
           "a step may have %s micro-batches (pipeline.adapt: %s): they change the last bits of "
           "the parameters",
           gt_pipe_job_shapes_text(run->pipe->job, numbers, sizeof numbers),
           gt_adapt_names[job->pipeline.adapt]);
  if (replicas == 1)
    gt_log_job(GT_LOG_INFO, "%s", line);
  else if (run->roles.is_ps && region == gt_job_stage_region(job, run->pipe->job->replica, 0))
    gt_log(GT_LOG_INFO, "%s: %s",
           gt_job_replica_text(job, run->pipe->job->replica, replica, sizeof replica), line);
}

gt_status gt_setup_open_pipeline(gt_run *run, const gt_graph_spec *model) {
  if (run->job->pipeline.nstages == 0) return GT_OK;
  gt_pipe_job *job;
  const size_t replica = gt_job_replica_of(run->job, run->roles.region_id);
  GT_TRY(gt_pipe_job_open(&job, run->job, model, replica));
  run->pipe->job = job;
  run->pipe->layout = &job->layout;
  run->model = job->graph;
  run->pipe->parts = GT_NEW_ARRAY(gt_region_part, run->job->nregions);
  for (size_t r = 0; r < run->job->nregions; r++) {
    const size_t like = gt_job_replica(run->job, r, replica);
    gt_region_part *part = &run->pipe->parts[r];
    *part = (gt_region_part){.params = ranges_of(run->pipe, run->model, like, false),
                             .buffers = ranges_of(run->pipe, run->model, like, true)};
    for (size_t c = 0; c < gt_job_replicas(run->job); c++)
      part->again |= gt_job_replica(run->job, r, c) < r;
  }
  open_stages(run);
  open_workers(run->pipe);
  say_labels(run);
  say_shapes(run);
  return GT_OK;
}

void gt_setup_close_pipeline(gt_run_pipe *pipe) {
  if (!pipe) return;
  for (size_t r = 0; pipe->parts && r < pipe->layout->nregions; r++) {
    gt_free(pipe->parts[r].params.ranges);
    gt_free(pipe->parts[r].buffers.ranges);
  }
  for (size_t i = 0; i < pipe->nstages; i++) {
    gt_free((void *)(uintptr_t)pipe->stages[i].params);
    gt_free((void *)(uintptr_t)pipe->stages[i].buffers);
  }
  for (size_t i = 1; pipe->graphs && i < gt_pipe_job_shapes(pipe->job); i++)
    gt_graph_close(pipe->graphs[i]);
  gt_free(pipe->graphs);
  gt_free(pipe->memory);
  gt_free(pipe->workers);
  gt_free(pipe->ranges);
  gt_free(pipe->parts);
  gt_free(pipe->stages);
  gt_pipe_job_close(pipe->job);
  gt_free(pipe);
}

/* ---- the graph of this rank ------------------------------------------------------------------ */

/* True if no pass of the stage, in any schedule, computes the two gradients separately. */
static bool is_fused(const gt_pipe_layout *layout, size_t stage) {
  const gt_pipe_list *list = &layout->schedule->lists[stage];
  if (layout->adapts) return false;
  for (size_t i = 0; i < list->n; i++)
    if (list->passes[i].kind == GT_PASS_W) return false;
  return true;
}

static size_t own_stage(const gt_run *run) {
  return gt_pipe_stage_at(run->pipe->layout, run->roles.region_id,
                          (size_t)run->roles.region_rank - 1);
}

/* Sets the spec of a worker's graph for micro-batches of this shape. */
static void set_shape(gt_graph_spec *spec, const gt_run *run, size_t shape) {
  const gt_pipe_layout *l = &gt_pipe_job_shape(run->pipe->job, shape)->layout;
  const size_t stage = own_stage(run);
  spec->slots = l->slots[stage];
  spec->micro_batches = l->micro_batches;
  spec->fused = is_fused(l, stage);
  spec->batch = spec->batch_max = l->micro_samples / l->places[stage].workers;
}

/* Finds the largest number of floats of any shape. */
static gt_status find_memory(const gt_run *run, gt_graph_spec spec, size_t *floats) {
  spec.sizes_only = true;
  *floats = 1;
  for (size_t i = 0; i < gt_pipe_job_shapes(run->pipe->job); i++) {
    gt_graph *graph;
    set_shape(&spec, run, i);
    GT_TRY(gt_graph_create(&graph, &spec));
    const size_t n = gt_graph_bytes(graph) / sizeof(float);
    if (n > *floats) *floats = n;
    gt_graph_close(graph);
  }
  return GT_OK;
}

static gt_status open_graphs(gt_run *run, gt_graph_spec *spec) {
  gt_run_pipe *pipe = run->pipe;
  const size_t n = gt_pipe_job_shapes(pipe->job);
  size_t floats;
  pipe->graphs = GT_NEW_ARRAY(gt_graph *, n);
  if (n > 1) {
    GT_TRY(find_memory(run, *spec, &floats));
    spec->memory = pipe->memory = GT_NEW_ARRAY(float, floats);
  }
  for (size_t i = 0; i < n; i++) {
    set_shape(spec, run, i);
    GT_TRY(gt_graph_create(&pipe->graphs[i], spec));
    if (i == 0) run->graph = pipe->graphs[0];
  }
  return GT_OK;
}

gt_status gt_setup_open_part(gt_run *run, gt_graph_spec spec) {
  const gt_run_pipe *pipe = run->pipe;
  const gt_part_ranges *own = &pipe->parts[run->roles.region_id].params;
  gt_span *spans = GT_NEW_ARRAY(gt_span, own->n);
  bool *runs = GT_NEW_ARRAY(bool, own->n);
  gt_status status;
  spec.spans = spans;
  spec.runs = runs;
  spec.nspans = own->n;
  for (size_t i = 0; i < own->n; i++) spans[i] = pipe->job->spans[own->ranges[i].span];
  if (run->roles.is_ps) {
    status = gt_graph_create(&run->graph, &spec);
  } else {
    for (size_t i = 0; i < own->n; i++)
      runs[i] = gt_pipe_stage_of(pipe->layout->stages, own->ranges[i].span) == own_stage(run);
    spec.lent = true; /* the plane provides the arrays */
    status = open_graphs(run, &spec);
  }
  gt_free(spans);
  gt_free(runs);
  return status;
}
