/* The local planes of a PS: `sync` takes the mean of one gradient of every worker, `async` takes
   each gradient when it comes, `stages` is `sync` in a region of a pipeline: workers belong to
   stages, and gradients and buffers of all become those of the region.  Sums are in the order of
   stages and workers, so they do not depend on the order of pushes. */
#include "internal.h"

/* ---- gradients ------------------------------------------------------------------------------- */

/* Orders the worker to train on its batch, with this model. */
static void issue_with(gt_ps *ps, size_t worker, gt_vec params, gt_vec buffers) {
  ps_worker *w = &ps->workers[worker];
  gt_ps_order o = {.kind = GT_PS_TRAIN,
                   .first = w->batch,
                   .wan_wait = gt_ps_held_total(ps) - w->held_mark,
                   .params = params,
                   .buffers = buffers,
                   .step = ps->step,
                   .workers = ps->step_workers,
                   .common = !ps->spec.local_async};
  ps->totals.wan_wait += o.wan_wait;
  gt_ps_buffers_ordered(ps, worker);
  gt_ps_order_worker(ps, worker, &o);
  w->state = W_COMPUTING;
  w->since = ps->now;
}

static void issue(gt_ps *ps, size_t worker) {
  issue_with(ps, worker, ps->spec.params, ps->spec.buffers);
}

/* who: a worker, or -1 - p: of region p. */
static void count_nonfinite(gt_ps *ps, double who) {
  ps->totals.nonfinite++;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_NONFINITE, (double)ps->totals.nonfinite, who);
  if (ps->totals.nonfinite >= ps->spec.nonfinite_limit) ps->want_stop = GT_ERR_LIMIT;
}

static void count_loss(gt_ps *ps, const gt_ps_push *push) {
  ps->loss_sum += push->loss_sum;
  ps->loss_samples += push->samples;
}

static void give_back(gt_ps *ps, size_t worker) {
  ps_worker *w = &ps->workers[worker];
  w->has_batch = false;
  w->state = W_WAITING;
  w->since = ps->now;
  ps->spec.host.taken(ps->spec.host.ctx, worker);
}

static void consume(gt_ps *ps, size_t worker) {
  const gt_ps_push *push = &ps->workers[worker].push;
  ps->totals.batches++;
  if (!push->nonfinite) {
    ps->totals.samples += push->samples;
    count_loss(ps, push);
  } else {
    count_nonfinite(ps, (double)worker);
    gt_sync_on_nonfinite(ps->sync);
  }
  give_back(ps, worker);
}

/* Does the work that is due after a step, when its batches have been counted. */
static void after_step(gt_ps *ps) {
  gt_ps_eval_check(ps);
  gt_ps_round_check(ps);
}

static void apply(gt_ps *ps, gt_vec grads, int64_t samples) {
  gt_ns from = gt_ps_clock(ps), encode = ps->totals.encode;
  ps->totals.steps++;
  gt_sync_on_gradient(ps->sync, ps->now, grads, (uint64_t)samples);
  ps->totals.update += gt_ps_worked(ps, GT_WORK_UPDATE, 1) - from - (ps->totals.encode - encode);
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* Collects the gradients of the workers of the step, in rank order; returns their samples. */
static int64_t gather(gt_ps *ps) {
  int64_t samples = 0;
  ps->parts.n = ps->parts.bad = 0;
  for (size_t i = 0; i < ps->spec.nworkers; i++) {
    const ps_worker *w = &ps->workers[i];
    if (w->has_batch && w->push.nonfinite) ps->parts.bad++;
    if (!w->has_batch || w->push.nonfinite) continue;
    size_t n = ps->parts.n++;
    ps->parts.grads[n] = w->grads;
    ps->parts.buffers[n] = w->push.buffers;
    ps->parts.samples[n] = w->push.samples;
    samples += w->push.samples;
  }
  return samples;
}

/* Returns the mean gradient over the samples of all workers; of a single worker, or if workers have
   computed it, without a copy. */
static gt_vec reduce(gt_ps *ps) {
  size_t n = ps->spec.grads.n;
  const gt_ps_host *host = &ps->spec.host;
  const float *mean = NULL;
  if (ps->parts.n == 1)
    mean = ps->parts.grads[0];
  else if (ps->parts.bad == 0 && host->reduced)
    mean = host->reduced(host->ctx);
  if (mean) return gt_vec_of((float *)(uintptr_t)mean, n);
  gt_vec_mean(ps->spec.grads, ps->parts.grads, ps->parts.samples, ps->parts.n);
  return ps->spec.grads;
}

/* Gives the strategy every worker's gradient, in rank order; computes no mean. */
static gt_vec give_per_worker(gt_ps *ps) {
  const size_t n = ps->spec.grads.n;
  for (size_t i = 0; i < ps->spec.nworkers; i++) {
    const ps_worker *w = &ps->workers[i];
    if (w->has_batch && !w->push.nonfinite)
      gt_sync_on_part(ps->sync, i + 1, gt_vec_of(w->grads, n), (uint64_t)w->push.samples);
  }
  return gt_vec_of(NULL, n);
}

static bool all_in(const gt_ps *ps, ps_worker_state state) {
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].has_batch && ps->workers[w].state != state) return false;
  return true;
}

static bool any_absent(const gt_ps *ps) {
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].state == W_ABSENT) return true;
  return false;
}

static void sync_step(gt_ps *ps) {
  int64_t samples = gather(ps);
  if (samples > 0) {
    gt_ns from = gt_ps_clock(ps);
    gt_vec grads = ps->per_worker ? give_per_worker(ps) : reduce(ps);
    gt_ps_buffers_mean(ps);
    ps->totals.update += gt_ps_clock(ps) - from;
    apply(ps, grads, samples);
  }
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].has_batch) consume(ps, w);
  after_step(ps);
}

/* Issues numbers in rank order, so that a step has the same batches on the same ranks after a
   resume.  If an evaluation is due, all workers evaluate before the step. */
static void sync_issue(gt_ps *ps) {
  if (any_absent(ps)) return;
  if (gt_ps_may_issue(ps) && gt_ps_eval_begin(ps)) return;
  ps->step_workers = 0;
  for (size_t i = 0; i < ps->spec.nworkers && gt_ps_may_issue(ps); i++) {
    ps->workers[i].batch = gt_ps_take_number(ps);
    ps->workers[i].has_batch = true;
    ps->step_workers++;
  }
  if (ps->step_workers > 0) ps->step++;
  for (size_t i = 0; i < ps->step_workers; i++) issue(ps, i);
}

static void sync_pump(gt_ps *ps) {
  if (ps->held || ps->eval.active) return;
  if (gt_ps_outstanding(ps)) {
    if (!all_in(ps, W_PENDING)) return;
    sync_step(ps);
  }
  if (!ps->held && !gt_ps_frozen(ps)) sync_issue(ps);
}

static void lend_copy(gt_ps *ps, gt_vec *params, gt_vec *buffers) {
  gt_vec_copy(ps->spec.snapshot, *params);
  gt_vec_copy(ps->spec.snapshot_buffers, *buffers);
  *params = ps->spec.snapshot;
  *buffers = ps->spec.snapshot_buffers;
}

static const ps_plane plane_sync = {.name = "sync", .pump = sync_pump, .lend = lend_copy};

/* ---- stages: ranges -------------------------------------------------------------------------- */

/* Floats of two stages are added a block at a time. */
#define BLOCK ((size_t)4096)

/* The ranges of stages: of parameters, or else of buffers. */
typedef struct {
  const gt_ps_spec *spec;
  bool buffers;
} kind;

static size_t ranges_of(const kind *of, size_t stage, const gt_ps_range **ranges) {
  const gt_ps_stage *s = &of->spec->stages[stage];
  *ranges = of->buffers ? s->buffers : s->params;
  return of->buffers ? s->nbuffers : s->nparams;
}

static bool has(const gt_ps_range *range, size_t at) {
  return range->offset <= at && at - range->offset < range->count;
}

/* Returns the run of floats that begins at `at`, with its stages: up to the next start or end of a
   range of any stage, at most `end`. */
static ps_run run_at(const kind *of, size_t at, size_t end) {
  ps_run run = {.stage = PS_NONE, .later = PS_NONE, .offset = at};
  for (size_t k = 0; k < of->spec->nstages; k++) {
    const gt_ps_range *r;
    for (size_t n = ranges_of(of, k, &r); n > 0; n--, r++) {
      const size_t until = has(r, at) ? r->offset + r->count : r->offset;
      if (until > at && until < end) end = until;
      if (!has(r, at)) continue;
      if (run.stage == k || run.later != PS_NONE)
        gt_bug("float %zu: stage %zu has it twice, or is the third to have it", at, k);
      *(run.stage == PS_NONE ? &run.stage : &run.later) = k;
    }
  }
  run.count = end - at;
  return run;
}

/* Returns the runs of all stages' ranges in [0, floats). */
static ps_run *open_runs(const kind *of, size_t floats, size_t *n) {
  ps_run *runs = NULL;
  size_t capacity = 0;
  *n = 0;
  for (size_t k = 0; k < of->spec->nstages; k++) {
    const gt_ps_range *r;
    for (size_t left = ranges_of(of, k, &r); left > 0; left--, r++) {
      if (r->offset > floats || r->count > floats - r->offset)
        gt_bug("stage %zu has floats %zu to %zu of %zu", k, r->offset, r->offset + r->count,
               floats);
      const size_t end = r->offset + r->count;
      for (size_t at = r->offset; at < end;) {
        const ps_run run = run_at(of, at, end);
        at += run.count;
        if (run.stage != k) continue; /* the earlier stage has added the run */
        GT_GROW(runs, *n, capacity, 16);
        runs[(*n)++] = run;
      }
    }
  }
  return runs;
}

static void open_params(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  ps_stages *s = &ps->stages;
  size_t most = 0;
  s->params = open_runs(&(kind){spec, false}, spec->params.n, &s->nparams);
  for (size_t i = 0; i < s->nparams; i++)
    for (size_t k = 0; s->params[i].later != PS_NONE && k < spec->nstages; k++)
      if (spec->stages[k].workers > most) most = spec->stages[k].workers;
  s->sums = spec->params.data && most ? GT_NEW_ARRAY(float, BLOCK *most) : NULL;
  gt_vec_zero(spec->grads); /* the gradient of parameters of no stage */
}

static void open_buffers(gt_ps *ps) {
  ps_stages *s = &ps->stages;
  s->buffers = open_runs(&(kind){&ps->spec, true}, ps->spec.buffers.n, &s->nbuffers);
  for (size_t i = 0; i < s->nbuffers; i++)
    if (s->buffers[i].later != PS_NONE)
      gt_bug("stage %zu has buffer %zu of an earlier one", s->buffers[i].later,
             s->buffers[i].offset);
}

/* ---- stages: workers ------------------------------------------------------------------------- */

static void open_workers(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  const size_t none = spec->nstages;
  ps->stages.of = GT_NEW_ARRAY(size_t, spec->nworkers);
  for (size_t w = 0; w < spec->nworkers; w++) ps->stages.of[w] = none;
  for (size_t k = 0; k < spec->nstages; k++)
    for (size_t i = 0; i < spec->stages[k].workers; i++) {
      const size_t w = spec->stages[k].first_worker + i;
      if (w >= spec->nworkers || ps->stages.of[w] != none)
        gt_bug("stage %zu has worker %zu, who is there twice, or not at all", k, w);
      ps->stages.of[w] = k;
    }
  for (size_t w = 0; w < spec->nworkers; w++)
    if (ps->stages.of[w] == none) gt_bug("worker %zu is of no stage", w);
}

static bool in_steps(const gt_ps_interval *i) {
  return i->epochs <= 0 && i->samples == 0;
}

static void stages_open(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  ps->stages.micro_batches = spec->micro_batches;
  if (spec->nworkers == 0 || spec->local_async || spec->ranking || spec->until.steps <= 0 ||
      !in_steps(&spec->until) || !in_steps(&spec->eval_every) || !in_steps(&spec->checkpoint_every))
    gt_bug("stages need workers, local plane sync, intervals in steps and no ranking");
  open_workers(ps);
  open_params(ps);
  open_buffers(ps);
  gt_ps_agree_open(ps);
  gt_ps_adapt_open(ps);
  gt_ps_passes_begin(ps);
}

static void stages_close(gt_ps *ps) {
  gt_ps_passes_close(ps->passes);
  gt_ps_adapt_close(ps);
  gt_ps_agree_close(ps);
  gt_free(ps->stages.params);
  gt_free(ps->stages.buffers);
  gt_free(ps->stages.of);
  gt_free(ps->stages.sums);
}

static const gt_ps_stage *stage_of(const gt_ps *ps, size_t worker) {
  return &ps->spec.stages[ps->stages.of[worker]];
}

static bool stages_judges(const gt_ps *ps, size_t worker) {
  return stage_of(ps, worker)->judges;
}

/* ---- stages: gradients and buffers of a step ------------------------------------------------- */

/* Lends the model that all workers read in a step or an evaluation: a copy if other replicas of the
   pipeline can change the region's model meanwhile.  A worker takes it with its first pass,
   possibly long after the order. */
static void stages_lend(gt_ps *ps, gt_vec *params, gt_vec *buffers) {
  if (!ps->sync->ops->between_steps) lend_copy(ps, params, buffers);
}

typedef const float *(*pushed_fn)(const ps_worker *w);

static const float *pushed_grads(const ps_worker *w) {
  return w->grads;
}

static const float *pushed_buffers(const ps_worker *w) {
  return w->push.buffers;
}

/* Collects the pushed floats of the stage's workers from `offset` on in ps->parts, in their
   order. */
static void collect(gt_ps *ps, size_t stage, size_t offset, pushed_fn pushed) {
  const gt_ps_stage *of = &ps->spec.stages[stage];
  int64_t samples = 0;
  for (size_t i = 0; i < of->workers; i++) {
    const ps_worker *w = &ps->workers[of->first_worker + i];
    const float *all = pushed(w);
    ps->parts.grads[i] = all ? all + offset : NULL;
    ps->parts.samples[i] = w->push.samples;
    samples += w->push.samples;
  }
  ps->parts.n = of->workers;
  if (ps->parts.n > 1 && samples <= 0)
    gt_bug("the %zu workers of stage %zu had no samples", ps->parts.n, stage);
}

static gt_vec part_of(const gt_ps *ps, size_t i, size_t n) {
  return gt_vec_of((float *)(uintptr_t)ps->parts.grads[i], n);
}

/* Sets y to the mean of the parts; a single worker's part is copied, because a mean of one could
   round. */
static void set_mean(const gt_ps *ps, gt_vec y) {
  if (ps->parts.n == 1)
    gt_vec_copy(y, part_of(ps, 0, y.n));
  else
    gt_vec_mean(y, ps->parts.grads, ps->parts.samples, ps->parts.n);
}

static gt_vec block_of(const gt_ps *ps, size_t i, size_t n) {
  return gt_vec_of(ps->stages.sums + i * BLOCK, n);
}

/* For floats shared by two stages with as many workers: worker i of both stages has the same
   samples, and their gradients are added before the mean, as by a worker that runs both stages.  So
   the bits do not depend on the cuts of the model. */
static void set_mean_of_sums(gt_ps *ps, const ps_run *run, size_t offset, gt_vec y) {
  collect(ps, run->stage, offset, pushed_grads);
  for (size_t i = 0; i < ps->parts.n; i++) gt_vec_copy(block_of(ps, i, y.n), part_of(ps, i, y.n));
  collect(ps, run->later, offset, pushed_grads);
  for (size_t i = 0; i < ps->parts.n; i++) {
    const gt_vec sum = block_of(ps, i, y.n);
    gt_vec_axpy(sum, 1, part_of(ps, i, y.n));
    ps->parts.grads[i] = sum.data;
  }
  set_mean(ps, y);
}

/* For floats shared by two stages with different numbers of workers. */
static void set_sum_of_means(gt_ps *ps, const ps_run *run, size_t offset, gt_vec y) {
  const gt_vec later = block_of(ps, 0, y.n);
  collect(ps, run->stage, offset, pushed_grads);
  set_mean(ps, y);
  collect(ps, run->later, offset, pushed_grads);
  set_mean(ps, later);
  gt_vec_axpy(y, 1, later);
}

static void set_both(gt_ps *ps, const ps_run *run, gt_vec all) {
  const gt_ps_stage *stages = ps->spec.stages;
  const bool alike = stages[run->stage].workers == stages[run->later].workers;
  for (size_t at = 0; all.data && at < all.n; at += BLOCK) {
    const gt_vec y = gt_vec_range(all, at, all.n - at < BLOCK ? all.n - at : BLOCK);
    (alike ? set_mean_of_sums : set_sum_of_means)(ps, run, run->offset + at, y);
  }
}

/* Sets spec.grads to the gradient of the step. */
static void stages_grads(gt_ps *ps) {
  for (size_t i = 0; i < ps->stages.nparams; i++) {
    const ps_run *run = &ps->stages.params[i];
    const gt_vec y = gt_vec_range(ps->spec.grads, run->offset, run->count);
    if (run->later != PS_NONE) {
      set_both(ps, run, y);
      continue;
    }
    collect(ps, run->stage, run->offset, pushed_grads);
    set_mean(ps, y);
  }
  if (ps->stages.micro_batches > 1)
    gt_vec_scale(ps->spec.grads, 1.0F / (float)ps->stages.micro_batches);
}

/* Sets the region's buffers to those after the step. */
static void stages_buffers(gt_ps *ps) {
  for (size_t i = 0; i < ps->stages.nbuffers; i++) {
    const ps_run *run = &ps->stages.buffers[i];
    collect(ps, run->stage, run->offset, pushed_buffers);
    set_mean(ps, gt_vec_range(ps->spec.buffers, run->offset, run->count));
    gt_ps_buffers_again(ps, run->offset, run->count);
  }
}

/* ---- stages: steps --------------------------------------------------------------------------- */

/* Announces the gradient of the step.  Until all regions have theirs, the workers keep their batch
   and nothing is counted, so that a checkpoint has the state before the step. */
static void stages_give(gt_ps *ps) {
  const gt_ns from = gt_ps_clock(ps);
  gather(ps);
  ps->stages.given = true;
  gt_ps_adapt_tell(ps);
  if (ps->parts.bad == 0) stages_grads(ps);
  gt_ps_agree_tell(ps, ps->parts.bad > 0);
  if (ps->parts.bad == 0) ps->totals.update += gt_ps_clock(ps) - from;
}

static void stages_count(gt_ps *ps) {
  for (size_t i = 0; i < ps->spec.nworkers; i++) {
    const gt_ps_stage *stage = stage_of(ps, i);
    const gt_ps_push *push = &ps->workers[i].push;
    if (stage->counts) ps->totals.samples += push->samples;
    if (stage->judges) count_loss(ps, push);
  }
}

/* Returns the region with a non-finite gradient, or in this region the first such worker. */
static double nonfinite_region(const gt_ps *ps) {
  size_t w = 0;
  if (ps->stages.nonfinite != ps->spec.self) return -1 - (double)ps->stages.nonfinite;
  while (!ps->workers[w].push.nonfinite) w++;
  return (double)w;
}

/* Gives the strategy the gradient, with the samples of the first stage's workers. */
static void stages_apply(gt_ps *ps) {
  const gt_ps_stage *stage = &ps->spec.stages[0];
  uint64_t samples = 0;
  for (size_t i = 0; i < stage->workers; i++)
    samples += (uint64_t)ps->workers[stage->first_worker + i].push.samples;
  gt_sync_on_gradient(ps->sync, ps->now, ps->spec.grads, samples);
}

/* Call when the step is committed in all regions of the pipeline. */
static void stages_end(gt_ps *ps) {
  const gt_ns from = gt_ps_clock(ps), encode = ps->totals.encode;
  ps->totals.steps++;
  ps->totals.batches++;
  if (ps->stages.nonfinite == ps->spec.nregions) {
    stages_buffers(ps);
    stages_count(ps);
    stages_apply(ps);
    ps->totals.update += gt_ps_worked(ps, GT_WORK_UPDATE, 1) - from - (ps->totals.encode - encode);
  } else
    count_nonfinite(ps, nonfinite_region(ps));
  for (size_t w = 0; w < ps->spec.nworkers; w++) give_back(ps, w);
  ps->stages.given = ps->stages.committed = false;
  if (gt_ps_adapt_committed(ps)) gt_ps_reorder(ps);
  after_step(ps);
}

/* Gives all workers of all regions the same batch.  If an evaluation is due, it comes first, in
   every region after the same step. */
static void stages_issue(gt_ps *ps) {
  if (any_absent(ps) || !gt_ps_may_issue(ps) || gt_ps_eval_begin(ps)) return;
  const int64_t number = gt_ps_take_number(ps);
  gt_ps_adapt_begin(ps);
  ps->step++;
  ps->step_workers = ps->spec.nworkers;
  for (size_t i = 0; i < ps->spec.nworkers; i++) {
    ps->workers[i].batch = number;
    ps->workers[i].has_batch = true;
  }
  gt_vec params = ps->spec.params, buffers = ps->spec.buffers;
  stages_lend(ps, &params, &buffers);
  for (size_t i = 0; i < ps->spec.nworkers; i++) issue_with(ps, i, params, buffers);
}

static void stages_pump(gt_ps *ps) {
  if (ps->eval.active) return;
  if (!ps->stages.given && gt_ps_outstanding(ps) && all_in(ps, W_PENDING)) stages_give(ps);
  if (ps->stages.committed) stages_end(ps);
  if (!gt_ps_outstanding(ps) && !ps->held && !gt_ps_frozen(ps)) stages_issue(ps);
}

static gt_status stages_check(const gt_ps *ps, size_t from, const gt_frame_header *head) {
  return head->kind == GT_MSG_ADAPT ? gt_ps_adapt_check(ps, from, head)
                                    : gt_ps_agree_check(ps, from, head);
}

static void stages_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body) {
  if (head->kind == GT_MSG_ADAPT)
    gt_ps_adapt_note(ps, from, head);
  else
    gt_ps_agree_message(ps, from, head, body);
}

static const ps_plane plane_stages = {.name = "stages",
                                      .whole = true,
                                      .together = true,
                                      .open = stages_open,
                                      .close = stages_close,
                                      .pump = stages_pump,
                                      .lend = stages_lend,
                                      .judges = stages_judges,
                                      .check = stages_check,
                                      .message = stages_message};

/* ---- async ----------------------------------------------------------------------------------- */

/* Issues chunks of the test set before batches.  A worker joins the evaluation after its batch, and
   leaves it when all chunks are issued. */
static void async_give(gt_ps *ps) {
  if (gt_ps_may_issue(ps)) gt_ps_eval_begin(ps);
  gt_ps_eval_give(ps);
  for (size_t w = 0; w < ps->spec.nworkers; w++) {
    if (ps->workers[w].state != W_WAITING || !gt_ps_may_issue(ps)) continue;
    ps->workers[w].batch = gt_ps_take_number(ps);
    ps->workers[w].has_batch = true;
    issue(ps, w);
  }
}

static void async_pump(gt_ps *ps) {
  while (!ps->held && !gt_ps_frozen(ps)) {
    async_give(ps);
    if (ps->narrivals == 0) return;
    size_t worker = ps->arrivals[0];
    for (size_t i = 1; i < ps->narrivals; i++) ps->arrivals[i - 1] = ps->arrivals[i];
    ps->narrivals--;
    ps_worker *w = &ps->workers[worker];
    if (!w->push.nonfinite) {
      gt_ps_buffers_take(ps, worker);
      apply(ps, gt_vec_of(w->grads, ps->spec.grads.n), w->push.samples);
    }
    consume(ps, worker);
    after_step(ps);
  }
}

static const ps_plane plane_async = {.name = "async", .pump = async_pump, .lend = lend_copy};

const ps_plane *gt_ps_plane_of(const gt_ps_spec *spec) {
  if (spec->nstages > 0) return &plane_stages;
  return spec->local_async ? &plane_async : &plane_sync;
}

/* ---- events ---------------------------------------------------------------------------------- */

void gt_ps_worker_waits(gt_ps *ps, size_t worker) {
  ps->workers[worker].state = W_WAITING;
  ps->workers[worker].since = ps->now;
  ps->workers[worker].held_mark = gt_ps_held_total(ps);
}

void gt_ps_take_gradient(gt_ps *ps, size_t worker, const gt_ps_push *push, float *grads) {
  ps_worker *w = &ps->workers[worker];
  w->state = W_PENDING;
  w->since = ps->now;
  w->held_mark = gt_ps_held_total(ps);
  w->push = *push;
  w->grads = grads;
  ps->totals.compute += push->compute;
  ps->totals.wait += push->wait;
  ps->arrivals[ps->narrivals++] = worker;
  if (!ps->spec.local_async) ps->narrivals = 0;
}
