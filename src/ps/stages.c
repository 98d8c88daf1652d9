/* The stages of a pipeline that a region holds: which worker is of which stage, and how gradients
   and buffers of all become those of the region.  Sums are in the order of stages and workers, so
   they do not depend on who pushed first. */
#include "internal.h"

/* ---- ranges ---------------------------------------------------------------------------------- */

static size_t end_of(const ps_run *run) {
  return run->offset + run->count;
}

/* An earlier stage has the float at `at`.  *until: up to where at least the answer is the same, at
   most `end`. */
static bool had_at(const ps_run *runs, size_t n, size_t at, size_t end, size_t *until) {
  *until = end;
  for (size_t i = 0; i < n; i++) {
    const ps_run *run = &runs[i];
    if (run->offset <= at && at < end_of(run)) {
      *until = end_of(run) < end ? end_of(run) : end;
      return true;
    }
    if (run->offset > at && run->offset < *until) *until = run->offset;
  }
  return false;
}

typedef struct {
  ps_run *runs;
  size_t n, capacity;
} run_list;

/* Cuts a range of a stage where earlier stages' runs begin and end.  A stage writes or adds every
   float once. */
static void add_range(run_list *list, size_t stage, const gt_ps_range *range, size_t floats) {
  if (range->offset > floats || range->count > floats - range->offset)
    gt_bug("stage %zu has floats %zu to %zu of %zu", stage, range->offset,
           range->offset + range->count, floats);
  const size_t end = range->offset + range->count;
  for (size_t i = 0; i < list->n; i++)
    if (list->runs[i].stage == stage && list->runs[i].offset < end &&
        end_of(&list->runs[i]) > range->offset)
      gt_bug("stage %zu has floats of its range from %zu on twice", stage, range->offset);
  for (size_t at = range->offset, until; at < end; at = until) {
    const bool added = had_at(list->runs, list->n, at, end, &until);
    GT_GROW(list->runs, list->n, list->capacity, 16);
    list->runs[list->n++] = (ps_run){stage, at, until - at, added};
  }
}

static void open_params(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  run_list list = {0};
  size_t most = 0;
  for (size_t k = 0; k < spec->nstages; k++)
    for (size_t i = 0; i < spec->stages[k].nparams; i++)
      add_range(&list, k, &spec->stages[k].params[i], spec->params.n);
  for (size_t i = 0; i < list.n; i++)
    if (list.runs[i].added && spec->stages[list.runs[i].stage].workers > 1 &&
        list.runs[i].count > most)
      most = list.runs[i].count;
  ps->stages.params = list.runs;
  ps->stages.nparams = list.n;
  ps->stages.sum = spec->params.data && most ? GT_NEW_ARRAY(float, most) : NULL;
  gt_vec_zero(spec->grads); /* that of parameters which no stage has */
}

static void open_buffers(gt_ps *ps) {
  const gt_ps_spec *spec = &ps->spec;
  run_list list = {0};
  for (size_t k = 0; k < spec->nstages; k++)
    for (size_t i = 0; i < spec->stages[k].nbuffers; i++)
      add_range(&list, k, &spec->stages[k].buffers[i], spec->buffers.n);
  for (size_t i = 0; i < list.n; i++)
    if (list.runs[i].added)
      gt_bug("stage %zu has buffer %zu of an earlier one", list.runs[i].stage, list.runs[i].offset);
  ps->stages.buffers = list.runs;
  ps->stages.nbuffers = list.n;
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
  if ((spec->nstages > 0) != (spec->strategy->on_spoilt != NULL))
    gt_bug("%zu stages, and strategy %s", spec->nstages, spec->strategy->name);
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
  gt_free(ps->stages.sum);
}

const gt_ps_stage *gt_ps_stage_of(const gt_ps *ps, size_t worker) {
  return ps->spec.nstages ? &ps->spec.stages[ps->stages.of[worker]] : NULL;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* A worker takes them with its first pass, which may come long after the order. */
void gt_ps_stages_lend(gt_ps *ps, gt_vec *params, gt_vec *buffers) {
  if (!ps->between || ps->between->ops->between_steps) return;
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

/* What the stage's workers pushed for the run: into ps->parts, in their order. */
static void collect(gt_ps *ps, const ps_run *run, pushed_fn pushed) {
  const gt_ps_stage *stage = &ps->spec.stages[run->stage];
  int64_t samples = 0;
  for (size_t i = 0; i < stage->workers; i++) {
    const ps_worker *w = &ps->workers[stage->first_worker + i];
    const float *all = pushed(w);
    ps->parts.grads[i] = all ? all + run->offset : NULL;
    ps->parts.samples[i] = w->push.samples;
    samples += w->push.samples;
  }
  ps->parts.n = stage->workers;
  if (ps->parts.n > 1 && samples <= 0)
    gt_bug("the %zu workers of stage %zu had no samples", ps->parts.n, run->stage);
}

static gt_vec only_part(const gt_ps *ps, size_t n) {
  return gt_vec_of((float *)(uintptr_t)ps->parts.grads[0], n);
}

/* y = the mean of the parts; that of a single worker is copied, because a mean of one could
   round. */
static void set_mean(const gt_ps *ps, gt_vec y) {
  if (ps->parts.n == 1)
    gt_vec_copy(y, only_part(ps, y.n));
  else
    gt_vec_mean(y, ps->parts.grads, ps->parts.samples, ps->parts.n);
}

/* y += the mean of the parts. */
static void add_mean(const gt_ps *ps, gt_vec y) {
  if (ps->parts.n == 1) {
    gt_vec_axpy(y, 1, only_part(ps, y.n));
    return;
  }
  const gt_vec sum = gt_vec_of(ps->stages.sum, y.n);
  gt_vec_mean(sum, ps->parts.grads, ps->parts.samples, ps->parts.n);
  gt_vec_axpy(y, 1, sum);
}

void gt_ps_stages_grads(gt_ps *ps) {
  for (size_t i = 0; i < ps->stages.nparams; i++) {
    const ps_run *run = &ps->stages.params[i];
    const gt_vec y = gt_vec_range(ps->spec.grads, run->offset, run->count);
    collect(ps, run, pushed_grads);
    if (run->added)
      add_mean(ps, y);
    else
      set_mean(ps, y);
  }
  if (ps->stages.micros > 1) gt_vec_scale(ps->spec.grads, 1.0F / (float)ps->stages.micros);
}

void gt_ps_stages_buffers(gt_ps *ps) {
  for (size_t i = 0; i < ps->stages.nbuffers; i++) {
    const ps_run *run = &ps->stages.buffers[i];
    collect(ps, run, pushed_buffers);
    set_mean(ps, gt_vec_range(ps->spec.buffers, run->offset, run->count));
    gt_ps_buffers_again(ps, run->offset, run->count);
  }
}

void gt_ps_stages_made(void *ctx, size_t spoilt) {
  gt_ps *ps = ctx;
  ps->stages.made = true;
  ps->stages.spoilt = spoilt < ps->mates.n ? ps->mates.regions[spoilt] : ps->spec.nregions;
}
