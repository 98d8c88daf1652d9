/* The ending of a simulated run: a region's result, and the hooks of gt_ending, as in
   src/train/ending.c but without contents. */
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
                               .test_accuracy = NAN,
                               .test_loss = NAN,
                               .test_auc = NAN,
                               .test_recall20 = NAN,
                               .test_mrr20 = NAN,
                               .train_loss = NAN};
  snprintf(result->name, sizeof result->name, "%s", r->sim->spec.job->regions[r->id].name);
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

static void evaluated(void *ctx, const gt_ps_score *score) {
  (void)score;
  gt_ending_evaluated(&((sim_region *)ctx)->ending);
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

static void score(sim_region *r, void (*done)(void *ctx, const gt_ps_score *score)) {
  gt_ps_evaluate(r->ps, gt_vec_of(NULL, r->parameters), gt_vec_of(NULL, r->buffers), done, r,
                 gt_timeline_now(r->timeline));
}

static size_t evaluate_mean(sim_region *r) {
  const gt_ps_tests *tests = r->sim->spec.tests;
  size_t n = 0;
  for (size_t p = 0; tests && p < r->sim->n; p++) {
    if (p == r->id || r->sim->regions[p].away || !tests[p].scores) continue;
    send(r, p, GT_MSG_MODEL, is_identical(r) ? 0 : model_bytes(r), 0);
    n++;
  }
  r->asked = n > 0;
  if (!tests || !tests[r->id].scores) return n;
  score(r, evaluated);
  return n + 1;
}

static size_t evaluate(void *ctx, bool mean) {
  sim_region *r = ctx;
  if (mean) {
    gt_sim_end_result(r);
    return evaluate_mean(r);
  }
  if (gt_sim_tests(r->sim, r->id) == 0) return 0;
  score(r, evaluated);
  return 1;
}

static void send_score(void *ctx, const gt_ps_score *found) {
  send(ctx, lead_of(ctx), GT_MSG_REPORT, sizeof *found, 0);
}

void gt_sim_end_message(sim_region *r, const gt_frame_header *head) {
  const unsigned kind = head->kind;
  if (r->pipe && kind == GT_MSG_MODEL && head->detail > 0) return;
  gt_ending_message(&r->ending, kind);
  if (kind == GT_MSG_MODEL && r->id != lead_of(r)) score(r, send_score);
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

/* The lead's links have also carried the mean to the regions that score it. */
static void say_good_bye(void *ctx) {
  sim_region *r = ctx;
  if (r->asked && r->sim->exact) look_at_links(r);
  for (size_t p = 0; p < r->sim->n; p++)
    if (p != r->id) send(r, p, GT_MSG_BYE, 0, 0);
}

const gt_ending_hooks gt_sim_ending = {.evaluate = evaluate,
                                       .send_model = send_model,
                                       .send_report = send_report,
                                       .conclude = say_good_bye};
