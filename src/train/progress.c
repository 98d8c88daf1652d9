/* What a server tells: the PS's notes, and lines for its start, progress and stop in the region's
   record; the lead's live line. */
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "ending.h"
#include "stages.h"

/* ---- the PS's notes -------------------------------------------------------------------------- */

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

static gt_status excluded(gt_server *s, double t, int64_t step, int64_t count, double norm) {
  gt_log(GT_LOG_WARN, "step %lld: the region's part of a mean is %s and was excluded (%lld so far)",
         (long long)step, isfinite(norm) ? "an outlier" : "not finite", (long long)count);
  return gt_record_line(s->record, t, "excluded", "step", 'i', step, "count", 'i', count, "norm",
                        'f', norm, NULL);
}

#define NAMES_MAX ((size_t)GT_MAX_REGIONS * 66)

/* Writes the names of the regions that are members, or of those that are not. */
static void put_names(const gt_server *s, bool members, char *names) {
  const gt_job *job = s->run->job;
  size_t used = 0;
  names[0] = '\0';
  for (size_t r = 0; r < job->nregions; r++)
    if (gt_ps_is_member(s->ps, r) == members)
      used += (size_t)snprintf(names + used, NAMES_MAX - used, "%s%s", used ? ", " : "",
                               job->regions[r].name);
}

/* A new epoch: the end of the run, if it has begun, begins again. */
static gt_status members(gt_server *s, double t, int64_t epoch, int64_t step, double dropped) {
  char names[NAMES_MAX], others[NAMES_MAX];
  put_names(s, true, names);
  put_names(s, false, others);
  gt_log(GT_LOG_WARN, "step %lld: epoch %lld begins with the regions %s%s%s", (long long)step,
         (long long)epoch, names, others[0] ? ", without " : "", others);
  s->ending = gt_server_ending_open(s, s->ending);
  if (s->returns)
    gt_endpoint_begun(s->run->roles.ps); /* it can tell others now how the run began */
  s->returns = false;
  return gt_record_line(s->record, t, "members", "epoch", 'i', epoch, "members", 's', names, "step",
                        'i', step, dropped > 0 ? "dropped" : NULL, 'f', dropped, NULL);
}

/* Counts consecutive gradients that were not finite. */
static void count_in_row(gt_server *s, int64_t batches) {
  s->bad_gradients++;
  if (batches - s->bad_gradients != s->good_gradients) s->bad_in_row = 0;
  s->good_gradients = batches - s->bad_gradients;
  s->bad_in_row++;
}

/* Returns the name of an evaluation's figure in addition to the accuracy, if any, or NULL. */
static const char *figure_of(const gt_ps_score *score, double *figure) {
  const bool text = score->perplexity > 0, ranked = !isnan(score->recall20);
  *figure = text ? score->perplexity : ranked ? score->recall20 : score->auc;
  return text ? "perplexity" : ranked ? "recall20" : isnan(score->auc) ? NULL : "auc";
}

/* Logs and records how a checkpoint was judged. */
static gt_status judged(gt_server *s, double t, const gt_ps_view *v) {
  char text[96] = "none is finite so far";
  if (v->best_round == v->judged)
    snprintf(text, sizeof text, "the best so far");
  else if (v->best_round > 0)
    snprintf(text, sizeof text, "the best is round %lld", (long long)v->best_round);
  gt_log_job(GT_LOG_INFO, "checkpoint round %lld: validation loss %.4f, accuracy %.4f; %s%s",
             (long long)v->judged, v->judged_loss, v->judged_accuracy, text,
             v->gave_up && v->phase == GT_PS_TRAINING ? ": training ends" : "");
  gt_server_check_best(s, v);
  return gt_record_line(s->record, t, "validation", "round", 'i', v->judged, "samples", 'i',
                        v->samples, "loss", 'f', v->judged_loss, "accuracy", 'f',
                        v->judged_accuracy, "best", 'i', v->best_round, "ends", 'i',
                        (int64_t)v->gave_up, NULL);
}

void gt_server_note(void *server, gt_ps_note note, double a, double b) {
  gt_server *s = server;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
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
  case GT_NOTE_EXCLUDED:
    status = excluded(s, t, v.steps, ia, b);
    break;
  case GT_NOTE_LOST:
    status = gt_record_line(s->record, t, s->leaves_late ? "late" : "lost", "region", 's',
                            s->run->job->regions[ia].name, "step", 'i', v.steps, NULL);
    break;
  case GT_NOTE_EPOCH:
    status = members(s, t, ia, v.steps, b);
    break;
  case GT_NOTE_JUDGED:
    status = judged(s, t, &v);
    break;
  case GT_NOTE_COMPLETE:
    status = gt_record_line(s->record, t, "complete", "step", 'i', v.steps,
                            b > 0 ? "residual" : NULL, 'f', b, NULL);
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
  const bool several = gt_job_replicas(job) > 1;
  char replica[GT_REPLICA_TEXT] = "";
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (several)
    gt_job_replica_text(job, gt_job_replica_of(job, s->run->roles.region_id), replica,
                        sizeof replica);
  gt_log(GT_LOG_INFO, "step %lld: %s is %s now: %s", (long long)v.steps, what, choice, why);
  if (gt_record_line(s->record, gt_server_elapsed(s), "decision", "step", 'i', v.steps, "what", 's',
                     what, "choice", 's', choice, "reason", 's', why, several ? "copy" : NULL, 's',
                     replica, NULL) != GT_OK)
    gt_panic(GT_ERR_FAULT, "%s", gt_error_text());
}

/* ---- live line, start, progress and stop ----------------------------------------------------- */

static int64_t samples_everywhere(const gt_server *s, int64_t own) {
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    gt_ps_link link;
    if (p == s->run->roles.region_id) continue;
    gt_ps_get_link(s->ps, p, &link);
    own += link.samples;
  }
  return own;
}

static double wan_bytes_sent(const gt_server *s) {
  double sum = 0;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p != s->run->roles.region_id) sum += gt_server_wire_bytes(s, p);
  }
  return sum;
}

/* Traffic of the training only: control messages would hide how rare it is. */
static double data_sent(const gt_server *s) {
  double sum = 0;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    const gt_ledger_row *rows = gt_gateway_ledger(s->gateway, p);
    for (uint32_t k = 0; k < GT_LEDGER_KINDS; k++)
      if (gt_msg_is_traffic(k)) sum += (double)rows[k].wire_bytes;
  }
  return sum;
}

static int64_t in_flight(const gt_server *s) {
  int64_t sum = 0;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    gt_ps_link link;
    if (p == s->run->roles.region_id) continue;
    gt_ps_get_link(s->ps, p, &link);
    sum += (int64_t)link.unacknowledged;
  }
  return sum;
}

static void rates(gt_server *s, gt_ns now, int64_t samples) {
  s->rate_samples = gt_meter_rate(&s->meters.samples, now, (double)samples);
  s->rate_bps = 8 * gt_meter_rate(&s->meters.sent, now, data_sent(s));
  s->rate_in_bps = 8 * gt_meter_rate(&s->meters.received, now, s->data_received);
}

/* Counted as in the summary: the current hold and the drain are included. */
static double waiting_share(const gt_server *s, const gt_ps_view *v, gt_ns now) {
  double workers = fmax(1, (double)gt_plane_ps_workers(s->plane)), all = gt_server_elapsed(s);
  const double held = gt_seconds(v->wan_wait + gt_ps_held_now(s->ps, now)) / workers +
                      gt_seconds(v->drain),
               transfer_s = s->stages ? gt_ps_passes_transfer_s(gt_ps_passes_of(s->ps)) : 0;
  return all > 0 ? fmin(1, (held + transfer_s) / all) : 0;
}

static void recorded(gt_status status) {
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

/* "[0,1234,567]": bytes to each region, in region order. */
#define BYTES_TEXT ((size_t)(64 * 24))
static const char *bytes_to(const gt_server *s, char text[BYTES_TEXT]) {
  size_t used = 0;
  for (size_t p = 0; p < s->run->job->nregions; p++)
    used += (size_t)snprintf(text + used, BYTES_TEXT - used, "%s%.0f", p == 0 ? "[" : ",",
                             p == s->run->roles.region_id ? 0 : gt_server_wire_bytes(s, p));
  snprintf(text + used, BYTES_TEXT - used, "]");
  return text;
}

/* The lead's lines also contain the values of its live line, so that it can be plotted from the
   file. */
static void record(gt_server *s, const gt_ps_view *v, gt_ns now, double epoch, double loss) {
  double epochs = s->run->job->train.until.epochs;
  char bytes[BYTES_TEXT], store[GT_STORE_TEXT];
  gt_store_result asked;
  const bool has_store = s->run->endpoint && gt_server_store(s, &asked);
  if (has_store) gt_store_text(&asked, store);
  recorded(gt_record_line(
      s->record, gt_server_elapsed(s), "progress", "step", 'i', v->steps, "samples", 'i',
      v->samples, "epoch", 'f', epoch, "loss", 'f', loss, "compute_s", 'f', gt_seconds(v->compute),
      "wait_s", 'f', gt_seconds(v->wait), "wan_wait_s", 'f', gt_seconds(v->wan_wait), "update_s",
      'f', gt_seconds(v->update), "encode_s", 'f', gt_seconds(v->encode), "wan_bytes", 'f',
      wan_bytes_sent(s), "wan_bytes_to", 'j', bytes_to(s, bytes), s->live ? "epochs" : NULL, 'f',
      epochs > 0 ? epochs : NAN, "done", 'f', v->done, "accuracy", 'f', v->last_eval.accuracy,
      "auc", 'f', v->last_eval.auc, "recall20", 'f', v->last_eval.recall20, "mrr20", 'f',
      v->last_eval.mrr20, "samples_per_s", 'f', s->rate_samples, "wan_bps", 'f', s->rate_bps,
      "wan_in_bps", 'f', s->rate_in_bps, "under_way", 'i', in_flight(s), "waiting", 'f',
      waiting_share(s, v, now), has_store ? "store" : NULL, 'j', store, NULL));
}

/* The samples that all regions will train on. */
static double samples_planned(const gt_server *s) {
  const gt_job *job = s->run->job;
  const gt_job_interval *until = &job->train.until;
  double sum = 0;
  for (size_t r = 0; r < job->nregions; r++) {
    if (!gt_job_trains(job, r)) continue;
    const double workers = (double)gt_job_workers(job, r),
                 step = (double)job->train.batch * (job->sync.local == GT_LOCAL_SYNC ? workers : 1);
    if (until->epochs > 0)
      sum += until->epochs * (double)s->hellos[r].samples;
    else
      sum += until->steps > 0 ? (double)until->steps * step : (double)until->samples;
  }
  return sum;
}

/* Returns the passes over the data; of a region that only aggregates, those of the others, by their
   heartbeats. */
static double epoch_of(const gt_server *s, gt_ps_view *v) {
  const gt_job *job = s->run->job;
  double held = 0;
  if (s->run->pipe) return (double)v->steps / (double)gt_order_batches_per_epoch(&s->run->order);
  if (gt_job_trains(job, s->run->roles.region_id))
    return (double)v->samples / (double)s->run->npart;
  for (size_t r = 0; r < job->nregions; r++) held += (double)s->hellos[r].samples;
  const double seen = (double)samples_everywhere(s, 0);
  v->done = fmin(1, seen / samples_planned(s));
  v->steps = job->train.until.steps > 0 ? (int64_t)(v->done * (double)job->train.until.steps) : 0;
  return seen / held;
}

void gt_server_learnt(gt_server *s, const gt_ps_push *push) {
  if (!push->nonfinite)
    gt_trend_add(&s->trend, gt_ps_share_done(s->ps), push->loss_sum, push->samples);
}

void gt_server_started(const gt_server *s, int64_t round) {
  const gt_run *run = s->run;
  const gt_build_texts *b = &run->builds[run->roles.region_id];
  char bytes[BYTES_TEXT];
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  recorded(gt_record_line(
      s->record, s->elapsed_s, round > 0 ? "resumed" : "start", "job", 's', run->job->name,
      "region", 's', run->region, "lead", 'b', (int)run->roles.reports, "workers", 'i',
      (int64_t)run->roles.region_size - 1, "clock", 's', s->clock->name, "every_s", 'f',
      run->job->log.every_s, "round", 'i', round, "resumes", 'i', s->resumes, "precision", 's',
      b->precision, "kernels", 's', b->kernels, "blas_core", 's', b->blas_core, "samples", 'i',
      v.samples, "wan_bytes_to", 'j', bytes_to(s, bytes), NULL));
}

static const char *signal_name(int number) {
  return number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGHUP";
}

bool gt_server_is_launchers(int number) {
  return number != 0 && number != SIGUSR1;
}

void gt_server_stop(gt_server *s, int number, gt_ns now) {
  if (s->stop_told) return;
  s->stop_told = true;
  if (gt_server_is_launchers(number))
    gt_log_job(GT_LOG_WARN,
               "%s: the run stops with a checkpoint; if its launcher kills it first, continue from "
               "the newest whole round with --run-dir %s --resume=auto",
               signal_name(number), s->run->run_dir);
  if (gt_server_members_change(s))
    gt_ps_leave(s->ps, GT_STOPPED, now);
  else
    gt_ps_stop(s->ps, GT_STOPPED, now);
}

void gt_server_stopped(const gt_server *s, gt_status code) {
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  recorded(gt_record_line(s->record, gt_server_elapsed(s), "stopped", "code", 'i', (int64_t)code,
                          "reason", 's',
                          code != GT_STOPPED ? "limit"
                          : s->alone_stopped ? "members"
                                             : "signal",
                          "step", 'i', v.steps, "round", 'i', v.whole_round, NULL));
  if (code == GT_ERR_LIMIT && !gt_ps_whole_sound(s->ps))
    gt_log_job(GT_LOG_WARN,
               "round %lld is not sound (non-finite numbers in it, or only non-finite gradients "
               "before it): --resume continues from the newest sound round before it, "
               "--resume-round N from round N",
               (long long)v.whole_round);
}

/* Returns the rate of the slowest measured link; INFINITY: none is measured. */
static double slowest_bps(const gt_server *s) {
  double slowest = INFINITY;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    const double bps = p == s->run->roles.region_id ? 0 : gt_server_link_bps(s, p);
    if (bps > 0 && bps < slowest) slowest = bps;
  }
  return slowest;
}

/* Warns once if the codec is too slow for the links. */
static void judge_codec(gt_server *s, const gt_ps_view *v) {
  const double bps = slowest_bps(s);
  char text[256];
  if (s->codec_slow || isinf(bps) || !gt_ps_coded_slow(s->ps, bps, text, sizeof text)) return;
  s->codec_slow = true;
  gt_log(GT_LOG_WARN, "%s", text);
  recorded(gt_record_line(s->record, gt_server_elapsed(s), "warning", "step", 'i', v->steps, "text",
                          's', text, NULL));
}

void gt_server_progress(gt_server *s, gt_ns now, bool last) {
  if (!last && now < s->progress_at) return;
  s->progress_at = now + GT_SECOND / 5;
  gt_ps_view v;
  gt_ps_get_view(s->ps, now, &v);
  judge_codec(s, &v);
  double epoch = epoch_of(s, &v),
         loss = v.loss_samples > 0 ? v.loss_sum / (double)v.loss_samples : NAN;
  if (s->live && epoch > 0) {
    rates(s, now, samples_everywhere(s, v.samples));
    double epochs = s->run->job->train.until.epochs;
    gt_progress p = {.elapsed_s = gt_server_elapsed(s),
                     .epoch = epoch,
                     .epochs = epochs > 0 ? epochs : NAN,
                     .done = v.done,
                     .loss = loss,
                     .accuracy = v.last_eval.accuracy,
                     .auc = v.last_eval.auc,
                     .recall20 = v.last_eval.recall20,
                     .mrr20 = v.last_eval.mrr20,
                     .samples_per_s = s->rate_samples,
                     .wan_bps = s->rate_bps,
                     .wan_in_bps = s->rate_in_bps,
                     .in_flight = in_flight(s),
                     .waiting = waiting_share(s, &v, now),
                     .step = v.steps};
    gt_live_update(s->live, &p);
  }
  if (last ? now != s->recorded_at : now >= s->record_at) {
    s->recorded_at = now;
    s->record_at =
        now + gt_from_seconds(s->run->job->log.every_s < 1 ? 1 : s->run->job->log.every_s);
    record(s, &v, now, epoch, loss);
    recorded(gt_server_stages_record(s));
    gt_ps_loss_reset(s->ps);
  }
  if (last) recorded(gt_server_stages_record_memory(s));
  if (last && s->live) gt_live_end(s->live);
}
