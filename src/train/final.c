/* The end of a run, for gt_ending: a region's scores, model and result; on the lead their mean and
   the summary.  The model that is scored is a file before the summary speaks of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_ending.h"
#include "geotrain/plan_job.h"
#include "internal.h"

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
  gt_ckpt_writer *writer; /* of the model that the run ends with */
  gt_ns writing_since;    /* wall time */
  bool alone;             /* each region ends with a model of its own */
  bool durable, concluded, published;
};

void gt_final_close(gt_final *f) {
  if (!f) return;
  gt_ckpt_writer_close(f->writer);
  gt_model_mean_close(&f->models);
  gt_free(f->regions);
  gt_free(f->links);
  gt_free(f->report);
  gt_free(f->sent);
  gt_free(f);
}

/* ---- the file of the model ------------------------------------------------------------------- */

/* Begins to write what is scored; region: NULL for the mean. */
static void begin_file(gt_final *f, const char *region, const gt_region_result *of, gt_vec params, gt_vec buffers) {
  gt_server *s = f->server;
  gt_ckpt_info info;
  gt_state state = {0};
  gt_server_describe(s, &info);
  info.step = of->steps;
  info.samples = of->samples;
  info.mean_of = region ? 1 : (int64_t)s->run->job->nregions;
  snprintf(info.region, sizeof info.region, "%s", region ? region : "");
  gt_sha256_hex(params.data, params.n * sizeof(float), info.params_sha256);
  gt_state_add(&state, "model/", "params", GT_TYPE_F32, params.data, params.n);
  gt_state_add(&state, "model/", "buffers", GT_TYPE_F32, buffers.data, buffers.n);
  gt_setup_save_data(s->run, &state);
  gt_status status = gt_ckpt_write_final(&f->writer, s->run->run_dir, region, &info, &state);
  gt_state_close(&state);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  f->writing_since = gt_now();
}

/* Whether what was begun is durable; under the virtual clock it is waited for, for no event says
   it. */
static bool file_durable(gt_final *f) {
  gt_server *s = f->server;
  gt_status result = GT_OK;
  if (f->durable) return true;
  for (; gt_ckpt_poll(f->writer, &result) != GT_CKPT_DONE; gt_virtual_look_around(s)) {
    double limit = gt_server_write_limit(s), waited = gt_seconds(gt_now() - f->writing_since);
    if (waited >= limit)
      gt_panic(GT_ERR_CKPT, "waited %.0f s for the final model of region %s to be written to %s", waited, s->run->region, s->run->run_dir);
    if (!s->virtual_clock) return false;
  }
  if (result != GT_OK) gt_panic(result, "%s; the last checkpoint is whole, and --resume makes the final model again", gt_error_text());
  return f->durable = true;
}

/* Where regions keep models of their own, each is a file before it is reported. */
static bool own_file_durable(gt_final *f) {
  if (!f->writer) {
    const gt_arrays *a = gt_graph_arrays(f->server->run->graph);
    gt_ps_view v;
    gt_ps_look(f->server->ps, gt_server_now(f->server), &v);
    begin_file(f, f->server->run->region, &(gt_region_result){.steps = v.steps, .samples = v.samples}, a->params, a->buffers);
  }
  return file_durable(f);
}

/* The mean's: the steps of the region with the most, the samples of all. */
static void begin_mean_file(gt_final *f) {
  const gt_arrays *a = gt_graph_arrays(f->server->run->graph);
  gt_region_result all = {0};
  for (size_t r = 0; r < f->server->run->job->nregions; r++) {
    if (f->regions[r].steps > all.steps) all.steps = f->regions[r].steps;
    all.samples += f->regions[r].samples;
  }
  begin_file(f, NULL, &all, gt_vec_range(f->mean, 0, a->params.n), gt_vec_range(f->mean, a->params.n, a->buffers.n));
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

/* ---- the mean's score from another region ---------------------------------------------------- */

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

/* ---- messages -------------------------------------------------------------------------------- */

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

/* All traffic, lost work's too, by sender and receiver; *strategy receives the strategy's.  The caller frees it. */
static double *bytes_of(const gt_final *f, double *strategy) {
  const gt_job *job = f->server->run->job;
  double *bytes = GT_NEW_ARRAY(double, job->nregions * job->nregions);
  *strategy = 0;
  for (size_t i = 0; i < f->nlinks; i++) {
    const gt_link_result *l = &f->links[i];
    bytes[region_named(job, l->from) * job->nregions + region_named(job, l->to)] += (double)(l->bytes_sent + l->bytes_other + l->bytes_lost);
    *strategy += (double)l->bytes_sent;
  }
  return bytes;
}

/* Seconds for which earlier starts are paid beside those that the run's clock knows: work that was lost, and their time until the first step. */
static double lost_of(const gt_final *f, const gt_summary *s) {
  double lost = 0;
  for (size_t r = 0; r < s->nregions; r++) lost = fmax(lost, s->regions[r].lost_s);
  return lost + (double)f->server->past.starts * f->server->run->job->plan.start_s;
}

/* With what it cost and what was planned, to file and eye. */
static gt_status publish(const gt_final *f, const gt_summary *summary, double elapsed) {
  gt_summary full = *summary, *sum = &full;
  const gt_run *run = f->server->run;
  gt_cost_result cost = {.usd = NAN};
  gt_plan_result plan;
  double wan_bytes, *bytes = bytes_of(f, &wan_bytes);
  if (run->prices.known) {
    gt_plan_job_cost(&cost, run->job, &run->prices, elapsed + lost_of(f, sum), bytes);
    sum->cost = &cost;
  }
  gt_figures measured = gt_figures_of(elapsed, sum->regions, sum->nregions, (double)sum->samples, wan_bytes, cost.usd);
  if (gt_train_planned(&plan, run->job, &measured)) sum->plan = &plan;
  gt_status status = gt_summary_write(run->run_dir, sum);
  if (status == GT_OK) gt_summary_print(stdout, sum);
  fflush(stdout);
  gt_plan_job_cost_close(&cost);
  gt_free(bytes);
  return status;
}

static gt_status summarise(gt_final *f) {
  gt_server *s = f->server;
  const gt_run *run = s->run;
  double elapsed = gt_server_elapsed(s), wall = gt_seconds(gt_now() - s->begun_wall) + (s->virtual_clock ? 0 : s->elapsed_s);
  size_t P = gt_graph_arrays(run->graph)->params.n;
  const char **isas = GT_NEW_ARRAY(const char *, run->job->nregions);
  for (size_t r = 0; r < run->job->nregions; r++) isas[r] = run->isas[r];
  gt_summary sum = {.job = run->job->name,
                    .strategy = gt_strategy_names[run->job->sync.strategy],
                    .clock = s->virtual_clock ? "virtual" : "real",
                    .wall_s = wall,
                    .virtual_s = s->virtual_clock ? elapsed : NAN,
                    .test_accuracy = f->alone ? NAN : f->mean_score.accuracy,
                    .test_loss = f->alone ? NAN : f->mean_score.loss,
                    .test_auc = f->alone ? NAN : f->mean_score.auc,
                    .regions = f->regions,
                    .nregions = run->job->nregions,
                    .isas = isas,
                    .builds = run->builds,
                    .choices = run->choices_text ? (const char *const *)run->all_choices : NULL,
                    .choices_how = run->choices_how,
                    .links = f->links,
                    .nlinks = f->nlinks,
                    .version = GT_VERSION,
                    .kernels = run->builds[run->job->nregions].kernels,
                    .precision = run->builds[run->job->nregions].precision,
                    .blas_core = run->builds[run->job->nregions].blas_core,
                    .model = gt_model_names[run->job->model.name],
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
  ((gt_final *)ctx)->concluded = true;
}

/* The lead's last deed, once the model that the summary tells of is durable. */
static bool publish_all(gt_final *f) {
  gt_server *s = f->server;
  gt_frame_header bye = {.kind = GT_MSG_BYE};
  if (f->published) return true;
  if (!file_durable(f)) return false;
  gt_status status = summarise(f);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  for (size_t p = 1; p < s->run->job->nregions; p++) gt_gateway_send(s->gateway, p, &bye, NULL, 0, 0, gt_server_now(s));
  return f->published = true;
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
  if (!f->alone) begin_mean_file(f);
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
  f->alone = n > 1 && gt_sync_of(s->run->job->sync.strategy)->sends == 0;
  gt_ending_open(&f->ending, &hooks, f, s->ps, s->run->roles.is_lead, n - 1);
  f->own = f->mean_score = (gt_ps_score){NAN, NAN, NAN};
  gt_model_mean_open(&f->models, n, s->run->roles.region_id, s->weights, a->params.n, a->buffers.n);
  f->regions = GT_NEW_ARRAY(gt_region_result, n);
  f->links = GT_NEW_ARRAY(gt_link_result, n * n);
  return f;
}

bool gt_final_step(gt_final *f, gt_ns now) {
  if (f->alone && !own_file_durable(f)) return false;
  return gt_ending_step(&f->ending, now) && (!f->concluded || publish_all(f));
}
