/* Writes the PS's notes as lines of the region's record. */
#include <math.h>

#include "internal.h"

/* worker: 0 and up is the worker whose gradient it was; -1 - p is a message of region p. */
static gt_status nonfinite(gt_server *s, double t, int64_t step, int64_t count, int64_t worker) {
  const gt_job *job = s->run->job;
  if (worker >= 0) {
    gt_log(GT_LOG_WARN,
           "step %lld: the gradient of worker %lld is not finite and was dropped (%lld so far, "
           "limits.nonfinite %d)",
           (long long)step, (long long)worker, (long long)count, job->limits.nonfinite);
    return gt_record_line(s->record, t, "nonfinite", "step", 'i', step, "count", 'i', count,
                          "worker", 'i', worker, NULL);
  }
  const char *from = job->regions[-1 - worker].name,
             *what = s->run->pipe ? "the gradient" : "a message",
             *end = gt_sync_of(job->sync.strategy)->needs_all
                        ? "; the run ends, for no region can go on without it"
                        : "";
  gt_log(GT_LOG_WARN,
         "step %lld: %s of region %s is not finite and was dropped (%lld so far, "
         "limits.nonfinite %d)%s",
         (long long)step, what, from, (long long)count, job->limits.nonfinite, end);
  return gt_record_line(s->record, t, "nonfinite", "step", 'i', step, "count", 'i', count, "region",
                        's', from, NULL);
}

/* Counts consecutive gradients that were not finite. */
static void count_in_row(gt_server *s, int64_t batches) {
  s->bad_gradients++;
  if (batches - s->bad_gradients != s->good_gradients) s->bad_in_row = 0;
  s->good_gradients = batches - s->bad_gradients;
  s->bad_in_row++;
}

/* The figure of an evaluation beside the accuracy, and its name; NULL: there is none. */
static const char *figure_of(const gt_ps_score *score, double *figure) {
  const bool text = score->perplexity > 0, ranked = !isnan(score->recall20);
  *figure = text ? score->perplexity : ranked ? score->recall20 : score->auc;
  return text ? "perplexity" : ranked ? "recall20" : isnan(score->auc) ? NULL : "auc";
}

void gt_server_note(void *server, gt_ps_note note, double a, double b) {
  gt_server *s = server;
  gt_ps_view v;
  gt_ps_look(s->ps, gt_server_now(s), &v);
  double t = gt_server_elapsed(s);
  int64_t ia = (int64_t)a, ib = (int64_t)b;
  char text[128];
  double figure;
  const char *merit = figure_of(&v.last_eval, &figure);
  gt_status status = GT_OK;
  switch (note) {
  case GT_NOTE_EVAL:
    status =
        gt_record_line(s->record, t, "eval", "step", 'i', ia, "samples", 'i', ib, "seconds", 'f',
                       gt_seconds(v.last_eval_took), "loss", 'f', v.last_eval.loss, "accuracy", 'f',
                       v.last_eval.accuracy, merit, 'f', figure,
                       isnan(v.last_eval.mrr20) ? NULL : "mrr20", 'f', v.last_eval.mrr20, NULL);
    break;
  case GT_NOTE_NONFINITE:
    if (ib >= 0) count_in_row(s, v.batches);
    status = nonfinite(s, t, v.steps, ia, ib);
    break;
  case GT_NOTE_DONE:
    status =
        gt_record_line(s->record, t, "done", "step", 'i', v.steps, "samples", 'i', v.samples, NULL);
    break;
  case GT_NOTE_PEER_DONE:
    status = gt_record_line(s->record, t, "peer_done", "region", 's', s->run->job->regions[ia].name,
                            "steps", 'i', ib, NULL);
    break;
  case GT_NOTE_ROUND:
    status = gt_record_line(s->record, t, "checkpoint", "round", 'i', ia, "step", 'i', v.steps,
                            "stop", 'i', ib, NULL);
    break;
  case GT_NOTE_COMPLETE:
    status = gt_record_line(s->record, t, "complete", "step", 'i', v.steps, NULL);
    if (status == GT_OK && gt_trend_collapsed(&s->trend, s->run->data.classes, text, sizeof text))
      status =
          gt_record_line(s->record, t, "warning", "step", 'i', v.steps, "text", 's', text, NULL);
    break;
  }
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

void gt_server_decided(void *server, const char *what, const char *choice, const char *why) {
  gt_server *s = server;
  const gt_job *job = s->run->job;
  const bool several = gt_job_copies(job) > 1;
  char copy[GT_COPY_TEXT] = "";
  gt_ps_view v;
  gt_ps_look(s->ps, gt_server_now(s), &v);
  if (several)
    gt_job_copy_text(job, gt_job_copy_of(job, s->run->roles.region_id), copy, sizeof copy);
  gt_log(GT_LOG_INFO, "step %lld: %s is %s now: %s", (long long)v.steps, what, choice, why);
  if (gt_record_line(s->record, gt_server_elapsed(s), "decision", "step", 'i', v.steps, "what", 's',
                     what, "choice", 's', choice, "reason", 's', why, several ? "copy" : NULL, 's',
                     copy, NULL) != GT_OK)
    gt_panic(GT_ERR_FAULT, "%s", gt_error_text());
}
