/* The end of a run, for gt_ending: a region's scores, model and result; on the lead their mean and the summary. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "impl.h"

struct gt_final {
  gt_server *server;
  gt_ending ending;
  gt_ps_score own, mean_score;
  bool asked; /* another region scores the mean, as this one has no test samples */
  char *report;
  gt_model_mean models; /* the lead's: of all regions, as they arrive */
  gt_vec mean;          /* the lead's, once formed: parameters, then buffers; owned by models */
  float *sent;          /* another region's: its model on its way */
  gt_region_result *regions;
  gt_link_result *links;
  size_t nlinks;
};

void gt_final_close(gt_final *f) {
  if (!f) return;
  gt_model_mean_close(&f->models);
  gt_free(f->regions);
  gt_free(f->links);
  gt_free(f->report);
  gt_free(f->sent);
  gt_free(f);
}

/* ---- what the lead gets ---------------------------------------------------------------------------------------------------------- */

static void send_report(void *ctx, uint64_t cookie) {
  gt_final *f = ctx;
  gt_server *s = f->server;
  gt_region_result own;
  gt_link_result *links = GT_NEW_ARRAY(gt_link_result, s->run->job->nregions);
  gt_server_result(f->server, &f->own, &own);
  gt_server_link_results(f->server, links);
  f->report = gt_result_encode(&own, links, s->run->job->nregions - 1);
  gt_free(links);
  gt_frame_header head = {.kind = GT_MSG_REPORT};
  gt_gateway_send(s->gateway, 0, &head, f->report, strlen(f->report), cookie, gt_server_now(s));
}

static void send_model(void *ctx, uint64_t cookie) {
  gt_final *f = ctx;
  gt_server *s = f->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  size_t n = a->params.n + a->buffers.n;
  gt_frame_header head = {.kind = GT_MSG_MODEL};
  f->sent = GT_NEW_ARRAY(float, n);
  gt_vec_copy(gt_vec_of(f->sent, a->params.n), a->params);
  gt_vec_copy(gt_vec_of(f->sent + a->params.n, a->buffers.n), a->buffers);
  gt_gateway_send(s->gateway, 0, &head, f->sent, n * sizeof(float), cookie, gt_server_now(s));
}

/* ---- events ------------------------------------------------------------------------------------------------------------------- */

void gt_final_departed(gt_final *f, uint64_t cookie) {
  gt_ending_departed(&f->ending, cookie);
}

/* ---- the mean's score from another region ------------------------------------------------------------------------------------- */

static void send_score(void *ctx, const gt_ps_score *score) {
  gt_final *f = ctx;
  gt_frame_header head = {.kind = GT_MSG_REPORT};
  f->mean_score = *score;
  gt_gateway_send(f->server->gateway, 0, &head, &f->mean_score, sizeof f->mean_score, 0, gt_server_now(f->server));
}

/* On the region that is asked; the lead's model that came is the mean. */
static void score_mean(gt_final *f) {
  gt_server *s = f->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_vec model = gt_vec_of(f->models.early[0], a->params.n + a->buffers.n);
  gt_ps_evaluate(s->ps, gt_vec_range(model, 0, a->params.n), gt_vec_range(model, a->params.n, a->buffers.n), send_score, f, gt_server_now(s));
}

/* On the lead. */
static void ask_for_score(gt_final *f) {
  gt_server *s = f->server;
  gt_frame_header head = {.kind = GT_MSG_MODEL};
  f->asked = true;
  gt_gateway_send(s->gateway, s->run->tester, &head, f->mean.data, f->mean.n * sizeof(float), 0, gt_server_now(s));
}

static void take_score(gt_final *f, size_t peer, const gt_frame_header *head, const void *payload) {
  if (head->kind != GT_MSG_REPORT || peer != f->server->run->tester || head->message_bytes != sizeof f->mean_score)
    gt_panic(GT_ERR_FAULT, "region %s was asked for no message of %llu bytes", f->server->run->job->regions[peer].name,
             (unsigned long long)head->message_bytes);
  memcpy(&f->mean_score, payload, sizeof f->mean_score);
  gt_ending_evaluated(&f->ending);
}

/* ---- messages --------------------------------------------------------------------------------------------------------------------- */

void gt_final_message(gt_final *f, size_t peer, const gt_frame_header *head, const void *payload) {
  if (f->asked) {
    take_score(f, peer, head, payload);
    return;
  }
  size_t n = f->server->run->job->nregions, count = 0;
  if (head->kind == GT_MSG_MODEL) {
    const gt_arrays *a = gt_graph_arrays(f->server->run->graph);
    if (head->message_bytes != (a->params.n + a->buffers.n) * sizeof(float) || !gt_model_mean_add(&f->models, peer, payload))
      gt_panic(GT_ERR_FAULT, "region %s sent a model of %llu bytes, or a second one", f->server->run->job->regions[peer].name,
               (unsigned long long)head->message_bytes);
  } else if (head->kind == GT_MSG_REPORT) {
    if (f->regions[peer].name[0]) gt_panic(GT_ERR_FAULT, "region %s sent its result twice", f->server->run->job->regions[peer].name);
    if (gt_result_decode(payload, head->message_bytes, &f->regions[peer], f->links + f->nlinks, n * n - f->nlinks, &count) != GT_OK)
      gt_panic(GT_ERR_FAULT, "the result of region %s: %s", f->server->run->job->regions[peer].name, gt_error_text());
    if (strcmp(f->regions[peer].name, f->server->run->job->regions[peer].name) != 0 || count != n - 1)
      gt_panic(GT_ERR_FAULT, "region %s sent the result of region %s with %zu links; its own with %zu is needed",
               f->server->run->job->regions[peer].name, f->regions[peer].name, count, n - 1);
    f->nlinks += count;
  }
  gt_ending_message(&f->ending, head->kind);
  if (head->kind == GT_MSG_MODEL && !f->server->run->roles.is_lead) score_mean(f);
}

/* ---- the lead ------------------------------------------------------------------------------------------------------------------ */

static size_t region_named(const gt_job *job, const char *name) {
  size_t r = 0;
  while (r + 1 < job->nregions && strcmp(job->regions[r].name, name) != 0) r++;
  return r;
}

/* All traffic by sender and receiver; *strategy receives the strategy's.  The caller frees it. */
static double *bytes_of(const gt_final *f, double *strategy) {
  const gt_job *job = f->server->run->job;
  double *bytes = GT_NEW_ARRAY(double, job->nregions * job->nregions);
  *strategy = 0;
  for (size_t i = 0; i < f->nlinks; i++) {
    const gt_link_result *l = &f->links[i];
    bytes[region_named(job, l->from) * job->nregions + region_named(job, l->to)] += (double)(l->bytes_sent + l->bytes_other);
    *strategy += (double)l->bytes_sent;
  }
  return bytes;
}

/* With what it cost and what was planned, to file and eye. */
static gt_status publish(const gt_final *f, const gt_summary *summary, double elapsed) {
  gt_summary full = *summary, *sum = &full;
  const gt_run *run = f->server->run;
  gt_cost_result cost = {.usd = NAN};
  gt_plan_result plan;
  double wan_bytes, *bytes = bytes_of(f, &wan_bytes);
  if (run->prices.known) {
    gt_train_cost(&cost, run->job, &run->prices, elapsed, bytes);
    sum->cost = &cost;
  }
  gt_figures measured = gt_figures_of(elapsed, sum->regions, sum->nregions, (double)sum->samples, wan_bytes, cost.usd);
  if (gt_run_planned(&plan, run->job, &measured)) sum->plan = &plan;
  gt_status status = gt_summary_write(run->run_dir, sum);
  if (status == GT_OK) gt_summary_print(stdout, sum);
  fflush(stdout);
  gt_train_cost_close(&cost);
  gt_free(bytes);
  return status;
}

static gt_status summarise(gt_final *f) {
  gt_server *s = f->server;
  const gt_run *run = s->run;
  bool alone = strcmp(run->job->sync.strategy, "none") == 0 && run->job->nregions > 1;
  double elapsed = gt_server_elapsed(s), wall = gt_seconds(gt_now() - s->begun_wall) + (s->virtual_clock ? 0 : s->elapsed_s);
  size_t P = gt_graph_arrays(run->graph)->params.n;
  const char **isas = GT_NEW_ARRAY(const char *, run->job->nregions);
  for (size_t r = 0; r < run->job->nregions; r++) isas[r] = run->isas[r];
  gt_summary sum = {.job = run->job->name,
                    .strategy = run->job->sync.strategy,
                    .clock = s->virtual_clock ? "virtual" : "real",
                    .wall_s = wall,
                    .virtual_s = s->virtual_clock ? elapsed : NAN,
                    .test_accuracy = alone ? NAN : f->mean_score.accuracy,
                    .test_loss = alone ? NAN : f->mean_score.loss,
                    .test_auc = alone ? NAN : f->mean_score.auc,
                    .regions = f->regions,
                    .nregions = run->job->nregions,
                    .isas = isas,
                    .choices = run->choices_text ? (const char *const *)run->all_choices : NULL,
                    .choices_how = run->choices_how,
                    .links = f->links,
                    .nlinks = f->nlinks,
                    .version = GT_VERSION,
                    .kernels = gt_graph_kernels(run->graph),
                    .precision = run->precision == GT_BF16 ? "bf16" : "f32",
                    .blas_core = gt_kernels_blas_core(),
                    .model = run->job->model.name,
                    .parameters = (int64_t)P,
                    .resumes = s->resumes};
  for (size_t r = 0; r < sum.nregions; r++) sum.samples += f->regions[r].samples;
  sum.samples_per_s = (double)sum.samples / elapsed;
  gt_sha256_hex(f->mean.data, P * sizeof(float), sum.params_sha256);
  gt_live_end(s->live);
  const gt_status status = publish(f, &sum, elapsed);
  gt_free(isas);
  return status;
}

static void conclude(void *ctx) {
  gt_final *f = ctx;
  gt_server *s = f->server;
  gt_frame_header bye = {.kind = GT_MSG_BYE};
  gt_status status = summarise(f);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  for (size_t p = 1; p < s->run->job->nregions; p++) gt_gateway_send(s->gateway, p, &bye, NULL, 0, 0, gt_server_now(s));
}

/* ---- evaluations --------------------------------------------------------------------------------------------------------------- */

static void own_evaluated(void *ctx, const gt_ps_score *score) {
  gt_final *f = ctx;
  f->own = *score;
  gt_ending_evaluated(&f->ending);
}

static void mean_evaluated(void *ctx, const gt_ps_score *score) {
  gt_final *f = ctx;
  f->mean_score = *score;
  gt_ending_evaluated(&f->ending);
}

static void settle_all(gt_final *f) {
  gt_server_result(f->server, &f->own, &f->regions[0]);
  gt_server_link_results(f->server, f->links + f->nlinks);
  f->nlinks += f->server->run->job->nregions - 1;
  f->mean = gt_model_mean_finish(&f->models);
}

static bool evaluate(void *ctx, bool mean) {
  gt_final *f = ctx;
  gt_server *s = f->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  if (mean)
    settle_all(f);
  else if (f->ending.lead)
    gt_model_mean_begin(&f->models, a->params, a->buffers);
  if (mean && s->run->data.ntest == 0 && s->run->tester < s->run->job->nregions) {
    ask_for_score(f);
    return true;
  }
  if (s->run->data.ntest == 0) return false;
  if (mean)
    gt_ps_evaluate(s->ps, gt_vec_range(f->mean, 0, a->params.n), gt_vec_range(f->mean, a->params.n, a->buffers.n), mean_evaluated, f,
                   gt_server_now(s));
  else
    gt_ps_evaluate(s->ps, a->params, a->buffers, own_evaluated, f, gt_server_now(s));
  return true;
}

/* ---- as others see it ---------------------------------------------------------------------------------------------------------- */

static const gt_ending_hooks hooks = {.evaluate = evaluate, .send_model = send_model, .send_report = send_report, .conclude = conclude};

gt_final *gt_final_create(gt_server *s) {
  size_t n = s->run->job->nregions;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_final *f = GT_NEW(gt_final);
  f->server = s;
  gt_ending_open(&f->ending, &hooks, f, s->ps, s->run->roles.is_lead, n - 1);
  f->own = f->mean_score = (gt_ps_score){NAN, NAN, NAN};
  gt_model_mean_open(&f->models, n, s->run->roles.region_id, s->weights, a->params.n, a->buffers.n);
  f->regions = GT_NEW_ARRAY(gt_region_result, n);
  f->links = GT_NEW_ARRAY(gt_link_result, n * n);
  return f;
}

bool gt_final_step(gt_final *f, gt_ns now) {
  return gt_ending_step(&f->ending, now);
}
