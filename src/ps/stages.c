/* The stages of a pipeline that a region holds: which worker is of which stage, and how gradients
   and buffers of all become those of the region.  Sums are in the order of stages and workers, so
   they do not depend on who pushed first. */
#include "internal.h"

/* ---- ranges ---------------------------------------------------------------------------------- */

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

/* The run of floats that begins at `at`, with the stages that have them: up to where a range of any
   stage begins or ends, at most `end`. */
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

/* The runs of all stages' ranges in [0, floats). */
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
        if (run.stage != k) continue; /* it is there already */
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
  gt_vec_zero(spec->grads); /* that of parameters which no stage has */
}

static void open_buffers(gt_ps *ps) {
  ps_stages *s = &ps->stages;
  s->buffers = open_runs(&(kind){&ps->spec, true}, ps->spec.buffers.n, &s->nbuffers);
  for (size_t i = 0; i < s->nbuffers; i++)
    if (s->buffers[i].later != PS_NONE)
      gt_bug("stage %zu has buffer %zu of an earlier one", s->buffers[i].later,
             s->buffers[i].offset);
}

/* ---- workers --------------------------------------------------------------------------------- */

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

void gt_ps_stages_open(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  ps->stages.micros = spec->micros;
  if (spec->nstages == 0) return;
  if (spec->nworkers == 0 || spec->local_async || spec->ranking || spec->until.steps <= 0 ||
      !in_steps(&spec->until) || !in_steps(&spec->eval_every) || !in_steps(&spec->checkpoint_every))
    gt_bug("stages need workers, local plane sync, intervals in steps and no ranking");
  open_workers(ps);
  open_params(ps);
  open_buffers(ps);
}

void gt_ps_stages_close(gt_ps *ps) {
  gt_free(ps->stages.params);
  gt_free(ps->stages.buffers);
  gt_free(ps->stages.of);
  gt_free(ps->stages.sums);
}

const gt_ps_stage *gt_ps_stage_of(const gt_ps *ps, size_t worker) {
  return ps->spec.nstages ? &ps->spec.stages[ps->stages.of[worker]] : NULL;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* A worker takes them with its first pass, which may come long after the order. */
void gt_ps_stages_lend(gt_ps *ps, gt_vec *params, gt_vec *buffers) {
  if (ps->sync->ops->between_steps) return;
  gt_vec_copy(ps->spec.snapshot, *params);
  gt_vec_copy(ps->spec.snapshot_buffers, *buffers);
  *params = ps->spec.snapshot;
  *buffers = ps->spec.snapshot_buffers;
}

typedef const float *(*pushed_fn)(const ps_worker *w);

static const float *pushed_grads(const ps_worker *w) {
  return w->grads;
}

static const float *pushed_buffers(const ps_worker *w) {
  return w->push.buffers;
}

/* What the stage's workers pushed for the floats from `offset` on: into ps->parts, in their order. */
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

/* y = the mean of the parts; that of a single worker is copied, because a mean of one could
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

/* Of floats that two stages have with as many workers: worker i of the one has the samples of worker
   i of the other, and their gradients are added before the mean, as by a worker that runs both
   stages.  So the bits do not depend on where the model is cut. */
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

/* Of floats that two stages have with other numbers of workers. */
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

void gt_ps_stages_grads(gt_ps *ps) {
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
  if (ps->stages.micros > 1) gt_vec_scale(ps->spec.grads, 1.0F / (float)ps->stages.micros);
}

void gt_ps_stages_buffers(gt_ps *ps) {
  for (size_t i = 0; i < ps->stages.nbuffers; i++) {
    const ps_run *run = &ps->stages.buffers[i];
    collect(ps, run->stage, run->offset, pushed_buffers);
    set_mean(ps, gt_vec_range(ps->spec.buffers, run->offset, run->count));
    gt_ps_buffers_again(ps, run->offset, run->count);
  }
}
