/* The end of a run, for gt_ending: a region's scores, model and result; on the lead their mean and
   the summary.  The scored model is durable before the summary refers to it. */
#include "ending.h"
#include "geotrain/ps_ending.h"

#include <math.h>
#include <string.h>

struct gt_server_ending {
  gt_server *server;
  gt_ending ending;
  gt_ps_score own;
  gt_ps_score mean_score; /* on the lead, and on the region that scores the mean for it */
  bool asked;             /* another region scores the mean, because this one has no test samples */
  char *report;
  gt_stage_model *parts; /* on the lead of a pipeline, which has the rest of the models in a file */
  gt_model_mean models;  /* on the lead: models of all regions, added as they arrive */
  gt_vec mean;           /* on the lead, once complete: parameters, then buffers; owned by models */
  float *sent;           /* on another region: its model, being sent */
  gt_region_result *regions;
  gt_link_result *links;
  size_t nlinks;
  gt_final_model final; /* on the lead, or on every region if each ends with its own model */
  bool alone;           /* each region ends with its own model */
  char params_sha256[GT_SHA256_HEX];
  bool concluded, published;
};

static const gt_ps_score unknown = {NAN, NAN, NAN, NAN, NAN, 0};

void gt_server_ending_close(gt_server_ending *e) {
  if (!e) return;
  gt_final_model_close(&e->final);
  gt_stage_model_close(e->parts);
  gt_model_mean_close(&e->models);
  gt_free(e->regions);
  gt_free(e->links);
  gt_free(e->report);
  gt_free(e->sent);
  gt_free(e);
}

/* ---- the final model ------------------------------------------------------------------------- */

/* If regions keep their own models, each model is a file before it is reported. */
static bool own_file_durable(gt_server_ending *e) {
  if (!e->final.writer) {
    const gt_arrays *a = gt_graph_arrays(e->server->run->graph);
    gt_ps_view v;
    gt_ps_look(e->server->ps, gt_server_now(e->server), &v);
    gt_final_model_begin(&e->final, e->server, e->server->run->region,
                         &(gt_region_result){.steps = v.steps, .samples = v.samples}, a->params,
                         a->buffers);
  }
  return gt_final_model_durable(&e->final, e->server);
}

/* The file of the mean, or of a pipeline's model, has the largest step count of all regions and the
   sum of their samples. */
static void begin_whole_file(gt_server_ending *e) {
  const gt_arrays *a = gt_graph_arrays(e->server->run->model);
  gt_region_result all = {0};
  for (size_t r = 0; r < e->server->run->job->nregions; r++) {
    if (e->regions[r].steps > all.steps) all.steps = e->regions[r].steps;
    all.samples += e->regions[r].samples;
  }
  if (e->parts)
    gt_stage_model_finish(e->parts, &all, e->params_sha256);
  else
    gt_final_model_begin(&e->final, e->server, NULL, &all, gt_vec_range(e->mean, 0, a->params.n),
                         gt_vec_range(e->mean, a->params.n, a->buffers.n));
}

/* ---- reports to the lead --------------------------------------------------------------------- */

static void send_report(void *ctx, uint64_t cookie) {
  gt_server_ending *e = ctx;
  gt_server *s = e->server;
  gt_region_result own;
  gt_link_result *links = GT_NEW_ARRAY(gt_link_result, s->run->job->nregions);
  gt_server_result(e->server, &e->own, &own);
  gt_server_link_results(e->server, links);
  e->report = gt_result_encode(&own, links, s->run->job->nregions - 1);
  gt_free(links);
  gt_frame_header head = {.kind = GT_MSG_REPORT};
  gt_gateway_send(s->gateway, 0, &head, e->report, strlen(e->report), cookie, gt_server_now(s));
}

static void send_model(void *ctx, uint64_t cookie) {
  gt_server_ending *e = ctx;
  gt_server *s = e->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  size_t n = a->params.n + a->buffers.n;
  gt_frame_header head = {.kind = GT_MSG_MODEL};
  if (s->run->pipe) {
    gt_stage_model_send(s, cookie);
    return;
  }
  e->sent = GT_NEW_ARRAY(float, n);
  gt_vec_copy(gt_vec_of(e->sent, a->params.n), a->params);
  gt_vec_copy(gt_vec_of(e->sent + a->params.n, a->buffers.n), a->buffers);
  gt_gateway_send(s->gateway, 0, &head, e->sent, n * sizeof(float), cookie, gt_server_now(s));
}

/* ---- the mean's score from another region ---------------------------------------------------- */

static void send_score(void *ctx, const gt_ps_score *score) {
  gt_server_ending *e = ctx;
  gt_frame_header head = {.kind = GT_MSG_REPORT};
  e->mean_score = *score;
  gt_gateway_send(e->server->gateway, 0, &head, &e->mean_score, sizeof e->mean_score, 0,
                  gt_server_now(e->server));
}

/* On the region that scores the mean; the model received from the lead is the mean. */
static void score_mean(gt_server_ending *e) {
  gt_server *s = e->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_vec model = gt_vec_of(e->models.early[0], a->params.n + a->buffers.n);
  gt_ps_evaluate(s->ps, gt_vec_range(model, 0, a->params.n),
                 gt_vec_range(model, a->params.n, a->buffers.n), send_score, e, gt_server_now(s));
}

/* On the lead. */
static void ask_for_score(gt_server_ending *e) {
  gt_server *s = e->server;
  gt_frame_header head = {.kind = GT_MSG_MODEL};
  e->asked = true;
  gt_gateway_send(s->gateway, s->run->tester, &head, e->mean.data, e->mean.n * sizeof(float), 0,
                  gt_server_now(s));
}

static void take_score(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                       const void *payload) {
  if (head->kind != GT_MSG_REPORT || peer != e->server->run->tester ||
      head->message_bytes != sizeof e->mean_score)
    gt_panic(GT_ERR_FAULT, "region %s was asked for no message of %llu bytes",
             e->server->run->job->regions[peer].name, (unsigned long long)head->message_bytes);
  memcpy(&e->mean_score, payload, sizeof e->mean_score);
  gt_ending_evaluated(&e->ending);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void take_model(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                       const void *payload) {
  const size_t floats = e->models.nparams + e->models.nbuffers;
  if (head->message_bytes != floats * sizeof(float) ||
      !gt_model_mean_add(&e->models, peer, payload))
    gt_panic(GT_ERR_FAULT, "region %s sent a model of %llu bytes, or a second one",
             e->server->run->job->regions[peer].name, (unsigned long long)head->message_bytes);
}

static void take_result(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                        const void *payload) {
  const char *region = e->server->run->job->regions[peer].name;
  gt_region_result *result = &e->regions[peer];
  size_t n = e->server->run->job->nregions, count = 0;
  if (result->name[0]) gt_panic(GT_ERR_FAULT, "region %s sent its result twice", region);
  if (gt_result_decode(payload, head->message_bytes, result, e->links + e->nlinks,
                       n * n - e->nlinks, &count) != GT_OK)
    gt_panic(GT_ERR_FAULT, "the result of region %s: %s", region, gt_error_text());
  if (strcmp(result->name, region) != 0 || count != n - 1)
    gt_panic(GT_ERR_FAULT,
             "region %s sent the result of region %s with %zu links; its own with %zu is needed",
             region, result->name, count, n - 1);
  e->nlinks += count;
}

void gt_server_ending_message(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                              const void *payload) {
  if (e->asked) {
    take_score(e, peer, head, payload);
    return;
  }
  if (head->kind == GT_MSG_MODEL && e->parts) {
    if (!gt_stage_model_take(e->parts, peer, head, payload)) return;
  } else if (head->kind == GT_MSG_MODEL)
    take_model(e, peer, head, payload);
  if (head->kind == GT_MSG_REPORT) take_result(e, peer, head, payload);
  gt_ending_message(&e->ending, head->kind);
  if (head->kind == GT_MSG_MODEL && !e->server->run->roles.is_lead) score_mean(e);
}

/* ---- the lead -------------------------------------------------------------------------------- */

static void conclude(void *ctx) {
  ((gt_server_ending *)ctx)->concluded = true;
}

/* The lead's last action, once the model that the summary refers to is durable. */
static bool publish_all(gt_server_ending *e) {
  gt_server *s = e->server;
  gt_frame_header bye = {.kind = GT_MSG_BYE};
  if (e->published) return true;
  if (!e->parts && !gt_final_model_durable(&e->final, e->server)) return false;
  const gt_gathered all = {e->regions, e->links, e->nlinks, e->alone ? unknown : e->mean_score,
                           e->params_sha256};
  gt_status status = gt_server_summarise(s, &all);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  for (size_t p = 1; p < s->run->job->nregions; p++)
    gt_gateway_send(s->gateway, p, &bye, NULL, 0, 0, gt_server_now(s));
  return e->published = true;
}

/* ---- evaluations ----------------------------------------------------------------------------- */

static void own_evaluated(void *ctx, const gt_ps_score *score) {
  gt_server_ending *e = ctx;
  e->own = *score;
  gt_ending_evaluated(&e->ending);
}

static void mean_evaluated(void *ctx, const gt_ps_score *score) {
  gt_server_ending *e = ctx;
  e->mean_score = *score;
  gt_ending_evaluated(&e->ending);
}

static void settle_all(gt_server_ending *e) {
  gt_server_result(e->server, &e->own, &e->regions[0]);
  gt_server_link_results(e->server, e->links + e->nlinks);
  e->nlinks += e->server->run->job->nregions - 1;
  if (!e->parts) {
    e->mean = gt_model_mean_finish(&e->models);
    gt_sha256_hex(e->mean.data, e->models.nparams * sizeof(float), e->params_sha256);
  }
  if (!e->alone) begin_whole_file(e);
}

/* The model of a pipeline has been scored by the region that has its last stage. */
static gt_ps_score found_by(const gt_region_result *r) {
  return (gt_ps_score){.loss = r->test_loss,
                       .accuracy = r->test_accuracy,
                       .auc = r->test_auc,
                       .recall20 = r->test_recall20,
                       .mrr20 = r->test_mrr20,
                       .perplexity = r->test_perplexity};
}

static bool evaluate(void *ctx, bool mean) {
  gt_server_ending *e = ctx;
  gt_server *s = e->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  if (mean)
    settle_all(e);
  else if (e->parts)
    gt_stage_model_own(e->parts);
  else if (e->ending.lead)
    gt_model_mean_begin(&e->models, a->params, a->buffers);
  if (mean && s->run->pipe) {
    e->mean_score = found_by(&e->regions[gt_setup_judge(s->run->pipe)]);
    return false;
  }
  if (mean && s->run->data.ntest == 0 && s->run->tester < s->run->job->nregions) {
    ask_for_score(e);
    return true;
  }
  if (gt_train_tests(s->run) == 0) return false;
  if (mean)
    gt_ps_evaluate(s->ps, gt_vec_range(e->mean, 0, a->params.n),
                   gt_vec_range(e->mean, a->params.n, a->buffers.n), mean_evaluated, e,
                   gt_server_now(s));
  else
    gt_ps_evaluate(s->ps, a->params, a->buffers, own_evaluated, e, gt_server_now(s));
  return true;
}

/* ---- interface ------------------------------------------------------------------------------- */

static const gt_ending_hooks hooks = {.evaluate = evaluate,
                                      .send_model = send_model,
                                      .send_report = send_report,
                                      .conclude = conclude};

gt_server_ending *gt_server_ending_open(gt_server *s) {
  size_t n = s->run->job->nregions;
  const gt_arrays *a = gt_graph_arrays(s->run->model);
  const bool pipe = s->run->pipe != NULL;
  gt_server_ending *e = GT_NEW(gt_server_ending);
  e->server = s;
  e->alone = n > 1 && !pipe && gt_sync_of(s->run->job->sync.strategy)->sends == 0;
  gt_ending_open(&e->ending, &hooks, e, s->ps, s->run->roles.is_lead, n - 1);
  e->own = e->mean_score = unknown;
  gt_model_mean_open(&e->models, n, s->run->roles.region_id, s->weights, a->params.n, a->buffers.n);
  if (pipe && s->run->roles.is_lead) e->parts = gt_stage_model_open(s);
  e->regions = GT_NEW_ARRAY(gt_region_result, n);
  e->links = GT_NEW_ARRAY(gt_link_result, n * n);
  return e;
}

void gt_server_ending_departed(gt_server_ending *e, uint64_t cookie) {
  gt_ending_departed(&e->ending, cookie);
}

bool gt_server_ending_step(gt_server_ending *e, gt_ns now) {
  if (e->alone && !own_file_durable(e)) return false;
  return gt_ending_step(&e->ending, now) && (!e->concluded || publish_all(e));
}
