/* Evaluation by all workers.  The model is copied once.  The test set is issued in numbered chunks,
   one per order, to any free worker.  Results are stored by chunk and added in the order of the
   chunks, so that sums do not depend on the worker or the time.  With stages a chunk is a worker's
   part in a pass of all test samples through the pipeline. */
#include <math.h>
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "internal.h"

const gt_ps_score gt_ps_no_score = {NAN, NAN, NAN, NAN, NAN, 0};

size_t gt_ps_eval_chunk(size_t test_samples) {
  const size_t least = 1024, most = 8192, orders = 32;
  size_t chunk = test_samples / orders / least * least;
  if (chunk < least) return least;
  return chunk < most ? chunk : most;
}

/* Chooses the samples of an evaluation of this kind; returns the number of its chunks. */
static size_t choose(gt_ps *ps, gt_ps_order_kind kind) {
  ps_eval *e = &ps->eval;
  const bool tests = kind == GT_PS_EVAL;
  e->kind = kind;
  e->all = tests ? ps->spec.test_samples : ps->spec.validation;
  e->each = tests ? ps->spec.eval_chunk : gt_ps_eval_chunk(e->all);
  e->chunks = (e->all + e->each - 1) / e->each;
  if (ps->plane->whole && e->all > 0) e->chunks = ps->spec.nworkers;
  return e->chunks;
}

void gt_ps_eval_open(gt_ps *ps) {
  gt_ps_spec *spec = &ps->spec;
  if (spec->eval_chunk == 0) spec->eval_chunk = gt_ps_eval_chunk(spec->test_samples);
  const size_t tests = choose(ps, GT_PS_EVAL), held = choose(ps, GT_PS_VALIDATE);
  ps->eval.found = GT_NEW_ARRAY(ps_chunk, tests > held ? tests : held);
  if (!spec->ranking || spec->test_samples == 0) return;
  ps->eval.scores = GT_NEW_ARRAY(float, spec->test_samples);
  ps->eval.scratch = GT_NEW_ARRAY(uint32_t, spec->test_samples);
}

void gt_ps_eval_close(gt_ps *ps) {
  gt_free(ps->eval.found);
  gt_free(ps->eval.scores);
  gt_free(ps->eval.scratch);
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* A worker's first order carries the model. */
static void give(gt_ps *ps, size_t worker) {
  ps_eval *e = &ps->eval;
  ps_worker *w = &ps->workers[worker];
  w->chunk = e->given++;
  const size_t all = e->all, most = ps->plane->whole ? all : e->each;
  const size_t first = ps->plane->whole ? 0 : w->chunk * most, left = all - first;
  gt_ps_order o = {.kind = e->kind,
                   .first = (int64_t)first,
                   .count = (int64_t)(left < most ? left : most),
                   .params = w->has_snapshot ? gt_vec_of(NULL, 0) : e->params,
                   .buffers = w->has_snapshot ? gt_vec_of(NULL, 0) : e->buffers,
                   .common = ps->plane->whole};
  w->has_snapshot = true;
  w->state = W_EVALUATING;
  w->since = ps->now;
  gt_ps_order_worker(ps, worker, &o);
}

static bool all_wait(const gt_ps *ps) {
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].state != W_WAITING) return false;
  return true;
}

/* With stages all workers get their chunks at once: worker w has chunk w. */
void gt_ps_eval_give(gt_ps *ps) {
  if (!ps->eval.active || (ps->plane->whole && !all_wait(ps))) return;
  for (size_t w = 0; w < ps->spec.nworkers && ps->eval.given < ps->eval.chunks; w++)
    if (ps->workers[w].state == W_WAITING) give(ps, w);
}

static void begin(gt_ps *ps, gt_ps_order_kind kind, gt_vec params, gt_vec buffers) {
  ps_eval *e = &ps->eval;
  (void)choose(ps, kind);
  e->active = true;
  e->given = e->back = 0;
  e->steps = ps->totals.steps;
  e->samples = ps->totals.samples;
  e->began = ps->now;
  for (size_t w = 0; w < ps->spec.nworkers; w++) ps->workers[w].has_snapshot = false;
  e->params = params;
  e->buffers = buffers;
  ps->plane->lend(ps, &e->params, &e->buffers);
  gt_ps_eval_give(ps);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* Returns the number of evaluations due by now. */
int64_t gt_ps_evals_due(const gt_ps *ps) {
  const gt_ps_interval *every = &ps->spec.eval_every;
  if (ps->spec.nworkers == 0) return 0;
  if (every->epochs > 0)
    return (int64_t)((double)ps->totals.batches /
                         ((double)gt_order_batches_per_epoch(&ps->spec.order) * every->epochs) +
                     1e-9);
  if (every->steps > 0) return ps->totals.steps / every->steps;
  if (every->samples > 0) return ps->totals.samples / every->samples;
  return 0;
}

bool gt_ps_eval_begin(gt_ps *ps) {
  if (gt_ps_validation_begins(ps)) {
    begin(ps, GT_PS_VALIDATE, ps->validation.params, ps->validation.buffers);
    return true;
  }
  if (!ps->eval.due || ps->eval.active) return false;
  ps->eval.number = gt_ps_evals_due(ps);
  ps->eval.done = NULL;
  ps->eval.due = false;
  begin(ps, GT_PS_EVAL, ps->spec.params, ps->spec.buffers);
  return true;
}

void gt_ps_eval_validate(gt_ps *ps) {
  const bool between = ps->spec.local_async || !gt_ps_outstanding(ps);
  if (ps->validation.due && between) (void)gt_ps_eval_begin(ps);
}

void gt_ps_eval_check(gt_ps *ps) {
  int64_t due = ps->spec.test_samples > 0 ? gt_ps_evals_due(ps) : 0;
  if (ps->phase != GT_PS_TRAINING || due <= ps->totals.evals ||
      (ps->eval.active && ps->eval.kind == GT_PS_EVAL && due == ps->eval.number))
    return;
  ps->eval.due = true;
}

void gt_ps_eval_again(gt_ps *ps) {
  const int64_t every = ps->spec.eval_every.steps;
  if (ps->plane->whole && every > 0 && ps->totals.steps > 0)
    ps->totals.evals = (ps->totals.steps - 1) / every;
}

void gt_ps_eval_skip(gt_ps *ps) {
  ps->eval.due = false;
  ps->totals.evals = gt_ps_evals_due(ps);
}

void gt_ps_evaluate(gt_ps *ps, gt_vec params, gt_vec buffers,
                    void (*done)(void *ctx, const gt_ps_score *score), void *ctx, gt_ns now) {
  gt_ps_at(ps, now);
  ps->eval.done = done;
  ps->eval.ctx = ctx;
  begin(ps, GT_PS_EVAL, params, buffers);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void keep(gt_ps *ps, size_t worker, const gt_ps_push *push) {
  ps_eval *e = &ps->eval;
  const size_t chunk = ps->workers[worker].chunk;
  e->found[chunk] = (ps_chunk){0};
  if (ps->plane->judges && !ps->plane->judges(ps, worker)) return;
  e->found[chunk] =
      (ps_chunk){.loss_sum = push->loss_sum, .correct = push->correct, .samples = push->samples};
  if (!e->scores || e->kind == GT_PS_VALIDATE) return;
  if (!push->scores) gt_bug("an evaluation came back without its numbers");
  memcpy(e->scores + chunk * ps->spec.eval_chunk, push->scores,
         (size_t)push->samples * sizeof *e->scores);
}

static ps_chunk sums_of(const ps_eval *e) {
  ps_chunk all = {0};
  for (size_t c = 0; c < e->chunks; c++) {
    all.loss_sum += e->found[c].loss_sum;
    all.correct += e->found[c].correct;
    all.samples += e->found[c].samples;
  }
  return all;
}

static gt_ps_score score_of(const gt_ps *ps) {
  const ps_eval *e = &ps->eval;
  const ps_chunk all = sums_of(e);
  const size_t each = ps->spec.predictions;
  if (all.samples == 0) return gt_ps_no_score;
  const double loss = all.loss_sum / (double)all.samples;
  const gt_ranks ranks = e->scores ? ps->spec.ranking->judge(e->scores, ps->spec.test_labels,
                                                             ps->spec.test_samples, e->scratch)
                                   : gt_ranks_none();
  return (gt_ps_score){.loss = loss,
                       .accuracy =
                           (double)all.correct / ((double)all.samples * (each ? (double)each : 1)),
                       .auc = ranks.auc,
                       .recall20 = ranks.recall20,
                       .mrr20 = ranks.mrr20,
                       .perplexity = each ? exp(loss) : 0};
}

static void finish(gt_ps *ps) {
  ps_eval *e = &ps->eval;
  e->active = false;
  if (e->kind == GT_PS_VALIDATE) {
    const ps_chunk own = sums_of(e);
    gt_ps_validated(ps, &own);
    return;
  }
  const gt_ps_score score = score_of(ps);
  if (e->done) {
    e->done(e->ctx, &score);
    return;
  }
  ps->totals.evals = e->number;
  ps->last_eval = score;
  e->took = ps->now - e->began;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_EVAL, (double)e->steps, (double)e->samples);
}

void gt_ps_eval_take(gt_ps *ps, size_t worker, const gt_ps_push *push) {
  ps_eval *e = &ps->eval;
  keep(ps, worker, push);
  e->back++;
  /* an evaluation that a stop interrupts is repeated after a resume */
  if (e->back == e->chunks && !gt_ps_frozen(ps)) finish(ps);
}

/* ---- several test sets ----------------------------------------------------------------------- */

/* Adds x to a mean, of which it is the share `part`; 1: x is the first. */
static void add_part(double *mean, double x, double part) {
  *mean = part < 1 ? *mean + (x - *mean) * part : x;
}

gt_ps_score gt_ps_scores_total(const gt_ps_score *scores, const gt_ps_tests *tests,
                               size_t nregions) {
  gt_ps_score all = gt_ps_no_score;
  double samples = 0, ranked = 0;
  for (size_t r = 0; r < nregions; r++) {
    const gt_ps_score *s = &scores[r];
    const double n = (double)tests[r].samples;
    if (!tests[r].scores) continue;
    samples += n;
    add_part(&all.loss, s->loss, n / samples);
    add_part(&all.accuracy, s->accuracy, n / samples);
    add_part(&all.recall20, s->recall20, n / samples);
    add_part(&all.mrr20, s->mrr20, n / samples);
    if (s->perplexity > 0) all.perplexity = exp(all.loss);
    if (isnan(s->auc)) continue;
    ranked += n;
    add_part(&all.auc, s->auc, n / ranked);
  }
  return all;
}
