/* A region's result at the end of a run: its own figures, and those of its links. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages.h"

void gt_server_result(const gt_server *s, const gt_ps_score *own, gt_region_result *r) {
  gt_ps_view v;
  gt_ps_look(s->ps, gt_server_now(s), &v);
  const size_t workers = gt_plane_ps_workers(s->plane);
  const double share = workers > 0 ? (double)workers : 1, drain = gt_seconds(v.drain);
  *r = (gt_region_result){.workers = (int)workers,
                          .steps = v.steps,
                          .samples = v.samples,
                          .compute_s = gt_seconds(v.compute) / share,
                          .encode_s = gt_seconds(v.encode),
                          .wan_wait_s = gt_seconds(v.wan_wait) / share + drain,
                          .local_wait_s = gt_seconds(v.wait - v.wan_wait) / share,
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
  gt_server_stages_result(s, r);
}

/* Copies the rows that were used, with the names of their kinds. */
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

void gt_server_link_results(const gt_server *s, gt_link_result *links) {
  for (size_t p = 0, i = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    gt_link_result *l = &links[i++];
    gt_ps_link seen;
    gt_ps_look_link(s->ps, p, &seen);
    *l = (gt_link_result){.bandwidth_bps_measured = seen.bandwidth_bps,
                          .latency_s_measured = seen.latency_s};
    if (p < s->past.n) l->bytes_lost = (int64_t)s->past.bytes[p];
    /* Acknowledgements come back on the opposite direction.  The sending time of frames is known
       only for modelled links. */
    double wire_s = gt_gateway_wire_s(s->gateway, p);
    if (gt_gateway_modelled(s->gateway) && wire_s > 0)
      l->bandwidth_bps_measured = 8 * gt_server_wire_bytes(s, p) / wire_s;
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
