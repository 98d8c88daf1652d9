/* The local plane as the PS sees it: `sync` takes the mean of one gradient of every worker, `async`
   takes each gradient when it comes, `stages` is `sync` in a region of a pipeline. */
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
  } else
    count_nonfinite(ps, (double)worker);
  give_back(ps, worker);
}

/* What is due after a step, once its batches have been counted. */
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

/* The mean gradient over the samples of all workers; used as it is if workers have formed it, or if
   there is only one. */
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

/* Gives the strategy every worker's gradient as it is, in rank order; there is no mean. */
static gt_vec give_singly(gt_ps *ps) {
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
    gt_vec grads = ps->singly ? give_singly(ps) : reduce(ps);
    gt_ps_buffers_mean(ps);
    ps->totals.update += gt_ps_clock(ps) - from;
    apply(ps, grads, samples);
  }
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].has_batch) consume(ps, w);
  after_step(ps);
}

/* Numbers are given out in rank order, so that a step has the same batches on the same ranks after
   a resume.  If an evaluation is due, all workers evaluate before the step. */
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

const ps_plane gt_ps_plane_sync = {"sync", sync_pump};

/* ---- stages ---------------------------------------------------------------------------------- */

/* Tells of the gradient of the step.  Until all regions have theirs, the workers keep their batch and
   nothing is counted, so that a checkpoint has the state before the step. */
static void stages_give(gt_ps *ps) {
  const gt_ns from = gt_ps_clock(ps);
  gather(ps);
  ps->stages.given = true;
  gt_ps_adapt_tell(ps);
  if (ps->parts.bad == 0) gt_ps_stages_grads(ps);
  gt_ps_agree_tell(ps, ps->parts.bad > 0);
  if (ps->parts.bad == 0) ps->totals.update += gt_ps_clock(ps) - from;
}

static void stages_count(gt_ps *ps) {
  for (size_t i = 0; i < ps->spec.nworkers; i++) {
    const gt_ps_stage *stage = gt_ps_stage_of(ps, i);
    const gt_ps_push *push = &ps->workers[i].push;
    if (stage->counts) ps->totals.samples += push->samples;
    if (stage->judges) count_loss(ps, push);
  }
}

/* The region whose gradient was not finite, or here the first such worker. */
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

/* The step is made in all regions of the pipeline. */
static void stages_end(gt_ps *ps) {
  const gt_ns from = gt_ps_clock(ps), encode = ps->totals.encode;
  ps->totals.steps++;
  ps->totals.batches++;
  if (ps->stages.nonfinite == ps->spec.nregions) {
    gt_ps_stages_buffers(ps);
    stages_count(ps);
    stages_apply(ps);
    ps->totals.update += gt_ps_worked(ps, GT_WORK_UPDATE, 1) - from - (ps->totals.encode - encode);
  } else
    count_nonfinite(ps, nonfinite_region(ps));
  for (size_t w = 0; w < ps->spec.nworkers; w++) give_back(ps, w);
  ps->stages.given = ps->stages.made = false;
  if (gt_ps_adapt_made(ps)) gt_ps_reorder(ps);
  after_step(ps);
}

/* All workers of all regions work on the same batch.  If an evaluation is due, it comes first, in
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
  gt_ps_stages_lend(ps, &params, &buffers);
  for (size_t i = 0; i < ps->spec.nworkers; i++) issue_with(ps, i, params, buffers);
}

static void stages_pump(gt_ps *ps) {
  if (ps->eval.active) return;
  if (!ps->stages.given && gt_ps_outstanding(ps) && all_in(ps, W_PENDING)) stages_give(ps);
  if (ps->stages.made) stages_end(ps);
  if (!gt_ps_outstanding(ps) && !ps->held && !gt_ps_frozen(ps)) stages_issue(ps);
}

const ps_plane gt_ps_plane_stages = {"stages", stages_pump};

/* ---- async ----------------------------------------------------------------------------------- */

/* Chunks of the test set are given out before batches.  A worker joins the evaluation when it has
   finished its batch, and leaves it when all chunks are given out. */
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

const ps_plane gt_ps_plane_async = {"async", async_pump};

/* ---- what events do to it -------------------------------------------------------------------- */

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
