/* The end of a simulated run: own evaluation, model and result to the lead, a last checkpoint round, the mean's evaluation, good-bye: what src/train/final.c does, without its contents. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inside.h"

#define COOKIE_MODEL  ((uint64_t)1 << 63)
#define COOKIE_REPORT (COOKIE_MODEL + 1)
#define BYTES_A_LINK  ((size_t)512) /* about so long is a link's result, where it is not made */

void gt_sim_end_result(sim_region *r) {
  gt_region_result *result = &r->result;
  gt_ps_view v;
  gt_usage_parts parts;
  double workers = (double)(r->sim->spec.job->regions[r->id].ranks - 1);
  gt_ps_look(r->ps, gt_timeline_now(r->timeline), &v);
  *result = (gt_region_result){.workers = (int)workers,
                               .steps = v.steps,
                               .samples = v.samples,
                               .compute_s = gt_seconds(v.compute) / workers,
                               .encode_s = gt_seconds(v.encode),
                               .wan_wait_s = gt_seconds(v.wan_wait) / workers + gt_seconds(v.drain),
                               .local_wait_s = gt_seconds(v.wait - v.wan_wait) / workers,
                               .idle_s = gt_seconds(v.idle),
                               .wall_s = gt_seconds(gt_timeline_now(r->timeline)),
                               .update_s = gt_seconds(v.update),
                               .test_accuracy = NAN,
                               .test_loss = NAN,
                               .test_auc = NAN,
                               .train_loss = NAN};
  snprintf(result->name, sizeof result->name, "%s", r->sim->spec.job->regions[r->id].name);
  for (size_t p = 0; p < r->sim->n; p++)
    if (p != r->id) result->wire_s += gt_seconds(r->wires[p].wire);
  if (!r->sim->exact) return;
  gt_usage_batch(&r->split, &v, (size_t)workers, &parts);
  result->split_train_s = parts.train;
  result->split_upload_s = parts.upload;
  result->split_aggregate_s = parts.aggregate;
  result->split_download_s = parts.download;
  r->links = GT_NEW_ARRAY(gt_link_result, r->sim->n);
  for (size_t p = 0, n = 0; p < r->sim->n; p++)
    if (p != r->id) gt_sim_wire_result(r, p, &r->links[n++]);
}

/* ---- a region ----------------------------------------------------------------------------------------------------------------- */

static size_t report_bytes(const sim_region *r) {
  if (!r->sim->exact) return BYTES_A_LINK * r->sim->n;
  char *text = gt_result_encode(&r->result, r->links, r->sim->n - 1);
  size_t bytes = strlen(text);
  gt_free(text);
  return bytes;
}

static void send(sim_region *r, gt_msg_kind kind, size_t bytes, uint64_t cookie) {
  gt_frame_header head = {.kind = (uint8_t)kind};
  gt_sim_send(r, 0, &head, bytes, cookie, gt_timeline_now(r->timeline));
  r->stage = SIM_SENDING;
}

void gt_sim_end_departed(sim_region *r, uint64_t cookie) {
  if (cookie == COOKIE_REPORT) {
    r->stage = SIM_AWAITING_BYE;
    return;
  }
  gt_sim_end_result(r);
  r->wires[0].report_bytes = (uint32_t)report_bytes(r);
  send(r, GT_MSG_REPORT, r->wires[0].report_bytes, COOKIE_REPORT);
}

void gt_sim_end_message(sim_region *r, const gt_frame_header *head) {
  if (head->kind == GT_MSG_BYE)
    r->bye = true;
  else if (head->kind == GT_MSG_MODEL)
    r->nmodels++;
  else
    r->nreports++;
}

static void evaluated(void *ctx, const gt_ps_score *score) {
  (void)score;
  ((sim_region *)ctx)->evaluated = true;
}

static void evaluate(sim_region *r, sim_stage stage) {
  const gt_sim_spec *spec = &r->sim->spec;
  r->evaluated = spec->test_samples == 0;
  r->stage = stage;
  if (!r->evaluated)
    gt_ps_evaluate(r->ps, gt_vec_of(NULL, spec->parameters), gt_vec_of(NULL, spec->buffers), evaluated, r, gt_timeline_now(r->timeline));
}

/* ---- the lead ------------------------------------------------------------------------------------------------------------------ */

static void gather(sim_region *r) {
  gt_ps_view v;
  gt_ns now = gt_timeline_now(r->timeline);
  size_t others = r->sim->n - 1;
  gt_ps_look(r->ps, now, &v);
  if (r->nmodels < others || r->nreports < others || v.round != v.whole_round) return;
  gt_ps_final_round(r->ps, now);
  r->last_round = v.round + 1;
  r->stage = SIM_LAST_ROUND;
}

static void last_round(sim_region *r) {
  gt_ps_view v;
  gt_ps_look(r->ps, gt_timeline_now(r->timeline), &v);
  if (v.whole_round < r->last_round) return;
  gt_sim_end_result(r);
  evaluate(r, SIM_EVALUATING_MEAN);
}

static void say_good_bye(sim_region *r) {
  gt_frame_header bye = {.kind = GT_MSG_BYE};
  for (size_t p = 1; p < r->sim->n; p++) gt_sim_send(r, p, &bye, 0, 0, gt_timeline_now(r->timeline));
  r->stage = SIM_OVER;
}

/* ---- steps --------------------------------------------------------------------------------------------------------------------- */

static void step(sim_region *r) {
  switch (r->stage) {
  case SIM_TRAINING:
    evaluate(r, SIM_EVALUATING_OWN);
    break;
  case SIM_EVALUATING_OWN:
    if (!r->evaluated) break;
    if (r->id == 0)
      r->stage = SIM_GATHERING;
    else
      send(r, GT_MSG_MODEL, (r->sim->spec.parameters + r->sim->spec.buffers) * sizeof(float), COOKIE_MODEL);
    break;
  case SIM_GATHERING:
    gather(r);
    break;
  case SIM_LAST_ROUND:
    last_round(r);
    break;
  case SIM_EVALUATING_MEAN:
    if (r->evaluated) say_good_bye(r);
    break;
  case SIM_AWAITING_BYE:
    if (r->bye) r->stage = SIM_OVER;
    break;
  case SIM_SENDING:
  case SIM_OVER:
    break;
  }
}

void gt_sim_end_step(sim_region *r) {
  sim_stage before;
  do {
    before = r->stage;
    step(r);
  } while (r->stage != before);
}
