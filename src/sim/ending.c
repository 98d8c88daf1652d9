/* The ending of a simulated run: a region's result, and the hooks of gt_ending, as in
   src/train/ending.c but with empty messages. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/plan_job.h"
#include "geotrain/ps_passes.h"
#include "internal.h"

/* approximate length of a link's result, if the region has none */
#define BYTES_A_LINK ((size_t)512)

static void look_at_links(sim_region *r) {
  if (!r->links) r->links = GT_NEW_ARRAY(gt_link_result, r->sim->n);
  for (size_t p = 0, n = 0; p < r->sim->n; p++)
    if (p != r->id) gt_sim_wire_result(r, p, &r->links[n++]);
}

static gt_store_result store_of(const sim_region *r, double seconds) {
  gt_link_objects written = {0};
  for (size_t p = 0; p < r->sim->n; p++)
    if (p != r->id) gt_sim_written(&r->wires[p], &written);
  return gt_plan_store_use(r->sim->spec.links, r->id, &written, &r->read, &r->function, seconds);
}

void gt_sim_end_result(sim_region *r) {
  gt_region_result *result = &r->result;
  gt_ps_view v;
  gt_time_split_parts parts;
  const size_t workers = gt_job_workers(r->sim->spec.job, r->id);
  const double share = workers > 0 ? (double)workers : 1;
  gt_ps_get_view(r->ps, gt_timeline_now(r->timeline), &v);
  *result = (gt_region_result){.workers = (int)workers,
                               .steps = v.steps,
                               .samples = v.samples,
                               .missed = v.missed,
                               .compute_s = gt_seconds(v.compute) / share,
                               .encode_s = gt_seconds(v.encode),
                               .wan_wait_s = gt_seconds(v.wan_wait) / share + gt_seconds(v.drain),
                               .local_wait_s = gt_seconds(gt_ps_local_wait(&v)) / share,
                               .idle_s = workers > 0 ? gt_seconds(v.idle) : 0,
                               .wall_s = gt_seconds(gt_timeline_now(r->timeline)),
                               .update_s = gt_seconds(v.update),
                               .test_accuracy = r->own.accuracy,
                               .test_loss = r->own.loss,
                               .test_auc = r->own.auc,
                               .test_recall20 = r->own.recall20,
                               .test_mrr20 = r->own.mrr20,
                               .test_perplexity = r->own.perplexity,
                               .train_loss = NAN};
  snprintf(result->name, sizeof result->name, "%s", r->sim->spec.job->regions[r->id].name);
  if (r->model.data) {
    result->nonfinite = v.nonfinite;
    result->excluded = v.excluded;
    result->residual = gt_ps_residual(r->ps);
  }
  gt_ps_coded_result(r->ps, result);
  gt_ps_passes_result(r->ps, result);
  for (size_t p = 0; p < r->sim->n; p++)
    if (p != r->id) result->wire_s += gt_seconds(r->wires[p].wire.used);
  if (r->sim->spec.job->wan.transport == GT_WAN_STORE) result->store = store_of(r, result->wall_s);
  if (!r->sim->exact) return;
  look_at_links(r);
  gt_time_split_batch(&r->split, &v, gt_ps_made_of(r->ps), &parts);
  result->split_train_s = parts.train;
  result->split_upload_s = parts.upload;
  result->split_aggregate_s = parts.aggregate;
  result->split_download_s = parts.download;
}

/* ---- for gt_ending --------------------------------------------------------------------------- */

static void own_evaluated(void *ctx, const gt_ps_score *score) {
  sim_region *r = ctx;
  if (r->model.data) r->own = *score;
  gt_ending_evaluated(&r->ending);
}

static void mean_evaluated(void *ctx, const gt_ps_score *score) {
  sim_region *r = ctx;
  if (r->model.data) r->score = *score;
  gt_ending_evaluated(&r->ending);
}

static size_t lead_of(const sim_region *r) {
  return r->sim->lead;
}

static void send(sim_region *r, size_t peer, gt_msg_kind kind, size_t bytes, uint64_t cookie) {
  gt_frame_header head = {.kind = (uint8_t)kind};
  gt_sim_send(r, peer, &head, NULL, bytes, cookie, gt_timeline_now(r->timeline));
}

static bool is_identical(const sim_region *r) {
  const gt_job *job = r->sim->spec.job;
  return job->train.keep == GT_KEEP_LAST &&
         gt_sync_identical(gt_sync_of(job->sync.strategy), r->buffers);
}

static size_t model_bytes(const sim_region *r) {
  return (r->parameters + r->buffers) * sizeof(float);
}

/* Sends the model in pieces, as src/train/stage_model.c does. */
static void send_pieces(sim_region *r, uint64_t cookie) {
  const size_t all = r->parameters + r->buffers;
  size_t at = 0;
  do {
    size_t n;
    const gt_frame_header head = gt_ending_piece(r->parameters, all, at, &n);
    at += n;
    gt_sim_send(r, lead_of(r), &head, NULL, n * sizeof(float), at < all ? 0 : cookie,
                gt_timeline_now(r->timeline));
  } while (at < all);
}

static void send_model(void *ctx, uint64_t cookie) {
  if (((sim_region *)ctx)->pipe)
    send_pieces(ctx, cookie);
  else
    send(ctx, lead_of(ctx), GT_MSG_MODEL,
         is_identical(ctx) ? 2 * (size_t)GT_SHA256_HEX : model_bytes(ctx), cookie);
}

/* Forms the mean of the members' models. */
static void find_mean(sim_region *lead) {
  gt_sim *sim = lead->sim;
  const size_t all = lead->parameters + lead->buffers;
  double sum = 0;
  size_t members = 0;
  float *model = GT_NEW_ARRAY(float, all);
  sim->shares = GT_NEW_ARRAY(double, sim->n);
  for (size_t r = 0; r < sim->n; r++) {
    if (sim->regions[r].away) continue;
    sum += sim->shares[r] = sim->weights[r];
    members++;
  }
  for (size_t r = 0; r < sim->n && members < sim->n; r++) sim->shares[r] /= sum;
  gt_model_mean_open(&sim->mean, sim->n, lead->id, sim->shares, lead->parameters, lead->buffers);
  if (is_identical(lead))
    gt_model_mean_own(&sim->mean, lead->model, lead->statistics);
  else
    gt_model_mean_begin(&sim->mean, lead->model, lead->statistics);
  for (size_t p = 0; p < sim->n && !is_identical(lead); p++) {
    const sim_region *r = &sim->regions[p];
    if (r == lead || r->away) continue;
    gt_vec_copy(gt_vec_of(model, r->parameters), r->model);
    gt_vec_copy(gt_vec_of(model + r->parameters, r->buffers), r->statistics);
    gt_model_mean_add(&sim->mean, p, model);
  }
  if (!is_identical(lead)) gt_model_mean_finish(&sim->mean);
  gt_free(model);
  sim->final.bad = sim->mean.bad;
  gt_sha256_hex(sim->mean.mean.data, lead->parameters * sizeof(float), sim->final.params_sha256);
}

/* True for the first member with its test set. */
static bool scores_mean(const sim_region *r) {
  const gt_sim *sim = r->sim;
  const gt_ps_tests *tests = sim->spec.tests;
  if (!tests || r->away || !tests[tests[r->id].first].scores) return false;
  for (size_t p = 0; p < r->id; p++)
    if (!sim->regions[p].away && tests[p].first == tests[r->id].first) return false;
  return true;
}

static void score_mean(sim_region *r, void (*done)(void *ctx, const gt_ps_score *score)) {
  const gt_vec mean = r->sim->mean.mean;
  const bool has = mean.data != NULL;
  gt_ps_evaluate(r->ps, has ? gt_vec_range(mean, 0, r->parameters) : r->model,
                 has ? gt_vec_range(mean, r->parameters, r->buffers) : r->statistics, done, r,
                 gt_timeline_now(r->timeline));
}

static size_t evaluate_mean(sim_region *r) {
  gt_sim *sim = r->sim;
  size_t n = 0;
  if (r->model.data) find_mean(r);
  for (size_t p = 0; p < sim->n; p++) {
    if (p == r->id || !scores_mean(&sim->regions[p])) continue;
    send(r, p, GT_MSG_MODEL, is_identical(r) ? 0 : model_bytes(r), 0);
    n++;
  }
  r->asked = n > 0;
  if (!scores_mean(r)) return n;
  score_mean(r, mean_evaluated);
  return n + 1;
}

static size_t evaluate(void *ctx, bool mean) {
  sim_region *r = ctx;
  if (mean) {
    gt_sim_end_result(r);
    return evaluate_mean(r);
  }
  if (gt_sim_tests(r->sim, r->id) == 0) return 0;
  gt_ps_evaluate(r->ps, r->model, r->statistics, own_evaluated, r, gt_timeline_now(r->timeline));
  return 1;
}

static void send_score(void *ctx, const gt_ps_score *found) {
  sim_region *r = ctx;
  if (r->model.data) r->score = *found;
  send(ctx, lead_of(ctx), GT_MSG_REPORT, sizeof *found, 0);
}

void gt_sim_end_message(sim_region *r, const gt_frame_header *head) {
  const unsigned kind = head->kind;
  if (r->pipe && kind == GT_MSG_MODEL && head->detail > 0) return;
  gt_ending_message(&r->ending, kind);
  if (kind == GT_MSG_MODEL && r->id != lead_of(r)) score_mean(r, send_score);
}

static size_t report_bytes(const sim_region *r) {
  if (!r->sim->exact) return BYTES_A_LINK * r->sim->n;
  char *text = gt_result_encode(&r->result, r->links, r->sim->n - 1);
  size_t bytes = strlen(text);
  gt_free(text);
  return bytes;
}

static void send_report(void *ctx, uint64_t cookie) {
  sim_region *r = ctx;
  gt_sim_end_result(r);
  send(r, lead_of(r), GT_MSG_REPORT, report_bytes(r), cookie);
}

static void judge(gt_sim *sim) {
  const gt_job *job = sim->spec.job;
  gt_ps_tests *tests = GT_NEW_ARRAY(gt_ps_tests, sim->n);
  gt_ps_score *scores = GT_NEW_ARRAY(gt_ps_score, sim->n);
  for (size_t r = 0; r < sim->n; r++) {
    if (sim->spec.tests) tests[r] = sim->spec.tests[r];
    tests[r].scores = scores_mean(&sim->regions[r]);
    scores[r] = sim->regions[r].score;
  }
  if (sim->n == 1 || gt_sync_of(job->sync.strategy)->sends > 0)
    sim->final.score = gt_ps_scores_total(scores, tests, sim->n);
  gt_free(scores);
  gt_free(tests);
}

/* The lead's links have also carried the mean to the regions that score it. */
static void conclude(void *ctx) {
  sim_region *r = ctx;
  if (r->model.data) judge(r->sim);
  if (r->asked && r->sim->exact) look_at_links(r);
  for (size_t p = 0; p < r->sim->n; p++)
    if (p != r->id) send(r, p, GT_MSG_BYE, 0, 0);
}

const gt_ending_hooks gt_sim_ending = {.evaluate = evaluate,
                                       .send_model = send_model,
                                       .send_report = send_report,
                                       .conclude = conclude};
