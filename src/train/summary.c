/* The lead's report of a run: summary.json and the table, with cost and prediction. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ending.h"
#include "geotrain/plan_job.h"

static size_t region_named(const gt_job *job, const char *name) {
  size_t r = 0;
  while (r + 1 < job->nregions && strcmp(job->regions[r].name, name) != 0) r++;
  return r;
}

/* All traffic by sender and receiver, including that of lost work; *strategy receives the
   strategy's part.  The caller frees the result. */
static double *bytes_of(const gt_job *job, const gt_gathered *g, double *strategy) {
  double *bytes = GT_NEW_ARRAY(double, job->nregions * job->nregions);
  *strategy = 0;
  for (size_t i = 0; i < g->nlinks; i++) {
    const gt_link_result *l = &g->links[i];
    bytes[region_named(job, l->from) * job->nregions + region_named(job, l->to)] +=
        (double)(l->bytes_sent + l->bytes_other + l->bytes_lost);
    *strategy += (double)l->bytes_sent;
  }
  return bytes;
}

/* Seconds of earlier starts that are billed but not on the run's clock: lost work, and the time
   until each first step. */
static double lost_of(const gt_server *server, const gt_summary *s) {
  double lost = 0;
  for (size_t r = 0; r < s->nregions; r++) lost = fmax(lost, s->regions[r].lost_s);
  return lost + (double)server->past.starts * server->run->job->plan.start_s;
}

/* Writes the file and prints the table, with cost and prediction. */
static gt_status publish(const gt_server *s, const gt_gathered *g, const gt_summary *summary,
                         double elapsed) {
  gt_summary full = *summary, *sum = &full;
  const gt_run *run = s->run;
  gt_cost_result cost = {.usd = NAN};
  gt_plan_result plan;
  double wan_bytes, *bytes = bytes_of(run->job, g, &wan_bytes);
  if (run->prices.known) {
    gt_plan_job_cost(&cost, run->job, &run->prices, elapsed + lost_of(s, sum), bytes);
    sum->cost = &cost;
  }
  gt_figures measured = gt_figures_of(elapsed, sum->regions, sum->nregions, (double)sum->samples,
                                      wan_bytes, cost.usd);
  if (gt_train_planned(&plan, run->job, &measured)) sum->plan = &plan;
  gt_status status = gt_summary_write(run->run_dir, sum);
  if (status == GT_OK) gt_summary_print(stdout, sum);
  fflush(stdout);
  gt_plan_job_cost_close(&cost);
  gt_free(bytes);
  return status;
}

gt_status gt_server_summarise(gt_server *s, const gt_gathered *g) {
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
  s->clock->summarise(s, &sum);
  for (size_t r = 0; r < sum.nregions; r++) sum.samples += g->regions[r].samples;
  sum.samples_per_s = (double)sum.samples / elapsed;
  if (gt_graph_of_text(run->model))
    sum.tokens_per_s = sum.samples_per_s * (double)gt_graph_predictions(run->model);
  snprintf(sum.params_sha256, sizeof sum.params_sha256, "%s", g->params_sha256);
  gt_live_end(s->live);
  const gt_status status = publish(s, g, &sum, elapsed);
  gt_free(isas);
  gt_free(adapted);
  return status;
}
