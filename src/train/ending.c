/* The end of a run, for gt_ending: a region's scores, model and result; on the lead their mean and
   the summary, which it sends to regions that are MPI jobs of their own.  The scored model is
   durable before the summary refers to it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_ending.h"
#include "ending.h"

/* ---- the object ------------------------------------------------------------------------------ */

#define COOKIE_SITES (GT_ENDING_COOKIE + 2) /* of messages that give other sites the results */
#define EPOCH_SHIFT  8 /* of the epoch in a cookie, whose lowest byte names the message */
#define TEXT_PIECE   ((size_t)1 << 15) /* bytes of the summary in a message */

struct gt_server_ending {
  gt_server *server;
  gt_ending ending;
  gt_server_ending *former; /* of an earlier epoch: messages of it can still be leaving */
  gt_ending_group group;
  gt_ps_score own;
  gt_ps_score mean_score; /* on the lead: over all test sets */
  gt_ps_score *scores;    /* nregions: of the mean on the region's test set */
  bool *awaited;          /* nregions, on the lead: the region's score of the mean is pending */
  bool asked;             /* on the lead: another region scores the mean */
  char *report;           /* on the lead: the text of summary.json */
  size_t leaving;         /* messages to other sites that have not left yet */
  gt_site_end *site;      /* NULL: on the lead, or in one MPI job */
  bool *differs;          /* nregions, on the lead, if identical: the region has another model */
  gt_stage_model *parts;  /* on the lead of a pipeline, which keeps the models in a file */
  gt_model_mean models;   /* on the lead: models of all regions, added as they arrive */
  gt_vec mean; /* on the lead, once complete: parameters, then buffers; owned by models */
  float *sent; /* on another region: its model, while it is sent */
  gt_region_result *regions;
  gt_link_result *links;
  size_t nlinks;
  gt_final_model final; /* on the lead, or on every region if alone */
  bool alone;           /* each region keeps its own model */
  bool identical;       /* all regions hold the same model: only its hashes are sent */
  bool *bad_loss; /* nregions, on the lead: the loss of the region's own model is non-finite */
  bool own_bad_loss;
  bool own_known; /* the region's own model has been evaluated, or it has no test samples */
  gt_status code; /* exit code of the run */
  char params_sha256[GT_SHA256_HEX];
  bool apart; /* regions are MPI jobs of their own */
  bool begun, concluded, whole, published;
};

/* True if the loss is non-finite.  Without samples (a region of a pipeline that does not score)
   there is no accuracy either. */
static bool is_bad_loss(const gt_ps_score *score) {
  return isfinite(score->accuracy) && !isfinite(score->loss);
}

static bool is_lead(const gt_server_ending *e) {
  return e->group.self == e->group.lead;
}

static bool is_other(const gt_server_ending *e, size_t region) {
  return e->group.member[region] && region != e->group.self;
}

static void send(const gt_server_ending *e, size_t to, gt_frame_header head, const void *payload,
                 size_t bytes, uint64_t cookie) {
  head.epoch = e->group.epoch;
  if (cookie) cookie |= (uint64_t)e->group.epoch << EPOCH_SHIFT;
  gt_gateway_send(e->server->gateway, to, &head, payload, bytes, cookie, gt_server_now(e->server));
}

void gt_server_ending_close(gt_server_ending *e) {
  if (!e) return;
  gt_server_ending_close(e->former);
  gt_final_model_close(&e->final);
  gt_site_end_close(e->site);
  gt_stage_model_close(e->parts);
  gt_model_mean_close(&e->models);
  gt_free(e->regions);
  gt_free(e->links);
  gt_free(e->report);
  gt_free(e->sent);
  gt_free(e->bad_loss);
  gt_free(e->scores);
  gt_free(e->awaited);
  gt_free(e->differs);
  gt_ending_group_close(&e->group);
  gt_free(e);
}

/* ---- the final model ------------------------------------------------------------------------- */

/* True when this region's model file is durable.  If regions keep their own models, each model is
   written before it is reported, unless it is non-finite. */
static bool own_file_durable(gt_server_ending *e) {
  const gt_arrays *a = gt_graph_arrays(e->server->run->graph);
  if (!e->final.writer) {
    gt_region_result own;
    if (e->own_bad_loss || !gt_vec_finite(a->params) || !gt_vec_finite(a->buffers)) return true;
    gt_server_result(e->server, &e->own, &own);
    own = gt_final_model_total(&own, 1);
    gt_final_model_begin(&e->final, e->server, e->server->run->region, &own, a->params, a->buffers);
  }
  return gt_final_model_durable(&e->final, e->server);
}

/* Begins the file of the mean or of a pipeline's model. */
static void begin_whole_file(gt_server_ending *e) {
  const gt_arrays *a = gt_graph_arrays(e->server->run->model);
  const gt_region_result all = gt_final_model_total(e->regions, e->server->run->job->nregions);
  if (e->parts)
    gt_stage_model_finish(e->parts, &all, e->params_sha256);
  else
    gt_final_model_begin(&e->final, e->server, NULL, &all, gt_vec_range(e->mean, 0, a->params.n),
                         gt_vec_range(e->mean, a->params.n, a->buffers.n));
}

/* ---- reports to the lead --------------------------------------------------------------------- */

/* Returns the lead's link results, which are measured last. */
static gt_link_result *own_links(const gt_server_ending *e) {
  return e->links + e->nlinks - (e->server->run->job->nregions - 1);
}

static void send_report(void *ctx, uint64_t cookie) {
  gt_server_ending *e = ctx;
  gt_server *s = e->server;
  gt_region_result own;
  gt_link_result *links = GT_NEW_ARRAY(gt_link_result, s->run->job->nregions);
  gt_server_result(e->server, &e->own, &own);
  gt_server_link_results(e->server, links);
  e->report = gt_result_encode(&own, links, s->run->job->nregions - 1);
  gt_free(links);
  send(e, e->group.lead, (gt_frame_header){.kind = GT_MSG_REPORT, .value = e->own_bad_loss},
       e->report, strlen(e->report), cookie);
}

typedef struct {
  char params[GT_SHA256_HEX], buffers[GT_SHA256_HEX];
} model_hash;

static model_hash hash_own(const gt_server_ending *e) {
  const gt_arrays *a = gt_graph_arrays(e->server->run->graph);
  model_hash hash = {0};
  gt_sha256_hex(a->params.data, a->params.n * sizeof(float), hash.params);
  gt_sha256_hex(a->buffers.data, a->buffers.n * sizeof(float), hash.buffers);
  return hash;
}

static void send_model(void *ctx, uint64_t cookie) {
  gt_server_ending *e = ctx;
  gt_server *s = e->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  size_t n = a->params.n + a->buffers.n;
  const gt_frame_header head = {.kind = GT_MSG_MODEL};
  if (s->run->pipe) {
    gt_stage_model_send(s, cookie);
    return;
  }
  if (e->identical) {
    const model_hash hash = hash_own(e);
    e->sent = gt_alloc(sizeof hash, 1);
    memcpy(e->sent, &hash, sizeof hash);
    send(e, e->group.lead, head, e->sent, sizeof hash, cookie);
    return;
  }
  e->sent = GT_NEW_ARRAY(float, n);
  gt_vec_copy(gt_vec_of(e->sent, a->params.n), a->params);
  gt_vec_copy(gt_vec_of(e->sent + a->params.n, a->buffers.n), a->buffers);
  send(e, e->group.lead, head, e->sent, n * sizeof(float), cookie);
}

/* ---- the mean's scores ----------------------------------------------------------------------- */

static void mean_evaluated(void *ctx, const gt_ps_score *score) {
  gt_server_ending *e = ctx;
  e->scores[e->group.lead] = *score;
  gt_ending_evaluated(&e->ending);
}

static void send_score(void *ctx, const gt_ps_score *score) {
  gt_server_ending *e = ctx;
  gt_ps_score *own = &e->scores[e->server->run->roles.region_id];
  *own = *score;
  send(e, e->group.lead, (gt_frame_header){.kind = GT_MSG_REPORT}, own, sizeof *own, 0);
}

/* Returns the final model on a region other than the lead: the one received from the lead, or the
   region's own, which is the same. */
static void find_mean(const gt_server_ending *e, gt_vec *params, gt_vec *buffers) {
  const gt_arrays *a = gt_graph_arrays(e->server->run->graph);
  float *sent = e->models.early[e->group.lead];
  *params = sent ? gt_vec_of(sent, a->params.n) : a->params;
  *buffers = sent ? gt_vec_of(sent + a->params.n, a->buffers.n) : a->buffers;
}

static void score_mean(gt_server_ending *e) {
  gt_server *s = e->server;
  gt_vec params, buffers;
  gt_failpoint("ending.score");
  find_mean(e, &params, &buffers);
  gt_ps_evaluate(s->ps, params, buffers, send_score, e, gt_server_now(s));
}

/* Sends the mean, or its name only to a region that has the same model. */
static void send_mean(gt_server_ending *e, size_t region, uint64_t cookie) {
  const bool whole = !e->identical || (e->apart && e->differs[region]);
  send(e, region, (gt_frame_header){.kind = GT_MSG_MODEL}, e->mean.data,
       whole ? e->mean.n * sizeof(float) : 0, cookie);
}

/* Begins to score the mean on every different test set.  Returns their number.  On the lead. */
static size_t score_everywhere(gt_server_ending *e) {
  gt_server *s = e->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  size_t n = 0;
  for (size_t r = 0; r < s->run->job->nregions; r++) {
    if (!is_other(e, r) || !e->group.tests[r].scores) continue;
    send_mean(e, r, 0);
    e->awaited[r] = e->asked = true;
    n++;
  }
  if (!e->group.tests[e->group.lead].scores) return n;
  gt_ps_evaluate(s->ps, gt_vec_range(e->mean, 0, a->params.n),
                 gt_vec_range(e->mean, a->params.n, a->buffers.n), mean_evaluated, e,
                 gt_server_now(s));
  return n + 1;
}

static void take_score(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                       const void *payload) {
  if (head->message_bytes != sizeof *e->scores)
    gt_gateway_refuse(e->server->gateway, peer,
                      "a report with %llu bytes; expected the score of the mean model, %zu bytes",
                      (unsigned long long)head->message_bytes, sizeof *e->scores);
  memcpy(&e->scores[peer], payload, sizeof *e->scores);
  e->awaited[peer] = false;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Regions on other instruction sets may round otherwise. */
static void take_hash(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                      const void *payload) {
  const bool lead = is_lead(e);
  const size_t bytes = lead ? sizeof(model_hash) : 0;
  if (head->message_bytes != bytes || e->models.seen[peer])
    gt_gateway_refuse(e->server->gateway, peer,
                      "the hash of a final model has %llu bytes, or is a second one; expected one "
                      "of %zu",
                      (unsigned long long)head->message_bytes, bytes);
  e->models.seen[peer] = true;
  const model_hash own = hash_own(e);
  e->differs[peer] = lead && memcmp(&own, payload, sizeof own) != 0;
  if (e->differs[peer])
    gt_log(GT_LOG_WARN,
           "the final model of region %s differs from that of region %s, whose model is "
           "kept: their instruction sets round differently",
           e->server->run->job->regions[peer].name,
           e->server->run->job->regions[e->group.lead].name);
}

static void take_model(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                       const void *payload) {
  if (e->identical && !(e->site && head->message_bytes > 0)) {
    take_hash(e, peer, head, payload);
    return;
  }
  const size_t floats = e->models.nparams + e->models.nbuffers;
  if (head->message_bytes != floats * sizeof(float) ||
      !gt_model_mean_add(&e->models, peer, payload))
    gt_gateway_refuse(e->server->gateway, peer,
                      "a final model has %llu bytes, or is a second one; expected one of %zu",
                      (unsigned long long)head->message_bytes, floats * sizeof(float));
}

static void take_result(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                        const void *payload) {
  const char *region = e->server->run->job->regions[peer].name;
  gt_region_result *result = &e->regions[peer];
  size_t n = e->server->run->job->nregions, count = 0;
  if (result->name[0]) gt_gateway_refuse(e->server->gateway, peer, "it sent its result before");
  if (gt_result_decode(payload, head->message_bytes, result, e->links + e->nlinks,
                       n * n - e->nlinks, &count) != GT_OK)
    gt_gateway_refuse(e->server->gateway, peer, "its result: %s", gt_error_text());
  if (strcmp(result->name, region) != 0 || count != n - 1)
    gt_gateway_refuse(e->server->gateway, peer,
                      "it is the result of region %s with %zu links; expected its own with %zu",
                      result->name, count, n - 1);
  if (head->value > 1)
    gt_gateway_refuse(e->server->gateway, peer, "its result has value %llu; expected 0 or 1",
                      (unsigned long long)head->value);
  e->bad_loss[peer] = head->value == 1;
  e->nlinks += count;
}

/* Takes the exit code with which the lead ended the run. */
static void take_bye(gt_server_ending *e, const gt_frame_header *head) {
  if (head->value != GT_OK && head->value != GT_ERR_LIMIT)
    gt_gateway_refuse(e->server->gateway, e->group.lead, "BYE has code %llu; expected 0 or %d",
                      (unsigned long long)head->value, GT_ERR_LIMIT);
  if (head->value == GT_ERR_LIMIT)
    e->code = GT_FAIL(GT_ERR_LIMIT, "region %s ended the run: a final model is not finite",
                      e->server->run->job->regions[e->group.lead].name);
}

static void take_from_lead(gt_server_ending *e, const gt_frame_header *head, const void *payload) {
  const gt_run *run = e->server->run;
  if (head->kind == GT_MSG_REPORT) {
    gt_site_end_text(e->site, head, payload);
  } else if (run->pipe) {
    gt_site_end_piece(e->site, head, payload);
  } else {
    take_model(e, e->group.lead, head, payload);
    if (e->site) gt_site_end_model(e->site);
    if (e->group.tests[run->roles.region_id].scores) score_mean(e);
  }
}

/* Returns why a message of this kind cannot come from the peer; NULL: it can. */
static const char *untimely(const gt_server_ending *e, size_t peer, unsigned kind) {
  const bool from_lead = peer == e->group.lead && !is_lead(e);
  if (kind == GT_MSG_BYE) return from_lead ? NULL : "is for the lead to send";
  if (from_lead && !e->begun) return "comes before this region's own model";
  /* the mean, to be scored; at a site of its own, also the results of all */
  if (kind == GT_MSG_MODEL && from_lead && e->group.tests[e->server->run->roles.region_id].scores)
    return NULL;
  if (from_lead && e->site) return NULL;
  return is_lead(e) ? NULL : "is for the lead";
}

void gt_server_ending_message(gt_server_ending *e, size_t peer, const gt_frame_header *head,
                              const void *payload) {
  if (head->epoch != e->group.epoch || !e->group.member[peer]) return;
  const char *why = untimely(e, peer, head->kind);
  if (why) gt_gateway_refuse(e->server->gateway, peer, "a message of kind %u %s", head->kind, why);
  if (!is_lead(e) && head->kind != GT_MSG_BYE) {
    take_from_lead(e, head, payload);
    return;
  }
  if (head->kind == GT_MSG_MODEL && e->parts) {
    if (!gt_stage_model_take(e->parts, peer, head, payload)) return;
  } else if (head->kind == GT_MSG_MODEL)
    take_model(e, peer, head, payload);
  if (head->kind == GT_MSG_REPORT && e->awaited[peer])
    take_score(e, peer, head, payload);
  else if (head->kind == GT_MSG_REPORT)
    take_result(e, peer, head, payload);
  if (head->kind == GT_MSG_BYE) take_bye(e, head);
  gt_ending_message(&e->ending, head->kind);
}

/* ---- the lead -------------------------------------------------------------------------------- */

/* Returns non-finite values at the end as the run's error, else GT_OK. */
static gt_status check_final(const gt_server_ending *e) {
  const gt_job *job = e->server->run->job;
  const size_t bad = e->parts ? gt_stage_model_bad(e->parts) : e->models.bad;
  const bool of_mean = !e->alone && !e->parts;
  size_t loss = 0;
  while (loss < job->nregions && !e->bad_loss[loss]) loss++;
  char what[200] = "";
  if (bad < job->nregions)
    snprintf(what, sizeof what, "the final model of region %s", job->regions[bad].name);
  else if (loss < job->nregions)
    snprintf(what, sizeof what, "the test loss of the final model of region %s",
             job->regions[loss].name);
  else if (of_mean && !gt_vec_finite(e->mean))
    snprintf(what, sizeof what, "the mean of the regions' final models");
  else if (of_mean && is_bad_loss(&e->mean_score))
    snprintf(what, sizeof what, "the test loss of the mean of the regions' final models");
  else
    return GT_OK;
  return GT_FAIL(GT_ERR_LIMIT,
                 "%s is not finite: there is no final model.  Try a lower learning rate "
                 "(train.optimizer.lr); checkpoints are in %s/ckpt (--resume-round N)",
                 what, e->server->run->run_dir);
}

/* The lead's links have also carried the mean to the regions that score it. */
static void conclude(void *ctx) {
  gt_server_ending *e = ctx;
  if (!e->parts) e->mean_score = gt_ending_total(&e->group, e->scores, e->regions);
  if (e->asked) gt_server_link_results(e->server, own_links(e));
  e->code = check_final(e);
  if (e->code == GT_OK && !e->alone && !e->parts) begin_whole_file(e);
  e->concluded = true;
}

static void summarise(gt_server_ending *e) {
  const gt_gathered all = {e->regions, e->links, e->nlinks,
                           e->alone ? gt_ps_no_score : e->mean_score, e->params_sha256};
  gt_status status = gt_server_summarise(e->server, &all, &e->report);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

/* Sends a site the model, unless it has it, and the text of the summary in pieces. */
static void give(gt_server_ending *e, size_t region) {
  const size_t bytes = strlen(e->report);
  if (!e->alone && !e->parts && !e->group.tests[region].scores) {
    send_mean(e, region, COOKIE_SITES);
    e->leaving++;
  }
  for (size_t at = 0, n; at < bytes; at += n) {
    n = bytes - at < TEXT_PIECE ? bytes - at : TEXT_PIECE;
    const gt_frame_header head = {.kind = GT_MSG_REPORT, .value = at, .detail = bytes - at - n};
    send(e, region, head, e->report + at, n, COOKIE_SITES);
    e->leaving++;
  }
}

/* Writes the file of a pipeline's model when the other sites have it.  False: not yet. */
static bool finish_parts(gt_server_ending *e) {
  if (e->apart) e->leaving += gt_stage_model_spread(e->parts, COOKIE_SITES);
  if (e->leaving > 0) return false;
  begin_whole_file(e);
  return e->whole = true;
}

/* True when all results are durable here, and have left to the other sites.  After the model that
   the summary refers to is durable. */
static bool publish_results(gt_server_ending *e) {
  if (e->leaving > 0 || (e->parts && !e->whole && !finish_parts(e))) return false;
  if (e->final.writer && !gt_final_model_durable(&e->final, e->server)) return false;
  if (e->report) return true;
  summarise(e);
  for (size_t p = 0; e->apart && p < e->server->run->job->nregions; p++)
    if (is_other(e, p)) give(e, p);
  return e->leaving == 0;
}

/* The lead's last action. */
static bool publish_all(gt_server_ending *e) {
  const gt_frame_header bye = {.kind = GT_MSG_BYE, .value = e->code};
  if (e->published) return true;
  if (e->code == GT_OK && !publish_results(e)) return false;
  for (size_t p = 0; p < e->server->run->job->nregions; p++)
    if (is_other(e, p)) send(e, p, bye, NULL, 0, 0);
  return e->published = true;
}

/* ---- evaluations ----------------------------------------------------------------------------- */

static void own_evaluated(void *ctx, const gt_ps_score *score) {
  gt_server_ending *e = ctx;
  e->own = *score;
  e->own_bad_loss = is_bad_loss(score);
  e->own_known = true;
  gt_ending_evaluated(&e->ending);
}

static void settle_all(gt_server_ending *e) {
  e->bad_loss[e->group.lead] = e->own_bad_loss;
  gt_server_result(e->server, &e->own, &e->regions[e->group.lead]);
  for (size_t r = 0; r < e->server->run->job->nregions; r++)
    if (!e->group.member[r]) gt_server_lost_result(e->server, r, &e->regions[r]);
  e->nlinks += e->server->run->job->nregions - 1;
  gt_server_link_results(e->server, own_links(e));
  if (!e->parts) {
    e->mean = e->identical ? e->models.mean : gt_model_mean_finish(&e->models);
    gt_sha256_hex(e->mean.data, e->models.nparams * sizeof(float), e->params_sha256);
  }
}

static size_t evaluate_mean(gt_server_ending *e) {
  const gt_run_pipe *pipe = e->server->run->pipe;
  settle_all(e);
  if (check_final(e) != GT_OK) return 0;
  if (!pipe) return score_everywhere(e);
  e->mean_score = gt_ending_score_of(&e->regions[gt_setup_judge(pipe)]);
  return 0;
}

static size_t evaluate(void *ctx, bool mean) {
  gt_server_ending *e = ctx;
  gt_server *s = e->server;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  if (mean) return evaluate_mean(e);
  if (s->run->job->train.keep == GT_KEEP_BEST) gt_server_take_best(s);
  if (e->parts)
    gt_stage_model_own(e->parts);
  else if (e->ending.lead && e->identical)
    gt_model_mean_own(&e->models, a->params, a->buffers);
  else if (e->ending.lead)
    gt_model_mean_begin(&e->models, a->params, a->buffers);
  e->own_known = gt_train_tests(s->run) == 0;
  if (e->own_known) return e->alone; /* until the file is durable */
  gt_ps_evaluate(s->ps, a->params, a->buffers, own_evaluated, e, gt_server_now(s));
  return 1;
}

/* ---- interface ------------------------------------------------------------------------------- */

/* Closes an ending that has neither sent nor evaluated; returns the newest one that has. */
static gt_server_ending *newest_begun(gt_server_ending *e) {
  if (!e || e->begun) return e;
  gt_server_ending *former = e->former;
  e->former = NULL;
  gt_server_ending_close(e);
  return former;
}

static const gt_ending_hooks hooks = {.evaluate = evaluate,
                                      .send_model = send_model,
                                      .send_report = send_report,
                                      .conclude = conclude};

gt_server_ending *gt_server_ending_open(gt_server *s, gt_server_ending *former) {
  size_t n = s->run->job->nregions;
  const gt_arrays *a = gt_graph_arrays(s->run->model);
  const bool pipe = s->run->pipe != NULL;
  gt_server_ending *e = GT_NEW(gt_server_ending);
  e->server = s;
  e->former = newest_begun(former);
  gt_ending_group_open(&e->group, s);
  e->alone = n > 1 && !pipe && gt_sync_of(s->run->job->sync.strategy)->sends == 0;
  e->identical = !pipe && s->run->job->train.keep == GT_KEEP_LAST &&
                 gt_sync_identical(gt_sync_of(s->run->job->sync.strategy), a->buffers.n);
  gt_ending_open(&e->ending, &hooks, e, s->ps, is_lead(e), e->group.nmembers - 1);
  e->own = e->mean_score = gt_ps_no_score;
  e->bad_loss = GT_NEW_ARRAY(bool, n);
  e->scores = GT_NEW_ARRAY(gt_ps_score, n);
  e->awaited = GT_NEW_ARRAY(bool, n);
  e->differs = GT_NEW_ARRAY(bool, n);
  e->apart = s->run->options->region != NULL;
  if (e->apart && !is_lead(e)) e->site = gt_site_end_open(s, e->group.lead, e->alone);
  gt_model_mean_open(&e->models, n, s->run->roles.region_id, e->group.weights, a->params.n,
                     a->buffers.n);
  if (pipe && is_lead(e)) e->parts = gt_stage_model_open(s);
  e->regions = GT_NEW_ARRAY(gt_region_result, n);
  e->links = GT_NEW_ARRAY(gt_link_result, n * n);
  return e;
}

void gt_server_ending_departed(gt_server_ending *e, uint64_t cookie) {
  const uint64_t epoch = (uint64_t)UINT16_MAX << EPOCH_SHIFT;
  if ((cookie & epoch) >> EPOCH_SHIFT != e->group.epoch) return;
  cookie &= ~epoch;
  if (cookie == COOKIE_SITES)
    e->leaving--;
  else
    gt_ending_departed(&e->ending, cookie);
}

bool gt_server_ending_writes(const gt_server_ending *e) {
  return e && ((e->final.writer && !e->final.durable) || (e->site && gt_site_end_writes(e->site)));
}

bool gt_server_ending_released(const gt_server_ending *e) {
  return e && e->ending.bye;
}

void gt_server_ending_waits_for(const gt_server_ending *e, char *text, size_t size) {
  const gt_job *job = e->server->run->job;
  const size_t n = job->nregions;
  size_t p = 0, scorer = 0;
  while (p < n && (!is_other(e, p) || (e->regions[p].name[0] && (e->parts || e->models.seen[p]))))
    p++;
  while (scorer < n && !e->awaited[scorer]) scorer++;
  if (scorer < n)
    snprintf(text, size, "the score of the mean model from region %s", job->regions[scorer].name);
  else if (e->ending.lead && p < n)
    snprintf(text, size, "the final model and the result of region %s", job->regions[p].name);
  else
    snprintf(text, size, "the end of the run from region %s", job->regions[e->group.lead].name);
}

static bool write_at_site(gt_server_ending *e) {
  gt_vec params, buffers;
  find_mean(e, &params, &buffers);
  return gt_site_end_step(e->site, params, buffers);
}

/* True while workers still evaluate for the ending of an earlier epoch. */
static bool is_busy(const gt_server_ending *e, gt_ns now) {
  gt_ps_view v;
  if (!e->former || e->begun) return false;
  gt_ps_get_view(e->server->ps, now, &v);
  return v.evaluating;
}

bool gt_server_ending_step(gt_server_ending *e, gt_ns now, gt_status *code) {
  if (is_busy(e, now)) return false;
  e->begun = true;
  if (e->alone && e->own_known && !own_file_durable(e)) return false;
  if (e->alone && e->own_known && gt_train_tests(e->server->run) == 0)
    gt_ending_evaluated(&e->ending);
  if (!gt_ending_step(&e->ending, now) || (e->concluded && !publish_all(e))) return false;
  if (e->site && e->code == GT_OK && !write_at_site(e)) return false;
  *code = e->code;
  return true;
}
