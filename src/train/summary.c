/* A region's result at the end of a run, and the lead's report: summary.json and the table, with
   cost and prediction. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/plan_job.h"
#include "geotrain/wan_store.h"
#include "ending.h"
#include "stages.h"

/* ---- the plan's prediction, as stored in a run's job ----------------------------------------- */

static double above_0(double value) {
  return value > 0 ? value : NAN;
}

static double from_0(double value) {
  return value >= 0 ? value : NAN;
}

/* Returns the strategy of the plan's prediction.  A plan covers only regions that exchange data. */
static const char *predicted_strategy(const gt_job *job) {
  const gt_strategy strategy = job->plan.predicted.strategy;
  return gt_strategy_has(strategy, GT_SENDS) ? gt_strategy_names[strategy] : NULL;
}

/* Compares the job's prediction with the measured figures; false: the job has none. */
static bool planned(gt_plan_result *out, const gt_job *job, const gt_figures *measured) {
  *out = (gt_plan_result){
      .strategy = predicted_strategy(job),
      .made = job->plan.predicted.made,
      .predicted = {above_0(job->plan.predicted.wall_s), above_0(job->plan.predicted.step_s),
                    above_0(job->plan.predicted.samples_per_s),
                    from_0(job->plan.predicted.wan_bytes), from_0(job->plan.predicted.waiting),
                    from_0(job->plan.predicted.cost)},
      .measured = *measured,
      .low_s = above_0(job->plan.predicted.wall_low_s),
      .high_s = above_0(job->plan.predicted.wall_high_s)};
  const gt_figures *p = &out->predicted;
  return out->strategy || isfinite(p->wall_s) || isfinite(p->step_s) ||
         isfinite(p->samples_per_s) || isfinite(p->wan_bytes) || isfinite(p->waiting) ||
         isfinite(p->cost) || isfinite(out->low_s) || isfinite(out->high_s);
}

/* ---- a region's figures and those of its links ----------------------------------------------- */

/* Returns the requests that the model of a store has had. */
static gt_store_result modelled(const gt_server *s) {
  const size_t self = s->run->roles.region_id;
  const gt_link_objects read = gt_gateway_read(s->gateway);
  gt_link_objects written = {0};
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    const gt_ledger_row *rows = gt_gateway_ledger(s->gateway, p);
    for (uint32_t k = 0; k < GT_LEDGER_KINDS && p != self; k++) {
      *(gt_msg_is_data(k) ? &written.data : &written.control) += rows[k].messages;
      if (gt_msg_is_data(k)) written.data_bytes += rows[k].wire_bytes;
    }
  }
  return gt_plan_store_use(s->run->links, self, &written, &read, gt_gateway_function(s->gateway),
                           gt_server_elapsed(s));
}

static gt_store_result store_of(const gt_server *s) {
  gt_store_counts n[2];
  if (!s->run->endpoint) return modelled(s);
  gt_store_count(s->run->endpoint, n);
  return (gt_store_result){.writes = n[0].writes,
                           .reads = n[0].reads,
                           .failed_reads = n[0].failed_reads,
                           .deletes = n[0].deletes,
                           .bytes_in = n[0].bytes_in,
                           .bytes_out = n[0].bytes_out,
                           .bytes_shared = n[0].bytes_shared,
                           .gb_s = (n[0].byte_s + n[1].byte_s) * 1e-9,
                           .control_writes = n[1].writes,
                           .control_reads = n[1].reads + n[1].failed_reads};
}

bool gt_server_store(const gt_server *s, gt_store_result *of) {
  const bool has = s->run->job->wan.transport == GT_WAN_STORE && s->run->job->nregions > 1;
  if (has) *of = store_of(s);
  return has;
}

void gt_server_result(const gt_server *s, const gt_ps_score *own, gt_region_result *r) {
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  const size_t workers = gt_plane_ps_workers(s->plane);
  const double share = workers > 0 ? (double)workers : 1, drain = gt_seconds(v.drain);
  *r = (gt_region_result){.workers = (int)workers,
                          .steps = v.steps,
                          .samples = v.samples,
                          .best_steps = s->best_steps,
                          .best_samples = s->best_samples,
                          .compute_s = gt_seconds(v.compute) / share,
                          .encode_s = gt_seconds(v.encode),
                          .wan_wait_s = gt_seconds(v.wan_wait) / share + drain,
                          .local_wait_s = gt_seconds(gt_ps_local_wait(&v)) / share,
                          .idle_s = workers > 0 ? gt_seconds(v.idle) : 0,
                          .wall_s = gt_server_elapsed(s),
                          .update_s = gt_seconds(v.update),
                          .emulation_cpu_s = gt_gateway_emulation_s(s->gateway),
                          .ps_cpu_s = s->clock->cpu_s(),
                          .test_accuracy = own->accuracy,
                          .test_loss = own->loss,
                          .test_auc = own->auc,
                          .test_recall20 = own->recall20,
                          .test_mrr20 = own->mrr20,
                          .test_perplexity = own->perplexity,
                          .train_loss =
                              v.loss_samples > 0 ? v.loss_sum / (double)v.loss_samples : NAN,
                          .nonfinite = v.nonfinite,
                          .excluded = v.excluded,
                          .missed = v.missed,
                          .residual = gt_ps_residual(s->ps),
                          .earlier_starts = s->past.starts,
                          .lost_s = s->lost_s};
  snprintf(r->name, sizeof r->name, "%s", s->run->region);
  for (size_t p = 0; p < s->run->job->nregions; p++)
    if (p != s->run->roles.region_id) r->wire_s += gt_gateway_wire_s(s->gateway, p);
  gt_trend_collapsed(&s->trend, s->run->data.classes, r->warning, sizeof r->warning);
  gt_time_split_parts parts;
  gt_time_split_batch(&s->split, &v, gt_ps_made_of(s->ps), &parts);
  r->split_train_s = parts.train;
  r->split_upload_s = parts.upload;
  r->split_aggregate_s = parts.aggregate;
  r->split_download_s = parts.download;
  /* the model of a store is in the checkpoint */
  if (gt_server_store(s, &r->store) && s->run->endpoint) gt_store_add(&r->store, &s->past.store);
  gt_ps_coded_result(s->ps, r);
  gt_ps_passes_result(s->ps, r);
}

void gt_server_lost_result(const gt_server *s, size_t region, gt_region_result *r) {
  const double none = NAN;
  gt_ps_link link;
  gt_ps_get_link(s->ps, region, &link);
  *r = (gt_region_result){.workers = (int)gt_job_workers(s->run->job, region),
                          .samples = link.samples,
                          .test_accuracy = none,
                          .test_loss = none,
                          .test_auc = none,
                          .test_recall20 = none,
                          .test_mrr20 = none,
                          .train_loss = none};
  snprintf(r->name, sizeof r->name, "%s", s->run->job->regions[region].name);
  snprintf(r->warning, sizeof r->warning, "%s",
           gt_setup_is_late(s->run, region) && link.samples == 0
               ? "the run has begun and ended without it"
               : "lost; its figures at the end are not known");
}

/* Copies the rows in use, with the names of their kinds. */
static void copy_ledger(gt_link_result *l, const gt_ledger_row *rows) {
  size_t n = 0;
  for (unsigned k = 0; k < GT_LEDGER_KINDS && n < GT_RESULT_KINDS; k++) {
    if (rows[k].messages == 0 || !gt_record_kind_name(k)) continue;
    gt_kind_result *kind = &l->kinds[n++];
    *kind = (gt_kind_result){
        .messages = rows[k].messages, .payload = rows[k].payload_bytes, .wire = rows[k].wire_bytes};
    snprintf(kind->kind, sizeof kind->kind, "%s", gt_record_kind_name(k));
  }
}

/* Acknowledgements return in the opposite direction.  The sending time of frames is known only for
   modelled links. */
double gt_server_link_bps(const gt_server *s, size_t peer) {
  const double wire_s = gt_gateway_wire_s(s->gateway, peer);
  if (gt_gateway_modelled(s->gateway) && wire_s > 0)
    return 8 * gt_server_wire_bytes(s, peer) / wire_s;
  gt_ps_link seen;
  gt_ps_get_link(s->ps, peer, &seen);
  return seen.bandwidth_bps;
}

void gt_server_link_results(const gt_server *s, gt_link_result *links) {
  for (size_t p = 0, i = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    gt_link_result *l = &links[i++];
    gt_ps_link seen;
    gt_ps_get_link(s->ps, p, &seen);
    *l = (gt_link_result){.bandwidth_bps_measured = gt_server_link_bps(s, p),
                          .latency_s_measured = seen.latency_s,
                          .staleness_s = seen.staleness_s,
                          .staleness_s_longest = seen.staleness_s_longest};
    if (p < s->past.n) l->bytes_lost = (int64_t)s->past.bytes[p];
    l->bytes_relayed = gt_server_relayed(s, p);
    snprintf(l->from, sizeof l->from, "%s", s->run->region);
    snprintf(l->to, sizeof l->to, "%s", s->run->job->regions[p].name);
    const gt_ledger_row *rows = gt_gateway_ledger(s->gateway, p);
    copy_ledger(l, rows);
    for (uint32_t k = 0; k < GT_LEDGER_KINDS; k++)
      if (gt_msg_is_traffic(k)) {
        l->bytes_sent += rows[k].wire_bytes;
        l->messages += rows[k].messages;
        l->payload_bytes += rows[k].payload_bytes;
      } else
        l->bytes_other += rows[k].wire_bytes;
  }
}

/* ---- the report ------------------------------------------------------------------------------ */

static size_t region_named(const gt_job *job, const char *name) {
  size_t r = 0;
  while (r + 1 < job->nregions && strcmp(job->regions[r].name, name) != 0) r++;
  return r;
}

/* Returns all traffic by sender and receiver, including that of lost work; *strategy receives the
   strategy's part.  The caller frees the result. */
static double *bytes_of(const gt_job *job, const gt_gathered *g, double *strategy) {
  double *bytes = GT_NEW_ARRAY(double, job->nregions * job->nregions);
  *strategy = 0;
  for (size_t i = 0; i < g->nlinks; i++) {
    const gt_link_result *l = &g->links[i];
    bytes[region_named(job, l->from) * job->nregions + region_named(job, l->to)] +=
        (double)(l->bytes_sent + l->bytes_other + l->bytes_lost + l->bytes_relayed);
    *strategy += (double)l->bytes_sent;
  }
  return bytes;
}

/* Returns the seconds of earlier starts that are billed but not on the run's clock: lost work, and
   the time until each first step. */
static double lost_of(const gt_server *server, const gt_summary *s) {
  double lost = 0;
  for (size_t r = 0; r < s->nregions; r++) lost = fmax(lost, s->regions[r].lost_s);
  return lost + (double)server->past.starts * server->run->job->plan.start_s;
}

/* Writes the file and prints the table, with cost and prediction. */
static gt_status publish(const gt_server *s, const gt_gathered *g, const gt_summary *summary,
                         double elapsed, char **text) {
  gt_summary full = *summary, *sum = &full;
  const gt_run *run = s->run;
  gt_cost_result cost = {.usd = NAN};
  gt_plan_result plan;
  double wan_bytes, *bytes = bytes_of(run->job, g, &wan_bytes);
  if (run->prices.known) {
    gt_plan_job_cost(&cost, run->job, &run->prices, elapsed + lost_of(s, sum), bytes, sum->regions);
    gt_plan_job_terms(&cost, run->job, run->links, &run->prices, elapsed, sum->regions);
    sum->cost = &cost;
  }
  gt_figures measured = gt_figures_of(elapsed, sum->regions, sum->nregions, (double)sum->samples,
                                      wan_bytes, cost.usd);
  if (planned(&plan, run->job, &measured)) sum->plan = &plan;
  gt_status status = gt_summary_text(text, sum);
  if (status == GT_OK) status = gt_summary_write_text(run->run_dir, *text);
  if (status == GT_OK) gt_summary_print(stdout, sum);
  fflush(stdout);
  gt_plan_job_cost_close(&cost);
  gt_free(bytes);
  return status;
}

/* Writes what the validation has found; NULL: there is none. */
static const char *describe_validation(const gt_server *s, gt_ps_view *v, char text[160]) {
  const gt_job *job = s->run->job;
  gt_ps_get_view(s->ps, gt_server_now(s), v);
  if (job->data.validation <= 0 || v->best_round == 0) return NULL;
  snprintf(text, 160, "loss %.4f at checkpoint %lld of %lld, %s%s", v->best_loss,
           (long long)v->best_round, (long long)v->judged,
           job->train.keep == GT_KEEP_BEST ? "whose model is the final one"
                                           : "but the last model is the final one",
           v->gave_up ? "; training ended early" : "");
  return text;
}

gt_status gt_server_summarise(gt_server *s, const gt_gathered *g, char **text) {
  const gt_run *run = s->run;
  const gt_build_texts *build = &run->builds[run->job->nregions];
  double elapsed = gt_server_elapsed(s);
  size_t P = gt_graph_arrays(run->model)->params.n;
  const char **isas = GT_NEW_ARRAY(const char *, run->job->nregions);
  for (size_t r = 0; r < run->job->nregions; r++) isas[r] = run->isas[r];
  gt_summary sum = {.job = run->job->name,
                    .strategy = gt_strategy_names[run->job->sync.strategy],
                    .clock = s->clock->name,
                    .test_accuracy = g->score.accuracy,
                    .test_loss = g->score.loss,
                    .test_auc = g->score.auc,
                    .test_recall20 = g->score.recall20,
                    .test_mrr20 = g->score.mrr20,
                    .test_perplexity = g->score.perplexity,
                    .regions = g->regions,
                    .nregions = run->job->nregions,
                    .isas = isas,
                    .builds = run->builds,
                    .choices = run->choices_text ? (const char *const *)run->all_choices : NULL,
                    .choices_how = run->choices_how,
                    .links = g->links,
                    .nlinks = g->nlinks,
                    .version = GT_VERSION,
                    .kernels = build->kernels,
                    .precision = build->precision,
                    .blas_core = build->blas_core,
                    .model = gt_model_names[run->job->model.name],
                    .parameters = (int64_t)P,
                    .resumes = s->resumes};
  char *adapted = gt_adapted_text(g->regions, run->job->nregions);
  sum.adapted = adapted;
  gt_ps_view v;
  char validation[160];
  sum.validation = describe_validation(s, &v, validation);
  if (sum.validation) sum.validation_loss = v.best_loss;
  s->clock->summarise(s, &sum);
  for (size_t r = 0; r < sum.nregions; r++) sum.samples += g->regions[r].samples;
  sum.samples_per_s = (double)sum.samples / elapsed;
  if (gt_graph_of_text(run->model))
    sum.tokens_per_s = sum.samples_per_s * (double)gt_graph_predictions(run->model);
  snprintf(sum.params_sha256, sizeof sum.params_sha256, "%s", g->params_sha256);
  gt_live_end(s->live);
  const gt_status status = publish(s, g, &sum, elapsed, text);
  gt_free(isas);
  gt_free(adapted);
  return status;
}
