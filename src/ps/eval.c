/* Evaluation on worker 0, a chunk of the test set an order, so that no order takes long. */
#include "impl.h"

static void next_chunk(gt_ps *ps, bool with_params) {
  ps_eval *e = &ps->eval;
  int64_t left = (int64_t)ps->spec.test_samples - e->next, chunk = (int64_t)ps->spec.eval_chunk;
  gt_ps_order o = {
      .kind = GT_PS_EVAL, .first = e->next, .count = left < chunk ? left : chunk, .params = gt_vec_of(NULL, 0), .buffers = gt_vec_of(NULL, 0)};
  if (with_params) {
    o.params = e->params;
    o.buffers = e->buffers;
  }
  e->next += o.count;
  ps->workers[0].state = W_EVALUATING;
  ps->workers[0].since = ps->now;
  ps->spec.host.order(ps->spec.host.ctx, 0, &o);
}

static void begin(gt_ps *ps) {
  ps_eval *e = &ps->eval;
  e->active = true;
  e->next = e->correct = e->samples = 0;
  e->loss_sum = 0;
  next_chunk(ps, true);
}

/* Evaluations that should have been made by now. */
static int64_t evals_due(const gt_ps *ps) {
  const gt_ps_interval *every = &ps->spec.eval_every;
  if (every->epochs > 0) return (int64_t)((double)ps->totals.batches / ((double)gt_order_batches_per_epoch(&ps->spec.order) * every->epochs) + 1e-9);
  if (every->steps > 0) return ps->totals.steps / every->steps;
  if (every->samples > 0) return ps->totals.samples / every->samples;
  return 0;
}

bool gt_ps_eval_begin(gt_ps *ps) {
  if (!ps->eval.due || ps->eval.active) return false;
  ps->eval.number = evals_due(ps);
  ps->eval.params = ps->spec.params;
  ps->eval.buffers = ps->spec.buffers;
  ps->eval.done = NULL;
  ps->eval.due = false;
  begin(ps);
  return true;
}

void gt_ps_eval_check(gt_ps *ps) {
  int64_t due = ps->spec.test_samples > 0 ? evals_due(ps) : 0;
  if (ps->phase != GT_PS_TRAINING || due <= ps->totals.evals || (ps->eval.active && due == ps->eval.number)) return;
  ps->eval.due = true;
}

void gt_ps_eval_skip(gt_ps *ps) {
  ps->eval.due = false;
  ps->totals.evals = evals_due(ps);
}

void gt_ps_evaluate(gt_ps *ps, gt_vec params, gt_vec buffers, void (*done)(void *ctx, const gt_ps_score *score), void *ctx, gt_ns now) {
  ps->now = now;
  ps->eval.params = params;
  ps->eval.buffers = buffers;
  ps->eval.done = done;
  ps->eval.ctx = ctx;
  begin(ps);
}

void gt_ps_evaluated(gt_ps *ps, const gt_ps_push *push, gt_ns now) {
  ps_eval *e = &ps->eval;
  ps->now = now;
  e->loss_sum += push->loss_sum;
  e->correct += push->correct;
  e->samples += push->samples;
  e->auc = push->auc; /* the last one has it */
  if (e->next < (int64_t)ps->spec.test_samples && !gt_ps_frozen(ps)) {
    next_chunk(ps, false);
    return;
  }
  e->active = false;
  ps->workers[0].state = W_WAITING;
  ps->workers[0].since = now;
  ps->workers[0].held_mark = gt_ps_held_total(ps);
  if (!gt_ps_frozen(ps)) {
    gt_ps_score score = {e->loss_sum / (double)e->samples, (double)e->correct / (double)e->samples, e->auc};
    if (e->done)
      e->done(e->ctx, &score);
    else {
      ps->totals.evals = e->number;
      ps->last_eval = score;
      ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_EVAL, 0, 0);
    }
  }
  gt_ps_pump(ps);
}
